"""Properties of the incoming gradient: any size and layout, gradients of some results only, and memory ownership."""

from __future__ import annotations

import contextlib
import itertools
from typing import Final

import numpy as np

from ..baseline import Baseline
from ..layouts import GRADIENT_LAYOUTS
from ..operator_under_test import Refused
from ..script import INCOMING


def linear(baseline: Baseline) -> int:
    """Check that gradients are linear in the incoming gradient."""
    title = "linear in the incoming gradient"
    count = 0
    for factor in (0.0, -1.0, 1e-12, 1e3, 1e-30, 1e12):
        with contextlib.suppress(Refused):
            script = baseline.script(title, derived=True)
            script.do(baseline.gradient_line(starts=f"vg.Tensor({factor!r} * u{{}})"))
            baseline.expect_gradients(
                script,
                factor=factor,
                oracle="the plain gradient times that",
                what=f"for an incoming gradient times {factor:g}, the gradient",
            )
            count += 1
    script = baseline.script(title, derived=True)
    for i in baseline.outputs:
        other = np.roll(baseline.starts[i].reshape(-1), 1).reshape(baseline.starts[i].shape) * 0.7 - 0.2
        script.let(f"w{i}", other.astype(baseline.starts[i].dtype))
    script.do(baseline.gradient_line("g"), baseline.gradient_line("h", starts="vg.Tensor(w{})"))
    script.do(baseline.gradient_line("both", starts="vg.Tensor(u{0} + w{0})"))
    for i, k in enumerate(baseline.example.wanted):
        parts = [script[f"{name}[{i}]"] for name in "gh"]
        total = sum((part._array for part in parts if part is not None), np.zeros_like(baseline.gradients[i]))
        size = max((float(np.abs(part._array).max(initial=0.0)) for part in parts if part is not None), default=0.0)
        script.expect(
            f"both[{i}]",
            total.astype(baseline.gradients[i].dtype),
            f"for the sum of two incoming gradients, the gradient with respect to {baseline.example.named(k)}",
            "the sum of the gradients",
            rtol=baseline.loose(1e-9),
            atol=baseline.loose(1e-11) * max(size, 1.0),
            by=f"(g[{i}] + h[{i}]).numpy()" if all(part is not None for part in parts) else "",
        )
    return count + 1


def undefined(baseline: Baseline) -> int:
    """Check that an output without a gradient is equivalent to one with a zero gradient."""
    if len(baseline.outputs) < 2:
        return 0
    count = 0
    for chosen in [[i] for i in baseline.outputs] + [[j for j in baseline.outputs if j != i] for i in baseline.outputs]:
        script = baseline.script("undefined gradients")
        script.do(baseline.gradient_line("g", outputs=chosen))
        for i in set(baseline.outputs) - set(chosen):
            script.let(f"u{i}", np.zeros_like(baseline.starts[i]))
        script.do(baseline.gradient_line("zeros"))
        told = ", ".join(map(str, chosen))
        baseline.same_gradients(script, "g", "zeros", f"the results {told} alone", "zeros as gradients of the others")
        count += 1
    # The gradients of the parts add up to the whole gradient.
    script = baseline.script("undefined gradients")
    for i in baseline.outputs:
        script.do(baseline.gradient_line(f"part{i}", outputs=[i]))
    for n, k in enumerate(baseline.example.wanted):
        total = " + ".join(f"(0 if part{i}[{n}] is None else part{i}[{n}].numpy())" for i in baseline.outputs)
        script.do(f"total = np.asarray({total})")
        if script["total"].shape:
            script.expect(
                "total",
                baseline.gradients[n],
                f"summed over results, the gradient with respect to {baseline.example.named(k)}",
                "all of them at once",
                rtol=baseline.loose(1e-9),
                atol=baseline.loose(1e-10) * max(1.0, float(np.abs(baseline.gradients[n]).max(initial=0.0))),
            )
    return count + 1


def gradient_layouts(baseline: Baseline) -> int:
    """Check incoming gradients with various memory layouts."""
    count = 0
    for name in GRADIENT_LAYOUTS:
        with contextlib.suppress(Refused):
            count += _in_layout(baseline, name)
    for name, i in itertools.product(FURTHER_STEPS, baseline.outputs):
        with contextlib.suppress(Refused):
            count += _from_further_steps(baseline, name, i)
    return count


def _in_layout(baseline: Baseline, name: str) -> int:
    """Check an incoming gradient with one memory layout."""
    make, equal = GRADIENT_LAYOUTS[name]
    script = baseline.script(f"layouts of incoming gradients ({name})", derived=True)
    for i in baseline.outputs if equal else ():
        constant = 0.75 if baseline.starts[i].dtype.kind == "f" else 0.75 - 0.5j
        script.let(f"u{i}", np.full(baseline.starts[i].shape, constant, baseline.starts[i].dtype))
    script.do(baseline.gradient_line("plainly"))
    for i in baseline.outputs:
        script.do(f"s{i} = {make.format(u=f'u{i}')}")
    script.do(baseline.gradient_line("g", starts="s{}"))
    baseline.same_gradients(script, "g", "plainly", f"an incoming gradient {name}", "the same one in row order")
    for i in baseline.outputs:
        script.expect(
            f"s{i}",
            script[f"u{i}"],
            "after the backward pass, the incoming gradient",
            "its value before",
            rtol=0.0,
            atol=0.0,
        )
    return 1


# Expressions for a loss that computes the gradient of the result in different memory layouts.
FURTHER_STEPS: Final = {
    "from a sum": "loss = {y}.sum()",
    "through a transposed view": "loss = ({y}.T * vg.Tensor({u}.T.copy())).sum()",
    "through a reversed view": "loss = ({y}.ravel()[::-1] * vg.Tensor({u}.ravel()[::-1].copy())).sum()",
}


def _from_further_steps(baseline: Baseline, name: str, i: int) -> int:
    """Check incoming gradients that are produced by the backward pass of further operations."""
    script = baseline.script(f"layouts of incoming gradients ({name})", derived=True)
    line = FURTHER_STEPS[name].format(y=f"y{baseline.paths[i]}", u=f"u{i}")
    script.do(line.replace("vg.Tensor", "np.conj" if baseline.starts[i].dtype.kind == "c" else "np.asarray"))
    script.do("loss = vg.real(loss) if loss.dtype.kind == 'c' else loss")
    start = f"vg.ones(u{i}.shape, dtype=u{i}.dtype)" if name == "from a sum" else f"vg.Tensor(u{i})"
    script.do(baseline.gradient_line("plainly", outputs=[i], starts=start))
    names = ", ".join(f"x{k}" for k in baseline.example.wanted)
    script.do(f"g = grad(loss, [{names}], allow_unused=True)")
    baseline.same_gradients(script, "g", "plainly", f"an incoming gradient {name}", "the same one given at once")
    return 1


def gradient_untouched(baseline: Baseline) -> int:
    """Check that the incoming gradient is neither kept nor modified, and that gradients share no memory."""
    title = INCOMING
    script = baseline.script(title)
    for i in baseline.outputs:
        script.do(f"s{i} = vg.from_numpy(u{i}.copy())")
    script.do(baseline.gradient_line("g", starts="s{}"))
    for i in baseline.outputs:
        script.expect(
            f"s{i}",
            baseline.starts[i],
            "after the backward pass, the incoming gradient",
            "its value before",
            rtol=0.0,
            atol=0.0,
        )
        script.require(f"s{i}._version == 0", "the incoming gradient was written to: its version has changed")
    script.do(*(f"s{i}.zero_()" for i in baseline.outputs))
    baseline.expect_gradients(
        script, oracle="before the write", what="after the incoming gradient was overwritten, the gradient"
    )
    script.do(*(f"g[{n}].mul_(0.0)" for n in range(len(baseline.example.wanted)) if script[f"g[{n}]"] is not None))
    script.do(baseline.gradient_line("h"))
    baseline.expect_gradients(
        script,
        "h",
        oracle="the first pass",
        what="in a pass after the gradients of the first were overwritten, the gradient",
    )
    for k, array in enumerate(baseline.example.arrays):
        if k not in baseline.subject.written:
            script.expect(
                f"x{k}",
                array,
                f"after the gradients were overwritten, {baseline.example.named(k)}",
                "its value before",
                rtol=0.0,
                atol=0.0,
            )
    # Gradients of one pass must not change while another pass runs.
    script = baseline.script(title)
    script.do(baseline.gradient_line("g"), baseline.gradient_line("h", starts="vg.Tensor(-2.0 * u{})"))
    baseline.expect_gradients(
        script, oracle="before that pass", what="after another backward pass, the gradient of the first"
    )
    script.call(f"other = {script.expression()}")
    script.do(baseline.gradient_line("h", "other", starts="vg.Tensor(-2.0 * u{})"))
    baseline.expect_gradients(
        script, oracle="before that pass", what="after the backward pass of another call, the gradient of the first"
    )
    return 2
