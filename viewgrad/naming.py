"""Module and qualified names of public functions, needed for pickling, and docstrings of operators."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import FunctionType
from typing import Any

__all__ = ["document", "name_functions"]


def name_functions(module: str, names: Mapping[str, Any], inside: str = "") -> None:
    """Set the module and qualified name of functions that were generated or created by other functions.

    Arguments:
        module: the name of the module.
        names: the contents of the namespace.
        inside: the name of the class followed by a dot, if they are methods.
    """
    nameless = {name: each for name, each in names.items() if type(each) is FunctionType and _is_nameless(each)}
    for name, function in sorted(nameless.items(), key=lambda item: item[0] != item[1].__name__):
        if _is_nameless(function):  # only once: a function with several names keeps the first
            function.__module__ = module
            function.__qualname__ = f"{inside}{name}"


def document(operators: Mapping[str, Any], functions: Mapping[str, Any]) -> None:
    """Set the docstrings and annotations of operators from the file that `python tools/stubs.py` writes.

    Arguments:
        operators: the table of operators.
        functions: public functions that wrap operators under the same names.
    """
    with open(os.path.join(os.path.dirname(__file__), "operators", "docstrings.json"), encoding="utf-8") as file:
        entries = json.load(file)
    for name, entry in entries.items():
        if name not in operators:  # an operator that was added later
            continue
        for function in (operators[name].function, functions.get(name)):
            if type(function) is FunctionType:
                function.__doc__ = entry["doc"]
        if entry["annotations"] is not None:
            for function in (operators[name].function, operators[name].inplace_function):
                if function is not None:
                    function.__annotations__ = entry["annotations"]


def _is_nameless(function: FunctionType) -> bool:
    return "<locals>" in function.__qualname__ or function.__module__.startswith("viewgrad.operators.generated")
