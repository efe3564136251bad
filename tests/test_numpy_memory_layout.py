"""Results have the memory layout of NumPy's results, so that a later `ravel` or `reshape` is a view if NumPy's is."""

import operator

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as namespace

CUBE = np.arange(1.0, 25.0).reshape(2, 3, 4)
ARRAYS = {
    "broadcast along the first dimension": np.broadcast_to(CUBE[0, 0], (3, 4)),
    "broadcast along the last dimension": np.broadcast_to(CUBE[0, :, :1], (3, 4)),
    "broadcast along the middle dimension": np.broadcast_to(CUBE[:, :1], (2, 3, 4)),
    "column-major": np.asfortranarray(CUBE[0]),
    "reversed": CUBE[0, ::-1, ::-1],
    "rotated": CUBE.transpose(2, 0, 1),
    "swapped": CUBE.transpose(1, 0, 2),
    "with gaps": CUBE[:, ::2, ::2].transpose(2, 1, 0),
    "overlapping": np.lib.stride_tricks.sliding_window_view(CUBE.ravel()[:6], 3),
}
NAMES = """
    gradient sin negative nan_to_num copy round fix cumsum cumprod diff sort flip rot90 fliplr flipud unwrap
    real_if_close conj absolute square zeros_like ones_like positive squeeze transpose triu tril i0 sinc angle real imag
    diagonal trace sign exp fft.fftshift fft.ifftshift fft.fftn atleast_3d
""".split()
CALLS = {
    "clip": lambda np, x: np.clip(x, 2, 5),
    "where": lambda np, x: np.where(x > 2, x, 0.0),
    "select": lambda np, x: np.select([x > 2, x > 1], [x, x * 2]),
    "piecewise": lambda np, x: np.piecewise(x, [x > 9, x < 3], [lambda v: v * 2, 7.0, lambda v: -v]),
    "full_like": lambda np, x: np.full_like(x, 2.0),
    "take": lambda np, x: np.take(x, [0, 1], axis=-1),
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "concatenate": lambda np, x: np.concatenate([x, x]),
    "stack": lambda np, x: np.stack([x, x]),
    "insert": lambda np, x: np.insert(x, 1, 0.0, axis=0),
    "delete": lambda np, x: np.delete(x, 0, axis=0),
    "roll": lambda np, x: np.roll(x, 1, axis=0),
    "pad": lambda np, x: np.pad(x, 1),
    "partition": lambda np, x: np.partition(x, 1, axis=0),
    "argsort": lambda np, x: np.argsort(x, axis=0),
    "add": lambda np, x: np.add(x, x),
    "add rows": lambda np, x: x + x[:1],
    "multiply by a mask": lambda np, x: x * (x > 2),
    "maximum": lambda np, x: np.max(x, axis=0),
    "mean": lambda np, x: np.mean(x, axis=0, keepdims=True),
    "quantile": lambda np, x: np.quantile(x, [0.2, 0.5], axis=0),
    "matmul": lambda np, x: np.matmul(x, np.swapaxes(x, -1, -2)),
    "einsum": lambda np, x: np.einsum("...ij->...ji", x),
    "astype": lambda np, x: x.astype("f4"),
    "modf": lambda np, x: np.modf(x)[0],
    "advanced index": lambda np, x: x[[0, 1]],
    "mask": lambda np, x: x[:, np.arange(x.shape[1]) != 0],
}


def call(name, namespace, x):
    return CALLS[name](namespace, x) if name in CALLS else operator.attrgetter(name)(namespace)(x)


def contiguity(array):
    return array.shape, bool(array.flags.c_contiguous), bool(array.flags.f_contiguous)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", ARRAYS)
@pytest.mark.parametrize("name", [*CALLS, *NAMES])
def test_results_have_the_layout_of_numpys(name, layout):
    array = ARRAYS[layout]
    expected = call(name, np, array)
    for tensor in (vg.from_numpy(array), vg.from_numpy(array).requires_grad_()):
        results = call(name, namespace, tensor)
        for mine, theirs in zip(listed(results), listed(expected), strict=True):
            assert contiguity(mine.detach().numpy()) == contiguity(theirs)


def listed(results):
    return results if isinstance(results, (list, tuple)) else [results]
