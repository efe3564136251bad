"""The functions that `viewgrad` and `viewgrad.numpy` have in common."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..operators.numpy_api.creation import CREATORS
from ..operators.numpy_api.dispatch import numpy_parameters
from ..operators.numpy_api.public import FROM_NUMPY, public
from ..operators.numpy_api.universal import ufunc

# Names with different meanings in `viewgrad` and NumPy, and the reasons.
TWO_MEANINGS: Final = {
    "load": "reads what `viewgrad.save` wrote",
    "save": "writes trees of tensors, with what they require, and NumPy's writes one array",
    **dict.fromkeys(("finfo", "iinfo"), "the array API's: the limits are Python numbers, also of a tensor's dtype"),
    **dict.fromkeys(("broadcast_shapes", "isdtype"), "NumPy's own function of shapes or dtypes in `viewgrad.numpy`"),
}

# The parts of a docstring that are code: the name before a description, and formulas.
CODE: Final = re.compile(r"^ +(?:of )?\w+(?=:)|`[^`\n]*`", re.MULTILINE)
WORD: Final = re.compile(r"\w+")

# The shared functions, and the library's own functions of the same names, by NumPy function.
OWN: Final[dict[Any, tuple[str, Any]]] = {}


def declare_common(own: Mapping[str, Any]) -> frozenset[str]:
    """Register the library's own functions under NumPy's names, and return the names.

    Arguments:
        own: the functions, among other objects, by their public names.
    """
    names = set()
    for name, value in own.items():
        function = getattr(np, name, None) if name not in TWO_MEANINGS and callable(value) else None
        if callable(function) and not isinstance(function, type):
            names.add(name)
            if function not in OWN or function.__name__ == name:
                OWN[function] = name, value
    return frozenset(names)


def common_function(function: Any) -> Any:
    """Return the function shared by `viewgrad` and `viewgrad.numpy` for a NumPy function, or None if there is none.

    It is created on first access, since creating all of them would make the import 10 % slower.
    """
    if not isinstance(function, FROM_NUMPY) or function not in OWN:
        return None
    name, own = OWN[function]
    if isinstance(function, np.ufunc):
        return ufunc(function, doc=_described(own, function))
    general = own if name == "from_dlpack" else CREATORS.get(name)
    creates = general is not None and name != "copy"
    return public(name, function, general=general, own=own, creates=creates, doc=_described(own, function))


def _described(own: Callable[..., Any], function: Callable[..., Any]) -> str | None:
    """Return the docstring of the library's function with NumPy's argument names."""
    doc, theirs = own.__doc__, numpy_parameters(function)
    if doc is None or theirs is None:
        return doc
    ours = inspect.signature(own).parameters
    required = [name for name, each in ours.items() if each.default is inspect.Parameter.empty]
    names = {name: each.name for name, each in zip(required, theirs) if each.name not in ours}
    if not names:
        return doc
    return CODE.sub(lambda found: WORD.sub(lambda word: names.get(word[0], word[0]), found[0]), doc)
