"""NumPy functions that the source compiler reads: values and gradients against eager, at several lengths."""

import itertools
import linecache
import textwrap

import numpy as np
import pytest

import viewgrad as vg

LENGTHS = (6, 9, 3, 12)
TABLE = np.array([(1.0, 2.0, 2), (3.0, 4.0, 1)], dtype=[("a", float), ("b", float), ("k", int)])
_numbers = itertools.count()
# Programs of vectors x and y, a matrix m with three columns, and integers k from 0 to 2.
PROGRAMS = {
    "split": "a, b, c = np.split(x, 3)\nreturn (a * b).sum() + c[0] ** 2",
    "split at indices": "a, b, c = np.split(x, [1, len(x) - 1])\nreturn a[0] * (b * b).sum() * c[0]",
    "array_split": "s = 0.0\nfor i, p in enumerate(np.array_split(x, 2)):\n    s += p[0] * p.sum() * (i + 1)\nreturn s",
    "split and write": "z = x.copy()\na, b = np.array_split(z, 2)\na *= 2.0\nb[0] = a[0] * y[1]\nreturn (z * z).sum()",
    "hsplit": "a, b, c = np.hsplit(m, 3)\nreturn (a * b - c).sum() ** 2",
    "vsplit": "a, b, c = np.vsplit(m, 3)\nreturn (a * b - c).sum() ** 2",
    "split along an axis": "a, b = np.split(m, [1], axis=-1)\nreturn (a * b).sum()",
    "flip": "z = x.copy()\nnp.flip(z)[0] *= y[0]\nreturn (np.flip(x) * z).sum() + np.dot(np.flip(x[:2]), y[1:3])",
    "flip of axes": (
        "z = m.copy()\nnp.flipud(z)[0] *= y[:3]\nreturn (np.fliplr(z) * np.flip(m, (0, 1)) - np.flip(z, axis=-1)).sum()"
    ),
    "dtypes of new arrays": (
        "w = np.arange(len(x), dtype=float) * np.linspace(0, 1, len(x), dtype=np.float64)\n"
        "return (w * x * y).sum() + (np.eye(3, dtype=m.dtype) * m).sum() * np.identity(3, dtype=float)[0, 0]"
    ),
    "dtypes of reductions": (
        "return np.sum(x, dtype=np.float64) * k.sum(dtype=float) + y.mean(dtype=float) * np.cumsum(k, dtype=float)[-1]"
    ),
    "memory of ndarray": "z = np.ndarray(len(x), dtype=x.dtype)\nz[:] = x\nz[1] *= y[0]\nreturn (z * z).sum()",
    "std": "return np.std(m, axis=1, ddof=1)[0] * np.std(x)",
    "delete": "s = 0.0\nfor i in range(len(x)):\n    s += np.delete(x, i).sum() * np.delete(y, -1)[0] * i\nreturn s",
    "insert": "return (np.insert(x, 1, y[0]) * np.insert(y, -1, 2.0)).sum()",
    "bincount": "return (np.bincount(k, minlength=3) * x[:3] ** 2).sum()",
    "bincount with weights": "return (np.bincount(k, weights=x * y) ** 2).sum() + np.bincount(k, x, 5)[k[0]]",
    "cross": "a = np.cross(x[:3], y[:3])\nreturn (a * a).sum() + np.cross(m, m[::-1])[0, 1]",
    "cov": "c = np.cov(m)\nreturn c[0, 1] * c[1, 1]",
    "polyval": "return np.polyval(x[:3], 0.3) * np.polyval(x[:4], y).sum() + np.polyval([y[0], 2.0, x[1]], x[2])",
    "argmax": "return x[np.argmax(x)] ** 2 * y[np.argmin(y)]",
    "unique": "s = 0.0\nfor j in np.unique(k):\n    s += x[k == j].sum() ** 2\nreturn s",
    "unique with counts": "u, c = np.unique(k, return_counts=True)\nreturn (x[u] ** 2 * c).sum()",
    "histogram": "c, e = np.histogram(y, bins=3)\nreturn (c * x[:3] ** 2).sum()",
    "nan_to_num": "z = x.copy()\nz[0] = np.nan\nreturn (np.nan_to_num(z) ** 2).sum()",
    "triu_indices": "i, j = np.triu_indices(3)\np = np.tril_indices(3, -1)[0]\nreturn (m[i, j]).sum() * m[p[1], 0]",
    "round to decimals": "return (np.round(x, 1) * x).sum() + np.round(y).sum()",
    "reduce and accumulate": "return np.maximum.reduce(x) * np.add.reduce(y) + (np.add.accumulate(x) * y).sum()",
    "outer of a ufunc": "return (np.add.outer(x, y) ** 2).sum() + np.subtract.outer(y, x)[1, 2] ** 2",
    "an index read from the array": "z = x.copy()\nz[int(z[0] > 0)] = 4.0\nreturn (z * z * y).sum() + z[1] ** 2",
    "an index read from the array, updated": (
        "z = x.copy()\nfor t in range(2):\n    z[int(z[t] > 0)] *= z[2] - y[t]\nreturn (z * z * y).sum()"
    ),
    "an index read from integers that are overwritten": (
        "i = k.copy()\nz = x.copy()\nfor t in range(3):\n    z[i[t]] *= 2.0 + z[0]\n    i[i[t]] = (t + 1) % 3\n"
        "return (z * z * y).sum()"
    ),
    "an index read from a view": (
        "a = x[:3].copy()\nb = a.reshape(3, 1)\nb[int(a[0] > 0), 0] = y[0]\nb[int(b[1, 0] > 0)] *= b[0, 0]\n"
        "return (a * a * y[:3]).sum()"
    ),
    "nonzero": "return x[np.nonzero(y < 9)[0][1]] ** 2 * y[k.nonzero()[0][0]] + x[np.where(y < 9)[0][-1]]",
    "structured array": "s = x[0]\nfor i in range(len(TABLE)):\n    s *= x[TABLE['k'][i]] + TABLE['a'][i]\nreturn s",
}


def made(text, **more):
    text = "def program(x, y, m, k):\n" + textwrap.indent(text, "    ") + "\n"
    name = f"<program {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"np": np, "TABLE": TABLE, **more}
    exec(compile(text, name, "exec"), space)
    return space["program"], space


def arguments(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.normal(size=n), rng.normal(size=(3, 3)), np.arange(n) * 2 % 3


def along(function, given, step=1e-6):
    """Return the derivative of a function along a direction, by central differences."""
    ways = [np.cos(1.0 + np.arange(each.size)).reshape(each.shape) for each in given[:3]]
    ends = [function(*[each + sign * step * way for each, way in zip(given, ways)], given[3]) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step), ways


def check(function, executor, is_smooth):
    compiled = vg.compile(function, executor=executor, specialize=False)
    for n in LENGTHS:
        given = arguments(n)
        value, gradients = vg.func.value_and_grad(function, (0, 1, 2))(*given)
        for _ in range(2):
            found, slopes = vg.func.value_and_grad(compiled, (0, 1, 2))(*given)
            np.testing.assert_allclose(found, value, rtol=1e-10)
            for one, other in zip(slopes, gradients):
                np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
        if is_smooth:
            expected, ways = along(function, given)
            np.testing.assert_allclose(sum((g * w).sum() for g, w in zip(slopes, ways)), expected, rtol=1e-5, atol=1e-6)
    told = compiled.explain()
    assert "not compiled from its source" not in told and "ran eagerly" not in told, told


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_functions(name, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    check(made(PROGRAMS[name])[0], executor, "round" not in name and "unique" != name)


@pytest.mark.parametrize("text, error", [
    ("return np.split(x, 4)[0].sum()", ValueError), ("return np.delete(x, 17).sum()", IndexError),
    ("return np.insert(x, -17, 1.0).sum()", IndexError), ("return (np.bincount(k - 1) * 1.0).sum()", ValueError),
    ("return np.bincount(k[1:], weights=x).sum()", ValueError), ("return np.cross(x[2:], y[2:]).sum()", ValueError),
])  # fmt: skip
def test_errors_match_numpy(text, error):
    function, _ = made(text)
    compiled = vg.compile(function, executor="python", specialize=False, check=False)
    for n in (3, 7):
        with pytest.raises(error):
            vg.func.value_and_grad(compiled, (0, 1, 2))(*arguments(n))


def test_structured_arrays_are_read_at_each_call():
    function, space = made(PROGRAMS["structured array"], TABLE=TABLE.copy())
    compiled = vg.compile(function, executor="python", specialize=False)
    given = arguments(5)
    for number in range(12):
        space["TABLE"]["a"][0] = number
        both = [vg.func.value_and_grad(each)(*given) for each in (compiled, function)]
        np.testing.assert_allclose(both[0][1], both[1][1])
    assert [len(entries) for entries in compiled.tier.specializations.values()] == [1]
    space["TABLE"] = np.array([(1.0, 2), (3.0, 1), (5.0, 0)], dtype=[("a", float), ("k", int)])
    both = [vg.func.value_and_grad(each)(*given) for each in (compiled, function)]
    np.testing.assert_allclose(both[0][1], both[1][1])


def scale_free(w, x):
    y = np.empty(len(x), np.float32)
    y[:] = w * x
    z = (y - y.mean()) / np.std(y)  # so the gradient with respect to w is the rounding error of single precision
    return 10.0 * (z * z * z).sum() + w


def test_float32_intermediates_are_compared_with_float32_tolerance():
    x = np.random.default_rng(0).exponential(size=40)
    compiled = vg.compile(scale_free, specialize=False)
    slope = vg.grad(compiled)(1.3, x)
    assert "not compiled" not in str(compiled.explain())
    assert slope == pytest.approx(1.0, abs=0.01)


@pytest.mark.filterwarnings("error")
def test_sample_computations_do_not_warn():
    compiled = vg.compile(lambda x: np.std(x, ddof=1) ** 2, specialize=False)
    assert vg.grad(compiled)(np.array([1.0, 2.0, 4.0])) == pytest.approx([-4.0 / 3.0, -1.0 / 3.0, 5.0 / 3.0])
