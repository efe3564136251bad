"""Programs drawn as text, for the source compiler: loops, branches, jumps, views, overwritten state, index arrays."""

from __future__ import annotations

import itertools
import linecache
import random

import numpy as onp

import viewgrad as vg
import viewgrad.numpy as np

_numbers = itertools.count()
HEADER = """\
def mixed(v, w, array, scale=0.5):
    if v > w:
        return v * scale
    array[0] += 0.1 * v
    array[-1] *= 0.9
    return w - v * scale

def program(x, y, m, index, n0):
    n = len(x)
    p = np.arange(n)
"""
OBJECTS = """\
    items, rows, table, o, total = [0.1], [x * 0.5], {"u": 0.2, "v": 1.0, "k": 0}, State(0.3), 0.0
    def note(v):
        nonlocal total
        total = total + 0.1 * v"""


class State:
    def __init__(self, v):
        self.v = v
        self.n = 0

    def step(self, u):
        self.n += 1
        self.v = 0.5 * self.v + u
        return self.v


class Writer:
    """Draws a program.

    Arguments:
        seed: the seed; equal seeds draw equal programs.
        whole: whether it has operations on whole arrays, besides those on elements.
        objects: whether it has lists, dicts, objects, comprehensions and nested functions.
    """

    def __init__(self, seed: int, whole: bool, objects: bool = False) -> None:
        self.objects = objects
        self.draw = random.Random(seed)
        self.whole = whole
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.depth = 0
        self.names = itertools.count()
        self.views: list[str] = []

    def text(self) -> str:
        start = ("a = np.zeros(n)", "b = x.copy()", "g = np.full((n, n), 0.5)", "s = 0.3", "t = 1.0", "k = 0",
                 "pair, mode, last = (0.3, 0.6), 'first', None")
        self.lines = [f"    {line}" for line in start]
        if self.objects:
            self.lines += OBJECTS.splitlines()
        self.block(1, self.draw.randint(4, 8))
        self.lines.append("    return s + t * 0.5 + a.sum() + (b * y).sum() + g.sum() * 0.1")
        if self.objects:
            rest = " + total + table['u'] + o.v * o.n + 0.1 * sum(items) + 0.1 * len(rows)"
            self.lines.append(self.lines.pop() + rest)
        return HEADER + "\n".join(self.lines) + "\n"

    def add(self, indent: int, line: str) -> None:
        self.lines.append("    " * indent + line)

    def index(self, of_view: bool = False) -> str:
        choices = ["0", "-1", "n - 1", "k % n"]
        for name in self.loops:
            choices += [name, name, f"{name} - 1", f"n - 1 - {name}"]
        if not of_view:  # a view by an index that is a tensor is a copy, in eager mode
            choices += ["index[0]", *[f"index[{name}]" for name in self.loops]]
            choices += [f"(int({name}[{self.draw.choice(choices)}] > 0) % n)" for name in "ab"]
        return self.draw.choice(choices)

    def number(self, depth: int = 0) -> str:
        pick = self.draw.randint(0, 11 if depth < 3 else 5)
        if pick <= 1:
            return self.draw.choice(["s", "t"])
        if pick == 2:
            return f"{self.draw.uniform(-1, 1):.2f}"
        if pick == 3:
            return f"{self.draw.choice('xyab')}[{self.index()}]"
        if pick == 4:
            return f"{self.draw.choice('mg')}[{self.index()}, {self.index()}]"
        if pick == 5:
            return self.draw.choice(["k", "n", *self.loops, f"{self.draw.choice('xyab')}[{self.index()}]"])
        one, other = self.number(depth + 1), self.number(depth + 1)
        if pick <= 8:
            return f"({one} {self.draw.choice('+-*')} {other})"
        if pick == 9:
            return f"np.{self.draw.choice(['sin', 'tanh', 'cos'])}({one})"
        if pick == 10:
            return f"({one} / (1.5 + np.square({other})))"
        if self.draw.random() < 0.5:  # a small integer among the operands, which is sometimes 0
            return f"((k % 3) * {one} {self.draw.choice(['and', 'or'])} {other})"
        return f"({one} if {self.condition(depth + 1)} else {other})"

    def condition(self, depth: int = 0) -> str:
        comparison = f"{self.number(2)} {self.draw.choice('<>')} {self.number(2)}"
        choices = [comparison, "k % 2 == 0", f"k < {self.draw.randint(1, 5)}"]
        if self.loops:
            choices += [f"{self.loops[-1]} > 1", f"{self.loops[-1]} % 2 == 0 and s < 2.0"]
        return self.draw.choice(choices)

    def vector(self, depth: int = 0) -> str:
        pick = self.draw.randint(0, 6)
        if pick <= 1 or depth > 2:
            return self.draw.choice(["x", "y", "a", "b", f"m[{self.index()}]", f"g[:, {self.index()}]"])
        if pick == 2:
            return f"({self.vector(depth + 1)} {self.draw.choice('+-*')} {self.vector(depth + 1)})"
        if pick == 3:
            return f"np.tanh({self.vector(depth + 1)})"
        if pick == 4:
            return f"({self.number(2)} * {self.vector(depth + 1)})"
        if pick == 5:
            return f"{self.draw.choice('xyab')}[index]"
        return f"{self.draw.choice('xyab')}[::-1]"

    def statement(self, indent: int) -> None:
        kinds = [self.assignment, self.assignment, self.element, self.element, self.counter, self.jump, self.state]
        if self.depth < 3:
            kinds += [self.branch, self.loop]
        if self.whole:
            kinds += [self.slices, self.part, self.function, self.shape]
        if self.objects:
            kinds += [self.list, self.list, self.object]
        self.draw.choice(kinds)(indent)

    def assignment(self, indent: int) -> None:
        self.add(indent, f"{self.draw.choice('st')} {self.draw.choice(['=', '=', '+=', '-='])} {self.squashed()}")

    def element(self, indent: int) -> None:
        sign = self.draw.choice(["=", "=", "+=", "-=", "*="])
        places = [f"{self.draw.choice('ab')}[{self.index()}]", f"g[{self.index()}, {self.index()}]"]
        self.add(indent, f"{self.draw.choice(places)} {sign} {self.squashed()}")

    def counter(self, indent: int) -> None:
        self.add(indent, f"k = k + {self.draw.choice([1, 2])}" if self.draw.random() < 0.7 else "k = n - 1 - k % n")

    def state(self, indent: int) -> None:
        """Draw statements on arrays of integers, tuples, and functions that write to their arguments."""
        self.add(indent, self.draw.choice([
            f"p[{self.index(True)}] = (p[{self.index(True)}] + {self.draw.choice([1, 2])}) % n",
            f"p[p[{self.index(True)}]] = (p[{self.index(True)}] + 1) % n",
            f"{self.draw.choice('ab')}[p[{self.index(True)}]] {self.draw.choice(['=', '+=', '*='])} {self.squashed()}",
            "s, t = 0.5 * t, s", f"k, s = k + 1, {self.squashed()}",
            f"s = mixed({self.number(2)}, {self.number(2)}, {self.draw.choice('ab')})",
            f"t = mixed(s, {self.number(2)}, g[{self.index(True)}], scale={self.draw.choice(['0.25', 't'])})",
            f"s = max(s, {self.number(2)}) - min(t, 0.5)",
            "pair = (pair[1], np.tanh(pair[0] * pair[1] + s))", f"pair = ({self.squashed()}, pair[0])",
            "s = 0.5 * pair[0] - 0.3 * pair[1]", "s = 0.9 * s if mode == 'first' else 0.3 * t",
            f"last = {self.squashed()}", "last = None", "s = 0.5 * s if last is None else 0.3 * last + 0.1 * t",
            f"a[{self.index(True)}], b[{self.index(True)}] = b[{self.index(True)}], a[{self.index(True)}]",
        ]))

    def list(self, indent: int) -> None:
        """Draw statements on lists of unknown length."""
        lines = self.draw.choice([
            [f"items.append({self.squashed()})"], [f"items.append({self.squashed()})"],
            ["if len(items) > 1:", "    s = items.pop() * 0.5"],
            [f"s = items[{self.draw.choice(['-1', '0', 'k % len(items)', '-1 - k % len(items)'])}]"],
            [f"items[k % len(items)] {self.draw.choice(['=', '+=', '*='])} {self.squashed()}"],
            ["s = 0.2 * sum(items)"], ["t = 0.5 * max(items)"], ["s = 0.1 * sum(v * t for v in items)"],
            [f"q = [v * s for v in {self.draw.choice('abxy')} if v > 0.1]", "t = 0.1 * sum(q)"],
            [f"rows.append({self.draw.choice(['a * s', 'b.copy()', 'np.tanh(a)'])})"],
            ["b += 0.1 * np.array(rows).sum(axis=0)"], ["s = 0.1 * np.array(items).sum() + rows[-1][0]"],
            ["for u, v in zip(items, a):", "    s += 0.1 * u * v"],
        ])
        for line in lines:
            self.add(indent, line)

    def object(self, indent: int) -> None:
        """Draw statements on dicts, objects and nested functions, and loops with an else."""
        lines = self.draw.choice([
            [f"table['u'] {self.draw.choice(['=', '+=', '-='])} {self.squashed()}"],
            ["table['k'] += 1", "s = table['v'] * table['k']"],
            [f"table['v'] = {self.squashed()}"], [f"note({self.squashed()})"], [f"t = o.step({self.squashed()})"],
            [f"o.v = {self.squashed()}"], [f"s = o.v * {self.number(2)}"],
            ["for q in range(n):", f"    if x[q] > {self.number(2)}:", "        s = 0.5 * x[q]", "        break",
             "else:", f"    t = {self.squashed()}"],
            [f"s, t = (t, s) if {self.condition()} else (s, 0.5 * t)"], ["s = a[0] + 0.5 * o.step(s)"],
            ["match k % 3:", "    case 0:", f"        s = {self.squashed()}", "    case 1 | 2:", "        t = 0.9 * t"],
        ])
        for line in lines:
            self.add(indent, line)

    def shape(self, indent: int) -> None:
        """Draw views of other shapes, products, and choices by value."""
        name = f"v{next(self.names)}"
        lines = self.draw.choice([
            [f"{name} = g.T", f"{name}[{self.index(True)}] = np.tanh({self.vector()})"],
            [f"{name} = g.reshape(n * n)", f"{name}[{self.index(True)}] *= {self.squashed()}"],
            [f"{name} = m @ np.tanh(b)", f"a += 0.1 * {name}"],
            [f"{name} = np.where({self.vector(2)} > 0.2, {self.vector(2)}, 0.5)", f"b = np.clip({name}, -1, t)"],
            [f"{name} = np.maximum({self.vector(2)}, {self.vector(2)})", f"s = np.sum({name} * y) * 0.1"],
            [f"{name} = g.sum(axis={self.draw.choice([0, 1])})", f"a[:] = 0.1 * {name}"],
            ["for q, (c, d) in enumerate(zip(x, b)):", "    s += 0.1 * c * np.sin(d) * q"],
            [f"g[1:, :-1] += 0.1 * g[:-1, 1:] * {self.squashed()}"],
            [f"{name} = a[:, None] * b", f"g += 0.1 * np.tanh({name})"],
        ])
        for line in lines:
            self.add(indent, line)

    def jump(self, indent: int) -> None:
        jumps = [f"return {self.squashed()}", *(["break", "continue"] * 2 if self.loops else [])]
        if self.draw.random() < 0.1:
            jumps = ["raise ValueError('drawn')", f"assert {self.condition()}"]
        self.add(indent, f"if {self.condition()}:")
        self.add(indent + 1, self.draw.choice(jumps))

    def slices(self, indent: int) -> None:
        place = self.draw.choice(["a", "b", "a[1:]", "b[:-1]", "a[::2]", "g[0]", "g[:, 0]", "a[::-1]", "b[index]"])
        whole = place in ("a", "b", "g[0]", "g[:, 0]", "a[::-1]", "b[index]")
        value = f"np.tanh({self.vector()})" if whole and self.draw.random() < 0.7 else self.squashed()
        sign = self.draw.choice(["+=", "*=", "-="] if place in ("a", "b") else ["=", "+=", "*="])
        self.add(indent, f"{place} {sign} {value}")

    def part(self, indent: int) -> None:
        name = f"v{next(self.names)}"
        self.add(indent, f"{name} = g[{self.index(of_view=True)}]")
        self.add(indent, f"{name}[{self.index()}] = {self.squashed()}")
        self.add(indent, f"w{name} = {name}[1:]")
        self.add(indent, f"w{name} *= 0.5")

    def function(self, indent: int) -> None:
        self.add(indent, self.draw.choice([
            "s = (a * b).sum()", "t = np.max(b)", "s = np.dot(a, y) * 0.3", "a[1:] = a[:-1]",
            "b[:-1] += 0.5 * b[1:]", "a = np.sin(b)", "b[b > 0.5] = t * 0.1", "s = (m @ a).sum() * 0.1",
            "a, b = np.tanh(b), a", "b = b + a * s", "s = np.where(a > b, a, b * t).mean()",
        ]))

    def squashed(self) -> str:
        return f"np.tanh({self.number()})" if self.draw.random() < 0.4 else f"0.5 * {self.number(1)}"

    def branch(self, indent: int) -> None:
        if self.loops and self.draw.random() < 0.5:  # a number that is assigned in one branch and read after it
            held, used = f"h{next(self.names)}", f"h{next(self.names)}"
            self.add(indent, f"if {self.draw.choice(['n0 >= 0', self.condition()])}:")
            self.add(indent + 1, f"{held} = 0.5 * x[{self.index()}]")
            self.add(indent, f"{used} = y[{self.index()}] - {held}")
            self.add(indent, f"t = 0.3 * t + 0.2 * {used} * {used}")
            return
        self.add(indent, f"if {self.condition()}:")
        self.depth += 1
        self.block(indent + 1, self.draw.randint(1, 2))
        if self.draw.random() < 0.5:
            self.add(indent, "else:")
            self.block(indent + 1, self.draw.randint(1, 2))
        self.depth -= 1

    def loop(self, indent: int) -> None:
        self.depth += 1
        if self.draw.random() < 0.2 and not self.loops:
            name = f"c{next(self.names)}"
            self.add(indent, f"{name} = 0")
            self.add(indent, f"while {name} < n0 and {self.condition()}:")
            self.add(indent + 1, f"{name} += 1")
            self.loops.append(f"({name} - 1)")
            self.block(indent + 1, self.draw.randint(1, 3))
            self.loops.pop()
        else:
            name = "ijl"[len(self.loops)] if len(self.loops) < 3 else "q"
            bounds = self.draw.choice(["n", "1, n", "n - 1, -1, -1", "n - 1, 0, -1", "0, n, 2",
                                       f"{self.loops[-1]}, n" if self.loops else "n"])
            self.add(indent, f"for {name} in range({bounds}):")
            self.loops.append(name)
            self.block(indent + 1, self.draw.randint(1, 3))
            self.loops.pop()
        self.depth -= 1

    def block(self, indent: int, count: int) -> None:
        for _ in range(count):
            self.statement(indent)


def drawn(seed: int, whole: bool, objects: bool = False):
    """Return a drawn program and its source."""
    text = Writer(seed, whole, objects).text()
    name = f"<drawn source {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"np": np, "State": State, "__name__": "drawn"}
    exec(compile(text, name, "exec"), space)
    return space["program"], text


def arguments(seed: int, n: int):
    """Return arguments of drawn programs, for a length."""
    rng = onp.random.default_rng(seed)
    floats = [rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, n))]
    return [*floats, rng.integers(0, n, n), int(rng.integers(1, 6))]


def outcome(function, given):
    """Return the value and the gradients of a program, or the error that it raises."""
    leaves = [vg.Tensor(each, requires_grad=True) for each in given[:3]]
    try:
        with onp.errstate(all="ignore"):
            value = function(*leaves, *given[3:])
            if not isinstance(value, vg.Tensor) or not value.requires_grad:
                return float(value), [onp.zeros(each.shape) for each in leaves]
            gradients = vg.autograd.grad(value, leaves, allow_unused=True)
    except (ArithmeticError, AssertionError, IndexError, UnboundLocalError, ValueError) as error:
        return type(error).__name__, []
    return float(value.detach()), [onp.zeros(l.shape) if g is None else g.numpy() for g, l in zip(gradients, leaves)]


def differences(program, compiled, seed, lengths):
    """Describe how a compiled program differs from a program; nothing if it agrees for all lengths."""
    for n in lengths:
        given = arguments(seed + n, n)
        expected = outcome(program, given)
        if isinstance(expected[0], float) and not abs(expected[0]) < 1e100:  # gradients come from the function then
            continue
        found = outcome(compiled, given)
        if isinstance(expected[0], str) or isinstance(found[0], str):
            if expected[0] != found[0]:
                return f"{found[0]} for {expected[0]}, length {n}"
        elif not onp.isclose(found[0], expected[0], rtol=1e-9, atol=1e-9, equal_nan=True):
            return f"value {found[0]} for {expected[0]}, length {n}"
        for one, other in zip(found[1], expected[1]):
            if not onp.allclose(one, other, rtol=1e-6, atol=1e-8, equal_nan=True):
                return f"gradient {one} for {other}, length {n}"
    return ""
