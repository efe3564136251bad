"""Plain NumPy functions, drawn at random: floats and arrays, views, branches, loops, calls of a helper function.

They are differentiated as users do it, by `vg.value_and_grad` of the function and of the compiled function, with
respect to an array and to a float. Source files are written, since functions are compiled from their source.
"""

from __future__ import annotations

import importlib.util
import random
import re
import warnings

import numpy as np

import viewgrad as vg

__all__ = ["PublicProgram", "differences", "loaded", "without_overlaps"]

HEADER = """import math
import numpy as np


def helper(p, q):
    if p > q:
        return p * q
    return p - 0.5 * q


def f(x, a, places, order):
    n = len(x)
"""
NAMES = ("vectors", "written", "matrices", "written_matrices", "numbers", "counters")


class PublicProgram:
    """A drawn function of an array `x`, a float `a`, and two arrays of indices; `text` is its source file."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.made = 0
        self.vectors, self.written = ["x"], []  # vectors with the length of x
        self.matrices, self.written_matrices = [], []  # square
        self.numbers, self.counters = ["a"], []
        for _ in range(self.random.randint(4, 9)):
            self.statement(0)
        result = [f"{self.vector(2)}.sum()", self.number(2)]
        result += [f"({each} * {each}).sum()" for each in self.written[-2:]]
        result += [f"np.sum({each} * {self.constant()})" for each in self.written_matrices[-1:]]
        self.emit("return " + " + ".join(result))
        self.text = HEADER + "\n".join(self.lines) + "\n"

    def new(self, letter: str) -> str:
        self.made += 1
        return f"{letter}{self.made}"

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def constant(self) -> str:
        return self.one_of("0.5", "1.25", "-0.75", "2.0", "0.1")

    def index(self) -> str:
        counters = [text for each in self.counters for text in (each, f"{each} - 1")]
        return self.one_of("0", "-1", "n // 2", "n - 1", *counters, *counters)

    def number(self, depth: int = 0) -> str:
        """Return an expression for a number."""
        deeper = depth + 1
        kind = self.random.random()
        if depth > 2 or kind < 0.25:
            return self.one_of(*self.numbers, self.constant())
        if kind < 0.5:
            return f"{self.one_of(*self.vectors)}[{self.index()}]"
        if kind < 0.55 and self.matrices:
            return f"{self.one_of(*self.matrices)}[{self.index()}, {self.index()}]"
        if kind < 0.7:
            return f"({self.number(deeper)} {self.one_of(*'+-*')} {self.number(deeper)})"
        if kind < 0.78:
            return f"{self.one_of('np.sin', 'np.tanh', 'np.cos', 'math.sin', 'math.tanh')}({self.number(deeper)})"
        if kind < 0.86:
            return self.one_of("np.exp(-{} ** 2)", "np.sqrt(1.0 + {} ** 2)").format(self.number(deeper))
        if kind < 0.9:
            function = self.one_of("max", "min", "np.maximum", "np.minimum")
            return f"{function}({self.number(deeper)}, {self.number(deeper)})"
        if kind < 0.93:
            return f"abs({self.number(deeper)})"
        if kind < 0.96:
            function = self.one_of("np.sum", "np.mean", "np.max", "sum", "max", "np.linalg.norm", "np.prod", "len")
            return f"{function}({self.vector(deeper)})"
        if kind < 0.97:
            operand = self.one_of("n % 2", *[f"({each} % 2)" for each in self.counters])
            return f"({operand} {self.one_of('and', 'or')} {self.number(deeper)})"
        if kind < 0.98:
            return f"({self.number(deeper)} if {self.condition()} else {self.number(deeper)})"
        return f"helper({self.number(deeper)}, {self.number(deeper)})"

    def condition(self) -> str:
        kind = self.random.random()
        if kind < 0.5:
            return f"{self.number(2)} > {self.number(2)}"
        if kind < 0.7 and self.counters:
            return f"{self.one_of(*self.counters)} % 2 == {self.random.randint(0, 1)}"
        if kind < 0.85:
            return f"n > {self.random.randint(2, 6)}"
        return f"{self.number(2)} < {self.constant()} and {self.number(2)} > {self.constant()}"

    def vector(self, depth: int = 0) -> str:
        """Return an expression for an array of the length of `x`."""
        deeper = depth + 1
        kind = self.random.random()
        if depth > 2 or kind < 0.35:
            return self.one_of(*self.vectors)
        if kind < 0.6:
            return f"({self.vector(deeper)} {self.one_of(*'+-*')} {self.vector(deeper)})"
        if kind < 0.7:
            return f"({self.vector(deeper)} * {self.number(deeper)})"
        if kind < 0.78:
            return f"{self.one_of('np.sin', 'np.tanh', 'np.abs')}({self.vector(deeper)})"
        if kind < 0.82:
            test = f"{self.vector(deeper)} > {self.constant()}"
            return f"np.where({test}, {self.vector(deeper)}, {self.number(deeper)})"
        if kind < 0.89:
            form = self.one_of(
                "{}[::-1]", "np.cumsum({})", "{}[order]", "np.roll({}, 1)", "np.clip({}, -1.0, 1.5)", "({} ** 2)",
                "np.append(np.diff({0}), {0}[0])", "np.concatenate([{0}[1:], {0}[:1]])", "({} / (1.0 + x ** 2))",
                "np.array([each * 0.5 for each in {}])", "np.array([{}[j] * j for j in range(n)])",
                "np.where({0} > 0.0, {0}, 0.1 * {0})", "abs({})", "np.maximum({}, 0.25)", "(lambda v: v * v - a)({})",
            )  # fmt: skip
            return form.format(self.vector(2))
        if self.matrices:
            place = self.one_of(
                "{0}[{1}]", "{0}[:, {1}]", "({0} @ {2})", "({2} @ {0})", "{0}.sum(axis=0)", "{0}.sum(axis=1)",
                "{0}.max(axis=0)", "np.diag({0})", "np.dot({0}.T, {2})", "{0}.mean(axis=1)",
                "np.linalg.solve(0.1 * np.tanh({0}) + 3.0 * n * np.eye(n), {2})", "({0} * {2}[:, None]).sum(axis=0)",
                "({0} + {2}[None, :])[0]",
            )  # fmt: skip
            return place.format(self.one_of(*self.matrices), self.index(), self.vector(2))
        return self.one_of(*self.vectors)

    def statement(self, depth: int) -> None:
        kind = self.random.random()
        if kind < 0.14:
            self.new_array()
        elif kind < 0.22:
            name = self.new("s")
            self.emit(f"{name} = {self.one_of(self.number(), self.one_of(*self.numbers), self.vector(1) + '.sum()')}")
            self.numbers.append(name)
        elif kind < 0.6 and self.written + self.written_matrices:
            self.write()
        elif kind < 0.68 and self.numbers[1:]:
            name = self.one_of(*self.numbers[1:])
            self.emit(f"{name} {self.one_of('+=', '*=', '-=')} {self.number()}")
        elif kind < 0.72:
            names = self.written if self.random.random() < 0.5 else self.numbers[1:]
            if len(names) > 1:
                one, other = self.random.sample(names, 2)
                self.emit(f"{one}, {other} = {other}, {one}")
        elif kind < 0.74:
            self.sequence(depth)
        elif kind < 0.84 and depth < 2:
            counter = self.new("i")
            head = self.one_of("{0} in range(1, n)", "{0} in range(n - 1, 0, -1)", "{0} in range(1, n, 2)",
                               "{0}, e{0} in enumerate({1}[:-1], 1)")
            self.emit(f"for {head.format(counter, self.vector(2))}:")
            self.block(depth, counter)
        elif kind < 0.92 and depth < 3:
            self.emit(f"if {self.condition()}:")
            self.block(depth)
            if self.random.random() < 0.5:
                self.emit("else:")
                self.block(depth)
        elif kind < 0.95 and self.numbers[1:] and depth < 2:
            name, count = self.one_of(*self.numbers[1:]), self.new("q")
            self.emit(f"{count} = 0")
            self.emit(f"while abs({name}) > 0.3 and {count} < 4:")
            self.indent += 1
            self.emit(f"{name} = {name} * 0.6")
            self.emit(f"{count} += 1")
            self.indent -= 1
        elif depth > 0:
            self.emit(f"if {self.condition()}:")
            leave = ["break", "continue"] if self.counters else []
            self.emit("    " + self.one_of(*leave, f"return {self.number()}"))

    def sequence(self, depth: int) -> None:
        """Add loops over elements and rows, unpacking, lists, masks, closures, and numbers computed from counters."""
        kind = self.random.random()
        if kind < 0.2:
            name, element = self.new("s"), self.new("e")
            self.emit(f"{name} = {self.number()}")
            self.emit(f"for {element} in {self.vector(2)}:")
            self.emit(f"    {element} {self.one_of('*=', '-=')} {self.constant()}")
            self.emit(f"    {name} = {name} * 0.5 + {element}")
            self.numbers.append(name)
        elif kind < 0.4 and self.written_matrices:
            row = self.new("r")
            self.emit(f"for {row} in {self.one_of(*self.written_matrices)}:")
            self.emit(f"    {row} {self.one_of('*=', '+=')} {self.vector(2)}")
            self.emit(f"    {row}[0] {self.one_of('=', '+=', '-=')} {self.number(2)}")
        elif kind < 0.5:
            one, other = self.new("s"), self.new("s")
            self.emit(f"{one}, {other} = {self.number(1)}, {self.number(1)}")
            self.emit(f"{one}, {other} = {other}, {one} + {other}")
            self.numbers += [one, other]
        elif kind < 0.65:
            items, name = self.new("l"), self.new("u")
            self.emit(f"{items} = []")
            self.emit("for k in range(n):")
            self.emit(f"    {items}.append({self.one_of(*self.vectors)}[k] * {self.number(2)})")
            self.emit(f"{name} = np.array({items})")
            self.vectors.append(name)
            self.written.append(name)
        elif kind < 0.8 and self.written:
            mask, target = self.new("b"), self.one_of(*self.written)
            self.emit(f"{mask} = {self.vector(2)} > {self.constant()}")
            self.emit(f"{target}[{mask}] {self.one_of('=', '+=', '*=')} {self.vector(2)}[{mask}]")
            self.emit(f"{target}[~{mask}] *= {self.number(2)}")
        elif kind < 0.9:
            function, name = self.new("g"), self.new("s")
            self.emit(f"def {function}(v, w=0.5):")
            self.emit(f"    v = v * w + {self.number(2)}")
            self.emit("    return v if v < 1.0 else 0.5 * v")
            self.emit(f"{name} = {function}({self.number(2)}) + {function}({self.number(2)}, w={self.number(2)})")
            self.numbers.append(name)
        elif self.written:
            place, target = self.new("k"), self.one_of(*self.written)
            self.emit("for j in range(2 * n):")
            self.emit(f"    {place} = (j * 3 + 1) % n")
            self.emit(f"    {target}[{place}] *= 0.5")
            self.emit(f"    {target}[{place}] += {target}[{place} // 2 - 1] * {self.number(2)}")

    def new_array(self) -> None:
        kind = self.random.random()
        views = [f"{each}{part}" for each in self.written for part in ("[::-1]", "[:]")]
        views += [f"{each}{part}" for each in self.written_matrices for part in ("[-1]", "[:, 0]", ".T[0]")]
        if kind < 0.3 and views:
            name = self.new("w")
            self.emit(f"{name} = {self.one_of(*views)}")
        elif kind < 0.7:
            name = self.new("u")
            copies = f"{self.vector()}.copy()", f"{self.vector()} + 0.0"
            self.emit(f"{name} = {self.one_of('np.zeros(n)', 'np.zeros_like(x)', 'np.ones(n)', *copies)}")
        else:
            name = self.new("m")
            outer = f"np.outer({self.vector(2)}, {self.vector(2)})"
            self.emit(f"{name} = {self.one_of('np.zeros((n, n))', outer, 'np.ones((n, n)) * ' + self.number(2))}")
            self.matrices.append(name)
            self.written_matrices.append(name)
            return
        self.vectors.append(name)
        self.written.append(name)

    def write(self) -> None:
        """Write to an array: an element, all of it, a slice, chosen places, through `out=`."""
        operator = self.one_of("=", "+=", "*=", "-=")
        if self.written_matrices and (not self.written or self.random.random() < 0.3):
            target, row = self.one_of(*self.written_matrices), self.vector(1)
            place, value = self.random.choice([(f"[{self.index()}]", row), (f"[:, {self.index()}]", row),
                                               (f"[{self.index()}, {self.index()}]", self.number(1)),
                                               (f".T[{self.index()}]", row)])
            self.emit(f"{target}{place} {operator} {value}")
            return
        target = self.one_of(*self.written)
        kind = self.random.random()
        if kind < 0.35:
            self.emit(f"{target}[{self.index()}] {operator} {self.number()}")
        elif kind < 0.5:
            self.emit(f"{target} {self.one_of('+=', '*=', '-=')} {self.one_of(self.vector(1), self.number(1))}")
        elif kind < 0.75:
            to, source = self.random.choice([("1:", ":-1"), (":-1", "1:"), ("::2", "::2"), (":n // 2", ":n // 2")])
            self.emit(f"{target}[{to}] {operator} {self.vector(2)}[{source}] * {self.number(2)}")
        elif kind < 0.83:
            self.emit(f"{target}[places] {operator} {self.vector(2)}[places]")
        elif kind < 0.91:
            self.emit(f"{target}[{self.vector(2)} > {self.constant()}] {operator} {self.number(2)}")
        else:
            function = self.one_of("multiply", "add", "maximum")
            self.emit(f"np.{function}({self.vector(2)}, {self.vector(2)}, out={target})")

    def block(self, depth: int, counter: str | None = None) -> None:
        """Add a block whose new names are not used after it."""
        before = {name: list(getattr(self, name)) for name in NAMES}
        self.indent += 1
        if counter is not None:
            self.counters.append(counter)
        self.emit("pass")
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth + 1)
        self.indent -= 1
        vars(self).update(before)


def loaded(text: str, path: object):
    """Write the source of a program to a file, and return its function."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("public_program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def without_overlaps(program: PublicProgram) -> str:
    """Return the source of a program that copies what it writes to a part of an array.

    NumPy copies nothing when it writes a row of a matrix to a column, or a column to a row, so that it may read their
    common element after it was written.
    """
    return re.sub(r"^( *\w+(?:\.T)?\[.*\]) = (.*)$", r"\1 = (\2) + 0.0", program.text, flags=re.MULTILINE)


def differences(function, compiled, reference, seed: int, lengths=(5, 2, 8)) -> list[str]:
    """Compare values with NumPy's, and gradients of the compiled function with eager ones and finite differences.

    Arguments:
        reference: the function that NumPy evaluates.
    """
    rng = np.random.default_rng(seed)
    found = []
    for n in lengths:
        x, a = rng.normal(size=n), float(rng.normal())
        places, order = rng.integers(0, n, size=max(1, n - 1)), rng.permutation(n)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                with np.errstate(over="raise", invalid="raise"):
                    wanted = reference(x.copy(), a, places, order)
            except FloatingPointError:  # then gradients are NaN even if the result does not depend on the value
                continue
            if not np.isfinite(wanted) or abs(wanted) > 1e6:
                continue
            gradients = []
            for each in (function, compiled):
                value, (to_x, to_a) = vg.value_and_grad(each, argnums=(0, 1))(x, a, places, order)
                if not np.isclose(value, wanted, rtol=1e-9, atol=1e-9):
                    found.append(f"n={n}: value {value}, not {wanted}")
                gradients.append(np.append(to_x, to_a))
            eager, mine = gradients
            scale = 1.0 + np.abs(eager).max()
            if not np.allclose(eager, mine, rtol=1e-7, atol=1e-8 * scale):
                found.append(f"n={n}: compiled gradient {mine}, not {eager}")
            u, v = rng.normal(size=n), float(rng.normal())
            slopes = one_sided_slopes(reference, (x, a), (u, v), (places, order), wanted)
            slope = eager @ np.append(u, v)
            smooth = np.ptp(slopes) <= 1e-3 * (1.0 + np.abs(slopes).max())
            if smooth and not np.isclose(slope, np.mean(slopes), rtol=2e-3, atol=2e-3 * (1.0 + np.abs(slopes).max())):
                found.append(f"n={n}: gradient along a direction {slope}, finite differences {slopes}")
    return found


def one_sided_slopes(function, point, direction, others, here: float) -> list[float]:
    """Return difference quotients to both sides, with two steps; they differ at a kink, or near another branch."""
    return [
        (function(*[each + h * along for each, along in zip(point, direction, strict=True)], *others) - here) / h
        for h in (1e-5, -1e-5, 3e-6, -3e-6)
    ]
