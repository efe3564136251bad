"""The samples for the operators of derivatives/incomplete.py."""

from __future__ import annotations

from .cases import case, draws
from .trials import trial

__all__: list[str] = []

trial(
    "_incomplete_gamma",
    domain=(0.1, 30),
    samples=draws(case((3, 4), (3, 4)), case((4,), (4,), 1), case((), (), 0, True), domain=(0.5, 3)),
)
trial(
    "_incomplete_beta",
    domain=(0.05, 0.95),
    samples=draws(case((3, 4), (3, 4), (3, 4)), case((4,), (4,), (4,), 1), case((), (), (), 0, 1), domain=(0.2, 0.8)),
)
