"""Tiny programs, interrupted at any point, and run in several threads at once."""

from __future__ import annotations

import random
import sys
import threading

import numpy as np
from interruptions import Interrupter, modes
from tiny_programs import TinyProgram, Wrong, check, close, code_of

import viewgrad as vg
from viewgrad.errors import AutogradError, InterruptedWriteError
from viewgrad.tensor.modes import ENTERED, MODE


def names_after(program, number):
    """Return the variables that are bound after a number of lines, and the leaf."""
    x = vg.Tensor(program.leaf, requires_grad=True)
    names = {"np": np, "vg": vg, "x": x}
    for line in program.lines[:number]:
        exec(code_of(line), names)
    return names, x


def outcomes(program, names, x):
    """Return, by name, the value and the gradient of a weighted sum, or None if the gradient is refused."""
    found = {}
    for name in program.known:
        tensor = names.get(name)
        if isinstance(tensor, vg.Tensor):
            value = tensor.detach().numpy().copy()
            weight = vg.Tensor(np.cos(np.arange(value.size).reshape(value.shape)).astype(value.dtype))
            gradient = np.zeros(x.shape, x.dtype)
            if tensor.requires_grad:
                try:
                    (given,) = vg.autograd.grad(tensor, x, weight, allow_unused=True, retain_graph=True)
                    gradient = gradient if given is None else given.numpy()
                except InterruptedWriteError:
                    gradient = None
            found[name] = value, gradient
    return found


def check_interrupted(program: TinyProgram, seed: int) -> str:
    """Interrupt a line, check that each tensor has the gradient of its value, or none, and return the outcome.

    Raises:
        Wrong: if a gradient is not that of the value, or a mode remains set.
    """
    draw = random.Random(seed)
    number = draw.randrange(len(program.lines))
    text = program.lines[number]
    line = code_of(text)
    bytecodes = draw.random() < 0.5 and "with" not in text  # a block is entered between places that signals come at
    names, x = names_after(program, number)
    before = outcomes(program, names, x)
    names, x = names_after(program, number)
    counting = Interrupter(None, bytecodes)
    counting.run(lambda: exec(line, names))
    after = outcomes(program, names, x)
    if not counting.passed:
        return "nothing to interrupt"
    names, x = names_after(program, number)
    expected, interrupter = modes(), Interrupter(draw.randrange(counting.passed), bytecodes)
    interrupter.run(lambda: exec(line, names))
    where = f"line {number} interrupted at {interrupter.where}\n{program}"
    left = modes()
    if left != expected:
        MODE.set(expected[0])
        ENTERED.set(expected[1])
        if "(__exit__)" not in where:  # at whose start Python cannot run a context manager
            raise Wrong(f"a mode is left: {left}, {where}")
    told = "unchanged"
    several = text.startswith("for ") or "], " in text.split(" = ")[0]
    if program.special and several:
        return "between writes"  # gradients of equal values may differ
    tolerance = 1e-9 if program.leaf.dtype != np.float32 else 2e-3
    for name, (value, gradient) in outcomes(program, names, x).items():
        fitting = [state[name] for state in (before, after) if name in state and same(state[name][0], value)]
        if gradient is None:
            told = "refused"
        elif several and not value.all():  # a zero has the same value before and after the write
            told = "between writes"
        elif fitting and not any(same_gradient(one, gradient, tolerance) for _, one in fitting):
            raise Wrong(f"{name} is {value}, with the gradient {gradient}, not {fitting}, {where}")
    return told


def same(one, other) -> bool:
    return one.shape == other.shape and np.array_equal(one, other)


def same_gradient(one, other, tolerance) -> bool:
    return one is not None and close(one, other, tolerance)


def check_in_threads(seed: int, number: int = 3) -> None:
    """Check programs concurrently, each in a thread; and write to parts of one tensor from all threads.

    Raises:
        Wrong: if a value or a gradient is wrong.
    """
    programs = [TinyProgram(seed * number + i) for i in range(number)]
    draw, errors = random.Random(seed), []
    x = vg.Tensor(np.linspace(0.3, 1.4, 2 * number), requires_grad=True)
    y = x * 1.0
    lines = [
        [draw.choice(["w *= 2.0", "w[...] = 0.5", "w += w", "w *= w", "w[0] = w[1]", "w[::-1] *= u"]) for _ in range(2)]
        for _ in programs
    ]
    refusals = []

    def work(i):
        try:
            check(programs[i])
            write(lines[i], y, x, 2 * i)
        except AutogradError as error:
            refusals.append(error)
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]
    if refusals:
        return
    alone = vg.Tensor(x.detach().numpy(), requires_grad=True)
    expected = alone * 1.0
    for i in range(number):
        write(lines[i], expected, alone, 2 * i)
    weights = vg.Tensor(np.cos(np.arange(2.0 * number)))
    (wanted,), (found,) = vg.autograd.grad(expected, alone, weights), vg.autograd.grad(y, x, weights)
    if not np.allclose(y.detach(), expected.detach()) or not np.allclose(found, wanted):
        raise Wrong(f"threads that wrote to parts of one tensor gave {found}, not {wanted}: {lines}, {seed}")


def write(lines, y, x, start) -> None:
    """Run lines on two elements of a tensor."""
    for line in lines:
        text = line.replace("w", "y[a:b]").replace("u", "x[a:b]")
        exec(code_of(text), {"y": y, "x": x, "a": start, "b": start + 2})
