"""Statistics of a single sample: means, spreads, shapes and entropies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from .. import special
from ..wrap import Outcome, floating, numbers
from .axis_policy import MADE, made, made_by_form, statistic

# The median of the absolute value, and the interquartile range, of a normal random variable.
QUARTILE: Final = 0.6744897501960817


def _count(x: Any) -> int:
    return int(x.shape[-1])


def _central(x: Any, order: int) -> Any:
    return ((x - x.mean(-1, keepdims=True)) ** order).mean(-1)


# -- scores ------------------------------------------------------------------------------------------------------------


@made_by_form
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Return z-scores, the deviations from the mean in units of the standard deviation."""
    return MADE["zmap"](a, a, axis, ddof, nan_policy)


@made_by_form
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Return z-scores relative to the mean and standard deviation of other values."""
    is_zscore = scores is compare
    scores, compare = floating(scores), floating(compare)
    if nan_policy != "propagate" and np.isnan(plain_values(compare)).any():
        raise lost("scipy.stats.zmap", "samples of tensors must have no NaN for that nan_policy")
    mean, spread = compare.mean(axis, keepdims=True), compare.std(axis, ddof=ddof, keepdims=True)
    if is_zscore:  # a spread that is due to rounding counts as none
        plain = plain_values(spread)
        is_constant = plain <= np.abs(np.finfo(plain.dtype).eps * plain_values(mean))
        spread = np.where(is_constant, math.nan, spread) if is_constant.any() else spread
    return (scores - mean) / spread


@made_by_form
def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Return geometric z-scores."""
    return MADE["zscore"](np.log(floating(a)), axis, ddof, nan_policy)


# -- means -------------------------------------------------------------------------------------------------------------


def _weighted(x: Any, weights: Any) -> Any:
    if weights is None:
        return x.mean(-1)
    weights = floating(weights)
    return (x * weights).sum(-1) / (weights * np.ones(x.shape)).sum(-1)


def _mean(name: str, there: Callable[..., Any], back: Callable[..., Any]) -> None:
    """Define a generalized mean: the inverse of a function, applied to the mean of the function values."""

    def mean(a: Any, *power: Any, axis: Any = 0, weights: Any = None, keepdims: bool = False, **options: Any) -> Any:
        if options.get("dtype") is not None or options.get("nan_policy", "propagate") != "propagate":
            raise lost(f"scipy.stats.{name}", "dtype and nan_policy are not supported for tensors with a history")
        if len(power) > (name == "pmean"):
            axis = power[-1]
        given = power[:1] if name == "pmean" else ()
        a = floating(a)
        a = a if a.ndim else a.reshape(1)
        moved = np.moveaxis(a, axis, -1) if axis is not None else a.reshape(-1)
        if weights is not None:
            weights = floating(weights)
            weights = np.moveaxis(weights, axis, -1) if weights.ndim == a.ndim and axis is not None else weights
            weights = weights.reshape(-1) if axis is None else weights
        found = back(_weighted(there(moved, *given), weights), *given)
        return found if not keepdims else found.reshape((1,) * a.ndim) if axis is None else np.expand_dims(found, axis)

    mean.__name__ = name
    mean.__doc__ = f"`scipy.stats.{name}`, differentiable."
    made(mean)


_mean("gmean", np.log, np.exp)
_mean("hmean", lambda x: np.where(plain_values(x) < 0, np.nan, 1.0 / x), lambda x: 1.0 / x)
_mean("pmean", lambda x, p: x**p if p else np.log(x), lambda x, p: x ** (1.0 / p) if p else np.exp(x))


@made
def mode(a: Any, axis: Any = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """Return the most frequent value and its count; the gradient flows to its first occurrence."""
    a = floating(a)
    a, along = (a.reshape(-1), 0) if axis is None or not a.ndim else (a, axis)
    found = scipy.stats.mode(plain_values(a), axis=along, nan_policy=nan_policy, keepdims=True)
    first = np.argmax((plain_values(a) == found.mode) | np.isnan(found.mode), axis=along, keepdims=True)
    value, count = np.take_along_axis(a, first, along), found.count
    if not keepdims:
        value, count = value.squeeze(along), count.squeeze(along)
    return Outcome({"mode": value, "count": count})


@made_by_form
def trim_mean(a: Any, proportiontocut: float, axis: Any = 0) -> Any:
    """Return the trimmed mean."""
    a = floating(a)
    a = np.sort(a.reshape(-1) if axis is None else np.moveaxis(a, axis, -1), -1)
    cut = int(proportiontocut * _count(a))
    found = a[..., cut : _count(a) - cut].mean(-1)
    missing = np.isnan(plain_values(a)).any(-1)  # NaN are sorted last and may be trimmed
    return np.where(missing, np.nan, found) if missing.any() else found


@statistic(1, by_value=True)
def expectile(a: Any, alpha: float = 0.5, weights: Any = None) -> Any:
    """Return the expectile of samples."""
    middle = plain_values(a).mean()
    for _ in range(200):  # the weights depend only on which side a value is on
        each = np.where(plain_values(a) > middle, alpha, 1 - alpha)
        each = each if weights is None else each * floating(weights)
        found = (a * each).sum(-1) / each.sum(-1)
        if float(plain_values(found)) == middle:
            break
        middle = float(plain_values(found))
    return found


# -- spreads and shapes ------------------------------------------------------------------------------------------------


@statistic(1)
def moment(a: Any, order: Any = 1, *, center: Any = None) -> Any:
    """Return a moment about the mean, or about a given centre."""
    if np.ndim(order):
        return np.stack([((a - a.mean(-1, keepdims=True)) ** int(each)).mean(-1) for each in order])
    return ((a - (a.mean(-1, keepdims=True) if center is None else center)) ** order).mean(-1)


@statistic(1)
def skew(a: Any, bias: bool = True) -> Any:
    """Return the skewness of samples."""
    found, n = _central(a, 3) / _central(a, 2) ** 1.5, _count(a)
    return found if bias or n < 3 else found * (math.sqrt(n * (n - 1)) / (n - 2))


@statistic(1)
def kurtosis(a: Any, fisher: bool = True, bias: bool = True) -> Any:
    """Return the kurtosis of samples."""
    found, n = _central(a, 4) / _central(a, 2) ** 2, _count(a)
    if not bias and n > 3:
        found = ((n * n - 1) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return found - 3 if fisher else found


@statistic(1)
def sem(a: Any, ddof: int = 1) -> Any:
    """Return the standard error of the mean."""
    return a.std(-1, ddof=ddof) / math.sqrt(_count(a))


@statistic(1, by_value=True)
def gstd(a: Any, ddof: int = 1) -> Any:
    """Return the geometric standard deviation."""
    return np.exp(np.log(a).std(-1, ddof=ddof))


@statistic(1)
def variation(a: Any, ddof: int = 0) -> Any:
    """Return the coefficient of variation."""
    return a.std(-1, ddof=ddof) / a.mean(-1)


@statistic(1)
def iqr(x: Any, rng: Any = (25, 75), scale: Any = 1.0, interpolation: str = "linear") -> Any:
    """Return the interquartile range, or the range between two other percentiles."""
    low, high = (np.percentile(x, float(each), -1, method=interpolation) for each in sorted(rng))  # type: ignore[call-overload]
    return (high - low) / (2 * QUARTILE if scale == "normal" else scale)


@statistic(1)
def median_abs_deviation(x: Any, center: Any = None, scale: Any = 1.0) -> Any:
    """Return the median absolute deviation from the median, or from another centre."""
    middle = np.median(x, -1, keepdims=True) if center in (None, np.median) else center(x, axis=-1)[..., None]
    return np.median(np.abs(x - middle), -1) / (QUARTILE if scale == "normal" else scale)


@statistic(1)
def kstat(data: Any, n: int = 2) -> Any:
    """Return the unbiased estimate of a cumulant (the k-statistic)."""
    count = _count(data)
    first, second, third, fourth = ((data**order).sum(-1) for order in range(1, 5))
    if n == 1:
        return first / count
    if n == 2:
        return (count * second - first**2) / (count * (count - 1.0))
    if n == 3:
        top = 2 * first**3 - 3 * count * first * second + count * count * third
        return top / (count * (count - 1.0) * (count - 2.0))
    if n != 4:
        raise ValueError("k-statistics only supported for 1<=n<=4")
    top = -6 * first**4 + 12 * count * first**2 * second - 3 * count * (count - 1.0) * second**2
    top = top - 4 * count * (count + 1) * first * third + count * count * (count + 1) * fourth
    return top / (count * (count - 1.0) * (count - 2.0) * (count - 3.0))


@statistic(1)
def kstatvar(data: Any, n: int = 2) -> Any:
    """Return the variance of the k-statistic."""
    count, second = _count(data), MADE["kstat"](data, 2, axis=-1)
    if n == 1:
        return second / count
    if n != 2:
        raise ValueError("Only n=1 or n=2 supported.")
    return (2 * count * second**2 + (count - 1) * MADE["kstat"](data, 4, axis=-1)) / (count * (count + 1))


@statistic(1)
def describe(a: Any, ddof: int = 1, bias: bool = True) -> Any:
    """Return the number of observations, their range, mean, variance, skewness and kurtosis."""
    return Outcome(
        {
            "nobs": _count(a),
            "minmax": (a.min(-1), a.max(-1)),
            "mean": a.mean(-1),
            "variance": a.var(-1, ddof=ddof),
            "skewness": MADE["skew"](a, -1, bias),
            "kurtosis": MADE["kurtosis"](a, -1, True, bias),
        }
    )


# -- within limits -----------------------------------------------------------------------------------------------------


def _within(a: Any, limits: Any, inclusive: Any) -> Any:
    """Return the mask of the values within limits."""
    values = plain_values(a)
    kept = np.ones(values.shape, bool)
    low, high = (None, None) if limits is None else limits
    if low is not None:
        kept &= (values >= low) if inclusive[0] else (values > low)
    if high is not None:
        kept &= (values <= high) if inclusive[1] else (values < high)
    return kept


def _trimmed(a: Any, kept: Any, ddof: Any) -> tuple[Any, Any, Any]:
    """Return the number, the mean and the variance of the values within limits."""
    count = kept.sum(-1)
    mean = np.where(kept, a, 0.0).sum(-1) / count
    away = np.where(kept, a - mean[..., None], 0.0)
    return count, mean, (away * away).sum(-1) / (count - ddof)


@statistic(1, by_value=True)
def tmean(a: Any, limits: Any = None, inclusive: Any = (True, True)) -> Any:
    """Return the mean of the values within limits."""
    return _trimmed(a, _within(a, limits, inclusive), 0)[1]


@statistic(1, by_value=True)
def tvar(a: Any, limits: Any = None, inclusive: Any = (True, True), ddof: int = 1) -> Any:
    """Return the variance of the values within limits."""
    return _trimmed(a, _within(a, limits, inclusive), ddof)[2]


@statistic(1, by_value=True)
def tstd(a: Any, limits: Any = None, inclusive: Any = (True, True), ddof: int = 1) -> Any:
    """Return the standard deviation of the values within limits."""
    return np.sqrt(_trimmed(a, _within(a, limits, inclusive), ddof)[2])


@statistic(1, by_value=True)
def tsem(a: Any, limits: Any = None, inclusive: Any = (True, True), ddof: int = 1) -> Any:
    """Return the standard error of the mean of the values within limits."""
    count, _, variance = _trimmed(a, _within(a, limits, inclusive), ddof)
    return np.sqrt(variance / count)


@statistic(1, by_value=True)
def tmin(a: Any, lowerlimit: Any = None, inclusive: bool = True) -> Any:
    """Return the minimum of the values above a limit."""
    return np.where(_within(a, (lowerlimit, None), (inclusive, True)), a, np.inf).min(-1)


@statistic(1, by_value=True)
def tmax(a: Any, upperlimit: Any = None, inclusive: bool = True) -> Any:
    """Return the maximum of the values below a limit."""
    return np.where(_within(a, (None, upperlimit), (True, inclusive)), a, -np.inf).max(-1)


# -- angles ------------------------------------------------------------------------------------------------------------


def _direction(samples: Any, high: Any, low: Any) -> tuple[Any, Any, float]:
    if np.ndim(high) or np.ndim(low):
        raise lost("scipy.stats.circmean", "for tensors with a history high and low must be numbers")
    period = high - low
    angles = (samples - low) * (2 * math.pi / period)
    return np.sin(angles).mean(-1), np.cos(angles).mean(-1), period


@statistic(1)
def circmean(samples: Any, high: Any = 2 * math.pi, low: Any = 0) -> Any:
    """Return the mean of angles."""
    sine, cosine, period = _direction(samples, high, low)
    angle = np.arctan2(sine, cosine)
    angle = np.where(plain_values(angle) < 0, angle + 2 * math.pi, angle)
    return angle * (period / (2 * math.pi)) + low


@statistic(1)
def circvar(samples: Any, high: Any = 2 * math.pi, low: Any = 0) -> Any:
    """Return the variance of angles."""
    sine, cosine, _ = _direction(samples, high, low)
    return 1.0 - np.hypot(sine, cosine)


@statistic(1)
def circstd(samples: Any, high: Any = 2 * math.pi, low: Any = 0, *, normalize: bool = False) -> Any:
    """Return the standard deviation of angles."""
    sine, cosine, period = _direction(samples, high, low)
    found = np.sqrt(-2 * np.log(np.hypot(sine, cosine)))
    return found if normalize else found * (period / (2 * math.pi))


@made_by_form
def directional_stats(samples: Any, *, axis: int = 0, normalize: bool = True) -> Any:
    """Return the mean direction of vectors and the mean resultant length."""
    samples = np.moveaxis(floating(samples), axis, 0)
    if normalize:
        samples = samples / samples.vector_norm(2, -1, True)
    mean = samples.mean(0)
    length = mean.vector_norm(2, -1, True)
    return Outcome({}, {"mean_direction": mean / length, "mean_resultant_length": length[..., 0]})


# -- entropies ---------------------------------------------------------------------------------------------------------


@made_by_form
def entropy(pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, nan_policy: str = "propagate",
            keepdims: bool = False) -> Any:  # fmt: skip
    """Return the entropy of a distribution, or its relative entropy."""
    pk = floating(pk)
    if nan_policy == "omit" and np.isnan(plain_values(pk if qk is None else pk + floating(qk))).any():
        raise lost("scipy.stats.entropy", "samples of tensors must have no NaN for that nan_policy")
    if qk is not None:
        pk, qk = np.broadcast_arrays(pk, floating(qk))
    pk = pk * np.sign(plain_values(pk).sum(axis, keepdims=True))
    total = pk.sum(axis, keepdims=True)
    # Divided by the sum last, so that the infinite slopes at zeros do not reach the other elements.
    if qk is None:
        found = (-special.rel_entr(pk, total) / total).sum(axis, keepdims=keepdims)
    else:
        found = special.rel_entr(pk, qk * (total / qk.sum(axis, keepdims=True))) / total
        found = found.sum(axis, keepdims=keepdims)
    return found if base is None else found / np.log(base)


def _padded(x: Any, m: int) -> Any:
    """Return sorted values with the end values repeated."""
    return np.concatenate([x[..., :1]] * m + [x] + [x[..., -1:]] * m, -1)


def _vasicek(x: Any, m: int) -> Any:
    n, wide = _count(x), _padded(x, m)
    return np.log(n / (2 * m) * (wide[..., 2 * m :] - wide[..., : -2 * m])).mean(-1)


def _van_es(x: Any, m: int) -> Any:
    n = _count(x)
    logs = np.log((n + 1) / m * (x[..., m:] - x[..., :-m])).sum(-1) / (n - m)
    return logs + float((1 / np.arange(m, n + 1)).sum()) + math.log(m) - math.log(n + 1)


def _ebrahimi(x: Any, m: int) -> Any:
    n, wide = _count(x), _padded(x, m)
    places = np.arange(1, n + 1).astype(float)
    scale = np.where(places <= m, 1 + (places - 1) / m, np.where(places >= n - m + 1, 1 + (n - places) / m, 2.0))
    return np.log(n * (wide[..., 2 * m :] - wide[..., : -2 * m]) / (scale * m)).mean(-1)


def _correa(x: Any, m: int) -> Any:
    n, wide = _count(x), _padded(x, m)
    steps = np.arange(-m, m + 1)[:, None]
    windows = wide[..., np.arange(1, n + 1) + steps + m - 1]
    away = windows - windows.mean(-2, keepdims=True)
    return -np.log((away * steps).sum(-2) / (n * (away * away).sum(-2))).mean(-1)


@statistic(1)
def differential_entropy(values: Any, *, window_length: Any = None, base: Any = None, method: str = "auto") -> Any:
    """Return an estimate of the differential entropy from samples."""
    n = _count(values)
    m = math.floor(math.sqrt(n) + 0.5) if window_length is None else int(window_length)
    chosen = ("van es" if n <= 10 else "ebrahimi" if n <= 1000 else "vasicek") if method == "auto" else method.lower()
    estimates = {"vasicek": _vasicek, "van es": _van_es, "ebrahimi": _ebrahimi, "correa": _correa}
    found = estimates[chosen](np.sort(values, -1), m)
    return found if base is None else found / math.log(base)


# -- transforms --------------------------------------------------------------------------------------------------------


def _box_cox_likelihood(lmb: Any, data: Any) -> Any:
    logs, power = np.log(data), numbers(lmb) * 1.0
    # The variance of (x^power - 1) / power, from logarithms minus their mean, so that nothing overflows and power may
    # be 0.
    middle = logs.mean(0)
    away = logs - middle
    spread = np.log((away * special.exprel(power * away)).var(0)) + 2 * power * middle
    return (power - 1) * logs.sum(0) - data.shape[0] / 2 * spread


@made_by_form
def boxcox_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """Return the log-likelihood of the Box-Cox parameter."""
    data = floating(data)
    found = _box_cox_likelihood(lmb, data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0))
    return np.expand_dims(found, axis) if keepdims and axis is not None else found


def yeo_johnson(x: Any, power: Any) -> Any:
    """Return the Yeo-Johnson transform: a power of 1 + x, and a power of 1 - x for negative x."""
    above = plain_values(x) >= 0
    logs = np.log1p(np.abs(x))
    right = logs * special.exprel(power * logs)
    left = -logs * special.exprel((2.0 - power) * logs)
    return np.where(above, right, left)


@made_by_form
def yeojohnson_llf(lmb: Any, data: Any, *, axis: Any = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """Return the log-likelihood of the Yeo-Johnson parameter."""
    data, power = floating(data), numbers(lmb) * 1.0
    data = data.reshape(-1) if axis is None else np.moveaxis(data, axis, 0)
    logs = (np.sign(plain_values(data)) * np.log1p(np.abs(data))).sum(0)
    found = -data.shape[0] / 2 * np.log(yeo_johnson(data, power).var(0)) + (power - 1) * logs
    return np.expand_dims(found, axis) if keepdims and axis is not None else found
