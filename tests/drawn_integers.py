"""Drawn programs with integers, bools and floats: loops that compute, write and convert them, and index arrays.

Each is the text of a function of a vector, a matrix, a vector of integers and a vector of bools. The values include
integers that wrap around, zero divisors, and floats that are not integers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import viewgrad as vg

__all__ = ["LENGTH", "inputs", "integer_program", "integer_source"]

LENGTH = 5
HUGE = (2**62, -(2**62), 2**63 - 1, 2**53 + 1, 3037000500)
WILD = (np.nan, np.inf, -np.inf, 1e19, -1e19, -0.0)


class Drawn:
    """Draws one program.

    Arguments:
        number: the seed; equal numbers draw equal programs.
    """

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.lines: list[str] = []
        self.loops: list[str] = []

    def text(self) -> str:
        """Return the source."""
        self.lines = [
            "def program(x, A, n, b):",
            "    k, m = zeros(5, dtype=int), zeros(5, dtype=bool)",
            "    K, M, y, s = zeros((5, 5), dtype=int), zeros((5, 5), dtype=bool), x * 1.0, 0.0",
            "    c = zeros((), dtype=int)", "    c[...] = n[0] * 0",
        ]
        for _ in range(self.random.randint(1, 3)):
            self.loop(1)
        self.lines.append("    return s + (y * k).sum() + (M * A).sum() + (A * K).sum() * 1e-3, k, m, K, M, c, y")
        return "\n".join(self.lines)

    def loop(self, depth: int) -> None:
        """Add a loop with some statements."""
        name, pad = "ij"[depth - 1], "    " * depth
        stops = ["5", "4", "3", *([self.loops[-1], f"{self.loops[-1]} + 1"] if self.loops else [])]
        self.lines.append(f"{pad}for {name} in range({self.random.choice(stops)}):")
        self.loops.append(name)
        for _ in range(self.random.randint(1, 3)):
            self.statement(pad + "    ")
        if depth == 1 and self.random.random() < 0.5:
            self.loop(2)
        self.loops.pop()

    def place(self) -> str:
        """Return an index."""
        name = self.random.choice(self.loops)
        return self.random.choice([name, name, f"4 - {name}", f"({name} + 1) % 5", str(self.random.randrange(5))])

    def integer(self, depth: int = 0) -> str:
        """Return an expression of one integer."""
        draw = self.random
        if depth > 2 or draw.random() < 0.3:
            huge = str(draw.choice(HUGE)) if draw.random() < 0.1 else str(draw.randint(-3, 4))
            place = self.place()
            return draw.choice([
                f"n[{place}]", f"k[{place}]", f"K[{place}, {self.place()}]", "c", f"(n[{self.place()}] * {huge})",
                f"K[{place}].argmax()", f"np.argmax(A[{place}])", f"np.argmin(x + A[{place}])",
                f"(k[{place}] + {huge})",
                f"np.count_nonzero(A[{place}] > 0.3)", f"(n > {huge}).sum()", f"(m[{place}] + n[{self.place()}])",
            ])  # fmt: skip
        one, other = self.integer(depth + 1), self.integer(depth + 1)
        return draw.choice([
            f"({one} + {other})", f"({one} - {other})", f"({one} * {other})", f"({one} // {other})",
            f"({one} % {other})", f"np.minimum({one}, {other})", f"np.maximum({one}, {other})", f"abs({one})",
            f"-({one})", f"np.where({self.truth(depth + 1)}, {one}, {other})", f"({one} & {other})",
            f"{self.floating(depth + 1)}.astype(int)", f"np.square({one})", f"({one} ^ {other})",
            f"np.where({one}, {other}, {self.truth(depth + 1)})", f"np.floor({self.floating(depth + 1)}).astype(int)",
        ])  # fmt: skip

    def truth(self, depth: int = 0) -> str:
        """Return an expression of one bool."""
        draw = self.random
        if depth > 2 or draw.random() < 0.2:
            return draw.choice([f"b[{self.place()}]", f"m[{self.place()}]", f"M[{self.place()}, {self.place()}]"])
        compare = draw.choice(["<", "<=", ">", ">=", "==", "!="])
        return draw.choice([
            f"({self.integer(depth + 1)} {compare} {self.integer(depth + 1)})",
            f"({self.floating(depth + 1)} {compare} {self.floating(depth + 1)})",
            f"({self.integer(depth + 1)} {compare} {self.floating(depth + 1)})",
            f"({self.truth(depth + 1)} {draw.choice('&|^')} {self.truth(depth + 1)})", f"~{self.truth(depth + 1)}",
            f"({self.truth(depth + 1)} == {self.truth(depth + 1)})", f"{self.integer(depth + 1)}.astype(bool)",
            f"np.maximum({self.truth(depth + 1)}, {self.truth(depth + 1)})",
        ])  # fmt: skip

    def floating(self, depth: int = 0) -> str:
        """Return an expression of one float, as a tensor."""
        draw = self.random
        if depth > 2 or draw.random() < 0.3:
            wild = draw.choice(WILD) if draw.random() < 0.15 else round(draw.uniform(-3, 3), 1)
            text = f"np.float64('{wild}')"
            place = self.place()
            return draw.choice([f"x[{place}]", f"y[{place}]", f"A[{place}, 1]", f"(x[0] * {text})"])
        return draw.choice([
            f"(x[{self.place()}] * {self.integer(depth + 1)})", f"(1.5 * {self.floating(depth + 1)})",
            f"({self.integer(depth + 1)} / {self.integer(depth + 1)})", f"{self.integer(depth + 1)}.astype(float)",
            f"np.maximum({self.floating(depth + 1)}, {self.integer(depth + 1)})",
            f"np.where({self.truth(depth + 1)}, {self.floating(depth + 1)}, {self.integer(depth + 1)})",
            f"({self.floating(depth + 1)} + {self.truth(depth + 1)})", f"np.sin({self.floating(depth + 1)})",
            f"({self.integer(depth + 1)} - {self.floating(depth + 1)})",
        ])  # fmt: skip

    def row(self, depth: int = 0) -> str:
        """Draw an expression of a row of integers."""
        draw = self.random
        if depth > 1 or draw.random() < 0.3:
            return draw.choice([
                "n", "k", f"K[{self.place()}]", "K[:, 1]", "k[::-1]", "n[[4, 0, 0, 1, 2]]", "np.argsort(x)",
                "A.argmax(axis=0)", "np.argmin(A, axis=1)", "K.sum(axis=0)", "np.searchsorted(np.sort(x), x)",
                "A.astype(int)[0]", "M.sum(axis=1)", "(k > n).astype(int)", "(x * 3).astype(int)",
            ])  # fmt: skip
        one, other = self.row(depth + 1), draw.choice([self.row(depth + 1), self.integer(2)])
        return draw.choice([
            f"({one} + {other})", f"({one} - {other})", f"({one} * {other})", f"({one} // {other})",
            f"({one} % {other})", f"np.minimum({one}, {other})", f"np.where(b, {one}, {other})", f"abs({one})",
            f"np.cumsum({one})", f"-({one})", f"({one} | {other})", f"{one}.copy()",
        ])  # fmt: skip

    def statement(self, pad: str) -> None:
        """Add a write."""
        draw = self.random
        line = draw.choice([
            f"k[{self.place()}] {draw.choice(['=', '+=', '-=', '*='])} {self.integer()}",
            f"k[{self.place()}] = {self.floating()}", f"k[{self.place()}] += 1", f"c[...] = c + {self.integer()}",
            f"K[{self.place()}, {self.place()}] {draw.choice(['=', '+=', '//=', '%='])} {self.integer()}",
            f"K[{self.place()}] {draw.choice(['=', '+='])} {self.row()}", f"K[:, {self.place()}] = {self.row()}",
            f"K[{self.place()}] = x", f"m[{self.place()}] = {self.truth()}", f"m[{self.place()}] |= {self.truth()}",
            f"M[{self.place()}] = {self.row()} > {self.row()}", f"M[{self.place()}] = x", "k[1:] = k[:-1]",
            "K[1:, 1:] = K[:-1, :-1]", "K[:] = K.T", "k[:] = k[::-1]",
            f"K[{self.place()}, ::-1] = K[:, {self.place()}]",
            f"K[1:, 0] {draw.choice(['+=', '*=', '-='])} K[:-1, {self.place()}]",
            "M[:, 1:] = M[:, :-1] ^ (K[:, 1:] > 0)",
            f"m[{self.place()}] = {self.integer()}", f"s = np.tanh(s + {self.floating()})", "k[:] = m",
            f"y[{self.place()}] = np.sin(y[{self.place()}]) * {self.integer()}",
            f"y[{self.place()}] = {self.integer()}",
            f"k[[{self.place()}, {self.place()}]] = {self.integer()}", f"np.add.at(k, [0, 1, {self.place()}], n[:3])",
            f"v = K[{self.place()}]; v[1:] += {self.integer()}",
            f"s = s + np.sin(A[{self.place()}] * {self.row()}).sum()",
            f"k = np.where(m, {self.row()}, {self.integer()})", f"s = s * 0.5 + k[{self.place()}] / 7",
        ])  # fmt: skip
        self.lines.append(pad + line)
        if draw.random() < 0.25:
            self.lines.append(f"{pad}with no_grad():")
            self.lines.append(pad + "    " + draw.choice([
                f"y[[{self.place()}, {self.place()}]] = x[{self.place()}] * 2", f"y[{self.place()}] = x[0]",
                f"y[[0, {self.place()}, 1]] = np.sin(A[0, :3])", f"np.add.at(y, [0, {self.place()}, 0], x[1:4])",
                f"y[[{self.place()}]] += 0.5 * y[{self.place()}]", "y[[3, 1]] = y[[1, 3]]",
            ]))  # fmt: skip
            self.lines.append(f"{pad}y = y * x")


def integer_source(number: int) -> str:
    """Return the text of a program."""
    return Drawn(number).text()


def integer_program(number: int) -> Callable[..., Any]:
    """Return a program."""
    space = {"np": np, "zeros": vg.zeros, "no_grad": vg.no_grad}
    exec(integer_source(number), space)
    return space["program"]  # type: ignore[return-value]


def inputs(number: int, call: int) -> list[np.ndarray[Any, Any]]:
    """Return the arguments of a program."""
    rng = np.random.default_rng((number, call))
    x, a = rng.normal(size=LENGTH), rng.normal(size=(LENGTH, LENGTH))
    if number % 3 == 0:
        x[rng.integers(LENGTH)] = rng.choice([0.0, -0.0, np.nan, np.inf, 2.0, 1e19])
        a[:, 1] = a[:, 2]
    n = rng.integers(-3, 4, LENGTH)
    if number % 2:
        n[rng.integers(LENGTH)] = rng.choice(np.array([*HUGE, -(2**63)]))
    return [x, a, n, rng.random(LENGTH) < 0.5]
