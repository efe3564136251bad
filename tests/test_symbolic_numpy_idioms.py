"""Programs in NumPy idioms, traced: values, dtypes, scalars, shared memory and two derivatives of eager runs."""

import numpy as np
import pytest
from numpy_idioms import PROGRAMS, W

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.func.tree import flatten
from viewgrad.symbolic import function_of


def leaves():
    return [vg.Tensor(np.random.default_rng(k).uniform(-1.5, 1.5, 12), requires_grad=True) for k in range(2)]


def total_of(tensors, seed):
    """Return a real number that depends on all elements."""
    total = 0.0
    for number, each in enumerate(tensors):
        if each.dtype.kind in "fc" and each.size:
            weights = np.random.default_rng(seed + number).uniform(0.5, 1.5, each.shape).astype(each.real.dtype)
            total = total + (each * each * weights).sum().real
    return total


def outcome(function):
    """Return the results and arguments of a program after writes to its results, with derivatives."""
    a, b = leaves()
    args = a * 1, b * 1
    found = [*flatten(function(*args))[0], *args]
    tensors = [each for each in found if isinstance(each, vg.Tensor)]
    arrays = [each._array for each in tensors]
    told = [each if not isinstance(each, vg.Tensor) else (each.dtype, each.shape) for each in found]
    told += [type(one) is type(two) is np.ndarray and np.shares_memory(one, two) for one in arrays for two in arrays]
    told += [type(one) is np.ndarray for one in arrays]
    values = [np.array(each.detach().numpy()) for each in tensors]
    total = total_of(tensors, 5)
    for each in tensors:
        if each.dtype.kind in "fc" and each.ndim:
            each.mul_(0.5)
    total = total + total_of(tensors, 50)
    wanted = [a, b, W]
    first = grad(total, wanted, create_graph=True, materialize_grads=True)
    second = grad(sum((g * g * g).sum() for g in first), wanted, materialize_grads=True)
    return told, [*values, *[g.detach().numpy() for g in (total, *first, *second)]]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_traced_programs_match_the_program(name):
    traced = function_of(PROGRAMS[name], *[each * 1 for each in leaves()])
    told, numbers = outcome(PROGRAMS[name])
    told_of_traced, numbers_of_traced = outcome(traced)
    assert told_of_traced == told
    tolerance = 1e-5 if name == "singles" else 1e-7
    for ours, other in zip(numbers_of_traced, numbers, strict=True):
        scale = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(ours, other, rtol=tolerance, atol=tolerance * scale)


# Custom functions without a jvp, and memory that a detached tensor shares and was written through.
BACKWARD = {"customs", "inner_grad", "no_grads"}


@pytest.mark.parametrize("name", sorted({*PROGRAMS} - BACKWARD))
@pytest.mark.filterwarnings("ignore")
def test_tangents_of_traced_programs_match_the_program(name):
    traced = function_of(PROGRAMS[name], *[each * 1 for each in leaves()])

    def total(function):
        return lambda a, b: total_of([t for t in flatten(function(a * 1, b * 1))[0] if isinstance(t, vg.Tensor)], 5)

    a, b = [each.detach() for each in leaves()]
    ours, expected = (vg.func.jvp(total(function), (a, b), (b, a)) for function in (traced, PROGRAMS[name]))
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-6, atol=1e-6)
