"""`numpy.polynomial` on tensors: derivatives with respect to coefficients that are zero, which NumPy trims."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError

X = np.array([0.3, -0.7, 1.2])
KINDS = [Polynomial, Chebyshev, Legendre, Hermite, HermiteE, Laguerre]
PROGRAMS = {
    "product": lambda kind, c, d: (kind(c) * kind(d))(X),
    "sums": lambda kind, c, d: (kind(c) + kind(d) * kind(c) - kind(d) ** 2)(X),
    "composition": lambda kind, c, d: kind(c)(kind(d))(X),
    "roots": lambda kind, c, d: kind.fromroots(c)(X) * d[0],
    "difference with itself": lambda kind, c, d: (kind(c) - kind(c))(X) + kind(d)(X),
    "conversion": lambda kind, c, d: kind(c).convert(kind=Polynomial)(X) * d[0],
    "derivative of a product": lambda kind, c, d: (kind(c) * kind(d)).deriv()(X),
    "quotient": lambda kind, c, d: (kind(c) // kind(d + np.array([0.0, 3.0])))(X),
    "remainder": lambda kind, c, d: (kind(c) % kind(d + np.array([0.0, 3.0])))(X),
}
COEFFICIENTS = [np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_with_respect_to_zeros(name, kind):
    for c in COEFFICIENTS:
        for d in (np.zeros(2), np.array([1.0, 0.0]), np.array([0.5, 2.0])):
            for number, at in enumerate((c, d)):

                def along(step, number=number, c=c, d=d):
                    moved = (c + step, d) if number == 0 else (c, d + step)
                    return PROGRAMS[name](kind, *moved)

                h = 1e-4
                columns = [
                    (8 * (along(h * e) - along(-h * e)) - (along(2 * h * e) - along(-2 * h * e))) / (12 * h)
                    for e in np.eye(at.size)
                ]
                for transform in (vg.func.jacrev, vg.func.jacfwd):
                    found = transform(lambda c, d: PROGRAMS[name](kind, c, d), argnums=number)(c, d)
                    np.testing.assert_allclose(found, np.stack(columns, -1), rtol=1e-5, atol=1e-6)


def test_zeros_without_a_history_are_trimmed_as_in_numpy():
    import viewgrad.numpy as vnp

    product = vnp.polynomial.polynomial.polymul(vg.Tensor([1.0, 0.0]), vg.Tensor([1.0, 1.0, 0.0]))
    assert product.shape == (2,)
    roots = vnp.polynomial.polynomial.polyroots(vg.Tensor([2.0, 1.0, 0.0], requires_grad=True))
    assert roots.tolist() == [-2.0]
    with pytest.raises(ZeroDivisionError):
        vnp.polynomial.polynomial.polydiv([1.0, 2.0], vg.zeros(2, requires_grad=True))


P = np.polynomial
FITTED = np.array([0.3, 1.2, 0.7, 0.9])
# Plain programs with polynomials as objects.
OBJECTS = {
    "fit and convert": lambda x: P.Polynomial.fit(np.arange(4.0), FITTED * x * x, 2).convert().coef.sum(),
    "convert to another basis": lambda x: P.Chebyshev.fit(
        np.arange(4.0), FITTED * x * x, 2
    ).convert(kind=P.Polynomial)(x),
    "fit by weights": lambda x: P.Polynomial.fit(
        np.array([0.0, 1.0, 2 * x, 3.0]), FITTED, 1, w=np.array([1.0, x, 1.0, 1.0])
    ).convert().coef[1],
    "of a polynomial": lambda x: P.Polynomial([x, 1.0], domain=[0, x])(P.Polynomial([x, 1.0])).coef.sum(),
    "polyder": lambda x: np.polyder(np.poly1d([x, 1.0, 2.0]))(2.0) + np.polyint(np.poly1d([x, 1.0]))(1.0),
    "polyval": lambda x: np.polyval(np.poly1d([x, 1.0]), x) + np.polyval(
        np.poly1d([x, 1.0]), np.poly1d([1.0, x])
    )(2.0),
    "roots": lambda x: np.roots(np.poly1d([1.0, -5.0, x])).max(),
    "products": lambda x: np.polymul(np.poly1d([x, 1.0]), np.poly1d([x, 2.0]))(2.0) + np.polydiv(
        np.poly1d([x, 1.0, 3.0]), np.poly1d([x, 1.0])
    )[1](2.0),
    "sums": lambda x: np.polyadd(np.poly1d([1.0, x]), [1, 2.0])(3.0) + np.polysub(
        np.poly1d([x, 2.0]), np.poly1d([1.0, x, x])
    )(3.0),
    "items": lambda x: _with_items(np.poly1d([x, 1.0, 2.0]), x)(2.0),
}  # fmt: skip


def _with_items(p, x):
    p[0], p[4], p[2] = x * x, 3 * x, p[1] * x
    p.coeffs *= x
    return p


@pytest.mark.parametrize("name", OBJECTS)
def test_programs_with_polynomials_as_objects(name):
    f, x, h = OBJECTS[name], 1.3, 1e-5
    value, slope = vg.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-12)
    assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-7, abs=1e-9)


def test_polyval_takes_polynomials_of_numpy():
    def f(x):
        p = np.poly1d([1.0, -2.0, 0.5])
        return np.polyval(p, x) * np.polyval(np.polyder(p), x)

    x = np.array([0.3, -1.2])
    found = vg.grad(lambda x: f(x).sum(), adopt=False)(x)
    np.testing.assert_allclose(found, (2 * x - 2) ** 2 + 2 * (x * x - 2 * x + 0.5))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("p", [[2.0, 0.0], [1.0, -1.0, 0.0], [1.5, -0.3, -4.0, 0.0], [1.0, 0.2, 2.0, 0.4, 0.0]])
def test_roots_depend_on_a_zero_constant_coefficient(p, dtype):
    p, rng = np.array(p, dtype), np.random.default_rng(0)
    t = vg.Tensor(p, requires_grad=True)
    found, expected = np.roots(t), np.roots(p)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    weights, step = rng.normal(size=len(p) - 1) + 1j * rng.normal(size=len(p) - 1), 1e-6 * rng.normal(size=len(p))
    slope = vg.autograd.grad((found * weights).real.sum(), t)[0].numpy()
    tangent = vg.func.jvp(lambda t: (np.roots(t) * weights).real.sum(), (p,), (step,))[1]

    def weighed(q):
        moved = np.roots(q)
        return sum((w * moved[np.argmin(np.abs(moved - root))]).real for w, root in zip(weights, expected))

    difference = (weighed(p + step) - weighed(p - step)) / 2
    np.testing.assert_allclose((np.conj(slope) * step).sum().real, difference, rtol=1e-5)
    np.testing.assert_allclose(tangent, difference, rtol=1e-5)


FAMILIES = {
    "polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "hermite": "herm", "hermite_e": "herme",
    "laguerre": "lag",
}  # fmt: skip


def near(roots, wanted):
    return np.array([int(np.argmin(np.abs(roots - root))) for root in wanted])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("leading", [0, 1, 2])
def test_roots_depend_on_zero_leading_coefficients(family, leading):
    import viewgrad.numpy as vnp

    name = f"{FAMILIES[family]}roots"
    ours, numpys = (getattr(getattr(kinds, family), name) for kinds in (vnp.polynomial, np.polynomial))
    p = np.append([0.7, -1.2, 0.4, 1.1], np.zeros(leading))
    wanted = numpys(p)
    weights = np.exp(1j * np.arange(3.0))

    def loss(c):
        found = ours(c)
        chosen = found[near(numpys(vg.asarray(c).detach().numpy()), wanted)]
        return (chosen * chosen * weights).real.sum()

    slope = vg.func.grad(loss, adopt=False)
    hessian = vg.func.hessian(loss, adopt=False)(p)
    h = 1e-7
    for i, step in enumerate(h * np.eye(len(p))):
        assert slope(p)[i] == pytest.approx(
            (loss(p + step).item() - loss(p - step).item()) / (2 * h), rel=1e-5, abs=1e-6
        )
        np.testing.assert_allclose(hessian[i], (slope(p + step) - slope(p - step)) / (2 * h), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", [[1.0, -3.0, 0.0, 0.0], [0.0, 2.0, 1.0, 0.0, 0.0, 0.0]])
def test_simple_roots_have_gradients_beside_a_multiple_root_at_zero(p):
    p, h = np.array(p), 1e-6
    (wanted,) = np.roots(p)[np.roots(p) != 0]
    slope = vg.grad(lambda c: np.roots(c)[0].real)(p)
    moved = [
        [(r := np.roots(p + sign * step))[near(r, [wanted])[0]].real for sign in (1, -1)] for step in h * np.eye(len(p))
    ]
    np.testing.assert_allclose(slope, [(a - b) / (2 * h) for a, b in moved], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [[1.0, -3.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, -2.0, 1.0], [1.0, 2.0, 0.0, 0.0, 0.0]])
def test_multiple_roots_have_no_derivative(p):
    x = vg.Tensor(p, requires_grad=True)
    with pytest.raises(DifferentiabilityError, match="multiple root"):
        vg.autograd.grad(np.roots(x).real.sum(), x)
    with pytest.raises(DifferentiabilityError, match="multiple root"):
        vg.func.jvp(lambda x: np.roots(x).real, (np.array(p),), (np.ones(len(p)),))


def test_sums_over_clusters_of_roots_have_the_derivatives_of_the_coefficients():
    p = np.poly([2.0, 1.0, 1.0])  # rounding splits the double root in two
    assert np.abs(np.diff(np.sort_complex(np.roots(p))))[0] < 1e-6
    slope = vg.grad(lambda c: np.roots(c).real.sum())(p)
    np.testing.assert_allclose(slope, [-4.0, -1.0, 0.0, 0.0], rtol=1e-7, atol=1e-6)
