"""Programs that were written to break the library, and once did."""

import numpy as np
import pytest

import viewgrad as vg

squared_length = vg.autograd.define_op(
    "squared_length(self)",
    forward=lambda z: (z * z.conj()).real,
    derivatives={"self": "grad * 2 * self"},
    forward_derivative="2 * (conj(self_p) * self_t).real",
    inplace=True,
)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize("operator", [vg.autograd.derivatives.define.OPERATORS["abs"], squared_length])
def test_a_real_result_written_over_complex_numbers_takes_the_real_part_of_the_gradient(operator, as_view, recorded):
    z = vg.Tensor([0.3 + 0.4j, -1 + 2j], requires_grad=True)
    t = z.clone()
    operator.inplace(t[...] if as_view else t)
    (grad,) = vg.autograd.grad((t * t * (1 + 2j)).real.sum(), z, create_graph=recorded)
    (expected,) = vg.autograd.grad((operator(z) ** 2).sum(), z)
    np.testing.assert_allclose(grad.detach(), expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("step", [4, 8, -8])
def test_neg_in_place_of_a_strided_view(dtype, step):
    # NumPy 2.4's negative(a, a) reads from wrong places at these strides, with AVX512 at least.
    x = vg.Tensor(np.arange(40).astype(dtype))
    expected = x.tolist()
    expected[::step] = [-value for value in expected[::step]]
    x[::step].neg_()
    assert x.tolist() == expected


def test_assignment_by_a_mask_of_a_tensor_to_itself_reads_before_it_writes():
    # NumPy does not make sure of it where the only index is an array of bools.
    t = vg.Tensor([0.0, 1.0, 2.0, 3.0])
    t[np.array([True] * 4)] = t[::-1]
    assert t.tolist() == [3.0, 2.0, 1.0, 0.0]
