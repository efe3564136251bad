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
        lambda g: jax.jit(jax.hessian(g, argnums=(0, 1))),
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


def test_forward_mode_loops_and_checkpoints():
    f, loss = jax_function(recurrence), lambda f: lambda x, a: (f(x, a) ** 2).sum()
    scanned = lambda f: lambda a: jax.lax.scan(lambda c, x: (f(x, c)[1:].mean(), c), a, X)[0]
    looped = lambda f: lambda a: jax.lax.fori_loop(0, 2, lambda n, c: f(jnp.asarray(X)[n], c)[1:].mean(), a)
    for transform in (
        lambda f: jax.jvp(f, (X[0], 0.3), (X[1], 2.0)),
        lambda f: jax.linearize(f, X[0], 0.3)[1](X[1], 2.0),
        lambda f: jax.jacfwd(jax.jacfwd(loss(f)))(X[0], 0.3),
        lambda f: jax.jacrev(jax.jacfwd(loss(f)))(X[0], 0.3),
        lambda f: jax.grad(lambda x: jax.jvp(loss(f), (x, 0.3), (x, 2.0))[1])(X[0]),
        lambda f: jax.jvp(lambda x, a: jax.vmap(f, (0, None))(x, a), (X, 0.3), (X, 2.0)),
        lambda f: jax.vmap(lambda x, v: jax.jvp(f, (x, 0.3), (v, 2.0)))(X, X + 1.0),
        lambda f: jax.jit(jax.hessian(scanned(f)))(0.3),
        lambda f: jax.jvp(looped(f), (0.3,), (1.0,)),
        lambda f: jax.jit(jax.grad(jax.checkpoint(loss(f)), (0, 1)))(X[0], 0.3),
        lambda f: jax.vmap(scanned(f))(A),
        lambda f: jax.vmap(f, (0, None))(X[:0], 0.3),
    ):
        found, expected = transform(f), transform(in_jax)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), found, expected)


def test_a_batch_of_a_compiled_function_is_computed_by_its_program(monkeypatch):
    compiled = vg.compile(lambda x, a: (x[1:] * x[:-1]).sum() * a, executor="python")
    f, counts = jax_function(compiled), []
    batched = type(compiled).__viewgrad_batched__
    monkeypatch.setattr(type(compiled), "__viewgrad_batched__", lambda *args: counts.append(args[-1]) or batched(*args))
    found = jax.vmap(jax.grad(f), (0, None))(X, 0.3)
    assert set(counts) == {len(X)}
    np.testing.assert_allclose(found[1], jax.grad(f)(X[1], 0.3))


def test_captured_tensors_raise():
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


# -- complex numbers, integers -----------------------------------------------------------------------------------------

Z = np.array([0.3 + 0.2j, -1.0 + 0.5j])
COMPLEX = [
    (lambda z: np.exp(z) * z, lambda z: jnp.exp(z) * z),
    (lambda z: np.conj(z) * z * z, lambda z: jnp.conj(z) * z * z),
    (lambda z: np.abs(z) ** 2 + 0j, lambda z: jnp.abs(z) ** 2 + 0j),
]


@pytest.mark.parametrize(("f", "g"), COMPLEX)
def test_gradients_with_respect_to_complex_numbers_match_jax(f, g):
    def first(function):
        return jax.grad(lambda z: jnp.real(function(z) * (1 - 2j)).sum())

    def second(function):
        return jax.grad(lambda z: jnp.abs(first(function)(z) * (2 + 1j)).sum())

    for transform in (first, second):
        np.testing.assert_allclose(transform(jax_function(f))(Z), transform(g)(Z), rtol=1e-12)
        np.testing.assert_allclose(jax.vmap(transform(jax_function(f)))(Z[:, None]), jax.vmap(transform(g))(Z[:, None]))
    real = jnp.array([0.5, 2.0])
    expected = jax.grad(lambda x: jnp.abs(g(x * (1 + 2j))).sum())(real)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.abs(jax_function(f)(x * (1 + 2j))).sum())(real), expected)


@pytest.mark.parametrize(("f", "g"), COMPLEX)
def test_gradients_of_complex_jax_functions_follow_viewgrads_convention(f, g):
    def loss(function):
        return lambda z: (function(z) * (1 - 2j)).sum().real

    z = vg.Tensor(Z, requires_grad=True)
    found, expected = (vg.autograd.grad(loss(each)(z), z, create_graph=True)[0] for each in (from_jax(g), f))
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-12)
    second = [vg.autograd.grad((each * (2 + 1j)).sum().imag, z, retain_graph=True)[0] for each in (found, expected)]
    np.testing.assert_allclose(*second, rtol=1e-12, atol=1e-12)
    tangents = [func.jvp(loss(each), (vg.Tensor(Z),), (vg.Tensor(Z * 1j),))[1] for each in (from_jax(g), f)]
    np.testing.assert_allclose(*tangents, rtol=1e-12)


def test_holomorphic_functions():
    f, g = COMPLEX[0]
    found = jax.grad(lambda z: jax_function(f)(z).sum(), holomorphic=True)(Z)
    np.testing.assert_allclose(found, jax.grad(lambda z: g(z).sum(), holomorphic=True)(Z))


def test_integer_arguments_and_results_have_derivatives_in_forward_mode():
    picked = from_jax(lambda x, places: (x[places] ** 3, jnp.argmax(x)))
    x, places = vg.Tensor([1.0, 2.0, 3.0]), np.array([2, 0])
    (_, greatest), (tangent, none) = func.jvp(lambda x: picked(x, places), (x,), (vg.ones(3),))
    np.testing.assert_allclose(tangent, [27.0, 3.0])
    assert greatest == 2 and none == 0
    np.testing.assert_allclose(func.hessian(lambda x: picked(x, places)[0].sum())(x), np.diag([6.0, 0.0, 18.0]))
