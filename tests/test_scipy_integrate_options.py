"""Options of integrals of samples: values, shapes and errors are SciPy's."""

import itertools
import warnings

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.integrate")

import viewgrad as vg  # noqa: E402
from viewgrad.scipy import integrate as ours  # noqa: E402

RNG = np.random.default_rng(0)


def tensors(value):
    return vg.Tensor(value, requires_grad=True) if isinstance(value, np.ndarray) else value


def compare(name, *args, **options):
    def outcome(module, made):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = getattr(module, name)(*map(made, args), **{key: made(each) for key, each in options.items()})
        except (ValueError, IndexError):
            return None
        return np.asarray(found.detach() if isinstance(found, vg.Tensor) else found)

    wanted, found = outcome(theirs, lambda value: value), outcome(ours, tensors)
    assert (wanted is None) == (found is None), (name, args, options, wanted, found)
    if wanted is not None:
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11, err_msg=f"{name}, {args}, {options}")
        assert found.shape == wanted.shape


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson"])
def test_samples_at_all_kinds_of_places(name):
    for count, further in itertools.product((1, 2, 3, 4, 5, 6), ((), (2,))):
        y, ascending = RNG.normal(size=(count, *further)), np.sort(RNG.uniform(0, 3, count))
        repeated, longer = np.arange(count) // 2 * 1.0, np.arange(count + 1.0)
        places = (ascending, ascending[::-1].copy(), repeated, np.zeros(count), longer)
        for axis in (0, -1, 1):
            for x in places:
                compare(name, y, x=x, axis=axis)
            for dx in (0.5, -2.0, 0.0):
                compare(name, y, dx=dx, axis=axis)
            for initial in (0, None, 1.0) if name.startswith("cumulative") else ():
                compare(name, y, x=ascending, axis=axis, initial=initial)
    for dx in (np.array(0.5), np.array([0.5, 1.0])):
        if name.startswith("cumulative"):
            compare(name, RNG.normal(size=(4, 2)), dx=dx, axis=0)


def test_romb_raises_for_other_numbers_of_samples():
    for count, axis in itertools.product((1, 2, 3, 4, 5, 9), (0, -1, 1)):
        compare("romb", RNG.normal(size=(count, 2)), dx=0.5, axis=axis)


@pytest.mark.parametrize("name", ["simpson", "trapezoid"])
def test_gradient_at_repeated_places(name):
    x, y = np.array([0.0, 0.0, 1.0, 2.5, 3.0]), RNG.normal(size=5)
    tensor = vg.Tensor(y, requires_grad=True)
    found = vg.autograd.grad(getattr(ours, name)(tensor, x=x), tensor)[0]
    np.testing.assert_allclose(found, [getattr(theirs, name)(row, x=x) for row in np.eye(5)], atol=1e-12)


@pytest.mark.parametrize(
    "integral",
    [
        lambda m, a, b: m.quad(lambda x: np.cos(x * a) - 0.5 * x, a, b)[0],
        lambda m, a, b: m.quad(lambda x, s: np.cos(x * s), a, b, (b,), full_output=1)[0],
        lambda m, a, b: m.quad(lambda x: np.exp(-a * x * x), np.inf, b)[0],
        lambda m, a, b: m.quad(lambda x: x * a, a, b, weight="cos", wvar=2.0)[0],
        lambda m, a, b: m.quad_vec(lambda x: np.array([np.cos(x), x * x]), a, b)[0][1],
        lambda m, a, b: m.fixed_quad(lambda x: np.cos(x), a, b)[0],
        lambda m, a, b: m.dblquad(lambda y, x: np.cos(x * y), a, b, 0.2, 0.1)[0],
        lambda m, a, b: m.nquad(lambda y, x: np.cos(x * y), [[a, b], [a, 0.1]])[0],
    ],
)
def test_integrals_with_the_upper_bound_first(integral):
    def f(a, b):
        return integral(theirs, a, b)

    for bounds in ((0.4, 0.25), (0.25, 0.4)):
        gradient = vg.grad(f, (0, 1))(*bounds)
        step = 1e-5
        expected = [
            (f(bounds[0] + step, bounds[1]) - f(bounds[0] - step, bounds[1])) / (2 * step),
            (f(bounds[0], bounds[1] + step) - f(bounds[0], bounds[1] - step)) / (2 * step),
        ]
        np.testing.assert_allclose(gradient, expected, atol=1e-7)
