"""Forward over reverse mode, and reverse over forward mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.api import grad
from ...errors import ForwardModeError, FunctionError, GradientNotImplementedError
from ...tensor.tensor import Tensor
from ...type_aliases import Array
from .baseline import Baseline
from .operator_under_test import Refused, quiet

ABSENT = (GradientNotImplementedError, NotImplementedError, ForwardModeError)


def is_absence(error: BaseException) -> bool:
    """Return whether an error states that an operator lacks forward mode or second derivatives."""
    return isinstance(error, ABSENT) or (
        isinstance(error, FunctionError) and ("once_differentiable" in str(error) or "second derivative" in str(error))
    )


def mixed_modes(baseline: Baseline, tangents: dict[int, Array]) -> int:
    """Compare the gradient of the tangent and the tangent of the gradient with reverse over reverse mode."""
    if baseline.subject.written:
        return 0
    expected = _reverse_over_reverse(baseline, tangents)
    if expected is None:
        return 0
    slots, count = baseline.example.wanted, len(baseline.example.arrays)
    duals = [
        f"    v{k} = {f'forward_ad.make_dual(x{k}, vg.Tensor(t{k}))' if k in slots else f'x{k}'}" for k in range(count)
    ]
    outs = ", ".join(f"y{baseline.paths[i]}" for i in baseline.outputs)
    starts = ", ".join(f"vg.Tensor(u{i})" for i in baseline.outputs)
    of_tangents = [
        f"    tangents = [forward_ad.unpack_dual(out).tangent for out in [{outs}]]",
        f"    pairs = [(t, u) for t, u in zip(tangents, [{starts}]) if t is not None and t.requires_grad]",
        "    ts, us = [t for t, _ in pairs], [u for _, u in pairs]",
        f"    h = grad(ts, [{', '.join(f'x{k}' for k in slots)}], us, allow_unused=True) "
        f"if pairs else [None] * {len(slots)}",
    ]
    of_gradients = [
        f"    g = grad([{outs}], [{', '.join(f'v{k}' for k in slots)}], [{starts}], allow_unused=True)",
        "    h = [None if one is None else forward_ad.unpack_dual(one).tangent for one in g]",
    ]
    told = {"the gradient of the tangent": of_tangents, "the tangent of the gradient": of_gradients}
    return sum(_compared(baseline, tangents, expected, what, [*duals, "", *lines]) for what, lines in told.items())


def _compared(
    baseline: Baseline, tangents: dict[int, Array], expected: Sequence[Array], what: str, lines: Sequence[str]
) -> int:
    """Run lines within a dual level and compare `h` with its expected value; return 0 if the mode is not supported."""
    script = baseline.script("forward mode", called=False)
    for k in baseline.example.wanted:
        script.let(f"t{k}", tangents[k])
    lines = [line or f"    y = {script.expression('v{}')}" for line in lines]
    try:
        script.do("with forward_ad.dual_level():\n" + "\n".join(lines))
    except (AssertionError, Refused) as failure:
        cause = failure.__cause__
        if isinstance(failure, Refused) or (
            cause is not None and (is_absence(cause) or isinstance(cause, FunctionError))
        ):
            return 0
        raise
    for n, k in enumerate(baseline.example.wanted):
        size = float(np.abs(expected[n]).max(initial=0.0))
        script.expect(
            f"h[{n}]",
            expected[n],
            f"{what} with respect to {baseline.example.named(k)}",
            "reverse over reverse mode",
            rtol=baseline.loose(1e-8),
            atol=baseline.loose(1e-9) * max(size, 1.0),
        )
    return 1


def _reverse_over_reverse(baseline: Baseline, tangents: dict[int, Array]) -> list[Array] | None:
    """Return the gradients of projections of the gradients on tangents; None if there are none."""
    example, slots = baseline.example, baseline.example.wanted
    try:
        recorded = baseline.subject.record(example)
        starts = [Tensor(baseline.starts[i], requires_grad=True) for i in baseline.outputs]
        leaves = [recorded.leaves[k] for k in slots]
        with quiet():
            outputs = [recorded.outputs[i] for i in baseline.outputs]
            first = grad(outputs, leaves, starts, create_graph=True, allow_unused=True)
            terms = [
                (g * np.conj(tangents[k])).sum()
                for g, k in zip(first, slots, strict=True)
                if g is not None and g.requires_grad
            ]
            if not terms:
                return None
            total: Any = sum(term.real if term.dtype.kind == "c" else term for term in terms)
            found = grad(total, leaves, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return None
    expected = [
        np.zeros_like(example.arrays[k]) if g is None else g.detach()._array for g, k in zip(found, slots, strict=True)
    ]
    return expected if all(np.isfinite(array).all() for array in expected) else None
