"""Programs in which tensors share memory, traced: arguments, closures, detached tensors, complex views."""

import numpy as np
import pytest
import symbolic_checks

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import ConcretizationError, GraphError, GuardError, TraceError
from viewgrad.func.captured_state import LIMIT
from viewgrad.symbolic import function_of, program_of, run, trace, verify

OUTSIDE = vg.Tensor(np.arange(12.0) + 1)
PROGRAMS = {}


def program(arguments=lambda x, y: (x * 1, y * 1)):
    """Register a program, with a function that makes its arguments from two leaves of twelve elements."""

    def register(function):
        PROGRAMS[function.__name__] = (function, arguments)
        return function

    return register


def outcome(function, arguments):
    """Return a number that depends on the results and the arguments afterwards, and its first two derivatives."""
    leaves = [vg.Tensor(np.random.default_rng(k).standard_normal(12), requires_grad=True) for k in range(2)]
    args = arguments(*leaves)
    results = function(*args)
    results = results if isinstance(results, tuple) else (results,)
    total = 0.0
    for each in (*results, *args):
        if isinstance(each, vg.Tensor):
            weighted = each * each * np.linspace(0.5, 1.5, each.size).reshape(each.shape)
            total = total + (weighted.real.sum() if each.is_complex() else weighted.sum())
    first = grad(total, leaves, create_graph=True, materialize_grads=True)
    second = grad(sum((g * g * g).sum() for g in first), leaves, materialize_grads=True)
    return [total.detach().numpy(), *[g.detach().numpy() for g in (*first, *second)]]


@program()
def writes_through_views(a, b):
    a[2:5] *= b[2:5]
    a[1:] = a[:-1]
    a[2:5], a[5:8] = a[5:8].clone(), a[2:5].clone()
    return a[::-1] * b, a[::2]


@program(lambda x, y: (lambda base: (base, base[3:9], y * 1))(x * 1))
def a_base_and_its_view(a, view, b):
    view *= 2
    a[4] = b[0]
    view[0] += a[8]
    return view * b[:6], a


@program(lambda x, y: (lambda base: (base[0:4], base[2:8], y * 1))(x * 1))
def two_views_of_what_is_no_argument(a, view, b):
    view *= 2
    a[3] = b[0]
    view[0] += a[1]
    return view * b[:6], a


@program(lambda x, y: (lambda base: (base.reshape(3, 4), base.detach().reshape(4, 3), y * 1))(x * 1))
def an_argument_and_a_view_of_the_other_without_history(a, view, b):
    c = a * a
    view[0] = 7.0
    view[1] *= b[:3]
    return a * c, view * b[0]


@program(lambda x, y: ((x * 1).reshape(3, 4).T, y * 1))
def a_transposed_argument(a, b):
    a[1] *= b[:3]
    a[:, 2] = b[0]
    return a @ b[:3]


@program(lambda x, y: ((x * 1).reshape(3, 4)[:, 1:3], y * 1))
def a_strided_argument(a, b):
    a[1] *= b[:2]
    a.T[0, 1] = 5.0
    return a.T.sum(axis=0) * b[0]


@program(lambda x, y: (x.reshape(3, 4)[:, 1:3], y[::-2]))
def views_of_leaves(a, b):
    return a.T @ a * b[0], b[::-1] * 2


@program()
def a_detached_tensor_is_written_to(a, b):
    detached = a.detach()
    before = a * b
    detached[0] = 3.0
    between = a * b
    detached[1:3] = b[1:3]
    return before, between, a * detached


@program()
def nothing_is_recorded(a, b):
    c = a * b
    with vg.no_grad():
        c.mul_(2.0)
        c[0] = b[0]
        part = c[1:3]
    return c * a, part * b[1:3]


@program()
def complex_numbers(a, b):
    z = a[:6] + 1j * b[:6]
    z.real[1:3] = b[:2] * 2
    z.imag *= 2
    z.view_as_real()[0] = a[:2] * b[:2]
    return abs(z), z * z.conj()


@program()
def pairs_as_complex_numbers(a, b):
    z = a.reshape(6, 2).view_as_complex()
    z *= 1j
    z[1] = b[0] + 2j
    return a * b, z.real * 2


@program()
def indices(a, b):
    places = np.array([3, 1, 3])
    mask = np.arange(12) % 3 == 0
    a[places] = b[:3]
    a[mask] *= b[mask]
    a.index_accumulate_(np.array([0, 0, 5]), b[:3])
    np.add.at(a, [1, 1], b[:2])
    return a[vg.argsort(b)] * b, a[places] * b[places]


@program()
def out_and_where(a, b):
    out = vg.zeros(12)
    np.multiply(a, b, out=out)
    np.add(out, 1.0, out=out, where=np.arange(12) % 2 == 0)
    return out * out


@program()
def windows_that_overlap_themselves(a, b):
    return a.as_strided((4, 3), (2, 1), 1) * b.reshape(4, 3), b.unfold(0, 4, 2) ** 2


@program()
def single_precision(a, b):
    single = a.astype(np.float32)
    single[1:3] = b[:2]
    return (single * 2.5).astype(float) * b


@program()
def gradients_inside(a, b):
    c = a.clone().detach().requires_grad_()
    (first,) = grad((c * c * c * b.detach()).sum(), c)
    (second,) = grad((a * a * b).sum(), b, create_graph=True)
    return first * a + second * b


@program()
def steered(a, b):
    for i in range(1, 12):
        if a[i] > a[i - 1]:
            a[i] = a[i - 1] * b[i]
        else:
            a[i] += vg.sin(b[i] * a[i - 1])
    return a


@program()
def from_outside(a, b):
    return a * OUTSIDE, OUTSIDE[2:5] * b[2:5]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    function, arguments = PROGRAMS[name]
    leaves = [vg.Tensor(np.random.default_rng(k).standard_normal(12), requires_grad=True) for k in range(2)]
    traced = function_of(function, *arguments(*leaves))
    for ours, other in zip(outcome(traced, arguments), outcome(function, arguments), strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("places", [[0, 2, 0], np.array([3, 3, 1])], ids=["list", "array"])
def test_an_overwritten_value_gets_no_gradient(places):
    def assigned(a, values):
        a = a * 1
        a[places] = values
        return (a * a).sum()

    def assigned_at(a, values, places):
        a = a * 1
        a[places] = values
        return (a * a).sum()

    a = vg.Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    values = vg.Tensor([5.0, 6.0, 7.0], requires_grad=True)
    for function, arguments in ((assigned, (a, values)), (assigned_at, (a, values, np.array(places)))):
        traced = function_of(function, *arguments)
        found = grad(traced(*arguments), [a, values])
        for ours, other in zip(found, grad(function(*arguments), [a, values]), strict=True):
            np.testing.assert_array_equal(ours.numpy(), other.numpy())
        assert found[1][0].item() == 0.0


# -- what cannot be recorded -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leave", "how"),
    [
        (lambda x: x * x.sum().item(), "item"),
        (lambda x: x * np.asarray(x), "numpy"),
        (lambda x: x * complex(x[0]), "complex"),
        (lambda x: x * x.tolist()[0], "tolist"),
    ],
)
def test_a_concretized_value_is_refused_with_file_and_line(leave, how):
    with pytest.raises(ConcretizationError, match=rf"{how}\(\) at .*test_symbolic_aliasing\.py:\d+ .* escapes='guard'"):
        trace(leave, vg.ones(2))
    graph = trace(leave, vg.ones(2), escapes="guard")
    assert [node.kind for node in graph.block].count("guard") == 1
    assert run(graph, [np.ones(2)])[0].shape == (2,)


def test_backward_inside_is_refused():
    x = vg.ones(2, requires_grad=True)
    with pytest.raises(TraceError, match=r"backward\(\).* at .*test_symbolic_aliasing\.py:\d+"):
        trace(lambda x: (x * x).sum().backward(), x)


def test_random_numbers_are_refused_except_those_of_operators():
    generator = np.random.default_rng(0)
    with pytest.raises(TraceError, match=r"random numbers from Generator\(PCG64\)"):
        trace(lambda x: x * generator.standard_normal(2), vg.ones(2))
    with pytest.raises(TraceError, match=r"from numpy\.random"):
        trace(lambda x: x * np.random.rand(2), vg.ones(2))  # noqa: NPY002 -- what is to be refused
    graph = trace(lambda x: vg.dropout(x, 0.5, generator=generator), vg.ones(1000))
    first, second = (run(graph, [np.ones(1000)])[0] for _ in range(2))
    assert not np.array_equal(first, second)


def test_branches_on_random_numbers_of_constants_are_guarded():
    generator = np.random.default_rng(0)

    def f(x):
        return x * 2.0 if vg.dropout(vg.ones(1), 0.5, generator=generator)[0] > 1.0 else x * 3.0

    graph = trace(f, vg.ones(3))
    assert "guard" in graph.text()
    with pytest.raises(GuardError):
        for _ in range(60):
            run(graph, [np.ones(3)])


SHAPED = {
    "unique": lambda x, n: vg.unique(x) * x.sum(),
    "unique_all": lambda x, n: np.unique_all(x)[0] * x.sum(),
    "repeat": lambda x, n: np.repeat(x, n)[-1] * x,
    "bincount": lambda x, n: np.bincount(n)[-1] * x,
    "one_hot": lambda x, n: vg.one_hot(n)[-1] * 1.0 + x[:1],
    "of a user": lambda x, n: OF_A_USER(x) * x.sum(),
}
OF_A_USER = vg.autograd.define_op(
    "distinct_of_a_user(self)", forward=np.unique,
    derivatives={"self": "take_gradient(grad, first_places(self, None), self.shape, None, 'raise')"},
)  # fmt: skip


@pytest.mark.parametrize("name", SHAPED)
def test_value_dependent_shapes_are_guarded(name):
    x, n = np.array([0.5, 2.0, 2.0]), np.array([0, 1, 0])
    graph = trace(SHAPED[name], vg.Tensor(x, requires_grad=True), vg.Tensor(n))
    verify(graph)
    run(graph, [x[::-1].copy(), n])
    for other in ([1.5, 2.0, 3.0], [2, 0, 3]), ([0.25] * 3, [0, 0, 0]):
        with pytest.raises(GuardError, match=r"a shape at .*test_symbolic_aliasing\.py:\d+ gave"):
            run(graph, [np.array(other[0]), np.array(other[1])])


class Chosen(vg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        array = x.detach().numpy()
        return vg.Tensor(array[array > 1.0])

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        result = vg.zeros(x.shape)
        result[x.detach().numpy() > 1.0] = grad
        return result


def test_custom_functions_keep_their_result_shapes():
    graph = trace(lambda x: Chosen.apply(x) * x.sum(), vg.Tensor([0.5, 2.0], requires_grad=True))
    assert run(graph, [np.array([3.0, 0.25])])[0].tolist() == [9.75]
    for run_graph in (run, lambda graph, inputs: program_of(graph)(inputs)):
        with pytest.raises(GraphError, match="results of Chosen have the shapes"):
            run_graph(graph, [np.array([3.0, 2.0])])


def test_a_hook_inside_is_refused():
    with pytest.raises(TraceError, match="a hook at"):
        trace(lambda x: (x * x).register_hook(print), vg.ones(2, requires_grad=True))


def test_a_trace_has_a_length_limit():
    def f(x):
        for _ in range(100):
            x = x * x
        return x

    with pytest.raises(TraceError, match="limit of 50 nodes"):
        vg.symbolic.record(f, (vg.ones(2),), limit=50)


def written_after_it_was_detached(x):
    y = vg.clone(x)
    y.detach_()
    y[0] = x[1] * 2
    return (y * np.array([1.0, 2.0])).sum()


def detached_below_a_view(x):
    y = x * 1.0
    view = y[1:]
    y.detach_()
    return (view * 3.0).sum() + y.sum()


def test_histories_that_end_in_place():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for function, expected in ((written_after_it_was_detached, [0.0, 2.0]), (detached_below_a_view, [0.0, 3.0])):
        compiled = vg.compile(function, executor="python")
        compiled(x)
        for each in (function, function_of(function, x), compiled, compiled):
            assert vg.autograd.grad(each(x), x)[0].tolist() == expected


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
@pytest.mark.parametrize("take", [lambda d: d, lambda d: d.reshape(-1)[...]], ids=["itself", "view"])
@pytest.mark.parametrize("is_before", [False, True])
def test_writes_by_an_alias_after_the_history_of_a_constant_ended(shape, take, is_before):
    def function(x):
        base = vg.clone(x)
        view = base[...]
        alias = view.detach() if is_before else None
        view[...] = 0.5
        alias = take(view.detach() if alias is None else alias)
        base.detach_()
        alias.neg_()
        return view * 1.0, base * 1.0

    x = vg.Tensor(np.full(shape, 0.8), requires_grad=True)
    for ours, other in zip(run(trace(function, x), [np.full(shape, 0.8)]), function(x), strict=True):
        assert ours.tolist() == other.tolist()


# -- examples that the function captures -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [vg.Tensor, np.array, lambda a: vg.Tensor(a, requires_grad=True)])
@pytest.mark.parametrize("take", [lambda a: a, lambda a: a[:], lambda a: a[::-1]], ids=["itself", "alias", "window"])
def test_captured_values_are_not_read_from_an_example(kind, take):
    captured = kind([1.0, 2.0, 3.0])
    function = lambda x: (x * captured).sum()
    traced = function_of(function, take(captured))
    assert traced(np.ones(3)).item() == 6.0
    assert traced(take(captured)).item() == vg.asarray(function(take(captured))).item()
    if isinstance(captured, vg.Tensor) and captured.requires_grad:
        x = vg.ones(3, requires_grad=True)
        assert [each.tolist() for each in grad(traced(x), [x, captured])] == [[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]


class Held:
    weights = vg.Tensor([1.0, 2.0, 3.0])


class Derived(Held):
    def product(self, x):
        return (x * self.weights).sum()


@pytest.mark.parametrize(
    "function", [lambda x: (x * Derived.weights).sum(), Derived().product], ids=["class", "object"]
)
def test_captured_attributes_of_classes_are_not_read_from_an_example(function):
    assert function_of(function, Held.weights)(np.ones(3)).item() == 6.0


def test_captured_attributes_of_modules_are_not_read_from_an_example(monkeypatch):
    monkeypatch.setattr(symbolic_checks, "weights", vg.Tensor([1.0, 2.0, 3.0]), raising=False)
    traced = function_of(lambda x: (x * symbolic_checks.weights).sum(), symbolic_checks.weights)
    assert traced(np.ones(3)).item() == 6.0


def test_examples_are_copied_if_too_much_is_captured_to_tell():
    many = [[[number]] for number in range(LIMIT)]
    assert function_of(lambda x: x * x + len(many), vg.ones(3))(np.full(3, 2.0)).tolist() == [LIMIT + 4.0] * 3
    with pytest.raises(TraceError, match="captures"):
        trace(lambda x: x.add_(len(many)), vg.ones(3))


def test_examples_that_are_captured_and_written_to():
    captured = vg.ones(3)

    def function(x):
        x[0] = 5.0
        return captured.sum() * x

    with pytest.raises(TraceError, match="shares memory with a tensor or array that it captures"):
        trace(function, captured)
    with pytest.raises(TraceError, match="several example arguments share memory"):
        trace(lambda x, y: captured.sum() * x * y, captured, captured[:])
