"""Sparse arrays and matrices whose stored values are tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy.sparse  # type: ignore[import-untyped]

from ...errors import UnsupportedFunctionError
from ...numpy.matrices import matrix
from ...numpy.operator_methods import COMPARISONS
from ...operators.numpy_api.conversion import as_argument, carries_history, plain_values
from ...operators.numpy_api.universal import WithUfuncs
from ...tensor.creation import as_operand, holds_tensor
from ..wrap import numbers
from .extremes import SparseVector, extremes
from .pattern import Pattern
from .products import product
from .writes import cropped, with_diagonal, with_elements

NAMES = ("arcsin", "arcsinh", "arctan", "arctanh", "expm1", "log1p", "sin", "sinh", "sqrt", "tan", "tanh", "sign",
         "ceil", "floor", "rint", "trunc", "deg2rad", "rad2deg")  # fmt: skip
NUMBERS = (int, float, complex)
# Attributes that do not depend differentiably on the stored values.
CONSTANT = frozenset({"count_nonzero", "nonzero", "getnnz", "get_shape", "getformat", "has_canonical_format",
                      "has_sorted_indices", "argmax", "argmin"})  # fmt: skip


class SparseArray(WithUfuncs):
    """A two-dimensional sparse array whose stored values are a tensor.

    Gradients flow to the stored values only. The class has the constructor, attributes and methods of SciPy's array of
    the same name. Methods without a derivative are SciPy's own if the stored values have no history, and raise an error
    otherwise.

    Arguments:
        arg1: `(data, indices, indptr)` or `(data, (row, col))`, another sparse array, a dense array or tensor, or a
            shape.
        shape: the shape of the array; by default, the smallest that the indices allow.
        dtype: the dtype of the stored values.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy import sparse
        >>> values = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> a = sparse.coo_array((values, ([0, 0, 2], [0, 2, 1])), shape=(3, 3))
        >>> (a @ vg.Tensor([1.0, 10.0, 100.0])).sum().backward()
        >>> values.grad
        Tensor([  1., 100.,  10.])
    """

    __array_priority__ = 100.0
    ndim = 2
    format: ClassVar[str] = "csr"
    is_matrix: ClassVar[bool] = False

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        pattern, data = _parts_of(self.format, arg1, shape, self.is_matrix)
        if dtype is not None and data.dtype != dtype:
            data = data.astype(dtype)
        self.pattern, self.data = _ordered(self.format, pattern, data)

    @classmethod
    def _of(cls, pattern: Pattern, data: Any) -> Any:
        made = cls.__new__(cls)
        made.pattern, made.data = _ordered(cls.format, pattern, data)
        return made

    # -- properties ----------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.pattern.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the stored values."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of stored values."""
        return self.pattern.count

    @property
    def size(self) -> int:
        """The number of stored values."""
        return self.pattern.count

    @property
    def requires_grad(self) -> bool:
        """Return whether the stored values have a history."""
        return bool(self.data.requires_grad)

    @property
    def row(self) -> Any:
        """The row of each stored value."""
        return self.pattern.rows

    @property
    def col(self) -> Any:
        """The column of each stored value."""
        return self.pattern.cols

    @property
    def coords(self) -> tuple[Any, Any]:
        """The rows and the columns of the stored values."""
        return self.pattern.rows, self.pattern.cols

    @property
    def indices(self) -> Any:
        """The columns of the stored values of a CSR array, or the rows of a CSC array."""
        self._require_compressed("indices")
        return self.pattern.cols if self.format == "csr" else self.pattern.rows

    @property
    def indptr(self) -> Any:
        """The start of each row of a CSR array, or column of a CSC array, among the stored values."""
        self._require_compressed("indptr")
        return (self.pattern if self.format == "csr" else self.pattern.transposed).compressed()[2]

    def detach(self) -> Any:
        """Return the array without history."""
        return self._of(self.pattern, self.data.detach())

    def to_scipy(self) -> Any:
        """Return SciPy's array of the same format, with a copy of the stored values and without history."""
        kind = getattr(scipy.sparse, type(self).__name__)
        return kind(self.pattern.matrix(plain_values(self.data)))

    def __repr__(self) -> str:
        history = ", requires_grad=True" if self.requires_grad else ""
        return f"<{type(self).__name__} of shape {self.shape}, {self.nnz} stored values of {self.dtype}{history}>"

    def __len__(self) -> int:
        raise TypeError("the length of a sparse array is ambiguous; use nnz or shape[0]")

    def __bool__(self) -> bool:
        raise ValueError("the truth value of a sparse array is ambiguous")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("pattern", "data"):
            raise AttributeError(name)
        has_history = carries_history(self.data) and name not in CONSTANT
        value = getattr(self._pattern_only() if has_history else self.to_scipy(), name)
        if has_history:
            raise UnsupportedFunctionError(
                f"scipy.sparse: {name} of a sparse array with a history has no derivative here; use detach() of it, or "
                "compute with its `data`"
            )
        return value

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _sparse_product(self, as_sparse(other))
        dense = _dense_operand(other)
        if dense.ndim not in (1, 2) or dense.shape[0] != self.shape[1]:
            raise ValueError(f"matmul: shapes {self.shape} and {dense.shape} do not match")
        found = product(self.pattern, *_promoted(self.data, dense))
        return self._dense(found) if isinstance(other, matrix) else found

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return as_sparse(other) @ self
        dense = _dense_operand(other)
        if dense.ndim not in (1, 2) or dense.shape[-1] != self.shape[0]:
            raise ValueError(f"matmul: shapes {dense.shape} and {self.shape} do not match")
        found = product(self.pattern.transposed, *_promoted(self.data, dense.T)).T
        return self._dense(found) if isinstance(other, matrix) else found

    def dot(self, other: Any) -> Any:
        """Return the product with a scalar, an array or a sparse array."""
        return self.multiply(other) if np.ndim(plain_values(other) if holds_tensor(other) else other) == 0 and (
            not is_sparse(other)
        ) else self @ other  # fmt: skip

    def multiply(self, other: Any) -> Any:
        """Return the elementwise product with a scalar, a dense array or a sparse array."""
        if is_sparse(other):
            return self._intersected(as_sparse(other))
        if type(other) in NUMBERS:  # Python numbers do not change the dtype, unlike 0-d arrays
            return self._of(self.pattern, self.data * other)
        dense = _dense_operand(other)
        if not dense.ndim:
            return self._of(self.pattern, self.data * dense)
        shape = np.broadcast_shapes(dense.shape, self.shape)
        if shape != self.shape:
            raise ValueError(f"multiply: shapes {self.shape} and {dense.shape} do not match")
        picked = np.broadcast_to(dense, self.shape)[self.pattern.rows, self.pattern.cols]
        return self._of(self.pattern, self.data * picked)

    def __mul__(self, other: Any) -> Any:
        is_scalar = not is_sparse(other) and np.ndim(other) == 0
        return self @ other if self.is_matrix and not is_scalar else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        is_scalar = not is_sparse(other) and np.ndim(other) == 0
        return self.__rmatmul__(other) if self.is_matrix and not is_scalar else self.multiply(other)

    def __truediv__(self, other: Any) -> Any:
        if is_sparse(other):
            with np.errstate(divide="ignore", invalid="ignore"):
                return self._dense(self.toarray() / as_sparse(other).toarray())
        if type(other) in NUMBERS:  # SciPy divides in double precision
            return self._of(self.pattern, (self.data if self.dtype.kind == "c" else self.data.astype(float)) / other)
        dense = _dense_operand(other)
        return self._of(self.pattern, self.data / dense) if not dense.ndim else self.multiply(1.0 / dense)

    def __neg__(self) -> Any:
        return self._of(self.pattern, -self.data)

    def __abs__(self) -> Any:
        return self._of(*_summed(self)).map(np.abs)

    def __pow__(self, power: Any) -> Any:
        if not self.is_matrix:
            return self.power(power)
        if self.shape[0] != self.shape[1]:
            raise TypeError("matrix is not square")
        power = operator.index(power)
        if power < 0:
            raise ValueError("exponent must be >= 0")
        if power == 0:
            return self._kind("csr")(scipy.sparse.eye_array(self.shape[0], dtype=self.dtype)).asformat(self.format)
        if power == 1:
            return self
        root = self ** (power // 2)
        return self * (root * root) if power % 2 else root * root

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Raise every stored value to a power."""
        return self._of(*_summed(self)).map(lambda data: (data if dtype is None else data.astype(dtype)) ** n)

    def __round__(self, ndigits: int = 0) -> Any:
        return self._of(*_summed(self)).map(lambda data: np.round(data, ndigits))

    def maximum(self, other: Any) -> Any:
        """Return the elementwise maximum with a number, a dense array or a sparse array."""
        return self._chosen(np.maximum, other)

    def minimum(self, other: Any) -> Any:
        """Return the elementwise minimum with a number, a dense array or a sparse array."""
        return self._chosen(np.minimum, other)

    def _chosen(self, choose: Callable[[Any, Any], Any], other: Any) -> Any:
        compressed = self.asformat("csc" if self.format == "csc" else "csr")
        if is_sparse(other):
            other = as_sparse(other)
            mine, others = compressed + other.map(np.zeros_like), compressed.map(np.zeros_like) + other
            return mine.map(lambda data: choose(data, others.data))  # both have the union of the two patterns
        if np.ndim(other):
            return self._dense(choose(self.toarray(), _dense_operand(other)))
        if choose(0, plain_values(other)) == 0:
            return compressed._of(*_summed(compressed)).map(lambda data: choose(data, other))
        return type(self)(choose(self.toarray(), other))

    def _dense(self, elements: Any) -> Any:
        """Return dense elements in the class of SciPy's results: NumPy matrices for sparse matrices."""
        return matrix(elements, copy=False) if self.is_matrix else elements

    def map(self, function: Callable[[Any], Any]) -> Any:
        """Apply a function to the stored values; the function should map 0 to 0."""
        return self._of(self.pattern, function(self.data))

    def __add__(self, other: Any) -> Any:
        if is_sparse(other):
            return combined([self, as_sparse(other)], lambda mine, others: mine + others, type(self))
        dense = _dense_operand(other)
        if not dense.ndim:
            if not carries_history(dense) and not dense.item():
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
        return self._dense(self.toarray() + dense)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + (-(as_sparse(other) if is_sparse(other) else _dense_operand(other)))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    __hash__ = None  # type: ignore[assignment]  # as SciPy's

    def conj(self, copy: bool = True) -> Any:
        """Return the complex conjugate."""
        return self._of(self.pattern, self.data.conj())

    conjugate = conj

    def getH(self) -> Any:
        """Return the conjugate transpose."""
        return self.conj().T

    @property
    def real(self) -> Any:
        """The real part."""
        return self._of(self.pattern, self.data.real)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self._of(self.pattern, self.data.imag)

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """Return the array with stored values converted to another dtype."""
        return self._of(self.pattern, self.data.astype(dtype))

    def copy(self) -> Any:
        """Return a copy with its history."""
        return self._of(self.pattern, self.data.clone())

    # -- reductions ----------------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the sum of all elements, or along an axis."""
        axis = reduced_axis(axis)
        kind = self.dtype.kind  # small integers are summed in wider ones, as in NumPy
        data = self.data if kind in "fc" else self.data.astype(np.zeros(0, self.dtype).sum().dtype)
        if axis is None:
            total = data.sum(dtype=dtype)
        else:
            pattern = self.pattern if axis == 1 else self.pattern.transposed
            total = product(pattern, data, as_operand(np.ones(pattern.shape[1], data.dtype)))
            total = total if dtype is None else total.astype(dtype)
            total = total if not self.is_matrix else matrix(total[:, None] if axis == 1 else total[None, :], copy=False)
        if out is None:
            return total
        if axis is not None and out.shape != total.shape:
            raise ValueError("out dimensions do not match shape")
        out[...] = total
        return out

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the mean of all elements, or along an axis."""
        axis = reduced_axis(axis)
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        data = self.data if self.dtype.kind in "fc" else self.data.astype(float)
        mean = self._of(self.pattern, data * (1.0 / count)).sum(axis, out=out)
        return mean if dtype is None or out is not None else mean.astype(dtype)

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the maximum, or a sparse vector (for matrices a sparse matrix) of the maxima along an axis."""
        return self._extreme("max", axis, out, explicit, False)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the minimum; see `max`."""
        return self._extreme("min", axis, out, explicit, False)

    def nanmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the maximum, ignoring NaN; see `max`."""
        return self._extreme("max", axis, out, explicit, True)

    def nanmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Return the minimum, ignoring NaN; see `max`."""
        return self._extreme("min", axis, out, explicit, True)

    def _extreme(self, name: str, axis: Any, out: Any, explicit: bool, skips_nan: bool) -> Any:
        if out is not None:
            raise ValueError("Sparse min/max does not support an 'out' parameter.")
        if not carries_history(self.data):
            name = f"nan{name}" if skips_nan else name
            return getattr(self.to_scipy(), name)(axis, **({"explicit": explicit} if explicit else {}))
        axis = reduced_axis(axis)
        pattern, data = _summed(self)
        if axis is None:
            keys = np.asarray(pattern.rows, np.int64) * self.shape[1] + pattern.cols
            whole = Pattern(np.zeros(len(keys), np.int64), keys, (1, self.shape[0] * self.shape[1]))
            return extremes(whole, data, name, explicit=explicit, skips_nan=skips_nan)[0]
        rows = pattern if axis == 1 else pattern.transposed
        found = extremes(rows, data, name, explicit=explicit, skips_nan=skips_nan)
        places = np.flatnonzero(plain_values(found))
        if not self.is_matrix:
            return SparseVector(found[places], places, rows.shape[0])
        zeros = np.zeros(len(places), places.dtype)
        index, shape = ((places, zeros), (rows.shape[0], 1)) if axis == 1 else ((zeros, places), (1, rows.shape[0]))
        return self._kind("coo")._of(Pattern(*index, shape), found[places])

    def diagonal(self, k: int = 0) -> Any:
        """Return the elements on a diagonal."""
        pattern, data = _summed(self)
        return picked(data, pattern.numbered().diagonal(k))

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the elements on a diagonal."""
        return self.diagonal(offset).sum()

    # -- formats -------------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """Return the transpose: a CSC array for a CSR array, and vice versa."""
        name = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
        return self._kind(name)._of(self.pattern.transposed, self.data)

    def toarray(self, order: Any = None, out: None = None) -> Any:
        """Convert the array to a dense tensor."""
        pattern, data = _summed(self)
        dense: Any = as_operand(np.zeros(self.shape, self.dtype))
        dense[pattern.rows, pattern.cols] = data
        return dense

    def todense(self, order: Any = None, out: None = None) -> Any:
        """Convert the array to a dense tensor, or a sparse matrix to a NumPy matrix."""
        return self._dense(self.toarray())

    def tocsr(self, copy: bool = False) -> Any:
        """Convert the array to CSR format, stored row by row."""
        return self._kind("csr")._of(*_summed(self))

    def tocsc(self, copy: bool = False) -> Any:
        """Convert the array to CSC format, stored column by column."""
        return self._kind("csc")._of(*_summed(self))

    def tocoo(self, copy: bool = True) -> Any:
        """Convert the array to COO format, with the row and column of each value."""
        return self._kind("coo")._of(self.pattern, self.data)

    def tolil(self, copy: bool = False) -> Any:
        """Convert the array to LIL format, which supports assignment."""
        return ARRAYS[f"lil_{'matrix' if self.is_matrix else 'array'}"](self)

    def todok(self, copy: bool = False) -> Any:
        """Convert the array to DOK format, which supports assignment."""
        return ARRAYS[f"dok_{'matrix' if self.is_matrix else 'array'}"](self)

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        """Convert the array to one of the formats of SciPy, such as `"csr"`.

        Raises:
            ValueError: for an unknown format.
        """
        if format is None or format == self.format:
            return self
        if format not in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil"):
            raise ValueError(f"Format {format} is unknown.")
        return getattr(self, f"to{format}")()

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the array with its elements, in row-major order, in another shape."""
        return rearranged(lambda each: each.reshape(*shape, **options), [self], self._kind("coo"))

    def __getitem__(self, index: Any) -> Any:
        index = plain_values(index)
        kind = self._kind(self.format if self.format != "coo" else "csr")
        form = scipy.sparse.csr_matrix if self.is_matrix else scipy.sparse.csr_array  # rows of matrices are matrices
        return rearranged(lambda each: form(each)[index], [self], kind)

    def getrow(self, i: int) -> Any:
        """Return a row as a sparse matrix."""
        return self[[i]] if self.is_matrix else self.__getattr__("getrow")

    def getcol(self, j: int) -> Any:
        """Return a column as a sparse matrix."""
        return self[:, [j]] if self.is_matrix else self.__getattr__("getcol")

    def sum_duplicates(self) -> None:
        """Sum the values stored for the same position."""
        self.pattern, self.data = _ordered(self.format, *_summed(self))

    def eliminate_zeros(self) -> None:
        """Drop the stored values that are 0."""
        kept = np.flatnonzero(plain_values(self.data.detach()))
        self.pattern = Pattern(self.pattern.rows[kept], self.pattern.cols[kept], self.shape)
        self.data = self.data[kept]

    # -- writes --------------------------------------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        dense = numbers(value.toarray() if is_sparse(value) else value)
        if dense.dtype.kind == "c" and self.dtype.kind != "c":
            raise TypeError(f"complex elements do not fit into an array of {self.dtype}")
        index = plain_values(as_argument(index))
        shape = np.shape(self._pattern_only()[index])
        if shape and dense.shape != shape:
            dense = np.broadcast_to(dense, shape)
        written = with_elements(*_summed(self), index, dense.astype(self.dtype))
        self.pattern, self.data = _ordered(self.format, *written)

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Assign a value, or several, to a diagonal."""
        written = with_diagonal(*_summed(self), numbers(values).astype(self.dtype), int(k))
        self.pattern, self.data = _ordered(self.format, *written)

    def resize(self, *shape: Any) -> None:
        """Change the shape in place; elements outside the new shape are dropped."""
        self._pattern_only().resize(*shape)  # checks the arguments
        rows, cols = shape[0] if len(shape) == 1 else shape
        self.pattern, self.data = cropped(self.pattern, self.data, (int(rows), int(cols)))

    def set_shape(self, shape: Any) -> None:
        """Change the shape in place, with the elements in row-major order."""
        found = self.reshape(shape).asformat(self.format)
        self.pattern, self.data = found.pattern, found.data

    def sort_indices(self) -> None:
        """Sort the stored values of each row of a CSR array, or column of a CSC array, by position."""
        self._require_compressed("sort_indices")
        pattern = self.pattern if self.format == "csr" else self.pattern.transposed
        order = pattern.compressed()[0]
        self.pattern = Pattern(self.pattern.rows[order], self.pattern.cols[order], self.shape)
        self.data = self.data[order]

    def _kind(self, name: str) -> Any:
        return ARRAYS[f"{name}_{'matrix' if self.is_matrix else 'array'}"]

    def _pattern_only(self) -> Any:
        return getattr(scipy.sparse, type(self).__name__)(self.shape)

    def _require_compressed(self, name: str) -> None:
        if self.format == "coo":
            raise AttributeError(f"coo_array has no {name}; convert it with tocsr()")

    def _intersected(self, other: Any) -> Any:
        if other.shape != self.shape:
            raise ValueError(f"multiply: shapes {self.shape} and {other.shape} do not match")
        (mine, data), (others, factors) = _summed(self), _summed(other)
        keys, known = (np.asarray(p.rows, np.int64) * self.shape[1] + p.cols for p in (mine, others))
        _, first, second = np.intersect1d(keys, known, assume_unique=True, return_indices=True)
        return self._of(Pattern(mine.rows[first], mine.cols[first], self.shape), data[first] * factors[second])


def _stored(name: str) -> Callable[[SparseArray], Any]:
    def method(self: SparseArray) -> Any:
        return self._of(*_summed(self)).map(getattr(np, name))

    method.__name__, method.__doc__ = name, f"`numpy.{name}` of every element."
    return method


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method for an operator that compares values, which has no derivative."""

    def compared(self: SparseArray, other: Any) -> Any:
        found = compare(self.to_scipy(), to_scipy(other.data if isinstance(other, matrix) else other))
        if scipy.sparse.issparse(found):
            return as_sparse(found)
        return self._dense(as_operand(np.asarray(found))) if isinstance(found, np.ndarray) else found

    compared.__name__ = f"__{compare.__name__}__"
    return compared


for _name in NAMES:
    setattr(SparseArray, _name, _stored(_name))
for _name in COMPARISONS:
    setattr(SparseArray, f"__{_name}__", _comparison(getattr(operator, _name)))


# -- parts -------------------------------------------------------------------------------------------------------------


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse array: SciPy's, or one whose stored values are a tensor."""
    return isinstance(value, SparseArray) or bool(scipy.sparse.issparse(value))


def reduced_axis(axis: Any) -> int | None:
    """Return the axis of a reduction, or None for a reduction over both."""
    if axis is None:
        return None
    if not isinstance(axis, tuple):
        axis = (axis,)
    axes = np.lib.array_utils.normalize_axis_tuple(axis, 2)
    if not axes:
        raise ValueError("sparse does not accept 0D axis (); use toarray or copy")
    return axes[0] if len(axes) == 1 else None


def as_sparse(value: Any) -> Any:
    """Convert a SciPy sparse array or a dense matrix to a sparse array whose stored values are a tensor."""
    if isinstance(value, SparseArray):
        return value
    if not scipy.sparse.issparse(value):
        dense = numbers(value)
        if dense.ndim != 2 or not carries_history(dense):
            return ARRAYS["csc_array"](dense)
        rows, cols = np.indices(dense.shape).reshape(2, -1)  # zeros have derivatives, too
        return ARRAYS["csc_array"]._of(Pattern(rows, cols, dense.shape), dense.reshape(-1))
    is_matrix = not isinstance(value, scipy.sparse.sparray)
    name = value.format if value.format in ("csr", "csc", "coo") else "csr"
    return ARRAYS[f"{name}_{'matrix' if is_matrix else 'array'}"](value)


def to_scipy(value: Any) -> Any:
    """Convert the arguments of a SciPy function: sparse arrays and operators to SciPy's own, and tensors to arrays."""
    if hasattr(value, "to_scipy"):
        return value.to_scipy()
    return type(value)(map(to_scipy, value)) if type(value) in (list, tuple) else plain_values(value)


def _dense_operand(value: Any) -> Any:
    return value.data if isinstance(value, matrix) else numbers(value)


def _promoted(data: Any, dense: Any) -> tuple[Any, Any]:
    """Return stored values and a dense operand in differentiable dtypes, if either has a history."""
    dtype = np.result_type(data.dtype, dense.dtype)
    return tuple([each if each.dtype == dtype else each.astype(dtype) for each in (data, dense)])


def _parts_of(format: str, arg1: Any, shape: Any, is_matrix: bool) -> tuple[Pattern, Any]:
    """Return the pattern and the stored values described by the arguments of a constructor."""
    if isinstance(arg1, SparseArray):
        return arg1.pattern, arg1.data
    if scipy.sparse.issparse(arg1):
        coo = arg1.tocoo()
        return Pattern(coo.row, coo.col, coo.shape), as_operand(np.array(coo.data))
    if isinstance(arg1, tuple) and len(arg1) == 3:
        data, indices, starts = numbers(arg1[0]), *map(_indices, arg1[1:])
        major = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        # SciPy checks the arguments and determines the shape.
        like = getattr(scipy.sparse, f"{format}_array")((np.ones(data.shape), indices, starts), shape=shape)
        rows, cols = (major, indices) if format == "csr" else (indices, major)
        return Pattern(rows, cols, like.shape), data
    if isinstance(arg1, tuple) and len(arg1) == 2 and not all(isinstance(each, (int, np.integer)) for each in arg1):
        data, places = arg1
        data = numbers(data)
        if len(places) != 2:
            raise ValueError(f"a sparse array of tensors has two dimensions, not {len(places)}")
        rows, cols = map(_indices, places)
        like = scipy.sparse.coo_array((np.ones(data.shape), (rows, cols)), shape=shape)
        pattern = Pattern(like.row, like.col, like.shape)
        return (pattern, data) if format == "coo" else _without_duplicates(pattern, data)
    if isinstance(arg1, tuple):
        empty = scipy.sparse.coo_array(arg1)
        return Pattern(empty.row, empty.col, empty.shape), as_operand(np.zeros(0))
    dense = numbers(arg1)
    if is_matrix and dense.ndim < 2:
        dense = dense.reshape(1, -1)  # a row
    if dense.ndim != 2:
        raise ValueError(f"a sparse array of tensors has two dimensions, not {dense.ndim}")
    rows, cols = np.nonzero(plain_values(dense.detach()))
    return Pattern(rows, cols, dense.shape), dense[rows, cols]


def _indices(value: Any) -> Any:
    return np.asarray(plain_values(as_argument(value)))


def _ordered(format: str, pattern: Pattern, data: Any) -> tuple[Pattern, Any]:
    """Return the stored values in the order of a format."""
    if format == "coo":
        return pattern, data
    major, minor = (pattern.rows, pattern.cols) if format == "csr" else (pattern.cols, pattern.rows)
    if (np.diff(major) >= 0).all():
        return pattern, data
    order = np.lexsort((minor, major))
    return Pattern(pattern.rows[order], pattern.cols[order], pattern.shape), data[order]


def _summed(array: Any) -> tuple[Pattern, Any]:
    """Return the pattern and the stored values of an array, without duplicate positions."""
    return _without_duplicates(array.pattern, array.data)


def _without_duplicates(pattern: Pattern, data: Any) -> tuple[Pattern, Any]:
    if not pattern.has_duplicates:
        return pattern, data
    keys, inverse = np.unique(np.asarray(pattern.rows, np.int64) * pattern.shape[1] + pattern.cols, return_inverse=True)
    rows, cols = np.divmod(keys, max(1, pattern.shape[1]))
    return Pattern(rows, cols, pattern.shape), _grouped(data, inverse.reshape(-1), len(keys))


def _grouped(values: Any, groups: Any, count: int) -> Any:
    """Return the sums of values by group."""
    summing = Pattern(groups, np.arange(len(groups)), (count, len(groups)))
    return product(summing, as_operand(np.ones(len(groups), values.dtype)), values)


def picked(data: Any, numbers: Any) -> Any:
    """Return the stored values with the given numbers, counted from 1, or 0 where the number is 0."""
    if not np.ndim(numbers):
        return data[int(numbers) - 1] if numbers else as_operand(np.zeros((), data.dtype))[()]
    if (numbers != 0).all():
        return data[numbers - 1]
    padded: Any = as_operand(np.zeros(len(data) + 1, data.dtype))
    padded[1:] = data
    return padded[numbers]


def rearranged(function: Callable[..., Any], arrays: Sequence[Any], kind: Any) -> Any:
    """Wrap a SciPy function that rearranges the elements of sparse arrays.

    Arguments:
        function: a function of as many SciPy arrays that does not compute with their elements.
        arrays: sparse arrays.
        kind: the class of the result, if it is sparse.
    """
    parts = [_summed(as_sparse(each)) for each in arrays]
    numbered = []
    start = 0
    for pattern, data in parts:
        each = pattern.numbered()
        each.data += start
        start += len(data)
        numbered.append(each)
    found = function(*numbered)
    values = [data for _, data in parts]
    data = values[0] if len(values) == 1 else np.concatenate(values)
    if not scipy.sparse.issparse(found):
        dense = picked(data, np.asarray(found))
        return matrix(dense, copy=False) if isinstance(found, np.matrix) else dense
    if found.ndim == 1:
        dense = picked(data, found.toarray())
        return dense
    coo = found.tocoo()
    return kind._of(Pattern(coo.row, coo.col, coo.shape), data[coo.data - 1])


def combined(arrays: Sequence[Any], function: Callable[..., Any], kind: Any) -> Any:
    """Return the sum of sparse arrays of one shape; SciPy checks the shapes by a given function."""
    function(*[scipy.sparse.csr_array(each.shape) for each in arrays])
    dtype = np.result_type(*[each.dtype for each in arrays])
    pattern = Pattern(
        np.concatenate([each.pattern.rows for each in arrays]),
        np.concatenate([each.pattern.cols for each in arrays]),
        arrays[0].shape,
    )
    data = np.concatenate([each.data.astype(dtype) for each in arrays])
    return kind._of(*_summed(ARRAYS["coo_array"]._of(pattern, data)))


def _sparse_product(left: Any, right: Any) -> Any:
    """Return the product of two sparse arrays, saving one number for each multiplication."""
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"matmul: shapes {left.shape} and {right.shape} do not match")
    order, _, starts = right.pattern.compressed()
    counts = np.diff(starts)[left.pattern.cols]
    first = np.repeat(np.arange(left.nnz), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[starts[left.pattern.cols[first]] + within]
    dtype = np.result_type(left.dtype, right.dtype)
    terms = left.data.astype(dtype)[first] * right.data.astype(dtype)[second]
    rows, cols = left.pattern.rows[first], right.pattern.cols[second]
    made = ARRAYS["coo_array"]._of(Pattern(rows, cols, (left.shape[0], right.shape[1])), terms)
    return left._kind("csr")._of(*_summed(made))


def _class(format: str, is_matrix: bool) -> type[SparseArray]:
    name = f"{format}_{'matrix' if is_matrix else 'array'}"
    members = {
        "format": format, "is_matrix": is_matrix, "__doc__": SparseArray.__doc__,
        "__module__": "viewgrad.scipy.sparse", "__qualname__": name,
    }  # fmt: skip
    return type(name, (SparseArray,), members)


ARRAYS: dict[str, Any] = {
    f"{format}_{'matrix' if is_matrix else 'array'}": _class(format, is_matrix)
    for format in ("csr", "csc", "coo")
    for is_matrix in (False, True)
}
