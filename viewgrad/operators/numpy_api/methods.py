"""The methods and attributes of NumPy arrays on tensors, with NumPy's argument order, `out=` and `order=`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ...errors import AutogradError, UnsupportedFunctionError
from ...tensor.creation import as_assigned, as_operand
from ...tensor.dlpack import allow_external_writes
from ...tensor.escapes import has_tangent, record_escape, requires_gradient
from ...tensor.exported_arrays import export_array
from ...tensor.modes import FORWARD, FUNCTIONAL, GRAD, TRACE, current_mode
from ...tensor.node import AccumulateGrad, node_of
from ...tensor.refcounts import ALONE_IN_SLOT, getrefcount
from ...tensor.storage import scalar_write, storage_of
from ...tensor.tangents import take_tangents
from ...tensor.tensor import FUNCTIONS, Tensor, as_buffered, current_edge, has_own_rules, is_scalar
from ...tensor.trace_hooks import OBSERVER, array_of, observed
from ...views import view_ops as views
from .. import OPERATORS
from ..composites import COMPOSITES
from ..derivatives.helpers import memory_order, plain
from .conversion import STRINGS, detached_values, in_layout, plain_values
from .dispatch import check_cast, of_dtype, write_out
from .ufuncs import argsort, sort

# -- memory layout -----------------------------------------------------------------------------------------------------


def _reversed(self: Tensor) -> Any:
    return self.transpose() if self.ndim > 1 else self


def _in_columns(self: Tensor, order: Any) -> bool:
    """Return whether elements are traversed in column-major order."""
    if order in (None, "C", "c"):
        return False
    if order not in ("F", "A", "K", "f", "a", "k"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order in "Ff" or bool(self._array.flags.fnc)


def _in_order(self: Tensor, order: Any) -> Any:
    """Return the tensor with permuted dimensions, such that its row-major order is `order`."""
    if _in_columns(self, order):
        return _reversed(self)
    return self.transpose(memory_order(self._array)) if order in ("K", "k") and self.ndim > 1 else self


def _reshape(self: Tensor, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
    """Return the elements in another shape, as a view whenever NumPy's result is one."""
    if order == "C" and copy is None:
        return views.reshape(self, *shape)
    sizes = views.new_sizes(self, shape)
    if _in_columns(self, order):
        reshaped = _reversed(views.reshape(_reversed(self), tuple(reversed(sizes))))
    else:
        reshaped = views.reshape(self, sizes)
    if copy is False and not np.may_share_memory(reshaped._array, self._array):
        raise ValueError("a view of this shape is impossible, and copy=False forbids a copy")
    return reshaped.clone() if copy else reshaped


def _ravel(self: Tensor, order: Any = "C") -> Any:
    """Return the elements as a one-dimensional tensor, as a view whenever NumPy's result is one."""
    return ravel(_in_order(self, order))


def _flatten(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Flatten the tensor, or its dimensions from `start_dim` to `end_dim`."""
    order = kwargs.pop("order", None) if not (args and isinstance(args[0], str)) else args[0]
    if order is None:
        return flatten(self, *args, **kwargs)
    return flatten(_in_order(self, order))


def _copy(self: Any, order: Any = "C") -> Any:
    """Return a copy with the same history, by default in row-major order."""
    _in_columns(self, order)  # raises for unknown orders
    made = in_layout(self, order or "C")
    return copied(self) if made is self else made


def _conj(self: Any) -> Any:
    """Return the complex conjugate; a real tensor is returned unchanged, as in NumPy."""
    return conj(self) if self.dtype.kind == "c" else self


def _conjugate(self: Any) -> Any:
    """Return the complex conjugate; a real tensor is returned unchanged, as in NumPy."""
    return _conj(self)


conj, contiguous_copy = OPERATORS["conj"].function, OPERATORS["_contiguous_copy"].function
ravel, flatten, copied = Tensor.ravel, Tensor.flatten, Tensor.copy
astyped: Any = Tensor.astype
viewed = Tensor.view


def _astype(
    self: Any, dtype: Any, order: Any = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Return the values in another dtype."""
    if isinstance(order, bool):
        order, copy = "K", order
    _in_columns(self, order)  # raises for unknown orders
    if casting != "unsafe":
        check_cast(self.dtype, dtype, casting, "astype")
    wanted = np.dtype(dtype)
    if wanted.kind in STRINGS:
        return plain_values(self).astype(wanted)
    if wanted.kind not in "biufcO":
        return detached_values(self, f"astype() to the dtype {wanted}").astype(wanted)
    return in_layout(astyped(self, dtype, copy), order)


def _view(self: Tensor, *shape: Any, dtype: Any = None, type: Any = None) -> Any:
    """Return a view in another shape, or of the same memory with another dtype.

    Between a real dtype and the complex dtype of twice its size, the view is differentiable. Otherwise it is read-only.
    """
    kind = next((each for each in (type, *shape, dtype) if _is_array_class(each)), None)
    if kind is not None:
        wanted = [each for each in (*shape, dtype) if each is not None and each is not kind]
        viewed_as = _viewed_as(self, kind)
        return viewed_as.view(*wanted) if wanted else viewed_as
    if not shape and dtype is None:
        return self if is_scalar(self) else self[...]
    first = dtype if dtype is not None else shape[0]
    if len(shape) > 1 or isinstance(first, (int, np.integer, tuple, list)):
        return viewed(self, *shape)
    if first is Tensor:
        return self[...]
    wanted = np.dtype(first)
    if wanted == self.dtype:
        return self if is_scalar(self) else self[...]
    if self.ndim and wanted.kind == "c" and self.dtype.kind == "f" and wanted.itemsize == 2 * self.itemsize:
        return views.view_as_complex(self.reshape((*self.shape[:-1], self.shape[-1] // 2, 2)))
    if self.ndim and wanted.kind == "f" and self.dtype.kind == "c" and 2 * wanted.itemsize == self.itemsize:
        return views.view_as_real(self).reshape((*self.shape[:-1], 2 * self.shape[-1]))
    if _carries_history(self):
        raise TypeError(f"a tensor of {self.dtype} that has a history cannot be viewed as {wanted}")
    if is_scalar(self) or wanted.kind not in "biufc" or not wanted.isnative or current_mode() & TRACE:
        bits = self.numpy().view(wanted)
        return as_operand(bits) if wanted.kind in "biufc" and wanted.isnative else bits
    bits = self.detach()
    bits._array = self._array.view(wanted)
    bits._array.flags.writeable = False  # a write through it could not be added to a history
    return bits


def _is_array_class(value: Any) -> bool:
    return isinstance(value, type) and (
        value.__name__ == "ndarray" or issubclass(value, np.ndarray) or hasattr(value, "_viewing")
    )


def _viewed_as(self: Tensor, kind: Any) -> Any:
    """Return a tensor as an array of a given class, which is NumPy's `ndarray` or derived from it."""
    if kind.__name__ == "ndarray":
        return self if is_scalar(self) else self[...]
    if hasattr(kind, "_viewing"):  # a class of `viewgrad.numpy`
        return kind._viewing(self)
    if _carries_history(self):
        raise TypeError(
            f"{kind.__name__} holds plain numbers, and a tensor would lose its history; use the tensor itself, or a "
            "class that stores it in an attribute"
        )
    return writable_array(self, f"view() as {kind.__name__}").view(kind)


def writable_array(value: Any, what: str) -> Any:
    """Return an array that shares the memory of a tensor without history, for a class derived from NumPy's.

    Arguments:
        value: the tensor; the result for a scalar is a copy, and other objects are returned unchanged.
        what: the use, for a trace, which refuses it.
    """
    if not isinstance(value, Tensor):
        return value
    if is_scalar(value):
        return np.array(value._array)
    if current_mode() & TRACE:
        OBSERVER.get().refuse(what)
    allow_external_writes(value)
    return export_array(storage_of(value), value._array, is_writable=value._array.flags.writeable)


# -- in place ----------------------------------------------------------------------------------------------------------


def _sort(
    self: Tensor, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
) -> None:
    """Sort the elements along `axis`, in place."""
    self.copy_(sort(self, axis, descending))


def _partition(self: Tensor, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
    """Partition the elements around the `kth` smallest, in place."""
    self.copy_(COMPOSITES["partition"](self, kth, axis))


def _fill(self: Tensor, value: Any) -> None:
    """Write `value` to every element, in place."""
    if np.ndim(value):
        raise ValueError(f"fill() requires one number, not an array of shape {np.shape(value)}")
    self.fill_(value)


def _replace_in_place(self: Tensor, make: Callable[[Any], Any], what: str, way_out: str) -> None:
    """Change the shape of a tensor in place, if no view or other reference uses its memory."""
    alone = self._storage is None or (getrefcount(self._storage) == ALONE_IN_SLOT and not self._storage.shared)
    mode = current_mode()
    is_leaf = type(self._edge) is AccumulateGrad
    if self._view is not None or not alone or is_leaf or mode & ~(TRACE | FORWARD | FUNCTIONAL) > GRAD:
        raise AutogradError(
            f"{what} in place requires a tensor that is neither a leaf nor a view, and has no views; {way_out}"
        )
    observer = observed()
    if observer is not None:
        observer.reshaped(self)
    made = make(self.clone()).clone()
    self._array, self._edge, self._storage = np.asarray(made._array), made._edge, None
    self._saved = None  # saved values keep the old memory
    if mode & FORWARD:
        take_tangents(self, made)


def _resize(self: Tensor, *shape: Any, refcheck: bool = True) -> None:
    """Change the shape in place, padding with zeros, if no other tensor uses the memory."""
    sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    count = math.prod(sizes)

    def resized(tensor: Any) -> Any:
        flat = tensor.reshape(-1)[:count]
        missing = count - flat.size
        return (np.concatenate([flat, np.zeros(missing, tensor.dtype)]) if missing else flat).reshape(sizes)

    _replace_in_place(self, resized, "resize()", "use np.resize(x, shape), or reshape()")


def _set_shape(self: Tensor, shape: Any) -> None:
    if not self._array.flags.contiguous:
        raise AttributeError("incompatible shape for in-place modification; use reshape(), which may copy")
    # without memory that is visible elsewhere
    if not self.size and not _carries_history(self) and current_mode() <= GRAD:
        self._array, self._storage, self._view = self._array.reshape(shape), None, None
    elif self._array.reshape(shape).shape != self.shape and not _reshape_view(self, shape):
        _replace_in_place(self, lambda tensor: tensor.reshape(shape), "a new shape", "write x = x.reshape(shape)")


def _reshape_view(self: Tensor, shape: Any) -> bool:
    """Make a view another view of the same memory, with another shape; return whether that is possible."""
    edge = current_edge(self)
    if self._view is None or current_mode() > GRAD or (edge is not None and node_of(edge).hooks is not None):
        return False
    made = self.reshape(shape)
    if made._view is None or made._view.base is not self._view.base:
        return False
    self._array, self._view, self._edge = made._array, made._view, made._edge
    self._storage, self._saved = made._storage, None
    return True


# -- with out= ---------------------------------------------------------------------------------------------------------


def _deferring(dot: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method `dot`, which defers to operands of classes with rules of their own, such as masked tensors.

    A masked array without masked elements has no mask to lose.
    """

    @functools.wraps(dot)
    def call(self: Tensor, other: Any) -> Any:
        if isinstance(other, np.ma.MaskedArray) and not np.ma.is_masked(other):
            return dot(self, other.data) if _carries_history(self) else np.dot(plain_values(self), other)
        return np.dot(self, other) if has_own_rules(type(other)) else dot(self, other)

    return call


def _with_out(function: Callable[..., Any], name: str, place: int) -> Callable[..., Any]:
    """Wrap a method to accept `out`, by keyword or by position."""

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if len(args) > place and (args[place] is None or isinstance(args[place], Tensor)):
            args, out = args[:place] + args[place + 1 :], args[place]
        result = function(self, *args, **kwargs)
        return result if out is None else write_out(result, out, f"Tensor.{name}")

    return method


def _take(self: Tensor, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Return the elements, or slices along `axis`, at the given indices."""
    if isinstance(out, str):
        out, mode = None, out
    result = OPERATORS["take"].function(self, indices, axis, mode)
    return result if out is None else write_out(result, out, "Tensor.take")


def _trace(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """Return the sum along a diagonal."""
    summed = self if dtype is None else self.astype(dtype)
    result = of_dtype(OPERATORS["trace"].function(summed, offset, axis1, axis2), dtype)
    return result if out is None else write_out(result, out, "Tensor.trace")


def _compress(self: Tensor, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the slices along `axis` where the one-dimensional condition is true."""
    result = COMPOSITES["compress"](condition, self, axis)
    return result if out is None else write_out(result, out, "Tensor.compress")


def _argsort(
    self: Tensor, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
) -> Any:
    """Return the indices that sort the elements."""
    return argsort(self, axis, descending)


def _searchsorted(self: Tensor, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return the insertion points of values in a sorted vector."""
    self = as_operand(self)
    if sorter is not None:
        np.searchsorted(plain(self), plain(self)[:0], sorter=plain(sorter))  # raises for an invalid sorter
        self = self[sorter]
    return OPERATORS["searchsorted"].function(self, v, side)


def _round(self: Tensor, ndigits: int | None = None) -> Any:
    return int(np.round(plain(self))) if ndigits is None else self.round(ndigits)


# -- elements in row-major order ---------------------------------------------------------------------------------------


class FlatElements:
    """The elements of a tensor in row-major order, which can be read and written with one index; NumPy's `flat`."""

    def __init__(self, base: Tensor) -> None:
        self.base: Final = base if base.ndim else base.reshape(1)
        self._is_scalar = is_scalar(base)
        self._next = 0

    def __len__(self) -> int:
        return self.base.size

    def __getitem__(self, key: Any) -> Any:
        return self.base.reshape(-1)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._is_scalar:
            raise scalar_write("an assignment to flat")
        if isinstance(key, bool | np.bool_):
            key = slice(int(key))  # the first element, or none
        shape = self.base.shape
        places = np.arange(self.base.size)[plain(key) if isinstance(key, Tensor) else key]
        values = as_assigned(value, self.base.dtype).reshape(-1)
        if places.ndim and values.size not in (1, places.size):
            values = values.take(np.arange(places.size) % values.size)
        self.base[np.unravel_index(places, shape)] = (
            values.reshape(places.shape) if values.size == places.size else values
        )

    def __iter__(self) -> Iterator[Any]:
        return (self.base[place] for place in np.ndindex(self.base.shape))

    def __next__(self) -> Any:
        if self._next == self.base.size:
            raise StopIteration
        self._next += 1
        return self[self._next - 1]

    def copy(self) -> Any:
        """Return the elements as a one-dimensional tensor."""
        return self.base.reshape(-1).clone()

    def __eq__(self, other: Any) -> Any:
        return self.copy() == _as_vector(other)

    def __ne__(self, other: Any) -> Any:
        return self.copy() != _as_vector(other)

    def __lt__(self, other: Any) -> Any:
        return self.copy() < _as_vector(other)

    def __le__(self, other: Any) -> Any:
        return self.copy() <= _as_vector(other)

    def __gt__(self, other: Any) -> Any:
        return self.copy() > _as_vector(other)

    def __ge__(self, other: Any) -> Any:
        return self.copy() >= _as_vector(other)

    __hash__ = None  # type: ignore[assignment]  # as NumPy's

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.base.reshape(-1).__array__(dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_as_vector, args), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_as_vector, args), **kwargs)


def _as_vector(value: Any) -> Any:
    """Return the elements of a flat iterator as a tensor, also within a list of arrays."""
    if isinstance(value, FlatElements):
        return value.base.reshape(-1)
    return type(value)(map(_as_vector, value)) if type(value) in (list, tuple) else value


def _set_flat(self: Tensor, value: Any) -> None:
    FlatElements(self)[:] = value


# -- export of memory --------------------------------------------------------------------------------------------------


def _carries_history(self: Tensor) -> bool:
    return requires_gradient(self) or has_tangent(self)


def _bytes(self: Tensor, order: Any = "C") -> bytes:
    """Return the elements as bytes; warn if a history is lost."""
    record_escape(self, "tobytes()", self._array)
    return np.asarray(self._array).tobytes(order)


def _exporting(name: str, result: str) -> Callable[..., Any]:
    """Wrap a method of NumPy arrays that exports the values, for tensors without history."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _carries_history(self):
            raise UnsupportedFunctionError(
                f"{name}() returns the values of a tensor without their history; call it on detach() of the tensor"
            )
        array = np.asarray(array_of(self, f"{name}()")).view()
        array.flags.writeable = False
        result = getattr(array, name)(*args, **kwargs)
        return as_operand(np.array(result)) if isinstance(result, np.ndarray) else result

    method.__name__ = name
    method.__doc__ = f"Call `numpy.ndarray.{name}` on the values of a tensor without history."
    method.__annotations__["return"] = result
    return method


def _saving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a NumPy function that writes arrays to a file, for tensors without history."""

    def values_of(given: Any) -> Any:
        if not isinstance(given, Tensor):
            return given
        if _carries_history(given):
            raise UnsupportedFunctionError(
                f"np.{function.__name__} would lose the history of a tensor; save its detach(), or use viewgrad.save, "
                "which also stores requires_grad of leaves"
            )
        return np.asarray(array_of(given, "np.save()"))

    def save(*args: Any, **options: Any) -> Any:
        return function(*map(values_of, args), **{name: values_of(given) for name, given in options.items()})

    return save


for _function in (np.save, np.savetxt, np.savez, np.savez_compressed):
    FUNCTIONS[_function] = _saving(_function)


def _no_flags(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """Raise an error, since the memory is not exposed."""
    raise TypeError(
        "the memory of a tensor cannot be accessed directly; use detach().numpy().copy()"
    )


def _ctypes(self: Tensor) -> Any:
    """Return the memory for C functions, if it belongs to an array captured by an adopted function."""
    return self._array.ctypes if self._is_captured() else _no_flags(self)


def _setflags(self: Tensor, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Make a tensor read-only or writable; without effect for views, since writes to these are writes to their base.

    Arguments:
        write: whether elements may be written to; None leaves it as it is.
        align: ignored, since the memory of tensors is aligned.
        uic: ignored.
    """
    if write is not None and type(self._array) is np.ndarray and self._view is None:
        self._array.setflags(write=bool(write))


def _flags(self: Tensor) -> Any:
    """Return information about the memory layout of the elements."""
    return np.asarray(self._array).flags


def _base_of(self: Tensor) -> Tensor | None:
    """Return the tensor whose memory a view shares, or None."""
    return self._base


def _install() -> None:
    methods: dict[str, Callable[..., Any]] = {
        "reshape": _reshape,
        "ravel": _ravel,
        "flatten": _flatten,
        "copy": _copy,
        "astype": _astype,
        "view": _view,
        "sort": _sort,
        "partition": _partition,
        "fill": _fill,
        "resize": _resize,
        "take": _take,
        "trace": _trace,
        "compress": _compress,
        "argsort": _argsort,
        "searchsorted": _searchsorted,
        "__round__": _round,
        "conj": _conj,
        "conjugate": _conjugate,
        "tobytes": _bytes,
        "__bytes__": _bytes,
        "setflags": _setflags,
        "setfield": _no_flags,
    }
    for name, place in (("clip", 2), ("dot", 1), ("round", 1), ("ptp", 1)):
        method = getattr(Tensor, name)
        methods[name] = _with_out(_deferring(method) if name == "dot" else method, name, place)
    results = {"byteswap": "Tensor", "dump": "None", "dumps": "bytes", "getfield": "Tensor"}
    for name, result in (results | {"tofile": "None"}).items():
        methods[name] = _exporting(name, result)
    for name, method in methods.items():
        if not name.startswith("__"):  # NumPy's name, which libraries such as pint look up in their tables
            method.__name__, method.__qualname__ = name, f"Tensor.{name}"
        setattr(Tensor, name, method)
    properties: dict[str, property] = {
        "flat": property(FlatElements, _set_flat, doc="The elements in row-major order, for reading and writing."),
        "flags": property(_flags),
        "base": property(_base_of),
        "shape": property(Tensor.__dict__["shape"].fget, _set_shape, doc="The lengths of the dimensions."),
        "ctypes": property(_ctypes),
    }
    for name, made in properties.items():
        setattr(Tensor, name, made)
    FUNCTIONS[np.reshape] = lambda a, shape, order="C", *, copy=None: _reshape(a, shape, order=order, copy=copy)
    FUNCTIONS[np.ravel], FUNCTIONS[np.searchsorted] = _ravel, _searchsorted
    FUNCTIONS[np.copy] = lambda a, order="K", subok=False: as_buffered(_copy(a, order))


_install()
