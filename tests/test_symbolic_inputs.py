"""Programs with writes, aliasing and choices by value, traced and run with other inputs: two derivatives."""

import asyncio
import gc

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

scipy = pytest.importorskip("scipy")

import viewgrad as vg  # noqa: E402
import viewgrad.numpy as vnp  # noqa: E402
from viewgrad.errors import TraceError  # noqa: E402
from viewgrad.func.tree import flatten  # noqa: E402
from viewgrad.scipy import linalg, special, stats  # noqa: E402
from viewgrad.symbolic import (  # noqa: E402
    function_of,
    trace,
    verify,
)

TABLE = np.arange(12.0).reshape(4, 3) + 1
OUTSIDE = vg.Tensor(np.arange(6.0) + 1)
PROGRAMS = []
program = PROGRAMS.append


@program
def a_choice_added_to_a_window(x):
    y = x * 1
    y[1:] += special.huber(1.0, y[:-1])
    y[::2] *= y[1::2]
    return y


@program
def a_choice_written_over_what_it_was_made_of(x):
    view = x[2:5]
    view[...] = stats.norm.cdf(view)
    return x * 1, view * 2


@program
def rows_of_a_buffer_of_numpys(x):
    buffer = np.zeros((3, 6))
    rows = vg.from_numpy(buffer)
    for i in range(3):
        rows[i] = x * (i + 1)
    return rows.sum(0) + vg.from_numpy(buffer[1]) + vg.from_numpy(buffer)[2]


@program
def a_buffer_that_numpy_fills(x):
    buffer = np.zeros(6)
    for i in range(3):
        buffer[i] = i + 1.0
        x = x * buffer + x
    return x


@program
def a_buffer_and_its_transpose(x):
    square = np.ones((2, 3))
    turned = vg.from_numpy(square.T)
    turned[0] = x[:2]
    return turned @ vg.from_numpy(square)


@program
def arrays_made_inside(x):
    rows = vnp.zeros((2, 6))
    rows[0] = x
    rows[1] = rows[0] * 2
    rows[:, 1:] += rows[:, :-1]
    return rows.T


@program
def nested_lists(x):
    rows = vnp.array([x, x * 2])
    rows[0, 0] = rows[1, 1]
    return rows.T


@program
def memory_that_is_not_set(x):
    empty = vnp.empty(6)
    empty[:] = x
    empty[2:4] = special.expit(empty[2:4])
    return empty


@program
def the_greater_of_two_choices(x):
    return vnp.stack([special.huber(0.5, x), special.pseudo_huber(0.5, x)]).max(0)


@program
def a_choice_of_what_is_detached(x):
    factor = x.detach() * 1
    factor[0] = special.huber(1.0, factor)[1]
    return x * factor


@program
def a_matrix_that_is_factored_twice(x):
    q, r = np.linalg.qr(x[:4].reshape(2, 2) + 3 * np.eye(2))
    return linalg.polar(q @ r + x[4])[1]


@program
def a_tensor_from_outside_and_its_view(x):
    return OUTSIDE * x + OUTSIDE[::2].sum()


@program
def writes_to_what_a_choice_gave(x):
    chosen = special.huber(1.0, x)
    chosen[1:3] = x[:2]
    rows = chosen.reshape(2, 3)
    rows[0] *= 2
    return chosen, rows


@program
def parts_of_complex_numbers(x):
    z = x + 1j * x[::-1]
    z.real[1:] += special.huber(1.0, x[1:])
    return abs(z) ** 2


@program
def nothing_and_numbers(x):
    return special.huber(1.0, x[:0]).sum() + special.huber(x[0], x[1])


@program
def a_choice_in_the_order_of_columns(x):
    chosen = special.huber(1.0, x.reshape(2, 3).T)
    chosen[:, 0] = 0.0
    return chosen.reshape(-1)


@program
def windows_of_a_table(x):
    return x * vg.from_numpy(TABLE[:2].reshape(-1)) + x[:3].sum() * vg.from_numpy(TABLE[0]).sum()


def outcome(function, values):
    x = vg.Tensor(values, requires_grad=True)
    results = [each for each in flatten(function(x * 1))[0] if isinstance(each, vg.Tensor)]
    total = sum((each * each * np.cos(np.arange(each.size).reshape(each.shape))).sum() for each in results)
    (first,) = vg.autograd.grad(total, x, create_graph=True, materialize_grads=True)
    (second,) = vg.autograd.grad((first * first * first).sum(), x, materialize_grads=True)
    return [each.detach().numpy() for each in (*results, first, second)]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_other_inputs(function):
    x = vg.Tensor([0.3, -1.2, 2.0, 0.7, -0.4, 1.5], requires_grad=True) * 1
    traced = function_of(function, x)
    for seed in range(2):
        values = np.random.default_rng(seed).normal(size=6) * (1 + seed)
        for ours, other in zip(outcome(traced, values), outcome(function, values), strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [lambda x: np.broadcast_to(x[:1], (3,)), lambda x: sliding_window_view(x, 2)])
def test_parts_of_a_broadcast_tensor(spread):
    """Its elements share memory, so a trace cannot tell which of them a view contains."""

    def make():
        return vg.Tensor([1.0, 2.0, 3.0], requires_grad=True) * 1

    with pytest.raises(TraceError, match="whose elements share memory"):
        function_of(lambda e: e * e[1], spread(make()))
    verify(trace(lambda e: e * e[1], spread(make()).detach()))
    found = []
    for function in (function_of(lambda e: (e * e).sum(), spread(make())), lambda e: (e * e).sum()):
        x = make()
        found.append(vg.autograd.grad(function(spread(x)), x)[0].numpy())
    np.testing.assert_array_equal(*found)


def test_frozen_tensors_and_generators_are_known():
    """`gc.freeze`, as servers call it before they fork, hides objects from the pass over the heap."""
    weights, generator = vg.Tensor(np.arange(3.0)), np.random.default_rng(0)
    gc.freeze()
    x = vg.Tensor(np.ones(3))
    traced = function_of(lambda x: x * weights, x)
    weights += 1.0
    np.testing.assert_array_equal(traced(x).numpy(), [1.0, 2.0, 3.0])
    with pytest.raises(TraceError, match="drawn random numbers"):
        trace(lambda x: x * generator.normal(), x)


def test_frozen_tensors_are_searched_for_after_futures_were_awaited():
    """In CPython 3.12.1, visiting the state of `_asyncio` twice does not terminate once futures have been awaited."""

    async def wait():
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.set_result, None)
        await future

    weights, x = vg.Tensor(np.arange(3.0)), vg.Tensor(np.ones(3))
    for _ in range(3):
        asyncio.run(wait())
        gc.freeze()
        trace(lambda x: x * weights, x)
        gc.collect()
    gc.unfreeze()
