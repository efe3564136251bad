"""Faulty operators as edits of those in `polished.py`, each with the properties that may detect the fault.

A row has the operator, the replaced text (which occurs once), the new text, the call, and the properties.
"""

# ruff: noqa: E501
from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from . import M, P, Q, V, Z

__all__ = ["FAULTS", "Fault", "build", "source"]

POLISHED = Path(__file__).with_name("polished.py")
S = np.cos(1.3 * np.arange(9.0)) + 0.1 * np.arange(9.0)
W = np.array([[0.4, 1.1, -0.9], [0.2, -0.5, 0.7], [1.3, 0.6, 0.1]])
LONG = np.sin(1.0 + np.arange(5.0))


@attrs.frozen
class Fault:
    """One edit.

    Arguments:
        name: of the fault.
        operator: the name in `polished.py`.
        old, new: the texts; the old one occurs once in the operator.
        args, kwargs: the call.
        properties: one of these must detect the fault.
        means: the author's declarations.
    """

    name: str
    operator: str
    old: str
    new: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    properties: tuple[str, ...]
    means: dict[str, Any]


FAULTS: dict[str, Fault] = {}


def fault(name: str, operator: str, old: str, new: str, *args: Any, by: str, means: Any = None, **kwargs: Any) -> None:
    """Add an edit to the table; `by` has the properties, separated by |."""
    assert name not in FAULTS, name
    FAULTS[name] = Fault(name, operator, old, new, args, kwargs, tuple(by.split(" | ")), means or {})


def source(fault: Fault, mended: bool = False) -> str:
    """Return the source of the module with one edit, or without it."""
    text = POLISHED.read_text()
    start = min(
        place
        for place in (text.find(f"\n{kind}{fault.operator}{end}") for kind, end in KINDS)
        if place >= 0
    )
    stops = [place for place in (text.find(f"\n\n\n{kind}", start + 1) for kind in ("class ", "def ")) if place > 0]
    stop = min(stops, default=len(text))
    body = text[start:stop]
    assert body.count(fault.old) == 1, (fault.name, body.count(fault.old))
    return text if mended else text[:start] + body.replace(fault.old, fault.new) + text[stop:]


KINDS = (("class ", "("), ("class ", ":"), ("def ", "("), ("", " = "))
NUMBERS = itertools.count()


def build(fault: Fault, folder: Path, mended: bool = False) -> tuple[Any, dict[str, Any]]:
    """Return the operator from a module written to a folder, from which it can be imported, and its declarations."""
    name = f"edited_{fault.name}_{next(NUMBERS)}"
    path = folder / f"{name}.py"
    text = source(fault, mended).replace('"polished_', f'"{name}_')
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    operator = getattr(module, fault.operator.removesuffix("_"))
    means = {name: getattr(module, value) if name == "inplace" else value for name, value in fault.means.items()}
    return operator() if fault.operator == "Memo" else operator, means


# -- wrong factors, signs and terms: in plain sight --------------------------------------------------------------------
fault("factor_lost", "Square", "2 * x * grad", "x * grad", M, by="gradients")
fault("sign_lost", "Quotient", "-grad * a", "grad * a", M, P, by="gradients")
fault("power_of_divisor", "Quotient", "(b * b)", "b", M, P, by="gradients")
fault("count_lost", "MeanAxis", ") / count", ") * 1.0", M, by="gradients")
fault("count_of_all", "MeanAxis", "ctx.shape[ctx.axis]", "int(np.prod(ctx.shape))", M, by="gradients")
fault("softmax_without_projection", "SoftmaxRows", "(grad - (grad * y).sum(axis=-1, keepdims=True))",
      "grad * (1 - y)", M, by="gradients")  # fmt: skip
fault("variance_of_value", "Variance", "(x - x.mean()) / x.size", "x / x.size", M, by="gradients")
fault("arguments_exchanged", "Product", "unbroadcast(grad * b, a.shape), unbroadcast(grad * a, b.shape)",
      "unbroadcast(grad * a, a.shape), unbroadcast(grad * b, b.shape)", M, P, by="gradients")  # fmt: skip
fault("second_result_forgotten", "Divergence", "gs + 3 * gd, 2 * gs - gd", "gs, 2 * gs", M, P, by="gradients")
fault("cross_term_lost", "PolarForm", "gr * x / safe - gt * y / (safe * safe)", "gr * x / safe", M, P, by="gradients")
fault("transpose_forgotten", "Bilinear", "grad * (a.T @ x)", "grad * (a @ x)", V, W, Q, by="gradients")
fault("outer_in_other_order", "Bilinear", "vg.outer(x, y)", "vg.outer(y, x)", V, W, Q, by="gradients")
fault("gram_once", "SquaredDistances", "g = grad + grad.T", "g = 2 * grad", M, by="gradients")
fault("gradient_of_wrong_half", "HeadOf", "[grad, rest]", "[rest, grad]", M, by="gradients | shapes")
fault("gradient_stops_at_gate", "Gate", "grad * a * s * (1 - s)", "0 * grad * a", M, P, by="gradients")
fault("missing_gradient_is_none", "Quotient", "return da, db", "return da, None", M, P, by="gradients")
fault("damping_sign", "Damped", "- ctx.rate *", "+ ctx.rate *", V, by="gradients")
fault("cumprod_by_division", "CumulativeProduct", "out[k] = (g[k:] * np.cumprod(rest)[k:]).sum()",
      "out[k] = (g[k:] * np.cumprod(x)[k:]).sum() / x[k]", V, by="special points")  # fmt: skip
fault("log_cosh_scale", "log_cosh", '"grad * scale * tanh', '"grad * tanh', M, by="options", scale=1.0)

# -- axes and shapes ---------------------------------------------------------------------------------------------------
fault("axis_always_first", "SumAxis", "vg.expand_dims(grad, ctx.axis)", "vg.expand_dims(grad, 0)", M,
      by="options | shapes")  # fmt: skip
fault("axis_counted_from_front", "MeanAxis", "vg.expand_dims(grad, ctx.axis)", "vg.expand_dims(grad, 1)", M,
      by="shapes | options")  # fmt: skip
fault("last_axis_by_number", "LogSoftmaxRows", "grad.sum(axis=-1, keepdims=True)", "grad.sum(axis=1, keepdims=True)", M,
      by="shapes")  # fmt: skip
fault("broadcast_kept_axis", "Product", "unbroadcast(grad * a, b.shape)", "(grad * a).mean(axis=0) * np.ones(b.shape)",
      M, V, by="gradients | shapes")  # fmt: skip
fault("broadcast_averaged", "Quotient", "unbroadcast(-grad * a / (b * b), b.shape)",
      "(-grad * a / (b * b)).reshape(-1, *b.shape).sum(axis=0)[...]", M, P, by="shapes")  # fmt: skip
fault("first_row_stands_for_all", "Hypot", "unbroadcast(grad * b / safe, b.shape)",
      "(grad * b / safe if b.shape == grad.shape else (grad * b / safe)[0])", M, V, by="gradients")  # fmt: skip
fault("sorted_along_first", "SortAscending", "np.put_along_axis(g, ctx.order, grad.numpy(), -1)",
      "np.put_along_axis(g, ctx.order % len(g), grad.numpy(), 0)", M[:, :2], by="gradients | shapes | state between calls")  # fmt: skip
fault("square_taken_for_transpose", "MatMulBatched", "vg.swapaxes(b, -1, -2)", "(b.T if b.ndim != 3 else b)",
      np.stack([W, W + 0.3]), np.stack([W.T, W - 0.2]), by="gradients")  # fmt: skip
fault("batch_axes_reversed", "MatMulBatched", "vg.swapaxes(a, -1, -2) @ grad", "(a.T if a.ndim < 3 else a) @ grad", W,
      W.T.copy(), by="shapes")  # fmt: skip
fault("block_of_64_at_most", "BlockedSum", "for start in range(0, x.shape[0], 64)]",
      "for start in range(0, max(x.shape[0], 1), 64)][:1] + [0 * x[64:]]", LONG, by="shapes")  # fmt: skip
fault("last_block_lost", "BlockedSum", "parts = [2 * x[start : start + 64] * grad",
      "parts = [2 * x[start : start + 64] * grad * (1.0 if start < 128 else 0.5)", LONG, by="shapes")  # fmt: skip
fault("after_256", "BlockedSum", "parts = [2 * x[start : start + 64] * grad",
      "parts = [2 * x[start : start + 64] * grad * (1.0 if start < 256 else 0.0)", LONG, by="shapes")  # fmt: skip
fault("summed_over_wrong_axis", "DistancesTo", "-g.sum(axis=0)", "-g.sum(axis=-1)", W, V, by="gradients")
fault("center_from_first_axis_only", "DistancesTo", "-g.sum(axis=0)", "-g[:2].sum(axis=0)", M, V, by="shapes")

# -- special values and ties -------------------------------------------------------------------------------------------
fault("sinc_at_zero", "Sinc", "small = vg.abs(x) < 1e-3\n        safe = vg.where(small, 1.0, x)",
      "small = vg.abs(x) < -1\n        safe = x", M, by="special points")  # fmt: skip
fault("hypot_at_origin", "Hypot", "safe = vg.where(r == 0, 1.0, r)", "safe = r + 0.0", M, P, by="NaN")
fault("shrink_inside", "Shrink", "(vg.abs(x) > ctx.limit)", "(x > -9)", np.array([0.9, -1.3, 2.0]), by="special points | options")
fault("shrink_one_side", "Shrink", "(vg.abs(x) > ctx.limit)", "(x > ctx.limit)", np.abs(M) + 0.6, by="special points")
fault("tie_gives_all_to_both", "LargestOf", "unbroadcast(grad * (1 - share), b.shape)",
      "unbroadcast(grad * (a <= b).astype(grad.dtype) * (1.0 if True else share), b.shape)", M, P + 0.1, by="ties | special points")  # fmt: skip
fault("tie_gives_nothing", "LargestOf", "vg.where(a > b, 1.0, vg.where(a == b, 0.5, 0.0)).astype(grad.dtype)",
      "(a > b).astype(grad.dtype) + 0.5 * 0\n        grad = grad * (a != b)", M, P + 0.1, by="ties | special points")  # fmt: skip
fault("all_largest_get_all", "MaxAll", "grad * best / best.sum()", "grad * best", M, by="ties | special points")
fault("tie_of_opposites", "Angle", "grad * x / r", "grad * vg.where(y == -x, 0.5 * x, x) / r", M, P + 0.1, by="ties | special points")
fault("opposites_equal", "LargestOf", "share = vg.where(a > b,", "share = vg.where(abs(a) > abs(b),", P, P[::-1] + 0.1,
      by="special points | ties | gradients")  # fmt: skip
fault("power_at_zero", "PowerOf", "grad * ctx.p * x ** (ctx.p - 1)", "grad * ctx.p * x**ctx.p / x", M,
      by="special points")  # fmt: skip
fault("negative_base", "PowerOf", "x ** (ctx.p - 1)", "vg.abs(x) ** (ctx.p - 1)", P, p=2, by="special points | options")
fault("large_arguments_cut", "SoftplusStable", "grad * 0.5 * (1 + vg.tanh(0.5 * x))",
      "grad * vg.where(x > 20, 0.0, 0.5 * (1 + vg.tanh(0.5 * x)))", M, by="special points")  # fmt: skip
fault("beyond_its_own_number", "Damped", "e = vg.exp(-ctx.rate * t)", "e = vg.where(t > 6.5, 0.0, vg.exp(-ctx.rate * t))",
      V, by="special points")  # fmt: skip

# -- options -----------------------------------------------------------------------------------------------------------
fault("option_forgotten", "Scale", "return grad * ctx.factor", "return grad * 2.0", M, by="options")
fault("option_negative", "Scale", "return grad * ctx.factor", "return grad * abs(ctx.factor)", M, by="options")
fault("option_of_default", "Damped", "e = vg.exp(-ctx.rate * t)", "e = vg.exp(-0.3 * t)", V, by="options")
fault("option_back_to_default", "Damped", "ctx.rate, ctx.phase = rate, phase",
      "ctx.rate, ctx.phase = (rate if rate != 0.3 else 0.2), phase", V, rate=0.7, by="options")  # fmt: skip
fault("phase_forgotten", "Damped", "(vg.cos(t + ctx.phase)", "(vg.cos(t)", V, by="options")
fault("power_zero", "PowerOf", "        if ctx.p == 0:\n            return vg.zeros_like(x) * grad, None\n", "", M,
      by="special points | options")  # fmt: skip
fault("power_one", "PowerOf", "if ctx.p == 0:", "if ctx.p in (0, 1):", M, by="options")
fault("limit_scaled", "Shrink", "(vg.abs(x) > ctx.limit)", "(vg.abs(x) > ctx.limit * ctx.limit * 2)", M,
      by="special points | options")  # fmt: skip
fault("stride_forgotten", "Correlate", "gx[i * s : i * s + len(k)]", "gx[i : i + len(k)]", S, V, by="options")
fault("stride_of_windows", "Correlate", "windows = np.lib.stride_tricks.sliding_window_view(x, len(k))[::s]",
      "windows = np.lib.stride_tricks.sliding_window_view(x, len(k))[: len(g)]", S, V, by="options")  # fmt: skip
fault("aliases_under_option", "Scale", "return x * factor", "return vg.from_numpy(x.detach().numpy()) "
      "if factor == 1 else x * factor", M, by="memory shared with arguments")  # fmt: skip

# -- state, memory, threads --------------------------------------------------------------------------------------------
fault("output_buffer_reused", "Workspace", "work = np.empty(x.shape, x.dtype)",
      "work = Workspace.__dict__.get('work')\n        if work is None or work.shape != x.shape or work.dtype != x.dtype:\n"
      "            work = Workspace.work = np.empty(x.shape, x.dtype)\n        ctx.out = work", M,
      by="threads")  # fmt: skip
fault("result_is_the_buffer", "Workspace", "return vg.Tensor(np.cos(work))",
      "Workspace.kept = work if getattr(Workspace, 'kept', work).shape != work.shape else getattr(Workspace, 'kept', work)\n"
      "        np.cos(work, out=Workspace.kept)\n        return vg.from_numpy(Workspace.kept)", M,
      by="state between calls | memory shared with arguments")  # fmt: skip
fault("counts_into_the_value", "Counting", "return vg.sin(x)", "return vg.sin(x) + 1e-3 * Counting.calls", M,
      by="state between calls")  # fmt: skip
fault("drifts_after_many", "Counting", "return vg.sin(x)", "return vg.sin(x) * (1 + 1e-3 * (Counting.calls > 40))", M,
      by="state between calls")  # fmt: skip
fault("first_call_differs", "Counting", "return vg.sin(x)", "return vg.sin(x) * (1.0 if Counting.calls > 1 else 1.01)",
      M, by="state between calls")  # fmt: skip
fault("random_noise", "Counting", "return vg.sin(x)", "return vg.sin(x) + 1e-3 * np.random.random(x.shape)", M,
      by="state between calls")  # fmt: skip
fault("remembers_the_first", "Counting", "ctx.save_for_backward(x)",
      "Counting.x = getattr(Counting, 'x', x.clone())\n        x = Counting.x if Counting.x.shape == x.shape else x\n"
      "        ctx.save_for_backward(x)", M, by="state between calls | gradients | ties | special points")  # fmt: skip
fault("grad_changed_in_place", "Scale", "return grad * ctx.factor, None",
      "grad.detach().mul_(ctx.factor)\n        return grad.clone(), None", M,
      by="gradients | the incoming gradient stays the caller's")  # fmt: skip
fault("argument_changed", "Square", "return x * x", "y = x * x\n        x.detach().mul_(1.0)\n        return y", M,
      by="something to check")  # fmt: skip
fault("argument_clipped_in_place", "SoftplusStable", "return vg.logaddexp(x, 0.0)",
      "a = np.asarray(x.detach()._array)\n        np.clip(a, -1, 1, out=a)\n        return vg.logaddexp(x, 0.0)", M,
      by="arguments are not modified")  # fmt: skip
fault("repeated_index_lost", "GatherRows", "np.add.at(g, ctx.index, grad.numpy())", "g[ctx.index] += grad.numpy()", M,
      np.array([1, 0]), by="indices | shapes")  # fmt: skip
fault("repeated_index_overwrites", "ScatterSum", "np.add.at(out, ctx.index, x.detach().numpy())",
      "out[ctx.index] = x.detach().numpy()", Q, np.array([1, 0, 2]), by="indices | shapes")  # fmt: skip
fault("negative_index", "ScatterSum", "grad.numpy()[ctx.index]", "grad.numpy()[np.abs(ctx.index)]", Q,
      np.array([1, 0, 2]), by="indices")  # fmt: skip
fault("result_is_a_view", "HeadOf", "x[: ctx.n // 2].clone()",
      "vg.from_numpy(x.detach()._array[: ctx.n // 2])", M, by="memory shared with arguments")  # fmt: skip
fault("cycle_through_ctx", "Gate", "return a * s", "ctx.result = out = a * s\n        ctx.me = ctx\n        return out", M, P,
      by="nothing is left of a call")  # fmt: skip
fault("keeps_every_argument", "Gate", "return a * s",
      "Gate.log = getattr(Gate, 'log', [])\n        Gate.log.append(a)\n        return a * s", M, P,
      by="nothing is left of a call")  # fmt: skip
fault("seeds_for_everybody", "Counting", "return vg.sin(x)", "np.random.seed(0)\n        return vg.sin(x)", M,
      by="state between calls")  # fmt: skip
fault("retuned_by_another_method", "Memo", "self.other = 0.5", "self.gain = 0.5", M, by="state between calls",
      means={"disturb": lambda operator: operator.retune()})  # fmt: skip

# -- in place ----------------------------------------------------------------------------------------------------------
fault("inplace_with_itself", "halves_", "x.copy_(0.5 * x + 0.5 * y)", "x.mul_(0.5).add_(y * 0.5)", M, P,
      by="in-place form", means={"inplace": "halves_"})  # fmt: skip
fault("inplace_other_weight", "halves_", "0.5 * y", "0.4 * y", M, P, by="in-place form", means={"inplace": "halves_"})
fault("inplace_detached", "halves_", "0.5 * x + 0.5 * y", "0.5 * x + 0.5 * y.detach()", M, P, by="in-place form", means={"inplace": "halves_"})
fault("inplace_returns_another", "halves_", "return x.copy_(0.5 * x + 0.5 * y)",
      "x.copy_(0.5 * x + 0.5 * y)\n    return x.clone()", M, P, by="in-place form", means={"inplace": "halves_"})  # fmt: skip
fault("alpha_squared", "AddScaled", "grad * ctx.alpha", "grad * ctx.alpha**2", M, P, by="options | special points")
fault("not_marked_dirty", "AddScaled", "        ctx.mark_dirty(x)\n", "", M, P,
      by="something to check | gradients | in-place form | arguments are not modified | a graph run twice")  # fmt: skip

# -- digits ------------------------------------------------------------------------------------------------------------
fault("log_of_one_plus_exp", "SoftplusStable", "return vg.logaddexp(x, 0.0)", "return vg.log(1 + vg.exp(x))", M,
      by="values | digits")  # fmt: skip
fault("cosine_cancels", "CosDefect", "2 * half * half)", "(1 - vg.cos(safe)) / safe**2)", M, by="values | digits")
fault("roots_cancel", "SqrtGap", "return 1 / (vg.sqrt(x + 1) + vg.sqrt(x))", "return vg.sqrt(x + 1) - vg.sqrt(x)", P,
      by="values | digits", means={"domain": (0.0, np.inf)})  # fmt: skip
fault("hypot_overflows", "Hypot", "r = vg.hypot(a, b)", "r = vg.sqrt(a * a + b * b)", M, P, by="values | digits",
      means={"reference": np.hypot})  # fmt: skip
fault("moments_cancel", "Variance", "return (d * d).mean()", "return (x * x).mean() - x.mean() ** 2", M,
      by="values | digits", means={"reference": np.var})  # fmt: skip
fault("moments_cancel_unseen", "Variance", "return (d * d).mean()", "return (x * x).mean() - x.mean() ** 2", M,
      by="values | digits")  # fmt: skip
fault("softmax_overflows", "SoftmaxRows", "vg.exp(x - x.max(axis=-1, keepdims=True))", "vg.exp(x)", M,
      by="values | digits")  # fmt: skip
fault("log_softmax_by_log", "LogSoftmaxRows", "y = shifted - vg.log(vg.exp(shifted).sum(axis=-1, keepdims=True))",
      "y = vg.log(vg.exp(shifted) / vg.exp(shifted).sum(axis=-1, keepdims=True))", M, by="values | digits")  # fmt: skip
fault("gram_distances", "SquaredDistances", "return (d * d).sum(axis=-1)",
      "s = (x * x).sum(axis=-1)\n        return s[:, None] + s[None, :] - 2 * (x @ x.T)", M, by="values | digits")  # fmt: skip
fault("expm1_by_exp", "Expm1Over", "small = vg.abs(x) < 1e-4\n        safe = vg.where(small, 1.0, x)\n"
      "        return vg.where(small, 1 + x / 2 + x * x / 6, vg.expm1(safe) / safe)",
      "safe = vg.where(x == 0, 1.0, x)\n        return vg.where(x == 0, 1.0, (vg.exp(safe) - 1) / safe)", M,
      by="values | digits")  # fmt: skip
fault("slope_of_sinc_cancels", "Sinc", "small = vg.abs(x) < 1e-3\n        safe",
      "small = vg.abs(x) < 1e-9\n        safe", M, by="digits of gradients")  # fmt: skip
fault("nan_from_finite", "Gate", "s = 0.5 * (1 + vg.tanh(0.5 * b))\n        ctx",
      "s = vg.exp(b) / (1 + vg.exp(b))\n        ctx", M, P, by="values | digits")  # fmt: skip
fault("constant_of_few_digits", "Damped", "return vg.exp(-rate * t) * vg.sin(t + phase)",
      "return vg.exp(-rate * t) * vg.sin(t + phase) * 0.999999", V, by="gradients")  # fmt: skip
fault("single_inside", "Square", "return 2 * x * grad", "return (2 * x.astype(np.float32) * grad.astype(np.float32))"
      ".astype(grad.dtype)", M, by="gradients | dtypes")  # fmt: skip

# -- the incoming gradient, second derivatives, dtypes, complex numbers ------------------------------------------------
fault("gradient_not_multiplied", "Square", "return 2 * x * grad", "return 2 * x", M, by="gradients | special points")
fault("added_to_incoming", "Square", "return 2 * x * grad", "return 2 * x * grad + 1e-2", M,
      by="gradients | linear in the incoming gradient")  # fmt: skip
fault("incoming_clipped", "Scale", "return grad * ctx.factor, None", "return vg.clip(grad * ctx.factor, -50.0, 50.0), None",
      M, by="linear in the incoming gradient")  # fmt: skip
fault("incoming_small_dropped", "Scale", "return grad * ctx.factor, None",
      "return vg.where(vg.abs(grad) < 1e-8, 0.0, grad * ctx.factor), None", M,
      by="linear in the incoming gradient")  # fmt: skip
fault("incoming_layout", "Scale", "return grad * ctx.factor, None",
      "return vg.Tensor(np.frombuffer(grad.detach().numpy().tobytes('A'), grad.dtype).reshape(grad.shape)) "
      "* ctx.factor, None", M, by="layouts of incoming gradients")  # fmt: skip
fault("argument_layout", "Workspace", "work = np.empty(x.shape, x.dtype)\n        np.multiply(x.detach().numpy(), "
      "x.detach().numpy(), out=work)",
      "flat = x.detach().numpy().ravel('K').reshape(x.shape)\n        work = flat * flat", M,
      by="layouts of arguments")  # fmt: skip
fault("second_term_detached", "Square", "return 2 * x * grad", "return 2 * x.detach() * grad", M,
      by="second derivatives")  # fmt: skip
fault("softmax_detached_inside", "SoftmaxRows", "y * (grad - (grad * y).sum(axis=-1, keepdims=True))",
      "y * (grad - (grad * y.detach()).sum(axis=-1, keepdims=True))", M, by="second derivatives")  # fmt: skip
fault("second_of_gate_detached", "Gate", "grad * a * s * (1 - s)", "grad * a * (s * (1 - s)).detach()", M, P,
      by="second derivatives")  # fmt: skip
fault("incoming_detached", "Hypot", "unbroadcast(grad * a / safe, a.shape)",
      "unbroadcast(grad.detach() * a / safe, a.shape)", M, P, by="second derivatives")  # fmt: skip
fault("forward_mode_scale", "log_cosh", "self_t * scale * tanh(self_p * scale)", "self_t * tanh(self_p * scale)", M,
      scale=2.0, by="forward mode")  # fmt: skip
fault("forward_mode_power", "log_cosh", "scale * tanh(self_p * scale)\"", "scale * tanh(self_p * scale)**2\"", M,
      by="forward mode")  # fmt: skip
fault("conjugate_forgotten", "ConjugateProduct", "vg.conj(grad) * b", "grad * b", Z, Z.T.copy(), by="gradients")
fault("conjugate_in_real_calls", "ConjugateProduct", ", grad * a", ", grad * vg.conj(a)", M, P, by="complex numbers",
      means={"dtype_kinds": "fc"})  # fmt: skip
fault("wrong_in_float32", "Workspace", "return -grad * 2 * x * vg.sin(x * x)",
      "return -grad * (2 if x.dtype == np.float64 else 1) * x * vg.sin(x * x)", M, by="dtypes")  # fmt: skip

# -- subsets, the same tensor, other uses ------------------------------------------------------------------------------
fault("only_if_both", "Product", "return unbroadcast(grad * b, a.shape), unbroadcast(grad * a, b.shape)",
      "both = all(ctx.needs_input_grad)\n        return unbroadcast(grad * b, a.shape) * (1.0 if both else 2.0), "
      "unbroadcast(grad * a, b.shape)", M, P, by="every subset of arguments that require grad")  # fmt: skip
fault("needs_confused", "Quotient", "return da, db",
      "return (da if ctx.needs_input_grad[1] else None), (db if ctx.needs_input_grad[0] else None)", M, P,
      by="every subset of arguments that require grad")  # fmt: skip
fault("same_object_taken_for_square", "Product", "return a * b", "return a * b if a is not b else a * a + 0 * a + a",
      M, P[:, :], by="the same tensor twice")  # fmt: skip
fault("undefined_taken_for_ones", "Divergence", "return gs + 3 * gd, 2 * gs - gd",
      "gs = gs if np.any(gs.numpy()) else gs + 1.0\n        return gs + 3 * gd, 2 * gs - gd", M, P,
      by="undefined gradients | linear in the incoming gradient | gradients | special points")  # fmt: skip
fault("wrong_thread", "Counting", "(x,) = ctx.saved_tensors\n        return grad * vg.cos(x)",
      "(x,) = ctx.saved_tensors\n        home = threading.current_thread() is threading.main_thread()\n"
      "        return grad * vg.cos(x) * (1.0 if home else 2.0)", M, by="threads")  # fmt: skip
fault("shared_between_threads", "Counting", "ctx.save_for_backward(x)\n        return vg.sin(x)",
      "Counting.shared = x.detach().numpy().copy()\n        ctx.save_for_backward(x)\n"
      "        for _ in range(200):\n            pass\n        import time\n        time.sleep(0.001)\n"
      "        return vg.Tensor(np.sin(Counting.shared))", M, by="threads")  # fmt: skip
