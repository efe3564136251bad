"""What is done to programs once their gradients are known: steps that nobody needs are left out."""

from __future__ import annotations

from ..build_ir import out_sizes
from ..loop_ir import (
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

__all__ = [
    "bases_of",
    "eliminate_dead_code",
    "eliminate_dead_stores",
    "left_out",
    "promote_to_scalars",
    "propagate_copies",
]


def eliminate_dead_code(program: Program) -> None:
    """Leave out of a program what its gradient alone would have needed, and what nobody uses."""
    steps = [step for _, step in steps_of(program.block)]
    for step in steps:
        if type(step) is Compute and step.operator in ("tied", "tied_by_share"):
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
        left_out(program.block, gone)


def eliminate_dead_stores(program: Program) -> None:
    """Leave out of a gradient that a window is taken, set to zero, and given back the same at once.

    So it is where an array is updated in place: `u[1:-1] += ...`.
    """
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
                else:  # what is added to zeros is written
                    block.items[block.items.index(back)] = Write(
                        back.name, back.sizes, back.location, back.base, back.strides, back.offset, back.value
                    )
    if gone:
        left_out(program.block, gone)


def _next_use(items: list[Item], start: int, base: Buffer) -> Item | None:
    """The next step that reads or writes a base, or the loop in which one does."""
    for item in items[start:]:
        if isinstance(item, (Read, Write)):
            if item.base is base:
                return item
        elif not isinstance(item, Step):
            for body in bodies_of(item):
                if any(isinstance(step, (Read, Write)) and step.base is base for _, step in steps_of(body)):
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


def propagate_copies(program: Program) -> None:
    """Let those who take a copy, or a value spread over more elements, take the value itself."""
    for _, step in steps_of(program.block):
        if isinstance(step, Compute):
            step.taken = tuple([_behind(value) for value in step.taken])
        elif isinstance(step, Write):
            step.value = _behind(step.value)


def _behind(value: Value) -> Value:
    while isinstance(value, Operand):
        step = value.step
        if type(step) is not Compute or step.expression != "{0}" or step.summed or -1 in step.out:
            break
        inner = step.taken[0]
        if not isinstance(inner, Operand) or getattr(inner.step, "dtype", None) != step.dtype:
            break
        along = dict(zip(step.out, value.labels))
        value = Operand(inner.step, tuple([along.get(label, -1) for label in inner.labels]))
    return value


def promote_to_scalars(program: Program, outside: set[str]) -> None:
    """Let bases of one number, which nobody looks at after the program has run, be variables of it.

    Arguments:
        program: the program.
        outside: the names of the bases that are looked at elsewhere.
    """
    kept = outside | {result.base for result in program.results}
    for _, step in steps_of(program.block):
        if isinstance(step, (Read, Write)) and (step.sizes or step.is_picked):
            kept.add(step.base.name)
    for name, base in program.bases.items():
        if base.kind == "made" and base.size == 1 and name not in kept and type(base.initial) is float:
            if base.dtype == float and base.initial == 0.0:
                base.kind = "register"


def bases_of(program: Program) -> set[str]:
    """The names of the bases that a program reads or writes."""
    return {step.base.name for _, step in steps_of(program.block) if isinstance(step, (Read, Write))}


def _settle(step: Compute) -> None:
    """An extremum, found before: the elements that are equal to it matter to its gradient only."""
    found = step.taken[1]
    assert isinstance(found, Operand)
    places = {label: place for place, label in enumerate(step.out) if label >= 0}
    labels = tuple([places.get(label, -1) for label in found.labels])
    step.sizes = out_sizes(step)
    step.taken = (Operand(found.step, labels),)
    step.out = tuple(range(len(step.sizes)))
    step.operator, step.expression = "detach", "{0}"


def _is_pure(step: Step) -> bool:
    return isinstance(step, (Compute, Read, Call, Pop))


def left_out(block: Block, gone: set[Step]) -> None:
    """Take steps out of a block, and of the blocks in it."""
    block.items = [item for item in block.items if item not in gone]
    for item in block.items:
        for body in bodies_of(item):
            left_out(body, gone)
