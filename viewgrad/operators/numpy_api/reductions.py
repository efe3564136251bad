"""Reductions with all of NumPy's options in NumPy's order: dtype=, out=, initial=, where=, ...

The operators support `axis` and `keepdims`; other options are implemented here. A bool as second argument, as in
`x.sum(0, True)`, is interpreted as `keepdims`, which is in this position in other libraries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.creation import as_operand
from ...tensor.tensor import UFUNCS, Tensor, as_scalar, from_array
from .. import OPERATORS
from ..derivatives.helpers import plain
from ..derivatives.nan_reductions import filled, nanmax, nanmin, nanprod, nanstd, nanvar, root_of_variance
from .dispatch import of_dtype, register, write_out

__all__: list[str] = []

_sum, _prod, _mean = OPERATORS["sum"].function, OPERATORS["prod"].function, OPERATORS["mean"].function
_var, _std = OPERATORS["var"].function, OPERATORS["std"].function
_max, _min = OPERATORS["max"].function, OPERATORS["min"].function
_all, _any = OPERATORS["all"].function, OPERATORS["any"].function
_where, _add, _mul = OPERATORS["where"].function, OPERATORS["add"].function, OPERATORS["mul"].function
_maximum, _minimum = OPERATORS["maximum"].function, OPERATORS["minimum"].function
_nansum, _nanmean = OPERATORS["nansum"].function, OPERATORS["nanmean"].function


def _is_given(value: Any) -> bool:
    return value is not None and value is not np._NoValue


def _written(result: Any, out: Any, name: str) -> Any:
    """Return the result, or write it to `out`, to whose dtype NumPy's reductions cast it."""
    if isinstance(out, tuple):
        (out,) = out
    return result if out is None else write_out(result, out, f"np.{name}", "unsafe")


def _as_result(found: Any) -> Tensor:
    """Convert a NumPy result to a tensor; a number becomes a scalar."""
    return from_array(found) if isinstance(found, np.generic) else from_array(np.asarray(found))  # type: ignore[arg-type]


def _axis(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _in_numpy_names(axis: Any, keepdims: Any, dim: Any, keepdim: Any) -> tuple[Any, Any]:
    """Return `axis` and `keepdims`, which may be passed as PyTorch's `dim` and `keepdim`."""
    return (axis if dim is None else dim), (keepdims if keepdim is None else keepdim)


def _keeps(keepdims: Any) -> bool:
    return bool(keepdims) if _is_given(keepdims) else False


def _chosen(self: Tensor, where: Any, neutral: Any) -> Any:
    """Return the elements where `where` is true, and the neutral element elsewhere."""
    mask = np.asarray(plain(where), bool)
    return self if mask.ndim == 0 and mask else _where(mask, self, neutral)


def _begun_with(initial: Any, result: Any, join: Callable[..., Any]) -> Any:
    """Return the result of a reduction with an initial value, which does not change the dtype."""
    if not _is_given(initial):
        return result
    start = as_operand(initial)
    return join(result, initial if start.dtype == result.dtype else start.astype(result.dtype))


def _is_integral(dtype: Any) -> bool:
    """Return whether the requested dtype has no gradient; NumPy then computes in it at each step."""
    return dtype is not None and np.dtype(dtype).kind not in "fc"


def _degrees(ddof: Any, correction: Any) -> Any:
    """Return the degrees of freedom of a variance, passed by NumPy's name or the array API standard's."""
    if not _is_given(correction):
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction are two names for one option: pass only one")
    return correction


def _counted(self: Tensor, axis: Any, keepdims: bool, where: Any) -> Any:
    """Return the number of selected elements, in a dtype that does not change that of the sum."""
    mask = np.broadcast_to(np.asarray(plain(where), bool), self.shape)
    count = np.asarray(np.sum(mask, axis=axis, keepdims=keepdims))
    return count.astype(self.dtype if self.dtype.kind in "fc" else float)


# -- sums and products -------------------------------------------------------------------------------------------------


def _summing(reduce: Callable[..., Any], join: Callable[..., Any], neutral: int, name: str) -> Callable[..., Any]:
    def reduced(
        self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
        where: Any = True, *, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        if dtype is None and out is None and initial is None and where is True and keepdims is False:
            return reduce(self, axis) if type(axis) is not list else reduce(self, tuple(axis))
        if isinstance(dtype, bool):
            dtype, keepdims = None, dtype
        self = as_operand(self)
        if dtype is not None:
            self = self.astype(dtype)
        if where is not True and _is_given(where):
            self = _chosen(self, where, neutral)
        keeps = _keeps(keepdims)
        result = of_dtype(reduce(self, _axis(axis), keeps), dtype)
        return _written(_begun_with(initial, result, join), out, name)

    return reduced


def _mean_of(
    self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True,
    dim: Any = None, keepdim: Any = None,
) -> Any:  # fmt: skip
    """Return the arithmetic mean of all elements, or of those along `axis`."""
    if dim is not None or keepdim is not None:
        axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
    if dtype is None and out is None and where is True and keepdims is False:
        return _mean(self, axis) if type(axis) is not list else _mean(self, tuple(axis))
    if isinstance(dtype, bool):
        dtype, keepdims = None, dtype
    axis, keeps = _axis(axis), _keeps(keepdims)
    if _is_integral(dtype):
        found = np.mean(plain(as_operand(self)), axis, dtype, keepdims=keeps, where=plain(where))
        return _written(_as_result(found), out, "mean")
    self = as_operand(self) if dtype is None else as_operand(self).astype(dtype)
    if where is True or not _is_given(where):
        return _written(_mean(self, axis, keeps), out, "mean")
    count = _counted(self, axis, keeps, where)
    return _written(_sum(_chosen(self, where, 0), axis, keeps) / count, out, "mean")


def _spread_options(axis: Any, dtype: Any, ddof: Any, keepdims: Any, correction: Any) -> tuple[Any, Any, Any, bool]:
    """Return the axis, the dtype, `ddof` and `keepdims` from the arguments of a variance.

    The second positional argument is `ddof` in `x.var(0, 1)` and `keepdims` in `x.var(0, True)`.
    """
    if type(dtype) is int:
        dtype, ddof = None, dtype
    elif isinstance(dtype, bool):
        dtype, keepdims = None, dtype
    return _axis(axis), dtype, _degrees(ddof, correction), _keeps(keepdims)


def _spread(of: Callable[..., Any], root: bool, name: str) -> Callable[..., Any]:
    def spread(
        self: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = None, correction: Any = None, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        axis, dtype, ddof, keeps = _spread_options(axis, dtype, ddof, keepdims, correction)
        self = as_operand(self)
        if _is_integral(dtype) or (dtype is not None and self.dtype.kind not in "fc" and not _is_given(mean)):
            chosen = True if not _is_given(where) else plain(where)
            found = getattr(np, name)(plain(self), axis, dtype, None, ddof, keeps, where=chosen)
            return _written(_as_result(found), out, name)
        if dtype is not None and self.is_complex() and np.dtype(dtype).kind == "f":
            # NumPy computes the mean, but not the deviations from it, without the imaginary parts.
            mean = mean if _is_given(mean) else _mean_of(self.real, axis, dtype, None, True, where=where)
        elif dtype is not None:
            self = self.astype(dtype)
        if (where is True or not _is_given(where)) and not _is_given(mean):
            return _written(of_dtype(of(self, axis, ddof, keeps), dtype), out, name)
        where = True if not _is_given(where) else where
        if self.dtype.kind not in "fc":
            self = self.astype(float)
        count = _counted(self, axis, True, where)
        centre = as_operand(mean) if _is_given(mean) else _sum(_chosen(self, where, 0), axis, True) / count
        distances = self - centre
        squares = (distances * distances.conj()).real if distances.is_complex() else distances * distances
        result = _sum(_chosen(squares, where, 0), axis, keeps) / np.maximum(
            _counted(squares, axis, keeps, where) - ddof, 0
        )
        result = of_dtype(result, dtype)
        return _written(root_of_variance(result) if root else result, out, name)

    return spread


# -- extrema -----------------------------------------------------------------------------------------------------------


def _extreme(reduce: Callable[..., Any], join: Callable[..., Any], numpy: np.ufunc, name: str) -> Callable[..., Any]:
    def extreme(
        self: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True,
        *, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        if out is None and initial is None and where is True and keepdims is False:
            return reduce(self, axis) if type(axis) is not list else reduce(self, tuple(axis))
        if isinstance(out, bool):
            out, keepdims = None, out
        self, axis = as_operand(self), _axis(axis)
        keeps = _keeps(keepdims)
        if where is not True and _is_given(where):
            if not _is_given(initial):
                raise ValueError(f"reduction operation '{numpy.__name__}' does not have an identity, so to use a where "
                                 "mask one has to specify 'initial'")  # fmt: skip
            self = _chosen(self, where, _least(self.dtype, numpy is np.maximum))
        if not self.size and _is_given(initial):
            found = numpy.reduce(self._array, axis=axis, keepdims=keeps, initial=plain(as_operand(initial)))
            result = as_operand(initial).astype(self.dtype).broadcast_to(np.shape(found)).clone()
            result = as_scalar(result) if isinstance(found, np.generic) else result
        else:
            result = reduce(self, axis, keeps)
            result = _begun_with(initial, result, join)
        return _written(result, out, name)

    return extreme


def _least(dtype: np.dtype[Any], greatest_wanted: bool) -> Any:
    if dtype.kind in "fc":  # complex numbers are ordered by real part, then by imaginary part
        bound = -math.inf if greatest_wanted else math.inf
        return complex(bound, bound) if dtype.kind == "c" else bound
    if dtype.kind == "b":
        return not greatest_wanted
    limits = np.iinfo(dtype)
    return limits.min if greatest_wanted else limits.max


def _logical(reduce: Callable[..., Any], neutral: bool, name: str) -> Callable[..., Any]:
    def logical(
        self: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True, dim: Any = None,
        keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        if isinstance(out, bool):
            out, keepdims = None, out
        self = as_operand(self)
        if where is not True and _is_given(where):
            self = _chosen(self != 0, where, neutral)
        return _written(reduce(self, _axis(axis), _keeps(keepdims)), out, name)

    return logical


def _running(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    def running(
        self: Any, axis: Any = None, dtype: Any = None, out: Any = None, *, dim: Any = None,
    ) -> Any:  # fmt: skip
        axis = axis if dim is None else dim
        self = as_operand(self) if dtype is None else as_operand(self).astype(dtype)
        return _written(of_dtype(run(self, axis), dtype), out, name)

    return running


def _placing(find: Callable[..., Any], name: str) -> Callable[..., Any]:
    def placing(
        self: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        if isinstance(out, bool):
            out, keepdims = None, out
        return _written(find(as_operand(self), axis, _keeps(keepdims)), out, name)

    return placing


REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": _summing(_sum, _add, 0, "sum"),
    "prod": _summing(_prod, _mul, 1, "prod"),
    "mean": _mean_of,
    "var": _spread(_var, False, "var"),
    "std": _spread(_std, True, "std"),
    "max": _extreme(_max, _maximum, np.maximum, "max"),
    "min": _extreme(_min, _minimum, np.minimum, "min"),
    "all": _logical(_all, True, "all"),
    "any": _logical(_any, False, "any"),
    "cumsum": _running(OPERATORS["cumsum"].function, "cumsum"),
    "cumprod": _running(OPERATORS["cumprod"].function, "cumprod"),
    "argmax": _placing(OPERATORS["argmax"].function, "argmax"),
    "argmin": _placing(OPERATORS["argmin"].function, "argmin"),
}
for _name, _function in REDUCTIONS.items():
    _function.__name__, _function.__doc__ = _name, OPERATORS[_name].doc


# -- missing values ----------------------------------------------------------------------------------------------------


def _present(self: Tensor, where: Any = True) -> Any:
    """Return the mask of the elements chosen by `where` that are not NaN."""
    found = ~np.isnan(self._array)
    return found & np.asarray(plain(where), bool) if where is not True and _is_given(where) else found


def _inexact(self: Tensor, dtype: Any) -> Tensor:
    """Return the values in the requested dtype, which must support NaN."""
    if self.dtype.kind in "fc" and _is_integral(dtype):
        raise TypeError("If a is inexact, then dtype must be inexact")
    return self if dtype is None or _is_integral(dtype) else self.astype(dtype)


def _skipping_sum(of: Callable[..., Any], reduced: Callable[..., Any], neutral: int, doc: str) -> Callable[..., Any]:
    def skipping(
        self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None,
        where: Any = True, *, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        if isinstance(dtype, bool):
            dtype, keepdims = None, dtype
        if dtype is None and out is None and not _is_given(initial) and where is True:
            return of(self, _axis(axis), _keeps(keepdims))
        return reduced(filled(as_operand(self), neutral), axis, dtype, out, keepdims, initial, where)

    skipping.__name__, skipping.__doc__ = of.__name__, doc
    return skipping


def _skipping_mean(
    self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True,
    dim: Any = None, keepdim: Any = None,
) -> Any:  # fmt: skip
    """Return the mean, ignoring NaN."""
    if dim is not None or keepdim is not None:
        axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
    if isinstance(dtype, bool):
        dtype, keepdims = None, dtype
    self = _inexact(as_operand(self), dtype)
    if self.dtype.kind not in "fc":
        return _mean_of(self, axis, dtype, out, keepdims, where=where)
    if where is True or not _is_given(where):
        return _written(_nanmean(self, _axis(axis), _keeps(keepdims)), out, "nanmean")
    return _mean_of(self, axis, None, out, keepdims, where=_present(self, where))


def _skipping_spread(of: Callable[..., Any], spread: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def skipping(
        self: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = None, correction: Any = None, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        axis, dtype, ddof, keeps = _spread_options(axis, dtype, ddof, keepdims, correction)
        self = as_operand(self)
        partly = self.is_complex() and dtype is not None and np.dtype(dtype).kind == "f"  # of the mean only
        self = self if partly else _inexact(self, dtype)
        if self.dtype.kind not in "fc":
            return spread(self, axis, dtype, out, ddof, keeps, where=where, mean=mean)
        if (where is True or not _is_given(where)) and not _is_given(mean) and not partly:
            return _written(of_dtype(of(self, axis, ddof, keeps), dtype), out, of.__name__)
        present = _present(self, where)
        result = spread(self, axis, dtype if partly else None, None, ddof, keeps, where=present, mean=mean)
        few = _counted(self, axis, keeps, present).real <= ddof
        return _written(of_dtype(result.masked_fill(few, math.nan), dtype or self._array.real.dtype), out, of.__name__)

    skipping.__name__, skipping.__doc__ = of.__name__, doc
    return skipping


def _skipping_extreme(
    of: Callable[..., Any], reduced: Callable[..., Any], least: float, doc: str
) -> Callable[..., Any]:
    def skipping(
        self: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True,
        *, dim: Any = None, keepdim: Any = None,
    ) -> Any:  # fmt: skip
        if dim is not None or keepdim is not None:
            axis, keepdims = _in_numpy_names(axis, keepdims, dim, keepdim)
        if isinstance(out, bool):
            out, keepdims = None, out
        self = as_operand(self)
        if self.dtype.kind not in "fc":
            return reduced(self, axis, out, keepdims, initial, where)
        if _is_given(initial) or (where is not True and _is_given(where)):
            return reduced(filled(self, least), axis, out, keepdims, initial, where)
        return _written(of(self, _axis(axis), _keeps(keepdims)), out, of.__name__)

    skipping.__name__, skipping.__doc__ = of.__name__, doc
    return skipping


REDUCTIONS.update(
    {
        "nansum": _skipping_sum(_nansum, REDUCTIONS["sum"], 0, "The sum, ignoring NaN."),
        "nanprod": _skipping_sum(nanprod, REDUCTIONS["prod"], 1, "The product, ignoring NaN."),
        "nanmean": _skipping_mean,
        "nanvar": _skipping_spread(nanvar, REDUCTIONS["var"], "The variance, ignoring NaN."),
        "nanstd": _skipping_spread(nanstd, REDUCTIONS["std"], "The standard deviation, ignoring NaN."),
        "nanmax": _skipping_extreme(nanmax, REDUCTIONS["max"], -math.inf, "The maximum, ignoring NaN."),
        "nanmin": _skipping_extreme(nanmin, REDUCTIONS["min"], math.inf, "The minimum, ignoring NaN."),
    }
)


def _reduce_of(function: Callable[..., Any], has_dtype: bool) -> Callable[..., Any]:
    """Return a reduction as the ufunc method `reduce`, whose axis defaults to 0."""

    def reduce(
        array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        array = as_operand(array)
        if not array.ndim and axis == 0:
            axis = None
        options = {"keepdims": keepdims, "where": where, "out": out}
        if has_dtype:
            return function(array, axis, dtype, initial=initial, **options)
        return function(array if dtype is None else array.astype(dtype), axis, initial=initial, **options)

    return reduce


def _logical_reduce_of(function: Callable[..., Any], ufunc: np.ufunc) -> Callable[..., Any]:
    def reduce(
        array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> Any:  # fmt: skip
        array = as_operand(array)
        axis = None if not array.ndim and axis in (0, -1) else axis
        result = function(array, axis, None, keepdims, where=where)
        return _written(ufunc(result, initial) if _is_given(initial) else result, out, f"{ufunc.__name__}.reduce")

    return reduce


def _install() -> None:
    for name, function in REDUCTIONS.items():
        setattr(Tensor, name, function)
        register(getattr(np, name), function)
    register(np.amax, REDUCTIONS["max"])
    register(np.amin, REDUCTIONS["min"])
    for ufunc, name in ((np.add, "sum"), (np.multiply, "prod"), (np.maximum, "max"), (np.minimum, "min")):
        UFUNCS[ufunc, "reduce"] = _reduce_of(REDUCTIONS[name], name in ("sum", "prod"))
    for logical, name in ((np.logical_and, "all"), (np.logical_or, "any")):
        UFUNCS[logical, "reduce"] = _logical_reduce_of(REDUCTIONS[name], logical)


_install()
