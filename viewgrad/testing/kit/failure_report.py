"""What is told of a failure: the property, the call, the entries that differ, and a program that fails when pasted."""

from __future__ import annotations

import ast
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...tensor.tensor import Tensor
from .arguments import Example, outputs_of
from .failure import Failure
from .literals import literal
from .operator_under_test import OperatorUnderTest, patience, quiet
from .reproduction import HEADER, definition_of, source_of
from .script import Script

__all__ = ["definitions_of", "fresh_source_of", "tell"]

PATIENCE: Final = 6.0  # seconds for a program that is tried
TRIES: Final = 25
OFTEN: Final = "for _ in range({}):  # it fails by chance, or where an object lies where another one has been"
FILE: Final = "<program of a failure>"


def definitions_of(subject: OperatorUnderTest, given: Any) -> list[str]:
    """The operator as Python, as it is before the check."""
    operator = subject.operator
    if subject.custom is not None:
        lines = definition_of("operator", subject.custom, ".apply")
    elif operator is not None:
        lines = definition_of("operator", operator if operator.user_defined else subject.function)
    else:
        lines = definition_of("operator", given)
    if subject.inplace is None:
        return lines
    if operator is not None and subject.inplace == operator.inplace:
        return [*lines, f"inplace = {'operator.inplace' if operator.user_defined else f'vg.Tensor.{operator.name}_'}"]
    return [*lines, *definition_of("inplace", subject.inplace)]


def fresh_source_of(subject: OperatorUnderTest, given: Any) -> str:
    """Python that defines the operator anew; "" where it cannot be had."""
    custom = subject.custom
    written = given if custom is None else custom
    if str(getattr(written, "__module__", "viewgrad")).split(".")[0] == "viewgrad":
        return ""
    try:
        lines = source_of("operator", written, "" if custom is None else ".apply")
    except Exception:
        return ""
    return "\n".join([*HEADER, *lines])


def tell(
    failure: Failure, first: Failure, subject: OperatorUnderTest, earlier: Sequence[Example], definitions: list[str]
) -> Failure:
    """Complete the message of a failure, and its program.

    Arguments:
        failure: that of the smallest call.
        first: that of the call in which it was found.
        subject: the operator.
        earlier: calls before, the one that the user gave among them.
        definitions: the lines that define it.

    Returns:
        One of the two failures: the smallest of which there is a program that fails.
    """
    told, program = failure, ""
    copied = [subject.source, *(line for line in definitions if line.startswith("inplace = "))]
    for candidate in dict.fromkeys((failure, first)):
        texts = zip(
            _programs(candidate, earlier, definitions), _programs(candidate, earlier, copied), strict=True
        )  # the second defines the operator anew, whatever the one that was checked may remember
        program = next((text for text, copy in texts if _always_fails(copy, candidate, subject)), "")
        if program:
            told = candidate
            break
    told.program = program or next(_programs(told, earlier, definitions))
    script = told.script
    assert script is not None and first.script is not None
    where = f", with {script.example.label}" if script.example.label else ""
    entries = "".join(f"  {entry}\n" for entry in first.entries)
    told.entries = first.entries
    found_in, smaller = str(first.script.example), str(script.example)
    told.args = (
        f"{subject.name}: {told.reason}\n\n"
        f"Property: {told.property}{where}\nCall: {subject.name}({found_in})\n"
        + (f"Shrunk to: {subject.name}({smaller})\n" if smaller != found_in else "")
        + f"Derivative: {subject.place}\n"
        + (f"Where it differs in the call:\n{entries}" if entries else "")
        + f"\nThis program fails in the same way:\n\n{told.program}",
    )
    return told


def _programs(failure: Failure, earlier: Sequence[Example], definitions: list[str]) -> Iterator[str]:
    """The program of a failure, then with calls before it, on which it may depend, then many times over."""
    script = failure.script
    assert script is not None
    body = script.body()
    lines = [
        line
        for line in definitions
        if not line.startswith("inplace = ") or any("inplace(" in written for written in body)
    ]
    place = next((number for number, line in enumerate(body) if "operator(" in line), len(body))
    many, unrecorded = "for _ in range(100):\n    ", "with vg.no_grad():\n    "
    calls = [
        [],
        [many + script.expression()],
        [unrecorded + script.expression()],
        *(_call(script, example) for example in earlier),
        *(_run(script, example) for example in earlier[:3]),
    ]
    for before in calls:
        yield "\n".join([*HEADER, "", *lines, "", *body[:place], *before, *body[place:]]) + "\n"
    for times, before in [(1000, []), *((100, _passing(script, example)) for example in [*_unlike(script), *earlier])]:
        repeated = textwrap.indent("\n".join([*before, *body]), "    ")
        yield "\n".join([*HEADER, "", *lines, "", OFTEN.format(times), repeated]) + "\n"


def _unlike(script: Script) -> list[Example]:
    """The call with other values, where it has any that can be changed."""
    arrays = [np.asarray(0.75 * a, a.dtype) if a.dtype.kind in "fc" else a for a in script.example.arrays]
    return [script.example.with_arrays(arrays)] if script.example.wanted else []


def _passing(script: Script, example: Example) -> list[str]:
    """The lines of another call, of whose tensors nothing is left: others may lie where they have been."""
    names = ", ".join(f"b{k}" for k in range(len(example.arrays)))
    return [*_call(script, example), f"del {names}"] if names else _call(script, example)


def _run(script: Script, example: Example) -> list[str]:
    """The lines of another call and its backward pass."""
    *leaves, call = _call(script, example)
    try:
        tensors = [Tensor(array, requires_grad=k in example.wanted) for k, array in enumerate(example.arrays)]
        found = outputs_of(example.call(script.subject.function, tensors))
    except Exception:
        return []
    outputs = ", ".join(f"before{path}" for path, output in found if output.requires_grad)
    names = ", ".join(f"b{k}" for k in example.wanted)
    return [
        *leaves,
        f"before = {call}",
        f"grad([{outputs}], [{names}], [vg.ones_like(out) for out in [{outputs}]], allow_unused=True)",
    ]


def _call(script: Script, example: Example) -> list[str]:
    """The lines of another call, of tensors b0, b1, ..."""
    leaves = [
        f"b{k} = vg.Tensor({literal(array)}{', requires_grad=True' if k in example.wanted else ''})"
        for k, array in enumerate(example.arrays)
    ]
    call = Script(script.subject, "", example)
    call.lines.append(call.expression("b{}"))
    return [*leaves, *call.body()]


def _always_fails(program: str, failure: Failure, subject: OperatorUnderTest) -> bool:
    """Whether a program fails as often as it is tried: many times where that is quick, as it may draw at random."""
    began = time.process_time()
    for tries in range(TRIES):
        if not _fails(program, failure, subject):
            return False
        if tries and time.process_time() - began > 1.0:
            break
    return True


def _fails(program: str, failure: Failure, subject: OperatorUnderTest) -> bool:
    """Whether a program fails as it is to; taken for granted where it is not to be tried here."""
    if not subject.source or subject.operator is not None:
        return True
    try:
        with quiet(), patience(PATIENCE):
            exec(compile(program, FILE, "exec"), {"__name__": "failure"})
    except Exception as error:
        expected = AssertionError if failure.__cause__ is None else type(failure.__cause__)
        return type(error) is expected and _in_last_statement(error, program)
    return False


def _in_last_statement(error: Exception, program: str) -> bool:
    """Whether an error has come out of the last statement of a program, which may stand in a loop."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
        trace = trace.tb_next
    last = ast.parse(program).body[-1]
    while isinstance(last, ast.For):
        last = last.body[-1]
    return trace is not None and trace.tb_lineno >= last.lineno
