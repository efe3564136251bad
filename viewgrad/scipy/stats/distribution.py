"""Univariate distributions: densities and distribution functions by formulas."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]
from scipy.stats._distn_infrastructure import rv_continuous_frozen, rv_discrete_frozen  # type: ignore[import-untyped]

from ...adoption import adopted_callable
from ...errors import DifferentiabilityError
from ...func.transforms import grad
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ...tensor.creation import as_operand, holds_tensor
from ...tensor.trace_hooks import composed, observed
from ..implicit_diff import STEPS, least_place
from ..integrate import quad
from ..wrap import at_edges, double_copy, numbers, with_value_of

HALF_LOG_TWO_PI: Final = 0.5 * math.log(2 * math.pi)
# The location and scale of the standard form, used for omitted parameters; no operation uses them.
STANDARD_LOC: Final = 0.0
STANDARD_SCALE: Final = 1.0
NEGLIGIBLE: Final = 1e-20  # the probability of an integer at which sums end
MOST_TERMS: Final = 100_000
STATIONARY: Final = 1e-2  # the slope of the mean log-likelihood, per parameter, that SciPy's search may leave
Formula = Callable[..., Any]
# Methods of SciPy's distributions in standard form, which programs call for speed.
STANDARD: Final = frozenset(
    {"_pdf", "_logpdf", "_pmf", "_logpmf", "_cdf", "_logcdf", "_sf", "_logsf", "_ppf", "_isf", "_entropy"}
)

# Methods whose results are compared with SciPy's, since some formulas lose all digits at extreme arguments.
COMPARED: Final = frozenset({"pdf", "logpdf", "pmf", "logpmf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"})
# Methods that take these arguments instead of values.
OPTIONS: Final = {"rvs": ("size", "random_state"), "stats": ("moments",)}
OF_VALUES: Final = frozenset({"pdf", "logpdf", "cdf", "logcdf"})


def _are_moderate(values: Any) -> bool:
    """Return whether all numbers are finite, and 0 or neither tiny nor huge, so that the formulas are accurate."""
    *given, result = values
    return all(map(_has_moderate_size, given)) and bool(np.isfinite(plain_values(as_argument(result))).all())


def _has_moderate_size(value: Any) -> bool:
    if type(value) in (int, float):
        return bool(1e-8 <= abs(value) <= 1e3 or value == 0.0)
    sizes = np.abs(plain_values(as_argument(value)))
    if not sizes.ndim:
        return bool(1e-8 <= sizes <= 1e3 or sizes == 0.0)
    if not sizes.size:
        return True
    # Two reductions, instead of three comparisons and their conjunction.
    if not sizes.max() <= 1e3:
        return False
    return bool(sizes.min() >= 1e-8 or ((sizes >= 1e-8) | (sizes == 0.0)).all())


class NamedDistribution:
    """A SciPy distribution that is pickled by name, and whose other methods are SciPy's own."""

    name: str
    scipy: Any

    def __getattr__(self, name: str) -> Any:
        if name in STANDARD:
            return getattr(self, name[1:])
        if name.startswith("_"):  # `copy` and `pickle` look up such names before the object has contents
            raise AttributeError(name)
        return _without_history(getattr(self.scipy, name), f"scipy.stats.{self.name}.{name}")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of SciPy's distribution, for `isinstance(distribution, rv_continuous)`."""
        return type(self.scipy)

    def __reduce__(self) -> Any:
        return _named, (self.name,)


class Distribution(NamedDistribution):
    """A SciPy distribution whose methods accept tensors.

    Arguments:
        name: SciPy's name.
        shapes: the names of the parameters besides location and scale.
        log_density: the log-density of the standard form, as a function of the value and the parameters.
        support: the ends of the standard form's support, as a function of the parameters.
        formulas: further functions of the standard form, by name: cdf, sf, logcdf, logsf, ppf, isf.
        moments: the mean and variance of the standard form, as functions of the parameters.
        entropy: the entropy of the standard form, as a function of the parameters.
        is_accurate: whether the formulas are accurate at extreme arguments, where SciPy's results are not.
        start: a point at which the distribution function is 0; by default the lower end of the support.
        discrete: whether the values are integers, so that there is no scale and the density is called `pmf`.
    """

    def __init__(
        self, name: str, shapes: Sequence[str], log_density: Formula, support: Formula, *, discrete: bool = False,
        moments: tuple[Formula, Formula] | None = None, entropy: Formula | None = None, is_accurate: bool = False,
        start: float | None = None, **formulas: Formula,
    ) -> None:  # fmt: skip
        self.scipy = getattr(scipy.stats, name)
        self.name, self.shapes, self.discrete = name, tuple(shapes), discrete
        self._log_density, self._support, self._formulas, self._moments = log_density, support, formulas, moments
        self._entropy: Final = entropy
        self._is_accurate: Final = is_accurate
        self._start: Final = start

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        self._parameters(args, kwargs)  # raises for missing ones
        return Frozen(self, args, kwargs)

    freeze = __call__

    @property
    def _count(self) -> int:
        """The number of parameters, location and scale included."""
        return len(self.shapes) + (1 if self.discrete else 2)

    def _parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        names = (*self.shapes, "loc") if self.discrete else (*self.shapes, "loc", "scale")
        given = dict(zip(names, args)) | kwargs
        unknown = given.keys() - set(names)
        missing = [name for name in self.shapes if name not in given]
        if unknown or missing or len(args) > len(names):
            raise TypeError(f"{self.name} requires the parameters {', '.join(names)}")
        repeated = sorted(set(names[: len(args)]) & kwargs.keys())
        if repeated:
            raise TypeError(f"{self.name} got multiple values for {', '.join(repeated)}")
        shapes = [numbers(given[name]) for name in self.shapes]
        return shapes, _given(given, "loc", STANDARD_LOC), _given(given, "scale", STANDARD_SCALE)

    def _valid(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
        """Return where the parameters define a distribution, and the parameters with valid values elsewhere.

        Elsewhere SciPy's results are NaN, but the gradients of the other elements must not be.
        """
        shapes, loc, scale = self._parameters(args, kwargs)
        plain = plain_values(shapes)
        valid = self._has_shapes_and_loc(plain, loc)
        if scale is not STANDARD_SCALE:
            valid = valid & (plain_values(scale) > 0)
        if valid.all():
            return valid, shapes, loc, scale
        some = [np.broadcast_to(shape, valid.shape)[valid] for shape in plain]
        others = [values[0] if len(values) else math.nan for values in some]
        shapes = [np.where(valid, shape, other) for shape, other in zip(shapes, others)]
        return valid, shapes, np.where(valid, loc, 0.0), np.where(valid, scale, 1.0)

    def _has_shapes_and_loc(self, shapes: list[Any], loc: Any) -> Any:
        """Return where the parameters other than the scale define a distribution."""
        valid = np.asarray(self.scipy._argcheck(*plain_values(shapes)), bool) if shapes else np.True_
        return valid if loc is STANDARD_LOC else valid & ~np.isnan(plain_values(loc))

    def _evaluate(self, method: str, formula: Formula, x: Any, args: Any, kwargs: Any) -> Any:
        def evaluate(x: Any, *args: Any, **kwargs: Any) -> Any:
            valid, shapes, loc, scale = self._valid(args, kwargs)
            x = double_copy(x)
            z = x if loc is STANDARD_LOC else x - loc
            z = z if scale is STANDARD_SCALE else z / scale
            return _where_valid(valid & ~np.isnan(plain_values(x)), formula(z, shapes, scale))

        return self._dispatched(method, evaluate, (x, *args), kwargs)

    def _dispatched(self, method: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a function for tensors with a history, and SciPy's method otherwise."""
        if not holds_tensor(args) and not holds_tensor(tuple(kwargs.values())):
            return as_tensors(getattr(self.scipy, method)(*args, **kwargs))
        if not carries_history((args, kwargs)):
            return self._plain(method, *args, **kwargs)
        found = composed(f"{self.name}.{method}", function, args, kwargs)
        return self._compared(method, found, args, kwargs) if method in COMPARED else found

    def _compared(self, method: str, found: Any, args: Any, kwargs: Any) -> Any:
        """Return a result with SciPy's values at edges; see `at_edges`."""
        if observed() is not None or self._is_accurate or _are_moderate((*args, *kwargs.values(), found)):
            return found
        with np.errstate(all="ignore"):
            wanted = np.asarray(getattr(self.scipy, method)(*plain_values(args), **plain_values(kwargs)))
        return at_edges(f"scipy.stats.{self.name}.{method}", found, wanted)

    def _plain(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Return SciPy's result for tensors without history."""
        return as_operand(np.asarray(getattr(self.scipy, method)(*plain_values(args), **plain_values(kwargs)))[()])

    def _log(self, z: Any, shapes: list[Any], scale: Any) -> Any:
        found = self._standard_log(z, shapes)
        return found if scale is STANDARD_SCALE else found - np.log(scale)

    def _standard_log(self, z: Any, shapes: list[Any]) -> Any:
        """Return the log-density of the standard form."""
        if self._is_interior(z):
            return self._log_density(z, *shapes)
        low, high = self._support(*shapes)
        place = z
        if observed() is None:
            place, low, high = plain_values((z, low, high))
        inside: Any = (place >= low) & (place <= high)
        outer: Any = -math.inf
        if self.discrete:
            inside = inside & (place == np.floor(place))
        elif observed() is None:
            ends = (place == low) | (place == high)
            if ends.any():
                # SciPy returns limits at points where the formulas are undefined.
                outer = np.asarray(self.scipy.logpdf(place, *plain_values(shapes)))
                inside = inside & ~(ends & ~np.isfinite(outer))
        if observed() is None and inside.all():
            return self._log_density(z, *shapes)
        # Where there is no density, neither the formula nor its gradient may be computed.
        return np.where(inside, self._log_density(np.where(inside, z, self._middle(low, high)), *shapes), outer)

    def _is_interior(self, z: Any) -> bool:
        """Return whether the support is the whole real line and the values are finite."""
        is_unbounded = self._support is everywhere and not self.discrete
        return is_unbounded and (observed() is not None or not np.isinf(plain_values(z)).any())

    def _middle(self, low: Any, high: Any) -> Any:
        """Return a value inside the support of the standard form, to replace values outside."""
        low, high = (np.asarray(plain_values(as_operand(end)), float) for end in (low, high))
        if self.discrete:
            return np.where(np.isfinite(low), low, 0.0)
        below, above = np.isfinite(low), np.isfinite(high)
        low, high = np.where(below, low, np.where(above, high - 2.0, 0.0)), np.where(above, high, 0.0)
        return np.where(above, low + (high - low) / 2, low + 1.0)

    def logpdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability density."""
        return self._evaluate("logpdf", self._log, x, args, kwargs)

    def pdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability density."""
        return self._evaluate("pdf", lambda *given: np.exp(self._log(*given)), x, args, kwargs)

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the probability mass function."""
        return self._evaluate("logpmf", self._log, k, args, kwargs)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability mass function."""
        return self._evaluate("pmf", lambda *given: np.exp(self._log(*given)), k, args, kwargs)

    def cdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the cumulative distribution function."""
        return self._cumulative("cdf", x, args, kwargs)

    def sf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the survival function, 1 - cdf."""
        return self._cumulative("sf", x, args, kwargs)

    def logcdf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the cumulative distribution function."""
        return self._cumulative("logcdf", x, args, kwargs)

    def logsf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the logarithm of the survival function."""
        return self._cumulative("logsf", x, args, kwargs)

    def _cumulative(self, method: str, x: Any, args: Any, kwargs: Any) -> Any:
        return self._evaluate(method, lambda z, shapes, scale: self._within(method, z, shapes), x, args, kwargs)

    def _within(self, method: str, z: Any, shapes: list[Any]) -> Any:
        """Return a distribution function of the standard form, extended by constants outside the support."""
        if method.startswith("log") and method not in self._formulas:
            return np.log(self._within(method[3:], z, shapes))
        formula = self._formulas.get(method)
        if formula is None:
            if method == "sf":
                return 1.0 - self._within("cdf", z, shapes)
            formula = self._accumulated
        if self._is_interior(z):
            return formula(z, *shapes)
        low, high = self._support(*shapes)
        below, above = z < low if self.discrete else z <= low, z >= high
        if self.discrete:
            z = np.floor(z)
        if observed() is None and not (np.any(below) or np.any(above)):
            return formula(z, *shapes)
        middle = self._middle(low, high)
        at_low, at_high = {"cdf": (0.0, 1.0), "sf": (1.0, 0.0), "logcdf": (-math.inf, 0.0), "logsf": (0.0, -math.inf)}[
            method
        ]
        inner = formula(np.where(below | above, middle, z), *shapes)
        return np.where(below, at_low, np.where(above, at_high, inner))

    def _accumulated(self, z: Any, *shapes: Any) -> Any:
        """Return the distribution function with SciPy's values, as the integral or sum of the density."""
        low = self._support(*shapes)[0] if self._start is None else self._start
        z = _where_any(np.isnan(plain_values(z)), self._middle(*self._support(*shapes)), z)
        shape = np.broadcast_shapes(np.shape(z), *map(np.shape, shapes))
        flat = [np.broadcast_to(each, shape).reshape(-1) for each in (z, *shapes)]
        found: Any = np.zeros(shape)
        if flat[0].size:
            found = np.stack([self._total(low, *each) for each in zip(*flat)]).reshape(shape)
        return with_value_of(found, self.scipy.cdf, z, *shapes)

    def _total(self, low: Any, z: Any, *shapes: Any) -> Any:
        """Return the integral or sum of the density up to a point."""
        end = float(plain_values(z))
        if self.discrete and end - low > MOST_TERMS:
            raise lost(f"scipy.stats.{self.name}.cdf", "its sum has too many terms; pass detach() of the parameters")
        if self.discrete:
            return np.exp(self._log_density(np.arange(float(low), end + 1.0), *shapes)).sum()

        def density(x: Any) -> Any:
            return np.exp(self._log_density(x, *shapes))

        middle = self.scipy.ppf([0.01, 0.5, 0.99], *plain_values(shapes))
        places = [low, *(each for each in middle if low < each < end), z]
        return sum(quad(density, *pair)[0] for pair in itertools.pairwise(places))

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the quantile function, the inverse of cdf."""
        return self._quantile("ppf", q, args, kwargs)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the inverse of the survival function."""
        return self._quantile("isf", q, args, kwargs)

    def _quantile(self, method: str, q: Any, args: Any, kwargs: Any) -> Any:
        formula: Formula = self._formulas.get("ppf") or self._solved

        def find(q: Any, *args: Any, **kwargs: Any) -> Any:
            valid, shapes, loc, scale = self._valid(args, kwargs)
            q = double_copy(q)
            share = (plain_values(q) >= 0) & (plain_values(q) <= 1)
            valid, q = valid & share, q if np.all(share) else np.where(share, q, 0.5)
            given = plain_values(q)
            ends = (given == 0) | (given == 1)
            # The formulas and their gradients may be infinite or NaN at the ends.
            inner = q if self.discrete or not np.any(ends) else np.where(ends, 0.5, q)
            z = formula(inner if method == "ppf" else 1.0 - inner, *shapes)
            if inner is not q:
                for share, low in zip((0.0, 1.0), self._support(*shapes)[:: 1 if method == "ppf" else -1]):
                    z = self._where_at(share, q, low, 1.0 if method == "ppf" else -1.0, shapes, z)
            return _where_valid(valid, loc + scale * z)

        return self._dispatched(method, find, (q, *args), kwargs)

    def _where_at(self, probability: float, q: Any, end: Any, sign: float, shapes: list[Any], z: Any) -> Any:
        """Return the quantiles, with an end of the support and the slope 1 / pdf where `q` is a given probability."""
        given = plain_values(q)
        chosen = given == probability
        if not np.any(chosen):
            return z
        if carries_history(q):
            place = plain_values(end)
            with np.errstate(all="ignore"):
                given_shapes = plain_values(shapes)
                density = np.asarray(self.scipy.pdf(place, *given_shapes))
                beside = np.asarray(self.scipy.pdf(np.nextafter(place, plain_values(z)), *given_shapes))
            # SciPy's density at an end may be 0 although its limit is infinite.
            density = np.where((density == 0) & (beside > 1.0), np.inf, density)
            rounded = np.isfinite(density) & (np.abs(beside - density) > 0.5 * np.abs(beside))
            density = np.where(rounded & (beside < 1e-8), 0.0, density)  # such as cos(pi / 2)
            density = np.where(np.isinf(place), 0.0, density)
            rise = np.where(chosen, q - given, 1.0)
            # Square roots for infinite slopes; higher derivatives, which are unknown, are infinite.
            moved = np.where(density == 0, np.sqrt(rise), rise / np.where(density == 0, 1.0, density)) + rise**1.5
            end = end + sign * moved
        return np.where(chosen, end, z)

    def _solved(self, q: Any, *parameters: Any) -> Any:
        """Return SciPy's quantile, with derivatives up to the seventh order by Newton steps."""
        shapes = list(parameters)
        if self.discrete:
            if carries_history((q, *shapes)):
                raise lost(f"scipy.stats.{self.name}.ppf", "its values are integers; pass detach() of the arguments")
            return as_tensors(np.asarray(self.scipy.ppf(*plain_values((q, *shapes)))))
        z = as_tensors(np.asarray(self.scipy.ppf(*plain_values((q, *shapes)))))
        if not carries_history((q, *shapes)):
            return z
        within = np.isfinite(plain_values(self._log(z, shapes, 1.0)))
        start = np.where(within, z, plain_values(as_tensors(np.asarray(self.scipy.ppf(0.5, *plain_values(shapes))))))
        probability, value = np.where(within, q, self._within("cdf", start, shapes)), start
        for _ in range(STEPS):
            value = value - (self._within("cdf", value, shapes) - probability) / np.exp(self._log(value, shapes, 1.0))
        return np.where(within, value, z)

    def fit(self, data: Any, *starts: Any, **options: Any) -> Any:
        """Estimate the parameters by maximum likelihood; gradients flow to the data and to fixed parameters.

        Raises:
            DifferentiabilityError: if the likelihood is not stationary at the estimate, as at the end of a support.
        """
        found = self.scipy.fit(plain_values(as_operand(data)), *plain_values(starts), **plain_values(options))
        if self.discrete or not carries_history((data, options)):
            return found
        if str(options.get("method", "mle")).lower() != "mle":
            raise lost(f"scipy.stats.{self.name}.fit", "for tensors with a history, the method must be mle")
        names = [*self.shapes, "loc", "scale"]
        shapes = [[f"f{place}", f"f{name}", f"fix_{name}"] for place, name in enumerate(self.shapes)]
        keys = [*shapes, ["floc"], ["fscale"]]
        fixed = [next((options[key] for key in each if options.get(key) is not None), None) for each in keys]
        free = [place for place, value in enumerate(fixed) if value is None]
        values = double_copy(data).reshape(-1)

        def parameters(estimates: Any) -> list[Any]:
            place = iter(range(len(free)))
            return [estimates[next(place)] if value is None else value for value in fixed]

        def cost(estimates: Any) -> Any:
            return -self.logpdf(values, **dict(zip(names, parameters(estimates)))).mean()

        estimates = np.array(found, float)[free]
        slopes = np.asarray(plain_values(grad(cost)(as_tensors(estimates.copy())).detach()))
        units = np.array([max(abs(found[place]), found[-1] if place >= len(self.shapes) else 0.0) for place in free])
        if not np.all(np.abs(slopes) * units < STATIONARY):
            raise DifferentiabilityError(
                f"scipy.stats.{self.name}.fit: the likelihood is not stationary at the estimate, which has no "
                "derivative here; fix parameters at the end of the support, such as floc=, or pass detach() of the data"
            )
        return tuple(parameters(least_place(cost, estimates)))

    def median(self, *args: Any, **kwargs: Any) -> Any:
        """Return the median."""
        return self.ppf(0.5, *args, **kwargs)

    def interval(self, confidence: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the central interval with the given probability."""
        if not np.all((plain_values(numbers(confidence)) >= 0) & (plain_values(numbers(confidence)) <= 1)):
            raise ValueError("alpha must be between 0 and 1 inclusive")
        rest = (1.0 - numbers(confidence)) / 2.0
        return self.ppf(rest, *args, **kwargs), self.ppf(1.0 - rest, *args, **kwargs)

    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """Return the entropy."""
        if not carries_history((args, kwargs)):
            return self._plain("entropy", *args, **kwargs)
        valid, shapes, _, scale = self._valid(args, kwargs)
        if self._entropy is None and carries_history(shapes):
            raise lost(f"scipy.stats.{self.name}.entropy", "it has no derivative here; pass detach() of the parameters")
        standard = self._plain("entropy", *shapes) if self._entropy is None else self._entropy(*shapes)
        found = _in_common_shape(standard if self.discrete else standard + np.log(numbers(scale)), valid)
        return self._compared("entropy", found, args, kwargs)

    def stats(self, *args: Any, moments: Any = None, **kwargs: Any) -> Any:
        """Return the mean ("m"), the variance ("v"), the skewness ("s") and the kurtosis ("k"), by default "mv"."""
        if len(args) == self._count + 1 and moments is None:  # in SciPy the moments follow all parameters
            *args, moments = args  # type: ignore[assignment]
        moments = "mv" if moments is None else moments
        if not carries_history((args, kwargs)):
            return as_tensors(self.scipy.stats(*plain_values(args), moments=moments, **plain_values(kwargs)))
        if set(moments) - set("mv"):
            raise lost(f"scipy.stats.{self.name}.stats", "for tensors with a history moments must be m or v")
        found = tuple({"m": self.mean, "v": self.var}[each](*args, **kwargs) for each in "mv" if each in moments)
        return found if len(found) > 1 else found[0]

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Return the mean."""
        if not carries_history((args, kwargs)):
            return self._plain("mean", *args, **kwargs)
        valid, shapes, loc, scale = self._valid(args, kwargs)
        found = _in_common_shape(loc + numbers(scale) * self._moment(0, "mean", shapes), valid)
        return self._compared("mean", found, args, kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Return the variance."""
        if not carries_history((args, kwargs)):
            return self._plain("var", *args, **kwargs)
        valid, shapes, _, scale = self._valid(args, kwargs)
        found = _in_common_shape(numbers(scale) * scale * self._moment(1, "var", shapes), valid)
        return self._compared("var", found, args, kwargs)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **kwargs))

    def _moment(self, place: int, name: str, shapes: list[Any]) -> Any:
        if self._moments is not None:
            return self._moments[place](*shapes)
        if carries_history(shapes):
            raise lost(f"scipy.stats.{self.name}.{name}", "it has no derivative here; pass detach() of the parameters")
        return as_tensors(getattr(self.scipy, name)(*plain_values(shapes)))

    def expect(
        self, func: Any = None, args: Any = (), loc: Any = 0, scale: Any = 1, lb: Any = None, ub: Any = None,
        conditional: bool = False, **options: Any,
    ) -> Any:  # fmt: skip
        """Return the expected value of a function; gradients flow to parameters, bounds and captured tensors.

        Arguments:
            func: a function of a number; by default the identity.
            args: the parameters other than location and scale.
            loc, scale: the location and the scale.
            lb, ub: the bounds of the integral; by default the ends of the support.
            conditional: whether to divide by the probability of the interval between the bounds.
            options: those of `scipy.integrate.quad`.
        """
        func = adopted_callable(func) if func is not None else lambda x: x
        if self.discrete:
            return self._expected_sum(func, args, loc, lb, ub, conditional, options)
        parameters = (*args, loc, scale)
        low, high = self._support(*map(numbers, args))
        low, high = loc + scale * low if lb is None else lb, loc + scale * high if ub is None else ub
        middle = self.scipy.ppf([0.05, 0.95], *plain_values(parameters))
        places = [low, *(float(each) for each in middle if _lies_between(each, low, high)), high]

        def weighted(x: Any) -> Any:
            return func(x) * self.pdf(x, *parameters)

        total = sum(quad(weighted, *pair, **options)[0] for pair in itertools.pairwise(places))
        return total / (self.sf(low, *parameters) - self.sf(high, *parameters)) if conditional else total

    def _expected_sum(
        self, func: Formula, args: Any, loc: Any, lb: Any, ub: Any, conditional: bool, options: dict[str, Any]
    ) -> Any:
        """Return the expected value of a function of an integer; see `expect`."""

        def plain_func(k: Any) -> Any:
            return np.asarray(plain_values(numbers(func(as_tensors(np.array(k)))).detach()))

        given = plain_values((lb, ub))
        wanted = self.scipy.expect(plain_func, plain_values(args), plain_values(loc), *given, conditional, **options)
        parameters = (*args, loc)
        low, high = self.scipy.support(*plain_values(parameters))
        low, high = (low if given[0] is None else given[0]), (high if given[1] is None else given[1])
        k = self._relevant(plain_values(parameters), low, high)
        total: Any = as_tensors(np.array(math.nan))
        if k is not None:
            total = (func(as_tensors(k)) * self.pmf(k, *parameters)).sum()
            if conditional:
                total = total / (self.sf(low - 1, *parameters) - self.sf(high, *parameters))
        if not np.isclose(plain_values(total), wanted, rtol=1e-6, equal_nan=False):
            name = f"scipy.stats.{self.name}.expect"
            raise lost(name, "its sum converges too slowly; pass detach() of the parameters")
        return total + (wanted - plain_values(total))

    def _relevant(self, parameters: Any, low: Any, high: Any) -> Any:
        """Return the integers between two bounds except those of negligible probability, or None if they are too many.
        """
        middle, width = np.clip(self.scipy.median(*parameters), low, high), 64
        while width <= MOST_TERMS:
            first, last = max(low, middle - width), min(high, middle + width)
            beside = self.scipy.pmf([first, last], *parameters)
            if (first == low or beside[0] < NEGLIGIBLE) and (last == high or beside[1] < NEGLIGIBLE):
                return np.arange(first, last + 1)
            width *= 4
        return None

    def rvs(self, *args: Any, size: Any = None, random_state: Any = None, **kwargs: Any) -> Any:
        """Draw random values, by default one for each parameter; gradients flow to the location and the scale."""
        if len(args) == self._count + 1 and size is None:  # in SciPy the size follows all parameters
            *args, size = args  # type: ignore[assignment]
        size = plain_values(as_argument(size))
        if not carries_history((args, kwargs)):
            given, named = plain_values(args), plain_values(kwargs)
            return as_operand(np.asarray(self.scipy.rvs(*given, size=size, random_state=random_state, **named))[()])
        shapes, loc, scale = self._parameters(args, kwargs)
        if carries_history(shapes):
            raise lost(f"scipy.stats.{self.name}.rvs", "no gradient flows to its parameters; pass detach() of them")
        plain, width = plain_values(shapes), plain_values(scale)
        if not np.all(self._has_shapes_and_loc(plain, loc) & (width >= 0)):
            raise ValueError(f"Domain error in arguments: invalid parameters of the distribution {self.name}")
        still = np.zeros(np.broadcast_shapes(np.shape(loc), np.shape(width)))
        drawn = self.scipy.rvs(*plain, still, size=size, random_state=random_state)
        return loc + scale * as_tensors(np.asarray(drawn))


FROZEN: Final = {scipy.stats.rv_discrete: rv_discrete_frozen, scipy.stats.rv_continuous: rv_continuous_frozen}


class Frozen:
    """A distribution with fixed parameters.

    Arguments:
        dist: the distribution.
        args: the parameters by position.
        kwds: the parameters by name.
        options: arguments of the densities and distribution functions only.
    """

    def __init__(
        self, dist: Any, args: tuple[Any, ...], kwds: dict[str, Any], options: dict[str, Any] | None = None
    ) -> None:
        self.dist, self.args, self.kwds, self.options = dist, args, kwds, options or {}

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of such a distribution in SciPy, unless it is one of vectors."""
        return next((frozen for kind, frozen in FROZEN.items() if isinstance(self.dist.scipy, kind)), type(self))

    def __reduce__(self) -> Any:
        return type(self), (self.dist, self.args, self.kwds, self.options)

    def expect(
        self, func: Any = None, lb: Any = None, ub: Any = None, conditional: bool = False, **options: Any
    ) -> Any:
        """Return the expected value of a function; see `Distribution.expect`."""
        shapes, loc, scale = self.dist.scipy._parse_args(*self.args, **self.kwds)
        located = {"loc": loc} if self.dist.discrete else {"loc": loc, "scale": scale}
        return self.dist.expect(func, shapes, lb=lb, ub=ub, conditional=conditional, **located, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # `copy` and `pickle` look up such names before the object has contents
            raise AttributeError(name)
        method = getattr(self.dist, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if name in OPTIONS:
                kwargs |= zip(OPTIONS[name], args)
                return method(*self.args, **self.kwds, **kwargs)
            if name in OF_VALUES:
                kwargs = {**self.options, **kwargs}
            return method(*args, *self.args, **self.kwds, **kwargs)

        return call


def _given(parameters: dict[str, Any], name: str, standard: float) -> Any:
    return numbers(parameters[name]) if name in parameters else standard


def _named(name: str) -> Any:
    """Return a distribution of `viewgrad.scipy.stats`, for unpickling."""
    return getattr(importlib.import_module("viewgrad.scipy.stats"), name)


def _without_history(function: Any, name: str) -> Any:
    """Wrap a SciPy function for tensors without history; other objects are returned unchanged."""
    if not callable(function):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        if carries_history(args) or carries_history(kwargs):
            raise lost(name, "pass detach() of the arguments")
        return as_tensors(function(*plain_values(args), **plain_values(kwargs)))

    return call


def _lies_between(place: float, low: Any, high: Any) -> bool:
    return bool(plain_values(low) < place < plain_values(high))


def _where_any(condition: Any, value: Any, other: Any) -> Any:
    return np.where(condition, value, other) if np.any(condition) else other


def _where_valid(valid: Any, result: Any) -> Any:
    return result if np.all(valid) else np.where(valid, result, math.nan)


def _in_common_shape(result: Any, valid: Any) -> Any:
    """Return a property of distributions, broadcast to the common shape of the parameters."""
    result = _where_valid(valid, result)
    shape = np.broadcast_shapes(np.shape(result), np.shape(valid))
    return result if np.shape(result) == shape else np.broadcast_to(result, shape) * 1.0


def everywhere(*shapes: Any) -> tuple[float, float]:
    """Return the real line as support."""
    return -math.inf, math.inf


def positive(*shapes: Any) -> tuple[float, float]:
    """Return the positive numbers as support."""
    return 0.0, math.inf


def unit(*shapes: Any) -> tuple[float, float]:
    """Return the interval from 0 to 1 as support."""
    return 0.0, 1.0
