"""The samples for the operators of derivatives/matrices/least_squares.py."""

from __future__ import annotations

from viewgrad.operators.samples import case, draws

from ..trials import trial

trial("lstsq", samples=draws(case((4, 2), (4, 3)), case((4, 2), (4,)), case((2, 4), (2, 2)), case((3, 3), (3,))))
