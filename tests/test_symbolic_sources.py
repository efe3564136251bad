"""Lines that a drawn source program has found, traced: as a graph, against the eager run."""

import numpy as np
import pytest
from symbolic_checks import check

import viewgrad as vg
from viewgrad.errors import EscapeError
from viewgrad.symbolic import trace

LINES = {
    "a new axis of a scalar": lambda x: (x.sum()[None] * x, np.expand_dims(x.sum(), 0), x.sum()[..., None]),
    "a window of a scalar": lambda x: (lambda s: (s[...].mul_(2.0), s))(x.sum()),
    "a scalar given back twice": lambda x: (lambda s: (s, s.conj(), s))(x.sum()),
    "what is made a scalar": lambda x: np.inner(x, x) * np.std(x, where=np.array([True, False, True])),
    "the variance of a scalar": lambda x: np.var(x.sum() * x.sum(), dtype=float) + x[0],
    "arrays like one": lambda x: np.full_like(x, 0.5) * x + np.zeros_like(x) + np.ones_like(x, dtype=float),
    "a partition": lambda x: np.partition(x, 1) * x,
    "precision": lambda x: (x.astype(np.longdouble) * 1.3).astype(float) * x,
    "a number that is kept": lambda x: x.astype(np.float32) * 0.7 * x,
    "closeness": lambda x: x * 2.0 if np.allclose(x, x + 1e-12) and np.array_equal(x, x) else x,
    "a scalar that becomes a leaf": lambda x: (x.sum().detach().requires_grad_() * x).sum(),
}


@pytest.mark.parametrize("line", LINES)
def test_line(line):
    function = LINES[line]
    trace(function, vg.ones(3, requires_grad=True))  # numbers are kept from here on
    check(function, [np.array([0.5, 1.5, -0.25])], line, again=True)


def test_closeness_is_a_guard_of_the_outcome_alone():
    graph = trace(lambda x: x * 2.0 if np.allclose(x, 1.0, atol=0.5) else x, vg.ones(2))
    (found,) = vg.symbolic.run(graph, [np.array([1.25, 0.75])])
    assert found.tolist() == [2.5, 1.5]
    with pytest.raises(vg.errors.GuardError, match=r"bool\(\)"):
        vg.symbolic.run(graph, [np.array([1.25, 5.0])])


def test_a_choice_by_values_is_refused_with_its_line():
    with pytest.raises(EscapeError, match=r"a choice by values at .*test_symbolic_sources\.py:\d+"):
        trace(np.unique, vg.ones(2))
