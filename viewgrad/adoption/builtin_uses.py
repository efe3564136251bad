"""Analysis of code objects: where a replaced built-in function cannot meet a tensor.

In adopted code, `float`, `complex`, `type`, `hasattr` and `getattr` are replaced by classes and functions that are
slower and differ from Python's only for tensors. But `float(i)` with the variable of a loop over a `range` never meets
a tensor. The analysis executes the instructions of a function symbolically, with these kinds of values:

    int          an int or bool
    plain        a number or string that is not a tensor
    range        a range, or an iterator over one
    pairs, pair  an `enumerate` object, and an item of it
    other        anything else, a tensor included

It is conservative: it knows nothing about the stack at the target of a jump, nor after an instruction not listed here.
"""

from __future__ import annotations

import builtins
import collections
import dis
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from .abstract_classes import is_added

REPLACED: Final = frozenset({"float", "complex", "type", "hasattr", "getattr"})
INT, PLAIN, RANGE, PAIRS, PAIR, OTHER = "int", "plain", "range", "pairs", "pair", "other"
NULL: Final = "null"  # the second item that a call has on the stack
RESULTS: Final = {"range": RANGE, "enumerate": PAIRS, "len": INT, "int": INT, "isinstance": INT}
ANALYZED: Final = REPLACED | RESULTS.keys()
ITEMS: Final = {RANGE: INT, PAIRS: PAIR}
# The ways in which a name is used: called with numbers, called, in `isinstance`, or otherwise.
WITH_NUMBERS, CALLED, CHECKED, OTHERWISE = range(4)

NO_EFFECT: Final = frozenset({"NOP", "RESUME", "PRECALL", "EXTENDED_ARG", "MAKE_CELL", "COPY_FREE_VARS", "NOT_TAKEN"})
FIXED_POPS: Final = {
    "LOAD_ATTR": 1, "LOAD_METHOD": 1, "LOAD_DEREF": 0, "BINARY_SUBSCR": 2, "BINARY_SLICE": 3, "COMPARE_OP": 2,
    "IS_OP": 2, "CONTAINS_OP": 2, "UNARY_NOT": 1, "UNARY_INVERT": 1, "TO_BOOL": 1, "STORE_SUBSCR": 3, "STORE_SLICE": 4,
    "STORE_ATTR": 2, "STORE_DEREF": 1, "STORE_GLOBAL": 1, "POP_TOP": 1, "LIST_APPEND": 1, "LIST_EXTEND": 1,
    "POP_JUMP_IF_TRUE": 1, "POP_JUMP_IF_FALSE": 1, "POP_JUMP_IF_NONE": 1, "POP_JUMP_IF_NOT_NONE": 1,
    "POP_JUMP_FORWARD_IF_TRUE": 1, "POP_JUMP_FORWARD_IF_FALSE": 1, "POP_JUMP_FORWARD_IF_NONE": 1,
    "POP_JUMP_FORWARD_IF_NOT_NONE": 1,
}  # fmt: skip
# Instructions that pop as many values as their argument says.
BUILDS: Final = frozenset({"BUILD_LIST", "BUILD_SLICE", "BUILD_SET", "BUILD_STRING"})


@attrs.frozen
class Name:
    """A built-in function or class on the stack."""

    name: str


@attrs.frozen
class Classes:
    """A tuple of built-in classes on the stack, for `isinstance`."""

    items: tuple[Any, ...]


@attrs.frozen
class Constant:
    """A string on the stack."""

    value: str


def faster_builtins(
    code: types.CodeType, is_builtin: Callable[[str], bool], functions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return faster objects for replaced built-in names, with the same results in one function.

    Arguments:
        code: the code of the function, without the functions nested in it.
        is_builtin: a function that returns whether a global name refers to Python's object.
        functions: by name, a function that can stand for a class that is only called.

    Returns:
        By name, Python's object or one of `functions`.
    """
    wanted = [name for name in REPLACED.intersection(code.co_names) if is_builtin(name)]
    if not wanted:
        return {}
    uses = _uses(code, is_builtin)
    found = {}
    for name in wanted:
        if uses[name] <= {WITH_NUMBERS, CHECKED}:
            found[name] = getattr(builtins, name)
        elif uses[name] <= {WITH_NUMBERS, CALLED} and name in functions:
            found[name] = functions[name]
    return found


def _uses(code: types.CodeType, is_builtin: Callable[[str], bool]) -> Mapping[str, set[int]]:
    """Return the ways in which a function uses built-in names."""
    instructions = [each for each in dis.get_instructions(code) if each.opname not in NO_EFFECT]
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    kinds = dict.fromkeys(code.co_varnames[:count], OTHER)
    while True:  # until the kinds of the variables agree with all assignments
        execution = _Execution(kinds, is_builtin)
        before = dict(kinds)
        execution.run(instructions)
        if kinds == before:
            return execution.uses


class _Execution:
    """One symbolic execution of the instructions of a function.

    Arguments:
        kinds: the kinds of the local variables, which assignments update; a variable not yet included is unassigned.
        is_builtin: a function that returns whether a global name refers to Python's object.
    """

    def __init__(self, kinds: dict[str, str], is_builtin: Callable[[str], bool]) -> None:
        self.uses: Final[dict[str, set[int]]] = collections.defaultdict(set)
        self._kinds: Final = kinds
        self._is_builtin: Final = is_builtin
        self._stack: Final[list[Any]] = []

    def run(self, instructions: list[dis.Instruction]) -> None:
        """Execute instructions in the order in which they are stored."""
        before = ""
        for each in instructions:
            if each.is_jump_target and not (each.opname == "FOR_ITER" and before == "GET_ITER"):
                self._forget()
            before = each.opname
            step = _STEPS.get(before)
            if step is not None:
                step(self, each)
                continue
            pops = each.arg if before in BUILDS else FIXED_POPS.get(before)
            if pops is None:
                self._forget()
            else:
                self._pop_unused(pops)
                self._stack.extend([OTHER] * (dis.stack_effect(each.opcode, each.arg, jump=False) + pops))
        self._forget()

    def _forget(self) -> None:
        self._pop_unused(len(self._stack))

    def _pop(self) -> Any:
        return self._stack.pop() if self._stack else OTHER

    def _pop_unused(self, count: int) -> None:
        for _ in range(count):
            self._note(self._pop(), OTHERWISE)

    def _note(self, value: Any, use: int) -> None:
        if isinstance(value, Classes):
            for each in value.items:
                self._note(each, use)
        elif isinstance(value, Name):
            self.uses[value.name].add(use)

    def _value(self) -> str:
        """Pop a value and return its kind."""
        value = self._pop()
        self._note(value, OTHERWISE)
        return _kind(value)

    def load_global(self, each: dis.Instruction) -> None:
        name = each.argval
        value = Name(name) if name in ANALYZED and self._is_builtin(name) else OTHER
        if dis.stack_effect(each.opcode, each.arg) == 1:
            self._stack.append(value)
        else:
            self._stack.extend((NULL, value))

    def push_null(self, each: dis.Instruction) -> None:
        self._stack.append(NULL)

    def load_constant(self, each: dis.Instruction) -> None:
        value, kind = each.argval, type(each.argval)
        self._stack.append(
            Constant(value) if kind is str else INT if kind in (int, bool) else PLAIN if kind is float else OTHER
        )

    def load_local(self, each: dis.Instruction) -> None:
        for name in _names(each):
            self._stack.append(self._kinds.get(name, INT))

    def store_local(self, each: dis.Instruction) -> None:
        for name in _names(each):
            self._store(name)

    def store_and_load_local(self, each: dis.Instruction) -> None:
        stored, loaded = _names(each)
        self._store(stored)
        self._stack.append(self._kinds.get(loaded, INT))

    def _store(self, name: str) -> None:
        kind = self._value()
        self._kinds[name] = _joined(kind, self._kinds.get(name, kind))

    def binary(self, each: dis.Instruction) -> None:
        kind = _joined(self._value(), self._value())
        keeps_integers = kind == INT and each.argrepr.rstrip("=") in ("+", "-", "*", "//", "%")
        self._stack.append(INT if keeps_integers else PLAIN if kind in (INT, PLAIN) else OTHER)

    def negate(self, each: dis.Instruction) -> None:
        kind = self._value()
        self._stack.append(kind if kind in (INT, PLAIN) else OTHER)

    def build_tuple(self, each: dis.Instruction) -> None:
        items = tuple(self._pop() for _ in range(each.arg or 0))
        self._stack.append(Classes(items))

    def unpack(self, each: dis.Instruction) -> None:
        kind, count = self._value(), each.arg or 0
        self._stack.extend([OTHER] * (count - 1) + [INT if kind == PAIR else OTHER] * (count > 0))

    def get_iterator(self, each: dis.Instruction) -> None:
        self._stack.append(self._value())

    def next_item(self, each: dis.Instruction) -> None:
        self._stack.append(ITEMS.get(_kind(self._stack[-1]) if self._stack else OTHER, OTHER))

    def call(self, each: dis.Instruction) -> None:
        args = [self._pop() for _ in range(each.arg or 0)][::-1]
        upper, lower = self._pop(), self._pop()
        called = lower if upper is NULL else upper if lower is NULL else OTHER
        if not isinstance(called, Name):
            for value in (upper, lower, *args):
                self._note(value, OTHERWISE)
            self._stack.append(OTHER)
            return
        name, kinds = called.name, list(map(_kind, args))
        is_check = name == "isinstance" and len(args) == 2
        for i, value in enumerate(args):
            self._note(value, CHECKED if is_check and i else OTHERWISE)
        if name == "type":
            with_numbers = kinds == [INT]  # `type` of a float is the class that replaces `float`
            self._note(called, WITH_NUMBERS if with_numbers else CALLED if len(args) == 1 else OTHERWISE)
        elif name in ("hasattr", "getattr"):
            is_known = len(args) > 1 and isinstance(args[1], Constant) and not is_added(args[1].value)
            with_numbers = is_known or (name == "getattr" and len(args) == 2)  # without a default
            self._note(called, WITH_NUMBERS if with_numbers else CALLED)
        else:
            with_numbers = all(kind in (INT, PLAIN) for kind in kinds)
            self._note(called, WITH_NUMBERS if with_numbers else CALLED)
        is_number = name in ("float", "complex") and with_numbers
        self._stack.append(RESULTS.get(name, PLAIN if is_number else OTHER))


def _names(each: dis.Instruction) -> tuple[str, ...]:
    """Return the variables of an instruction, which are two if instructions are combined."""
    return each.argval if isinstance(each.argval, tuple) else (each.argval,)


def _kind(value: Any) -> str:
    return PLAIN if isinstance(value, Constant) else value if isinstance(value, str) else OTHER


def _joined(one: str, other: str) -> str:
    if one == other:
        return one
    return PLAIN if {one, other} <= {INT, PLAIN} else OTHER


_STEPS: Final[dict[str, Callable[[_Execution, dis.Instruction], None]]] = {
    "LOAD_GLOBAL": _Execution.load_global,
    "PUSH_NULL": _Execution.push_null,
    "LOAD_CONST": _Execution.load_constant,
    "LOAD_SMALL_INT": _Execution.load_constant,
    **dict.fromkeys(
        ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_LOAD_FAST",
         "LOAD_FAST_BORROW_LOAD_FAST_BORROW"), _Execution.load_local,
    ),
    "STORE_FAST": _Execution.store_local,
    "STORE_FAST_STORE_FAST": _Execution.store_local,
    "STORE_FAST_LOAD_FAST": _Execution.store_and_load_local,
    "BINARY_OP": _Execution.binary,
    "UNARY_NEGATIVE": _Execution.negate,
    "BUILD_TUPLE": _Execution.build_tuple,
    "UNPACK_SEQUENCE": _Execution.unpack,
    "GET_ITER": _Execution.get_iterator,
    "FOR_ITER": _Execution.next_item,
    "CALL": _Execution.call,
}  # fmt: skip
