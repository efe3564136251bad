"""The errors and warnings for tensors with a history that are converted to plain arrays or numbers.

A plain value has no gradient. The line of the program that requests the value decides whether the conversion is
intended:

- In a comparison, a condition, an assertion, a string or a log call the value cannot affect the result, so it is
  returned.
- NumPy, `math` and other libraries request numbers implicitly: `plain[i] = x`, `plain.fill(x)`, `math.sin(x)`. This is
  an error, whose message names a differentiable alternative.
- `float(x)`, `x.item()` and `x.tolist()` are explicit. Inside a transform (`viewgrad.func`, `vg.compile`) the number
  could be part of the result, so `float(x)` is an error there. In `viewgrad.func`, `x.item()` and `x.tolist()` return
  differentiable scalars, also in compiled functions that it calls; in other compiled functions they are errors too.
  Elsewhere a statement of its own, such as `losses.append(float(loss))`, is silent, and other uses warn once for each
  line.

`bool()`, `int()` and formatting lose nothing: the derivative of a step function is zero.
"""

from __future__ import annotations

import cmath
import contextlib
import functools
import linecache
import math
import operator
import os
import re
import sys
import types
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType
from typing import Any, Final

import numpy as np

from ..errors import DetachedConversionError, DetachedConversionWarning, NonLeafGradWarning
from .call_sites import CALL, FORMAT, ITERATION, STORE, Site, resolved, site_of

ADOPTED: Final = "__viewgrad_module__"  # the global variable of adopted functions that contains their module
# What happens to the history of a value that escapes; see escapes.py.
ENDS: Final = "ends"
DETACHES: Final = "detaches"
STEPS: Final = "steps"
REFUSES: Final = "refuses"
KEEPS: Final = "keeps"

# Explicit conversions of numbers; all others are implicit.
EXPLICIT: Final = (float, complex, int, hash)
NAMES: Final = frozenset({"float", "complex", "int", "hash", "map", "item", "tolist", "tobytes"})
# Builtins that call or iterate over their argument: `list(map(float, xs))`.
RUNNING: Final = (list, tuple, set, frozenset, dict, sum, any, all, next, map, filter, zip, enumerate, functools.reduce)
SORTING: Final = (sorted, max, min)  # by a `key` function that converts
COMPARING: Final = (
    math.isclose, math.isnan, math.isfinite, math.isinf, cmath.isclose, cmath.isnan, cmath.isfinite,
    cmath.isinf, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, bool, isinstance,
)  # fmt: skip
# Functions that return a choice or an integer, given a number among their arguments.
STEPPING: Final = (
    *COMPARING, int, round, math.floor, math.ceil, math.trunc, np.isclose, np.allclose, np.isnan, np.isfinite, np.isinf,
    np.array_equal, np.floor, np.ceil, np.trunc, np.rint, np.sign, np.signbit, range, len, type,
)  # fmt: skip
OF_FLAT: Final = "Error setting single item of array."  # NumPy's message for any failure of `plain.flat[i] = x`
TEXTS: Final = (print, format, str, repr, ascii)
STANDARD: Final = os.path.dirname(linecache.__file__)
# Matplotlib modules and functions that are called for their results; `pyplot.psd` also returns the results of mlab.
COMPUTING: Final = frozenset({"cbook", "mlab", "path", "transforms", "tri"})
RETURNING: Final = frozenset({"rgb_to_hsv", "hsv_to_rgb", "hist", "hist2d"})
PRINTERS: Final = frozenset({"print", "pprint", "pformat", "format", "echo"})
LOGGERS: Final = frozenset({
    "debug", "info", "warning", "warn", "error", "critical", "exception", "add_scalar", "set_postfix",
    "set_description", "set_title", "fail", "skip",
})  # fmt: skip
LOGARITHMS: Final = frozenset({
    "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "logsumexp", "logit", "logcosh",
})  # fmt: skip

KEEPING: Final = {
    "item()": "use the tensor itself (as `x[i]`, or `x.reshape(())`)",
    "tolist()": "use the tensor itself, or list(x), whose elements are tensors",
    "float()": "use the tensor itself",
    "complex()": "use the tensor itself, or x + 1j * y for complex(x, y)",
    "int()": "use the tensor itself",
    "tobytes()": "use the tensor itself in place of a number",
    "hash()": "use id(x) as the key",
}
PLAIN: Final = "returns a plain number, through which no gradient flows"
GIVEN: Final = {
    "tobytes()": "returns plain bytes, through which no gradient flows",
    "hash()": "depends on the value: another tensor of equal value finds the cached entry, without a gradient",
}
# The functions that create tensors, in a program that imports viewgrad.numpy and in an adopted one.
MAKERS: Final = "zeros(), empty() or array() of viewgrad.numpy instead of numpy"
OWN_MAKERS: Final = "numpy.array() of it inside the function"
OF_RECORDS: Final = "an array with a structured dtype holds plain numbers: use an array for each field, as in a dict"
OF_PANDAS: Final = (
    "pandas stores plain numbers: compute with arrays, such as series.to_numpy(), and keep the results in arrays, "
    "lists or dicts"
)
# What a line attempts, and how to keep the history; the first match is used.
TRIED: Final = (
    (
        re.compile(r"\]\s*[-+*/@%|&]*=(?!=)|\b(put|place|putmask|copyto|fill_diagonal|full|full_like)\s*\("
                   r"|\.fill\s*\("),
        f"a tensor is written into a plain array: create the array with {MAKERS}",
    ),
    (
        re.compile(r"\b(asarray|asanyarray|array)\s*\(\s*[\w.]+\s*[,)]"),
        "use the tensor itself, which is an array, or asarray() of viewgrad.numpy",
    ),
    (
        re.compile(r"\b(array|asarray|asanyarray|stack|concatenate|[hvd]stack)\s*\(|\b[rc]_\s*\["),
        "plain NumPy cannot join tensors in lists: use array(), stack() or concatenate() of viewgrad.numpy",
    ),
    (
        re.compile(r"\bTensor\s*\(\s*[\[(]"),
        "use stack(), concatenate() or array() of viewgrad.numpy, through which gradients flow to the parts",
    ),
    (re.compile(r"\bmatrix\s*\("), "a numpy.matrix is not a tensor: use array(), and @ for products"),
    (re.compile(r"\bascontiguousarray\b"), "use contiguous()"),
    (re.compile(r"(?<!\bnp)(?<!\bnumpy)\.dot\s*\("), "dot() is a method of a plain array here: use @ instead"),
    (re.compile(r"\bmath\s*\."), "use viewgrad.math instead of math"),
    (re.compile(r"\btype\s*\("), "cast the tensor with astype()"),
)
# For numbers, requested by Python's own functions or by elements of plain arrays.
NUMBERED: Final = (
    (re.compile(r"\b(fromiter|array)\s*\("), "join tensors with array() or stack() of viewgrad.numpy"),
    (
        re.compile(r"\]\s*[-+*/@%|&]*=(?!=)|\.fill\s*\(|\.flat\b"),
        f"it is written into a plain array: create the array with {MAKERS}",
    ),
    (re.compile(r"\.astype\s*\("), "converting an array of objects to numbers: use array() of viewgrad.numpy instead"),
    (re.compile(r"\bc?math\s*\."), "use viewgrad.math instead of math"),
)


# For the methods and operators of a masked array of NumPy, which it computes from plain arrays.
OF_MASKED: Final = (
    "instead of the method or operator of a masked array, use the function of viewgrad.numpy.ma, such as multiply()"
)


def conversion_refused(what: str) -> str:
    """Return the error message for a tensor that NumPy, or another library, tries to convert to an array.

    Arguments:
        what: the property that an array cannot have: "requires grad" or "has a tangent".
    """
    frame, calls = _frame_of_user()
    libraries = [module.partition(".")[0] for module, _ in calls]
    line, derived = _line_of(frame), _array_class_of(frame)
    if derived:
        way_out = (
            f"{derived} is derived from numpy.ndarray, so its arrays hold plain numbers: use a class that stores the "
            "array in an attribute, or functions of arrays"
        )
    elif "scipy" in libraries:
        way_out = "use the function of viewgrad.scipy, or wrap it in a viewgrad.autograd.Function"
    elif "pandas" in libraries:
        way_out = OF_PANDAS
    elif calls and calls[0][0].startswith("numpy.ma."):
        way_out = OF_MASKED
    else:
        way_out = next((said for pattern, said in TRIED if pattern.search(line)), "") or (
            f"{libraries[0]} works on plain arrays: wrap the call in a viewgrad.autograd.Function"
            if libraries and libraries[0] not in ("numpy", "viewgrad")
            else "use the function of viewgrad.numpy"
        )
    if frame is not None:
        way_out = _in_terms_of(frame, way_out)
    where = _location_of(frame)
    return (
        f"a tensor that {what} is converted to a plain array here{where}, which would lose its history: {way_out}; "
        "if no gradient is needed, use detach()"
    )


def captured_write_refused(what: str, *, is_exported: bool = False) -> str:
    """Return the error message for a tensor that is written into memory visible to plain arrays.

    Arguments:
        what: the property that an array cannot have: "requires grad" or "has a tangent".
        is_exported: whether the memory belongs to a tensor that exported arrays, rather than to an array
            created outside the function.
    """
    frame, _ = _frame_of_user()
    where = _location_of(frame)
    if is_exported:
        return (
            f"a tensor that {what} is written into a tensor{where} whose memory is shared with a plain array, created "
            "by numpy.asarray() or view() in code that is not adopted; the array would lose the history: pass "
            "that code a copy(), or create the array after the last write; if no gradient is needed, use detach()"
        )
    return (
        f"a tensor that {what} is written into an array created outside the function{where}, where its history "
        "would be lost: write to a copy() of that array, created inside the function; if no gradient is needed, use "
        "detach()"
    )


def _line_of(frame: FrameType | None) -> str:
    """Return the source line that a frame executes, or "" if it is unknown."""
    return "" if frame is None else linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


def _array_class_of(frame: FrameType | None) -> str:
    """Return the name of the class derived from `numpy.ndarray` whose method a frame runs, or ""."""
    if frame is None or not frame.f_code.co_argcount:
        return ""
    first = frame.f_locals.get(frame.f_code.co_varnames[0])
    kind = first if isinstance(first, type) else type(first)
    return kind.__name__ if issubclass(kind, np.ndarray) and kind is not np.ndarray else ""


def _location_of(frame: FrameType | None) -> str:
    """Return the line number, file and text of the line that a frame executes, for a message; "" if unknown."""
    line = _line_of(frame)
    return f" (line {frame.f_lineno} of {frame.f_code.co_filename}: {line})" if frame is not None and line else ""


def is_drawn() -> bool:
    """Return whether Matplotlib requests the array for a plot, so that no result depends on it."""
    calls = [(module.split(".")[1], name) for module, name in _frame_of_user()[1] if module.startswith("matplotlib.")]
    if not calls or calls[0][0] in COMPUTING:
        return False
    return not any(module == "mlab" or name in RETURNING for module, name in calls)


def check_conversion(by: str, history: str, in_transform: bool) -> None:
    """Check a conversion of a tensor with history to a plain value, requested three calls up the stack.

    Arguments:
        by: the name of the escape.
        history: the effect on a history: ENDS, DETACHES or STEPS.
        in_transform: whether a function is being differentiated or compiled.

    Raises:
        DetachedConversionError: if the history would be lost, and the line does not make that explicit.
    """
    frame = sys._getframe(3)
    if history is STEPS and by != "int()":
        return
    site = site_of(frame)
    called = resolved(site.callee, frame) if site.kind == CALL else None
    if history is STEPS:
        # An integer array would truncate the number.
        if site.kind == STORE or (site.kind == CALL and _writes(site, called)):
            raise noted(DetachedConversionError(_refused(by, frame, site)))
        return
    if _is_allowed(site, called, frame):
        return
    is_said = by not in ("float()", "complex()") or _is_explicit(site, called)
    if in_transform or not is_said:
        if not is_drawn():
            error = DetachedConversionError(_refused(by, frame, site))
            if site.kind == STORE:
                _refusal.set(error)
                if site.is_flat and not in_transform:  # NumPy's own error does not mention this one
                    warnings.warn(error.message, DetachedConversionWarning, stacklevel=4)
            raise noted(error)
        return
    if by not in GIVEN and (site.is_discarded or site.is_stored):
        return
    warnings.warn(
        f"{by} of a tensor that requires grad {GIVEN.get(by, PLAIN)}: {_advice(by, frame)}, or detach() first if "
        "no gradient is needed",
        DetachedConversionWarning,
        stacklevel=4,
    )


# The errors that were raised while the function of a transform runs; see `noted`.
NOTED: Final[ContextVar[list[DetachedConversionError] | None]] = ContextVar("viewgrad_noted", default=None)


def noted(error: DetachedConversionError) -> DetachedConversionError:
    """Record an error that is about to be raised, and return it.

    A program that catches it (`except Exception: return default`) would continue with a value that plain numbers would
    not have produced. The transform then raises the recorded error.
    """
    found = NOTED.get()
    if found is not None:
        found.append(error)
    return error


@contextlib.contextmanager
def handles_conversion_errors() -> Iterator[None]:
    """A context for library code that handles the errors for lost histories itself."""
    token = NOTED.set(None)
    try:
        yield
    finally:
        NOTED.reset(token)


_refusal: Final[ContextVar[DetachedConversionError | None]] = ContextVar("viewgrad_refusal", default=None)


def raise_cause(error: ValueError) -> None:
    """Raise the library's error that NumPy replaced by `setting an array element with a sequence`, if any."""
    cause = _refusal.get() if error.args == (OF_FLAT,) else error.__cause__
    if isinstance(cause, DetachedConversionError):
        raise cause from None


def _is_allowed(site: Site, called: Any, frame: FrameType) -> bool:
    """Return whether the value is used only for a decision or a string."""
    if site.is_consumed or site.kind == FORMAT or _is_one_of(called, COMPARING + SORTING):
        return True
    if any(isinstance(_value(left, frame), str) for left in site.formats):
        return True
    return any(_is_end(function, frame) for function in site.around)


def _is_end(function: Any, frame: FrameType) -> bool:
    """Return whether a function only branches on or formats a plain value."""
    found = resolved(function, frame)
    if _is_one_of(found, STEPPING) or _is_one_of(found, TEXTS):
        return True
    name = str(getattr(function, "attr", None) or getattr(function, "id", ""))
    if name in LOGARITHMS:
        owner = getattr(function, "value", None)
        return name == "log" and owner is not None and found is None and _is_logger(resolved(owner, frame))
    return name in PRINTERS or name in LOGGERS or name.startswith("log_")


def _is_logger(owner: Any) -> bool:
    """Return whether `owner.log(...)` writes to a log rather than computing a logarithm."""
    return owner is not None and not isinstance(owner, types.ModuleType | np.ndarray | type)


def _is_explicit(site: Site, called: Any) -> bool:
    """Return whether the program converts to a number explicitly."""
    if site.names is not None:
        return bool(site.names & NAMES) and site.kind in (CALL, ITERATION)
    if site.kind == ITERATION:
        return True
    return site.kind == CALL and (_is_one_of(called, EXPLICIT) or _is_one_of(called, RUNNING))


def _writes(site: Site, called: Any) -> bool:
    """Return whether a call writes to a plain array: `plain.fill(x)`, `numpy.put(plain, ...)`."""
    name = getattr(site.callee, "attr", None) or getattr(site.callee, "id", "")
    return name in ("fill", "put", "itemset", "fromiter") and called is not int


def is_shown(frame: FrameType) -> bool:
    """Return whether a string that a frame requests is only printed, logged or raised."""
    site = site_of(frame)
    if site.names is not None:  # no source available
        return not site.names.isdisjoint({"print", *LOGGERS})
    return any(_shows(function, frame) for function in (site.callee, *site.around) if function is not None)


def _shows(function: Any, frame: FrameType) -> bool:
    found = resolved(function, frame)
    if found is print or (isinstance(found, type) and issubclass(found, BaseException)):
        return True
    name = str(getattr(function, "attr", None) or getattr(function, "id", ""))
    return name in {"pprint", "echo", "write"} or name in LOGGERS or name.startswith("log_")


def _is_one_of(found: Any, functions: tuple[Any, ...]) -> bool:
    return found is not None and any(found is each for each in functions)


def _value(expression: Any, frame: FrameType) -> Any:
    """Return the value of a constant or a name."""
    constant = getattr(expression, "value", None)
    return constant if isinstance(constant, str) else resolved(expression, frame)


def _refused(by: str, frame: FrameType, site: Site) -> str:
    """Return the error message for a conversion to a number."""
    user, is_of_pandas = frame, False
    while _is_library(user) and user.f_back is not None:
        is_of_pandas |= str(user.f_globals.get("__name__")).startswith("pandas.")
        user = user.f_back
    advice = OF_PANDAS if is_of_pandas else _advice(by, user, site.kind == STORE and user is frame)
    way_out = _in_terms_of(user, advice)
    plain = "float(x.detach())" if by in ("float()", "complex()", "int()") else f"x.detach().{by}"
    if by == "hash()":
        plain = "hash(x.detach())"
    return (
        f"{by} of a tensor that requires grad {GIVEN.get(by, PLAIN)}{_location_of(user)}: {way_out}; "
        f"if no gradient is needed, use {plain}"
    )


def _in_terms_of(frame: FrameType, advice: str) -> str:
    """Return advice in the terms of a frame: adopted code uses viewgrad's functions under NumPy's names, which create
    no tensors of a structured dtype.
    """
    written = resolved(site_of(frame).written, frame) if MAKERS in advice else None
    if isinstance(written, np.ndarray) and written.dtype.names:
        return OF_RECORDS
    return advice.replace(MAKERS, OWN_MAKERS) if ADOPTED in frame.f_globals else advice


def is_within_adopted_code(frame: FrameType | None) -> bool:
    """Return whether a frame, or one of its callers, runs adopted code."""
    while frame is not None:
        if ADOPTED in frame.f_globals:
            return True
        frame = frame.f_back
    return False


def _is_library(frame: FrameType) -> bool:
    """Return whether a frame runs an installed package or the standard library."""
    file = frame.f_code.co_filename
    return "site-packages" in file or file.startswith(STANDARD)


def _advice(by: str, frame: FrameType, is_store: bool = False) -> str:
    """Return the advice for keeping the history at a line of a program that requests a plain value."""
    if by not in ("float()", "complex()", "int()"):
        return KEEPING[by]
    if is_store:
        return NUMBERED[1][1]
    return _warning_text(by, frame.f_code.co_filename, frame.f_lineno)


@functools.lru_cache(1024)
def _warning_text(by: str, file: str, number: int) -> str:
    line = linecache.getline(file, number)
    return next((said for pattern, said in NUMBERED if pattern.search(line)), KEEPING[by])


def warn_of_missing_grad(is_retained: bool) -> None:
    """Warn, at the line of the caller's caller, about reading the `grad` of a tensor that is not a leaf.

    Arguments:
        is_retained: whether the tensor retains its gradient but was written to afterwards.
    """
    warnings.warn(
        "the grad of this tensor is None, because the tensor or another part of its base was written to after "
        "retain_grad(): earlier results have the gradient of the earlier value. Compute with a clone() that retains "
        "its gradient, or compute the gradient with viewgrad.autograd.grad(result, tensor) before the write"
        if is_retained
        else "the grad of a non-leaf tensor stays None: backward passes fill only the grad of leaves. Call "
        "retain_grad() on the tensor before the pass, or compute the gradient with "
        "viewgrad.autograd.grad(result, tensor)",
        NonLeafGradWarning,
        stacklevel=3,
    )


def _frame_of_user() -> tuple[FrameType | None, list[tuple[str, str]]]:
    """Return the innermost frame of user code, and the modules and functions of the libraries it called.

    The function called by that frame comes first.
    """
    frame: FrameType | None = sys._getframe(1)
    calls: list[tuple[str, str]] = []
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        in_site = "site-packages" in frame.f_code.co_filename
        if package != "viewgrad" and not in_site and not frame.f_code.co_filename.startswith("<"):
            return frame, calls
        if package != "viewgrad" and in_site:
            calls.insert(0, (module, frame.f_code.co_name))
        frame = frame.f_back
    return None, calls
