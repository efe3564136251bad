"""`scipy.stats` for tensors: densities and distribution functions by their formulas, everything else SciPy's own.

A density is differentiable with respect to the value and all parameters. A distribution function is differentiable with
respect to the value, the location, the scale, and the parameters that its formula differentiates.

It is long because it is a collection: a few lines for each distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.special  # type: ignore[import-untyped]
import scipy.stats  # type: ignore[import-untyped]

from ..numpy.functions import lost
from ..numpy.namespace import filled, public_names
from ..numpy.values import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand, holds_tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)
_gammaln: Final = scipy.special.gammaln
Formula = Callable[..., Any]


class Distribution:
    """A distribution of SciPy's whose functions take tensors.

    Arguments:
        name: what SciPy calls it.
        shapes: the names of its parameters beside location and scale.
        log_density: the logarithm of the density of the standard form, of the value and the parameters.
        support: the ends of the standard form's support, of the parameters.
        formulas: further functions of the standard form, by name: cdf, sf, logcdf, logsf, ppf, isf.
        moments: mean and var of the standard form, of the parameters.
        discrete: whether its values are whole, so that there is no scale, and the density is called `pmf`.
    """

    def __init__(
        self, name: str, shapes: Sequence[str], log_density: Formula, support: Formula, *, discrete: bool = False,
        moments: tuple[Formula, Formula] | None = None, **formulas: Formula,
    ) -> None:  # fmt: skip
        self.scipy: Final = getattr(scipy.stats, name)
        self.name, self.shapes, self.discrete = name, tuple(shapes), discrete
        self._log_density, self._support, self._formulas, self._moments = log_density, support, formulas, moments

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        return Frozen(self, args, kwargs)

    freeze = __call__

    def _parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        names = (*self.shapes, "loc") if self.discrete else (*self.shapes, "loc", "scale")
        given = dict(zip(names, args)) | kwargs
        unknown = given.keys() - set(names)
        missing = [name for name in self.shapes if name not in given]
        if unknown or missing or len(args) > len(names):
            raise TypeError(f"{self.name} takes the parameters {', '.join(names)}")
        shapes = [as_operand(as_argument(given[name])) for name in self.shapes]
        return shapes, as_operand(as_argument(given.get("loc", 0.0))), as_operand(as_argument(given.get("scale", 1.0)))

    def _standard(self, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        shapes, loc, scale = self._parameters(args, kwargs)
        return (as_operand(as_argument(x)) * 1.0 - loc) / scale, shapes, scale

    def _evaluate(self, method: str, formula: Formula, x: Any, args: Any, kwargs: Any) -> Any:
        if not holds_tensor((x, args)) and not holds_tensor(tuple(kwargs.values())):
            return as_tensors(getattr(self.scipy, method)(x, *args, **kwargs))
        return formula(*self._standard(x, args, kwargs))

    def _log(self, z: Any, shapes: list[Any], scale: Any) -> Any:
        low, high = self._support(*shapes)
        values = plain_values(z)
        inside = (values >= plain_values(as_operand(low))) & (values <= plain_values(as_operand(high)))
        if self.discrete:
            inside = inside & (values == np.floor(values))
        density = self._log_density(z, *shapes) - np.log(scale)
        if np.all(inside):
            return density
        # Where there is no density, neither the formula nor its gradient may be computed.
        middle = np.where(np.isfinite(low) & np.isfinite(high), 0.5, 1.0) if not self.discrete else 0.0
        safe = self._log_density(np.where(inside, z, middle), *shapes) - np.log(scale)
        return np.where(inside, safe, -math.inf)

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the density."""
        return self._evaluate("logpdf", self._log, x, args, kwargs)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The density."""
        return self._evaluate("pdf", lambda *given: np.exp(self._log(*given)), x, args, kwargs)

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of a value."""
        return self._evaluate("logpmf", self._log, k, args, kwargs)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of a value."""
        return self._evaluate("pmf", lambda *given: np.exp(self._log(*given)), k, args, kwargs)

    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of a value that is not greater."""
        return self._cumulative("cdf", x, args, kwargs)

    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of a greater value."""
        return self._cumulative("sf", x, args, kwargs)

    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of a value that is not greater."""
        return self._cumulative("logcdf", x, args, kwargs)

    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of a greater value."""
        return self._cumulative("logsf", x, args, kwargs)

    def _cumulative(self, method: str, x: Any, args: Any, kwargs: Any) -> Any:
        return self._evaluate(method, lambda z, shapes, scale: self._within(method, z, shapes), x, args, kwargs)

    def _within(self, method: str, z: Any, shapes: list[Any]) -> Any:
        """A distribution function of the standard form, which is constant outside of the support."""
        if method.startswith("log") and method not in self._formulas:
            return np.log(self._within(method[3:], z, shapes))
        formula = self._formulas.get(method)
        if formula is None:
            if method == "sf":
                return 1.0 - self._within("cdf", z, shapes)
            raise lost(f"scipy.stats.{self.name}.{method}", "it has no formula here; pass detach() of the arguments")
        low, high = self._support(*shapes)
        values = plain_values(z)
        below, above = values <= plain_values(as_operand(low)), values >= plain_values(as_operand(high))
        if self.discrete:
            z, below, above = np.floor(z), values < plain_values(as_operand(low)), np.zeros_like(values, dtype=bool)
        if not (np.any(below) or np.any(above)):
            return formula(z, *shapes)
        middle = 0.0 if self.discrete else np.where(np.isfinite(low) & np.isfinite(high), 0.5, 1.0)
        at_low, at_high = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}[
            method
        ]
        inner = formula(np.where(below | above, middle, z), *shapes)
        return np.where(below, at_low, np.where(above, at_high, inner))

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The value below which lies a given probability."""
        return self._quantile("ppf", q, args, kwargs)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The value above which lies a given probability."""
        return self._quantile("isf", q, args, kwargs)

    def _quantile(self, method: str, q: Any, args: Any, kwargs: Any) -> Any:
        if not holds_tensor((q, args)) and not holds_tensor(tuple(kwargs.values())):
            return as_tensors(getattr(self.scipy, method)(q, *args, **kwargs))
        shapes, loc, scale = self._parameters(args, kwargs)
        formula = self._formulas.get("ppf")
        if formula is None:
            if carries_history((q, *shapes)):
                raise lost(
                    f"scipy.stats.{self.name}.{method}", "it has no formula here; pass detach() of the arguments"
                )
            return loc + scale * as_tensors(np.asarray(getattr(self.scipy, method)(*plain_values((q, *shapes)))))
        q = as_operand(as_argument(q))
        return loc + scale * formula(q if method == "ppf" else 1.0 - q, *shapes)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The mean."""
        shapes, loc, scale = self._parameters(args, kwargs)
        return loc + scale * self._moment(0, "mean", shapes)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """The variance."""
        shapes, _, scale = self._parameters(args, kwargs)
        return scale * scale * self._moment(1, "var", shapes)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """The standard deviation."""
        return np.sqrt(self.var(*args, **kwargs))

    def _moment(self, place: int, name: str, shapes: list[Any]) -> Any:
        if self._moments is not None:
            return self._moments[place](*shapes)
        if carries_history(shapes):
            raise lost(f"scipy.stats.{self.name}.{name}", "it has no formula here; pass detach() of the parameters")
        return as_tensors(getattr(self.scipy, name)(*plain_values(shapes)))

    def rvs(self, *args: Any, size: Any = 1, random_state: Any = None, **kwargs: Any) -> Any:
        """Random values; gradients flow to the location and the scale."""
        size = plain_values(as_argument(size))
        if not carries_history((args, kwargs)):
            given, named = plain_values(args), plain_values(kwargs)
            return as_tensors(np.asarray(self.scipy.rvs(*given, size=size, random_state=random_state, **named)))
        shapes, loc, scale = self._parameters(args, kwargs)
        if carries_history(shapes):
            raise lost(f"scipy.stats.{self.name}.rvs", "no gradient flows to its parameters; pass their detach()")
        drawn = self.scipy.rvs(*plain_values(shapes), size=size, random_state=random_state)
        return loc + scale * as_tensors(np.asarray(drawn))

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.scipy, name)
        if not callable(function):
            return function

        def call(*args: Any, **kwargs: Any) -> Any:
            if carries_history(args) or carries_history(kwargs):
                raise lost(f"scipy.stats.{self.name}.{name}", "pass detach() of the arguments")
            return as_tensors(function(*plain_values(args), **plain_values(kwargs)))

        return call


class Frozen:
    """A distribution with its parameters."""

    def __init__(self, dist: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.dist, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "rvs":
                if args:
                    kwargs["size"] = args[0]
                return method(*self.args, **self.kwds, **kwargs)
            return method(*args, *self.args, **self.kwds, **kwargs)

        return call


def _everywhere(*shapes: Any) -> tuple[float, float]:
    return -math.inf, math.inf


def _positive(*shapes: Any) -> tuple[float, float]:
    return 0.0, math.inf


def _unit(*shapes: Any) -> tuple[float, float]:
    return 0.0, 1.0


DISTRIBUTIONS: Final = (
    Distribution(
        "norm",
        (),
        lambda z: z * z * -0.5 - HALF_LOG_TWO_PI,
        _everywhere,
        cdf=scipy.special.ndtr,
        sf=lambda z: scipy.special.ndtr(-z),
        logcdf=scipy.special.log_ndtr,
        logsf=lambda z: scipy.special.log_ndtr(-z),
        ppf=scipy.special.ndtri,
        moments=(lambda: 0.0, lambda: 1.0),
    ),
    Distribution(
        "t",
        ("df",),
        lambda z, df: (
            _gammaln((df + 1) / 2) - _gammaln(df / 2) - 0.5 * np.log(df * math.pi) - (df + 1) / 2 * np.log1p(z * z / df)
        ),
        _everywhere,
        cdf=lambda z, df: scipy.special.stdtr(df, z),
        sf=lambda z, df: scipy.special.stdtr(df, -z),
    ),
    Distribution(
        "beta",
        ("a", "b"),
        lambda z, a, b: scipy.special.xlogy(a - 1, z) + scipy.special.xlog1py(b - 1, -z) - scipy.special.betaln(a, b),
        _unit,
        cdf=lambda z, a, b: scipy.special.betainc(a, b, z),
        moments=(lambda a, b: a / (a + b), lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1))),
    ),
    Distribution(
        "gamma",
        ("a",),
        lambda z, a: scipy.special.xlogy(a - 1, z) - z - _gammaln(a),
        _positive,
        cdf=lambda z, a: _gammainc(a, z),  # type: ignore[has-type]
        moments=(lambda a: a, lambda a: a),
    ),
    Distribution(
        "chi2",
        ("df",),
        lambda z, df: scipy.special.xlogy(df / 2 - 1, z) - z / 2 - _gammaln(df / 2) - df / 2 * math.log(2),
        _positive,
        cdf=lambda z, df: _gammainc(df / 2, z / 2),  # type: ignore[has-type]
        moments=(lambda df: df, lambda df: 2 * df),
    ),
    Distribution(
        "expon",
        (),
        lambda z: -z,
        _positive,
        cdf=lambda z: -np.expm1(-z),
        sf=lambda z: np.exp(-z),
        logsf=lambda z: -z,
        ppf=lambda q: -np.log1p(-q),
        moments=(lambda: 1.0, lambda: 1.0),
    ),
    Distribution(
        "uniform",
        (),
        lambda z: z * 0.0,
        _unit,
        cdf=lambda z: z * 1.0,
        ppf=lambda q: q * 1.0,
        moments=(lambda: 0.5, lambda: 1 / 12),
    ),
    Distribution(
        "laplace",
        (),
        lambda z: -np.abs(z) - math.log(2),
        _everywhere,
        cdf=lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z))),
        moments=(lambda: 0.0, lambda: 2.0),
    ),
    Distribution(
        "cauchy",
        (),
        lambda z: -np.log(math.pi) - np.log1p(z * z),
        _everywhere,
        cdf=lambda z: 0.5 + np.arctan(z) / math.pi,
        ppf=lambda q: np.tan(math.pi * (q - 0.5)),
    ),
    Distribution(
        "logistic",
        (),
        lambda z: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))),
        _everywhere,
        cdf=scipy.special.expit,
        sf=lambda z: scipy.special.expit(-z),
        ppf=scipy.special.logit,
        logcdf=scipy.special.log_expit,
        moments=(lambda: 0.0, lambda: math.pi**2 / 3),
    ),
    Distribution(
        "lognorm",
        ("s",),
        lambda z, s: -0.5 * (np.log(z) / s) ** 2 - np.log(s * z) - HALF_LOG_TWO_PI,
        _positive,
        cdf=lambda z, s: scipy.special.ndtr(np.log(z) / s),
        ppf=lambda q, s: np.exp(s * scipy.special.ndtri(q)),
    ),
    Distribution(
        "weibull_min",
        ("c",),
        lambda z, c: np.log(c) + scipy.special.xlogy(c - 1, z) - z**c,
        _positive,
        cdf=lambda z, c: -np.expm1(-(z**c)),
        sf=lambda z, c: np.exp(-(z**c)),
    ),
    Distribution("rayleigh", (), lambda z: np.log(z) - z * z / 2, _positive, cdf=lambda z: -np.expm1(-z * z / 2)),
    Distribution(
        "gumbel_r",
        (),
        lambda z: -z - np.exp(-z),
        _everywhere,
        cdf=lambda z: np.exp(-np.exp(-z)),
        ppf=lambda q: -np.log(-np.log(q)),
    ),
    Distribution(
        "halfnorm",
        (),
        lambda z: z * z * -0.5 + 0.5 * math.log(2 / math.pi),
        _positive,
        cdf=lambda z: 2 * scipy.special.ndtr(z) - 1,
    ),
    Distribution("invgamma", ("a",), lambda z, a: -(a + 1) * np.log(z) - _gammaln(a) - 1 / z, _positive),
    Distribution(
        "pareto",
        ("b",),
        lambda z, b: np.log(b) - (b + 1) * np.log(z),
        lambda b: (1.0, math.inf),
        cdf=lambda z, b: 1 - z**-b,
    ),
    Distribution(
        "poisson",
        ("mu",),
        lambda k, mu: scipy.special.xlogy(k, mu) - _gammaln(k + 1) - mu,
        _positive,
        discrete=True,
        cdf=lambda k, mu: _gammaincc(k + 1, mu),  # type: ignore[has-type]
        moments=(lambda mu: mu, lambda mu: mu),
    ),
    Distribution(
        "bernoulli",
        ("p",),
        lambda k, p: scipy.special.xlogy(k, p) + scipy.special.xlog1py(1 - k, -p),
        _unit,
        discrete=True,
        moments=(lambda p: p, lambda p: p * (1 - p)),
    ),
    Distribution(
        "binom",
        ("n", "p"),
        lambda k, n, p: (
            _gammaln(n + 1)
            - _gammaln(k + 1)
            - _gammaln(n - k + 1)
            + scipy.special.xlogy(k, p)
            + scipy.special.xlog1py(n - k, -p)
        ),
        lambda n, p: (0.0, n),
        discrete=True,
        moments=(lambda n, p: n * p, lambda n, p: n * p * (1 - p)),
    ),
    Distribution(
        "geom",
        ("p",),
        lambda k, p: scipy.special.xlog1py(k - 1, -p) + np.log(p),
        lambda p: (1.0, math.inf),
        discrete=True,
        moments=(lambda p: 1 / p, lambda p: (1 - p) / p**2),
    ),
)


def _regularised(name: str) -> Callable[[Any, Any], Any]:
    """An incomplete gamma function of tensors, element by element where its parameter has dimensions."""
    function = getattr(scipy.special, name)

    def incomplete(a: Any, x: Any) -> Any:
        if carries_history(a):
            raise lost(f"scipy.special.{name}", "no gradient flows to its first argument; pass its detach()")
        orders = np.asarray(plain_values(as_operand(a)))
        if orders.size == 1:
            return function(
                float(orders.reshape(())), as_operand(x).broadcast_to(np.broadcast_shapes(orders.shape, x.shape))
            )
        shape = np.broadcast_shapes(orders.shape, x.shape)
        orders, x = np.broadcast_to(orders, shape).reshape(-1), as_operand(x).broadcast_to(shape).reshape(-1)
        return np.stack([function(float(order), value) for order, value in zip(orders, x)]).reshape(shape)

    return incomplete


_gammainc, _gammaincc = _regularised("gammainc"), _regularised("gammaincc")


# -- several variables -------------------------------------------------------------------------------------------------


class MultivariateNormal:
    """`scipy.stats.multivariate_normal`, differentiable with respect to the value, the mean and the covariances."""

    scipy: Final = scipy.stats.multivariate_normal

    def __call__(self, mean: Any = None, cov: Any = 1, allow_singular: bool = False, **options: Any) -> Frozen:
        return Frozen(self, (mean, cov, allow_singular), {})

    @staticmethod
    def _parts(x: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
        cov = as_operand(as_argument(cov)) * 1.0
        mean = None if mean is None else as_operand(as_argument(mean)) * 1.0
        dim = mean.size if mean is not None else cov.shape[-1] if cov.ndim else 1
        if cov.ndim == 0:
            cov = cov * np.eye(dim)
        elif cov.ndim == 1:
            cov = np.diag(cov)
        x = as_operand(as_argument(x)) * 1.0
        if not x.ndim:
            x = x.reshape(1)
        elif x.ndim == 1 and dim == 1:
            x = x[:, None]
        return x - (np.zeros(dim) if mean is None else mean.reshape(-1)), cov

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density; a singular covariance has its density on its own subspace."""
        if not holds_tensor((x, mean, cov)):
            return as_tensors(self.scipy.logpdf(x, mean, cov, allow_singular))
        away, cov = self._parts(x, mean, cov)
        values = np.linalg.eigvalsh(plain_values(cov))
        cutoff = 1e6 * np.finfo(float).eps * np.max(np.abs(values))
        rank = int((values > cutoff).sum())
        if values.min() < -cutoff:
            raise ValueError("The input matrix must be symmetric positive semidefinite.")
        if rank < len(values):
            if not allow_singular:
                raise np.linalg.LinAlgError("The input matrix must be symmetric positive definite.")
            half = (cov + cov.mT) / 2
            own, vectors = np.linalg.eigh(half)
            own, vectors = own[len(values) - rank :], vectors[:, len(values) - rank :]
            turned = away @ vectors
            squared, log_det = (turned * turned / own).sum(-1), np.log(own).sum()
            found = -0.5 * (rank * 2 * HALF_LOG_TWO_PI + log_det + squared)
            outside = np.abs(plain_values(away) - plain_values(turned @ vectors.mT)).max(-1) > 1e-8
            return np.where(outside, -math.inf, found) if np.any(outside) else found
        solved = np.linalg.solve(cov, away[..., None])[..., 0]
        squared = (away * solved).sum(-1)
        return -0.5 * (len(values) * 2 * HALF_LOG_TWO_PI + np.linalg.slogdet(cov)[1] + squared)

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """The differential entropy."""
        if not holds_tensor((mean, cov)):
            return as_tensors(self.scipy.entropy(mean, cov))
        _, cov = self._parts(0.0 if mean is None else mean, mean, cov)
        return 0.5 * (cov.shape[0] * (2 * HALF_LOG_TWO_PI + 1) + np.linalg.slogdet(cov)[1])

    def rvs(self, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
        """Random vectors; gradients flow to the mean."""
        if carries_history(cov):
            raise lost(
                "scipy.stats.multivariate_normal.rvs",
                "no gradient flows to the covariances; use mean + "
                "np.linalg.cholesky(cov) @ np.random.standard_normal(n)",
            )
        centre = None if mean is None else np.zeros(np.shape(plain_values(as_operand(mean))))
        drawn = as_tensors(np.asarray(self.scipy.rvs(centre, plain_values(cov), size, random_state)))
        return drawn if mean is None else mean + drawn

    def __getattr__(self, name: str) -> Any:
        return _guarded(getattr(self.scipy, name), f"scipy.stats.multivariate_normal.{name}")


class Dirichlet:
    """`scipy.stats.dirichlet`, differentiable with respect to the value and the parameters."""

    scipy: Final = scipy.stats.dirichlet

    def __call__(self, alpha: Any, seed: Any = None) -> Frozen:
        return Frozen(self, (alpha,), {})

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density."""
        if not holds_tensor((x, alpha)):
            return as_tensors(self.scipy.logpdf(x, alpha))
        x, alpha = as_operand(as_argument(x)), as_operand(as_argument(alpha)) * 1.0
        if x.shape[0] == alpha.size - 1:
            x = np.concatenate([x, 1 - x.sum(0, keepdims=True)])
        powers = scipy.special.xlogy((alpha - 1).reshape((-1,) + (1,) * (x.ndim - 1)), x).sum(0)
        return powers - _gammaln(alpha).sum() + _gammaln(alpha.sum())

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, alpha))

    def mean(self, alpha: Any) -> Any:
        """The mean."""
        alpha = as_operand(as_argument(alpha))
        return alpha / alpha.sum()

    def __getattr__(self, name: str) -> Any:
        return _guarded(getattr(self.scipy, name), f"scipy.stats.dirichlet.{name}")


def _guarded(function: Any, name: str) -> Any:
    if not callable(function):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(name, "pass detach() of the arguments")
        return as_tensors(function(*plain_values(args), **plain_values(kwargs)))

    return call


# -- statistics of samples ---------------------------------------------------------------------------------------------


def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The distances from the mean, in standard deviations."""
    a = as_operand(as_argument(a)) * 1.0
    return (a - a.mean(axis, keepdims=True)) / a.std(axis, ddof=ddof, keepdims=True)


def _central(a: Any, axis: Any, order: int) -> Any:
    a = as_operand(as_argument(a)) * 1.0
    return ((a - a.mean(axis, keepdims=True)) ** order).mean(axis)


def moment(a: Any, order: int = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None) -> Any:
    """The mean of a power of the distances from the mean, or from a given centre."""
    a = as_operand(as_argument(a)) * 1.0
    return ((a - (a.mean(axis, keepdims=True) if center is None else center)) ** order).mean(axis)


def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """The skewness of samples."""
    found = _central(a, axis, 3) / _central(a, axis, 2) ** 1.5
    if bias:
        return found
    n = np.shape(plain_values(as_operand(as_argument(a))))[axis]
    return found * math.sqrt(n * (n - 1)) / (n - 2)


def kurtosis(a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """The kurtosis of samples."""
    found = _central(a, axis, 4) / _central(a, axis, 2) ** 2
    if not bias:
        n = np.shape(plain_values(as_operand(as_argument(a))))[axis]
        found = ((n * n - 1) * found - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return found - 3 if fisher else found


def sem(a: Any, axis: Any = 0, ddof: int = 1, nan_policy: str = "propagate") -> Any:
    """The standard error of the mean."""
    a = as_operand(as_argument(a)) * 1.0
    return a.std(axis, ddof=ddof) / math.sqrt(a.size if axis is None else a.shape[axis])


def gmean(a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate") -> Any:
    """The geometric mean."""
    return np.exp(np.average(np.log(as_operand(as_argument(a))), axis, weights))


def hmean(a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate") -> Any:
    """The harmonic mean."""
    return 1.0 / np.average(1.0 / as_operand(as_argument(a)), axis, weights)


def entropy(pk: Any, qk: Any = None, base: Any = None, axis: int = 0, nan_policy: str = "propagate") -> Any:
    """The entropy of a distribution, or its divergence from another."""
    pk = as_operand(as_argument(pk)) * 1.0
    pk = pk / pk.sum(axis, keepdims=True)
    if qk is None:
        found = scipy.special.entr(pk).sum(axis)
    else:
        qk = as_operand(as_argument(qk)) * 1.0
        found = scipy.special.rel_entr(pk, qk / qk.sum(axis, keepdims=True)).sum(axis)
    return found if base is None else found / np.log(base)


MADE: dict[str, Any] = {
    **{distribution.name: distribution for distribution in DISTRIBUTIONS},
    **{each.__name__: each for each in (zscore, moment, skew, kurtosis, sem, gmean, hmean, entropy)},
    "multivariate_normal": MultivariateNormal(),
    "dirichlet": Dirichlet(),
}
__all__ = public_names(scipy.stats)
globals().update(filled(scipy.stats, MADE, frozenset(), {}))
