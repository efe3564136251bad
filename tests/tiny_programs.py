"""Tiny programs: two to six operations on a few numbers, with writes through views, each checked separately.

A program is drawn as text. The reference runs it on arrays and, in parallel, on arrays of their changes: a linear
operation is applied to both, and any other to the changes by the product rule. Nothing here depends on the library.
"""

from __future__ import annotations

import functools
import random
import warnings

import numpy as np

import viewgrad as vg
from viewgrad.autograd import forward_ad

SHAPES = [(3,), (2, 3), (4,), (3, 3), (1, 3), (2, 2), (2, 1, 2), (6,)]
PLACES = {1: ["[0, 2, 0]", "[1, -1]", "[-1]", "[True, False, True]", "[0]"], 2: ["[0, 1]", "[1, 0, 1]", "[-1]"]}
BASIC = {
    1: ["1:", ":-1", "::2", "::-1", "...", "1:2", "0:0", "None", "-1:", "-2:"],
    2: ["1:", "0", "-1", ":, 0", ":, 1:", "::-1", "0, ...", ":, ::-1", ":, None", "..., 1", "1:, :2", "::-1, 0", "..."],
    3: ["0", ":, 0", "..., 1", "::-1", ":, :, 0", "1:, 0", "..., ::-1"],
}
VIEWS = [".T", ".reshape(-1)", ".ravel()", "[...]", ".swapaxes(0, -1)", ".squeeze()", "[None]"]

# Each line has a text for tensors, and its effect on values and on their changes. {t} is the target, written to or
# made, {a} and {b} are operands, {i} is an index, {n} a number. In a line for the changes, a' is the change of a.
MADE = [
    ("{a} * {b}", "{a'} * {b} + {a} * {b'}"), ("{a} + {b}", "{a'} + {b'} + 0 * {a}"), ("{a} * {n}", "{a'} * {n}"),
    ("{a} - {b}", "{a'} - {b'}"), ("np.sin({a})", "np.cos({a}) * {a'}"), ("{a} ** 2", "2 * {a} * {a'}"),
    ("{n} - {a}", "-{a'}"), ("{a}.sum()", "{a'}.sum()"), ("{a}.sum(0)", "{a'}.sum(0)"), ("{a}.copy()", "{a'}.copy()"),
    ("np.exp({a} * 0.3)", "np.exp({a} * 0.3) * ({a'} * 0.3)"), ("{a}[{f}]", "{a'}[{f}]"), ("-{a}", "-{a'}"),
    ("{a} / (2 + {b} * {b})", "({a'} - {a} * 2 * {b} * {b'} / (2 + {b} * {b})) / (2 + {b} * {b})"),
    ("np.concatenate([{a}, {a}])", "np.concatenate([{a'}, {a'}])"), ("np.stack([{a}, {a}])", "np.stack([{a'}, {a'}])"),
    ("np.cumsum({a}, 0)", "np.cumsum({a'}, 0)"), ("np.where({a} > 0, {a}, {b})", "np.where({a} > 0, {a'}, {b'})"),
    ("np.flip({a})", "np.flip({a'})"),
    ("np.multiply.outer({a}, {a})",
     "np.multiply.outer({a'}, {a}) + np.multiply.outer({a}, {a'})"),
    ("{a} @ {a}.T", "{a'} @ {a}.T + {a} @ {a'}.T"), ("np.roll({a}, 1)", "np.roll({a'}, 1)"),
    ("np.maximum({a}, {b})", "np.where({a} == {b}, ({a'} + {b'}) / 2, np.where({a} > {b}, {a'}, {b'}))[()]"),
    ("{a}.mean()", "{a'}.mean()"),
]  # fmt: skip
WRITTEN = [
    ("{t}[{i}] = {b}", "{t'}[{i}] = {b'}"), ("{t}[{i}] += {b}", "{t'}[{i}] += {b'}"), ("{t} += {b}", "{t'} += {b'}"),
    ("{t}[{i}] = {n}", "{t'}[{i}] = 0"), ("{t}[{i}] *= {n}", "{t'}[{i}] *= {n}"), ("{t} *= {n}", "{t'} *= {n}"),
    ("{t}[{i}] *= {b}", "{t'}[{i}] = {t'}[{i}] * {b} + {t}[{i}] * {b'}"),
    ("{t} *= {b}", "{t'}[...] = {t'} * {b} + {t} * {b'}"), ("{t} -= {b}", "{t'} -= {b'}"),
    ("np.sin({t}, out={t})", "{t'}[...] = np.cos({t}) * {t'}"), ("{t}.fill({n})", "{t'}.fill(0)"),
    ("np.multiply({b}, {b}, out={t})", "{t'}[...] = 2 * {b} * {b'}"), ("np.copyto({t}, {b})", "np.copyto({t'}, {b'})"),
    ("np.add({b}, {n}, out={t}, where={m})", "np.add({b'}, 0, out={t'}, where={m})"),
    ("{t} **= 2", "{t'}[...] = 2 * {t} * {t'}"),
    ("np.cos({t}, out={t}, where={m})", "np.multiply(-np.sin({t}), {t'}, out={t'}, where={m})"),
    ("{t}[{f}] = {n}", "{t'}[{f}] = 0"), ("{t}[{f}] *= {n}", "{t'}[{f}] *= {n}"), ("{t}[{m}] += {n}", ""),
    ("{t}[{m}] = {n}", "{t'}[{m}] = 0"), ("np.add.at({t}, {f}, {n})", ""),
    ("{t}[1:] += {t}[:-1]", "{t'}[1:] += {t'}[:-1]"),
    ("{t}[...] = {t}[::-1]", "{t'}[...] = {t'}[::-1]"),
    ("{t}[0], {t}[-1] = {t}[-1], {t}[0]", "{t'}[0], {t'}[-1] = {t'}[-1], {t'}[0]"),
    ("with vg.no_grad(): {t} *= {n}", ""), ("with vg.no_grad(): {t}[{i}] = {b}", ""),
    ("np.cumsum({t}, 0, out={t})", "np.cumsum({t'}, 0, out={t'})"),
    ("for k in range(1, len({t})): {t}[k] += {t}[k - 1] * {n}",
     "for k in range(1, len({t'})): {t'}[k] += {t'}[k - 1] * {n}"),
]  # fmt: skip
NUMBERS = ["0.5", "2.0", "-1.5", "3", "0", "1.0"]
LARGEST = 30.0
MOST = 100  # elements; products of all pairs are drawn for smaller arrays only
KINDS = [np.float64] * 6 + [np.complex128, np.complex128, np.float32]


class Wrong(AssertionError):
    """Raised if tensors and arrays give different results."""


@functools.lru_cache(maxsize=20_000)  # which needs 20 MB
def code_of(line: str):
    return compile(line, "<tiny program>", "exec")


class TinyProgram:
    """A leaf and a few lines, drawn from a seed, with NumPy's results."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        choose = self.random.choice
        shape, dtype = choose(SHAPES), choose(KINDS)
        rng = np.random.default_rng(seed)
        self.layout, self.special = choose("CCCCFR"), self.random.random() < 0.15
        self.leaf, self.direction = (self.laid_out(self.drawn(rng, shape, dtype)) for _ in range(2))
        self.lines: list[str] = []
        first = choose(["x * 1.0", "x.copy()", "x + 0.0", "x * 2.0"])
        self.names = {"np": np, "vg": PLAIN, "x": self.leaf.copy(order="K"), "dx": self.direction.copy(order="K")}
        self.do(f"y = {first}", "dy = " + first.replace("x", "dx"))
        self.known, self.count = ["y"], 0
        for _ in range(self.random.randint(2, 6)):
            self.draw()

    def drawn(self, rng, shape, dtype):
        values = rng.uniform(-1.4, 1.4, shape)
        if self.special:
            values = rng.choice([0.0, -0.0, 1.0, -1.0, 0.5], shape)
        return (values + 1j * rng.uniform(-1, 1, shape) if dtype is np.complex128 else values).astype(dtype)

    def laid_out(self, array):
        if self.layout == "R":
            return np.ascontiguousarray(array[::-1])[::-1]
        return np.asfortranarray(array) if self.layout == "F" else array

    def do(self, line: str, change: str) -> None:
        """Apply the changes that need the previous values first."""
        if change:
            exec(code_of(change), self.names)
        exec(code_of(line), self.names)
        self.lines.append(line)

    def draw(self) -> None:
        choose, kind = self.random.choice, self.random.random()
        name = choose(self.known)
        array = self.names[name]
        new = f"t{self.count}"
        ndim = np.ndim(array)
        if kind < 0.3:
            options = [f"[{i}]" for i in BASIC.get(ndim, ["..."])] + VIEWS
            if array.dtype.kind == "c":
                options += [".real", ".imag"] * 3
            view = choose(options)
            self.attempt(new, f"{new} = {name}{view}", f"d{new} = d{name}{view}")
        elif kind < 0.36 and np.zeros_like(array).strides == array.strides:  # so that the same reshapes are copies
            zeros = f"np.zeros_like({name})" + "[()]" * (not isinstance(array, np.ndarray))  # a number stays a number
            self.attempt(new, f"{new} = {name}.detach()", f"{new} = {name}; d{new} = {zeros}")
        else:
            table = WRITTEN if kind < 0.72 else MADE
            text, change = choose(table)
            words = self.words(text, name, array)
            if words is None:
                return
            line, change = self.filled(text, words), self.filled(change, words)
            if table is MADE:
                self.attempt(new, f"{new} = {line}", f"d{new} = {change}")
            elif type(array) is np.ndarray and array.flags.writeable:
                self.attempt(None, line, change)

    def words(self, text, name, array):
        if ("outer" in text or "@" in text) and array.size > MOST:
            return None
        choose = self.random.choice
        words = {"t": name, "a": name, "n": choose(NUMBERS), "i": choose(BASIC.get(array.ndim, ["..."]))}
        words["f"] = f"np.array({choose(PLACES.get(array.shape[0] if array.ndim else 0, PLACES[1]))})"
        if "{m}" in text:
            words["m"] = f"np.array({[self.random.random() < 0.6 for _ in range(array.size)]}).reshape({array.shape})"
        if "{b}" in text:
            target = array[eval(f"np.index_exp[{words['i']}]")] if "{i}" in text and fits(words["i"], array) else array
            others = [other for other in self.known if self.is_source(self.names[other], target)]
            if "] = {b}" in text or "copyto" in text:
                others = [other for other in others if not is_moved_in_turn(self.names[other], target)]
            if not others:
                return None
            words["b"] = choose(others)
        return words

    @staticmethod
    def is_source(array, target) -> bool:
        """Return whether it can be broadcast; if dtypes differ in the same memory, NumPy may read written values."""
        return broadcasts(array.shape, target.shape) and (
            array.dtype == target.dtype or not np.may_share_memory(array, target)
        )

    def filled(self, text, words):
        for key, value in words.items():
            text = text.replace("{" + key + "'}", "d" + value).replace("{" + key + "}", value)
        return text

    def attempt(self, new, line, change) -> None:
        """Run a line, unless NumPy refuses it or it creates large numbers; undo it if it fails halfway."""
        names = self.names
        reference = line.replace(".detach()", "") if ".detach()" not in line else ""
        before = {key: value.copy() for key, value in names.items() if type(value) is np.ndarray}
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if "where=" in line:  # if memory overlaps, NumPy casts and writes back elements that where= excludes
                    warnings.simplefilter("error", np.exceptions.ComplexWarning)
                if change:
                    exec(code_of(change), names)
                if reference:
                    exec(code_of(reference), names)
        except Exception:
            self.undo(before, new)
            return
        if not all(is_tame(names[key]) for key in (*self.known, *([new] if new else []))):
            self.undo(before, new)
            return
        self.lines.append(line)
        if new:
            self.known.append(new)
            self.count += 1

    def undo(self, before, new) -> None:
        for key in [new, f"d{new}"]:
            self.names.pop(key, None)
        for key, value in before.items():
            if self.names[key].flags.writeable:
                self.names[key][...] = value

    def __str__(self) -> str:
        return "\n".join([f"# tiny program {self.seed}", f"x = np.{np.array_repr(self.leaf)}", *self.lines])


class PLAIN:
    """The replacement of the library in the reference."""

    @staticmethod
    def no_grad():
        return np.errstate()


def is_moved_in_turn(source, target) -> bool:
    """Return whether NumPy assigns overlapping memory without a copy: in one dimension it may read written values."""
    if source.ndim != 1 or target.ndim != 1 or source.strides == target.strides:
        return False
    return source.strides[0] * target.strides[0] > 0 and np.may_share_memory(source, target)


def is_tame(value) -> bool:
    return not value.size or float(np.abs(value).max()) <= LARGEST  # False for NaN


def fits(index, array) -> bool:
    try:
        array[eval(f"np.index_exp[{index}]")]
    except IndexError:
        return False
    return True


def broadcasts(shape, to) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def run(program, names):
    for line in program.lines:
        exec(code_of(line), names)
    return names


def check(program: TinyProgram) -> None:
    """Compare values and the gradient along a direction, of some programs in forward mode, too.

    Raises:
        Wrong: if anything differs.
    """
    x = vg.Tensor(program.leaf, requires_grad=True)
    try:
        found = run(program, {"np": np, "vg": vg, "x": x})
        outputs, weights, expected = [], [], 0.0
        tolerance = 1e-9 if program.leaf.dtype.itemsize > 4 and program.leaf.dtype != np.float32 else 2e-3
        for place, name in enumerate(program.known):
            ours, theirs = found[name], program.names[name]
            value = ours.detach().numpy()
            if value.shape != theirs.shape or not close(value, theirs, tolerance):
                raise Wrong(f"{name} is {value}, not {theirs}")
            weight = np.cos(np.arange(theirs.size).reshape(theirs.shape) + place).astype(value.dtype)
            expected += float((weight * program.names["d" + name]).sum().real)
            if ours.requires_grad:
                outputs.append(ours)
                weights.append(vg.Tensor(weight))
        along = 0.0
        if outputs:
            (gradient,) = vg.autograd.grad(outputs, x, weights, allow_unused=True, retain_graph=program.seed % 2 > 0)
            if gradient is not None:
                along = float((gradient.numpy().conj() * program.direction).sum().real)
        if not abs(along - expected) <= tolerance * 100 * (1 + abs(expected)):
            raise Wrong(f"the gradient along a direction is {along}, not {expected}")
        if program.seed % 4 == 0 and not any("no_grad" in line for line in program.lines):
            compare_forward_mode(program, expected, tolerance)
    except Exception as error:
        raise Wrong(f"{type(error).__name__}: {error}\n{program}") from error


def close(ours, theirs, tolerance) -> bool:
    return not theirs.size or float(np.abs(ours - theirs).max()) <= tolerance * (1 + float(np.abs(theirs).max()))


def compare_forward_mode(program, expected, tolerance) -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(vg.Tensor(program.leaf), vg.Tensor(program.direction))
        found = run(program, {"np": np, "vg": vg, "x": x})
        along = 0.0
        for place, name in enumerate(program.known):
            tangent = forward_ad.unpack_dual(found[name]).tangent
            if tangent is not None:
                weight = np.cos(np.arange(tangent.size).reshape(tangent.shape) + place)
                along += float((weight * tangent.numpy()).sum().real)
    if not abs(along - expected) <= tolerance * 100 * (1 + abs(expected)):
        raise Wrong(f"the tangent is {along}, not {expected}")
