"""Faulty operators as edits of the ones in `applied.py`, in the ways in which published operators have been wrong."""

# ruff: noqa: E501
from __future__ import annotations

import re
from pathlib import Path

import attrs

__all__ = ["EDITS", "Edit"]

APPLIED = Path(__file__).with_name("applied.py")
# The operator to call if another function of the module is edited.
CALLED = {"soft_clip_": "soft_clip", "Leak": "leak_"}


@attrs.frozen
class Edit:
    """An edit: `old`, which occurs once, is replaced by `new`; one of `properties` must detect the fault."""

    name: str
    operator: str
    old: str
    new: str
    properties: tuple[str, ...]
    path: Path = APPLIED

    @property
    def called(self) -> str:
        """Return the name of the operator to check."""
        return CALLED.get(self.operator, self.operator)

    def source(self, wrong: bool) -> str:
        """Return the source of the module, with the edit or without it."""
        text = self.path.read_text()
        found = re.search(rf"^(class {self.operator}\(|def {self.operator}\(|{self.operator} = )", text, re.M)
        assert found is not None, self.name
        end = text.find("\n\n\n", found.start())
        body = text[found.start() : end]
        assert body.count(self.old) == 1, (self.name, body.count(self.old))
        return text[: found.start()] + body.replace(self.old, self.new) + text[end:] if wrong else text


EDITS: dict[str, Edit] = {}


def edit(name: str, operator: str, old: str, new: str, *, by: str) -> None:
    """Add an edit to the table."""
    assert name not in EDITS, name
    EDITS[name] = Edit(name, operator, old, new, tuple(by.split(" | ")))


edit("log_rate_forgotten", "PoissonLoss", "(1 - counts / rate)", "(1 - counts)", by="gradients")
edit("counts_by_zero_slope", "PoissonLoss", "counts / rate", "(counts > 0) * counts / (rate + 1e-3)", by="gradients")
edit("quantile_sides_exchanged", "QuantileLoss", "np.where(d > 0, -q, 1 - q)", "np.where(d > 0, 1 - q, -q)", by="gradients")
edit("quantile_of_the_median", "QuantileLoss", "np.where(d > 0, -q, 1 - q)", "np.where(d > 0, -q, q)", by="gradients")
edit("observed_not_negated", "QuantileLoss", "-grad * ctx.slope, None", "grad * ctx.slope, None", by="gradients")
edit("outliers_keep_a_slope", "TukeyBiweight", "vg.where(vg.abs(u) <= 1, r * (1 - u * u) ** 2, 0.0)", "r * (1 - u * u) ** 2", by="gradients")
edit("biweight_exponent", "TukeyBiweight", "r * (1 - u * u) ** 2", "r * (1 - u * u)", by="gradients")
edit("root_of_forward_lost", "Charbonnier", "grad * x / root", "grad * x", by="gradients")
edit("dice_one_term", "DiceLoss", " + 2 * ctx.both / ctx.total**2", "", by="gradients")
edit("focal_sign_for_negatives", "FocalLoss", "np.where(ctx.positive, slope, -slope)", "slope", by="gradients")
edit("focal_mean_lost", "FocalLoss", " / p.size)", ")", by="gradients")
edit("focal_gamma_default", "FocalLoss", "g = ctx.gamma", "g = 2.0", by="options")
edit("anchor_detached", "triplet_margin", "((anchor - negative) ** 2)", "((anchor.detach() - negative) ** 2)", by="gradients")
edit("cosine_projection_lost", "CosineSimilarity", " - cosine * a / na**2", "", by="gradients")
edit("cosine_wrong_norm", "CosineSimilarity", "cosine * b / nb**2", "cosine * b / na**2", by="gradients")
edit("kl_plus_one", "KullbackLeibler", "(vg.log(p / q) + 1)", "vg.log(p / q)", by="gradients")
edit("kl_sign", "KullbackLeibler", "-grad * p / q", "grad * p / q", by="gradients")
edit("smoothing_left_out_of_gradient", "SmoothedCrossEntropy", "ctx.slope = (np.exp(log_p) - target)", "hard = np.eye(a.shape[1])[raw(labels)]\n        ctx.slope = (np.exp(log_p) - hard)", by="gradients")
edit("batch_mean_lost", "SmoothedCrossEntropy", "(np.exp(log_p) - target) / len(a)\n", "(np.exp(log_p) - target)\n", by="gradients")
edit("hinge_right_class_once", "MulticlassHinge", "-ctx.active.sum()", "-1", by="options")
edit("hinge_always_active", "MulticlassHinge", "ctx.active = margins > 0", "ctx.active = np.arange(len(a)) != label", by="gradients")
edit("sign_passes_everything", "SignStraightThrough", " * (vg.abs(x) <= 1)", "", by="gradients")
edit("choice_temperature", "HardChoice", " / ctx.temperature), None", "), None", by="gradients")
edit("choice_projection", "HardChoice", "(g - (g * p).sum())", "g", by="gradients")
edit("quantize_one_sided", "FakeQuantize", "a == raw(x) / scale", "a >= raw(x) / scale", by="options")
edit("reversal_forgotten", "ReverseGradient", "-ctx.strength * grad", "ctx.strength * grad", by="gradients")
edit("reversal_returns_itself", "ReverseGradient", "return x.clone()", "return vg.from_numpy(raw(x))", by="memory shared with arguments")
edit("spike_slope", "Spike", "grad * 4.0 * s", "grad * s", by="gradients")
edit("upsampled_mean", "UpsampleNearest", ".sum(axis=(1, 3))", ".mean(axis=(1, 3))", by="gradients")
edit("upsampled_axes", "UpsampleNearest", "g.reshape(h // f, f, w // f, f).sum(axis=(1, 3))", "g.reshape(f, h // f, f, w // f).sum(axis=(0, 2))", by="gradients")
edit("pool_all_equal_largest", "MaxPool2", "np.put_along_axis(blocks, ctx.best[..., None], raw(grad)[..., None], axis=-1)", "blocks[..., 0] = raw(grad)", by="gradients")
edit("pool_shape_exchanged", "MaxPool2", "reshape(h // 2, w // 2, 2, 2).transpose(0, 2, 1, 3).reshape(h, w)", "reshape(h // 2, w // 2, 2, 2).transpose(0, 3, 1, 2).reshape(h, w)", by="gradients")
edit("pool_overlap_overwritten", "AveragePool1", "out[start : start + ctx.size] += g / ctx.size", "out[start : start + ctx.size] = g / ctx.size", by="gradients")
edit("pool_stride_lost", "AveragePool1", "start = k * ctx.stride", "start = k", by="gradients")
edit("dilation_lost", "CausalConvolution", "        for j in range(len(k)):\n            shift = j * ctx.dilation", "        for j in range(len(k)):\n            shift = j", by="gradients")
edit("kernel_not_flipped", "Correlate2", "convolve2d(raw(grad), kernel, mode=\"full\")", "correlate2d(raw(grad), kernel, mode=\"full\")", by="gradients")
edit("patches_overwritten", "Patches", "out[i : i + ctx.width] += row", "out[i : i + ctx.width] = row", by="gradients")
edit("patches_are_a_view", "Patches", "vg.Tensor(np.lib.stride_tricks.sliding_window_view(raw(x), width))", "vg.from_numpy(np.lib.stride_tricks.sliding_window_view(x.detach()._array, width))", by="memory shared with arguments")
edit("variation_detached", "total_variation", "vg.abs(image[:, 1:] - image[:, :-1])", "vg.abs(image[:, 1:] - image[:, :-1].detach())", by="gradients")
edit("rolling_window_not_divided", "RollingMean", "np.ones(ctx.window)) / ctx.window", "np.ones(ctx.window))", by="gradients")
edit("rolling_cancels", "RollingMean", "total = np.cumsum(np.insert(raw(x), 0, 0.0))", "total = np.cumsum(np.insert(raw(x), 0, 1e9))", by="dtypes")
edit("average_not_reversed", "ExponentialAverage", "for t in reversed(range(len(g))):", "for t in range(len(g)):", by="gradients")
edit("average_decay_exchanged", "ExponentialAverage", "state = g[t] + (1 - ctx.alpha) * state", "state = g[t] + ctx.alpha * state", by="gradients")
edit("same_kernel_not_reversed", "SmoothSame", "np.convolve(g, kernel[::-1], mode=\"same\")", "np.convolve(g, kernel, mode=\"same\")", by="gradients")
edit("blur_sigma_default", "GaussianBlur", "gaussian_filter1d(raw(grad), ctx.sigma,", "gaussian_filter1d(raw(grad), 1.0,", by="gradients")
edit("blur_at_borders", "GaussianBlur", "scipy.ndimage.gaussian_filter1d(raw(grad), ctx.sigma, mode=\"constant\")", "scipy.ndimage.gaussian_filter1d(raw(grad), ctx.sigma)", by="gradients")
edit("pole_not_reversed", "OnePole", "raw(grad)[::-1])[::-1].copy()", "raw(grad))", by="gradients")
edit("cosine_inverse_not_orthogonal", "CosineTransform", "idct(raw(grad), norm=\"ortho\")", "idct(raw(grad))", by="gradients")
edit("cosine_transposed_lost", "CosineTransform", "scipy.fft.idct(", "scipy.fft.dct(", by="gradients")
edit("power_factor", "PowerSpectrum", "2 * ctx.n *", "2 *", by="gradients")
edit("power_by_forward_transform", "PowerSpectrum", "np.fft.ifft(raw(grad) * ctx.spectrum).real", "np.fft.fft(raw(grad) * ctx.spectrum).real", by="gradients")
edit("trapezoid_first_lost", "CumulativeTrapezoid", "        out[:-1] += tail\n", "        out[1:-1] += tail[1:]\n", by="gradients")
edit("trapezoid_dx_default", "CumulativeTrapezoid", "[::-1] * ctx.dx / 2", "[::-1] / 2", by="gradients")
edit("heat_border", "HeatStep", "        out[1:-1, 1:-1] -= 4 * inner", "        out -= 4 * ctx.alpha * g", by="gradients")
edit("heat_in_place", "HeatStep", "out = a.copy()", "out = a", by="something to check")
edit("gelu_density_lost", "ExactGelu", " + a * np.exp(-a * a / 2) / np.sqrt(2 * np.pi)", "", by="gradients")
edit("gelu_constant", "ExactGelu", "np.sqrt(2 * np.pi)", "2.5066", by="gradients")
edit("cdf_tail", "LogNormalCdf", "y = scipy.special.log_ndtr(a)", "y = np.log(scipy.special.ndtr(a))", by="values")
edit("bessel_order", "Bessel", "scipy.special.jvp(ctx.order, ctx.a)", "-scipy.special.jv(ctx.order + 1, ctx.a)", by="gradients")
edit("student_df", "StudentLogDensity", "(ctx.df + x * x)", "(1 + x * x)", by="gradients")
edit("beta_b_for_a", "BetaLogDensity", "(ctx.b - 1) / (1 - x)", "(ctx.a - 1) / (1 - x)", by="gradients")
edit("beta_shape_without_gradient", "BetaLogDensity", "return grad * ((ctx.a - 1) / x", "return grad * (ctx.a / x", by="gradients")
edit("bands_not_transposed", "SolveTridiagonal", "transposed, raw(grad)", "ctx.bands, raw(grad)", by="gradients")
edit("bands_shifted", "SolveTridiagonal", "transposed[0, 1:] = ctx.bands[2, :-1]", "transposed[0, 1:] = ctx.bands[0, 1:]", by="gradients")
edit("toeplitz_one_side", "SymmetricToeplitzProduct", "(np.trace(outer, -k) if k else 0)", "0", by="gradients")
edit("toeplitz_diagonal_twice", "SymmetricToeplitzProduct", "(np.trace(outer, -k) if k else 0)", "np.trace(outer, -k)", by="gradients")
edit("expm_not_transposed", "MatrixExponential", "raw(a).T, raw(grad)", "raw(a), raw(grad)", by="gradients")
edit("logdet_once", "LogDeterminantByCholesky", "return grad * scipy", "return 0.5 * grad * scipy", by="gradients")
edit("substitution_full", "ForwardSubstitution", "-np.tril(np.outer(of_b, ctx.y))", "-np.outer(ctx.y, of_b)", by="gradients")
edit("substitution_not_transposed", "ForwardSubstitution", "lower=True, trans=\"T\"", "lower=True", by="gradients")
edit("residual_term_lost", "LeastSquares", "np.outer(ctx.r, z) - np.outer(of_b, ctx.x)", "-np.outer(of_b, ctx.x)", by="gradients")
edit("quadratic_symmetric_only", "QuadraticForm", "(a @ x + x @ a)", "2 * (a @ x)", by="gradients")
edit("mesh_not_transposed_rows", "OnMesh", "MESH.T @ raw(grad)", "abs(MESH).T @ raw(grad)", by="gradients")
edit("minkowski_sign", "Minkowski", "np.sign(ctx.d) * ", "", by="gradients")
edit("minkowski_origin", "Minkowski", "if ctx.length == 0:", "if False:", by="NaN")
edit("haversine_not_clipped", "haversine", "vg.cos(lat1) * vg.cos(lat2)", "vg.cos(lat1) * vg.cos(lat2.detach())", by="gradients")
edit("quaternion_norm_detached", "rotation_matrix", "q / vg.sqrt((q * q).sum())", "q / vg.sqrt((q * q).sum()).detach()", by="gradients")
edit("spherical_r_lost", "FromSpherical", "of_p = r * vg.sin(t)", "of_p = vg.sin(t)", by="gradients")
edit("planck_power", "Planck", "(-5 - ctx.u", "(-4 - ctx.u", by="gradients")
edit("planck_overflow", "Planck", "np.expm1(-ctx.u)", "np.expm1(-ctx.u) * 1.0001", by="gradients")
edit("arrhenius_square", "arrhenius", "energy / temperature ** 2", "energy / temperature", by="gradients")
edit("saturation_detached", "michaelis_menten", "(k_m + substrate)", "(k_m + substrate.detach())", by="gradients")
edit("delta_of_d2", "CallPrice", "ctx.delta = scipy.special.ndtr(d1)", "ctx.delta = scipy.special.ndtr(d1 - width)", by="gradients")
edit("call_strike_default", "CallPrice", "np.log(s / strike)", "np.log(s)", by="options")
edit("table_repeated_lost", "InterpolateTable", "np.add.at(of_values, ctx.left, g * (1 - ctx.share))", "of_values[ctx.left] += g * (1 - ctx.share)", by="gradients")
edit("table_slope_sign", "InterpolateTable", "ctx.values[ctx.left + 1] - ctx.values[ctx.left]", "ctx.values[ctx.left] - ctx.values[ctx.left + 1]", by="gradients")
edit("spline_second", "SplineTable", "TABLE(ctx.a, 1)", "TABLE(ctx.a, 2)", by="gradients")
edit("histogram_width", "SoftHistogram", "-ctx.d * ctx.bumps / ctx.width", "-ctx.d * ctx.bumps", by="gradients")
edit("segments_not_divided", "SegmentMean", "(raw(grad) / ctx.sizes[:, None])[ctx.segments]", "raw(grad)[ctx.segments]", by="gradients")
edit("bag_repeated", "EmbeddingBag", "np.add.at(out, ctx.bags, raw(grad)[:, None] * ctx.scale)", "out[ctx.bags] += raw(grad)[:, None] * ctx.scale", by="gradients")
edit("bag_mode_forgotten", "EmbeddingBag", "raw(grad)[:, None] * ctx.scale", "raw(grad)[:, None]", by="gradients")
edit("masked_projection_axis", "MaskedSoftmax", "(grad * y).sum(axis=-1, keepdims=True)", "(grad * y).sum(axis=0, keepdims=True)", by="gradients")
edit("fill_keeps_everything", "MaskedFill", "grad * ctx.keep", "grad", by="gradients")
edit("fill_in_place", "MaskedFill", "out = raw(x).copy()", "out = raw(x)", by="something to check")
edit("trim_count", "TrimmedMean", "out[ctx.kept] = 1 / len(ctx.kept)", "out[ctx.kept] = 1 / ctx.n", by="gradients")
edit("minimum_temperature_lost", "soft_minimum", "- temperature * vg.log", "- vg.log", by="gradients")
edit("gate_detached", "gated_half", "vg.exp(-x[n : 2 * n])", "vg.exp(-x[n : 2 * n].detach())", by="gradients")
edit("inplace_limit", "soft_clip_", "x.copy_(limit * vg.tanh(x / limit))", "x.copy_(limit * vg.tanh(x))", by="in-place form")
edit("leak_default", "Leak", "grad * ctx.decay", "grad * 0.9", by="gradients")
edit("leak_not_dirty", "Leak", "        ctx.mark_dirty(v)\n", "", by="something to check")
edit("integration_detached", "leaky_integration", "decay * v[t - 1]", "decay * v[t - 1].detach()", by="gradients")
edit("variance_detached", "normalized_in_place", "vg.sqrt((y * y).mean() + 1e-5)", "vg.sqrt((y * y).mean() + 1e-5).detach()", by="gradients")
