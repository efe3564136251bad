"""Faulty operators as edits of those in `newcomers.py` and `careful.py`, as slips of their authors."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from .applied_faults import Edit

__all__ = ["EDITS"]

EDITS: dict[str, Edit] = {}
FILES = {False: Path(__file__).with_name("newcomers.py"), True: Path(__file__).with_name("careful.py")}


def edit(name: str, operator: str, old: str, new: str, *, by: str, careful: bool = False) -> None:
    """Add an edit to the table."""
    assert name not in EDITS, name
    EDITS[name] = Edit(name, operator, old, new, tuple(by.split(" | ")), FILES[careful])


# -- factors, signs, terms ---------------------------------------------------------------------------------------------
edit("attention_scores_unscaled", "DotProductAttention", "        dS /= np.sqrt(ctx.Q.shape[1])\n", "", by="gradients")
edit("forget_gate_slope", "LstmGates", "dnew * c * f * (1 - f)", "dnew * c * f", by="gradients")
edit("cell_gradient_of_hidden_only", "LstmGates", "dnew = dc + dh * o * (1 - t**2)", "dnew = dh * o * (1 - t**2)", by="gradients | undefined gradients")
edit("instance_norm_projection", "InstanceNorm", "(g - mg - ctx.y * mgy)", "(g - mg)", by="gradients")
edit("squash_radial_term", "Squash", "2 * a * df *", "a * df *", by="gradients")
edit("radial_width_power", "RadialLayer", ".sum() / s**3", ".sum() / s**2", by="gradients")
edit("weight_of_negatives_too", "BceWithLogits", "((1 - t) - w * s)", "(w * (1 - t) - w * s)", by="special points | options")
edit("sum_taken_for_mean", "NllOfLogits", 'scale = len(ctx.p) if ctx.reduction == "mean" else 1', "scale = len(ctx.p)", by="options")
edit("hinge_pulls_together", "ContrastivePair", "2 * y * dist - 2 * (1 - y) * hinge", "2 * y * dist + 2 * (1 - y) * hinge", by="options | special points")
edit("virial_factor", "LennardJones", "24 * epsilon * (2 * s6**2 - s6)", "24 * epsilon * (s6**2 - s6)", by="gradients")
edit("newton_third_law", "LennardJones", "                force[j] -= f\n", "", by="gradients")
edit("sigma_lost_in_force", "LennardJones", "f = 24 * epsilon * (2 * s6**2 - s6) / r2 * d", "f = 24 * epsilon * (2 * s6**2 - s6) * (sigma / 0.9) / r2 * d", by="options")
edit("charges_half", "SoftCoulomb", "grad * (inv @ c)", "grad * (inv @ c) / 2", by="gradients")
edit("feedback_of_mean_field", "MeanField", "grad * (s / (1 - 0.5 * s))", "grad * s", by="gradients")
edit("wraps_at_the_ends", "WaveStep", "        if ctx.periodic:\n            lap[1] += g[0]", "        if True:\n            lap[1] += g[0]", by="gradients")
edit("periodic_end_forgotten", "WaveStep", "            lap[-2] += g[-1]\n", "", by="options")
edit("gamma_squared", "RelativisticEnergy", "ctx.gamma**3", "ctx.gamma**2", by="gradients")
edit("biquad_feedback_sign", "Biquad", "g[n - 1 - k] -= aa[k] * g[n]", "g[n - 1 - k] += aa[k] * g[n]", by="gradients")
edit("one_side_of_the_lag", "Autocorrelation", "            out[lag:] += g[lag] * a[: len(a) - lag]\n", "", by="gradients")
edit("cutoff_includes_one_more", "LowPass", "        f = np.fft.rfft(grad.numpy())\n        f[ctx.cutoff :] = 0", "        f = np.fft.rfft(grad.numpy())\n        f[ctx.cutoff + 1 :] = 0", by="gradients")
edit("decibel_of_two", "Decibel", "10 / np.log(10)", "10 / np.log(2)", by="gradients")
edit("floor_has_a_slope", "Decibel", " / ctx.a * ctx.above", " / ctx.a", by="options | special points")
edit("mean_not_subtracted", "WeightedMean", "((ctx.a - ctx.mean) / ctx.total)", "(ctx.a / ctx.total)", by="gradients")
edit("responsibilities_of_logits", "MixtureLogLikelihood", "(r - ctx.p).sum(axis=0)", "r.sum(axis=0)", by="gradients")
edit("mahalanobis_half", "NormalLogDensity", "0.5 * g * (np.outer(ctx.alpha, ctx.alpha) - ctx.inv)", "0.5 * g * np.outer(ctx.alpha, ctx.alpha)", by="gradients")
edit("median_whatever_q", "Quantile", "g[ctx.low] += (1 - ctx.w) *", "g[ctx.low] += 0.8 *", by="options | shapes")
edit("ridge_forgotten", "LogisticRegression", "+ 2 * ctx.ridge * ctx.b", "", by="gradients | options")
edit("discount_of_cash_sign", "PresentValue", "return grad * ctx.slope, grad * ctx.d", "return -grad * ctx.slope, grad * ctx.d", by="gradients")
edit("put_has_delta_of_call", "BlackScholes", "ctx.delta = sign * cdf(sign * d1)", "ctx.delta = cdf(d1)", by="options")
edit("risk_of_asymmetric", "PortfolioRisk", "(ctx.c + ctx.c.T) @ ctx.w", "2 * ctx.c @ ctx.w", by="gradients | special points | shapes")
edit("maturity_slope", "NelsonSiegel", "b[2] * (dslope + e)", "b[2] * (dslope - e)", by="gradients")
edit("edge_of_last_vertex", "PolygonArea", "np.roll(ctx.x, 1) - np.roll(ctx.x, -1)", "np.append(0.0, ctx.x[:-1]) - np.roll(ctx.x, -1)", by="gradients")
edit("length_of_quaternion", "QuaternionToMatrix", "(gu - ctx.u * (ctx.u @ gu)) / ctx.n", "(gu - ctx.u * (ctx.u @ gu))", by="gradients")
edit("shared_vertices_once", "MeshVolume", "np.add.at(out, ctx.f[:, 1], np.cross(ctx.c, ctx.a))", "out[ctx.f[:, 1]] += np.cross(ctx.c, ctx.a)", by="gradients")
edit("repeated_words_once", "PaddedEmbedding", "np.add.at(out, ctx.i, grad.numpy())", "out[ctx.i] += grad.numpy()", by="gradients | indices")
edit("same_neighbours_once", "LinearResample", "np.add.at(out, ctx.i, g * (1 - ctx.w))", "out[ctx.i] += g * (1 - ctx.w)", by="special points | ties | shapes | gradients")
edit("second_of_equal_picks", "MedianOfThree", "np.bincount(ctx.pick, weights=grad.numpy(), minlength=ctx.n)", "np.where(np.isin(np.arange(ctx.n), ctx.pick), np.resize(grad.numpy(), ctx.n), 0.0)", by="gradients")
edit("transform_of_another_axis", "CosineTransform2", "idct(grad.numpy(), axis=ctx.axis", "idct(grad.numpy(), axis=-1", by="options | shapes")
edit("logit_slope_outside", "clipped_logit", "where((p > eps) & (p < 1 - eps), 1 / (p * (1 - p)), 0.0)", "1 / (p * (1 - p))", by="special points | options")
edit("delta_is_one", "huber_element", '"-grad * clip(a - b, -delta, delta)"', '"-grad * clip(a - b, -1.0, 1.0)"', by="gradients | options")
edit("sine_of_sine", "sin_cos", "grad_s * c - grad_c * s", "grad_s * c + grad_c * s", by="gradients")
edit("sigma_squared", "gaussian_of", "(x - mu) ** 2 / sigma**3", "(x - mu) ** 2 / sigma**2", by="gradients")
edit("scale_once", "scaled_log1p", "sign(x) * scale / (1", "sign(x) / (1", by="gradients | options")
edit("count_of_first_axis", "mean_square", "x.shape[axis]", "x.shape[0]", by="gradients | options | shapes")

# -- in careful ones ---------------------------------------------------------------------------------------------------
edit("row_not_reduced", "SafeDivide", "reduced(gy, safe.shape)", "gy[(0,) * (gy.ndim - safe.ndim)]", by="gradients | shapes", careful=True)
edit("slope_detached", "SoftSign", "(x,) = ctx.saved_tensors", "x = ctx.saved_tensors[0].detach()", by="second derivatives", careful=True)
edit("threshold_inclusive", "SoftThreshold", "vg.abs(x) > ctx.limit", "x > ctx.limit", by="gradients", careful=True)
edit("origin_divides_by_zero", "Hypotenuse", "safe = vg.where(r == 0, 1.0, r)", "safe = r + 1e-3", by="gradients", careful=True)
edit("axis_of_weights", "LogMeanExp", "np.expand_dims(raw(grad), ctx.axis)", "raw(grad)[:, None]", by="options | shapes", careful=True)
edit("first_of_ties", "RangeOf", "up / up.sum(-1, keepdims=True)", "up", by="ties | special points | shapes", careful=True)
edit("keepdims_forgotten", "RangeOf", "g = raw(grad) if ctx.keepdims else raw(grad)[..., None]", "g = raw(grad).reshape(-1, 1)", by="shapes | options", careful=True)
edit("triangle_reversed", "CumulativeLogSum", "np.arange(n)[:, None] <= np.arange(n)", "np.arange(n)[:, None] >= np.arange(n)", by="gradients", careful=True)
edit("correlated_for_convolved", "WeightedWindow", "np.convolve(g, w)", "np.convolve(g, w[::-1])", by="gradients", careful=True)
edit("solution_not_transposed", "SolveSymmetric", "np.linalg.solve(a.T, raw(grad))", "np.linalg.solve(a, raw(grad))", by="special points | gradients | shapes", careful=True)
edit("inverse_not_transposed", "LogAbsDeterminant", "np.swapaxes(np.linalg.inv(raw(a)), -1, -2)", "np.linalg.inv(raw(a))", by="special points | gradients | shapes", careful=True)
edit("uncentered_covariance", "CrossCovariance", "(y - y.mean(axis=0)) @ grad.T", "y @ grad.T", by="gradients", careful=True)
edit("remainder_rows", "BlockMean", "out[: h * n, : w * n] = vg", "out[-h * n :, -w * n :] = vg", by="gradients | shapes | options", careful=True)
edit("energy_only_of_rows", "SobelEnergy", "        out[:-2] -= dy\n", "", by="gradients", careful=True)
edit("segment_with_itself", "SegmentMeanOf", "(g[ctx.segment] * ctx.weights)", "(g[ctx.segment] / len(g))", by="gradients", careful=True)
edit("normals_of_first_corner", "FaceNormals", "(-gu - gw, gu, gw)", "(gu - gw, gu, gw)", by="gradients", careful=True)
edit("imaginary_sign", "ComplexProduct", "g1 * b[..., 0] - g0 * b[..., 1]", "g1 * b[..., 0] + g0 * b[..., 1]", by="gradients", careful=True)
edit("sigma_not_reduced", "NormalDensity", "reduced(gy * (z * z - 1) / sigma, sigma.shape)", "(gy * (z * z - 1) / sigma).mean() * vg.ones(sigma.shape)", by="gradients | shapes", careful=True)
edit("euler_order", "PendulumSteps", "            gp += ctx.dt * gq\n            gq -= ctx.dt * np.cos(q) * gp\n", "            gq -= ctx.dt * np.cos(q) * gp\n            gp += ctx.dt * gq\n", by="gradients", careful=True)
edit("step_kept_by_the_class", "DiffusionStep", "return vg.Tensor(scipy.linalg.solve_banded((1, 1), ctx.bands, raw(grad))", "DiffusionStep.bands = getattr(DiffusionStep, 'bands', ctx.bands) if len(getattr(DiffusionStep, 'bands', ctx.bands)[0]) == len(ctx.bands[0]) else ctx.bands\n        return vg.Tensor(scipy.linalg.solve_banded((1, 1), DiffusionStep.bands, raw(grad))", by="options | state between calls | gradients", careful=True)
edit("weight_of_the_wrong_end", "careful_lerp", "careful_reduced(grad * (1 - t), a)", "careful_reduced(grad * t, a)", by="gradients", careful=True)
edit("slope_forgotten_in_place", "careful_leaky", "np.where(x >= 0, x, slope * x)", "np.where(x >= 0, x, 0.2 * x)", by="options", careful=True)
edit("angle_of_both", "careful_polar", "grad_y * r * cos(t) - grad_x * r * sin(t)", "grad_y * r * cos(t)", by="gradients", careful=True)
edit("mean_of_everything", "careful_softmax_entropy", "grad - grad.mean(axis=-1, keepdims=True)", "grad - grad.mean()", by="gradients", careful=True)

# -- memory, state, dtypes ---------------------------------------------------------------------------------------------
edit("argument_sorted_in_place", "SortedDistance", "ctx.i, ctx.j = np.argsort(a), np.argsort(b)", "ctx.i, ctx.j = np.argsort(a), np.argsort(b)\n        u._array.sort()", by="arguments are not modified | state between calls | gradients")
edit("incoming_gradient_scaled", "GatedByBias", "        s = vg.sigmoid(x + b)\n        ds", "        s = vg.sigmoid(x + b)\n        g.mul_(1.0 + 1e-9)\n        ds", by="the incoming gradient stays the caller's")
edit("gradient_of_float32", "RealSpectrum", "2 * np.fft.ifft(ctx.f * raw(grad)).real * ctx.n", "(2 * np.fft.ifft(ctx.f * raw(grad)).real * ctx.n).astype(np.float32).astype(float)", by="gradients | dtypes", careful=True)
edit("gram_forgets_when_alone", "HouseholderReflection", "return gx, gv", "return gx, (gv if ctx.needs_input_grad[0] else -2 * (grad * vx + x * vg_) / s)", by="every subset", careful=True)
edit("softplus_overflows", "LogisticLoss", "np.logaddexp(np.zeros((), a.dtype), -a)", "np.log(1 + np.exp(-a))", by="values | special points", careful=True)
edit("rows_normalized_by_columns", "Standardize", "y * (grad * y).mean(axis=-1, keepdims=True)", "y * (grad * y).mean(axis=-1)[..., None].mean()", by="gradients | shapes", careful=True)
edit("block_written_once", "Gather", "vg.add.at(out, ctx.index, grad)", "out[ctx.index] = grad", by="indices", careful=True)
edit("mask_counts_everything", "MaskedMean", "vg.Tensor(raw(grad) * ctx.w)", "vg.Tensor(raw(grad) / np.size(ctx.w))", by="gradients", careful=True)
