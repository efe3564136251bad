"""Functions of `viewgrad.scipy.special`: SciPy's values, and derivatives of the first and second order."""

from __future__ import annotations

import numpy as np
import pytest
from leaves import leaf_of
from scipy import special as theirs

import viewgrad as vg
from viewgrad.autograd import gradcheck, gradgradcheck
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError
from viewgrad.scipy import special as ours

X = np.array([0.3, 0.7, 1.9, 3.4])
UNIT = np.array([0.1, 0.35, 0.6, 0.9])
SIGNED = np.array([-1.7, -0.2, 0.4, 2.1])

# the arguments of each function, and the places of those that have gradients
CASES = {
    "expm1": ((SIGNED,), (0,)),
    "log1p": ((X,), (0,)),
    "exp2": ((SIGNED,), (0,)),
    "exp10": ((UNIT,), (0,)),
    "cbrt": ((X,), (0,)),
    "cosm1": ((SIGNED,), (0,)),
    "sindg": ((X * 20,), (0,)),
    "cosdg": ((X * 20,), (0,)),
    "tandg": ((X * 20,), (0,)),
    "cotdg": ((X * 20,), (0,)),
    "yv": ((1.5, X), (1,)),
    "kv": ((0.5, X), (1,)),
    "kve": ((1.3, X), (1,)),
    "k0e": ((X,), (0,)),
    "k1e": ((X,), (0,)),
    "jvp": ((2, X, 1), (1,)),
    "yvp": ((2, X, 1), (1,)),
    "kvp": ((2, X, 1), (1,)),
    "ivp": ((2, X, 2), (1,)),
    "spherical_jn": ((2, X), (1,)),
    "spherical_yn": ((1, X), (1,)),
    "spherical_in": ((2, X), (1,)),
    "spherical_kn": ((1, X), (1,)),
    "struve": ((0.5, X), (1,)),
    "hyp1f1": ((0.5, 1.5, SIGNED), (2,)),
    "hyp0f1": ((1.5, SIGNED), (1,)),
    "hyperu": ((0.5, 1.5, X), (2,)),
    "loggamma": ((X,), (0,)),
    "zeta": ((2.5, X), (1,)),
    "poch": ((X, UNIT), (0, 1)),
    "voigt_profile": ((SIGNED, UNIT, X), (0, 1, 2)),
    "spence": ((X,), (0,)),
    "owens_t": ((SIGNED, X), (0, 1)),
    "ellipkinc": ((SIGNED, UNIT), (0, 1)),
    "ellipeinc": ((SIGNED, UNIT), (0, 1)),
    "ellipkm1": ((UNIT,), (0,)),
    "eval_jacobi": ((3, 0.5, 1.5, UNIT), (3,)),
    "eval_legendre": ((4, UNIT), (1,)),
    "eval_gegenbauer": ((3, 1.5, UNIT), (2,)),
    "eval_chebyt": ((5, UNIT), (1,)),
    "eval_chebyu": ((4, UNIT), (1,)),
    "eval_hermite": ((3, SIGNED), (1,)),
    "eval_hermitenorm": ((3, SIGNED), (1,)),
    "eval_laguerre": ((3, X), (1,)),
    "eval_genlaguerre": ((3, 0.5, X), (2,)),
    "lpmv": ((1, 3, UNIT), (2,)),
    "boxcox1p": ((X, UNIT), (0, 1)),
    "inv_boxcox": ((X, UNIT), (0, 1)),
    "inv_boxcox1p": ((X, UNIT), (0, 1)),
    "huber": ((1.0, SIGNED), (1,)),
    "pseudo_huber": ((X, SIGNED), (0, 1)),
    "kl_div": ((X, UNIT), (0, 1)),
    "perm": ((X + 3, X), (0, 1)),
    "betaincc": ((X, 1.5, UNIT), (0, 2)),
    "chdtr": ((X, X), (0, 1)),
    "chdtrc": ((X, X), (0, 1)),
    "fdtr": ((X, 2.5, X), (0, 1, 2)),
    "fdtrc": ((X, 2.5, X), (0, 2)),
    "gdtr": ((X, 1.5, UNIT), (0, 1, 2)),
    "pdtr": ((2.0, X), (1,)),
    "pdtrc": ((2.0, X), (1,)),
    "bdtr": ((1.0, 4, UNIT), (2,)),
    "bdtrc": ((1.0, 4, UNIT), (2,)),
    "gammaincinv": ((X, UNIT), (0, 1)),
    "gammainccinv": ((X, UNIT), (0, 1)),
    "betaincinv": ((X, 1.5, UNIT), (0, 2)),
    "chdtri": ((X, UNIT), (0, 1)),
    "fdtri": ((X + 2, 2.5, UNIT), (2,)),
    "stdtrit": ((X + 2, UNIT), (1,)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    args, differentiable = CASES[name]
    function, right = getattr(ours, name), getattr(theirs, name)(*args)
    assert isinstance(function(*args), (vg.Tensor, float, np.generic))
    leaves = [vg.Tensor(np.array(args[place], float), requires_grad=True) for place in differentiable]

    def of(*leaves):
        given = list(args)
        for place, leaf in zip(differentiable, leaves):
            given[place] = leaf
        return function(*given)

    found = of(*leaves)
    np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-10, atol=1e-13)
    assert gradcheck(of, leaves, rtol=1e-4, atol=1e-6)
    assert gradgradcheck(of, leaves, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["sici", "shichi", "fresnel", "airy"])
def test_functions_with_several_results(name):
    x = vg.Tensor(X, requires_grad=True)
    for found, right in zip(getattr(ours, name)(x), getattr(theirs, name)(X)):
        np.testing.assert_allclose(found.detach().numpy(), right, rtol=1e-12)
    assert gradcheck(lambda x: vg.stack(getattr(ours, name)(x)), x)
    assert gradgradcheck(lambda x: vg.stack(getattr(ours, name)(x)), x)


@pytest.mark.parametrize("branch", [0, -1])
def test_lambertw(branch):
    z = vg.Tensor([-0.3, -0.1], requires_grad=True)
    np.testing.assert_allclose(ours.lambertw(z, branch).detach().numpy(), theirs.lambertw([-0.3, -0.1], branch))
    assert gradcheck(lambda z: ours.lambertw(z, branch).real, z)
    assert gradcheck(lambda z: ours.lambertw(z, branch), vg.Tensor([0.5 + 1j, -2 + 0.3j], requires_grad=True))
    assert gradgradcheck(lambda z: ours.lambertw(z, branch).real, z)


def test_complex_functions():
    z = vg.Tensor([0.5 + 1j, -0.2 + 0.3j], requires_grad=True)
    for name in ("wofz", "loggamma"):
        np.testing.assert_allclose(getattr(ours, name)(z).detach().numpy(), getattr(theirs, name)(z.detach().numpy()))
    assert gradcheck(ours.wofz, z)


def test_ellipkinc_beyond_a_quarter_turn_and_at_0():
    phi, m = vg.Tensor([4.0, -7.0, 0.5], requires_grad=True), vg.Tensor([0.3, 0.8, 0.0], requires_grad=True)
    for function in (ours.ellipkinc, ours.ellipeinc):
        assert gradcheck(function, [phi, m])


def test_an_order_that_has_a_history_is_refused():
    with pytest.raises(UnsupportedFunctionError, match="order"):
        ours.lambertw(2.0, vg.Tensor(0.0, requires_grad=True))


@pytest.mark.parametrize("name", ["softplus", "spence", "yv", "kolmogorov", "expit", "struve", "tandg", "ndtri_exp"])
@pytest.mark.parametrize("has_history", [False, True])
def test_results_are_written_to_out(name, has_history):
    """This covers functions of operators, formulas of the library, and functions without a derivative."""
    function, count = getattr(theirs, name), 2 if name in ("yv", "struve") else 1
    values = [np.linspace(0.3, 0.9, 4)[::-1], np.linspace(1.2, 1.9, 4)][-count:]
    if name in ("kolmogorov", "ndtri_exp") and has_history:
        pytest.skip("it has no derivative")
    wanted = function(*values)
    points = [*values[:-1], vg.Tensor(values[-1], requires_grad=has_history)]
    for where in (True, np.array([True, True, False, False])):
        out = vg.Tensor(np.full(4, 7.0))
        options = {} if where is True else {"where": where}
        result = getattr(ours, name)(*points, out=out, **options)
        assert result is out
        np.testing.assert_allclose(out.detach().numpy(), np.where(where, wanted, 7.0), rtol=1e-12)
        assert out.requires_grad == has_history
    if isinstance(function, np.ufunc):
        out = vg.Tensor(np.zeros(4))
        getattr(ours, name)(*points, out)
        np.testing.assert_allclose(out.detach().numpy(), wanted, rtol=1e-12)


FUNCTIONS = {name: getattr(theirs, name) for name in theirs.__all__}
UNIVERSAL = sorted(name for name, each in FUNCTIONS.items() if isinstance(each, np.ufunc) and each.nout == 1)
# SciPy's are for double precision only.
DOUBLE = {"kn", "yn"}


@pytest.mark.parametrize("name", [name for name in UNIVERSAL if name not in DOUBLE])
@pytest.mark.filterwarnings("ignore")
def test_dtypes_match_scipy(name):
    """This covers combinations of single and double precision and integers."""
    function, places = getattr(theirs, name), np.random.default_rng(0)
    kinds_of_loops = ["f" * function.nin, "fd", "fi", "dif"]
    for kinds in (each for each in kinds_of_loops if len(each) == function.nin):
        drawn = [places.uniform(0.2, 0.7, 2) for _ in kinds]
        args = [np.array([2, 3]) if kind == "i" else values.astype(kind) for kind, values in zip(kinds, drawn)]
        leaves = [vg.Tensor(arg, requires_grad=True) if kind in "fd" else arg for kind, arg in zip(kinds, args)]
        try:
            found = getattr(ours, name)(*leaves)
        except (UnsupportedFunctionError, DifferentiabilityError, TypeError, MemoryError):
            continue  # no derivative with respect to some argument, or no loop for the dtypes
        assert found.dtype == function(*args).dtype, kinds


@pytest.mark.parametrize("name, args, options", [
    ("comb", (3.4, 2.0), {"exact": True}),
    ("comb", (X, 2), {"exact": True}),
    ("perm", (3.4, 2), {"exact": True}),
    ("factorial", (X,), {"exact": True}),
    ("factorial", (X,), {"extend": "none"}),
    ("multigammaln", (X, 5), {}),
    ("multigammaln", (X + 5, 2.5), {}),
    *[(name, (1, X, -1), {}) for name in ("jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp")],
    ("jvp", (1, X, 1.5), {}),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_errors_match_scipy(name, args, options):
    with pytest.raises((ValueError, TypeError)) as wanted:
        getattr(theirs, name)(*args, **options)
    leaves = [vg.Tensor(arg, requires_grad=True) if np.asarray(arg).dtype.kind == "f" else arg for arg in args]
    with pytest.raises(wanted.type):
        getattr(ours, name)(*leaves, **options)


@pytest.mark.parametrize("name, args", [
    *[(f"spherical_{kind}", (-1, X)) for kind in ("jn", "yn", "in", "kn")],
    ("diric", (X, 2.5)),
    ("diric", (X, -2)),
    ("polygamma", (np.array([[1], [2], [0]]), X)),
    ("eval_sh_jacobi", (np.array([[0], [3]]), 2.5, 1.5, UNIT)),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_values_match_scipy_outside_the_domain_and_for_arrays_of_orders(name, args):
    leaves = [vg.Tensor(arg, requires_grad=True) if arg is X or arg is UNIT else arg for arg in args]
    found = getattr(ours, name)(*leaves)
    np.testing.assert_allclose(found.detach().numpy(), getattr(theirs, name)(*args), rtol=1e-10)


def test_derivatives_of_shifted_jacobi_polynomials_wrt_parameters_and_degree():
    places, parameters = leaf_of(UNIT), [leaf_of(2.6), leaf_of(1.4)]
    for degree in (0, 1, 4):
        assert gradcheck(lambda p, q, x: ours.eval_sh_jacobi(degree, p, q, x), [*parameters, places])  # noqa: B023
    assert gradcheck(ours.eval_sh_jacobi, [leaf_of(1.3), *parameters, places])


def test_derivatives_of_polygamma_of_arrays_of_orders():
    assert gradcheck(lambda x: ours.polygamma(np.array([[1], [2]]), x), [leaf_of(X)])


@pytest.mark.parametrize("name", ["kn", "yn", "jv", "beta", "betaln", "xlogy", "gammainc", "binom", "eval_legendre"])
@pytest.mark.parametrize("numbers", [(2, np.float32(0.5)), (np.array([2]), np.float32(0.5)), (2.0, np.float32(0.5))])
def test_results_have_the_dtype_and_precision_of_scipys_loop(name, numbers):
    order, x = numbers
    dispatched = (theirs,) if name in ("kn", "yn", "beta", "betaln") else ()
    for function in (getattr(module, name) for module in (ours, *dispatched)):
        found = function(order, vg.Tensor(np.array([x]), requires_grad=True))
        expected = getattr(theirs, name)(order, np.array([x]))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-12 if found.dtype == float else 1e-6)


def test_empty_orders_give_empty_results():
    for name in ("spherical_jn", "spherical_kn", "eval_gegenbauer"):
        rest = (0.5,) if name == "eval_gegenbauer" else ()
        found = getattr(ours, name)(np.zeros(0, int), *rest, vg.Tensor(0.5, requires_grad=True))
        assert found.shape == (0,)
