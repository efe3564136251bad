"""Surrogate gradients: straight-through estimators, gradient reversal, spikes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ....autograd.api import grad
from ....tensor.tensor import Tensor
from ....type_aliases import Array
from ..arguments import Example, outputs_of
from ..failure import Failure
from ..operator_under_test import OperatorUnderTest, Recorded, Refused, quiet
from ..script import Script
from .weights import weights_like

BESIDE: Final = 1e-7  # the distance from a kink, relative to the arguments
KINK: Final = 1e-3  # the difference of the slopes at a kink, relative to the slopes


def as_surrogate(subject: OperatorUnderTest, example: Example, title: str, recorded: Recorded) -> bool:
    """Compare the gradients of one call with those of the surrogate; return whether any could be compared."""
    outputs = recorded.differentiable
    if not outputs or not all(np.isfinite(recorded.outputs[i]._array).all() for i in outputs):
        return False
    script = Script(subject, title, example)
    script.leaves()
    script.call(f"y = {script.expression()}")
    script.do(*(f"z{k} = vg.Tensor(a{k}, requires_grad={k in example.wanted})" for k in range(len(example.arrays))))
    try:
        script.do(f"s = {script.expression('z{}', 'surrogate')}")
    except (Failure, Refused) as refused:
        if not example.label:
            raise
        raise Refused(f"the surrogate refuses: {refused}") from refused
    paths = [path for path, _ in outputs_of(script["y"])]
    given = []
    for i in outputs:
        script.let(f"u{i}", weights_like(recorded.outputs[i]._array, i))
        script.require(
            f"np.shape(s{paths[i]}) == y{paths[i]}.shape", "the surrogate's result does not have the operator's shape"
        )
        given.append(f"vg.Tensor(u{i})")
    for name, result, leaf in (("g", "y", "x"), ("h", "s", "z")):
        results = ", ".join(f"{result}{paths[i]}" for i in outputs)
        leaves = ", ".join(f"{leaf}{k}" for k in example.wanted)
        if result == "s" and not all(getattr(script[f"s{paths[i]}"], "requires_grad", False) for i in outputs):
            if not example.label:
                script.lines.append(f"assert s{paths[outputs[0]]}.requires_grad")
                script.fail("the surrogate's result does not require grad; write it with operators on tensors")
            raise Refused("the surrogate has no gradient")
        script.do(f"{name} = grad([{results}], [{leaves}], [{', '.join(given)}], allow_unused=True)")
    starts = {i: script[f"u{i}"] for i in outputs}
    for n, k in enumerate(example.wanted):
        expected = script[f"h[{n}]"]
        if example.label and expected is not None and np.isnan(expected._array).any():
            raise Refused("the gradient of the surrogate is NaN")
        if _between_slopes(subject, example, starts, n, script[f"g[{n}]"], expected):
            continue
        size = 1.0 if expected is None else float(np.abs(expected._array).max(initial=0.0))
        script.expect(
            f"g[{n}]",
            None if expected is None else expected._array.copy(),
            f"the gradient with respect to {example.named(k)}",
            "the surrogate",
            rtol=1e-5 if subject.single else 1e-8,
            atol=(1e-6 if subject.single else 1e-10) * max(1.0, size),
            by="" if expected is None else f"h[{n}].numpy()",
        )
    return True


def _between_slopes(
    subject: OperatorUnderTest, example: Example, starts: dict[int, Array], n: int, found: Any, expected: Any
) -> bool:
    """Return whether a gradient differs from the surrogate's only at kinks, and lies between its slopes there."""
    if found is None or expected is None or found.shape != expected.shape or found.dtype.kind != "f":
        return False
    off = np.abs(found._array - expected._array)
    if not (off > 1e-8 * np.abs(expected._array) + 1e-10).any():
        return False
    slopes = [expected._array]
    for turn in (1.0, -1.0, (-1.0) ** np.arange(1000), -((-1.0) ** np.arange(1000))):
        arrays = [
            array + np.resize(BESIDE * turn, array.shape) * np.maximum(np.abs(array), 1.0)
            if k in example.wanted and array.dtype.kind == "f"
            else array
            for k, array in enumerate(example.arrays)
        ]
        leaves = [Tensor(array, requires_grad=k in example.wanted) for k, array in enumerate(arrays)]
        try:
            with quiet():
                results = [out for _, out in outputs_of(example.call(subject.named["surrogate"], leaves))]
                wanted = [leaves[k] for k in example.wanted]
                there = grad([results[i] for i in starts], wanted, [*map(Tensor, starts.values())], allow_unused=True)
        except Exception:  # outside the surrogate's domain
            return False
        slope = there[n]
        if slope is None:
            return False
        slopes.append(slope._array)
    low, high = np.min(slopes, axis=0), np.max(slopes, axis=0)
    kink = high - low > KINK * np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
    slack = KINK * (high - low)
    between = kink & (found._array >= low - slack) & (found._array <= high + slack)
    return bool((between | (off <= 1e-8 * np.abs(expected._array) + 1e-10)).all())
