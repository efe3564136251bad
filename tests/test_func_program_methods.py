"""Functions that share the attributes of a compiled function or of its gradient, but compute something else."""

import functools

import numpy as np
import pytest

import viewgrad as vg


def cubes(x):
    return (x**3).sum()


def by_decorator(g):
    @functools.wraps(g)
    def twice(x):
        return 2.0 * g(x)

    return twice


def by_partial(g):
    return functools.update_wrapper(functools.partial(lambda factor, x: factor * g(x), 2.0), g)


class Updated:
    def __init__(self, g):
        functools.update_wrapper(self, g)
        self.g = g

    def __call__(self, x):
        return 2.0 * self.g(x)


class Forwarding:
    def __init__(self, g):
        self.g = g

    def __call__(self, x):
        return 2.0 * self.g(x)

    def __getattr__(self, name):
        if name == "g":
            raise AttributeError(name)
        return getattr(self.g, name)


POINT, ALONG = np.array([1.0, 2.0]), np.array([0.5, 3.0])
BATCH = np.stack([POINT, POINT + 1.0])
TRANSFORMS = {
    "jvp": lambda f: vg.jvp(f, (POINT,), (ALONG,))[1],
    "vjp": lambda f: vg.vjp(f, POINT)[0],
    "jacrev": lambda f: vg.jacrev(f)(POINT),
    "jacfwd": lambda f: vg.jacfwd(f)(POINT),
    "vmap": lambda f: vg.func.vmap(f)(BATCH),
}
SCALAR = {
    "grad": lambda f: vg.grad(f)(POINT),
    "value_and_grad": lambda f: vg.value_and_grad(f)(POINT)[1],
    "hessian": lambda f: vg.hessian(f)(POINT),
    "hvp": lambda f: vg.hvp(f, (POINT,), (ALONG,))[1],
    "minimize": lambda f: vg.scipy.optimize.minimize(lambda x: f(x - 1.0), POINT, options={"maxiter": 1}).fun,
}
FUNCTIONS = {"compiled": lambda c: c, "grad": vg.grad, "jacrev": vg.jacrev}


@pytest.mark.parametrize("made", [by_decorator, by_partial, Updated, Forwarding])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_are_not_those_of_functions_with_copied_attributes(name, made):
    g = FUNCTIONS[name](vg.compile(cubes, executor="python"))
    g(POINT)  # so that a program is ready
    for transform in (TRANSFORMS | SCALAR if name == "compiled" else TRANSFORMS).values():
        np.testing.assert_allclose(transform(made(g)), transform(lambda x: 2.0 * g(x)))


@pytest.mark.parametrize("transform", [vg.grad, vg.value_and_grad, vg.jacrev])
def test_gradients_of_compiled_functions_run_their_programs(transform, monkeypatch):
    calls = []
    jvp = vg.compiler.api.Compiled.__viewgrad_jvp__
    monkeypatch.setattr(vg.compiler.api.Compiled, "__viewgrad_jvp__", lambda *args: calls.append(1) or jvp(*args))
    vg.jvp(transform(vg.compile(cubes, executor="python")), (POINT,), (ALONG,))
    assert calls
