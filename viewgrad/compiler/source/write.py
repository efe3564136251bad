"""Programs as Python source: kernels over numbers and elements, and host code over arrays around them.

The source reads as the user's, with the same names; the adjoint of `x` is `x_bar`. Each statement that stands for a
line of the user's has that line as a comment.
"""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...operators.define import OPERATORS
from .formulas import ROW_OF_CLIP, ArrayText, array_formula, scalar_forward, scalar_gradient
from .ir import (
    NEW,
    Add,
    Block,
    Call,
    Check,
    Const,
    Dim,
    For,
    Get,
    If,
    Lazy,
    Let,
    LetMany,
    Op,
    Pop,
    Pull,
    PullCall,
    Push,
    Segmented,
    SegmentedBack,
    Set,
    Slice,
    Var,
    While,
    assigned,
    blocks_of,
    expressions_of,
    nodes,
    statements,
)
from .kinds import DTYPES, Arr, Num, is_complex
from .liveness import is_read_first, read_before_bound, reads_of
from .segment_text import backwards_text, segments_text
from .unordered import is_unordered, root_of

INFIX: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "floor_divide": "//", "remainder": "%",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
SELECTING: Final = frozenset({"where", "positive", "nonzero", "finite", "as_float", "as_integer"})
PREFIX: Final = {"neg": "-", "positive": "+", "invert": "~"}
NUMPY: Final = {"conj": "conjugate"}
DUMMIES: Final = {"?": "False", "l": "0", "D": "0j"}


@attrs.define(eq=False)
class Kernel:
    """A region of a program that computes with numbers and elements of arrays.

    Attributes:
        name: of its function.
        parameters: the variables that it reads.
        results: those that it gives back.
        pushes, pops: whether it writes to the tape, or reads from it.
        source: its text.
        calls: the names of the functions that it calls.
        written: the arrays that it writes to.
    """

    name: str
    parameters: list[str]
    results: list[str]
    pushes: bool
    pops: bool
    source: str
    written: set[str]


@attrs.define(eq=False)
class Written:
    """The source of a program.

    Attributes:
        kernels: the kernels.
        host: the source of the code around them: the function `program`.
        uses_tape: whether kernels use the tape.
    """

    kernels: list[Kernel]
    host: str
    uses_tape: bool

    def source(self) -> str:
        """Return the source of the module."""
        return "\n\n".join([kernel.source for kernel in self.kernels] + [self.host])


class Writer:
    """Writes a program.

    Arguments:
        kinds: of each variable.
        file: of the user's function.
        native: whether kernels are for Numba, and not for Python over lists.
        wraps: whether indices that are not known to be in range may be negative.
        is_limited: whether there is a limit for the bytes on the tape.
        roots: of variables that share memory.
        cells: the variables that stand for elements in loops.
    """

    def __init__(
        self, kinds: dict[str, Any], file: str, native: bool, wraps: bool, is_limited: bool = False,
        roots: Mapping[str, str] | None = None, cells: Collection[str] = (),
    ) -> None:
        self.roots = roots or {}
        self.cells = cells
        self.kinds = kinds
        self.file = file
        self.native = native
        self.wraps = wraps
        self.is_limited = is_limited
        self.adjoints: set[str] = set()  # of numbers
        self.has_stacks = False  # whether numbers are kept in arrays that kernels write to
        self.kernels: list[Kernel] = []
        self.in_kernel = False
        self.ran_before = False  # whether indices were checked when the program ran forwards
        self.lines: list[str] = []
        self.noted = 0
        self.outside: set[str] = set()  # variables that are read when the program has run
        self.everything: list[Block] = []
        self.current: Block = []
        self.read_later: set[str] = set()  # variables that later blocks read before they bind them

    # -- the program ---------------------------------------------------------------------------------------------------

    def program(
        self, inputs: Sequence[str], forward: Block, results: Sequence[Any], backward: Block | None = None,
        active: Collection[str] = (), numbers: Sequence[str] = (), wanted: Sequence[str] = (),
        written: Sequence[str] = (),
    ) -> Written:
        """Return the source of a program.

        Arguments:
            inputs: its inputs.
            forward: the program.
            results: the variables that hold its results.
            backward: the program backwards.
            active: the variables that have an adjoint.
            numbers: the adjoints of numbers.
            wanted: the inputs whose gradients it gives.
            written: the inputs that it writes to.
        """
        self.outside = {f"{name}_bar" for name in wanted} | set(results) | set(written)
        self.everything = [forward] if backward is None else [forward, backward]
        self.adjoints = set(numbers)
        self.has_stacks = self.native and any(
            isinstance(stmt, Push) and isinstance(stmt.value.kind, Num) for stmt in statements(forward)
        )
        for stmt in forward:
            if isinstance(stmt, Segmented):
                self.outside |= {*stmt.state.numbers, *[name for name in (stmt.ran, stmt.stop) if name is not None]}
        forward_lines = self.top(forward)
        self.ran_before = not self.wraps
        backward_lines = [] if backward is None else self.top(backward)
        tape = self.has_stacks
        bound = {name for block in self.everything for stmt in statements(block) for name in assigned(stmt)}
        head = [f"def program({', '.join([*inputs, *(['floats', 'integers'] if tape else [])])}):"]
        if tape:
            head.append("    nf = ni = 0")
        counts = self.is_limited and any(
            isinstance(stmt, Push) and (not self.native or isinstance(stmt.value.kind, Arr))
            for stmt in statements(forward))
        head.append(f"    tape = {'Tape(tape_limit)' if counts else '[]'}")
        arrays = sorted(name for name in bound if isinstance(self.kinds.get(name), Arr) and not _is_first(name, forward)
                        and name in _bound_in(forward))
        if arrays:
            head.append(f"    {' = '.join(arrays)} = None")
        scalars = sorted(name for name in _first_in_loops(forward, self.kinds) if name not in inputs)
        head += [f"    {name} = {DUMMIES.get(self.kinds[name].dtype, '0.0')}" for name in scalars]
        give = ", ".join([*results, *written])
        give = f"({give},)" if give else "()"
        if backward is None:
            return Written(self.kernels, "\n".join([*head, *forward_lines, f"    return {give}, None"]) + "\n", tape)
        head += [f"    {name}_bar = np.zeros({name}.shape{', complex' if is_complex(self.kinds[name]) else ''})"
                 for name in inputs if name in (*wanted, *active) and isinstance(self.kinds[name], Arr)]
        seeds = [f"seed{number}" for number in range(len(results) + len(written))]
        inner = [f"    def pullback({', '.join(seeds)}):"]
        outer = sorted((bound & _bound_in(backward) & (_bound_in(forward) | set(arrays))) | (
            {"nf", "ni"} if tape else set()))
        counters = {stmt.name for block in self.everything for stmt in statements(block) if isinstance(stmt, For)}
        outer = [name for name in outer if name not in inputs and name not in counters]
        known = {*scalars, *arrays, "nf", "ni"}
        head += [f"    {name} = {DUMMIES.get(self.kinds[name].dtype, '0.0')}" for name in outer if name not in known
                 and isinstance(self.kinds[name], Num)]  # kernels may be all that binds them
        if outer:
            inner.append(f"        nonlocal {', '.join(outer)}")
        inner += [f"        {name} = 0.0" for name in numbers]
        for seed, name in zip(seeds, [*results, *written]):
            if name in active:
                place = f"{name}_bar" if isinstance(self.kinds[name], Num) else f"{name}_bar[...]"
                inner += [f"        if {seed} is not None:", f"            {place} += {seed}"]
        inner += ["    " + line for line in backward_lines]
        left = ["tape", *(["nf", "ni"] if tape else [])]  # an invariant that costs nothing to check
        inner += [f"        if {' or '.join(left)}:", "            raise GiveUp"]
        gradients = "".join([self.gradient(name) + ", " for name in wanted])
        inner.append(f"        return ({gradients.rstrip()})")
        tail = [f"    return {give}, pullback"]
        return Written(self.kernels, "\n".join([*head, *forward_lines, *inner, *tail]) + "\n", tape)

    def gradient(self, name: str) -> str:
        """Return the gradient of an input, in its precision."""
        kind = self.kinds[name]
        if kind.dtype != "f":
            return f"{name}_bar"
        return f"np.float32({name}_bar)" if isinstance(kind, Num) else f"{name}_bar.astype('float32')"

    def top(self, block: Block) -> list[str]:
        """Return the lines of a block outside of kernels."""
        self.lines = []
        self.noted = 0
        self.current = block
        later = self.everything[self.everything.index(block) + 1 :]
        self.read_later = {name for each in later for name in read_before_bound(each, set())}
        for stmt in self.regions(block):
            self.statement(stmt, "    ")
        return self.lines

    # -- regions -------------------------------------------------------------------------------------------------------

    def regions(self, block: Block) -> list[Any]:
        """Return the statements of a block, with a region in the place of those that a kernel can run."""
        found: list[Any] = []
        waiting: Block = []

        def close() -> None:
            nonlocal waiting
            last = max((n for n, stmt in enumerate(waiting) if isinstance(stmt, (For, While))), default=-1)
            first = next((n for n, stmt in enumerate(waiting) if isinstance(stmt, (For, While))), None)
            if first is None:
                found.extend(waiting)
            else:
                while first and self.is_load(waiting[first - 1]):
                    first -= 1
                found.extend(waiting[:first])
                found.append(_Region(waiting[first : last + 1]))
                found.extend(waiting[last + 1 :])
            waiting = []

        for stmt in block:
            if self.is_scalar(stmt):
                waiting.append(stmt)
            else:
                close()
                found.append(stmt)
        close()
        return found

    def is_load(self, stmt: Any) -> bool:
        """Return whether a statement loads variables that stand for elements in the loop after it."""
        names = [name for each in statements([stmt]) for name in assigned(each)]
        return bool(names) and all(name in self.cells for name in names)

    def is_scalar(self, stmt: Any) -> bool:
        """Return whether a statement computes with numbers and elements of arrays only."""
        for each in statements([stmt]):
            if isinstance(each, Let):
                if not isinstance(each.value.kind, Num) or each.value.kind.dtype not in DTYPES:
                    return False
                if isinstance(self.kinds.get(each.name), Arr) or self.kinds[each.name].dtype not in DTYPES:
                    return False
            elif isinstance(each, (LetMany, Add, PullCall, Segmented, SegmentedBack)):
                return False
            elif isinstance(each, Set):
                if not _is_element(each.index) or isinstance(each.value.kind, Arr):
                    return False
            elif isinstance(each, Pop):
                if isinstance(each.target.kind, Arr) or each.target.kind.dtype not in DTYPES:
                    return False
                if isinstance(each.target, Get) and not _is_element(each.target.index):
                    return False
            elif isinstance(each, Push) and (isinstance(each.value.kind, Arr) or each.value.kind.dtype not in DTYPES):
                return False
            for expr in expressions_of(each):
                if not all(self.is_scalar_node(node) for node in nodes(expr)):
                    return False
        return True

    def is_scalar_node(self, node: Any) -> bool:
        if isinstance(node, Call):
            return False
        if isinstance(node, Get):
            return isinstance(node.kind, Num) and node.is_basic and _is_element(node.index)
        if isinstance(node, Var):
            return isinstance(node.kind, Arr) or node.kind.dtype in DTYPES
        if isinstance(node, Op):
            if isinstance(node.kind, Arr):
                return False
            return scalar_forward(node.name, "".join(arg.kind.dtype for arg in node.args)) is not None
        if isinstance(node, Pull):
            form = scalar_gradient(node.name, node.number, _reads_complex(node))
            return isinstance(node.kind, Num) and form is not None
        return True

    def region(self, region: _Region) -> list[str]:
        """Write a kernel, and return the lines that call it."""
        stmts = region.stmts
        inside = {id(stmt) for stmt in statements(stmts)}
        elsewhere = self.outside | self.read_later | {
            name for stmt in statements(self.current) if id(stmt) not in inside for name in reads_of(stmt)
        }
        counters = {stmt.name for stmt in statements(stmts) if isinstance(stmt, For)}
        line = next((stmt.line for stmt in stmts if isinstance(stmt, (For, While))), 0)
        name = f"loop_{line}"
        taken = {kernel.name for kernel in self.kernels}
        number = 2
        while name in taken:
            name = f"loop_{line}_{number}"
            number += 1
        bound: dict[str, None] = {}
        arrays: set[str] = set()
        for stmt in statements(stmts):
            for each in assigned(stmt):
                bound[each] = None
            if isinstance(stmt, Set):
                arrays.add(stmt.base.name)
            if isinstance(stmt, Pop) and isinstance(stmt.target, Get):
                arrays.add(stmt.target.base.name)
        read = _read_by(stmts)
        free = sorted(name for name in read | arrays)
        first = {each for each in bound if each not in counters and is_read_first(stmts, each)}
        results = [each for each in bound if each not in counters and (each in elsewhere or each in first)]
        first |= {each for each in results if not _is_bound_at_top(stmts, each)}
        parameters = sorted({each for each in free if each in self.kinds and each not in bound} | first)
        pushes = any(isinstance(stmt, Push) for stmt in statements(stmts))
        pops = any(isinstance(stmt, Pop) for stmt in statements(stmts))
        dims = sorted({(node.base.name, node.axis) for stmt in statements(stmts) for expr in expressions_of(stmt)
                       for node in nodes(expr) if isinstance(node, Dim)})
        before = self.lines, self.in_kernel, self.noted
        self.lines, self.in_kernel, self.noted = [], True, 0
        tape_names = ["floats", "integers", "nf", "ni"] if self.native else ["tape"]
        uses_tape = pushes or pops
        given = parameters + ([f"{a}_shape{axis}" for a, axis in dims] if not self.native else [])
        self.lines.append(f"def {name}({', '.join(given + (tape_names if uses_tape else []))}):")
        if pushes and self.native:
            self.grow(stmts, "    ", "1")
        for stmt in stmts:
            self.statement(stmt, "    ")
        back = list(results)
        if uses_tape and self.native:
            back += ["nf", "ni"]
        self.lines.append(f"    return {', '.join(back)}" if len(back) != 1 else f"    return {back[0]}")
        source = "\n".join(self.lines) + "\n"
        self.lines, self.in_kernel, self.noted = before
        kernel = Kernel(name, parameters, results, pushes, pops, source, arrays)
        self.kernels.append(kernel)
        args = []
        for each in parameters:
            kind = self.kinds[each]
            args.append(f"float({each})" if isinstance(kind, Num) and kind.dtype in "df" and not each.endswith("_bar")
                        else each)
        if self.native:
            call = f"{name}({', '.join(args + (tape_names if uses_tape else []))})"
            return [f"    {', '.join(back)} = {call}" if back else f"    {call}"]
        found = []
        used = self.listed([each for each in parameters if isinstance(self.kinds[each], Arr)], arrays)
        for each in used:
            found.append(f"    {each}_list = as_list({each})")
        args = [f"as_number({each})" if isinstance(self.kinds[each], Num) else f"{each}_list" if each in used else each
                for each in parameters]
        args += [f"{a}.shape[{axis}]" for a, axis in dims] + (["tape"] if uses_tape else [])
        call = f"{name}({', '.join(args)})"
        found.append(f"    {', '.join(back)} = {call}" if back else f"    {call}")
        found += [f"    take_list({each}, {each}_list)" for each in used if each in arrays]
        return found

    def listed(self, names: Sequence[str], written: Collection[str]) -> list[str]:
        """Return the arrays that a Python kernel receives as lists: those that share no memory with a written one."""
        own = {name: root_of(name, self.roots) for name in names}
        counts = Counter(own.values())
        shared = {own[name] for name in names if name in written and counts[own[name]] > 1}
        return [name for name in names if own[name] not in shared]

    def grow(self, stmts: Block, indent: str, count: str) -> None:
        """Make room on the tape for what some statements push themselves, `count` times."""
        floats, integers = _pushes(stmts)
        for name, used, number in (("floats", "nf", floats), ("integers", "ni", integers)):
            if number:
                more = str(number) if count == "1" else count if number == 1 else f"{number} * {count}"
                self.lines += [f"{indent}if {used} + {more} > {name}.size:", f"{indent}    raise BufferError"]

    # -- statements ----------------------------------------------------------------------------------------------------

    def note(self, line: int, indent: str) -> None:
        """Write the user's line as a comment."""
        if line and line != self.noted:
            self.noted = line
            text = linecache.getline(self.file, line).strip()
            if text:
                self.lines.append(f"{indent}# {line}: {text}")

    def block(self, stmts: Block, indent: str) -> None:
        """Write a block."""
        before = len(self.lines)
        for stmt in stmts:
            self.statement(stmt, indent)
        if all(line.lstrip().startswith("#") for line in self.lines[before:]):
            self.lines.append(f"{indent}pass")

    def statement(self, stmt: Any, indent: str) -> None:
        """Write a statement."""
        if isinstance(stmt, _Region):
            self.lines += [indent[4:] + line for line in self.region(stmt)]
            return
        self.note(getattr(stmt, "line", 0), indent)
        getattr(self, f"on_{type(stmt).__name__}")(stmt, indent)

    def on_Let(self, stmt: Let, indent: str) -> None:
        value = stmt.value
        if isinstance(value, Op) and value.name in ("add", "sub") and isinstance(value.args[0], Var) \
                and value.args[0].name == stmt.name and isinstance(value.kind, Num):
            other = value.args[1]
            sign = "+" if value.name == "add" else "-"
            if sign == "+" and isinstance(other, Op) and other.name == "neg":
                other, sign = other.args[0], "-"
            if self.kinds[stmt.name].dtype == value.kind.dtype != "f":
                self.lines.append(f"{indent}{stmt.name} {sign}= {self.text(other)}")
                return
        text = self.text(value)
        kind = self.kinds.get(stmt.name)
        if isinstance(kind, Num) and kind.dtype in "df" and value.kind.dtype in "?l":
            text = f"{float(value.value)!r}" if isinstance(value, Const) else f"float({text})"
        self.lines.append(f"{indent}{stmt.name} = {text}")

    def on_LetMany(self, stmt: LetMany, indent: str) -> None:
        self.lines.append(f"{indent}{', '.join(stmt.names)} = {self.text(stmt.value)}")

    def on_Set(self, stmt: Set, indent: str) -> None:
        sign = {"": "=", "add": "+=", "sub": "-="}[stmt.op]
        place = self.place(stmt.base, stmt.index, stmt.safe)
        if stmt.base.kind.dtype == "f" and _is_element(stmt.index) and isinstance(stmt.value.kind, Num):
            value = f"{place} {sign[0]} {self.part(stmt.value)}" if stmt.op else self.text(stmt.value)
            self.lines.append(f"{indent}{place} = rounded({value})")
            return
        self.lines.append(f"{indent}{place} {sign} {self.text(stmt.value)}")

    def on_Check(self, stmt: Check, indent: str) -> None:
        error = "raise RuntimeError" if self.in_kernel else "raise GiveUp"
        if stmt.of_index or stmt.of_room:
            error = "raise IndexError" if stmt.of_index else "raise NoRoom"
        if stmt.test == Const(False, stmt.test.kind):
            self.lines.append(f"{indent}{error}")
            return
        self.lines += [f"{indent}if not ({self.text(stmt.test)}):", f"{indent}    {error}"]

    def on_For(self, stmt: For, indent: str) -> None:
        low, high, step = self.text(stmt.low), self.text(stmt.high), stmt.step
        inner = indent + "    "
        if not stmt.down:
            if stmt.last is not None:
                self.lines.append(f"{indent}{stmt.last} = {low} - {step}" if step > 0 else
                                  f"{indent}{stmt.last} = {low} + {-step}")
            if self.in_kernel and self.native and any(_pushes(stmt.body)):
                size = abs(step)
                span = f"{high} - ({low})" if step > 0 else f"{low} - ({high})"
                if stmt.low == Const(0, stmt.low.kind) and step > 0:
                    span = high
                count = f"max(0, {span})" if size == 1 else f"max(0, ({span}) // {size} + 1)"
                self.grow(stmt.body, indent, count)
            bounds = high if stmt.low == Const(0, stmt.low.kind) and step == 1 else f"{low}, {high}"
            self.lines.append(f"{indent}for {stmt.name} in range({bounds}{'' if step == 1 else f', {step}'}):")
            if stmt.last is not None:
                self.lines.append(f"{inner}{stmt.last} = {stmt.name}")
            self.block(self.inner(stmt.body), inner)
            if stmt.stop is not None:
                self.lines += [f"{inner}if {stmt.stop}:", f"{inner}    break"]
            return
        if self.in_kernel and self.native and is_unordered(stmt, self.roots):
            span = high if stmt.low == Const(0, stmt.low.kind) and step == 1 else f"{low}, {high}"
            self.lines.append(f"{indent}for {stmt.name} in range({span}{'' if step == 1 else f', {step}'}):")
            self.block(self.inner(stmt.body), inner)
            return
        if stmt.last is not None:
            first = stmt.last
        elif step in (1, -1):
            first = f"{high} - 1" if step == 1 else f"{high} + 1"
        elif step > 0:
            first = f"{low} + ({high} - ({low}) - 1) // {step} * {step}"
        else:
            first = f"{low} - ({low} - ({high}) - 1) // {-step} * {-step}"
        end = f"{low} - 1" if step > 0 else f"{low} + 1"
        if stmt.low == Const(0, stmt.low.kind) and step > 0:
            end = "-1"
        self.lines.append(f"{indent}for {stmt.name} in range({first}, {end}, {-step}):")
        self.block(self.inner(stmt.body), inner)

    def on_While(self, stmt: While, indent: str) -> None:
        inner = indent + "    "
        if stmt.down:
            self.lines.append(f"{indent}for _ in range({stmt.count}):")
            self.block(self.inner(stmt.body), inner)
            return
        if stmt.count is not None:
            self.lines.append(f"{indent}{stmt.count} = 0")
        self.lines.append(f"{indent}while {self.text(stmt.test)}:")
        if stmt.count is not None:
            self.lines.append(f"{inner}{stmt.count} += 1")
        if self.in_kernel and self.native:
            self.grow(stmt.body, inner, "1")
        self.block(self.inner(stmt.body), inner)
        if stmt.stop is not None:
            self.lines += [f"{inner}if {stmt.stop}:", f"{inner}    break"]

    def on_Segmented(self, stmt: Segmented, indent: str) -> None:
        low, high = [None if each is None else self.text(each) for each in (stmt.low, stmt.high)]
        plain, taped = self.nested(stmt.plain, indent), self.nested(stmt.taped, indent)
        self.lines += segments_text(
            stmt, indent, low, high, plain, taped, self.bound_in(stmt.plain), self.bound_in(stmt.taped), self.has_stacks
        )

    def on_SegmentedBack(self, stmt: SegmentedBack, indent: str) -> None:
        low = None if stmt.loop.low is None else self.text(stmt.loop.low)
        body = self.nested(stmt.body, indent)
        known = self.adjoints | _bound_in(self.everything[0])
        names = [name for name in self.bound_in(stmt.body) if name in known]
        self.lines += backwards_text(stmt.loop, indent, low, body, names, self.has_stacks)

    def nested(self, block: Block, indent: str) -> list[str]:
        """Return the lines of a block in a function inside the program."""
        before = self.lines, self.noted
        self.lines, self.noted = [], 0
        for each in self.regions(block):
            self.statement(each, indent + "    ")
        found, (self.lines, self.noted) = self.lines, before
        return found

    def bound_in(self, block: Block) -> list[str]:
        """Return the variables that a block binds, those of loops aside."""
        counters = {stmt.name for stmt in statements(block) if isinstance(stmt, For)}
        return sorted(_bound_in(block) - counters)

    def on_If(self, stmt: If, indent: str) -> None:
        inner = indent + "    "
        if not stmt.then and stmt.other:
            self.lines.append(f"{indent}if not ({self.text(stmt.test)}):")
            self.block(self.inner(stmt.other), inner)
            return
        self.lines.append(f"{indent}if {self.text(stmt.test)}:")
        self.block(self.inner(stmt.then), inner)
        if stmt.other:
            self.lines.append(f"{indent}else:")
            self.block(self.inner(stmt.other), inner)

    def inner(self, stmts: Block) -> list[Any]:
        """Return the statements of a block inside, with regions in it for kernels that cost little to call."""
        return self.regions(stmts) if self.native and not self.in_kernel else stmts

    def on_Push(self, stmt: Push, indent: str) -> None:
        text = self.text(stmt.value)
        if not self.native or isinstance(stmt.value.kind, Arr):
            self.lines.append(f"{indent}tape.append({text})")
            return
        # Numbers go where kernels find them: the program backwards may have other kernels.
        if is_complex(stmt.value.kind):
            if not self.in_kernel:
                self.lines += [f"{indent}if nf + 2 > floats.size:", f"{indent}    raise BufferError"]
            part = self.part(stmt.value)
            self.lines += [f"{indent}floats[nf] = {part}.real", f"{indent}floats[nf + 1] = {part}.imag"]
            self.lines.append(f"{indent}nf += 2")
            return
        stack, used = ("floats", "nf") if stmt.value.kind.dtype in "df" else ("integers", "ni")
        if not self.in_kernel:
            self.lines += [f"{indent}if {used} == {stack}.size:", f"{indent}    raise BufferError"]
        self.lines += [f"{indent}{stack}[{used}] = {text}", f"{indent}{used} += 1"]

    def on_Pop(self, stmt: Pop, indent: str) -> None:
        target = stmt.target
        place = self.place(target.base, target.index, True) if isinstance(target, Get) else target.name
        if not self.native or isinstance(target.kind, Arr):
            self.lines.append(f"{indent}{place} = tape.pop()")
        elif is_complex(target.kind):
            self.lines += [f"{indent}nf -= 2", f"{indent}{place} = complex(floats[nf], floats[nf + 1])"]
        elif target.kind.dtype in "df":
            self.lines += [f"{indent}nf -= 1", f"{indent}{place} = floats[nf]"]
        elif target.kind.dtype == "?":
            self.lines += [f"{indent}ni -= 1", f"{indent}{place} = integers[ni] != 0"]
        else:
            self.lines += [f"{indent}ni -= 1", f"{indent}{place} = integers[ni]"]

    def on_Add(self, stmt: Add, indent: str) -> None:
        target, value = stmt.target, self.text(stmt.value)
        if isinstance(target, Get) and not target.is_basic:
            self.lines.append(f"{indent}add_at_index({target.base.name}, ({self.slices(target.index)},), {value})")
        else:
            self.lines.append(f"{indent}add_to({self.text(target)}, {value})")

    def on_PullCall(self, stmt: PullCall, indent: str) -> None:
        call = stmt.call
        names = [name or "_" for name in stmt.names]
        wanted = ", ".join("True" if name else "False" for name in stmt.names)
        grads = ", ".join("None" if grad is None else self.text(grad) for grad in stmt.grads)
        args = ", ".join(self.argument(arg, call.name) for arg in call.args)
        options = ", ".join(f"{key!r}: {value!r}" for key, value in call.options)
        self.lines.append(
            f"{indent}{', '.join(names)}{',' if len(names) == 1 else ''} = gradients_of({call.name!r}, ({args},), "
            f"{{{options}}}, ({wanted},), ({grads},))"
        )

    # -- expressions ---------------------------------------------------------------------------------------------------

    def text(self, expr: Any) -> str:
        """Return an expression as source."""
        text: str = getattr(self, f"of_{type(expr).__name__}")(expr)
        return text

    def part(self, expr: Any) -> str:
        """Return an expression as an operand, in parentheses if needed."""
        text = self.text(expr)
        simple = isinstance(expr, (Var, Get, Dim)) or (isinstance(expr, Const) and not text.startswith("-"))
        return text if simple or (text.endswith(")") and isinstance(expr, (Call,))) else f"({text})"

    def of_Const(self, expr: Const) -> str:
        value = expr.value
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            prefix = "" if self.in_kernel else "np."
            return f"{prefix}nan" if value != value else f"{prefix}inf" if value > 0 else f"-{prefix}inf"
        return repr(value)

    def of_Var(self, expr: Var) -> str:
        return expr.name

    def of_Dim(self, expr: Dim) -> str:
        if self.in_kernel and not self.native:
            return f"{expr.base.name}_shape{expr.axis}"
        return f"{expr.base.name}.shape[{expr.axis}]"

    def of_Get(self, expr: Get) -> str:
        return self.place(expr.base, expr.index, expr.safe)

    def place(self, base: Var, index: tuple[Any, ...], safe: bool) -> str:
        """Return a part of an array as source."""
        safe = safe or self.ran_before
        if not self.in_kernel:
            if _is_element(index) and not safe and not self.wraps:
                items = [f"at({self.text(each)}, {base.name}.shape[{axis}])" if not isinstance(each, Const)
                         else self.text(each) for axis, each in enumerate(index)]
                return f"{base.name}[{', '.join(items)}]"
            return f"{base.name}[{self.index(index)}]"
        items = [self.text(each) for each in index]
        if not safe:
            function = "at_wrapped" if self.wraps else "at"
            if self.native:
                items = [f"{function}({item}, {base.name}.shape[{axis}])" for axis, item in enumerate(items)]
            elif not self.wraps:
                items = [f"not_negative({item})" if not isinstance(each, Const) else item
                         for item, each in zip(items, index)]
        if self.native:
            return f"{base.name}[{', '.join(items)}]"
        return base.name + "".join(f"[{item}]" for item in items)

    def index(self, index: Sequence[Any]) -> str:
        """Return the items of an index as source."""
        def one(each: Any) -> str:
            if each is NEW:
                return "None"
            if isinstance(each, Slice):
                low, high, step = ["" if part is None else self.text(part) for part in (each.low, each.high, each.step)]
                return f"{low}:{high}" + (f":{step}" if step else "")
            return self.text(each)

        return ", ".join(map(one, index))

    def slices(self, index: Sequence[Any]) -> str:
        """Return the items of an index as the source of slice objects."""
        def one(each: Any) -> str:
            if each is NEW:
                return "None"
            if isinstance(each, Slice):
                parts = ["None" if part is None else self.text(part) for part in (each.low, each.high, each.step)]
                return f"slice({', '.join(parts)})"
            return self.text(each)

        return ", ".join(map(one, index))

    def of_Op(self, expr: Op) -> str:
        name, args = expr.name, expr.args
        dtypes = "".join(arg.kind.dtype for arg in args)
        if isinstance(expr.kind, Num):
            form = scalar_forward(name, dtypes)
            if form is not None and all(isinstance(arg.kind, Num) for arg in args):
                parts = [self.part(arg) for arg in args]
                if "f" not in dtypes or name in SELECTING:
                    return form.format(*parts)
                if all(arg.kind.dtype == "f" or arg.kind.weak for arg in args):  # Python's numbers give way
                    parts = [f"rounded({part})" if arg.kind.weak and arg.kind.dtype in "df" else part
                             for arg, part in zip(args, parts)]
                text = form.format(*parts)
                return f"rounded({text})" if expr.kind.dtype == "f" and name != "as_single" else text
        if name in ("finite", "nonzero"):
            return self.text(args[0])
        parts, texts = [self.part(arg) for arg in args], [self.text(arg) for arg in args]
        if "f" in dtypes and isinstance(expr.kind, Arr):
            parts = texts = [self.typed(arg) for arg in args]
        if name in INFIX and len(args) == 2:
            return f"{parts[0]} {INFIX[name]} {parts[1]}"
        if name in PREFIX:
            return f"{PREFIX[name]}{parts[0]}"
        if name == "flowing":
            return f"flowing_arrays({', '.join(texts)})"
        if name == "clip_low":
            return f"np.clip({texts[0]}, {texts[1]}, None)"
        if name == "clip_high":
            return f"np.clip({texts[0]}, None, {texts[1]})"
        known = NUMPY.get(name, name)
        function = f"np.{known}" if hasattr(np, known) else f"rows.{name}"
        return f"{function}({', '.join(texts)})"

    def typed(self, arg: Any) -> str:
        """Return an operand beside single-precision arrays, whose type decides the precision of the result."""
        if isinstance(arg.kind, Arr) or isinstance(arg, Const):
            return self.part(arg)
        if arg.kind.dtype == "f":
            return f"np.float32({self.text(arg)})"
        plain = {"d": "float", "l": "int", "?": "bool", "D": "complex"}[arg.kind.dtype]
        return f"{plain if arg.kind.weak else f'np.{np.dtype(arg.kind.dtype).name}'}({self.text(arg)})"

    def of_Lazy(self, expr: Lazy) -> str:
        parts = [self.part(arg) for arg in expr.args]
        if expr.name == "not":
            return f"not {parts[0]}"
        if expr.name == "if":
            if expr.kind.dtype in "df":
                parts[1:] = [f"{float(arg.value)!r}" if isinstance(arg, Const) else f"float({part})"
                             if arg.kind.dtype in "?l" else part for part, arg in zip(parts[1:], expr.args[1:])]
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        return f" {expr.name} ".join(parts)

    def argument(self, arg: Any, name: str) -> str:
        """Return an argument of a call as source."""
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.text, arg))},)"
        return self.text(arg)

    def of_Call(self, expr: Call) -> str:
        name, options = expr.name, dict(expr.options)
        if name == "last_written":
            return f"last_written({self.text(expr.args[0])}, ({self.slices(options['index'])},))"
        if name == "tangent":
            given = [self.text(arg) for arg in expr.args] + [f"{key}={value!r}" for key, value in expr.options]
            return f"tangent_of({', '.join(given)})"
        if name == "sum_all":
            return f"np.sum({self.text(expr.args[0])})"
        args = [self.argument(arg, name) for arg in expr.args]
        if name in ("copy", "flatten"):
            return f"{args[0]}.{name}()"
        if name == "astype":
            return f"{args[0]}.astype({options['dtype']!r})"
        if name == "zeros" and options.get("dtype") == "float64":
            options = {}
        if name == "zeros_like":
            return f"np.zeros({args[0]}.shape{'' if options['dtype'] in ('d', 'float64') else repr_dtype(options)})"
        rest = [f"{key}={value!r}" for key, value in options.items()]
        if name in ("real", "imag"):
            return f"{args[0]}.{name}"
        if name == "diagonal":
            return f"writable(np.diagonal({', '.join([*args, *rest])}))"
        text = f"np.{name}({', '.join([*args, *rest])})"
        return f"viewed({args[0]}, {text})" if expr.is_view and name in ("reshape", "ravel") else text

    def of_Pull(self, expr: Pull) -> str:
        has_complex = _reads_complex(expr)
        form = scalar_gradient(expr.name, expr.number, has_complex)
        operands = [each for each in (expr.grad, *expr.args, expr.result) if each is not None]
        if isinstance(expr.kind, Num) and form is not None and all(isinstance(each.kind, Num) for each in operands):
            texts = {"grad": self.part(expr.grad)}
            if expr.result is not None:
                texts["result"] = self.part(expr.result)
            return form.format(*["" if arg is None else self.part(arg) for arg in expr.args], **texts)
        formula, names = array_formula(expr.name, expr.number)
        row = OPERATORS["clip" if expr.name in ROW_OF_CLIP else expr.name]
        parts = [("grad", expr.grad), *zip(names, expr.args), (row.signature.outputs[0], expr.result)]
        texts = {name: f"({self.text(part)})" for name, part in parts if part is not None}
        arrays = {name: f"asarray{texts[name]}" for name, part in parts if part is not None and part.kind.ndim == 0}
        texts |= {name: "None" for name in ("min", "max") if expr.name in ROW_OF_CLIP and name not in names}
        for metadata, name, attribute in formula.metadata:
            texts[metadata] = f"np.asarray({texts.get(name, 'None')}).{attribute}"
        tree = ast.parse(ast.unparse(formula.tree), mode="eval").body
        return ast.unparse(ArrayText(texts, arrays, has_complex).visit(tree))


def _reads_complex(expr: Pull) -> bool:
    read = [each for each in (expr.grad, *expr.args, expr.result) if each is not None]
    return is_complex(expr.kind) or any(is_complex(each.kind) for each in read)


def repr_dtype(options: dict[str, Any]) -> str:
    """Return the dtype of a new array, as source."""
    return f", {np.dtype(options['dtype']).name!r}"


@attrs.define(eq=False)
class _Region:
    """Statements that a kernel runs."""

    stmts: Block


def _is_element(index: Sequence[Any]) -> bool:
    return all(each is not NEW and not isinstance(each, Slice) and isinstance(each.kind, Num) for each in index)


def _read_by(items: Sequence[Any]) -> set[str]:
    found: set[str] = set()
    for item in items:
        for stmt in statements(item.stmts if isinstance(item, _Region) else [item]):
            found.update(reads_of(stmt))
    return found


def _is_bound_at_top(stmts: Block, name: str) -> bool:
    """Return whether some statements bind a variable whatever happens."""
    return any(isinstance(stmt, (Let, Pop)) and name in assigned(stmt) for stmt in stmts) or any(
        (isinstance(stmt, For) and stmt.last == name) or (isinstance(stmt, While) and stmt.count == name)
        for stmt in stmts)


def _pushes(stmts: Block) -> tuple[int, int]:
    """Bound the numbers of floats and integers that some statements push, excluding inner loops."""
    floats = integers = 0
    for stmt in stmts:
        if isinstance(stmt, Push):
            if stmt.value.kind.dtype in "dfD":
                floats += 2 if is_complex(stmt.value.kind) else 1
            else:
                integers += 1
        elif isinstance(stmt, If):
            counts = [_pushes(inner) for inner in blocks_of(stmt)]
            floats += max(count[0] for count in counts)
            integers += max(count[1] for count in counts)
    return floats, integers


def _bound_in(block: Block) -> set[str]:
    return {name for stmt in statements(block) for name in assigned(stmt)}


def _is_first(name: str, block: Block) -> bool:
    """Return whether a variable is bound once, outside of all loops and branches."""
    return any(isinstance(stmt, (Let, LetMany)) and name in assigned(stmt) for stmt in block) and sum(
        1 for stmt in statements(block) if isinstance(stmt, (Let, LetMany)) and name in assigned(stmt)) == 1


def _first_in_loops(block: Block, kinds: dict[str, Any]) -> set[str]:
    """Return the numbers first bound in a loop or branch, or pushed on the tape before they are bound."""
    top = {name for stmt in block if isinstance(stmt, (Let, LetMany)) for name in assigned(stmt)}
    top = {name for name in top if not is_read_first(block, name)}
    return {
        name for stmt in statements(block) for name in assigned(stmt)
        if name not in top and isinstance(kinds.get(name), Num) and not (isinstance(stmt, For) and stmt.name == name)
    }
