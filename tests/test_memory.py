"""Memory of graphs: few bytes per operation, released when unreferenced, without recursion."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from allocations import allocations
from leaves import random_leaf

import viewgrad as vg
from viewgrad.errors import StrictMutationError
from viewgrad.tensor.node import Node
from viewgrad.tensor.storage import SavedTensor, Storage
from viewgrad.views.meta import DifferentiableViewMeta


@contextlib.contextmanager
def gc_off():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# -- bytes per operation -----------------------------------------------------------------------------------------------

X, C, H = random_leaf(4), vg.Tensor(np.full(4, 1.0 + 1e-7)), vg.Tensor([0.5, 0.7], requires_grad=True)


def added_in_place(y):
    y += C
    return y


def multiplied_in_place(y):
    y *= X
    return y


def written_through_a_view(y):
    y[1:3] = H
    return y


def multiplied_through_a_view(y):
    y[1:3] *= H
    return y


STEPS = {
    "y + c": (lambda y: y + C, 700),
    "y * c": (lambda y: y * C, 700),
    "y * x": (lambda y: y * X, 700),
    "y / x": (lambda y: y / X, 700),
    "y * 1.5": (lambda y: y * 1.5, 700),
    "-y": (lambda y: -y, 700),
    "sin(y)": (lambda y: y.sin(), 700),
    "tanh(y)": (lambda y: y.tanh(), 700),
    "y += c": (added_in_place, 700),
    "y *= x": (multiplied_in_place, 1000),  # the old value of y is saved and must be copied
    "y[1:3] = h": (written_through_a_view, 700),
    "y[1:3] *= h": (multiplied_through_a_view, 1600),  # three operations: a view, a multiplication, a write
}


@pytest.mark.parametrize("step, limit", STEPS.values(), ids=STEPS)
def test_an_operation_on_a_small_tensor_keeps_few_bytes(step, limit):
    operations = 500
    y = step(step(X * 1.0))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(operations):
            y = step(y)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept / operations <= limit


def test_forward_without_grad_keeps_nothing():
    def steps(y, count):
        for _ in range(count):
            y = y * C
            y += C
            y[1:3] = 0.5

    with vg.no_grad():
        steps(X * 1.0, 1)  # generates the code of the operators
    tracemalloc.start()
    try:
        with vg.no_grad():
            before = tracemalloc.get_traced_memory()[0]
            steps(X * 1.0, 500)
            kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept <= 2000


# -- peaks -------------------------------------------------------------------------------------------------------------


def peak_of(run):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = run()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()


def test_peak_memory_of_a_row_fill_is_at_most_three_tables():
    x = random_leaf(100, 1000)

    def run():
        out = vg.zeros(100, 1000)
        for i in range(100):
            out[i] = x[i] * 2
        return vg.autograd.grad(out.sum(), x)

    peak, (grad,) = peak_of(run)
    assert peak - grad.nbytes <= 3 * x.nbytes


def test_a_backward_pass_releases_saved_values_as_it_goes():
    x = random_leaf(10_000)
    y = x
    for _ in range(50):
        y = (y * x).sin()
    held = 50 * 2 * x.nbytes
    peak, _ = peak_of(lambda: y.sum().backward())
    assert peak <= 8 * x.nbytes < held


def test_backward_frees_saved_values_of_a_live_result():
    with allocations() as sizes:
        x = random_leaf(10_000)
        y = x
        for _ in range(20):
            y = y * x
    assert sum(sizes) >= 20 * x.nbytes
    saved = {weakref.ref(saved) for saved in saved_tensors_of(y)}
    assert len(saved) >= 20
    total = y.sum()
    with gc_off():
        total.backward()
        assert sum(reference() is not None for reference in saved) <= 2  # the saved values of x and y
    assert total.grad_fn is not None


def saved_tensors_of(tensor):
    found = []
    for node in nodes_behind(tensor.grad_fn):
        found += [getattr(node, slot, None) for slot in slots_of(type(node))]
    return [saved for saved in found if type(saved) is SavedTensor]


def slots_of(kind):
    return [slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()) if slot.startswith("saved_")]


def nodes_behind(node):
    seen = []
    stack = [node]
    while stack:
        node = stack.pop()
        if node is not None and not any(node is other for other in seen):
            seen.append(node)
            stack.extend(following for following, _ in node.next_functions)
            if hasattr(node, "fn"):
                stack.append(node.fn)
    return seen


# -- nothing is left ---------------------------------------------------------------------------------------------------

OURS = (vg.Tensor, Node, SavedTensor, Storage, DifferentiableViewMeta)


@contextlib.contextmanager
def nothing_left(kinds=OURS):
    """Assert that the tensors and nodes created in the block are released without the garbage collector."""
    gc.collect()
    gc.freeze()  # hides the existing objects
    gc.disable()
    try:
        yield
        assert [thing for thing in gc.get_objects() if isinstance(thing, kinds)] == []
    finally:
        gc.enable()


def elementwise(x):
    return ((x * x).sin() + x.exp() / 2).sum()


def saved_outputs(x):
    return (x.exp().tanh().sqrt() * x).sum()


def in_place(x):
    y = x.clone()
    y *= x
    y.mul_(y)
    y.exp_()
    return y.sum()


def in_place_through_views(x):
    y = x.clone()
    row = y[1]
    row *= x[0]
    y[2] = y[1] * y[0]
    y[:, 1] += y[:, 2]
    row.sin_()
    return (row.sum() + y.sum()) * y[0, 0]


def views_of_views(x):
    y = x.clone()
    inner = y[1:, 1:]
    inner[0][1:] = inner[1][1:] * 2
    flat = y.reshape(-1)
    flat[::2] *= 3
    return (inner.T * inner.T).sum()


def overwritten_after_saving(x):
    y = x.clone()
    total = (y[0] * y[1]).sum()
    for i in range(1, 4):
        y[i] = y[i - 1] * x[i]
    return total + y.sum()


def masks_and_index_arrays(x):
    y = x.clone()
    y[np.eye(4, dtype=bool)] = x[0]
    y[np.array([0, 2])] *= 2
    chosen = y[np.array([1, 1, 3])]
    return (chosen * chosen).sum()


def reductions_and_products(x):
    return (x @ x.T).mean() + x.sum(0).max()


GRAPHS = [
    elementwise,
    saved_outputs,
    in_place,
    in_place_through_views,
    views_of_views,
    overwritten_after_saving,
    masks_and_index_arrays,
    reductions_and_products,
]


def never_differentiated(value, x):
    pass


def differentiated(value, x):
    value.backward()


def differentiated_twice(value, x):
    value.backward(retain_graph=True)
    value.backward()


def gradient_asked_for(value, x):
    vg.autograd.grad(value, x)


def gradient_recorded(value, x):
    (grad,) = vg.autograd.grad(value, x, create_graph=True)
    (grad * grad).sum().backward()


def gradient_recorded_and_dropped(value, x):
    vg.autograd.grad(value, x, create_graph=True)


def hooked(value, x):
    seen = []
    y = value * 2
    y.register_hook(lambda grad: seen.append(grad))
    y.retain_grad()
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.grad_fn.metadata["note"] = 1
    y.backward()
    assert seen and y.grad is not None


USES = [
    never_differentiated,
    differentiated,
    differentiated_twice,
    gradient_asked_for,
    gradient_recorded,
    gradient_recorded_and_dropped,
    hooked,
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("program", GRAPHS)
def test_nothing_is_left_alive_without_the_garbage_collector(program, use):
    def run():
        x = random_leaf(4, 4)
        use(program(x), x)

    run()  # numbers are made tensors of once, and kept
    with nothing_left():
        run()


@pytest.mark.parametrize("program", GRAPHS)
def test_a_leaf_that_lives_on_holds_no_graph(program):
    x = random_leaf(4, 4)
    program(x).backward()
    # Saved views of the leaf may stay in its registry, which is pruned occasionally; see test_counts.
    with nothing_left((vg.Tensor, Node)):
        x.grad = None
        value = program(x)
        assert value.grad_fn is not None
        del value


def test_a_failed_backward_pass_leaves_nothing_alive():
    def run():
        x = random_leaf(4)
        y = x * 2

        def hook(grad):
            raise ZeroDivisionError

        y.register_hook(hook)
        try:
            (y * y).sum().backward()
        except ZeroDivisionError:
            return True
        return False

    assert run()
    with nothing_left():
        run()


# -- long chains -------------------------------------------------------------------------------------------------------

LONG = 30_000


def chain_of_products(x, n):
    y = x
    for _ in range(n):
        y = y * C
    return y


def chain_in_place(x, n):
    y = x * 1.0
    for _ in range(n):
        y *= C
    return y


def chain_in_place_through_a_view(x, n):
    y = x * 1.0
    view = y[1:3]
    for _ in range(n):
        view *= 1.0
    return y


def chain_of_writes(x, n):
    y = x * 1.0
    for i in range(n):
        y[i % 4] = 0.5
    return y


def chain_of_saved_values(x, n):
    y = x
    for _ in range(n):
        y = y.sin()
    return y


CHAINS = [chain_of_products, chain_in_place, chain_in_place_through_a_view, chain_of_writes, chain_of_saved_values]


def on_a_small_stack(run):
    """Run in a thread whose stack holds no deep recursion."""
    failures = []

    def guarded():
        try:
            run()
        except BaseException as error:
            failures.append(error)

    # Since 3.13 Python itself recurses 10,000 deep when it releases a chain, whatever the size of the stack.
    old = threading.stack_size((512 if sys.version_info < (3, 13) else 8 * 1024) * 1024)
    try:
        thread = threading.Thread(target=guarded)
        thread.start()
    finally:
        threading.stack_size(old)
    thread.join()
    if failures:
        raise failures[0]


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_a_long_chain_is_differentiated_and_freed_without_recursion(chain):
    def run():
        x = random_leaf(4)
        y = chain(x, LONG)
        y.sum().backward(retain_graph=True)
        assert x.grad is not None
        vg.autograd.grad(y.sum(), x)
        del y

    on_a_small_stack(run)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_a_long_undifferentiated_chain_is_freed_without_recursion(chain):
    on_a_small_stack(lambda: chain(random_leaf(4), LONG))


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_a_long_recorded_backward_pass_is_freed_without_recursion(chain):
    def run():
        x = random_leaf(4)
        y = chain(x, LONG // 10)
        (grad,) = vg.autograd.grad((y * y).sum(), x, create_graph=True)
        (second,) = vg.autograd.grad(grad.sum(), x)
        assert second.shape == x.shape

    on_a_small_stack(run)


def test_a_refused_write_keeps_no_graph_alive():
    gc.collect()
    gc.disable()
    try:
        x = vg.Tensor([1.0, 2.0], requires_grad=True)
        t = x * 1.0
        y = t * t
        with vg.autograd.graph.forbid_mutation_on_saved_tensors(), pytest.raises(StrictMutationError):
            t.mul_(2.0)
        node = weakref.ref(y.grad_fn)
        del x, t, y
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("specialize", [False, True], ids=["source", "trace"])
@pytest.mark.parametrize(
    "function", [lambda x: (x * x).sum(), lambda x: {"a": (x * x).sum(), "b": [x, x]}["a"]], ids=["plain", "nested"]
)
def test_calls_of_compiled_functions_leave_no_cycles(function, specialize):
    compiled = vg.compile(function, specialize=specialize)
    require_freed(lambda x: compiled(x))


def test_scipy_functions_leave_no_cycles():
    integrate = pytest.importorskip("viewgrad.scipy.integrate")
    sparse = pytest.importorskip("viewgrad.scipy.sparse")
    require_freed(lambda x: integrate.nquad(lambda s, a: a.sum() * s, [(0.0, 1.0)], args=(x,))[0])
    require_freed(lambda x: sparse.vstack([sparse.coo_array(x.reshape(1, -1))] * 2).toarray().sum())


def require_freed(function):
    """Require that the second and third call release their argument without the cyclic garbage collector."""
    for _ in range(3):
        gc.collect()
        gc.disable()
        try:
            x = vg.Tensor([0.3, 1.2, -0.7], requires_grad=True)
            argument, result = weakref.ref(x), function(x)
            vg.autograd.grad(result, [x])
            del x, result
            alive = argument() is not None
        finally:
            gc.enable()
    assert not alive
