"""Elimination of dead code, dead stores and copies."""

from __future__ import annotations

from collections.abc import Set

from ..build_ir import out_sizes
from ..loop_ir import (
    Access,
    Add,
    Block,
    Buffer,
    Call,
    Compute,
    Item,
    Number,
    Operand,
    Pop,
    Program,
    Read,
    Step,
    Value,
    Write,
    bodies_of,
    items_of,
    steps_of,
)


def eliminate_dead_code(program: Program) -> Program:
    """Remove steps whose values are unused, such as those that only a gradient would need."""
    steps = [step for _, step in steps_of(program.block)]
    for step in steps:
        if type(step) is Compute and step.slope is not None:
            _settle(step)
    users: dict[Step, int] = {}
    for step in steps:
        for value in step.operands:
            if isinstance(value, Operand):
                users[value.step] = users.get(value.step, 0) + 1
    unused = [step for step in steps if _is_pure(step) and step not in users]
    gone: set[Step] = set()
    while unused:
        step = unused.pop()
        gone.add(step)
        for value in step.operands:
            if isinstance(value, Operand):
                users[value.step] -= 1
                if not users[value.step] and _is_pure(value.step):
                    unused.append(value.step)
    if gone:
        remove_steps(program.block, gone)
    return program


def eliminate_dead_stores(program: Program) -> Program:
    """Remove windows of a gradient that are read, set to zero and added back unchanged, as for `u[1:-1] += ...`."""
    gone: set[Step] = set()
    for block in [program.block, *[body for _, item in items_of(program.block) for body in bodies_of(item)]]:
        for at, item in enumerate(block.items):
            if type(item) is Read and not item.is_picked and item not in gone:
                zero = _next_use(block.items, at + 1, item.base)
                if type(zero) is not Write or not _is_zero(zero) or not _is_same_window(item, zero):
                    continue
                back = _next_use(block.items, block.items.index(zero) + 1, item.base)
                if type(back) is not Add or not _is_same_window(item, back):
                    continue
                gone.add(zero)
                if _gives_back(back, item):
                    gone.add(back)
                else:  # an addition to zeros becomes a write
                    program.analysis = None
                    block.items[block.items.index(back)] = Write(
                        back.name, back.sizes, back.location, back.base, back.strides, back.offset, back.value
                    )
    if gone:
        remove_steps(program.block, gone)
    return program


def _next_use(items: list[Item], start: int, base: Buffer) -> Item | None:
    """Return the next step that reads or writes a buffer, or the loop that contains it."""
    for item in items[start:]:
        if isinstance(item, Access):
            if item.base is base:
                return item
        elif not isinstance(item, Step):
            for body in bodies_of(item):
                if any(isinstance(step, Access) and step.base is base for _, step in steps_of(body)):
                    return item
    return None


def _is_zero(step: Write) -> bool:
    return isinstance(step.value, Number) and step.value.value == 0


def _is_same_window(read: Read, step: Write) -> bool:
    if step.is_picked:
        return False
    return step.sizes == read.sizes and step.strides == read.strides and step.offset == read.offset


def _gives_back(step: Add, read: Read) -> bool:
    value = step.value
    return isinstance(value, Operand) and value.step is read and value.labels == tuple(range(len(read.sizes)))


def propagate_copies(program: Program) -> Program:
    """Replace operands that are copies or broadcasts by the original values."""
    for _, step in steps_of(program.block):
        if isinstance(step, Compute):
            step.operands = tuple([_source(value) for value in step.operands])
        elif isinstance(step, Write):
            step.value = _source(step.value)
    return program


def _source(value: Value) -> Value:
    while isinstance(value, Operand):
        step = value.step
        if type(step) is not Compute or step.expression != "{0}" or step.summed or -1 in step.out:
            break
        inner = step.operands[0]
        if not isinstance(inner, Operand) or getattr(inner.step, "dtype", None) != step.dtype:
            break
        along = dict(zip(step.out, value.labels))
        value = Operand(inner.step, tuple([along.get(label, -1) for label in inner.labels]))
    return value


def promote_to_scalars(program: Program) -> Program:
    """Convert single-element buffers to variables, unless they are read after the program has run."""
    kept = set(program.kept) | {result.base for result in program.results}
    for _, step in steps_of(program.block):
        if isinstance(step, Access) and (step.sizes or step.is_picked):
            kept.add(step.base.name)
    for name, base in program.bases.items():
        if base.kind == "made" and base.size == 1 and name not in kept and type(base.initial) is float:
            if base.dtype == float and base.initial == 0.0:
                base.kind = "register"
    return program


def bases_of(program: Program) -> set[str]:
    """Return the names of the buffers that a program reads or writes."""
    return {step.base.name for _, step in steps_of(program.block) if isinstance(step, Access)}


def _settle(step: Compute) -> None:
    """Replace the result of a reduction by a copy, since only its gradient needs the elements."""
    found = step.operands[1]
    assert isinstance(found, Operand)
    positions = {label: position for position, label in enumerate(step.out) if label >= 0}
    labels = tuple([positions.get(label, -1) for label in found.labels])
    step.sizes = out_sizes(step)
    step.operands = (Operand(found.step, labels),)
    step.out = tuple(range(len(step.sizes)))
    step.operator, step.expression, step.slope = "detach", "{0}", None


def _is_pure(step: Step) -> bool:
    return isinstance(step, (Compute, Read, Call, Pop))


def remove_steps(block: Block, gone: Set[Step]) -> None:
    """Remove steps from a block and its nested blocks."""
    block.items = [item for item in block.items if item not in gone]
    for item in block.items:
        for body in bodies_of(item):
            remove_steps(body, gone)
