"""The samples for the operators of derivatives/networks/convolution.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewgrad.operators.derivatives.networks.convolution import Window, extents_after, steps_of, window_of
from viewgrad.operators.samples import case, draws

from ..trials import trial


def convolved_plainly(n: int) -> Any:
    """Return a convolution, computed independently as a sum over the elements of the kernel."""

    def convolve(
        x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        single = x.ndim == n + 1
        x = x[None] if single else x
        kernel = weight.shape[2:]
        window = window_of(kernel, stride, padding, dilation)
        places = extents_after(x.shape[2:], kernel, window)
        x = np.pad(x, [(0, 0), (0, 0), *window.padding])
        result: Any = np.zeros((len(x), weight.shape[0], *places), np.result_type(x, weight))
        per_group, out = weight.shape[1], weight.shape[0] // groups
        for offset, under in steps_of(kernel, places, window):
            part = x[under]
            pieces = [
                np.einsum(
                    "bi...,oi->bo...",
                    part[:, g * per_group : (g + 1) * per_group],
                    weight[(slice(g * out, (g + 1) * out), slice(None), *offset)],
                )
                for g in range(groups)
            ]
            result = result + np.concatenate(pieces, axis=1)
        if bias is not None:
            result = result + bias.reshape((-1,) + (1,) * n)
        return result[0] if single else result

    return convolve


W1 = Window((1,), ((0, 0),), (1,))
W2 = Window((2, 1), ((1, 1), (0, 2)), (1, 2))


trial(
    "_convolution",
    samples=draws(
        case((1, 2, 4), (3, 2, 2), window=W1, groups=1),
        case((2, 2, 5, 4), (4, 1, 3, 2), window=W2, groups=2),
        case((2, 4), (3, 2, 2), window=W1, groups=1),
        case((0, 2, 4), (3, 2, 2), window=W1, groups=1),
    ),
)
trial(
    "_convolution_input",
    samples=draws(
        case((1, 3, 3), (3, 2, 2), extents=(4,), window=W1, groups=1),
        case((2, 4, 3, 4), (4, 1, 3, 2), extents=(5, 4), window=W2, groups=2),
        case((3, 3), (3, 2, 2), extents=(4,), window=W1, groups=1),
    ),
)
trial(
    "_convolution_weight",
    samples=draws(
        case((1, 2, 4), (1, 3, 3), kernel=(2,), window=W1, groups=1),
        case((2, 2, 5, 4), (2, 4, 3, 4), kernel=(3, 2), window=W2, groups=2),
        case((2, 4), (3, 3), kernel=(2,), window=W1, groups=1),
    ),
)
CONV_SAMPLES = {
    1: draws(
        case((2, 2, 5), (3, 2, 2), (3,)),
        case((1, 2, 6), (2, 2, 3), stride=2, padding=1),
        case((2, 5), (3, 2, 2)),
        case((1, 4, 5), (4, 2, 2), (4,), dilation=2, groups=2),
        case((1, 2, 4), (2, 1, 3), padding="same", groups=2),
        case((0, 2, 5), (3, 2, 2), (3,)),
    ),
    2: draws(
        case((2, 2, 4, 3), (3, 2, 2, 2), (3,)),
        case((1, 2, 5, 4), (2, 2, 3, 2), stride=(2, 1), padding=(1, 0)),
        case((2, 4, 3), (1, 2, 2, 2)),
        case((1, 2, 5, 5), (4, 1, 2, 2), (4,), dilation=(2, 1), groups=2),
        case((1, 1, 3, 3), (1, 1, 2, 3), padding="same"),
    ),
    3: draws(case((1, 1, 3, 3, 2), (2, 1, 2, 2, 2), (2,)), case((1, 2, 3, 3, 3), (2, 1, 2, 2, 1), stride=2, groups=2)),
}
TRANSPOSED_SAMPLES = {
    1: draws(
        case((2, 3, 4), (3, 2, 2), (2,)),
        case((1, 2, 3), (2, 2, 3), stride=2, padding=1, output_padding=1),
        case((2, 4), (2, 1, 2)),
        case((1, 4, 3), (4, 2, 2), (4,), dilation=2, groups=2),
    ),
    2: draws(
        case((1, 2, 3, 2), (2, 3, 2, 2), (3,), stride=(2, 1)),
        case((1, 4, 2, 3), (4, 1, 2, 3), groups=2, padding=(0, 1)),
    ),
}


for n, samples in CONV_SAMPLES.items():
    trial(f"conv{n}d", samples=samples, reference=convolved_plainly(n))
for n, samples in TRANSPOSED_SAMPLES.items():
    trial(f"conv_transpose{n}d", samples=samples)
