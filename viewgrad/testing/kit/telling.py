"""What is told of a failure: the property, the call, the entries that differ, and a program that fails when pasted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...tensor.tensor import Tensor
from .arguments import Example, outputs_of
from .failure import Failure
from .literals import literal
from .reproduction import HEADER, definition_of, source_of
from .script import Script
from .subject import Subject, patience, quiet

__all__ = ["definitions_of", "fresh_source_of", "tell"]

PATIENCE = 6.0  # seconds for a program that is tried


def definitions_of(subject: Subject, given: Any) -> list[str]:
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


def fresh_source_of(subject: Subject, given: Any) -> str:
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
    failure: Failure, first: Failure, subject: Subject, earlier: Sequence[Example], definitions: list[str]
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
        program = next((text for text, copy in texts if all(_fails(copy, subject) for _ in range(4))), "")
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
    """The program of a failure, and then with calls before it, on which it may depend."""
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


def _fails(program: str, subject: Subject) -> bool:
    """Whether a program fails; taken for granted where it is not to be tried here."""
    if not subject.source or subject.operator is not None:
        return True
    try:
        with quiet(), patience(PATIENCE):
            exec(compile(program, "<program of a failure>", "exec"), {"__name__": "failure"})
    except Exception:
        return True
    return False
