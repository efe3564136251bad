"""The samples for the operators of derivatives/networks/pooling.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from viewgrad.operators.derivatives.networks.convolution import Window, extents_after
from viewgrad.operators.derivatives.networks.pooling import pooling_window
from viewgrad.operators.samples import case, draws

from ..trials import trial


def max_pool_plainly(n: int) -> Any:
    """Max pooling, computed independently window by window."""

    def pool(a: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> tuple[Any, Any]:
        kernel, window = pooling_window(kernel_size, stride, padding, dilation, n)
        places = extents_after(a.shape[-n:], kernel, window)
        numbers = np.arange(math.prod(a.shape[-n:])).reshape(a.shape[-n:])
        best, at = np.zeros((*a.shape[:-n], *places)), np.zeros((*a.shape[:-n], *places), int)
        for index in np.ndindex(*best.shape):
            corner = [i * step - before for i, step, (before, _) in zip(index[-n:], window.stride, window.padding)]
            reached = (
                tuple(c + o * gap for c, o, gap in zip(corner, offset, window.dilation))
                for offset in np.ndindex(*kernel)
            )
            inside = [place for place in reached if all(0 <= i < m for i, m in zip(place, a.shape[-n:]))]
            place = max(inside, key=a[index[:-n]].__getitem__)
            best[index], at[index] = a[index[:-n]][place], numbers[place]
        return best, at

    return pool


OVERLAPPING = Window((1, 2), ((1, 1), (0, 1)), (1, 1))


trial("_window_sums", samples=draws(case((2, 3, 4), kernel=(2, 3), window=OVERLAPPING)))
trial("_window_spread", samples=draws(case((2, 4, 2), extents=(3, 4), kernel=(2, 3), window=OVERLAPPING)))
trial(
    "max_pool1d",
    samples=draws(case((2, 6), 2), case((1, 2, 7), 3, 2, 1), case((5,), 2, stride=1, dilation=2), case((0, 4), 2)),
    reference=max_pool_plainly(1),
)
trial(
    "max_pool2d",
    samples=draws(
        case((2, 4, 4), 2), case((1, 2, 5, 4), kernel_size=(3, 2), stride=2, padding=1), case((3, 4), 2, 1, dilation=2)
    ),
    reference=max_pool_plainly(2),
)
trial(
    "avg_pool1d",
    samples=draws(
        case((2, 6), 2), case((1, 2, 7), 3, 2, 1), case((1, 7), 3, padding=1, count_include_pad=False), case((0, 4), 2)
    ),
)
trial(
    "avg_pool2d",
    samples=draws(
        case((2, 4, 4), 2),
        case((1, 2, 5, 4), kernel_size=(3, 2), stride=2, padding=1),
        case((1, 5, 4), kernel_size=(3, 2), stride=1, padding=1, count_include_pad=False),
    ),
)
