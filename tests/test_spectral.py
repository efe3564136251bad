"""Functions of matrices at degenerate spectra, against the exponential's own operator and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func, linalg
from viewgrad.autograd import gradcheck, gradgradcheck
from viewgrad.errors import DifferentiabilityError

RNG = np.random.default_rng(0)


def hermitian(spectrum, is_complex=False):
    """Return a matrix with these eigenvalues."""
    n = len(spectrum)
    q = np.linalg.qr(RNG.normal(size=(n, n)) + (1j * RNG.normal(size=(n, n)) if is_complex else 0))[0]
    return (q * np.array(spectrum)) @ q.T.conj()


SPECTRA = {
    "distinct": [0.3, 1.0, 2.0],
    "two equal": [1.0, 1.0, 2.0],
    "all equal": [1.5, 1.5, 1.5],
    "nearly equal": [1.0, 1.0 + 1e-9, 1.0 - 3e-7],
    "close": [1.0, 1.003, 1.3],
}


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("name", SPECTRA)
def test_the_exponential(name, is_complex):
    """All second derivatives are those of `matrix_exp`, which computes without eigenvalues."""
    a, e = hermitian(SPECTRA[name], is_complex), RNG.normal(size=(3, 3)) + (1j if is_complex else 0)
    a = vg.Tensor(a, requires_grad=True)
    symmetric = lambda a: (a + a.mT.conj()) / 2
    results = []
    for exp in (lambda a: linalg.spectral_function(a, vg.exp), lambda a: linalg.matrix_exp(symmetric(a))):
        y = exp(a)
        (first,) = vg.autograd.grad((y * e).real.sum() if is_complex else (y * e).sum(), a, create_graph=True)
        (second,) = vg.autograd.grad((first * first.conj()).real.sum(), a)
        slope = lambda a, exp=exp: func.jvp(exp, (a,), (vg.Tensor(e),))[1]
        forward = func.jvp(slope, (a.detach(),), (vg.Tensor(e) * 2,))
        results.append([y, first, second, *forward])
    for found, expected in zip(*results):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "f", [vg.log, vg.sqrt, lambda w: 1 / (1 + vg.exp(-w)), lambda w: w**3], ids=["log", "sqrt", "sigmoid", "cube"]
)
@pytest.mark.parametrize("name", ["distinct", "two equal", "all equal"])
def test_gradcheck(f, name):
    a = vg.Tensor(hermitian(SPECTRA[name]), requires_grad=True)
    assert gradcheck(lambda a: linalg.spectral_function(a, f), (a,))
    assert gradgradcheck(lambda a: linalg.spectral_function(a, f), (a,))


def test_functions_of_widely_spread_eigenvalues():
    """Some eigenvalues are close relative to the largest one but not to each other, so the integral form must not be
    used.
    """
    a = vg.Tensor(np.diag([1e-6, 3e-6, 1.0, 1000.0]))
    slopes = func.jacrev(lambda a: linalg.spectral_function(a, vg.log)[0, 1])(a)
    assert slopes[0, 1] + slopes[1, 0] == pytest.approx(np.log(3.0) / 2e-6, rel=1e-9)
    kink = func.jacrev(lambda a: linalg.spectral_function(a, vg.abs)[0, 1])(vg.Tensor(np.diag([1e-4, -3e-4, 1.0])))
    assert kink[0, 1] + kink[1, 0] == pytest.approx((1e-4 - 3e-4) / 4e-4, rel=1e-9)


def test_projectors():
    a = vg.Tensor(hermitian([1.0, 1.0, 3.0, 3.0]), requires_grad=True)
    project = lambda a: linalg.spectral_projector(a, 2.0, 4.0)
    p = project(a).detach().numpy()
    np.testing.assert_allclose(p @ p, p, atol=1e-12)
    assert np.trace(p) == pytest.approx(2.0)
    assert gradcheck(project, (a,)) and gradgradcheck(project, (a,))
    u, v = (vg.Tensor(RNG.normal(size=n), requires_grad=True) for n in (2, 4))
    null = lambda u, v: linalg.null_projector(u[:, None] * v)
    assert gradcheck(null, (u, v)) and gradgradcheck(null, (u, v))
    assert np.trace(null(u, v).detach().numpy()) == pytest.approx(3.0)


def test_batches_and_dtypes():
    a = np.stack([hermitian(SPECTRA["distinct"]), hermitian(SPECTRA["two equal"])])
    found = linalg.spectral_function(vg.Tensor(a), vg.sqrt).numpy()
    np.testing.assert_allclose(found @ found, a, atol=1e-12)
    gradient = func.grad(lambda a: linalg.spectral_function(a, vg.exp).sum())
    for each, matrix in zip(gradient(vg.Tensor(a)), a):
        np.testing.assert_allclose(each.numpy(), gradient(vg.Tensor(matrix)).numpy(), rtol=1e-10)
    assert linalg.spectral_function(vg.Tensor(a, dtype="float32"), vg.exp).dtype == np.float32


def test_a_third_derivative_is_refused():
    third = func.grad(func.grad(func.grad(lambda t: linalg.spectral_function(t * np.eye(2), vg.exp).sum())))
    with pytest.raises(DifferentiabilityError, match="third"):
        third(1.0)


def test_refusals_suggest_alternatives():
    a = vg.Tensor(np.diag([1.0, 1.0, 2.0]), requires_grad=True)
    with pytest.raises(DifferentiabilityError, match=r"viewgrad\.linalg\.spectral_function"):
        (linalg.eigh(a)[1] ** 2)[0].sum().backward()
    b = vg.Tensor(np.ones((2, 4)) + np.eye(2, 4), requires_grad=True)  # two vectors span the null space
    with pytest.raises(DifferentiabilityError, match=r"viewgrad\.linalg\.null_projector"):
        np.linalg.svd(b)[2][2].sum().backward()


def test_cholesky_ex():
    good, bad = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])
    a = vg.Tensor(np.stack([good, bad, -good]), requires_grad=True)
    factor, info = linalg.cholesky_ex(a)
    assert info.numpy().tolist() == [0, 2, 1]
    np.testing.assert_allclose(factor[0].detach().numpy(), np.linalg.cholesky(good))
    assert np.isnan(factor[1:].detach().numpy()).all()
    vg.where(info[:, None, None] == 0, factor, 0.0).sum().backward()
    expected = func.grad(lambda a: np.linalg.cholesky(a).sum())(vg.Tensor(good))
    np.testing.assert_allclose(a.grad[0].numpy(), expected.numpy())
    assert not a.grad[1:].numpy().any()
    upper, info = linalg.cholesky_ex(good, upper=True)
    np.testing.assert_allclose(upper.numpy(), np.linalg.cholesky(good).T)
    assert not info


def test_jitter_in_a_compiled_function():
    """The number of attempts depends on values, so each call makes its own."""
    def log_determinant(a):
        jitter = 0.0
        while True:
            factor, info = linalg.cholesky_ex(a + jitter * np.eye(2))
            if info == 0:
                return 2 * vg.log(factor.diagonal()).sum()
            jitter = 10 * jitter + 0.5

    compiled = vg.compile(log_determinant, executor="python")
    for scale in (1.0, 1.0, 1.0, -1.0, 1.0, -1.0):
        a = vg.Tensor(scale * np.array([[1.0, 0.2], [0.2, 1.0]]), requires_grad=True)
        for found, expected in zip(func.value_and_grad(compiled)(a), func.value_and_grad(log_determinant)(a)):
            np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 3), (4, 3), (2, 2, 3)])
def test_tangents_of_the_one_vector_that_full_matrices_adds(shape):
    rng = np.random.default_rng(5)
    a, direction = rng.standard_normal(shape), rng.standard_normal(shape)

    def f(a):
        u, s, vh = np.linalg.svd(a)
        return sum((part * np.cos(np.arange(part.size).reshape(part.shape))).sum() for part in (u, s * s, vh))

    expected = (f(a + 1e-6 * direction) - f(a - 1e-6 * direction)) / 2e-6
    assert vg.func.jvp(f, (a,), (direction,))[1] == pytest.approx(expected, rel=1e-6)


def test_several_added_vectors_have_no_tangents():
    with pytest.raises(vg.errors.DifferentiabilityError, match="null_projector"):
        vg.func.jvp(lambda a: np.linalg.svd(a)[2].sum(), (np.ones((1, 3)),), (np.ones((1, 3)),))
