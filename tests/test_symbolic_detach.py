"""Traced programs that end histories in place, by `detach_()` or `requires_grad_(False)`; earlier views keep theirs."""

import numpy as np
import pytest
from symbolic_checks import check

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import GraphError, TraceError
from viewgrad.symbolic import function_of, trace

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def a_write_before_and_one_behind(x):
    y = x * 1.0
    y.mul_(2)
    y.detach_()
    y[0] = x[1] * 2
    return (y * y).sum()


@program
def a_view_from_before(x):
    y = x * 1.0
    view = y[:2]
    y.detach_()
    return (view * view).sum() + (y * x).sum()


@program
def numbers_written_below_a_view_from_before(x):
    y = x * 1.0
    view = y[:2]
    y.detach_()
    y[0] = 5.0
    return (view * view * x[2]).sum() + (y * x).sum()


@program
def places_written_below_a_view_from_before(x):
    y = x * 1.0
    view = y[:2]
    y.detach_()
    y[[0, 0, 1]] = vg.Tensor([1.0, 2.0, 3.0])
    np.add.at(y, [1, 1], 2.0)
    return (view * view * x[0]).sum() + (y * x).sum()


@program
def a_view_from_before_written_to_unrecorded(x):
    y = x * 1.0
    view = y[:2]
    y.detach_()
    with vg.no_grad():
        view.mul_(2)
    return (view * view * x[0]).sum() + (y * x).sum()


@program
def views_from_behind(x):
    y = x * 1.0
    y[:2] *= x[1:]
    y.detach_()
    view = y[1:]
    y[2] = x[0] * 7
    view[0] = x[1] * x[1]
    return (view * view).sum() + (y * x).sum()


@program
def twice(x):
    y = x * 1.0
    first = y[1:]
    y.detach_()
    square = (first * first).sum()
    y[0] = x[1] * x[1]
    second = y[:2]
    y.detach_()
    y[1] = 4.0
    return (second * second * x[:2]).sum() + square * x[0] + (y * x).sum()


@program
def beside_a_detached_tensor(x):
    y = x * x
    other = y.detach()
    y.mul_(2)
    y.detach_()
    y[0] = x[1] * 2
    other.mul_(3)
    return (y * y * x).sum() + (other * x).sum()


@program
def of_a_detached_tensor_below_one_that_is_written_over(x):
    y = x * 1.0
    other = y.detach()
    other.mul_(x)
    other.detach_()
    y[...] = x * x
    y[:2].fill_(2.0)
    y.mul_(x)
    y.detach_()
    other[...] = x * 2
    return (y * y * x).sum() + (other * other * x).sum()


@program
def gradients_of_what_was_saved_before(x):
    y = x * x
    view = y[:2]
    cubes = (y * y * y).sum() + (view * view * x[:2]).sum()
    y.detach_()
    y[0] = x[1] * 5
    others = (y * y * y).sum()
    y.detach_()
    y[1] = x[0] * x[0]
    (found,) = grad(cubes + others + (y * y * y).sum(), x, create_graph=True)
    return (found * y).sum()


@program
def gradients_of_a_tensor_that_nobody_else_looks_at(x):
    y = x * x
    cubes = (y * y * y).sum()
    y.detach_()
    (found,) = grad(cubes, x, create_graph=True)
    return (found * y).sum()


@program
def a_leaf_since(x):
    y = x * 1.0
    view = y[:2]
    y.detach_()
    y.requires_grad_()
    (found,) = grad((y * y * x).sum(), y, create_graph=True)
    squares = (view * view).sum()
    y.requires_grad_(False)
    y[0] = x[1] * x[1]
    return squares * x[0] + (y * y).sum() + (found * x).sum()


@program
def a_state_carried_over(x):
    state = vg.zeros(3)
    total = 0.0
    for i in range(4):
        state[i % 3] = state[(i + 1) % 3] * x[0] + x[1]
        total = total + (state * state * state).sum()
        state.detach_()
    (found,) = grad(total, x, create_graph=True)
    return total + (found * found).sum()


@program
def windows_saved_in_another_order(x):
    y = vg.stack([x, x * x])
    view = y.T
    cubes = (view * view * view).sum()
    other = y.detach()
    y[0, 0] = x[1] * 2
    y.detach_()
    y[1, 1] = x[2] * 2
    (found,) = grad(cubes, x, create_graph=True)
    return (found * found).sum() + y.sum() + (other * x).sum()


@program
def parts_of_complex_numbers(x):
    y = x * (1 + 2j)
    view = y.real
    y.detach_()
    y[0] = 1j
    return (y * y.conj()).real.sum() + (view * view).sum()


@program
def results_that_share_memory(x):
    y = x * 1.0
    view = y[:2]
    y.detach_()
    y[0] = 7.0
    return view, y, y[1:]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    check(PROGRAMS[name], [np.array([1.0, 2.0, 3.0])], name)


def only(y):
    y.detach_()
    return y * 2


def written_behind(y):
    squares = (y * y).sum()
    y.detach_()
    y[0] = squares
    return y * 2


def written_before(y):
    y.mul_(3)
    squares = (y * y).sum()
    y.detach_()
    return squares * y


def seen_by_a_view(y):
    view = y[:2]
    y.detach_()
    y[0] = 5.0
    return view * view


def returned(y):
    y.detach_()
    y[0] = 5.0
    return y


@pytest.mark.parametrize("function", [only, written_behind, written_before, seen_by_a_view, returned])
@pytest.mark.parametrize("times", [1, 3])
def test_arguments_lose_their_history_in_calls_too(function, times):
    """A traced or compiled function detaches its arguments as the function does."""
    found = []
    for called in (function, function_of(function, vg.ones(3, requires_grad=True) * 2), vg.compile(function)):
        for _ in range(times):
            x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
            y = x * 2
            result = called(y)
            total = (result * [1.0, 2.0, 3.0][: result.size]).sum() + (y * y).sum() + 0 * x.sum()
            arrays = [result.detach(), y.detach(), grad(total, x)[0]]
            found.append([[each.tolist() for each in arrays], result.requires_grad, y.requires_grad])
    assert all(each == found[0] for each in found), found


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_views_from_before_their_base_had_a_history(inner, used, twice):
    """They keep the ended history in traces as in eager mode; if two histories have ended since, traces reject them."""

    def function(x):
        y = np.zeros_like(x) if twice else vg.zeros(3)
        view = y[:2][:1] if inner else y[:1]
        y[0] = x[0] * 2
        before = (view * x[1]).sum() if used else 0.0
        y.detach_()
        behind = y[1:]
        if twice:
            y[2] = x[2] * 3
            before = before + (behind * behind).sum()
            y.detach_()
        return (view * view).sum() + before + (behind * x[1:]).sum() + (y[:1] * x[1]).sum()

    if not twice:
        check(function, [np.array([1.0, 2.0, 3.0])])
        return
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    compiled = vg.compile(function)
    for called in (function, compiled, compiled, compiled):
        assert grad(called(x), x)[0].tolist() == [8.0 + 4.0 * used, 2.0 + 2.0 * used, 72.0]
    with pytest.raises(TraceError, match="detached in place several times"):
        trace(function, x)


@pytest.mark.parametrize(("write", "is_refused"), [
    (lambda view: view.neg_(), False), (lambda view: view[:1].mul_(2.0), True),
    (lambda view: np.negative(view, out=view, where=np.zeros(2, bool)), True),
])  # fmt: skip
def test_views_written_to_between_two_ends_of_the_history_of_their_base(write, is_refused):
    def function(x):
        y = x * 1.0
        view = y[:2]
        y.detach_()
        write(view)
        y.detach_()
        return (view * x[:2]).sum()

    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    expected = grad(function(x), x)[0].tolist()
    compiled = vg.compile(function, executor="python")
    for _ in range(3):
        assert grad(compiled(x), x)[0].tolist() == expected
    if not is_refused:
        check(function, [np.array([1.0, 2.0, 3.0])])
        return
    with pytest.raises(TraceError, match="detached in place several times"):
        trace(function, x)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_earlier_views_see_later_writes(whole, constant):
    def function(x):
        buffer = vg.zeros(3)
        rows = [buffer[i : i + 1] for i in range(3)]
        buffer[...] = x * x
        saved = (rows[0] * rows[0] * x[0]).sum()
        buffer.detach_()
        places = slice(None) if whole else slice(1, None)
        buffer[places] = 7.0 if constant else (x * x * x)[places]
        total = sum(((k + 2) * row * row * x[k]).sum() for k, row in enumerate(rows))
        pair = buffer[:2]
        return total + saved + (pair * pair * x[:2]).sum()

    check(function, [np.array([1.0, 2.0, 3.0])])


@pytest.mark.parametrize("adds", [
    lambda view, y: view.index_add_(0, np.array([0, 1]), y),
    lambda view, y: np.add.at(view, [1, 1], y),
    lambda view, y: view.mul_(y),
    lambda view, y: view[:1].mul_(y[1]),
])  # fmt: skip
@pytest.mark.parametrize("behind", [False, True])
def test_writes_that_depend_on_the_own_history_of_a_view_from_before(adds, behind):
    def function(x, y):
        base = x * 2
        view, other = base[1:], base[::2]
        base.detach_()
        if behind:
            base[2] = y[0]
        adds(view, y)
        return (view * view * view).sum() + (other * other).sum() + (base * x).sum()

    check(function, [np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.7])])


def test_an_argument_that_is_a_leaf():
    traced = function_of(lambda x: x.requires_grad_(False) * 2, vg.ones(2, requires_grad=True))
    x = vg.ones(2, requires_grad=True)
    assert not traced(x).requires_grad and not x.requires_grad


def test_a_view_of_an_argument_from_before_cannot_be_returned():
    def function(y):
        view = y[:2]
        y.detach_()
        return view

    with pytest.raises(TraceError, match=r"taken before the argument was detached in place.*clone\(\)"):
        trace(function, vg.ones(3, requires_grad=True) * 2)


def test_writes_after_many_detaches_cost_no_more():
    """Ended histories cost nothing if they are not used."""

    def function(x):
        state, total = x * 1.0, 0.0
        for _ in range(40):
            state.mul_(x)
            total = total + state.sum()
            state.detach_()
        return total

    assert sum(1 for _ in trace(function, vg.ones(3, requires_grad=True)).nodes()) < 40 * 5


def test_a_write_to_an_argument_that_was_detached_while_views_existed_is_refused():
    def halve(v):
        v.mul_(0.5)
        return v.sum()

    call = function_of(halve, vg.Tensor([1.0, 2.0]))
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    base = x.clone()
    view = base[1:]
    base.detach_()
    with pytest.raises(GraphError, match="detached in place"):
        call(base[:2])
    assert view.detach().numpy().tolist() == [2.0, 3.0]
    assert call(base[:2].clone()).item() == 1.5
