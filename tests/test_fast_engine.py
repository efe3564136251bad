"""Gradient buffers are reused only if that is invisible: arrays visible to users are never written to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from leaves import leaf

import viewgrad as vg


class Keeper:
    """Keeps gradients, in several ways, with a copy of their values at that time."""

    def __init__(self):
        self.kept = []

    def keep(self, tensor):
        """Remember a tensor, a window on its memory, a view of it and a detached twin."""
        if tensor is not None:
            value = np.array(tensor.detach().numpy())
            self.kept.append((tensor, tensor.detach().numpy(), tensor.detach()[...], value))

    def check(self):
        """Check that the kept values have not changed."""
        for tensor, window, view, value in self.kept:
            assert np.array_equal(tensor.detach().numpy(), value)
            assert np.array_equal(window, value)
            assert np.array_equal(view.numpy(), value)

    def destroy(self):
        """Write over everything that was kept."""
        with vg.no_grad():
            for tensor, _, _, _ in self.kept:
                tensor.detach()[...] = np.nan
        self.kept = []


# Programs whose backward passes share, overwrite and accumulate gradients. Each takes two leaves and returns the number
# to be differentiated, and the values in between.


def sum_shared_by_two_edges(x, y):
    a, b = x.clone(), y.clone()
    c = a + b
    return c.sum(), [a, b, c]


def shared_then_overwritten(x, y):
    a = x.clone()
    a[1:3] = y[0:2] * 3
    b = a + y  # one gradient for both; the gradient of `a` is rewritten in place
    return (b * b).sum(), [a, b]


def overwritten_twice(x, y):
    a = x.clone()
    a[0] = y[1]
    first = a.clone()
    a[2:] *= y[:2]
    return (a * first).sum() + a[1], [a, first]


def same_value_at_both_inputs(x, y):
    a = x + x
    b = a + a
    b[0] = y[0]
    return (b + y).sum(), [a, b]


def views_accumulate(x, y):
    a = x * 1.0
    left, right = a[:3], a[1:]
    c = left + right
    a[1] = y[1]
    return (c * c).sum() + (a * y).sum() + left[0], [a, left, right, c]


def views_of_views(x, y):
    a = x.clone()
    inner = a[1:]
    inner[1:] += y[2:]
    square = a.reshape(2, 2)
    square[0] *= y[:2]
    return (square.T + square).sum() + inner.sum(), [a, inner, square]


def broadcast(x, y):
    a = x.clone()
    a[...] = y.sum()
    a[3] = x[3]
    b = a + y
    return b.sum(), [a, b]


def in_place_on_the_result(x, y):
    a = x * y
    a += y
    a += x
    a -= y
    return a.sum(), [a]


def index_arrays(x, y):
    a = x.clone()
    a[np.array([0, 2])] = y[np.array([1, 1])]
    a[np.array([True, False, False, True])] *= 2
    b = a + x
    return (b[np.array([0, 0, 3])] * y[:3]).sum() + b.sum(), [a, b]


def outputs_of_several_uses(x, y):
    a = x + y
    b, c, d = a.clone(), a[...], a * 1.0
    b[0] = 0.0
    c[1] = y[2]
    d[2] = 1.0
    return (a + b + c + d).sum(), [a, b, c, d]


def identity_chain(x, y):
    a = x.reshape(2, 2).reshape(4).clone()
    b = a + 0.0
    c = b.clone()
    c[2] = y[2]
    return (c + b).sum(), [a, b, c]


def read_in_part_before_it_is_shared(x, y):
    part = x[1:3] * y[:2]  # made first, so that its gradient arrives last
    both = x + y
    return (both * both).sum() + part.sum(), [part, both]


def read_in_part_and_summed(x, y):
    part = x[1:3] * y[:2]
    total = x.sum()  # its gradient is one number, broadcast
    return part.sum() + total + (y * y).sum(), [part, total]


def used_and_summed(x, y):
    product = x * y
    total = x.sum() + y.sum()
    return (product * product).sum() + total, [product, total]


def parts_of_a_shared_gradient(x, y):
    other = np.concatenate([y, x]) * 2
    product = x * y
    joined = np.concatenate([x, y])
    # Parts of one gradient go to x and y, where the gradient of the product is added; all of it goes to `other`.
    both = joined + other
    return (both * both).sum() + product.sum(), [product, joined, other, both]


def overwritten_by_slices_of_itself(x, y):
    a = x.clone()
    b = a * a
    a[:2] = b[2:] * y[:2]
    a[2:] = a[:2] * b[:2]
    return (a * a).sum() + b[0], [a, b]


PROGRAMS = [
    read_in_part_before_it_is_shared,
    read_in_part_and_summed,
    used_and_summed,
    parts_of_a_shared_gradient,
    overwritten_by_slices_of_itself,
    sum_shared_by_two_edges,
    shared_then_overwritten,
    overwritten_twice,
    same_value_at_both_inputs,
    views_accumulate,
    views_of_views,
    broadcast,
    in_place_on_the_result,
    index_arrays,
    outputs_of_several_uses,
    identity_chain,
]


def leaves():
    return leaf(1.5, -0.5, 2.0, 0.75), leaf(0.5, 3.0, -1.0, 1.25)


def plain_gradients(program):
    x, y = leaves()
    value, _ = program(x, y)
    return [grad.numpy() for grad in vg.autograd.grad(value, [x, y], materialize_grads=True)]


def observe(tensors, keeper):
    """Observe the gradients of all tensors in every possible way."""
    for tensor in tensors:
        tensor.register_hook(keeper.keep)
        tensor.retain_grad()
        node = tensor.grad_fn
        if node is not None:
            node.register_prehook(lambda outputs: [keeper.keep(grad) for grad in outputs] and None)
            node.register_hook(lambda inputs, outputs: [keeper.keep(grad) for grad in (*inputs, *outputs)] and None)


@pytest.mark.parametrize("recorded", [False, True], ids=["first order", "recorded"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_visible_gradients_are_never_overwritten(program, recorded):
    expected = plain_gradients(program)
    x, y = leaves()
    value, between = program(x, y)
    keeper = Keeper()
    observe([*between, x, y], keeper)
    for _ in range(3):
        for grad, right in zip(
            vg.autograd.grad(
                value, [x, y], retain_graph=True, create_graph=recorded, allow_unused=True, materialize_grads=True
            ),
            expected,
        ):
            assert np.allclose(grad.detach().numpy(), right)
            keeper.keep(grad)
        value.backward(retain_graph=True, create_graph=recorded)
        for tensor in (*between, x, y):
            keeper.keep(tensor.grad)
    keeper.check()
    assert len(keeper.kept) > 10
    assert np.allclose(x.grad.detach().numpy(), 3 * expected[0])
    assert np.allclose(y.grad.detach().numpy(), 3 * expected[1])


@pytest.mark.parametrize("program", PROGRAMS)
def test_modifying_kept_gradients_does_not_affect_later_passes(program):
    expected = plain_gradients(program)
    x, y = leaves()
    value, between = program(x, y)
    keeper = Keeper()
    observe(between, keeper)
    for _ in range(3):
        grads = vg.autograd.grad(value, [x, y], retain_graph=True, materialize_grads=True)
        for grad, right in zip(grads, expected):
            assert np.allclose(grad.numpy(), right)
            keeper.keep(grad)
        keeper.destroy()
        value.backward(retain_graph=True)
        assert np.allclose(x.grad.numpy(), expected[0])
        assert np.allclose(y.grad.numpy(), expected[1])
        keeper.keep(x.grad)
        keeper.keep(y.grad)
        keeper.destroy()
        x.grad = y.grad = None


@pytest.mark.parametrize("recorded", [False, True], ids=["first order", "recorded"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_returned_gradients_share_no_memory_and_can_be_written_to(program, recorded):
    x, y = leaves()
    value, between = program(x, y)
    inputs = [x, y, *between]
    grads = vg.autograd.grad(value, inputs, allow_unused=True, retain_graph=True, create_graph=recorded)
    arrays = [grad.detach().numpy() for grad in grads if grad is not None]
    value.backward(retain_graph=True)
    arrays += [x.grad.numpy(), y.grad.numpy()]
    arrays += [tensor.detach().numpy() for tensor in inputs if not tensor._is_view()]
    for i, one in enumerate(arrays):
        for other in arrays[:i]:
            assert not np.shares_memory(one, other)
    for tensor in [grad for grad in grads if grad is not None and not recorded] + [x.grad, y.grad]:
        before = tensor.numpy().copy()
        tensor.reshape(-1)[0] = 77.0
        before.reshape(-1)[0] = 77.0
        assert np.array_equal(tensor.numpy(), before)


@pytest.mark.parametrize("recorded", [False, True], ids=["first order", "recorded"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_joint_gradients_match_separate_ones(program, recorded):
    x, y = leaves()
    value, between = program(x, y)
    inputs = [x, y, *between]
    options = {"allow_unused": True, "materialize_grads": True, "retain_graph": True}
    together = vg.autograd.grad(value, inputs, create_graph=recorded, **options)
    for tensor, grad in zip(inputs, together):
        (alone,) = vg.autograd.grad(value, tensor, **options)
        assert np.allclose(grad.detach().numpy(), alone.numpy())


def test_hook_that_writes_to_its_gradient_changes_only_its_own_path():
    x, y = leaves()
    a, b = x * 1.0, y * 1.0
    a.register_hook(lambda grad: grad.mul_(100.0))
    both = a + b
    (both * both).sum().backward()
    expected = 2 * (x + y).detach().numpy()
    assert np.allclose(x.grad.numpy(), 100 * expected)
    assert np.allclose(y.grad.numpy(), expected)


def test_the_result_of_a_hook_may_be_written_to_afterwards():
    x, y = leaves()
    mine = vg.full((4,), 5.0)
    a = x.clone()
    b = a.clone()
    b.register_hook(lambda grad: mine)

    def spoil(grad):
        mine.fill_(np.nan)

    a.register_hook(spoil)
    b[0] = y[0]
    b.sum().backward()
    assert np.isnan(mine.numpy()).all()
    assert np.array_equal(x.grad.numpy(), [5.0, 5.0, 5.0, 5.0])


# -- gradients fed in --------------------------------------------------------------------------------------------------


def whole(values):
    return vg.Tensor(values)


def view_of_a_row(values):
    return vg.Tensor([values, values])[1]


def every_other_element(values):
    return vg.Tensor(np.repeat(values, 2))[::2]


def reversed_view(values):
    return vg.Tensor(values[::-1])[::-1]


def expanded(values):
    return vg.Tensor([values[0]]).expand(4)


def foreign(values):
    return vg.from_numpy(np.array(values))


def read_only(values):
    array = np.array(values)
    array.flags.writeable = False
    return vg.from_numpy(array)


FED = [whole, view_of_a_row, every_other_element, reversed_view, expanded, foreign, read_only]


def vector_programs():
    def copied(x, y):
        return x.clone()

    def partly_overwritten(x, y):
        a = x.clone()
        a[1:3] = y[:2]
        return a

    def added(x, y):
        return x + y

    def wholly_overwritten(x, y):
        a = x.clone()
        a[...] = y
        return a

    def scaled_in_place(x, y):
        a = x.clone()
        a[1:] *= y[1:]
        return a

    def view(x, y):
        return (x * y)[...]

    def leaf_itself(x, y):
        return x

    return [copied, partly_overwritten, added, wholly_overwritten, scaled_in_place, view, leaf_itself]


@pytest.mark.parametrize("recorded", [False, True], ids=["first order", "recorded"])
@pytest.mark.parametrize("feed", FED)
@pytest.mark.parametrize("program", vector_programs())
def test_supplied_gradient_is_never_written_to(program, feed, recorded):
    x, y = leaves()
    fed = feed([2.0, 3.0, 5.0, 7.0])
    base = fed if fed._base is None else fed._base
    value, base_value = np.array(fed.numpy()), np.array(base.numpy())
    out = program(x, y)
    for _ in range(2):
        out.backward(fed, retain_graph=True, create_graph=recorded)
        vg.autograd.grad(out, x, fed, retain_graph=True, create_graph=recorded, allow_unused=True)
        vg.autograd.backward([out, out], [fed, fed], retain_graph=True, create_graph=recorded)
    assert np.array_equal(fed.numpy(), value)
    assert np.array_equal(base.numpy(), base_value)


@pytest.mark.parametrize("feed", FED)
@pytest.mark.parametrize("program", vector_programs())
def test_returned_gradient_shares_no_memory_with_the_supplied_one(program, feed):
    x, y = leaves()
    fed = feed([2.0, 3.0, 5.0, 7.0])
    out = program(x, y)
    out.backward(fed, retain_graph=True)
    (returned,) = vg.autograd.grad(out, x, fed, allow_unused=True, materialize_grads=True)
    for grad in (x.grad, y.grad, returned):
        if grad is not None:
            assert not np.shares_memory(grad.numpy(), fed.numpy())


def test_a_leafs_own_grad_can_be_supplied():
    x, _ = leaves()
    (x * 2).sum().backward()
    kept = x.grad.numpy().copy()
    y = x.clone()
    y[0] = 1.0
    fed = x.grad
    y.backward(fed)
    assert np.array_equal(fed.numpy(), kept) or x.grad is fed
    assert np.array_equal(x.grad.numpy(), [2.0, 4.0, 4.0, 4.0])


def test_a_graph_value_can_be_supplied_as_gradient():
    x, y = leaves()
    a = x * y
    b = a.clone()
    b[1:] *= y[1:]
    before = a.detach().numpy().copy()
    b.backward(a.detach())
    assert np.array_equal(a.detach().numpy(), before)
    factors = np.array([1.0, *y.detach().numpy()[1:]])
    assert np.allclose(x.grad.numpy(), before * factors * y.detach().numpy())


# -- accumulation in leaves --------------------------------------------------------------------------------------------


def backward_of_ones(x):
    x.clone().backward(vg.ones(4))


@pytest.mark.parametrize(
    "alias",
    [
        lambda grad: grad,
        lambda grad: grad.numpy(),
        lambda grad: np.asarray(grad),
        lambda grad: grad.detach(),
        lambda grad: grad.data,
        lambda grad: grad[1:],
        lambda grad: grad.reshape(2, 2)[1],
        lambda grad: grad.detach()[::-1],
        lambda grad: memoryview(grad.numpy()),
        lambda grad: grad.numpy()[2:3],
        lambda grad: iter([grad]),
    ],
    ids=[
        "itself", "numpy", "asarray", "detach", "data", "view", "view of a view", "view of a twin", "memoryview",
        "window of a window", "iterator",
    ],
)  # fmt: skip
def test_held_leaf_gradient_is_not_accumulated_into(alias):
    x, _ = leaves()
    backward_of_ones(x)
    held = alias(x.grad)
    backward_of_ones(x)
    backward_of_ones(x)
    if hasattr(held, "__next__"):
        held = next(held)
    values = held.numpy() if isinstance(held, vg.Tensor) else np.asarray(held)
    assert np.all(values == 1.0)
    assert np.array_equal(x.grad.numpy(), [3.0] * 4)


def test_a_gradient_read_and_kept_is_a_snapshot_each_time():
    x, _ = leaves()
    kept = []
    for _ in range(4):
        backward_of_ones(x)
        kept.append(x.grad)
    assert [float(grad[0]) for grad in kept] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("part", [lambda grad: grad, lambda grad: grad[:], lambda grad: grad.reshape(2, 2).reshape(4)])
def test_saved_leaf_gradient_is_not_accumulated_into(part):
    x, w = leaves()
    backward_of_ones(x)
    product = w * part(x.grad)
    backward_of_ones(x)
    product.sum().backward()
    assert np.array_equal(w.grad.numpy(), [1.0] * 4)
    assert np.array_equal(x.grad.numpy(), [2.0] * 4)


def test_gradient_held_by_the_user_is_not_accumulated_into():
    x, _ = leaves()
    mine = vg.full((4,), 10.0)
    x.grad = mine
    backward_of_ones(x)
    assert np.array_equal(mine.numpy(), [10.0] * 4)
    assert np.array_equal(x.grad.numpy(), [11.0] * 4)


def test_memory_of_the_users_own_array_is_not_accumulated_into():
    x, _ = leaves()
    array = np.full(4, 10.0)
    x.grad = vg.from_numpy(array)
    backward_of_ones(x)
    assert np.array_equal(array, [10.0] * 4)
    assert np.array_equal(x.grad.numpy(), [11.0] * 4)


def test_gradient_shared_by_two_leaves_is_not_accumulated_into():
    x, y = leaves()
    x.grad = y.grad = vg.full((4,), 10.0)
    backward_of_ones(x)
    assert np.array_equal(y.grad.numpy(), [10.0] * 4)
    assert np.array_equal(x.grad.numpy(), [11.0] * 4)


def test_a_view_assigned_as_gradient_leaves_its_base_alone():
    x, _ = leaves()
    base = vg.full((2, 4), 10.0)
    x.grad = base[1]
    backward_of_ones(x)
    assert np.array_equal(base.numpy(), np.full((2, 4), 10.0))
    assert np.array_equal(x.grad.numpy(), [11.0] * 4)


def test_gradients_kept_by_post_accumulate_hooks_do_not_change():
    x, _ = leaves()
    keeper = Keeper()
    x.register_post_accumulate_grad_hook(lambda tensor: keeper.keep(tensor.grad))
    for _ in range(3):
        backward_of_ones(x)
    keeper.check()
    assert [value[0] for *_, value in keeper.kept] == [1.0, 2.0, 3.0]


def test_accumulation_is_in_place_if_nothing_holds_the_gradient():
    x, _ = leaves()
    backward_of_ones(x)
    address = x.grad.numpy().__array_interface__["data"][0]
    x.grad = vg.Tensor(x.grad)  # a gradient that was not read
    first = x._grad._array.__array_interface__["data"][0]
    backward_of_ones(x)
    assert x._grad._array.__array_interface__["data"][0] == first != address


# -- gradients that are one number, broadcast --------------------------------------------------------------------------

MANY = 20_000


def test_the_gradient_of_a_large_sum_can_be_written_to():
    x = vg.zeros(MANY, requires_grad=True)
    (grad,) = vg.autograd.grad(x.sum(), x)
    x.sum().backward()
    for tensor in (grad, x.grad):
        tensor[0] = 5.0
        assert tensor[0].item() == 5.0 and np.all(tensor[1:].numpy() == 1.0)


def test_gradients_are_added_to_the_gradient_of_a_large_sum():
    x = vg.full((MANY,), 3.0, requires_grad=True)
    part = x[1:3] * 10.0
    square = x * x
    total = x.sum()
    (part.sum() + square.sum() + total).backward()
    expected = np.full(MANY, 7.0)
    expected[1:3] += 10.0
    assert np.array_equal(x.grad.numpy(), expected)


def test_partial_gradients_are_added_to_the_gradient_of_a_large_sum():
    x = vg.full((MANY,), 3.0, requires_grad=True)
    part = x[1:3] * 10.0
    total = x.sum()
    (part.sum() + total).backward()
    expected = np.ones(MANY)
    expected[1:3] += 10.0
    assert np.array_equal(x.grad.numpy(), expected)


def test_the_gradient_of_a_large_sum_is_overwritten_in_part():
    x = vg.full((MANY,), 3.0, requires_grad=True)
    a = x.clone()
    a[:2] *= 4.0
    a[5] = 0.0
    a.sum().backward()
    expected = np.ones(MANY)
    expected[:2] = 4.0
    expected[5] = 0.0
    assert np.array_equal(x.grad.numpy(), expected)


def test_gradient_of_a_large_sum_is_shared_by_rows():
    x = vg.full((4, MANY), 3.0, requires_grad=True)
    w = vg.Tensor(np.arange(MANY) / MANY)
    a = x.clone()
    a[1] = 0.0
    (a.sum(0) * w).sum().backward()
    expected = np.tile(w.numpy(), (4, 1))
    expected[1] = 0.0
    assert np.array_equal(x.grad.numpy(), expected)


# -- what an operator returns ------------------------------------------------------------------------------------------


def test_saved_value_returned_as_gradient_is_not_overwritten():
    returns_other = vg.autograd.define_op(
        "returns_other(self, other)",
        forward=lambda self, other: self + other,
        derivatives={"self": "other if grad is not None else other", "other": "grad"},
    )
    x, y = leaves()
    a = x.clone()
    a[0] = 5.0  # its CopySlices rewrites the incoming gradient
    before = y.detach().numpy().copy()
    b = returns_other(a, y)
    b.sum().backward()
    assert np.array_equal(y.detach().numpy(), before)
    assert np.array_equal(x.grad.numpy(), [0.0, *before[1:]])


# -- programs drawn at random ------------------------------------------------------------------------------------------

index = st.sampled_from([slice(None), slice(1, 3), slice(0, 2), slice(2, 4), slice(None, None, 2), slice(3, None, -1)])
number = st.integers(0, 30)
steps = st.one_of(
    st.tuples(st.sampled_from(["add", "multiply", "view", "clone", "reshape", "sum"]), number, number),
    st.tuples(st.sampled_from(["assign", "iadd", "imul"]), number, number, index, index),
)


def run_steps(script, x, y):
    values = [x, y]
    for operation, i, j, *where in script:
        one, two = values[i % len(values)], values[j % len(values)]
        if operation == "add":
            values.append(one + two)
        elif operation == "multiply":
            values.append(one * two * 0.5)
        elif operation == "view":
            values.append(one[::-1])
        elif operation == "clone":
            values.append(one.clone())
        elif operation == "reshape":
            values.append(one.reshape(2, 2).T.reshape(4))
        elif operation == "sum":
            values.append(two + one.sum() * 0.25)
        elif one.is_leaf or (one._base is not None and one._base.is_leaf):
            values.append(one.clone())
        else:
            to, source = one[where[0]], two[where[1]]
            if to.shape != source.shape:
                source = source.sum()
            if operation == "assign":
                one[where[0]] = source.clone()
            elif operation == "iadd":
                to += source
            else:
                to *= source * 0.5
    total = values[0].sum()
    for value in values[1:]:
        total = total + (value * value).sum() * 0.1
    return total, values


@settings(deadline=None, max_examples=150)
@given(st.lists(steps, min_size=2, max_size=9), st.lists(number, max_size=5), st.booleans())
def test_random_programs_never_overwrite_visible_gradients(script, seen, recorded):
    x, y = leaves()
    value, _ = run_steps(script, x, y)
    expected = [grad.numpy() for grad in vg.autograd.grad(value, [x, y], materialize_grads=True)]

    x, y = leaves()
    value, values = run_steps(script, x, y)
    keeper = Keeper()
    observe([values[i % len(values)] for i in seen], keeper)
    for _ in range(2):
        grads = vg.autograd.grad(value, [x, y], retain_graph=True, create_graph=recorded, materialize_grads=True)
        for grad, right in zip(grads, expected):
            assert np.allclose(grad.detach().numpy(), right, equal_nan=True)
            keeper.keep(grad)
        value.backward(retain_graph=True, create_graph=recorded)
        keeper.keep(x.grad)
        keeper.keep(y.grad)
    keeper.check()
    assert np.allclose(x.grad.detach().numpy(), 2 * expected[0], equal_nan=True)


@pytest.mark.parametrize("size", [4, MANY])
@pytest.mark.parametrize("dtype", [float, complex])
def test_the_gradient_of_a_value_times_itself(size, dtype):
    x = vg.full((size,), 3.0, dtype=dtype, requires_grad=True)
    given = vg.full((size,), 2.0, dtype=dtype)
    keeper = Keeper()
    keeper.keep(given)
    y = x * 1.0
    square = y * y
    square.register_hook(keeper.keep)
    y.register_hook(keeper.keep)
    (grad,) = vg.autograd.grad(square, x, given)
    assert np.array_equal(grad.numpy(), np.full(size, 12.0))
    keeper.check()
    y = x * 1.0
    y.mul_(y)
    (grad,) = vg.autograd.grad(y, x, given)
    assert np.array_equal(grad.numpy(), np.full(size, 12.0))
    z = x * 1.0
    z[1:] *= z[1:]
    part = z[:2] * z[:2]
    (grad,) = vg.autograd.grad(part, x, given[:2])
    expected = np.zeros(size)
    expected[:2] = 12.0, 2 * 2 * 9.0 * 6.0
    assert np.array_equal(grad.numpy(), expected)
    keeper.check()


def test_a_value_times_another_with_the_same_history():
    x = leaf(3.0, 4.0)
    one = x.clone()
    a = vg.Tensor([1.0, 1.0]) * one
    before = one * a
    one.mul_(2.0)
    assert np.array_equal(vg.autograd.grad((before * one).sum(), x)[0].numpy(), [2 * 3 * 9.0, 2 * 3 * 16.0])
