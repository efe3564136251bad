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
