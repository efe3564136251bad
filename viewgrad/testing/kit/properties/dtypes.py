"""The call in lower precision."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ....type_aliases import Array
from ..arguments import Example, mapped, outputs_of
from ..baseline import Baseline, baseline_results, of_single_precision
from ..operator_under_test import OperatorUnderTest, Refused, quiet
from ..script import Script


def full_precision(baseline: Baseline) -> int:
    """Check that gradients have double precision if the arguments and results have it."""
    if any(map(of_single_precision, baseline.values)) or any(map(of_single_precision, baseline.starts.values())):
        if all(baseline.example.arrays[k].dtype in (np.float64, np.complex128) for k in baseline.example.wanted):
            baseline.subject.note(
                "its results have only the digits of single precision, though its arguments have double precision"
            )
        return 0
    for n, gradient in enumerate(baseline.gradients):
        if gradient.dtype in (np.float64, np.complex128) and of_single_precision(gradient):
            script = baseline.script("dtypes")
            script.do(baseline.gradient_line())
            _require_digits(script, baseline, n)
    _slopes_of_full_precision(baseline)
    return 1


def beside_integers(baseline: Baseline) -> int:
    """Check that a single-precision argument next to integers has a single-precision gradient."""
    example, count = baseline.example, 0
    if len(example.wanted) < 2 or any(example.arrays[k].dtype.kind == "c" for k in example.wanted):
        return 0
    for k, dtype in itertools.product(example.wanted, (np.int64, np.bool_)):
        arrays = [
            array.astype(np.float32) if j == k else np.ones(array.shape, dtype) if j in example.wanted else array
            for j, array in enumerate(example.arrays)
        ]
        beside = attrs.evolve(example.with_arrays(arrays), wanted=(k,))
        script = Script(baseline.subject, "dtypes (float32)", beside, derived=True)
        script.leaves()
        with contextlib.suppress(Refused):
            script.call(f"y = {script.expression()}")
            if not _takes_integers(script, beside, k, example.wanted):
                continue
            for path in baseline.paths:
                if not script[f"getattr(y{path}, 'requires_grad', False)"]:
                    continue
                script.do(f"g = grad(y{path}, [x{k}], vg.ones_like(y{path}), retain_graph=True, allow_unused=True)")
                if not script[f"g[0] is None or g[0].dtype == x{k}.dtype"]:
                    _of_another_dtype(
                        script,
                        f"assert g[0].dtype == x{k}.dtype",
                        f"the gradient with respect to {example.named(k)}, beside arguments of dtype "
                        f"{np.dtype(dtype).name}, has a different dtype from it",
                    )
                count += 1
    return count


def _takes_integers(script: Script, beside: Example, k: int, floats: Sequence[int]) -> bool:
    """Return whether the operator treats integers like the same numbers as floats."""
    arrays = [array.astype(np.float32) if j in floats and j != k else array for j, array in enumerate(beside.arrays)]
    expected = script.subject.values(beside.with_arrays(arrays))
    found = [output._array for _, output in outputs_of(script["y"])]
    return len(found) == len(expected) and all(
        mine.shape == other.shape and mine.dtype.kind == other.dtype.kind and np.allclose(mine, other, equal_nan=True)
        for mine, other in zip(found, expected, strict=True)
    )


def _of_another_dtype(script: Script, line: str, told: str) -> None:
    """Fail if single-precision results were required; otherwise add a notice."""
    if script.subject.keeps_float32:
        script.lines.append(line)
        script.fail(told)
    script.subject.note(f"{told}; check with float32=True to require it")


def _slopes_of_full_precision(baseline: Baseline) -> None:
    """Check that slopes also have double precision if they depend on the arguments."""
    example, subject = baseline.example, baseline.subject
    starts = {i: np.ones_like(baseline.values[i]) for i in baseline.outputs}
    slopes = subject.record(example).gradients(starts)
    suspected = [n for n, slope in enumerate(slopes) if _shortened(slope)]
    if not suspected:
        return
    arrays = [
        array * (1 + 1e-3 * np.cos(np.arange(array.size)).reshape(array.shape)) if k in example.wanted else array
        for k, array in enumerate(example.arrays)
    ]
    try:
        elsewhere = subject.record(example.with_arrays(arrays))
        others = elsewhere.gradients({i: np.ones_like(elsewhere.outputs[i]._array) for i in baseline.outputs})
    except (Refused, RuntimeError, IndexError):
        return
    for n in suspected:
        if _shortened(others[n]) and not np.array_equal(slopes[n], others[n]):
            script = baseline.script("dtypes")
            script.do(baseline.gradient_line(starts="vg.Tensor(np.ones_like(u{}))"))
            _require_digits(script, baseline, n)


def _require_digits(script: Script, baseline: Baseline, n: int) -> None:
    kind = "np.complex64" if script[f"g[{n}]"].dtype.kind == "c" else "np.float32"
    script.require(
        f"(g[{n}].numpy().astype({kind}) != g[{n}].numpy()).any()",
        f"the gradient with respect to {baseline.example.named(baseline.example.wanted[n])} has the digits of single "
        "precision only, though arguments and results have those of double precision",
    )


def _shortened(array: Array) -> bool:
    """Return whether double-precision numbers are exactly representable in single precision."""
    if array.dtype not in (np.float64, np.complex128) or not array.size:
        return False
    parts = np.ascontiguousarray(array).reshape(-1).view(float)
    with np.errstate(all="ignore"):
        mantissas = np.frexp(parts)[0] * 2.0**12
        return bool((parts.astype(np.float32) == parts).all() and (mantissas != np.round(mantissas)).any())


def in_lower_precision(baseline: Baseline, dtype: Any) -> int:
    """Check that values and gradients in lower precision approximate those in double precision."""
    exact, subject = baseline.example, baseline.subject
    if not baseline.finite:
        return 0
    real = np.dtype(dtype)
    if real == np.float16 and any(array.dtype.kind == "c" for array in exact.arrays):
        return 0
    with np.errstate(all="ignore"):
        example = exact.with_arrays(
            [
                array.astype(_of_precision(real, array.dtype)) if array.dtype.kind in "fc" else array
                for array in exact.arrays
            ]
        )
    # The results in double precision for the rounded arguments.
    rounded = exact.with_arrays(
        [array.astype(before.dtype) for array, before in zip(example.arrays, exact.arrays, strict=True)]
    )
    try:
        reference = baseline_results(subject, rounded, "dtypes")
    except Refused:
        return 0
    if not reference.finite or len(reference.values) != len(baseline.values):
        return 0
    tolerance = {"float32": 2e-5, "float16": 1.5e-2}[real.name]
    if any(
        np.abs(array).max(initial=0.0) > (1e4 if real == np.float32 else 100)
        for array in [*reference.values, *reference.gradients]
        if array.dtype.kind in "fc"
    ):
        return 0
    title = f"dtypes ({real.name})"
    script = Script(subject, title, example, derived=True)
    script.leaves()
    script.call(f"y = {script.expression()}")
    for i, start in reference.starts.items():
        script.let(f"u{i}", start.astype(_of_precision(real, start.dtype)))
    script.preamble = _in_double(reference)
    if (real == np.float16 and _beyond(subject.numbers, real)) or _loses_digits(script, reference, tolerance):
        return 0
    sensitive = _condition(subject, rounded, reference, float(np.finfo(real).eps))
    if not _as_the_reference(script, reference.paths):
        _expect_near_values(script, reference, real, tolerance, None if sensitive is None else sensitive[0])
    if not reference.outputs:
        return 1
    starts = {i: script[f"y{baseline.paths[i]}"].dtype for i in reference.outputs}
    for i, kind in starts.items():
        script.do(f"s{i} = vg.Tensor(u{i}.astype({kind.name!r}))")
    script.do(reference.gradient_line(starts="s{}"))
    given = max(float(np.abs(start).max(initial=0.0)) for start in reference.starts.values())
    # the rounding residue of gradients that cancel
    left = 4 * float(np.finfo(real).eps) * given if subject.composed else 0.0
    for n, k in enumerate(example.wanted):
        expected = reference.gradients[n]
        if script[f"g[{n}]"] is not None:
            if script[f"g[{n}].dtype != x{k}.dtype"]:
                told = f"the gradient of {example.named(k)}, which has dtype {real.name}, has a different dtype"
                _of_another_dtype(script, f"assert g[{n}].dtype == x{k}.dtype", told)
            script.do(f"v = g[{n}].numpy().astype({expected.dtype.name!r})")
        else:
            script.do("v = None")
        size = float(np.abs(expected).max(initial=0.0))
        slack = left + (0.0 if sensitive is None else 16 * sensitive[1][n])
        if script["v"] is not None and not _mostly_wrong(script["v"], expected, 4 * tolerance, slack):
            continue
        script.expect(
            "v",
            expected,
            f"in {real.name}, the gradient with respect to {example.named(k)}",
            "double precision",
            rtol=4 * tolerance,
            atol=4 * tolerance * max(size, 1e-3) + slack,
            by=f"slopes[{n}].numpy()" if reference.literal and size else "",
        )
    return 1


def _loses_digits(script: Script, reference: Baseline, tolerance: float) -> bool:
    """Return whether one of the operators in the composition loses digits."""
    return reference.subject.composed and any(
        value.dtype.kind in "fc" and _mostly_wrong(script[f"y{path}"]._array.astype(value.dtype), value, tolerance, 0.0)
        for path, value in zip(reference.paths, reference.values, strict=True)
    )


def _in_double(reference: Baseline) -> list[str]:
    """Return the lines of the call in double precision, with its gradients."""
    if not reference.literal:
        return []
    lines = reference.plain_call(of_gradients=True)
    for k, array in enumerate(reference.example.arrays):
        lines = [line.replace(f"vg.Tensor(a{k}", f"vg.Tensor(a{k}.astype({array.dtype.name!r})") for line in lines]
    for i, start in reference.starts.items():
        lines = [line.replace(f"vg.Tensor(u{i})", f"vg.Tensor(u{i}.astype({start.dtype.name!r}))") for line in lines]
    return lines


def _expect_near_values(
    script: Script, reference: Baseline, real: np.dtype[Any], tolerance: float, sensitive: list[Any] | None
) -> None:
    """Compare the results of the program with those in double precision, and check their dtypes."""
    for i, (path, value) in enumerate(zip(reference.paths, reference.values, strict=True)):
        found = script[f"y{path}"]
        if value.dtype.kind not in "fc":
            continue
        wanted = _of_precision(real, value.dtype)
        if (
            found.dtype != wanted
            and found.dtype.kind in "fc"
            and found.dtype.itemsize > wanted.itemsize
            and not reference.subject.composed
            and real != np.float16
            and not _has_numbers_of(found.dtype, reference.example)
        ):
            _of_another_dtype(
                script,
                f"assert y{path}.dtype == {wanted.name!r}, y{path}.dtype",
                f"result {i} of arguments of dtype {real.name} has dtype {found.dtype}, not {wanted}",
            )
        size = float(np.abs(value).max(initial=0.0))
        slack = 0.0 if sensitive is None else 16 * sensitive[i]
        script.do(f"v = y{path}.detach().numpy().astype({value.dtype.name!r})")
        if not _mostly_wrong(script["v"], value, tolerance, slack):
            continue
        script.expect(
            "v",
            value,
            f"in {real.name}, result {i}",
            "double precision",
            rtol=tolerance,
            atol=tolerance * max(size, 1e-3) + slack,
            by=f"plain{path}.detach().numpy()" if reference.literal else "",
        )


def _as_the_reference(script: Script, paths: Sequence[str]) -> bool:
    """Return whether results agree with the reference in that precision, on which they may depend."""
    subject, example = script.subject, script.example
    if subject.reference is None:
        return False
    try:
        with quiet():
            given = example.call(subject.reference, [array.copy() for array in example.arrays])
    except Exception:
        return False
    expected = given if isinstance(given, tuple | list) and len(paths) > 1 else [given]
    found = [script[f"y{path}"]._array for path in paths]
    return len(found) == len(expected) and all(
        mine.dtype == np.asarray(wanted).dtype and np.array_equal(mine, wanted, equal_nan=mine.dtype.kind in "fc")
        for mine, wanted in zip(found, expected, strict=True)
    )


def _has_numbers_of(dtype: np.dtype[Any], example: Example) -> bool:
    """Return whether a plain argument is that dtype, or contains numbers of it, like a sparse matrix."""
    found: list[Any] = []
    mapped(
        lambda leaf: found.append(leaf if isinstance(leaf, np.dtype) else getattr(leaf, "dtype", ...)),
        (example.args, example.kwargs),
    )
    return dtype in found  # `in` uses equality, and None equals float64 as a dtype


def _beyond(numbers: Sequence[float], real: np.dtype[Any]) -> bool:
    """Return whether constants in the operator's code underflow or overflow in a given precision."""
    with np.errstate(all="ignore"):
        lower = np.array(numbers, dtype=float).astype(real)
    return any(x and (not low or not np.isfinite(low)) for x, low in zip(numbers, lower, strict=True))


def _of_precision(real: np.dtype[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the same kind with the precision of `real`."""
    return real if dtype.kind == "f" else np.result_type(real, np.complex64)


def _mostly_wrong(found: Array, expected: Array, tolerance: float, slack: Any) -> bool:
    """Return whether at least half of the elements are wrong; losing digits in some is normal in low precision."""
    size = max(float(np.abs(expected).max(initial=0.0)), 1e-3)
    if found.shape != expected.shape:
        return True
    off = ~(np.abs(found - expected) <= tolerance * np.abs(expected) + tolerance * size + slack)
    return bool(2 * np.count_nonzero(off) >= max(off.size, 1) and off.any())


def _condition(
    subject: OperatorUnderTest, example: Example, reference: Baseline, eps: float
) -> tuple[list[Any], list[Any]] | None:
    """Return the change of values and gradients if the arguments change by a rounding error."""
    changes: tuple[list[Any], list[Any]] = ([0.0] * len(reference.values), [0.0] * len(reference.gradients))
    for sign in (1.0, -1.0):
        arrays = []
        for array in example.arrays:
            turns = np.where(np.arange(array.size) % 2, -0.7, 1.0).reshape(array.shape)
            arrays.append((array * (1 + sign * eps * turns)).astype(array.dtype) if array.dtype.kind in "fc" else array)
        try:
            with quiet():
                moved = baseline_results(subject, example.with_arrays(arrays), "dtypes")
        except (Refused, RuntimeError):
            return None
        for mine, theirs, sums in (
            (moved.values, reference.values, changes[0]),
            (moved.gradients, reference.gradients, changes[1]),
        ):
            for i, (one, other) in enumerate(zip(mine, theirs, strict=False)):
                if one.shape == other.shape and one.dtype.kind in "fc":
                    sums[i] = np.maximum(sums[i], np.nan_to_num(np.abs(one - other), nan=0.0, posinf=0.0))
    return changes
