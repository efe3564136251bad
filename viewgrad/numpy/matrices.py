"""Matrices: the counterpart of `numpy.matrix` for tensors, with `*` for matrix products."""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.conversion import as_argument, carries_history, plain_values
from ..tensor.call_sites import instruction_of
from ..tensor.creation import CONTENTS, as_operand
from ..tensor.tensor import Tensor
from .array_types import ndarray
from .operator_methods import defers_to, define_operators

# NumPy functions that return arrays for matrices, and functions that call the method of the same name.
ARRAYS: Final = frozenset({
    "array", "asarray", "where", "outer", "cross", "einsum", "cov", "corrcoef", "select", "eigvals", "ravel",
})  # fmt: skip
METHODS: Final = frozenset({
    "all", "any", "argmax", "argmin", "max", "mean", "min", "amax", "amin", "prod", "ptp", "reshape", "std",
    "squeeze", "sum", "transpose", "var",
})  # fmt: skip
NAMES: Final = {"amax": "max", "amin": "min"}


class matrix:
    """A tensor with two dimensions whose products are matrix products; see `numpy.matrix`.

    Arguments:
        data: the elements; a vector is one row. A string has rows separated by semicolons.
        dtype: the dtype; by default the dtype of the elements.
        copy: whether to copy a tensor.
    """

    __array_priority__ = 10.0

    def __init__(self, data: Any, dtype: Any = None, copy: bool = True) -> None:
        if isinstance(data, str):
            rows = data.replace(",", " ").strip("[] ").split(";")
            data = [[ast.literal_eval(each) for each in row.split()] for row in rows]
        given: Any = as_operand(as_argument(_values(data)))
        if given.ndim > 2:
            raise ValueError("matrix must be 2-dimensional")
        given = given if dtype is None else given.astype(dtype)
        given = given.clone() if copy else given
        self.data = given if given.ndim == 2 else given.reshape(1, -1)

    @classmethod
    def _viewing(cls, data: Any) -> matrix:
        """Return the result of `data.view(matrix)`."""
        return cls(data, copy=False)

    def _created(self, subok: bool) -> Any:
        """Return the result of `numpy.array` for the object: the object itself with `subok`."""
        return self if subok else self.data

    # -- attributes ----------------------------------------------------------------------------------------------------

    ndim = 2

    @property
    def shape(self) -> Any:
        """The numbers of rows and columns."""
        return self.data.shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.data.size)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def T(self) -> matrix:
        """The transpose."""
        return _matrix(self.data.T)

    @property
    def H(self) -> matrix:
        """The conjugate transpose."""
        return _matrix(self.data.T.conj())

    @property
    def I(self) -> matrix:  # noqa: E743 -- NumPy's name
        """The inverse, or the pseudoinverse if the matrix is not square."""
        square = self.shape[0] == self.shape[1]
        return _matrix((np.linalg.inv if square else np.linalg.pinv)(self.data))

    @property
    def A(self) -> Any:
        """The elements as a plain tensor."""
        return self.data

    @property
    def A1(self) -> Any:
        """The elements as a vector."""
        return self.data.reshape(-1)

    @property
    def real(self) -> matrix:
        """The real parts."""
        return _matrix(self.data.real)

    @property
    def imag(self) -> matrix:
        """The imaginary parts."""
        return _matrix(self.data.imag)

    @property
    def flat(self) -> Any:
        """An iterator over the elements."""
        return iter(self.A1)

    getT, getH, getI, getA, getA1 = (lambda self, name=name: getattr(self, name) for name in ("T", "H", "I", "A", "A1"))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        index = _values(index)
        found = self.data[index]
        if not found.ndim:
            return found
        return _matrix(found if found.ndim == 2 else found.reshape(_shape_of_vector(index, found.size)))

    def __setitem__(self, index: Any, value: Any) -> None:
        index, value = _values(index), _values(value)
        target = self.data[index]
        if target.ndim == 1 and np.ndim(plain_values(value)) == 2:
            value = np.broadcast_to(value, _shape_of_vector(index, target.size)).reshape(-1)
        self.data[index] = value

    def __repr__(self) -> str:
        return f"matrix({self.data!r})"

    def __bool__(self) -> bool:
        return bool(self.data)

    def __float__(self) -> Any:
        return _number(self.data, float)

    def __complex__(self) -> Any:
        return _number(self.data, complex)

    def __int__(self) -> int:
        return int(self.data.reshape(()))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.data, dtype)

    def item(self, *place: Any) -> Any:
        """Return an element as a number."""
        return self.data.item(*place)

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return self.data.tolist()

    # -- methods -------------------------------------------------------------------------------------------------------

    def copy(self, order: Any = "C") -> matrix:
        """Return a copy with its history."""
        return _matrix(self.data.clone())

    def astype(self, dtype: Any, **options: Any) -> matrix:
        """Return the elements converted to another dtype."""
        return _matrix(self.data.astype(dtype))

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Return a matrix, or a tensor for the type `numpy.ndarray`, that shares the memory of this one."""
        kind = dtype if type is None else type
        if kind is ndarray:
            return self.data
        return _matrix(self.data if kind is None or kind is matrix else self.data.view(kind))

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        """Return the elements in another shape."""
        return _viewed(self.data.reshape(*shape, order=order))

    def ravel(self, order: Any = "C") -> matrix:
        """Return the elements as one row."""
        return _matrix(self.data.reshape(1, -1, order=order))

    flatten = ravel

    def squeeze(self, axis: Any = None) -> matrix:
        """Return the matrix itself, or a column transposed to a row."""
        return _matrix(self.data.squeeze(axis).reshape(1, -1) if 1 in self.shape else self.data)

    def transpose(self, *axes: Any) -> matrix:
        """Return the transpose."""
        return _matrix(self.data.transpose(*axes))

    def conj(self) -> matrix:
        """Return the complex conjugates."""
        return _matrix(self.data.conj())

    conjugate = conj

    def diagonal(self, offset: int = 0) -> matrix:
        """Return the diagonal as a row."""
        return _matrix(np.diagonal(self.data, offset).reshape(1, -1))

    def trace(self, offset: int = 0) -> matrix:
        """Return the sum of the diagonal as a 1 x 1 matrix."""
        return _matrix(np.trace(self.data, offset).reshape(1, 1))

    def dot(self, other: Any) -> Any:
        """Return the matrix product, or the product with a number."""
        return _viewed(np.dot(self.data, _values(other)))

    def fill(self, value: Any) -> None:
        """Assign a number to all elements."""
        self.data[...] = value

    def round(self, decimals: int = 0) -> matrix:
        """Return the elements rounded to a number of decimals."""
        return _matrix(np.round(self.data, decimals))

    # -- products, operators and functions of NumPy --------------------------------------------------------------------

    def __mul__(self, other: Any) -> Any:
        if defers_to(other):
            return NotImplemented
        if isinstance(other, (matrix, ndarray, list, tuple)) or np.ndim(plain_values(other)):
            return _of(np.dot(self.data, matrix(other, copy=False).data))
        return _matrix(self.data * other)

    def __rmul__(self, other: Any) -> Any:
        return _viewed(np.dot(as_operand(as_argument(other)), self.data))

    def __imul__(self, other: Any) -> Any:
        self._assign(self * other)
        return self

    def __pow__(self, power: Any) -> matrix:
        return _matrix(np.linalg.matrix_power(self.data, power))

    def __neg__(self) -> matrix:
        return _matrix(-self.data)

    def __pos__(self) -> matrix:
        return self

    def __abs__(self) -> matrix:
        return _matrix(abs(self.data))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.multiply and isinstance(inputs[0], np.ndarray) and not kwargs:
            if instruction_of(sys._getframe(1)) == "BINARY_OP":  # `array * matrix`, for which NumPy calls the ufunc
                return self.__rmul__(inputs[0])
        found = getattr(ufunc, method)(*map(_values, inputs), **{key: _values(each) for key, each in kwargs.items()})
        if ufunc is np.matmul and isinstance(found, Tensor):
            return _as_numpys(found, getattr(ufunc, method), inputs, {})
        if isinstance(found, tuple):
            return tuple(map(_of, found))
        return _matrix(found) if method == "reduce" or found.ndim == 1 else _of(found)

    def _assign(self, found: Any) -> None:
        self.data[...] = _values(found)

    def __array_function__(self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any) -> Any:
        name: str = function.__name__
        if name in METHODS and isinstance(args[0], matrix):
            return getattr(args[0], NAMES.get(name, name))(*args[1:], **kwargs)
        found = function(*map(_values, args), **{key: _values(each) for key, each in kwargs.items()})
        if name in ARRAYS or isinstance(found, matrix):
            return found
        if isinstance(found, tuple):
            parts = list(map(_of, found))
            return found._make(parts) if hasattr(found, "_make") else tuple(parts)
        return _as_numpys(found, function, args, kwargs) if isinstance(found, Tensor) else found


def _as_numpys(found: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return a result with the shape and type that NumPy returns for the same values."""
    options = {key: _numpys(each) for key, each in kwargs.items()}
    expected = function(*map(_numpys, args), **options)
    found = found.reshape(np.shape(expected))
    return _matrix(found) if isinstance(expected, np.matrix) else found


def _numpys(value: Any) -> Any:
    """Return the values of an argument, with matrices converted to NumPy's."""
    if isinstance(value, matrix):
        return plain_values(value.data.detach()).view(np.matrix)
    if type(value) in (list, tuple):
        return type(value)([_numpys(each) for each in value])
    return plain_values(value.detach()) if isinstance(value, Tensor) else value


def _shape_of_vector(index: Any, size: int) -> tuple[int, int]:
    """Return the shape of selected elements: a column if the second index is a number, otherwise a row."""
    count = len(index) if hasattr(index, "__len__") else 0
    return (size, 1) if count > 1 and np.isscalar(plain_values(index[1])) else (1, size)


def _number(data: Any, kind: Any) -> Any:
    """Return the only element as a number or, in adopted code, as a tensor with its history."""
    only = data.reshape(())[()]
    return only if carries_history(only) else kind(only)


def _values(value: Any) -> Any:
    """Replace matrices in an argument, also in lists and tuples, by tensors."""
    if isinstance(value, matrix):
        return value.data
    if type(value) is np.matrix:
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)([_values(each) for each in value])
    return value


def _matrix(data: Any) -> matrix:
    return matrix(data, copy=False)


def _of(found: Any) -> Any:
    """Return a two-dimensional result as a matrix."""
    return _matrix(found) if isinstance(found, Tensor | np.ndarray) and found.ndim == 2 else found


def _viewed(found: Any) -> Any:
    """Return a result of at most two dimensions as a matrix; a vector is one row."""
    return _matrix(found) if found.ndim <= 2 else found


def _reduction(name: str) -> None:
    def reduce(self: matrix, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        if dtype is not None:
            options["dtype"] = dtype
        if axis is None:
            return getattr(self.data, name)(**options)
        found = getattr(self.data, name)(axis=axis, **options)
        return _matrix(found.reshape((1, -1) if axis % 2 == 0 else (-1, 1)))

    reduce.__name__, reduce.__doc__ = name, f"Return `{name}` of all elements, or of each column or row as a matrix."
    setattr(matrix, name, reduce)


for _name in ("sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin", "ptp"):
    _reduction(_name)


CONTENTS[matrix] = operator.attrgetter("data")
define_operators(matrix, ("add", "sub", "truediv", "floordiv", "mod", "matmul"))


def asmatrix(data: Any, dtype: Any = None) -> matrix:
    """Return a matrix that shares the memory of a tensor; a matrix is returned unchanged."""
    return data if isinstance(data, matrix) and dtype is None else matrix(data, dtype, copy=False)


def bmat(obj: Any, ldict: Any = None, gdict: Any = None) -> matrix:
    """Build a matrix from blocks."""
    if isinstance(obj, str):
        raise TypeError("bmat of a string is not supported; pass nested lists")
    blocks = _values(obj)
    return _matrix(np.block(blocks) if isinstance(blocks, list | tuple) else blocks)
