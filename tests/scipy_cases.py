"""Calls of SciPy's functions: their values on tensors are SciPy's, and their gradients those of finite differences."""

from __future__ import annotations

import importlib

import numpy as np

import viewgrad as vg
from viewgrad.autograd import gradcheck, gradgradcheck


def call(name, *args, pick=None, first_only=False, values=True, at=None, rtol=1e-8, **kwargs):
    """Return one call: a function by its name, and its arguments; floating-point arrays become leaves.

    Arguments:
        pick: a function that selects the part of the result to differentiate; by default, all of it.
        first_only: whether only first derivatives are compared.
        values: whether all values are compared with SciPy's.
        at: the positions of the arguments that become leaves; by default, all floating-point arrays.
        rtol: the relative tolerance of the values.
    """
    return (name, args, kwargs, pick, first_only, values, at, rtol)


def named(case):
    """Return the name of the test of a call."""
    name, args, kwargs, *_ = case
    parts = [str(part.shape if isinstance(part, np.ndarray) else part)[:24] for part in args]
    parts += [f"{key}={str(value)[:16]}" for key, value in kwargs.items()]
    return "-".join([name, *parts])


def tensors_in(value):
    """Yield the floating-point and complex tensors in a result, in containers of any kind and depth."""
    if isinstance(value, vg.Tensor):
        return [value] if value.dtype.kind in "fc" else []
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def plain(value):
    """Return the numbers of a result in the shape that SciPy returns."""
    if isinstance(value, vg.Tensor):
        return value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def compare(found, right, rtol):
    """Check that results are the same, item by item."""
    if isinstance(right, (tuple, list)):
        assert len(found) == len(right)
        for one, other in zip(found, right):
            compare(one, other, rtol)
    elif right is not None and not isinstance(right, str):
        assert np.shape(found) == np.shape(right)
        np.testing.assert_allclose(found, right, rtol=rtol, atol=1e-9)


def found_in(module, name):
    """Return a function or method by its name."""
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def check(module, case):
    """Compare a call with SciPy's, and its derivatives with finite differences."""
    name, args, kwargs, pick, first_only, values, at, rtol = case
    ours, theirs = found_in(f"viewgrad.scipy.{module}", name), found_in(f"scipy.{module}", name)
    places = [place for place, arg in enumerate(args) if isinstance(arg, np.ndarray) and arg.dtype.kind in "fc"]
    places = places if at is None else list(at)

    def of_tensors(*tensors):
        given = list(args)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return ours(*given, **kwargs)

    leaves = [vg.Tensor(args[place], requires_grad=True) for place in places]
    with np.errstate(all="ignore"):
        result = of_tensors(*leaves)
        if values:
            compare(plain(result), theirs(*args, **kwargs), rtol)
        parts = tensors_in(pick(result) if pick else result)
        assert any(part.requires_grad for part in parts), "the result has no history"

        def differentiated(*tensors):
            found = tensors_in(pick(of_tensors(*tensors)) if pick else of_tensors(*tensors))
            return tuple(part for part, first in zip(found, parts) if first.requires_grad)

        assert gradcheck(differentiated, leaves)
        assert first_only or gradgradcheck(differentiated, leaves, rtol=1e-4, atol=1e-5)


def check_program(program, x):
    """Compare the value, gradient, jvp and Hessian of an unmodified program with SciPy's value and differences."""
    value, slope = vg.func.value_and_grad(program)(x)
    np.testing.assert_allclose(value, float(program(x)), rtol=1e-9)
    steps = 1e-5 * np.eye(x.size)
    expected = [(program(x + step) - program(x - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)
    direction = np.cos(np.arange(x.size))
    np.testing.assert_allclose(float(vg.func.jvp(program, (x,), (direction,))[1]), slope @ direction, rtol=1e-7)
    of_slope = vg.func.grad(program)
    expected = [(of_slope(x + step) - of_slope(x - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(vg.func.hessian(program)(x), expected, rtol=1e-4, atol=1e-5 * max(1.0, abs(value)))
