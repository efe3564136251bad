"""Orthogonal polynomials of negative degrees: values are SciPy's, and gradients theirs."""

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.special")

import viewgrad as vg  # noqa: E402
from viewgrad.scipy import special as ours  # noqa: E402

NAMES = (
    "legendre", "chebyt", "chebyu", "chebyc", "chebys", "sh_legendre", "sh_chebyt", "sh_chebyu", "hermite",
    "hermitenorm", "laguerre",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_negative_degrees(name):
    place, step = np.array([0.3, 0.6]), 1e-6
    for degree in (np.array(2), np.array(0), np.array(-1), np.array(-3), np.array([-2, 1])):
        scipys, counterpart = (getattr(module, f"eval_{name}") for module in (theirs, ours))
        x = vg.Tensor(place, requires_grad=True)
        found = counterpart(degree, x)
        np.testing.assert_allclose(found.detach(), scipys(degree, place), atol=1e-12)
        slope = (scipys(degree, place + step) - scipys(degree, place - step)) / (2 * step)
        if found.requires_grad and not np.isnan(slope).any():
            np.testing.assert_allclose(vg.autograd.grad(found.sum(), x)[0], slope, atol=1e-7)
