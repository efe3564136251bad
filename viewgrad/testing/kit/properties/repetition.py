"""Repeated calls: a second call, calls with other values in between, and a graph run twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np

from ....tensor.modes import no_grad
from ....tensor.signatures import signature_of
from ....tensor.tensor import Tensor
from ....type_aliases import Array
from ..arguments import Example, outputs_of
from ..baseline import Baseline, baseline_results
from ..operator_under_test import Refused, quiet
from ..script import Script

REPEATED: Final = 1000  # the number of calls in a program that waits for another value
# the number of tensors that take the memory of earlier ones, so that the next one is located elsewhere
ELSEWHERE: Final = 200


def steady(baseline: Baseline, calls: int = 3) -> int:
    """Check that the same call returns the same value each time."""
    script = baseline.script("state between calls")
    wanted = baseline.example.wanted
    leaves = [
        f"r{k} = vg.Tensor(a{k}{', requires_grad=True' if k in wanted else ''})"
        for k in range(len(baseline.example.arrays))
    ]
    call = f"again = {script.expression(_operand(baseline, 'r{}'))}"
    lines = list(script.lines)
    for _ in range(calls):
        script.do(*leaves)
        script.call(call)
        for i, path in enumerate(baseline.paths):
            first, now = baseline.values[i], script[f"again{path}"]._array
            rough = baseline.loose(1e-12)
            if first.shape == now.shape and np.allclose(first, now, rtol=rough, atol=rough, equal_nan=True):
                continue
            compared = (
                f"first, now = y{path}.detach().numpy(), again{path}.detach().numpy()",
                "assert first.shape == now.shape and np.allclose(first, now, rtol=1e-12, atol=1e-12)",
            )
            body = "".join(f"\n    {line}" for line in (*leaves, call, *compared))
            script.lines = [*lines, f"for _ in range({REPEATED}):{body}"]
            if first.shape != now.shape:
                script.fail(f"the same call gave a result of shape {first.shape} and now gives one of {now.shape}")
            with np.errstate(all="ignore"):
                away = np.abs(now - first).reshape(-1)
            place = int(np.nanargmax(away)) if not np.isnan(away).all() else 0
            one, other = first.reshape(-1)[place].item(), now.reshape(-1)[place].item()
            script.fail(f"the same call gave {one!r} and now gives {other!r}", found=other, expected=one)
    return 1


def _do_leaves_again(baseline: Baseline, script: Script) -> None:
    """Bind r0, r1, ... to new tensors with the values of the call."""
    wanted = baseline.example.wanted
    script.do(
        *(
            f"r{k} = vg.Tensor(a{k}{', requires_grad=True' if k in wanted else ''})"
            for k in range(len(baseline.example.arrays))
        )
    )


def _kept(baseline: Baseline) -> list[tuple[int, Array]]:
    """Return the arguments that a call leaves unchanged, by slot."""
    return [(k, array) for k, array in enumerate(baseline.example.arrays) if k not in baseline.subject.written]


def _is_untouched(baseline: Baseline, script: Script) -> bool:
    """Return whether the call in a program has left its arguments unchanged."""
    return all(np.array_equal(script[f"x{k}"]._array, a, equal_nan=a.dtype.kind in "fc") for k, a in _kept(baseline))


def disturbed(baseline: Baseline) -> int:
    """Check a call after other methods have changed the operator's state, if any."""
    disturb = baseline.subject.contract.disturb
    if disturb is None:
        return 0
    script = baseline.script("state between calls", ())
    takes = bool(signature_of(disturb).parameters)
    script.lines.append("disturb(operator)" if takes else "disturb()")
    try:
        disturb(baseline.subject.given) if takes else disturb()
    except Exception as error:
        script.fail(f"disturb=... raises {type(error).__name__}: {error}", error)
    script.call(f"again = {script.expression()}")
    for i, path in enumerate(baseline.paths):
        told = f"after disturb(), result {i} of the same call"
        script.expect(f"again{path}", baseline.values[i], told, "the call before", by=f"y{path}.numpy()")
    return 1


def repeatable(baseline: Baseline) -> int:
    """Check that a call can be repeated, also after calls with other values."""
    title = "state between calls"
    example = baseline.example
    _first_like_others(baseline, title)
    steady(baseline)
    _read_again(baseline, title)
    script = baseline.script(title)
    script.do(baseline.gradient_line())
    if not _is_untouched(baseline, script):
        return 1  # the operator writes to its arguments, which is another property
    _do_leaves_again(baseline, script)  # the operator may write to its arguments, which is another property
    script.call(f"again = {script.expression(_operand(baseline, 'r{}'))}")
    script.do(baseline.gradient_line("h", "again", leaf="r{}"))
    baseline.same_results(script, "again", "y", "of a second call", "the first call", rtol=1e-12, atol=1e-12)
    baseline.same_gradients(script, "h", "g", "a second call with the same arguments", "the first")
    script = baseline.script(title, called=False)
    script.do("import warnings")
    script.call(
        "with np.errstate(all='warn'), warnings.catch_warnings(record=True):\n"
        "    warnings.simplefilter('default')\n    filters = list(warnings.filters)\n"
        f"    y = {script.expression()}\n    errors, filters_after = np.geterr(), list(warnings.filters)"
    )
    script.require(
        "set(errors.values()) == {'warn'}",
        "the call changed np.geterr(), by calling np.seterr()",
    )
    script.require("filters_after == filters", "the call has changed the filters for warnings")
    _random_numbers_of_others(baseline, title)
    script = baseline.script(title, called=False)
    for k, array in enumerate(example.arrays):
        script.let(f"b{k}", _other(array) if k in example.wanted else array)
        script.do(f"z{k} = vg.Tensor(b{k}{', requires_grad=True' if k in example.wanted else ''})")
    script.call(f"y = {script.expression()}")
    try:
        script.call(f"other = {script.expression(_operand(baseline, 'z{}'))}")
    except Refused:
        return 1
    script.do(*(f"kept{i} = y{path}.detach().numpy().copy()" for i, path in enumerate(baseline.paths)))
    # Two calls before one backward pass, in both orders.
    script.do(baseline.gradient_line())
    baseline.expect_gradients(script, oracle="a call alone", what="after another call with other values, the gradient")
    for i, path in enumerate(baseline.paths):
        script.expect(f"y{path}", baseline.values[i], f"after a second call, result {i} of the first", "the first call")
    script.call(f"once_more = {script.expression()}")
    for i, path in enumerate(baseline.paths):
        script.expect(
            f"once_more{path}",
            baseline.values[i],
            f"after a call with other values, result {i}",
            "a call alone",
            rtol=baseline.loose(1e-12),
            atol=baseline.loose(1e-12),
        )
    script.do(baseline.gradient_line("h", "once_more"))
    baseline.expect_gradients(script, "h", oracle="a call alone", what="after calls with other values, the gradient")
    if baseline.outputs:
        _compare_gradients_of_other(baseline, script)
    return (
        2 + sum(_as_if_first(baseline, other) for other in OTHERS) + _slopes_as_if_first(baseline) + disturbed(baseline)
    )


def _compare_gradients_of_other(baseline: Baseline, script: Script) -> None:
    """Check the gradient of a call between others, unless the backward pass rejects its arguments z0, z1, ..."""
    if not _accepts(script, baseline.gradient_line("of_other", "other", leaf="z{}")):
        return
    script.call(f"alone = {script.expression(_operand(baseline, 'z{}'))}")
    script.do(baseline.gradient_line("of_alone", "alone", leaf="z{}"))
    baseline.same_gradients(script, "of_other", "of_alone", "a call between others", "the same call again")


def _accepts(script: Script, line: str) -> bool:
    """Execute a backward pass of a call with other values; return False if it rejects them."""
    derived, script.derived = script.derived, True
    try:
        script.do(line)
    except Refused:
        return False
    finally:
        script.derived = derived
    return True


def _read_again(baseline: Baseline, title: str) -> None:
    """Check that a call reads its tensors again after their values were changed in place, as by an optimizer.

    A cache keyed by addresses confuses a tensor with its earlier values, and with tensors that were freed.
    """
    example = baseline.example
    if baseline.subject.written or not example.wanted:
        return
    script = baseline.script(title)
    if not _is_untouched(baseline, script):
        return
    script.do(f"held = [vg.Tensor(0.0) for _ in range({ELSEWHERE})]  # no address of an earlier tensor is reused")
    for k, array in enumerate(example.arrays):
        script.let(f"b{k}", _other(array) if k in example.wanted else array)
        script.do(f"r{k} = vg.Tensor(b{k}{', requires_grad=True' if k in example.wanted else ''})")
    script.derived = True  # the operator may reject the other values
    try:
        script.call(f"beside = {script.expression('r{}')}")
        script.do(*(f"with vg.no_grad(): x{k}.copy_(r{k})" for k in example.wanted))
        script.call(f"again = {script.expression()}")
    except Refused:
        return
    script.derived = bool(example.label)
    oracle = "another tensor with these values"
    told = "of a call with the same tensors, whose values were changed in place,"
    baseline.same_results(script, "again", "beside", told, oracle, rtol=1e-12, atol=1e-12)
    if not _accepts(script, baseline.gradient_line("g", "beside", leaf="r{}")):
        return
    script.do(baseline.gradient_line("h", "again"))
    baseline.same_gradients(script, "h", "g", told.removeprefix("of "), oracle)


def beside_other_call(baseline: Baseline, other: Example) -> int:
    """Check that a call with other options or shapes, made before the backward pass, does not change the gradient."""
    script = baseline.script("state between calls", derived=True)
    for k, array in enumerate(other.arrays):
        script.let(f"b{k}", array)
        script.do(f"z{k} = vg.Tensor(b{k}{', requires_grad=True' if k in other.wanted else ''})")
    beside = Script(baseline.subject, script.title, other, derived=True)
    call = beside.expression(_operand(baseline, "z{}"))
    for name, value in beside.constants.items():
        script.let(name, value)
    script.call(f"other = {call}")
    script.derived = bool(baseline.example.label)  # the gradient is that of the user's own call
    script.do(baseline.gradient_line())
    what = f"after another call, with {other.label}, the gradient"
    baseline.expect_gradients(script, oracle="a call alone", what=what)
    return 1


def _random_numbers_of_others(baseline: Baseline, title: str) -> None:
    """Check that a call does not seed the global random generators."""
    states = np.random.get_state(), random.getstate()  # noqa: NPY002 -- what everybody draws from
    try:
        script = baseline.script(title, called=False)
        script.do("import random")
        for seed in (1, 2):
            script.do(f"np.random.seed({seed}); random.seed({seed})")
            script.call(f"y = {script.expression()}")
            script.do(f"drawn{seed} = np.random.random(), random.random()")
        script.require(
            "drawn1[0] != drawn2[0] and drawn1[1] != drawn2[1]",
            "the call seeds the global random number generators, so all later draws repeat",
        )
    finally:
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])


def _first_like_others(baseline: Baseline, title: str) -> None:
    """Check that the first call returned the same as later ones."""
    first, values = baseline.subject.first, baseline.values
    kinds = [[(value.shape, value.dtype) for value in several] for several in (first, values)]
    if baseline.example.label or baseline.subject.written or kinds[0] != kinds[1]:
        return
    then = zip(baseline.example.arrays, baseline.subject.first_arrays, strict=True)
    if not all(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc") for one, other in then):
        return  # a smaller call, while shrinking
    # The baseline was computed by the second call.
    for path, one, other in zip(baseline.paths, first, values, strict=True):
        if not np.allclose(one, other, rtol=baseline.loose(1e-12), atol=baseline.loose(1e-12), equal_nan=True):
            script = baseline.script(title, ())
            script.do(f"again = {script.expression()}")
            later = script[f"again{path}"]._array
            if np.allclose(one, later, rtol=baseline.loose(1e-12), atol=baseline.loose(1e-12), equal_nan=True):
                continue  # the result depends on which arguments require grad
            arrays = f"y{path}.numpy(), again{path}.numpy()"
            script.lines.append(f"assert np.allclose({arrays}, rtol=1e-12, atol=1e-12, equal_nan=True)")
            with np.errstate(all="ignore"):
                place = int(np.argmax(np.nan_to_num(np.abs(one - later), nan=np.inf).reshape(-1)))
            gave, gives = one.reshape(-1)[place].item(), later.reshape(-1)[place].item()
            script.fail(
                f"the same call gave {gave!r} and now gives {gives!r}: the first call differs from all later ones"
            )


def _as_if_first(baseline: Baseline, change: Callable[[Array], Array]) -> int:
    """Check that a call with other values returns what a fresh copy of the operator returns."""
    fresh, other = baseline.subject.fresh(), baseline.subject.fresh()
    if fresh is None or other is None:
        return 0
    try:  # the copy must be faithful: it returns what the operator returned at first
        with quiet(), no_grad():
            copied = baseline.example.call(other, [Tensor(array) for array in baseline.example.arrays])
        values = [output._array for _, output in outputs_of(copied)]
        if not all(np.array_equal(one, two, equal_nan=True) for one, two in zip(values, baseline.values, strict=True)):
            return 0
    except Exception:
        return 0
    script = baseline.script("state between calls", ())
    for k, array in enumerate(baseline.example.arrays):
        script.let(f"b{k}", change(array) if k in baseline.example.wanted else array)
        script.do(f"z{k} = vg.Tensor(b{k})")
    try:
        with quiet(), no_grad():
            expected = baseline.example.call(
                fresh, [Tensor(script[f"b{k}"]) for k in range(len(baseline.example.arrays))]
            )
    except Exception:
        return 0
    script.call(f"other = {script.expression('z{}')}")
    values = [output._array for _, output in outputs_of(expected)]
    if [value.shape for value in values] != [value.shape for value in baseline.values]:
        return 0
    for i, (path, value) in enumerate(zip(baseline.paths, values, strict=True)):
        script.expect(
            f"other{path}",
            value,
            f"after a call with other values, result {i}",
            "the operator called for the first time",
        )
    return 1


def _slopes_as_if_first(baseline: Baseline) -> int:
    """Check that the gradient of a call with other values, made after this call, equals that of a fresh copy."""
    subject, example, fresh = baseline.subject, baseline.example, baseline.subject.fresh()
    if fresh is None or not baseline.outputs or subject.written:
        return 0
    arrays = [_other(array) if k in example.wanted else array for k, array in enumerate(example.arrays)]
    try:
        subject.values(example.with_arrays(arrays))
        expected = baseline_results(attrs.evolve(subject, function=fresh), example.with_arrays(arrays), "")
    except Exception:  # it refuses these values, or the copy is not faithful
        return 0
    if [value.shape for value in expected.values] != [value.shape for value in baseline.values]:
        return 0
    script = baseline.script("state between calls")
    script.do(baseline.gradient_line())
    for k, array in enumerate(arrays):
        script.let(f"b{k}", array)
        script.do(f"z{k} = vg.Tensor(b{k}{', requires_grad=True' if k in example.wanted else ''})")
    script.call(f"other = {script.expression('z{}')}")
    script.do(baseline.gradient_line("h", "other", leaf="z{}"))
    for i, k in enumerate(example.wanted):
        told = f"after the backward pass of a call with other values, the gradient with respect to {example.named(k)}"
        oracle, rough = "the operator called for the first time", baseline.loose(1e-9)
        script.expect(f"h[{i}]", expected.gradients[i], told, oracle, rtol=rough, atol=rough)
    return 1


def _operand(baseline: Baseline, names: str) -> str:
    return names + ".clone()" if baseline.subject.written else names


def _other(array: Array) -> Array:
    """Return other values in the same range: reordered, and moved towards each other and the first one."""
    if array.size < 2:
        return (array * 0.875).astype(array.dtype)
    turned = array.reshape(-1)[::-1].reshape(array.shape)
    return np.asarray(0.55 * turned + 0.25 * array + 0.2 * array.reshape(-1)[0]).astype(array.dtype)


def _turned(array: Array, start: int, stop: int | None) -> Array:
    """Return the values with a part reversed, so that the sum, the ends or the extremes are unchanged."""
    changed = array.reshape(-1).copy()
    changed[start:stop] = changed[start:stop][::-1]
    return changed.reshape(array.shape)


# Arguments for which a cached result may be confused if the cache key is incomplete.
OTHERS: Final[tuple[Callable[[Array], Array], ...]] = (
    _other,
    lambda array: _turned(array, 1, None),
    lambda array: _turned(array, 0, -1),
)


def run_twice(baseline: Baseline) -> int:
    """Check that a retained graph can be run again."""
    script = baseline.script("a graph run twice")
    script.do(baseline.gradient_line("g"), baseline.gradient_line("g"))
    baseline.expect_gradients(script, oracle="the first backward pass", what="in a second backward pass, the gradient")
    script.do(baseline.gradient_line("g", options=""))
    baseline.expect_gradients(script, oracle="the first backward pass", what="in the last backward pass, the gradient")
    return 1
