"""Generation of Python source for programs: kernels on numbers and elements, and host code on arrays.

The source resembles the user's, with the same names; the adjoint of `x` is `x_bar`. Each statement that corresponds to
a line of the user's code has that line as a comment.
"""

from __future__ import annotations

import itertools
import linecache
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from . import ir
from .expression_text import ExpressionWriter, is_element
from .liveness import is_read_first, read_before_bound, reads_of
from .parallel_loops import is_parallel, root_of
from .regions import Region, outline_regions
from .segment_text import backwards_text, segments_text
from .value_types import Arr, Num, is_complex

DUMMIES: Final = {"?": "False", "l": "0", "D": "0j"}


@attrs.define(eq=False)
class Kernel:
    """A region of a program that computes with numbers and elements of arrays.

    Attributes:
        name: the name of its function.
        parameters: the variables that it reads.
        results: the variables that it returns.
        source: its text.
        wraps: whether its indices may be negative.
    """

    name: str
    parameters: list[str]
    results: list[str]
    source: str
    wraps: bool


@attrs.define(eq=False)
class Written:
    """The generated source of a program.

    Attributes:
        kernels: the kernels.
        host: the source of the host code: the function `program`.
        uses_tape: whether kernels use the tape.
    """

    kernels: list[Kernel]
    host: str
    uses_tape: bool

    def source(self) -> str:
        """Return the source of the module."""
        return "\n\n".join([kernel.source for kernel in self.kernels] + [self.host])


class Writer(ExpressionWriter):
    """Generates the source of a program.

    Arguments:
        kinds: the kinds of the variables.
        file: the file of the user's function.
        native: whether kernels are for Numba, rather than for Python with lists.
        wraps: whether indices that are not known to be in range may be negative.
        is_limited: whether the number of bytes on the tape is limited.
        roots: the representatives of variables that share memory.
        cells: the variables that represent elements in loops.
    """

    def __init__(
        self, kinds: dict[str, Any], file: str, native: bool, wraps: bool, is_limited: bool = False,
        roots: Mapping[str, str] | None = None, cells: Collection[str] = (),
    ) -> None:
        super().__init__(native, wraps)
        self.roots = roots or {}
        self.cells = cells
        self.kinds = kinds
        self.file = file
        self.is_limited = is_limited
        self.adjoints: set[str] = set()  # adjoints that are numbers
        self.has_stacks = False  # whether numbers are saved in arrays that kernels write to
        self.kernels: list[Kernel] = []
        self.lines: list[str] = []
        self.noted = 0
        self.is_covered = False  # whether there is room on the tape for the following statements
        self.outside: set[str] = set()  # variables that are read after the program has run
        self.everything: list[ir.Block] = []
        self.current: ir.Block = []
        self.read_later: set[str] = set()  # variables that later blocks read before they bind them

    # -- the program ---------------------------------------------------------------------------------------------------

    def program(
        self, inputs: Sequence[str], forward: ir.Block, results: Sequence[Any], backward: ir.Block | None = None,
        active: Collection[str] = (), numbers: Sequence[str] = (), wanted: Sequence[str] = (),
        written: Sequence[str] = (),
    ) -> Written:
        """Return the source of a program.

        Arguments:
            inputs: its inputs.
            forward: the program.
            results: the variables that contain its results.
            backward: the program that runs backwards.
            active: the variables that have an adjoint.
            numbers: the adjoints of numbers.
            wanted: the inputs whose gradients it computes.
            written: the inputs that it writes to.
        """
        self.outside = {f"{name}_bar" for name in wanted} | set(results) | set(written)
        self.everything = [forward] if backward is None else [forward, backward]
        self.adjoints = set(numbers)
        self.has_stacks = self.native and any(
            isinstance(stmt, ir.Push) and isinstance(stmt.value.kind, Num) for stmt in ir.statements(forward)
        )
        for stmt in forward:
            if isinstance(stmt, ir.Segmented):
                self.outside |= {*stmt.state.numbers, *[name for name in (stmt.ran, stmt.stop) if name is not None]}
        forward_lines = self.top(forward)
        self.ran_before = not self.wraps
        backward_lines = [] if backward is None else self.top(backward)
        tape = self.has_stacks
        bound = {name for block in self.everything for stmt in ir.statements(block) for name in ir.assigned(stmt)}
        head = [f"def program({', '.join([*inputs, *(['floats', 'integers'] if tape else [])])}):"]
        if tape:
            head.append("    nf = ni = 0")
        counts = self.is_limited and any(
            isinstance(stmt, ir.Push) and (not self.native or isinstance(stmt.value.kind, Arr))
            for stmt in ir.statements(forward))
        head.append(f"    tape = {'Tape(tape_limit)' if counts else '[]'}")
        arrays = sorted(name for name in bound if isinstance(self.kinds.get(name), Arr) and not _is_first(name, forward)
                        and name in ir.bound_in(forward))
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
        outer = sorted((bound & ir.bound_in(backward) & (ir.bound_in(forward) | set(arrays))) | (
            {"nf", "ni"} if tape else set()))
        counters = {stmt.name for block in self.everything for stmt in ir.statements(block) if isinstance(stmt, ir.For)}
        outer = [name for name in outer if name not in inputs and name not in counters]
        known = {*scalars, *arrays, "nf", "ni"}
        head += [f"    {name} = {DUMMIES.get(self.kinds[name].dtype, '0.0')}" for name in outer if name not in known
                 and isinstance(self.kinds[name], Num)]  # kernels may be the only code that binds them
        if outer:
            inner.append(f"        nonlocal {', '.join(outer)}")
        inner += [f"        {name} = 0.0" for name in numbers]
        for seed, name in zip(seeds, [*results, *written]):
            if name in active:
                place = f"{name}_bar" if isinstance(self.kinds[name], Num) else f"{name}_bar[...]"
                inner += [f"        if {seed} is not None:", f"            {place} += {seed}"]
        inner += ["    " + line for line in backward_lines]
        left = ["tape", *(["nf", "ni"] if tape else [])]  # an invariant that costs nothing to check
        inner += [f"        if {' or '.join(left)}:", "            raise Bailout"]
        gradients = "".join([self.gradient(name) + ", " for name in wanted])
        inner.append(f"        return ({gradients.rstrip()})")
        tail = [f"    return {give}, pullback"]
        return Written(self.kernels, "\n".join([*head, *forward_lines, *inner, *tail]) + "\n", tape)

    def gradient(self, name: str) -> str:
        """Return the gradient of an input in the input's precision."""
        kind = self.kinds[name]
        if kind.dtype != "f":
            return f"{name}_bar"
        return f"np.float32({name}_bar)" if isinstance(kind, Num) else f"{name}_bar.astype('float32')"

    def top(self, block: ir.Block) -> list[str]:
        """Return the lines of a block outside kernels."""
        self.lines = []
        self.noted = 0
        self.is_covered = False  # whether there is room on the tape for the following statements
        self.current = block
        later = self.everything[self.everything.index(block) + 1 :]
        self.read_later = {name for each in later for name in read_before_bound(each, set())}
        for stmt in outline_regions(block, self.kinds, self.cells):
            self.statement(stmt, "    ")
        return self.lines

    # -- kernels -------------------------------------------------------------------------------------------------------

    def region(self, region: Region) -> list[str]:
        """Generate a kernel and return the lines that call it."""
        stmts = region.stmts
        inside = {id(stmt) for stmt in ir.statements(stmts)}
        elsewhere = self.outside | self.read_later | {
            name for stmt in ir.statements(self.current) if id(stmt) not in inside for name in reads_of(stmt)
        }
        counters = {stmt.name for stmt in ir.statements(stmts) if isinstance(stmt, ir.For)}
        line = next((stmt.line for stmt in stmts if isinstance(stmt, (ir.For, ir.While))), 0)
        name = f"loop_{line}"
        taken = {kernel.name for kernel in self.kernels}
        number = 2
        while name in taken:
            name = f"loop_{line}_{number}"
            number += 1
        bound: dict[str, None] = {}
        arrays: set[str] = set()
        for stmt in ir.statements(stmts):
            for each in ir.assigned(stmt):
                bound[each] = None
            if isinstance(stmt, ir.Set):
                arrays.add(stmt.base.name)
            if isinstance(stmt, ir.Pop) and isinstance(stmt.target, ir.Get):
                arrays.add(stmt.target.base.name)
        read = _read_by(stmts)
        free = sorted(name for name in read | arrays)
        first = {each for each in bound if each not in counters and is_read_first(stmts, each)}
        results = [each for each in bound if each not in counters and (each in elsewhere or each in first)]
        first |= {each for each in results if not _is_bound_at_top(stmts, each)}
        parameters = sorted({each for each in free if each in self.kinds and each not in bound} | first)
        uses_tape = any(isinstance(stmt, (ir.Push, ir.Pop)) for stmt in ir.statements(stmts))
        dims = sorted({
            (node.base.name, node.axis)
            for stmt in ir.statements(stmts) for node in ir.nodes_of(stmt) if isinstance(node, ir.Dim)
        })
        before = self.lines, self.in_kernel, self.noted
        self.lines, self.in_kernel, self.noted, self.is_covered = [], True, 0, False
        tape_names = ["floats", "integers", "nf", "ni"] if self.native else ["tape"]
        given = parameters + ([f"{a}_shape{axis}" for a, axis in dims] if not self.native else [])
        self.lines.append(f"def {name}({', '.join(given + (tape_names if uses_tape else []))}):")
        self.block(stmts, "    ")
        back = list(results)
        if uses_tape and self.native:
            back += ["nf", "ni"]
        self.lines.append(f"    return {', '.join(back)}" if len(back) != 1 else f"    return {back[0]}")
        source = "\n".join(self.lines) + "\n"
        self.lines, self.in_kernel, self.noted = before
        kernel = Kernel(name, parameters, results, source, self.wraps)
        self.kernels.append(kernel)
        args = []
        for each in parameters:
            kind = self.kinds[each]
            args.append(f"float({each})" if isinstance(kind, Num) and kind.dtype in "df" and not ir.is_bar(each)
                        else each)
        if self.native:
            call = f"{name}({', '.join(args + (tape_names if uses_tape else []))})"
            return [f"    {', '.join(back)} = {call}" if back else f"    {call}"]
        used = self.listed([each for each in parameters if isinstance(self.kinds[each], Arr)], arrays)
        found = [f"    {each}_list = as_list({each})" for each in used]
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

    def grow(self, stmts: ir.Block, indent: str, count: str) -> None:
        """Generate a check that the tape has room for the pushes of some statements, `count` times."""
        floats, integers = _pushes(stmts)
        for name, used, number in (("floats", "nf", floats), ("integers", "ni", integers)):
            if number:
                more = str(number) if count == "1" else count if number == 1 else f"{number} * {count}"
                self.lines += [f"{indent}if {used} + {more} > {name}.size:", f"{indent}    raise BufferError"]

    # -- statements ----------------------------------------------------------------------------------------------------

    def note(self, line: int, indent: str) -> None:
        """Add the user's line as a comment."""
        if line and line != self.noted:
            self.noted = line
            text = linecache.getline(self.file, line).strip()
            if text:
                self.lines.append(f"{indent}# {line}: {text}")

    def block(self, stmts: ir.Block, indent: str) -> None:
        """Generate a block; in kernels, with checks of the room on the tape that are not covered by earlier checks.

        A check covers statements up to the next loop that pushes, which may use up the remaining room.
        """
        before = len(self.lines)
        was_covered = self.is_covered
        checks = self.in_kernel and self.native and not was_covered
        for is_loop, group in itertools.groupby(stmts, lambda stmt: checks and _may_push_in_loops(stmt)):
            run = list(group)
            if checks and not is_loop:
                self.grow(run, indent, "1")
                self.is_covered = True
            for stmt in run:
                self.statement(stmt, indent)
            self.is_covered = was_covered
        if all(line.lstrip().startswith("#") for line in self.lines[before:]):
            self.lines.append(f"{indent}pass")

    def statement(self, stmt: Any, indent: str) -> None:
        """Generate a statement."""
        if isinstance(stmt, Region):
            self.lines += [indent[4:] + line for line in self.region(stmt)]
            return
        self.note(getattr(stmt, "line", 0), indent)
        getattr(self, f"on_{type(stmt).__name__}")(stmt, indent)

    def on_Let(self, stmt: ir.Let, indent: str) -> None:
        value = stmt.value
        if isinstance(value, ir.Op) and value.name in ("add", "sub") and isinstance(value.args[0], ir.Var) \
                and value.args[0].name == stmt.name and isinstance(value.kind, Num):
            other = value.args[1]
            sign = "+" if value.name == "add" else "-"
            if sign == "+" and isinstance(other, ir.Op) and other.name == "neg":
                other, sign = other.args[0], "-"
            if self.kinds[stmt.name].dtype == value.kind.dtype != "f":
                self.lines.append(f"{indent}{stmt.name} {sign}= {self.text(other)}")
                return
        text = self.text(value)
        kind = self.kinds.get(stmt.name)
        if isinstance(kind, Num) and kind.dtype in "df" and value.kind.dtype in "?l":
            text = f"{float(value.value)!r}" if isinstance(value, ir.Const) else f"float({text})"
        self.lines.append(f"{indent}{stmt.name} = {text}")

    def on_LetMany(self, stmt: ir.LetMany, indent: str) -> None:
        self.lines.append(f"{indent}{ir.targets_text(stmt.names)} = {self.text(stmt.value)}")

    def on_Set(self, stmt: ir.Set, indent: str) -> None:
        sign = {"": "=", "add": "+=", "sub": "-="}[stmt.op]
        place = self.place(stmt.base, stmt.index, stmt.safe)
        if stmt.base.kind.dtype == "f" and is_element(stmt.index) and isinstance(stmt.value.kind, Num):
            value = f"{place} {sign[0]} {self.part(stmt.value)}" if stmt.op else self.text(stmt.value)
            self.lines.append(f"{indent}{place} = rounded({value})")
            return
        self.lines.append(f"{indent}{place} {sign} {self.text(stmt.value)}")

    def on_Check(self, stmt: ir.Check, indent: str) -> None:
        error = "raise RuntimeError" if self.in_kernel else "raise Bailout"
        if stmt.of_index or stmt.of_capacity:
            error = "raise IndexError" if stmt.of_index else "raise CapacityExceeded"
        if stmt.test == ir.Const(False, stmt.test.kind):
            self.lines.append(f"{indent}{error}")
            return
        self.lines += [f"{indent}if not ({self.text(stmt.test)}):", f"{indent}    {error}"]

    def on_For(self, stmt: ir.For, indent: str) -> None:
        low, high, step = self.text(stmt.low), self.text(stmt.high), stmt.step
        inner = indent + "    "
        if not stmt.down:
            if stmt.last is not None:
                self.lines.append(f"{indent}{stmt.last} = {low} - {step}" if step > 0 else
                                  f"{indent}{stmt.last} = {low} + {-step}")
            was_covered = self.is_covered
            if self.in_kernel and self.native and not any(map(_may_push_in_loops, stmt.body)) and any(
                    _pushes(stmt.body)):
                size = abs(step)
                span = f"{high} - ({low})" if step > 0 else f"{low} - ({high})"
                if stmt.low == ir.Const(0, stmt.low.kind) and step > 0:
                    span = high
                count = f"max(0, {span})" if size == 1 else f"max(0, ({span}) // {size} + 1)"
                self.grow(stmt.body, indent, count)
                self.is_covered = True
            bounds = high if stmt.low == ir.Const(0, stmt.low.kind) and step == 1 else f"{low}, {high}"
            self.lines.append(f"{indent}for {stmt.name} in range({bounds}{'' if step == 1 else f', {step}'}):")
            if stmt.last is not None:
                self.lines.append(f"{inner}{stmt.last} = {stmt.name}")
            self.block(self.inner(stmt.body), inner)
            self.is_covered = was_covered
            if stmt.stop is not None:
                self.lines += [f"{inner}if {stmt.stop}:", f"{inner}    break"]
            return
        if self.in_kernel and self.native and is_parallel(stmt, self.roots):
            span = high if stmt.low == ir.Const(0, stmt.low.kind) and step == 1 else f"{low}, {high}"
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
        if stmt.low == ir.Const(0, stmt.low.kind) and step > 0:
            end = "-1"
        self.lines.append(f"{indent}for {stmt.name} in range({first}, {end}, {-step}):")
        self.block(self.inner(stmt.body), inner)

    def on_While(self, stmt: ir.While, indent: str) -> None:
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
        self.block(self.inner(stmt.body), inner)
        if stmt.stop is not None:
            self.lines += [f"{inner}if {stmt.stop}:", f"{inner}    break"]

    def on_Segmented(self, stmt: ir.Segmented, indent: str) -> None:
        low, high = [None if each is None else self.text(each) for each in (stmt.low, stmt.high)]
        plain, taped = self.nested(stmt.plain, indent), self.nested(stmt.taped, indent)
        self.lines += segments_text(
            stmt, indent, low, high, plain, taped, self.bound_in(stmt.plain), self.bound_in(stmt.taped), self.has_stacks
        )

    def on_SegmentedBack(self, stmt: ir.SegmentedBack, indent: str) -> None:
        low = None if stmt.loop.low is None else self.text(stmt.loop.low)
        body = self.nested(stmt.body, indent)
        known = self.adjoints | ir.bound_in(self.everything[0])
        names = [name for name in self.bound_in(stmt.body) if name in known]
        self.lines += backwards_text(stmt.loop, indent, low, body, names, self.has_stacks)

    def nested(self, block: ir.Block, indent: str) -> list[str]:
        """Return the lines of a block in a function inside the program."""
        before = self.lines, self.noted
        self.lines, self.noted = [], 0
        for each in outline_regions(block, self.kinds, self.cells):
            self.statement(each, indent + "    ")
        found, (self.lines, self.noted) = self.lines, before
        return found

    def bound_in(self, block: ir.Block) -> list[str]:
        """Return the variables that a block binds, excluding loop variables."""
        counters = {stmt.name for stmt in ir.statements(block) if isinstance(stmt, ir.For)}
        return sorted(ir.bound_in(block) - counters)

    def on_If(self, stmt: ir.If, indent: str) -> None:
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

    def inner(self, stmts: ir.Block) -> list[Any]:
        """Return the statements of a nested block, with regions for kernels that are cheap to call."""
        return outline_regions(stmts, self.kinds, self.cells) if self.native and not self.in_kernel else stmts

    def on_Push(self, stmt: ir.Push, indent: str) -> None:
        text = self.text(stmt.value)
        if not self.native or isinstance(stmt.value.kind, Arr):
            self.lines.append(f"{indent}tape.append({text})")
            return
        # Numbers are saved for kernels, since the reverse program may have different kernels.
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

    def on_Pop(self, stmt: ir.Pop, indent: str) -> None:
        target = stmt.target
        place = self.place(target.base, target.index, True) if isinstance(target, ir.Get) else target.name
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

    def on_Add(self, stmt: ir.Add, indent: str) -> None:
        target, value = stmt.target, self.text(stmt.value)
        if isinstance(target, ir.Get) and not target.is_basic:
            self.lines.append(f"{indent}add_at_index({target.base.name}, ({self.slices(target.index)},), {value})")
        elif isinstance(stmt.value.kind, Num) and isinstance(target, ir.Var):
            self.lines.append(f"{indent}np.add({target.name}, {value}, {target.name})")
        else:
            self.lines.append(f"{indent}add_to({self.text(target)}, {value})")

    def on_PullCall(self, stmt: ir.PullCall, indent: str) -> None:
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


def _read_by(items: Sequence[Any]) -> set[str]:
    found: set[str] = set()
    for item in items:
        for stmt in ir.statements(item.stmts if isinstance(item, Region) else [item]):
            found.update(reads_of(stmt))
    return found


def _is_bound_at_top(stmts: ir.Block, name: str) -> bool:
    """Return whether the given statements bind a variable unconditionally."""
    return any(isinstance(stmt, (ir.Let, ir.Pop)) and name in ir.assigned(stmt) for stmt in stmts) or any(
        (isinstance(stmt, ir.For) and stmt.last == name) or (isinstance(stmt, ir.While) and stmt.count == name)
        for stmt in stmts)


def _pushes(stmts: ir.Block) -> tuple[int, int]:
    """Return bounds for the numbers of floats and integers that some statements push, excluding inner loops."""
    floats = integers = 0
    for stmt in stmts:
        if isinstance(stmt, ir.Push):
            if stmt.value.kind.dtype in "dfD":
                floats += 2 if is_complex(stmt.value.kind) else 1
            else:
                integers += 1
        elif isinstance(stmt, ir.If):
            counts = [_pushes(inner) for inner in ir.blocks_of(stmt)]
            floats += max(count[0] for count in counts)
            integers += max(count[1] for count in counts)
    return floats, integers


def _may_push_in_loops(stmt: Any) -> bool:
    """Return whether a statement contains a loop that pushes."""
    if isinstance(stmt, ir.If):
        return any(_may_push_in_loops(each) for block in ir.blocks_of(stmt) for each in block)
    return any(isinstance(each, ir.Push) for block in ir.blocks_of(stmt) for each in ir.statements(block))


def _is_first(name: str, block: ir.Block) -> bool:
    """Return whether a variable is bound once, outside all loops and branches."""
    return any(isinstance(stmt, (ir.Let, ir.LetMany)) and name in ir.assigned(stmt) for stmt in block) and sum(
        1 for stmt in ir.statements(block) if isinstance(stmt, (ir.Let, ir.LetMany)) and name in ir.assigned(stmt)) == 1


def _first_in_loops(block: ir.Block, kinds: dict[str, Any]) -> set[str]:
    """Return the numbers first bound in a loop or branch, or pushed to the tape before they are bound."""
    top = {name for stmt in block if isinstance(stmt, (ir.Let, ir.LetMany)) for name in ir.assigned(stmt)}
    top = {name for name in top if not is_read_first(block, name)}
    return {
        name for stmt in ir.statements(block) for name in ir.assigned(stmt)
        if name not in top and isinstance(kinds.get(name), Num) and not (isinstance(stmt, ir.For) and stmt.name == name)
    }
