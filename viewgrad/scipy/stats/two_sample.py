"""Statistics of several samples: correlation, regression, hypothesis tests, distances between distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import carries_history, plain_values
from .. import special
from ..wrap import Outcome, floating, make_constant, numbers
from .axis_policy import MADE, made, made_by_form, statistic

TINY: Final = 1e-20


def _tail(distribution: Callable[[Any], Any], statistic: Any, alternative: str) -> Any:
    """Return the probability of values at least as extreme, for a symmetric distribution."""
    if alternative == "two-sided":
        return 2 * distribution(-np.abs(statistic))
    if alternative not in ("less", "greater"):
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    return distribution(statistic if alternative == "less" else -statistic)


def _of_student(df: Any, statistic: Any, alternative: str) -> Any:
    return _tail(lambda t: special.stdtr(df, t), statistic, alternative)


def _above_chi_square(df: Any, statistic: Any) -> Any:
    return special.gammaincc(numbers(df) / 2.0, statistic / 2.0)


def _above_f(first: Any, second: Any, statistic: Any) -> Any:
    return special.betainc(second / 2.0, first / 2.0, second / (second + first * statistic))


def _tested(statistic: Any, pvalue: Any, **more: Any) -> Outcome:
    return Outcome({"statistic": statistic, "pvalue": pvalue}, more)


# -- correlation and regression ----------------------------------------------------------------------------------------


def _centred(x: Any) -> Any:
    return x - x.mean(-1, keepdims=True)


@made_by_form
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0) -> Any:
    """Return the correlation coefficient of two samples and its p-value."""
    if method is not None:
        raise lost("scipy.stats.pearsonr", "method is not supported for tensors with a history")
    x, y = (_centred(floating(each).reshape(-1) if axis is None else np.moveaxis(floating(each), axis, -1))
            for each in (x, y))  # fmt: skip
    r = (x * y).sum(-1) / (x.vector_norm(2, -1) * y.vector_norm(2, -1))
    if (np.abs(plain_values(r)) > 1).any():  # due to rounding
        r = np.where(np.abs(plain_values(r)) > 1, np.sign(plain_values(r)), r)
    if x.shape[-1] == 2:  # any two points lie on a line
        r = r * 0.0 + np.round(plain_values(r))
        return _tested(r, r * 0.0 + 1.0, correlation=r)
    shape = x.shape[-1] / 2 - 1
    pvalue = _tail(lambda t: special.betainc(shape, shape, (1 + t) / 2), r, alternative)
    return _tested(r, pvalue, correlation=r)


@made_by_form
def linregress(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    """Return a linear regression: slope, intercept, correlation, p-value and standard errors."""
    x, y = floating(x), floating(y)
    n = x.shape[0]
    away, rise = _centred(x), _centred(y)
    squares, other, mixed = (away * away).mean(), (rise * rise).mean(), (away * rise).mean()
    slope, r = mixed / squares, mixed / np.sqrt(squares * other)
    if n == 2:  # any two points lie on a line; the errors are zero, and NaN since SciPy 1.18
        given = scipy.stats.linregress(plain_values(x), plain_values(y), alternative=alternative)
        line = {"slope": slope, "intercept": y.mean() - slope * x.mean(), "rvalue": r}
        line |= {"pvalue": given.pvalue, "stderr": given.stderr}
        return Outcome(line, {"intercept_stderr": given.intercept_stderr})
    df = n - 2
    t = r * np.sqrt(df / ((1.0 - r + TINY) * (1.0 + r + TINY)))
    error = np.sqrt((1 - r * r) * other / squares / df)
    return Outcome(
        {
            "slope": slope, "intercept": y.mean() - slope * x.mean(), "rvalue": r,
            "pvalue": _of_student(float(df), t, alternative), "stderr": error,
        },
        {"intercept_stderr": error * np.sqrt(squares + x.mean() ** 2)},
    )  # fmt: skip


# -- tests of means ----------------------------------------------------------------------------------------------------


@statistic(1)
def ttest_1samp(a: Any, popmean: Any, alternative: str = "two-sided") -> Any:
    """Perform Student's t-test for the mean of a sample."""
    n = a.shape[-1]
    t = (a.mean(-1) - numbers(popmean)) / np.sqrt(a.var(-1, ddof=1) / n)
    return _tested(t, _of_student(float(n - 1), t, alternative), df=n - 1)


@statistic(2)
def ttest_rel(a: Any, b: Any, alternative: str = "two-sided") -> Any:
    """Perform Student's t-test for the difference of paired samples."""
    return MADE["ttest_1samp"](a - b, 0.0, axis=-1, alternative=alternative)


def _student(first: Any, squares: Any, n: Any, second: Any, others: Any, m: Any, equal: bool, way: str) -> Outcome:
    """Perform Student's or Welch's t-test from means, sums of squared deviations, and counts."""
    if equal:
        df = n + m - 2.0
        square = (squares + others) / df * (1.0 / n + 1.0 / m)
    else:
        one, other = squares / (n - 1.0) / n, others / (m - 1.0) / m
        df, square = (one + other) ** 2 / (one**2 / (n - 1.0) + other**2 / (m - 1.0)), one + other
        df = np.where(np.isnan(plain_values(df)), 1.0, df)  # for samples with a single observation, as in SciPy
    t = (first - second) / np.sqrt(square)
    return _tested(t, _of_student(df, t, way), df=df)


def _squares(x: Any) -> Any:
    return (_centred(x) ** 2).sum(-1)


@statistic(2)
def ttest_ind(a: Any, b: Any, *, equal_var: bool = True, alternative: str = "two-sided") -> Any:
    """Perform Student's or Welch's t-test for the means of two samples."""
    n, m = (np.float64(each.shape[-1]) for each in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return _student(a.mean(-1), _squares(a), n, b.mean(-1), _squares(b), m, equal_var, alternative)


@made_by_form
def ttest_ind_from_stats(
    mean1: Any, std1: Any, nobs1: Any, mean2: Any, std2: Any, nobs2: Any, equal_var: bool = True,
    alternative: str = "two-sided",
) -> Any:  # fmt: skip
    """Perform Student's or Welch's t-test from means and standard deviations."""
    mean1, std1, mean2, std2 = (numbers(each) * 1.0 for each in (mean1, std1, mean2, std2))
    n, m = (np.asarray(plain_values(each), float) for each in (nobs1, nobs2))
    return _student(mean1, std1**2 * (n - 1), n, mean2, std2**2 * (m - 1), m, equal_var, alternative)


# -- tests of several samples ------------------------------------------------------------------------------------------


@statistic(0, by_value=True)
def f_oneway(samples: Any, equal_var: bool = True) -> Any:
    """Perform a one-way analysis of variance."""
    if not equal_var:
        raise lost("scipy.stats.f_oneway", "equal_var=False is not supported for tensors with a history")
    return _analysis_of_variance(samples)


def _analysis_of_variance(samples: Any) -> Any:
    counts = [sample.shape[-1] for sample in samples]
    whole = np.concatenate(samples, -1).mean(-1)
    between = sum(n * (sample.mean(-1) - whole) ** 2 for n, sample in zip(counts, samples))
    within = sum((_centred(sample) ** 2).sum(-1) for sample in samples)
    first, second = float(len(samples) - 1), float(sum(counts) - len(samples))
    f = (between / first) / (within / second)
    return _tested(f, _above_f(first, second, f))


@statistic(0)
def bartlett(samples: Any) -> Any:
    """Perform Bartlett's test for equal variances."""
    counts = [sample.shape[-1] for sample in samples]
    rest, k = sum(counts) - len(samples), len(samples)
    variances = [sample.var(-1, ddof=1) for sample in samples]
    pooled = sum((n - 1) * variance for n, variance in zip(counts, variances)) / rest
    top = rest * np.log(pooled) - sum((n - 1) * np.log(variance) for n, variance in zip(counts, variances))
    found = top / (1 + (sum(1.0 / (n - 1) for n in counts) - 1.0 / rest) / (3 * (k - 1)))
    return _tested(found, _above_chi_square(k - 1.0, found))


@statistic(0)
def levene(samples: Any, center: str = "median", proportiontocut: float = 0.05) -> Any:
    """Perform Levene's test for equal variances: an analysis of variance of the distances from the centre."""
    if center == "trimmed":
        raise lost("scipy.stats.levene", "for tensors with a history center must be 'mean' or 'median'")
    middle = np.median if center == "median" else np.mean
    return _analysis_of_variance([np.abs(sample - middle(sample, -1, keepdims=True)) for sample in samples])


POWERS: Final = {
    "pearson": 1.0, "log-likelihood": 0.0, "freeman-tukey": -0.5, "mod-log-likelihood": -1.0, "neyman": -2.0,
    "cressie-read": 2 / 3,
}  # fmt: skip


def _divergence(f_obs: Any, f_exp: Any, ddof: Any, axis: Any, lambda_: Any) -> Any:
    observed = floating(f_obs)
    observed = observed.reshape(-1) if axis is None else np.moveaxis(observed, axis, -1)
    if f_exp is None:
        expected = observed.mean(-1, keepdims=True)
    else:
        expected = floating(f_exp)
        expected = expected.reshape(-1) if axis is None or expected.ndim < 2 else np.moveaxis(expected, axis, -1)
    power = 1.0 if lambda_ is None else POWERS[lambda_] if isinstance(lambda_, str) else float(lambda_)
    if power == 1.0:
        terms = (observed - expected) ** 2 / expected
    elif power == 0.0:
        terms = 2.0 * special.xlogy(observed, observed / expected)
    elif power == -1.0:
        terms = 2.0 * special.xlogy(expected, expected / observed)
    else:
        terms = observed * ((observed / expected) ** power - 1) * (2.0 / (power * (power + 1)))
    found = terms.sum(-1)
    return _tested(found, _above_chi_square(observed.shape[-1] - 1.0 - np.asarray(plain_values(ddof)), found))


@made
def power_divergence(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Any = 0, lambda_: Any = None) -> Any:
    """Perform the power-divergence test."""
    if carries_history(lambda_):
        raise lost("scipy.stats.power_divergence", "no gradient flows to lambda_; pass its detach()")
    return _divergence(f_obs, f_exp, ddof, axis, lambda_)


@made
def chisquare(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: Any = 0, *, sum_check: bool = True) -> Any:
    """Perform Pearson's chi-squared test; SciPy has checked the sums unless `sum_check` is false."""
    return _divergence(f_obs, f_exp, ddof, axis, None)


# -- tests of shape ----------------------------------------------------------------------------------------------------


def _of_normal(statistic: Any, alternative: str) -> Any:
    return _tail(special.ndtr, statistic, alternative)


def _skewness(a: Any) -> Any:
    n = a.shape[-1]
    if n < 8:
        raise ValueError(f"`skewtest` requires at least 8 observations; only {n} observations were given.")
    y = MADE["skew"](a, -1) * math.sqrt((n + 1) * (n + 3) / (6.0 * (n - 2)))
    fourth = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2.0) * (n + 5) * (n + 7) * (n + 9))
    square = -1 + math.sqrt(2 * (fourth - 1))
    return np.arcsinh(y / math.sqrt(2.0 / (square - 1))) / math.sqrt(0.5 * math.log(square))


def _peakedness(a: Any) -> Any:
    n = a.shape[-1]
    mean = 3.0 * (n - 1) / (n + 1)
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1.0) * (n + 3) * (n + 5))
    x = (MADE["kurtosis"](a, -1, False) - mean) / math.sqrt(variance)
    root = 6.0 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9))
    root *= math.sqrt(6.0 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    df = 6.0 + 8.0 / root * (2.0 / root + math.sqrt(1 + 4.0 / root**2))
    below = 1 + x * math.sqrt(2 / (df - 4.0))
    cube = np.sign(plain_values(below)) * ((1 - 2.0 / df) / np.abs(below)) ** (1 / 3)
    return (1 - 2 / (9.0 * df) - cube) / math.sqrt(2 / (9.0 * df))


@statistic(1)
def skewtest(a: Any, alternative: str = "two-sided") -> Any:
    """Test whether the skewness differs from that of a normal distribution."""
    z = _skewness(a)
    return _tested(z, _of_normal(z, alternative))


@statistic(1)
def kurtosistest(a: Any, alternative: str = "two-sided") -> Any:
    """Test whether the kurtosis differs from that of a normal distribution."""
    z = _peakedness(a)
    return _tested(z, _of_normal(z, alternative))


@statistic(1)
def normaltest(a: Any) -> Any:
    """Perform the D'Agostino-Pearson test of normality."""
    found = _skewness(a) ** 2 + _peakedness(a) ** 2
    return _tested(found, np.exp(-found / 2))


@statistic(1)
def jarque_bera(x: Any) -> Any:
    """Perform the Jarque-Bera test of skewness and kurtosis."""
    found = x.shape[-1] / 6 * (MADE["skew"](x, -1) ** 2 + MADE["kurtosis"](x, -1) ** 2 / 4)
    return _tested(found, np.exp(-found / 2))


@statistic(1, by_value=True)
def combine_pvalues(pvalues: Any, method: str = "fisher", weights: Any = None) -> Any:
    """Combine the p-values of independent tests."""
    n = pvalues.shape[-1]
    if method == "fisher":
        found = -2 * np.log(pvalues).sum(-1)
        return _tested(found, _above_chi_square(2.0 * n, found))
    if method == "pearson":
        found = 2 * np.log1p(-pvalues).sum(-1)
        return _tested(found, 1.0 - _above_chi_square(2.0 * n, -found))
    if method == "stouffer":
        share = np.ones(n) if weights is None else floating(weights)
        found = (-special.ndtri(pvalues) * share).sum(-1) / np.sqrt((share * share).sum(-1))
        return _tested(found, special.ndtr(-found))
    raise lost("scipy.stats.combine_pvalues", "for tensors with a history method must be fisher, pearson or stouffer")


# -- distances between distributions -----------------------------------------------------------------------------------


def _steps(values: Any, weights: Any, at: Any) -> Any:
    """Return the empirical distribution function of samples at given points."""
    order = np.argsort(plain_values(values))
    below = np.searchsorted(plain_values(values)[order], at, "right")
    if weights is None:
        return below / values.shape[0]
    sums = np.concatenate([np.zeros(1), floating(weights)[order].cumsum(0)])
    return sums[below] / sums[-1]


def _between(values: Any, weights: Any) -> tuple[Any, Any]:
    """Return the gaps between all samples of two sets, and the differences of the distribution functions there."""
    first, second = (floating(each).reshape(-1) for each in values)
    together = np.sort(np.concatenate([first, second]))
    places = plain_values(together)[:-1]
    return np.diff(together), _steps(first, weights[0], places) - _steps(second, weights[1], places)


@made
def wasserstein_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """Return the Wasserstein distance between two distributions."""
    widths, difference = _between((u_values, v_values), (u_weights, v_weights))
    return (np.abs(difference) * widths).sum()


@made
def energy_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """Return the energy distance between two distributions."""
    widths, difference = _between((u_values, v_values), (u_weights, v_weights))
    return np.sqrt(2 * (difference * difference * widths).sum())


# -- ranks, which are integers -----------------------------------------------------------------------------------------


make_constant(
    scipy.stats,
    (
        "rankdata", "spearmanr", "kendalltau", "weightedtau", "somersd", "percentileofscore", "mannwhitneyu",
        "wilcoxon", "kruskal", "ranksums", "friedmanchisquare", "tiecorrect",
    ),
    MADE,
    "it is piecewise constant, so it has no gradient.",
)  # fmt: skip
