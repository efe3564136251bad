"""`numpy.polynomial` for tensors: NumPy's own code, run over the functions of this namespace."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..operators.composites import choosing
from ..operators.derivatives.helpers import plain
from ..operators.numpy_api.conversion import carries_history
from ..operators.numpy_api.polynomials import differentiable_roots
from ..tensor.creation import as_operand
from ..tensor.tensor import Tensor
from .namespace import public_names
from .rebound_modules import borrowed_modules

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


FAMILIES: Final = ("polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre")
__all__ = public_names(np.polynomial)


def fill(namespace: Any) -> None:
    """Create the modules once the namespace that they use is complete."""
    originals = {
        importlib.import_module(f"numpy.polynomial.{name}"): f"{__name__}.{name}"
        for name in ("polyutils", "_polybase", *FAMILIES)
    }
    copies = borrowed_modules(originals, {np: namespace, np.linalg: namespace.linalg})
    _keep_differentiable_zeros(list(copies.values()))
    for original, copy in copies.items():
        name = original.__name__.rpartition(".")[2]
        sys.modules[copy.__name__] = globals()[name] = copy
        for public in getattr(original, "__all__", ()):
            if isinstance(getattr(original, public), type):
                globals()[public] = getattr(copy, public)


# Functions that divide by the last coefficient, identified by the ends of their names.
DIVIDING: Final = ("companion", "trimcoef")


class _Trimming(threading.local):
    """A flag for each thread that states whether all trailing zeros are removed."""

    complete = False


_trimming: Final = _Trimming()


def _keep_differentiable_zeros(modules: list[types.ModuleType]) -> None:
    """Keep zero coefficients that have a history, since the series depends on them.

    NumPy removes trailing zeros from the operands and results of sums and products. Functions that divide by the last
    coefficient still remove all of them, and quotients remove those of the divisor.
    """
    replaced: dict[Any, Any] = {}
    series, trimseq = (vars(modules[0])[name] for name in ("as_series", "trimseq"))
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, types.FunctionType) and value not in replaced:
                if name == "trimseq":
                    replaced[value] = _keeping(value)
                elif name == "mapdomain":
                    replaced[value] = _of_polynomials(value, vars(modules[0])["mapparms"])
                elif name.endswith("div") and not name.startswith("_"):
                    replaced[value] = _with_trimmed_divisor(value, series, trimseq)
                elif name.endswith("roots") and not name.endswith("fromroots"):
                    replaced[value] = _with_differentiable_roots(value, module.__name__.rpartition(".")[2])
                elif name.endswith(DIVIDING):
                    replaced[value] = _trimming_all_zeros(value)
    for module in modules:
        for name, value in list(vars(module).items()):
            if isinstance(value, types.FunctionType):
                setattr(module, name, replaced.get(value, value))
            elif isinstance(value, type) and value.__module__.startswith(("numpy.polynomial", __name__)):
                for own, member in list(vars(value).items()):
                    if isinstance(member, staticmethod) and member.__func__ in replaced:
                        setattr(value, own, staticmethod(replaced[member.__func__]))


def _keeping(trimseq: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(trimseq)
    def trimmed(seq: Any) -> Any:
        found = trimseq(seq)
        if len(found) == len(seq) or _trimming.complete or not carries_history(seq):
            return found
        return seq

    return trimmed


def _of_polynomials(mapdomain: Callable[..., Any], mapparms: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(mapdomain)
    def mapped(x: Any, old: Any, new: Any) -> Any:
        if not hasattr(x, "has_samecoef"):
            return mapdomain(x, old, new)
        off, scale = mapparms(old, new)  # a polynomial is not an array, so NumPy would create an object array
        return off + scale * x

    return mapped


def _with_trimmed_divisor(
    divide: Callable[..., Any], series: Callable[..., Any], trimseq: Callable[[Any], Any]
) -> Callable[..., Any]:
    @functools.wraps(divide)
    def quotient(c1: Any, c2: Any) -> Any:
        if carries_history(c2):
            [c2] = series([c2], trim=False)
            c2 = trimseq(c2)
        return divide(c1, c2)

    return quotient


def _with_differentiable_roots(of_numpy: Callable[..., Any], basis: str) -> Callable[..., Any]:
    """Wrap NumPy's function for the roots of a series so that it is differentiable in all coefficients."""

    @functools.wraps(of_numpy)
    @choosing
    def roots(c: Any) -> Any:
        if not isinstance(c, Tensor) and not carries_history(c):
            return of_numpy(c)
        c = as_operand(c)
        return differentiable_roots(c, of_numpy(plain(c)), basis)

    return roots


def _trimming_all_zeros(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _all_zeros_trimmed():
            return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def _all_zeros_trimmed() -> Iterator[None]:
    before, _trimming.complete = _trimming.complete, True
    try:
        yield
    finally:
        _trimming.complete = before


set_default_printstyle = np.polynomial.set_default_printstyle
