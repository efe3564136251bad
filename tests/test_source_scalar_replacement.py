"""Scalar replacement: which array elements loops keep in variables, and their values and gradients."""

import linecache
import random

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.source import build
from viewgrad.compiler.source.aliases import roots_of
from viewgrad.compiler.source.bounds import check_bounds
from viewgrad.compiler.source.definitions import Definitions
from viewgrad.compiler.source.ir import program_text
from viewgrad.compiler.source.read import Reader
from viewgrad.compiler.source.scalar_replacement import promote_to_scalars

LENGTHS = (7, 1, 2, 3, 12)


def replaced(f, *args, is_checked=False):
    """Return the text of a program after the pass."""
    source = Reader().source(f, args, {})
    kinds, names = dict(source.kinds), [each.name for each in source.inputs]
    body = check_bounds(source.body, Definitions(source.body, names))
    taken = set(kinds)

    def fresh(name):
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    return program_text(promote_to_scalars(body, kinds, roots_of(body), fresh, set(), is_checked))


def test_recurrences_move_elements_between_variables():
    def f(x):
        y = np.zeros(len(x))
        for t in range(1, len(x)):
            y[t] = 0.5 * y[t - 1] + x[t]
        return y[0]

    lines = [line.strip() for line in replaced(f, np.ones(4)).splitlines()]
    before, now = [line.split(" = ")[0] for line in lines if "_cell" in line.split(" = ")[0]][:3:2]
    assert f"{now} = add(mul(0.5, {before}), x[t])" in lines
    assert f"{before} = {now}" in lines
    assert sum(line.startswith(f"{before} = y[") for line in lines) == 1  # before the loop


def test_overwritten_elements_stay_in_a_variable():
    def f(x):
        y = np.zeros(1)
        for t in range(len(x)):
            y[0] = 0.5 * y[0] + x[t]
        return y[0]

    assert "_cell = add(mul(0.5, " in replaced(f, np.ones(4))


@pytest.mark.parametrize("statement", [
    "y[t] = x[t] * 2.0",  # nothing is read again
    "y[t] = 0.5 * y[k[t]] + x[t]",  # an element that is not known
    "y[2 * t] = 0.5 * y[t] + 1.0",  # two elements that may meet
    "z[t - 1] = 0.5 * y[t] + 1.0\n        y[t - 1] += z[t]",  # two names of one array
])  # fmt: skip
def test_elements_that_stay_in_memory(statement):
    text = f"""
def f(x, k):
    y = np.zeros(2 * len(x))
    z = y[1:]
    for t in range(1, len(x)):
        {statement}
    return y[0]
"""
    assert "_cell" not in replaced(made(text), np.ones(4), np.zeros(4, int), is_checked=True)


def test_disjoint_rows_are_kept_separate():
    def f(costs):
        n = len(costs)
        r = np.zeros((n + 1, n + 1))
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                r[i, j] = costs[i - 1, j - 1] + 0.5 * r[i - 1, j - 1] + 0.3 * r[i, j - 1]
        return r[n, n]

    assert "_cell" in replaced(f, np.ones((4, 4)))

    def g(a, k):
        for j in range(1, len(a)):
            a[0, j] = 0.5 * a[0, j - 1] + 0.3 * a[k, j]
        return a[0, 0]

    assert "_cell" not in replaced(g, np.ones((4, 4)), 1)


def test_elements_accessed_on_one_branch_only_are_not_loaded():
    def f(x):
        y = x.copy()
        for t in range(len(x)):
            if t > 0:
                y[t] += 0.5 * y[t - 1]
        return y[0]

    assert "_cell" not in replaced(f, np.ones(4), is_checked=True)


# -- values and gradients ----------------------------------------------------------------------------------------------


def made(text):
    name = f"<recurrence {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space[text.split("def ")[1].split("(")[0]]


def recurrence(seed):
    """Draw a program of loops with constant distances between reads and writes."""
    draw = random.Random(seed)

    def place(counter, outer):
        c = draw.choice(["", "", " - 1", " - 1", " + 1", " - 2"])
        if draw.random() < 0.4:
            row = draw.choice([outer or "2", f"{outer} - 1" if outer else "3", "2"])
            return f"g[{row}, {counter}{c}]" if draw.random() < 0.8 else f"g[{counter}{c}, {row}]"
        return f"{draw.choice('abx')}[{counter}{c}]" if draw.random() < 0.85 else f"{draw.choice('ab')}[3]"

    def value(counter, outer):
        terms = [f"{draw.uniform(-0.6, 0.6):.2f} * {place(counter, outer)}" for _ in range(draw.randint(1, 3))]
        text = " + ".join(terms)
        return draw.choice([text, f"np.sin({text})", f"s * ({text})", f"{text} - s"])

    def statement(counter, outer, indent):
        pick = draw.random()
        pad = " " * indent
        if pick < 0.55:
            left = place(counter, outer).replace("x[", "a[")
            return [f"{pad}{left} {draw.choice(['=', '=', '+=', '-=', '*='])} {value(counter, outer)}"]
        if pick < 0.75:
            return [f"{pad}s = {value(counter, outer)}"]
        if pick < 0.95:
            inner = statement(counter, outer, indent + 4)
            return [f"{pad}if {draw.choice([f'{counter} % 2 == 0', 's > 0.1', f'{place(counter, outer)} > 0.0'])}:",
                    *inner]
        return [f"{pad}if s > {draw.uniform(0.3, 1):.2f}:", f"{pad}    break"]

    lines = []
    for _ in range(draw.randint(1, 2)):
        bounds = draw.choice(["2, n + 2", "n + 1, 1, -1", "2, n + 2, 2", "2, n + 2", "n + 1, 1, -1", "0, n + 3"])
        lines.append(f"    for i in range({bounds}):")
        inner = draw.random() < 0.4
        for _ in range(draw.randint(1, 3)):
            lines += statement("i", "", 8)
        if inner:
            lines.append(f"        for j in range({draw.choice(['2, n + 2', 'n + 1, 1, -1', 'i, n + 2'])}):")
            for _ in range(draw.randint(1, 3)):
                lines += statement("j", "i", 12)
            lines += statement("i", "", 8)
    body = "\n".join(lines)
    return f"""
def program(x, y):
    n = len(x) - 4
    a, b, s = np.zeros(n + 4), x * y, 0.2
    g = np.full((n + 4, n + 4), 0.3)
{body}
    return s + a.sum() + (b * y).sum() + (g * g).sum()
"""


def check(seed, executor):
    """Compare a recurrence with its compiled form; return whether it was compiled."""
    text = recurrence(seed)
    program = made(text)
    compiled = vg.compile(program, executor=executor, check=False, specialize=False)
    for n in LENGTHS:
        rng = np.random.default_rng(n)
        given = rng.normal(size=n + 4), rng.normal(size=n + 4)
        with np.errstate(all="ignore"):
            value, gradients = vg.func.value_and_grad(program, (0, 1))(*given)
            for _ in range(2):
                found, slopes = vg.func.value_and_grad(compiled, (0, 1))(*given)
        if not np.isfinite(value) or abs(value) > 1e100:
            continue
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9, err_msg=text)
        for one, other in zip(slopes, gradients):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * max(1, np.abs(other).max()), err_msg=text)
    (entries,) = compiled.tier.specializations.values()
    failed = {reason for entry in entries for reason in entry.failures}
    assert failed <= ({"IndexError"} if "range(0," in text else set()), f"{failed}\n{text}"  # indices from the end
    return "_cell" in compiled.source()


@pytest.mark.parametrize("batch", range(4))
def test_drawn_recurrences(batch, monkeypatch):
    monkeypatch.setattr(build, "KEEPING", {"python"})
    kept = sum(check(seed, "python") for seed in range(batch * 15, batch * 15 + 15))
    assert kept > 5


@pytest.mark.parametrize("seed", [1000, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(1001, 1040)]])
def test_drawn_recurrences_by_numba(seed):
    pytest.importorskip("numba")
    check(seed, "numba")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_negative_indices_may_mean_the_same_element(n):
    """For one element, b[i - 1] is b[i]."""
    def f(x, y, index):
        n = len(x)
        a, b, g = np.zeros(n), x.copy(), np.full((n, n), 0.5)
        s = 0.3 - b[index[0]]
        for i in range(n):
            a[0], b[i - 1] = b[i], a[i]
            g[index[i], -1] *= 0.4
        a[index[0]] = 0.5
        return s + a.sum() + (b * y).sum()

    x, y, index = np.linspace(1.0, 2.0, n), np.linspace(0.5, 1.5, n), np.zeros(n, int)
    compiled = vg.compile(f, executor="numba", specialize=False, check=False)
    leaf = vg.Tensor(x, requires_grad=True)
    for _ in range(3):  # in the first call, the function runs, since an index is negative
        found = vg.autograd.grad(compiled(leaf, y, index), leaf)[0]
        np.testing.assert_allclose(found._array, vg.grad(f)(x, y, index), rtol=1e-13)
    assert "from its source" in compiled.explain()
