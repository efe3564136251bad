"""Trees of tensors in files: `save` and `load`.

A file is a NumPy archive (`.npz`): one entry for each tensor, and the shape of the tree as JSON. Nothing in it is
executed when it is loaded.
"""

from __future__ import annotations

import json
import os
from typing import IO, Any

import numpy as np

from .errors import TreeError
from .tensor.tensor import Tensor
from .tensor.trace_hooks import array_of

__all__ = ["load", "save"]

STRUCTURE = "structure"


def save(file: str | os.PathLike[str] | IO[bytes], tree: Any) -> None:
    """Save nested dictionaries, lists and tuples of tensors, arrays, numbers, strings and None.

    Of a tensor, the values are saved, and whether it is a leaf that requires grad; its history and its `grad` are not.

    Arguments:
        file: a path, to which `.npz` is not added, or a file that is open for writing bytes.
        tree: what is saved; the keys of dictionaries must be strings.

    Raises:
        TreeError: for anything else in the tree.

    Example:
        >>> import io, viewgrad as vg
        >>> file = io.BytesIO()
        >>> vg.save(file, {"weights": [vg.ones(2, requires_grad=True)], "step": 3})
        >>> _ = file.seek(0)
        >>> vg.load(file)
        {'weights': [Tensor([1., 1.], requires_grad=True)], 'step': 3}
    """
    arrays: list[np.ndarray[Any, Any]] = []
    structure = _described(tree, arrays)
    entries = {str(number): array for number, array in enumerate(arrays)}
    entries[STRUCTURE] = np.frombuffer(json.dumps(structure).encode(), np.uint8)
    if isinstance(file, str | os.PathLike):
        with open(file, "wb") as opened:
            np.savez(opened, **entries)  # type: ignore[arg-type]
    else:
        np.savez(file, **entries)  # type: ignore[arg-type]


def load(file: str | os.PathLike[str] | IO[bytes]) -> Any:
    """Load a tree that `save` has written; leaves that required grad do so again."""
    with np.load(file, allow_pickle=False) as entries:
        return _rebuilt(json.loads(bytes(entries[STRUCTURE]).decode()), entries)


def _described(tree: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """The tree as JSON, with a tag for each kind of node."""
    if isinstance(tree, Tensor | np.ndarray):
        is_tensor = isinstance(tree, Tensor)
        arrays.append(np.asarray(array_of(tree, "viewgrad.save()") if isinstance(tree, Tensor) else tree))
        kind = "array" if not is_tensor else "leaf" if tree.requires_grad and tree.is_leaf else "tensor"  # type: ignore[union-attr]
        return [kind, len(arrays) - 1]
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return ["dict", {key: _described(value, arrays) for key, value in tree.items()}]
    if type(tree) in (list, tuple):
        return [type(tree).__name__, [_described(value, arrays) for value in tree]]
    if isinstance(tree, complex):
        return ["complex", [tree.real, tree.imag]]
    if tree is None or isinstance(tree, bool | int | float | str):
        return ["plain", tree.item() if isinstance(tree, np.generic) else tree]
    raise TreeError(f"save() takes dictionaries, lists and tuples of tensors and numbers, not {type(tree).__name__}")


def _rebuilt(structure: Any, entries: Any) -> Any:
    kind, content = structure
    if kind in ("array", "tensor", "leaf"):
        array = entries[str(content)]
        return array if kind == "array" else Tensor(array, requires_grad=kind == "leaf")
    if kind == "dict":
        return {key: _rebuilt(value, entries) for key, value in content.items()}
    if kind in ("list", "tuple"):
        items = [_rebuilt(value, entries) for value in content]
        return items if kind == "list" else tuple(items)
    return complex(*content) if kind == "complex" else content
