"""The table of the guide for users of HIPS autograd: each piece of code on the page runs."""

import re
from pathlib import Path

import numpy
import pytest

import viewgrad
import viewgrad.numpy as np
import viewgrad.scipy.integrate
import viewgrad.scipy.optimize
from viewgrad import autograd, func

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "coming-from-autograd.md"
NAMES = {"np": np, "func": func, "autograd": autograd, "viewgrad": viewgrad, "scipy": viewgrad.scipy}


def code_of_rows():
    """Return the code in the right column of the table, by the first name in the left column."""
    table = PAGE.read_text().split("| `autograd` | here |")[1].split("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in table.strip().splitlines()[1:]]
    pieces = [[re.findall("`([^`]+)`", cell) for cell in row] for row in rows]
    return {re.split("[( ]", left[0])[0]: right for left, right in pieces}


def product(a, b):
    return a * b**2


def reversed_square(x):
    return x * x[::-1]


def cubes(x):
    return (x**3).sum()


X, V, A, B = np.array([1.0, 2.0]), np.array([1.0, 0.5]), np.array(3.0), np.array(2.0)
AFTER = "value, pull = func.vjp(f, x)"
# For each row: the meaning of its names, and for each piece of code a function of its value, `it`, and the result.
ROWS = {
    "autograd.numpy": (
        {},
        {"viewgrad.numpy": ("it.sum([1.0, 2.0])", 3.0), "viewgrad.scipy": ("it.special.gamma(5.0)", 24.0)},
    ),
    "grad": (
        {"f": product},
        {
            "func.grad(f)": ("it(A, B)", 4.0),
            "func.grad(f, 1)": ("it(A, B)", 12.0),
            "func.grad(f, (0, 1))": ("it(A, B)", [4.0, 12.0]),
        },
    ),
    "value_and_grad": (
        {"f": product, "with_aux": lambda a, b: (product(a, b), a)},
        {
            "func.value_and_grad(f)": ("it(A, B)", [12.0, 4.0]),
            "func.grad(with_aux, has_aux=True)": ("it(A, B)", [4.0, 3.0]),
        },
    ),
    "jacobian": (
        {"f": reversed_square},
        {
            "func.jacrev(f)": ("it(X)", [[2.0, 1.0], [2.0, 1.0]]),
            "func.jacfwd(f)": ("it(X)", [[2.0, 1.0], [2.0, 1.0]]),
            "func.hessian(f)": ("it(X)[0]", [[0.0, 1.0], [1.0, 0.0]]),
        },
    ),
    "elementwise_grad": ({"f": lambda x: x**3, "x": X}, {"func.grad(lambda x: f(x).sum())(x)": ("it", [3.0, 12.0])}),
    "deriv": ({"f": lambda x: x**3, "x": B}, {"func.jvp(f, (x,), (np.ones_like(x),))[1]": ("it", 12.0)}),
    "make_vjp": ({"f": reversed_square, "x": X}, {"func.vjp(f, x)": ("it[0], it[1](V)[0]", [[2.0, 2.0], [3.0, 1.5]])}),
    "make_jvp": (
        {"f": cubes, "x": X, "v": V},
        {
            "func.jvp(f, (x,), (v,))": ("it", [9.0, 9.0]),
            "func.hvp(f, (x,), (v,))[1][0]": ("it", [6.0, 6.0]),
        },
    ),
    "hessian_tensor_product": ({"f": cubes, "x": X, "v": V}, {"func.hvp(f, (x,), (v,))[1][0]": ("it", [6.0, 6.0])}),
    "tensor_jacobian_product": (
        {"f": reversed_square, "x": X, "v": V},
        {"pull(v)[0]": ("it", [3.0, 1.5]), AFTER: ("value", [2.0, 2.0])},
    ),
    "make_ggnvp": (
        {"f": lambda x: x**2, "g": lambda y: 0.5 * (y**2).sum(), "x": X, "v": V},
        {"pull(func.hvp(g, (value,), func.jvp(f, (x,), (v,))[1:])[1][0])[0]": ("it", [4.0, 8.0])},
    ),
    "holomorphic_grad": (
        {"f": lambda z: z**2, "z": np.array(1 + 2j)},
        {"np.conj(func.grad(lambda z: np.real(f(z)))(z))": ("it", 2 + 4j)},
    ),
    "grad_named": ({"f": product}, {"func.grad(f, 1)": ("it(A, B)", 12.0)}),
    "multigrad_dict": (
        {"f": product, "a": A, "b": B},
        {'func.grad(lambda named: f(**named))({"a": a, "b": b})': ("[it['a'], it['b']]", [4.0, 12.0])},
    ),
    "@primitive": (
        {},
        {"autograd.define_op": ("callable(it)", True), "autograd.Function": ("isinstance(it, type)", True)},
    ),
    "checkpoint": ({"f": product}, {"viewgrad.checkpoint(f)": ("func.grad(it)(A, B)", 4.0)}),
    "test_util.check_grads": (
        {"f": reversed_square, "x": viewgrad.Tensor([1.0, 2.0], requires_grad=True)},
        {"autograd.gradcheck(f, x)": ("it", True), "autograd.gradgradcheck(f, x)": ("it", True)},
    ),
    "autograd.builtins.list": (
        {},
        {
            "list": ("func.grad(lambda x: it(x)[1])(X)", [0.0, 1.0]),
            "tuple": ("func.grad(lambda x: it(x)[1])(X)", [0.0, 1.0]),
            "dict": ("func.grad(lambda x: it(a=x[1])['a'])(X)", [0.0, 1.0]),
        },
    ),
    "misc.const_graph": ({"f": cubes}, {"viewgrad.compile(f)": ("it(X), it(X)", [9.0, 9.0])}),
    "misc.fixed_points.fixed_point": (
        {"f": lambda a: lambda x: 0.5 * (x + a / x), "a": np.array(4.0), "x0": np.array(1.0)},
        {"scipy.optimize.fixed_point(lambda x: f(a)(x), x0)": ("it", 2.0)},
    ),
    "misc.flatten": (
        {"f": lambda tree: tree["w"][0] * tree["w"][1] ** 2},
        {"func.grad(f)": ("it({'w': [A, B]})['w']", [4.0, 12.0])},
    ),
    "misc.optimizers.adam": (
        {"f": lambda x: ((x - 2.0) ** 2).sum(), "x0": X},
        {"scipy.optimize.minimize(f, x0)": ("it.x", [2.0, 2.0])},
    ),
    "scipy.integrate.odeint": (
        {"f": lambda y, t: -y, "g": lambda t, y: -y, "y0": np.array([1.0]), "t": np.array([0.0, 1.0])},
        {
            "scipy.integrate.odeint(f, y0, t)": ("it[-1]", [numpy.exp(-1)]),
            "scipy.integrate.solve_ivp(g, (t[0], t[-1]), y0)": ("it.y[:, -1]", [numpy.exp(-1)]),
        },
    ),
}


def test_the_table_has_these_pieces_of_code():
    assert code_of_rows() == {name: list(pieces) for name, (_, pieces) in ROWS.items()}


@pytest.mark.parametrize("name", ROWS)
def test_each_row_matches_its_entry(name):
    names, pieces = ROWS[name]
    names = NAMES | names | {"X": X, "V": V, "A": A, "B": B}
    if "pull" in str(pieces):
        exec(AFTER, names)
    for code, (use, wanted) in pieces.items():
        it = eval(code, names) if code != AFTER else names["pull"]
        result = eval(use, names | {"it": it})
        numpy.testing.assert_allclose(numpy.array(result, dtype=complex), wanted, rtol=1e-3, err_msg=code)
