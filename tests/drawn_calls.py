"""Calls of NumPy's functions drawn from tables: all options, dtypes, layouts and special values, on arrays and tensors.

Nothing here depends on the implementation. Calls that NumPy refuses are skipped. Values, dtypes and scalars are
compared with NumPy's; gradients, forward mode and second derivatives with differences; and gradients in single
precision with those in double.
"""

from __future__ import annotations

import importlib.util
import random
import re
import warnings

import numpy as np

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.errors import DifferentiabilityError
from viewgrad.tensor.tensor import is_scalar

METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull linear "
    "median_unbiased normal_unbiased lower higher midpoint nearest"
).split()
ORDERS = [None, 1, -1, 2, -2, 3, 0.5, 0, np.inf, -np.inf]
NORMS = [None, "ortho", "forward", "backward"]
UFUNCS = "sin exp tanh negative square absolute sqrt log arctan sign conjugate reciprocal log1p expm1 cbrt exp2 sinh"
BINARY = "add subtract multiply divide power maximum minimum arctan2 hypot logaddexp fmax copysign fmod remainder"
FOLDS = ["add", "multiply", "maximum", "logaddexp", "hypot", "subtract", "fmin"]

OPTIONS = {
    "keepdims": [True, False], "initial": [0.5, -1.0, 2, 0], "ddof": [0, 1, 0.5], "method": METHODS, "ord": ORDERS,
    "norm": NORMS, "n": [0, 1, 2, 3], "prepend": [0.3], "append": [0.7, 0], "edge_order": [1, 2], "dx": [0.5],
    "offset": [1, -1, 5], "k": [1, -1, 2, 5], "mode": ["wrap", "clip", "raise"], "rowvar": [True, False],
    "bias": [True, False], "period": [1.3, 1.9], "order": ["C", "F", "A", "K"], "left": [0.1],
    "optimize": [True, False, "greedy"],
}  # fmt: skip

# What is called (`a`, `b` and `c` are arrays; b and c can be broadcast to a), and the options that may be drawn for it.
CALLS = [
    *((f"np.{name}(a, **o)", "axes dtype keepdims initial where") for name in "sum prod nansum nanprod".split()),
    *((f"np.{name}(a, **o)", "axes keepdims initial where") for name in "max min nanmax nanmin".split()),
    *((f"np.{name}(a, **o)", "axes dtype keepdims where") for name in "mean nanmean".split()),
    *((f"np.{name}(a, **o)", "axes dtype keepdims where ddof") for name in "var std nanvar nanstd".split()),
    *((f"np.{name}(a, **o)", "axis dtype") for name in "cumsum cumprod nancumsum nancumprod".split()),
    *((f"np.{name}(a, {q}, **o)", "axes method keepdims") for name in ("quantile", "nanquantile")
      for q in ("0.3", "[0.1, 1]", "[[0.2], [0.9]]")),
    *((f"np.{name}(a, {q}, **o)", "axes method keepdims") for name in ("percentile", "nanpercentile")
      for q in ("30", "[10, 80.0]")),
    *((f"np.{name}(a, **o)", "axes keepdims") for name in ("median", "nanmedian", "ptp")),
    *((f"np.{fold}.reduce(a, **o)", "axes keepdims initial where dtype") for fold in FOLDS),
    *((f"np.{fold}.accumulate(a, **o)", "dim dtype") for fold in FOLDS),
    *((f"np.{fold}.reduceat(a, [0, 1, 0], **o)", "dim dtype") for fold in FOLDS[:3]),
    *((f"np.{fold}.outer(a, b, **o)", "dtype") for fold in FOLDS[:3]),
    *((f"np.{name}(a, **o)", "where dtype out") for name in UFUNCS.split()),
    *((f"np.{name}(a, b, **o)", "where dtype out") for name in BINARY.split()),
    *((f"np.{name}(b, a, **o)", "where out") for name in BINARY.split()),
    *((f"np.fft.{name}(a, **o)", "length dim norm") for name in "fft ifft rfft irfft hfft ihfft".split()),
    *((f"np.fft.{name}(a, **o)", "lengths dims norm") for name in "fftn ifftn rfftn irfftn fft2".split()),
    ("np.linalg.norm(a, **o)", "ord axes keepdims"), ("np.linalg.vector_norm(a, **o)", "ord axes keepdims"),
    ("np.average(a, weights=b * b.conj() + 0.3, **o)", "axes keepdims"), ("np.average(a, **o)", "axes keepdims"),
    ("np.diff(a, **o)", "n dim prepend append"), ("np.gradient(a, **o)", "axes edge_order"),
    ("np.sort(a, **o)", "axis"), ("np.partition(a, -1, **o)", "axis"), ("np.trapezoid(a, **o)", "dx dim"),
    ("np.clip(a, b, c)", ""), ("np.clip(a, None, b, **o)", "dtype"), ("np.nan_to_num(a, nan=0.5)", ""),
    ("np.roll(a, 2, **o)", "axes"), ("np.flip(a, **o)", "axes"), ("np.repeat(a, 2, **o)", "axis"),
    ("np.trace(a, **o)", "offset dtype"), ("np.diagonal(a, **o)", "offset"), ("np.tril(a, **o)", "k"),
    ("np.take(a, [0, -1], **o)", "axis mode"), ("np.delete(a, [0], **o)", "axis"), ("np.append(a, a, **o)", "axis"),
    ("np.insert(a, 0, 0.3, **o)", "axis"), ("np.compress([True, False], a, **o)", "axis"),
    *([("np.i0(a)", "")] if importlib.util.find_spec("scipy") else []),
    ("np.cov(a, **o)", "rowvar bias"), ("np.corrcoef(a)", ""), ("np.unwrap(3 * a, **o)", "dim period"),
    ("np.reshape(a, -1, **o)", "order"), ("np.ravel(a, **o)", "order"), ("np.copy(a, **o)", "order"),
    ("np.rot90(a, **o)", "k"), ("np.tile(a, (2, 1))", ""), ("np.vander(a, 3)", ""), ("np.sinc(a)", ""),
    ("a.real.astype(np.int8) < 300", ""), ("np.greater(2**70, a.real.astype(np.uint64))", ""), ("np.conj(a != 0)", ""),
    ("np.where(a.real > b.real, a, c)", ""), ("np.where(b.real, a, 0.5)", ""),
    ("np.select([a.real > 0.5, b.real > 0], [a, b], 0.3)", ""),
    ("np.interp(a.real, [-2, -0.3, 0.4, 2], [0.3, 1, -0.5, 0.9], **o)", "left period"), ("np.angle(a)", ""),
    ("np.einsum('ij,kj->ik', a, a, **o)", "optimize"), ("np.einsum('ij,ij->', a, a, **o)", "optimize"),
    ("np.einsum('ii->i', a)", ""), ("np.tensordot(a, a, 1)", ""), ("np.kron(a, b)", ""), ("np.inner(a, a)", ""),
    ("a @ a.T", ""), ("np.vdot(a, a)", ""), ("np.outer(a, b)", ""), ("np.linalg.det(a)", ""), ("np.poly(a)", ""),
    ("np.linalg.inv(a + 3 * np.eye(len(a)))", ""), ("np.linalg.solve(a + 3 * np.eye(len(a)), a[0])", ""),
    ("np.linalg.pinv(a)", ""), ("np.linalg.svdvals(a)", ""), ("np.linalg.cond(a)", ""), ("np.linalg.qr(a)[1]", ""),
    ("np.linalg.slogdet(a + 3 * np.eye(len(a)))", ""), ("np.linalg.lstsq(a, a[:, 0])[0]", ""),
    ("np.linalg.matrix_power(a, 3)", ""), ("np.linalg.eigvalsh(a + a.conj().T)", ""), ("np.modf(a)", ""),
    ("np.polyfit(a, a**2 + 0.3 * a[::-1], 1)", ""), ("np.polyval(a, b)", ""), ("np.polymul(a, [0.5, 2])", ""),
    ("np.polymul(b, a)", ""), ("np.polydiv(a, [0.5, 2])", ""), ("np.polyadd(a, [0.5, 2])", ""), ("np.polyder(a)", ""),
    ("np.convolve(a, [0.5, -1], **o)", "convolving"), ("np.correlate(a, [0.5, -1j], **o)", "convolving"),
    ("np.bincount(np.arange(len(a)) % 2, weights=a)", ""), ("np.histogram([0.1, 0.4, 0.9], 2, weights=a)[0]", ""),
    ("np.concatenate([a, a * 2], **o)", "axis"), ("np.stack([a, b + 0 * a], **o)", "dim"), ("np.block([a, a])", ""),
    ("np.piecewise(a, [a.real < 0, a.real >= 0], [lambda x: x**2, lambda x: 3 * x])", ""),
    ("np.quantile(a, 0.4, weights=a * a + 0.1, method='inverted_cdf', **o)", "axis keepdims"),
    ("np.pad(a, (1, 2), **o)", "pad"), ("np.cross(a, a[::-1])", ""), ("np.squeeze(a)", ""), ("np.unique(a)", ""),
]  # fmt: skip
# Functions whose results are values, or means of values.
CHOOSING = re.compile(
    r"np\.((nan)?(max|min|median|ptp|quantile|percentile)\(|(sort|partition|take|where|select|roll|flip|repeat|maximum|"
    r"minimum|fmax|clip|diff|insert|append|delete|diagonal|tril|pad|concatenate|squeeze|unique|ravel|copy)\()"
)
SHAPES = [(), (1,), (3,), (4,), (2, 3), (2, 3), (3, 3), (1, 3), (0,), (2, 0), (2, 2, 3), (3, 1)]
DTYPES = [np.float64] * 6 + [np.complex128] * 3 + [np.float32, np.float16, np.complex64, np.longdouble]
WHOLE = [np.int8, np.uint8, np.int64, np.bool_]
STEPS = (1e-6, 3e-7, 4e-6)


class Wrong(AssertionError):
    """Raised if tensors and arrays give different results, or if only tensors raise an error."""


class DrawnCall:
    """A call with its arguments, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random, self.rng = seed, random.Random(seed), np.random.default_rng(seed)
        self.text, options = self.random.choice(CALLS)
        self.style = self.random.choice(["plain"] * 6 + ["ties", "zeros", "special"])
        shape = self.random.choice(SHAPES)
        self.arrays = {"a": self.array(shape)}
        for name in "bc":
            if re.search(rf"\b{name}\b", self.text):
                self.arrays[name] = self.array(self.random.choice([shape, shape[-1:], ()]))
        self.options = {}
        for name in options.replace("out", "").split():
            if self.random.random() < 0.5:
                key, value = getattr(self, f"draw_{name}", self.draw_simple)(shape, name)
                self.options[key] = value
        # Elements that a ufunc does not write, without `out`, are uninitialized in NumPy.
        if "out" in options and (self.random.random() < 0.3 or self.options.get("where", True) is not True):
            self.arrays["out"] = self.array(shape)
        self.code = compile(self.text, "<drawn call>", "eval")

    def array(self, shape):
        dtype = np.dtype(self.random.choice(WHOLE if self.random.random() < 0.08 else DTYPES))
        values = self.rng.uniform(0.2, 1.8, shape) * self.rng.choice([1, 1, -1], shape)
        if self.style == "ties":
            values = self.rng.choice([0.5, -1.0, 2.0], shape)
        elif self.style == "zeros":
            values = np.where(self.rng.random(shape) < 0.4, 0.0, values)
        elif self.style == "special":
            # Products of infinite complex numbers depend on the order in which their parts are added up.
            # NumPy's pseudo-inverses of matrices with infinities depend on LAPACK's search.
            strange = [np.nan] if dtype.kind == "c" or "pinv" in self.text else [np.nan, np.inf, -np.inf]
            values = np.where(self.rng.random(shape) < 0.3, self.rng.choice(strange, shape), values)
        with np.errstate(invalid="ignore"):  # infinities as integers
            array = np.asarray(values + 1j * self.rng.uniform(-1, 1, shape) if dtype.kind == "c" else values, dtype)
        layout = self.random.choice("CCFRS")
        if not array.ndim or layout == "C":
            return array
        if layout == "F":
            return np.asfortranarray(array)
        if layout == "R":
            return np.ascontiguousarray(array[::-1])[::-1]
        spread = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
        spread[..., ::2] = array
        return spread[..., ::2]

    # -- options -------------------------------------------------------------------------------------------------------

    def draw_simple(self, shape, name):
        return name, self.random.choice(OPTIONS[name])

    def draw_axis(self, shape, name):
        return "axis", self.random.choice([None, *range(-len(shape), len(shape))])

    def draw_dim(self, shape, name):
        return "axis", self.random.choice(range(-len(shape), len(shape))) if shape else 0

    def draw_axes(self, shape, name):
        if len(shape) > 1 and self.random.random() < 0.4:
            return "axis", tuple(self.random.sample(range(len(shape)), self.random.randint(0, len(shape))))
        return self.draw_axis(shape, name)

    def draw_dtype(self, shape, name):
        return "dtype", self.random.choice([np.float64, np.float32, np.complex128, np.float16, complex])

    def draw_where(self, shape, name):
        whole = self.rng.random(shape) < 0.6
        return "where", self.random.choice([whole, whole[..., -1:] if shape else whole, True, np.zeros(shape, bool)])

    def draw_length(self, shape, name):
        return "n", self.random.choice([1, 2, 5, 6])

    def draw_lengths(self, shape, name):
        return "s", self.random.choice([(4,), (2, 5)])

    def draw_dims(self, shape, name):
        return "axes", self.random.choice([(0,), (-1, 0)])

    def draw_convolving(self, shape, name):
        return "mode", self.random.choice(["full", "same", "valid"])

    def draw_pad(self, shape, name):
        return "mode", self.random.choice(["constant", "edge", "reflect", "wrap", "symmetric", "mean", "linear_ramp"])

    # -- running -------------------------------------------------------------------------------------------------------

    def run(self, values):
        """Return the results, as a list, on arrays or tensors given by name."""
        options = self.options | ({"out": values["out"] * 1} if "out" in values else {})
        result = eval(self.code, {"np": np, "o": options} | values)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    def expected(self):
        """Return NumPy's result, or None if it raises."""
        try:
            return self.run({name: array.copy(order="K") for name, array in self.arrays.items()})
        except Exception:
            return None

    def moved(self, step, directions):
        """Return the perturbed arrays, each in its own layout."""
        found = {name: array.copy(order="K") for name, array in self.arrays.items()}
        for name, array in found.items():
            array += step * directions[name]
        return found

    def directions(self):
        found = {}
        for name, array in self.arrays.items():
            parts = self.rng.normal(size=(2, *array.shape))
            found[name] = np.asarray(parts[0] + 1j * parts[1] if array.dtype.kind == "c" else parts[0], array.dtype)
        return found

    def __str__(self) -> str:
        told = [f"{name} = np.{np.array_repr(array)}  # strides {array.strides}" for name, array in self.arrays.items()]
        return "\n".join([f"# drawn call {self.seed}", *told, f"o = {self.options}", self.text])


# -- comparing ---------------------------------------------------------------------------------------------------------


def check(call: DrawnCall) -> str:
    """Compare a call with NumPy's; return how much could be compared.

    Raises:
        Wrong: if anything differs.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if "lstsq" in call.text and not all(np.isfinite(array).all() for array in call.arrays.values()):
            return "a least-squares problem on which LAPACK may not terminate"
        expected = call.expected()
        if expected is None or not all(isinstance(value, (np.ndarray, np.generic)) for value in expected):
            return "refused by NumPy"
        if "fft" in call.text and not all(array.size for array in call.arrays.values()):
            return "memory that NumPy has not set"
        if re.search("nan(quantile|percentile)", call.text) and any(np.isnan(each).any() for each in expected):
            return "a dtype that depends on which values are NaN"
        if "polyfit" in call.text and any(np.abs(array * 1.0).max(initial=0) > 1e6 for array in call.arrays.values()):
            return "a fit that consists of rounding errors"
        if "histogram" in call.text and not all(np.isfinite(array).all() for array in call.arrays.values()):
            return "a histogram that NumPy computes from differences of infinite sums"
        leaves = leaves_of(call.arrays)
        try:
            found = call.run(leaves)
        except DifferentiabilityError:
            return "no derivative"
        except Exception as error:
            raise Wrong(f"{type(error).__name__}: {error}\n{call}") from error
        kinds = [value.dtype for value in [*call.arrays.values(), *expected] if value.dtype.kind in "fc"]
        kinds += [np.dtype(call.options["dtype"])] if "dtype" in call.options else []
        precision = max((float(np.finfo(dtype).eps) for dtype in kinds), default=0.0)
        compare_values(call, found, expected, max(1e-11, 100 * precision))
        return compare_gradients(call, leaves, found, precision)


def leaves_of(arrays):
    return {
        name: vg.Tensor(array.copy(order="K"), requires_grad=array.dtype.kind in "fc") for name, array in arrays.items()
    }


def compare_values(call, found, expected, tolerance) -> None:
    if len(found) != len(expected):
        raise Wrong(f"{len(found)} results, not {len(expected)}\n{call}")
    for ours, theirs in zip(found, expected):
        if ours.shape != np.shape(theirs) or ours.dtype != theirs.dtype:
            raise Wrong(f"{ours.dtype} {ours.shape}, not {theirs.dtype} {np.shape(theirs)}\n{call}")
        if not ours.ndim and is_scalar(ours) == isinstance(theirs, np.ndarray):
            raise Wrong(f"a scalar: {is_scalar(ours)}\n{call}")
        value = ours.detach().numpy()
        if "ddof" in call.options and "dtype" in call.options:  # equal values: squared rounding error over 0
            value, theirs = (np.where(np.isfinite(each), each, np.nan) for each in (value, theirs))
        if "np.expm1(" in call.text and value.dtype.kind == "c":  # infinities follow the array API standard, not NumPy
            value, theirs = (np.where(np.isfinite(each.real), each, each.real) for each in (value, theirs))
        if not np.allclose(value, theirs, rtol=tolerance, atol=tolerance, equal_nan=True):
            raise Wrong(f"{value}, not {theirs}\n{call}")


def total_of(results):
    """Return a number that depends on all results."""
    total = 0.0
    for place, value in enumerate(results):
        if value.dtype.kind in "fc":
            weights = np.cos(np.arange(value.size).reshape(value.shape) * 1.3 + place).astype(value.real.dtype)
            term = (value * (weights * (1 - 0.5j) if value.dtype.kind == "c" else weights)).sum()
            total = total + (term.real if value.dtype.kind == "c" else term)
    return total


def gradients_of(total, leaves, **options):
    """Return the gradients by name, without undefined ones."""
    if not (isinstance(total, vg.Tensor) and total.requires_grad):
        return {}
    wanted = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    found = grad(total, list(wanted.values()), allow_unused=True, **options)
    return {name: gradient for name, gradient in zip(wanted, found) if gradient is not None}


def inner(gradients, directions) -> float:
    return sum(float((g.detach().numpy().conj() * directions[name]).sum().real) for name, g in gradients.items())


def compare_gradients(call, leaves, found, precision) -> str:
    try:
        gradients = gradients_of(total_of(found), leaves)
    except (DifferentiabilityError, np.linalg.LinAlgError):
        return "no derivative"
    for name, gradient in gradients.items():
        if gradient.dtype != leaves[name].dtype or gradient.shape != leaves[name].shape:
            raise Wrong(f"the gradient of {name} is {gradient.dtype} {gradient.shape}\n{call}")
    if any(array.dtype.kind in "biu" for array in call.arrays.values()):
        return "whole numbers"
    if call.style != "plain":
        if CHOOSING.match(call.text):
            compare_places_without_numbers(call)
        return "values"
    if precision > 1e-12 or any(array.dtype == np.longdouble for array in call.arrays.values()):
        return compare_with_double_precision(call, gradients, precision)
    directions = call.directions()
    along = inner(gradients, directions)
    slopes = [difference(lambda arrays: float(total_of(call.run(arrays))), call, directions, step) for step in STEPS]
    if not np.isfinite(slopes).all() or max(slopes) - min(slopes) > 1e-5 * (1 + abs(slopes[0])):
        return "values"  # at a kink
    if not abs(along - slopes[0]) <= 3e-6 * (1 + abs(slopes[0])):
        raise Wrong(f"the gradient along a direction is {along}, not {slopes[0]}\n{call}")
    try:
        compare_forward_mode(call, directions, along)
        compare_second_derivatives(call, directions)
    except DifferentiabilityError:
        return "gradients"
    return "second derivatives"


def compare_places_without_numbers(call) -> None:
    """Selected finite values have finite gradients, whatever the other values are."""
    leaves = leaves_of(call.arrays)
    results = [value.reshape(-1) for value in call.run(leaves) if value.dtype.kind in "fc"]
    total = sum(value[np.isfinite(value.detach().numpy())].real.sum() for value in results)
    for name, gradient in gradients_of(total, leaves).items():
        if np.isnan(gradient.numpy()).any():
            raise Wrong(f"the gradient of {name} is {gradient}\n{call}")


def difference(function, call, directions, step) -> float:
    return (function(call.moved(step, directions)) - function(call.moved(-step, directions))) / (2 * step)


def compare_with_double_precision(call, gradients, precision) -> str:
    if "dtype" in call.options or "partition" in call.text:  # the order within parts is unspecified
        return "values"
    wide = {name: np.asarray(array, np.result_type(array, np.float64)) for name, array in call.arrays.items()}
    wide = {name: array.astype(complex if array.dtype.kind == "c" else float) for name, array in wide.items()}
    leaves, precision = leaves_of(wide), max(precision, float(np.finfo(float).eps)) * lost_digits(call, wide["a"])
    exact = gradients_of(total_of(call.run(leaves)), leaves)
    for name in leaves:
        ours = gradients[name].numpy() if name in gradients else np.zeros(1)
        theirs = exact[name].numpy() if name in exact else np.zeros(1)
        size, allowed = float(np.abs(theirs).max(initial=1)), 500 * precision
        if size < 50 and allowed < 1 and not np.allclose(ours, theirs, rtol=allowed, atol=allowed * size):
            raise Wrong(f"the gradient of {name} is {ours}; in double precision it is {theirs}\n{call}")
    return "single precision"


def lost_digits(call, matrix) -> float:
    """Return the growth of rounding errors: the squared condition number of the matrix of a linear system."""
    if not matrix.size or not re.search("lstsq|pinv|cond|[.]qr", call.text):
        return 1.0
    return float(np.linalg.cond(matrix).max()) ** 2


def compare_forward_mode(call, directions, along) -> None:
    with forward_ad.dual_level():
        duals = {
            name: forward_ad.make_dual(vg.Tensor(array.copy(order="K")), vg.Tensor(directions[name]))
            for name, array in call.arrays.items()
        }
        tangent = forward_ad.unpack_dual(vg.Tensor(0.0) + total_of(call.run(duals))).tangent
        found = 0.0 if tangent is None else float(tangent.numpy())
    if not abs(found - along) <= 1e-8 * (1 + abs(along)):
        raise Wrong(f"the tangent is {found}, not {along}\n{call}")


def compare_second_derivatives(call, directions) -> None:
    others = call.directions()

    def slope_of(arrays):
        leaves = leaves_of(arrays)
        slope = 0.0
        for name, gradient in gradients_of(total_of(call.run(leaves)), leaves, create_graph=True).items():
            term = (gradient * others[name]).sum()
            slope = slope + (term.real if gradient.is_complex() else term)
        return leaves, slope

    def number(slope) -> float:
        return float(slope.detach().numpy()) if isinstance(slope, vg.Tensor) else float(slope)

    leaves, slope = slope_of(call.arrays)
    along = inner(gradients_of(slope, leaves), directions)
    steps = [difference(lambda arrays: number(slope_of(arrays)[1]), call, directions, step) for step in (1e-5, 3e-6)]
    steady = np.isfinite(steps).all() and abs(steps[0] - steps[1]) < 1e-4 * (1 + abs(steps[0]))
    if steady and not abs(along - steps[0]) <= 1e-4 * (1 + abs(steps[0])):
        raise Wrong(f"the second derivative is {along}, not {steps[0]}\n{call}")
