"""Results for tensors with a history have SciPy's types and attributes."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.special

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.compiler.api import Compiled
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.scipy import interpolate, linalg, optimize

RNG = np.random.default_rng(0)


def leaf(data):
    return vg.Tensor(data, requires_grad=True)


def values(result):
    return [np.asarray(each.detach()) for each in result]


@pytest.mark.parametrize("spectrum", ["real", "complex"])
@pytest.mark.parametrize("general", [False, True])
def test_eigenvectors_of_a_real_spectrum_are_real(spectrum, general):
    a = np.diag([1.0, 2.0, 3.0]) + 0.1 * RNG.normal(size=(3, 3))
    if spectrum == "complex":
        a[0, 1], a[1, 0] = 4.0, -4.0
    b = np.diag([1.0, 2.0, 1.5]) if general else None
    found = values(linalg.eig(leaf(a), b))
    for mine, theirs in zip(found, scipy.linalg.eig(a, b)):
        assert mine.dtype == theirs.dtype
        if mine.ndim == 1 or not general or spectrum == "real":  # the phases of others are not fixed
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert gradcheck(lambda a: linalg.eig(a, b)[0], (leaf(a),))


@pytest.mark.parametrize("lower", [False, True])
def test_the_other_triangle_of_cho_factor_is_copied_from_the_matrix(lower):
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    factor, is_lower = linalg.cho_factor(leaf(a), lower)
    np.testing.assert_allclose(factor.detach().numpy(), scipy.linalg.cho_factor(a, lower)[0])
    assert is_lower is lower
    x = linalg.cho_solve((factor, lower), np.ones(2))
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(a, np.ones(2)))


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_curve_fit_takes_lists(kind):
    x, y = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 2.9, 4.2]
    line = lambda x, a, b: a * x + b
    for data in (kind(y), leaf(y)):
        place = optimize.curve_fit(line, kind(x), data)[0]
        np.testing.assert_allclose(place.detach().numpy(), np.polyfit(x, y, 1), rtol=1e-6)
    integers = optimize.curve_fit(line, [1, 2, 3, 4], y)[0]
    np.testing.assert_allclose(integers.numpy(), np.polyfit(x, y, 1), rtol=1e-6)


def test_splines_with_several_functions():
    t, c, k = scipy.interpolate.splrep(np.arange(8.0), np.sin(np.arange(8.0)))
    places, several = [1.0, 2.5], np.stack([c, 2 * c])
    expected = scipy.interpolate.splev(places, (t, several, k))
    for coefficients in (leaf(several), [leaf(c), leaf(2 * c)]):
        found = interpolate.splev(places, (t, coefficients, k))
        assert isinstance(found, list)
        np.testing.assert_allclose(values(found), expected)
    np.testing.assert_allclose(interpolate.splev(leaf(places), [t, list(c), k]).detach().numpy(), expected[0])


def test_a_function_of_scipys_names_its_counterpart():
    with pytest.raises(UnsupportedFunctionError, match=r"use viewgrad\.scipy\.special\.airy"):
        scipy.special.airy(leaf([1.0]))


def test_minimize_runs_the_program_of_a_compiled_function(monkeypatch):
    target = np.linspace(0.0, 1.0, 20)

    def loss(p):
        out = vg.zeros(20)
        for i in range(1, 20):
            out[i] = p[1] * out[i - 1] + p[0]
        return ((out - target) ** 2).sum()

    compiled = vg.compile(loss, executor="python")
    expected = optimize.minimize(loss, [0.1, 0.5])
    optimize.minimize(compiled, [0.1, 0.5])
    calls = collections.Counter()
    for name in ("plain_value_and_grad", "__call__"):
        own = getattr(Compiled, name)
        monkeypatch.setattr(Compiled, name, lambda *args, name=name, own=own: calls.update([name]) or own(*args))
    found = optimize.minimize(compiled, [0.1, 0.5])
    np.testing.assert_allclose(found.x.numpy(), expected.x.numpy(), rtol=1e-4)
    # The single call of `__call__` determines whether the result has a history of its own.
    assert calls == {"__call__": 1, "plain_value_and_grad": found.nfev}
