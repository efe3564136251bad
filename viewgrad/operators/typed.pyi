"""The operators as functions. Written by `python tools/stubs.py`; do not edit."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..tensor.node import RemovableHandle
from ..tensor.tensor import Tensor

_Number: TypeAlias = bool | int | float | complex | np.generic
_TensorLike: TypeAlias = Tensor | np.ndarray[Any, Any] | _Number | Sequence[Any]
_Axis: TypeAlias = int | tuple[int, ...] | None

def abs(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The absolute value; gradient 0 at 0."""

def add(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The sum."""

def addcdiv(self: _TensorLike, tensor1: _TensorLike, tensor2: _TensorLike, *, value: Any = 1) -> Tensor:
    """The input plus `value` times the quotient of the two other tensors."""

def addcmul(self: _TensorLike, tensor1: _TensorLike, tensor2: _TensorLike, *, value: Any = 1) -> Tensor:
    """The input plus `value` times the product of the two other tensors."""

def addmm(self: _TensorLike, mat1: _TensorLike, mat2: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A matrix times `beta`, plus the product of two matrices times `alpha`."""

def addmv(self: _TensorLike, mat: _TensorLike, vec: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A vector times `beta`, plus a matrix-vector product times `alpha`."""

def angle(z: _TensorLike, deg: bool = False) -> Tensor:
    """The arguments of complex numbers; 0 or pi for real ones. Gradient 0 at 0."""

def arccos(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The inverse of the cosine."""

def arccosh(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The inverse of cosh."""

def arcsin(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The inverse of the sine."""

def arcsinh(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The inverse of sinh."""

def arctan(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The inverse of the tangent."""

def arctan2(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The angle of the point (other, self); gradient 0 at the origin."""

def arctanh(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The inverse of tanh."""

def argpartition(a: _TensorLike, kth: Any, axis: _Axis = -1, kind: str = 'introselect', order: Any = None, *, dim: _Axis = None) -> Tensor:
    """The indices that partition the elements around the `kth` smallest."""

def argsort(a: _TensorLike, axis: _Axis = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False, dim: _Axis = None) -> Tensor:
    """The indices that sort the elements along `axis`; the sort is stable."""

def avg_pool1d(self: _TensorLike, kernel_size: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = True) -> Tensor:
    """The mean of each window over the last dimension; zeros from padding count, unless `count_include_pad` is false."""

def avg_pool2d(self: _TensorLike, kernel_size: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = True) -> Tensor:
    """The mean of each window over the last 2 dimensions; zeros from padding count, unless `count_include_pad` is false."""

def baddbmm(self: _TensorLike, batch1: _TensorLike, batch2: _TensorLike, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A batch of matrices times `beta`, plus a batch of matrix products times `alpha`."""

def beta(self: _TensorLike, other: _TensorLike) -> Tensor:
    """The beta function."""

def betainc(a: Any, b: Any, self: _TensorLike) -> Tensor:
    """The regularized incomplete beta function; no gradient flows to the parameters."""

def betaln(self: _TensorLike, other: _TensorLike) -> Tensor:
    """The logarithm of the absolute value of the beta function."""

def binary_cross_entropy(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean') -> Tensor:
    """The cross-entropy of a probability and a target between 0 and 1. Logarithms are clamped at -100."""

def binary_cross_entropy_with_logits(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean') -> Tensor:
    """The cross-entropy of sigmoid(prediction) and a target between 0 and 1."""

def bincount(x: _TensorLike, /, weights: Any = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of each integer, or the sum of its weights."""

def bitwise_and(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Bitwise AND of integers or bools."""

def bitwise_count(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The number of 1 bits of an integer."""

def bitwise_or(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Bitwise OR of integers or bools."""

def bitwise_xor(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Bitwise XOR of integers or bools."""

def cbrt(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The cube root; infinite gradient at 0."""

def ceil(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The ceiling: the smallest integer not less than the value; gradient 0."""

def celu(self: _TensorLike, alpha: float = 1.0) -> Tensor:
    """The value if it is positive, alpha * (exp(value / alpha) - 1) otherwise."""

def cholesky(self: _TensorLike, *, upper: bool = False) -> Tensor:
    """The triangular factors L, with L times its adjoint equal to the matrix (or, `upper`, U with its adjoint times U). Only the lower (upper) triangle is read, and has a gradient."""

def clip(a: _TensorLike, min: Any = ..., max: Any = ..., out: Any = None, *, a_min: Any = ..., a_max: Any = ..., where: Any = True, **kwargs: Any) -> Tensor:
    """The values limited to the interval from `min` to `max`; at a bound the gradient is that of the value."""

def clone(self: _TensorLike) -> Tensor:
    """A copy with the same history."""

def concatenate(arrays: _TensorLike, /, axis: _Axis = 0, out: Any = None, *, dtype: npt.DTypeLike | None = None, casting: str = 'same_kind', dim: _Axis = None) -> Tensor:
    """The tensors concatenated along an existing dimension."""

def conj(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The complex conjugate."""

def conv1d(self: _TensorLike, weight: _TensorLike, bias: _TensorLike | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Tensor:
    """The convolution, without flipping the weights, in 1 dimension."""

def conv2d(self: _TensorLike, weight: _TensorLike, bias: _TensorLike | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Tensor:
    """The convolution, without flipping the weights, in 2 dimensions."""

def conv3d(self: _TensorLike, weight: _TensorLike, bias: _TensorLike | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1) -> Tensor:
    """The convolution, without flipping the weights, in 3 dimensions."""

def conv_transpose1d(self: _TensorLike, weight: _TensorLike, bias: _TensorLike | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, dilation: Any = 1) -> Tensor:
    """The transposed convolution in 1 dimension."""

def conv_transpose2d(self: _TensorLike, weight: _TensorLike, bias: _TensorLike | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: Any = 1, dilation: Any = 1) -> Tensor:
    """The transposed convolution in 2 dimensions."""

def convolve(a: _TensorLike, v: Any, mode: str = 'full') -> Tensor:
    """The convolution of two vectors; `mode` is "full", "same" or "valid"."""

def copysign(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The magnitude of the first argument with the sign of the second; gradient 0 at 0."""

def correlate(a: _TensorLike, v: Any, mode: str = 'valid') -> Tensor:
    """The cross-correlation of two vectors; the second is conjugated."""

def cos(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The cosine of an angle in radians."""

def cosh(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The hyperbolic cosine."""

def count_nonzero(a: _TensorLike, axis: _Axis = None, *more: Any, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The number of elements that are not 0."""

def cov(m: _TensorLike, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: float | None = None, fweights: Any = None, aweights: Any = None, *, dtype: npt.DTypeLike | None = None) -> Tensor:
    """The covariance matrix of variables in rows (in columns, unless `rowvar`)."""

def cross(a: _TensorLike, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """The cross products of vectors of length 3."""

def cummax(self: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> tuple[Tensor, Tensor]:
    """The running maxima along a dimension, and their indices; of equal values the last one gets the gradient."""

def cummin(self: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> tuple[Tensor, Tensor]:
    """The running minima along a dimension, and their indices; of equal values the last one gets the gradient."""

def dawsn(self: _TensorLike) -> Tensor:
    """Dawson's integral."""

def deg2rad(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Degrees converted to radians."""

def det(self: _TensorLike) -> Tensor:
    """The determinants of square matrices; differentiable at singular matrices too."""

def diag_embed(self: _TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices of zeros with the last dimension on a diagonal."""

def diff(a: _TensorLike, n: int | None = 1, axis: _Axis = -1, prepend: Any = None, append: Any = None, *, dim: _Axis = None) -> Tensor:
    """The `n`-th discrete differences along a dimension."""

def digamma(self: _TensorLike) -> Tensor:
    """The derivative of `gammaln`."""

def digitize(x: _TensorLike, bins: Any, right: bool = False) -> Tensor:
    """The index of the bin that each value belongs to."""

def div(self: _TensorLike, other: _TensorLike) -> Tensor:
    """The quotient."""

def dot(a: _TensorLike, b: Any, out: Any = None) -> Tensor:
    """The dot product: the sum over the last dimension of the first and the second-to-last of the second."""

def eig(self: _TensorLike) -> tuple[Tensor, Tensor]:
    """The eigenvalues and normalized eigenvectors of square matrices."""

def eigh(self: _TensorLike, UPLO: str = 'L') -> tuple[Tensor, Tensor]:
    """The eigenvalues, in ascending order, and eigenvectors of symmetric or Hermitian matrices. Only one triangle, the lower or the upper, is read and has a gradient."""

def eigvals(self: _TensorLike) -> Tensor:
    """The eigenvalues of square matrices."""

def eigvalsh(self: _TensorLike, UPLO: str = 'L') -> Tensor:
    """The eigenvalues, in ascending order, of symmetric or Hermitian matrices; only one triangle is read."""

def ellipe(self: _TensorLike) -> Tensor:
    """The complete elliptic integral of the second kind."""

def ellipk(self: _TensorLike) -> Tensor:
    """The complete elliptic integral of the first kind."""

def elu(self: _TensorLike, alpha: float = 1.0) -> Tensor:
    """The value if it is positive, alpha * (exp(value) - 1) otherwise; at 0 the gradient from below."""

def embedding(self: _TensorLike, weight: _TensorLike) -> Tensor:
    """The rows of the table `weight` at the given indices."""

def entr(self: _TensorLike) -> Tensor:
    """-value * log(value), and 0 at 0; infinite gradient at 0."""

def equal(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the values are equal."""

def erf(self: _TensorLike) -> Tensor:
    """The error function."""

def erfc(self: _TensorLike) -> Tensor:
    """1 - erf(value)."""

def erfcinv(self: _TensorLike) -> Tensor:
    """The inverse of erfc."""

def erfcx(self: _TensorLike) -> Tensor:
    """exp(value**2) * erfc(value)."""

def erfi(self: _TensorLike) -> Tensor:
    """The imaginary error function."""

def erfinv(self: _TensorLike) -> Tensor:
    """The inverse of `erf`."""

def exp(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The exponential."""

def exp1(self: _TensorLike) -> Tensor:
    """The exponential integral E1."""

def exp2(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Two to the power of the value."""

def expi(self: _TensorLike) -> Tensor:
    """The exponential integral Ei."""

def expit(self: _TensorLike) -> Tensor:
    """1 / (1 + exp(-value))."""

def expm1(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """exp(self) - 1, accurate also near 0."""

def fabs(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The absolute value of real numbers; gradient 0 at 0."""

def fft(self: _TensorLike, n: int | None = None, axis: _Axis = -1, norm: Literal["backward", "ortho", "forward"] | None = None, *, dim: _Axis | None = None) -> Tensor:
    """The discrete Fourier transform along one dimension."""

def fft2(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = (-2, -1), norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The discrete Fourier transform along two dimensions (by default the last)."""

def fftn(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None, norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The discrete Fourier transform along several dimensions."""

def fftshift(self: _TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None) -> Tensor:
    """The dimensions rolled so that the zero frequency is at the center."""

def floor(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The floor: the largest integer not greater than the value; gradient 0."""

def floor_divide(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The floor of the quotient; gradient 0."""

def fmax(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The element-wise maximum, ignoring NaN; the gradient flows to the first of equal values."""

def fmin(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The element-wise minimum, ignoring NaN; the gradient flows to the first of equal values."""

def fmod(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The remainder of division with the sign of the dividend; at jumps a one-sided gradient."""

def gamma(self: _TensorLike) -> Tensor:
    """The gamma function."""

def gammainc(v: Any, self: _TensorLike) -> Tensor:
    """The regularized lower incomplete gamma function."""

def gammaincc(v: Any, self: _TensorLike) -> Tensor:
    """The regularized upper incomplete gamma function."""

def gammaln(self: _TensorLike) -> Tensor:
    """The logarithm of the absolute value of `gamma`."""

def gammasgn(self: _TensorLike) -> Tensor:
    """The sign of the gamma function."""

def gcd(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The greatest common divisor of integers."""

def gelu(self: _TensorLike, *, approximate: str = 'none') -> Tensor:
    """The value times its standard normal distribution function; `approximate='tanh'` uses an approximation."""

def greater(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the first value is greater than the second."""

def greater_equal(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the first value is greater than or equal to the second."""

def hardshrink(self: _TensorLike, lambd: float = 0.5) -> Tensor:
    """The value, or 0 if its magnitude is at most `lambd`; gradient 0 at the jumps."""

def hardsigmoid(self: _TensorLike) -> Tensor:
    """The piecewise linear sigmoid: 0 up to -3, 1 from 3; gradient 0 at the kinks."""

def hardswish(self: _TensorLike) -> Tensor:
    """The value times hardsigmoid(value); one-sided gradients at the kinks."""

def hardtanh(self: _TensorLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """The value limited to the interval from `min_val` to `max_val`; gradient 0 at the bounds."""

def heaviside(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The step function: 0 for negative values, 1 for positive ones, the second argument at 0. Gradient 0 for the first."""

def huber_loss(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean', delta: float = 1.0) -> Tensor:
    """Half the squared difference up to `delta`, linear beyond."""

def hyp2f1(a: Any, b: Any, c: Any, self: _TensorLike) -> Tensor:
    """Gauss's hypergeometric function; no gradient flows to the parameters."""

def hypot(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The hypotenuse sqrt(self**2 + other**2); gradient 0 at the origin."""

def i0(x: _TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def i0e(self: _TensorLike) -> Tensor:
    """exp(-abs(value)) * i0(value); at 0 the mean of the one-sided gradients."""

def i1(self: _TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def i1e(self: _TensorLike) -> Tensor:
    """exp(-abs(value)) * i1(value); at 0 the mean of the one-sided gradients."""

def ifft(self: _TensorLike, n: int | None = None, axis: _Axis = -1, norm: Literal["backward", "ortho", "forward"] | None = None, *, dim: _Axis | None = None) -> Tensor:
    """The inverse discrete Fourier transform along one dimension."""

def ifft2(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = (-2, -1), norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The inverse discrete Fourier transform along two dimensions (by default the last)."""

def ifftn(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None, norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The inverse discrete Fourier transform along several dimensions."""

def ifftshift(self: _TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None) -> Tensor:
    """The inverse of `fftshift`."""

def index_add(self: _TensorLike, axis: _Axis, index: _TensorLike, source: _TensorLike, *, dim: _Axis | None = None) -> Tensor:
    """The tensor with the slices of `source` added at `index` along `axis`."""

def interp(x: _TensorLike, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """The piecewise linear interpolant of the values `fp` at the increasing points `xp`, constant outside; at a knot the gradient is that of the segment to the right."""

def inv(self: _TensorLike) -> Tensor:
    """The inverses of square matrices."""

def invert(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Bitwise NOT of integers or bools."""

def irfft(self: _TensorLike, n: int | None = None, axis: _Axis = -1, norm: Literal["backward", "ortho", "forward"] | None = None, *, dim: _Axis | None = None) -> Tensor:
    """The inverse of `rfft`: real numbers from half of their discrete Fourier transform."""

def irfft2(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = (-2, -1), norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The inverse of the discrete Fourier transform of real numbers along two dimensions (by default the last)."""

def irfftn(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None, norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The inverse of the discrete Fourier transform of real numbers along several dimensions."""

def isfinite(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the value is finite."""

def isin(element: _TensorLike, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Tensor:
    """Test whether each value is among the given values."""

def isinf(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the value is infinite."""

def isnan(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the value is NaN."""

def iv(v: Any, self: _TensorLike) -> Tensor:
    """The modified Bessel function of the first kind."""

def ive(v: Any, self: _TensorLike) -> Tensor:
    """exp(-abs(value)) * iv(v, value); at 0 the mean of the one-sided gradients."""

def j0(self: _TensorLike) -> Tensor:
    """The Bessel function of the first kind of order 0."""

def j1(self: _TensorLike) -> Tensor:
    """The Bessel function of the first kind of order 1."""

def jv(v: Any, self: _TensorLike) -> Tensor:
    """The Bessel function of the first kind."""

def k0(self: _TensorLike) -> Tensor:
    """The modified Bessel function of the second kind of order 0."""

def k1(self: _TensorLike) -> Tensor:
    """The modified Bessel function of the second kind of order 1."""

def kl_div(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean', log_target: bool = False) -> Tensor:
    """The terms of the relative entropy of a target distribution and a prediction, given as log-probabilities. `reduction='batchmean'` divides the sum by the batch size."""

def kn(v: Any, self: _TensorLike) -> Tensor:
    """The modified Bessel function of the second kind of integer order."""

def kron(a: _TensorLike, b: Any) -> Tensor:
    """The Kronecker product."""

def kthvalue(self: _TensorLike, k: int, axis: _Axis = -1, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> tuple[Tensor, Tensor]:
    """The `k`-th smallest value along a dimension, counted from 1, which receives the gradient, and its index."""

def l1_loss(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean') -> Tensor:
    """The absolute difference; gradient 0 where it is 0."""

def layer_norm(self: _TensorLike, normalized_shape: Any, weight: _TensorLike | None = None, bias: _TensorLike | None = None, eps: float = 1e-05) -> Tensor:
    """The values normalized to mean 0 and variance 1 over the last dimensions, times `weight` plus `bias`."""

def lcm(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The least common multiple of integers."""

def leaky_relu(self: _TensorLike, negative_slope: float = 0.01) -> Tensor:
    """The value if it is positive, a small multiple of it otherwise; at 0 the gradient from below."""

def left_shift(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Integers shifted to the left."""

def lerp(self: _TensorLike, end: _TensorLike, weight: _TensorLike) -> Tensor:
    """The linear interpolation self + weight * (end - self)."""

def less(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the first value is less than the second."""

def less_equal(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the first value is less than or equal to the second."""

def linear(self: _TensorLike, weight: _TensorLike, bias: _TensorLike | None = None) -> Tensor:
    """The product with the transposed weight matrix, plus a bias: a dense layer."""

def linear_scan(self: _TensorLike, coefficients: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
    """The recurrence `y[i] = self[i] + coefficients[i] * y[i - 1]` along `axis`, from `y[0] = self[0]`."""

def log(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The natural logarithm."""

def log10(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The logarithm to base 10."""

def log1p(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """log(1 + self), accurate also near 0."""

def log2(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The logarithm to base 2."""

def log_expit(self: _TensorLike) -> Tensor:
    """The logarithm of `expit`."""

def log_ndtr(self: _TensorLike) -> Tensor:
    """The logarithm of `ndtr`, accurate also for small values."""

def log_softmax(self: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
    """The logarithms of `softmax`."""

def logaddexp(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """log(exp(self) + exp(other))."""

def logaddexp2(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """log2(2**self + 2**other)."""

def logical_and(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Logical AND."""

def logical_not(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Logical NOT."""

def logical_or(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Logical OR."""

def logical_xor(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Logical exclusive OR."""

def logit(self: _TensorLike) -> Tensor:
    """The inverse of `expit`."""

def logsigmoid(self: _TensorLike) -> Tensor:
    """log(sigmoid(value))."""

def logsumexp(self: _TensorLike, axis: _Axis = None, keepdims: bool = False, b: _TensorLike | None = None, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
    """log(sum(b * exp(self))), without overflow; `b` is 1 if omitted."""

def lstsq(self: _TensorLike, b: _TensorLike, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The least-squares solutions of systems of linear equations, the sums of squared residuals (empty unless the matrix has full rank and more rows than columns), the rank and the singular values of the matrix."""

def masked_fill(self: _TensorLike, mask: _TensorLike, value: _TensorLike) -> Tensor:
    """The tensor with `value` where the mask is true."""

def matmul(x1: _TensorLike, x2: Any, /, out: Any = None, *, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """The matrix product over the last two dimensions."""

def matrix_exp(self: _TensorLike) -> Tensor:
    """The exponentials of square matrices."""

def matrix_power(self: _TensorLike, n: int | None) -> Tensor:
    """The matrices raised to an integer power."""

def matrix_rank(self: _TensorLike, tol: Any = None, hermitian: bool = False, rtol: Any = None) -> Tensor:
    """The number of singular values above a tolerance."""

def max_pool1d(self: _TensorLike, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> tuple[Tensor, Tensor]:
    """The maximum of each window over the last dimension, and its flat index; the gradient flows to the first of equal values."""

def max_pool2d(self: _TensorLike, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> tuple[Tensor, Tensor]:
    """The maximum of each window over the last 2 dimensions, and its flat index; the gradient flows to the first of equal values."""

def maximum(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The element-wise maximum; if the values are equal, each gets half of the gradient."""

def median(a: _TensorLike, axis: _Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The median; of equal values those in the middle positions get the gradient."""

def minimum(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The element-wise minimum; if the values are equal, each gets half of the gradient."""

def mish(self: _TensorLike) -> Tensor:
    """The value times tanh(softplus(value))."""

def mse_loss(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean') -> Tensor:
    """The squared difference."""

def mul(self: _TensorLike, other: _TensorLike) -> Tensor:
    """The product."""

def nan_to_num(x: _TensorLike, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """The values with NaN and infinities replaced; the gradient of these is 0."""

def nanmedian(a: _TensorLike, axis: _Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = ..., *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The median, ignoring NaN; of equal values those in the middle positions get the gradient."""

def nanquantile(a: _TensorLike, q: Any, axis: _Axis = None, out: Any = None, overwrite_input: bool = False, method: str = 'linear', keepdims: bool = ..., *, weights: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The quantiles, ignoring NaN; of equal values those at the positions of the quantile get the gradient."""

def ndtr(self: _TensorLike) -> Tensor:
    """The standard normal cumulative distribution function."""

def ndtri(self: _TensorLike) -> Tensor:
    """The inverse of `ndtr`."""

def neg(self: _TensorLike) -> Tensor:
    """The negative value."""

def nextafter(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The next floating-point number after the first argument towards the second; differentiated as the identity."""

def nll_loss(self: _TensorLike, target: _TensorLike, weight: _TensorLike | None = None, ignore_index: Any = -100, reduction: Literal["none", "mean", "sum"] = 'mean') -> Tensor:
    """The negative log-likelihood of each example's class, from log-probabilities of shape (batch, classes, ...). The mean is weighted by the weights of the classes, if given; one class may be ignored."""

def not_equal(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the values differ."""

def one_hot(self: _TensorLike, num_classes: int = -1) -> Tensor:
    """The one-hot encoding of integers."""

def outer(a: _TensorLike, b: Any, out: Any = None) -> Tensor:
    """The outer product of two vectors."""

def pad(array: _TensorLike, pad_width: Any, mode: str = 'constant', *more: Any, constant_values: Any = 0, **kwargs: Any) -> Tensor:
    """The tensor padded with constants, or (`edge`, `reflect`, `symmetric`, `wrap`) with its own elements."""

def pinv(self: _TensorLike, rcond: Any = None) -> Tensor:
    """The Moore-Penrose pseudo-inverses. Differentiable where the rank is locally constant."""

def polygamma(v: Any, self: _TensorLike) -> Tensor:
    """The polygamma function: the derivative of order `v` of `digamma`."""

def positive(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """A copy of the value."""

def pow(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The power; at base 0 the gradient of a non-negative exponent is 0."""

def ptp(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The range (maximum - minimum) of the values; ties share the gradient."""

def qr(self: _TensorLike, mode: str = 'reduced') -> tuple[Tensor, Tensor]:
    """Matrices with orthonormal columns Q and upper triangular R, with Q @ R equal to the matrix. Differentiable where the first columns are linearly independent."""

def quantile(a: _TensorLike, q: Any, axis: _Axis = None, out: Any = None, overwrite_input: bool = False, method: str = 'linear', keepdims: bool = False, *, weights: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The quantiles; of equal values those at the positions of the quantile get the gradient."""

def rad2deg(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Radians converted to degrees."""

def reciprocal(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """1 / value."""

def rel_entr(self: _TensorLike, other: _TensorLike) -> Tensor:
    """self * log(self / other), the terms of the relative entropy; 0 with gradient 0 if both are 0."""

def relu(self: _TensorLike) -> Tensor:
    """max(value, 0); gradient 0 at 0."""

def relu6(self: _TensorLike) -> Tensor:
    """The value limited to the interval from 0 to 6; gradient 0 at the bounds."""

def remainder(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The remainder of division with the sign of the divisor; at jumps a one-sided gradient."""

def repeat(a: _TensorLike, repeats: Any, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """Each element, or each slice along `axis`, repeated."""

def rfft(self: _TensorLike, n: int | None = None, axis: _Axis = -1, norm: Literal["backward", "ortho", "forward"] | None = None, *, dim: _Axis | None = None) -> Tensor:
    """The non-negative frequencies of the discrete Fourier transform of real numbers."""

def rfft2(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = (-2, -1), norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along two dimensions (by default the last), without the negative frequencies of the last dimension."""

def rfftn(self: _TensorLike, s: Any = None, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None, norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """The discrete Fourier transform of real numbers along several dimensions, without the negative frequencies of the last dimension."""

def rgamma(self: _TensorLike) -> Tensor:
    """1 / gamma(value)."""

def right_shift(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Integers shifted to the right."""

def rint(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The nearest integer, ties to even; gradient 0."""

def roll(a: _TensorLike, shift: Any, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """The elements rolled along `axis`, or in the flattened tensor."""

def round(a: _TensorLike, decimals: int = 0, out: Any = None) -> Tensor:
    """The value rounded to the given number of decimals; gradient 0."""

def scatter(self: _TensorLike, axis: _Axis, index: _TensorLike, source: _TensorLike, *, dim: _Axis | None = None) -> Tensor:
    """The tensor with `source` written at `index` along `axis`; for repeated indices the last value is used."""

def scatter_add(self: _TensorLike, axis: _Axis, index: _TensorLike, source: _TensorLike, *, dim: _Axis | None = None) -> Tensor:
    """The tensor with `source` added at `index` along `axis`."""

def searchsorted(a: _TensorLike, v: Any, side: str = 'left', sorter: Any = None) -> Tensor:
    """The indices at which values would have to be inserted to keep a vector sorted."""

def selu(self: _TensorLike) -> Tensor:
    """The scaled `elu` of self-normalizing networks; at 0 the gradient from below."""

def sigmoid(self: _TensorLike) -> Tensor:
    """1 / (1 + exp(-self))."""

def sign(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The sign: -1, 0 or 1; z / abs(z) for complex numbers; gradient 0 at 0."""

def signbit(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Test whether the sign bit is set."""

def silu(self: _TensorLike) -> Tensor:
    """The value times sigmoid(value)."""

def sin(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The sine of an angle in radians."""

def sinc(x: _TensorLike) -> Tensor:
    """sin(pi * value) / (pi * value), and 1 at 0."""

def sinh(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The hyperbolic sine."""

def slogdet(self: _TensorLike) -> tuple[Tensor, Tensor]:
    """The signs of the determinants (numbers on the unit circle, for complex matrices), and the logarithms of their absolute values."""

def smooth_l1_loss(self: _TensorLike, target: _TensorLike, reduction: Literal["none", "mean", "sum"] = 'mean', beta: float = 1.0) -> Tensor:
    """The absolute difference, quadratic below `beta`."""

def softmax(self: _TensorLike, axis: _Axis = -1, *, dim: _Axis | None = None) -> Tensor:
    """The exponentials, divided by their sum along a dimension."""

def softplus(self: _TensorLike, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * self)) / beta."""

def softshrink(self: _TensorLike, lambd: float = 0.5) -> Tensor:
    """The value moved towards 0 by `lambd`, or 0 if its magnitude is less; gradient 0 at the kinks."""

def softsign(self: _TensorLike) -> Tensor:
    """value / (1 + abs(value)); gradient 1 at 0."""

def solve(self: _TensorLike, b: _TensorLike) -> Tensor:
    """The solutions x of the systems of linear equations `self @ x == b`."""

def solve_triangular(self: _TensorLike, b: _TensorLike, *, upper: Any, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The solutions x of `self @ x == b` (`x @ self == b` unless `left`) with triangular matrices. The other triangle is not read, nor the diagonal of unitriangular matrices."""

def sort(a: _TensorLike, axis: _Axis = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False, dim: _Axis = None) -> Tensor:
    """The elements sorted along `axis`, or all of them, in ascending order; the sort is stable."""

def spacing(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The distance to the nearest adjacent number; gradient 0."""

def sqrt(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The square root; infinite gradient at 0."""

def square(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The square of the value."""

def stack(arrays: _TensorLike, axis: _Axis = 0, out: Any = None, *, dtype: npt.DTypeLike | None = None, casting: str = 'same_kind', dim: _Axis = None) -> Tensor:
    """The tensors, of equal shape, stacked along a new dimension."""

def stdtr(df: Any, self: _TensorLike) -> Tensor:
    """The cumulative distribution function of Student's t; no gradient flows to the degrees of freedom."""

def sub(self: _TensorLike, other: _TensorLike) -> Tensor:
    """The difference."""

def svd(self: _TensorLike, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """The left singular vectors, the singular values in descending order, and the right singular vectors: (U * S) @ Vh is the matrix."""

def svdvals(self: _TensorLike) -> Tensor:
    """The singular values in descending order."""

def take(a: _TensorLike, indices: Any, axis: _Axis = None, out: Any = None, mode: str = 'raise', *, dim: _Axis = None) -> Tensor:
    """The elements, or the slices along `axis`, at `indices`."""

def take_along_axis(arr: _TensorLike, indices: Any, axis: _Axis = -1, *, dim: _Axis = None) -> Tensor:
    """The elements at `indices` along `axis`, with separate indices for each lane."""

def tan(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The tangent of an angle in radians."""

def tanh(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The hyperbolic tangent."""

def tanhshrink(self: _TensorLike) -> Tensor:
    """value - tanh(value)."""

def tensordot(a: _TensorLike, b: Any, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = 2) -> Tensor:
    """The tensor dot product over `axes`: a number of trailing and leading dimensions, or two lists."""

def threshold(self: _TensorLike, threshold: Any, value: Any) -> Tensor:
    """The value if it is above the threshold, another value otherwise; gradient 0 at the threshold."""

def tile(A: _TensorLike, reps: Any) -> Tensor:
    """The whole tensor repeated `reps` times along each dimension."""

def topk(self: _TensorLike, k: int, axis: _Axis = -1, largest: bool = True, sorted: bool = True, *, dim: _Axis | None = None) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) values along a dimension, which receive the gradient, and their indices."""

def trace(a: _TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: npt.DTypeLike | None = None, out: Any = None) -> Tensor:
    """The sum along the diagonals of matrices."""

def trapezoid(y: _TensorLike, x: Any = None, dx: float = 1.0, axis: _Axis = -1, *, dim: _Axis = None) -> Tensor:
    """The integral along a dimension by the trapezoidal rule, from samples at `x`, or with spacing `dx`."""

def tril(m: _TensorLike, k: int = 0) -> Tensor:
    """The lower triangles of matrices; elements above the diagonal `k` are zero. A vector is repeated as every row."""

def triu(m: _TensorLike, k: int = 0) -> Tensor:
    """The upper triangles of matrices; elements below the diagonal `k` are zero. A vector is repeated as every row."""

def trunc(x: _TensorLike, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """The integer part; gradient 0."""

def unique(ar: _TensorLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: _Axis = None, *, equal_nan: bool = True, sorted: bool = True, dim: _Axis = None) -> Tensor:
    """The sorted distinct values; the gradient goes to the first occurrence of each."""

def unique_all(x: _TensorLike) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The distinct values in ascending order, the index of the first occurrence of each, the index among them of each element, and the number of occurrences. Every NaN is distinct."""

def vecdot(x1: _TensorLike, x2: Any, /, out: Any = None, *, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """The dot products of vectors along `axis`; the first tensor is conjugated."""

def vector_norm(self: _TensorLike, ord: Any = 2, axis: _Axis = None, keepdims: bool = False, *, dim: _Axis | None = None, keepdim: bool | None = None) -> Tensor:
    """The norm of order `ord` of all elements, or of the vectors along `axis`; gradient 0 where the norm is 0."""

def where(condition: _TensorLike, x: Any = None, y: Any = None, /) -> Tensor:
    """The first value if the condition is true, otherwise the second."""

def xlog1py(self: _TensorLike, other: _TensorLike) -> Tensor:
    """self * log1p(other), and 0 if `self` is 0, with gradient 0 for `other`."""

def xlogy(self: _TensorLike, other: _TensorLike) -> Tensor:
    """self * log(other), and 0 if `self` is 0, with gradient 0 for `other`."""

def y0(self: _TensorLike) -> Tensor:
    """The Bessel function of the second kind of order 0."""

def y1(self: _TensorLike) -> Tensor:
    """The Bessel function of the second kind of order 1."""

def yn(v: Any, self: _TensorLike) -> Tensor:
    """The Bessel function of the second kind."""

def all(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def allclose(a: _TensorLike, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are nearly equal."""

def any(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def append(arr: _TensorLike, values: Any, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """Append values along `axis`, or to the flattened tensor."""

def apply_along_axis(func1d: _TensorLike, axis: _Axis, arr: Any, *args: Any, dim: _Axis = None, **kwargs: Any) -> Tensor:
    """Apply a function of vectors to each vector along an axis."""

def apply_over_axes(func: _TensorLike, a: Any, axes: int | Sequence[int] | Sequence[Sequence[int]] | None) -> Tensor:
    """Apply a function of a tensor and an axis repeatedly over several axes."""

def argmax(a: _TensorLike, axis: _Axis = None, out: Any = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def argmin(a: _TensorLike, axis: _Axis = None, out: Any = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def argwhere(a: _TensorLike) -> Tensor:
    """Return the indices of the nonzero elements, with a row for each."""

def array_equal(a1: _TensorLike, a2: Any, equal_nan: bool = False) -> bool:
    """Return whether two tensors have the same shape and elements."""

def astype(x: _TensorLike, dtype: npt.DTypeLike | None, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return the values in another dtype; differentiable for floating-point and complex dtypes.

    Arguments:
        dtype: the desired dtype.
        copy: False returns the tensor itself if it already has the dtype.

    For the dtype `object`, the result is a NumPy array of the elements, each a tensor with its history; for strings,
    dates and structured dtypes, it is a NumPy array of plain values.
    """

def average(a: _TensorLike, axis: _Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """Return the weighted mean.

    Arguments:
        axis: the dimensions to average over; all of them if omitted.
        weights: an array with the shape of the tensor, or of the dimensions in `axis`; equal weights if omitted.
        returned: whether to return the sums of the weights as well.
        keepdims: whether to keep the reduced dimensions with length 1.
    """

def batch_norm(self: _TensorLike, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    """Normalize each channel to mean 0 and variance 1, then scale by `weight` and add `bias`.

    Arguments:
        self: a tensor of shape (batch, channels, ...).
        running_mean, running_var: the statistics to use if not `training`, one number for each channel. During training
            they are updated in place, with the unbiased variance.
        weight, bias: one number for each channel.
        training: whether to use the statistics of this batch.
        momentum: the weight of this batch in the running statistics.
        eps: a constant added to the variance for stability.

    Raises:
        ValueError: for a batch with one value per channel when training, or without running statistics when not.
    """

def block(arrays: _TensorLike) -> Tensor:
    """Assemble tensors in nested lists into a block matrix; the innermost lists are concatenated along the last axis.
        
    """

def choose(a: _TensorLike, choices: Any, out: Any = None, mode: str = 'raise') -> Tensor:
    """Return, for each element, the value from the choice selected by the integers `a`."""

def column_stack(tup: _TensorLike) -> Tensor:
    """Stack vectors as columns, or concatenate matrices along the second dimension."""

def compress(condition: _TensorLike, a: Any, axis: _Axis = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
    """Return the slices along `axis` where the one-dimensional condition is true."""

def cond(self: _TensorLike, p: Any = None) -> Tensor:
    """Return the condition numbers of matrices in the `p`-norm, by default the 2-norm."""

def contiguous(self: _TensorLike) -> Tensor:
    """Return the tensor itself if it is in row-major order, otherwise a copy in that order."""

def copy(a: _TensorLike, order: str = 'K', subok: bool = False) -> Tensor:
    """Return a copy with the same history, like `clone()`; a scalar is returned unchanged."""

def corrcoef(x: _TensorLike, y: Any = None, rowvar: bool = True, *, dtype: npt.DTypeLike | None = None, bias: Any = None, ddof: float | None = None) -> Tensor:
    """Return the correlation matrix of variables in rows, or in columns unless `rowvar`."""

def cross_entropy(self: _TensorLike, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = 'mean', label_smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy between a target and the `softmax` of scores.

    Arguments:
        self: a tensor of shape (batch, classes, ...) or (classes,).
        target: the class of each example; or the probability of each class, in the shape of `self`.
        weight: one number for each class.
        ignore_index: the class of examples to ignore.
        reduction: "mean" (weighted by `weight`, for classes), "sum" or "none".
        label_smoothing: the fraction of the target's probability that is distributed evenly over all classes.
    """

def cumprod(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
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

def cumsum(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
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

def delete(arr: _TensorLike, obj: Any, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """Return a copy without the given slices along an axis, or without elements of the flattened tensor."""

def diag(v: _TensorLike, k: int = 0) -> Tensor:
    """Return the diagonal of a matrix as a view, or a matrix with a given diagonal.

    Arguments:
        v: a matrix or a vector.
        k: the diagonal; positive numbers are above the main diagonal.

    Raises:
        ValueError: if `v` is neither a matrix nor a vector.

    Example:
        >>> import viewgrad as vg
        >>> vg.diag(vg.Tensor([1.0, 2.0]))
        Tensor([[1., 0.],
                [0., 2.]])
    """

def diagflat(v: _TensorLike, k: int = 0) -> Tensor:
    """Return a matrix with the elements of a tensor on a diagonal."""

def dropout(self: _TensorLike, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Tensor:
    """Set values to zero with probability `p` and divide the others by 1 - p; return the values unchanged if not
    training.

    Arguments:
        p: the probability.
        training: whether to apply dropout.
        generator: a `numpy.random.Generator`, from which the mask is drawn; there is no default generator.

    Raises:
        TypeError: when training without a generator.
    """

def dstack(tup: _TensorLike) -> Tensor:
    """Concatenate tensors along the third dimension."""

def ediff1d(ary: _TensorLike, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences of neighbours in the flattened tensor."""

def einsum(*operands: Any, out: Any = None, optimize: Any = None, dtype: npt.DTypeLike | None = None, order: str = 'K', casting: str = 'safe', **kwargs: Any) -> Tensor:
    """Return the sum of products given by subscripts, as in `numpy.einsum`.

    Arguments:
        operands: the subscripts, such as `"ij,jk->ik"`, and the tensors. Without an arrow, the result has the letters
            that appear once, in alphabetical order. Alternatively, each tensor is followed by a list of integers
            instead of letters, and a list for the result comes last. For a single tensor without summation, the result
            is a view.
        optimize, order: accepted for compatibility with NumPy; the order of the products is always optimized.
        out: the tensor to write to.
        dtype: the dtype of the computation.
        casting: the rule by which the result is cast to the dtype of `out`, as for `numpy.can_cast`.

    Example:
        >>> import viewgrad as vg
        >>> a = vg.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> vg.einsum("ij,jk->ik", a, a)
        Tensor([[ 7., 10.],
                [15., 22.]])
    """

def extract(condition: _TensorLike, arr: Any) -> Tensor:
    """Return the elements, in row-major order, where the condition is true."""

def fill_diagonal(a: _TensorLike, val: Any, wrap: bool = False) -> None:
    """Fill the main diagonal of a matrix with `val`, in place."""

def flatnonzero(a: _TensorLike) -> Tensor:
    """Return the indices of the nonzero elements in the flattened tensor."""

def flip(m: _TensorLike, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """Return a view with the elements in reverse order along `axis`, or along every dimension if omitted."""

def fliplr(m: _TensorLike) -> Tensor:
    """Return a view with the second dimension in reverse order."""

def flipud(m: _TensorLike) -> Tensor:
    """Return a view with the first dimension in reverse order."""

def float_power(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Return the power computed in double precision."""

def gradient(f: _TensorLike, *varargs: Any, axis: _Axis = None, edge_order: Any = 1, dim: _Axis = None) -> Tensor:
    """Return the derivatives of a sampled function along each dimension, by central differences as in `numpy.gradient`.

    Arguments:
        f: the samples.
        varargs: the distances or coordinates of the samples: none, one for all dimensions, or one for each dimension.
        axis: the dimensions; all of them if omitted.
        edge_order: 1 or 2, the order of the differences at both ends.

    Returns:
        The derivative, or a tuple with one for each dimension.
    """

def group_norm(self: _TensorLike, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """Normalize groups of channels of each example to mean 0 and variance 1, then scale and shift.

    Arguments:
        self: a tensor of shape (batch, channels, ...).
        num_groups: the number of groups.
        weight, bias: one number for each channel.
        eps: a constant added to the variance, for stability.
    """

def hfft(self: _TensorLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """Return the real transform of a Hermitian-symmetric sequence, given half of it."""

def histogram(a: _TensorLike, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Tensor, Tensor]:
    """Return the number of elements, or the sum of their weights, in each bin, and the edges of the bins.

    Counts are piecewise constant; gradients flow to the weights and the edges.
    """

def histogram2d(x: _TensorLike, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the counts of points, or sums of weights, in the cells of a 2-d grid, and the edges along both axes."""

def histogram_bin_edges(a: _TensorLike, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """Return the edges of the bins of a histogram."""

def histogramdd(sample: _TensorLike, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Tensor, list[Tensor]]:
    """Return the counts of points, or sums of weights, in the cells of a grid, and the edges along each axis."""

def hstack(tup: _TensorLike, *, dtype: npt.DTypeLike | None = None, casting: str = 'same_kind') -> Tensor:
    """Concatenate tensors along the second dimension, and vectors along their only dimension."""

def ihfft(self: _TensorLike, n: int | None = None, axis: int = -1, norm: Literal["backward", "ortho", "forward"] | None = None) -> Tensor:
    """Return the inverse of `hfft`: half of a Hermitian-symmetric sequence."""

def index_add_(self: _TensorLike, axis: int, index: Any, source: Any) -> Tensor:
    """Add the slices of `source` at `index` along `axis`, in place, at a cost proportional to the size of `source`."""

def inner(a: _TensorLike, b: Any, /) -> Tensor:
    """Return the inner product over the last dimension of both tensors."""

def insert(arr: _TensorLike, obj: Any, values: Any, axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """Return a copy with values inserted before the given indices along an axis, or in the flattened tensor."""

def instance_norm(self: _TensorLike, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """Normalize each channel of each example to mean 0 and variance 1, then scale and shift."""

def intersect1d(ar1: _TensorLike, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Tensor:
    """Return the sorted elements that are in both tensors."""

def isclose(a: _TensorLike, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return whether elements are nearly equal, elementwise."""

def ldexp(x1: _TensorLike, x2: Any, /, out: Any = None, *, where: Any = True, casting: str = 'same_kind', order: str = 'K', dtype: npt.DTypeLike | None = None, subok: bool = True, signature: Any = None) -> Tensor:
    """Return `x1 * 2**x2`."""

def matrix_norm(self: _TensorLike, keepdims: bool = False, ord: str = 'fro') -> Tensor:
    """Return the norms of the matrices in the last two dimensions."""

def max(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def mean(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = 'xy') -> tuple[Tensor, ...]:
    """Return coordinate arrays from coordinate vectors.

    Arguments:
        tensors: the coordinates along each axis.
        copy: whether the results own their memory; otherwise they are views.
        sparse: whether the results have length 1 in the dimensions along which they are constant.
        indexing: "xy", for which the first axis is the second dimension of the results, or "ij".
    """

def min(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def multi_dot(arrays: _TensorLike) -> Tensor:
    """Return the product of several matrices in the cheapest order; the first and the last may be vectors."""

def nanargmax(a: _TensorLike, axis: _Axis = None, out: Any = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """Return the index of the maximum, ignoring NaN."""

def nanargmin(a: _TensorLike, axis: _Axis = None, out: Any = None, *, keepdims: bool = False, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """Return the index of the minimum, ignoring NaN."""

def nancumprod(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
    """Return the cumulative product, treating NaN as 1."""

def nancumsum(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, *, dim: _Axis = None) -> Tensor:
    """Return the cumulative sum, treating NaN as 0."""

def nanmax(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The maximum, ignoring NaN."""

def nanmean(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, *, where: Any = True, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def nanmin(a: _TensorLike, axis: _Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The minimum, ignoring NaN."""

def nanpercentile(a: _TensorLike, q: Any, axis: _Axis = None, out: Any = None, overwrite_input: bool = False, method: str = 'linear', keepdims: bool = ..., *, weights: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """Return the percentiles of the values, ignoring NaN."""

def nanprod(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The product, ignoring NaN."""

def nanstd(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The standard deviation, ignoring NaN."""

def nansum(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def nanvar(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """The variance, ignoring NaN."""

def nonzero(a: _TensorLike) -> tuple[Tensor, ...]:
    """Return the indices of the nonzero elements, one tensor for each dimension."""

def norm(self: _TensorLike, ord: Any = None, axis: _Axis = None, keepdims: bool = False) -> Tensor:
    """Return the norm of a vector or matrix, as in `numpy.linalg.norm`; its gradient at 0 is 0.

    Arguments:
        ord: the order; by default the square root of the sum of squares.
        axis: one dimension for vector norms, two for matrix norms, or None for the whole tensor.
        keepdims: whether to keep the reduced dimensions with length 1.
    """

def partition(a: _TensorLike, kth: Any, axis: _Axis = -1, kind: str = 'introselect', order: Any = None, *, dim: _Axis = None) -> Tensor:
    """Return a copy partitioned around the `kth` smallest value."""

def percentile(a: _TensorLike, q: Any, axis: _Axis = None, out: Any = None, overwrite_input: bool = False, method: str = 'linear', keepdims: bool = False, *, weights: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
    """Return the percentiles of the values."""

def piecewise(x: _TensorLike, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Return, for each element, the value of the function (or number) of the last true condition, or 0."""

def place(arr: _TensorLike, mask: Any, vals: Any) -> None:
    """Write values, in order, where a mask is true, in place."""

def poly(seq_of_zeros: _TensorLike) -> Tensor:
    """Return the coefficients of the polynomial with the given roots, or of a characteristic polynomial."""

def polyadd(a1: _TensorLike, a2: Any) -> Tensor:
    """Return the sum of two polynomials."""

def polyder(p: _TensorLike, m: Any = 1) -> Tensor:
    """Return the `m`-th derivative of a polynomial."""

def polydiv(u: _TensorLike, v: Any) -> tuple[Tensor, Tensor]:
    """Return the quotient and the remainder of two polynomials."""

def polyfit(x: _TensorLike, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False) -> Tensor:
    """Return the coefficients of the least-squares polynomial of degree `deg`.

    Gradients flow to the points and the weights.
    """

def polyint(p: _TensorLike, m: Any = 1, k: int | None = None) -> Tensor:
    """Return the `m`-th integral of a polynomial, with the integration constants `k`."""

def polymul(a1: _TensorLike, a2: Any) -> Tensor:
    """Return the product of two polynomials; leading zeros are ignored, as in NumPy."""

def polysub(a1: _TensorLike, a2: Any) -> Tensor:
    """Return the difference of two polynomials."""

def polyval(p: _TensorLike, x: Any) -> Tensor:
    """Evaluate the polynomial with coefficients `p`, highest power first, at `x`."""

def prod(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def put(a: _TensorLike, ind: Any, v: Any, mode: str = 'raise') -> None:
    """Write values at indices into the flattened tensor, in place."""

def put_along_axis(arr: _TensorLike, indices: Any, values: Any, axis: _Axis = -1, *, dim: _Axis = None) -> None:
    """Write `values` at `indices` along `axis`, in place; without an axis, into the flattened tensor."""

def putmask(a: _TensorLike, /, mask: Any, values: Any) -> None:
    """Write `values`, repeated as needed, where the mask is true, in place."""

def resized(a: _TensorLike, new_shape: Any) -> Tensor:
    """Return a copy in another shape, with the elements repeated as needed."""

def rms_norm(self: _TensorLike, normalized_shape: Any, weight: Any = None, eps: float = 1e-06) -> Tensor:
    """Divide by the root mean square over the last dimensions, then scale by `weight`."""

def roots(p: _TensorLike) -> Tensor:
    """Return the roots of a polynomial, differentiable in all coefficients; leading zeros are ignored, as in NumPy."""

def rot90(m: _TensorLike, k: int = 1, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = (0, 1)) -> Tensor:
    """Return a view rotated by `k` quarter turns in the plane of two dimensions, from the first to the second."""

def scatter_(self: _TensorLike, axis: int, index: Any, source: Any) -> Tensor:
    """Write `source` at `index` along `axis`, in place; the cost is proportional to the size of `source`."""

def scatter_add_(self: _TensorLike, axis: int, index: Any, source: Any) -> Tensor:
    """Add `source` at `index` along `axis`, in place; the cost is proportional to the size of `source`."""

def select(condlist: _TensorLike, choicelist: Any, default: Any = 0) -> Tensor:
    """Return, for each element, the choice of the first true condition, or `default`.

    `Tensor.select(dim, index)` and `viewgrad.torch_names.select` are PyTorch's function of that name.
    """

def setdiff1d(ar1: _TensorLike, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Return the elements of the first tensor that are not in the second, sorted unless they are assumed unique."""

def setxor1d(ar1: _TensorLike, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Return the sorted elements that are in exactly one of the two tensors."""

def split(ary: _TensorLike, indices_or_sections: Any, axis: _Axis = 0, *, dim: _Axis = None) -> list[Tensor]:
    """Split a tensor along an axis into equal sections or at given indices, as in `numpy.split`.

    `Tensor.split` and `viewgrad.torch_names.split` are PyTorch's function of that name, which accepts lengths.
    """

def std(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def sum(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True, *, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def tensorinv(a: _TensorLike, ind: int = 2) -> Tensor:
    """Return the inverse of the linear map `b -> tensordot(a, b, ind)`."""

def tensorsolve(a: _TensorLike, b: Any, axes: int | Sequence[int] | Sequence[Sequence[int]] | None = None) -> Tensor:
    """Solve `tensordot(a, x, x.ndim) == b` for the tensor `x`."""

def trim_zeros(filt: _TensorLike, trim: str = 'fb', axis: _Axis = None, *, dim: _Axis = None) -> Tensor:
    """Return a window without leading ("f" in `trim`) and trailing ("b") zeros, along all dimensions or `axis`."""

def union1d(ar1: _TensorLike, ar2: Any) -> Tensor:
    """Return the sorted distinct elements of both tensors."""

def unwrap(p: _TensorLike, discont: Any = None, axis: _Axis = -1, *, period: float = 6.283185307179586, dim: _Axis = None) -> Tensor:
    """Add multiples of `period` to the values, so that no step along `axis` exceeds half a period."""

def vander(x: _TensorLike, N: Any = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector."""

def var(a: _TensorLike, axis: _Axis = None, dtype: npt.DTypeLike | None = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = True, mean: Any = None, correction: Any = None, dim: _Axis = None, keepdim: bool | None = None) -> Tensor:
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

def vdot(a: _TensorLike, b: Any, /) -> Tensor:
    """Return the dot product of all elements; the first tensor is conjugated."""

def vstack(tup: _TensorLike, *, dtype: npt.DTypeLike | None = None, casting: str = 'same_kind') -> Tensor:
    """Stack vectors as rows, or concatenate tensors along the first dimension."""

acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
divide = div
multiply = mul
negative = neg
subtract = sub
