"""`viewgrad.scipy.special`: values are SciPy's, gradients of first and second order those of finite differences."""

import numpy as np
import pytest

scipy = pytest.importorskip("scipy")
from scipy_cases import call, check, named  # noqa: E402

import viewgrad as vg  # noqa: E402
from viewgrad.autograd import gradcheck  # noqa: E402
from viewgrad.errors import UnsupportedFunctionError  # noqa: E402
from viewgrad.scipy import special  # noqa: E402

X, Y = np.array([0.3, 1.4, 2.2]), np.array([0.9, 0.6, 1.7])
UNIT, SIGNED = np.array([0.15, 0.4, 0.8]), np.array([-0.7, 0.2, 0.9])
Z = np.array([0.4 + 0.3j, 1.2 - 0.5j])

CASES = [
    *[call(name, 1.5, X) for name in ("kv", "yv", "kve", "struve", "modstruve", "hyp0f1", "jve", "yve")],
    *[call(name, 0.5, Z) for name in ("kv", "hankel1", "hankel2", "hankel1e", "hankel2e")],
    call("hankel1", 1, X),
    call("kv", np.array([0, 1, 2]), X),
    *[call(name, X) for name in ("wrightomega", "spence", "airy", "airye", "fresnel", "sici", "shichi", "itj0y0")],
    *[call(name, X) for name in ("iti0k0", "itstruve0", "kelvin", "ber", "keip", "k0e", "k1e", "wofz", "loggamma")],
    *[call(name, Z) for name in ("spence", "airy", "wofz", "wrightomega")],
    call("lambertw", X),
    call("lambertw", Z, 1),
    call("voigt_profile", SIGNED, Y, UNIT),
    *[call("expn", n, X) for n in (0, 1, 4)],
    call("hyp1f1", 0.5, 1.5, X),
    call("hyperu", 0.5, 1.5, X),
    call("ellipkm1", UNIT),
    call("agm", X, Y),
    *[call(name, 2, X, n) for name in ("jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp") for n in (1, 3)],
    *[call(f"spherical_{kind}n", n, X, d) for kind in "jyik" for n in (0, 3) for d in (False, True)],
    *[call(name, np.array([0, 1, 2]), X) for name in ("jv", "iv", "ive")],
    call("spherical_jn", 1.7, X),
    call("spherical_jn", 2, np.array([-1.5, 0.0, 0.5])),
    *[call(name, X) for name in ("cbrt", "exp2", "exp10", "expm1", "log1p", "cosm1", "sindg", "cosdg", "tandg")],
    call("cotdg", X),
    call("radian", X, Y, UNIT),
    *[call(name, X, Y) for name in ("kl_div", "huber", "pseudo_huber", "boxcox1p", "inv_boxcox", "inv_boxcox1p")],
    call("boxcox1p", X, np.zeros(3)),
    call("softplus", SIGNED),
    call("poch", X, Y),
    call("poch", SIGNED, 3),
    call("perm", X + 3, 2),
    call("powm1", X, Y),
    *[call("diric", SIGNED, n) for n in (4, 5)],
    call("owens_t", SIGNED, np.array([0.5, 1.8, -3.0])),
    call("zeta", X + 1.5, Y),
    call("zeta", X + 1.5),
    call("zetac", X + 1.5),
    call("chdtr", X, Y),
    call("chdtrc", X, Y),
    call("gdtr", X, Y, UNIT),
    call("gdtrc", X, Y, UNIT),
    call("fdtr", X, Y, UNIT),
    call("fdtrc", X, Y, UNIT),
    call("pdtr", 2, X),
    call("pdtrc", 2, X),
    *[call(name, 2, 5, UNIT) for name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc")],
    call("betaincc", X, Y, UNIT),
    *[call(name, X, UNIT) for name in ("gammaincinv", "gammainccinv", "chdtri", "stdtrit")],
    *[call(name, X, Y, UNIT, rtol=1e-6) for name in ("betaincinv", "betainccinv", "fdtri", "gdtrix")],
    call("gdtria", UNIT, X, Y),
    call("gdtrib", X, UNIT, Y),
    call("pdtri", 2, UNIT),
    call("bdtri", 2, 5, UNIT),
    call("nbdtri", 2, 5, UNIT),
    call("elliprf", X, Y, UNIT),
    call("elliprc", X, Y),
    call("elliprd", X, Y, UNIT),
    call("elliprg", X, Y, UNIT),
    *[call(name, np.array([0.4, -1.2, 4.0]), UNIT) for name in ("ellipkinc", "ellipeinc", "ellipj")],
    call("ellipkinc", np.array([0.0, 0.5]), np.zeros(2)),
    *[call(name, np.array([0.4, 1.5]), Z) for name in ("kv", "hankel1", "hankel2e", "yv")],
    *[call(name, np.array([[0.5], [2.0]]), X) for name in ("kve", "struve", "modstruve", "hyp0f1", "jve")],
    call("hyp1f1", np.array([0.5, 1.0, 2.0]), 1.5, X),
    call("hyperu", 0.5, np.array([[1.5], [0.7]]), X),
    call("expn", np.array([[0], [1], [4]]), X),
    call("lambertw", X, np.array([0, 1, 0])),
    call("chndtr", X, Y, UNIT),
    call("chndtr", np.array([0.1, 30.0]), np.array([3.0, 2.0]), np.array([0.2, 25.0])),
    call("ncfdtr", X, Y, UNIT, X),
    call("nctdtr", X + 1, SIGNED, np.array([-1.2, 0.3, 2.0])),
    call("chndtridf", X, scipy.special.chndtr(X, X + 1, Y), Y, rtol=1e-6, first_only=True),
    call("chndtrix", UNIT, X, Y, rtol=1e-6, first_only=True),
    call("ncfdtri", X, Y, UNIT, UNIT, rtol=1e-6, first_only=True),
    call("nctdtrit", X[:2] + 1, SIGNED[:2], UNIT[:2], rtol=1e-6, first_only=True),
    *[call(f"eval_{name}", n, UNIT) for name in ("legendre", "chebyt", "chebyu", "hermite", "hermitenorm", "laguerre",
                                                 "sh_legendre", "sh_chebyt", "sh_chebyu", "chebyc", "chebys")
      for n in (0, 1, 4)],
    *[call(f"eval_{name}", 3, X, UNIT) for name in ("genlaguerre", "gegenbauer")],
    call("eval_jacobi", 3, X, Y, UNIT),
    call("eval_jacobi", 2, np.zeros(1), np.zeros(1), UNIT),
    call("eval_sh_jacobi", 3, 2.5, 1.5, UNIT),
    *[call("lpmv", m, 3, SIGNED) for m in (-2, 0, 1, 3)],
    call("legendre_p", 4, SIGNED),
    call("legendre_p_all", 3, SIGNED),
    call("assoc_legendre_p_all", 3, 2, SIGNED),
    *[call("sph_harm_y", 3, m, X, Y) for m in (-2, 0, 3)],
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=named)
def test_values_and_gradients(case):
    check("special", case)


def test_orders_in_an_array_need_not_be_integers():
    orders = np.arange(3.0) + 0.5
    for z in (X[0], Z[0]):
        np.testing.assert_allclose(special.jv(orders, vg.Tensor(z)), scipy.special.jv(orders, z))
        assert gradcheck(lambda z: special.jv(orders, z), vg.Tensor(z, requires_grad=True))
    # The function also works in adopted code and by its alias.
    for function in (vg.adopt(scipy.special.jv), special.jn):
        assert gradcheck(lambda z, f=function: f(orders, z), vg.Tensor(X[0], requires_grad=True))


ENDS = np.array([-np.inf, -1.0, 0.0, 0.7, np.inf, np.nan])


@pytest.mark.parametrize("name, args", [
    ("chndtr", (ENDS, 2.0, 1.0)), ("ncfdtr", (2.0, 3.0, 1.0, ENDS)), ("nctdtr", (2.0, 1.0, ENDS)),
    ("chndtr", (0.7, ENDS, 1.0)), ("ncfdtr", (2.0, ENDS, 1.0, 0.7)), ("nctdtr", (ENDS[[1, 3, 5]], 1.0, 0.7)),
])  # fmt: skip
def test_noncentral_functions_at_the_ends(name, args):
    given = [vg.Tensor(each, requires_grad=True) for each in args]
    found, expected = getattr(special, name)(*given), getattr(scipy.special, name)(*args)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-10)
    finite = np.isfinite(sum(np.broadcast_arrays(*args))) & np.isfinite(expected)
    if name != "nctdtr":
        finite &= np.broadcast_to(args[0 if name == "chndtr" else 3], finite.shape) > 0
    gradient = vg.autograd.grad(found[finite].sum(), given, allow_unused=True)
    assert all(np.isfinite(each.numpy()).all() for each in gradient)


@pytest.mark.parametrize("order, x", [(0.3, 0.5), (2.0, 1e-6), (0.0, 3.0), (15.0, 2.0), (1.0, 40.0), (0.7, 1e-12)])
def test_orders_have_derivatives(order, x):
    # K is the integral of exp(-x cosh(u)) cosh(order u) over u from 0.
    u = np.linspace(0, 60, 60001)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = np.nan_to_num(u * np.sinh(order * u) * np.exp(-x * np.cosh(u)))
    found = vg.grad(lambda order: special.kv(order, x))(order)
    np.testing.assert_allclose(found, np.trapezoid(slopes, u), rtol=1e-9)


def test_parameters_near_poles_have_derivatives():
    b, step = np.array([0.02, -0.97, -1.06, 3.0]), 1e-7
    found = vg.grad(lambda b: special.hyp1f1(0.5, b, 0.4).sum())(b)
    f = scipy.special.hyp1f1
    np.testing.assert_allclose(found, (f(0.5, b + step, 0.4) - f(0.5, b - step, 0.4)) / (2 * step), rtol=1e-6)


def test_arrays_of_orders_take_one_operator():
    x = vg.Tensor(np.linspace(0.5, 2, 40), requires_grad=True)
    found, count = special.jv(np.linspace(0, 3, 40), x), 0
    waiting = [found.grad_fn]
    while waiting:
        count += 1
        waiting += [each for each, _ in waiting.pop().next_functions if each is not None]
    assert count < 5


def test_arguments_without_gradient_raise():
    x = vg.Tensor(X, requires_grad=True)
    with pytest.raises(UnsupportedFunctionError, match="orders and parameters"):
        special.lambertw(x, x)
    with pytest.raises(UnsupportedFunctionError, match="degree"):
        special.eval_hermite(x, 0.5)
    with pytest.raises(UnsupportedFunctionError, match="mathieu_a"):
        special.mathieu_a(1, x)


def test_precision_is_preserved():
    x = vg.Tensor(X.astype(np.float32), requires_grad=True)
    assert special.kv(1.5, x).dtype == special.airy(x)[0].dtype == np.float32


# Poles, infinities and values outside the domain: SciPy's values, and finite gradients at smooth points.
EDGES = np.array([-np.inf, -2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 30.0, np.inf, np.nan])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, count", [
    ("binom", 2), ("boxcox", 2), ("boxcox1p", 2), ("ellipkinc", 2), ("elliprc", 2), ("ellipkm1", 1), ("exprel", 1),
    ("cosdg", 1), ("gdtr", 3), ("fdtr", 3), ("elliprf", 3), ("chndtr", 3),
])  # fmt: skip
def test_values_at_edges_match_scipy(name, count):
    grid = [each.reshape(-1) for each in np.meshgrid(*[EDGES if count < 3 else EDGES[[0, 2, 3, 4, 8]]] * count)]
    expected = getattr(scipy.special, name)(*grid)
    for place, wanted in enumerate(expected):
        try:
            found = getattr(special, name)(*(vg.Tensor(each[place], requires_grad=True) for each in grid))
        except UnsupportedFunctionError:
            continue
        np.testing.assert_allclose(found.detach(), wanted, rtol=1e-6, atol=1e-10, err_msg=str([e[place] for e in grid]))


@pytest.mark.parametrize("name, args, place", [
    ("binom", (-2.5, -1.0), 1), ("binom", (0.5, -1.0), 1), ("beta", (-2.5, 0.5), 0), ("beta", (-2.5, -2.5), 1),
    ("boxcox", (0.0, 0.5), 1), ("boxcox1p", (-1.0, 2.5), 1), ("beip", (0.0,), 0), ("berp", (0.0,), 0),
])  # fmt: skip
def test_gradients_at_poles_of_formulas(name, args, place):
    def f(x):
        return getattr(scipy.special, name)(*args[:place], x, *args[place + 1 :])

    x = args[place]
    np.testing.assert_allclose(vg.grad(f)(x), (f(x + 1e-5) - f(x - 1e-5)) / 2e-5, rtol=1e-5, atol=1e-8)
