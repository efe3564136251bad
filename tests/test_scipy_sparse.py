"""`viewgrad.scipy.sparse`: gradients with respect to stored values, in memory for these alone."""

from __future__ import annotations

import operator
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import gradcheck, gradgradcheck
from viewgrad.errors import DifferentiabilityError, UnsupportedFunctionError
from viewgrad.scipy import sparse
from viewgrad.scipy.sparse import jacobian, linalg
from viewgrad.scipy.sparse.arrays import is_sparse

RNG = np.random.default_rng(0)
ROWS, COLS = np.array([0, 0, 1, 2, 3, 3, 1, 3, 2]), np.array([0, 2, 1, 3, 0, 3, 1, 3, 2])  # two places occur twice
HEAVY = 3.0 * (ROWS == COLS)


def make(data):
    return sparse.coo_array((data, (ROWS, COLS)), shape=(4, 4))


def inputs(is_complex):
    def drawn(size):
        return RNG.normal(size=size) + (1j * RNG.normal(size=size) if is_complex else 0)

    return tuple(vg.Tensor(each, requires_grad=True) for each in (drawn(9) + HEAVY, drawn(4) + 1))


PROGRAMS = {
    "matvec": lambda d, x: make(d) @ x,
    "matmat": lambda d, x: make(d).tocsr() @ (x[:, None] * x),
    "vecmat": lambda d, x: x @ make(d).tocsc(),
    "transpose": lambda d, x: make(d).T @ x,
    "multiply": lambda d, x: (make(d) * x).toarray(),
    "scale": lambda d, x: (x[0] * make(d) / x[1]).sum(0),
    "rows": lambda d, x: make(d).tocsr()[1:3] @ x,
    "add": lambda d, x: (make(d) - make(d).T * x[0]) @ x,
    "sparse product": lambda d, x: make(d) @ make(d).T @ x,
    "elementwise": lambda d, x: make(d).multiply(make(d).T).sum(1) * x,
    "spsolve": lambda d, x: linalg.spsolve(make(d).tocsc(), x),
    "spsolve of columns": lambda d, x: linalg.spsolve(make(d).tocsc(), x[:, None] * x),
    "splu transposed": lambda d, x: linalg.splu(make(d)).solve(x, "T"),
    "splu adjoint": lambda d, x: linalg.splu(make(d)).solve(x, "H"),
    "factorized": lambda d, x: linalg.factorized(make(d))(x),
    "gmres": lambda d, x: linalg.gmres(make(d).tocsr(), x, rtol=1e-12)[0],
    "diagonal": lambda d, x: make(d).diagonal() * x + make(d).trace(),
    "element": lambda d, x: make(d)[3, 3] * x + make(d)[0, 1],
    "kron": lambda d, x: sparse.kron(make(d), make(d)[:2]).sum(0) * x[0],
    "kronsum": lambda d, x: sparse.kronsum(make(d), make(d)[1:3, 1:3]).sum(0) * x[0],
    "vstack": lambda d, x: sparse.vstack([make(d), make(d).tocsr()[1:2] * x[0]]) @ x,
    "block_array": lambda d, x: sparse.block_array([[make(d), None], [sparse.eye_array(4) * x[1], make(d)]]).sum(1),
    "tril": lambda d, x: sparse.tril(make(d)) @ x + sparse.triu(make(d), 1) @ x,
    "diags": lambda d, x: sparse.diags_array([x, x[1:] * 2, d[:2]], offsets=[0, 1, -2]) @ x,
    "spdiags": lambda d, x: sparse.spdiags(x[:, None] * d[:4], [0, 1, -1, 2], 4, 4) @ x,
    "of SciPy's": lambda d, x: scipy.sparse.csr_array(np.arange(16.0).reshape(4, 4)) @ make(d) @ x,
    "matrix": lambda d, x: (sparse.csr_matrix((d, (ROWS, COLS)), shape=(4, 4)) * x) * x,
    "dense": lambda d, x: sparse.csr_array(make(d).toarray() * x) @ x,
    "sin": lambda d, x: make(d).sin() @ x,
}


@pytest.mark.parametrize("form", ["csc_array", "csc_matrix"])
@pytest.mark.parametrize("k", [1, 2])
def test_shapes_of_sparse_solutions(form, k):
    plain = getattr(scipy.sparse, form)(np.diag([2.0, 3.0, 4.0]) + np.eye(3, k=1))
    b = np.arange(3.0 * k).reshape(3, k)
    for right in (b, scipy.sparse.csc_array(b)):
        expected = scipy.sparse.linalg.spsolve(plain, right)
        values = vg.Tensor(plain.data, requires_grad=True)
        a = getattr(sparse, form)((values, plain.indices, plain.indptr), shape=(3, 3))
        found = linalg.spsolve(a, right)
        assert found.shape == expected.shape and scipy.sparse.issparse(expected) == is_sparse(found)
        dense = found.toarray() if is_sparse(found) else found
        np.testing.assert_allclose(dense.detach(), expected.toarray() if scipy.sparse.issparse(expected) else expected)
        dense.sum().backward()
        assert values.grad.numpy().any()


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    f = PROGRAMS[name]
    d, x = inputs(False)
    assert gradcheck(f, (d, x)) and gradgradcheck(f, (d, x))
    assert gradcheck(f, inputs(True))
    for forward, reverse in zip(func.jacfwd(f, (0, 1))(d, x), func.jacrev(f, (0, 1))(d, x)):
        np.testing.assert_allclose(forward.detach().numpy(), reverse.detach().numpy(), atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_match_dense_arrays(name):
    """The same program runs with dense arrays, for operations that mean the same on both."""
    d, x = (each.detach() for each in inputs(False))
    found = PROGRAMS[name](d, x)
    scipys = scipy.sparse.coo_array((d.numpy(), (ROWS, COLS)), shape=(4, 4))
    expected = {
        "matvec": lambda a, x: a @ x,
        "vecmat": lambda a, x: x @ a,
        "rows": lambda a, x: a[1:3] @ x,
        "sparse product": lambda a, x: a @ a.T @ x,
        "spsolve": np.linalg.solve,
        "splu transposed": lambda a, x: np.linalg.solve(a.T, x),
        "diagonal": lambda a, x: a.diagonal() * x + a.trace(),
        "element": lambda a, x: a[3, 3] * x,
        "kron": lambda a, x: np.kron(a, a[:2]).sum(0) * x[0],
        "elementwise": lambda a, x: (a * a.T).sum(1) * x,
        "tril": lambda a, x: a @ x,
    }.get(name)
    if expected is not None:
        np.testing.assert_allclose(found.numpy(), expected(scipys.toarray(), x.numpy()), rtol=1e-12)


def peak_of(run):
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("kind", ["product", "spsolve", "cg", "second derivative"])
def test_memory_grows_with_the_stored_values(kind):
    """The matrix has 20000 rows and columns; a dense one would take 3200 MB."""
    n = 20_000

    def run():
        main, side = vg.Tensor(np.full(n, 4.0), requires_grad=True), vg.Tensor(np.full(n - 1, -1.0), requires_grad=True)
        a = sparse.diags_array([main, side, side], offsets=[0, 1, -1], format="csc")
        b = vg.ones(n)
        if kind == "product":
            y = a @ b
        elif kind == "cg":
            y, info = linalg.cg(a, b, rtol=1e-10)
            assert not info
        else:
            y = linalg.spsolve(a, b)
        loss = (y * y).sum()
        first = vg.autograd.grad(loss, [main, side], create_graph=kind == "second derivative")
        if kind == "second derivative":
            vg.autograd.grad((first[0] * first[0]).sum(), [main, side])

    run()  # imports and caches
    assert peak_of(run) < 60e6


@pytest.mark.parametrize("method", ["cg", "minres", "bicgstab", "gmres", "lgmres", "cgs", "bicg", "qmr", "tfqmr"])
def test_iterative_solvers(method):
    n = 12
    side, b = RNG.normal(size=n - 1), vg.Tensor(RNG.normal(size=n), requires_grad=True)
    main = vg.Tensor(np.full(n, 8.0), requires_grad=True)
    below = side if method in ("cg", "minres") else side[::-1].copy()
    a = lambda main: sparse.diags_array([main, side, below], offsets=[0, 1, -1], format="csr")
    solve = getattr(linalg, method)
    run = lambda main, b: solve(a(main), b, rtol=1e-12, maxiter=500)[0]
    assert gradcheck(run, (main, b), rtol=1e-5, atol=1e-7)
    exact = lambda main, b: linalg.spsolve(a(main), b)
    found, expected = (
        func.hessian(lambda m, f=f: (f(m, b.detach()) ** 2).sum())(main.detach()) for f in (run, exact)
    )
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, atol=1e-8)


def test_preconditioners_and_operators():
    n = 12
    main = vg.Tensor(np.linspace(2.0, 50.0, n), requires_grad=True)
    b = vg.Tensor(RNG.normal(size=n), requires_grad=True)
    a = sparse.diags_array([main, np.full(n - 1, 0.5), np.full(n - 1, 0.25)], offsets=[0, 1, -1], format="csc")
    ilu = linalg.spilu(a.detach())
    m = scipy.sparse.linalg.LinearOperator((n, n), matvec=ilu.solve, rmatvec=lambda v: ilu.solve(v, "T"))
    plain = vg.autograd.grad((linalg.spsolve(a, b) ** 2).sum(), [main, b], retain_graph=True)
    x, info = linalg.gmres(a, b, M=m, rtol=1e-12)
    for found, expected in zip(vg.autograd.grad((x**2).sum(), [main, b]), plain):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8)
    assert not info
    x, info = linalg.gmres(scipy.sparse.linalg.aslinearoperator(a.detach().to_scipy()), b, rtol=1e-12)
    np.testing.assert_allclose(vg.autograd.grad((x**2).sum(), b)[0].numpy(), plain[1].numpy(), rtol=1e-8)
    x, info = linalg.gmres(a, b, maxiter=1, restart=1, rtol=1e-14)
    assert info
    with pytest.raises(DifferentiabilityError, match="not converged"):
        x.sum().backward()


def test_forms_and_attributes():
    d = vg.Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    a = sparse.csr_array((d, [2, 0, 1, 2], [0, 2, 2, 4]), shape=(3, 3))
    like = scipy.sparse.csr_array((d.detach().numpy(), [2, 0, 1, 2], [0, 2, 2, 4]), shape=(3, 3))
    assert a.format == "csr" and a.nnz == 4 and a.shape == (3, 3) and a.data is d
    assert np.array_equal(a.indices, like.indices) and np.array_equal(a.indptr, like.indptr)
    for form in ("tocsr", "tocsc", "tocoo"):
        assert np.array_equal(getattr(a, form)().toarray().detach().numpy(), like.toarray())
    c = a.tocsc()
    assert np.array_equal(c.indptr, like.tocsc().indptr) and np.array_equal(c.indices, like.tocsc().indices)
    assert a.T.format == "csc" and sparse.issparse(a) and not scipy.sparse.issparse(a)
    assert isinstance(a, sparse.csr_array) and "requires_grad" in repr(a)
    assert np.array_equal(a.detach().to_scipy().toarray(), like.toarray())
    assert a.detach().max() == 4.0 and sparse.csgraph.connected_components(a.detach().to_scipy())[0] == 1
    rows, _, values = sparse.find(a)
    assert values.requires_grad and rows.tolist() == [0, 0, 2, 2]
    with pytest.raises(UnsupportedFunctionError, match="prune"):
        a.prune()
    with pytest.raises(UnsupportedFunctionError):
        linalg.eigs(a.tocsc(), 1)
    for vector in (d, (d, ([0, 2, 4, 5],))):
        with pytest.raises(ValueError, match="two dimensions, not 1"):
            sparse.coo_array(vector)
    with pytest.raises(ValueError, match="do not match"):
        a @ vg.ones(4)
    with pytest.raises(AttributeError):
        a.no_such_name
    assert float(linalg.eigsh(sparse.eye_array(5) * 2.0, 1)[0][0]) == pytest.approx(2.0)


def test_compiled():
    f = vg.compile(lambda d, x: (linalg.spsolve(make(d).tocsc(), x) ** 2).sum(), executor="python")
    for _ in range(4):
        d, x = inputs(False)
        plain = lambda d, x: (np.linalg.solve(make(d).toarray(), x) ** 2).sum()
        for found, expected in zip(func.grad(f, (0, 1))(d, x), func.grad(plain, (0, 1))(d, x)):
            np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-8)


# -- sparse Jacobians --------------------------------------------------------------------------------------------------


def banded(x):
    y = vg.zeros_like(x)
    y[1:-1] = x[2:] * x[:-2] - x[1:-1] ** 2
    y[0] = x[0] * x[1]
    return y


def band(n):
    return scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))


@pytest.mark.parametrize("mode", ["fwd", "rev", "auto"])
def test_sparse_jacobian(mode):
    x = RNG.normal(size=30)
    found = func.sparse_jacobian(banded, band(30), mode=mode)(x)
    assert isinstance(found, scipy.sparse.csr_array) and found.nnz == 88
    np.testing.assert_allclose(found.toarray(), np.asarray(func.jacrev(banded)(vg.Tensor(x))), atol=1e-12)
    t = vg.Tensor(x, requires_grad=True)
    curvature = lambda j: vg.autograd.grad((j(t) @ vg.ones(30)).sum(), t)[0].numpy()
    np.testing.assert_allclose(
        curvature(func.sparse_jacobian(banded, band(30), mode=mode)), curvature(func.jacrev(banded)), atol=1e-12
    )


UFUNCS_OF_SPARSE = {
    "sqrt": np.sqrt, "abs": np.abs, "negative": np.negative, "square": np.square, "log1p": np.log1p, "conj": np.conj,
    "multiply": lambda a: np.multiply(a, 2.0), "on the left": lambda a: np.multiply(2.0, a),
    "add": lambda a: np.add(a, a),
    "subtract": lambda a: np.subtract(a, a), "divide": lambda a: np.divide(a, 4.0), "power": lambda a: np.power(a, 3),
    "powers": lambda a: a**0 + a**1 + a**2 + a**5, "size": lambda a: a * float(np.size(a)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "coo_matrix"])
@pytest.mark.parametrize("name", UFUNCS_OF_SPARSE)
def test_ufuncs_call_operators_and_methods(name, kind):
    if name == "powers" and kind == "csr_array":
        pytest.skip("elementwise, and 0 ** 0 is not 0")

    def f(x):
        matrix = getattr(scipy.sparse, kind)(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.5, 0.0, 1.0]]) * x)
        return (UFUNCS_OF_SPARSE[name](matrix).toarray() * np.arange(9.0).reshape(3, 3)).sum()

    value, gradient = vg.value_and_grad(f)(1.5)
    assert value == pytest.approx(f(1.5), rel=1e-12)
    assert gradient == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6, rel=1e-6)
    matrix = getattr(sparse, kind)(vg.ones((2, 2)))
    for apply in (np.matmul, np.maximum, np.hypot):
        with pytest.raises((TypeError, ValueError)):
            vg.adopt(lambda apply=apply: apply(matrix, matrix))()


FORMATS = ["csr_array", "csr_matrix", "csc_array", "coo_array", "lil_array", "dok_array"]
ELEMENTS, OTHERS = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0]]), np.array([[1.0, 1.0, 0.0], [0.0, -2.0, 3.0]])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.filterwarnings(
    "ignore::scipy.sparse.SparseEfficiencyWarning", "ignore::PendingDeprecationWarning"
)
def test_comparisons_are_those_of_values(name, kind):
    make, compare = getattr(scipy.sparse, kind), getattr(operator, name)

    def f(x):
        matrix = make(ELEMENTS) * x
        found = []
        for other in (0, -1.0, 1.5, make(OTHERS), scipy.sparse.csr_array(ELEMENTS), OTHERS):
            found += [compare(matrix, other), compare(other, matrix)]
        return [each.toarray() if scipy.sparse.issparse(each) else np.asarray(each) for each in found]

    for argument in (1.5, vg.Tensor(1.5, requires_grad=True)):
        for made, expected in zip(vg.adopt(f)(argument), f(1.5), strict=True):
            assert made.dtype == bool and np.array_equal(made, expected)


def written_below_zero(matrix, x):
    matrix[matrix < 0] = x
    return matrix


CHOOSING = {
    "maximum": lambda matrix, x: matrix.maximum(0),
    "minimum": lambda matrix, x: matrix.minimum(0.0),
    "maximum of another": lambda matrix, x: matrix.maximum(type(matrix)(OTHERS) * x * x),
    "minimum of another": lambda matrix, x: matrix.minimum(scipy.sparse.csc_array(OTHERS)),
    "number": lambda matrix, x: matrix.maximum(0.5),
    "tensor": lambda matrix, x: matrix.maximum(x / 2),
    "dense": lambda matrix, x: matrix.minimum(OTHERS),
    "mask": lambda matrix, x: matrix.multiply(matrix > 0),
    "written": written_below_zero,
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.filterwarnings(
    "ignore::scipy.sparse.SparseEfficiencyWarning", "ignore::PendingDeprecationWarning"
)
def test_elements_are_chosen_by_values(name, kind):
    def f(x):
        found = CHOOSING[name](getattr(scipy.sparse, kind)(ELEMENTS) * x, x)
        dense = np.asarray(found.toarray() if scipy.sparse.issparse(found) else found)
        return (dense * np.arange(7.0, 1.0, -1.0).reshape(2, 3)).sum()

    value, gradient = vg.value_and_grad(f)(1.5)
    assert value == pytest.approx(f(1.5), rel=1e-12)
    assert gradient == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6, rel=1e-6)


DENSE = {
    "todense": lambda m, x: m.todense() * np.array([[1.0], [2.0], [3.0]]),
    "sums": lambda m, x: m.sum(axis=1) * np.ones((1, 3)) * m.mean(axis=0).T,
    "sum.A1": lambda m, x: m.sum(axis=0).A1,
    "function": lambda m, x: np.asarray(np.sum(m, axis=1)).ravel(),
    "array + matrix": lambda m, x: (SQUARE + m) * (m - SQUARE),
    "times matrix": lambda m, x: m * np.matrix(SQUARE) * np.matrix(SQUARE[0]).T,
    "matrix times": lambda m, x: np.matrix(SQUARE) * m + np.matrix(SQUARE) @ m,
    "sum of both": lambda m, x: (m + np.matrix(SQUARE)) * (np.matrix(SQUARE) - m),
    "masked": lambda m, x: m[m > 0].T * m[SQUARE < 2],
    "elements": lambda m, x: m[[0, 1], [0, 1]].T * np.ones((1, 2)),
    "maximum": lambda m, x: m.maximum(SQUARE) * m.minimum(np.matrix(SQUARE)),
    "compared": lambda m, x: (m > SQUARE) * m.todense(),
    "quotient": lambda m, x: np.nan_to_num(m / (m + m * m)),
    "row by column": lambda m, x: (m / m.sum(axis=1)).todense() * x,
    "conjugate transpose": lambda m, x: m.getH() * m.multiply(np.matrix(SQUARE)).todense(),
}
SQUARE = np.array([[1.0, 1.0, 0.5], [0.5, -2.0, 3.0], [1.0, 1.0, 2.0]])


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix"])
@pytest.mark.parametrize("name", DENSE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::PendingDeprecationWarning")
def test_dense_results_of_sparse_matrices_are_matrices(name, kind):
    if kind == "coo_matrix" and name in ("masked", "elements"):
        pytest.skip("not subscriptable")

    def dense(x):
        return DENSE[name](getattr(scipy.sparse, kind)([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [3.0, 0.0, 1.0]]) * x, x)

    def f(x):
        found = np.asarray(dense(x))
        return (found * np.cos(np.arange(found.size)).reshape(found.shape)).sum()

    assert vg.adopt(lambda: isinstance(dense(1.5), np.matrix))() == isinstance(dense(1.5), np.matrix)
    value, gradient = vg.value_and_grad(f)(1.5)
    assert value == pytest.approx(f(1.5), rel=1e-12)
    assert gradient == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6, rel=1e-6, abs=1e-8)


def test_unknown_formats_raise_scipys_error():
    array = sparse.csr_array(vg.Tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True))
    with pytest.raises(ValueError, match="Format unknown is unknown"):
        array.asformat("unknown")


def test_groups_of_columns():
    """The columns of an arrow matrix all share the last row, and its rows the last column; reverse mode takes two
    passes.
    """
    n = 50
    arrow = scipy.sparse.coo_array((np.ones(2 * n), ([*range(n), *[0] * n], [*range(n), *range(n)])), shape=(n, n))
    calls = []

    def f(x):
        calls.append(0)
        y = x * x
        y[0] = y[0] + x.sum()
        return y

    x = RNG.normal(size=n)
    found = func.sparse_jacobian(f, arrow)(x)
    assert len(calls) == 1  # one run, and one backward pass for each group
    np.testing.assert_allclose(found.toarray(), np.asarray(func.jacrev(f)(vg.Tensor(x))))
    assert jacobian.color_columns(jacobian._pattern_of(arrow)).max() == n - 1
    assert jacobian.color_columns(jacobian._pattern_of(arrow.T)).max() == 1
    assert jacobian.color_columns(jacobian._pattern_of(band(n))).max() == 2


def test_a_pattern_that_lacks_an_element_is_an_error():
    with pytest.raises(DifferentiabilityError, match="row 1 of the Jacobian"):
        func.sparse_jacobian(banded, scipy.sparse.eye_array(30) + scipy.sparse.eye_array(30, k=1), mode="fwd")(
            RNG.normal(size=30)
        )
    with pytest.raises(ValueError, match="sparsity"):
        func.sparse_jacobian(banded, band(31))(RNG.normal(size=30))


def test_products_with_numbers_on_the_left_stay_sparse():
    values, x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True), vg.Tensor([2.0, 3.0], requires_grad=True)
    a = sparse.csr_array((values, np.array([0, 1, 2]), np.array([0, 1, 2, 3])))
    for factor in (x[0], 2.0, np.float64(2.0)):
        product = factor * a
        assert type(product) is type(a)
        np.testing.assert_allclose(product.data.detach(), [2.0, 4.0, 6.0])
    assert np.asarray(a.detach()).dtype == object  # as of SciPy's arrays


WRITES = {
    "diagonal": lambda a, v: a.setdiag(v),
    "diagonal above": lambda a, v: a.setdiag(v[:2], 1),
    "number on a diagonal": lambda a, v: a.setdiag(v[0] * 2, -2),
    "shorter": lambda a, v: a.resize(2, 4),
    "longer": lambda a, v: a.resize((5, 4)),
    "element": lambda a, v: a.__setitem__((1, 2), v[0] * v[1]),
    "row": lambda a, v: a.__setitem__(2, v),
    "block": lambda a, v: a.__setitem__((slice(0, 3, 2), slice(1, 3)), v[:2]),
    "places": lambda a, v: a.__setitem__(([0, 3], [0, 0]), v[1:3]),
    "sorted": lambda a, v: a.sort_indices(),
}


@pytest.mark.filterwarnings("ignore")  # that changing the structure is slow
@pytest.mark.parametrize("form", ["tocsr", "tocsc", "tocoo", "tolil"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_change_the_array_itself(name, form):
    def written(module, d, v):
        a = getattr(module.coo_array((d, (ROWS, COLS)), shape=(4, 4)), form)()
        WRITES[name](a, v)
        return a

    d, v = inputs(False)
    try:
        right = written(scipy.sparse, d.detach().numpy(), v.detach().numpy())
    except (AttributeError, TypeError):
        pytest.skip("SciPy's array has no such method")
    for values in ((d, v), (d.detach(), v), (d, v.detach()), (d.detach(), v.detach())):
        found = written(sparse, *values)
        np.testing.assert_allclose(found.toarray().detach(), right.toarray())
        assert found.shape == right.shape and found.format == right.format
    assert gradcheck(lambda d, v: written(sparse, d, v).toarray(), (d, v))
