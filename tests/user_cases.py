"""Programs of users, strategies for their arguments, and comparisons with NumPy, eager runs and differences."""

from __future__ import annotations

import numpy as np

import viewgrad as vg

CASES = {}


def case(draw, sizes=(6, 9), seeds=(1, 2, 3), tol=2e-5):
    """Register a program; `draw(rng, size)` returns its arguments; `tol` is the tolerance of its slope."""

    def add(program):
        assert program.__name__ not in CASES, program.__name__
        CASES[program.__name__] = (program, draw, sizes, seeds, tol)
        return program

    return add


def vector(rng, n):
    return rng.normal(size=n)


def positive(rng, n):
    return 0.5 + rng.random(n)


def matrix(rng, n, m=None):
    return rng.normal(size=(n, n if m is None else m))


def definite(rng, n):
    b = rng.normal(size=(n, n))
    return b @ b.T + n * np.eye(n)


def leaves(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [leaf for each in tree for leaf in leaves(each)]
    return [] if tree is None else [tree]


def reduced(result):
    """Return a weighted sum of the results of a program."""
    total = 0.0
    for number, leaf in enumerate(leaves(result)):
        array = np.asarray(leaf.detach() if hasattr(leaf, "detach") else leaf)
        weights = np.random.default_rng(number).normal(size=array.shape)
        if array.dtype.kind == "c":
            total = total + (leaf.real * weights).sum() + (leaf.imag * weights * 0.7).sum()
        elif array.dtype.kind in "bi":
            total = total + float(array.sum()) * 0.01
        else:
            total = total + ((leaf * weights).sum() if array.ndim else leaf * float(weights))
    return total


def is_float(value):
    return isinstance(value, (float, np.floating)) or (isinstance(value, np.ndarray) and value.dtype.kind in "fc")


def fresh(arguments):
    return [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]


def moved(arguments, directions, step):
    found = fresh(arguments)
    for number, direction in directions.items():
        value = arguments[number] + step * direction
        found[number] = np.asarray(value, arguments[number].dtype) if isinstance(value, np.ndarray) else float(value)
    return found


def check(name, executor):
    """Compare a compiled program in three calls of two sizes; return its report on itself."""
    program, draw, sizes, seeds, tol = CASES[name]
    compiled = vg.compile(program, executor=executor, specialize=False, check=False)
    single = tol > 1e-4
    for call in range(3):
        arguments = draw(np.random.default_rng(seeds[call % len(seeds)]), sizes[call % len(sizes)])
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        floats = tuple(number for number, each in enumerate(arguments) if is_float(each))
        both = [vg.func.value_and_grad(lambda *args, f=f: reduced(f(*args)), floats)(*fresh(arguments))
                for f in (compiled, program)]
        with np.errstate(all="ignore"):
            expected = float(reduced(program(*fresh(arguments))))
        np.testing.assert_allclose(float(both[0][0]), expected, 1e-4 if single else 1e-8, 1e-10)
        for mine, theirs in zip(both[0][1], both[1][1]):
            np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), 2e-3 if single else 1e-7, tol * 1e-4)
        rng = np.random.default_rng(99)
        directions = {number: np.asarray(rng.normal(size=np.shape(arguments[number])), np.asarray(
            arguments[number]).dtype)[()] for number in floats}
        step = 1e-2 if single else 1e-6
        with np.errstate(all="ignore"):
            after, before = [float(reduced(program(*moved(arguments, directions, way * step)))) for way in (1, -1)]
        slope = sum(float(np.sum(np.real(np.asarray(gradient) * directions[number])))
                    for number, gradient in zip(floats, both[0][1]))
        np.testing.assert_allclose(slope, (after - before) / (2 * step), tol, tol)
    return compiled.explain()
