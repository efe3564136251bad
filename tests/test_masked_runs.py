"""Products of a gradient that a mask has set to zero and a factor that is not finite."""

from __future__ import annotations

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.operators.define import OPERATORS

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


# By name: a program that masks nonfinite elements, and an equivalent program without a mask.
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


GAPS = np.array([0.3, np.nan, 0.5, np.inf])
DIFFERENCES = {
    "square": np.square,
    "power": lambda r: r**2,
    "abs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sinc": np.sinc,
    "product": lambda r: r * r,
    "huber": lambda r: np.where(np.abs(r) < 1, r**2, 2 * np.abs(r) - 1),
}
MASKS = {
    "nansum": np.nansum,
    "nanmean": lambda r: np.nanmean(r) * 2.0,
    "where": lambda r: np.where(np.isfinite(GAPS), r, 0.0).sum(),
    "selection": lambda r: r[np.isfinite(GAPS)].sum(),
    "compress": lambda r: np.compress(np.isfinite(GAPS), r).sum(),
    "take": lambda r: np.take(r, [0, 2]).sum(),
    "option where": lambda r: np.sum(r, where=np.isfinite(GAPS)),
    "nan_to_num": lambda r: np.nan_to_num(np.where(GAPS == np.inf, 0.0, r)).sum(),
    "fmax": lambda r: np.fmax(np.where(GAPS == np.inf, 0.0, r), -9.0).sum() + 9.0,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", DIFFERENCES)
def test_residuals_of_missing_data_send_zero(name, mask):
    """A model is compared with data that has gaps: the difference and its slope are not finite there."""

    def loss(p, data=GAPS, reduce=MASKS[mask]):
        return reduce(DIFFERENCES[name](p[0] * np.arange(1.0, len(data) + 1) + p[1] - data))

    def finite(p):
        times = np.array([1.0, 3.0])
        return DIFFERENCES[name](p[0] * times + p[1] - GAPS[[0, 2]]).sum()

    def nan_at_both(p):
        return loss(p, np.where(np.isfinite(GAPS), GAPS, np.nan))

    p = np.array([0.4, 0.2])
    given = nan_at_both if mask in ("nansum", "nanmean") else loss
    np.testing.assert_allclose(vg.grad(given)(p), vg.grad(finite)(p))
    x = vg.Tensor(p, requires_grad=True)
    (first,) = grad(given(x), x, create_graph=True)
    np.testing.assert_allclose(grad(first[0], x, allow_unused=True)[0], vg.hessian(finite)(p)[0])


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("name", ["square", "abs", "sin"])
def test_compiled_residuals_of_missing_data_send_zero(name, specialize):
    data = np.array([0.3, np.nan, 0.5, np.nan])

    def loss(p):
        return np.nansum(DIFFERENCES[name](p[0] * np.arange(1.0, 5.0) + p[1] - data))

    compiled = vg.compile(loss, executor="python", specialize=specialize)
    p = np.array([0.4, 0.2])
    for _ in range(4):
        np.testing.assert_allclose(vg.grad(compiled)(p), vg.grad(loss)(p))
        assert np.isfinite(compiled.value_and_grad(p)[1]).all()


ROWS = np.array([[1.0, 2.0, 3.0], [np.nan, 1.0, 2.0], [0.1, 0.2, 0.4]])
REDUCTIONS = {
    "prod": lambda m: np.prod(m, axis=1),
    "cumprod": lambda m: np.cumprod(m, axis=1)[:, -1],
    "var": lambda m: np.var(m, axis=1),
    "std": lambda m: np.std(m, axis=1, ddof=1),
    "norm": lambda m: np.linalg.norm(m, axis=1),
    "mean of squares": lambda m: np.mean(m**2, axis=1),
    "ptp": lambda m: np.ptp(m, axis=1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_masked_rows_send_zero(name):
    complete, reduce = [0, 2], REDUCTIONS[name]
    x, finite = vg.Tensor(ROWS, requires_grad=True), vg.Tensor(ROWS[complete], requires_grad=True)
    (first,) = grad(np.nansum(reduce(x) ** 2), x, create_graph=True)
    (expected,) = grad((reduce(finite) ** 2).sum(), finite, create_graph=True)
    np.testing.assert_allclose(first.detach()[complete], expected.detach())
    assert first.detach()[1].tolist() == [0.0] * 3
    (second,) = grad((first[complete] ** 2).sum(), x)
    np.testing.assert_allclose(second[complete], grad((expected**2).sum(), finite)[0])
    assert second[1].tolist() == [0.0] * 3


@pytest.mark.parametrize("reduce", [np.nanmedian, lambda a: np.nanpercentile(a, 30.0), np.nanmax, np.nansum])
def test_reductions_that_ignore_nan_ignore_its_derivative(reduce):
    point = np.array([np.nan, 1.0, 2.0, 0.5])

    def loss(x):
        return reduce(np.sin(x) ** 2)

    expected = [0.0, *vg.grad(loss)(point[1:])]
    np.testing.assert_allclose(vg.grad(loss)(point), expected)
    np.testing.assert_allclose(vg.jacfwd(loss)(point), expected)


def of_tensors_only(operator):
    """Return whether an elementwise operator can be called with arrays of real numbers alone."""
    required = [argument for argument in operator.signature.arguments if argument.default is None]
    return (
        operator.elementwise and not operator.user_defined and "self" in operator.differentiable
        and all(argument.kind == "tensor" for argument in required)
        and not {"condition", "mask"} & {argument.name for argument in required}
    )


@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if of_tensors_only(operator)])
def test_infinite_slopes_of_masked_elements_are_ignored(name):
    operator = OPERATORS[name]
    names = [argument.name for argument in operator.signature.arguments if argument.default is None]
    inside = 1.5 if name == "arccosh" else 0.4
    for differentiated in names:
        if differentiated not in operator.differentiable or "incomplete" in name:
            continue
        for odd in names:
            for value in (np.nan, np.inf, -np.inf):
                given = {each: np.array([inside, inside, 0.3 + inside]) for each in names}
                given[odd][0] = value
                x = vg.Tensor(given[differentiated], requires_grad=True)
                y = operator.function(**{**given, differentiated: x})
                masked = np.where(np.array([False, True, True]), y, 0.0).sum()
                if masked.requires_grad:
                    (found,) = grad(masked, x, allow_unused=True, materialize_grads=True)
                    assert np.isfinite(found.numpy()).all(), (differentiated, odd, value)


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
