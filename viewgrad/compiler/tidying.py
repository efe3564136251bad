"""What is done to programs once their gradients are known: steps that nobody needs are left out."""

from __future__ import annotations

from .building import out_sizes
from .program import Block, Call, Compute, Operand, Pop, Program, Read, Step, Write, bodies_of, steps_of

__all__ = ["bases_of", "keep_in_variables", "tidied"]


def tidied(program: Program) -> None:
    """Leave out of a program what its gradient alone would have needed, and what nobody uses."""
    steps = [step for _, step in steps_of(program.block)]
    for step in steps:
        if type(step) is Compute and step.operator == "tied":
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
        _leave_out(program.block, gone)


def keep_in_variables(program: Program, outside: set[str]) -> None:
    """Let bases of one number, which nobody looks at after the program has run, be variables of it.

    Arguments:
        program: the program.
        outside: the names of the bases that are looked at elsewhere.
    """
    kept = outside | {result.base for result in program.results}
    for _, step in steps_of(program.block):
        if isinstance(step, (Read, Write)) and (step.sizes or step.places is not None):
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


def _leave_out(block: Block, gone: set[Step]) -> None:
    block.items = [item for item in block.items if item not in gone]
    for item in block.items:
        for body in bodies_of(item):
            _leave_out(body, gone)
