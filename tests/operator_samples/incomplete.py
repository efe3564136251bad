"""The samples for the operators of derivatives/incomplete.py."""

from __future__ import annotations

from viewgrad.operators.samples import case, draws

from .trials import trial

trial(
    "_incomplete_gamma",
    samples=draws(case((3, 4), (3, 4)), case((4,), (4,), 1), case((), (), 0, True), domain=(0.5, 3)),
)
trial(
    "_incomplete_beta",
    samples=draws(case((3, 4), (3, 4), (3, 4)), case((4,), (4,), (4,), 1), case((), (), (), 0, 1), domain=(0.2, 0.8)),
)
