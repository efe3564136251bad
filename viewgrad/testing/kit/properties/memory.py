"""Memory ownership: unmodified arguments, results that are views, and writes after the call."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import ViewInPlaceError
from ....type_aliases import Array
from ..arguments import Slot, slots_in
from ..baseline import Baseline
from ..failure import Failure
from ..literals import display
from ..script import Script


def untouched(baseline: Baseline) -> int:
    """Check that the arguments are unchanged, with and without recording, except by an in-place form."""
    title = "arguments are not modified"
    example = baseline.example
    slots = range(len(example.arrays))
    kept = [k for k in slots if k not in baseline.subject.written]
    count = 0
    for told, wanted in (
        ("all require grad", example.wanted),
        ("none requires grad", ()),
        ("under no_grad", example.wanted),
    ):
        script = baseline.script(title, wanted, called=False)
        script.do(*(f"v{k} = x{k}{'' if k in kept else '.clone()'}" for k in slots))
        script.do(f"versions = [{', '.join(f'v{k}._version' for k in slots)}]")
        script.call(f"{'with vg.no_grad(): ' if told == 'under no_grad' else ''}y = {script.expression('v{}')}")
        _unchanged(baseline, script, kept, f"({told}) after the call", versions=True)
        baseline.expect_values(script, oracle="a plain call")
        if told == "all require grad" and baseline.outputs:
            script.do(baseline.gradient_line(), baseline.gradient_line())
            _unchanged(baseline, script, kept, "after the backward pass", versions=True)
            baseline.expect_values(script, oracle="before the backward pass", rtol=0.0, atol=0.0)
        for k in kept:
            script.require(
                f"x{k}.requires_grad is {k in wanted} and x{k}.grad is None",
                f"the call changed requires_grad or grad of {example.named(k)}",
            )
        count += 1
    # Lists and dicts among the arguments keep their items.
    for place, value in example.placed:
        if type(value) in (list, dict) and not slots_in(value):
            script = baseline.script(title, called=False)
            script.let("container", copy.deepcopy(value))
            script.let("before", copy.deepcopy(value))
            text = script.expression("x{}")
            inner = _argument_text(baseline, place)
            script.call(f"y = {text.replace(inner, 'container', 1)}")
            told = f"the list or dict given as {example.place_named(place)} was changed"
            script.require("repr(container) == repr(before)", told)
            count += 1
        elif type(value) in (list, dict):
            script = baseline.script(title, called=False)
            holder = script.expression("x{}")
            inner = _argument_text(baseline, place)
            script.do(f"container = {inner}", "before = type(container)(container)")
            script.call(f"y = {holder.replace(inner, 'container', 1)}")
            script.require(
                "len(container) == len(before) and all(a is b for a, b in zip(container.values() if isinstance("
                "container, dict) else container, before.values() if isinstance(before, dict) else before))",
                f"the list or dict given as {example.place_named(place)} was changed",
            )
            count += 1
    return count


def _unchanged(baseline: Baseline, script: Script, slots: Sequence[int], when: str, *, versions: bool) -> None:
    """Check that the arguments in the given slots are unchanged, bit by bit."""
    for k in slots:
        named = baseline.example.named(k)
        array = baseline.example.arrays[k]
        script.expect(f"v{k}", array, f"{when}, {named}", "its value before", rtol=0.0, atol=0.0)
        if versions:
            script.require(
                f"v{k}._version == versions[{k}]", f"{when}, the version of {named} has changed: it was written to"
            )


def _argument_text(baseline: Baseline, place: Any) -> str:
    example = baseline.example
    value = example.args[place] if isinstance(place, int) else example.kwargs[place]

    def text(item: Any) -> str:
        if isinstance(item, Slot):
            return f"x{item.number}"
        return display(item, text) or repr(item)

    return text(value)


def result_memory(baseline: Baseline) -> int:
    """Check that a result sharing memory with an argument is a view of it, and that results share no memory."""
    if baseline.subject.written:
        return 0
    title = "memory shared with arguments"
    count = 0
    example = baseline.example
    views: list[tuple[int, int]] = []
    for mode in ("recorded", "unrecorded"):
        views = _undeclared(baseline, title, mode == "recorded") or views
        count += 1
    _calls_apart(baseline, title, views)
    count += 1
    for i, k in views:
        if k in example.wanted and i in baseline.outputs:
            count += _writes_go_both_ways(baseline, title, i, k)
    return count


def _undeclared(baseline: Baseline, title: str, recorded: bool) -> list[tuple[int, int]]:
    """Fail for undeclared shared memory; return the results that are views, with their arguments."""
    example = baseline.example
    script = baseline.script(title, example.wanted if recorded else ())
    views = []
    for i, path in enumerate(baseline.paths):
        for k in range(len(example.arrays)):
            y, x = script[f"y{path}"], script[f"x{k}"]
            if y is x or not np.shares_memory(y._array, x._array):
                continue
            same = y._storage is not None and y._storage is x._storage
            if not same or (recorded and k in example.wanted and i in baseline.outputs and y._view is None):
                script.lines.append(f"assert not np.shares_memory(y{path}._array, x{k}._array)")
                script.fail(
                    f"result {i} shares memory with {example.named(k)}, and is not known to be a view of it: a "
                    "write to one changes the other unnoticed; return a view taken by the library, or a copy"
                )
            if recorded:
                views.append((i, k))
    for (i, one), (j, other) in itertools.combinations(enumerate(baseline.paths), 2):
        y, z = script[f"y{one}"], script[f"y{other}"]
        if y is not z and np.shares_memory(y._array, z._array) and y._storage is not z._storage:
            script.lines.append(f"assert not np.shares_memory(y{one}._array, y{other}._array)")
            script.fail(f"results {i} and {j} share memory, and are not known to be views of the same tensor")
    return views


def _calls_apart(baseline: Baseline, title: str, views: Sequence[tuple[int, int]]) -> None:
    """Check that results of two calls share no memory."""
    script = baseline.script(title, ())
    for k in range(len(baseline.example.arrays)):
        script.do(f"z{k} = vg.Tensor(a{k})")
    script.call(f"other = {script.expression('z{}')}")
    for i, path in enumerate(baseline.paths):
        if np.shares_memory(script[f"y{path}"]._array, script[f"other{path}"]._array):
            script.lines.append(f"assert not np.shares_memory(y{path}._array, other{path}._array)")
            script.fail(
                f"result {i} of one call shares memory with the next one: the second call overwrites the first result"
            )
    for i, path in enumerate(baseline.paths):
        if script[f"y{path}"]._array.flags.writeable and not any(v[0] == i for v in views):
            script.do(f"y{path}._array[...] = 0" if script[f"y{path}"].shape else "pass")
    script.call(f"again = {script.expression('z{}')}")
    for i, path in enumerate(baseline.paths):
        script.expect(
            f"again{path}",
            baseline.values[i],
            f"after the result of an earlier call was overwritten, result {i}",
            "a plain call",
        )


def _writes_go_both_ways(baseline: Baseline, title: str, i: int, k: int) -> int:
    """Check that a write to a view also writes to the argument and vice versa, including gradients."""
    example, path = baseline.example, baseline.paths[i]
    count = 0
    names = "v{}"
    # After a write to the argument, the result must be as if it had been computed afterwards.
    script = baseline.script(title, called=False)
    script.do(*(f"v{j} = x{j}{'.clone()' if j == k else ''}" for j in range(len(example.arrays))))
    script.call(f"y = {script.expression(names)}")
    script.do(f"v{k}.mul_(v{k} + 3.0)")
    script.call(f"later = {script.expression(names)}")
    script.expect(
        f"y{path}",
        script[f"later{path}"]._array.copy(),
        "after a write to the argument, the view",
        "the view taken afterwards",
    )
    try:
        script.do(baseline.gradient_line("g", "y", outputs=[i]))
    except Failure as failure:
        if not isinstance(failure.__cause__, ViewInPlaceError):
            raise
    else:
        script.do(baseline.gradient_line("h", "later", outputs=[i]))
        baseline.same_gradients(script, "g", "h", "the view after a write to the argument", "the view taken afterwards")
    count += 1
    # A write to the result must be visible in the argument.
    script = baseline.script(title, called=False)
    script.do(*(f"v{j} = x{j}{'.clone()' if j == k else ''}" for j in range(len(example.arrays))))
    script.call(f"y = {script.expression(names)}")
    if script[f"y{path}"]._array.size == 0 or _repeats(script[f"y{path}"]._array):
        return count
    before = script[f"v{k}"]._array.copy()
    try:
        script.lines.append(f"y{path}.mul_(2.0)")
        script[f"y{path}"].mul_(2.0)
    except RuntimeError:
        return count  # refused, hence not silently wrong
    changed = script[f"v{k}"]._array != before
    if not changed.any() and before.any() and script[f"y{path}"]._array.any():
        script.fail("a write to the view does not show in the argument")
    script.do(f"total = (v{k} * v{k}).sum()")
    names_of = ", ".join(f"x{j}" for j in example.wanted)
    if script["total"].dtype.kind == "c":
        return count
    script.do(f"g = grad(total, [{names_of}], allow_unused=True)")
    factor = np.where(changed, 4.0, 1.0)
    n = example.wanted.index(k)
    script.expect(
        f"g[{n}]",
        (2 * factor * example.arrays[k]).astype(example.arrays[k].dtype),
        "after a write through the view, the gradient of the argument",
        "what was written",
    )
    return count + 1


def _repeats(array: Array) -> bool:
    return any(stride == 0 and n > 1 for stride, n in zip(array.strides, array.shape, strict=True))


def overwritten(baseline: Baseline) -> int:
    """Check that writes to arguments and results after the call do not change gradients."""
    if not baseline.outputs:
        return 0
    example = baseline.example
    count = 0
    slots = range(len(example.arrays))
    for what in ("arguments", "results", "arguments, unrecorded", "results, unrecorded"):
        script = baseline.script(f"overwritten afterwards: {what}", called=False)
        script.do(*(f"v{k} = x{k}.clone()" for k in slots))
        script.call(f"y = {script.expression('v{}')}")
        for i in baseline.outputs:
            script.do(f"z{i} = y{baseline.paths[i]} * 1.0")
        if what.startswith("arguments"):
            targets = [f"v{k}" for k in slots if example.arrays[k].size]
        else:
            targets = [f"y{path}" for path in baseline.paths if not _repeats(script[f"y{path}"]._array)]
        for target in targets:
            value = "1 - " + target if script[target].dtype.kind in "iu" else ""
            detached = f"{target}.detach()" if what.endswith("unrecorded") else target
            fill = (
                f"{detached}[...] = {value}"
                if value
                else f"{detached}.fill_({True if script[target].dtype.kind == 'b' else 7.0})"
            )
            if not script[target].shape and not what.startswith("arguments"):
                continue  # a number, which cannot be written to
            try:
                exec(fill, script.names)
                script.lines.append(fill)
            except RuntimeError:
                continue  # refused
            except Exception:
                continue
        outputs = ", ".join(f"z{i}" for i in baseline.outputs)
        given = ", ".join(f"vg.Tensor(u{i})" for i in baseline.outputs)
        names = ", ".join(f"x{k}" for k in example.wanted)
        script.do(f"g = grad([{outputs}], [{names}], [{given}], allow_unused=True)")
        baseline.expect_gradients(
            script, oracle="without the writes", what=f"after {what} were overwritten, the gradient"
        )
        count += 1
    return count
