"""Programs that once went wrong in place, and were found by comparing with `functionalize`."""

import pytest

import viewgrad as vg


@pytest.mark.parametrize("as_view", [False, True])
def test_the_absolute_value_of_complex_numbers_in_place_passes_on_the_real_part_of_the_gradient(as_view):
    z = vg.Tensor([0.3 + 0.4j, -1 + 2j], requires_grad=True)
    t = z.clone()
    (t[...] if as_view else t).abs_()
    (t * t * (1 + 2j)).real.sum().backward()
    assert abs(z.grad - 2 * z.detach()).max().item() < 1e-15
