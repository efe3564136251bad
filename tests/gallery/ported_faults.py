"""Faulty operators as edits of those in `ported.py`: faults of custom functions reported in issue trackers."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

from .applied_faults import Edit

__all__ = ["EDITS"]

PORTED = Path(__file__).with_name("ported.py")
EDITS: dict[str, Edit] = {}


def edit(name: str, operator: str, old: str, new: str, *, by: str) -> None:
    """Add an edit to the table."""
    assert name not in EDITS, name
    EDITS[name] = Edit(name, operator, old, new, tuple(by.split(" | ")), PORTED)


# -- factors, signs, terms ---------------------------------------------------------------------------------------------
edit("swish_middle", "HardSwish", "(2 * x + 3) / 6", "(x + 3) / 6", by="gradients")
edit("selu_scale_lost", "Selu", "grad * Selu.SCALE * vg", "grad * vg", by="gradients")
edit("celu_alpha_kept", "Celu", "vg.minimum(x, 0.0) / ctx.alpha)", "vg.minimum(x, 0.0))", by="gradients | options")
edit("snake_frequency", "Snake", "grad * (1 + twice)", "grad * (1 + a * twice)", by="gradients")
edit("snake_square_forgotten", "Snake", "/ a**2", "/ a", by="gradients")
edit("relu_squared_half", "SquaredRelu", "2 * grad * positive", "grad * positive", by="gradients")
edit("gate_slope", "GatedHalves", "ctx.opened * (1 - ctx.opened)", "(1 - ctx.opened)", by="gradients")
edit("temperature_forgotten", "GumbelSoftmax", ") / ctx.temperature), None", ")), None", by="gradients | options")
edit("support_mean_of_all", "Sparsemax", "ctx.support.sum(axis=-1, keepdims=True)", "g.shape[-1]", by="gradients")
edit("entmax_weights", "Entmax15", "root * (g - mean)", "root**2 * (g - mean)", by="gradients")
edit("spike_width_twice", "ArctanSpike", "grad * (ctx.width / 2)", "grad * (ctx.width**2 / 4)", by="gradients | options")
edit("wing_curvature", "WingLoss", "ctx.width / (ctx.curvature + size)", "ctx.width / (1 + size / ctx.curvature)", by="gradients | options")
edit("beta_forgotten", "SmoothL1", "d / ctx.beta, vg", "d, vg", by="gradients | options")
edit("mean_forgotten", "SmoothL1", ") / d.size", ")", by="gradients")
edit("observed_sign", "SmoothL1", "-grad * slope", "grad * slope", by="gradients")
edit("tversky_weights_exchanged", "Tversky", "t + ctx.alpha * (1 - t) - ctx.beta * t", "t + ctx.beta * (1 - t) - ctx.alpha * t", by="gradients")
edit("list_tails", "ListLikelihood", "np.cumsum(1 / ctx.tails)", "np.cumsum((1 / ctx.tails)[::-1])[::-1]", by="gradients")
edit("nearest_only_one_way", "Chamfer", "np.add.at(ga, ctx.to_a, -other)", "pass", by="gradients")
edit("rotation_not_transposed", "AlignedDistance", "ctx.d @ ctx.rotation.T", "ctx.d @ ctx.rotation", by="gradients")
edit("dtw_gamma", "SoftDtw", "(after - ctx.r[i, j]) / ctx.gamma", "after - ctx.r[i, j]", by="gradients | options")
edit("dtw_diagonal", "SoftDtw", "((1, 1), (1, 0), (0, 1))", "((1, 0), (0, 1))", by="gradients")
edit("chain_without_emission", "ChainPartition", "beta = log_sum(t + e[k] + beta, axis=1)", "beta = log_sum(t + beta, axis=1)", by="gradients")
edit("recurrence_after_the_step", "LinearRecurrence", "carry * ctx.h[k]", "carry * ctx.h[k + 1]", by="gradients")
edit("recurrence_without_decay", "LinearRecurrence", "            carry = carry * a[k]\n", "", by="gradients")
edit("sample_axes_exchanged", "GridSample", "[g * down, g * along]", "[g * along, g * down]", by="gradients")
edit("cosine_for_sine", "Spectrogram", "np.sin(angle)", "np.cos(angle)", by="gradients")
edit("taper_forgotten", "Spectrogram", "frames * ctx.taper", "frames", by="gradients")
edit("rms_term_lost", "RmsNorm", "(scaled - a * inverse**2 * (scaled * a).mean(axis=-1, keepdims=True))", "scaled", by="gradients")
edit("group_term_lost", "GroupNorm", " - y * (g * y).mean(axis=-1, keepdims=True)", "", by="gradients")
edit("direction_not_projected", "WeightNorm", "(grad - along * v / norm)", "grad", by="gradients")
edit("sigma_is_constant", "DividedBySigma", "grad / sigma - (grad * w).sum() / sigma**2 * np.outer(LEFT, RIGHT)", "grad / sigma", by="gradients")
edit("response_alpha", "ResponseNorm", "2 * rate * ctx.beta", "2 * ctx.alpha * ctx.beta", by="gradients | options")
edit("attention_scale", "Attention", " * ctx.scale\n        return", "\n        return", by="gradients")
edit("rotary_turned_on", "RotaryEmbedding", "[a * ctx.cos + b * ctx.sin, b * ctx.cos - a * ctx.sin]", "[a * ctx.cos - b * ctx.sin, b * ctx.cos + a * ctx.sin]", by="gradients")
edit("pool_power", "LpPool", "ratio ** (ctx.p - 1)", "ratio**ctx.p", by="gradients")
edit("sylvester_transposes", "Sylvester", "solve_sylvester(a.T, b.T, raw(grad))", "solve_sylvester(a, b, raw(grad))", by="gradients")
edit("cholesky_one_sided", "CholeskySolve", "-(np.outer(w, x) + np.outer(x, w)) / 2", "-np.outer(w, x) * 2", by="gradients")
edit("gram_once", "RbfGram", "        w = w + w.T\n", "", by="gradients")
edit("gram_scale", "RbfGram", "/ ctx.scale**2), None", "/ ctx.scale), None", by="gradients | options")
edit("quaternion_order", "QuaternionProduct", "hamilton(p * c, g)", "hamilton(g, p * c)", by="gradients")
edit("leapfrog_second_kick", "Leapfrog", "raw(gq) - h / 2 * np.cos(ctx.new) * raw(gp)", "raw(gq)", by="gradients")
edit("basis_slope", "CubicBasis", "3 * u**2 - 4 * u,", "3 * u**2 - 2 * u,", by="gradients")
edit("binomial_p", "NegativeBinomial", "r / p - n / (1 - p)", "r / p - n / p", by="gradients")
edit("kappa_forgotten", "VonMises", "-grad * ctx.kappa * vg", "-grad * vg", by="gradients | options")
edit("noise_without_scale", "ReparameterizedNormal", "grad * ctx.step, grad", "grad * np.sign(ctx.step), grad", by="gradients")

# -- reductions, axes, shapes ------------------------------------------------------------------------------------------
edit("frequency_not_summed", "Snake", "(grad * by_a).sum()", "(grad * by_a)[..., 0]", by="gradients")
edit("mean_angle_not_summed", "VonMises", "-slope.sum()", "-slope.mean()", by="gradients")
edit("weight_sums_one_axis", "RmsNorm", ".reshape(-1, a.shape[-1]).sum(axis=0)", ".sum(axis=0).reshape(-1, a.shape[-1])[0]", by="shapes")
edit("weights_of_first_row", "DirichletLogDensity", "by_weight.reshape(-1, w.size).sum(axis=0)", "by_weight.reshape(-1, w.size)[0]", by="gradients")
edit("softmax_over_queries", "Attention", "(gp * p).sum(axis=1, keepdims=True)", "(gp * p).sum(axis=0, keepdims=True)", by="gradients")
edit("wavelet_not_periodic", "PeriodicWavelet", "np.add.at(out, ctx.places, raw(grad)[:, None] * DAUBECHIES)", "out[ctx.places] = raw(grad)[:, None] * DAUBECHIES", by="gradients")
edit("stride_by_one", "TransposedConvolution", "g[k * s : k * s + len(w)]", "g[k : k + len(w)]", by="gradients | options")
edit("dilation_forgotten", "DilatedConvolution", "by_kernel[k] = x[k * d : k * d + len(g)] @ g", "by_kernel[k] = x[k : k + len(g)] @ g", by="gradients | options")
edit("channels_summed", "DepthwiseConvolution", "(a[window] * g).sum(axis=(1, 2))", "(a[window] * g).sum()", by="gradients")
edit("unshuffle_transposed", "PixelUnshuffle", ".transpose(2, 0, 3, 1)", ".transpose(2, 1, 3, 0)", by="gradients")

# -- duplicates, ties, kinks -------------------------------------------------------------------------------------------
edit("last_sample_wins", "GridSample", "np.add.at(out, (i + di, j + dj), g * wu * wv)", "out[i + di, j + dj] += g * wu * wv", by="gradients | special points | ties | shapes")
edit("last_neighbour_wins", "Chamfer", "np.add.at(gb, ctx.to_b, -one)", "gb[ctx.to_b] += -one", by="gradients | special points | ties")
edit("last_maximum_wins", "RunningMaximum", "np.add.at(out, ctx.places, raw(grad))", "out[ctx.places] += raw(grad)", by="gradients")
edit("ends_not_repeated", "CubicResize", "np.add.at(out, ctx.places, ctx.weights * raw(grad))", "out[ctx.places] += ctx.weights * raw(grad)", by="gradients")
edit("clipped_at_zero_too", "ClipLearned", "vg.where(x >= limit, grad, 0.0).sum()", "vg.where(inside, 0.0, grad).sum()", by="gradients")
edit("whole_row_at_each_place", "SegmentMaximum", "out[best, np.arange(ctx.shape[1])] += raw(grad)[segment]", "out[best] += raw(grad)[segment]", by="gradients | special points")
edit("pool_sign_at_zero", "LpPool", "np.sign(a) * ratio", "np.where(a > 0, 1.0, -1.0) * np.maximum(ratio, 1e-3)", by="gradients | special points | options")
edit("norm_by_zero", "LpPool", "np.divide(np.abs(a), norm, out=np.zeros_like(a), where=norm > 0)", "np.abs(a) / norm", by="NaN")

# -- memory: aliases, saved arrays, layouts ----------------------------------------------------------------------------
edit("softmax_written_in_backward", "GumbelSoftmax", "y, g = ctx.y.copy(), raw(grad)\n        return", "y, g = ctx.y, raw(grad)\n        y -= 0.1 * g\n        y += 0.1\n        return", by="gradients | a graph run twice | state between calls")
edit("gradient_in_a_kept_buffer", "RotaryEmbedding", "return vg.concatenate([a * ctx.cos + b * ctx.sin, b * ctx.cos - a * ctx.sin], axis=1)", "grad[:, :half] = a * ctx.cos + b * ctx.sin\n        return vg.concatenate([grad[:, :half], b * ctx.cos - a * ctx.sin], axis=1)", by="gradients | the incoming gradient")
edit("base_written", "ScatterAdded", "out = raw(base).copy()", "out = base._array", by="arguments are not modified | memory shared with arguments | state between calls | gradients")
edit("image_as_memory", "RoiAlign", "raw(grad) @", "np.frombuffer(raw(grad).tobytes(order='A')).reshape(grad.shape) @", by="layouts of incoming gradients")
edit("signal_as_memory", "FftConvolution", "np.fft.rfft(raw(x), n) *", "np.fft.rfft(np.ndarray(x.shape, buffer=x._array.base if x._array.base is not None and x._array.base.nbytes >= x._array.nbytes else x._array.copy()), n) *", by="layouts of arguments")
edit("gradient_in_float32", "LinearRecurrence", "ga, gb, carry = np.zeros_like(a)", "ga, gb, carry = np.zeros(len(a), np.float32)", by="gradients | dtypes")

# -- state, second derivatives, subsets, digits ------------------------------------------------------------------------
edit("noise_of_the_next_call", "ReparameterizedNormal", "np.random.default_rng(3)", "np.random.default_rng()", by="state between calls")
edit("sigma_kept_from_first_call", "DividedBySigma", "sigma = LEFT @ w @ RIGHT\n", "sigma = DividedBySigma.__dict__.get('sigma', LEFT @ w @ RIGHT)\n        DividedBySigma.sigma = sigma\n", by="state between calls | gradients | special points")
edit("second_derivative_of_swish", "HardSwish", "(x,) = ctx.saved_tensors\n", "x = ctx.saved_tensors[0].detach()\n", by="second derivatives")
edit("second_derivative_of_snake", "Snake", "x, a = ctx.saved_tensors\n", "x, a = (each.detach() for each in ctx.saved_tensors)\n", by="second derivatives")
edit("detached_slope", "VonMises", "vg.sin(angle - mean)", "vg.sin((angle - mean).detach())", by="second derivatives")
edit("gradient_only_if_both", "QuaternionProduct", "        (p, q), g = ", "        if not all(ctx.needs_input_grad):\n            return None, None\n        (p, q), g = ", by="every subset of arguments")
edit("softplus_overflows", "LogSigmoid", "np.minimum(a, 0) - np.log1p(z)", "a - np.log(1 + np.exp(a))", by="values | special points")
edit("partition_overflows", "ChainPartition", "ctx.total = log_sum(alphas[-1], axis=0)", "ctx.total = np.log(np.exp(alphas[-1]).sum())", by="values | special points")
edit("distances_by_gram", "RbfGram", "squared = ((a[:, None] - a[None]) ** 2).sum(axis=-1)", "n = (a * a).sum(axis=1)\n        squared = n[:, None] + n - 2 * a @ a.T", by="values | digits | special points | shapes")
