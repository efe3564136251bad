"""The samples for the operators of derivatives/fourier.py."""

from __future__ import annotations

from viewgrad.operators.samples import case, draws

from .trials import trial

ONE = draws(
    case((4,)),
    case((5,)),
    case((2, 5), 3),
    case((2, 3), 6, norm="ortho"),
    case((0, 4)),
    case((4, 3), axis=0, norm="forward"),
    case((3, 2, 2), 5, 0, "backward"),
)
TWO = draws(
    case((3, 4)),
    case((2, 3, 5), norm="ortho"),
    case((2, 3, 4), s=(3, 2), axes=(0, 2), norm="forward"),
    case((2, 3, 4), s=(4, 5), axes=(-1, 0), norm="backward"),
    case((0, 2, 3), axes=(1, 2)),
    case((3, 4), s=(-1, 6), axes=(1, 0)),
)
SEVERAL = draws(case((4,)), case((2, 3), s=(3, 2), axes=(0, 1)), case((2, 2, 3)))
SHIFTED = draws(case((5,)), case((3, 4)), case((3, 4), 0), case((2, 3, 5), (0, 2)), case((0, 3)))

for name in ("fft", "ifft", "rfft", "irfft"):
    trial(name, samples=ONE)
    trial(f"{name}2", samples=TWO)
    trial(f"{name}n", samples=SEVERAL)
trial("fftshift", samples=SHIFTED)
trial("ifftshift", samples=SHIFTED)
