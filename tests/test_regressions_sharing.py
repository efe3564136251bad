"""What shares memory with what: as in NumPy, on one source; and assignments that read what they write."""

import itertools

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[:, ::2],
    "reversed": lambda a: a[::-1],
    "a row": lambda a: a[1],
    "a column": lambda a: a[:, 1],
    "an element": lambda a: a[1:2, 2:3],
    "empty": lambda a: a[:0],
}
TAKEN = {
    "ravel": lambda a: a.ravel(),
    "np.ravel": np.ravel,
    "flatten": lambda a: a.flatten(),
    "reshape": lambda a: a.reshape(-1),
    "np.reshape": lambda a: np.reshape(a, (-1,)),
    "transpose": lambda a: a.transpose(),
    "array without dimensions": lambda a: a[np.array(0)] if a.shape[0] else a,
    "array without dimensions, beside a slice": lambda a: a[np.array(0), 1:] if a.ndim > 1 and a.shape[0] else a,
    "number": lambda a: a[np.int64(0) :],
    "list": lambda a: a[[0]] if a.shape[0] else a,
    "mask": lambda a: a[np.ones(a.shape, bool)],
    "squeeze": lambda a: a.squeeze(),
    "swapaxes": lambda a: np.swapaxes(a, 0, -1),
    "expand_dims": lambda a: np.expand_dims(a, 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("take", TAKEN)
def test_memory_is_shared_exactly_when_numpy_shares_it(take, layout):
    array = np.arange(12.0).reshape(3, 4)
    tensor = vg.Tensor(array)
    source, ours = LAYOUTS[layout](array), LAYOUTS[layout](tensor)
    expected, found = TAKEN[take](source), TAKEN[take](ours)
    assert found.tolist() == expected.tolist()
    assert np.shares_memory(found._array, ours._array) == np.shares_memory(expected, source)


SLICES = [
    slice(0, 5, 2), slice(1, 4), slice(4, None, -2), slice(0, 3), slice(2, 5), slice(6, None, -3), slice(0, 7, 3),
    slice(3, 0, -1),
]  # fmt: skip


@pytest.mark.parametrize("copy", [False, True])
def test_an_assignment_reads_all_before_it_writes(copy):
    start, weights = np.arange(1.0, 8.0), np.linspace(-1.0, 2.0, 7)
    for to, of in itertools.product(SLICES, SLICES):
        if len(start[to]) != len(start[of]):
            continue
        value, gradient = start.copy(), weights.copy()
        value[to] = start[of].copy()
        part = gradient[to].copy()
        gradient[to] = 0.0
        gradient[of] += part
        x = vg.Tensor(start, requires_grad=True)
        y = x * 1.0
        if copy:
            y[to].copy_(y[of])
        else:
            y[to] = y[of]
        assert y.tolist() == value.tolist(), (to, of)
        np.testing.assert_allclose(grad((y * weights).sum(), x)[0], gradient, err_msg=str((to, of)))


def test_an_assignment_of_imaginary_parts_of_what_is_written():
    x = vg.Tensor([1 + 2j, 3 - 1j, 0.5 + 0.7j], requires_grad=True)
    y = x * 1.0
    y[...] = y[1:].imag[:1]
    assert y.tolist() == [-1, -1, -1]
    assert grad(y.real.sum(), x)[0].tolist() == [0, 3j, 0]


def test_numbers_of_the_program_do_not_pass_through_hooks_on_saved_values():
    shapes = []

    def pack(tensor):
        shapes.append(tensor.shape)
        return tensor

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with vg.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        total = (x * 2.0 + x / 4 + x * 0.0 + 3.0 * x).sum()
    assert shapes == []
    assert grad(total, x)[0].tolist() == [5.25, 5.25]
    with vg.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        x * vg.Tensor(2.0)
    assert shapes == [()]
