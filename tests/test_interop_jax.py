"""viewgrad functions in JAX programs, and JAX functions in viewgrad programs."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import viewgrad as vg  # noqa: E402
from viewgrad import func  # noqa: E402
from viewgrad.autograd import gradcheck, gradgradcheck  # noqa: E402
from viewgrad.errors import InteropError  # noqa: E402
from viewgrad.interop import from_jax, jax_function  # noqa: E402

jnp = jax.numpy


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def recurrence(x, a):
    out = vg.ones(len(x) + 1, dtype=x.dtype)
    for i in range(len(x)):
        out[i + 1] = out[i] * x[i] + a
    return out


def in_jax(x, a):
    out = [jnp.ones((), x.dtype)]
    for i in range(len(x)):
        out.append(out[i] * x[i] + a)
    return jnp.stack(out)


X, A = np.random.default_rng(0).normal(size=(6, 3)), np.linspace(0.1, 1, 6)


@pytest.mark.parametrize("compiled", [False, True])
def test_jit_vmap_and_grad(compiled):
    f = jax_function(vg.compile(recurrence, executor="python") if compiled else recurrence)
    loss = lambda f: lambda x, a: (f(x, a) ** 2).sum()
    for transform in (
        lambda g: g,
        lambda g: jax.jit(jax.value_and_grad(g, argnums=(0, 1))),
        lambda g: jax.grad(lambda x, a: jax.grad(g)(x, a).sum()),
        lambda g: jax.jacrev(jax.grad(g)),
    ):
        found, expected = transform(loss(f))(X[0], A[0]), transform(loss(in_jax))(X[0], A[0])
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), found, expected)
        for axes, args in (((0, 0), (X, A)), ((0, None), (X, A[0])), ((None, 0), (X[0], A))):
            for outer in (lambda g: g, jax.jit):
                found = outer(jax.vmap(transform(loss(f)), axes))(*args)
                expected = jax.vmap(transform(loss(in_jax)), axes)(*args)
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), found, expected)


def test_nested_vmap_and_per_example_gradients():
    f = jax_function(recurrence)
    loss = lambda f: lambda x, a: (f(x, a) ** 2).sum()
    nested = lambda f: jax.vmap(jax.vmap(jax.grad(loss(f)), (None, 0)), (0, None))(X, A)
    np.testing.assert_allclose(nested(f), nested(in_jax), rtol=1e-10)
    total = lambda f: jax.grad(lambda a: jax.vmap(loss(f), (0, None))(X, a).sum())(0.3)
    np.testing.assert_allclose(total(f), total(in_jax), rtol=1e-10)
    scanned = lambda f: jax.lax.scan(lambda c, x: (c + f(x, c).sum(), c), 0.1, X)[0]
    np.testing.assert_allclose(scanned(f), scanned(in_jax), rtol=1e-10)


def test_single_precision():
    with jax.enable_x64(False):
        f = jax_function(lambda x: vg.exp(x) * np.float64(2.0))
        g = jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.ones(3))
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, 2 * np.exp(1.0) * np.ones(3), rtol=1e-6)


def test_trees_integers_and_shapes():
    def f(p, n, *, scale):
        return {"y": p["w"] * scale, "order": vg.argsort(p["w"]), "n": p["k"] * n}

    call = jax_function(f)
    p = {"w": jnp.array([2.0, 1.0]), "k": jnp.array([3, 4])}
    found = call(p, 2, scale=5.0)
    assert found["order"].tolist() == [1, 0] and found["n"].tolist() == [6, 8]
    gradient = jax.grad(lambda p: call(p, 2, scale=5.0)["y"].sum(), allow_int=True)(p)
    assert gradient["w"].tolist() == [5.0, 5.0] and gradient["k"].dtype == jax.dtypes.float0
    half = jax_function(lambda x: x[: len(x) // 2] * 1.0, lambda x: jax.ShapeDtypeStruct((x.shape[0] // 2,), x.dtype))
    assert jax.jit(half)(jnp.ones(5)).shape == (2,)
    wrong = jax_function(lambda x: x * 1.0, jax.ShapeDtypeStruct((4,), np.float64))
    with pytest.raises(Exception, match="shape"):
        wrong(jnp.ones(5)).block_until_ready()


captured = vg.Tensor(2.0, requires_grad=True)


def test_errors():
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(jax_function(lambda x: x * 1.0), (1.0,), (1.0,))
    with pytest.raises(Exception, match="captures"):
        jax.grad(jax_function(lambda x: x * captured))(1.0).block_until_ready()


# -- the other way round -----------------------------------------------------------------------------------------------


def test_a_jax_function_as_an_operator():
    f = from_jax(jax.jit(lambda x, a: jax.scipy.special.erf(x * a) * x[::-1]))
    own = lambda x, a: vg.erf(x * a) * x[::-1]
    x, a = vg.Tensor([0.3, -0.5, 1.2], requires_grad=True), vg.Tensor(0.7, requires_grad=True)
    assert gradcheck(f, (x, a)) and gradgradcheck(f, (x, a))
    third = lambda g: func.grad(func.grad(func.grad(lambda c, a: g(x.detach() * c, a).sum())))
    hessian = lambda g: func.hessian(lambda x, a: g(x, a).sum())
    points = [(func.jacrev, x.detach()), (func.jacfwd, x.detach()), (hessian, x.detach()), (third, vg.Tensor(0.4))]
    for transform, point in points:
        found, expected = transform(f)(point, a.detach()), transform(own)(point, a.detach())
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8)


def test_trees_and_integers():
    f = from_jax(lambda p, n: {"top": jax.lax.top_k(p["x"], n)})
    p = {"x": vg.Tensor([1.0, 5.0, 3.0], requires_grad=True)}
    values, order = f(p, 2)["top"]
    assert order.numpy().tolist() == [1, 2]
    assert vg.autograd.grad((values * vg.Tensor([1.0, 2.0])).sum(), p["x"])[0].numpy().tolist() == [0.0, 1.0, 2.0]


def test_single_precision_of_jax_is_an_error():
    with jax.enable_x64(False), pytest.raises(InteropError, match="jax_enable_x64"):
        from_jax(jnp.sin)(vg.Tensor(1.0))
    with jax.enable_x64(False):
        assert func.grad(from_jax(jnp.sin))(vg.Tensor(np.float32(0.0))).item() == 1.0
