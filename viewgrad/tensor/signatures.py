"""Signatures of functions, without evaluating their annotations.

Python 3.14 evaluates annotations when they are accessed, and they may contain names that are imported for type checking
only.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

if sys.version_info >= (3, 14):
    import annotationlib


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function; annotations that have not been evaluated are strings.

    Raises:
        ValueError: if the function has no signature.
        TypeError: for an object that cannot be called.
    """
    if sys.version_info >= (3, 14):
        return inspect.signature(function, annotation_format=annotationlib.Format.STRING)
    return inspect.signature(function)


def copy_annotations(function: Any, copy: Any) -> None:
    """Copy the annotations of a function, evaluated or not, to a copy of it."""
    annotate = getattr(function, "__annotate__", None)
    if annotate is None:
        if copy.__annotations__ is not function.__annotations__:
            copy.__annotations__ = function.__annotations__
    elif copy.__annotate__ is not annotate:
        copy.__annotate__ = annotate
