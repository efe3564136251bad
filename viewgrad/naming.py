"""Public functions know the names by which they can be had, so that they pickle."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

__all__ = ["name_functions"]


def name_functions(module: str, names: Mapping[str, Any], inside: str = "") -> None:
    """Let functions that were generated, or made by other functions, say where they are found.

    Arguments:
        module: where that is.
        names: what is found there.
        inside: the name of the class, and a dot, where they are methods.
    """
    nameless = {name: each for name, each in names.items() if type(each) is FunctionType and _is_nameless(each)}
    for name, function in sorted(nameless.items(), key=lambda item: item[0] != item[1].__name__):
        if _is_nameless(function):  # once only: some have several names, the first of which is their own
            function.__module__ = module
            function.__qualname__ = f"{inside}{name}"


def _is_nameless(function: FunctionType) -> bool:
    return "<locals>" in function.__qualname__ or function.__module__.startswith("viewgrad.operators.generated")
