"""Source programs, traced: as a graph, and as one node of the eager graph."""

import warnings

import numpy as np
import pytest
from source_programs import ALLOWED, SourceProgram
from symbolic_checks import assert_close, check

import viewgrad as vg
from viewgrad.errors import ConcretizationError, GuardError, ScalarWriteError
from viewgrad.symbolic import function_of, trace

BATCHES = 2
SHARE = 40  # the number of drawn programs checked here


def as_function(program):
    """Return a program as a function of its leaves that returns all variables."""

    def function(*leaves):
        found = program.run(dict(zip(program.leaves, leaves, strict=True)))
        values = [value for name, value in found.items() if name[0] == "v" and isinstance(value, vg.Tensor)]
        return tuple(value for value in values if value.dtype.kind in "fc")

    return function


def leaves_of(program, seed=None):
    """Return leaves with the elements of a program's leaves, perturbed if a seed is given."""
    leaves = [leaf.copy(order="K") for leaf in program.leaves.values()]
    if seed is not None:
        rng = np.random.default_rng(seed)
        for leaf in leaves:
            leaf *= rng.uniform(0.7, 1.3, leaf.shape).astype(leaf.real.dtype) * rng.choice([1, 1, 1, -1], leaf.shape)
    return [vg.Tensor(leaf, requires_grad=True) for leaf in leaves]


def weighted(results, function):
    """Return a real number that depends on all elements of the results."""
    total = 0.0
    for number, each in enumerate(results):
        weights = function(np.arange(each.size).reshape(each.shape) + number).astype(each.real.dtype)
        total = total + (each * weights).sum().real
    return total


def sharing(results):
    """Return which results share memory."""
    arrays = [each._array for each in results]
    return [
        type(one) is type(other) is np.ndarray and np.shares_memory(one, other)
        for number, one in enumerate(arrays)
        for other in arrays[:number]
    ]


def outcome(function, leaves):
    """Return the results of a function before and after writes to them, two derivatives, and which share memory."""
    results = function(*leaves)
    total = weighted(results, np.cos)
    shared = sharing(results)
    for each in results:
        try:
            each.mul_(0.5)
        except (ScalarWriteError, RuntimeError):  # a scalar, or a view that overlaps itself
            continue
    total = total + weighted(results, np.sin)
    found = [total]
    for _ in range(2):
        if not found[-1].requires_grad:
            break
        gradients = vg.autograd.grad(found[-1], leaves, create_graph=True, materialize_grads=True)
        found += [*gradients, sum((g * g).sum().real for g in gradients)]
    return [each.detach().numpy() for each in found], shared


def compare_as_one_step(program):
    """Check that the traced function behaves in eager code as the function does, with other inputs than its own."""
    function = as_function(program)
    traced = function_of(function, *leaves_of(program))
    for seed in (0, None):
        try:
            expected, shared = outcome(function, leaves_of(program, seed))
        except Exception:
            assert seed is not None, str(program)  # NumPy refuses the others
            continue
        try:
            found, shared_now = outcome(traced, leaves_of(program, seed))
            break
        except GuardError:
            assert seed is not None, str(program)
    assert shared_now == shared, str(program)
    dtypes = {getattr(each, "dtype", None) for each in program.arrays.values()}
    coarse = bool(dtypes & {np.dtype(np.float16), np.dtype(np.float32)})
    for number, other in enumerate(expected):
        ours = found[number] if number < len(found) else None
        assert_close(ours, other, f"{program}, item {number}", 2e-2 if coarse else 1e-6)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_drawn_source_programs(request, batch):
    number = request.config.getoption("--programs") // (SHARE // 2 * BATCHES)
    first = request.config.getoption("--programs-seed") * 1_000_000 + batch * number + 500_000
    compared = 0
    for seed in range(first, first + number):
        program = SourceProgram(seed)
        function = as_function(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results = function(*leaves_of(program))
            except Exception as error:
                if any(text in str(error) for text in ALLOWED):
                    continue
                raise
            if not any(each.requires_grad for each in results):
                continue
            try:
                leaves = [leaf.copy(order="K") for leaf in program.leaves.values()]
                check(function, leaves, str(program), make=lambda program=program: leaves_of(program))
            except ConcretizationError:  # np.unique and similar: the program holds for these values only
                continue
            compare_as_one_step(program)
        compared += 1
    assert compared > number // 2


# -- single lines that a drawn program has found -----------------------------------------------------------------------


LINES = {
    "a new axis of a scalar": lambda x: (x.sum()[None] * x, np.expand_dims(x.sum(), 0), x.sum()[..., None]),
    "a window of a scalar": lambda x: (lambda s: (s[...].mul_(2.0), s))(x.sum()),
    "a scalar given back twice": lambda x: (lambda s: (s, s.conj(), s))(x.sum()),
    "what is made a scalar": lambda x: np.inner(x, x) * np.std(x, where=np.array([True, False, True])),
    "the variance of a scalar": lambda x: np.var(x.sum() * x.sum(), dtype=float) + x[0],
    "arrays like one": lambda x: np.full_like(x, 0.5) * x + np.zeros_like(x) + np.ones_like(x, dtype=float),
    "a partition": lambda x: np.partition(x, 1) * x,
    "precision": lambda x: (x.astype(np.longdouble) * 1.3).astype(float) * x,
    "a number that is kept": lambda x: x.astype(np.float32) * 0.7 * x,
    "closeness": lambda x: x * 2.0 if np.allclose(x, x + 1e-12) and np.array_equal(x, x) else x,
    "a scalar that becomes a leaf": lambda x: (x.sum().detach().requires_grad_() * x).sum(),
}


ROOTS = {
    "a root that a mask leaves out": lambda x: np.where(x > 0, np.sqrt(abs(x)), 0.0),
    "a quotient that a mask leaves out": lambda x: np.where(x > 0, 1.0 / x, x) * x,
    "the deviation of one number": lambda x: np.std(x[:1]) * x + x.sum() ** 2,
    "a power that a mask leaves out": lambda x: np.where(x > 0, abs(x) ** 0.5 * np.log(abs(x)), x),
    "a reciprocal that a mask leaves out": lambda x: np.where(x > 0, np.reciprocal(x), x) * x,
    "a power of what is negative": lambda x: np.where(x > 1, (x - 1.0) ** (x * 0.5), 0.0) * x,
    "a gradient inside": lambda x: vg.func.grad(lambda y: np.where(y > 0, np.sqrt(abs(y)), 0.0).sum())(x) * x,
    "a tangent inside": lambda x: vg.func.jvp(lambda y: np.sqrt(y * y), (x,), (np.sign(x),))[1] * x,
}


@pytest.mark.parametrize("name", ROOTS)
def test_zero_cotangents_give_zero_gradients_in_graphs(name):
    function = ROOTS[name]
    traced = function_of(function, vg.Tensor([1.0, 4.0], requires_grad=True))  # all gradients are defined
    for values in ([0.0, 4.0], [4.0, 0.0], [2.0, 3.0]):
        outcomes = []
        for each in (function, traced):
            with np.errstate(all="ignore"):
                x = vg.Tensor(values, requires_grad=True)
                y = each(x)
                (first,) = vg.autograd.grad(y.sum(), x, create_graph=True)
                (second,) = vg.autograd.grad((first * first).sum(), x)
            outcomes.append([t.detach().numpy() for t in (y, first, second)])
        for ours, other in zip(outcomes[1], outcomes[0], strict=True):
            np.testing.assert_allclose(ours, other, err_msg=f"{name} at {values}")


@pytest.mark.parametrize("line", LINES)
def test_traced_line_matches_eager(line):
    function = LINES[line]
    trace(function, vg.ones(3, requires_grad=True))  # numbers are kept from here on
    check(function, [np.array([0.5, 1.5, -0.25])], line, again=True)


def test_closeness_is_a_guard_of_the_outcome_alone():
    graph = trace(lambda x: x * 2.0 if np.allclose(x, 1.0, atol=0.5) else x, vg.ones(2))
    (found,) = vg.symbolic.run(graph, [np.array([1.25, 0.75])])
    assert found.tolist() == [2.5, 1.5]
    with pytest.raises(vg.errors.GuardError, match=r"bool\(\)"):
        vg.symbolic.run(graph, [np.array([1.25, 5.0])])


def test_a_choice_by_values_is_refused_with_its_line():
    with pytest.raises(ConcretizationError, match=r"a choice by values at .*test_symbolic_sources\.py:\d+"):
        trace(np.unique, vg.ones(2))
