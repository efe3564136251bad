"""Linear cost, counted rather than timed: allocations, comparisons and nodes per write or read."""

from __future__ import annotations

import numpy as np
import pytest
from allocations import allocations
from leaves import random_leaf

import viewgrad as vg
from viewgrad.tensor.storage import storage_of

ROWS, WIDTH = 64, 512
BASE_BYTES = ROWS * WIDTH * 8
ROW_BYTES = WIDTH * 8


# Programs that make `count` small writes or reads on a table whose size does not depend on `count`. Each returns the
# number to be differentiated and the leaves.


def row_fill(count):
    x = random_leaf(ROWS, WIDTH)
    out = vg.zeros(ROWS, WIDTH)
    for i in range(count):
        out[i] = x[i] * 2
    return out.sum(), [x]


def column_fill(count):
    x = random_leaf(WIDTH, ROWS)
    out = vg.zeros(WIDTH, ROWS)
    for i in range(count):
        out[:, i] = x[:, i] * 2
    return (out * out).sum(), [x]


def row_reads(count):
    x = random_leaf(ROWS, WIDTH)
    s = vg.zeros()
    for i in range(count):
        s += (x[i] * 2).sum()
    return s, [x]


def recurrence(count):
    a, start = random_leaf(WIDTH), random_leaf(WIDTH, seed=1)
    x = vg.zeros(ROWS, WIDTH)
    x[0] = start
    for i in range(1, count):
        x[i] = a * x[i - 1]
    return x.sum(), [a, start]


def cells(count):
    x = random_leaf(ROWS, WIDTH)
    out = x.clone()
    for i in range(1, count):
        out[i, i] = out[i - 1, i - 1] * out[i - 1, i] + x[0, i]
    return out.sum(), [x]


def blocks(count):
    x = random_leaf(ROWS, WIDTH)
    out = x.clone()
    for i in range(count):
        column = 8 * i % WIDTH
        out[2:6, column : column + 8] *= x[2:6, column : column + 8]
    return out.sum(), [x]


def in_place_through_a_view(count):
    x = random_leaf(ROWS, WIDTH)
    out = x.clone()
    for i in range(count):
        row = out[i % ROWS]
        row *= x[i % ROWS]
        row += 1.0
    return (out * out).sum(), [x]


def view_of_a_view(count):
    x = random_leaf(ROWS, WIDTH)
    table = vg.zeros(ROWS + 1, WIDTH + 2)
    inner = table[:, 1:-1]
    for i in range(count):
        inner[i + 1][:] = inner[i][:] * 0.5 + x[i]
    return (table * table).sum(), [x]


def reads_through_a_view_of_a_view(count):
    x = random_leaf(ROWS, WIDTH)
    inner = x[1:, 1:]
    s = vg.zeros()
    for i in range(count - 1):
        s = s + (inner[i][2:] * x[i][3:]).sum()
    return s, [x]


def reads_of_a_transpose(count):
    x = random_leaf(WIDTH, ROWS)
    s = vg.zeros()
    for i in range(count):
        s = s + (x.T[i] * 2).sum()
    return s, [x]


def reads_by_reshape(count):
    x = random_leaf(ROWS, WIDTH)
    flat = x.reshape(-1)
    s = vg.zeros()
    for i in range(count):
        s = s + (flat[i * WIDTH : (i + 1) * WIDTH] * 2).sum()
    return s, [x]


def ring_buffer(count):
    x, a = random_leaf(ROWS, WIDTH), random_leaf(WIDTH, seed=1)
    ring = vg.zeros(ROWS, WIDTH)
    for t in range(count):
        ring[t % 4] = x[t] + a * ring[t % 4]
    return ring.sum(), [x, a]


def masked_writes(count):
    x = random_leaf(ROWS, WIDTH)
    masks = np.random.default_rng(2).random((ROWS, WIDTH)) < 0.5
    out = vg.zeros(ROWS, WIDTH)
    for i in range(count):
        row = out[i]
        row[masks[i]] = x[i][masks[i]] * 2
    return (out * out).sum(), [x]


def index_put(count):
    x = random_leaf(ROWS, WIDTH)
    places = np.random.default_rng(3).permutation(ROWS * WIDTH).reshape(ROWS, WIDTH)
    out = vg.zeros(ROWS * WIDTH)
    for i in range(count):
        out[places[i]] = x[i] * 2
    return (out * out).sum(), [x]


def gathers(count):
    x = random_leaf(ROWS * WIDTH)
    places = np.random.default_rng(3).integers(0, ROWS * WIDTH, (ROWS, WIDTH))
    s = vg.zeros()
    for i in range(count):
        s = s + (x[places[i]] * 2).sum()
    return s, [x]


def numbers_written(count):
    x = random_leaf(ROWS, WIDTH)
    out = x * 2
    for i in range(count):
        out[i, 1:] = 0.5
        out[i, 0] = float(i)
    return (out * out).sum(), [x]


PROGRAMS = [
    row_fill,
    column_fill,
    row_reads,
    recurrence,
    cells,
    blocks,
    in_place_through_a_view,
    view_of_a_view,
    reads_through_a_view_of_a_view,
    reads_of_a_transpose,
    reads_by_reshape,
    ring_buffer,
    masked_writes,
    index_put,
    gathers,
    numbers_written,
]
FEW, MANY = 8, 48
# The maximum allocation of a write or read: a few arrays of the size of a row, including arrays of indices.
ROWS_PER_STEP = 12


def by_backward(value, leaves):
    value.backward()


def by_grad(value, leaves):
    vg.autograd.grad(value, leaves)


def twice_retained(value, leaves):
    value.backward(retain_graph=True)
    value.backward()


def recorded(value, leaves):
    vg.autograd.grad(value, leaves, create_graph=True)


def allocated(program, count, run):
    """Return the sizes of allocations in running the program for `count` steps, and in differentiating it."""
    with allocations() as forward:
        value, leaves = program(count)
    with allocations() as backward:
        run(value, leaves)
    return forward, backward


def large(sizes):
    return sum(size >= BASE_BYTES for size in sizes)


@pytest.mark.parametrize("run", [by_backward, by_grad, twice_retained, recorded])
@pytest.mark.parametrize("program", PROGRAMS)
def test_number_of_base_sized_arrays_is_independent_of_writes(program, run):
    few_forward, few_backward = allocated(program, FEW, run)
    many_forward, many_backward = allocated(program, MANY, run)
    assert large(many_forward) == large(few_forward)
    assert large(many_backward) == large(few_backward)


@pytest.mark.parametrize("program", PROGRAMS)
def test_full_size_copies_in_the_backward_pass_are_few(program):
    _, backward = allocated(program, MANY, by_backward)
    # The gradient of the result, the accumulator of each leaf, and a copy of each shared gradient.
    assert large(backward) <= 4


@pytest.mark.parametrize("run", [by_backward, by_grad, recorded])
@pytest.mark.parametrize("program", PROGRAMS)
def test_reads_and_writes_allocate_in_proportion_to_their_size(program, run):
    few_forward, few_backward = allocated(program, FEW, run)
    many_forward, many_backward = allocated(program, MANY, run)
    assert sum(many_forward) - sum(few_forward) <= (MANY - FEW) * ROWS_PER_STEP * ROW_BYTES
    assert sum(many_backward) - sum(few_backward) <= (MANY - FEW) * ROWS_PER_STEP * ROW_BYTES


# -- double backward ---------------------------------------------------------------------------------------------------


def squared_row_fill(rows):
    x = random_leaf(rows, WIDTH)
    out = vg.zeros(rows, WIDTH)
    for i in range(rows):
        out[i] = x[i] * x[i]
    return (out * out).sum(), x


def nodes_behind(tensor):
    seen = set()
    stack = [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(following for following, _ in node.next_functions)
    return len(seen)


def test_recorded_backward_of_a_row_fill_is_linear_in_rows():
    numbers = {}
    for rows in (16, 64):
        value, x = squared_row_fill(rows)
        (grad,) = vg.autograd.grad(value, x, create_graph=True)
        numbers[rows] = nodes_behind(grad)
    assert numbers[64] <= 4 * numbers[16]
    assert numbers[64] <= 64 * 40


def test_double_backward_of_a_row_fill_allocates_in_proportion_to_the_rows():
    totals = {}
    for rows in (16, 64):
        value, x = squared_row_fill(rows)
        with allocations() as first:
            (grad,) = vg.autograd.grad(value, x, create_graph=True)
        with allocations() as second:
            vg.autograd.grad((grad * grad).sum(), x)
        totals[rows] = sum(first), sum(second)
    assert totals[64][0] <= 4.5 * totals[16][0]
    assert totals[64][1] <= 4.5 * totals[16][1]


def test_double_backward_of_a_row_fill_is_correct():
    value, x = squared_row_fill(8)  # the sum of x ** 4
    (grad,) = vg.autograd.grad(value, x, create_graph=True)
    (second,) = vg.autograd.grad((grad * grad).sum(), x)
    values = x.detach().numpy()
    assert np.allclose(grad.detach().numpy(), 4 * values**3)
    assert np.allclose(second.numpy(), 96 * values**5)


# -- saved windows -----------------------------------------------------------------------------------------------------

FORMS = {
    "rows": lambda n: list(range(n)),
    "columns": lambda n: [(slice(None), i) for i in range(n)],
    "cells": lambda n: [(slice(i, i + 1), slice(7 * i % n, 7 * i % n + 1)) for i in range(n)],
    "blocks": lambda n: [(slice(4 * i, 4 * i + 4), slice(4 * i, 4 * i + 4)) for i in range(n // 4)],
    "halves of rows": lambda n: [(i // 2, slice(0, n // 2) if i % 2 else slice(n // 2, n)) for i in range(n)],
    "strided rows": lambda n: [(i, slice(None, None, 3)) for i in range(n)],
}
# A strided row intersects the bounding boxes of all columns and touches a third of them, so the number of comparisons
# is proportional to the number of written elements.
WRITTEN = [form for form in FORMS if form != "strided rows"]


def windows_of(tensor):
    windows = storage_of(tensor).windows
    assert windows is not None
    return windows


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("saved", FORMS)
def test_windows_compared_per_write_do_not_grow_with_the_number_saved(saved, written):
    compared = {}
    for n in (32, 256):
        w = random_leaf(n)[0] * 1.0
        table = vg.ones(n, n)
        kept = [table[index] * w for index in FORMS[saved](n)]  # each saves its window, for the gradient of w
        writes = FORMS[written](n)
        before = windows_of(table).compared
        with vg.no_grad():
            for index in writes:
                table[index] = 2.0
        # Each window that is touched is compared once, since the write copies it.
        compared[n] = (windows_of(table).compared - before - len(kept)) / len(writes)
    assert compared[256] <= max(2 * compared[32], 16)


def test_a_write_to_memory_without_saved_windows_compares_nothing():
    x = random_leaf(64, 4)
    out = vg.zeros(64, 4)
    for i in range(64):
        out[i] = x[i] * 2
    assert storage_of(out).windows is None


def test_single_elements_are_saved_as_numbers_without_registration():
    x = random_leaf(8, 8)
    table = x * 1.0
    parts = [table[i, j] * table[j, i] for i in range(8) for j in range(8)]
    assert storage_of(table).windows is None
    table[:] = 0.0
    assert storage_of(table).preserved is None
    (grad,) = vg.autograd.grad(sum(parts), x)
    assert np.array_equal(grad.numpy(), 2 * x.detach().numpy().T)


def test_registry_of_a_parameter_holds_only_live_windows():
    parameter = random_leaf(8, 4)
    storage = storage_of(parameter)
    for step in range(3000):
        (parameter[step % 8] * parameter[(step + 1) % 8]).sum().backward()
        parameter.grad = None
    assert len(windows_of(parameter)) <= 64
    assert storage.whole is None or storage.whole.array is storage.root


def test_the_registry_holds_all_windows_that_are_still_needed():
    parameter = random_leaf(500, 4)
    other = vg.ones(4, requires_grad=True)
    kept = [parameter[i] * other for i in range(500)]
    assert len(windows_of(parameter)) >= 500
    with vg.no_grad():
        parameter[...] = 0.0
    sum(y.sum() for y in kept).backward()
    assert np.all(other.grad.numpy() > 100.0)


def test_saved_window_is_copied_once_for_many_writes():
    a = random_leaf(16)
    table = vg.ones(16, 16)
    kept = [table[i] * a for i in range(16)]
    for _ in range(5):
        for i in range(16):
            table[i] = 3.0
    preserved = storage_of(table).preserved
    assert preserved is not None and len(preserved) == 16
    sum(y.sum() for y in kept).backward()
    assert np.array_equal(a.grad.numpy(), np.full(16, 16.0))
