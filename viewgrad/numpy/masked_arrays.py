"""Masked arrays of plain numbers whose operators accept tensors with a history.

Adopted code uses them in place of `numpy.ma.MaskedArray`, whose operators convert the other operand to an array, which
would lose its history.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operators.numpy_api.conversion import carries_history
from ..operators.numpy_api.methods import writable_array
from .array_types import of_numpy
from .masked import FUNCTIONS, MaskedTensor, as_masked
from .operator_methods import ARITHMETIC, COMPARISONS


class MaskedArrayType(type):
    """The metaclass of `MaskedArray`, with which `isinstance` also accepts NumPy's masked arrays and masked tensors."""

    def __instancecheck__(cls, value: Any) -> bool:
        if cls in (MaskedArray, CapturedMaskedArray):
            return isinstance(value, (np.ma.MaskedArray, MaskedTensor))
        return type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, other: type) -> bool:
        return type.__subclasscheck__(np.ma.MaskedArray if cls is MaskedArray else cls, other)


class MaskedArray(np.ma.MaskedArray[Any, Any], metaclass=MaskedArrayType):
    """A masked array of plain numbers. An operator with a tensor that has a history returns a masked tensor."""

    def __new__(cls, data: Any = None, *args: Any, **options: Any) -> Any:
        if carries_history(data):
            return FUNCTIONS["array"](data, *args, **options)
        data = writable_array(data, "numpy.ma.MaskedArray")
        return np.ma.MaskedArray.__new__(cls, data, *args, **options)  # `cls` may not be adopted

    def view(self, *args: Any, **options: Any) -> Any:
        """Return a view with another class or dtype; see `numpy.ma.MaskedArray.view`."""
        return super().view(*map(of_numpy, args), **{key: of_numpy(each) for key, each in options.items()})

    def __reduce__(self) -> Any:
        """Reduce to an array of NumPy's class, since code that is not adopted may read it."""
        reduced: Any = super().__reduce__()
        rebuild, args, *state = reduced
        if args[0] in (MaskedArray, CapturedMaskedArray):
            args = (np.ma.MaskedArray, *args[1:])
        return rebuild, args, *state


class CapturedMaskedArray(MaskedArray):
    """A view of a masked array of the user's program that shares its values and its mask."""

    @property
    def _mask(self) -> Any:
        own = vars(self)
        return own["_users"]._mask if "_users" in own else own.get("_own_mask", np.ma.nomask)

    @_mask.setter
    def _mask(self, mask: Any) -> None:
        own = vars(self)
        if "_users" in own:
            own["_users"]._mask = mask
        else:
            own["_own_mask"] = mask


def with_operators(array: Any) -> Any:
    """Return a view of an array of NumPy's class as a `MaskedArray`, and any other object unchanged."""
    return array.view(MaskedArray) if type(array) is np.ma.MaskedArray else array


def captured(array: Any) -> Any:
    """Return a view of a masked array of the user's program that shares its values and its mask."""
    made = array.view(CapturedMaskedArray)
    vars(made)["_users"] = array
    return made


def _define(name: str, ufunc: np.ufunc, is_reflected: bool = False) -> None:
    method = f"__{'r' if is_reflected else ''}{name}__"
    plain = getattr(np.ma.MaskedArray, method)

    def operate(self: Any, other: Any) -> Any:
        if not (isinstance(other, MaskedTensor) or carries_history(other)):
            return plain(self, other)
        mine = as_masked(self)
        return mine.__array_ufunc__(ufunc, "__call__", *((other, mine) if is_reflected else (mine, other)))

    operate.__name__ = method
    setattr(MaskedArray, method, operate)


for _name, _ufunc in ARITHMETIC.items():
    _define(_name, _ufunc)
    _define(_name, _ufunc, is_reflected=True)
for _name, _ufunc in COMPARISONS.items():
    _define(_name, _ufunc)
MaskedArray.__hash__ = None
MaskedArray.__module__ = CapturedMaskedArray.__module__ = "numpy.ma"  # by which libraries recognize masked arrays
CapturedMaskedArray.__name__ = CapturedMaskedArray.__qualname__ = "MaskedArray"
