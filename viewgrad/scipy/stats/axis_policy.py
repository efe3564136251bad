"""The options `axis`, `keepdims` and `nan_policy` of sample statistics, with SciPy's meaning."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import scipy.stats  # type: ignore[import-untyped]

from ...operators.numpy_api.adapted import lost
from ...operators.numpy_api.conversion import plain_values
from ...tensor.trace_hooks import observed
from ..wrap import (
    Accepted,
    by_parts,
    floating,
    form_of,
    has_ordinary_values,
    like,
    maker,
    or_missing,
    scipys_result,
)  # fmt: skip

MADE: dict[str, Any] = {}
accepted: Final = Accepted()
made: Final = maker(scipy.stats, MADE, is_checked=True)
made_by_form: Final = maker(scipy.stats, MADE, is_checked=True, accepted=accepted)
_unchecked: Final = maker(scipy.stats, MADE)


def _last(sample: Any, axis: Any) -> Any:
    """Return a sample with the reduced dimensions combined into one, which comes last."""
    sample = floating(sample)
    if axis is None:
        return sample.reshape(-1)
    if isinstance(axis, tuple):
        dims = sorted(dim % sample.ndim for dim in axis)
        moved = np.moveaxis(sample, dims, range(-len(dims), 0))
        return moved.reshape((*moved.shape[: moved.ndim - len(dims)], -1))
    return np.moveaxis(sample, axis, -1) if sample.ndim else sample.reshape(1)


def _kept(result: Any, axis: Any, ndim: int) -> Any:
    """Return a result with the reduced dimensions kept with length 1."""
    if not hasattr(result, "reshape"):
        return result
    return result.reshape((1,) * ndim) if axis is None else np.expand_dims(result, axis)


def statistic(count: int, *, by_value: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for statistics of one or more samples, which reduce the last dimension.

    Arguments:
        count: the number of samples; 0 for any number.
        by_value: whether SciPy's errors or NaN results depend on the values even if they are finite and distinct.
    """

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        scipys = getattr(scipy.stats, name)
        signature = inspect.signature(scipys)
        known = inspect.signature(function).parameters

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            axis, keepdims = given.pop("axis", None), given.pop("keepdims", False)
            policy = given.pop("nan_policy", "propagate")
            samples = given.pop(next(iter(given))) if not count else [given.pop(each) for each in list(given)[:count]]
            samples = [_last(each, axis) for each in samples]
            _check_samples(name, samples, policy)
            for option in [option for option in given if option not in known]:
                _check_default(name, option, given.pop(option), signature.parameters[option].default)
            is_comparable = observed() is None and not any(map(callable, given.values()))

            def compute() -> Any:
                found = function(*samples, **given) if count else function(samples, **given)
                if not keepdims:
                    return found
                ndim = samples[0].ndim if axis is not None and not isinstance(axis, tuple) else 0
                ndim = ndim or _dimensions(args, kwargs)
                several = np.ndim(given.get("order", 0)) > 0  # moments, one for each order
                expand = functools.partial(_kept, axis=axis, ndim=ndim)
                return np.stack(list(map(expand, found))) if several else by_parts(expand, found)

            form = None if by_value or not is_comparable else form_of((name, args, kwargs))
            if accepted.has(form) and all(has_ordinary_values(plain_values(each)) for each in samples):
                result = accepted.alike(form, compute())
                if _is_finite(result):  # otherwise SciPy may return NaN
                    return result
            if not is_comparable:
                return compute()
            expected = scipys_result(scipys, args, kwargs)
            result = or_missing(compute, expected, samples)
            result = by_parts(_with_missing, like(f"scipy.stats.{name}", result, expected), expected)
            if _is_finite(expected):
                accepted.add(form, result)
            return result

        call.__name__, call.__doc__ = name, function.__doc__
        return _unchecked(call)

    return make


def _is_finite(result: Any) -> bool:
    """Return whether all numbers of a result are finite."""
    if isinstance(result, tuple):
        return all(map(_is_finite, result))
    return bool(np.isfinite(plain_values(result)).all()) if hasattr(result, "dtype") else result is not None


def _check_samples(name: str, samples: list[Any], policy: str) -> None:
    """Raise an error for tensors that SciPy would broadcast, or whose NaN it would omit."""
    if len({each.ndim for each in samples}) > 1:
        raise lost(f"scipy.stats.{name}", "samples of tensors must have the same number of dimensions")
    if policy != "propagate" and any(np.isnan(plain_values(each)).any() for each in samples):
        raise lost(f"scipy.stats.{name}", "samples of tensors must have no NaN for that nan_policy")


def _check_default(name: str, option: str, value: Any, default: Any) -> None:
    """Raise an error for an option that tensors do not support, unless it has its default."""
    if value is not default and value != default:
        raise lost(f"scipy.stats.{name}", f"{option}={value!r} is not supported for tensors with a history")


def _with_missing(result: Any, expected: Any) -> Any:
    """Return a result with NaN where SciPy returns NaN, as for too few values."""
    if not hasattr(result, "dtype") or not hasattr(expected, "dtype") or expected.dtype.kind not in "fc":
        return result
    missing = np.isnan(plain_values(expected))
    return np.where(missing, np.nan, result) if missing.shape == result.shape and missing.any() else result


def _dimensions(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    first = args[0] if args else next(iter(kwargs.values()))
    return int(np.ndim(plain_values(floating(first))))
