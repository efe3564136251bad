"""The names of a module of NumPy, each with what it is here."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from ..tensor.tensor import FUNCTIONS, UFUNCS
from .functions import adapted
from .ufuncs import ufunc

__all__ = ["classified", "filled", "public_names"]

OPERATOR: Final = "operator"  # differentiable, or a function whose answer has no derivative
ADAPTED: Final = "made here"  # creators, types, and what needs code of its own
OWN: Final = "NumPy's own"  # nothing that could carry a history goes through it
REFUSED: Final = "an error with a way out"  # NumPy's own on tensors without history


def public_names(module: types.ModuleType) -> list[str]:
    """The names that a module of NumPy makes public."""
    names: Iterable[str] = getattr(module, "__all__", None) or dir(module)
    return sorted({name for name in names if not name.startswith("_")})


def filled(
    module: types.ModuleType, made: Mapping[str, Any], own: Iterable[str], ways_out: Mapping[str, str]
) -> dict[str, Any]:
    """The public names of a module, with what they stand for in this namespace.

    Arguments:
        module: NumPy's.
        made: what is made here, by name.
        own: the names that stay what they are in NumPy.
        ways_out: what to use instead of functions that no operator computes.
    """
    own = frozenset(own)
    return {name: _counterpart(module, name, made, own, ways_out) for name in public_names(module)}


def _counterpart(
    module: types.ModuleType, name: str, made: Mapping[str, Any], own: frozenset[str], ways_out: Mapping[str, str]
) -> Any:
    if name in made:
        return made[name]
    value = getattr(module, name)
    if name in own or isinstance(value, (type, types.ModuleType)) or not callable(value):
        return value
    if isinstance(value, np.ufunc):
        return ufunc(value, name, ways_out.get(name, ""))
    return adapted(value, f"{module.__name__}.{name}", ways_out.get(name, ""))


def classified(
    module: types.ModuleType, made: Mapping[str, Any], own: Iterable[str], ways_out: Mapping[str, str]
) -> dict[str, str]:
    """Which of the four classes each public name of a module belongs to; those of none are left out."""
    classes: dict[str, str] = {}
    own = frozenset(own)
    for name in public_names(module):
        value = getattr(module, name)
        if name in made:
            classes[name] = ADAPTED
        elif name in own:
            classes[name] = OWN
        elif _has_operator(value):
            classes[name] = OPERATOR
        elif name in ways_out:
            classes[name] = REFUSED
    return classes


def _has_operator(value: Callable[..., Any]) -> bool:
    return (value, "__call__") in UFUNCS if isinstance(value, np.ufunc) else _hashable(value) and value in FUNCTIONS


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
