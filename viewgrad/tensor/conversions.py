"""Conversions of tensors with a history to plain arrays or numbers: what was tried, where, and what to do instead.

`float()`, `complex()`, `item()`, `tolist()` and `tobytes()` give plain values, and warn where the tensor has a
history, once for each line. So does `hash()`, as results are kept under it. `int()`, `bool()`, comparisons and
formatted text do not warn: their derivative is zero, or nobody computes with them. Nobody asks for `__array__`, so
that an array is an error.
"""

from __future__ import annotations

import dis
import functools
import linecache
import re
import sys
import warnings
from types import FrameType
from typing import Final

from ..errors import DetachedConversionWarning, NonLeafGradWarning

__all__ = ["conversion_refused", "is_drawn", "warn_of_lost_number", "warn_of_missing_grad"]

OPERATION: Final = dis.opmap["BINARY_OP"]
REMAINDERS: Final = (6, 19)  # of Python's operators, `%` and `%=`

KEEPING: Final = {
    "item()": "use the tensor itself (as `x[i]`, or `x.reshape(())`)",
    "tolist()": "use the tensor itself, or list(x), whose elements are tensors",
    "float()": "use the tensor itself",
    "complex()": "use the tensor itself",
    "tobytes()": "use the tensor itself where numbers are wanted",
    "hash()": "keep results under id(x) instead, or none",
}
PLAIN: Final = (
    "gives a plain number, through which no gradient flows "
    "(as does assigning the tensor to an element of a NumPy array)"
)
GIVEN: Final = {
    "tobytes()": "gives plain bytes: no gradient flows through them, nor to a tensor that finds a result under them",
    "hash()": "goes by its value: another tensor of equal value finds what is kept under it, without a gradient",
}
# What a line tries, and what keeps the history there; the first that fits is said.
TRIED: Final = (
    (
        re.compile(r"\]\s*[-+*/]?=(?!=)"),
        "a tensor is written into a plain array: make that array a tensor, by zeros(), empty() or array() of "
        "viewgrad.numpy instead of numpy",
    ),
    (
        re.compile(r"\b(array|asarray|asanyarray|stack|concatenate|[hvd]stack)\s*\(|\b[rc]_\s*\["),
        "plain NumPy cannot join tensors in lists: use array(), stack() or concatenate() of viewgrad.numpy",
    ),
    (
        re.compile(r"\bTensor\s*\(\s*[\[(]"),
        "use stack(), concatenate() or array() of viewgrad.numpy, through which gradients flow to the parts",
    ),
    (re.compile(r"\bmatrix\s*\("), "a numpy.matrix is no tensor: use array(), and @ for products"),
    (re.compile(r"\bascontiguousarray\b"), "use contiguous()"),
    (re.compile(r"\bmath\s*\."), "use viewgrad.math instead of math"),
    (re.compile(r"\btype\s*\("), "cast a tensor by astype()"),
)
# Of a number: Python's own functions ask for it, and so do elements of plain arrays.
NUMBERED: Final = (
    (re.compile(r"\bmath\s*\."), "use viewgrad.math instead of math"),
    (
        re.compile(r"\]\s*[-+*/]?=(?!=)|\.fill\s*\("),
        "where it is written into a plain array, make that a tensor, by zeros(), empty() or array() of viewgrad.numpy",
    ),
    (re.compile(r"\b(fromiter|array)\s*\("), "join tensors by array() or stack() of viewgrad.numpy"),
)


def conversion_refused(what: str) -> str:
    """The message of the error for a tensor that NumPy, or another library, wants to make an array of.

    Arguments:
        what: what the tensor has, that an array cannot have: "requires grad" or "has a tangent".
    """
    frame, libraries = _frame_of_user()
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() if frame is not None else ""
    if "scipy" in libraries:
        way_out = "use the function of viewgrad.scipy, or wrap it in a viewgrad.autograd.Function"
    else:
        way_out = next((said for pattern, said in TRIED if pattern.search(line)), "") or (
            f"{libraries[0]} works on plain arrays: wrap what it computes in a viewgrad.autograd.Function"
            if libraries and libraries[0] not in ("numpy", "viewgrad")
            else "use the function of viewgrad.numpy"
        )
    where = f" (line {frame.f_lineno} of {frame.f_code.co_filename}: {line})" if frame is not None and line else ""
    return (
        f"a tensor that {what} is made a plain array here{where}, which would lose its history: {way_out}; "
        "where no gradient is wanted, use detach()"
    )


def is_drawn() -> bool:
    """Return whether a plotting library asks for the array: nothing comes back from there."""
    return "matplotlib" in _frame_of_user()[1]


def warn_of_lost_number(by: str) -> None:
    """Warn, at the line of the caller's caller, of a plain number made of a tensor that has a history."""
    frame = sys._getframe(3)
    if by == "float()" and _formats(frame):
        return
    warnings.warn(
        f"{by} of a tensor that requires grad {GIVEN.get(by, PLAIN)}: "
        f"{_way_out(by, frame.f_code.co_filename, frame.f_lineno)}, or detach() first, which says that no gradient is "
        "wanted",
        DetachedConversionWarning,
        stacklevel=4,
    )


def _formats(frame: FrameType) -> bool:
    """Return whether the caller is a `%` operator, which takes a number only to format it: `"%.3f" % loss`."""
    code, place = frame.f_code.co_code, frame.f_lasti
    return code[place] == OPERATION and code[place + 1] in REMAINDERS


@functools.lru_cache(1024)
def _way_out(by: str, file: str, number: int) -> str:
    """Return the replacement that keeps the history in a line of a program that asks for a plain value."""
    line = linecache.getline(file, number) if by == "float()" else ""
    return next((said for pattern, said in NUMBERED if pattern.search(line)), KEEPING[by])


def warn_of_missing_grad() -> None:
    """Warn, at the line of the caller's caller, of reading the `grad` of a tensor that was computed."""
    warnings.warn(
        "the grad of a tensor that is no leaf stays None: backward passes fill in that of leaves. Call retain_grad() "
        "on the tensor before, or ask for the gradient by viewgrad.autograd.grad(result, tensor)",
        NonLeafGradWarning,
        stacklevel=3,
    )


def _frame_of_user() -> tuple[FrameType | None, list[str]]:
    """The innermost frame that is neither this library's nor of one that works on arrays, and the names of those."""
    frame: FrameType | None = sys._getframe(1)
    libraries: list[str] = []
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        in_site = "site-packages" in frame.f_code.co_filename
        if package != "viewgrad" and not in_site and not frame.f_code.co_filename.startswith("<"):
            return frame, libraries
        if package != "viewgrad" and in_site:
            libraries.insert(0, package)
        frame = frame.f_back
    return None, libraries
