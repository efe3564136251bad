"""What is told of a failure: the property, the call, the entries that differ, and a program that fails when pasted."""

from __future__ import annotations

from typing import Any

from .failure import Failure
from .reproduction import HEADER, definition_of, source_of
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
    if str(getattr(given, "__module__", "viewgrad")).split(".")[0] == "viewgrad":
        return ""
    try:
        custom = subject.custom
        lines = source_of("operator", given if custom is None else custom, "" if custom is None else ".apply")
    except Exception:
        return ""
    return "\n".join([*HEADER, *lines])


def tell(failure: Failure, first: Failure, subject: Subject, definitions: list[str]) -> None:
    """Complete the message of a failure, and its program.

    Arguments:
        failure: that of the smallest call.
        first: that of the call in which it was found.
        subject: the operator.
        definitions: the lines that define it.
    """
    script = failure.script
    assert script is not None
    body = script.body()
    lines = [
        line
        for line in definitions
        if not line.startswith("inplace = ") or any("inplace(" in written for written in body)
    ]
    failure.program = "\n".join([*HEADER, "", *lines, "", *body]) + "\n"
    if not _fails(failure.program, subject):  # it depends on calls before
        place = next((number for number, line in enumerate(body) if "operator(" in line), len(body))
        before = f"for _ in range(100):\n    {script.expression()}"
        failure.program = "\n".join([*HEADER, "", *lines, "", *body[:place], before, *body[place:]]) + "\n"
    where = f", with {script.example.label}" if script.example.label else ""
    entries = "".join(f"  {entry}\n" for entry in first.entries)
    assert first.script is not None
    found_in = str(first.script.example)
    smaller = str(script.example)
    failure.args = (
        f"{subject.name}: {failure.reason}\n\n"
        f"Property: {failure.property}{where}\nCall: {subject.name}({found_in})\n"
        + (f"Shrunk to: {subject.name}({smaller})\n" if smaller != found_in else "")
        + f"Derivative: {subject.place}\n"
        + (f"Where it differs in the call:\n{entries}" if entries else "")
        + f"\nThis program fails in the same way:\n\n{failure.program}",
    )


def _fails(program: str, subject: Subject) -> bool:
    """Whether a program fails; taken for granted where it is not to be tried here."""
    if not subject.source or subject.operator is not None or "import sys; sys.path" in program:
        return True
    try:
        with quiet(), patience(PATIENCE):
            exec(compile(program, "<program of a failure>", "exec"), {"__name__": "failure"})
    except Exception:
        return True
    return False
