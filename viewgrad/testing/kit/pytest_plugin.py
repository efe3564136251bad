"""A pytest test for each property of an operator."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

from ...tensor.signatures import signature_of
from .check import check_operator
from .properties.registry import PROPERTIES

PLUGIN: Final = "_viewgrad_pytestplugin"


def property_test(operator: Any, *args: Any, **kwargs: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Create a pytest test for each property of an operator, named after it.

    If an argument is a strategy, Hypothesis's profile, seed and database apply. The tests have the marker `viewgrad`.

    Arguments:
        operator: the operator.
        args, kwargs: as for `check_operator`; with `only=`, tests are created for these properties alone.

    Returns:
        A decorator for a function that gives the tests their name. If the function has an argument `report`, it is
        called with the report of each property.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.testing import property_test
        >>> @property_test(vg.exp, np.array([0.5, -1.0, 2.0]))
        ... def test_exp(report): ...
    """
    pytest: Any = importlib.import_module("pytest")  # an optional dependency
    only = kwargs.get("only")
    chosen = PROPERTIES if only is None else (only,) if isinstance(only, str) else tuple(only)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        takes_report = "report" in signature_of(function).parameters

        def test(property: str) -> None:
            report = check_operator(operator, *args, **{**kwargs, "only": property})
            if not report.examples.get(property):
                reason = {**report.switched_off, **report.absent}.get(property, "nothing to check")
                pytest.skip(reason)
            if takes_report:
                function(report)

        test.__name__, test.__qualname__ = function.__name__, function.__qualname__
        test.__doc__, test.__module__ = function.__doc__, function.__module__
        names = [name.replace(" ", "-") for name in chosen]
        if PLUGIN in sys.modules:  # the plugin registers the marker
            test = pytest.mark.viewgrad(test)
        marked: Callable[..., None] = pytest.mark.parametrize("property", chosen, ids=names)(test)
        return marked

    return decorate
