"""Products of a gradient that a mask has set to zero and a factor that is not finite."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad

pytestmark = pytest.mark.filterwarnings("ignore")
FACTORS = np.array([2.0, np.inf, 3.0, np.nan])
MATRIX = np.arange(16.0).reshape(4, 4)
MATRIX[1], MATRIX[2, 3] = np.nan, np.inf
FINITE = np.where(np.isfinite(FACTORS), FACTORS, 0.0)
Z = np.array([1.0, 2.0, 0.5, 1.5])


def written(m):
    m[~np.isfinite(m)] = 0.0
    return m


def chosen(m):
    return np.where(np.isfinite(m), m, 0.0)


def contracted(z):
    return np.einsum("ij,j->i", MATRIX, z)


# Each masks elements that are not finite; then the same without the mask; and where it is differentiable.
PROGRAMS = {
    "where": (lambda z: chosen(z * FACTORS).sum(), lambda z: (z * FINITE).sum()),
    "assignment": (lambda z: (written(z * FACTORS) ** 2).sum(), lambda z: ((z * FINITE) ** 2).sum()),
    "selection": (lambda z: (z * FACTORS)[np.isfinite(FACTORS)].sum(), lambda z: (z * FINITE).sum()),
    "index array": (lambda z: (z * FACTORS)[np.array([0, 2, 0])].sum(), lambda z: z[0] * 4 + z[2] * 3),
    "nansum": (lambda z: np.nansum(z[[0, 2, 3]] * FACTORS[[0, 2, 3]]), lambda z: (z * FINITE).sum()),
    "overflow": (
        lambda z: chosen(z * np.exp(z * np.array([1.0, 1e4, 1.0, 1.0]))).sum(),
        lambda z: (z * np.exp(z) * np.array([1.0, 0, 1.0, 1.0])).sum(),
    ),
    "later steps": (lambda z: (chosen(np.sin(z) * FACTORS * z + 1) ** 2).sum(),
                    lambda z: ((np.sin(z) * FINITE * z + (FINITE != 0)) ** 2).sum()),
    "matmul": (lambda z: (written(MATRIX @ z) ** 2).sum(), lambda z: ((MATRIX[[0, 3]] @ z) ** 2).sum()),
    "matrices": (
        lambda z: (chosen(MATRIX @ (z[:, None] * np.ones((4, 2)))) ** 2).sum(),
        lambda z: 2 * ((MATRIX[[0, 3]] @ z) ** 2).sum(),
    ),
    "dot": (lambda z: (chosen(np.dot(z, MATRIX.T)) ** 2).sum(), lambda z: ((MATRIX[[0, 3]] @ z) ** 2).sum()),
    "einsum": (lambda z: (chosen(contracted(z)) ** 2).sum(), lambda z: ((MATRIX[[0, 3]] @ z) ** 2).sum()),
    "tensordot": (lambda z: (chosen(np.tensordot(MATRIX, z, 1)) ** 2).sum(),
                  lambda z: ((MATRIX[[0, 3]] @ z) ** 2).sum()),
    "large": (
        lambda z: chosen((z[:, None] * np.ones(2000)) * FACTORS[:, None]).sum(), lambda z: (z * FINITE).sum() * 2000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_masked_elements_send_zero(name):
    masked, finite = PROGRAMS[name]
    expected = vg.grad(finite)(Z)
    np.testing.assert_allclose(vg.grad(masked)(Z), expected)
    np.testing.assert_allclose(vg.grad(vg.func.functionalize(masked))(Z), expected)
    direction = np.array([0.3, -0.5, 0.7, 1.1])
    (slope,) = vg.func.hvp(finite, (Z,), (direction,))[1]
    (found,) = vg.func.vhp(masked, (Z,), (direction,))[1]
    np.testing.assert_allclose(found, slope, atol=1e-12)


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("name", ["where", "assignment", "overflow", "matmul", "nansum"])
def test_compiled_functions_send_zero(name, specialize):
    masked, finite = PROGRAMS[name]
    compiled = vg.compile(masked, executor="python", specialize=specialize)
    for z in (Z, Z, Z * 0.01, Z, Z):
        np.testing.assert_allclose(vg.grad(compiled)(z), vg.grad(finite)(z) if z is Z else vg.grad(masked)(z))
        x = vg.Tensor(z, requires_grad=True)
        np.testing.assert_allclose(grad(compiled(x), x)[0], vg.grad(masked)(z))


def test_passes_without_masks_follow_arithmetic():
    product = (lambda z: (z * FACTORS)[0] + (z * FACTORS)[2])
    for _ in range(2):
        np.testing.assert_array_equal(vg.grad(product)(Z), [2.0, np.nan, 3.0, np.nan])
        vg.grad(PROGRAMS["where"][0])(Z)  # another pass changes nothing


def test_infinite_slopes_of_used_elements_are_kept():
    z = np.array([1.0, 2.0])
    found = vg.grad(lambda z: np.where(z > 0, z * np.array([2.0, np.inf]), z).sum())(z)
    np.testing.assert_array_equal(found, [2.0, np.inf])
    found = vg.grad(lambda z: (np.array([[1.0, np.nan], [np.nan, 1.0]]) @ z)[np.array([0])].sum())(z)
    np.testing.assert_array_equal(found, [1.0, np.nan])


@pytest.mark.parametrize("name", ["abs", "cos", "fabs", "sin", "sinc", "square", "tan", "tanh"])
def test_masked_functions_of_nan_and_infinity_send_zero(name):
    function = getattr(np, name)
    for bad in (np.nan, np.inf, -np.inf):
        z = vg.Tensor([1.0, bad, 0.5], requires_grad=True)
        (slope,) = grad(chosen(function(np.log(z) if bad < 0 else z) + bad).sum() + function(z)[[0, 2]].sum(), z)
        plain = vg.Tensor([1.0, 0.5], requires_grad=True)
        (right,) = grad(function(plain).sum(), plain)
        np.testing.assert_array_equal(slope, [right[0], 0.0, right[1]])
    with_mask = vg.value_and_grad(lambda z: chosen(np.abs(np.log2(z)) ** 0.8).sum())(np.array([-0.5, 0.3]))
    np.testing.assert_allclose(with_mask[1], [0.0, -0.8 * np.log2(1 / 0.3) ** -0.2 / (0.3 * np.log(2))])
