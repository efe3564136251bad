"""The message of a failure: the property, the call, the entries that differ, and a program that reproduces it."""

from __future__ import annotations

import ast
import contextlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...operators.language.spec import Operator
from ...tensor.tensor import Tensor
from .arguments import Example, outputs_of
from .cpu_time import cpu_seconds, frozen_heap
from .failure import Failure
from .findings import STATE
from .literals import literal
from .operator_under_test import OperatorUnderTest, TookTooLong, patience, quiet
from .properties.registry import base_name
from .properties.threads import TITLE as THREADS
from .reproduction import HEADER, definition_of, source_of
from .script import Script

PATIENCE: Final = 3.0  # seconds for a trial run of a program
SEARCH: Final = 5.0  # CPU seconds for finding a program that fails
ONCE: Final = (
    "If its backward is not meant to be differentiated, decorate it with once_differentiable, or check with order=1."
)
SECOND: Final = "second derivatives"
TRIES: Final = 25
TRIES_OF_THREADS: Final = 3  # they run in turns, and so fail every time
OFTEN: Final = "for _ in range({}):  # it fails only sometimes, perhaps if memory is reused"
FILE: Final = "<program of a failure>"


def definitions_of(subject: OperatorUnderTest, given: Any, standalone: bool = False) -> dict[str, list[str]]:
    """Return the Python lines that define the operator and its helpers, by name.

    Arguments:
        subject: the operator.
        given: the operator as passed by the user.
        standalone: whether to include the source even if it can be imported.
    """
    operator = subject.operator
    thing, apply = given, ""
    if subject.custom is not None:
        thing, apply = subject.custom, ".apply"
    elif operator is not None:
        thing = operator if operator.user_defined else subject.function
    lines = {"operator": _define("operator", thing, apply, standalone)}
    for name in OTHER_NAMES:
        other = subject.named[name]
        if other is None:
            continue
        if name == "inplace" and operator is not None and other == operator.inplace:
            form = "operator.inplace" if operator.user_defined else f"vg.Tensor.{operator.name}_"
            lines[name] = [f"inplace = {form}"]
        else:
            lines[name] = _define(name, other, "", standalone)
    return lines


OTHER_NAMES: Final = ("inplace", "reference", "surrogate", "disturb")


def _define(name: str, thing: Any, apply: str, standalone: bool) -> list[str]:
    library = str(getattr(thing, "__module__", "viewgrad")).split(".")[0] in ("viewgrad", "numpy")
    if standalone and (not library or (isinstance(thing, Operator) and thing.user_defined)):
        try:
            return source_of(name, thing, apply, inline=True)
        except Exception:
            pass
    return definition_of(name, thing, apply)


def fresh_source_of(subject: OperatorUnderTest, given: Any) -> str:
    """Return Python code that defines the operator without importing it, or "" if it has no source."""
    custom = subject.custom
    written = given if custom is None else custom
    if str(getattr(written, "__module__", "viewgrad")).split(".")[0] == "viewgrad":
        return ""
    try:
        lines = source_of("operator", written, "" if custom is None else ".apply", inline=True)
    except Exception:
        return ""
    return "\n".join([*HEADER, *lines])


def _needed(definitions: Mapping[str, list[str]], body: Sequence[str]) -> list[str]:
    """Return the definitions that a program uses."""
    text = "\n".join(body)
    return [line for name, lines in definitions.items() if name == "operator" or f"{name}(" in text for line in lines]


def tell(
    failure: Failure,
    first: Failure,
    subject: OperatorUnderTest,
    earlier: Sequence[Example],
    definitions: Mapping[str, list[str]],
) -> Failure:
    """Complete the message and the program of a failure.

    Arguments:
        failure: the failure of the smallest call.
        first: the failure of the call in which it was found.
        subject: the operator.
        earlier: earlier calls, including the user's.
        definitions: the lines that define the operator and its helpers.

    Returns:
        The smaller of the two failures that has a failing program.
    """
    told, program, standalone, began = failure, "", "", cpu_seconds()
    copied = {**definitions_of(subject, subject.given, standalone=True)}
    if subject.source:
        # With the operator in its state before the first call.
        copied["operator"] = [subject.source.removeprefix("\n".join(HEADER) + "\n")]
    for candidate in dict.fromkeys((failure, first)):
        for computed in (True, False) if candidate.script is not None and candidate.script.computed else (False,):
            texts = zip(
                _programs(candidate, earlier, definitions, computed),
                _programs(candidate, earlier, copied, computed),
                strict=True,
            )  # the second program redefines the operator, without state from earlier calls
            pairs = (
                (text, copy)
                for text, copy in texts
                if cpu_seconds() - began < SEARCH and _always_fails(copy, candidate, subject)
            )
            program, standalone = next(pairs, ("", ""))
            if program:
                break
        if program:
            told = candidate
            break
    told.program = program or next(_programs(told, earlier, definitions, False))
    told.standalone_program = standalone or next(_programs(told, earlier, copied, False))
    script = told.script
    assert script is not None and first.script is not None
    told.entries = first.entries
    told.args = (_message(told, first, script, subject),)
    return told


def _message(told: Failure, first: Failure, script: Script, subject: OperatorUnderTest) -> str:
    where = f", with {script.example.label}" if script.example.label else ""
    assert first.script is not None
    found_in, smaller = str(first.script.example), str(script.example)
    entries = "".join(f"  {entry}\n" for entry in first.entries)
    return (
        f"{subject.name}: {told.reason}\n\n"
        f"Property: {told.property}{where}\nCall: {subject.name}({found_in})\n"
        + (f"Shrunk to: {subject.name}({smaller})\n" if smaller != found_in else "")
        + f"Derivative: {subject.place}\n"
        + (f"Where it differs in the call:\n{entries}" if entries else "")
        + f"\nThis program fails in the same way:\n\n{told.program}"
        + "".join(f"\n{hint}\n" for hint in _hints(told, script, subject))
    )


def _hints(failure: Failure, script: Script, subject: OperatorUnderTest) -> list[str]:
    """Return advice for a derived call, and for a backward pass that is probably meant for other calls."""
    name = base_name(failure.property)
    if script.derived:
        return [
            "You did not make this call. If the operator does not support it, raise an error in forward, or pass "
            f'valid=..., or switched_off={{"{name}": "why"}}.'
        ]
    if failure.without_gradient:
        return [
            f"If {failure.without_gradient} is a constant that gets no gradient, call check_operator with "
            "vg.Tensor(..., requires_grad=True) for the other arguments; then only these are differentiated."
        ]
    return [ONCE] if name == SECOND and subject.custom is not None else []


def together(failures: Sequence[Failure]) -> Failure:
    """Return the first of several failures, with the messages of all.

    Arguments:
        failures: the failures with their messages, most basic property first.
    """
    first, *rest = failures
    first.others = tuple(rest)
    if rest:
        names = ", ".join(failure.property for failure in failures)
        messages = f"\n\n{'-' * 80}\n".join(str(failure) for failure in failures)
        first.args = (f"{len(failures)} properties do not hold: {names}\n\n{messages}",)
    return first


def _programs(
    failure: Failure, earlier: Sequence[Example], definitions: Mapping[str, list[str]], computed: bool
) -> Iterator[str]:
    """Yield the program of a failure, then the program after other calls, then repeated.

    A program with threads is yielded alone, since threads that wait use no CPU time, which limits the search.
    """
    script = failure.script
    assert script is not None
    body = script.body(computed)
    lines = _needed(definitions, body)
    place = next((number for number, line in enumerate(body) if "operator(" in line), len(body))
    many, unrecorded = "for _ in range(100):\n    ", "with vg.no_grad():\n    "
    calls = [
        [],
        [many + script.expression()],
        [unrecorded + script.expression()],
        *(_call(script, example) for example in earlier),
        *(_run(script, example) for example in earlier[:3]),
    ]
    alone = base_name(script.title) == THREADS
    for before in calls[:1] if alone else calls:
        yield "\n".join([*HEADER, "", *lines, "", *body[:place], *before, *body[place:]]) + "\n"
    if alone:
        return
    for times, before in [(1000, []), *((100, _passing(script, example)) for example in [*_unlike(script), *earlier])]:
        repeated = textwrap.indent("\n".join([*before, *body]), "    ")
        yield "\n".join([*HEADER, "", *lines, "", OFTEN.format(times), repeated]) + "\n"


def _unlike(script: Script) -> list[Example]:
    """Return the call with other values, or None if none can be changed."""
    arrays = [np.asarray(0.75 * a, a.dtype) if a.dtype.kind in "fc" else a for a in script.example.arrays]
    return [script.example.with_arrays(arrays)] if script.example.wanted else []


def _passing(script: Script, example: Example) -> list[str]:
    """Return the lines of another call whose tensors are freed, so that their memory may be reused."""
    names = ", ".join(f"b{k}" for k in range(len(example.arrays)))
    return [*_call(script, example), f"del {names}"] if names else _call(script, example)


def _run(script: Script, example: Example) -> list[str]:
    """Return the lines of another call and its backward pass."""
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
    """Return the lines of another call, of tensors b0, b1, ..."""
    leaves = [
        f"b{k} = vg.Tensor({literal(array)}{', requires_grad=True' if k in example.wanted else ''})"
        for k, array in enumerate(example.arrays)
    ]
    call = Script(script.subject, "", example)
    call.lines.append(call.expression("b{}"))
    return [*leaves, *call.body()]


def _always_fails(program: str, failure: Failure, subject: OperatorUnderTest) -> bool:
    """Return whether a program fails every time it is tried.

    A result that differs from run to run, as of a random function, agrees by chance sooner or later. The program of
    such a result has to repeat its last statement.
    """
    began = cpu_seconds()
    results: set[tuple[bytes, ...]] = set()
    is_repeated = isinstance(ast.parse(program).body[-1], ast.For)
    with frozen_heap() if "gc.collect()" in program else contextlib.nullcontext():
        for tries in range(TRIES_OF_THREADS if base_name(failure.property) == THREADS else TRIES):
            names: dict[str, Any] = {"__name__": "failure"}
            if not _fails(program, failure, subject, names):
                return False
            results.add(tuple([output._array.tobytes() for _, output in outputs_of(names.get("y"))]))
            if len(results) > 1 and base_name(failure.property) == STATE and not is_repeated:
                return False
            if tries and cpu_seconds() - began > 1.0:
                break
    return True


def _fails(program: str, failure: Failure, subject: OperatorUnderTest, names: dict[str, Any]) -> bool:
    """Return whether a program, run with a namespace, fails as expected; one that is not tried here is assumed to."""
    if not subject.source or subject.operator is not None:
        return True
    try:
        with quiet(), patience(PATIENCE):
            exec(compile(program, FILE, "exec"), names)
    except Exception as error:
        expected = AssertionError if failure.__cause__ is None else type(failure.__cause__)
        return type(error) is expected and _in_last_statement(error, program)
    except TookTooLong:
        pass
    return False


def _in_last_statement(error: Exception, program: str) -> bool:
    """Return whether an error was raised by the last statement of a program."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
        trace = trace.tb_next
    last = ast.parse(program).body[-1]
    while isinstance(last, ast.For):
        last = last.body[-1]
    return trace is not None and trace.tb_lineno >= last.lineno
