"""The scalar engine gives the gradients of the formulas, with hooks and other observers of the graph."""

from __future__ import annotations

import contextlib
import gc
import itertools

import numpy as np
import pytest
from allocations import allocations
from hypothesis import given
from hypothesis import strategies as st

import viewgrad as vg
import viewgrad.autograd.scalar_engine
from viewgrad.errors import FreedGraphError
from viewgrad.tensor.refcounts import TRUSTED
from viewgrad.views.basic_indexing import _write_number
from viewgrad.views.scalar_nodes import ScalarOfOne, ScalarOfTwo

NUMBERS = [0.0, -0.0, 1.0, -2.5, 3.0, 1e-320, 1e200, np.inf, -np.inf, np.nan]
OF_TWO = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}
OF_ONE = {"neg": lambda a: -a, "exp": vg.exp, "log": vg.log}


@pytest.fixture(autouse=True)
def take_in_at_every_write(monkeypatch):
    """Absorb sources at every write, and convert gradients to lists at once, as in large graphs."""
    monkeypatch.setitem(_write_number.__globals__, "MANY_WRITES", -1)
    monkeypatch.setattr(viewgrad.autograd.scalar_engine, "EARNED", 10**6)


def gradients(function, numbers, incoming, plain):
    """Return the gradient of each number, each a read of a different element."""
    x = vg.Tensor(numbers, requires_grad=True)
    result = function(*x)
    with np.errstate(all="ignore"):
        if plain:
            with vg.autograd.graph.plain_engine():
                result.backward(vg.Tensor(incoming))
        else:
            result.backward(vg.Tensor(incoming))
    return np.array(x.grad)


@pytest.mark.parametrize("name", [*OF_TWO, *OF_ONE])
def test_each_scalar_form_matches_its_formulas(name):
    """This includes zero gradients of derivatives that are not finite."""
    function, count = (OF_TWO[name], 2) if name in OF_TWO else (OF_ONE[name], 1)
    with np.errstate(all="ignore"):
        for numbers in itertools.product(NUMBERS, repeat=count):
            for incoming in (0.0, 1.0, -3.0, np.inf):
                one, other = (gradients(function, numbers, incoming, plain) for plain in (False, True))
                assert np.allclose(one, other, rtol=1e-15, atol=0, equal_nan=True), (numbers, incoming)


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("beside", [2.5, 3, np.float64(2.5), np.array(2.5), vg.Tensor(2.5), vg.Tensor([2.5])[0]])
def test_numbers_beside_a_scalar(name, beside):
    x = vg.Tensor([4.0], requires_grad=True)
    for swapped in (False, True):
        function = OF_TWO[name]
        result = function(beside, x[0]) if swapped else function(x[0], beside)
        plain = beside.numpy() if isinstance(beside, vg.Tensor) else beside
        expected = function(plain, 4.0) if swapped else function(4.0, plain)
        assert result.item() == expected and type(result.detach().numpy()[()]) is np.float64
        assert type(result.grad_fn) is ScalarOfTwo
        found = []
        for plain_run in (False, True):
            x.grad = None
            if plain_run:
                with vg.autograd.graph.plain_engine():
                    result.backward(retain_graph=True)
            else:
                result.backward(retain_graph=True)
            found.append(x.grad.item())
        (recorded,) = vg.autograd.grad(result, x, create_graph=True)
        assert found[0] == found[1] == recorded.detach().item()


def test_scalar_nodes_appear_as_operator_nodes():
    x = vg.Tensor([4.0, 2.0], requires_grad=True)
    y = x[0] * 2.5
    assert type(y.grad_fn) is ScalarOfTwo and y.grad_fn.name() == "MulBackward" and repr(y.grad_fn) == "<MulBackward>"
    assert dict(y.grad_fn.saved_values()) == {"other": 2.5, "self": 4.0}
    assert type(vg.exp(x[0]).grad_fn) is ScalarOfOne and vg.exp(x[0]).grad_fn.name() == "ExpBackward"
    assert type(vg.sin(x[0]).grad_fn).__name__ == "SinBackward"  # its formula is none of the forms
    assert "MulBackward" in vg.autograd.graph.to_dot(y)


@pytest.mark.parametrize("name", [*OF_TWO, *OF_ONE])
def test_saved_values_are_released(name):
    x = vg.Tensor([4.0, 2.0], requires_grad=True)
    result = OF_TWO[name](x[0], x[1]) if name in OF_TWO else OF_ONE[name](x[0])
    result.backward(retain_graph=True)
    first = np.array(x.grad)
    result.backward()
    assert np.array_equal(x.grad.numpy(), 2 * first)
    if name in ("add", "sub", "neg"):  # these save nothing
        result.backward()
    else:
        with pytest.raises(FreedGraphError):
            result.backward()


# Formulas whose intermediate results nothing holds, of an array and three places in it.
NESTED = {
    "soft minimum": lambda a, i, j, k: -vg.log(vg.exp(-a[i]) + vg.exp(-a[j]) + vg.exp(-a[k])),
    "turned twice": lambda a, i, j, k: vg.exp(-(-a[i] * 0.3)) - vg.log(-(-(a[j] * a[j]) - 1.0)) / (a[k] * a[k] + 1.5),
    "turned outside": lambda a, i, j, k: -vg.exp(0.1 * a[i]) * -vg.log(-(-1.5 - a[j] * a[j])) + -a[k],
    "of itself": lambda a, i, j, k: (lambda r: r * r + vg.exp(-r) * r)(a[i]) - (a[j] + 0.5) * (-a[k] / 3.0),
}


@st.composite
def steps(draw):
    """Draw a program on the elements of `a`, as tuples of an operation with its numbers and elements."""
    kinds = st.sampled_from([*OF_TWO, *OF_ONE, *NESTED, "sin", "read", "write", "write", "constant", "vector"])
    return draw(st.lists(st.tuples(kinds, *[st.integers(0, 9)] * 3), min_size=1, max_size=25))


def run(steps, x, watch=lambda scalar: None):
    """Run a drawn program; `watch` is shown each scalar."""
    a = x * 1.0
    scalars = [a[0]]
    for kind, i, j, k in steps:
        one, other = scalars[i % len(scalars)], scalars[j % len(scalars)]
        if kind in OF_TWO:
            made = OF_TWO[kind](one, 1.5 + other * other) if kind == "div" else OF_TWO[kind](one, other) * 0.7
        elif kind == "read":
            made = a[i % len(a)]
        elif kind == "write":
            a[i % len(a)] = other
            continue
        elif kind == "constant":
            made = one * 0.5 + 1 - k
        elif kind in NESTED:
            made = NESTED[kind](a, *(place % len(a) for place in (i, j, k)))
            if k % 2:
                a[k % len(a)] = vg.sin(made) + NESTED[kind](a, *(place % len(a) for place in (j, k, i))) * 0.1
        elif kind == "vector":
            a[1:3] = a[1:3] * one
            made = (a * other).sum()
        else:
            function = {**OF_ONE, "sin": vg.sin}[kind]
            made = function(0.1 * one) if kind == "exp" else function(one * one + 1.0)
        watch(made)
        scalars.append(vg.sin(made))  # keeps the values small
    return sum(scalars) + (a * a).sum()


@given(steps(), st.booleans())
def test_both_engines_agree_on_drawn_programs(steps, looked_at):
    x = vg.Tensor([0.3, -0.7, 1.1, 0.4], requires_grad=True)
    found = []
    for plain in (False, True):
        x.grad = None
        loss = run(steps, x, lambda scalar: looked_at and scalar.requires_grad and scalar.grad_fn.edges)
        if plain:
            with vg.autograd.graph.plain_engine():
                loss.backward()
        else:
            loss.backward()
        found.append(np.array(x.grad))
    assert np.allclose(*found, rtol=1e-12, atol=1e-12)
    assert np.allclose(vg.autograd.grad(run(steps, x), x)[0].numpy(), found[0], rtol=1e-12, atol=1e-12)
    (recorded,) = vg.autograd.grad(run(steps, x), x, create_graph=True)
    assert np.allclose(recorded.detach().numpy(), found[0], rtol=1e-12, atol=1e-12)


@given(steps(), st.integers(0, 100))
def test_gradients_of_a_part_of_the_leaves(steps, middle):
    """These runs are restricted, so the graph is traversed first."""
    x, y = (vg.Tensor([0.3, -0.7, 1.1, 0.4], requires_grad=True) for _ in range(2))
    found = []
    for plain in (False, True):
        watched = [y[1]]
        loss = run(steps, x * y[0] + y, watched.append)
        inside = watched[middle % len(watched)]  # the loss may not depend on it
        with vg.autograd.graph.plain_engine() if plain else contextlib.nullcontext():
            for inputs in ([x], [y], [x, y], [inside], [inside, y]):
                inputs = [each for each in inputs if each.requires_grad]
                results = vg.autograd.grad(loss, inputs, retain_graph=True, allow_unused=True) if inputs else ()
                found.append([None if result is None else result.numpy() for result in results])
    for ours, theirs in zip(found[:5], found[5:], strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert (one is None) == (other is None)
            assert one is None or np.allclose(one, other, rtol=1e-12, atol=1e-12)


@given(steps(), st.integers(0, 5))
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NonLeafGradWarning")
def test_hooks_and_retained_gradients_see_whole_gradients(steps, every):
    x = vg.Tensor([0.3, -0.7, 1.1, 0.4], requires_grad=True)
    found = []
    for plain in (False, True):
        x.grad = None
        watched, shown = [], []

        def watch(scalar, watched=watched, shown=shown):
            if len(watched) % (every + 1) == 0 and scalar.requires_grad:
                scalar.retain_grad()
                scalar.register_hook(lambda grad: shown.append(grad.item()))
            watched.append(scalar)

        loss = run(steps, x, watch)
        if plain:
            with vg.autograd.graph.plain_engine():
                loss.backward()
        else:
            loss.backward()
        found.append([*np.array(x.grad), *shown, *(s.grad.item() for s in watched if s.grad is not None)])
    assert np.allclose(*found, rtol=1e-12, atol=1e-12)


WAYS = {
    "by tuples": lambda a, i, s: (a[(i,)], a.__setitem__((i,), s)),
    "from the end": lambda a, i, s: (a[i - len(a)], a.__setitem__(i - len(a), s)),
    "with slices between": lambda a, i, s: (a[i], a.__setitem__(i, s), i % 7 or a.__setitem__(slice(1, 3), a[2:4] * s)),
    "with sums between": lambda a, i, s: (a[i] + (i % 7 == 0) * vg.sin(a).sum() * 0.1, a.__setitem__(i, s)),
    "with several outputs between": lambda a, i, s: (a[i] + a[1:3].unbind()[0] * s, a.__setitem__(i, s)),
    "of two dimensions": lambda a, i, s: (a.reshape(2, -1)[i % 2, 1], a.__setitem__(i, s)),
    "with an array without dimensions": lambda a, i, s: (a[i, ...] * s, a.__setitem__(i, s)),
    "from inside": lambda a, i, s: (a[1:-1][i % 4], a[1:].__setitem__(i % 4, s)),
    "read by a hook": lambda a, i, s: (a[i], a.__setitem__(i, s), i % 7 or a.register_hook(lambda grad: grad * 1.0)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("earned", [4, 10**6])
def test_arrays_written_element_by_element(way, earned, monkeypatch):
    """After some of them, gradients are lists internally, which is not observable."""
    monkeypatch.setattr(viewgrad.autograd.scalar_engine, "EARNED", earned)
    size = 40
    x = vg.Tensor(np.linspace(0.2, 0.9, size), requires_grad=True)

    def program():
        a = x * 1.0
        s = a[1]
        for k in range(120):
            s = WAYS[way](a, k * 3 % size, s * 0.9)[0] * 0.3 + s * 0.3
            if k % 40 == 0:
                s = vg.sin(s)  # run by the engine
        return s + (a * a).sum()

    found = []
    for plain in (False, True):
        with vg.autograd.graph.plain_engine() if plain else contextlib.nullcontext():
            found.append(vg.autograd.grad(program(), x)[0].numpy())
    assert np.allclose(*found, rtol=1e-12, atol=1e-12)
    assert vg.autograd.grad(program(), x)[0].numpy().tolist() == found[0].tolist()


@pytest.mark.skipif(not TRUSTED, reason="without reference counts each write copies the gradient")
def test_conversions_of_gradients_to_lists_are_linear(monkeypatch):
    """This includes writes in small groups, each followed by an operation that needs an array."""
    monkeypatch.setattr(viewgrad.autograd.scalar_engine, "EARNED", 4)

    def allocated(n):
        x = vg.Tensor(np.ones(n), requires_grad=True)
        a = x * 1.0
        for i in range(n // 2):
            a[2 * i] = a[2 * i + 1] * 0.5
            if i % 3 == 0:
                a[3] = vg.sin(a[2])
        with allocations() as sizes:
            a.sum().backward()
        return sum(size for size in sizes if size >= 4 * n)

    assert allocated(400) <= 8 * 40 * 400


@pytest.mark.skipif(not TRUSTED, reason="without reference counts each write copies the gradient")
@pytest.mark.parametrize(
    "used",
    [lambda n, b: n * b, lambda n, b: b * n, lambda n, b: b * -n, lambda n, b: -n * b, lambda n, b: n * 0.5 + b],
    ids=["left", "right", "right, turned", "left, turned", "beside a constant"],
)
def test_a_value_used_after_later_writes_costs_no_extra_gradient(used):
    """A read that runs early must not create gradients for versions of its base that have none yet."""

    def allocated(n):
        x = vg.Tensor(np.ones(n), requires_grad=True)
        a = x * 1.0
        before = a[0]
        for i in range(1, n):
            now = a[i]
            a[i] = before * 0.5
            before = used(now, before)
        with allocations() as sizes:
            before.backward()
        return sum(size for size in sizes if size >= 8 * n)

    assert allocated(400) <= 8 * 8 * 400


# -- nodes that are taken in -------------------------------------------------------------------------------------------


def names(node):
    """Return the names in the graph of a node, as seen through `next_functions`."""
    followed = [before for before, _ in node.next_functions if before is not None]
    assert all(before.sequence_nr < node.sequence_nr for before in followed)
    return (node.name(), *map(names, followed)) if followed else node.name()


def written(result):
    """Return a scalar that was written to an array and has absorbed its source."""
    vg.zeros(1)[0] = result
    return result


def cell(r, cost):
    """Return a cell of soft-DTW."""
    return cost[0] - vg.log(vg.exp(-r[0]) + vg.exp(-r[1]) + vg.exp(-r[2]))


@pytest.mark.parametrize("many", [pytest.param(-1, marks=pytest.mark.slow), 20])
def test_nodes_that_nothing_holds_are_absorbed(many, monkeypatch):
    monkeypatch.setitem(_write_number.__globals__, "MANY_WRITES", many)

    def kept(steps):
        gc.collect()
        before = sum(issubclass(type(thing), vg.autograd.graph.Node) for thing in gc.get_objects())
        cost = vg.Tensor(np.ones(4), requires_grad=True)
        r = cost * 1.0
        for _ in range(steps):
            r[3] = cell(r, cost)
        after = sum(issubclass(type(thing), vg.autograd.graph.Node) for thing in gc.get_objects())
        return after - before

    assert kept(60) - kept(40) == 20 * (4 if TRUSTED else 15)
    assert kept(20) - kept(10) == 10 * (4 if TRUSTED and many < 0 else 15)


def test_observers_get_unmerged_nodes():
    r, cost = (vg.Tensor([0.5, 1.0, 2.0], requires_grad=True) for _ in range(2))
    read = ("ElementBackward", "AccumulateGrad")
    soft = ("ExpBackward", ("NegBackward", read))
    result = written(cell(r, cost))
    expected = ("SubBackward", read, ("LogBackward", ("AddBackward", ("AddBackward", soft, soft), soft)))
    assert names(result.grad_fn) == expected
    assert names(result.grad_fn) == expected  # once more


@pytest.mark.parametrize("name", ["ExpBackward", "NegBackward", "ElementBackward"])
@pytest.mark.parametrize("after", [False, True])
def test_a_node_that_was_given_back_runs_its_hooks(name, after):
    r, cost = (vg.Tensor([0.5, 1.0, 2.0], requires_grad=True) for _ in range(2))
    result = written(cell(r, cost))
    (plain,) = vg.autograd.grad(result, r, retain_graph=True)
    node = result.grad_fn.next_functions[1][0].next_functions[0][0].next_functions[1][0]
    while node.name() != name:
        node = node.next_functions[0][0]
    if after:
        node.register_hook(lambda before, grads: (before[0] * 10.0,))
    else:
        node.register_prehook(lambda grads: (grads[0] * 10.0,))
    del node
    result = written(result * 1.0)
    (found,) = vg.autograd.grad(result, r)
    assert np.allclose(found.numpy(), plain.numpy() * [1.0, 1.0, 10.0])


def test_metadata_of_an_absorbed_node_is_kept():
    x = vg.Tensor([0.5], requires_grad=True)
    y = vg.exp(x[0])
    y.grad_fn.metadata["note"] = 1
    z = y * 2.0
    del y
    assert written(z).grad_fn.next_functions[0][0].metadata == {"note": 1}


@pytest.mark.parametrize("saved", ["exp", "log"])
def test_absorbed_nodes_are_released(saved):
    function = getattr(vg, saved)
    for made in (lambda x, y: function(x[0]) + y[0], lambda x, y: y[0] + function(x[0])):
        x, y = (vg.Tensor([0.5], requires_grad=True) for _ in range(2))
        result = written(made(x, y))
        result.backward(retain_graph=True)
        first = x.grad.item()
        result.backward()
        assert x.grad.item() == 2 * first and y.grad.item() == 2.0
        with pytest.raises(FreedGraphError):
            result.backward()
    written(-x[0] + -y[0]).backward()


def test_long_formulas_are_merged_in_bounded_time():
    """Each number is used twice, so following every edge would take exponential time."""
    x = vg.Tensor([0.5], requires_grad=True)
    s = x[0]
    for _ in range(100):
        s = s + s
    written(s * 2.0**-100).backward()
    assert x.grad.item() == 1.0


@given(st.sampled_from(sorted(NESTED)), st.permutations(range(4)))
def test_second_derivatives_of_absorbed_nodes(name, places):
    def function(values):
        a = values * 1.0
        a[places[3]] = NESTED[name](a, *places[:3]) * 0.5
        return NESTED[name](a, *places[1:]) * a[places[3]]

    assert vg.autograd.gradgradcheck(function, [vg.Tensor([0.3, -0.7, 1.1, 0.4], requires_grad=True)])
