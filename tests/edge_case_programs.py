"""Small programs for edge cases of the library, drawn from seeds; each kind checks the expected result.

The kinds: values stored by custom functions, gradient checks, tensors created from other objects, operands of other
classes, overlapping assignments, and dual tensors that share memory.
"""

from __future__ import annotations

import operator
import random
import warnings

import numpy as np

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import Function, forward_ad, grad, gradcheck
from viewgrad.errors import AutogradError, ForwardModeError

KINDS = {}


class Wrong(AssertionError):
    """Raised if the result is not what the kind of program expects."""


class Draw(random.Random):
    """The source of all random choices of a program."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rng = np.random.default_rng(seed)

    def array(self, shape, dtype=float):
        values = self.rng.uniform(0.3, 1.7, shape) * self.rng.choice([1, -1], shape)
        return np.asarray(values + 1j * self.rng.uniform(-1, 1, shape) if dtype is complex else values, dtype)

    def window(self, shape):
        """Return a basic index, as its source."""
        items = []
        for extent in shape[: self.randint(0, len(shape))]:
            first, last = sorted(self.sample(range(extent + 1), 2))
            step = self.choice(["", "", ":2", ":-1"])
            items.append(f"{first}:{last}{step}" if step != ":-1" else "::-1")
        return ", ".join(items) or "..."


def kind(function):
    """Register a kind of program."""
    KINDS[function.__name__] = function
    return function


def check(name: str, seed: int) -> None:
    """Draw a program, run it, and compare.

    Raises:
        Wrong: if the result differs from the expectation.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            KINDS[name](Draw(seed))
        except Exception as error:
            error.add_note(f"{name}, drawn from {seed}")
            raise


def leaf(array):
    return vg.Tensor(array, requires_grad=True)


def must_be(found, expected, what, tolerance=1e-9) -> None:
    found = found.detach().numpy() if isinstance(found, vg.Tensor) else np.asarray(found)
    if found.shape != np.shape(expected) or not np.allclose(found, expected, rtol=tolerance, atol=tolerance):
        raise Wrong(f"{what} is {found}, not {expected}")


# -- custom functions --------------------------------------------------------------------------------------------------

KEEPING = {
    "save_for_backward": (lambda ctx, x: ctx.save_for_backward(x), lambda ctx: ctx.saved_tensors[0]),
    "attribute": (lambda ctx, x: setattr(ctx, "x", x), lambda ctx: ctx.x),
    "detached": (lambda ctx, x: setattr(ctx, "x", x.detach()), lambda ctx: ctx.x),
    "view": (lambda ctx, x: setattr(ctx, "x", x[...]), lambda ctx: ctx.x),
    "list": (lambda ctx, x: setattr(ctx, "x", [1, x]), lambda ctx: ctx.x[1]),
    "array": (lambda ctx, x: setattr(ctx, "x", x.detach().numpy()), lambda ctx: vg.Tensor(ctx.x)),
}
WRITES = [
    "y.zero_()", "y[0] = 3.0", "y[1:].mul_(2.0)", "y *= 2.0", "y.reshape(-1)[...] = 0.5", "np.add(y, y, out=y)",
    "y[[0, 1]] = 4.0", "y[y > 0] = -1.0", "with vg.no_grad(): y.fill_(0.1)", "y.detach().zero_()",
]  # fmt: skip


def drawn_function(draw, power, factor, reduced, way):
    keep, kept = KEEPING[way]

    class Drawn(Function):
        @staticmethod
        def forward(ctx, x):
            keep(ctx, x)
            y = factor * x**power
            return y.sum() if reduced else y

        @staticmethod
        def backward(ctx, g):
            return g * factor * power * kept(ctx) ** (power - 1)

    return Drawn.apply


@kind
def kept_values(draw) -> None:
    """Values that a custom function stores, in any way, do not change."""
    power, factor, reduced = draw.randint(2, 4), draw.choice([0.5, -2.0]), draw.random() < 0.5
    way, values = draw.choice(list(KEEPING)), draw.array(draw.choice([(2,), (3,), (2, 3)]))
    x = leaf(values)
    y = x * 1.0
    total = drawn_function(draw, power, factor, reduced, way)(y).sum()
    for _ in range(draw.randint(1, 2)):
        line = draw.choice(WRITES)
        exec(line, {"y": y, "np": np, "vg": vg})
        (found,) = grad(total, x, retain_graph=True)
        must_be(found, factor * power * values ** (power - 1), f"kept as {way}, {line}: the gradient")


FAULTS = {
    "none": lambda g, slope: g * slope,
    "another form": lambda g, slope: slope * g + 0 * g,
    "the gradient that comes is ignored": lambda g, slope: slope + 0 * g,
    "its absolute value": lambda g, slope: slope * abs(g),
    "its square": lambda g, slope: slope * g * g,
    "its sign": lambda g, slope: -slope * g,
    "a part": lambda g, slope: slope * g * 1.01,
}


@kind
def checked_gradients(draw) -> None:
    """gradcheck accepts correct backward passes and forward modes, and no others, for outputs of one element too."""
    name, forward_only = draw.choice(list(FAULTS)), draw.random() < 0.3
    fault, values, reduced = FAULTS[name], draw.array((draw.randint(1, 3),)), draw.random() < 0.7

    class Drawn(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return (x * x).sum() if reduced and not forward_only else x * x

        @staticmethod
        def backward(ctx, g):
            return fault(g, 2.0 * ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx, tangent):
            return fault(tangent, 2.0 * ctx.saved_tensors[0])

    if forward_only:
        del Drawn.backward
    options = {"check_backward_ad": False, "check_forward_ad": True} if forward_only else {}
    passed = gradcheck(Drawn.apply, leaf(values), raise_exception=False, **options)
    if passed != (name in ("none", "another form")):
        raise Wrong(f"gradcheck gave {passed} where the fault is {name}, {options}")


# -- construction of tensors -------------------------------------------------------------------------------------------

MADE = {
    "vg.Tensor(s)": lambda s: vg.Tensor(s), "vg.asarray(s)": lambda s: vg.asarray(s), "s * 1.0": lambda s: s * 1.0,
    "vnp.array(s)": lambda s: vnp.array(s), "vnp.asarray(s)": lambda s: vnp.asarray(s),
    "zeros + s": lambda s: vg.zeros(3) + s, "np.add": lambda s: np.add(vg.zeros(3), s),
    "vg.add": lambda s: vg.add(vg.zeros(3), s), "np.where": lambda s: np.where(vg.zeros(3) == 0, s, vg.zeros(3)),
    "np.concatenate": lambda s: np.concatenate([vg.zeros(0), s]), "np.stack": lambda s: np.stack([vg.zeros(3), s]),
    "copy_": lambda s: vg.zeros(3).copy_(s), "+=": lambda s: operator.iadd(vg.zeros(3), s),
    "out=": lambda s: np.add(vg.zeros(3), s, out=vg.zeros(3)), "np.maximum": lambda s: np.maximum(vg.full(3, -9.0), s),
    "[...] =": lambda s: assigned(vg.zeros(3), s), "np.copyto": lambda s: np.copyto(t := vg.zeros(3), s) or t,
    "vg.zeros_like": lambda s: vg.zeros_like(vg.zeros(3)) + s, "vg.from_numpy(s)": lambda s: vg.from_numpy(s),
}  # fmt: skip


def assigned(tensor, source):
    tensor[...] = source
    return tensor


@kind
def made_of(draw) -> None:
    """Tensors made from something with a history, a tangent or a mask have it too, or are refused."""
    values, how = draw.array((3,)), draw.choice(list(MADE))
    source = draw.choice(["a leaf", "a result", "a view", "a dual tensor", "a masked array", "a plain array"])
    x = leaf(values)
    with forward_ad.dual_level():
        source_edge = {
            "a leaf": lambda: x,
            "a result": lambda: x * 1.0,
            "a view": lambda: (x * 1.0)[:],
            "a dual tensor": lambda: forward_ad.make_dual(vg.Tensor(values), vg.ones(3)),
            "a masked array": lambda: np.ma.array(values, mask=[True, False, False]),
            "a plain array": lambda: values.copy(),
        }[source]()
        try:
            found = MADE[how](source_edge)
        except (TypeError, ValueError, AutogradError) as error:
            taken = source != "a masked array" and how not in ("vg.Tensor(s)", "vg.from_numpy(s)", "s * 1.0")
            if taken or source == "a plain array":
                raise Wrong(f"{how} of {source} is refused: {error}") from error
            return
        what = f"{how} of {source}"
        if source == "a masked array" and how in ("vg.asarray(s)", "vnp.array(s)", "vnp.asarray(s)"):
            must_be(found, np.array(source_edge), what)  # NumPy's own drop the mask
        elif source == "a masked array":
            if not isinstance(found, np.ma.MaskedArray) or not found.mask[0]:
                raise Wrong(f"{what} has lost its mask: {found!r}")
        elif source == "a dual tensor":
            tangent = forward_ad.unpack_dual(found).tangent
            must_be(0.0 if tangent is None else tangent.sum(), 3.0, f"the tangent of {what}")
        elif source != "a plain array":
            if not found.requires_grad:
                raise Wrong(f"{what} has no history")
            must_be(grad(found.sum(), x)[0], np.ones(3), f"the gradient of {what}")


# -- operands of other classes -----------------------------------------------------------------------------------------

NAMES = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


@kind
def foreign_operands(draw) -> None:
    """Operands of another class that handles tensors take precedence, whatever the tensor is."""
    name = draw.choice(NAMES)
    answer = lambda self, other: ("answered", type(other).__name__)
    foreign = type("Foreign", (), {f"__r{name}__": answer, "__array_ufunc__": None})()
    x = leaf([1.0, 2.0])
    tensor = draw.choice([x, x[0], x[:1], vg.Tensor([1, 2]), leaf(2.0) * 1.0])
    spelling = draw.choice([name, f"i{name}"])
    function = getattr(operator, {"and": "and_", "or": "or_"}.get(spelling, spelling))
    try:
        found = function(tensor, foreign)
    except TypeError as error:
        raise Wrong(f"{spelling} of a tensor and a foreign operand raises: {error}") from error
    if found != ("answered", "Tensor"):
        raise Wrong(f"{spelling} of a tensor and a foreign operand is {found}")


# -- windows that are written from themselves --------------------------------------------------------------------------

SOURCES = ["y", "y.real", "y.imag", "y.conj()", "y[::-1]", "y.T", "y.T.imag", "y[::-1].imag", "-y", "y.real[..., ::-1]"]
FORMS = {
    "t[...] = s": lambda t, s: s + 0 * t, "t[...] += s": lambda t, s: t + s, "np.copyto(t, s)": lambda t, s: s + 0 * t,
    "t[...] -= s": lambda t, s: t - s, "np.add(t, s, out=t)": lambda t, s: t + s,
    "np.subtract(s, t, out=t)": lambda t, s: s - t, "np.multiply(s, 2.0, out=t)": lambda t, s: 2 * s + 0 * t,
    "y[{w}] = s": lambda t, s: s + 0 * t,
}  # fmt: skip


@kind
def overlapping_writes(draw) -> None:
    """Writes that read their target first; each is linear, so it is its own derivative."""
    array = draw.array(draw.choice([(3,), (4,), (3, 3), (2, 4)]), draw.choice([float, complex, complex]))
    direction, weights = draw.array(array.shape, array.dtype.type), draw.array(array.shape)
    lines = []

    def steps(y, y0=None):
        """Return the result of the lines so far, and one more, on an array, with copies of all operands."""
        for form, target, source, part in lines:
            read = eval(f"({source})[{part}]", {"y": y.copy()})
            y[eval(f"np.index_exp[{target}]")] = FORMS[form](eval(f"y[{target}]", {"y": y.copy()}), read)
        return y

    for _ in range(12):
        lines.append(
            (draw.choice(list(FORMS)), draw.window(array.shape), draw.choice(SOURCES), draw.window(array.shape))
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                steps(array.copy())
        except (ValueError, IndexError, np.exceptions.ComplexWarning):
            lines.pop()
        if len(lines) == 2:
            break
    x = leaf(array)
    y = x * 1.0
    for form, target, source, part in lines:
        names = {"y": y, "np": np}
        line = f"t = y[{target}]; s = ({source})[{part}]; " + form.format(w=target)
        try:
            exec(line, names)
        except (TypeError, ValueError) as error:
            raise Wrong(f"{line} raises {error}") from error
    must_be(y, steps(array.copy()), f"the value after {lines}")
    total = (y * weights).sum()
    (found,) = grad(total.real if total.is_complex() else total, x)
    along = float((found.numpy().conj() * direction).real.sum())
    must_be(along, float((steps(direction.copy()) * weights).real.sum()), f"the slope of {lines}")


# -- dual tensors that share memory ------------------------------------------------------------------------------------


@kind
def shared_duals(draw) -> None:
    """A write through one of the tensors that share memory gives all of them its tangent there, and no other."""
    values = draw.array((4,))
    with forward_ad.dual_level():
        primal, start = vg.Tensor(values), draw.array((4,))
        dual = forward_ad.make_dual(primal, vg.Tensor(start))
        tensors, tangents = {"primal": primal, "dual": dual}, {"primal": np.zeros(4), "dual": start.copy()}
        if draw.random() < 0.5:
            again = draw.array((4,))
            tensors["other"], tangents["other"] = forward_ad.make_dual(primal, vg.Tensor(again)), again.copy()
        values = values.copy()
        for _ in range(draw.randint(1, 4)):
            target, source = draw.choice(list(tensors)), draw.choice(list(tensors))
            start_at, factor = draw.randint(0, 2), draw.choice([0.5, -2.0])
            window = slice(start_at, start_at + 2)
            if draw.random() < 0.5:
                tensors[target][window] *= factor
                written, moved = values[window] * factor, tangents[target][window] * factor
            else:
                tensors[target][window] = tensors[source][:2] * factor
                written, moved = values[:2] * factor, tangents[source][:2] * factor
            values[window] = written
            for known in tangents.values():
                known[window] = moved
        for name, tensor in tensors.items():
            tangent = forward_ad.unpack_dual(tensor).tangent
            must_be(tensor, values, f"the value of {name}")
            must_be(np.zeros(4) if tangent is None else tangent, tangents[name], f"the tangent of {name}")
        try:
            forward_ad.make_dual(vg.zeros(4), dual)
        except ForwardModeError:
            return
        raise Wrong("a tangent that has a tangent itself is taken without it")
