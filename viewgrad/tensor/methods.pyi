"""The operators as methods of a tensor. Written by `python tools/stubs.py`; do not edit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .node import RemovableHandle
from .tensor import Tensor

_Number: TypeAlias = bool | int | float | complex | np.generic
_TensorLike: TypeAlias = Tensor | np.ndarray[Any, Any] | _Number | Sequence[Any]
_Axis: TypeAlias = int | tuple[int, ...] | None

class OperatorMethods:
    def _all_pole(self, a: _TensorLike) -> Tensor:
        """The samples y with `sum(a[k] * y[n - k]) = self[n]`: a recursive filter along the last dimension."""

    def _contiguous_copy(self) -> Tensor:
        """A copy in row-major order."""

    def _partition_places(self, kth: Any, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The indices by which `numpy.partition` orders the values."""

    def _reshaped_copy(self, shape: int | tuple[int, ...]) -> Tensor:
        """A copy of the elements, in row-major order, in another shape."""

    def abs(self) -> Tensor:
        """The absolute value; gradient 0 at 0."""

    def abs_(self) -> Tensor:
        """The absolute value; gradient 0 at 0."""

    def add(self, other: _TensorLike) -> Tensor:
        """The sum."""

    def add_(self, other: _TensorLike) -> Tensor:
        """The sum."""

    def addcdiv(self, tensor1: _TensorLike, tensor2: _TensorLike, *, value: Any = 1) -> Tensor:
        """The input plus `value` times the quotient of the two other tensors."""

    def addcdiv_(self, tensor1: _TensorLike, tensor2: _TensorLike, *, value: Any = 1) -> Tensor:
        """The input plus `value` times the quotient of the two other tensors."""

    def addcmul(self, tensor1: _TensorLike, tensor2: _TensorLike, *, value: Any = 1) -> Tensor:
        """The input plus `value` times the product of the two other tensors."""

    def addcmul_(self, tensor1: _TensorLike, tensor2: _TensorLike, *, value: Any = 1) -> Tensor:
        """The input plus `value` times the product of the two other tensors."""

    def addmm(self, mat1: _TensorLike, mat2: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """A matrix times `beta`, plus the product of two matrices times `alpha`."""

    def addmm_(self, mat1: _TensorLike, mat2: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """A matrix times `beta`, plus the product of two matrices times `alpha`."""

    def addmv(self, mat: _TensorLike, vec: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """A vector times `beta`, plus a matrix-vector product times `alpha`."""

    def addmv_(self, mat: _TensorLike, vec: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """A vector times `beta`, plus a matrix-vector product times `alpha`."""

    def all(self, axis: _Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """Test whether all elements are true.

        Arguments:
            self: a tensor, an array or a number; no gradient flows to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            none: the result is piecewise constant.

        Example:
            >>> import viewgrad as vg
            >>> vg.all(vg.Tensor([[0.7, -0.8, -1.2, 1.3], [1.3, 1.2, 0.7, 1.7], [-1.0, -0.4, 0.9, 0.0]]))
            Tensor(False)
        """

    def allclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Return whether all elements are nearly equal."""

    def angle(self) -> Tensor:
        """The arguments of complex numbers; 0 or pi for real ones. Gradient 0 at 0."""

    def any(self, axis: _Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """Test whether any element is true.

        Arguments:
            self: a tensor, an array or a number; no gradient flows to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            none: the result is piecewise constant.

        Example:
            >>> import viewgrad as vg
            >>> vg.any(vg.Tensor([[-0.1, -0.5, 1.0, 1.5], [-0.1, 1.1, -0.0, 0.9], [1.4, -1.3, 0.1, 0.9]]))
            Tensor(True)
        """

    def append(self, values: Any, axis: int | None = None) -> Tensor:
        """Append values along `axis`, or to the flattened tensor."""

    def arccos(self) -> Tensor:
        """The inverse of the cosine."""

    def arccos_(self) -> Tensor:
        """The inverse of the cosine."""

    def arccosh(self) -> Tensor:
        """The inverse of cosh."""

    def arccosh_(self) -> Tensor:
        """The inverse of cosh."""

    def arcsin(self) -> Tensor:
        """The inverse of the sine."""

    def arcsin_(self) -> Tensor:
        """The inverse of the sine."""

    def arcsinh(self) -> Tensor:
        """The inverse of sinh."""

    def arcsinh_(self) -> Tensor:
        """The inverse of sinh."""

    def arctan(self) -> Tensor:
        """The inverse of the tangent."""

    def arctan2(self, other: _TensorLike) -> Tensor:
        """The angle of the point (other, self); gradient 0 at the origin."""

    def arctan2_(self, other: _TensorLike) -> Tensor:
        """The angle of the point (other, self); gradient 0 at the origin."""

    def arctan_(self) -> Tensor:
        """The inverse of the tangent."""

    def arctanh(self) -> Tensor:
        """The inverse of tanh."""

    def arctanh_(self) -> Tensor:
        """The inverse of tanh."""

    def argmax(self, axis: _Axis = None, out: Any = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The indices of the maximum values along `axis`, or of all elements; of equal values, the first.

        Arguments:
            self: a tensor, an array or a number; no gradient flows to it.
            axis: the dimension to operate along; None for the flattened tensor (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            none: the result is piecewise constant.

        Example:
            >>> import viewgrad as vg
            >>> vg.argmax(vg.Tensor([[0.4, 1.1, -0.5, -0.5], [1.4, 0.6, 0.2, 0.6], [1.4, 0.5, -0.3, 0.9]]))
            Tensor(4)
        """

    def argmin(self, axis: _Axis = None, out: Any = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The indices of the minimum values along `axis`, or of all elements; of equal values, the first.

        Arguments:
            self: a tensor, an array or a number; no gradient flows to it.
            axis: the dimension to operate along; None for the flattened tensor (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            none: the result is piecewise constant.

        Example:
            >>> import viewgrad as vg
            >>> vg.argmin(vg.Tensor([[0.4, 0.4, 0.1, 0.1], [-0.8, -1.3, 0.7, -1.5], [-0.7, -0.7, -0.2, -0.1]]))
            Tensor(7)
        """

    def argpartition(self, kth: Any, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The indices that partition the elements around the `kth` smallest."""

    def argsort(self, axis: _Axis = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None) -> Tensor:
        """Return the indices that sort the elements."""

    def argwhere(self) -> Tensor:
        """Return the indices of the nonzero elements, with a row for each."""

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        """Return a view of the memory of the tensor's base, given by sizes, strides and offset in elements.

        Arguments:
            size: the lengths of its dimensions.
            stride: the steps between neighbours, in elements; not negative.
            storage_offset: the start of the view, in elements from the start of the base; by default the start of `self`.

        Raises:
            ValueError: for a window that extends beyond the memory, or a base that is not in row-major order.
            ViewInPlaceError: for a view whose history is separate from that of its base.
            ForwardModeError: for a dual tensor that is only part of its base, since the tangents of other parts are
                unknown.
        """

    def astype(self, dtype: npt.DTypeLike | None, order: str = 'K', casting: str = 'unsafe', subok: bool = True, copy: bool = True) -> Tensor:
        """Return the values in another dtype."""

    def average(self, axis: _Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Tensor:
        """Return the weighted mean.

        Arguments:
            axis: the dimensions to average over; all of them if omitted.
            weights: an array with the shape of the tensor, or of the dimensions in `axis`; equal weights if omitted.
            returned: whether to return the sums of the weights as well.
            keepdims: whether to keep the reduced dimensions with length 1.
        """

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Accumulate the gradients of this tensor in the leaves that it was computed from; see `autograd.backward`."""

    def baddbmm(self, batch1: _TensorLike, batch2: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """A batch of matrices times `beta`, plus a batch of matrix products times `alpha`."""

    def baddbmm_(self, batch1: _TensorLike, batch2: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """A batch of matrices times `beta`, plus a batch of matrix products times `alpha`."""

    def beta(self, other: _TensorLike) -> Tensor:
        """The beta function."""

    def betaln(self, other: _TensorLike) -> Tensor:
        """The logarithm of the absolute value of the beta function."""

    def betaln_(self, other: _TensorLike) -> Tensor:
        """The logarithm of the absolute value of the beta function."""

    def bitwise_and(self, other: _TensorLike) -> Tensor:
        """Bitwise AND of integers or bools."""

    def bitwise_and_(self, other: _TensorLike) -> Tensor:
        """Bitwise AND of integers or bools."""

    def bitwise_count(self) -> Tensor:
        """The number of 1 bits of an integer."""

    def bitwise_or(self, other: _TensorLike) -> Tensor:
        """Bitwise OR of integers or bools."""

    def bitwise_or_(self, other: _TensorLike) -> Tensor:
        """Bitwise OR of integers or bools."""

    def bitwise_xor(self, other: _TensorLike) -> Tensor:
        """Bitwise XOR of integers or bools."""

    def bitwise_xor_(self, other: _TensorLike) -> Tensor:
        """Bitwise XOR of integers or bools."""

    def broadcast_to(self, shape: int | tuple[int, ...]) -> Tensor:
        """Return a view broadcast to `shape`."""

    def byteswap(self, *args: Any, **kwargs: Any) -> Tensor:
        """Call `numpy.ndarray.byteswap` on the values of a tensor without history."""

    def cbrt(self) -> Tensor:
        """The cube root; infinite gradient at 0."""

    def cbrt_(self) -> Tensor:
        """The cube root; infinite gradient at 0."""

    def ceil(self) -> Tensor:
        """The ceiling: the smallest integer not less than the value; gradient 0."""

    def ceil_(self) -> Tensor:
        """The ceiling: the smallest integer not less than the value; gradient 0."""

    def celu(self, alpha: float = 1.0) -> Tensor:
        """The value if it is positive, alpha * (exp(value / alpha) - 1) otherwise."""

    def celu_(self, alpha: float = 1.0) -> Tensor:
        """The value if it is positive, alpha * (exp(value / alpha) - 1) otherwise."""

    def cholesky(self, *, upper: bool = False) -> Tensor:
        """The triangular factors L, with L times its adjoint equal to the matrix (or, `upper`, U with its adjoint times U). Only the lower (upper) triangle is read, and has a gradient."""

    def choose(self, choices: Any, out: Any = None, mode: str = 'raise') -> Tensor:
        """Return, for each element, the value from the choice selected by the integers `a`."""

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Return at most `chunks` consecutive pieces of dimension `dim`, of equal length except the last."""

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """The values limited to the interval from `min` to `max`; at a bound the gradient is that of the value."""

    def clip_(self, min: _TensorLike | None = None, max: _TensorLike | None = None) -> Tensor:
        """The values limited to the interval from `min` to `max`; at a bound the gradient is that of the value."""

    def clone(self) -> Tensor:
        """A copy with the same history."""

    def compress(self, condition: Any, axis: _Axis = None, out: Any = None) -> Tensor:
        """Return the slices along `axis` where the one-dimensional condition is true."""

    def conj(self) -> Tensor:
        """Return the complex conjugate; a real tensor is returned unchanged, as in NumPy."""

    def conj_(self) -> Tensor:
        """The complex conjugate."""

    def conjugate(self) -> Tensor:
        """Return the complex conjugate; a real tensor is returned unchanged, as in NumPy."""

    def contiguous(self) -> Tensor:
        """Return the tensor itself if it is in row-major order, otherwise a copy in that order."""

    def convolve(self, v: _TensorLike, mode: str = 'full') -> Tensor:
        """The convolution of two vectors; `mode` is "full", "same" or "valid"."""

    def copy(self, order: str = 'C') -> Tensor:
        """Return a copy with the same history, by default in row-major order."""

    def copy_(self, src: Any) -> Tensor:
        """Overwrite the tensor with `src`, broadcast and cast as in a NumPy assignment."""

    def copy_where_(self, src: Any, mask: Any) -> Tensor:
        """Write `src` to the elements selected by the bool array `mask`, which is broadcast."""

    def copysign(self, other: _TensorLike) -> Tensor:
        """The magnitude of the first argument with the sign of the second; gradient 0 at 0."""

    def copysign_(self, other: _TensorLike) -> Tensor:
        """The magnitude of the first argument with the sign of the second; gradient 0 at 0."""

    def corrcoef(self, *, rowvar: bool = True) -> Tensor:
        """Return the correlation matrix of variables in rows, or in columns unless `rowvar`."""

    def correlate(self, v: _TensorLike, mode: str = 'valid') -> Tensor:
        """The cross-correlation of two vectors; the second is conjugated."""

    def cos(self) -> Tensor:
        """The cosine of an angle in radians."""

    def cos_(self) -> Tensor:
        """The cosine of an angle in radians."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """The hyperbolic cosine."""

    def count_nonzero(self, axis: _Axis = None, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """The number of elements that are not 0."""

    def cov(self, *, rowvar: bool = True, bias: bool = False, ddof: float | None = None) -> Tensor:
        """The covariance matrix of variables in rows (in columns, unless `rowvar`)."""

    def cross(self, other: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The cross products of vectors of length 3."""

    def cummax(self, axis: _Axis = -1, *, dim: _Axis | None = None) -> tuple[Tensor, Tensor]:
        """The running maxima along a dimension, and their indices; of equal values the last one gets the gradient."""

    def cummin(self, axis: _Axis = -1, *, dim: _Axis | None = None) -> tuple[Tensor, Tensor]:
        """The running minima along a dimension, and their indices; of equal values the last one gets the gradient."""

    def cumprod(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
        """The cumulative products along `axis`, or of the flattened tensor; the gradient is exact even if some elements are 0.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along; None for the flattened tensor (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            dim: alias of `axis`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `cumprod_gradient(grad, self, result, axis)`

        Example:
            >>> import viewgrad as vg
            >>> vg.cumprod(vg.Tensor([[0.8, 0.6, 0.5, 0.9], [1.2, 0.7, 1.4, 1.0], [1.1, 1.4, 1.3, 0.8], [0.5, 0.9, 1.2, 1.0]]))
            Tensor([0.8       , 0.48      , 0.24      , 0.216     , 0.2592    ,
                    0.18144   , 0.254016  , 0.254016  , 0.2794176 , 0.39118464,
                    0.50854003, 0.40683203, 0.20341601, 0.18307441, 0.21968929,
                    0.21968929])
        """

    def cumsum(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
        """The cumulative sums along `axis`, or of the flattened tensor.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along; None for the flattened tensor (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            dim: alias of `axis`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `reversed_cumsum(grad, axis).reshape(self.shape)`

        Example:
            >>> import viewgrad as vg
            >>> vg.cumsum(vg.Tensor([[0.4, -0.9, -0.6, -0.1], [-1.3, -0.5, 0.5, -0.1], [-0.8, -0.4, -2.1, 0.5]]))
            Tensor([ 0.4, -0.5, -1.1, -1.2, -2.5, -3. , -2.5, -2.6, -3.4, -3.8, -5.9,
                    -5.4])
        """

    def dawsn(self) -> Tensor:
        """Dawson's integral."""

    def dawsn_(self) -> Tensor:
        """Dawson's integral."""

    def deg2rad(self) -> Tensor:
        """Degrees converted to radians."""

    def deg2rad_(self) -> Tensor:
        """Degrees converted to radians."""

    def det(self) -> Tensor:
        """The determinants of square matrices; differentiable at singular matrices too."""

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """Matrices of zeros with the last dimension on a diagonal."""

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return a view of the diagonals over two dimensions, as the last dimension."""

    def diff(self, n: int | None = 1, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The `n`-th discrete differences along a dimension."""

    def digamma(self) -> Tensor:
        """The derivative of `gammaln`."""

    def digamma_(self) -> Tensor:
        """The derivative of `gammaln`."""

    def digitize(self, bins: _TensorLike, right: bool = False) -> Tensor:
        """The index of the bin that each value belongs to."""

    def div(self, other: _TensorLike) -> Tensor:
        """The quotient."""

    def div_(self, other: _TensorLike) -> Tensor:
        """The quotient."""

    def dot(self, other: Any) -> Tensor:
        """The dot product: the sum over the last dimension of the first and the second-to-last of the second."""

    def dump(self, *args: Any, **kwargs: Any) -> None:
        """Call `numpy.ndarray.dump` on the values of a tensor without history."""

    def dumps(self, *args: Any, **kwargs: Any) -> bytes:
        """Call `numpy.ndarray.dumps` on the values of a tensor without history."""

    def ediff1d(self) -> Tensor:
        """Return the differences of neighbours in the flattened tensor."""

    def eig(self) -> tuple[Tensor, Tensor]:
        """The eigenvalues and normalized eigenvectors of square matrices."""

    def eigh(self, UPLO: str = 'L') -> tuple[Tensor, Tensor]:
        """The eigenvalues, in ascending order, and eigenvectors of symmetric or Hermitian matrices. Only one triangle, the lower or the upper, is read and has a gradient."""

    def eigvals(self) -> Tensor:
        """The eigenvalues of square matrices."""

    def eigvalsh(self, UPLO: str = 'L') -> Tensor:
        """The eigenvalues, in ascending order, of symmetric or Hermitian matrices; only one triangle is read."""

    def ellipe(self) -> Tensor:
        """The complete elliptic integral of the second kind."""

    def ellipe_(self) -> Tensor:
        """The complete elliptic integral of the second kind."""

    def ellipk(self) -> Tensor:
        """The complete elliptic integral of the first kind."""

    def ellipk_(self) -> Tensor:
        """The complete elliptic integral of the first kind."""

    def elu(self, alpha: float = 1.0) -> Tensor:
        """The value if it is positive, alpha * (exp(value) - 1) otherwise; at 0 the gradient from below."""

    def elu_(self, alpha: float = 1.0) -> Tensor:
        """The value if it is positive, alpha * (exp(value) - 1) otherwise; at 0 the gradient from below."""

    def entr(self) -> Tensor:
        """-value * log(value), and 0 at 0; infinite gradient at 0."""

    def entr_(self) -> Tensor:
        """-value * log(value), and 0 at 0; infinite gradient at 0."""

    def equal(self, other: _TensorLike) -> Tensor:
        """Test whether the values are equal."""

    def erf(self) -> Tensor:
        """The error function."""

    def erf_(self) -> Tensor:
        """The error function."""

    def erfc(self) -> Tensor:
        """1 - erf(value)."""

    def erfc_(self) -> Tensor:
        """1 - erf(value)."""

    def erfcinv(self) -> Tensor:
        """The inverse of erfc."""

    def erfcinv_(self) -> Tensor:
        """The inverse of erfc."""

    def erfcx(self) -> Tensor:
        """exp(value**2) * erfc(value)."""

    def erfcx_(self) -> Tensor:
        """exp(value**2) * erfc(value)."""

    def erfi(self) -> Tensor:
        """The imaginary error function."""

    def erfi_(self) -> Tensor:
        """The imaginary error function."""

    def erfinv(self) -> Tensor:
        """The inverse of `erf`."""

    def erfinv_(self) -> Tensor:
        """The inverse of `erf`."""

    def exp(self) -> Tensor:
        """The exponential."""

    def exp1(self) -> Tensor:
        """The exponential integral E1."""

    def exp1_(self) -> Tensor:
        """The exponential integral E1."""

    def exp2(self) -> Tensor:
        """Two to the power of the value."""

    def exp2_(self) -> Tensor:
        """Two to the power of the value."""

    def exp_(self) -> Tensor:
        """The exponential."""

    def expand(self, *sizes: Any) -> Tensor:
        """Return a view with dimensions of length 1 repeated and new dimensions added in front; -1 keeps a length."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Return a view broadcast to the shape of `other`."""

    def expi(self) -> Tensor:
        """The exponential integral Ei."""

    def expi_(self) -> Tensor:
        """The exponential integral Ei."""

    def expit(self) -> Tensor:
        """1 / (1 + exp(-value))."""

    def expit_(self) -> Tensor:
        """1 / (1 + exp(-value))."""

    def expm1(self) -> Tensor:
        """exp(self) - 1, accurate also near 0."""

    def expm1_(self) -> Tensor:
        """exp(self) - 1, accurate also near 0."""

    def fabs(self) -> Tensor:
        """The absolute value of real numbers; gradient 0 at 0."""

    def fabs_(self) -> Tensor:
        """The absolute value of real numbers; gradient 0 at 0."""

    def fill(self, value: Any) -> None:
        """Write `value` to every element, in place."""

    def fill_(self, value: Any) -> Tensor:
        """Write one value to every element."""

    def fill_diagonal(self, val: Any, wrap: bool = False) -> None:
        """Fill the main diagonal in place with a value, or with several values that are repeated."""

    def flatnonzero(self) -> Tensor:
        """Return the indices of the nonzero elements in the flattened tensor."""

    def flatten(self, *args: Any, **kwargs: Any) -> Tensor:
        """Flatten the tensor, or its dimensions from `start_dim` to `end_dim`."""

    def flip(self, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """Return a view with the elements in reverse order along `axis`, or along every dimension if omitted."""

    def fliplr(self) -> Tensor:
        """Return a view with the second dimension in reverse order."""

    def flipud(self) -> Tensor:
        """Return a view with the first dimension in reverse order."""

    def floor(self) -> Tensor:
        """The floor: the largest integer not greater than the value; gradient 0."""

    def floor_(self) -> Tensor:
        """The floor: the largest integer not greater than the value; gradient 0."""

    def floor_divide(self, other: _TensorLike) -> Tensor:
        """The floor of the quotient; gradient 0."""

    def floor_divide_(self, other: _TensorLike) -> Tensor:
        """The floor of the quotient; gradient 0."""

    def fmax(self, other: _TensorLike) -> Tensor:
        """The element-wise maximum, ignoring NaN; the gradient flows to the first of equal values."""

    def fmax_(self, other: _TensorLike) -> Tensor:
        """The element-wise maximum, ignoring NaN; the gradient flows to the first of equal values."""

    def fmin(self, other: _TensorLike) -> Tensor:
        """The element-wise minimum, ignoring NaN; the gradient flows to the first of equal values."""

    def fmin_(self, other: _TensorLike) -> Tensor:
        """The element-wise minimum, ignoring NaN; the gradient flows to the first of equal values."""

    def fmod(self, other: _TensorLike) -> Tensor:
        """The remainder of division with the sign of the dividend; at jumps a one-sided gradient."""

    def fmod_(self, other: _TensorLike) -> Tensor:
        """The remainder of division with the sign of the dividend; at jumps a one-sided gradient."""

    def gamma(self) -> Tensor:
        """The gamma function."""

    def gamma_(self) -> Tensor:
        """The gamma function."""

    def gammaln(self) -> Tensor:
        """The logarithm of the absolute value of `gamma`."""

    def gammaln_(self) -> Tensor:
        """The logarithm of the absolute value of `gamma`."""

    def gammasgn(self) -> Tensor:
        """The sign of the gamma function."""

    def gammasgn_(self) -> Tensor:
        """The sign of the gamma function."""

    def gcd(self, other: _TensorLike) -> Tensor:
        """The greatest common divisor of integers."""

    def gelu(self, *, approximate: str = 'none') -> Tensor:
        """The value times its standard normal distribution function; `approximate='tanh'` uses an approximation."""

    def gelu_(self, *, approximate: str = 'none') -> Tensor:
        """The value times its standard normal distribution function; `approximate='tanh'` uses an approximation."""

    def getfield(self, *args: Any, **kwargs: Any) -> Tensor:
        """Call `numpy.ndarray.getfield` on the values of a tensor without history."""

    def greater(self, other: _TensorLike) -> Tensor:
        """Test whether the first value is greater than the second."""

    def greater_equal(self, other: _TensorLike) -> Tensor:
        """Test whether the first value is greater than or equal to the second."""

    def hardshrink(self, lambd: float = 0.5) -> Tensor:
        """The value, or 0 if its magnitude is at most `lambd`; gradient 0 at the jumps."""

    def hardshrink_(self, lambd: float = 0.5) -> Tensor:
        """The value, or 0 if its magnitude is at most `lambd`; gradient 0 at the jumps."""

    def hardsigmoid(self) -> Tensor:
        """The piecewise linear sigmoid: 0 up to -3, 1 from 3; gradient 0 at the kinks."""

    def hardsigmoid_(self) -> Tensor:
        """The piecewise linear sigmoid: 0 up to -3, 1 from 3; gradient 0 at the kinks."""

    def hardswish(self) -> Tensor:
        """The value times hardsigmoid(value); one-sided gradients at the kinks."""

    def hardswish_(self) -> Tensor:
        """The value times hardsigmoid(value); one-sided gradients at the kinks."""

    def hardtanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
        """The value limited to the interval from `min_val` to `max_val`; gradient 0 at the bounds."""

    def hardtanh_(self, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
        """The value limited to the interval from `min_val` to `max_val`; gradient 0 at the bounds."""

    def heaviside(self, other: _TensorLike) -> Tensor:
        """The step function: 0 for negative values, 1 for positive ones, the second argument at 0. Gradient 0 for the first."""

    def heaviside_(self, other: _TensorLike) -> Tensor:
        """The step function: 0 for negative values, 1 for positive ones, the second argument at 0. Gradient 0 for the first."""

    def hypot(self, other: _TensorLike) -> Tensor:
        """The hypotenuse sqrt(self**2 + other**2); gradient 0 at the origin."""

    def hypot_(self, other: _TensorLike) -> Tensor:
        """The hypotenuse sqrt(self**2 + other**2); gradient 0 at the origin."""

    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""

    def i0_(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""

    def i0e(self) -> Tensor:
        """exp(-abs(value)) * i0(value); at 0 the mean of the one-sided gradients."""

    def i0e_(self) -> Tensor:
        """exp(-abs(value)) * i0(value); at 0 the mean of the one-sided gradients."""

    def i1(self) -> Tensor:
        """The modified Bessel function of the first kind of order 1."""

    def i1_(self) -> Tensor:
        """The modified Bessel function of the first kind of order 1."""

    def i1e(self) -> Tensor:
        """exp(-abs(value)) * i1(value); at 0 the mean of the one-sided gradients."""

    def i1e_(self) -> Tensor:
        """exp(-abs(value)) * i1(value); at 0 the mean of the one-sided gradients."""

    def index_accumulate_(self, index: Any, values: Any) -> Tensor:
        """Add `values` to `self[index]`; repeated elements receive all of their values."""

    def index_add(self, axis: _Axis, index: _TensorLike, source: _TensorLike, *, dim: _Axis | None = None) -> Tensor:
        """The tensor with the slices of `source` added at `index` along `axis`."""

    def index_add_(self, axis: int, index: Any, source: Any) -> Tensor:
        """Add the slices of `source` at `index` along `axis`, in place, at a cost proportional to the size of `source`."""

    def inner(self, other: Any) -> Tensor:
        """Return the inner product over the last dimension of both tensors."""

    def interp(self, xp: _TensorLike, fp: _TensorLike, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
        """The piecewise linear interpolant of the values `fp` at the increasing points `xp`, constant outside; at a knot the gradient is that of the segment to the right."""

    def inv(self) -> Tensor:
        """The inverses of square matrices."""

    def invert(self) -> Tensor:
        """Bitwise NOT of integers or bools."""

    def invert_(self) -> Tensor:
        """Bitwise NOT of integers or bools."""

    def isclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
        """Return whether elements are nearly equal, elementwise."""

    def isfinite(self) -> Tensor:
        """Test whether the value is finite."""

    def isin(self, test_elements: _TensorLike, *, invert: bool = False) -> Tensor:
        """Test whether each value is among the given values."""

    def isinf(self) -> Tensor:
        """Test whether the value is infinite."""

    def isnan(self) -> Tensor:
        """Test whether the value is NaN."""

    def j0(self) -> Tensor:
        """The Bessel function of the first kind of order 0."""

    def j0_(self) -> Tensor:
        """The Bessel function of the first kind of order 0."""

    def j1(self) -> Tensor:
        """The Bessel function of the first kind of order 1."""

    def j1_(self) -> Tensor:
        """The Bessel function of the first kind of order 1."""

    def k0(self) -> Tensor:
        """The modified Bessel function of the second kind of order 0."""

    def k0_(self) -> Tensor:
        """The modified Bessel function of the second kind of order 0."""

    def k1(self) -> Tensor:
        """The modified Bessel function of the second kind of order 1."""

    def k1_(self) -> Tensor:
        """The modified Bessel function of the second kind of order 1."""

    def kron(self, b: _TensorLike) -> Tensor:
        """The Kronecker product."""

    def kthvalue(self, k: int, axis: _Axis = -1, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> tuple[Tensor, Tensor]:
        """The `k`-th smallest value along a dimension, counted from 1, which receives the gradient, and its index."""

    def lcm(self, other: _TensorLike) -> Tensor:
        """The least common multiple of integers."""

    def leaky_relu(self, negative_slope: float = 0.01) -> Tensor:
        """The value if it is positive, a small multiple of it otherwise; at 0 the gradient from below."""

    def leaky_relu_(self, negative_slope: float = 0.01) -> Tensor:
        """The value if it is positive, a small multiple of it otherwise; at 0 the gradient from below."""

    def left_shift(self, other: _TensorLike) -> Tensor:
        """Integers shifted to the left."""

    def left_shift_(self, other: _TensorLike) -> Tensor:
        """Integers shifted to the left."""

    def lerp(self, end: _TensorLike, weight: _TensorLike) -> Tensor:
        """The linear interpolation self + weight * (end - self)."""

    def lerp_(self, end: _TensorLike, weight: _TensorLike) -> Tensor:
        """The linear interpolation self + weight * (end - self)."""

    def less(self, other: _TensorLike) -> Tensor:
        """Test whether the first value is less than the second."""

    def less_equal(self, other: _TensorLike) -> Tensor:
        """Test whether the first value is less than or equal to the second."""

    def linear_scan(self, coefficients: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The recurrence `y[i] = self[i] + coefficients[i] * y[i - 1]` along `axis`, from `y[0] = self[0]`."""

    def log(self) -> Tensor:
        """The natural logarithm."""

    def log10(self) -> Tensor:
        """The logarithm to base 10."""

    def log10_(self) -> Tensor:
        """The logarithm to base 10."""

    def log1p(self) -> Tensor:
        """log(1 + self), accurate also near 0."""

    def log1p_(self) -> Tensor:
        """log(1 + self), accurate also near 0."""

    def log2(self) -> Tensor:
        """The logarithm to base 2."""

    def log2_(self) -> Tensor:
        """The logarithm to base 2."""

    def log_(self) -> Tensor:
        """The natural logarithm."""

    def log_expit(self) -> Tensor:
        """The logarithm of `expit`."""

    def log_expit_(self) -> Tensor:
        """The logarithm of `expit`."""

    def log_ndtr(self) -> Tensor:
        """The logarithm of `ndtr`, accurate also for small values."""

    def log_ndtr_(self) -> Tensor:
        """The logarithm of `ndtr`, accurate also for small values."""

    def log_softmax(self, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The logarithms of `softmax`."""

    def logaddexp(self, other: _TensorLike) -> Tensor:
        """log(exp(self) + exp(other))."""

    def logaddexp2(self, other: _TensorLike) -> Tensor:
        """log2(2**self + 2**other)."""

    def logaddexp2_(self, other: _TensorLike) -> Tensor:
        """log2(2**self + 2**other)."""

    def logaddexp_(self, other: _TensorLike) -> Tensor:
        """log(exp(self) + exp(other))."""

    def logical_and(self, other: _TensorLike) -> Tensor:
        """Logical AND."""

    def logical_not(self) -> Tensor:
        """Logical NOT."""

    def logical_or(self, other: _TensorLike) -> Tensor:
        """Logical OR."""

    def logical_xor(self, other: _TensorLike) -> Tensor:
        """Logical exclusive OR."""

    def logit(self) -> Tensor:
        """The inverse of `expit`."""

    def logit_(self) -> Tensor:
        """The inverse of `expit`."""

    def logsigmoid(self) -> Tensor:
        """log(sigmoid(value))."""

    def logsigmoid_(self) -> Tensor:
        """log(sigmoid(value))."""

    def logsumexp(self, axis: _Axis = None, keepdims: bool = False, b: _TensorLike | None = None, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """log(sum(b * exp(self))), without overflow; `b` is 1 if omitted."""

    def lstsq(self, b: _TensorLike, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The least-squares solutions of systems of linear equations, the sums of squared residuals (empty unless the matrix has full rank and more rows than columns), the rank and the singular values of the matrix."""

    def masked_fill(self, mask: _TensorLike, value: _TensorLike) -> Tensor:
        """The tensor with `value` where the mask is true."""

    def masked_fill_(self, mask: _TensorLike, value: _TensorLike) -> Tensor:
        """The tensor with `value` where the mask is true."""

    def matmul(self, other: _TensorLike) -> Tensor:
        """The matrix product over the last two dimensions."""

    def matrix_exp(self) -> Tensor:
        """The exponentials of square matrices."""

    def matrix_power(self, n: int | None) -> Tensor:
        """The matrices raised to an integer power."""

    def matrix_rank(self, tol: Any = None, hermitian: bool = False, rtol: Any = None) -> Tensor:
        """The number of singular values above a tolerance."""

    def max(self, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The maximum of all elements, or of those along `axis`; ties share the gradient equally.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            initial: the starting value (default: None).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `expand_reduced(grad, self.shape, axis, keepdims) * tie_shares(self, result, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.max(vg.Tensor([[0.3, 0.3, 0.4, 0.2], [0.5, -0.0, -0.4, 0.3], [0.2, 1.2, -1.1, -1.1]]))
            Tensor(1.2)
        """

    def maximum(self, other: _TensorLike) -> Tensor:
        """The element-wise maximum; if the values are equal, each gets half of the gradient."""

    def maximum_(self, other: _TensorLike) -> Tensor:
        """The element-wise maximum; if the values are equal, each gets half of the gradient."""

    def mean(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The arithmetic mean of all elements, or of those along `axis`.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `expand_reduced(grad / reduced_count(self.shape, axis), self.shape, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.mean(vg.Tensor([[0.2, -0.0, -0.0, -0.0], [2.0, 0.7, -0.2, 0.2], [-0.7, 0.3, -2.6, 1.4]]))
            Tensor(0.10833333)
        """

    def median(self, axis: _Axis = None, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """The median; of equal values those in the middle positions get the gradient."""

    def min(self, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The minimum of all elements, or of those along `axis`; ties share the gradient equally.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            initial: the starting value (default: None).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `expand_reduced(grad, self.shape, axis, keepdims) * tie_shares(self, result, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.min(vg.Tensor([[-0.6, -0.1, 0.7, -0.2], [-1.0, -1.0, -0.4, 0.4], [-0.7, 0.6, 0.2, -0.5]]))
            Tensor(-1.)
        """

    def minimum(self, other: _TensorLike) -> Tensor:
        """The element-wise minimum; if the values are equal, each gets half of the gradient."""

    def minimum_(self, other: _TensorLike) -> Tensor:
        """The element-wise minimum; if the values are equal, each gets half of the gradient."""

    def mish(self) -> Tensor:
        """The value times tanh(softplus(value))."""

    def mish_(self) -> Tensor:
        """The value times tanh(softplus(value))."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Return a view with dimensions moved to other positions; the others keep their order."""

    def mul(self, other: _TensorLike) -> Tensor:
        """The product."""

    def mul_(self, other: _TensorLike) -> Tensor:
        """The product."""

    def nan_to_num(self, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
        """The values with NaN and infinities replaced; the gradient of these is 0."""

    def nan_to_num_(self, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
        """The values with NaN and infinities replaced; the gradient of these is 0."""

    def nanargmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the maximum, ignoring NaN."""

    def nanargmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the minimum, ignoring NaN."""

    def nancumprod(self, axis: int | None = None, dtype: npt.DTypeLike | None = None) -> Tensor:
        """Return the cumulative product, treating NaN as 1."""

    def nancumsum(self, axis: int | None = None, dtype: npt.DTypeLike | None = None) -> Tensor:
        """Return the cumulative sum, treating NaN as 0."""

    def nanmax(self, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The maximum, ignoring NaN."""

    def nanmean(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The mean, ignoring NaN.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `masked_fill(expand_reduced(grad, self.shape, axis, keepdims) / counts_beside(self, axis), isnan(self), 0)`

        Example:
            >>> import viewgrad as vg
            >>> vg.nanmean(vg.Tensor([[-0.4, -0.6, -0.3, -1.2], [-1.2, 0.1, 0.3, 0.7], [-1.5, -0.4, -1.5, 0.9]]))
            Tensor(-0.425)
        """

    def nanmedian(self, axis: _Axis = None, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """The median, ignoring NaN; of equal values those in the middle positions get the gradient."""

    def nanmin(self, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The minimum, ignoring NaN."""

    def nanpercentile(self, q: Any, axis: _Axis = None, keepdims: bool = False, *, method: str = 'linear') -> Tensor:
        """Return the percentiles of the values, ignoring NaN."""

    def nanprod(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The product, ignoring NaN."""

    def nanquantile(self, q: Any, axis: _Axis = None, keepdims: bool = False, *, method: str = 'linear', dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """The quantiles, ignoring NaN; of equal values those at the positions of the quantile get the gradient."""

    def nanstd(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The standard deviation, ignoring NaN."""

    def nansum(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The sum, ignoring NaN.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            initial: the starting value (default: None).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `masked_fill(expand_reduced(grad, self.shape, axis, keepdims), isnan(self), 0)`

        Example:
            >>> import viewgrad as vg
            >>> vg.nansum(vg.Tensor([[-0.3, -1.7, 1.2, 1.4], [0.6, 0.1, -0.9, -0.4], [-0.4, -1.2, -1.5, 1.0]]))
            Tensor(-2.1)
        """

    def nanvar(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The variance, ignoring NaN."""

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        """Return the `length` slices from `start` of dimension `dim`."""

    def ndtr(self) -> Tensor:
        """The standard normal cumulative distribution function."""

    def ndtr_(self) -> Tensor:
        """The standard normal cumulative distribution function."""

    def ndtri(self) -> Tensor:
        """The inverse of `ndtr`."""

    def ndtri_(self) -> Tensor:
        """The inverse of `ndtr`."""

    def neg(self) -> Tensor:
        """The negative value."""

    def neg_(self) -> Tensor:
        """The negative value."""

    def nextafter(self, other: _TensorLike) -> Tensor:
        """The next floating-point number after the first argument towards the second; differentiated as the identity."""

    def nextafter_(self, other: _TensorLike) -> Tensor:
        """The next floating-point number after the first argument towards the second; differentiated as the identity."""

    def nonzero(self) -> tuple[Tensor, ...]:
        """Return the indices of the nonzero elements, one tensor for each dimension."""

    def norm(self, ord: Any = None, axis: _Axis = None, keepdims: bool = False) -> Tensor:
        """Return the norm of a vector or matrix, as in `numpy.linalg.norm`; its gradient at 0 is 0.

        Arguments:
            ord: the order; by default the square root of the sum of squares.
            axis: one dimension for vector norms, two for matrix norms, or None for the whole tensor.
            keepdims: whether to keep the reduced dimensions with length 1.
        """

    def not_equal(self, other: _TensorLike) -> Tensor:
        """Test whether the values differ."""

    def one_hot(self, num_classes: int = -1) -> Tensor:
        """The one-hot encoding of integers."""

    def outer(self, other: _TensorLike) -> Tensor:
        """The outer product of two vectors."""

    def pad(self, pad_width: Any, mode: str = 'constant', constant_values: Any = 0) -> Tensor:
        """The tensor padded with constants, or (`edge`, `reflect`, `symmetric`, `wrap`) with its own elements."""

    def partition(self, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Partition the elements around the `kth` smallest, in place."""

    def percentile(self, q: Any, axis: _Axis = None, keepdims: bool = False, *, method: str = 'linear') -> Tensor:
        """Return the percentiles of the values."""

    def permute(self, *dims: Any) -> Tensor:
        """Return a view with the dimensions in the given order."""

    def pinv(self, rcond: Any = None) -> Tensor:
        """The Moore-Penrose pseudo-inverses. Differentiable where the rank is locally constant."""

    def positive(self) -> Tensor:
        """A copy of the value."""

    def positive_(self) -> Tensor:
        """A copy of the value."""

    def pow(self, exponent: _TensorLike) -> Tensor:
        """The power; at base 0 the gradient of a non-negative exponent is 0."""

    def pow_(self, exponent: _TensorLike) -> Tensor:
        """The power; at base 0 the gradient of a non-negative exponent is 0."""

    def prod(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The product of all elements, or of those along `axis`; its gradient is exact even if some elements are 0.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            initial: the starting value (default: None).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `times_reduced(conj(products_of_others(self, axis)), grad, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.prod(vg.Tensor([[0.6, 0.5, 0.6, 0.6], [1.0, 1.1, 1.1, 0.8], [1.2, 1.1, 1.4, 0.6], [1.0, 0.8, 1.0, 1.0]]))
            Tensor(0.09273471)
        """

    def ptp(self, axis: _Axis = None, keepdims: bool = False, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The range (maximum - minimum) of the values; ties share the gradient."""

    def put(self, ind: Any, v: Any, mode: str = 'raise') -> None:
        """Write values at indices into the flattened tensor, in place."""

    def qr(self, mode: str = 'reduced') -> tuple[Tensor, Tensor]:
        """Matrices with orthonormal columns Q and upper triangular R, with Q @ R equal to the matrix. Differentiable where the first columns are linearly independent."""

    def quantile(self, q: Any, axis: _Axis = None, keepdims: bool = False, *, method: str = 'linear', dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """The quantiles; of equal values those at the positions of the quantile get the gradient."""

    def rad2deg(self) -> Tensor:
        """Radians converted to degrees."""

    def rad2deg_(self) -> Tensor:
        """Radians converted to degrees."""

    def ravel(self, order: str = 'C') -> Tensor:
        """Return the elements as a one-dimensional tensor, as a view whenever NumPy's result is one."""

    def reciprocal(self) -> Tensor:
        """1 / value."""

    def reciprocal_(self) -> Tensor:
        """1 / value."""

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` whenever the gradient of this tensor's current value has been computed.

        Hooks run in the order of their registration; each receives the result of the previous one.

        Arguments:
            hook: a function that receives the gradient and returns a replacement of the same shape and dtype, or None.

        Returns:
            A handle whose `remove()` removes the hook.

        Raises:
            DifferentiabilityError: for a tensor that does not require grad.

        Example:
            >>> import viewgrad as vg
            >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
            >>> y = x * 3
            >>> handle = y.register_hook(lambda grad: grad * 10)
            >>> y.sum().backward()
            >>> x.grad
            Tensor([30., 30.])
        """

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` whenever a backward pass has added to this leaf's `grad`.

        Arguments:
            hook: a function that receives the leaf; it may use, modify or reset the leaf's `grad`.

        Returns:
            A handle whose `remove()` removes the hook.

        Raises:
            HookError: for a tensor that is not a leaf.
            DifferentiabilityError: for a tensor that does not require grad.

        Example:
            >>> import viewgrad as vg
            >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
            >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
            >>> (x * x).sum().backward()
            Tensor([2., 4.])
        """

    def rel_entr(self, other: _TensorLike) -> Tensor:
        """self * log(self / other), the terms of the relative entropy; 0 with gradient 0 if both are 0."""

    def rel_entr_(self, other: _TensorLike) -> Tensor:
        """self * log(self / other), the terms of the relative entropy; 0 with gradient 0 if both are 0."""

    def relu(self) -> Tensor:
        """max(value, 0); gradient 0 at 0."""

    def relu6(self) -> Tensor:
        """The value limited to the interval from 0 to 6; gradient 0 at the bounds."""

    def relu6_(self) -> Tensor:
        """The value limited to the interval from 0 to 6; gradient 0 at the bounds."""

    def relu_(self) -> Tensor:
        """max(value, 0); gradient 0 at 0."""

    def remainder(self, other: _TensorLike) -> Tensor:
        """The remainder of division with the sign of the divisor; at jumps a one-sided gradient."""

    def remainder_(self, other: _TensorLike) -> Tensor:
        """The remainder of division with the sign of the divisor; at jumps a one-sided gradient."""

    def repeat(self, repeats: _TensorLike, axis: _Axis = None, *, dim: _Axis | None = None) -> Tensor:
        """Each element, or each slice along `axis`, repeated."""

    def reshape(self, *shape: Any, order: str = 'C', copy: bool | None = None) -> Tensor:
        """Return the elements in another shape, as a view whenever NumPy's result is one."""

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Change the shape in place, padding with zeros, if no other tensor uses the memory."""

    def retain_grad(self) -> None:
        """Accumulate gradients in this tensor's `grad`, although it is not a leaf.

        The gradient is that of the tensor's value at the time of the pass; the tensor or its base may be written to before
        then.

        Raises:
            DifferentiabilityError: for a tensor that does not require grad.

        Example:
            >>> import viewgrad as vg
            >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
            >>> y = x * 3
            >>> y.retain_grad()
            >>> (y * y).sum().backward()
            >>> y.grad
            Tensor([ 6., 12.])
        """

    def rgamma(self) -> Tensor:
        """1 / gamma(value)."""

    def rgamma_(self) -> Tensor:
        """1 / gamma(value)."""

    def right_shift(self, other: _TensorLike) -> Tensor:
        """Integers shifted to the right."""

    def right_shift_(self, other: _TensorLike) -> Tensor:
        """Integers shifted to the right."""

    def rint(self) -> Tensor:
        """The nearest integer, ties to even; gradient 0."""

    def rint_(self) -> Tensor:
        """The nearest integer, ties to even; gradient 0."""

    def roll(self, shift: Any, axis: _Axis = None, *, dim: _Axis | None = None) -> Tensor:
        """The elements rolled along `axis`, or in the flattened tensor."""

    def rot90(self, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
        """Return a view rotated by `k` quarter turns in the plane of two dimensions, from the first to the second."""

    def round(self, decimals: int = 0) -> Tensor:
        """The value rounded to the given number of decimals; gradient 0."""

    def round_(self, decimals: int = 0) -> Tensor:
        """The value rounded to the given number of decimals; gradient 0."""

    def scatter(self, axis: _Axis, index: _TensorLike, source: _TensorLike, *, dim: _Axis | None = None) -> Tensor:
        """The tensor with `source` written at `index` along `axis`; for repeated indices the last value is used."""

    def scatter_(self, axis: int, index: Any, source: Any) -> Tensor:
        """Write `source` at `index` along `axis`, in place; the cost is proportional to the size of `source`."""

    def scatter_add(self, axis: _Axis, index: _TensorLike, source: _TensorLike, *, dim: _Axis | None = None) -> Tensor:
        """The tensor with `source` added at `index` along `axis`."""

    def scatter_add_(self, axis: int, index: Any, source: Any) -> Tensor:
        """Add `source` at `index` along `axis`, in place; the cost is proportional to the size of `source`."""

    def searchsorted(self, v: Any, side: str = 'left', sorter: Any = None) -> Tensor:
        """Return the insertion points of values in a sorted vector."""

    def select(self, dim: int, index: int) -> Tensor:
        """Return a view of the slice at `index` of dimension `dim`, without that dimension."""

    def selu(self) -> Tensor:
        """The scaled `elu` of self-normalizing networks; at 0 the gradient from below."""

    def selu_(self) -> Tensor:
        """The scaled `elu` of self-normalizing networks; at 0 the gradient from below."""

    def setfield(self, *args: Any, **kwargs: Any) -> None:
        """Raise an error, since the memory is not exposed."""

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Make a tensor read-only or writable; without effect for views, since writes to these are writes to their base.

        Arguments:
            write: whether elements may be written to; None leaves it as it is.
            align: ignored, since the memory of tensors is aligned.
            uic: ignored.
        """

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-self))."""

    def sigmoid_(self) -> Tensor:
        """1 / (1 + exp(-self))."""

    def sign(self) -> Tensor:
        """The sign: -1, 0 or 1; z / abs(z) for complex numbers; gradient 0 at 0."""

    def sign_(self) -> Tensor:
        """The sign: -1, 0 or 1; z / abs(z) for complex numbers; gradient 0 at 0."""

    def signbit(self) -> Tensor:
        """Test whether the sign bit is set."""

    def silu(self) -> Tensor:
        """The value times sigmoid(value)."""

    def silu_(self) -> Tensor:
        """The value times sigmoid(value)."""

    def sin(self) -> Tensor:
        """The sine of an angle in radians."""

    def sin_(self) -> Tensor:
        """The sine of an angle in radians."""

    def sinc(self) -> Tensor:
        """sin(pi * value) / (pi * value), and 1 at 0."""

    def sinc_(self) -> Tensor:
        """sin(pi * value) / (pi * value), and 1 at 0."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """The hyperbolic sine."""

    def slogdet(self) -> tuple[Tensor, Tensor]:
        """The signs of the determinants (numbers on the unit circle, for complex matrices), and the logarithms of their absolute values."""

    def softmax(self, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The exponentials, divided by their sum along a dimension."""

    def softplus(self, beta: float = 1.0) -> Tensor:
        """log(1 + exp(beta * self)) / beta."""

    def softplus_(self, beta: float = 1.0) -> Tensor:
        """log(1 + exp(beta * self)) / beta."""

    def softshrink(self, lambd: float = 0.5) -> Tensor:
        """The value moved towards 0 by `lambd`, or 0 if its magnitude is less; gradient 0 at the kinks."""

    def softshrink_(self, lambd: float = 0.5) -> Tensor:
        """The value moved towards 0 by `lambd`, or 0 if its magnitude is less; gradient 0 at the kinks."""

    def softsign(self) -> Tensor:
        """value / (1 + abs(value)); gradient 1 at 0."""

    def softsign_(self) -> Tensor:
        """value / (1 + abs(value)); gradient 1 at 0."""

    def solve(self, b: _TensorLike) -> Tensor:
        """The solutions x of the systems of linear equations `self @ x == b`."""

    def solve_triangular(self, b: _TensorLike, *, upper: Any, left: bool = True, unitriangular: bool = False) -> Tensor:
        """The solutions x of `self @ x == b` (`x @ self == b` unless `left`) with triangular matrices. The other triangle is not read, nor the diagonal of unitriangular matrices."""

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None) -> None:
        """Sort the elements along `axis`, in place."""

    def spacing(self) -> Tensor:
        """The distance to the nearest adjacent number; gradient 0."""

    def spacing_(self) -> Tensor:
        """The distance to the nearest adjacent number; gradient 0."""

    def split(self, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Return consecutive pieces of dimension `dim`, of a given length (the last may be shorter) or of given lengths."""

    def sqrt(self) -> Tensor:
        """The square root; infinite gradient at 0."""

    def sqrt_(self) -> Tensor:
        """The square root; infinite gradient at 0."""

    def square(self) -> Tensor:
        """The square of the value."""

    def square_(self) -> Tensor:
        """The square of the value."""

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """Return a view without the dimensions of length 1, or without the given ones."""

    def std(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The standard deviation; gradient 0 if it is 0, or if all values are equal.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            ddof: the number subtracted from the number of elements to get the divisor (default: 0).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            where: a mask of the elements to include (default: True).
            mean: the mean, if it is known (default: None).
            correction: alias of `ddof` (default: None).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `times_reduced(std_slope(self, result, axis, ddof), grad, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.std(vg.Tensor([[-0.7, -0.6, 0.1, -0.7], [-0.5, 1.5, 0.7, -0.3], [-1.3, 0.8, 2.0, -0.7]]))
            Tensor(0.96792303)
        """

    def sub(self, other: _TensorLike) -> Tensor:
        """The difference."""

    def sub_(self, other: _TensorLike) -> Tensor:
        """The difference."""

    def sum(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The sum of all elements, or of those along `axis`.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            initial: the starting value (default: None).
            where: a mask of the elements to include (default: True).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `expand_reduced(grad, self.shape, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.sum(vg.Tensor([[1.2, 1.1, 0.1, -0.8], [0.4, 0.4, 0.8, 1.5], [-0.0, -0.1, -0.9, -0.4]]))
            Tensor(3.3)
        """

    def svd(self, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """The left singular vectors, the singular values in descending order, and the right singular vectors: (U * S) @ Vh is the matrix."""

    def svdvals(self) -> Tensor:
        """The singular values in descending order."""

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return a view with two dimensions swapped."""

    def take(self, indices: Any, axis: _Axis = None, out: Any = None, mode: str = 'raise') -> Tensor:
        """Return the elements, or slices along `axis`, at the given indices."""

    def take_along_axis(self, indices: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The elements at `indices` along `axis`, with separate indices for each lane."""

    def tan(self) -> Tensor:
        """The tangent of an angle in radians."""

    def tan_(self) -> Tensor:
        """The tangent of an angle in radians."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """The hyperbolic tangent."""

    def tanhshrink(self) -> Tensor:
        """value - tanh(value)."""

    def tanhshrink_(self) -> Tensor:
        """value - tanh(value)."""

    def tensordot(self, other: _TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = 2) -> Tensor:
        """The tensor dot product over `axes`: a number of trailing and leading dimensions, or two lists."""

    def threshold(self, threshold: Any, value: Any) -> Tensor:
        """The value if it is above the threshold, another value otherwise; gradient 0 at the threshold."""

    def threshold_(self, threshold: Any, value: Any) -> Tensor:
        """The value if it is above the threshold, another value otherwise; gradient 0 at the threshold."""

    def tile(self, reps: Any) -> Tensor:
        """The whole tensor repeated `reps` times along each dimension."""

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Return the tensor itself, since the only device is the CPU.

        Raises:
            ValueError: for a device other than "cpu".
        """

    def tobytes(self, order: str = 'C') -> bytes:
        """Return the elements as bytes; warn if a history is lost."""

    def tofile(self, *args: Any, **kwargs: Any) -> None:
        """Call `numpy.ndarray.tofile` on the values of a tensor without history."""

    def topk(self, k: int, axis: _Axis = -1, largest: bool = True, sorted: bool = True, *, dim: _Axis | None = None) -> tuple[Tensor, Tensor]:
        """The `k` largest (or smallest) values along a dimension, which receive the gradient, and their indices."""

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: npt.DTypeLike | None = None, out: Any = None) -> Tensor:
        """Return the sum along a diagonal."""

    def transpose(self, *axes: Any) -> Tensor:
        """Return a view with permuted dimensions, by default reversed."""

    def trapezoid(self, x: _TensorLike | None = None, dx: float = 1.0, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The integral along a dimension by the trapezoidal rule, from samples at `x`, or with spacing `dx`."""

    def tril(self, k: int = 0) -> Tensor:
        """The lower triangles of matrices; elements above the diagonal `k` are zero. A vector is repeated as every row."""

    def triu(self, k: int = 0) -> Tensor:
        """The upper triangles of matrices; elements below the diagonal `k` are zero. A vector is repeated as every row."""

    def trunc(self) -> Tensor:
        """The integer part; gradient 0."""

    def trunc_(self) -> Tensor:
        """The integer part; gradient 0."""

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return the slices of dimension `dim`, each without that dimension."""

    def unfold(self, dimension: int, size: int, step: int = 1) -> Tensor:
        """Return a view of all windows of `size` elements along `dimension`, at intervals of `step`, as a new last
        dimension.
        """

    def unique(self, axis: _Axis = None, *, dim: _Axis | None = None) -> Tensor:
        """The sorted distinct values; the gradient goes to the first occurrence of each."""

    def unique_all(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The distinct values in ascending order, the index of the first occurrence of each, the index among them of each element, and the number of occurrences. Every NaN is distinct."""

    def unsqueeze(self, dim: int) -> Tensor:
        """Return a view with a new dimension of length 1 at `dim`."""

    def unwrap(self, discont: float | None = None, axis: int = -1, *, period: float = 6.283185307179586) -> Tensor:
        """Add multiples of `period` to the values, so that no step along `axis` exceeds half a period."""

    def var(self, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
        """The variance, with `ddof` subtracted from the number of elements.

        Arguments:
            self: a tensor, an array or a number; gradients flow to it.
            axis: the dimension to operate along, or several; None for all of them (default: None).
            dtype: the dtype of the result (default: None).
            out: the tensor to write the result to, which is returned (default: None).
            ddof: the number subtracted from the number of elements to get the divisor (default: 0).
            keepdims: whether to keep reduced dimensions with length 1 (default: False).
            where: a mask of the elements to include (default: True).
            mean: the mean, if it is known (default: None).
            correction: alias of `ddof` (default: None).
            dim: alias of `axis`, as in PyTorch (default: None).
            keepdim: alias of `keepdims`, as in PyTorch (default: None).

        Returns:
            a tensor.

        Gradient:
            of self: `times_reduced(var_slope(self, axis, ddof), grad, axis, keepdims)`

        Example:
            >>> import viewgrad as vg
            >>> vg.var(vg.Tensor([[-1.2, 1.7, 0.5, -0.4], [-1.2, 1.0, -0.9, -0.5], [-1.1, 0.3, 0.2, -0.1]]))
            Tensor(0.77909722)
        """

    def vdot(self, other: Any) -> Tensor:
        """Return the dot product of all elements; the first tensor is conjugated."""

    def vecdot(self, other: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
        """The dot products of vectors along `axis`; the first tensor is conjugated."""

    def vector_norm(self, ord: Any = 2, axis: _Axis = None, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
        """The norm of order `ord` of all elements, or of the vectors along `axis`; gradient 0 where the norm is 0."""

    def view(self, *shape: Any, dtype: npt.DTypeLike | None = None, type: Any = None) -> Tensor:
        """Return a view in another shape, or of the same memory with another dtype.

        Between a real dtype and the complex dtype of twice its size, the view is differentiable. Otherwise it is read-only.
        """

    def view_as(self, other: Tensor) -> Tensor:
        """Return a view with the shape of `other`."""

    def view_as_complex(self) -> Tensor:
        """Return a real tensor whose last dimension has length 2 as a complex one without that dimension."""

    def view_as_real(self) -> Tensor:
        """Return a complex tensor as a real one with a last dimension of length 2 for the real and imaginary parts."""

    def where(self, condition: Any, other: Any) -> Tensor:
        """Return the tensor's elements where the condition is true, and those of `other` elsewhere."""

    def xlog1py(self, other: _TensorLike) -> Tensor:
        """self * log1p(other), and 0 if `self` is 0, with gradient 0 for `other`."""

    def xlog1py_(self, other: _TensorLike) -> Tensor:
        """self * log1p(other), and 0 if `self` is 0, with gradient 0 for `other`."""

    def xlogy(self, other: _TensorLike) -> Tensor:
        """self * log(other), and 0 if `self` is 0, with gradient 0 for `other`."""

    def xlogy_(self, other: _TensorLike) -> Tensor:
        """self * log(other), and 0 if `self` is 0, with gradient 0 for `other`."""

    def y0(self) -> Tensor:
        """The Bessel function of the second kind of order 0."""

    def y0_(self) -> Tensor:
        """The Bessel function of the second kind of order 0."""

    def y1(self) -> Tensor:
        """The Bessel function of the second kind of order 1."""

    def y1_(self) -> Tensor:
        """The Bessel function of the second kind of order 1."""

    def zero_(self) -> Tensor:
        """Set every element to zero."""

    @property
    def T(self) -> Tensor:
        """Return a view with the dimensions reversed."""

    @property
    def as_integer_ratio(self) -> Callable[[], tuple[int, int]]:
        """The attribute `as_integer_ratio` of a NumPy scalar; only for 0-d tensors."""

    @property
    def base(self) -> Tensor | None:
        """Return the tensor whose memory a view shares, or None."""

    @property
    def bit_count(self) -> Callable[[], int]:
        """The attribute `bit_count` of a NumPy scalar; only for 0-d tensors."""

    @property
    def ctypes(self) -> Any:
        """Return the memory for C functions, if it belongs to an array captured by an adopted function."""

    @property
    def denominator(self) -> Tensor:
        """The attribute `denominator` of a NumPy scalar; only for 0-d tensors."""

    @property
    def device(self) -> str:
        """Return the device of the memory: 'cpu'."""

    @property
    def flags(self) -> Any:
        """Return information about the memory layout of the elements."""

    @property
    def flat(self) -> Tensor:
        """The elements in row-major order, for reading and writing."""

    @flat.setter
    def flat(self, value: _TensorLike) -> None: ...

    @property
    def hex(self) -> Callable[[], str]:
        """The attribute `hex` of a NumPy scalar; only for 0-d tensors."""

    @property
    def imag(self) -> Tensor:
        """Return the imaginary part: a view for a complex array, a scalar for a complex scalar, zeros for a real tensor."""

    @imag.setter
    def imag(self, value: _TensorLike) -> None: ...

    @property
    def is_integer(self) -> Callable[[], bool]:
        """The attribute `is_integer` of a NumPy scalar; only for 0-d tensors."""

    @property
    def mT(self) -> Tensor:
        """Return a view with the last two dimensions swapped."""

    @property
    def numerator(self) -> Tensor:
        """The attribute `numerator` of a NumPy scalar; only for 0-d tensors."""

    @property
    def real(self) -> Tensor:
        """Return the real part: a view for a complex array, a scalar for a complex scalar, the tensor itself if it is real.
    """

    @real.setter
    def real(self, value: _TensorLike) -> None: ...

    @property
    def retains_grad(self) -> bool:
        """True if `retain_grad` was called on this tensor, so that backward passes fill its `grad`."""
