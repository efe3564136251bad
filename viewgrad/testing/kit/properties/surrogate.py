"""Surrogate gradients: straight-through estimators, gradient reversal, spikes."""

from __future__ import annotations

import numpy as np

from ..arguments import Example, outputs_of
from ..failure import Failure
from ..operator_under_test import OperatorUnderTest, Recorded, Refused
from ..script import Script
from .weights import weights_like

__all__ = ["as_surrogate"]


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
    except Failure as failure:
        raise Refused(f"the surrogate refuses: {failure.reason}") from failure
    paths = [path for path, _ in outputs_of(script["y"])]
    given = []
    for i in outputs:
        script.let(f"u{i}", weights_like(recorded.outputs[i]._array, i))
        script.require(f"s{paths[i]}.shape == y{paths[i]}.shape", "the surrogate has a result of another shape")
        given.append(f"vg.Tensor(u{i})")
    for name, result, leaf in (("g", "y", "x"), ("h", "s", "z")):
        results = ", ".join(f"{result}{paths[i]}" for i in outputs)
        leaves = ", ".join(f"{leaf}{k}" for k in example.wanted)
        if result == "s" and not all(script[f"s{paths[i]}"].requires_grad for i in outputs):
            raise Refused("the surrogate has no gradient")
        script.do(f"{name} = grad([{results}], [{leaves}], [{', '.join(given)}], allow_unused=True)")
    for n, k in enumerate(example.wanted):
        expected = script[f"h[{n}]"]
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
