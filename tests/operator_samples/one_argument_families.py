"""The samples for the operators of derivatives/one_argument_families.py."""

from __future__ import annotations

from viewgrad.operators.samples import case, draws

from .trials import trial

trial(
    "_special_family",
    samples=draws(
        case((2, 3), name="kv", parameters=(1.5,)),
        case((3,), name="yv", parameters=(0.5,)),
        case((), name="hyp1f1", parameters=(0.5, 1.5)),
        case((3,), name="fresnel", parameters=(0,)),
        domain=(0.5, 2),
    ),
)
trial(
    "_special_family_of",
    samples=draws(
        case((2, 3), (3,), (), name="kv", count=1),
        case((3,), (2, 1), (3,), name="hyp1f1", count=2),
        domain=(0.5, 2),
    ),
)
