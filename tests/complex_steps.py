"""Programs that write in place, drawn from a table of analytic lines, with derivatives by complex steps.

The leaves of a program move along a direction by 1e-30 times i: the imaginary part of what NumPy then computes is the
derivative along it, to the last digit, for any writes. Nothing here depends on the implementation of the library.
"""

from __future__ import annotations

import ast
import random
import re
import warnings

import numpy as np

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad

STEP = 1e-30
APART = 1e-5  # distance of the two complex steps whose difference is a second derivative
LARGEST = 20.0

# {a}: any array; {c}: one of its shape, or a number; {b}: what can be broadcast to it; {i}, {j}: basic indices; {f}: an
# index with an array in it; {m}: a mask of its shape; {k}: an axis, or None; {n}: a number; {u}: an entire function.
EXPRESSIONS = """np.{u}({a})|np.{u}({a})|{a} + {b}|{a} - {b}|{a} * {b}|{n} - {a}|{n} * {a}
{a} / (2.5 + np.sin({b}) * 0.5)|{a} ** 2|{a} ** 3|np.square({a})|np.reciprocal(3.0 + np.cos({a}))
np.sqrt({a} * {a} + 1.0)|np.log({a} * {a} + 1.5)|np.sum({a}, axis={k})|np.mean({a}, axis={k})
np.prod({a}, axis={k})|np.cumsum({a}, axis={k})|np.cumprod({a} * 0.7)|{a}[{i}]|{a}[{i}]|{a}[{f}]|{a}[{m}]|{a}.T
{a}.reshape(-1)|{a}.ravel()|{a}.copy()|{a}.flatten()|np.roll({a}, 1, axis={k})
np.concatenate([{a}, {c}], axis={k})|np.stack([{a}, {a}])|np.where({m}, {a}, {b})|np.tile({a}, 2)
np.repeat({a}, 2)|np.diff({a})|np.convolve({a}, {c})|np.outer({a}, {a})|{a} @ {c}|np.dot({a}, {c})
np.einsum('i,i', {a}, {c})|np.einsum('ij,ij->j', {a}, {c})|np.trace({a})|np.diagonal({a})
np.linalg.det({a} + 3 * np.eye(len({a})))|np.linalg.inv({a} + 4 * np.eye(len({a})))
np.linalg.solve({a} + 4 * np.eye(len({a})), {c})|np.pad({a}, 1)|np.kron({a}, {n})|np.flip({a}, {k})
np.take({a}, [0, -1, 0], axis={k})|np.append({a}, {n})|np.insert({a}, 0, {n})|np.delete({a}, 0)
np.broadcast_to({a}, (2, *{a}.shape))|np.tril({a})|np.triu({a})|np.moveaxis({a}, 0, -1)|np.expand_dims({a}, 0)
{a}.sum()|{a}[0]|{a}[-1] * {a}[0]|sum({a})|np.multiply.reduce({a})|np.add.accumulate({a})
np.subtract.outer({a}, {a})|np.gradient({a})|np.trapezoid({a})|np.polyval({a}, 0.3)|np.cross({a}, {c})
np.atleast_2d({a})|np.block([{a}, {a}])|np.array_split({a}, 2)[0]|np.vander({a}, 3)
np.average({a}, weights=2.0 + np.sin({c}))|np.linalg.matrix_power({a}, 2)|np.tensordot({a}, {c}, 1)
np.inner({a}, {c})|{a}.squeeze()|+{a}|np.lib.stride_tricks.sliding_window_view({a}, 2, axis=0)
np.apply_along_axis(np.sum, 0, {a})|np.logaddexp({n}, 0) * {a}|np.sinh({a} * 0.3)|np.tan({a} * 0.2)
np.arctan({a} * 0.5)|np.expm1({a} * 0.5)|np.log1p({a} * {a})|np.exp2({a} * 0.5)"""
STATEMENTS = """{a}[{i}] = {v}|{a}[{i}] = {v}|{a}[{i}] += {v}|{a}[{i}] *= {v}|{a}[{i}] -= {v}|{a}[{f}] = {n}
{a}[{m}] = {n}|{a}[{f}] *= 0.5|{a}[{m}] += {n}|{a} += {b}|{a} *= {b}|{a} -= {b}|{a} /= 2.0 + np.sin({b}) * 0.3
np.multiply({a}, {b}, out={a})|np.add({b}, {b}, out={a}, where={m})|np.{u}({a}, out={a})
np.{u}({b}, out={a}, where={m})|np.copyto({a}, {b}, where={m})|np.copyto({a}, {b})|np.putmask({a}, {m}, {n})
np.put({a}, [0, -1], [{n}, 0.3])|np.add.at({a}, [0, 0], {n})|{a}.fill({n})|np.multiply.at({a}, [0, -1, 0], 0.5)
{a}[1:] += {a}[:-1]|{a}[1:] = {a}[:-1]|{a}[:-1] *= {a}[1:]|{a}[...] = {a}[::-1]|{a}[...] = {a}.T
{a}.T[...] *= {n}|np.fill_diagonal({a}, {n})|{a}.flat[1:3] = 0.4|{a}.reshape(-1)[:2] = {n}
for k in range(1, len({a})): {a}[k] = {a}[k - 1] * 0.5 + {a}[k] * 0.7
for k in range(len({a}) - 1): {a}[k + 1] += {a}[k] ** 2 * 0.2|for row in {a}: row *= {n}
{a}[0], {a}[-1] = {a}[-1], {a}[0]|{a}[{i}], {a}[{j}] = {a}[{j}], {a}[{i}]|{a} **= 2|{a}[{i}] **= 2
np.cumsum({a}, axis=0, out={a})|np.sum({b}, axis=0, out={a})|np.matmul({a}, {a}, out={a})|{a} @= {a}
t = {a}[{i}]; t *= {n}|t = {a}[{i}]; t += {a}[{i}]|t = {a}.ravel(); t[:1] = {n}
t = {a}.reshape(-1); t[1:] *= t[:-1]|np.einsum('ii->i', {a})[...] = {n}
np.subtract({a}[1:], {a}[:-1], out={a}[1:])|np.negative({a}, out={a}, where={m})"""
EXPRESSIONS, STATEMENTS = (each.replace("\n", "|").split("|") for each in (EXPRESSIONS, STATEMENTS))
ENTIRE = ["sin", "cos", "negative", "square", "positive", "tanh", "arctan"]
NUMBERS = ["0.5", "2.0", "-1.5", "3", "np.float64(0.7)"]
SHAPES = [(3,), (4,), (2, 3), (3, 3), (3, 3), (), (1, 3), (2, 1, 2), (0,), (2, 0)]


class Wrong(AssertionError):
    """Raised if tensors and arrays give different results, or if only tensors raise an error."""


class AnalyticProgram:
    """A random program: its leaves, a direction and its lines.

    Arguments:
        seed: the seed of the program.
        length: the maximum number of lines.
    """

    def __init__(self, seed: int, length: int = 6) -> None:
        self.seed, self.random, rng = seed, random.Random(seed), np.random.default_rng(seed)
        self.leaves, self.directions = {}, {}
        for name in ("x0", "x1")[: self.random.randint(1, 2)]:
            shape = self.random.choice(SHAPES)
            self.leaves[name] = self.laid_out(np.asarray(rng.uniform(0.3, 1.4, shape) * rng.choice([1, 1, -1], shape)))
            self.directions[name] = np.asarray(rng.uniform(-1, 1, shape))
        self.lines: list[str] = []
        self.names = self.moved(0.0)
        for _ in range(3 * length):
            if len(self.lines) < length:
                self.try_line(rng)

    def laid_out(self, array):
        layout = self.random.choice("CCFR") if array.ndim else "C"
        if layout == "R":
            return np.ascontiguousarray(array[::-1])[::-1]
        return np.asfortranarray(array) if layout == "F" else array

    def moved(self, apart):
        """Return the leaves as NumPy receives them, moved along the direction by `apart`, and by a complex step."""
        found = {"np": np}
        for name, leaf in self.leaves.items():
            found[name] = leaf.astype(complex, order="K")
            found[name] += (apart + 1j * STEP) * self.directions[name]
        return found

    # -- drawing -------------------------------------------------------------------------------------------------------

    def arrays(self, fits=lambda array: True):
        return [name for name, value in self.names.items() if name[0] in "xv" and fits(value)]

    def try_line(self, rng) -> None:
        writable = self.arrays(lambda a: isinstance(a, np.ndarray) and a.flags.writeable and self.is_own(a))
        if writable and self.random.random() < 0.55:
            template, name = self.random.choice(STATEMENTS), self.random.choice(writable)
        else:
            template, name = self.random.choice(EXPRESSIONS), self.random.choice(self.arrays()[-4:])
        if "einsum('ii" in template and not np.size(self.names[name]):
            return  # NumPy returns the diagonal of an empty non-square array, which lies outside its memory
        line = self.filled(template, name, rng)
        if template in EXPRESSIONS:
            line = f"v{len(self.lines)} = {line}"
        self.lines.append(line)
        before = {name: (value, np.copy(value)) for name, value in self.names.items() if name[0] in "xvt"}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                exec(line, self.names)
        except Exception:  # NumPy refuses it
            self.undo(before)
            return
        if not all(is_tame(self.names[name]) for name in self.arrays()) or self.reads_what_it_wrote(line, before):
            self.undo(before)

    def reads_what_it_wrote(self, line, before) -> bool:
        """Return whether NumPy reads an element after writing it, as in `a[1] = a[:, 2]`; repeat the line otherwise."""
        statement = ast.parse(line).body[0]
        if not isinstance(statement, ast.Assign) or not re.match(r"\w+\[", line):
            return False
        found = {name: np.copy(self.names[name]) for name in self.arrays()}
        self.restore(before)
        several = isinstance(statement.targets[0], ast.Tuple)
        targets = statement.targets[0].elts if several else statement.targets
        exec(f"held = {ast.unparse(statement.value)}", self.names)
        held = self.names.pop("held") if several else (self.names.pop("held"),)
        for target, value in zip(targets, held, strict=True):
            exec(
                f"{ast.unparse(target)} = value.copy() if hasattr(value, 'copy') else value",
                self.names,
                {"value": value},
            )
        return not all(np.array_equal(found[name], self.names[name]) for name in found)

    def undo(self, before) -> None:
        """Undo the last line, with its bindings and writes."""
        del self.lines[-1]
        self.names.pop(f"v{len(self.lines)}", None)
        self.restore(before)

    def restore(self, before) -> None:
        for name, (value, content) in before.items():
            self.names[name] = value
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value[...] = content

    def is_own(self, array):
        while isinstance(array.base, np.ndarray):
            array = array.base
        return all(array is not self.names[leaf] for leaf in self.leaves)

    def filled(self, template, name, rng):
        array = np.asarray(self.names[name])
        shape = array.shape
        fitting = self.arrays(lambda other: other.shape == shape)
        index = self.basic(shape)
        try:
            window = array[eval(f"np.index_exp[{index}]")].shape
        except IndexError:
            window = ()
        places = rng.integers(-len(array), len(array), 3).tolist() if shape and len(array) else [0]
        words = {
            "a": name,
            "b": self.operand(shape),
            "c": self.random.choice(fitting),
            "f": f"np.array({places})",
            "i": index,
            "j": self.basic(shape),
            "k": self.random.choice(["None", *map(str, range(-len(shape), len(shape)))]),
            "m": f"np.array({(rng.random(shape) < 0.6).tolist()}, bool)",
            "n": self.random.choice(NUMBERS),
            "u": self.random.choice(ENTIRE),
            "v": self.operand(window),
        }
        return template.format(**words)

    def operand(self, shape):
        def fits(other):
            try:
                return np.broadcast_shapes(other.shape, shape) == shape
            except ValueError:
                return False

        return self.random.choice([*self.arrays(fits), self.random.choice(NUMBERS)])

    def basic(self, shape):
        items = []
        for extent in shape[: self.random.randint(0, len(shape))]:
            whole = extent and self.random.random() < 0.2
            slices = [":", "::-1", "1:", ":-1", "::2"]
            items.append(str(self.random.randrange(-extent, extent)) if whole else self.random.choice(slices))
        return ", ".join(items) or "..."

    def __str__(self) -> str:
        told = [f"{name} = np.{np.array_repr(array)}" for name, array in self.leaves.items()]
        return "\n".join([f"# analytic program {self.seed}", *told, *self.lines])

    # -- running -------------------------------------------------------------------------------------------------------

    def run(self, names):
        for line in self.lines:
            exec(line, names)
        return names


def is_tame(value):
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind != "c" or value.size > 50:
        return False
    return bool(np.isfinite(value).all()) and float(np.abs(value).max(initial=0)) <= LARGEST


def total_of(names):
    """Return a number that depends on everything that the lines have bound."""
    total = 0.0
    for name, value in names.items():
        if name[0] == "v":
            total = total + (value * np.cos(np.arange(value.size).reshape(value.shape) * 1.3 + int(name[1:]))).sum()
    return total


def check(program: AnalyticProgram) -> str:
    """Compare values, gradients, tangents and second derivatives; return how much could be compared.

    Raises:
        Wrong: if anything differs, or is refused.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        leaves = {name: vg.Tensor(leaf.copy(order="K"), requires_grad=True) for name, leaf in program.leaves.items()}
        try:
            found = program.run({"np": np} | leaves)
        except Exception as error:
            raise Wrong(f"refused: {type(error).__name__}: {error}\n{program}") from error
        for name in program.arrays():
            ours, theirs = found[name], program.names[name]
            value = ours.detach().numpy() if isinstance(ours, vg.Tensor) else np.asarray(ours)
            if value.shape != theirs.shape or not np.allclose(value, theirs.real, rtol=1e-9, atol=1e-9):
                raise Wrong(f"{name} is {value}, not {theirs.real}\n{program}")
        total, expected = total_of(found), float(np.imag(total_of(program.names)) / STEP)
        wanted = [leaves[name] for name in leaves]
        gradients = [None] * len(wanted)
        if isinstance(total, vg.Tensor) and total.requires_grad:
            gradients = grad(total, wanted, allow_unused=True, create_graph=True)
        same(program, along(program, leaves, gradients), expected, "the derivative", 1e-8)
        same(program, tangent(program), expected, "the tangent", 1e-8)
        return check_second(program, leaves, gradients)


def along(program, leaves, gradients) -> float:
    pairs = zip(leaves, gradients)
    return sum(float((g.detach().numpy() * program.directions[name]).sum()) for name, g in pairs if g is not None)


def same(program, found, expected, what, tolerance) -> None:
    if not abs(found - expected) <= tolerance * (1 + abs(expected)):
        raise Wrong(f"{what} is {found}, not {expected}\n{program}")


def tangent(program) -> float:
    with forward_ad.dual_level():
        duals = {
            name: forward_ad.make_dual(vg.Tensor(leaf.copy(order="K")), vg.Tensor(program.directions[name]))
            for name, leaf in program.leaves.items()
        }
        total = total_of(program.run({"np": np} | duals))
        pushed = forward_ad.unpack_dual(total).tangent if isinstance(total, vg.Tensor) else None
        return 0.0 if pushed is None else float(pushed.numpy())


def check_second(program, leaves, gradients) -> str:
    ends = [float(np.imag(total_of(program.run(program.moved(apart)))) / STEP) for apart in (APART, -APART)]
    expected = (ends[0] - ends[1]) / (2 * APART)
    slope = 0.0
    for name, gradient in zip(leaves, gradients):
        if gradient is not None:
            slope = slope + (gradient * program.directions[name]).sum()
    found = 0.0
    if isinstance(slope, vg.Tensor) and slope.requires_grad:
        found = along(program, leaves, grad(slope, list(leaves.values()), allow_unused=True))
    same(program, found, expected, "the second derivative", 1e-5)
    return "linear" if not expected else "second derivatives"
