"""The settings of the process and values of the context that guards compare, since library functions read them."""

from __future__ import annotations

import codecs
import contextvars
import decimal
import logging
import os
import sys
import time
import types
import warnings
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor

EMPTY: Final = "<empty>"
# Exception classes, besides warnings, that are raised only under certain settings.
CATCHING: Final = (BaseException, Exception, ArithmeticError, FloatingPointError)

try:  # the variable with NumPy's print options, replaced at each change
    from numpy._core.printoptions import format_options

    def print_options(_: Any) -> Any:
        """Return NumPy's print options."""
        return format_options.get()
except ImportError:

    def print_options(_: Any) -> Any:
        """Return NumPy's print options as a string."""
        return repr(np.get_printoptions())


def decimal_context(_: Any) -> str:
    """Return the settings of the current decimal context, without the flags."""
    return decimal_settings(decimal.getcontext())


def decimal_settings(context: decimal.Context) -> str:
    """Return the settings of a decimal context, without the flags."""
    traps = [kind.__name__ for kind, is_trapped in context.traps.items() if is_trapped]
    return f"{context.prec} {context.rounding} {context.Emin} {context.Emax} {context.capitals} {context.clamp} {traps}"


def time_zone(_: Any) -> str:
    """Return the time zone of the process."""
    return f"{time.timezone} {time.altzone} {time.tzname} {os.environ.get('TZ')}"


def handlers_of(logger: logging.Logger) -> str:
    """Return the handlers and filters that determine what a logger does with messages, besides its level."""
    return f"{[id(each) for each in logger.handlers]} {[id(each) for each in logger.filters]} {logger.propagate}"


def raising_settings(_: Any) -> str:
    """Return the settings that turn warnings, floating-point errors and deep recursion into exceptions."""
    filters: list[Any] = list(warnings.filters)
    while filters and filters[-1][0] != "error":  # filters after the last "error" raise no exceptions
        filters.pop()
    return f"{[(each[0] == 'error', *each[1:]) for each in filters]} {np.geterr()} {sys.getrecursionlimit()}"


def error_handler(name: str) -> Any:
    """Return the function registered under a name for errors of `str.encode`, or None."""
    try:
        return codecs.lookup_error(name)
    except LookupError:
        return None


def value_in_context(variable: contextvars.ContextVar[Any]) -> Any:
    """Return the value of a context variable, or its default; `EMPTY` if there is none."""
    try:
        return variable.get()
    except LookupError:
        return EMPTY


def content_of(cell: types.CellType) -> Any:
    """Return the content of a cell, or `EMPTY` for an empty cell."""
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


def form_of(tensor: Tensor) -> str:
    """Return the shape and the dtype of a tensor."""
    return f"{tensor.shape} {tensor.dtype}"
