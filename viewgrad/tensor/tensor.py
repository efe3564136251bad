"""Tensor: a typed, strided window on a storage, with its autograd metadata.

The file is long because the class is kept in one file, with all of Python's protocols and the properties. Methods that
compute are attached by the modules that define them.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator
from operator import index as as_int
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, SupportsComplex, SupportsFloat, TypeAlias, TypeVar, overload

import numpy as np

from ..errors import (
    AutogradError,
    DetachedConversionError,
    DifferentiabilityError,
    ForwardModeError,
    UnsupportedFunctionError,
    UnsupportedTypeError,
)
from ..type_aliases import Array
from .adapters import AdapterTable
from .conversions import conversion_refused, is_drawn, is_within_adopted_code, noted, warn_of_missing_grad
from .escapes import (
    has_history,
    has_tangent,
    is_differentiated,
    is_within_transform,
    record_escape,
    requires_gradient,
)
from .exported_arrays import export_array
from .modes import FORWARD, FUNCTIONAL, GRAD, INFERENCE, TRACE, current_mode
from .node import AccumulateGrad, Edge, Node, OptionalEdge, input_nr_of, new, next_sequence_nr, node_of
from .refcounts import ALONE_AS_STORAGE, getrefcount
from .repr import tensor_repr
from .saved import SavedTensor
from .scalar_types import NoLength, TensorType, number_class
from .storage import DetachPoint, Storage, storage_of
from .trace_hooks import OBSERVER
from .tracked_storage import share

if TYPE_CHECKING:
    from .methods import OperatorMethods
    from .view_meta import ViewMeta
else:
    OperatorMethods = object

ndarray: Final = np.ndarray
C = TypeVar("C", bound=Callable[..., Any])
# The operands that arithmetic with tensors accepts, for type checkers; this excludes strings and None.
Operand: TypeAlias = "Tensor | np.ndarray[Any, Any] | SupportsFloat | SupportsComplex | list[Any] | tuple[Any, ...]"

# The implementations of `np.sin(x)` and `np.concatenate([x, y])` for tensors; operators add entries.
UFUNCS: Final = AdapterTable()
# Functions that register operators on first use, so that importing the library does not import SciPy.
LATE: Final[list[Callable[[], None]]] = []
# The function that computes with NumPy what tensors do not support; operators add it.
ON_UNSUPPORTED: Final[list[Callable[[Any, Any, Any], Any]]] = []
FUNCTIONS: Final = AdapterTable()


class Tensor(OperatorMethods, metaclass=TensorType):
    """An array that records operations for differentiation, and supports in-place writes through views.

    Arguments:
        data: anything that `numpy.array` accepts, or a tensor without history; it is copied.
        dtype: a bool, integer, float or complex NumPy dtype; inferred from `data` if omitted.
        requires_grad: whether to compute gradients with respect to the tensor.

    Raises:
        TypeError: if the data is not numeric, or an array subclass such as a masked array.
        AutogradError: if the data is a tensor that requires grad or has a tangent.
        DifferentiabilityError: if `requires_grad` is set and the dtype is integer or bool.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        Tensor([2., 4., 6.])
    """

    # All of the library may read these slots, except that the `_edge` of a view must be read by `current_edge`, which
    # rebuilds it after writes to its base. `_array` is written only at creation, and by the few functions that exchange
    # a tensor's memory; tests/test_architecture.py lists them.
    __slots__ = ("__weakref__", "_array", "_edge", "_grad", "_saved", "_storage", "_tangent", "_view")

    _array: Array  # a NumPy scalar, such as np.float64, if the tensor is a scalar
    _edge: OptionalEdge  # to the node that created this value; an AccumulateGrad for a leaf that requires grad
    _grad: Tensor | None
    _saved: SavedTensor | None  # the saved value, as long as the memory is not shared
    _storage: Storage | None
    _tangent: Any  # the tangent of forward mode; see tensor/tangents.py
    _view: ViewMeta | None

    def __init__(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        given = data
        if isinstance(data, Tensor):
            data._refuse_detached_copy("Tensor()")
            data = data._array
        elif isinstance(data, ndarray):
            plain_array(data)
        array = np.array(data, dtype=dtype, order="C" if not isinstance(data, ndarray) else "K", subok=False)
        _check_dtype(array.dtype)
        self._array = array if array.dtype.isnative else array.astype(array.dtype.char)
        self._edge = None
        self._saved = None
        self._storage = None
        self._view = None
        if current_mode() > GRAD:
            notify_created(self, given)
        if requires_grad:
            self.requires_grad_(requires_grad)

    # -- properties ----------------------------------------------------------------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class reported to `isinstance` in addition to Tensor: for a 0-d tensor, NumPy's scalar class.

        As a result, `isinstance(x, float)` is true for an element of a float64 tensor, although `type(x)` is `Tensor`.
        """
        return type(self) if self._array.ndim else number_class(self._array.dtype.type, type(self))

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        dtype: np.dtype[Any] = self._array.dtype
        return dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return self._array.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """The distances between neighbours in memory, in bytes, as in NumPy."""
        return self._array.strides

    @overload
    def stride(self, dim: int) -> int: ...
    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    def stride(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Return the distances between neighbours in memory, in elements, for one dimension or all."""
        strides = tuple(stride // self._array.itemsize for stride in self._array.strides)
        return strides if dim is None else strides[dim]

    def is_contiguous(self) -> bool:
        """Return whether the elements are contiguous in memory, in row-major order."""
        return bool(self._array.flags.c_contiguous)

    def is_complex(self) -> bool:
        """Return whether the elements are complex."""
        return bool(self._array.dtype.kind == "c")

    def is_floating_point(self) -> bool:
        """Return whether the elements are real floating-point numbers."""
        return bool(self._array.dtype.kind == "f")

    # -- its place in the graph ----------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow to this tensor: it is a leaf that requires grad, or was computed from one."""
        return current_edge(self) is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        """True if no recorded operation created the tensor."""
        edge = current_edge(self)
        return edge is None or type(edge) is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The node that created the tensor, or None for a leaf.

        For a view, it is rebuilt after writes to its base.
        """
        edge = current_edge(self)
        return None if edge is None or type(edge) is AccumulateGrad else node_of(edge)

    @property
    def output_nr(self) -> int:
        """The number of the tensor among the outputs of `grad_fn`."""
        return input_nr_of(current_edge(self))

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by backward passes, or None.

        Reading it warns if no backward pass will fill it in: the tensor was computed, and `retain_grad()` was not
        called.
        """
        if current_mode() & TRACE:
            record_escape(self, "the gradient", None)
        try:
            return self._grad
        except AttributeError:
            if not self.is_leaf:
                hooks = node_of(current_edge(self)).hooks if self.retains_grad else None  # type: ignore[union-attr]
                if hooks is None or hooks.has_moved:
                    warn_of_missing_grad(hooks is not None)
            return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad must be a Tensor or None, not {type(value).__name__}")
            if value is self:
                raise AutogradError("a tensor cannot be its own grad; assign a clone() of it")
            if value.shape != self.shape or value.dtype != self.dtype:
                raise AutogradError(
                    f"assigned grad has shape {value.shape} and dtype {value.dtype}, "
                    f"but the tensor has shape {self.shape} and dtype {self.dtype}"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set whether to compute gradients with respect to this leaf; return the tensor itself.

        A scalar becomes a 0-d array, so that the leaf can be updated in place.
        """
        given: Any = requires_grad
        if not isinstance(given, bool | np.bool_):
            raise TypeError(f"requires_grad must be a bool, not {given!r}")
        edge = current_edge(self)
        if requires_grad:
            if edge is not None:
                return self
            if self._array.dtype.kind not in "fc":
                raise DifferentiabilityError(
                    f"only tensors of floating-point or complex dtype can require gradients, not {self._array.dtype}"
                )
            if self._storage is not None and self._storage.inference and not current_mode() & INFERENCE:
                raise DifferentiabilityError(
                    "a tensor created in inference mode cannot require gradients; clone() it outside of it first"
                )
            if is_scalar(self):
                number = self._array
                self._array = np.array(number)
                self._saved = None
                self._storage = None
                if current_mode() & TRACE:
                    OBSERVER.get().moved(self, from_array(number))
            self._edge = AccumulateGrad(self)
        elif edge is not None:
            if type(edge) is not AccumulateGrad:
                raise AutogradError(
                    "requires_grad can only be changed on leaf tensors; use detach() to stop the gradient here"
                )
            self._cut()
        return self

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    @property
    def _version(self) -> int:
        storage = self._storage
        return 0 if storage is None else storage.version

    def is_inference(self) -> bool:
        """Return whether the tensor was created in inference mode."""
        return self._storage is not None and self._storage.inference

    def detach(self) -> Tensor:
        """Return a tensor without history that shares this memory; a write to either is visible in both."""
        if is_scalar(self):
            return self._without_history()
        alone = self._storage is None
        storage = storage_of(self)
        storage.shared = True
        out = from_array(self._array)
        out._storage = storage
        mode = current_mode()
        if mode > GRAD:
            if mode & FUNCTIONAL:
                share(self, out, alone)
            if mode & TRACE:
                OBSERVER.get().detached(self, out)
        return out

    def detach_(self) -> Tensor:
        """Remove the history of this tensor in place, which makes it a leaf.

        Existing views keep their history. Elements that are written afterwards have the history of the write in all
        views.

        Raises:
            AutogradError: for a view, whose history is that of its base.
            ForwardModeError: for a tensor with a tangent, which may have views.
        """
        if self._view is not None:
            raise AutogradError("a view cannot be detached in place, since its base would keep its history; "
                                "use detach()")
        tangents = getattr(self, "_tangent", None)
        if tangents is not None:
            if self._storage is not None and any(level.open for level in tangents.records):
                raise ForwardModeError(
                    "detach_() of a tensor with a tangent would also remove the tangents of its views; use detach()"
                )
            tangents.records.clear()
        self._cut()
        return self

    def _cut(self) -> None:
        """End the history here. Views taken before keep theirs, which the storage records in `cuts`."""
        edge, storage = self._edge, self._storage
        if edge is not None:
            if current_mode() & TRACE:
                OBSERVER.get().history_removed(self)
            if storage is not None and getrefcount(storage) != ALONE_AS_STORAGE:
                storage.shared = True  # even writes of constants must be recorded from now on
                cuts = storage.cuts = storage.cuts or {}
                cuts[id(self)] = DetachPoint.after(cuts.get(id(self)), next_sequence_nr(), edge)
        self._edge = None

    @property
    def data(self) -> Tensor:
        """The values without history, as returned by `detach()`. Assigning to it writes the values in place.

        Inside a transform of `viewgrad.func` it is the tensor itself as long as the tensor has no history.

        Raises:
            DetachedConversionError: for a tensor with a history inside a transform of `viewgrad.func`, where an
                unmodified function refers to NumPy's buffer.
        """
        if is_within_transform() and not has_history(self):
            return self
        if is_within_transform():
            raise noted(DetachedConversionError(
                "data of a tensor with a history, inside a transform, would lose the history: use the tensor itself, "
                "or detach() if no gradient is needed"
            ))
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        target = self.detach()
        if isinstance(value, Tensor):
            if value._array is target._array:
                return  # the last step of `x.data -= ...`
            value = value.detach()
        if np.shape(value) != target.shape:
            raise ValueError(f"data of shape {target.shape} cannot be replaced by values of shape {np.shape(value)}")
        target.copy_(value)

    # -- to and from NumPy ---------------------------------------------------------------------------------------------

    def numpy(self) -> Array:
        """Return a read-only array that shares the memory; for a scalar, a 0-d array.

        Raises:
            AutogradError: if the tensor requires grad or has a tangent, which the array would lose.
        """
        if self.requires_grad:
            raise AutogradError("numpy() on a tensor that requires grad would lose its history; use detach().numpy()")
        if current_mode() & FORWARD and has_tangent(self):
            raise AutogradError("numpy() on a tensor that has a tangent would lose it; use detach().numpy()")
        if is_scalar(self):
            window = np.array(self._array)
        else:
            storage = storage_of(self)
            storage.shared = True
            is_kept = is_within_transform() or current_mode() & TRACE
            window = export_array(storage, self._array) if is_kept else self._array.view()
        window.flags.writeable = False
        if current_mode() & TRACE:
            record_escape(self, "numpy()", window)
        return window

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if dtype is not None and np.dtype(dtype) == object:
            return self._objects()
        if dtype is not None and np.dtype(dtype) == bool != self._array.dtype and copy is not False:
            return self.astype(bool).numpy().copy()  # as in bool(): the derivative is zero
        traced = requires_gradient(self) or (current_mode() & FORWARD and has_tangent(self))
        if traced and not is_drawn():
            has = "requires grad" if self.requires_grad else "has a tangent"
            raise noted(DetachedConversionError(conversion_refused(has)))
        window = (self.detach() if traced or self.requires_grad else self).numpy()
        if dtype is not None and np.dtype(dtype) != window.dtype:
            if copy is False:
                raise ValueError(f"a copy is needed to convert {window.dtype} to {np.dtype(dtype)}")
            return window.astype(dtype)
        return window.copy() if copy else window

    def _objects(self) -> Array:
        """Return an object array of the elements, each a scalar tensor with its history."""
        objects = np.empty(self.shape, object)
        for place in np.ndindex(self.shape):
            objects[place] = self[place] if place else self
        return objects

    def item(self, *args: Any) -> Any:
        """Return the only element, or the one at the given index, as a Python number; warn if its history is lost."""
        value = self._array.item(*args)
        if is_differentiated(self):
            return self._element(args)
        record_escape(self, "item()", value if not args else self._array)
        return value

    def tolist(self) -> Any:
        """Return the elements as nested Python lists; warn if their history is lost."""
        if is_differentiated(self):
            return [row.tolist() for row in self] if self._array.ndim else self._element(())
        record_escape(self, "tolist()", self._array)
        return self._array.tolist()

    def _element(self, index: tuple[Any, ...]) -> Tensor:
        """Return the element that `item(*index)` selects, as a scalar with its history."""
        if len(index) == 1 and isinstance(index[0], tuple):
            index = index[0]
        if len(index) == self._array.ndim:
            return self[index] if index else self._scalar()
        return self.reshape(-1)[index[0] if index else 0]

    def _scalar(self) -> Tensor:
        """Return the value of a 0-d tensor, as a scalar."""
        return self if is_scalar(self) else self.reshape(1)[0]

    def __array_ufunc__(self, ufunc: Any, kind: str, *inputs: Any, **kwargs: Any) -> Any:
        handler = UFUNCS.plain.get(ufunc) if kind == "__call__" and not kwargs else UFUNCS.get((ufunc, kind))
        if handler is None:
            for settle in LATE:
                settle()
            handler = UFUNCS.get((ufunc, kind))
        if kwargs and kwargs.get("out") is not None:
            out = kwargs["out"]
            kwargs["out"] = out[0] if len(out) == 1 else out
        try:
            if handler is None:
                name = ufunc.__name__ if kind == "__call__" else f"{ufunc.__name__}.{kind}"
                raise UnsupportedFunctionError(_unknown(name, ufunc))
            return handler(*inputs, **kwargs)
        except (UnsupportedTypeError, UnsupportedFunctionError):
            if any(has_own_rules(type(each), "__array_ufunc__") for each in inputs):
                return NotImplemented
            return ON_UNSUPPORTED[0](getattr(ufunc, kind), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handler = FUNCTIONS.get(function)
        try:
            if handler is None:
                raise UnsupportedFunctionError(_unknown(function.__name__))
            return handler(*args, **kwargs)
        except (UnsupportedTypeError, UnsupportedFunctionError):
            if any(map(has_own_rules, types)):
                return NotImplemented
            return ON_UNSUPPORTED[0](function, args, kwargs)

    # -- Python's protocols --------------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        def __len__(self) -> int: ...

    else:

        @property
        def __len__(self) -> Any:
            """Raise through a property, so that `hasattr(x, "__len__")` distinguishes numbers from arrays."""
            if not self._array.ndim:
                raise NoLength("len() of a 0-d tensor")
            return self._array.__len__

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(len(self._array)))

    def __bool__(self) -> bool:
        value = bool(self._array)
        if current_mode() & TRACE:
            record_escape(self, "bool()", value)
        return value

    def __float__(self) -> float:
        value = float(self._array)
        record_escape(self, "float()", value)
        return value

    def __int__(self) -> int:
        value = int(self._array)
        record_escape(self, "int()", value)
        return value

    def __complex__(self) -> complex:
        value = complex(self._array)
        record_escape(self, "complex()", value)
        return value

    def __index__(self) -> int:
        value = as_int(self._array)
        if current_mode() & TRACE:
            record_escape(self, "int()", value)
        return value

    def __contains__(self, value: Any) -> bool:
        if current_mode() & TRACE:
            for tensor in (self, value):
                if isinstance(tensor, Tensor):
                    record_escape(tensor, "in", tensor._array)
        return (value._array if isinstance(value, Tensor) else value) in self._array

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return self._rounded(math.floor)

    def __ceil__(self) -> int:
        return self._rounded(math.ceil)

    def _rounded(self, rounding: Callable[[Any], int]) -> int:
        """Return the integer nearest in the given direction; its derivative is zero, so no history is lost."""
        value = rounding(self._array)
        if current_mode() & TRACE:
            record_escape(self, "int()", value)
        return value

    def __format__(self, spec: str) -> str:
        if self._array.ndim:
            return format(str(self), spec)
        if self._array.dtype.kind in "iu":
            return format(int(self), spec)  # which a trace guards
        if current_mode() & TRACE:
            record_escape(self, "format()", spec)
        return format(self._array[()], spec)

    def __str__(self) -> str:
        if is_scalar(self):
            return format(self, "")  # as in NumPy, because programs make keys of it: parameters["W" + str(i)]
        return self._shown(str, sys._getframe(1))

    def __repr__(self) -> str:
        return self._shown(repr, sys._getframe(1))

    def _shown(self, show: Callable[[Any], str], caller: FrameType) -> str:
        """Return the text of the tensor: in adopted code, and for arrays that adopted code captures, NumPy's."""
        if self._is_captured():
            return show(self._array)
        if current_mode() & TRACE:
            record_escape(self, "repr()", None)
        return show(self._array) if is_within_adopted_code(caller) else tensor_repr(self)

    def _is_captured(self) -> bool:
        """Return whether the memory belongs to an array captured by an adopted function."""
        return self._storage is not None and self._storage.captured

    def __hash__(self) -> int:
        """Return a hash of the value for scalars, so that they equal numbers, and of the identity for arrays."""
        array = self._array
        if type(array) is not ndarray or (not array.ndim and array.dtype.kind in "biu"):
            record_escape(self, "hash()", array.item())
            return hash(array.item())
        return object.__hash__(self)

    def __copy__(self) -> Tensor:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf or (current_mode() & FORWARD and has_tangent(self)):  # it keeps its history
            memo[id(self)] = clone = copy_of(self)
            return clone
        if is_scalar(self):
            return self._without_history()
        out = Tensor(self._array, requires_grad=self.requires_grad)
        memo[id(self)] = out
        grad = self.grad
        if grad is not None:
            out._grad = copy.deepcopy(grad, memo)
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        self._refuse_non_leaf("pickled")
        if current_mode() & TRACE:
            record_escape(self, "pickle", self._array)
        return _unpickle, (self._array, self.requires_grad, self.grad)

    def _without_history(self) -> Tensor:
        """Return a scalar with the same value and no history."""
        out = from_array(self._array[()])
        out._storage = self._storage
        if current_mode() & TRACE:
            OBSERVER.get().created(out, self)
        return out

    def _refuse_detached_copy(self, what: str) -> None:
        if self.requires_grad or (current_mode() & FORWARD and has_tangent(self)):
            has = "requires grad" if self.requires_grad else "has a tangent"
            raise AutogradError(
                f"{what} of a tensor that {has} would make one without its history; use clone(), which keeps the "
                "history, or pass its detach()"
            )

    def _refuse_non_leaf(self, what: str) -> None:
        if not self.is_leaf:
            raise AutogradError(
                f"only leaf tensors can be {what}, and this one was created by {self.grad_fn!r}: use detach() first"
            )
        if current_mode() & FORWARD and has_tangent(self):
            raise AutogradError(
                f"a tensor with a tangent cannot be {what}, since the tangent would be lost: detach() it first"
            )

    if TYPE_CHECKING:  # the operators attach these; see operators/derivatives

        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, other: Operand) -> Tensor: ...
        def __radd__(self, other: Operand) -> Tensor: ...
        def __iadd__(self, other: Operand) -> Tensor: ...
        def __sub__(self, other: Operand) -> Tensor: ...
        def __rsub__(self, other: Operand) -> Tensor: ...
        def __isub__(self, other: Operand) -> Tensor: ...
        def __mul__(self, other: Operand) -> Tensor: ...
        def __rmul__(self, other: Operand) -> Tensor: ...
        def __imul__(self, other: Operand) -> Tensor: ...
        def __truediv__(self, other: Operand) -> Tensor: ...
        def __rtruediv__(self, other: Operand) -> Tensor: ...
        def __itruediv__(self, other: Operand) -> Tensor: ...
        def __pow__(self, other: Operand) -> Tensor: ...
        def __rpow__(self, other: Operand) -> Tensor: ...
        def __ipow__(self, other: Operand) -> Tensor: ...
        def __mod__(self, other: Operand) -> Tensor: ...
        def __rmod__(self, other: Operand) -> Tensor: ...
        def __imod__(self, other: Operand) -> Tensor: ...
        def __floordiv__(self, other: Operand) -> Tensor: ...
        def __rfloordiv__(self, other: Operand) -> Tensor: ...
        def __matmul__(self, other: Operand) -> Tensor: ...
        def __rmatmul__(self, other: Operand) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __and__(self, other: Operand) -> Tensor: ...
        def __or__(self, other: Operand) -> Tensor: ...
        def __xor__(self, other: Operand) -> Tensor: ...
        def __lt__(self, other: Operand) -> Tensor: ...
        def __le__(self, other: Operand) -> Tensor: ...
        def __gt__(self, other: Operand) -> Tensor: ...
        def __ge__(self, other: Operand) -> Tensor: ...


def current_edge(tensor: Tensor) -> OptionalEdge:
    """Return the edge to the node that created the tensor's current value, or None if it needs no gradient."""
    view = tensor._view
    return tensor._edge if view is None else view.edge_of(tensor)


def held_grad(tensor: Tensor) -> Tensor | None:
    """Return the `grad` of a tensor that a backward pass is about to add to."""
    return getattr(tensor, "_grad", None)


def root_of(tensor: Tensor) -> Tensor:
    """Return the base of a view, and any other tensor itself."""
    return tensor if tensor._view is None else tensor._view.base


def is_scalar(tensor: Tensor) -> bool:
    """Return whether a tensor is a scalar: an immutable 0-d value, like a NumPy scalar.

    Operators, reductions and integer indexing return scalars for 0-d results. See
    Note [Scalars are values] in docs/notes/scalars.md.
    """
    return type(tensor._array) is not ndarray


def as_scalar(tensor: Tensor) -> Tensor:
    """Convert a 0-d tensor, to which nothing else refers, to a scalar."""
    array = tensor._array
    tensor._array = array[()]
    tensor._storage = None
    tensor._saved = None
    if current_mode() & TRACE:
        OBSERVER.get().moved(tensor, from_array(array, tensor._edge))
    return tensor


def copy_of(tensor: Tensor) -> Tensor:
    """Return a clone that is a scalar if the tensor is one."""
    clone: Tensor = tensor.clone()
    return as_scalar(clone) if is_scalar(tensor) else clone


def as_buffered(tensor: Tensor) -> Tensor:
    """Return the tensor itself, or for a scalar a 0-d array that can be viewed and written to."""
    return tensor if type(tensor._array) is ndarray else tensor.clone()


def from_array(array: Array, edge: OptionalEdge = None) -> Tensor:
    """Return a tensor over `array` itself, to which nothing else may refer; a scalar for a NumPy scalar."""
    out: Tensor = new(Tensor)
    out._array = array
    out._edge = edge
    out._saved = None
    out._storage = None
    out._view = None
    return out


def notify_created(tensor: Tensor, data: Any = None, garbage: bool = False) -> None:
    """Apply the active interceptors to a tensor that was just created from numbers or arrays.

    Arguments:
        tensor: the new tensor.
        data: the source of its elements, if relevant.
        garbage: whether its elements are uninitialized.
    """
    mode = current_mode()
    if mode & INFERENCE:
        storage_of(tensor).inference = True
    if mode & TRACE:
        OBSERVER.get().created(tensor, data if isinstance(data, Tensor) else None, garbage)


def from_new_array(array: Array) -> Tensor:
    """Return a tensor without history over an array just created from numbers, and notify observers."""
    out = from_array(array)
    if current_mode() & TRACE:
        OBSERVER.get().created(out)
    return out


def tensor_like(saved: SavedTensor | np.float64, edge: OptionalEdge) -> Tensor:
    """Return a tensor with a saved value and its history, for a recorded backward pass."""
    if isinstance(saved, np.float64):
        return from_array(saved, edge)  # type: ignore[arg-type]
    array = saved.array
    if type(array) is not ndarray:
        out = from_array(array, edge)
        if type(saved) is not SavedTensor:
            saved.restore_onto(out)
        return out
    out = from_array(array, edge)
    storage = out._storage = Storage(array, foreign=True)
    if type(saved) is SavedTensor:  # values unpacked by user hooks are new arrays each time
        storage.whole = saved
    else:
        saved.restore_onto(out)
    return out


def method(function: C) -> C:
    """Decorate a function to add it as a method of `Tensor` under its own name."""
    setattr(Tensor, function.__name__, function)
    return function


def edge_to(node: Node, input_nr: int) -> Node | Edge:
    """Return the edge that leads to output `input_nr` of `node`."""
    return node if node.outputs == 1 else Edge(node, input_nr)


# -- other classes of arrays -------------------------------------------------------------------------------------------


def has_own_rules(kind: type, protocol: str = "__array_function__") -> bool:
    """Return whether a class, such as masked tensors, labelled arrays or quantities, overrides a NumPy protocol.

    Tensors return NotImplemented for operands of such a class, so its own method computes the result. Subclasses of
    ndarray are operands like arrays, except those that `adds_meaning` describes.
    """
    if kind is Tensor or kind is ndarray:
        return False
    return hasattr(kind, protocol) and not issubclass(kind, (Tensor, ndarray, np.generic))


def adds_meaning(array: Array) -> bool:
    """Return whether an array is of a subclass that changes the meaning of the elements: a mask, a unit, a product.

    A tensor of its elements would compute something else. Subclasses such as `numpy.memmap` only store them elsewhere.
    """
    kind = type(array)
    return kind is not ndarray and (
        kind.__array_ufunc__ is not ndarray.__array_ufunc__ or getattr(array, "__array_priority__", 0.0) > 0
    )


def plain_array(array: Array) -> Array:
    """Return an array as a plain ndarray.

    Raises:
        UnsupportedTypeError: for an array of a class that adds meaning to its elements.
    """
    kind = type(array)
    if kind is ndarray:
        return array
    if adds_meaning(array):
        lost, others = "the rules of that class", ""
        if isinstance(array, np.ma.MaskedArray):
            lost, others = "its mask", ", or of its filled(), or use the function of viewgrad.numpy.ma"
        raise UnsupportedTypeError(
            f"a tensor of a {kind.__module__}.{kind.__qualname__} would lose {lost}; pass np.asarray() of it{others}"
        )
    return array.view(ndarray)


def is_numeric_array(value: Any) -> bool:
    """Return whether a value is a plain NumPy array with a dtype and byte order that tensors support."""
    return type(value) is ndarray and value.dtype.kind in "biufc" and value.dtype.isnative


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biufc":
        raise UnsupportedTypeError(f"a tensor holds bools, integers, floats or complex numbers, not {dtype}")


def _unpickle(array: Array, requires_grad: bool, grad: Tensor | None) -> Tensor:
    out = Tensor(array, requires_grad=requires_grad) if type(array) is ndarray else from_array(array)
    if grad is not None:
        out._grad = grad
    return out


def _unknown(name: str, ufunc: Any = None) -> str:
    special = sys.modules.get("scipy.special")
    if ufunc is not None and special is not None and getattr(special, name, None) is ufunc:
        return (
            f"scipy.special.{name} would lose the history of a tensor; use viewgrad.scipy.special.{name}, or pass "
            "detach().numpy() if no gradient is needed"
        )
    return (
        f"viewgrad has no operator for numpy.{name}, and will not lose the history of a tensor by treating it as a "
        "plain array; compose it from operators that exist, define one with viewgrad.autograd.define_op, or pass "
        "detach().numpy() if no gradient is needed"
    )
