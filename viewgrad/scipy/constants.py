"""`scipy.constants`: SciPy's constants, and conversions of tensors."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import scipy.constants  # type: ignore[import-untyped]

from ..numpy.namespace import filled, public_names
from .wrap import maker, numbers

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


MADE: dict[str, Any] = {}
made: Final = maker(scipy.constants, MADE)
# Temperature scales: the number of degrees per kelvin, and the zero point in kelvins.
SCALES: Final = {
    "celsius": (1.0, 273.15), "c": (1.0, 273.15), "kelvin": (1.0, 0.0), "k": (1.0, 0.0),
    "fahrenheit": (1.8, 459.67 / 1.8), "f": (1.8, 459.67 / 1.8), "rankine": (1.8, 0.0), "r": (1.8, 0.0),
}  # fmt: skip


@made
def convert_temperature(val: Any, old_scale: str, new_scale: str) -> Any:
    """Convert temperatures from one scale to another: Celsius, Kelvin, Fahrenheit or Rankine."""
    for scale in (old_scale, new_scale):
        if scale.lower() not in SCALES:
            raise NotImplementedError(
                f"{scale!r} scale is unsupported: supported scales are Celsius, Kelvin, Fahrenheit, and Rankine"
            )
    (degrees, zero), (others, other_zero) = SCALES[old_scale.lower()], SCALES[new_scale.lower()]
    return (numbers(val) / degrees + (zero - other_zero)) * others


@made
def lambda2nu(lambda_: Any) -> Any:
    """Return the frequency of light with a given wavelength."""
    return scipy.constants.c / numbers(lambda_)


@made
def nu2lambda(nu: Any) -> Any:
    """Return the wavelength of light with a given frequency."""
    return scipy.constants.c / numbers(nu)


OWN: Final = frozenset({"find", "precision", "unit", "value"})
with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    globals().update(filled(scipy.constants, MADE, OWN, {}))
__all__ = public_names(scipy.constants)
