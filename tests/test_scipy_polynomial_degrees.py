"""Orthogonal polynomials of negative and of real degrees: values and derivatives are those of SciPy's functions."""

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


def slopes(function, values, step=1e-5):
    """Return central differences of a function of numbers."""
    found = []
    for place in range(len(values)):
        above, below = list(values), list(values)
        above[place] += step
        below[place] -= step
        found.append((function(*above) - function(*below)) / (2 * step))
    return found


def gradients(function, values):
    given = [vg.Tensor(float(value), requires_grad=True) for value in values]
    return [float(each) for each in vg.autograd.grad(function(*given), given)]


@pytest.mark.parametrize("parameters", [(-1.0, 3.0, 1.0, 0.95), (-2.0, -3.0, 1.5, 0.7), (1.5, -2.0, 0.5, -3.0)])
def test_hypergeometric_series_that_end_have_derivatives_that_do_not(parameters):
    expected = slopes(theirs.hyp2f1, parameters)
    np.testing.assert_allclose(gradients(ours.hyp2f1, parameters), expected, rtol=1e-6, atol=1e-9)
    second = slopes(lambda *given: np.array(gradients(ours.hyp2f1, given)), parameters)
    tensors = [vg.Tensor(value, requires_grad=True) for value in parameters]
    first = vg.autograd.grad(ours.hyp2f1(*tensors), tensors, create_graph=True)
    for row, wanted in zip(first, second):
        found = [float(each) for each in vg.autograd.grad(row, tensors, retain_graph=True)]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("degree", [2.5, 3.0, 0.3])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("legendre", ()), ("sh_legendre", ()), ("chebyt", ()), ("chebyu", ()), ("gegenbauer", (0.7,)),
        ("jacobi", (0.4, 1.2)),
    ],
)  # fmt: skip
def test_gradients_with_respect_to_degrees(name, parameters, degree):
    values = (degree, *parameters, 0.3)
    scipys, counterpart = getattr(theirs, f"eval_{name}"), getattr(ours, f"eval_{name}")
    np.testing.assert_allclose(gradients(counterpart, values), slopes(scipys, values), rtol=1e-6, atol=1e-8)


def test_degrees_without_hypergeometric_series_are_refused():
    with pytest.raises(vg.errors.UnsupportedFunctionError, match="degree"):
        ours.eval_hermite(vg.Tensor(2.0, requires_grad=True), 0.3)


@pytest.mark.parametrize(("order", "degree"), [(2, 2), (2, 5), (3, 3), (4, 5)])
def test_associated_legendre_functions_have_slopes_at_the_ends(order, degree):
    ends, near = np.array([-1.0, 0.5, 1.0]), np.array([-1.0 + 1e-7, 0.5, 1.0 - 1e-7])
    expected = (theirs.lpmv(order, degree, near + 5e-8) - theirs.lpmv(order, degree, near - 5e-8)) / 1e-7
    x = vg.Tensor(ends, requires_grad=True)
    np.testing.assert_allclose(vg.autograd.grad(ours.lpmv(order, degree, x).sum(), x)[0], expected, rtol=1e-4, atol=1.0)
    _, tangent = vg.func.jvp(lambda x: ours.lpmv(order, degree, x), (vg.Tensor(ends),), (vg.ones(3),))
    np.testing.assert_allclose(tangent, expected, rtol=1e-4, atol=1.0)
