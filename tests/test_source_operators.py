"""Elementwise operators in programs from source, read from their rows."""

import itertools
import linecache

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.compiler.scalar_rules import OPERATOR_RULES
from viewgrad.compiler.source.library import ROWS
from viewgrad.operators.define import OPERATORS

FLOATS = [np.array([0.3, 0.45, 0.6]), np.array([0.4, 0.2, 0.7]), np.array([0.1, 0.8, 0.9])]
INTEGERS = [np.array([4, 6, 9]), np.array([6, 2, 3])]
OF_INTEGERS = {"bitwise_count", "gcd", "lcm", "left_shift", "right_shift"}
LOOP = """\
def f({names}):
    total = 0.0
    for i in range(len(x)):
        total = total + vg.{row}({elements})
    return total
"""
ARRAYS = """\
def f({names}):
    return (vg.{row}({names}) * 1.0).sum()
"""
_numbers = itertools.count()


def function_of(text, row):
    names = ("x", "y", "z")[: len(OPERATORS[row].signature.tensors)]
    text = text.format(names=", ".join(names), row=row, elements=", ".join(f"{name}[i]" for name in names))
    file = f"<rows {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"vg": vg}
    exec(compile(text, file, "exec"), space)
    return space["f"], len(names)


def value_and_gradients(function, given):
    leaves = [vg.Tensor(each, requires_grad=each.dtype.kind == "f") for each in given]
    value = function(*leaves)
    if not isinstance(value, vg.Tensor) or not value.requires_grad:
        return [float(value), *[np.zeros(each.shape) for each in given]]
    gradients = vg.autograd.grad(value, leaves, materialize_grads=True)
    return [float(value.detach()), *[each.numpy() for each in gradients]]


@pytest.mark.parametrize("text", [LOOP, ARRAYS], ids=["elements", "arrays"])
def test_elementwise_operators_without_kernels_are_compiled_too(text):
    rows = sorted(ROWS - set(OPERATOR_RULES))
    assert {"xlogy", "i0", "erfinv", "lcm"} <= set(rows) and len(rows) > 40
    refused = []
    for row in rows:
        f, count = function_of(text, row)
        given = (INTEGERS if row in OF_INTEGERS else FLOATS)[:count]
        compiled = vg.compile(f, executor="python", specialize=False, check=False)
        for one, other in zip(value_and_gradients(compiled, given), value_and_gradients(f, given), strict=True):
            np.testing.assert_allclose(one, other, 1e-12, err_msg=row)
        refused += [row] if "not compiled" in compiled.explain() else []
    assert refused == ["bitwise_count"]  # it returns uint8
