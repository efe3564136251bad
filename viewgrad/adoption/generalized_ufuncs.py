"""Generalized ufuncs, as created by `numba.guvectorize`, whose Python function is called for each index of the loop
dimensions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from .counterparts import namespace

DTYPE: Final = re.compile(r"(u?int|float|complex)\d+|bool|intp")
Dimensions = tuple[str, ...]  # the names of core dimensions


@attrs.frozen
class Declared:
    """An argument of a signature.

    Attributes:
        dtype: its dtype.
        is_array: whether it is an array of one element if it has no core dimensions.
    """

    dtype: np.dtype[Any]
    is_array: bool


class GeneralizedUfunc:
    """A function that calls another one for each index of its loop dimensions: those that are not core dimensions.

    Arguments:
        function: a function of the inputs and the outputs, which writes the outputs in place.
        signatures: the types of its arguments, as objects of Numba or text such as "void(float64[:], float64[:])". A
            call uses the first signature to which its inputs can be cast. If there is none, the inputs are not cast.
        layout: the core dimensions, such as "(n),()->(n)".
    """

    def __init__(self, function: Callable[..., Any], signatures: Sequence[Any], layout: str) -> None:
        functools.update_wrapper(self, function)
        self.function: Final = function
        self.signature: Final = layout
        self._known: Final = list(map(_declared, signatures))
        self._inputs, self._outputs = map(_dimensions, layout.split("->"))

    def __call__(self, *args: Any, out: Any = None) -> Any:
        np_, count = namespace("numpy"), len(self._inputs)
        inputs = [np_.asarray(each) for each in args[:count]]
        types, sizes = self._types([each.dtype for each in inputs]), self._sizes(inputs)
        loop = np.broadcast_shapes(*[
            each.shape[: each.ndim - len(names)] for each, names in zip(inputs, self._inputs, strict=True)
        ])
        cores = [tuple(sizes[name] for name in names) for names in (*self._inputs, *self._outputs)]
        outputs = list(args[count:]) or ([] if out is None else list(out) if isinstance(out, tuple) else [out])
        if not outputs:
            declared = zip(cores[count:], types[count:], strict=True)
            outputs = [np_.zeros((*loop, *core), one.dtype) for core, one in declared]
        arrays = [
            np_.broadcast_to(each.astype(one.dtype), (*loop, *core))
            for each, one, core in zip(inputs, types[:count], cores[:count], strict=True)
        ]
        arguments = [
            each[..., np.newaxis] if not core and one.is_array else each
            for each, one, core in zip((*arrays, *outputs), types, cores, strict=True)
        ]
        for index in np.ndindex(*loop):
            self.function(*[each[index] for each in arguments])
        found = [each if each.ndim else each[()] for each in outputs]
        return found[0] if len(found) == 1 else tuple(found)

    def _types(self, dtypes: list[np.dtype[Any]]) -> list[Declared]:
        """Return the arguments of the signature for inputs of given dtypes."""
        for each in self._known:
            if all(map(np.can_cast, dtypes, [one.dtype for one in each])):
                return each
        if self._known:
            raise TypeError(f"no signature of {self.function.__name__} matches inputs of {', '.join(map(str, dtypes))}")
        common = np.result_type(*dtypes)
        own = [Declared(dtype, is_array=False) for dtype in dtypes]
        return [*own, *[Declared(common, is_array=True) for _ in self._outputs]]

    def _sizes(self, inputs: list[Any]) -> dict[str, int]:
        """Return the lengths of the core dimensions."""
        sizes: dict[str, int] = {}
        for each, names in zip(inputs, self._inputs, strict=True):
            for name, size in zip(names, each.shape[each.ndim - len(names) :], strict=True):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(f"{self.function.__name__}: dimension {name} has lengths {sizes[name]} and {size}")
        return sizes


def _dimensions(side: str) -> list[Dimensions]:
    return [tuple(re.findall(r"\w+", each)) for each in re.findall(r"\([^)]*\)", side)]


def _declared(signature: Any) -> list[Declared]:
    if isinstance(signature, str):
        texts = re.split(r",(?![^\[]*\])", signature[signature.index("(") + 1 : signature.rindex(")")])
    else:
        texts = [str(each) for each in getattr(signature, "args", signature)]
    names = [DTYPE.search(text) for text in texts]
    return [
        Declared(np.dtype(name.group() if name else text.strip()), "[" in text or text.startswith("array("))
        for name, text in zip(names, texts, strict=True)
    ]
