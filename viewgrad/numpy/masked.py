"""Masked tensors: the counterpart of `numpy.ma` for tensors with a history. Masks have no derivative.

Masked values take no part in any computation, so infinities and NaN among them do not affect gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, plain_values
from ..tensor.creation import as_operand
from .masked_elements import (
    MaskedElements,
    delivered,
    places_and_mask,
    unmasked,
    values_and_mask,
    without_history,
)
from .operator_methods import define_operators

# Domains of functions; outside them the result is masked.
DOMAINS: Final[dict[Any, Callable[..., Any]]] = {
    np.log: lambda x: x <= 0,
    np.log2: lambda x: x <= 0,
    np.log10: lambda x: x <= 0,
    np.sqrt: lambda x: x < 0,
    np.arcsin: lambda x: np.abs(x) > 1,
    np.arccos: lambda x: np.abs(x) > 1,
    np.arccosh: lambda x: x < 1,
    np.arctanh: lambda x: np.abs(x) >= 1,
    np.fmod: lambda x, y: np.broadcast_to(y == 0, np.broadcast_shapes(np.shape(x), np.shape(y))),
    np.remainder: lambda x, y: np.broadcast_to(y == 0, np.broadcast_shapes(np.shape(x), np.shape(y))),
    np.floor_divide: lambda x, y: np.broadcast_to(y == 0, np.broadcast_shapes(np.shape(x), np.shape(y))),
    np.true_divide: lambda x, y: np.broadcast_to(y == 0, np.broadcast_shapes(np.shape(x), np.shape(y))),
}


class MaskedTensor(MaskedElements):
    """A tensor with masked elements; see `numpy.ma.MaskedArray`.

    Arguments:
        data: the values.
        mask: the mask, which is true for masked elements.
        fill_value: the value with which `filled` replaces masked elements.
    """

    __array_priority__ = 100.0

    def _created(self, subok: bool) -> Any:
        """Return the result of `numpy.array` for the object: the object itself with `subok`."""
        return self if subok else unmasked(self, "numpy.asarray")

    def __bool__(self) -> bool:
        return bool(np.ma.MaskedArray(plain_values(self.data.detach()), self.mask))

    def __repr__(self) -> str:
        return f"MaskedTensor({self.data!r}, mask={self.mask!r})"

    # -- reductions ----------------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the sum of the unmasked values."""
        found = self.filled(0).sum(axis=axis, dtype=dtype, keepdims=keepdims)
        return delivered(self._masked_where_empty(found, axis, keepdims), out)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the product of the unmasked values."""
        found = self.filled(1).prod(axis=axis, dtype=dtype, keepdims=keepdims)
        return delivered(self._masked_where_empty(found, axis, keepdims), out)

    product = prod

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Return the mean of the unmasked values."""
        count = np.maximum(self.count(axis, keepdims), 1)
        found = self.filled(0).sum(axis=axis, dtype=dtype, keepdims=keepdims) / count
        return delivered(self._masked_where_empty(found, axis, keepdims), out)

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False,
        mean: Any = None,
    ) -> Any:  # fmt: skip
        """Return the variance of the unmasked values."""
        values = self.filled(0) if dtype is None else self.filled(0).astype(dtype)
        centre = mean if mean is not None else (
            values.sum(axis=axis, keepdims=True) / np.maximum(self.count(axis, True), 1)
        )  # fmt: skip
        away = np.where(self.mask, 0.0, values - (centre.data if isinstance(centre, MaskedTensor) else centre))
        squares = (away * away.conj()).real if away.dtype.kind == "c" else away * away
        total = squares.sum(axis=axis, keepdims=keepdims)
        left = self.count(axis, keepdims) - ddof
        found = total / np.where(left > 0, left, 1)
        return delivered(self._masked_where_empty(found, axis, keepdims, ddof), out)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False,
        mean: Any = None,
    ) -> Any:  # fmt: skip
        """Return the standard deviation of the unmasked values."""
        found = self.var(axis, dtype, None, ddof, keepdims, mean)
        return delivered(found if found is np.ma.masked else np.sqrt(found), out)

    def min(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: bool = False) -> Any:
        """Return the minimum of the unmasked values."""
        found = self.filled(np.inf if fill_value is None else fill_value).min(axis=axis, keepdims=keepdims)
        return delivered(self._masked_where_empty(found, axis, keepdims), out)

    def max(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: bool = False) -> Any:
        """Return the maximum of the unmasked values."""
        found = self.filled(-np.inf if fill_value is None else fill_value).max(axis=axis, keepdims=keepdims)
        return delivered(self._masked_where_empty(found, axis, keepdims), out)

    def ptp(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: bool = False) -> Any:
        """Return the range of the unmasked values, maximum minus minimum."""
        found = self.max(axis, None, fill_value, keepdims) - self.min(axis, None, fill_value, keepdims)
        return delivered(found, out)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the cumulative sums; masked values count as 0."""
        return delivered(self._running(np.cumsum, 0, axis, dtype), out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """Return the cumulative products; masked values count as 1."""
        return delivered(self._running(np.cumprod, 1, axis, dtype), out)

    def _running(self, function: Callable[..., Any], neutral: int, axis: Any, dtype: Any) -> MaskedTensor:
        mask = self.mask.reshape(-1) if axis is None else self.mask
        return MaskedTensor(function(self.filled(neutral), axis=axis, dtype=dtype), mask, self.fill_value)

    def anom(self, axis: Any = None, dtype: Any = None) -> Any:
        """Return the deviations from the mean of the unmasked values."""
        return self - self.mean(axis, dtype, keepdims=axis is not None)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """Return the values limited to an interval."""
        safe = np.where(self.mask, 0.5, self.data)
        return delivered(MaskedTensor(np.clip(safe, min, max), self.mask, self.fill_value), out)

    def dot(self, other: Any, out: Any = None, strict: bool = False) -> Any:
        """Return the matrix product, with masked values treated as 0; elements without unmasked products are masked."""
        other = as_masked(other)
        found, known = np.dot(self.filled(0), other.filled(0)), np.dot(~self.mask, ~other.mask)
        if strict:
            if self.ndim != 2 or other.ndim != 2:
                raise lost("numpy.ma.dot", "strict=True is supported for two matrices only")
            hidden = self.mask.any(1)[:, None] | other.mask.any(0)
            return delivered(MaskedTensor(found, hidden | ~known, self.fill_value), out)
        if np.ndim(known):
            return delivered(MaskedTensor(found, ~known, self.fill_value), out)
        return found if known else np.ma.masked

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
        """Return the sum of the unmasked values on a diagonal."""
        return self.diagonal(offset, axis1, axis2).sum(-1, dtype, out)

    def partition(self, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
        """Partition the values along a dimension in place.

        Raises:
            UnsupportedFunctionError: if any value is masked, since masks are ignored.
        """
        values = unmasked(self, "numpy.ma.MaskedArray.partition")
        places = np.argpartition(plain_values(values.detach()), kth, axis)
        self.data[...] = np.take_along_axis(values, places, axis)

    def _masked_where_empty(self, found: Any, axis: Any, keepdims: bool, fewest: int = 0) -> Any:
        empty = self.count(axis, keepdims) <= fewest
        if np.ndim(empty):
            return MaskedTensor(found, empty, self.fill_value)
        return np.ma.masked if empty else found

    def __pos__(self) -> Any:
        return self.__array_ufunc__(np.positive, "__call__", self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self.__array_ufunc__(np.negative, "__call__", self)

    def __abs__(self) -> Any:
        return self.__array_ufunc__(np.absolute, "__call__", self)

    def __invert__(self) -> Any:
        return self.__array_ufunc__(np.invert, "__call__", self)

    # -- functions of NumPy --------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout > 1:
            return NotImplemented
        if ufunc is np.matmul:  # ignores masks
            return ufunc(*(unmasked(each, "numpy.matmul") for each in inputs))
        parts = [values_and_mask(each) for each in inputs]
        mask: Any = np.zeros(np.broadcast_shapes(*(np.shape(each) for each, _ in parts)), bool)
        for _, hidden in parts:
            mask = mask | hidden
        domain = DOMAINS.get(ufunc)
        if domain is not None:
            mask = mask | domain(*(plain_values(data.detach()) for data, _ in parts))
        if ufunc in OF_MASKED_TOO:
            found = ufunc(*(plain_values(data.detach()) for data, _ in parts))
            if ufunc in (np.equal, np.not_equal):  # under the mask NumPy compares the masks
                found = np.where(mask, ufunc(*(hidden for _, hidden in parts)), found)
            return MaskedTensor(found, mask, self.fill_value)
        # Masked elements are replaced by a value at which every function is smooth.
        safe = [
            np.where(mask, 0.5 if data.dtype.kind in "fc" else data.dtype.type(1), np.broadcast_to(data, mask.shape))
            if mask.any() else data for data, _ in parts
        ]  # fmt: skip
        found = ufunc(*safe)
        return MaskedTensor(found, mask, self.fill_value)

    def _assign(self, found: MaskedTensor) -> None:
        self.data[...] = np.where(found.mask, self.data, found.data)
        self._mask[...] = found.mask

    def __array_function__(self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any) -> Any:
        name: str = function.__name__
        if function.__module__ == "numpy.linalg":
            return function(*[unmasked(each, f"numpy.linalg.{name}") for each in args], **kwargs)
        if getattr(np, name, None) is not function:
            return NotImplemented
        if name == "average":
            return _plain_average(*args, **kwargs)
        if name in KEEPING:
            return FUNCTIONS[name](*args, **kwargs)
        if name in JOINING or name in OF_DATA:
            given = [unmasked(each, f"numpy.{name}") for each in args]
            found = function(*given, **{key: unmasked(value, f"numpy.{name}") for key, value in kwargs.items()})
            return MaskedTensor(found) if name in JOINING else found
        return NotImplemented


define_operators(
    MaskedTensor, ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "matmul", "and", "or", "xor")
)

# NumPy's own functions that respect masks, and those that ignore them; some of the latter return masked arrays.
KEEPING: Final = frozenset(
    """
    all allclose amax amin any argmax argmin argsort around atleast_1d atleast_2d atleast_3d clip compress
    cumprod cumsum diagonal diff empty_like expand_dims isin max mean min ndim nonzero ones_like prod ptp put ravel
    repeat reshape round shape size sort squeeze std sum swapaxes take trace transpose var zeros_like broadcast_arrays
    """.split()
)
JOINING: Final = frozenset(
    {"append", "column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack", "row_stack"}
)
OF_DATA: Final = frozenset(
    """
    convolve copy corrcoef correlate cov dot inner interp outer polyfit tensordot vander vdot where
    """.split()
)
# Functions without a derivative, which NumPy also computes for masked elements.
OF_MASKED_TOO: Final = frozenset({
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
    np.invert, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or, np.logical_xor,
    np.logical_not, np.isnan, np.isfinite, np.isinf,
})  # fmt: skip


# -- the functions of numpy.ma -----------------------------------------------------------------------------------------

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}


def _masked_array(
    data: Any, mask: Any = np.ma.nomask, dtype: Any = None, copy: Any = False, subok: bool = True, ndmin: int = 0,
    fill_value: Any = None, keep_mask: bool = True, hard_mask: Any = None, shrink: bool = True, order: Any = None,
) -> Any:  # fmt: skip
    values, known = values_and_mask(data)
    given = np.asarray(plain_values(mask), bool)
    hidden = known | given if keep_mask or mask is np.ma.nomask else given
    values = _copied(values if dtype is None else values.astype(dtype), copy)
    for _ in range(ndmin - values.ndim):
        values, hidden = values[None], np.broadcast_to(hidden, values.shape)[None]
    inherited = getattr(data, "fill_value", None) if fill_value is None else fill_value
    # An array without a mask gets one by assignment to `mask`.
    made = MaskedTensor(values, hidden if hidden.any() or mask is not np.ma.nomask else np.ma.nomask, inherited)
    made.hardmask = getattr(data, "hardmask", False) if hard_mask is None else bool(hard_mask)
    if given is mask and not known.any() and not copy and given.shape == values.shape:
        made.share_mask(given)  # as NumPy does
    return made


def _as_array(a: Any, dtype: Any = None, order: Any = None) -> Any:
    return a if isinstance(a, MaskedTensor) and dtype is None else _masked_array(a, dtype=dtype)


def _copied(values: Any, copy: Any) -> Any:
    return values.clone() if copy else values


def _masked_where(condition: Any, a: Any, copy: bool = True) -> MaskedTensor:
    values, known = values_and_mask(a)
    hidden = np.asarray(plain_values(values_and_mask(condition)[0].detach()), bool)
    return MaskedTensor(_copied(values, copy), known | hidden, getattr(a, "fill_value", None))


def _comparing(name: str, compare: Callable[..., Any]) -> None:
    def function(x: Any, *limits: Any, copy: bool = True) -> MaskedTensor:
        values, known = values_and_mask(x)
        hidden = known | compare(plain_values(values.detach()), *map(plain_values, limits))
        return MaskedTensor(_copied(values, copy), hidden, getattr(x, "fill_value", None))

    FUNCTIONS[name] = function


COMPARISONS: Final[dict[str, Callable[..., Any]]] = {
    "masked_invalid": lambda x: ~np.isfinite(x),
    "masked_equal": lambda x, v: x == v,
    "masked_not_equal": lambda x, v: x != v,
    "masked_greater": lambda x, v: x > v,
    "masked_greater_equal": lambda x, v: x >= v,
    "masked_less": lambda x, v: x < v,
    "masked_less_equal": lambda x, v: x <= v,
    "masked_inside": lambda x, a, b: (x >= min(a, b)) & (x <= max(a, b)),
    "masked_outside": lambda x, a, b: (x < min(a, b)) | (x > max(a, b)),
}
for _name, _compare in COMPARISONS.items():
    _comparing(_name, _compare)


def _method(name: str) -> None:
    FUNCTIONS[name] = lambda a, *args, **kwargs: getattr(as_masked(a), name)(*args, **kwargs)


for _name in (
    "sum", "prod", "mean", "var", "std", "min", "max", "ptp", "count", "filled", "compressed", "ravel", "reshape",
    "cumsum", "cumprod", "anom", "clip", "dot", "transpose", "squeeze", "trace", "take", "put", "repeat", "diagonal",
    "swapaxes", "round", "harden_mask", "soften_mask", "set_fill_value", "argpartition", "searchsorted",
):  # fmt: skip
    _method(_name)
for _name in (
    "sqrt", "log", "log2", "log10", "exp", "sin", "cos", "tan", "arctan", "arcsin", "arccos", "sinh", "cosh", "tanh",
    "add", "subtract", "multiply", "divide", "true_divide", "power", "absolute", "negative", "maximum", "minimum",
    "abs", "arccosh", "arcsinh", "arctan2", "arctanh", "ceil", "conjugate", "equal", "fabs", "floor", "floor_divide",
    "fmod", "greater", "greater_equal", "hypot", "less", "less_equal", "mod", "not_equal", "remainder",
):  # fmt: skip
    FUNCTIONS[_name] = lambda first, *args, _name=_name: as_masked(first).__array_ufunc__(
        getattr(np, _name), "__call__", first, *args
    )


def as_masked(value: Any) -> MaskedTensor:
    """Return a masked array, or an operand without a mask, as a masked tensor."""
    return value if isinstance(value, MaskedTensor) else MaskedTensor(*values_and_mask(value))


def _rearranging(name: str, takes_list: bool) -> None:
    """Define a function that rearranges elements, and applies the same to masks."""
    function = getattr(np, name)

    def rearranged(a: Any, *args: Any, **kwargs: Any) -> MaskedTensor:
        if not takes_list:
            data, mask = values_and_mask(a)
            return MaskedTensor(function(data, *args, **kwargs), function(mask, *args, **kwargs))
        parts = [values_and_mask(each) for each in a]
        data, masks = [data for data, _ in parts], [mask for _, mask in parts]
        return MaskedTensor(function(data, *args, **kwargs), function(masks, *args, **kwargs))

    FUNCTIONS[name] = rearranged


for _name in ("column_stack", "dstack", "hstack", "stack", "vstack"):
    _rearranging(_name, True)
for _name in (
    "atleast_1d", "atleast_2d", "atleast_3d", "diag", "diagflat", "expand_dims", "resize",
):  # fmt: skip
    _rearranging(_name, False)


def _piecewise_constant(name: str) -> None:
    """Define a function whose result has no derivative: indices, booleans, shapes."""
    function = getattr(np.ma, name)
    FUNCTIONS[name] = lambda *args, **kwargs: function(
        *map(without_history, args), **{key: without_history(value) for key, value in kwargs.items()}
    )


for _name in (
    "all", "allclose", "allequal", "any", "argmax", "argmin", "argsort", "clump_masked", "clump_unmasked", "empty_like",
    "flatnotmasked_contiguous", "flatnotmasked_edges", "isin", "logical_and", "logical_not", "logical_or", "mask_or",
    "alltrue", "logical_xor", "ndenumerate", "ndim", "nonzero", "sometrue",
    "notmasked_contiguous", "notmasked_edges", "ones_like", "shape", "size", "zeros_like",
):  # fmt: skip
    _piecewise_constant(_name)


for _name in ("all", "any", "argmax", "argmin", "argsort", "nonzero"):
    setattr(MaskedTensor, _name, FUNCTIONS[_name])


def _masked_values(
    x: Any, value: Any, rtol: float = 1e-5, atol: float = 1e-8, copy: bool = True, shrink: bool = True
) -> Any:
    values, known = values_and_mask(x)
    hidden = known | np.isclose(plain_values(values.detach()), value, rtol=rtol, atol=atol)
    return MaskedTensor(_copied(values, copy), hidden, value)


def _diff(a: Any, n: int = 1, axis: int = -1) -> MaskedTensor:
    data, mask = values_and_mask(a)
    for _ in range(n):
        length = mask.shape[axis]
        later, earlier = np.arange(1, length), np.arange(length - 1)
        mask = np.take(mask, later, axis=axis) | np.take(mask, earlier, axis=axis)
        data = np.take(data, later, axis=axis) - np.take(data, earlier, axis=axis)
    return MaskedTensor(data, mask)


def _sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **options: Any) -> MaskedTensor:
    """Sort along an axis; masked elements come last, as in NumPy."""
    return as_masked(a).sorted(axis, kind=kind, **options)


def _append(a: Any, b: Any, axis: Any = None) -> MaskedTensor:
    return _concatenate([as_masked(a).ravel(), as_masked(b).ravel()] if axis is None else [a, b], axis or 0)


def _outer(a: Any, b: Any) -> MaskedTensor:
    (x, hidden), (y, covered) = values_and_mask(a), values_and_mask(b)
    data = np.outer(np.where(hidden, 0, x), np.where(covered, 0, y))
    return MaskedTensor(data, np.logical_or.outer(hidden.reshape(-1), covered.reshape(-1)))


def _inner(a: Any, b: Any) -> Any:
    """Implement `numpy.ma.inner`: masked values count as 0, and the result has no mask."""
    return np.inner(as_masked(a).filled(0), as_masked(b).filled(0))


def _convolved(name: str, usual: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def convolved(a: Any, v: Any, mode: str = usual, propagate_mask: bool = True) -> MaskedTensor:
        (x, hidden), (y, covered) = values_and_mask(a), values_and_mask(v)
        if propagate_mask:  # all values that are combined with a masked one
            mask = function(hidden, np.ones(covered.shape, bool), mode)
            mask = mask | function(np.ones(hidden.shape, bool), covered, mode)
        else:  # elements without any pair of unmasked values
            mask = ~function(~hidden, ~covered, mode)
        return MaskedTensor(function(np.where(hidden, 0, x), np.where(covered, 0, y), mode), mask)

    return convolved


def _differences(arr: Any, to_end: Any = None, to_begin: Any = None) -> MaskedTensor:
    between = _diff(as_masked(arr).ravel())
    ends = [None if each is None else as_masked(each).ravel() for each in (to_begin, to_end)]
    return _concatenate([each for each in (ends[0], between, ends[1]) if each is not None])


def _vander(x: Any, n: Any = None) -> Any:
    """Implement `numpy.ma.vander`: the rows of masked values are 0."""
    a = as_masked(x)
    rows = np.vander(np.where(a.mask, 0.0, a.data), n)
    return np.where(a.mask[:, None], 0.0, rows) if a.mask.any() else rows


def _polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Implement `numpy.ma.polyfit`: points with a masked value are ignored."""
    x, y, w = as_masked(x), as_masked(y), None if w is None else as_masked(w)
    if y.ndim > 1 and y.mask.any():
        hidden = x.mask | y.mask.any(axis=1)
    else:
        hidden = x.mask | (y.mask if y.ndim == 1 else False)
    seen = ~(hidden if w is None else hidden | w.mask)
    fit: Any = np.polyfit
    return fit(x.data[seen], y.data[seen], deg, rcond, full, None if w is None else w.data[seen], cov)


def _choose(indices: Any, choices: Any, out: Any = None, mode: Any = "raise") -> MaskedTensor:
    places, hidden = places_and_mask(without_history(indices))
    parts = [values_and_mask(each) for each in choices]
    data = np.choose(places, [data for data, _ in parts], mode=mode)
    return MaskedTensor(data, np.choose(places, [mask for _, mask in parts], mode=mode) | hidden)


def _putmask(a: MaskedTensor, mask: Any, values: Any) -> None:
    (data, hidden), chosen = values_and_mask(values), np.asarray(plain_values(mask), bool)
    if a.hardmask:
        chosen = chosen & ~a.mask
    own: Any = a.data
    np.copyto(own, data, where=chosen)
    np.copyto(a.mask, hidden, where=chosen)


def _split(ary: Any, indices_or_sections: Any) -> list[MaskedTensor]:
    parts = zip(*(np.hsplit(part, indices_or_sections) for part in values_and_mask(ary)), strict=True)
    return [MaskedTensor(data, mask) for data, mask in parts]


def _along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    data, mask = (np.moveaxis(part, axis, -1) for part in values_and_mask(arr))
    shape = mask.shape[:-1]
    lanes = [
        func1d(MaskedTensor(lane, hidden), *args, **kwargs)
        for lane, hidden in zip(data.reshape(-1, data.shape[-1]), mask.reshape(-1, mask.shape[-1]), strict=True)
    ]
    parts = [(as_operand(0.0), np.array(True)) if each is np.ma.masked else values_and_mask(each) for each in lanes]
    found, hidden = np.stack([part for part, _ in parts]), np.stack([part for _, part in parts])
    found, hidden = (part.reshape(shape + part.shape[1:]) for part in (found, hidden))
    if found.ndim > len(shape):
        found, hidden = np.moveaxis(found, -1, axis), np.moveaxis(hidden, -1, axis)
    return MaskedTensor(found, hidden)


def _over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    found = as_masked(a)
    for axis in np.atleast_1d(axes):
        axis = int(axis) % found.ndim
        result = as_masked(func(found, axis))
        found = result if result.ndim == found.ndim else MaskedTensor(
            np.expand_dims(result.data, axis), np.expand_dims(result.mask, axis)
        )  # fmt: skip
    return found


def _without_masked(x: Any, axis: Any = None) -> Any:
    """Return the values without the rows and columns that contain a masked value."""
    a = as_masked(x)
    data: Any = a.data
    for each in range(a.ndim) if axis is None else np.atleast_1d(axis) % a.ndim:
        others = tuple(dimension for dimension in range(a.ndim) if dimension != each)
        data = np.compress(~a.mask.any(axis=others), data, axis=int(each))
    return data


def _hiding_lines(a: Any, axis: Any = None) -> MaskedTensor:
    """Mask the rows and columns that contain a masked value."""
    a = as_masked(a)
    rows, columns = a.mask.any(axis=1, keepdims=True), a.mask.any(axis=0, keepdims=True)
    lines = rows | columns if axis is None else columns if axis else rows
    return MaskedTensor(a.data, a.mask | lines, a.fill_value)


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    a = as_masked(a)
    if weights is None:
        found = a.mean(axis)
        return (found, as_operand(np.asarray(a.count(axis), float))) if returned else found
    given, hidden = values_and_mask(weights)
    if given.shape != a.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if given.ndim != 1 or given.shape[0] != a.shape[axis]:
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        along = tuple(-1 if dim == axis % a.ndim else 1 for dim in range(a.ndim))
        given, hidden = (np.broadcast_to(each.reshape(along), a.shape) for each in (given, hidden))
    shares = MaskedTensor(given, hidden | a.mask)
    total = shares.sum(axis)
    found = (a * shares).sum(axis) / total
    return (found, total) if returned else found


def _plain_average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Implement `numpy.average`, which includes the weights of masked values."""
    if weights is None and not returned:
        return as_masked(a).mean(axis)
    if returned or np.ndim(plain_values(weights)) != as_masked(a).ndim:
        return NotImplemented
    shares = as_operand(as_argument(weights))
    return as_masked(a).__array_ufunc__(np.multiply, "__call__", a, shares).sum(axis) / shares.sum(axis)


def _where(condition: Any, x: Any, y: Any) -> MaskedTensor:
    (a, hidden), (b, covered) = values_and_mask(x), values_and_mask(y)
    truth, unknown = values_and_mask(condition)
    chosen = np.asarray(plain_values(truth.detach()), bool)
    return MaskedTensor(np.where(chosen, a, b), np.where(chosen, hidden, covered) | unknown)


def _median(a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    a = as_masked(a)
    if axis is None:
        found = np.median(a.compressed()) if a.count() else np.ma.masked
        return found if not keepdims or found is np.ma.masked else found.reshape((1,) * a.ndim)
    data, mask = np.moveaxis(a.data, axis, -1), np.moveaxis(a.mask, axis, -1)
    shape = mask.shape[:-1]
    lanes = zip(data.reshape(-1, mask.shape[-1]), mask.reshape(-1, mask.shape[-1]))
    medians = [np.median(lane[~hidden]) if not hidden.all() else as_operand(np.nan) for lane, hidden in lanes]
    found, empty = np.stack(medians).reshape(shape), mask.all(axis=-1)
    if keepdims:
        found, empty = np.expand_dims(found, axis), np.expand_dims(empty, axis)
    return MaskedTensor(found, empty, a.fill_value)


def _fix_invalid(a: Any, mask: Any = False, copy: bool = True, fill_value: Any = None) -> MaskedTensor:
    a = _masked_array(a, mask)
    invalid = ~np.isfinite(plain_values(a.data.detach()))
    fill = a.fill_value if fill_value is None else fill_value
    return MaskedTensor(np.where(invalid, fill, a.data), a.mask | invalid, a.fill_value)


def _concatenate(arrays: Any, axis: int = 0) -> MaskedTensor:
    parts = [values_and_mask(each) for each in arrays]
    return MaskedTensor(np.concatenate([data for data, _ in parts], axis), np.concatenate([m for _, m in parts], axis))


def _cov(
    x: Any, y: Any = None, rowvar: bool = True, bias: bool = False, allow_masked: bool = True, ddof: Any = None
) -> Any:
    """Implement `numpy.ma.cov`: each entry is the covariance over the observations available for both variables."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be an integer")
    ddof = int(not bias) if ddof is None else ddof
    variables = [_at_least_2d(as_masked(each)) for each in (x, y) if each is not None]
    if not allow_masked and any(each.mask.any() for each in variables):
        raise ValueError("Cannot process masked data.")
    by_rows = rowvar or variables[0].shape[0] == 1
    if len({each.shape for each in variables}) == 1:  # elements masked in one of the two are masked in both
        common = np.any([each.mask for each in variables], axis=0)
        variables = [MaskedTensor(each.data, common) for each in variables]
    joined = _concatenate(variables, 0 if by_rows else 1)
    rows = joined if by_rows else joined.T
    known = (~rows.mask).astype(float)
    centre = rows.filled(0).sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
    away = np.where(rows.mask, 0.0, rows.filled(0) - centre)
    count = known @ known.T - ddof
    found = away @ away.T.conj() / np.where(count > 0, count, 1)
    covariance = MaskedTensor(found, count <= 0).squeeze()
    return covariance if covariance.ndim else covariance[()]


def _at_least_2d(a: MaskedTensor) -> MaskedTensor:
    return a if a.ndim > 1 else a.reshape(1, -1)


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, allow_masked: bool = True) -> Any:
    """Implement `numpy.ma.corrcoef`."""
    covariance = _cov(x, y, rowvar, allow_masked=allow_masked)
    if not isinstance(covariance, MaskedTensor):
        return np.ma.masked
    index = np.arange(len(covariance))
    std = np.sqrt(MaskedTensor(covariance.data[index, index], covariance.mask[index, index]))
    return covariance / (std.reshape(-1, 1) * std)


def _broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple[Any, ...]:
    """Broadcast arrays to one shape; as in NumPy, arrays whose shape changes lose their masks."""
    shapes = [each.shape if hasattr(each, "shape") else np.shape(each) for each in arrays]
    shape = np.broadcast_shapes(*shapes)
    if all(each == shape for each in shapes):
        return arrays
    return tuple([
        MaskedTensor(np.broadcast_to(each.data, shape)) if isinstance(each, MaskedTensor)
        else np.broadcast_to(each, shape, subok=subok) for each in arrays
    ])  # fmt: skip


FUNCTIONS.update({
    "compress": lambda condition, a, axis=None, out=None: as_masked(a).compress(condition, axis),
    "compress_nd": _without_masked, "compress_rowcols": _without_masked,
    "compress_rows": lambda a: _without_masked(a, 0), "compress_cols": lambda a: _without_masked(a, 1),
    "mask_rowcols": _hiding_lines, "mask_rows": lambda a, axis=None: _hiding_lines(a, 0),
    "mask_cols": lambda a, axis=None: _hiding_lines(a, 1),
    "inner": _inner, "innerproduct": _inner, "convolve": _convolved("convolve", "full"),
    "correlate": _convolved("correlate", "valid"),
    "ediff1d": _differences, "vander": _vander, "polyfit": _polyfit, "choose": _choose,
    "putmask": _putmask, "hsplit": _split, "apply_along_axis": _along_axis, "apply_over_axes": _over_axes,
    "product": FUNCTIONS["prod"], "masked_values": _masked_values, "diff": _diff,
    "sort": _sort, "append": _append, "outer": _outer,
    "outerproduct": _outer, "row_stack": FUNCTIONS["vstack"], "amax": FUNCTIONS["max"], "amin": FUNCTIONS["min"],
    "copy": lambda a, *args, **kwargs: as_masked(a).copy(), "around": FUNCTIONS["round"], "round_": FUNCTIONS["round"],
    "asarray": _as_array, "asanyarray": _as_array, "broadcast_arrays": _broadcast_arrays,
    "array": _masked_array, "masked_where": _masked_where,
    "median": _median, "fix_invalid": _fix_invalid, "anomalies": lambda a, axis=None: as_masked(a).anom(axis),
    "average": _average, "cov": _cov, "corrcoef": _corrcoef, "where": _where, "concatenate": _concatenate,
    "getmask": lambda a: as_masked(a).mask,
    "getmaskarray": lambda a: as_masked(a).mask, "getdata": lambda a, subok=True: as_masked(a).data,
    "is_masked": lambda x: bool(as_masked(x).mask.any()), "isMaskedArray": lambda x: isinstance(x, MaskedTensor),
    "isMA": lambda x: isinstance(x, MaskedTensor),
})  # fmt: skip
