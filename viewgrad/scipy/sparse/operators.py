"""Linear operators on tensors: functions that multiply vectors by a matrix that is not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg  # type: ignore[import-untyped]

from ...adoption import adopted_callable
from ...func.transforms import vjp
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ...tensor.modes import enable_grad, no_grad
from ..wrap import numbers
from .arrays import as_sparse, is_sparse

Product = Callable[[Any], Any]


class LinearOperator:
    """A linear operator, as `scipy.sparse.linalg.LinearOperator`, through whose functions gradients flow.

    Called directly, the class takes the functions; a subclass defines `_matvec` or `_matmat`, and optionally
    `_rmatvec`, `_rmatmat` or `_adjoint`.

    Arguments:
        shape: the numbers of rows and columns.
        matvec: the product with a vector.
        rmatvec: the product of the conjugate transpose with a vector.
        matmat, rmatmat: the same for matrices; by default column by column.
        dtype: the dtype of the matrix; by default that of a product.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.scipy.sparse.linalg import LinearOperator
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> (LinearOperator((2, 2), lambda v: 3.0 * v) @ x).sum().backward()
        >>> x.grad
        Tensor([3., 3.])
    """

    ndim = 2
    __array_ufunc__ = None  # makes arrays and tensors defer to this class in operations
    __array_priority__ = 100.0
    shape: Any
    dtype: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(_OfFunctions if cls is LinearOperator else cls)

    def __init__(self, dtype: Any, shape: Any) -> None:
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.shape = tuple(map(int, shape))

    @staticmethod
    def from_scipy(operator: Any) -> Any:
        """Return the operator with the functions, adopted, of one of SciPy's; others are SciPy's own."""
        return _of_scipy(operator)

    def to_scipy(self) -> Any:
        """Return SciPy's operator on plain values; without `rmatvec`, it multiplies by the transposed derivative."""

        def on_values(function: Product) -> Product:
            def multiplied(x: Any) -> Any:
                with no_grad():
                    return np.array(plain_values(numbers(function(as_tensors(np.array(x)))).detach()))

            return multiplied

        def back(x: Any) -> Any:
            try:
                return self.rmatvec(x)
            except NotImplementedError:
                dtype = np.result_type(self.dtype or x.dtype, x.dtype)
                return vjp(self.matvec, as_tensors(np.zeros(self.shape[1], dtype)))[1](x.astype(dtype))

        return scipy.sparse.linalg.LinearOperator(
            self.shape, on_values(self.matvec), on_values(back), on_values(self.matmat), self.dtype
        )

    def carries_history(self) -> bool:
        """Return whether the operator itself, and not only its argument, has a history."""
        with enable_grad():
            return carries_history(self.matvec(as_tensors(np.zeros(self.shape[1], self.dtype))))

    # -- products ------------------------------------------------------------------------------------------------------

    def _matvec(self, x: Any) -> Any:
        return self.matmat(x.reshape(-1, 1))

    def _matmat(self, X: Any) -> Any:
        return np.concatenate([self.matvec(column.reshape(-1, 1)) for column in X.T], 1)

    def _rmatvec(self, x: Any) -> Any:
        if type(self)._adjoint is LinearOperator._adjoint:
            raise NotImplementedError("rmatvec is not defined")
        return self.H.matvec(x)

    def _rmatmat(self, X: Any) -> Any:
        return np.concatenate([self.rmatvec(column.reshape(-1, 1)) for column in X.T], 1)

    def matvec(self, x: Any) -> Any:
        """Return the product with a vector of shape (n,) or (n, 1)."""
        return self._multiplied(self._matvec, x, self.shape[1], self.shape[0], (1,))

    def rmatvec(self, x: Any) -> Any:
        """Return the product of the conjugate transpose with a vector."""
        return self._multiplied(self._rmatvec, x, self.shape[0], self.shape[1], (1,))

    def matmat(self, X: Any) -> Any:
        """Return the product with a matrix."""
        return self._multiplied(self._matmat, X, self.shape[1], self.shape[0], None)

    def rmatmat(self, X: Any) -> Any:
        """Return the product of the conjugate transpose with a matrix."""
        return self._multiplied(self._rmatmat, X, self.shape[0], self.shape[1], None)

    def _multiplied(self, function: Product, x: Any, size: int, rows: int, columns: Any) -> Any:
        x = numbers(x)
        is_vector = columns is not None and (x.shape == (size,) or x.shape == (size, 1))
        if not is_vector and (columns is not None or x.ndim != 2 or x.shape[0] != size):
            raise ValueError(f"dimension mismatch: {self.shape}, {x.shape}")
        found = numbers(function(x))
        return found.reshape((rows, *x.shape[1:])) if columns is not None else found

    def there(self, x: Any) -> Any:
        """Return the product with a vector or a matrix."""
        return self.matvec(x) if np.ndim(x) == 1 else self.matmat(x)

    def back(self, x: Any) -> Any:
        """Return the product of the conjugate transpose with a vector or a matrix."""
        return self.rmatvec(x) if np.ndim(x) == 1 else self.rmatmat(x)

    # -- composition ---------------------------------------------------------------------------------------------------

    def _adjoint(self) -> Any:
        return _Composed(self.shape[::-1], self.dtype, self.back, self.there)

    def adjoint(self) -> Any:
        """Return the conjugate transpose."""
        return self._adjoint()

    def transpose(self) -> Any:
        """Return the transpose."""
        return _Composed(
            self.shape[::-1], self.dtype,
            lambda x: np.conj(self.back(np.conj(x))), lambda x: np.conj(self.there(np.conj(x))),
        )  # fmt: skip

    @property
    def H(self) -> Any:
        """The conjugate transpose."""
        return self.adjoint()

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def dot(self, x: Any) -> Any:
        """Return the product with a scalar, a vector, a matrix or another operator."""
        if is_operator(x):
            other = as_operator(x)
            if self.shape[1] != other.shape[0]:
                raise ValueError(f"cannot multiply operators of shapes {self.shape} and {other.shape}")
            shape, dtype = (self.shape[0], other.shape[1]), _common(self.dtype, other.dtype)
            return _Composed(shape, dtype, lambda v: self.there(other.there(v)), lambda v: other.back(self.back(v)))
        x = numbers(x)
        if x.ndim == 0:
            factor = x
            dtype = _common(self.dtype, factor.dtype)
            return _Composed(
                self.shape, dtype, lambda v: factor * self.there(v), lambda v: np.conj(factor) * self.back(v)
            )
        if x.ndim > 2:
            raise ValueError(f"expected 1-d or 2-d array or matrix, got {x!r}")
        return self.matvec(x) if x.ndim == 1 else self.matmat(x)

    __call__ = __mul__ = dot

    def __matmul__(self, other: Any) -> Any:
        if not is_operator(other) and np.ndim(other) == 0:
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self.dot(other)

    def __rmul__(self, other: Any) -> Any:
        if np.ndim(other) == 0:
            return self.dot(other)
        return self.T.dot(numbers(other).T).T

    def __rmatmul__(self, other: Any) -> Any:
        if np.ndim(other) == 0:
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self.__rmul__(other)

    def __truediv__(self, other: Any) -> Any:
        return self.dot(1.0 / numbers(other))

    def __add__(self, other: Any) -> Any:
        if not is_operator(other):
            return NotImplemented
        other = as_operator(other)
        if self.shape != other.shape:
            raise ValueError(f"cannot add operators of shapes {self.shape} and {other.shape}")
        return _Composed(
            self.shape, _common(self.dtype, other.dtype),
            lambda v: self.there(v) + other.there(v), lambda v: self.back(v) + other.back(v),
        )  # fmt: skip

    def __neg__(self) -> Any:
        return self.dot(-1)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __pow__(self, power: int) -> Any:
        if power < 0 or power != int(power) or self.shape[0] != self.shape[1]:
            raise ValueError("powers of operators must be nonnegative integers, and the operators square")
        found = identity(self.shape, self.dtype)
        for _ in range(power):
            found = self.dot(found)
        return found

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} LinearOperator with dtype={self.dtype}>"


class _OfFunctions(LinearOperator):
    """An operator defined by the functions of its products."""

    def __init__(
        self, shape: Any, matvec: Product, rmatvec: Product | None = None, matmat: Product | None = None,
        dtype: Any = None, rmatmat: Product | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, shape)
        self.functions = {
            name: adopted_callable(function)
            for name, function in (("matvec", matvec), ("rmatvec", rmatvec), ("matmat", matmat), ("rmatmat", rmatmat))
            if function is not None
        }
        if self.dtype is None:
            self.dtype = numbers(self.matvec(np.ones(self.shape[1]))).dtype

    def _matvec(self, x: Any) -> Any:
        return self.functions["matvec"](x)

    def _matmat(self, X: Any) -> Any:
        return self.functions["matmat"](X) if "matmat" in self.functions else super()._matmat(X)

    def _rmatvec(self, x: Any) -> Any:
        if "rmatvec" not in self.functions:
            raise NotImplementedError("rmatvec is not defined")
        return self.functions["rmatvec"](x)

    def _rmatmat(self, X: Any) -> Any:
        return self.functions["rmatmat"](X) if "rmatmat" in self.functions else super()._rmatmat(X)


class _Composed(LinearOperator):
    """An operator whose products with vectors and matrices are computed by one function."""

    def __init__(self, shape: Any, dtype: Any, there: Product, back: Product) -> None:
        super().__init__(dtype, shape)
        self.functions = there, back

    def _matvec(self, x: Any) -> Any:
        return self.functions[0](x)

    def _rmatvec(self, x: Any) -> Any:
        return self.functions[1](x)

    def _matmat(self, X: Any) -> Any:
        return self.functions[0](X)

    def _rmatmat(self, X: Any) -> Any:
        return self.functions[1](X)


def identity(shape: Any, dtype: Any = None) -> Any:
    """Return the operator that changes nothing."""
    return _Composed(shape, dtype, lambda x: x, lambda x: x)


def _common(*dtypes: Any) -> Any:
    known = [dtype for dtype in dtypes if dtype is not None]
    return np.result_type(*known) if known else None


def is_operator(value: Any) -> bool:
    """Return whether a value is a linear operator: SciPy's, or one on tensors."""
    return isinstance(value, (LinearOperator, scipy.sparse.linalg.LinearOperator))


def as_operator(value: Any) -> Any:
    """Return SciPy's linear operators as operators on tensors."""
    return value if isinstance(value, LinearOperator) else _of_scipy(value)


def of_products(value: Any) -> Any:
    """Return an object with `shape` and `matvec`, as SciPy's solvers accept it, as an operator; others unchanged."""
    has_products = not is_operator(value) and hasattr(value, "matvec") and hasattr(value, "shape")
    return aslinearoperator(value) if has_products else value


def aslinearoperator(A: Any) -> Any:
    """Return a sparse array, a matrix or an operator as a linear operator, which sees later writes to the array."""
    if is_operator(A):
        return as_operator(A)
    if is_sparse(A):
        return _Composed(A.shape, A.dtype, lambda x: as_sparse(A) @ x, lambda x: as_sparse(A).conj().T @ x)
    if hasattr(A, "matvec") and hasattr(A, "shape"):
        return _OfFunctions(
            A.shape, A.matvec, getattr(A, "rmatvec", None), getattr(A, "matmat", None), getattr(A, "dtype", None)
        )

    def dense() -> Any:
        return np.atleast_2d(numbers(A))

    if dense().ndim > 2:
        raise ValueError("array must have ndim <= 2")
    return _Composed(dense().shape, dense().dtype, lambda x: dense() @ x, lambda x: np.conj(dense().mT) @ x)


def _of_scipy(value: Any) -> Any:
    parts = getattr(value, "args", ())
    build = _FORMS.get(type(value).__name__)
    if build is not None:
        return build(*[as_operator(part) if is_operator(part) else part for part in parts])
    if type(value).__name__ == "MatrixLinearOperator":
        return aslinearoperator(value.A)
    if type(value).__name__ == "IdentityOperator":
        return identity(value.shape, value.dtype)
    names = ("matvec", "rmatvec", "matmat", "rmatmat")
    known = vars(value)
    functions: dict[str, Any] = {name: known.get(f"_CustomLinearOperator__{name}_impl") for name in names}
    if functions["matvec"] is None:
        functions = {name: getattr(value, name) for name in names}
    return _OfFunctions(value.shape, dtype=value.dtype, **functions)


# The compositions by the names of SciPy's classes.
_FORMS: dict[str, Callable[..., Any]] = {
    "_AdjointLinearOperator": lambda a: a.H,
    "_TransposedLinearOperator": lambda a: a.T,
    "_SumLinearOperator": lambda a, b: a + b,
    "_ProductLinearOperator": lambda a, b: a.dot(b),
    "_ScaledLinearOperator": lambda a, factor: a.dot(factor),
    "_PowerLinearOperator": lambda a, power: a**power,
}
