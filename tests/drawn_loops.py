"""Drawn programs of nested loops as users write them: single numbers, rows, columns and parts, written in place.

Each is the text of a function of a vector, a matrix and three parameters, which plain arrays take as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import viewgrad as vg

__all__ = ["LENGTH", "WIDTH", "inputs", "loop_program", "loop_source"]

LENGTH, WIDTH = 6, 4
ORDER, CHOSEN = [3, 0, 5, 1, 4, 2], [2, 2, 0, 3, 1, 0]
FUNCTIONS = ("np.sin({})", "np.tanh({})", "np.exp(-({}) ** 2)", "np.sqrt(1 + ({}) ** 2)", "np.arctan({})", "abs({})")
PAIRS = (
    "{} + {}", "{} - {}", "{} * {}", "{} / (1.5 + np.sin({}))", "np.maximum({}, {})", "np.minimum({}, {})",
    "np.where({} > 0.1, {}, 0.3)", "np.logaddexp({}, {})", "0.5 * {} - 0.25 * {}", "np.hypot(0.1 + {}, {})",
)  # fmt: skip


class Drawn:
    """Draws one program.

    Arguments:
        number: the seed; equal numbers draw equal programs.
    """

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.lines: list[str] = []
        self.loops: list[tuple[str, int, int]] = []  # the variables, with their minimum and maximum
        self.names: list[str] = []  # the names of single numbers
        self.count = 0
        self.computes_places = False  # whether K are places that depend on values

    def text(self) -> str:
        """Return the source."""
        self.line("def program(x, A, p):")
        self.line("    y, z, T = zeros(6), x * p[0], zeros((6, 4))")
        self.line("    s = 0.0")
        if self.chance(0.3):
            self.line("    T[...] = A")
        if self.chance(0.3):
            self.line("    y[:] = 0.2")
        self.computes_places = self.chance(0.4)
        if self.computes_places:
            self.line("    K = np.argsort(x)")
        self.names = ["s"]
        for _ in range(self.random.randint(1, 3)):
            self.loop(1)
        self.line("    return s * p[1] + (y * W[:, 0]).sum() + (T * W).sum() + np.sum(z * z)")
        return "\n".join(self.lines)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def loop(self, depth: int) -> None:
        """Draw a loop with some statements, which may be loops."""
        draw = self.random
        name = "ijk"[depth - 1]
        pad = "    " * depth
        kept, before = list(self.names), len(self.loops)
        least, most = 0, LENGTH - 1
        kind = draw.randrange(9)
        if kind == 0 and self.loops:
            outer, _, above = draw.choice(self.loops)
            self.line(f"{pad}for {name} in range({outer}):")
            most = max(above - 1, 0)
        elif kind == 1 and self.loops:
            outer, below, above = draw.choice(self.loops)
            self.line(f"{pad}for {name} in range({outer}, {LENGTH}):")
            least, most = below, max(above, LENGTH - 1)
        elif kind == 2:
            self.line(f"{pad}for {name} in range({LENGTH - 1}, -1, -1):")
        elif kind == 3:
            self.line(f"{pad}for {name} in range(0, {LENGTH}, 2):")
        elif kind == 4:
            self.line(f"{pad}for {name}, c{depth} in enumerate(x):")
            self.names.append(f"c{depth}")
        elif kind == 5:
            self.line(f"{pad}for {name} in ORDER:")
        elif kind == 6:
            self.line(f"{pad}{name} = -1")
            self.line(f"{pad}while {name} < {WIDTH - 1}:")
            self.line(f"{pad}    {name} += 1")
            most = WIDTH - 1
        else:
            least = draw.randint(0, 2)
            most = draw.randint(least, LENGTH - 1)
            self.line(f"{pad}for {name} in range({least}, {most + 1}):")
        self.loops.append((name, least, most))
        if kind != 6 and self.chance(0.1):
            self.line(f"{pad}    if {name} == {draw.randrange(LENGTH)}:")
            self.line(f"{pad}        {draw.choice(['continue', 'break'])}")
        for _ in range(draw.randint(1, 3)):
            if depth < 3 and self.chance(0.35):
                self.loop(depth + 1)
            elif self.chance(0.15):
                self.line(f"{pad}    if {self.condition()}:")
                self.statement(pad + "        ")
                if self.chance(0.5):
                    self.line(f"{pad}    else:")
                    self.statement(pad + "        ")
            else:
                self.statement(pad + "    ", names=True)
        del self.loops[before:]
        self.names = kept

    def condition(self) -> str:
        one = self.random.choice(self.loops)[0]
        other = self.random.choice(self.loops)[0]
        return self.random.choice([f"{one} > 1", f"({one} + {other}) % 2 == 0", f"{one} != {other}", f"{one} % 3 == 1"])

    def place(self, length: int, known: bool = False) -> str:
        """Draw an index of a dimension, whose length may be known."""
        draw = self.random
        fitting = []
        for name, least, most in self.loops:
            fitting += [name] * 3 if most < length else [f"{name} % {length}"]
            if 0 < least and most <= length:
                fitting += [f"{name} - 1"] * 2
            if most + 1 < length:
                fitting.append(f"{name} + 1")
            if most < length:
                fitting += [f"{length - 1} - {name}", f"-{name} - 1", f"({name} * 5 + 1) % {length}"]
            if most < LENGTH:
                fitting.append(f"{'ORDER' if length == LENGTH else 'CHOSEN'}[{name}]")
                if self.computes_places and not known:
                    fitting += [f"K[{name}]" if length == LENGTH else f"K[{name}] % {WIDTH}"] * 3
        return draw.choice(fitting) if fitting and self.chance(0.9) else str(draw.randrange(-length, length))

    def number(self, depth: int = 0) -> str:
        """Return an expression whose value is a single number."""
        draw = self.random
        kind = draw.randrange(12 if depth < 2 else 6)
        if kind < 2:
            return f"{draw.choice('xyz')}[{self.place(LENGTH)}]"
        if kind < 4:
            return f"{draw.choice('AT')}[{self.place(LENGTH)}, {self.place(WIDTH)}]"
        if kind == 4:
            return draw.choice(self.names)
        if kind == 5:
            return draw.choice([f"p[{draw.randrange(3)}]", "0.7", f"0.1 * {draw.choice(self.loops)[0]}"])
        if kind == 6:
            one, other = self.row(), self.row()
            return draw.choice(["{} @ {}", "np.dot({}, {})", "({} * {}).sum()", "np.max({} + {})"]).format(one, other)
        if kind == 7:
            return draw.choice(FUNCTIONS).format(self.number(depth + 1))
        if kind == 8:
            place = draw.choice(self.loops)[0]
            return f"{draw.choice(['x', 'y', 'T[:, 1]', 'A[:, 0]'])}[:{place} + 1].sum()"
        return "(" + draw.choice(PAIRS).format(self.number(depth + 1), self.number(depth + 1)) + ")"

    def row(self, depth: int = 0) -> str:
        """Return an expression whose value is a row of the matrix."""
        draw = self.random
        kind = draw.randrange(9 if depth < 2 else 4)
        if kind < 2:
            return f"{draw.choice('AT')}[{self.place(LENGTH)}]"
        if kind == 2:
            part = f"x[{draw.randint(0, 2)}:][:4]"
            return draw.choice([part, "y[1:5]", "z[::-1][:4]", "T[1:5, 2]", "A[[0, 2, 2, 5], 1]"])
        if kind == 3:
            return draw.choice([f"A[{self.place(LENGTH)}, ::-1]", f"T[{self.place(LENGTH)}, CHOSEN[:4]]"])
        if kind == 4:
            return f"({self.row(depth + 1)} * {self.number(1)})"
        if kind == 5:
            return draw.choice(FUNCTIONS).format(self.row(depth + 1))
        if kind == 6:
            return f"(x @ {draw.choice('AT')})"
        return "(" + draw.choice(PAIRS).format(self.row(depth + 1), self.row(depth + 1)) + ")"

    def small(self, expression: str) -> str:
        """Return an expression with bounded values in place of a given one."""
        return f"np.{self.random.choice(['tanh', 'sin'])}({expression})"

    def statement(self, pad: str, names: bool = False) -> None:
        """Draw a write, or an assignment to a new name while some are left."""
        draw = self.random
        kind = draw.randrange(15)
        if kind == 0 and names:
            self.count += 1
            self.line(f"{pad}t{self.count} = {self.small(self.number())}")
            self.names.append(f"t{self.count}")
        elif kind <= 3:
            self.write(pad, f"{draw.choice('yyz')}[{self.place(LENGTH)}]", self.number())
        elif kind <= 5:
            self.write(pad, f"T[{self.place(LENGTH)}, {self.place(WIDTH)}]", self.number())
        elif kind <= 7:
            self.write(pad, f"T[{self.place(LENGTH)}]", self.row())
        elif kind == 8:
            self.line(f"{pad}s = 0.9 * s + {self.small(self.number())}")
        elif kind == 9:
            one, other = self.place(LENGTH, known=True), self.place(LENGTH, known=True)
            self.line(pad + draw.choice([
                f"y[{one}], y[{other}] = y[{other}], y[{one}]",
                f"T[[{one}, {other}]] = T[[{other}, {one}]]",
                f"T[{one}], T[{other}] = T[{other}].copy(), T[{one}].copy()",
            ]))
        elif kind == 10:
            column, other = self.place(WIDTH), self.place(WIDTH)
            self.line(pad + draw.choice([
                f"T[:, {column}] = {self.small('x * ' + self.number(1))}",
                f"T[1:, {column}] = 0.3 * T[:-1, {other}] - 0.5 * T[1:, {column}]",
                "y[1:-1] = 0.25 * (y[2:] + y[:-2]) + 0.5 * z[1:-1]",
                "T[1:-1, 1:-1] += 0.1 * np.sin(T[2:, 1:-1] - T[:-2, 1:-1] + T[1:-1, 2:] * T[1:-1, :-2])",
                f"y[:{draw.choice(self.loops)[0]}] *= {self.small(self.number(1))}",
            ]))
        elif kind == 11:
            self.line(f"{pad}v = T[{self.place(LENGTH)}]")
            self.write(pad, f"v[{self.place(WIDTH)}]", self.number())
            if self.chance(0.5):
                self.line(f"{pad}v *= {self.small(self.number(1))}")
        elif kind == 12:
            self.write(pad, f"y[[{self.place(LENGTH, True)}, {self.place(LENGTH, True)}]]", self.number())
        elif kind == 13:
            name, bound = draw.choice("yzT"), draw.choice(["> 0.3", "< -0.2", ">= x[1]"])
            self.line(f"{pad}{name}[{name} {bound}] = {self.small(self.number(1))}")
        else:
            function, row = draw.choice(["multiply", "add"]), self.small(self.row(1))
            self.line(f"{pad}np.{function}({row}, 0.4, out=T[{self.place(LENGTH)}])")

    def write(self, pad: str, target: str, value: str) -> None:
        """Add a write of a bounded value."""
        self.line(f"{pad}{target} {self.random.choice(['=', '=', '+=', '-='])} {self.small(value)}")


def loop_source(number: int) -> str:
    """Return the text of a program."""
    return Drawn(number).text()


def loop_program(number: int, zeros: Callable[..., Any] = vg.zeros) -> Callable[..., Any]:
    """Return a program; `zeros` creates its arrays."""
    weights = np.cos(np.arange(LENGTH * WIDTH)).reshape(LENGTH, WIDTH)
    space = {"np": np, "zeros": zeros, "W": weights, "ORDER": ORDER, "CHOSEN": CHOSEN}
    exec(loop_source(number), space)
    return space["program"]  # type: ignore[return-value]


def inputs(number: int, call: int) -> list[np.ndarray[Any, Any]]:
    """Return the arguments of a program."""
    rng = np.random.default_rng((number, call))
    return [rng.normal(size=LENGTH), rng.normal(size=(LENGTH, WIDTH)), 0.5 + 0.3 * rng.random(3)]
