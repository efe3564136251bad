"""Weighted integrals, with respect to the parameters of the weights."""

import numpy as np
import pytest
from scipy import integrate, optimize

import viewgrad as vg
from viewgrad.errors import UnsupportedFunctionError


@pytest.mark.parametrize("weight", ["cos", "sin"])
def test_the_frequency_has_a_gradient(weight):
    def integral(p):
        return integrate.quad(lambda x, a: np.exp(a * x), 0.0, p[1], args=(p[0],), weight=weight, wvar=p[0] * 3.0)[0]

    p = np.array([0.8, 1.3])
    value, slope = vg.func.value_and_grad(integral)(p)
    assert value == pytest.approx(integral(p), rel=1e-12)
    expected = [(integral(p + step) - integral(p - step)) / 2e-5 for step in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(slope, expected, rtol=1e-8)


@pytest.mark.parametrize("weight, wvar", [("alg", lambda p: (p, 0.5)), ("cauchy", lambda p: p), ("cos", lambda p: p)])
def test_other_weights_are_refused(weight, wvar):
    end = np.inf if weight == "cos" else 2.0
    with pytest.raises(UnsupportedFunctionError, match="omit weight"):
        vg.func.grad(lambda p: integrate.quad(lambda x: np.exp(-x), 0.0, end, weight=weight, wvar=wvar(p))[0])(0.7)


def test_elementwise_searches_are_found_in_the_namespace():
    pytest.importorskip("scipy.optimize.elementwise")
    root = lambda q: optimize.elementwise.find_root(lambda x, q: x**3 - q, (0.0, 4.0), args=(q,)).x
    assert vg.func.grad(root)(0.8) == pytest.approx(0.8 ** (-2 / 3) / 3)
