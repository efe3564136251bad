"""Programs that write through views, under each mode and transform, against the same programs on NumPy arrays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func
from viewgrad.autograd import detect_anomaly, graph
from viewgrad.autograd.modes.profile import profile
from viewgrad.errors import AutogradError

POINT = np.array([0.7, -1.3, 2.1])
ALONG = np.array([1.0, 0.5, -2.0])


# -- programs: functions of three numbers, for arrays and tensors ------------------------------------------------------


def write_through_a_reversed_view(x):
    y = x * 1.0
    v = y[1:][::-1]
    v *= x[:2]
    return y.sum()


def out_that_overlaps(x):
    y = x * 1.0
    np.multiply(y[1:], y[:-1], out=y[:-1])
    return (y * y).sum()


def add_at_repeated_places(x):
    y = x * 1.0
    np.add.at(y, [0, 0, 1], x * x)
    return (y * x).sum()


def accumulate_into_itself(x):
    y = x * 1.0
    np.add.accumulate(y, out=y)
    return (y * y).sum()


def reduceat(x):
    return (np.multiply.reduceat(x, [0, 1]) * x[:2]).sum()


def write_by_masks(x):
    y = x * x
    chosen = np.array([True, False, True])
    y[chosen] *= x[chosen]
    y[~chosen] = 3.0 * x[0]
    return y.sum()


def an_error_halfway(x):
    y = x * 1.0
    try:
        y[0] = y[0] * x[1]
        y[1:] = np.ones((2, 2, 2))
    except ValueError:
        y[2] = y[0] * y[2]
    return (y * y).sum()


def views_of_views(x):
    m = np.stack([x, 2.0 * x, 3.0 * x])
    t = m.T
    t[1][1:] *= x[0]
    m[0] += t[0]
    m[1:, ::2][0] *= m[2, :2]
    return (m * m).sum()


def swapped_scalars(x):
    t = np.stack([x[0], x[0] * x[1], x[0] * x[1] * x[2]])
    t[0], t[2] = t[2], t[0]
    return (t * np.array([1.0, 2.0, 3.0])).sum()


def differences_in_place(x):
    y = np.cumsum(x)
    y[1:] -= y[:-1]
    return (y * y * y).sum()


def parts_of_complex_numbers(x):
    c = x + 0j
    c.imag[1:] = x[:2] * x[1:]
    c[::-1] *= 1j * c
    return (c.real * c.real + c.imag).sum()


PROGRAMS = {
    program.__name__: program
    for program in (
        write_through_a_reversed_view, out_that_overlaps, add_at_repeated_places, accumulate_into_itself, reduceat,
        write_by_masks, an_error_halfway, views_of_views, swapped_scalars, differences_in_place,
        parts_of_complex_numbers,
    )
}  # fmt: skip


# -- modes and transforms ----------------------------------------------------------------------------------------------


def within(make):
    def run(program, x):
        with make():
            return program(x)

    return run


def twice_compiled(program, x):
    compiled = vg.compile(program)
    compiled(x)
    return compiled(x)


def in_a_thread(program, x):
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(program, x).result()


def in_a_generator(program, x):
    def generator():
        with vg.enable_grad():
            yield program(x)

    with vg.no_grad():
        return next(generator())


def mutation_forbidden(program, x):
    try:
        with graph.forbid_mutation_on_saved_tensors():
            return program(x)
    except AutogradError:  # raised by the mode; afterwards the state is as before
        return program(x)


MODES = {
    "plain": lambda program, x: program(x),
    "detect_anomaly": within(detect_anomaly),
    "saved_tensors_hooks": within(lambda: graph.saved_tensors_hooks(lambda t: t.numpy().copy(), vg.Tensor)),
    "profile": within(profile),
    "view_replay": within(lambda: vg.view_replay(True)),
    "errstate": within(lambda: np.errstate(all="raise")),
    "forbid_mutation": mutation_forbidden,
    "checkpoint": lambda program, x: vg.checkpoint(program)(x),
    "functionalize": lambda program, x: func.functionalize(program)(x),
    "vmap": lambda program, x: func.vmap(program)(vg.stack([x, x * 1.0]))[0],
    "compile": twice_compiled,
    "checkpoint of compile": lambda program, x: vg.checkpoint(vg.compile(program))(x),
    "compile of checkpoint": lambda program, x: twice_compiled(vg.checkpoint(program), x),
    "vmap of compile": lambda program, x: func.vmap(vg.compile(program))(vg.stack([x, x * 1.0]))[1],
    "thread": in_a_thread,
    "generator": in_a_generator,
}
SLOPES = {
    "jvp": lambda program, x: func.jvp(program, (x,), (vg.Tensor(ALONG),))[1],
    "grad": lambda program, x: (func.grad(program)(x) * ALONG).sum(),
    "jacfwd": lambda program, x: (func.jacfwd(program)(x) * ALONG).sum(),
    "grad of checkpoint": lambda program, x: (func.grad(vg.checkpoint(program))(x) * ALONG).sum(),
    "grad of functionalize": lambda program, x: (func.grad(func.functionalize(program))(x) * ALONG).sum(),
    "grad of compile": lambda program, x: (func.grad(vg.compile(program))(x) * ALONG).sum(),
    "jvp of vmap": lambda program, x: func.jvp(
        lambda rows: func.vmap(program)(rows)[0], (vg.stack([x, x]),), (vg.stack([vg.Tensor(ALONG)] * 2),)
    )[1],
}


def slope(function, at, along, step):
    """Return the derivative of a function of arrays along a direction, by differences of fifth order."""
    one, two = (function(at + k * step * along) - function(at - k * step * along) for k in (1, 2))
    return (8.0 * one - two) / (12.0 * step)


def gradient(function, step):
    return np.array([slope(function, POINT, unit, step) for unit in np.eye(3)])


@pytest.mark.parametrize("mode", [*MODES, *SLOPES])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_the_derivatives_of_numpy_in_each_mode(name, mode):
    program = PROGRAMS[name]
    x = vg.Tensor(POINT, requires_grad=True)
    value = (MODES.get(mode) or SLOPES[mode])(program, x)
    assert vg.is_grad_enabled()
    value.backward()
    if mode in MODES:
        expected, by_x, tolerance = program(POINT), gradient(program, 1e-3), 1e-8
    else:
        along = lambda at: slope(program, at, ALONG, 1e-2)
        expected, by_x, tolerance = along(POINT), gradient(along, 1e-2), 1e-5
    np.testing.assert_allclose(float(value.detach()), expected, rtol=tolerance)
    np.testing.assert_allclose(x.grad.numpy(), by_x, rtol=tolerance, atol=tolerance * 10)
