"""Many drawn operations in one process: no wrong gradient, and no memory kept.

Each program is a list of lines that are run twice, on tensors and on `DualArray`s, which compute values and a
directional derivative side by side. A longer soak than the suite's:

    pytest tests/test_soak.py --soak 1000000 -s

A program that fails is shortened as far as possible, and printed with its leaves.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import random
import time
import tracemalloc
import types

import numpy as np
import pytest
from dual_numbers import DualArray

import viewgrad as vg
from viewgrad.views.copy_slices import CopySlicesOfCopy
from viewgrad.views.unbroadcast import match_spec

LENGTH = 60  # lines in a program
MOST = 100  # elements of arrays that are multiplied as matrices
LARGE = 8.0  # larger values are scaled down by the next line


class Wrong(AssertionError):
    """Raised if a value or a gradient differs from that of the reference."""


# -- a function of one's own that writes in place ----------------------------------------------------------------------


class Bend(vg.autograd.Function):
    """x -> x / (1 + x**2) / 2, in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        x /= 1 + x * x
        x *= 0.5
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        square = x * x
        return grad * (1 - square) / ((1 + square) * (1 + square)) * 0.5


class BendDual:
    """The same for the reference."""

    @staticmethod
    def apply(x):
        return np.multiply(np.true_divide(x, 1 + x * x, out=x), 0.5, out=x)


@contextlib.contextmanager
def frozen():
    before = DualArray.frozen
    DualArray.frozen = True
    try:
        yield
    finally:
        DualArray.frozen = before


REFERENCE = types.SimpleNamespace(no_grad=frozen, from_numpy=DualArray)


# -- drawing a program -------------------------------------------------------------------------------------------------


class Writer:
    """Writes a program line by line, running the reference along with it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.leaves, self.directions, self.outside = drawn_leaves(seed)
        self.names = reference_names(self.leaves, self.directions, self.outside)
        self.readable: list[str] = []  # views of leaves, and views that overlap themselves
        self.writable: list[str] = []
        self.lines: list[str] = []
        self.count = 0

    def program(self) -> list[str]:
        for leaf in self.leaves:
            self.readable.append(leaf)
            self.new(f"{leaf}.clone()", True, view=True)
        if self.outside is not None:
            self.new("vg.from_numpy(o0)", True)
        kinds = [getattr(self, name) for name in dir(self) if name.startswith("draw_")]
        weights = [WEIGHTS.get(kind.__name__, 2) for kind in kinds]
        while len(self.lines) < LENGTH:
            self.random.choices(kinds, weights)[0]()
            while len(self.writable) > 9:
                self.draw_del()
        return self.lines

    # -- what lines are made of

    def do(self, line: str) -> None:
        exec(line, self.names)
        self.lines.append(line)

    def new(self, expression: str, writable: bool, view: bool = False) -> None:
        """Draw a line that creates a tensor, or a scalar, which is not written to unless it is a view."""
        name = f"t{self.count}"
        self.count += 1
        self.do(f"{name} = {expression}")
        writable = writable and (view or self.names[name].ndim > 0)
        (self.writable if writable else self.readable).append(name)
        if writable:
            self.tame(name)

    def write(self, line: str, name: str) -> None:
        """Run a line that writes to a tensor."""
        self.do(line)
        self.tame(name)

    def tame(self, name: str) -> None:
        value = self.names[name].value
        while value.size and np.abs(value).max() > LARGE:
            self.do(f"{name} *= 0.1")

    def any(self) -> str:
        return self.random.choice(self.readable + self.writable * 2)

    def target(self) -> str:
        return self.random.choice(self.writable)

    def operand(self, shape: tuple[int, ...], complex_too: bool) -> str:
        """Return a name, or a number, that can be broadcast to a shape."""
        for _ in range(4):
            name = self.any()
            value = self.names[name]
            if value.dtype.kind == "c" and not complex_too:
                continue
            if is_broadcastable(value.shape, shape):
                return name
        return self.random.choice(["0.7", "-1.2", "0.25"])

    def basic(self, shape: tuple[int, ...]) -> str:
        """Return a basic index of a tensor of a shape, as source."""
        items = []
        for extent in shape:
            kind = self.random.randrange(8)
            if kind == 0 and extent:
                items.append(str(self.random.randrange(-extent, extent)))
            elif kind == 1:
                items.append("::-1")
            elif kind == 2:
                items.append("1:")
            elif kind == 3:
                items.append("::2")
            elif kind == 4:
                items.append(":-1")
            elif kind == 5 and len(shape) < 3:
                items += ["None", ":"]
            else:
                items.append(":")
        if self.random.randrange(4) == 0:
            while items and items[-1] == ":":
                items.pop()
            items.append("...")
        return ", ".join(items) or "..."

    def advanced(self, shape: tuple[int, ...]) -> str | None:
        """Return the source of an index by arrays, or None."""
        if not shape or 0 in shape:
            return None
        if self.random.randrange(3) == 0:
            axes = self.random.randrange(1, len(shape) + 1)
            size = int(np.prod(shape[:axes]))
            bits = [self.random.random() < 0.5 for _ in range(size)]
            return f"np.reshape({bits}, {shape[:axes]})".replace("True", "1 > 0").replace("False", "1 < 0")
        numbers = [self.random.randrange(-shape[0], shape[0]) for _ in range(self.random.randrange(1, 5))]
        if len(shape) > 1 and self.random.randrange(2):
            others = [self.random.randrange(shape[1]) for _ in numbers]
            return f"{numbers}, {others}" if self.random.randrange(2) else f"{numbers}, slice(1, None)"
        return f"{numbers}"

    # -- kinds of lines

    def draw_view(self) -> None:
        name = self.any()
        index = self.basic(self.names[name].shape)
        self.new(f"{name}[{index}]", name in self.writable, view="..." in index)

    def draw_other_view(self) -> None:
        name = self.any()
        value = self.names[name]
        writable = name in self.writable
        ndim = value.ndim
        choice = self.random.randrange(7)
        if choice == 6 and ndim:
            self.new(f"np.flip({name})", writable, view=True)
        elif choice == 0:
            self.new(f"{name}.T", writable, view=True)
        elif choice == 1 and value.value.flags.c_contiguous:
            shape = self.random.choice([(-1,), (*value.shape, 1), (1, *value.shape), value.shape[::-1]])
            if value.size or -1 not in shape:
                self.new(f"{name}.reshape({shape})", writable, view=True)
        elif choice == 2 and ndim >= 2:
            self.new(f"{name}.diagonal({self.random.choice([0, 1, -1])})", writable)
        elif choice == 3 and value.dtype.kind == "c":
            self.new(f"{name}.{self.random.choice(['real', 'imag'])}", writable, view=True)
        elif choice == 4 and ndim < 3:
            self.new(f"{name}.broadcast_to({(2, *value.shape)})", False)
        elif choice == 5 and ndim and value.shape[0]:
            pieces = [f"t{self.count + i}" for i in range(value.shape[0])]
            self.do(f"{', '.join(pieces)}, = {name}.unbind(0)")
            (self.writable if writable else self.readable).extend(pieces)
            self.count += len(pieces)

    def draw_unary(self) -> None:
        self.new(f"np.{self.random.choice(UNARY)}({self.any()})", True)

    def draw_binary(self) -> None:
        name = self.any()
        value = self.names[name]
        other = self.operand(value.shape, value.dtype.kind == "c")
        function = self.random.choice(["add", "subtract", "multiply", "divide", "maximum", "minimum", "where"])
        if function == "divide":
            self.new(f"{name} / (np.abs({other}) + 1.0)", True)
        elif function == "where":
            self.new(f"np.where(np.arange({value.size}).reshape({value.shape}) % 3 > 0, {name}, {other})", True)
        elif not (function in ("maximum", "minimum") and value.dtype.kind == "c"):
            arguments = [name, other]
            self.random.shuffle(arguments)
            self.new(f"np.{function}({', '.join(arguments)})", True)

    def draw_reduction(self) -> None:
        name = self.any()
        value = self.names[name]
        if value.size:
            axis = self.random.choice([None, *range(-value.ndim, value.ndim)])
            function = self.random.choice(["sum", "mean", "cumsum", "roll"])
            keepdims = ", keepdims=True" if function in ("sum", "mean") and self.random.randrange(2) else ""
            shift = ", 1" if function == "roll" else ""
            self.new(f"np.{function}({name}{shift}, axis={axis}{keepdims})", True)

    def draw_joined(self) -> None:
        name = self.any()
        value = self.names[name]
        others = [other for other in self.readable + self.writable if self.names[other].shape == value.shape]
        parts = [name, *(self.random.choice(others) for _ in range(self.random.randrange(1, 3)))]
        if value.ndim and value.size < 40 and self.random.randrange(2):
            self.new(f"np.concatenate([{', '.join(parts)}], axis={self.random.randrange(value.ndim)})", True)
        elif value.ndim < 3 and value.size < 40:
            self.new(f"np.stack([{', '.join(parts)}], axis={self.random.randrange(value.ndim + 1)})", True)

    def draw_matmul(self) -> None:
        name, other = self.any(), self.any()
        a, b = self.names[name], self.names[other]
        if max(a.size, b.size) > MOST:
            return
        if a.ndim in (1, 2) and b.ndim in (1, 2) and a.shape[-1] == b.shape[0]:
            self.new(f"{name} @ {other}", True)
        elif a.ndim == 2:
            self.new(f"{name} @ {name}.T", True)

    def draw_gather(self) -> None:
        name = self.any()
        index = self.advanced(self.names[name].shape)
        if index is not None:
            self.new(f"{name}[{index}]", True)

    def draw_alias(self) -> None:
        name = self.any()
        if name in self.writable:
            self.new(f"{name}.{self.random.choice(['detach', 'clone'])}()", True, view=True)

    def in_place(self) -> tuple[str, str]:
        """Draw a line that writes in place, and the name that it writes to."""
        name = self.target()
        value = self.names[name]
        kind = self.random.randrange(9)
        other = self.operand(value.shape, value.dtype.kind == "c")
        if kind == 0:
            line = f"{name}.{self.random.choice(UNARY_IN_PLACE)}_()"
        elif kind in (1, 2, 3):
            operator = self.random.choice(["+=", "-=", "*=", "/="])
            line = f"{name} {operator} " + (f"np.abs({other}) + 1.0" if operator == "/=" else other)
        elif kind == 4:
            line = f"{name}.copy_({other})"
        elif kind == 5:
            line = f"{name}.zero_()"
        else:
            index = self.basic(value.shape)
            window = eval(f"name[{index}]", {"name": value})
            other = self.operand(window.shape, value.dtype.kind == "c")
            operator = self.random.choice(["=", "+=", "*=", "-="])
            line = f"{name}[{index}] {operator} {other}"
        return line, name

    def draw_in_place(self) -> None:
        line, name = self.in_place()
        self.write(line, name)

    def draw_no_grad(self) -> None:
        line, name = self.in_place()
        self.write(f"with vg.no_grad(): {line}", name)

    def draw_out(self) -> None:
        out, first = self.target(), self.any()
        value = self.names[out]
        taken = self.names[first]
        if is_broadcastable(taken.shape, value.shape) and (taken.dtype.kind != "c" or value.dtype.kind == "c"):
            arguments = [first, self.operand(value.shape, value.dtype.kind == "c")]
            self.random.shuffle(arguments)
            where = f", where=np.arange({value.size}).reshape({value.shape}) % 2 > 0" * self.random.randrange(2)
            function = self.random.choice(["add", "multiply", "subtract"])
            self.write(f"np.{function}({', '.join(arguments)}, out={out}{where})", out)

    def draw_scatter(self) -> None:
        name = self.target()
        value = self.names[name]
        index = self.advanced(value.shape)
        if index is not None:
            window = eval(f"name[{index}]", {"name": value, "np": np})
            other = self.operand(window.shape, value.dtype.kind == "c")
            operator = self.random.choice(["=", "=", "+=", "*=", "accumulate"])
            if operator == "accumulate":
                self.write(f"{name}.index_accumulate_(({index},), {other})", name)
            else:
                self.write(f"{name}[{index}] {operator} {other}", name)

    def draw_function(self) -> None:
        name = self.target()
        if self.names[name].dtype.kind == "f":
            self.do(f"Bend.apply({name})")

    def draw_outside(self) -> None:
        if self.outside is not None:
            self.do("o0[...] = o0[::-1] * 0.9")

    def draw_check(self) -> None:
        self.do(self.random.choice(["check()", "check()", "check(create_graph=True)"]))

    def draw_del(self) -> None:
        names = self.random.choice([self.writable, self.writable, self.readable])
        made = [name for name in names if name[0] == "t"]
        if len(made) > 2:
            name = self.random.choice(made)
            names.remove(name)
            self.do(f"del {name}")


UNARY = ["sin", "cos", "tanh", "arctan", "square", "negative", "positive", "abs", "conjugate"]
UNARY_IN_PLACE = ["sin", "cos", "tanh", "arctan", "square", "neg", "abs", "conj"]
WEIGHTS = {"draw_view": 5, "draw_in_place": 9, "draw_scatter": 3, "draw_binary": 4, "draw_check": 1, "draw_del": 1}


def is_broadcastable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to)))


def drawn_leaves(seed: int):
    """Draw the leaves of a program and their directions, and an external array or None."""
    rng = np.random.default_rng(seed)
    leaves = {}
    for i in range(int(rng.integers(1, 4))):
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        dtype = DTYPES[int(rng.integers(len(DTYPES)))]
        leaves[f"x{i}"] = drawn(rng, shape, dtype)
    directions = {name: drawn(rng, leaf.shape, leaf.dtype) for name, leaf in leaves.items()}
    return leaves, directions, rng.normal(size=4) if rng.integers(4) == 0 else None


SHAPES = [(3, 4), (3, 4), (4,), (2, 3), (), (3, 1), (0, 2), (2, 2, 3), (5,)]
DTYPES = [float, float, float, float, complex, complex, np.float32]


def drawn(rng, shape, dtype):
    array = rng.normal(size=shape)
    return np.asarray(array + 1j * rng.normal(size=shape) if dtype is complex else array, dtype)


# -- running it --------------------------------------------------------------------------------------------------------


def reference_names(leaves, directions, outside):
    names = {name: DualArray(leaf.copy(), directions[name].copy()) for name, leaf in leaves.items()}
    return names | {
        "np": np,
        "vg": REFERENCE,
        "Bend": BendDual,
        "check": lambda **_: None,
        "o0": None if outside is None else outside.copy(),
    }


def run(seed: int, lines: list[str]) -> int:
    """Run a program with tensors and with the reference, and compare.

    Returns:
        The number of gradients compared.

    Raises:
        Wrong: if anything differs.
    """
    leaves, directions, outside = drawn_leaves(seed)
    theirs = reference_names(leaves, directions, outside)
    ours = {name: vg.Tensor(leaf, requires_grad=True) for name, leaf in leaves.items()}
    ours |= {"np": np, "vg": vg, "Bend": Bend, "o0": None if outside is None else outside.copy()}
    tolerance = 1e-9 if all(leaf.dtype != np.float32 for leaf in leaves.values()) else 2e-3
    compared = 0

    def check(**options) -> None:
        nonlocal compared
        compare(ours, theirs, directions, tolerance, options or {"retain_graph": True})
        compared += 1

    ours["check"] = check
    try:
        for line in lines:
            code = compile(line, "<soak>", "exec")
            exec(code, theirs)
            exec(code, ours)
        del ours["check"]  # it refers to `ours`
        compare(ours, theirs, directions, tolerance, {})
    finally:
        ours.pop("check", None)
    return compared + 1


def compare(ours, theirs, directions, tolerance: float, options) -> None:
    loss = expected = 0.0
    scale = 1.0
    weight = 1.0
    for name, tensor in ours.items():
        if name[0] != "t":
            continue
        reference = theirs[name]
        value = tensor.detach().numpy()
        if value.shape != reference.shape or value.dtype != reference.dtype:
            raise Wrong(f"{name} is of {value.dtype} {value.shape}, not of {reference.dtype} {reference.shape}")
        if not np.allclose(value, reference.value, rtol=tolerance, atol=tolerance):
            raise Wrong(f"{name} is {value}, not {reference.value}")
        weight = 1.9 - 0.7 * weight
        if not tensor.requires_grad:
            if reference.change.any():
                raise Wrong(f"{name} does not require grad, but changes by {reference.change}")
            continue
        weights = np.cos(np.arange(value.size).reshape(value.shape) + weight)
        term = (tensor * weights).sum()
        loss = loss + (term.real if tensor.is_complex() else term)
        changes = (reference.change * weights).real
        expected += changes.sum(dtype=float)
        scale += np.abs(changes).sum(dtype=float)
    if not isinstance(loss, vg.Tensor):
        return
    tensors = [ours[name] for name in directions]
    grads = vg.autograd.grad(loss, tensors, allow_unused=True, **options)
    found = 0.0
    for grad, tensor, direction in zip(grads, tensors, directions.values()):
        if grad is not None:
            if grad.shape != tensor.shape or grad.dtype != tensor.dtype:
                raise Wrong(f"a gradient is of {grad.dtype} {grad.shape} for {tensor.dtype} {tensor.shape}")
            changes = (grad.detach().numpy().conj() * direction).real
            found += changes.sum(dtype=float)
            scale += np.abs(changes).sum(dtype=float)
    if np.isnan(found) and np.isnan(expected):  # beyond the largest number
        return
    if not abs(found - expected) <= tolerance * scale:
        raise Wrong(f"the directional derivative is {found}, not {expected} (options {options})")


# -- making what fails short -------------------------------------------------------------------------------------------


def fails(seed: int, lines: list[str]) -> BaseException | None:
    try:
        run(seed, lines)
    except (NameError, UnboundLocalError):
        return None
    except Exception as error:
        return error
    return None


def shortened(seed: int, lines: list[str], error: BaseException) -> tuple[list[str], BaseException]:
    """Return the lines without those that are not needed for an error of the same type."""
    count = len(lines)
    while count:
        start = len(lines)
        while start > 0:
            start = max(0, start - count)
            fewer = lines[:start] + lines[start + count :]
            found = fails(seed, fewer)
            if type(found) is type(error):
                lines, error = fewer, found
        count //= 2
    return lines, error


def report(seed: int, lines: list[str], error: BaseException) -> str:
    lines, error = shortened(seed, lines, error)
    leaves, directions, outside = drawn_leaves(seed)
    text = [f"program {seed}: {type(error).__name__}: {error}", "import numpy as np, viewgrad as vg"]
    for name, leaf in leaves.items():
        text.append(f"{name} = vg.Tensor(np.array({leaf.tolist()}, np.{leaf.dtype}), requires_grad=True)")
    if outside is not None:
        text.append(f"o0 = np.array({outside.tolist()})")
    return "\n".join([*text, *lines, *(f"# direction of {name}: {d.tolist()}" for name, d in directions.items())])


# -- the soak ----------------------------------------------------------------------------------------------------------


def soak(operations: int, first: int = 0) -> tuple[int, int, int]:
    """Draw and check programs until they have the given number of operations.

    Returns:
        The numbers of operations, of programs, and of gradients compared.
    """
    done = programs = gradients = 0
    while done < operations:
        seed = first + programs
        lines = Writer(seed).program()
        try:
            gradients += run(seed, lines)
        except Exception as error:
            pytest.fail(report(seed, lines, error), pytrace=False)
        done += len(lines)
        programs += 1
    return done, programs, gradients


def resident() -> int:
    """Return the bytes of memory of the process; 0 if unknown."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def test_soak(request):
    operations = request.config.getoption("--soak")
    gc.collect()
    gc.disable()  # reference counting alone must free the objects
    try:
        soak(max(2_000, operations // 20))
        grown = []
        while len(grown) < 3 and min(grown, default=math.inf) >= 100_000:  # caches may still be filled
            tracemalloc.start()
            soak(1_000)
            before, _ = tracemalloc.get_traced_memory()
            soak(max(2_000, operations // 50))
            grown.append(tracemalloc.get_traced_memory()[0] - before)
            tracemalloc.stop()
        began, before = time.perf_counter(), resident()
        done, programs, gradients = soak(operations, first=10**6)
        seconds, growth = time.perf_counter() - began, resident() - before
    finally:
        gc.enable()
    print(
        f"\n{done} operations in {programs} programs, {gradients} gradients compared, in {seconds:.0f} s; "
        f"memory grew by {growth / 1e6:.2f} MB (what Python allocates, in a part of it: by {min(grown) / 1e3:.1f} kB)"
    )
    assert min(grown) < 100_000
    assert growth < 16e6


def test_a_soak_finds_a_wrong_gradient_and_shortens_the_program(monkeypatch):
    def keeps_what_was_overwritten(node, grad, edges):
        window = grad[node.index]
        return grad, None if edges[1] is None else match_spec(window.copy(), node.like)

    monkeypatch.setattr(CopySlicesOfCopy, "apply", keeps_what_was_overwritten)
    monkeypatch.setattr(CopySlicesOfCopy, "consume", keeps_what_was_overwritten)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)Wrong: the directional derivative is .*] = ") as failure:
        soak(10_000)
    lines = failure.value.msg.splitlines()
    assert sum(line.startswith("t") for line in lines) <= 4
