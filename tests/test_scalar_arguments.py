"""Numbers remain immutable when passed to a function: after `s = x`, `s -= 1` does not change `x`."""

import copy

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import viewgrad as vg
from viewgrad.tensor.tensor import is_scalar


def probe(x, k=0.0):
    """Compute (x - 2)**2 + k x, and fail for an argument that could be written to."""
    for number in (x, k):
        assert not isinstance(number, vg.Tensor) or number.ndim or is_scalar(number)
        other = number
        other -= 1.0
    return (x - 2.0) ** 2 + k * x


def of_root(x, k):
    return x - 1.0 - k + 0.0 * probe(x, k)


def of_time(t, y, k):
    return -k * y + 0.0 * probe(t, k)


OPTIMIZE, INTEGRATE = scipy.optimize, scipy.integrate
LEAST, ROOT, DECAY = (1.75, -0.5), (1.5, 1.0), (np.exp(-0.5), -np.exp(-0.5))
INTEGRAL = (7 / 3 + 0.25, 0.5)
# A function of the parameter k, and its value and slope at 0.5.
SEARCHES = {
    "minimize_scalar": (lambda k: OPTIMIZE.minimize_scalar(probe, args=(k,)).x, LEAST),
    "bounded": (lambda k: OPTIMIZE.minimize_scalar(probe, args=(k,), bounds=(0, 5), method="bounded").x, LEAST),
    "brent": (lambda k: OPTIMIZE.brent(probe, args=(k,)), LEAST),
    "golden": (lambda k: OPTIMIZE.golden(probe, args=(k,)), LEAST),
    "fminbound": (lambda k: OPTIMIZE.fminbound(probe, 0, 5, args=(k,)), LEAST),
    "minimize": (lambda k: OPTIMIZE.minimize(lambda x, k: probe(x[0], k), [1.0], args=(k,)).x[0], LEAST),
    "least_squares": (lambda k: OPTIMIZE.least_squares(lambda x, k: of_root(x[0], k), [1.0], args=(k,)).x[0], ROOT),
    **{
        name: (lambda k, name=name: getattr(OPTIMIZE, name)(of_root, 0, 5, args=(k,)), ROOT)
        for name in ("brentq", "brenth", "ridder", "bisect", "toms748")
    },
    "newton": (lambda k: OPTIMIZE.newton(of_root, 1.0, args=(k,)), ROOT),
    "root_scalar": (lambda k: OPTIMIZE.root_scalar(of_root, args=(k,), bracket=(0, 5)).root, ROOT),
    "fixed_point": (lambda k: OPTIMIZE.fixed_point(lambda x, k: x - 0.5 * of_root(x, k), 1.0, args=(k,)), ROOT),
    "fsolve": (lambda k: OPTIMIZE.fsolve(lambda x, k: of_root(x[0], k), [1.0], args=(k,))[0], ROOT),
    "quad": (lambda k: INTEGRATE.quad(probe, 0, 1, args=(k,))[0], INTEGRAL),
    "quad_vec": (lambda k: INTEGRATE.quad_vec(lambda x: probe(x, k), 0, 1)[0], INTEGRAL),
    "nquad": (lambda k: INTEGRATE.nquad(lambda x, y: probe(x, k) + 0.0 * probe(y), [[0, 1], [0, 1]])[0], INTEGRAL),
    "solve_ivp": (
        lambda k: INTEGRATE.solve_ivp(of_time, (0, 1), [1.0], args=(k,), rtol=1e-8, atol=1e-8).y[0, -1], DECAY
    ),
    "events": (
        lambda k: INTEGRATE.solve_ivp(
            lambda t, y: [1.0 + 0.0 * k], (0, 3), [0.0], events=lambda t, y: y[0] - 1.0 - k + 0.0 * probe(t, k)
        ).t_events[0][0],
        ROOT,
    ),
    "odeint": (lambda k: INTEGRATE.odeint(lambda y, t, k: of_time(t, y, k), [1.0], [0, 1.0], args=(k,))[-1, 0], DECAY),
    "vectorize": (lambda k: np.vectorize(probe)(np.arange(3.0), k).sum(), (6.5, 3.0)),
    "copies": (lambda k: probe(copy.deepcopy(k), copy.copy(k)), (2.5, -2.0)),
    "implicit": (lambda k: vg.func.implicit(lambda x, k: of_root(x, k), lambda k: 1.0 + k)(k), ROOT),
    "checkpoint": (lambda k: vg.checkpoint(probe)(k, k), (2.5, -2.0)),
    "functionalize": (lambda k: vg.func.functionalize(probe)(k, k), (2.5, -2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_functions_that_call_functions(name):
    function, (value, slope) = SEARCHES[name]
    found, gradient = vg.value_and_grad(function)(0.5)
    assert found == pytest.approx(value, rel=1e-5)
    assert gradient == pytest.approx(slope, rel=1e-4)


ARRAYS = np.array([1.0, 3.0]), np.array([0.5, 0.5])
TRANSFORMS = {
    "value_and_grad": (lambda f: vg.value_and_grad(f)(1.0, 0.5), (1.5, -1.5)),
    "of the first of two": (lambda f: vg.value_and_grad(f, argnums=0)(1.0, 0.5)[0], 1.5),
    "of a keyword": (lambda f: vg.value_and_grad(f)(1.0, k=0.5), (1.5, -1.5)),
    "of tensors": (lambda f: vg.value_and_grad(f, adopt=False)(1.0, 0.5), (1.5, -1.5)),
    "jvp": (lambda f: vg.jvp(f, (1.0, 0.5), (1.0, 1.0)), (1.5, -0.5)),
    "vjp": (lambda f: vg.vjp(f, 1.0, 0.5)[0], 1.5),
    "linearize": (lambda f: vg.func.linearize(f, 1.0, 0.5)[0], 1.5),
    "jacrev": (lambda f: vg.jacrev(f, argnums=(0, 1))(1.0, 0.5), (-1.5, 1.0)),
    "jacfwd": (lambda f: vg.jacfwd(f, argnums=(0, 1))(1.0, 0.5), (-1.5, 1.0)),
    "hessian": (lambda f: vg.hessian(f)(1.0, 0.5), 2.0),
    "hvp": (lambda f: vg.hvp(f, (1.0, 0.5), (1.0, 1.0))[0], 1.5),
    "vmap": (lambda f: vg.vmap(f)(*ARRAYS), [1.5, 2.5]),
    "vmap over one": (lambda f: vg.vmap(f, in_axes=(0, None))(ARRAYS[0], 0.5), [1.5, 2.5]),
    "vmap of grad": (lambda f: vg.vmap(vg.grad(f))(*ARRAYS), [-1.5, 2.5]),
    "grad of checkpoint": (lambda f: vg.grad(vg.checkpoint(f))(1.0, 0.5), -1.5),
    "grad of functionalize": (lambda f: vg.grad(vg.func.functionalize(f))(1.0, 0.5), -1.5),
    "grad of grad": (lambda f: vg.grad(vg.grad(f))(1.0, 0.5), 2.0),
}


@pytest.mark.parametrize("tier", ["eager", "source", "trace"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, tier):
    transform, expected = TRANSFORMS[name]
    function = probe if tier == "eager" else vg.compile(probe, executor="python", specialize=tier == "trace")
    if "checkpoint" in name and tier != "eager":
        pytest.skip("a checkpoint raises if the function is compiled between its two runs")
    for _ in range(2):
        found = transform(function)
        for one, other in zip(np.ravel(found), np.ravel(expected), strict=True):
            assert one == pytest.approx(other)


@pytest.mark.parametrize("specialize", [False, True])
def test_batches_of_compiled_functions(specialize):
    function = vg.compile(probe, batch=(0, 1), executor="python", specialize=specialize)
    for _ in range(3):
        assert function(*ARRAYS).tolist() == [1.5, 2.5]
