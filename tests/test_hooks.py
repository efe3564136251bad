"""Hooks on tensors and nodes: their arguments, order, and effects."""

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from leaves import leaf, numbers

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.autograd.graph import plain_engine, register_multi_grad_hook
from viewgrad.errors import DifferentiabilityError, GradientMismatchError, HookError, NonLeafGradWarning

RUNS = [
    pytest.param({}, id="plain"),
    pytest.param({"retain_graph": True}, id="retained"),
    pytest.param({"create_graph": True}, id="recorded"),
]


# -- tensor hooks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_hooks_get_and_replace_the_gradient(run):
    x = leaf(1.0, 2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(numbers(g)))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(numbers(g)))
    (y * vg.Tensor([1.0, 2.0])).sum().backward(**run)
    assert seen == [[1.0, 2.0], [10.0, 20.0]]
    assert numbers(x.grad) == [30.0, 60.0]


@pytest.mark.parametrize("run", RUNS)
def test_hook_on_a_leaf(run):
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: seen.append(numbers(g)))
    (x * x + x).sum().backward(**run)
    assert seen == [[6.0, 10.0]]
    assert numbers(x.grad) == [6.0, 10.0]
    assert numbers(grad((x * x).sum(), x)[0]) == [4.0, 8.0]


@pytest.mark.parametrize("run", RUNS)
def test_a_hook_may_write_in_place_without_side_effects(run):
    x = leaf(1.0, 2.0)
    y, z = x * 3, x * 5
    seed = vg.ones(2)

    def hook(g):
        g.mul_(10)

    y.register_hook(hook)
    (y + z).backward(seed, **run)  # add() hands the same gradient to both
    assert numbers(x.grad) == [35.0, 35.0]
    assert numbers(seed) == [1.0, 1.0]


@pytest.mark.parametrize("run", RUNS)
def test_gradients_that_a_hook_keeps_stay_as_they_were(run):
    x = leaf(1.0, 2.0)
    kept = []
    base = x * 1
    base.register_hook(kept.append)
    out = base * 2
    base[0] = 7.0  # CopySlices rewrites the gradient in place
    base.register_hook(kept.append)
    base.grad_fn.register_prehook(lambda grads: kept.extend(grads))
    base.grad_fn.register_hook(lambda grads, outputs: kept.extend((*grads, *outputs)))
    (base * 3 + out).sum().backward(**run)
    assert [numbers(g) for g in kept if g is not None] == [
        [3.0, 3.0],  # the hook registered after the write
        [3.0, 3.0],  # the prehook of CopySlices
        [0.0, 3.0],  # the result of CopySlices
        [3.0, 3.0],  # from the gradient above
        [2.0, 5.0],  # the hook registered before the write
    ]
    assert numbers(x.grad) == [2.0, 5.0]


def test_a_buffer_that_a_hook_returns_and_reuses():
    buffer = vg.zeros(2)

    def hook(g):
        buffer.copy_(g * 2)
        return buffer

    x = leaf(1.0, 1.0)
    y, z = x * 3, x * 5
    y.register_hook(hook)
    z.register_hook(hook)
    (y + z * 7).sum().backward()
    assert numbers(x.grad) == [6.0 + 70.0] * 2


def test_handles():
    x = leaf(1.0)
    y = x * 2
    seen = []
    first = y.register_hook(lambda g: seen.append("first"))
    with y.register_hook(lambda g: seen.append("within")):
        y.sum().backward(retain_graph=True)
    first.remove()
    first.remove()
    y.sum().backward()
    assert seen == ["first", "within"]


def test_a_hook_may_remove_itself_and_register_others():
    x = leaf(1.0)
    y = x * 2
    seen = []

    def once(g):
        seen.append("once")
        handle.remove()
        y.register_hook(lambda g: seen.append("later"))

    handle = y.register_hook(once)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == ["once", "later"]


def test_hooks_of_intermediate_inputs_of_grad():
    x = leaf(2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g * 100)
    z = (y * y).sum()
    assert numbers(grad(z, y, retain_graph=True)[0]) == [120.0]
    assert numbers(grad(z, x, retain_graph=True)[0]) == [36000.0]
    assert [numbers(g) for g in grad(z, [x, y])] == [[36000.0], [120.0]]


def test_hook_does_not_run_without_a_gradient():
    x = leaf(1.0)
    y, z = x * 2, x * 3
    z.register_hook(lambda g: pytest.fail("not reached"))
    x.register_hook(lambda g: pytest.fail("not asked for"))
    y.sum().backward(inputs=[y])
    grad((y + z).sum(), y)
    assert x.grad is None


def test_hooks_of_the_outputs_of_one_node():
    x = leaf(3.0, 1.0, 2.0)

    class Two(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    a, b = Two.apply(x)
    a.register_hook(lambda g: g * 10)
    seen = []
    b.register_hook(seen.append)
    a.sum().backward()
    assert numbers(x.grad) == [20.0] * 3
    assert seen == []


def test_recorded_hooks_are_differentiated():
    x = leaf(2.0)
    y = x * x
    handle = y.register_hook(lambda g: g * y)
    (g,) = grad((y * y).sum(), x, create_graph=True)  # 2y * y * 2x = 4 x^5
    handle.remove()
    assert numbers(g) == [4 * 2.0**5]
    assert numbers(grad(g, x)[0]) == [20 * 2.0**4]


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (lambda g: 3.0, HookError, "returned float"),
        (lambda g: np.ones(2), HookError, "returned ndarray"),
        (lambda g: (g,), HookError, "returned tuple"),
        (lambda g: g[0], GradientMismatchError, r"shape \(\) .*in place of one of shape \(2,\)"),
        (lambda g: g.astype(np.float32), GradientMismatchError, "float32"),
    ],
)
def test_wrong_results(hook, error, message, create):
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(error, match=message):
        (y * y).sum().backward(create_graph=create)
    assert x.grad is None


def test_hooks_are_rejected_without_gradient():
    with pytest.raises(DifferentiabilityError):
        vg.ones(1).register_hook(print)
    with pytest.raises(DifferentiabilityError):
        vg.ones(1).retain_grad()
    with pytest.raises(HookError, match="expects a function"):
        leaf(1.0).register_hook(3)
    with pytest.raises(HookError, match="does not accumulate"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


# -- writes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_hooks_registered_before_a_write_get_the_gradient_of_the_old_value(run):
    x = leaf(1.0, 2.0)
    y = x * 1
    seen = {}
    y.register_hook(lambda g: seen.update(before=numbers(g)))
    old = y * 5
    y.mul_(3)
    y.register_hook(lambda g: seen.update(after=numbers(g)))
    (y * 7 + old).sum().backward(**run)
    assert seen == {"after": [7.0, 7.0], "before": [26.0, 26.0]}


@pytest.mark.parametrize("run", RUNS)
def test_hooks_on_a_base_and_on_its_views(run):
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view = base[1:]
    seen = {}
    base.register_hook(lambda g: seen.update(base_before=numbers(g)))
    view.register_hook(lambda g: seen.update(view_before=numbers(g)))
    read = view * 10
    view.mul_(3)
    base.register_hook(lambda g: seen.update(base_after=numbers(g)))
    view.register_hook(lambda g: seen.update(view_after=numbers(g)))
    (view.sum() * 100 + base.sum() + read.sum()).backward(**run)
    assert seen == {
        "view_after": [100.0, 100.0],
        "base_after": [1.0, 101.0, 101.0],
        "view_before": [10.0, 10.0],
        "base_before": [1.0, 313.0, 313.0],
    }
    assert numbers(x.grad) == [1.0, 313.0, 313.0]


@pytest.mark.parametrize("run", RUNS)
def test_a_hook_on_a_view_replaces_the_gradient_of_the_view_only(run):
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    outer = base[1:]
    inner = outer[1:]
    outer.register_hook(lambda g: g * 10)
    inner.register_hook(lambda g: g * 100)
    (inner.sum() + outer.sum() + base.sum()).backward(**run)
    assert numbers(x.grad) == [1.0, 11.0, 1011.0]


@pytest.mark.parametrize("run", RUNS)
def test_retain_grad_follows_the_new_value(run):
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    old = y * 5
    y.mul_(3)
    y[0] = 4.0
    assert y.retains_grad
    (y * 7 + old).sum().backward(**run)
    assert numbers(y.grad) == [7.0, 7.0]
    assert numbers(x.grad) == [5.0, 26.0]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("looked_at", [False, True])
def test_retain_grad_of_a_view_follows_writes_to_its_base(run, looked_at):
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    view = base[1:]
    view.retain_grad()
    old = view * 5
    base.mul_(2)
    base[0] = 9.0
    if looked_at:
        assert view.grad_fn.name() == "AsStridedBackward"
    new = view * 7
    (new.sum() + old.sum() + base.sum()).backward(**run)
    assert numbers(view.grad) == [7.0, 7.0]
    assert numbers(x.grad) == [0.0, 21.0, 21.0]


def test_retain_grad_of_views_of_two_outputs_of_one_node():
    class Two(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    x = leaf(1.0, 2.0)
    outputs = Two.apply(x)
    views = [output[1:] for output in outputs]
    for view in views:
        view.retain_grad()
    for output in outputs:
        output.mul_(10)
    (views[0].sum() * 5 + views[1].sum() * 7).backward()
    assert [numbers(view.grad) for view in views] == [[5.0], [7.0]]
    assert numbers(x.grad) == [0.0, 310.0]


def test_retain_grad_of_a_view_if_only_its_old_value_was_used():
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    view.retain_grad()
    old = view * 5
    base.mul_(2)
    (old.sum() + base.sum()).backward()
    with pytest.warns(NonLeafGradWarning, match="was written to after retain_grad"):
        assert view.grad is None
    assert numbers(x.grad) == [7.0, 2.0]


def test_retain_grad_accumulates_and_shares_no_memory():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    z = y * 3
    z.sum().backward(retain_graph=True)
    first = y.grad
    z.sum().backward()
    assert numbers(first) == [3.0] and numbers(y.grad) == [6.0]
    x.retain_grad()
    assert not x.retains_grad and numbers(x.grad) == [12.0]


def test_retain_grad_comes_after_the_tensor_hooks_and_before_the_prehooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 1000,))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert numbers(y.grad) == [10.0]
    assert numbers(x.grad) == [20000.0]


def test_retain_grad_keeps_nothing_alive():
    gc.disable()
    try:
        x = leaf(1.0)
        y = x * 2
        y.retain_grad()
        reference = weakref.ref(y)
        z = y.sum()
        del y
        assert reference() is None
        z.backward()
    finally:
        gc.enable()


# -- node hooks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_node_hooks(run):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append(("before", [numbers(g) for g in grads])))
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append(([numbers(g) for g in inputs], [numbers(g) for g in outputs]))
    )
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 100, None))
    y.sum().backward(**run)
    assert seen == [("before", [[1.0, 1.0]]), ([[6.0, 8.0], [2.0, 4.0]], [[2.0, 2.0]])]
    assert numbers(x.grad) == [600.0, 800.0]
    assert w.grad is None


@pytest.mark.parametrize("run", RUNS)
def test_node_hooks_of_a_view(run):
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[1:]
    seen = []
    view.grad_fn.register_hook(lambda inputs, outputs: seen.append((numbers(inputs[0]), numbers(outputs[0]))))
    view.grad_fn.register_hook(lambda inputs, outputs: inputs[0] * 10)
    (view.sum() * 2 + y.sum()).backward(**run)
    assert seen == [([0.0, 2.0, 2.0], [2.0, 2.0])]
    assert numbers(x.grad) == [1.0, 21.0, 21.0]


@pytest.mark.parametrize("run", RUNS)
def test_node_hooks_of_copy_slices(run):
    x, v = leaf(1.0, 2.0, 3.0), leaf(5.0)
    y = x * 1
    y[1:2] = v
    seen = []
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append([numbers(g) for g in (*inputs, *outputs)]),
    )
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1] * 100))
    (y * vg.Tensor([1.0, 2.0, 3.0])).sum().backward(**run)
    assert seen == [[[1.0, 0.0, 3.0], [2.0], [1.0, 2.0, 3.0]]]
    assert numbers(x.grad) == [10.0, 0.0, 30.0]
    assert numbers(v.grad) == [200.0]


def test_node_hooks_of_a_leaf():
    x = leaf(1.0)
    y = x * 2
    accumulate = y.grad_fn.next_functions[0][0]
    assert accumulate.name() == "AccumulateGrad" and accumulate.variable is x
    seen = []
    x.register_hook(lambda g: seen.append("tensor"))
    accumulate.register_prehook(lambda grads: seen.append(("before", numbers(grads[0]), x.grad)))
    accumulate.register_hook(lambda inputs, outputs: seen.append((inputs, numbers(outputs[0]), numbers(x.grad))))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", numbers(t.grad))))
    y.sum().backward()
    assert seen == ["tensor", ("before", [2.0], None), ("accumulated", [2.0]), ((), [2.0], [2.0])]


def test_the_order_of_all_hooks():
    x = leaf(1.0)
    y = x * 2
    order = []
    y.grad_fn.register_hook(lambda inputs, outputs: order.append("node hook"))
    y.grad_fn.register_prehook(lambda grads: order.append(("node prehook", numbers(y.grad))))
    y.retain_grad()
    y.register_hook(lambda g: order.append(("tensor hook", y.grad)))
    y.register_hook(lambda g: order.append("second tensor hook"))
    x.register_post_accumulate_grad_hook(lambda t: order.append("accumulated"))
    x.register_hook(lambda g: order.append(("leaf hook", x.grad)))
    y.sum().backward()
    assert order == [
        ("tensor hook", None),
        "second tensor hook",
        ("node prehook", [1.0]),
        "node hook",
        ("leaf hook", None),
        "accumulated",
    ]


def test_prehooks_do_not_run_for_unneeded_nodes():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: pytest.fail("the node of a captured input is not run"))
    assert numbers(grad((y * y).sum(), y)[0]) == [12.0]


@pytest.mark.parametrize("plain", [False, True])
def test_prehooks_do_not_run_for_captured_leaves(plain):
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.next_functions[0][0].register_prehook(lambda grads: pytest.fail("a captured leaf does not accumulate"))
    with plain_engine() if plain else nullcontext():
        assert numbers(grad((y * y).sum(), x, retain_graph=True)[0]) == [36.0]
        assert numbers(grad((y * y).sum(), [x, y])[0]) == [36.0]


def test_prehook_that_returns_none_for_all_gradients():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (None,))
    (y + x).sum().backward()
    assert numbers(x.grad) == [1.0]


def test_wrong_results_of_node_hooks():
    for hook, error, message in (
        (lambda i, o: (o[0], o[0], o[0]), HookError, "returned 3 gradients instead of 2"),
        (lambda i, o: (o[0], o[0]), HookError, "in place of an undefined one"),
        (lambda i, o: (o[0][:1], None), GradientMismatchError, r"shape \(1,\)"),
        (lambda i, o: (3, None), HookError, "returned int"),
    ):
        y = leaf(1.0, 2.0) * 3
        y.grad_fn.register_hook(hook)
        with pytest.raises(error, match=message):
            y.sum().backward()


# -- leaves ------------------------------------------------------------------------------------------------------------


def test_post_accumulate_hooks():
    x = leaf(1.0, 2.0)
    y = x * x
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, numbers(t.grad))))
    y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    grad(y.sum(), x, retain_graph=True)
    handle.remove()
    y.sum().backward()
    assert seen == [(True, [2.0, 4.0]), (True, [4.0, 8.0])]


def test_an_optimizer_in_the_backward_pass():
    x, w = leaf(1.0), leaf(2.0)

    def step(t):
        with vg.no_grad():
            t -= 0.5 * t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    w.register_post_accumulate_grad_hook(step)
    (x * w).sum().backward()
    assert (numbers(x), numbers(w)) == ([0.0], [1.5])
    assert x.grad is None and w.grad is None


def test_an_error_in_a_leaf_hook_leaves_every_leaf_as_it_was():
    x, w = leaf(1.0), leaf(2.0)

    def fail(g):
        raise KeyError("mine")

    handle = w.register_hook(fail)
    for order in ((x, w), (w, x)):
        with pytest.raises(KeyError):
            (order[0] * order[1]).sum().backward()
    assert x.grad is None and w.grad is None
    handle.remove()
    (x * w).sum().backward()
    assert numbers(x.grad) == [2.0]


def test_a_gradient_that_was_read_is_not_changed_by_the_next_pass():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    g = x.grad
    window = g[0:1]
    array = g.numpy()
    y.backward()
    assert numbers(g) == [2.0, 4.0] and numbers(window) == [2.0] and array.tolist() == [2.0, 4.0]
    assert numbers(x.grad) == [4.0, 8.0]


# -- several tensors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_multi_grad_hook_all(run):
    x, w, unused = leaf(1.0), leaf(2.0), leaf(3.0)
    y = x * w
    seen = []
    handle = register_multi_grad_hook([x, y, unused, w], lambda grads: seen.append([numbers(g) for g in grads]))
    z = y * 5
    z.sum().backward(**{**run, "retain_graph": True})
    assert seen == [[[10.0], [5.0], None, [5.0]]]
    z.sum().backward(inputs=[w], retain_graph=True)
    assert seen[1:] == [[None, [5.0], None, [5.0]]]
    handle.remove()
    z.sum().backward()
    assert len(seen) == 2


def test_multi_grad_hook_is_called_when_the_last_gradient_has_arrived():
    x = leaf(1.0)
    a = x * 2
    b = a * 3
    order = []
    register_multi_grad_hook([a, b], lambda grads: order.append("both"))
    x.register_hook(lambda g: order.append("x"))
    (a + b).sum().backward()
    assert order == ["both", "x"]


def test_multi_grad_hook_any():
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    seen = []
    register_multi_grad_hook([x, y], lambda g: seen.append(numbers(g)), mode="any")
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == [[1.0], [1.0]]


def test_multi_grad_hook_refusals():
    with pytest.raises(HookError, match="tensor 1 of register_multi_grad_hook"):
        register_multi_grad_hook([leaf(1.0), vg.ones(1)], print)
    with pytest.raises(HookError, match="'all' or 'any'"):
        register_multi_grad_hook([leaf(1.0)], print, mode="some")


# -- passes inside of passes -------------------------------------------------------------------------------------------


def test_a_backward_pass_inside_a_hook():
    x = leaf(2.0)
    inner = []

    def hook(g):
        t = leaf(3.0)
        with vg.enable_grad():
            (t * t).sum().backward()
            (x * 5).sum().backward()  # adds to the same leaf as the outer pass
        inner.append(numbers(t.grad))
        return g * t.grad

    y = x * 1
    y.register_hook(hook)
    y.sum().backward()
    assert inner == [[6.0]]
    assert numbers(x.grad) == [11.0]


def test_a_pass_over_the_same_graph_inside_a_hook():
    x = leaf(2.0)
    y = x * x
    z = (y * y).sum()
    found = []

    def hook(g):
        if not found:
            found.append(None)
            found[0] = numbers(grad(z, x, retain_graph=True)[0])

    y.register_hook(hook)
    z.backward(retain_graph=True)
    assert found == [[32.0]]
    assert numbers(x.grad) == [32.0]


def test_observing_hooks_change_nothing():
    def program(x, watch):
        base = x * 2
        view = base[1:]
        watch(base)
        watch(view)
        view.mul_(x[:2])
        watch(view)
        watch(base)
        base[0] = base[1] * base[2]
        watch(base)
        other = base.reshape(3, 1)
        watch(other)
        return (other * base).sum() + view.sum()

    def observe(t):
        t.register_hook(lambda g: None)
        t.retain_grad()
        if t.grad_fn is not None:
            t.grad_fn.register_prehook(lambda grads: None)
            t.grad_fn.register_hook(lambda inputs, outputs: None)

    values = [0.5, -1.5, 2.0]
    plain, watched = leaf(*values), leaf(*values)
    for create in (False, True):
        (a,) = grad(program(plain, lambda t: None), plain, create_graph=create)
        (b,) = grad(program(watched, observe), watched, create_graph=create)
        np.testing.assert_allclose(numbers(a), numbers(b))
        if create:
            (aa,) = grad((a * a).sum(), plain)
            (bb,) = grad((b * b).sum(), watched)
            np.testing.assert_allclose(numbers(aa), numbers(bb))


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("size", [2, 3000])
def test_hooks_on_squares_get_both_gradients(retain, size):
    x = vg.full((size,), 3.0, requires_grad=True)
    y = x * x
    seen = []

    def hook(inputs, outputs):
        seen.append([None if g is None else g[0].item() for g in inputs])
        return inputs[0] * 0.0, inputs[1] * 5.0

    y.grad_fn.register_hook(hook)
    (grad,) = vg.autograd.grad(y.sum(), x, retain_graph=retain)
    assert seen == [[3.0, 3.0]]
    assert np.all(grad.numpy() == 15.0)


@pytest.mark.parametrize("run", RUNS)
def test_the_result_of_a_hook_may_be_written_to_during_the_run(run):
    x, w, kept = leaf(1.0, 2.0), leaf(3.0, 4.0), vg.Tensor([5.0, 6.0])
    older = w * 2.0
    older.register_hook(lambda grad: (kept.zero_(), None)[1])
    newer = x.clone()
    newer.register_hook(lambda grad: kept)
    (newer + older).sum().backward(**run)
    assert numbers(kept) == [0.0, 0.0]
    assert numbers(x.grad) == [5.0, 6.0]


def test_a_hook_after_accumulation_returns_nothing():
    x = leaf(2.0)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad * 2.0)
    with pytest.raises(HookError, match=r"returned Tensor, but the gradient has already been.*register_hook\(\)"):
        (x * x).sum().backward()
