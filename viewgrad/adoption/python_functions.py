"""The functions of Python's `statistics` and `cmath` for tensors.

Python's own functions convert their arguments to exact fractions and to plain complex numbers. They are used unless an
argument is a tensor with a gradient.
"""

from __future__ import annotations

import cmath
import functools
import math
import statistics
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..tensor.tensor import Tensor
from .builtin_names import carries_history
from .counterparts import namespace

FUNCTIONS: Final[dict[str, dict[str, Callable[..., Any]]]] = {"statistics": {}, "cmath": {}}


def _numpy() -> Any:
    return namespace("numpy")


def _for_tensors(module: types.ModuleType) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for functions that replace a module's function if an argument has a gradient."""

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        plain = getattr(module, name)

        @functools.wraps(plain, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple(map(_gathered, args))
            kwargs = {key: _gathered(value) for key, value in kwargs.items()}
            if any(map(_has_gradient, (*args, *kwargs.values()))):
                return function(*args, **kwargs)
            return plain(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})

        FUNCTIONS[module.__name__][name] = call
        return function

    return make


def _gathered(value: Any) -> Any:
    """Return the items of an iterator as a list, since it can be read only once; return other objects unchanged."""
    return list(value) if hasattr(value, "__next__") else value


def _plain(value: Any) -> Any:
    """Return the elements of an array as numbers, since `statistics` computes with the types of its data."""
    return value.tolist() if isinstance(value, Tensor) and value.ndim else value


def _has_gradient(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return any(map(carries_history, value))
    return carries_history(value)


# -- statistics --------------------------------------------------------------------------------------------------------

statistic: Final = _for_tensors(statistics)


def _numbers(data: Any, fewest: int, name: str) -> Any:
    if not isinstance(data, (list, tuple)) and not hasattr(data, "ndim"):
        data = list(data)
    if len(data) < fewest:
        points = "one data point" if fewest == 1 else "two data points"
        raise statistics.StatisticsError(f"{name} requires at least {points}")
    return _numpy().asarray(data)


@statistic
def mean(data: Any) -> Any:
    """Return the arithmetic mean."""
    return _numbers(data, 1, "mean").mean()


@statistic
def fmean(data: Any, weights: Any = None) -> Any:
    """Return the arithmetic mean, optionally weighted."""
    x = _numbers(data, 1, "fmean")
    if weights is None:
        return x.mean()
    w = _numbers(weights, 1, "fmean")
    if len(w) != len(x):
        raise statistics.StatisticsError("data and weights must be the same length")
    if not w.sum():
        raise statistics.StatisticsError("sum of weights must be non-zero")
    return (w * x).sum() / w.sum()


@statistic
def geometric_mean(data: Any) -> Any:
    """Return the exponential of the mean of logarithms."""
    x = _numbers(data, 1, "geometric mean")
    if (x <= 0).any():
        raise statistics.StatisticsError("geometric mean requires a non-empty dataset containing positive numbers")
    return _numpy().exp(_numpy().log(x).mean())


@statistic
def harmonic_mean(data: Any, weights: Any = None) -> Any:
    """Return the reciprocal of the mean of reciprocals."""
    x = _numbers(data, 1, "harmonic_mean")
    w = _numpy().ones(len(x)) if weights is None else _numbers(weights, 1, "harmonic_mean")
    if len(w) != len(x):
        raise statistics.StatisticsError("Number of weights does not match data size")
    if (x < 0).any() or (w < 0).any():
        raise statistics.StatisticsError("harmonic mean does not support negative values")
    if (x == 0).any():
        return 0.0 * x.sum()
    return w.sum() / (w / x).sum()


def _spread(data: Any, centre: Any, lost: int, name: str) -> Any:
    x = _numbers(data, 1 + lost, name)
    return ((x - (x.mean() if centre is None else centre)) ** 2).sum() / (len(x) - lost)


@statistic
def variance(data: Any, xbar: Any = None) -> Any:
    """Return the variance of a sample."""
    return _spread(data, xbar, 1, "variance")


@statistic
def pvariance(data: Any, mu: Any = None) -> Any:
    """Return the variance of a population."""
    return _spread(data, mu, 0, "pvariance")


@statistic
def stdev(data: Any, xbar: Any = None) -> Any:
    """Return the standard deviation of a sample."""
    return _numpy().sqrt(_spread(data, xbar, 1, "stdev"))


@statistic
def pstdev(data: Any, mu: Any = None) -> Any:
    """Return the standard deviation of a population."""
    return _numpy().sqrt(_spread(data, mu, 0, "pstdev"))


@statistic
def median(data: Any) -> Any:
    """Return the middle value, or the mean of the two middle values."""
    return _numpy().median(_numbers(data, 1, "median"))


@statistic
def median_low(data: Any) -> Any:
    """Return the middle value, or the smaller of the two middle values."""
    x = _numpy().sort(_numbers(data, 1, "median"))
    return x[(len(x) - 1) // 2]


@statistic
def median_high(data: Any) -> Any:
    """Return the middle value, or the larger of the two middle values."""
    x = _numpy().sort(_numbers(data, 1, "median"))
    return x[len(x) // 2]


@statistic
def quantiles(data: Any, *, n: int = 4, method: str = "exclusive") -> Any:
    """Return the cut points that divide the sorted values into parts of equal probability."""
    if n < 1:
        raise statistics.StatisticsError("n must be at least 1")
    if method not in ("exclusive", "inclusive"):
        raise ValueError(f"Unknown method: {method!r}")
    x = _numpy().sort(_numbers(data, 2, "quantiles"))
    between = len(x) + 1 if method == "exclusive" else len(x) - 1
    found = []
    for i in range(1, n):
        j, delta = divmod(i * between, n)
        if method == "exclusive":
            j = min(max(j, 1), len(x) - 1)
            delta, j = i * between - j * n, j - 1
        found.append((x[j] * (n - delta) + x[j + 1] * delta) / n if delta else x[j])
    return found


def _pair(x: Any, y: Any, name: str) -> tuple[Any, Any]:
    if len(x) != len(y):
        raise statistics.StatisticsError(f"{name} requires that both inputs have same number of data points")
    return _numbers(x, 2, name), _numbers(y, 2, name)


@statistic
def covariance(x: Any, y: Any, /) -> Any:
    """Return the covariance of two samples."""
    x, y = _pair(x, y, "covariance")
    return ((x - x.mean()) * (y - y.mean())).sum() / (len(x) - 1)


@statistic
def correlation(x: Any, y: Any, /) -> Any:
    """Return Pearson's correlation coefficient."""
    x, y = _pair(x, y, "correlation")
    x, y = x - x.mean(), y - y.mean()
    if not (x * x).sum() or not (y * y).sum():
        raise statistics.StatisticsError("at least one of the inputs is constant")
    return (x * y).sum() / _numpy().sqrt((x * x).sum() * (y * y).sum())


@statistic
def linear_regression(x: Any, y: Any, /, *, proportional: bool = False) -> Any:
    """Return the slope and the intercept of the least-squares line."""
    x, y = _pair(x, y, "linear regression")
    a, b = (x, y) if proportional else (x - x.mean(), y - y.mean())
    if not (a * a).sum():
        raise statistics.StatisticsError("x is constant")
    slope = (a * b).sum() / (a * a).sum()
    return statistics.LinearRegression(slope, 0.0 if proportional else y.mean() - slope * x.mean())


class NormalDist(statistics.NormalDist):
    """A normal distribution whose parameters, and the arguments of its functions, may have a gradient.

    Arguments:
        mu: the mean.
        sigma: the standard deviation.
    """

    __slots__ = ()
    if TYPE_CHECKING:
        _mu: Any
        _sigma: Any

    def __init__(self, mu: Any = 0.0, sigma: Any = 1.0) -> None:
        if sigma < 0.0:
            raise statistics.StatisticsError("sigma must be non-negative")
        self._mu, self._sigma = (each if carries_history(each) else float(each) for each in (mu, sigma))

    def zscore(self, x: Any) -> Any:
        """Return the distance from the mean in standard deviations."""
        if not self._sigma:
            raise statistics.StatisticsError("zscore() not defined when sigma is zero")
        return (x - self._mu) / self._sigma

    def pdf(self, x: Any) -> Any:
        """Return the density."""
        if not self._concerns(x):
            return super().pdf(x)
        z = self.zscore(x)
        return _numpy().exp(z * z / -2.0) / (self._sigma * math.sqrt(math.tau))

    def cdf(self, x: Any) -> Any:
        """Return the distribution function."""
        if not self._concerns(x):
            return super().cdf(x)
        return namespace("math").erfc(-self.zscore(x) / math.sqrt(2.0)) / 2.0

    def inv_cdf(self, p: Any) -> Any:
        """Return the quantile of a probability."""
        if not self._concerns(p):
            return super().inv_cdf(p)
        standard = NormalDist()
        start = statistics.NormalDist().inv_cdf(float(_detached(p)))
        z = p * 0.0 + start
        for _ in range(3):  # Newton's method, which makes the derivatives with respect to p exact
            z = z - (standard.cdf(z) - p) / standard.pdf(z)
        return self._mu + self._sigma * (z + (start - _detached(z)))

    def _concerns(self, x: Any) -> bool:
        return any(map(carries_history, (x, self._mu, self._sigma)))


def _detached(x: Any) -> Any:
    return x.detach() if hasattr(x, "detach") else x


FUNCTIONS["statistics"]["NormalDist"] = NormalDist

# -- cmath -------------------------------------------------------------------------------------------------------------

of_complex: Final = _for_tensors(cmath)


def _complex(x: Any) -> Any:
    return x + 0j


def _same_as_numpys(name: str, numpys: str) -> None:
    def function(x: Any) -> Any:
        return getattr(_numpy(), numpys)(_complex(x))

    function.__name__ = name
    of_complex(function)


for _name, _numpys in {
    "exp": "exp", "sqrt": "sqrt", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh",
}.items():  # fmt: skip
    _same_as_numpys(_name, _numpys)


@of_complex
def log(x: Any, base: Any = None) -> Any:
    """Return the natural logarithm, or the logarithm to a given base."""
    found = _numpy().log(_complex(x))
    return found if base is None else found / _numpy().log(_complex(base))


@of_complex
def phase(x: Any) -> Any:
    """Return the angle of a complex number."""
    return _numpy().angle(_complex(x))


@of_complex
def polar(x: Any) -> Any:
    """Return the absolute value and the angle of a complex number."""
    return abs(x), _numpy().angle(_complex(x))


@of_complex
def rect(r: Any, phi: Any) -> Any:
    """Return the complex number with a given absolute value and angle."""
    return r * (_numpy().cos(phi) + 1j * _numpy().sin(phi))


# -- modules -----------------------------------------------------------------------------------------------------------

REPLACED: Final[dict[str, types.ModuleType]] = {"statistics": statistics, "cmath": cmath}


def replaced_module(name: str) -> types.ModuleType:
    """Return a module like `statistics` whose functions accept tensors.

    Arguments:
        name: a key of REPLACED.
    """
    made = types.ModuleType(name, REPLACED[name].__doc__)
    vars(made).update({**vars(REPLACED[name]), **FUNCTIONS[name]})
    return made
