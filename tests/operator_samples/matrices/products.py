"""The samples for the operators of derivatives/matrices/products.py."""

from __future__ import annotations

from typing import Final

import numpy as np

from viewgrad.operators.samples import case, draws

from ..trials import trial

MATRICES: Final = [case((2, 3), (3, 4)), case((3,), (3,)), case((3,), (3, 2)), case((2, 3), (3,))]


trial(
    "matmul",
    samples=draws(
        *MATRICES,
        case((3,), (2, 3, 2)),
        case((2, 2, 3), (3,)),
        case((2, 1, 2, 3), (3, 3, 2)),
        case((2, 2, 3), (3, 2)),
        case((2, 0), (0, 3)),
        case((2, 2, 0), (0, 3)),
        case((0, 2, 3), (3, 2)),
    ),
)
trial("dot", samples=draws(*MATRICES, case((), (3,)), case((2, 2), ()), case((2, 3), (2, 3, 2)), case((3,), (2, 3, 2))))
trial("outer", samples=draws(case((3,), (4,)), case((2, 2), (3,)), case((), (2,)), case((0,), (2,))))
trial(
    "tensordot",
    samples=draws(
        case((2, 3, 2), (3, 2, 2)),
        case((2, 3), (2, 3), axes=((0, 1), (0, 1))),
        case((2, 3), (3,), axes=1),
        case((2, 3, 2), (2, 2, 3), axes=((1, 0), (2, 1))),
        case((2,), (3,), axes=0),
        case((2, 3), (2, 2), axes=(0, 1)),
    ),
)
trial(
    "_einsum_single",
    samples=draws(
        case((2, 3), "ab->ba"),
        case((2, 3), "ab->b"),
        case((3, 3), "aa->a"),
        case((3, 3), "aa->"),
        case((2, 3, 3), "abb->ab"),
        case((2, 2, 2), "aaa->a"),
        case((0, 2), "ab->a"),
    ),
)
trial(
    "_einsum_pair",
    samples=draws(
        case((2, 3), (3, 4), "ab,bc->ac"),
        case((3,), (3,), "a,a->"),
        case((2, 3), (2,), "ab,a->b"),
        case((2, 3), (4,), "ab,c->ca"),
        case((3, 3), (3,), "aa,a->a"),
        case((2, 3), (2, 3), "ab,ab->ab"),
        case((2, 2), (2, 2), "aa,bb->"),
        case((2, 3), (), "ab,->a"),
        case((1, 3), (2, 3), "ab,ab->a"),
    ),
    reference=lambda self, other, subscripts: np.einsum(subscripts, self, other, optimize=True),
)
trial(
    "trace",
    samples=draws(
        case((3, 3)), case((3, 4), 1), case((2, 3, 4), -1, axis1=2, axis2=0), case((0, 0)), case((3, 2, 3), 0, -1, 0)
    ),
)
trial(
    "kron",
    samples=draws(
        case((2, 3), (3, 2)), case((3,), (2, 2)), case((2, 2), ()), case((0, 2), (2, 3)), case((2, 1, 2), (3,))
    ),
)
trial(
    "cross",
    samples=draws(
        case((3,), (3,)),
        case((2, 3), (3,)),
        case((3, 2), (3, 1), axis=0),
        case((0, 3), (1, 3)),
        case((3,), (3, 3), axis=0),
        case((2, 3, 3), (3, 3), 1),
    ),
    reference=lambda a, b, axis=-1: np.cross(a, b, axis=axis),
)
trial(
    "vecdot",
    samples=draws(
        case((3,), (3,)),
        case((2, 3), (3,)),
        case((3, 2), (3, 2), axis=0),
        case((2, 0), (2, 0)),
        case((0, 3), (3,)),
        case((3,), (3, 3), axis=0),
        case((2, 3, 3), (3, 3), 1),
    ),
    reference=lambda a, b, axis=-1: (np.conj(np.moveaxis(a, axis, -1)) * np.moveaxis(b, axis, -1)).sum(-1),
)
