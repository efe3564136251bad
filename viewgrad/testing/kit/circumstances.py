"""A call in other circumstances, in which its values and gradients must stay what they are.

Each property is a function of the plain results of a call. It runs programs, and returns how many.
"""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...errors import ViewInPlaceError
from ...tensor.modes import no_grad
from ...tensor.tensor import Tensor
from .arguments import Slot, outputs_of, slots_in
from .failure import Failure
from .layouts import FOREIGN_LAYOUTS, GRADIENT_LAYOUTS, INPUT_LAYOUTS, OVERLAPS, fits
from .plain import Plain, plain_results
from .script import Script
from .subject import Refused, quiet

__all__ = ["CIRCUMSTANCES"]

Array = np.ndarray[Any, Any]
Property = Callable[[Plain], int]


# -- calling again -----------------------------------------------------------------------------------------------------


def repeatable(plain: Plain) -> int:
    """The same call gives the same again, also after calls with other values."""
    title = "state between calls"
    example = plain.example
    script = plain.script(title)
    script.do(plain.gradient_line())
    script.call(f"again = {script.expression()}")
    script.do(plain.gradient_line("h", "again"))
    for i, path in enumerate(plain.paths):
        script.expect(
            f"again{path}",
            script[f"y{path}"]._array.copy(),
            f"result {i} of a second call",
            "the first call",
            rtol=plain.loose(1e-12),
            atol=plain.loose(1e-12),
        )
    _same_gradients(plain, script, "h", "g", "a second call with the same arguments", "the first")
    script = plain.script(title, called=False)
    for k, array in enumerate(example.arrays):
        script.let(f"b{k}", _other(array) if k in example.wanted else array)
        script.do(f"z{k} = vg.Tensor(b{k}{', requires_grad=True' if k in example.wanted else ''})")
    script.call(f"y = {script.expression()}")
    try:
        script.call(f"other = {script.expression(_operand(plain, 'z{}'))}")
    except Refused:
        return 1
    script.do(*(f"kept{i} = y{path}.detach().numpy().copy()" for i, path in enumerate(plain.paths)))
    # Two calls before one backward pass, in both orders.
    script.do(plain.gradient_line())
    plain.expect_gradients(script, oracle="a call alone", what="after another call with other values, the gradient")
    for i, path in enumerate(plain.paths):
        script.expect(f"y{path}", plain.values[i], f"after a second call, result {i} of the first", "the first call")
    script.call(f"once_more = {script.expression()}")
    for i, path in enumerate(plain.paths):
        script.expect(
            f"once_more{path}",
            plain.values[i],
            f"after a call with other values, result {i}",
            "a call alone",
            rtol=plain.loose(1e-12),
            atol=plain.loose(1e-12),
        )
    script.do(plain.gradient_line("h", "once_more"))
    plain.expect_gradients(script, "h", oracle="a call alone", what="after calls with other values, the gradient")
    if plain.outputs:
        script.do(plain.gradient_line("of_other", "other", leaf="z{}"))
        script.call(f"alone = {script.expression(_operand(plain, 'z{}'))}")
        script.do(plain.gradient_line("of_alone", "alone", leaf="z{}"))
        _same_gradients(plain, script, "of_other", "of_alone", "a call between others", "the same call again")
    return 2 + _as_if_first(plain, title)


def _as_if_first(plain: Plain, title: str) -> int:
    """A call with other values gives what a fresh copy of the operator gives, which has not been called before."""
    fresh, other = plain.subject.fresh(), plain.subject.fresh()
    if fresh is None or other is None:
        return 0
    try:  # the copy must be one: it gives what the operator gave at first
        with quiet(), no_grad():
            copied = plain.example.call(other, [Tensor(array) for array in plain.example.arrays])
        values = [output._array for _, output in outputs_of(copied)]
        if not all(np.array_equal(one, two, equal_nan=True) for one, two in zip(values, plain.values, strict=True)):
            return 0
    except Exception:
        return 0
    script = plain.script(title, ())
    for k, array in enumerate(plain.example.arrays):
        script.let(f"b{k}", _other(array) if k in plain.example.wanted else array)
        script.do(f"z{k} = vg.Tensor(b{k})")
    try:
        with quiet(), no_grad():
            expected = plain.example.call(fresh, [Tensor(script[f"b{k}"]) for k in range(len(plain.example.arrays))])
    except Exception:
        return 0
    script.call(f"other = {script.expression('z{}')}")
    values = [output._array for _, output in outputs_of(expected)]
    if [value.shape for value in values] != [value.shape for value in plain.values]:
        return 0
    for i, (path, value) in enumerate(zip(plain.paths, values, strict=True)):
        script.expect(
            f"other{path}",
            value,
            f"after a call with other values, result {i}",
            "the operator called for the first time",
        )
    return 1


def _operand(plain: Plain, names: str) -> str:
    return names + ".clone()" if plain.subject.written else names


def _other(array: Array) -> Array:
    """Other values of the same kind: the same ones in another order, moved a little towards their mean."""
    if array.size < 2:
        return (array * 0.875).astype(array.dtype)
    turned = array.reshape(-1)[::-1].reshape(array.shape)
    return np.asarray(0.75 * turned + 0.25 * array).astype(array.dtype)


def _same_gradients(plain: Plain, script: Script, one: str, other: str, what: str, oracle: str) -> None:
    for i, k in enumerate(plain.example.wanted):
        expected = script[f"{other}[{i}]"]
        expected = None if expected is None else expected._array.copy()
        size = 1.0 if expected is None else max(1.0, float(np.abs(expected).max(initial=0.0)))
        script.expect(
            f"{one}[{i}]",
            expected,
            f"the gradient with respect to {plain.example.named(k)} of {what}",
            oracle,
            rtol=plain.loose(1e-11),
            atol=plain.loose(1e-12) * size,
        )


def run_twice(plain: Plain) -> int:
    """A graph that is kept can be run again."""
    script = plain.script("a graph run twice")
    script.do(plain.gradient_line("g"), plain.gradient_line("g"))
    plain.expect_gradients(script, oracle="the first backward pass", what="in a second backward pass, the gradient")
    script.do(plain.gradient_line("g", options=""))
    plain.expect_gradients(script, oracle="the first backward pass", what="in the last backward pass, the gradient")
    return 1


# -- the incoming gradient ---------------------------------------------------------------------------------------------


def linear(plain: Plain) -> int:
    """Gradients are linear in the incoming gradient: in its size, its sign and its direction."""
    title = "linear in the incoming gradient"
    count = 0
    for factor in (0.0, -1.0, 1e-12, 1e3, 1e-30, 1e12):
        script = plain.script(title)
        script.do(plain.gradient_line(starts=f"vg.Tensor({factor!r} * u{{}})"))
        plain.expect_gradients(
            script,
            factor=factor,
            oracle="the plain gradient times that",
            what=f"for an incoming gradient times {factor:g}, the gradient",
        )
        count += 1
    script = plain.script(title)
    for i in plain.outputs:
        other = np.roll(plain.starts[i].reshape(-1), 1).reshape(plain.starts[i].shape) * 0.7 - 0.2
        script.let(f"w{i}", other.astype(plain.starts[i].dtype))
    script.do(plain.gradient_line("g"), plain.gradient_line("h", starts="vg.Tensor(w{})"))
    script.do(plain.gradient_line("both", starts="vg.Tensor(u{0} + w{0})"))
    for i, k in enumerate(plain.example.wanted):
        parts = [script[f"{name}[{i}]"] for name in "gh"]
        total = sum((part._array for part in parts if part is not None), np.zeros_like(plain.gradients[i]))
        size = max((float(np.abs(part._array).max(initial=0.0)) for part in parts if part is not None), default=0.0)
        script.expect(
            f"both[{i}]",
            total.astype(plain.gradients[i].dtype),
            f"for the sum of two incoming gradients, the gradient with respect to {plain.example.named(k)}",
            "the sum of the gradients",
            rtol=plain.loose(1e-9),
            atol=plain.loose(1e-11) * max(size, 1.0),
        )
    return count + 1


def undefined(plain: Plain) -> int:
    """An output without gradient counts as one whose gradient is zero."""
    if len(plain.outputs) < 2:
        return 0
    count = 0
    for chosen in [[i] for i in plain.outputs] + [[j for j in plain.outputs if j != i] for i in plain.outputs]:
        script = plain.script("undefined gradients")
        script.do(plain.gradient_line("g", outputs=chosen))
        for i in set(plain.outputs) - set(chosen):
            script.let(f"u{i}", np.zeros_like(plain.starts[i]))
        script.do(plain.gradient_line("zeros"))
        told = ", ".join(map(str, chosen))
        _same_gradients(plain, script, "g", "zeros", f"the results {told} alone", "zeros as gradients of the others")
        count += 1
    # The parts add up to the whole.
    script = plain.script("undefined gradients")
    for i in plain.outputs:
        script.do(plain.gradient_line(f"part{i}", outputs=[i]))
    for n, k in enumerate(plain.example.wanted):
        total = " + ".join(f"(0 if part{i}[{n}] is None else part{i}[{n}].numpy())" for i in plain.outputs)
        script.do(f"total = np.asarray({total})")
        if script["total"].shape:
            script.expect(
                "total",
                plain.gradients[n],
                f"summed over results, the gradient with respect to {plain.example.named(k)}",
                "all of them at once",
                rtol=plain.loose(1e-9),
                atol=plain.loose(1e-10) * max(1.0, float(np.abs(plain.gradients[n]).max(initial=0.0))),
            )
    return count + 1


def gradient_layouts(plain: Plain) -> int:
    """The incoming gradient may lie in memory in any way."""
    count = 0
    for name, (make, equal) in GRADIENT_LAYOUTS.items():
        script = plain.script(f"layouts of incoming gradients ({name})")
        if equal:
            for i in plain.outputs:
                constant = 0.75 if plain.starts[i].dtype.kind == "f" else 0.75 - 0.5j
                script.let(f"u{i}", np.full(plain.starts[i].shape, constant, plain.starts[i].dtype))
            script.do(plain.gradient_line("plainly"))
        else:
            script.do(plain.gradient_line("plainly"))
        for i in plain.outputs:
            script.do(f"s{i} = {make.format(u=f'u{i}')}")
        script.do(plain.gradient_line("g", starts="s{}"))
        _same_gradients(plain, script, "g", "plainly", f"an incoming gradient {name}", "the same one in row order")
        for i in plain.outputs:
            script.expect(
                f"s{i}",
                script[f"u{i}"],
                "after the backward pass, the incoming gradient",
                "what it was before",
                rtol=0.0,
                atol=0.0,
            )
        count += 1
    # As it comes from further steps: from a sum, through a transposed and a reversed view.
    for name, line in (
        ("from a sum", "loss = {y}.sum()"),
        ("through a transposed view", "loss = ({y}.T * vg.Tensor({u}.T.copy())).sum()"),
        ("through a reversed view", "loss = ({y}.ravel()[::-1] * vg.Tensor({u}.ravel()[::-1].copy())).sum()"),
    ):
        for i in plain.outputs:
            script = plain.script(f"layouts of incoming gradients ({name})")
            script.do(
                line.format(y=f"y{plain.paths[i]}", u=f"u{i}").replace(
                    "vg.Tensor", "np.conj" if plain.starts[i].dtype.kind == "c" else "np.asarray"
                )
            )
            if name == "from a sum":
                script.do("loss = vg.real(loss) if loss.dtype.kind == 'c' else loss")
                start = f"vg.ones(u{i}.shape, dtype=u{i}.dtype)"
            else:
                script.do("loss = vg.real(loss) if loss.dtype.kind == 'c' else loss")
                start = f"vg.Tensor(u{i})"
            script.do(plain.gradient_line("plainly", outputs=[i], starts=start))
            names = ", ".join(f"x{k}" for k in plain.example.wanted)
            script.do(f"g = grad(loss, [{names}], allow_unused=True)")
            _same_gradients(plain, script, "g", "plainly", f"an incoming gradient {name}", "the same one given at once")
            count += 1
    return count


def gradient_untouched(plain: Plain) -> int:
    """The incoming gradient is neither kept nor written to, and the gradients are nobody else's memory."""
    title = "the incoming gradient stays the caller's"
    script = plain.script(title)
    for i in plain.outputs:
        script.do(f"s{i} = vg.from_numpy(u{i}.copy())")
    script.do(plain.gradient_line("g", starts="s{}"))
    for i in plain.outputs:
        script.expect(
            f"s{i}",
            plain.starts[i],
            "after the backward pass, the incoming gradient",
            "what it was before",
            rtol=0.0,
            atol=0.0,
        )
        script.require(f"s{i}._version == 0", "the incoming gradient was written to: its version has changed")
    script.do(*(f"s{i}.zero_()" for i in plain.outputs))
    plain.expect_gradients(
        script, oracle="before it was", what="after the incoming gradient was overwritten, the gradient"
    )
    script.do(*(f"g[{n}].mul_(0.0)" for n in range(len(plain.example.wanted)) if script[f"g[{n}]"] is not None))
    script.do(plain.gradient_line("h"))
    plain.expect_gradients(
        script,
        "h",
        oracle="the first pass",
        what="in a pass after the gradients of the first were overwritten, the gradient",
    )
    for k, array in enumerate(plain.example.arrays):
        if k not in plain.subject.written:
            script.expect(
                f"x{k}",
                array,
                f"after the gradients were overwritten, {plain.example.named(k)}",
                "what it was before",
                rtol=0.0,
                atol=0.0,
            )
    return 1


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


# -- memory ------------------------------------------------------------------------------------------------------------


def untouched(plain: Plain) -> int:
    """The arguments stay as they are, with and without recording, unless the operator is an in-place form."""
    title = "arguments are not modified"
    example = plain.example
    slots = range(len(example.arrays))
    kept = [k for k in slots if k not in plain.subject.written]
    count = 0
    for told, wanted in (
        ("all require grad", example.wanted),
        ("none requires grad", ()),
        ("under no_grad", example.wanted),
    ):
        script = plain.script(title, wanted, called=False)
        script.do(*(f"v{k} = x{k}{'' if k in kept else '.clone()'}" for k in slots))
        script.do(f"versions = [{', '.join(f'v{k}._version' for k in slots)}]")
        script.call(f"{'with vg.no_grad(): ' if told == 'under no_grad' else ''}y = {script.expression('v{}')}")
        _unchanged(plain, script, kept, f"({told}) after the call", versions=True)
        plain.expect_values(script, oracle="a plain call")
        if told == "all require grad" and plain.outputs:
            script.do(plain.gradient_line(), plain.gradient_line())
            _unchanged(plain, script, kept, "after the backward pass", versions=True)
            plain.expect_values(script, oracle="before the backward pass", rtol=0.0, atol=0.0)
        count += 1
    # Lists and dicts among the arguments keep their items.
    for place, value in [*enumerate(example.args), *example.kwargs.items()]:
        if type(value) in (list, dict) and slots_in(value):
            script = plain.script(title, called=False)
            holder = script.expression("x{}")
            inner = _argument_text(plain, script, place)
            script.do(f"container = {inner}", "before = type(container)(container)")
            script.call(f"y = {holder.replace(inner, 'container', 1)}")
            script.require(
                "len(container) == len(before) and all(a is b for a, b in zip(container.values() if isinstance("
                "container, dict) else container, before.values() if isinstance(before, dict) else before))",
                f"the list or dict given as argument {place!r} was changed",
            )
            count += 1
    return count


def _unchanged(plain: Plain, script: Script, slots: Sequence[int], when: str, *, versions: bool) -> None:
    """The arguments in these slots are, bit by bit, what they were."""
    for k in slots:
        named = plain.example.named(k)
        array = plain.example.arrays[k]
        script.expect(f"v{k}", array, f"{when}, {named}", "what it was before", rtol=0.0, atol=0.0)
        if versions:
            script.require(
                f"v{k}._version == versions[{k}]", f"{when}, the version of {named} has changed: it was written to"
            )


def _argument_text(plain: Plain, script: Script, place: Any) -> str:
    example = plain.example
    value = example.args[place] if isinstance(place, int) else example.kwargs[place]

    def text(item: Any) -> str:
        if isinstance(item, Slot):
            return f"x{item.number}"
        if type(item) is list:
            return f"[{', '.join(map(text, item))}]"
        if type(item) is tuple:
            return f"({', '.join(map(text, item))}{',' if len(item) == 1 else ''})"
        if type(item) is dict:
            return f"{{{', '.join(f'{key!r}: {text(one)}' for key, one in item.items())}}}"
        return repr(item)

    return text(value)


def result_memory(plain: Plain) -> int:
    """A result that shares memory with an argument is a view of it; then writes go both ways. Results share none."""
    if plain.subject.written:
        return 0
    title = "memory shared with arguments"
    count = 0
    example = plain.example
    views: list[tuple[int, int]] = []
    for mode in ("recorded", "unrecorded"):
        script = plain.script(title, example.wanted if mode == "recorded" else ())
        for i, path in enumerate(plain.paths):
            for k in range(len(example.arrays)):
                y, x = script[f"y{path}"], script[f"x{k}"]
                if y is x or not np.shares_memory(y._array, x._array):
                    continue
                same = y._storage is not None and y._storage is x._storage
                if not same or (mode == "recorded" and k in example.wanted and i in plain.outputs and y._view is None):
                    script.lines.append(f"assert not np.shares_memory(y{path}._array, x{k}._array)")
                    script.fail(
                        f"result {i} shares memory with {example.named(k)}, and is not known to be a view of it: a "
                        "write to one changes the other unseen; return a view taken by the library, or a copy"
                    )
                if mode == "recorded":
                    views.append((i, k))
        for (i, one), (j, other) in itertools.combinations(enumerate(plain.paths), 2):
            y, z = script[f"y{one}"], script[f"y{other}"]
            if y is not z and np.shares_memory(y._array, z._array) and y._storage is not z._storage:
                script.lines.append(f"assert not np.shares_memory(y{one}._array, y{other}._array)")
                script.fail(f"results {i} and {j} share memory, and are not known to be views of the same tensor")
        count += 1
    # Results of two calls share no memory with each other.
    script = plain.script(title, ())
    for k, _array in enumerate(example.arrays):
        script.do(f"z{k} = vg.Tensor(a{k})")
    script.call(f"other = {script.expression('z{}')}")
    for i, path in enumerate(plain.paths):
        if np.shares_memory(script[f"y{path}"]._array, script[f"other{path}"]._array):
            script.lines.append(f"assert not np.shares_memory(y{path}._array, other{path}._array)")
            script.fail(
                f"result {i} of one call shares memory with that of the next: a second call overwrites the first result"
            )
    for i, path in enumerate(plain.paths):
        if script[f"y{path}"]._array.flags.writeable and not any(v[0] == i for v in views):
            script.do(f"y{path}._array[...] = 0" if script[f"y{path}"].shape else "pass")
    script.call(f"again = {script.expression('z{}')}")
    for i, path in enumerate(plain.paths):
        script.expect(
            f"again{path}",
            plain.values[i],
            f"after the result of an earlier call was overwritten, result {i}",
            "a plain call",
        )
    count += 1
    for i, k in views:
        if k in example.wanted and i in plain.outputs:
            count += _writes_go_both_ways(plain, title, i, k)
    return count


def _writes_go_both_ways(plain: Plain, title: str, i: int, k: int) -> int:
    """Of a result that is a view: a write to it is one to the argument, and the other way round, gradients included."""
    example, path = plain.example, plain.paths[i]
    count = 0
    names = "v{}"
    # A write to the argument shows in the result as if the result had been taken afterwards.
    script = plain.script(title, called=False)
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
        script.do(plain.gradient_line("g", "y", outputs=[i]))
    except Failure as failure:
        if not isinstance(failure.__cause__, ViewInPlaceError):
            raise
    else:
        script.do(plain.gradient_line("h", "later", outputs=[i]))
        _same_gradients(plain, script, "g", "h", "the view after a write to the argument", "the view taken afterwards")
    count += 1
    # A write to the result shows in the argument.
    script = plain.script(title, called=False)
    script.do(*(f"v{j} = x{j}{'.clone()' if j == k else ''}" for j in range(len(example.arrays))))
    script.call(f"y = {script.expression(names)}")
    if script[f"y{path}"]._array.size == 0 or _repeats(script[f"y{path}"]._array):
        return count
    before = script[f"v{k}"]._array.copy()
    try:
        script.lines.append(f"y{path}.mul_(2.0)")
        script[f"y{path}"].mul_(2.0)
    except RuntimeError:
        return count  # refused, and so not silently wrong
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


def overwritten(plain: Plain) -> int:
    """What becomes of arguments and results after the call does not change gradients."""
    if not plain.outputs:
        return 0
    example = plain.example
    count = 0
    slots = range(len(example.arrays))
    for what in ("arguments", "results", "arguments, unrecorded", "results, unrecorded"):
        script = plain.script(f"overwritten afterwards: {what}", called=False)
        script.do(*(f"v{k} = x{k}.clone()" for k in slots))
        script.call(f"y = {script.expression('v{}')}")
        for i in plain.outputs:
            script.do(f"z{i} = y{plain.paths[i]} * 1.0")
        if what.startswith("arguments"):
            targets = [f"v{k}" for k in slots if example.arrays[k].size]
        else:
            targets = [f"y{path}" for path in plain.paths if not _repeats(script[f"y{path}"]._array)]
        for target in targets:
            value = "1 - " + target if script[target].dtype.kind in "iu" else ""
            detached = f"{target}.detach()" if what.endswith("unrecorded") else target
            fill = (
                f"{detached}[...] = {value}"
                if value
                else f"{detached}.fill_({True if script[target].dtype.kind == 'b' else 7.0})"
            )
            if not script[target].shape and not what.startswith("arguments"):
                continue  # a number, which nobody can write to
            try:
                exec(fill, script.names)
                script.lines.append(fill)
            except RuntimeError:
                continue  # refused
            except Exception:
                continue
        outputs = ", ".join(f"z{i}" for i in plain.outputs)
        given = ", ".join(f"vg.Tensor(u{i})" for i in plain.outputs)
        names = ", ".join(f"x{k}" for k in example.wanted)
        script.do(f"g = grad([{outputs}], [{names}], [{given}], allow_unused=True)")
        plain.expect_gradients(script, oracle="before they were", what=f"after {what} were overwritten, the gradient")
        count += 1
    return count


def same_twice(plain: Plain) -> int:
    """The same tensor for several arguments, and overlapping views of one: gradients add up."""
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
    if plain.subject.written:
        return count
    # Elements that share places: the same call on a copy without sharing is the reference.
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
            for i, path in enumerate(plain.paths):
                script.expect(
                    f"y{path}",
                    script[f"copied{path}"]._array.copy(),
                    f"result {i} {told}",
                    "the call on a copy",
                    rtol=plain.loose(1e-9),
                    atol=plain.loose(1e-11),
                )
            if plain.outputs and all(script[f"copied{plain.paths[i]}"].requires_grad for i in plain.outputs):
                script.do(plain.gradient_line("g"), plain.gradient_line("h", "copied"))
                _same_gradients(plain, script, "g", "h", f"a call {told}", "the call on a copy")
            count += 1
    return count


# -- lifetime ----------------------------------------------------------------------------------------------------------


def lifetime(plain: Plain) -> int:
    """After everything was let go of, nothing of a call is left: no cycle, no leak over many calls."""
    script = plain.script("nothing is left of a call", called=False)
    wanted = plain.example.wanted
    names = [f"x{k}" for k in range(len(plain.example.arrays))]
    body = [f"x{k} = vg.Tensor(a{k}{', requires_grad=True' if k in wanted else ''})" for k in range(len(names))]
    body += [f"y = {script.expression()}", plain.gradient_line("g", options="") if plain.outputs else "g = None"]
    body += [f"return [weakref.ref(tensor) for tensor in [{', '.join(names)}]]"]
    script.do("import gc, sys, weakref", "\n".join(["def once():", *(f"    {line}" for line in body)]), GROWTH)
    was = gc.isenabled()
    try:
        script.do("once(); once(); gc.collect(); gc.disable()", "alive = [ref() is not None for ref in once()]")
        script.require(
            "not any(alive)",
            "an argument of the call is still alive after the call, its results and its graph were let go of: "
            "something keeps it, or it is part of a reference cycle",
        )
        script.do("growth(8)", "grown = min(growth(8), growth(8))")
        if script["grown"] >= 8:  # it may be that caches are still being filled
            script.do("growth(50)", "grown = min(growth(20) for _ in range(8))")
            script.require(
                "grown < 20", f"each call leaves memory behind: {script['grown']} more blocks after 20 calls"
            )
    finally:
        if was:
            gc.enable()
    return 1


GROWTH: Final = """
def growth(calls):
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(calls):
        once()
    gc.collect()
    return sys.getallocatedblocks() - before
""".strip()


CIRCUMSTANCES: Final[dict[str, Property]] = {
    "state between calls": repeatable,
    "a graph run twice": run_twice,
    "linear in the incoming gradient": linear,
    "undefined gradients": undefined,
    "layouts of incoming gradients": gradient_layouts,
    "the incoming gradient stays the caller's": gradient_untouched,
    "every subset of arguments that require grad": subsets,
    "arguments are not modified": untouched,
    "memory shared with arguments": result_memory,
    "overwritten afterwards": overwritten,
    "the same tensor twice": same_twice,
    "layouts of arguments": input_layouts,
    "nothing is left of a call": lifetime,
}
