"""The text of `explain()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .cache import Specialization, State
from .loop_ir import Block, Compute, ForLoop, IrregularLoop, Program, Push, Step, steps_of

FEW: Final = 16  # the number of operations in eager mode, with gradient, that take as long as calling a program


def explained(name: str, specializations: Sequence[Specialization]) -> str:
    """Describe what was compiled.

    Arguments:
        name: the name of the function.
        specializations: its specializations.
    """
    return "\n\n".join([_specialization(name, each) for each in specializations])


def _specialization(name: str, of: Specialization) -> str:
    lines = [f"{name}({', '.join(_kind(kind) for kind in of.key[1])})"]
    if of.state is State.EAGER:
        lines.append(f"  runs eagerly: {of.fallback_reason}")
    elif of.program is None:
        lines.append("  traced; the next call is compiled" if of.trace else "  the next call is traced")
    else:
        program = of.program
        steps = sum(1 for _ in steps_of(program.program.block))
        lines.append(
            f"  compiled, {program.executor.name} executor: {program.traced_operations} operations traced, {steps} left"
        )
        if program.traced_operations < FEW:
            lines.append(f"  little to gain: calling the program costs as much as about {FEW} eager operations")
        if program.remark:
            lines.append(f"  runs as Python: {program.remark}")
        lines += _loops(program.program, program.program.block, "  ")
        if program.adjoint is None:
            lines.append("  no gradient is needed")
        elif program.tapes:
            lines.append(f"  tape: {_bytes(program.tape_bytes)}")
            for tape in program.tapes.values():
                where = _where(program.program, tape.step)
                lines.append(f"    {_name(tape.step)}, {where}: {_bytes(8 * tape.entries)}")
        else:
            lines.append("  tape: nothing")
    for reason, count in of.failures.items():
        lines.append(f"  ran eagerly {count} times: {reason}")
    if of.cooldown:
        lines.append(f"  runs eagerly for {of.cooldown} further calls")
    return "\n".join(lines)


def _loops(program: Program, block: Block, indent: str) -> list[str]:
    lines = []
    straight = 0
    for item in block.items:
        if isinstance(item, ForLoop):
            if straight:
                lines.append(f"{indent}{straight} operations")
                straight = 0
            lines.append(f"{indent}{item.count} times, {_lines(program, item.body)}:")
            lines += _loops(program, item.body, indent + "  ")
        elif isinstance(item, IrregularLoop):
            if straight:
                lines.append(f"{indent}{straight} operations")
                straight = 0
            if len(item.bodies) == 1:
                (body,) = item.bodies
                lines.append(f"{indent}{len(item.kinds)} times, with indices from tables, {_lines(program, body)}:")
                lines += _loops(program, body, indent + "  ")
                continue
            lines.append(f"{indent}{len(item.kinds)} times, one of {len(item.bodies)} bodies:")
            for number, body in enumerate(item.bodies):
                lines.append(f"{indent}  {int((item.kinds == number).sum())} times, {_lines(program, body)}:")
                lines += _loops(program, body, indent + "    ")
        elif not isinstance(item, Push):
            straight += 1
    if straight:
        lines.append(f"{indent}{straight} operation{'s' * (straight > 1)}")
    return lines


def _lines(program: Program, block: Block) -> str:
    found = [
        program.locations[step.location] for _, step in steps_of(block) if 0 <= step.location < len(program.locations)
    ]
    if not found:
        return "unknown lines"
    file = max({name for name, _ in found}, key=[name for name, _ in found].count)
    numbers = [line for name, line in found if name == file]
    short = file.rpartition("/")[2]
    if min(numbers) == max(numbers):
        return f"{short}:{min(numbers)}"
    return f"{short}:{min(numbers)}-{max(numbers)}"


def _where(program: Program, step: Step) -> str:
    if not 0 <= step.location < len(program.locations):
        return "unknown line"
    file, line = program.locations[step.location]
    return f"{file.rpartition('/')[2]}:{line}"


def _name(step: Step) -> str:
    return step.operator if isinstance(step, Compute) else "a value that is overwritten"


def _kind(kind: Any) -> str:
    if kind[0] == "static":
        return f"static {np.dtype(kind[1]).name}{list(kind[2])}"
    if len(kind) == 4:
        shape, dtype, grad, layout = kind
        suffix = " grad" if grad else ""
        return f"{np.dtype(dtype).name}{list(shape)}{suffix}{'' if layout is None else f' strides {list(layout)}'}"
    return str(kind[1])


def _bytes(count: int) -> str:
    if count < 10_000:
        return f"{count} bytes"
    return f"{count / 1e3:.0f} kB" if count < 10_000_000 else f"{count / 1e6:.0f} MB"
