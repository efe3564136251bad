"""Trees of tensors in files: `save` and `load`.

A file is a NumPy archive (`.npz`, uncompressed) with an entry for each array, and the structure of the tree as JSON.
Nothing in it is executed when it is loaded, and no more data is read than the file contains.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any, Final

import numpy as np

from .errors import AutogradError, TreeError
from .tensor.tensor import Tensor, from_new_array, is_scalar
from .tensor.trace_hooks import array_of
from .type_aliases import Array

__all__ = ["load", "save"]

STRUCTURE: Final = "structure"
DEEPEST: Final = 200  # levels of nesting
PLAIN: Final = (type(None), bool, int, float, str)
# Exceptions of NumPy, zipfile and json for files that are damaged or in another format.
DAMAGED: Final = (
    AutogradError, ValueError, TypeError, KeyError, IndexError, AttributeError, EOFError, RecursionError, MemoryError,
    NotImplementedError, RuntimeError, OverflowError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip


def save(file: str | os.PathLike[str] | IO[bytes], tree: Any) -> None:
    """Save nested dictionaries, lists and tuples of tensors, arrays, numbers, strings and None.

    For a tensor, its values and whether it is a leaf that requires grad are saved, but not its history or `grad`. An
    existing file is replaced only once the new one is complete.

    Arguments:
        file: a path, to which `.npz` is not appended, or a file opened for writing bytes.
        tree: the tree to save; the keys of dictionaries must be strings.

    Raises:
        TreeError: if the tree contains other objects, arrays of objects, or itself.

    Example:
        >>> import io, viewgrad as vg
        >>> file = io.BytesIO()
        >>> vg.save(file, {"weights": [vg.ones(2, requires_grad=True)], "step": 3})
        >>> _ = file.seek(0)
        >>> vg.load(file)
        {'weights': [Tensor([1., 1.], requires_grad=True)], 'step': 3}
    """
    arrays: list[Array] = []
    structure = json.dumps(_described(tree, arrays, "tree", ()))
    entries = {str(number): array for number, array in enumerate(arrays)}
    entries[STRUCTURE] = np.frombuffer(structure.encode(), np.uint8)
    if isinstance(file, str | os.PathLike):
        _replace(os.path.realpath(file), lambda opened: _write(opened, entries))
    else:
        _write(file, entries)


def load(file: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Load a file written by `save`; leaves that required grad do so again.

    Arguments:
        file: a path, or a seekable file opened for reading bytes.

    Raises:
        TreeError: if the file is damaged, or was not written by `save`.
        OSError: if the file cannot be read.
    """
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            return _read(opened, os.fspath(file))
    return _read(file, getattr(file, "name", "the file"))


# -- files -------------------------------------------------------------------------------------------------------------


def _replace(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Write a temporary file beside `path`, then replace `path` with it."""
    folder = os.path.dirname(path) or "."
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
    number, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.", suffix=".tmp")
    try:
        with os.fdopen(number, "wb") as opened:
            write(opened)
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError, AttributeError):  # folders cannot be opened on all systems
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _write(opened: IO[bytes], entries: dict[str, Array]) -> None:
    with zipfile.ZipFile(opened, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _read(opened: IO[bytes], name: str) -> Any:
    try:
        with zipfile.ZipFile(opened) as archive:
            infos = {info.filename: info for info in archive.infolist()}
            length = opened.seek(0, os.SEEK_END)
            if sum(info.file_size for info in archive.infolist()) > length:
                raise TreeError("its entries are compressed or declare a size larger than the file")

            def read(entry: Any) -> Array:
                return _entry(archive, infos[f"{entry}.npy"])

            structure = read(STRUCTURE)
            if structure.dtype != np.uint8 or structure.ndim != 1:
                raise TreeError("its structure is not text")
            return _rebuilt(json.loads(structure.tobytes().decode()), read)
    except DAMAGED as error:
        said = error.message if isinstance(error, AutogradError) else f"{type(error).__name__}: {error}"
        raise TreeError(f"{name} is damaged, or was not written by viewgrad.save: {said}") from error


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Return an array of an archive, after checking its header against the size of its entry."""
    if info.compress_type != zipfile.ZIP_STORED:
        raise TreeError("its entries are compressed")
    with archive.open(info) as entry:
        version = np.lib.format.read_magic(entry)
        if version not in ((1, 0), (2, 0)):
            raise TreeError(f"an array has the unsupported format version {version}")
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(entry)
        count = 1
        for extent in shape:
            count *= extent
        if dtype.hasobject or min(shape, default=0) < 0 or count * dtype.itemsize != info.file_size - entry.tell():
            raise TreeError(f"an array of {dtype} and shape {shape} does not match its entry")
    with archive.open(info) as entry:
        array: Array = np.lib.format.read_array(entry, allow_pickle=False)
    return array


# -- trees -------------------------------------------------------------------------------------------------------------


def _described(tree: Any, arrays: list[Array], path: str, above: tuple[int, ...]) -> Any:
    """Convert a tree to JSON, with a tag for each kind of node; arrays are represented by their numbers in a list."""
    if isinstance(tree, Tensor):
        kind = "scalar" if is_scalar(tree) else "leaf" if tree.requires_grad and tree.is_leaf else "tensor"
        return [kind, _kept(array_of(tree, "viewgrad.save()"), arrays, path)]
    if isinstance(tree, np.ma.MaskedArray):
        parts = (tree.data, np.ma.getmaskarray(tree), tree.fill_value)
        return ["masked", [_kept(part, arrays, path) for part in parts]]
    if isinstance(tree, np.generic):
        return ["number", _kept(tree, arrays, path)]
    if type(tree) in PLAIN:
        return ["plain", tree]
    if type(tree) is complex:
        return ["complex", [tree.real, tree.imag]]
    if type(tree) is np.ndarray:
        return ["array", _kept(tree, arrays, path)]
    if id(tree) in above:
        raise TreeError(f"save(): {path} contains itself")
    if len(above) == DEEPEST:
        raise TreeError(f"save(): {path} is nested deeper than {DEEPEST} levels")
    inside = (*above, id(tree))
    kind = type(tree).__name__
    if type(tree) in (dict, OrderedDict):
        for key in tree:
            if type(key) is not str:
                raise TreeError(f"save(): the keys of dictionaries must be strings, and {path} has the key {key!r}")
        pairs = [(key, _described(value, arrays, f"{path}[{key!r}]", inside)) for key, value in tree.items()]
        return [kind, dict(pairs) if type(tree) is dict else pairs]
    if type(tree) in (list, tuple):
        return [kind, [_described(item, arrays, f"{path}[{n}]", inside) for n, item in enumerate(tree)]]
    raise TreeError(
        f"save() supports dictionaries, lists and tuples of tensors, arrays, numbers, strings and None, but {path} is "
        f"of type {type(tree).__module__}.{type(tree).__qualname__}: convert it"
    )


def _kept(array: Any, arrays: list[Array], path: str) -> int:
    array = np.asarray(array)
    if array.dtype.hasobject:
        raise TreeError(f"save(): {path} is an array of objects, which load() cannot read without executing code")
    arrays.append(array)
    return len(arrays) - 1


def _rebuilt(structure: Any, read: Callable[[Any], Array]) -> Any:
    """Rebuild a tree from the result of `_described`; `read` returns the array with a given number."""
    kind, content = structure
    if kind in ("dict", "OrderedDict"):
        pairs = content.items() if kind == "dict" else content
        tree = {str(key): _rebuilt(value, read) for key, value in pairs}
        return tree if kind == "dict" else OrderedDict(tree)
    if kind in ("list", "tuple"):
        items = [_rebuilt(value, read) for value in content]
        return items if kind == "list" else tuple(items)
    if kind == "masked":
        data, mask, fill_value = map(read, content)
        made: Any = np.ma.MaskedArray(data, mask=mask)
        made.fill_value = fill_value[()]
        return made
    if kind == "complex":
        real, imaginary = content
        return complex(real, imaginary)
    if kind == "plain":
        if not isinstance(content, PLAIN):
            raise TreeError(f"{content!r} is not a number or a string")
        return content
    if kind not in ("array", "tensor", "leaf", "number", "scalar") or type(content) is not int:
        raise TreeError(f"{kind!r} is an unknown kind of node")
    array = read(content)
    if kind == "array":
        return array
    if kind in ("number", "scalar"):
        number: Any = array[()]
        if not isinstance(number, np.generic):
            raise TreeError("a number is stored as an array with dimensions")
        return number if kind == "number" else from_new_array(Tensor(array)._array[()])
    return Tensor(array, requires_grad=kind == "leaf")
