"""Functional transforms: derivatives as functions, on trees of tensors, and nested."""

from __future__ import annotations

import collections
import contextvars
import gc
import random
import weakref

import attrs
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import functional, grad
from viewgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from viewgrad.errors import (
    DifferentiabilityError,
    FreedGraphError,
    GradientMismatchError,
    OverlappingWriteError,
    TreeError,
    UnusedInputError,
)
from viewgrad.func.tree import flatten, leaves_like, map_leaves, paths, unflatten
from viewgrad.tensor.escapes import within_transform
from viewgrad.testing import checks, program_ops, programs

RNG = np.random.default_rng(11)


def tensor(*shape, **options):
    return vg.Tensor(RNG.normal(size=shape), **options)


def close(actual, expected, **options):
    tolerances = {"rtol": 1e-9, "atol": 1e-9} | options
    np.testing.assert_allclose(getattr(actual, "_array", actual), getattr(expected, "_array", expected), **tolerances)


# -- programs that write to what they are given, through views --------------------------------------------------------


def overwritten(x):
    x[1:] *= x[:-1]
    x[0] = x[1] * x[-1]
    row = x[1:3]
    row += x.sum()
    return x


def recurrence(x):
    y = vg.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1] + x[0]
    return y


def transposed(x):
    a = x.reshape(-1, 1) * x
    t = a.T
    t[0] *= x
    t[:, 1].exp_()
    a[[0, 1, 1]] = a[1:4] * 0.5
    return a.diagonal() * a[0]


def replaced(x):
    y = x.sin()
    y[::-1] += x * y
    np.multiply(y, x, out=y)
    y[1:-1].copy_(x[1:-1] ** 3)
    x.zero_()
    return y


PROGRAMS = [overwritten, recurrence, transposed, replaced]


def scalar_of(program):
    def scalar(x):
        y = program(x)
        return (y * np.cos(np.arange(y.size))).sum() + (y * y).sum()

    return scalar


def differences(function, x, step=1e-6):
    columns = []
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        columns.append((function(vg.Tensor(up))._array - function(vg.Tensor(down))._array) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


# -- trees ------------------------------------------------------------------------------------------------------------


@attrs.define
class Layer:
    weight: object
    bias: object
    name: str = "layer"
    width: int = 3


@attrs.frozen
class Pair:
    _left: object
    right: object = attrs.field(kw_only=True, default=None)


Point = collections.namedtuple("Point", "x y")


def test_trees_are_rebuilt_unchanged():
    a, b, c = tensor(2), tensor(3), tensor()
    tree = {"layers": [Layer(a, (b, None)), Point(1, c)], "other": Pair(2.0, right=np.ones(2)), 3: "text", "none": ()}
    leaves, structure = flatten(tree)
    assert leaves[0] is a and leaves[1] is b and leaves[2] is c and leaves[3] == 2.0 and len(leaves) == 5
    assert paths(structure) == [
        "['layers'][0].weight",
        "['layers'][0].bias[0]",
        "['layers'][1][1]",
        "['other'].left",
        "['other'].right",
    ]
    again = unflatten(structure, [1, 2, 3, 4, 5])
    assert again == {
        "layers": [Layer(1, (2, None)), Point(1, 3)],
        "other": Pair(4, right=5),
        3: "text",
        "none": (),
    }
    assert type(again["layers"][1]) is Point
    assert list(again) == list(tree)


def test_objects_without_leaves_are_not_rebuilt():
    @attrs.define
    class Counted:
        value: int
        made = 0

        def __attrs_post_init__(self):
            Counted.made += 1

    inside = Counted(3)
    result = map_leaves(lambda leaf: leaf * 2, {"a": 1.5, "b": inside})
    assert result == {"a": 3.0, "b": inside} and result["b"] is inside and Counted.made == 1


def test_subclasses_of_containers_keep_their_class():
    ordered = collections.OrderedDict(b=1.0, a=2.0)
    default = collections.defaultdict(list, a=3.0)
    result = map_leaves(lambda leaf: leaf + 1, (ordered, default))
    assert result == (collections.OrderedDict(b=2.0, a=3.0), {"a": 4.0})
    assert type(result[0]) is collections.OrderedDict and result[1].default_factory is list
    assert ordered["b"] == 1.0


def test_different_trees_are_distinguished():
    _, structure = flatten({"a": [1.0, 2.0], "b": Layer(1.0, 2.0)})
    assert leaves_like(structure, {"b": Layer(5, None), "a": [3, (4,)]}, "it") == [3, (4,), 5, None]
    with pytest.raises(TreeError, match=r"it\['a'\] has 1 item where 2 items is expected"):
        leaves_like(structure, {"a": [1.0], "b": Layer(1, 2)}, "it")
    with pytest.raises(TreeError, match=r"it\['b'\] is a tuple where a Layer is expected"):
        leaves_like(structure, {"a": [1.0, 2.0], "b": (1, 2)}, "it")
    with pytest.raises(TreeError, match="it has 'a', 'c' where 'a', 'b' is expected"):
        leaves_like(structure, {"a": [1.0, 2.0], "c": 1}, "it")


# -- gradients --------------------------------------------------------------------------------------------------------


def test_gradients_come_in_the_shape_of_the_argument():
    def loss(params, scale):
        first, second = params["layers"]
        hidden = np.tanh(first.weight @ scale + first.bias)
        return (second.weight @ hidden * second.bias).sum()

    params = {"layers": [Layer(tensor(3, 2), tensor(3)), Layer(tensor(3), tensor(), "last")], "unused": (tensor(2),)}
    found = func.grad(loss)(params, tensor(2))
    assert found["layers"][1].name == "last" and found["layers"][0].weight.shape == (3, 2)
    close(found["unused"][0], np.zeros(2))

    leaves, structure = flatten(params)
    scale = tensor(2)
    marked = [leaf.clone().requires_grad_() for leaf in leaves]
    loss(unflatten(structure, marked), scale).backward()
    for ours, theirs in zip(flatten(func.grad(loss)(params, scale))[0], marked, strict=True):
        close(ours, 0.0 if theirs.grad is None else theirs.grad)


def test_argnums():
    f = lambda x, y, *, z: (x * y * z).sum()
    x, y, z = tensor(3), tensor(3), tensor(3)
    close(func.grad(f, argnums=1)(x, y, z=z), x * z)
    close(func.grad(f, argnums=-1)(x, y, z=z), x * z)
    found = func.grad(f, argnums=(1, 0))(x, y, z=z)
    assert type(found) is tuple
    close(found[0], x * z)
    close(found[1], y * z)
    with pytest.raises(ValueError, match="no positional argument 2 among 2"):
        func.grad(f, argnums=2)(x, y, z=z)
    with pytest.raises(ValueError, match="twice"):
        func.grad(f, argnums=(0, -2))(x, y, z=z)


def test_numbers_and_arrays_give_numbers_and_arrays():
    found = func.grad(lambda x: x**3)(2.0)
    assert type(found) is float and found == 12.0
    found = func.grad(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    assert type(found) is np.ndarray and found.flags.writeable
    close(found, [3.0, 12.0])
    assert func.grad(lambda x: 5.0)(2.0) == 0.0
    assert func.grad(lambda x: x**3)(np.float32(2.0)).dtype == np.float32
    assert type(func.grad(lambda x: x**3)(vg.Tensor(2.0))) is vg.Tensor


def test_numbers_are_passed_as_scalars_that_cannot_be_written_to():
    def f(x):
        before = x
        x += 1.0
        return before * x

    assert func.grad(f)(2.0) == 5.0
    assert func.jvp(f, (2.0,), (1.0,)) == (6.0, 5.0)
    assert func.hessian(f)(2.0) == 2.0
    assert func.grad(lambda x: func.grad(f)(x) * x)(3.0) == 13.0


def test_results_with_a_history_outside_stay_tensors():
    w = vg.Tensor(3.0, requires_grad=True)
    found = func.grad(lambda x: w * x * x)(2.0)
    assert type(found) is vg.Tensor
    close(vg.autograd.grad(found, w)[0], 4.0)


def test_aux():
    def f(x):
        return (x * x).sum(), {"twice": x * 2, "text": "kept"}

    x = tensor(3)
    gradient, aux = func.grad(f, has_aux=True)(x)
    close(gradient, 2 * x)
    close(aux["twice"], 2 * x)
    assert aux["text"] == "kept" and not aux["twice"].requires_grad
    (value, aux), gradient = func.value_and_grad(f, has_aux=True)(x)
    close(value, (x * x).sum())
    assert not value.requires_grad and not aux["twice"].requires_grad
    with pytest.raises(TypeError, match=r"returns \(output, aux\)"):
        func.grad(lambda x: x.sum(), has_aux=True)(x)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_write_to_their_arguments(program):
    x = tensor(5)
    before = x._array.copy()
    f = scalar_of(program)
    close(func.grad(f)(x), differences(f, before), rtol=1e-5, atol=1e-6)
    close(func.hessian(f)(x), differences(func.grad(f), before), rtol=1e-5, atol=1e-5)
    value, _ = func.value_and_grad(f)(x)
    close(value, f(x.clone()))
    func.jacfwd(program)(x)
    func.vjp(program, x)
    func.linearize(program, x)
    func.hvp(f, (x,), (x,))
    functional.jacobian(program, x)
    functional.hvp(f, x, x)
    assert x._version == 0 and not x.requires_grad and x.grad is None
    np.testing.assert_array_equal(x._array, before)


def test_other_arguments_may_be_written_to_as_well():
    def f(x, buffer, array):
        buffer[0] = x[0]
        array[0] = 5.0
        buffer *= x
        return buffer.sum() * array[0]

    x, buffer, array = tensor(3), tensor(3), np.zeros(3)
    held = buffer._array.copy()
    expected = [10 * x[0].item(), *(5 * held[1:])]
    close(func.grad(f)(x, buffer, array), expected)
    np.testing.assert_array_equal(buffer._array, held)
    assert buffer._version == 0 and not array.any()
    close(func.grad(lambda x, *, buffer: f(x, buffer, np.zeros(1)))(x, buffer=buffer), expected)
    np.testing.assert_array_equal(buffer._array, held)


TRANSFORMS_OF_TWO = {
    "grad": lambda f, a, b: func.grad(f)(a, b),
    "both": lambda f, a, b: func.grad(f, argnums=(0, 1))(a, b),
    "second": lambda f, a, b: func.grad(f, argnums=1)(a, b),
    "by name": lambda f, a, b: func.grad(f)(a, b=b),
    "tree": lambda f, a, b: func.grad(lambda both: f(*both))((a, b)),
    "vjp": lambda f, a, b: func.vjp(f, a, b)[1](1.0),
    "linearize": lambda f, a, b: func.linearize(f, a, b)[1](a, b),
    "jvp": lambda f, a, b: func.jvp(f, (a, b), (a, b))[1],
    "jacrev": lambda f, a, b: func.jacrev(f)(a, b),
    "jacfwd": lambda f, a, b: func.jacfwd(f)(a, b),
    "hessian": lambda f, a, b: func.hessian(f)(a, b),
    "hvp": lambda f, a, b: func.hvp(f, (a, b), (a, b))[1],
    "compiled": lambda f, a, b: func.grad(vg.compile(f, executor="python", adopt=False))(a, b),
}


@pytest.mark.parametrize("transform", TRANSFORMS_OF_TWO.values(), ids=TRANSFORMS_OF_TWO)
@pytest.mark.parametrize("kind", [np.array, vg.Tensor])
def test_arguments_that_share_memory_are_not_written_to(transform, kind):
    """NumPy would change both arguments, but the copies are independent."""
    memory = kind([1.0, 2.0, 3.0, 4.0])
    shared = [(memory, memory), (memory[:3], memory[1:]), (memory, memory[:])]
    separate = [(memory, memory.copy()), (memory[:2], memory[2:]), (memory[::2], memory[1::2])]

    def doubled(a, b):
        b *= 2.0
        return (a * b).sum()

    for a, b in shared:
        for written in (doubled, lambda a, b: doubled(b, a)):
            with pytest.raises(OverlappingWriteError, match="shares memory with another argument"):
                transform(written, a, b)
        transform(lambda a, b: (a * b).sum(), a, b)
        transform(lambda a, b: doubled(a, b.copy()), a, b)
    for a, b in separate:
        transform(doubled, a, b)


def test_undifferentiable_arguments_are_refused_by_name():
    with pytest.raises(DifferentiabilityError, match=r"grad: argument 0\['n'\] has dtype int64"):
        func.grad(lambda p: p["w"])({"w": 1.0, "n": vg.arange(3)})
    with pytest.raises(DifferentiabilityError, match="argument 0 is the int 3"):
        func.grad(lambda n: n * 1.0)(3)
    with pytest.raises(DifferentiabilityError, match=r"one real number, not a tensor of shape \(2,\)"):
        func.grad(lambda x: x)(vg.ones(2))
    with pytest.raises(DifferentiabilityError, match=r"one real number, .* complex128"):
        func.grad(lambda x: x * 1j)(1.0)
    with pytest.raises(DifferentiabilityError, match="returns one tensor"):
        func.grad(lambda x: (x, x))(1.0)
    with pytest.raises(DifferentiabilityError, match="output of dtype int64"):
        func.jacrev(lambda x: x.astype(int))(vg.ones(2))
    with pytest.raises(DifferentiabilityError, match="output of dtype int64"):
        func.jacfwd(lambda x: x.astype(int))(vg.ones(2))
    indices = vg.Tensor([2, 0])
    close(func.grad(lambda x, i: x[i].sum())(vg.ones(3), indices), [1.0, 0.0, 1.0])


# -- what results can be differentiated with respect to ---------------------------------------------------------------


def test_results_have_no_history():
    x = tensor(4)
    w = tensor(4)
    f = lambda x: (x * w).sin().sum()
    results = [
        func.value_and_grad(f)(x),
        func.vjp(f, x)[0],
        func.vjp(f, x)[1](1.0),
        func.jvp(f, (x,), (w,)),
        func.linearize(f, x)[0],
        func.linearize(f, x)[1](w),
        func.jacrev(f)(x),
        func.jacfwd(f)(x),
        func.hessian(f)(x),
        func.jacrev(func.jacrev(f))(x),
        func.grad(lambda x: func.jvp(f, (x,), (w,))[1])(x),
        func.hvp(f, (x,), (w,)),
        func.vhp(f, (x,), (w,)),
    ]
    for leaf in flatten(results)[0]:
        assert not leaf.requires_grad


def test_results_can_be_differentiated_if_the_argument_can():
    x = tensor(4, requires_grad=True)
    f = scalar_of(overwritten)
    hessian = func.hessian(f)(x.detach())
    value, gradient = func.value_and_grad(f)(x)
    close(vg.autograd.grad(value, x, retain_graph=True)[0], gradient)
    v = tensor(4)
    close(vg.autograd.grad((gradient * v).sum(), x)[0], hessian @ v)
    _, pull = func.vjp(overwritten, x)
    found = vg.autograd.grad((pull(v)[0] * v).sum(), x, retain_graph=True)[0]
    g = lambda x: (func.jacrev(overwritten)(x) * v.reshape(-1, 1) * v).sum()
    close(found, func.grad(g)(x.detach()))
    _, push = func.linearize(overwritten, x)
    close(vg.autograd.grad((push(v) * v).sum(), x)[0], found)
    close(vg.autograd.grad((func.jvp(overwritten, (x,), (v,))[1] * v).sum(), x)[0], found)
    assert x.grad is None and x._version == 0


def test_results_are_differentiable_with_respect_to_captured_tensors():
    x, w = tensor(3), tensor(3, requires_grad=True)
    gradient = func.grad(lambda x: (x * x * w).sum())(x)
    close(vg.autograd.grad(gradient.sum(), w)[0], 2 * x)
    value, gradient = func.value_and_grad(lambda x: (x * w.detach()).sum())(x)
    assert not value.requires_grad and not gradient.requires_grad
    (_, aux), _ = func.value_and_grad(lambda x: ((x * w).sum(), x * 2), has_aux=True)(x)
    assert not aux.requires_grad
    pull = func.vjp(lambda x: x * 2, x)[1]
    close(vg.autograd.grad(pull(w * 3)[0].sum(), w)[0], [6.0] * 3)
    assert func.value_and_grad(lambda x: (w.sum(), w), has_aux=True)(x)[0][1] is w


def test_tangents_have_a_history_only_if_it_reaches_a_leaf():
    """Nodes that lead only to the copies a transform makes are not recorded, also at nested levels."""
    cube = lambda a: (a**3).sum() * a[0]
    x, v, w = tensor(3), tensor(3), tensor(3, requires_grad=True)
    with dual_level():
        outer = make_dual(x, v)
        gradient = func.grad(cube)(outer)
        assert not gradient.requires_grad and not unpack_dual(gradient).tangent.requires_grad
        with dual_level():
            inner = unpack_dual(func.grad(cube)(make_dual(outer, v))).tangent
            assert not inner.requires_grad
        assert not unpack_dual(inner).tangent.requires_grad
        close(inner, func.jvp(func.grad(cube), (x,), (v,))[1])
        of_history = unpack_dual(func.grad(cube)(make_dual(x, w * 2))).tangent
    hessian = func.hessian(cube)(x)
    close(vg.autograd.grad(of_history.sum(), w)[0], 2 * hessian.sum(0))


def test_under_no_grad_gradients_are_computed_and_have_no_history():
    x = tensor(3, requires_grad=True)
    with vg.no_grad():
        value, gradient = func.value_and_grad(lambda x: (x**3).sum())(x)
        hessian = func.hessian(lambda x: (x**3).sum())(x)
        pushed = func.jvp(func.grad(lambda x: (x**3).sum()), (x,), (x.detach(),))[1]
    assert not (value.requires_grad or gradient.requires_grad or hessian.requires_grad or pushed.requires_grad)
    close(gradient, 3 * x.detach() ** 2)
    close(hessian, np.diag(6 * x.detach()._array))
    close(pushed, 6 * x.detach() ** 2)
    inside = func.grad(lambda x: (x * x.detach()).sum())(x.detach())
    close(inside, x.detach())

    @vg.no_grad()
    def constant(x):
        return (x * 2).sum()

    close(func.grad(lambda x: (x * constant(x)).sum())(vg.ones(2)), [4.0, 4.0])


def test_transforms_work_inside_inference_mode():
    with vg.inference_mode():
        x = vg.Tensor([1.0, 2.0])
        close(func.grad(lambda x: (x**3).sum())(x), [3.0, 12.0])
        close(func.jvp(lambda x: x**3, (x,), (x,))[1], [3.0, 24.0])


def test_a_transform_releases_its_graph():
    seen = []

    def f(x):
        y = x * x
        seen.append(weakref.ref(y))
        seen.append(weakref.ref(y.grad_fn))
        return y.sum()

    gc.disable()
    try:
        func.grad(f)(tensor(3))
        func.hessian(f)(tensor(3))
        func.vhp(f, (tensor(3),), (tensor(3),))
        assert all(reference() is None for reference in seen)
    finally:
        gc.enable()


# -- transforms of transforms -----------------------------------------------------------------------------------------


def test_inner_and_outer_variables_are_not_confused():
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert func.grad(lambda x: x * func.jvp(lambda y: x + y, (1.0,), (1.0,))[1])(1.0) == 1.0
    assert func.jvp(lambda x: x * func.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1] == 1.0
    assert func.jvp(lambda x: x * func.grad(lambda y: x * y)(1.0), (3.0,), (1.0,))[1] == 6.0
    assert func.grad(lambda x: func.grad(lambda y: x * x * y)(x) * x)(2.0) == 12.0


def test_gradients_of_gradients():
    f = lambda x: x.sin()
    derivative = f
    for expected in (np.cos(0.3), -np.sin(0.3), -np.cos(0.3), np.sin(0.3)):
        derivative = func.grad(derivative)
        close(derivative(0.3), expected)


def of_jvp(f):
    """Return the derivative of a function of one number, by `jvp`."""
    return lambda x: func.jvp(f, (x,), (vg.ones_like(x),))[1]


def of_vjp(f):
    """Return the derivative of a function of one number, by `vjp`."""
    return lambda x: func.vjp(f, x)[1](vg.ones_like(x))[0]


def of_linearize(f):
    """Return the derivative of a function of one number, by `linearize`."""
    return lambda x: func.linearize(f, x)[1](vg.ones_like(x))


WAYS = [func.grad, func.jacrev, func.jacfwd, of_jvp, of_vjp, of_linearize]


@pytest.mark.parametrize("outer", WAYS)
@pytest.mark.parametrize("middle", WAYS)
@pytest.mark.parametrize("inner", WAYS)
def test_three_transforms_in_every_order(inner, middle, outer):
    def quintic(x):
        y = vg.ones(6)
        for i in range(5):
            y[i + 1] = y[i] * x
        y[5:] *= 0.5
        return y[5]

    x = vg.Tensor(1.5)
    close(outer(middle(inner(quintic)))(x), 0.5 * 60 * 1.5**2)


@pytest.mark.parametrize("program", PROGRAMS)
def test_jacobians_by_rows_and_by_columns(program):
    x = tensor(5)
    expected = differences(program, x._array)
    for found in (
        func.jacrev(program)(x),
        func.jacfwd(program)(x),
        functional.jacobian(program, x),
        vg.stack([func.jvp(program, (x,), (direction,))[1] for direction in vg.eye(5)], -1),
        vg.stack([func.linearize(program, x)[1](direction) for direction in vg.eye(5)], -1),
        vg.stack([func.vjp(program, x)[1](direction)[0] for direction in vg.eye(5)]),
    ):
        close(found, expected, rtol=1e-5, atol=1e-6)
    close(func.jacfwd(program)(x), func.jacrev(program)(x))


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives_agree_between_transforms(program):
    f = scalar_of(program)
    x, v = tensor(5), tensor(5)
    hessian = func.hessian(f)(x)
    for ways in ((func.jacrev, func.jacrev), (func.jacfwd, func.jacfwd), (func.jacrev, func.jacfwd)):
        close(ways[0](ways[1](f))(x), hessian)
    close(func.jacrev(func.grad(f))(x), hessian)
    close(functional.hessian(f, x), hessian)
    product = hessian @ v
    for _, (found,) in (func.hvp(f, (x,), (v,)), func.vhp(f, (x,), (v,))):
        close(found, product)
    for _, found in (functional.hvp(f, x, v), functional.vhp(f, x, v)):
        close(found, product)


@pytest.mark.parametrize("size", [1, 3, 6])  # column by column, and at once
def test_all_columns_of_a_jacobian_have_the_same_random_numbers(size):
    generator = np.random.default_rng()

    def f(x):
        drawn = np.random.rand(size) + generator.random(size) + random.random()  # noqa: NPY002
        return (np.sin(x * drawn) * x[0]).astype(complex).real  # complex numbers prevent computing all at once

    def seeded(transform, f):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        generator.bit_generator.state = np.random.PCG64(0).state
        found = transform(f)(np.ones(size))
        return found, np.random.rand(), random.random(), generator.random()  # noqa: NPY002

    forward, *after = seeded(vg.jacfwd, f)
    reverse, *expected = seeded(vg.jacrev, f)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    assert after == expected  # the generators are left as after one call
    g = lambda x: f(x).sum()
    found, *_ = seeded(vg.hessian, g)
    np.testing.assert_allclose(found, seeded(lambda g: vg.jacrev(vg.grad(g)), g)[0], atol=1e-12)


def test_hessians_of_trees():
    f = lambda p: (p["a"] ** 2 * p["b"][0]).sum() + p["b"][0] ** 3
    point = {"a": vg.Tensor([1.0, 2.0]), "b": (vg.Tensor(3.0),)}
    found = func.hessian(f)(point)
    close(found["a"]["a"], np.diag([6.0, 6.0]))
    close(found["a"]["b"][0], [2.0, 4.0])
    close(found["b"][0]["a"], [2.0, 4.0])
    close(found["b"][0]["b"][0], 18.0)
    direction = {"a": vg.Tensor([1.0, 0.0]), "b": (vg.Tensor(2.0),)}
    for value, (product,) in (func.hvp(f, (point,), (direction,)), func.vhp(f, (point,), (direction,))):
        close(value, 42.0)
        close(product["a"], [6 + 4, 8])
        close(product["b"][0], 2 + 36)
    by_two = func.hessian(lambda x, y: (x * y).sum(), argnums=(0, 1))(vg.ones(2), vg.ones(2))
    close(by_two[0][1], np.eye(2))
    close(by_two[1][1], np.zeros((2, 2)))


def test_aux_of_the_other_transforms():
    x = vg.Tensor([1.0, 2.0])
    f = lambda x: (x**2, x[0])
    g = lambda x: ((x**2).sum(), x[0])
    for jacobian in (func.jacrev, func.jacfwd):
        found, aux = jacobian(f, has_aux=True)(x)
        close(found, np.diag([2.0, 4.0]))
        close(aux, 1.0)
        assert not aux.requires_grad
    found, aux = func.hessian(g, has_aux=True)(x)
    close(found, 2 * np.eye(2))
    close(aux, 1.0)
    assert [leaf.tolist() for leaf in func.jvp(f, (x,), (x,), has_aux=True)] == [[1.0, 4.0], [2.0, 8.0], 1.0]
    output, pull, aux = func.vjp(f, x, has_aux=True)
    assert (output.tolist(), pull(x)[0].tolist(), aux.tolist()) == ([1.0, 4.0], [2.0, 8.0], 1.0)
    output, push, aux = func.linearize(f, x, has_aux=True)
    assert (output.tolist(), push(x).tolist(), aux.tolist()) == ([1.0, 4.0], [2.0, 8.0], 1.0)
    for product in (func.hvp, func.vhp):
        value, (found,), aux = product(g, (x,), (x,), has_aux=True)
        assert (value.tolist(), found.tolist(), aux.tolist()) == (5.0, [2.0, 4.0], 1.0)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_all_transforms_agree_on_drawn_programs(program):
    # Unlike reverse mode, forward mode differentiates what is done under no_grad, views included, and
    # it refuses detach_() of a tensor with a tangent.
    without = (program_ops.Detach, program_ops.DetachInPlace, program_ops.NoGrad, program_ops.UnrecordedView)
    assume(not any(isinstance(step, without) for step in program.steps))
    program = program.in_double_precision
    names = [leaf.name for leaf in program.differentiable_leaves]
    point = {name: tensor.detach() for name, tensor in program.make_leaves().items() if name in names}
    direction = {name: vg.Tensor(weight) for name, weight in checks.weights_for(program).items()}

    def loss(point):
        return program.execute_stepwise(program.make_leaves() | point)[program.loss]

    def same(found, expected):
        for name, theirs in expected.items():
            ours = found[name]
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            scale = max(1.0, float(np.abs(theirs._array).max(initial=0)))
            np.testing.assert_allclose(
                ours._array, theirs._array, rtol=0, atol=1e-9 * scale, err_msg=f"{name} in\n{program}"
            )

    gradient = func.grad(loss)(point)
    same(func.functionalize(func.grad(loss))(point), gradient)
    slope = sum((direction[name].conj() * gradient[name]).real.sum() for name in names)
    same({"loss": func.jvp(loss, (point,), (direction,))[1]}, {"loss": slope})
    same({"loss": func.linearize(loss, point)[1](direction)}, {"loss": slope})
    product = func.vhp(loss, (point,), (direction,))[1][0]
    same(func.hvp(loss, (point,), (direction,))[1][0], product)
    same(func.grad(lambda point: func.jvp(loss, (point,), (direction,))[1])(point), product)
    same(func.hvp(func.functionalize(loss), (point,), (direction,))[1][0], product)


# -- vjp, jvp, linearize ----------------------------------------------------------------------------------------------


def test_a_pull_back_can_be_used_many_times():
    calls = []

    def f(x, p):
        calls.append(1)
        x *= p["s"]
        return {"product": x, "count": vg.arange(2), "more": [x.sum()]}

    x, s = tensor(3), vg.Tensor(2.0)
    output, pull = func.vjp(f, x, {"s": s})
    for cotangent in (tensor(3), tensor(3)):
        first, second = pull({"product": cotangent, "count": None, "more": [1.0]})
        close(first, 2 * (cotangent + 1))
        close(second["s"], (x * (cotangent + 1)).sum())
    assert len(calls) == 1 and output["count"].tolist() == [0, 1]
    with pytest.raises(GradientMismatchError, match=r"shape \(2,\)"):
        pull({"product": vg.ones(2), "count": None, "more": [1.0]})
    with pytest.raises(TreeError, match="'product'"):
        pull({"product": vg.ones(3)})


def test_linearized_functions_are_reusable_and_run_the_function_once():
    calls = []

    def f(x, y):
        calls.append(1)
        x[1:] *= y
        return x.exp(), vg.arange(2), y * 0.0 + 1.0

    x, y = tensor(3), tensor(2)
    _, push = func.linearize(f, x, y)
    for _ in range(3):
        u, v = tensor(3), tensor(2)
        pushed, whole, constant = push(u, v)
        close(pushed, func.jvp(f, (x, y), (u, v))[1][0])
        assert whole.tolist() == [0, 0] and constant.tolist() == [0.0, 0.0]
    assert len(calls) == 4
    close(push(None, v)[0], push(vg.zeros(3), v)[0])
    with pytest.raises(TypeError, match="expected 2 tangents"):
        push(u)
    with pytest.raises(GradientMismatchError, match="shape"):
        push(v, v)


def test_tangents_of_trees():
    f = lambda p: {"y": p["a"] * p["b"], "n": vg.arange(2)}
    a, b, u = tensor(3), tensor(3), tensor(3)
    output, tangent = func.jvp(f, ({"a": a, "b": b},), ({"a": u, "b": None},))
    close(output["y"], a * b)
    close(tangent["y"], u * b)
    assert tangent["n"].tolist() == [0, 0]
    _, tangent = func.jvp(f, ({"a": a, "b": b},), (None,))
    close(tangent["y"], np.zeros(3))
    with pytest.raises(TypeError, match="expected a tuple of arguments, got Tensor"):
        func.jvp(f, a, u)
    with pytest.raises(TypeError, match="1 arguments, but 2 tangents"):
        func.jvp(f, (a,), (u, u))
    with pytest.raises(GradientMismatchError, match="dtype complex128"):
        func.jvp(lambda x: x, (a,), (u * 1j,))


def test_returned_tangent_is_not_the_argument():
    u = tensor(3)
    _, tangent = func.jvp(lambda x: x, (tensor(3),), (u,))
    tangent *= 0
    assert u._array.all() and u._version == 0


def test_outputs_of_no_elements():
    x = vg.ones(3)
    assert func.jacrev(lambda x: x[3:])(x).shape == (0, 3)
    assert func.jacfwd(lambda x: x[3:])(x).shape == (0, 3)
    empty = vg.ones(0)
    assert func.jacrev(lambda x: x * vg.ones(2, 1))(empty).shape == (2, 0, 0)
    assert func.jacfwd(lambda x: x * vg.ones(2, 1))(empty).shape == (2, 0, 0)
    close(func.grad(lambda x: x.sum())(empty), np.zeros(0))


# -- complex numbers --------------------------------------------------------------------------------------------------


def test_complex_derivatives():
    z = vg.Tensor([1 + 2j, 0.5 - 1j])
    for jacobian in (func.jacrev, func.jacfwd):
        close(jacobian(lambda z: z**3)(z), np.diag(3 * z._array**2))
        close(jacobian(lambda x: x.exp() * (1 + 2j))(vg.Tensor([0.5])), [[np.exp(0.5) * (1 + 2j)]])
        close(jacobian(lambda z: (z * z.conj()).real)(z), np.diag(2 * z._array))
        with pytest.raises(DifferentiabilityError, match="not holomorphic"):
            jacobian(lambda z: z * z.conj())(z)
    close(func.grad(lambda z: (z * z.conj()).real.sum())(z), 2 * z)
    v = vg.Tensor([1j, 2.0])
    _, tangent = func.jvp(lambda z: z * z.conj(), (z,), (v,))
    close(tangent, 2 * (z * v.conj()).real + 0j)
    close(func.linearize(lambda z: z * z.conj(), z)[1](v), tangent)
    f = lambda z: (z * z.conj() * z.real).real.sum()
    close(func.hvp(f, (z,), (v,))[1][0], func.vhp(f, (z,), (v,))[1][0])
    step = 1e-6
    nearby = (func.grad(f)(z + step * v) - func.grad(f)(z - step * v)) / (2 * step)
    close(func.hvp(f, (z,), (v,))[1][0], nearby, rtol=1e-6, atol=1e-6)


# -- autograd.functional ----------------------------------------------------------------------------------------------


def test_results_are_shaped_after_inputs_and_outputs():
    x, y = vg.Tensor([1.0, 2.0]), vg.Tensor([3.0, 4.0])
    f = lambda x, y: (x * y, y.sum())
    rows = functional.jacobian(f, (x, y))
    close(rows[0][0], np.diag([3.0, 4.0]))
    close(rows[0][1], np.diag([1.0, 2.0]))
    close(rows[1][0], [0.0, 0.0])
    close(rows[1][1], [1.0, 1.0])
    output, product = functional.vjp(f, (x, y), (vg.ones(2), vg.ones(())))
    assert [part.tolist() for part in (*output, *product)] == [[3.0, 8.0], 7.0, [3.0, 4.0], [2.0, 3.0]]
    output, product = functional.jvp(f, (x, y), (vg.ones(2), vg.zeros(2)))
    assert [part.tolist() for part in product] == [[3.0, 4.0], 0.0]
    g = lambda x, y: (x * x * y).sum()
    blocks = functional.hessian(g, (x, y))
    close(blocks[0][0], np.diag([6.0, 8.0]))
    close(blocks[0][1], np.diag([2.0, 4.0]))
    close(blocks[1][1], np.zeros((2, 2)))
    for products in (functional.hvp, functional.vhp):
        value, (first, second) = products(g, (x, y), (vg.ones(2), vg.zeros(2)))
        assert (value.item(), first.tolist(), second.tolist()) == (19.0, [6.0, 8.0], [2.0, 4.0])


def test_vectors_may_be_omitted_for_single_elements():
    x = vg.Tensor([2.0])
    assert functional.vjp(lambda x: x**2, x)[1].tolist() == [4.0]
    assert functional.jvp(lambda x: x**2, x)[1].tolist() == [4.0]
    assert functional.hvp(lambda x: x**3, x)[1].tolist() == [12.0]
    assert functional.vhp(lambda x: x**3, x)[1].tolist() == [12.0]
    for function in (functional.jvp, functional.vjp):
        with pytest.raises(DifferentiabilityError, match="single element"):
            function(lambda x: x**2, vg.ones(2))
    with pytest.raises(GradientMismatchError, match="shape"):
        functional.vjp(lambda x: x**2, vg.ones(2), vg.ones(3))
    with pytest.raises(DifferentiabilityError, match="has 2 tensors"):
        functional.vjp(lambda x: x**2, vg.ones(2), (vg.ones(2), vg.ones(2)))
    with pytest.raises(DifferentiabilityError, match="one real number"):
        functional.hessian(lambda x: x**2, vg.ones(2))
    with pytest.raises(DifferentiabilityError, match="input 1 has dtype int64"):
        functional.jacobian(lambda x, n: x, (vg.ones(2), vg.arange(2)))
    with pytest.raises(TypeError, match="item 0 is a float"):
        functional.jacobian(lambda x: x, 2.0)


@pytest.mark.parametrize(
    "run",
    [
        lambda x, v, **options: functional.jacobian(overwritten, x, **options),
        lambda x, v, **options: functional.vjp(overwritten, x, v, **options)[1],
        lambda x, v, **options: functional.jvp(overwritten, x, v, **options)[1],
        lambda x, v, **options: functional.hessian(scalar_of(overwritten), x, **options),
        lambda x, v, **options: functional.vhp(scalar_of(overwritten), x, v, **options)[1],
        lambda x, v, **options: functional.hvp(scalar_of(overwritten), x, v, **options)[1],
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_create_graph(run, strict):
    x, v = tensor(4, requires_grad=True), tensor(4)
    plain = run(x, v, strict=strict)
    assert not plain.requires_grad
    with vg.no_grad():
        recorded = run(x, v, create_graph=True, strict=strict)
    assert recorded.requires_grad
    close(recorded, plain)
    weights = tensor(*plain.shape)
    expected = differences(lambda x: (run(x, v) * weights).sum(), x._array)
    close(vg.autograd.grad((recorded * weights).sum(), x)[0], expected, rtol=1e-5, atol=1e-5)
    assert not run(x.detach(), v, create_graph=True, strict=strict).requires_grad


def test_strict_refuses_independent_outputs():
    x, y = vg.ones(2), vg.ones(2)
    v = vg.ones(2)
    second = lambda x, y: y * 2
    for call in (
        lambda: functional.jacobian(second, (x, y), strict=True),
        lambda: functional.vjp(second, (x, y), v, strict=True),
        lambda: functional.jvp(second, (x, y), (v, v), strict=True),
        lambda: functional.hessian(lambda x, y: (y**3).sum(), (x, y), strict=True),
        lambda: functional.vhp(lambda x, y: (y**3).sum(), (x, y), (v, v), strict=True),
        lambda: functional.hvp(lambda x, y: (y**3).sum(), (x, y), (v, v), strict=True),
    ):
        with pytest.raises(UnusedInputError, match=r"does not depend on input 0 \(strict"):
            call()
    with pytest.raises(UnusedInputError, match="output 1 depends on none of the inputs"):
        functional.jacobian(lambda x: (x * 2, vg.ones(2)), x, strict=True)
    functional.vjp(lambda x: x * 2, x, v, strict=True)
    for call in (functional.vjp, functional.jvp):
        with pytest.raises(UnusedInputError, match="cannot be differentiated"):
            call(lambda x: x * 2, x, v, strict=True, create_graph=True)
    with pytest.raises(UnusedInputError, match="cannot be differentiated"):
        functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True)
    for call in (functional.vhp, functional.hvp):
        with pytest.raises(UnusedInputError, match="gradient with respect to input 0 is constant"):
            call(lambda x: x.sum(), x, v, strict=True)
    with pytest.raises(UnusedInputError, match="depends on none of the inputs"):
        functional.hessian(lambda x: x.sum(), x, strict=True)
    close(functional.hessian(lambda x: x.sum(), x), np.zeros((2, 2)))


# -- gradients inside --------------------------------------------------------------------------------------------------


def inner_of_leaf(c):
    y = vg.exp(c) * c
    p = vg.Tensor(0.5, requires_grad=True)
    (slope,) = grad(p * p * y, p)
    return y * y + slope.detach() * c


def inner_of_shared_value(c):
    p = vg.Tensor(0.5, requires_grad=True)
    z = p * p * c * c
    (slope,) = grad(z, p)
    return z * c + slope.detach()


def inner_backward(c):
    y = c * c
    p = vg.Tensor([0.5, 1.0], requires_grad=True)
    for _ in range(2):
        (p * y).sum().backward()
    return (y * p.grad.detach()).sum()


def inner_steps(c):
    y = vg.sin(c)
    p = vg.Tensor(0.5, requires_grad=True)
    for _ in range(3):
        (slope,) = grad((p * y - 1.0) ** 2, p)
        p = (p - 0.1 * slope).detach().requires_grad_()
    return y * p.detach() + y * y


INNER = {
    inner_of_leaf: lambda c: 2 * c * (1 + c) * np.exp(2 * c) + c * np.exp(c),
    inner_of_shared_value: lambda c: 0.75 * c**2,
    inner_backward: lambda c: 2 * c * 4 * c**2,
}


@pytest.mark.parametrize("program", [*INNER, inner_steps], ids=lambda program: program.__name__)
def test_gradients_of_inner_leaves_leave_the_outer_graph(program):
    ways = {
        "grad": lambda c: func.grad(program)(c),
        "jacrev": lambda c: func.jacrev(program)(c),
        "vjp": lambda c: func.vjp(program, c)[1](1.0)[0],
        "of grad": lambda c: func.jacfwd(program)(c) if program is not inner_backward else func.grad(program)(c),
        "vmap": lambda c: func.vmap(func.grad(program))(np.array([c]))[0],
    }
    found = {name: float(vg.as_tensor(way(0.7)).detach()) for name, way in ways.items()}
    if program in INNER:
        assert found["grad"] == pytest.approx(INNER[program](0.7))
    for name in ("jacrev", "vjp", "vmap"):
        assert found[name] == pytest.approx(found["grad"]), name
    func.hessian(lambda c: inner_of_leaf(c))(0.7)


@pytest.mark.parametrize("value", [0, 0.0, 3, np.inf, np.int64(4)])
def test_a_result_that_does_not_depend_on_the_arguments_has_zero_gradients(value):
    def left_early(x):
        return value if x[0] > 0.0 else x.sum()

    for f in (left_early, vg.compile(left_early, executor="python")):
        found, gradient = vg.value_and_grad(f)(np.ones(2))
        assert found == value and isinstance(found, float)
        assert gradient.tolist() == [0.0, 0.0]
        assert vg.hessian(f)(np.ones(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_jacobians_of_jacobians_of_vectors():
    """Gradients that are added in place have nodes whose classes define no slots."""

    def f(x):
        u = np.abs(0.5 * x).copy()
        return np.concatenate([np.atleast_1d(np.tanh(x).sum() + (u * u).sum()), u])

    x = np.array([0.3, -0.7, 1.1])
    np.testing.assert_allclose(vg.jacrev(vg.jacrev(f))(x), vg.jacfwd(vg.jacrev(f))(x), atol=1e-12)


def test_an_interrupted_transform_is_closed_in_another_context():
    manager = within_transform()
    contextvars.copy_context().run(manager.__enter__)
    manager.gen.close()  # as the garbage collector does


def test_argnums_are_integers():
    assert vg.grad(lambda a, b: a * b, argnums=np.int64(1))(2.0, 3.0) == 2.0
    assert vg.grad(lambda a, b: a * b, argnums=range(2))(2.0, 3.0) == (3.0, 2.0)
    for wrong in ("b", ("a", "b"), 1.5, None):
        with pytest.raises(TypeError, match="argnums must be an integer or a sequence of integers, not"):
            vg.grad(lambda a, b: a * b, argnums=wrong)


def test_numbers_that_are_not_differentiated_stay_python_numbers():
    seen = []

    def scaled(x, rate, *, offset):
        seen.append((type(rate), type(offset)))
        return (rate * x + offset).sum()

    x = np.ones(3, np.float32)
    value, gradient = vg.value_and_grad(scaled)(x, 0.5, offset=2.0)
    assert seen == [(float, float)] and type(value) is np.float32 and gradient.dtype == np.float32
    assert vg.grad(scaled, argnums=-1)(x, 0.5, offset=2.0) == 3.0
    with pytest.raises(ZeroDivisionError):
        vg.grad(lambda x, rate: x / (1.0 / rate))(1.0, 0.0)


class Cached:
    """A function that stores its last argument and result."""

    def __init__(self):
        self.last = None

    def __call__(self, x):
        if self.last is None or not np.array_equal(self.last, x):
            self.last, self.value = x.copy(), (x * x).sum()
        return self.value * 1.0 if x.ndim == 2 else self.value


TWICE = {
    "grad": lambda f, x: vg.grad(f)(x),
    "vjp": lambda f, x: vg.vjp(f, x)[1](1.0),
    "jacrev": lambda f, x: vg.jacrev(f)(x),
    "jvp": lambda f, x: vg.jvp(f, (x,), (x,)),
    "jacfwd": lambda f, x: vg.jacfwd(f)(x),
    "hessian": lambda f, x: vg.hessian(f)(x),
}


@pytest.mark.parametrize("name", TWICE)
def test_results_of_earlier_calls_are_refused(name):
    f, x = Cached(), np.array([1.0, 2.0])
    with pytest.raises(FreedGraphError, match="stored in an earlier call"):
        for _ in range(2):
            TWICE[name](f, x)
    assert vg.grad(Cached())(x).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("first", ["vjp", "jvp"])
def test_results_of_other_derivatives_are_refused(first):
    f, x = Cached(), np.array([1.0, 2.0])
    TWICE[first](f, x)
    for name in ("grad", "jvp", "jacrev"):
        with pytest.raises(FreedGraphError, match="stored in an earlier call"):
            TWICE[name](f, x)


def test_histories_of_earlier_calls_count_as_numbers_beside_others():
    f, x = Cached(), np.array([[1.0, 2.0]])
    assert vg.grad(f)(x).tolist() == [[2.0, 4.0]]
    with pytest.raises(FreedGraphError, match="stored in an earlier call"):
        vg.grad(f)(x)
    assert vg.grad(lambda x: f(x) + (3.0 * x).sum())(x).tolist() == [[3.0, 3.0]]
    leaf = vg.Tensor(2.0, requires_grad=True)
    assert vg.grad(lambda x: leaf * 2.0)(1.0) == 0.0
    assert vg.grad(lambda x: vg.grad(lambda y: x * x)(1.0) + x)(1.0) == 1.0
