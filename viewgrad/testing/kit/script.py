"""A program that is executed line by line while it is written, so that a failing one can be printed and pasted."""

from __future__ import annotations

import functools
import re
from types import CodeType
from typing import Any, Final

import numpy as np

import viewgrad

from ...autograd.api import grad
from ...autograd.function.node import GRADIENT_IS_SHARED
from ...autograd.modes import forward_ad
from ...errors import FunctionError
from ...tensor.modes import is_grad_enabled
from ...type_aliases import Array
from .arguments import Example, Slot, mapped
from .failure import Failure
from .literals import NoLiteral, display, literal
from .operator_under_test import OperatorUnderTest, Refused, quiet, refusals
from .reproduction import definition_of

INCOMING: Final = "the incoming gradient stays the caller's"
MOST_ENTRIES: Final = 6  # the number of entries listed in a message


class Script:
    """Executed lines of Python, together with the constants they use.

    Arguments:
        subject: the operator, which is named `operator` in the program.
        title: the name of the property.
        example: the call under test.
        derived: whether the call was derived from the user's; an error then counts as a refusal, in the backward pass
            too.
    """

    def __init__(self, subject: OperatorUnderTest, title: str, example: Example, derived: bool = False) -> None:
        self.subject = subject
        self.title = title
        self.example = example
        self.derived = derived or bool(example.label)
        self.lines: list[str] = []
        self.preamble: list[str] = []  # lines that compute the expected values, at the beginning
        self.computed: list[str] = []  # the last lines, if the program computes the expected values
        self.constants: dict[str, Any] = {}
        self.names: dict[str, Any] = {
            "np": np,
            "vg": viewgrad,
            "grad": grad,
            "forward_ad": forward_ad,
            "operator": subject.function,
            **subject.named,
        }

    def let(self, name: str, value: Any) -> None:
        """Bind a name to a constant, written as a literal in the program."""
        self.constants[name] = value
        self.names[name] = value
        self.lines.append(f"{name} = \0{name}\0")

    def do(self, *lines: str) -> None:
        """Execute lines."""
        for line in lines:
            self.lines.append(line)
            try:
                with quiet():
                    exec(_compiled(line), self.names)
            except (Failure, Refused):
                raise
            except Exception as error:
                if self.derived:
                    told = "the backward pass refuses: " if "grad(" in line else ""
                    raise Refused(f"{told}{type(error).__name__}: {error}") from error
                self.fail(f"{type(error).__name__} at `{line.strip()}`: {error}", cause=error)

    def call(self, line: str) -> None:
        """Execute a line that calls the operator, which may reject the call.

        Raises:
            Refused: if the operator rejects the call.
        """
        self.lines.append(line)
        recording = left = is_grad_enabled()
        try:
            with quiet(), refusals():
                exec(_compiled(line), self.names)
                left = is_grad_enabled()
        except RuntimeError as error:
            if self.derived:
                raise Refused(f"{type(error).__name__}: {error}") from error
            self.fail(f"{type(error).__name__} at `{line.strip()}`: {error}", cause=error)
        if left != recording:
            self.title = "state between calls"
            self.lines.append(f"assert {'' if recording else 'not '}vg.is_grad_enabled()")
            self.fail(f"the call leaves grad mode {'on' if left else 'off'}; it was {'off' if left else 'on'} before")

    def __getitem__(self, expression: str) -> Any:
        return eval(_compiled(expression, "eval"), self.names)

    # -- the beginning of most programs --------------------------------------------------------------------------------

    def leaves(self, wanted: tuple[int, ...] | None = None) -> None:
        """Bind x0, x1, ... to tensors with the values of the example, and v0, v1, ... to the operands."""
        wanted = self.example.wanted if wanted is None else wanted
        for k, array in enumerate(self.example.arrays):
            self.let(f"a{k}", array)
            self.do(f"x{k} = vg.Tensor(a{k}{', requires_grad=True' if k in wanted else ''})")

    def expression(self, names: str = "x{}", function: str = "operator") -> str:
        """Return the call with tensors under the given names; written slots are cloned."""

        def text(value: Any) -> str:
            if isinstance(value, Slot):
                name = names.format(value.number)
                return f"{name}.clone()" if value.number in self.subject.written and names == "x{}" else name
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return self._kept(mapped(lambda leaf: leaf, value))
            if value is None or value is ... or type(value) in (bool, int, float, complex, str):
                return literal(value)
            return display(value, text) or self._kept(value)

        parts = [*map(text, self.example.args), *(f"{k}={text(v)}" for k, v in self.example.kwargs.items())]
        return f"{function}({', '.join(parts)})"

    def _kept(self, value: Any) -> str:
        for name, known in self.constants.items():
            if known is value:
                return name
        name = f"option{len(self.constants)}"
        self.let(name, value)
        # A constant must precede the line that uses it.
        return name

    # -- the end of most programs --------------------------------------------------------------------------------------

    def expect(
        self,
        expression: str,
        expected: Array | None,
        what: str,
        oracle: str,
        rtol: float = 1e-9,
        atol: Any = 1e-12,
        by: str = "",
    ) -> None:
        """Compare an array of the program with its expected value.

        Arguments:
            expression: the computed value: an array, a tensor, or None for zeros.
            expected: the expected value; None means zeros.
            what: a description of the value, for the message.
            oracle: the source of the expected value.
            rtol, atol: the tolerances.
            by: the expression for the expected value in the program; "" to write the number.
        """
        found = self[expression]
        found = None if found is None else np.asarray(found._array if hasattr(found, "_array") else found)
        if found is None and expected is None:
            return
        found = np.zeros_like(expected) if found is None else found
        expected = np.zeros_like(found) if expected is None else np.asarray(expected)
        if found.shape != expected.shape:
            self.lines.append(f"assert np.shape({expression}) == {expected.shape}, np.shape({expression})")
            self.fail(f"{what} has shape {found.shape}, not {expected.shape} ({oracle})")
        if found.dtype != expected.dtype:
            self.lines.append(f"assert {expression}.dtype == {expected.dtype.name!r}, {expression}.dtype")
            self.fail(f"{what} has dtype {found.dtype}, not {expected.dtype} ({oracle})")
        with np.errstate(all="ignore"):
            difference = np.abs(found.astype(complex) - expected.astype(complex))
            allowed = rtol * np.abs(expected).astype(float) + atol
            same = (
                (found == expected) | (np.isnan(found) & np.isnan(expected))
                if found.dtype.kind in "fc"
                else found == expected
            )
            wrong = ~((difference <= allowed) | same)
        if not wrong.any():
            return
        with np.errstate(all="ignore"):
            excess = np.where(wrong, np.nan_to_num(difference / np.maximum(allowed, 1e-300), nan=np.inf), -1.0)
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), found.shape))
        limit = float(np.broadcast_to(allowed, found.shape)[index])
        one, other = found[index].item(), expected[index].item()
        of = f"{expression}[{', '.join(map(str, index))}]" if index else expression
        if isinstance(other, float | complex) and other != other:
            last = "assert np.isnan(found), (found, expected)"
        elif isinstance(other, float) and np.isinf(other):
            last = "assert found == expected, (found, expected)"
        else:
            last = f"assert abs(found - expected) <= {limit:.3g}, (found, expected)"
        item = self._item(expression, index)
        if by:
            self.computed = [*self.lines, f"found = {item}", f"expected = {_element(by, index)}", last]
        self.lines += [f"found = {item}", f"expected = {literal(other)}", last]
        told = f"{what} is wrong: {of} is"
        if wrong.size > 1:
            told = f"{what} is wrong in {int(wrong.sum())} of {wrong.size} elements. The worst is {of}:"
        self.fail(
            f"{told} {one!r}, not {other!r} ({oracle})",
            element=index,
            found=one,
            expected=other,
            entries=_entries(expression, found, expected, excess) if found.size > 1 else (),
        )

    def _item(self, expression: str, index: tuple[int, ...]) -> str:
        array = f"{expression}.detach().numpy()" if hasattr(self[expression], "_array") else f"np.asarray({expression})"
        if self[expression] is None:
            array = f"0.0 if {expression} is None else {expression}.detach().numpy()"
        return f"{array}[{', '.join(map(str, index)) or '()'}].item()"

    def require(self, condition: str, what: str) -> None:
        """Fail unless the condition holds."""
        if not self[condition]:
            self.lines.append(f"assert {condition}")
            self.fail(what)

    def fail(self, message: str, cause: BaseException | None = None, **numbers: Any) -> None:
        """Raise a failure with the program so far."""
        writes_to_it = isinstance(cause, FunctionError) and GRADIENT_IS_SHARED in str(cause)
        raise Failure(INCOMING if writes_to_it else self.title, message, self, **numbers) from cause

    def body(self, computed: bool = False) -> list[str]:
        """Return the lines together with the constants they use.

        Arguments:
            computed: whether the program computes the expected values, if it can.
        """
        lines = self.computed if computed and self.computed else self.lines
        preamble = self.preamble if computed and self.computed else []
        used = "\n".join([*preamble, *(line for line in lines if "\0" not in line)])
        names = dict.fromkeys(line.split("\0")[1] for line in lines if "\0" in line)
        constants = [text for name in names if _mentions(used, name) for text in _bound(name, self.constants[name])]
        return [*constants, *preamble, *(line for line in lines if "\0" not in line)]


def _element(expression: str, index: tuple[int, ...]) -> str:
    """Return the expression for an element of an array as a Python number."""
    return f"{expression}[{', '.join(map(str, index)) or '()'}].item()"


def _entries(expression: str, found: Array, expected: Array, excess: Array) -> list[str]:
    """Return the differing elements in order (only the worst if there are many), and the number of omitted ones."""
    places = np.flatnonzero(excess.reshape(-1) >= 0)
    worst = sorted(places, key=lambda place: -excess.flat[place])[:MOST_ENTRIES]
    lines = []
    for place in sorted(worst):
        index = ", ".join(str(int(i)) for i in np.unravel_index(place, found.shape))
        lines.append(f"{expression}[{index}]: {found.flat[place].item()!r}, not {expected.flat[place].item()!r}")
    rest = len(places) - len(worst)
    return [*lines, f"and {rest} more"] if rest else lines


def _bound(name: str, value: Any) -> list[str]:
    """Return the lines that bind a constant: a literal, or an import or the source of an object or a function."""
    try:
        return [f"{name} = {literal(value)}"]
    except NoLiteral:
        return definition_of(name, value)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


@functools.lru_cache(maxsize=2048)
def _compiled(line: str, mode: str = "exec") -> CodeType:
    return compile(line, "<line of a check>", mode)
