"""Other operands with the same values: subsets that require grad, one tensor used twice, other memory layouts."""

from __future__ import annotations

import contextlib
import itertools
import re

import numpy as np

from ..arguments import Example
from ..baseline import Baseline, baseline_results
from ..failure import Failure
from ..layouts import FOREIGN_LAYOUTS, INPUT_LAYOUTS, OVERLAPS, fits
from ..operator_under_test import Refused


def subsets(baseline: Baseline) -> int:
    """Compare each subset of arguments that require grad with all of them."""
    wanted = baseline.example.wanted
    if len(wanted) < 2 or not baseline.outputs:
        return 0
    sizes = range(1, len(wanted)) if len(wanted) <= 4 else (1, len(wanted) - 1)
    count = 0
    for size in sizes:
        for chosen in itertools.combinations(wanted, size):
            script = baseline.script("every subset of arguments that require grad", chosen)
            numbers = [i for i in baseline.outputs if script[f"y{baseline.paths[i]}"].requires_grad]
            told = " and ".join(baseline.example.named(k) for k in chosen)
            if not numbers:
                if all(not baseline.gradients[wanted.index(k)].any() for k in chosen):
                    continue
                script.lines.append(f"assert y{baseline.paths[baseline.outputs[0]]}.requires_grad")
                script.fail(f"if only {told} requires grad, no result does")
            script.do(baseline.gradient_line("g", outputs=numbers, slots=chosen))
            if len(numbers) == len(baseline.outputs):
                baseline.expect_gradients(
                    script,
                    slots=chosen,
                    oracle="if all do",
                    what=f"where only {told} requires grad, the gradient",
                )
            count += 1
            # The same gradients, requested one by one from a graph in which all require grad.
            script = baseline.script("every subset of arguments that require grad")
            script.do(baseline.gradient_line("g", slots=chosen))
            baseline.expect_gradients(
                script,
                slots=chosen,
                oracle="if all are asked for",
                what=f"where only {told} is asked for, the gradient",
            )
            count += 1
    return count


def used_elsewhere(baseline: Baseline) -> int:
    """Check the gradients of other computations on the same arguments."""
    example = baseline.example
    if not baseline.outputs or baseline.subject.written:
        return 0
    script = baseline.script("arguments used elsewhere")
    others = [f"x{k} * 1.0" for k in example.wanted]
    ones = [f"vg.ones(x{k}.shape, dtype=x{k}.dtype)" for k in example.wanted]
    outputs = ", ".join([*(f"y{baseline.paths[i]}" for i in baseline.outputs), *others])
    given = ", ".join([*(f"vg.Tensor(u{i})" for i in baseline.outputs), *ones])
    script.do(f"g = grad([{outputs}], [{', '.join(f'x{k}' for k in example.wanted)}], [{given}])")
    for n, k in enumerate(example.wanted):
        size = max(1.0, float(np.abs(baseline.gradients[n]).max(initial=0.0)))
        script.expect(
            f"g[{n}]",
            baseline.gradients[n] + 1,
            f"where {example.named(k)} is also used elsewhere, with a gradient of ones, the gradient",
            "the sum of the two",
            rtol=baseline.loose(1e-9),
            atol=baseline.loose(1e-11) * size,
        )
    return 1


def same_twice(baseline: Baseline) -> int:
    """Check that gradients add up if several arguments are one tensor, or views of one."""
    example = baseline.example
    count = 0
    if not baseline.outputs or baseline.subject.written:
        return 0
    for a, b in itertools.combinations(example.wanted, 2):
        one, other = example.arrays[a], example.arrays[b]
        if one.dtype != other.dtype or one.shape != other.shape:
            continue
        arrays = list(example.arrays)
        arrays[b] = one
        changed = example.with_arrays(arrays)
        for kind in ("the same tensor", "a tensor and a view of it"):
            with contextlib.suppress(Refused):
                count += _one_for_two(baseline, changed, a, b, kind)
    return count


def _one_for_two(baseline: Baseline, changed: Example, a: int, b: int, kind: str) -> int:
    """Compare one tensor, or a tensor and its view, in two slots with two separate tensors."""
    title = "the same tensor twice"
    try:
        apart = baseline_results(baseline.subject, changed, title)
    except Failure as failure:
        raise Refused("the backward pass refuses equal arguments") from failure
    if not apart.outputs or not apart.finite:
        return 0
    script = apart.script(title, called=False, derived=True)
    second = f"x{a}" if kind == "the same tensor" else f"x{a}[...]"
    text = re.sub(rf"\bx{b}\b", second, script.expression())
    script.call(f"y = {text}")
    apart.expect_values(script, oracle="two tensors of the same values")
    script.do(apart.gradient_line("g"))
    i, j = changed.wanted.index(a), changed.wanted.index(b)
    total = apart.gradients[i] + apart.gradients[j]
    script.preamble = apart.plain_call(of_gradients=True)
    computed = apart.literal and apart.gradients[i].any() and apart.gradients[j].any()
    script.expect(
        f"g[{i}]",
        total,
        f"for {kind} as {changed.named(a)} and {changed.named(b)}, the gradient",
        "the sum of the two gradients",
        rtol=baseline.loose(1e-9),
        atol=baseline.loose(1e-11) * max(1.0, float(np.abs(total).max(initial=0.0))),
        by=f"(slopes[{i}] + slopes[{j}]).numpy()" if computed else "",
    )
    return 1


def input_layouts(baseline: Baseline) -> int:
    """Check arguments with various memory layouts."""
    example = baseline.example
    count = 0
    for name in INPUT_LAYOUTS if baseline.subject.written else INPUT_LAYOUTS | FOREIGN_LAYOUTS:
        chosen = [k for k, array in enumerate(example.arrays) if fits(name, array)]
        if chosen:
            with contextlib.suppress(Refused):
                count += _in_layout(baseline, name, chosen)
    return count + (0 if baseline.subject.written else _overlapping(baseline))


def _in_layout(baseline: Baseline, name: str, chosen: list[int]) -> int:
    """Check the arguments in some slots with one memory layout."""
    example, line = baseline.example, (INPUT_LAYOUTS | FOREIGN_LAYOUTS)[name]
    script = baseline.script(f"layouts of arguments ({name})", called=False, derived=True)
    for k in range(len(example.arrays)):
        if k in chosen:
            script.do(*line.format(a=f"x{k}", n=f"a{k}", v=f"v{k}", b=f"b{k}").split("; "))
            if name in FOREIGN_LAYOUTS:
                script.do(f"x{k} = v{k}{'.requires_grad_()' if k in example.wanted else ''}")
        else:
            script.do(f"v{k} = x{k}{'.clone()' if k in baseline.subject.written else ''}")
    script.call(f"y = {script.expression('v{}')}")
    baseline.expect_values(script, oracle="the call on tensors of their own")
    if baseline.outputs:
        script.do(baseline.gradient_line("g"))
        baseline.expect_gradients(
            script, oracle="the call on tensors of their own", what=f"for arguments {name}, the gradient"
        )
    return 1


def _overlapping(baseline: Baseline) -> int:
    """Compare arguments whose elements share memory with copies that do not."""
    example = baseline.example
    count = 0
    for name, k in itertools.product(OVERLAPS, example.wanted):
        if example.arrays[k].ndim and example.arrays[k].size:
            with contextlib.suppress(Refused):
                count += _in_overlap(baseline, name, k)
    return count


def _in_overlap(baseline: Baseline, name: str, k: int) -> int:
    """Check one argument whose elements share memory."""
    example, array = baseline.example, baseline.example.arrays[k]
    wide, line = OVERLAPS[name]
    script = baseline.script(f"layouts of arguments ({name})", called=False, derived=True)
    script.let(f"a{k}", wide(array))
    script.do(
        f"x{k} = vg.Tensor(a{k}, requires_grad=True)",
        f"v{k} = {line.format(a=f'x{k}', shape=array.shape)}",
        f"w{k} = v{k}.clone()",
    )
    for j in range(len(example.arrays)):
        if j != k:
            script.do(f"v{j} = w{j} = x{j}")
    script.call(f"y = {script.expression('v{}')}")
    script.call(f"copied = {script.expression('w{}')}")
    told = f"of {example.named(k)} {name}"
    if [script[f"y{path}"].shape for path in baseline.paths] != [value.shape for value in baseline.values]:
        return 0
    baseline.same_results(script, "y", "copied", told, "the call on a copy", rtol=1e-9, atol=1e-11)
    if baseline.outputs and all(script[f"copied{baseline.paths[i]}"].requires_grad for i in baseline.outputs):
        script.do(baseline.gradient_line("h", "copied"))
        script.do(baseline.gradient_line("g"))
        baseline.same_gradients(script, "g", "h", f"a call {told}", "the call on a copy")
    return 1
