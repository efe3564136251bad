"""Textbook programs in plain NumPy, differentiated unmodified, against central differences."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import textbook_loops

import viewgrad as vg

SPACE: dict[str, object] = {"__name__": "textbook_in_numpy"}
pytest.importorskip("scipy")
NAMES = {
    "import viewgrad as vg\n": "from scipy.special import expit, logsumexp\n",
    "vg.sigmoid": "expit",
    "vg.logsumexp": "logsumexp",
    ".clone()": ".copy()",
}
TEXT = inspect.getsource(textbook_loops)
for name, plain in (*NAMES.items(), ("vg.", "np.")):
    TEXT = TEXT.replace(name, plain)
exec(compile(TEXT, "textbook_in_numpy.py", "exec"), SPACE)
PROGRAMS = {function.__name__: make for function, make in SPACE["LOOPS"].items()}


def total(results):
    """Return a number that depends on all results of a program."""
    if isinstance(results, (tuple, list)):
        return sum((0.7**number) * total(each) for number, each in enumerate(results))
    if isinstance(results, dict):
        return total(list(results.values()))
    if np.ndim(results) == 0:
        return results
    return (results * np.cos(np.arange(results.size)).reshape(results.shape)).sum()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_in_numpy(name):
    program = SPACE[name]
    rng = np.random.default_rng(3)
    arguments = PROGRAMS[name](rng)
    numbers = [n for n, each in enumerate(arguments) if np.asarray(each).dtype.kind == "f"]
    directions = {n: rng.normal(size=np.shape(arguments[n])) for n in numbers}

    def f(*args):
        return total(program(*args))

    def at(step):
        moved = [each + step * directions[n] if n in directions else each for n, each in enumerate(arguments)]
        return f(*[each.copy() if isinstance(each, np.ndarray) else each for each in moved])

    value, slopes = vg.value_and_grad(f, numbers)(*arguments)
    assert isinstance(value, float) and value == pytest.approx(float(at(0.0)), rel=1e-12)
    slope = sum(np.vdot(each, directions[n]) for each, n in zip(slopes, numbers, strict=True))
    expected = (8 * (at(1e-5) - at(-1e-5)) - (at(2e-5) - at(-2e-5))) / 12e-5
    assert slope == pytest.approx(float(expected), rel=1e-6, abs=1e-7)
