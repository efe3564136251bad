"""Index arrays of reads and writes are released with the saved values."""

import contextlib
import tracemalloc

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.autograd.graph import plain_engine
from viewgrad.errors import FreedGraphError

COUNT = 20_000
PLACES = np.arange(COUNT)
CHOSEN = PLACES % 3 > 0


def put(y, x):
    y[PLACES] = x * 2.0
    return y


def put_through_a_view(y, x):
    y[1:][PLACES[:-1]] = x[1:] * 2.0
    return y


def add_at(y, x):
    np.add.at(y, PLACES, x)
    return y


PROGRAMS = {
    "read": lambda y, x: y[PLACES],
    "read by a mask": lambda y, x: y[CHOSEN],
    "assignment": put,
    "assignment through a view": put_through_a_view,
    "accumulation": add_at,
    "assignment by a mask": lambda y, x: y.copy_where_(x, CHOSEN),
    "take": lambda y, x: y.take(PLACES),
    "take_along_axis": lambda y, x: np.take_along_axis(y, PLACES, 0),
}


@pytest.mark.parametrize("engine", [contextlib.nullcontext, plain_engine])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_index_arrays_are_released_with_the_graph(name, engine, recorded):
    x = vg.Tensor(np.ones(COUNT), requires_grad=True)
    with engine():
        result = PROGRAMS[name](+x, +x)
        total = result.sum()
        first = grad(total, x, retain_graph=True)[0].tolist()
        again = grad(total, x, create_graph=recorded, retain_graph=False)[0].detach()
        assert again.tolist() == first
        del again
        with pytest.raises(FreedGraphError):
            grad(total, x)
    assert isinstance(vg.autograd.graph.explain(result), object) and repr(result.grad_fn)


def test_nothing_of_the_indices_remains_in_memory():
    x = vg.Tensor(np.ones(3), requires_grad=True)
    y = x[np.zeros(10, int)]
    y.sum().backward()
    tracemalloc.start()
    held = []
    for _ in range(5):
        z = x[np.zeros(100_000, int)]
        z.sum().backward()
        held.append(z.grad_fn)
        del z
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert current < 200_000
