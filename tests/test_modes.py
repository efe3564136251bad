"""Modes in threads, tasks and nested passes, and after errors."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leaves import leaf, numbers
from threads import in_threads

import viewgrad as vg
from viewgrad.autograd import Function, grad
from viewgrad.errors import FreedGraphError, InferenceError, LeafInPlaceError, ViewInPlaceError
from viewgrad.tensor import modes

# -- grad mode ---------------------------------------------------------------------------------------------------------


def test_no_grad_in_all_its_forms():
    x = leaf(1.0)
    with vg.no_grad():
        assert not vg.is_grad_enabled()
        assert (x * 2).grad_fn is None
        with vg.enable_grad():
            assert (x * 2).requires_grad
        assert not vg.is_grad_enabled()
    assert vg.is_grad_enabled()

    @vg.no_grad
    def bare(t, *, factor=2):
        """Return the tensor times 2."""
        assert not vg.is_grad_enabled()
        return t * factor

    @vg.no_grad()
    def called(t):
        return t * 2

    @vg.enable_grad
    def enabled(t):
        return t * 2

    @vg.inference_mode
    def inferred(t):
        return t * 2

    assert bare.__name__ == "bare" and bare.__doc__ == "Return the tensor times 2."
    assert numbers(bare(x, factor=3)) == [3.0] and not bare(x).requires_grad
    assert not called(x).requires_grad
    assert inferred(x).is_inference()
    with vg.no_grad():
        assert enabled(x).requires_grad
    assert vg.is_grad_enabled()


def test_one_context_manager_can_be_nested():
    switch = vg.no_grad()
    with switch:
        with vg.enable_grad(), switch:
            assert not vg.is_grad_enabled()
        assert not vg.is_grad_enabled()
    assert vg.is_grad_enabled()


def test_one_context_manager_can_be_shared_by_threads_and_tasks():
    switch = vg.no_grad()
    inside, go_on = threading.Event(), threading.Event()

    def work():
        with vg.enable_grad(), switch:
            inside.set()
            go_on.wait()
        found.append(vg.is_grad_enabled())

    found = []
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    with vg.no_grad(), switch:  # entered last, with grad mode off already
        go_on.set()
        thread.join()
    assert found == [True] and vg.is_grad_enabled()

    async def task(log):
        with switch:
            await asyncio.sleep(0)
            log.append(vg.is_grad_enabled())
        log.append(vg.is_grad_enabled())

    async def main():
        log = []
        await asyncio.gather(task(log), task(log))
        return log

    assert sorted(asyncio.run(main())) == [False, False, True, True]


def test_an_exception_leaves_the_mode():
    with pytest.raises(KeyError), vg.no_grad():
        raise KeyError

    @vg.no_grad
    def fails():
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert vg.is_grad_enabled()


def test_a_decorated_function_that_calls_itself():
    @vg.no_grad
    def count(n):
        assert not vg.is_grad_enabled()
        with vg.enable_grad():
            return 1 + count(n - 1) if n else 0

    assert count(5) == 5
    assert vg.is_grad_enabled()


def test_set_grad_enabled():
    vg.set_grad_enabled(False)
    try:
        assert not vg.is_grad_enabled()
    finally:
        vg.set_grad_enabled(True)
    assert vg.is_grad_enabled()
    with vg.set_grad_enabled(False) as switch:
        assert not vg.is_grad_enabled()
        with switch:
            assert not vg.is_grad_enabled()
    assert vg.is_grad_enabled()

    @vg.set_grad_enabled(False)
    def f():
        return vg.is_grad_enabled()

    assert vg.is_grad_enabled()
    assert not f()


# -- generators --------------------------------------------------------------------------------------------------------


def test_generators_are_in_the_mode_only_while_they_run():
    log = []

    @vg.no_grad
    def generator():
        log.append(vg.is_grad_enabled())
        try:
            received = yield 1
            log.append((received, vg.is_grad_enabled()))
            try:
                yield 2
            except KeyError:
                log.append(("caught", vg.is_grad_enabled()))
            yield 3
        finally:
            log.append(("finally", vg.is_grad_enabled()))
        return "result"

    g = generator()
    assert next(g) == 1 and vg.is_grad_enabled()
    assert g.send("sent") == 2 and vg.is_grad_enabled()
    assert g.throw(KeyError()) == 3 and vg.is_grad_enabled()
    with pytest.raises(StopIteration) as stopped:
        next(g)
    assert stopped.value.value == "result" and vg.is_grad_enabled()
    assert log == [False, ("sent", False), ("caught", False), ("finally", False)]

    log.clear()
    g = generator()
    next(g)
    g.close()
    assert log == [False, ("finally", False)] and vg.is_grad_enabled()

    def outer():
        return (yield from generator())

    assert list(outer()) == [1, 2, 3]


def test_suspended_generators_restore_only_their_own_modes():
    def generator():
        with vg.no_grad():
            yield
        yield

    a = generator()
    next(a)
    assert not vg.is_grad_enabled()  # as for any `with` around a yield
    with vg.view_replay(True):
        next(a)
        assert vg.is_grad_enabled()
    assert vg.is_grad_enabled()


def test_generators_that_outlive_a_block_leave_the_mode_of_its_caller():
    def generator():
        with vg.enable_grad():
            yield

    with vg.no_grad():
        suspended = generator()
        next(suspended)
    assert vg.is_grad_enabled()
    suspended.close()
    assert vg.is_grad_enabled()


@given(st.lists(st.tuples(st.sampled_from(["on", "off", "replay", "leave"]), st.integers(0, 5)), max_size=12))
def test_switches_left_in_any_order_keep_the_last_active_ones(steps):
    makers = {"on": vg.enable_grad, "off": vg.no_grad, "replay": lambda: vg.view_replay(True)}
    entered = []

    def require_last():
        values = {"on": True, "off": False}
        assert vg.is_grad_enabled() == ([True] + [values[kind] for kind, _ in entered if kind in values])[-1]
        assert bool(modes.current_mode() & modes.REPLAY) == any(kind == "replay" for kind, _ in entered)

    for kind, place in steps:
        if kind != "leave":
            switch = makers[kind]()
            switch.__enter__()
            entered.append((kind, switch))
        elif entered:
            entered.pop(place % len(entered))[1].__exit__(None, None, None)
        require_last()
    while entered:
        entered.pop(0)[1].__exit__(None, None, None)
        require_last()


def test_a_generator_carried_into_another_context():
    @vg.no_grad
    def generator():
        yield vg.is_grad_enabled()
        yield vg.is_grad_enabled()

    g = generator()
    assert next(g) is False
    assert contextvars.copy_context().run(next, g) is False
    found = []
    thread = threading.Thread(target=lambda: found.append(vg.is_grad_enabled()))
    thread.start()
    thread.join()
    assert found == [True]


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_modes_belong_to_the_task():
    async def without(steps, log):
        with vg.no_grad():
            for _ in range(steps):
                log.append(vg.is_grad_enabled())
                await asyncio.sleep(0)

    async def with_grad(steps, log):
        for _ in range(steps):
            log.append(vg.is_grad_enabled())
            await asyncio.sleep(0)

    async def main():
        off, on = [], []
        await asyncio.gather(without(5, off), with_grad(5, on), without(3, off))
        assert vg.is_grad_enabled()
        return off, on

    off, on = asyncio.run(main())
    assert off == [False] * 8 and on == [True] * 5


def test_decorated_coroutines_and_asynchronous_generators():
    @vg.no_grad
    async def coroutine():
        await asyncio.sleep(0)
        return vg.is_grad_enabled()

    @vg.no_grad()
    async def generator():
        try:
            received = yield vg.is_grad_enabled()
            assert received in (None, "sent")
            try:
                yield vg.is_grad_enabled()
            except KeyError:
                yield "caught", vg.is_grad_enabled()
        finally:
            log.append(vg.is_grad_enabled())

    log = []

    async def main():
        assert await coroutine() is False
        assert vg.is_grad_enabled()
        async for value in generator():
            assert value is False and vg.is_grad_enabled()
        g = generator()
        await g.__anext__()
        assert await g.asend("sent") is False
        assert await g.athrow(KeyError()) == ("caught", False)
        assert vg.is_grad_enabled()
        await g.aclose()
        return vg.is_grad_enabled()

    assert asyncio.run(main())
    assert log == [False, False]


# -- inference mode ----------------------------------------------------------------------------------------------------


def test_inference_tensors():
    x = leaf(1.0, 2.0)
    with vg.inference_mode():
        assert vg.is_inference_mode_enabled() and not vg.is_grad_enabled()
        made = {
            "constructor": vg.Tensor([1.0, 2.0]),
            "zeros": vg.zeros(2),
            "arange": vg.arange(2.0),
            "from_numpy": vg.from_numpy(np.ones(2)),
            "operator": x * 2,
            "view of one": vg.ones(3)[1:],
            "gather": x[vg.Tensor([0, 1])],
            "reduction": x.sum(),
            "clone": x.clone(),
        }
        with vg.enable_grad():
            made["under enable_grad"] = x * 2
        for name, t in made.items():
            assert t.is_inference() and not t.requires_grad, name
    assert not vg.is_inference_mode_enabled() and vg.is_grad_enabled()
    for name, t in made.items():
        assert t.is_inference() and t.detach().is_inference(), name
        assert t[...].is_inference() == (t.ndim > 0), name  # for a scalar, a new array
        assert not t.clone().is_inference() and not (t * 2).is_inference(), name


def test_inference_mode_can_be_left():
    with vg.inference_mode():
        with vg.inference_mode(False):
            assert vg.is_grad_enabled() and not vg.is_inference_mode_enabled()
            assert not vg.ones(1).is_inference()
            assert (leaf(1.0) * 2).requires_grad
        assert not vg.is_grad_enabled() and vg.is_inference_mode_enabled()


def test_writes_to_inference_tensors():
    with vg.inference_mode():
        t = vg.ones(3)
        t.mul_(2)
        t[0] = 5.0
        t[1:].add_(1)
        t[vg.Tensor([2])] = 7.0
        assert numbers(t) == [5.0, 3.0, 7.0]
    version = t._version
    writes = [
        lambda: t.mul_(2),
        lambda: t.__setitem__(0, 1.0),
        lambda: t[1:].add_(1),
        lambda: t.__setitem__(vg.Tensor([0]), 1.0),
        lambda: t.copy_(leaf(1.0, 2.0, 3.0)),
        lambda: t.zero_(),
        lambda: t.detach().exp_(),
        lambda: t.index_accumulate_(vg.Tensor([0]), vg.ones(1)),
        lambda: np.add(t, 1.0, out=t),
    ]
    for write in writes:
        with pytest.raises(InferenceError, match=r"clone\(\)"):
            write()
        with pytest.raises(InferenceError), vg.no_grad():
            write()
    assert numbers(t) == [5.0, 3.0, 7.0] and t._version == version
    with vg.inference_mode():
        t.zero_()
    assert numbers(t) == [0.0] * 3


def test_inference_tensors_are_not_recorded():
    x = leaf(1.0, 2.0)
    with vg.inference_mode():
        t = vg.Tensor([3.0, 4.0])
    with pytest.raises(InferenceError):
        x * t
    with pytest.raises(InferenceError):
        x[:1] * t[:1]
    assert (x[0] * t[0]).requires_grad  # a value, which cannot change
    with pytest.raises(RuntimeError, match="inference mode"):
        t.requires_grad_()
    y = x + t  # saves nothing
    y.sum().backward()
    assert numbers(x.grad) == [1.0, 1.0]
    (x * t.clone()).sum().backward()
    assert numbers(x.grad) == [4.0, 5.0]
    with vg.no_grad():
        assert numbers(x * t) == [3.0, 8.0]


def test_tensors_from_outside_in_inference_mode():
    x = leaf(1.0, 2.0)
    y = x * 1
    plain = vg.ones(2)
    with vg.inference_mode():
        view = y[0:1]
        assert not view.is_inference() and not view.requires_grad
        plain.add_(1)
        plain[0:1].add_(1)
        assert not plain.is_inference()
    assert numbers(plain) == [3.0, 2.0]
    with pytest.raises(ViewInPlaceError, match="in inference mode"):
        view.mul_(2)
    with pytest.raises(LeafInPlaceError):
        x.mul_(2)
    plain.mul_(y)
    assert plain.requires_grad


@pytest.mark.parametrize("replay", [False, True])
def test_views_keep_their_history_when_accessed_in_inference_mode(replay):
    z = vg.Tensor([1 + 2j, 3 + 4j], requires_grad=True)
    with vg.view_replay(replay):
        base = z * 1
        for view in (base[0:1], base.real, base.imag[1:]):
            base.mul_(2)
            with vg.inference_mode():
                assert view.requires_grad
            assert view.requires_grad
            (g,) = grad(view.sum().real, z, retain_graph=True)
            assert np.abs(g.numpy()).sum() > 0


def test_backward_in_other_modes():
    for mode in (vg.no_grad, vg.inference_mode):
        x = leaf(2.0)
        y = (x * x).sum()
        with mode():
            y.backward()
        assert numbers(x.grad) == [4.0]
        assert not x.grad.is_inference()
    x = leaf(2.0)
    with vg.no_grad():
        with vg.enable_grad():
            y = (x * x).sum()
        (g,) = grad(y, x, create_graph=True)
    assert g.requires_grad


# -- threads -----------------------------------------------------------------------------------------------------------


def test_grad_mode_is_per_thread():
    with vg.no_grad():
        in_threads(2, lambda number: check_grad_mode())
        assert not vg.is_grad_enabled()

    def switch(number):
        if number:
            vg.set_grad_enabled(False)

    in_threads(2, switch)
    assert vg.is_grad_enabled()


def check_grad_mode():
    assert vg.is_grad_enabled()


def table(x, rows=12):
    """Run a recurrence that writes row by row through views and reads what it wrote."""
    out = vg.zeros((rows, x.shape[0]))
    out[0] = x
    for i in range(1, rows):
        row = out[i]
        row.copy_(out[i - 1] * x)
        row += 1
    return out


def test_threads_with_separate_graphs(frequent_switches):
    reference = grad(table(leaf(0.5, 0.25)).sum(), x := leaf(0.5, 0.25), allow_unused=True)[0]
    assert reference is None and x.grad is None
    x = leaf(0.5, 0.25)
    expected = numbers(grad(table(x).sum(), x)[0])
    second = numbers(grad((grad(table(x).sum(), x, create_graph=True)[0] ** 2).sum(), x)[0])

    def work(number):
        for _ in range(6):
            x = leaf(0.5, 0.25)
            (g,) = grad(table(x).sum(), x, create_graph=bool(number % 2))
            assert numbers(g) == expected
            if number % 2:
                np.testing.assert_allclose(numbers(grad((g * g).sum(), x)[0]), second)

    in_threads(4, work)


def test_threads_that_share_leaves(frequent_switches):
    x, w = leaf(*[1.0] * 8), vg.Tensor(np.ones((8, 4)), requires_grad=True)
    calls = []
    x.register_post_accumulate_grad_hook(lambda t: calls.append(None))
    count, passes = 4, 40

    def work(number):
        for i in range(passes):
            ((x * 2).sum() + (w[number] * float(i)).sum() + w[:, 0].sum()).backward()

    in_threads(count, work)
    assert numbers(x.grad) == [2.0 * count * passes] * 8
    expected = np.zeros((8, 4))
    expected[:count] += sum(range(passes))
    expected[:, 0] += count * passes
    assert numbers(w.grad) == expected.tolist()
    assert len(calls) == count * passes


def test_threads_that_run_one_graph(frequent_switches):
    x = leaf(0.5, 0.25)
    out = table(x).sum()
    expected = np.array(numbers(grad(out, x, retain_graph=True)[0]))

    def work(number):
        for _ in range(5):
            out.backward(retain_graph=True)
            grad(out, x, retain_graph=True, create_graph=True)

    in_threads(4, work)
    np.testing.assert_allclose(numbers(x.grad), expected * 20)


def test_values_saved_by_threads_are_preserved_on_writes(frequent_switches):
    """No thread may lose values saved by another thread while it initializes or prunes the registry."""
    for _ in range(30):
        w = vg.Tensor(np.arange(1.0, 9.0), requires_grad=True)
        results = [None] * 4

        def work(number, w=w, results=results):
            x = vg.ones(8, requires_grad=True)
            terms = [x * w]
            for i in range(40):
                terms.append(x[i % 8] * w[i % 8])
            total = terms[0].sum()
            for term in terms[1:]:
                total = total + term
            results[number] = (x, total)

        in_threads(4, work)
        with vg.no_grad():
            w.mul_(1000.0)
        for x, total in results:
            total.backward()
            assert numbers(x.grad) == [6.0 * v for v in range(1, 9)]


def test_threads_that_access_a_view_whose_base_was_written(frequent_switches):
    for _ in range(20):
        x = leaf(1.0, 2.0, 3.0)
        base = x * 1
        views = [base[1:], base[:2][1:]]
        base.mul_(2)
        totals = [None] * 4

        def work(number, views=views, totals=totals):
            totals[number] = (views[0] * 3).sum() + views[1].sum()

        in_threads(4, work)
        for total in totals:
            assert numbers(grad(total, x, retain_graph=True)[0]) == [0.0, 8.0, 6.0]


# -- passes inside of passes -------------------------------------------------------------------------------------------


class Nested(Function):
    """A function whose backward builds and differentiates its own graph, to a given depth."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.save_for_backward(x)
        ctx.depth = depth
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with vg.enable_grad():
            x = x.detach().requires_grad_()
            y = Nested.apply(x, ctx.depth - 1) if ctx.depth else x * x
            (inner,) = grad(y, x, g)
        return inner, None


def test_backward_inside_of_backward():
    x = leaf(3.0)
    Nested.apply(x, 30).sum().backward()
    assert numbers(x.grad) == [6.0]


def test_backward_inside_of_a_hook_adds_to_the_same_leaves():
    x = leaf(1.0)
    y = x * 2

    def hook(g):
        with vg.enable_grad():
            (x * 10).sum().backward()

    y.register_hook(hook)
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert numbers(x.grad) == [24.0]


# -- errors ------------------------------------------------------------------------------------------------------------


class Moody(Function):
    fails = True

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if Moody.fails:
            raise KeyError("mine")
        return g * x * 2


@pytest.mark.parametrize("create", [False, True])
def test_an_error_in_a_node_leaves_leaves_unchanged(create):
    """Values saved by the nodes that ran are released, unless the graph is retained."""
    Moody.fails = True
    x, w = leaf(2.0), leaf(3.0)
    first = x * w
    middle = Moody.apply(first)
    last = middle * middle
    beside = w * 5
    total = (last + beside).sum()
    with pytest.raises(KeyError):
        total.backward(retain_graph=True, create_graph=create)
    assert x.grad is None and w.grad is None and vg.is_grad_enabled()
    with pytest.raises(KeyError):
        total.backward(create_graph=create, retain_graph=False)
    assert x.grad is None and w.grad is None
    Moody.fails = False
    with pytest.raises(FreedGraphError):
        total.backward()
    assert x.grad is None and w.grad is None
    middle.sum().backward()  # the failed pass ran none of these nodes
    assert numbers(x.grad) == [36.0] and numbers(w.grad) == [24.0]
    (x * w).sum().backward()
    assert numbers(x.grad) == [39.0]


def test_grad_works_after_an_error_in_a_hook():
    x = leaf(2.0)
    base = x * 1
    base[0:1].mul_(3)
    out = base * base

    def hook(g):
        raise KeyError("mine")

    for tensor in (base, out):
        handle = tensor.register_hook(hook)
        with pytest.raises(KeyError):
            out.sum().backward(retain_graph=True)
        handle.remove()
        assert x.grad is None
    out.sum().backward()
    assert numbers(x.grad) == [36.0]


def test_the_mode_is_restored_after_an_error_in_a_thread():
    Moody.fails = True
    x = leaf(2.0)

    def work(number):
        if number:
            with pytest.raises(KeyError):
                Moody.apply(x).sum().backward()
        else:
            (x * 3).sum().backward()

    in_threads(4, work)
    assert numbers(x.grad) == [3.0]
    Moody.fails = False


def test_an_error_in_a_write_leaves_the_history_as_it_was():
    x = leaf(1.0, 2.0)
    y = x * 3
    node = y.grad_fn
    for write in (lambda: y.add_(vg.ones(3)), lambda: y.__setitem__(0, vg.ones(3)), lambda: y.__setitem__(5, 1.0)):
        with pytest.raises((ValueError, IndexError)):
            write()
        assert y.grad_fn is node and numbers(y) == [3.0, 6.0]
    y.sum().backward()
    assert numbers(x.grad) == [3.0, 3.0]


def test_results_made_in_inference_mode_can_never_be_recorded():
    # The module that implements the mode was not imported.
    x = vg.ones(2, requires_grad=True)
    with vg.inference_mode():
        made = vg.ones(2) * 3.0
    assert made.is_inference()
    with pytest.raises(InferenceError, match="saved for backward"):
        x * made


def test_recording_a_backward_pass_in_inference_mode():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    with vg.inference_mode(), pytest.raises(InferenceError, match="create_graph=True cannot record"):
        grad(y, x, create_graph=True)
    assert grad(y, x)[0].tolist() == [3.0, 12.0]
