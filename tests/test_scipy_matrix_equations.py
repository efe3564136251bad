"""Equations of Riccati, functions of matrices and bands of `viewgrad.scipy.linalg`."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import linalg as theirs

import viewgrad as vg
from viewgrad.autograd import gradcheck
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError
from viewgrad.scipy import linalg as ours

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(3, 3)) * 0.5, RNG.normal(size=(3, 2))
Q, R = np.diag([1.0, 2.0, 0.5]), np.array([[1.0, 0.2], [0.2, 0.7]])
SYMMETRIC = Q + 0.1
BANDS = np.array([[0.0, 0.3, 0.2, 0.1], [2.0, 2.1, 2.2, 2.3]])


@pytest.mark.parametrize("name", ["solve_discrete_are", "solve_continuous_are"])
def test_riccati(name):
    leaves = [vg.Tensor(each, requires_grad=True) for each in (A, B)]
    found = getattr(ours, name)(*leaves, Q, R)
    np.testing.assert_allclose(found.detach().numpy(), getattr(theirs, name)(A, B, Q, R), rtol=1e-10)
    assert gradcheck(lambda a, b: getattr(ours, name)(a, b, Q, R), leaves)
    weights = vg.Tensor(R, requires_grad=True)
    cross = RNG.normal(size=(3, 2)) * 0.1
    np.testing.assert_allclose(
        getattr(ours, name)(A, B, Q, weights, s=cross).detach().numpy(), getattr(theirs, name)(A, B, Q, R, s=cross)
    )
    assert gradcheck(lambda r: getattr(ours, name)(A, B, Q, r @ r.T, s=cross), weights)


FUNCTIONS = {
    "cosm": (A,), "sinm": (A,), "tanm": (A,), "coshm": (A,), "sinhm": (A,), "tanhm": (A,), "pinvh": (SYMMETRIC,),
    "polar": (A,), "eigvalsh_tridiagonal": (np.array([1.0, 2.0, 4.0]), np.array([0.3, 0.2])),
    "cholesky_banded": (BANDS,), "convolution_matrix": (np.array([1.0, 2.0, 3.0]), 4),
}  # fmt: skip


FORMS = {
    "schur with a pair": lambda m, a: m.schur(a),
    "schur of a symmetric matrix": lambda m, a: m.schur(a @ a.T),
    "hessenberg": lambda m, a: m.hessenberg(a, calc_q=True),
    "hessenberg alone": lambda m, a: (m.hessenberg(a),),
}


@pytest.mark.parametrize("name", FORMS)
def test_orthogonal_reductions(name):
    a = np.array([[0.3, 1.2, -0.4, 0.2], [-0.9, 0.1, 0.5, 0.7], [0.2, 0.4, 1.9, 0.3], [0.6, -0.2, 0.1, -1.4]])[:3, :3]
    for each, other in zip(FORMS[name](ours, vg.Tensor(a)), FORMS[name](theirs, a)):
        np.testing.assert_allclose(each.numpy(), other, rtol=1e-9, atol=1e-12)
    leaf = vg.Tensor(a, requires_grad=True)
    for each, other in zip(FORMS[name](ours, leaf), FORMS[name](theirs, a)):
        np.testing.assert_allclose(each.detach().numpy(), other, rtol=1e-9, atol=1e-12)
    assert gradcheck(lambda a: vg.stack(list(FORMS[name](ours, a))), leaf)


def test_forms_without_a_derivative_are_refused():
    for of in (lambda a: ours.schur(a), lambda a: ours.hessenberg(a)):
        with pytest.raises(DifferentiabilityError):
            of(vg.Tensor(np.eye(3), requires_grad=True))
    with pytest.raises(UnsupportedFunctionError, match="omit output"):
        ours.schur(vg.Tensor(A, requires_grad=True), "complex")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_matrices(name):
    first, *rest = FUNCTIONS[name]
    function = getattr(ours, name)
    found, right = function(vg.Tensor(first), *rest), getattr(theirs, name)(first, *rest)
    for each, other in zip(found, right) if isinstance(found, tuple) else [(found, right)]:
        np.testing.assert_allclose(each.numpy(), other, rtol=1e-9, atol=1e-12)

    def of(x):
        found = function((x + x.T) / 2 if name == "pinvh" else x, *rest)
        return vg.stack(found) if isinstance(found, tuple) else found

    assert gradcheck(of, vg.Tensor(first, requires_grad=True))


def test_bands():
    lower = np.array([[2.0, 2.1, 2.2, 2.3], [0.3, 0.2, 0.1, 0.0]])
    b = np.array([1.0, 2.0, 3.0, 4.0])
    for bands, side in ((BANDS, False), (lower, True)):
        leaf = vg.Tensor(bands, requires_grad=True)
        factor = ours.cholesky_banded(leaf, lower=side)
        np.testing.assert_allclose(factor.detach().numpy(), theirs.cholesky_banded(bands, lower=side))
        right = theirs.cho_solve_banded((theirs.cholesky_banded(bands, lower=side), side), b)
        np.testing.assert_allclose(ours.cho_solve_banded((factor, side), b).detach().numpy(), right)
        assert gradcheck(lambda x, s=side: ours.cho_solve_banded((ours.cholesky_banded(x, lower=s), s), b), leaf)
    values, vectors = ours.eigh_tridiagonal(vg.Tensor([1.0, 2.0, 4.0], requires_grad=True), np.array([0.3, 0.2]))
    np.testing.assert_allclose(values.detach().numpy(), theirs.eigh_tridiagonal([1.0, 2.0, 4.0], [0.3, 0.2])[0])
    assert vectors.requires_grad


SOLVE = sys.modules["viewgrad.scipy.linalg.solve"]


@pytest.mark.parametrize("large", [64, 4])
@pytest.mark.parametrize("below, above", [(1, 1), (2, 1), (0, 2), (1, 0)])
def test_banded_systems(monkeypatch, large, below, above):
    monkeypatch.setattr(SOLVE, "LARGE", large)
    rng, size = np.random.default_rng(3), 6
    bands, b = rng.normal(size=(below + above + 1, size)), rng.normal(size=(size, 2))
    bands[above] += 6.0
    leaves = [vg.Tensor(bands, requires_grad=True), vg.Tensor(b, requires_grad=True)]
    found = ours.solve_banded((below, above), *leaves)
    np.testing.assert_allclose(found.detach().numpy(), theirs.solve_banded((below, above), bands, b), atol=1e-13)
    assert gradcheck(lambda x, y: (ours.solve_banded((below, above), x, y) ** 2).sum(0), leaves)


@pytest.mark.parametrize("large", [64, 4])
@pytest.mark.parametrize("lower", [False, True])
def test_banded_hermitian_systems(monkeypatch, large, lower):
    monkeypatch.setattr(SOLVE, "LARGE", large)
    rng, size = np.random.default_rng(4), 6
    bands = rng.normal(size=(3, size)) + 1j * rng.normal(size=(3, size))
    main = 0 if lower else 2
    bands[main] = bands[main].real + 9.0
    b = rng.normal(size=size) + 1j
    leaves = [vg.Tensor(each, requires_grad=True) for each in (bands, b)]
    found = ours.solveh_banded(*leaves, lower=lower)
    np.testing.assert_allclose(found.detach().numpy(), theirs.solveh_banded(bands, b, lower=lower), atol=1e-13)
    free = np.ones(bands.shape)
    free[main] = 0.0  # the diagonal is real
    assert gradcheck(lambda x, y: ours.solveh_banded(x * free + bands * (1 - free), y, lower=lower), leaves)


def test_banded_systems_take_no_dense_matrix():
    size = 40_000  # its matrix would require 13 GB

    def f(s):
        bands = np.ones((3, size)) * s
        bands[1] = 4.0
        return theirs.solve_banded((1, 1), bands, np.ones(size)).sum()

    expected = (f(0.9 + 1e-6) - f(0.9 - 1e-6)) / 2e-6
    assert vg.grad(f)(0.9) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "select, bounds", [("a", None), ("i", (2, 4)), (2, (0, 0)), ("v", (2.0, 6.0)), ("value", (0, 2))]
)
def test_selected_eigenvalues_of_bands(select, bounds):
    bands = np.array([[3.0, 1.0, 4.0, 1.5, 5.9, 2.6], [0.5, 0.3, 0.2, 0.4, 0.1, 0.0]])
    options = {"select": select, "select_range": bounds}
    leaf = vg.Tensor(bands, requires_grad=True)
    for name, args, leaves in (
        ("eig_banded", (bands, True), (leaf, True)),
        ("eigvals_banded", (bands, True), (leaf, True)),
        ("eigh_tridiagonal", (bands[0], bands[1, :-1]), (leaf[0], leaf[1, :-1])),
        ("eigvalsh_tridiagonal", (bands[0], bands[1, :-1]), (leaf[0], leaf[1, :-1])),
    ):
        found, right = getattr(ours, name)(*leaves, **options), getattr(theirs, name)(*args, **options)
        pairs = zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]
        for each, wanted in pairs:
            np.testing.assert_allclose(each.detach().numpy(), wanted, atol=1e-12)
            assert each.requires_grad
    with pytest.raises(ValueError):
        ours.eigh_tridiagonal(leaf[0], leaf[1, :-1], select="i", select_range=(3, 9))


def test_eigenvectors_have_the_signs_of_scipy():
    rng = np.random.default_rng(8)
    for _ in range(5):
        bands = np.abs(rng.normal(size=(2, 6))) + np.array([[4.0], [0.0]])
        found = ours.eig_banded(vg.Tensor(bands, requires_grad=True), lower=True)[1]
        np.testing.assert_allclose(found.detach().numpy(), theirs.eig_banded(bands, lower=True)[1], atol=1e-9)
        a, b = rng.normal(size=(2, 4, 4))
        a, b = a @ a.T + np.eye(4), b @ b.T + np.eye(4)  # with real eigenvalues
        values, vectors = ours.eig(vg.Tensor(a, requires_grad=True), b)
        right = theirs.eig(a, b)
        np.testing.assert_allclose(values.detach().numpy(), right[0], atol=1e-9)
        np.testing.assert_allclose(vectors.detach().numpy(), right[1], atol=1e-9)
