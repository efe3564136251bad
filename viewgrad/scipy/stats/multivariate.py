"""Multivariate distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...numpy.random import correlated
from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import as_tensors, carries_history, plain_values
from ...tensor.creation import as_operand, holds_tensor
from ...tensor.shapes import along_first
from ...tensor.trace_hooks import observed
from .. import special
from ..wrap import at_edges, detached, float_copy, numbers, scipys_result
from .distribution import HALF_LOG_TWO_PI, Frozen, NamedDistribution
from .normal_orthants import probability_below


def squeezed(value: Any) -> Any:
    """Return a value without dimensions of length 1, as SciPy's multivariate distributions do."""
    return value.squeeze() if 1 in value.shape else value


class MultivariateNormal(NamedDistribution):
    """`scipy.stats.multivariate_normal`, differentiable in the value, the mean and the covariance matrix."""

    name = "multivariate_normal"
    scipy = scipy.stats.multivariate_normal

    def __call__(self, mean: Any = None, cov: Any = 1, allow_singular: bool = False, **options: Any) -> Frozen:
        return FrozenNormal(self, (mean, cov), {}, {"allow_singular": allow_singular})

    @staticmethod
    def parameters(mean: Any, cov: Any) -> tuple[Any, Any]:
        """Return the mean as a vector, and the covariances as a matrix."""
        cov = float_copy(cov)
        mean = None if mean is None else float_copy(mean).reshape(-1)
        dim = mean.size if mean is not None else cov.shape[-1] if cov.ndim else 1
        if cov.ndim == 0:
            cov = cov * np.eye(dim)
        elif cov.ndim == 1:
            cov = np.diag(cov)
        return as_operand(np.zeros(dim)) if mean is None else mean, cov

    @classmethod
    def _parts(cls, x: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
        mean, cov = cls.parameters(mean, cov)
        x = float_copy(x)
        if not x.ndim:
            x = x.reshape(1)
        elif x.ndim == 1 and mean.size == 1:
            x = x[:, None]
        return x - mean, cov

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the log-density; a singular covariance has its density on its own subspace."""
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
            return squeezed(np.where(outside, -math.inf, found) if np.any(outside) else found)
        solved = np.linalg.solve(cov, away[..., None])[..., 0]
        squared = (away * solved).sum(-1)
        return squeezed(-0.5 * (len(values) * 2 * HALF_LOG_TWO_PI + np.linalg.slogdet(cov)[1] + squared))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def cdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False, **options: Any) -> Any:
        """Return the distribution function; the options are those of SciPy's quadrature."""
        if not carries_history((x, mean, cov, options.get("lower_limit"))):
            given = plain_values((x, mean, cov))
            return as_tensors(np.asarray(self.scipy.cdf(*given, allow_singular, **plain_values(options))))
        if options.get("lower_limit") is not None:
            raise lost("scipy.stats.multivariate_normal.cdf", "omit lower_limit")
        away, cov = self._parts(x, mean, cov)
        rows = away.reshape(-1, away.shape[-1])
        found = [probability_below(row, cov, allow_singular=allow_singular, **options) for row in rows]
        return squeezed(np.stack(found).reshape(away.shape[:-1]))

    def logcdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False, **options: Any) -> Any:
        """Return the logarithm of `cdf`."""
        return np.log(self.cdf(x, mean, cov, allow_singular, **options))

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """Return the differential entropy."""
        if not holds_tensor((mean, cov)):
            return as_tensors(self.scipy.entropy(mean, cov))
        _, cov = self.parameters(mean, cov)
        return 0.5 * (cov.shape[0] * (2 * HALF_LOG_TWO_PI + 1) + np.linalg.slogdet(cov)[1])

    def rvs(self, mean: Any = None, cov: Any = 1, size: Any = 1, random_state: Any = None) -> Any:
        """Draw random vectors; gradients flow to the mean and the covariances."""
        if not holds_tensor((mean, cov)):
            return as_tensors(np.asarray(self.scipy.rvs(mean, cov, size, random_state)))
        centre, cov = self.parameters(mean, cov)
        generator = self.scipy._get_random_state(random_state)
        drawn = correlated(generator, centre, cov, size)
        return drawn[()] if drawn.ndim < 2 else drawn.squeeze()


class FrozenNormal(Frozen):
    """A multivariate normal distribution with fixed parameters."""

    @property
    def mean(self) -> Any:
        """The mean, as a vector."""
        return self.dist.parameters(*self.args)[0]

    @property
    def cov(self) -> Any:
        """The covariance matrix."""
        return self.dist.parameters(*self.args)[1]


class Dirichlet(NamedDistribution):
    """`scipy.stats.dirichlet`, differentiable in the value and the parameters."""

    name = "dirichlet"
    scipy = scipy.stats.dirichlet

    def __call__(self, alpha: Any, seed: Any = None) -> Frozen:
        return Frozen(self, (alpha,), {})

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Return the logarithm of the density."""
        if not holds_tensor((x, alpha)):
            return as_tensors(self.scipy.logpdf(x, alpha))
        wanted = scipys_result(self.scipy.logpdf, (x, alpha), {}) if observed() is None else None
        x, alpha = numbers(x), float_copy(alpha)
        if x.shape[0] == alpha.size - 1:
            x = np.concatenate([x, 1 - x.sum(0, keepdims=True)])
        powers = special.xlogy(along_first(alpha - 1, x.ndim), x).sum(0)
        found = powers - special.gammaln(alpha).sum() + special.gammaln(alpha.sum())
        return found if wanted is None else at_edges("scipy.stats.dirichlet.logpdf", found, plain_values(wanted))

    def pdf(self, x: Any, alpha: Any) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, alpha))

    def mean(self, alpha: Any) -> Any:
        """Return the mean."""
        alpha = numbers(alpha)
        return alpha / alpha.sum()


class MultivariateT(NamedDistribution):
    """`scipy.stats.multivariate_t`, differentiable in the value and all parameters."""

    name = "multivariate_t"
    scipy = scipy.stats.multivariate_t

    def __call__(
        self, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False, seed: Any = None
    ) -> Frozen:
        return Frozen(self, (loc, shape, df), {})

    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """Return the logarithm of the density."""
        if not holds_tensor((x, loc, shape, df)):
            return as_tensors(self.scipy.logpdf(x, loc, shape, df))
        df = float_copy(df)
        if df.ndim or not math.isfinite(plain_values(df).item()):
            raise lost("scipy.stats.multivariate_t.logpdf", "for tensors with a history df must be a finite number")
        away, scale = MultivariateNormal._parts(x, loc, shape)
        if (np.linalg.eigvalsh(plain_values(scale)) <= 0).any():
            raise np.linalg.LinAlgError("The input matrix must be symmetric positive definite.")
        squared = (away * np.linalg.solve(scale, away[..., None])[..., 0]).sum(-1)
        size = scale.shape[-1]
        half = (df + size) / 2
        constant = special.gammaln(half) - special.gammaln(df / 2) - size / 2 * np.log(df * math.pi)
        return squeezed(constant - np.linalg.slogdet(scale)[1] / 2 - half * np.log1p(squared / df))

    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, loc, shape, df))


class CountsOfDraws(NamedDistribution):
    """A distribution of the counts of the outcomes of several draws."""

    logpmf: Callable[..., Any]

    def pmf(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the probability of the counts `x`."""
        return np.exp(self.logpmf(x, *args, **kwargs))


class Multinomial(CountsOfDraws):
    """`scipy.stats.multinomial`, differentiable in the probabilities.

    The last probability is computed from the others. As in SciPy 1.18, the result is NaN if they do not sum to 1.
    """

    name = "multinomial"
    scipy = scipy.stats.multinomial

    def __call__(self, n: Any, p: Any, seed: Any = None) -> Frozen:
        return Frozen(self, (n, p), {})

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the log-probability of the counts `x` in `n` draws."""
        plain = self.scipy.logpmf(*(plain_values(detached(each)) for each in (x, n, p)))
        if not holds_tensor(p) or not np.isfinite(plain).all():
            return as_tensors(np.asarray(plain))[()]
        counts, draws = (as_operand(plain_values(detached(each))) * 1.0 for each in (x, n))
        p = float_copy(p)
        p = np.concatenate([p[..., :-1], 1 - p[..., :-1].sum(-1, keepdims=True)], -1)
        return special.gammaln(draws + 1) + (special.xlogy(counts, p) - special.gammaln(counts + 1)).sum(-1)


class DirichletMultinomial(CountsOfDraws):
    """`scipy.stats.dirichlet_multinomial`, differentiable in the concentration parameters."""

    name = "dirichlet_multinomial"
    scipy = scipy.stats.dirichlet_multinomial

    def __call__(self, alpha: Any, n: Any, seed: Any = None) -> Frozen:
        return Frozen(self, (alpha, n), {})

    def logpmf(self, x: Any, alpha: Any, n: Any) -> Any:
        """Return the log-probability of the counts `x` in `n` draws."""
        counts, draws = plain_values(detached(x)), plain_values(detached(n))
        plain = np.asarray(self.scipy.logpmf(counts, plain_values(detached(alpha)), draws))
        if not holds_tensor(alpha):
            return as_tensors(plain)[()]
        alpha, counts = float_copy(alpha), np.asarray(counts, float)
        total, draws = alpha.sum(-1), np.asarray(draws, float)
        each = special.gammaln(counts + alpha) - special.gammaln(alpha) - special.gammaln(counts + 1)
        found = each.sum(-1) + special.gammaln(total) + special.gammaln(draws + 1) - special.gammaln(draws + total)
        return found if np.isfinite(plain).all() else np.where(np.isfinite(plain), found, plain)


class Wishart(NamedDistribution):
    """`scipy.stats.wishart`, differentiable in the value and all parameters."""

    name = "wishart"
    scipy = scipy.stats.wishart

    def __call__(self, df: Any = None, scale: Any = None, seed: Any = None) -> Frozen:
        return Frozen(self, (df, scale), {})

    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Return the log-density at a matrix, or at matrices along the last dimension."""
        if not holds_tensor((x, df, scale)):
            return as_tensors(self.scipy.logpdf(x, df, scale))
        x, df, scale = (float_copy(each) for each in (x, df, scale))
        self.scipy.logpdf(*(plain_values(detached(each)) for each in (x, df, scale)))  # SciPy checks the arguments
        scale = scale if scale.ndim == 2 else np.diag(scale) if scale.ndim else scale.reshape(1, 1)
        size = scale.shape[0]
        x = x if x.ndim else x.reshape(1, 1)
        matrices = np.moveaxis(x, -1, 0) if x.ndim == 3 else x.reshape(-1, 1, 1) if x.ndim == 1 and size == 1 else x
        traces = np.trace(np.linalg.solve(scale, matrices), axis1=-2, axis2=-1)
        constant = df * size / 2 * math.log(2) + special.multigammaln(df / 2, size)
        constant = constant + df / 2 * np.linalg.slogdet(scale)[1]
        return (df - size - 1) / 2 * np.linalg.slogdet(matrices)[1] - traces / 2 - constant

    def pdf(self, x: Any, df: Any, scale: Any) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x, df, scale))
