"""Arguments of operators may have any name, also one that generated code might want for itself."""

import numpy as np
import pytest

import viewgrad as vg


@pytest.mark.parametrize("name", ["mode", "axis", "size"])
def test_plain_argument_keeps_its_value(name):
    op = vg.autograd.define_op(
        f"scaled_by_{name}(self, {name}='twice')",
        forward=lambda a, factor="twice": a * (2.0 if factor == "twice" else 3.0),
        derivatives={"self": f"grad * (2.0 if {name} == 'twice' else 3.0)"},
        forward_derivative="auto_linear",
        inplace=True,
    )
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert op(x).tolist() == [2.0, 4.0]
    y = op(x, "thrice")
    assert y.tolist() == [3.0, 6.0]
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    z = x.clone()
    op.inplace(z, "thrice")
    assert z.tolist() == [3.0, 6.0]
