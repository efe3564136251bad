"""Edge cases of SciPy's functions, such as signs, poles, ends and shapes: SciPy's values, or an error."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
import importlib  # noqa: E402

from leaves import leaf_of  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import grad  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402

SAME = {
    "special.binom": [(n, k) for n in (0.3, 2.5, -0.7, -2.4, 5.0) for k in (0.0, 1.0, 2.0, 3.0, 4.0, 0.5, 7.0)],
    "special.comb": [(2.5, 4.0), (5.0, 2.0), (-1.5, 2.0)],
    "special.perm": [(2.5, 4.0), (5.0, 2.0), (-1.5, 2.0)],
    "special.factorial": [(-0.4,), (2.3,)],
    "special.pseudo_huber": [(-0.4, 0.3), (0.4, 0.3)],
    "special.pdtr": [(-1.0, 0.7), (2.0, 0.7)],
    "special.nbdtr": [(1.5, 2.0, 0.3), (2.0, 3.0, 0.3), (2.0, 0.5, 0.3)],
    "special.bdtr": [(2.0, 5.5, 0.3), (2.5, 5.0, 0.3)],
    "special.bdtrc": [(2.0, 5.5, 0.3)],
    "special.bdtri": [(2.0, 5.5, 0.3)],
    "special.nbdtri": [(2.5, 5.5, 0.3)],
    "special.ellipkinc": [(0.3, 1.4), (0.3, 0.4)],
    "special.ellipeinc": [(0.3, 1.4), (0.3, 0.4)],
    "special.yn": [(0.5, 1.3), (2, 1.3)],
    "special.kn": [(0.5, 1.3), (2, 1.3)],
    "special.spherical_jn": [(2, -0.7), (3, -2.3)],
    "stats.hmean": [(np.array([0.3, -0.4, 0.7]),), (np.array([0.3, 0.4]),)],
    "stats.entropy": [(3.0 * np.ones(1), np.array([0.5, 0.2, 0.3]))],
}
ALL = [(name, arguments) for name, calls in SAME.items() for arguments in calls]


def functions(name):
    module, _, function = name.partition(".")
    return [
        getattr(importlib.import_module(f"{library}.{module}"), function) for library in ("viewgrad.scipy", "scipy")
    ]


@pytest.mark.parametrize("name, arguments", ALL)
@pytest.mark.filterwarnings("ignore")
def test_values_and_derivatives(name, arguments):
    ours, theirs = functions(name)
    last = len(arguments) - 1 if name != "special.binom" and len(arguments) > 1 else 0
    x = leaf_of(arguments[last])
    found = ours(*arguments[:last], x, *arguments[last + 1 :])
    np.testing.assert_allclose(found.detach().numpy(), theirs(*arguments), rtol=1e-10)
    moved = [theirs(*arguments[:last], arguments[last] + step, *arguments[last + 1 :]) for step in (1e-6, -1e-6)]
    slope = np.sum(moved[0] - moved[1]) / 2e-6
    if np.isfinite(slope) and abs(slope) < 1e4 and "perm" not in name and "comb" not in name:
        assert found.requires_grad
        assert grad(found.sum(), x)[0].numpy().sum() == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "name, arguments",
    [
        *[(f"linalg.{name}", (np.eye(2),)) for name in ("toeplitz", "hankel", "fiedler")],
        ("linalg.companion", (np.eye(2) + 1,)),
        ("linalg.solve_circulant", (np.eye(2) + 1, np.ones(2))),
        ("linalg.convolution_matrix", (np.eye(2), 3)),
        ("special.elliprg", (np.zeros(2), np.zeros(2), np.array([0.5, 1.0]))),
        ("special.agm", (np.array([-2.5]), np.zeros(1))),
        ("special.expn", (1.5, np.array([0.5, 0.6]))),
        ("special.polygamma", (0.5, np.array([0.5, 0.6]))),
        ("special.spherical_kn", (2, np.array([-0.5, 0.6]))),
        ("stats.ttest_rel", (np.eye(3), np.ones(3))),
        ("stats.levene", (np.eye(3), np.ones(3))),
        ("special.chdtriv", (np.array([0.6, 1.0]), np.array([1.2, 0.7]))),
        ("special.stdtridf", (np.array([0.6, 0.35]), 0.4)),
        ("special.gammaincinv", (2.0, np.array([0.0, 0.3]))),
    ],
)
def test_arguments_beyond_the_formulas_are_refused(name, arguments):
    ours, _ = functions(name)
    given = [leaf_of(each) if isinstance(each, np.ndarray) and each.dtype.kind == "f" else each for each in arguments]
    with pytest.raises(UnsupportedFunctionError, match=r"history|samples of tensors"):
        ours(*given)


def test_matrices_of_vectors_without_history_match_scipy():
    assert functions("linalg.toeplitz")[0](vg.Tensor([1.0, 2.0])).tolist() == [[1.0, 2.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    "name, arguments, slopes",
    [
        ("boxcox", (1e10, 1e10), (np.inf, np.inf)),
        ("boxcox", (1e10, 100.0), (np.inf, np.inf)),
        ("boxcox1p", (3.0, 600.0), (np.inf, np.inf)),
        ("boxcox", (0.0, 0.0), (np.inf, np.inf)),
        ("rel_entr", (0.0, 0.0), (0.0, 0.0)),
        ("rel_entr", (0.0, 0.8), (-np.inf, 0.0)),
        ("kl_div", (0.0, 0.0), (-1.0, 1.0)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_slopes_at_infinite_values_and_zeros(name, arguments, slopes):
    ours, theirs = functions(f"special.{name}")
    leaves = [leaf_of(each) for each in arguments]
    found = ours(*leaves)
    np.testing.assert_array_equal(found.detach().numpy(), theirs(*arguments))
    np.testing.assert_array_equal([each.numpy() for each in grad(found, leaves)], slopes)


def test_relative_entropy_of_distributions_that_are_zero_at_the_same_place():
    p, q = leaf_of([0.5, 0.5, 0.0]), leaf_of([0.2, 0.8, 0.0])
    of_p, of_q = grad(vg.scipy.stats.entropy(p, q), [p, q])
    np.testing.assert_allclose(of_p.numpy()[:2], [np.log(2), -np.log(2)])
    np.testing.assert_allclose(of_q.numpy(), [-1.5, 0.375, 1.0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name, parameters, slopes",
    [
        ("uniform", (), (1.0, 1.0)),
        ("expon", (), (1.0, np.inf)),
        ("norm", (), (np.inf, np.inf)),
        ("gamma", (2.0,), (np.inf, np.inf)),
        ("gamma", (0.5,), (0.0, np.inf)),
        ("powerlaw", (0.6,), (0.0, 1 / 0.6)),
        ("truncnorm", (-1.0, 2.0), (3.383031629187, 15.161695872)),
    ],
)
def test_slopes_of_quantiles_at_the_ends_of_the_support(name, parameters, slopes):
    distribution = getattr(vg.scipy.stats, name)
    ends = leaf_of([0.0, 0.4, 1.0])
    found = distribution.ppf(ends, *parameters)
    wanted = getattr(scipy.stats, name).ppf([0.0, 0.4, 1.0], *parameters)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)
    of_ends = grad(found.sum(), ends)[0].numpy()
    np.testing.assert_allclose(of_ends[[0, 2]], slopes, rtol=1e-8)
    turned = grad(distribution.isf(ends, *parameters).sum(), ends)[0].numpy()
    np.testing.assert_allclose(turned[[2, 0]], -of_ends[[0, 2]])


@pytest.mark.filterwarnings("ignore")
def test_second_derivatives_of_quantiles_at_ends_are_not_zero():
    q = leaf_of(0.0)
    (slope,) = grad(vg.scipy.stats.expon.ppf(q), q, create_graph=True)
    assert np.isinf(grad(slope, q)[0].item())
