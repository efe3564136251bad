"""Small matrices in compiled programs: determinants, inverses, systems of equations, diagonals."""

import numpy as np
import pytest
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.autograd import grad


def outcome(f, *arrays):
    leaves = [vg.Tensor(array, requires_grad=True) for array in arrays]
    value = f(*leaves)
    return [value.detach().numpy(), *(g.numpy() for g in grad(value, leaves))]


def kalman(y, q):
    x, spread, step = vg.zeros(2), np.eye(2), np.array([[1.0, 0.1], [0.0, 1.0]])
    total = 0.0
    for t in range(len(y)):
        x, spread = step @ x, step @ spread @ step.T + np.diag(q[:2] ** 2 + 0.1)
        seen = spread + np.diag(q[2:] ** 2 + 0.1)
        error, gain = y[t] - x, spread @ np.linalg.inv(seen)
        x, spread = x + gain @ error, (np.eye(2) - gain) @ spread
        total = total + np.log(np.linalg.det(seen)) + error @ np.linalg.solve(seen, error)
    return total


def in_steps(a, b):
    x, total = b * 1.0, 0.0
    for _ in range(6):
        matrix = a + np.diag(x[:, 0])
        x = np.linalg.solve(matrix, x) + np.linalg.inv(a) @ b * 0.1
        total = total + np.linalg.slogdet(matrix)[1] * np.linalg.slogdet(matrix)[0] + np.linalg.solve(a, x[0]).sum()
    return total + (x * x).sum() + np.linalg.det(a)


@pytest.mark.parametrize(
    ("size", "executor"),
    [
        *((size, "python") for size in (0, 1, 2, 3, 4)),
        *(pytest.param(size, "numba", marks=pytest.mark.slow) for size in (0, 3)),
    ],
)
def test_small_matrices_match_eager(size, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    program = in_steps if size else kalman
    compiled = vg.compile(program, executor=executor)
    rng = np.random.default_rng(size)
    for _ in range(4):
        if size:
            given = rng.normal(size=(size, size)) + 4 * np.eye(size), rng.normal(size=(size, size))
        else:
            given = rng.normal(size=(9, 2)), rng.normal(size=4)
        for found, wanted in zip(outcome(compiled, *given), outcome(program, *given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    source = compiled.source()
    assert ("call_" in source) == (size > 3) or executor == "numba"


def test_singular_matrices_raise_as_in_eager_mode():
    compiled = vg.compile(lambda a, b: np.linalg.solve(a, b).sum() + np.linalg.inv(a)[0, 0], executor="python")
    regular, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.ones(2)
    for _ in range(3):
        outcome(compiled, regular, b)
    with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
        outcome(compiled, np.ones((2, 2)), b)
    close = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    for found, wanted in zip(outcome(compiled, close, b), outcome(compiled.function, close, b), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_matrices_that_come_near_singular_ones_are_left_to_numpy():
    def fitted(x, y):
        total = 0.0
        for t in range(len(x)):
            rows = np.stack([vg.ones(5), x[t], x[t] ** 2], axis=1)
            total = total + np.linalg.solve(rows.T @ rows + 1e-9 * np.eye(3), rows.T @ y)[1]
        return total

    compiled = vg.compile(fitted, executor="python")
    rng = np.random.default_rng(0)
    for spread in (1.0, 1.0, 1.0, 1e-2, 1e-2, 1e-2, 1.0):
        x = vg.Tensor(1 + spread * rng.normal(size=(6, 5)), requires_grad=True)
        y = vg.Tensor(rng.normal(size=5), requires_grad=True)
        found, wanted = compiled(x, y), fitted(x, y)
        np.testing.assert_allclose(found.detach(), wanted.detach(), rtol=1e-6)
        for one, other in zip(vg.autograd.grad(found, [x, y]), vg.autograd.grad(wanted, [x, y]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6 * np.abs(other.numpy()).max())
    entry = compiled.specializations[0]
    assert entry.usage.traces == 1 and entry.near_singular_lines, compiled.explain()
    assert "eagerly" not in compiled.explain(), compiled.explain()


def filtered(p, f):
    total, spread = 0.0, p * 1.0
    for _ in range(5):
        spread = f @ spread @ f.T + p
        gain = spread @ np.linalg.inv(spread + p)
        spread = spread - gain @ spread
        lower = np.linalg.cholesky(spread + p)
        sign, size = np.linalg.slogdet(lower)
        total = total + sign * size + np.linalg.solve(lower.T, np.linalg.solve(lower, f[0])) @ f[-1]
        total = total + np.linalg.solve(spread, f)[0, -1] + (lower * f).sum() + 1e-3 * np.linalg.det(f - spread)
    return total


@pytest.mark.parametrize("executor", ["interpreted", "python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("n", [1, 2, 4, 6, 33])
def test_small_matrices_match_numpy(n, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    compiled = compiled_by(executor, filtered)
    for call in range(4):
        rng = np.random.default_rng((n, call))
        factor = rng.normal(size=(n, n)) / np.sqrt(n)
        given = factor @ factor.T + np.eye(n), rng.normal(size=(n, n)) / np.sqrt(n)
        for found, wanted in zip(outcome(compiled, *given), outcome(filtered, *given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12 * np.abs(wanted).max())
    assert "eagerly" not in compiled.explain()
    assert ("cholesky(b" in compiled.source()) == (n < 33 and executor != "python")


BAD = {
    "rows to be exchanged": [[0.0, 1.0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 1, 0]],
    "singular": np.arange(16.0).reshape(4, 4),
    "zeros": np.zeros((4, 4)),
    "nearly singular": np.arange(16.0).reshape(4, 4) + 1e-12 * np.sin(np.arange(16.0)).reshape(4, 4),
    "not definite": np.diag([1.0, 1.0, -1.0, 1.0]),
    "NaN": np.diag([1.0, np.nan, 1.0, 1.0]),
    "inf": np.diag([1.0, 1.0, np.inf, 1.0]),
    "large and small": np.diag([1e4, 1e-4, 1e3, 1e-3]) + 1e-6,
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["solve", "solve of a vector", "inv", "det", "slogdet", "cholesky"])
def test_compiled_code_that_gives_up_falls_back_to_numpy(name, bad):
    def f(a, b):
        total = 0.0
        for i in range(3):
            if name == "solve of a vector":
                found = np.linalg.solve(a, b[i])
            elif name == "solve":
                found = np.linalg.solve(a, b)
            elif name == "slogdet":
                found = np.linalg.slogdet(a)[1]
            else:
                found = getattr(np.linalg, name)(a)
            total = total + (found * b[i, i]).sum()
        return total

    def outcome_or_error(g, a, b):
        try:
            with np.errstate(all="ignore"):
                return outcome(g, a, b)
        except np.linalg.LinAlgError as error:
            return str(error)

    compiled = compiled_by("interpreted", f)
    b = np.random.default_rng(0).normal(size=(4, 4))
    for _ in range(3):
        outcome(compiled, b @ b.T + np.eye(4), b)
    assert compiled.specializations[0].program is not None, compiled.explain()
    given = np.array(BAD[bad]), b
    found, wanted = outcome_or_error(compiled, *given), outcome_or_error(f, *given)
    if isinstance(wanted, str):
        assert found == wanted
        return
    for one, other in zip(found, wanted, strict=True):
        rough = bad == "nearly singular"  # sums with cancellation
        np.testing.assert_allclose(one, other, rtol=1e-3 if rough else 1e-7, atol=1e-2 if rough else 1e-12)
