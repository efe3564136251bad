"""Profiles and the memory of graphs: counts by operator and line, without side effects."""

import functools
import json
import sys
import threading
import time

import numpy as np
import pytest
from leaves import random_leaf

import viewgrad as vg
from viewgrad.autograd import Function, profile
from viewgrad.autograd.graph import memory


def rows_by_name(rows):
    return {row.name: row for row in rows}


def here(offset):
    """Return the name of the line at an offset from the caller's line, as a profile shows it."""
    frame = sys._getframe(1)
    return f"{__file__}:{frame.f_lineno + offset}"


def test_calls_and_steps_count_for_their_operators_and_lines():
    x = random_leaf(4, 3)
    with profile() as p:
        out = vg.zeros(4, 3)
        first = here(+2)
        for i in range(4):
            out[i] = x[i] * 2
            out[i] *= x[i]
        total = out.T.sum()
        total.backward()
    operators, lines = rows_by_name(p.operators), rows_by_name(p.lines)
    assert {name: (row.calls, row.steps) for name, row in operators.items()} == {
        "select": (12, operators["select"].steps),
        "mul": (4, 4),
        "copy_": (4, 4),
        "mul_": (4, 4),
        "transpose": (1, 1),
        "sum": (1, 1),
        "accumulate_grad": (0, 1),
    }
    assert operators["mul_"].copied == 96  # its own target, which the gradient of x needs
    filling = lines[first]
    assert (filling.calls, filling.steps) == (12, 12)
    assert {name.rpartition(":")[0] for name in lines} == {__file__}
    assert sum(row.steps for row in p.lines) == sum(row.steps for row in p.operators)
    assert all(row.forward > 0 for row in p.operators if row.calls)
    assert all(row.backward > 0 for row in p.operators if row.steps)
    np.testing.assert_allclose(x.grad.numpy(), 4 * x.detach().numpy())


def test_copies_before_a_write_count_for_the_writer_and_its_line():
    x = random_leaf(1000)
    with profile() as p:
        y = x * 1
        z = y * y
        line = here(+1)
        y[:10] = 0.0
        y.exp_()
    operators = rows_by_name(p.operators)
    assert operators["copy_"].copied == 8000 and rows_by_name(p.lines)[line].copied == 8000
    assert operators["exp_"].copied == 0
    (gradient,) = vg.autograd.grad(z.sum(), x)
    np.testing.assert_allclose(gradient.numpy(), 2 * x.detach().numpy())


def test_nested_calls_count_separately():
    class Slow(Function):
        @staticmethod
        def forward(ctx, x):
            for _ in range(20):
                x = vg.exp(-x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = random_leaf(20_000)
    started = time.perf_counter()
    with profile() as p:
        Slow.apply(x).sum().backward()
    elapsed = time.perf_counter() - started
    operators = rows_by_name(p.operators)
    assert (operators["Slow"].calls, operators["Slow"].steps) == (1, 1)
    assert operators["exp"].calls == operators["neg"].calls == 20
    assert sum(row.forward + row.backward for row in p.operators) < elapsed  # nothing counts twice
    np.testing.assert_array_equal(x.grad.numpy(), 2.0)


def test_a_compiled_function_is_one_call():
    @functools.partial(vg.compile, executor="python")
    def smoothed(x):
        out = vg.zeros(20)
        for i in range(1, 20):
            out[i] = 0.5 * out[i - 1] + x[i]
        return (out * out).sum()

    x = random_leaf(20)
    for _ in range(3):
        smoothed(x)
    with profile() as p:
        smoothed(x).backward()
    operators = rows_by_name(p.operators)
    assert {name: row.calls for name, row in operators.items()} == {"compiled smoothed": 1, "accumulate_grad": 0}
    assert operators["compiled smoothed"].steps == 1


def test_steps_of_nodes_from_outside_have_no_line():
    x = random_leaf(3)
    loss = (vg.log_softmax(x, 0) * x[1:2]).sum()
    with profile() as p:
        loss.backward()
    assert {row.name: row.steps for row in p.operators} == {
        "log_softmax": 1,
        "slice": 1,
        "mul": 1,
        "sum": 1,
        "accumulate_grad": 1,
    }
    assert rows_by_name(p.lines)["(line not noted)"].steps == 4


def test_restricted_and_recorded_runs_and_hooks():
    """The timed engine agrees with the untimed one; test_programs.py runs all drawn programs through it."""
    x, y = random_leaf(5), random_leaf(5)
    seen = []

    def program():
        base = x * y
        base[1:] *= y[1:]
        base.register_hook(lambda g: seen.append(g) or g * 2)
        base[1:3].exp_()
        (first,) = vg.autograd.grad((base**2).sum(), x, create_graph=True)
        return vg.autograd.grad(first.sum(), [x, y])

    expected = program()
    with profile():
        found = program()
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy())
    assert len(seen) == 4


def test_profiles_nest_and_end():
    x = random_leaf(3)
    with profile() as outer:
        x.exp()
        with profile() as inner:
            x.sin()
        x.cos()
        with pytest.raises(ValueError, match="broadcast"):
            x + vg.ones(2)
    x.tan()
    assert [row.name for row in outer.operators] == ["exp", "cos", "add"]
    assert [row.name for row in inner.operators] == ["sin"]
    with outer:
        x.exp()
    assert rows_by_name(outer.operators)["exp"].calls == 2


def test_other_threads_are_not_counted():
    x = random_leaf(3)
    with profile() as p:
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    assert p.operators == []


def test_tables():
    x = random_leaf(3)
    with profile() as p:
        for name in ("exp", "sin", "cos", "tanh"):
            getattr(x, name)()  # the line that is shown
    text = str(p)
    assert "getattr(x, name)()  # the line that is shown" in text and "test_profile.py:" in text
    head, *rows = p.table("operator", limit=2).splitlines()
    assert head.split() == ["calls", "forward", "ms", "steps", "backward", "ms", "bytes", "copied", "operator"]
    assert len(rows) == 4 and rows[-2] == "... and 2 more" and rows[-1].split()[0] == "4"
    with pytest.raises(ValueError, match="'operator' or 'line'"):
        p.table("file")


def test_the_trace_has_the_format_of_trace_viewers(tmp_path):
    x = random_leaf(3)
    with profile() as p:
        line = here(+1)
        x.exp().sum().backward()
    p.save_trace(tmp_path / "trace.json")
    found = json.loads((tmp_path / "trace.json").read_text())
    events = [event for event in found["traceEvents"] if event["ph"] == "X"]
    assert [(event["name"], event["cat"]) for event in events] == [
        ("exp", "forward"),
        ("sum", "forward"),
        ("sum", "backward"),
        ("exp", "backward"),
        ("accumulate_grad", "backward"),
    ]
    for event in events:
        assert event["dur"] > 0 and event["ts"] >= 0 and {"pid", "tid"} <= event.keys()
        assert event["args"]["line"] == line
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(end <= event["ts"] for end, event in zip(ends[:-1], events[1:]))
    with profile(trace=False) as short:
        x.exp()
    assert short.operators[0].calls == 1
    with pytest.raises(ValueError, match="create it with trace=True"):
        short.save_trace(tmp_path / "none.json")
    assert not (tmp_path / "none.json").exists()


# -- memory ------------------------------------------------------------------------------------------------------------


def test_memory_by_kind_and_by_line():
    x = random_leaf(1000)
    with profile():
        y = x * 2.0
        made = here(+1)
        z = vg.exp(y)
        loss = (z * y[:1]).sum()
    found = memory(loss)
    kinds = rows_by_name(found.kinds)
    assert {name: (row.nodes, row.values) for name, row in kinds.items()} == {
        "MulBackward": (2, 2),
        "ExpBackward": (1, 1),
        "SliceBackward": (1, 0),
        "SumBackward": (1, 0),
    }
    assert kinds["ExpBackward"].saved == kinds["ExpBackward"].held == 8000
    # the second product saves the result of exp, which is counted for exp, and one element of y, which holds all of y
    assert (kinds["MulBackward"].saved, kinds["MulBackward"].held) == (16, 8008)
    assert (found.total.nodes, found.total.saved, found.total.held, found.total.copied) == (5, 8016, 16008, 0)
    exp = next(row for row in found.lines if "z = vg.exp(y)" in row.name)
    assert exp.name.startswith(f"test_profile.py:{made.rpartition(':')[2]}")
    assert (exp.nodes, exp.saved) == (1, 8000)
    assert "z = vg.exp(y)" in str(found) and "ExpBackward" in str(found)


def test_memory_of_values_copied_before_a_write():
    x = random_leaf(1000)
    y = x * 1
    loss = (y * y).sum()
    before = memory(loss).total
    y[0] = 1.0
    after = memory(loss).total
    assert (before.saved, before.copied) == (8008, 0) and (after.saved, after.copied) == (8008, 8000)
    w = y[::2] * y[::2]
    y += 1  # one copy for each of the two windows
    assert memory(w.sum(), loss).total.copied == 16_000
    loss.backward()
    assert memory(loss).total.saved == memory(loss).total.values == 0


def test_memory_of_custom_functions_compiled_programs_and_packed_values(tmp_path):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.twice = x.detach() * 2
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.twice

    x = random_leaf(100)
    assert memory(Square.apply(x).sum()).total.saved == 1600
    square = vg.compile(lambda x: (x * x).sum(), executor="python")
    square(x)
    assert memory(square(x)).total.saved >= 800
    with vg.autograd.graph.save_on_disk(tmp_path):
        packed = (x * x).sum()
    assert memory(packed).total.saved == 0


def test_memory_of_a_write_through_a_view():
    x = random_leaf(1000)
    out = vg.zeros(1000)
    view = out[100:200]
    view += x[:100]
    view *= x[:100]
    found = rows_by_name(memory(out).kinds)
    assert found["CopySlices"].values == 2 and found["CopySlices"].saved == 1600


def test_memory_of_tensors_without_history():
    assert memory(vg.ones(3)).total.nodes == 0
    assert memory().total.nodes == 0


def test_a_copy_is_saved_again_as_any_window():
    """A recorded backward pass that saves a copied value keeps that copy, and no other."""
    x = random_leaf(100)
    y = x * 1
    loss = (y * y * y).sum()
    y += 1
    (first,) = vg.autograd.grad(loss, x, create_graph=True)
    (second,) = vg.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), 6 * x.detach().numpy())
