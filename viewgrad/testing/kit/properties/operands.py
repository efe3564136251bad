"""Other operands of the same values: some that require grad, one tensor twice, other layouts in memory."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from ....errors import DifferentiabilityError
from ..failure import Failure
from ..layouts import FOREIGN_LAYOUTS, INPUT_LAYOUTS, OVERLAPS, fits
from ..plain import Plain, plain_results
from ..subject import Refused

__all__ = ["input_layouts", "same_twice", "subsets", "used_elsewhere"]

Array = np.ndarray[Any, Any]


def subsets(plain: Plain) -> int:
    """Each set of arguments that require grad gets the gradients that it gets among all."""
    wanted = plain.example.wanted
    if len(wanted) < 2 or not plain.outputs:
        return 0
    sizes = range(1, len(wanted)) if len(wanted) <= 4 else (1, len(wanted) - 1)
    count = 0
    for size in sizes:
        for chosen in itertools.combinations(wanted, size):
            script = plain.script("every subset of arguments that require grad", chosen)
            numbers = [i for i in plain.outputs if script[f"y{plain.paths[i]}"].requires_grad]
            told = " and ".join(plain.example.named(k) for k in chosen)
            if not numbers:
                if all(not plain.gradients[wanted.index(k)].any() for k in chosen):
                    continue
                script.lines.append(f"assert y{plain.paths[plain.outputs[0]]}.requires_grad")
                script.fail(f"where only {told} requires grad, no result does")
            script.do(plain.gradient_line("g", outputs=numbers, slots=chosen))
            if len(numbers) == len(plain.outputs):
                plain.expect_gradients(
                    script,
                    slots=chosen,
                    oracle="a call in which all do",
                    what=f"where only {told} requires grad, the gradient",
                )
            count += 1
            # The same, asked for one by one of a graph in which all require grad.
            script = plain.script("every subset of arguments that require grad")
            script.do(plain.gradient_line("g", slots=chosen))
            plain.expect_gradients(
                script,
                slots=chosen,
                oracle="all of them asked for",
                what=f"where only {told} is asked for, the gradient",
            )
            count += 1
    return count


def used_elsewhere(plain: Plain) -> int:
    """What else is computed from the arguments gets the gradient that it gets without the operator."""
    example = plain.example
    if not plain.outputs or plain.subject.written:
        return 0
    script = plain.script("arguments used elsewhere")
    others = [f"x{k} * 1.0" for k in example.wanted]
    ones = [f"vg.ones(x{k}.shape, dtype=x{k}.dtype)" for k in example.wanted]
    outputs = ", ".join([*(f"y{plain.paths[i]}" for i in plain.outputs), *others])
    given = ", ".join([*(f"vg.Tensor(u{i})" for i in plain.outputs), *ones])
    script.do(f"g = grad([{outputs}], [{', '.join(f'x{k}' for k in example.wanted)}], [{given}])")
    for n, k in enumerate(example.wanted):
        size = max(1.0, float(np.abs(plain.gradients[n]).max(initial=0.0)))
        script.expect(
            f"g[{n}]",
            plain.gradients[n] + 1,
            f"where {example.named(k)} is also used elsewhere, with a gradient of ones, the gradient",
            "the sum of the two",
            rtol=plain.loose(1e-9),
            atol=plain.loose(1e-11) * size,
        )
    return 1


def same_twice(plain: Plain) -> int:
    """Where several arguments are one tensor, or overlapping views of one, gradients add up."""
    example = plain.example
    title = "the same tensor twice"
    count = 0
    if not plain.outputs or plain.subject.written:
        return 0
    for a, b in itertools.combinations(example.wanted, 2):
        one, other = example.arrays[a], example.arrays[b]
        if one.dtype != other.dtype:
            continue
        arrays = list(example.arrays)
        arrays[a] = arrays[b] = one if one.size >= other.size else other
        changed = example.with_arrays(arrays)
        for kind in ("the same tensor", "a tensor and a view of it"):
            try:
                apart = plain_results(plain.subject, changed, title)
            except Refused:
                continue
            if not apart.outputs or not apart.finite:
                continue
            script = apart.script(title, called=False)
            second = f"x{a}" if kind == "the same tensor" else f"x{a}[...]"
            text = script.expression()
            text = re.sub(rf"\bx{b}\b", second, text)
            script.call(f"y = {text}")
            apart.expect_values(script, oracle="two tensors of the same values")
            script.do(apart.gradient_line("g"))
            i, j = example.wanted.index(a), example.wanted.index(b)
            total = apart.gradients[i] + apart.gradients[j]
            script.expect(
                f"g[{i}]",
                total,
                f"for {kind} as {example.named(a)} and {example.named(b)}, the gradient",
                "the sum of the two gradients",
                rtol=plain.loose(1e-9),
                atol=plain.loose(1e-11) * max(1.0, float(np.abs(total).max(initial=0.0))),
            )
            count += 1
    return count


def input_layouts(plain: Plain) -> int:
    """The arguments may lie in memory in any way."""
    example = plain.example
    count = 0
    for name, line in (INPUT_LAYOUTS if plain.subject.written else INPUT_LAYOUTS | FOREIGN_LAYOUTS).items():
        chosen = [k for k, array in enumerate(example.arrays) if fits(name, array)]
        if not chosen:
            continue
        script = plain.script(f"layouts of arguments ({name})", called=False)
        for k in range(len(example.arrays)):
            if k in chosen:
                script.do(*line.format(a=f"x{k}", n=f"a{k}", v=f"v{k}", b=f"b{k}").split("; "))
                if name in FOREIGN_LAYOUTS:
                    script.do(f"x{k} = v{k}{'.requires_grad_()' if k in example.wanted else ''}")
            else:
                script.do(f"v{k} = x{k}{'.clone()' if k in plain.subject.written else ''}")
        try:
            script.call(f"y = {script.expression('v{}')}")
        except Refused:
            continue
        plain.expect_values(script, oracle="the call on tensors of their own")
        if plain.outputs:
            script.do(plain.gradient_line("g"))
            plain.expect_gradients(
                script, oracle="the call on tensors of their own", what=f"for arguments {name}, the gradient"
            )
        count += 1
    return count + (0 if plain.subject.written else _overlapping(plain))


def _overlapping(plain: Plain) -> int:
    """Arguments whose elements share places: the same call on a copy without sharing is the reference."""
    example = plain.example
    count = 0
    for name, (wide, line) in OVERLAPS.items():
        for k in example.wanted:
            array = example.arrays[k]
            if not array.ndim or not array.size:
                continue
            script = plain.script(f"layouts of arguments ({name})", called=False)
            source = wide(array)
            script.let(f"a{k}", source)
            script.do(
                f"x{k} = vg.Tensor(a{k}, requires_grad=True)",
                f"v{k} = {line.format(a=f'x{k}', shape=array.shape)}",
                f"w{k} = v{k}.clone()",
            )
            for j in range(len(example.arrays)):
                if j != k:
                    script.do(f"v{j} = w{j} = x{j}")
            try:
                script.call(f"y = {script.expression('v{}')}")
                script.call(f"copied = {script.expression('w{}')}")
            except Refused:
                continue
            told = f"of {example.named(k)} {name}"
            if [script[f"y{path}"].shape for path in plain.paths] != [value.shape for value in plain.values]:
                continue
            plain.same_results(script, "y", "copied", told, "the call on a copy", rtol=1e-9, atol=1e-11)
            if plain.outputs and all(script[f"copied{plain.paths[i]}"].requires_grad for i in plain.outputs):
                try:
                    script.do(plain.gradient_line("h", "copied"))
                except Failure as failure:
                    if isinstance(failure.__cause__, ArithmeticError | np.linalg.LinAlgError | DifferentiabilityError):
                        continue  # rows that are all alike make a singular matrix
                    raise
                script.do(plain.gradient_line("g"))
                plain.same_gradients(script, "g", "h", f"a call {told}", "the call on a copy")
            count += 1
    return count
