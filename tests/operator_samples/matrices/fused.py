"""The samples for the operators of derivatives/matrices/fused.py."""

from __future__ import annotations

from typing import Any

from viewgrad.operators.samples import case, draws

from ..trials import trial

POSITIVE = draws(case((3, 4), (3, 4), (3, 4)), case((3, 4), (3, 4), (3, 4), value=-2.5), domain=(0.5, 2))


def added_product(a: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * a + alpha * (x @ y)


trial(
    "linear",
    samples=draws(
        case((2, 3), (4, 3), (4,)),
        case((3,), (4, 3), (4,)),
        case((2, 2, 3), (4, 3)),
        case((2, 3), (3,)),
        case((0, 3), (2, 3)),
    ),
)


trial(
    "addmm",
    samples=draws(
        case((2, 4), (2, 3), (3, 4)),
        case((2, 4), (2, 3), (3, 4), beta=0.5, alpha=-2),
        case((4,), (2, 3), (3, 4)),
        case((2, 4), (2, 0), (0, 4)),
    ),
    reference=added_product,
)
trial(
    "baddbmm",
    samples=draws(
        case((2, 2, 4), (2, 2, 3), (2, 3, 4)),
        case((2, 1, 4), (2, 2, 3), (2, 3, 4), beta=0.5, alpha=3),
        case((0, 2, 4), (0, 2, 3), (0, 3, 4)),
    ),
    reference=added_product,
)
trial(
    "addmv",
    samples=draws(case((2,), (2, 3), (3,)), case((), (2, 3), (3,), beta=0.5, alpha=-2), case((2,), (2, 0), (0,))),
    reference=added_product,
)
trial("addcmul", samples=POSITIVE)
trial("addcdiv", samples=POSITIVE)
