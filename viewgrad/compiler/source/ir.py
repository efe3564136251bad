"""The intermediate representation: a structured program of numbers and arrays.

Expressions are trees. A statement contains at most one operation on arrays; trees of elementwise operations are kept
whole. Loops and branches are statements with blocks, and there are no jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from .value_types import INT, Arr, Kind, Num

# -- expressions -------------------------------------------------------------------------------------------------------


@attrs.frozen
class Const:
    """A known number."""

    value: Any
    kind: Kind


@attrs.frozen
class Var:
    """The value of a variable."""

    name: str
    kind: Kind


@attrs.frozen
class Dim:
    """The length of an array along an axis."""

    base: Var
    axis: int

    kind: Kind = INT


@attrs.frozen
class Slice:
    """A slice in an index; None for omitted parts."""

    low: Any = None
    high: Any = None
    step: Any = None


@attrs.frozen
class New:
    """A new axis in an index."""


NEW: Final = New()
FULL: Final = Slice()


@attrs.frozen
class Get:
    """An element of an array, or a view, or a copy by an index array or a mask.

    Attributes:
        base: the array.
        index: an item for each of its axes, and `NEW`.
        safe: whether the index is known to be in range and not negative.
    """

    base: Var
    index: tuple[Any, ...]
    kind: Kind
    safe: bool = False

    @property
    def is_basic(self) -> bool:
        """Return whether the result is an element or a view."""
        return not any(isinstance(getattr(item, "kind", None), Arr) for item in self.index)

    @property
    def is_view(self) -> bool:
        """Return whether the result is a view."""
        return isinstance(self.kind, Arr) and self.is_basic


@attrs.frozen
class Op:
    """An elementwise operator, identified by the name of its row."""

    name: str
    args: tuple[Any, ...]
    kind: Kind


@attrs.frozen
class Lazy:
    """The operators `and`, `or`, `not` and `if` (test, then, otherwise), which evaluate only the operands they need."""

    name: str
    args: tuple[Any, ...]
    kind: Kind


@attrs.frozen
class Call:
    """A call of a function of arrays, such as a creation function, a view, a reduction or a product.

    Attributes:
        name: the name of the function in NumPy, such as "linalg.solve".
        args: the arguments: expressions or tuples of expressions.
        options: the names and values of known options.
        is_view: whether the result is a view of the first argument.
    """

    name: str
    args: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    kind: Any  # a kind or a tuple of kinds
    is_view: bool = False


@attrs.frozen
class Pull:
    """The gradient of an operand of an elementwise operator, by the formula of its row.

    Attributes:
        name: the name of the operator.
        number: the number of the operand.
        args: the operands; None for those that the formula does not read.
        result: the value of the operator, or None if the formula does not read it.
        grad: the gradient of the operator's value.
    """

    name: str
    number: int
    args: tuple[Any, ...]
    result: Any
    grad: Any
    kind: Kind


Expr = Const | Var | Dim | Get | Op | Lazy | Call | Pull


def children(expr: Any) -> Iterator[Any]:
    """Yield the operands of an expression."""
    if isinstance(expr, (Op, Lazy)):
        yield from expr.args
    elif isinstance(expr, Call):
        for arg in expr.args:
            if isinstance(arg, tuple):
                yield from arg
            else:
                yield arg
    elif isinstance(expr, Get):
        yield expr.base
        for item in expr.index:
            yield from index_parts(item)
    elif isinstance(expr, Dim):
        yield expr.base
    elif isinstance(expr, Pull):
        yield from (arg for arg in expr.args if arg is not None)
        if expr.result is not None:
            yield expr.result
        yield expr.grad


def index_parts(item: Any) -> Iterator[Any]:
    """Yield the expressions in an item of an index."""
    if isinstance(item, Slice):
        yield from (part for part in (item.low, item.high, item.step) if part is not None)
    elif item is not NEW:
        yield item


def nodes(expr: Any) -> Iterator[Any]:
    """Yield an expression and all its subexpressions."""
    yield expr
    for child in children(expr):
        yield from nodes(child)


def mapped(expr: Any, change: Callable[[Any], Any]) -> Any:
    """Return the expression with `change` applied to its subexpressions, innermost first.

    Arguments:
        expr: the expression.
        change: a function that returns the replacement of a node.
    """

    def item(each: Any) -> Any:
        if isinstance(each, Slice):
            return Slice(*[None if part is None else mapped(part, change) for part in (each.low, each.high, each.step)])
        return each if each is NEW else mapped(each, change)

    if isinstance(expr, (Op, Lazy)):
        expr = attrs.evolve(expr, args=tuple([mapped(arg, change) for arg in expr.args]))
    elif isinstance(expr, Call):
        args = [tuple([mapped(a, change) for a in arg]) if isinstance(arg, tuple) else mapped(arg, change)
                for arg in expr.args]
        expr = attrs.evolve(expr, args=tuple(args))
    elif isinstance(expr, Get):
        expr = attrs.evolve(expr, base=mapped(expr.base, change), index=tuple([item(each) for each in expr.index]))
    elif isinstance(expr, Dim):
        expr = Dim(mapped(expr.base, change), expr.axis)
    elif isinstance(expr, Pull):
        args = [None if arg is None else mapped(arg, change) for arg in expr.args]
        expr = attrs.evolve(
            expr, args=tuple(args), grad=mapped(expr.grad, change),
            result=None if expr.result is None else mapped(expr.result, change),
        )
    return change(expr)


# -- statements --------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Let:
    """A binding of a variable to a number, a new array, or a view."""

    name: str
    value: Any
    line: int = 0


@attrs.define(eq=False)
class Set:
    """A write to an array.

    Attributes:
        base: the array.
        index: the index of the written part.
        value: the value to write.
        op: "add" or "sub" to add to or subtract from the current value.
        safe: whether the index is known to be in range, and not negative.
    """

    base: Var
    index: tuple[Any, ...]
    value: Any
    op: str = ""
    line: int = 0
    safe: bool = False


@attrs.define(eq=False)
class Check:
    """A check that ends the program unless a condition is true; the function then runs eagerly.

    Attributes:
        test: the condition.
        of_index: whether it checks that an index is in range.
        of_capacity: whether it checks the capacity of a list; if it fails, the program is rerun with more capacity.
    """

    test: Any
    line: int = 0
    of_index: bool = False
    of_capacity: bool = False


@attrs.define(eq=False)
class For:
    """A loop over `range(low, high, step)`.

    Attributes:
        name: the variable.
        low, high: expressions that the body does not change.
        step: a known number.
        body: the statements.
        last: the variable for the last value of the loop variable, or `low - step`; None if not needed.
        stop: the variable that ends the loop after an iteration that sets it.
        down: whether it runs backwards, from `last` if there is one.
    """

    name: str
    low: Any
    high: Any
    step: int
    body: list[Any]
    last: str | None = None
    stop: str | None = None
    down: bool = False
    line: int = 0


@attrs.define(eq=False)
class While:
    """A loop that runs while a condition is true.

    Attributes:
        test: the condition.
        body: the statements.
        count: the variable that counts the iterations; None if not needed.
        stop: the variable that ends the loop after an iteration that sets it.
        down: whether it undoes the `count` iterations.
    """

    test: Any
    body: list[Any]
    count: str | None = None
    stop: str | None = None
    down: bool = False
    line: int = 0


@attrs.define(eq=False)
class If:
    """A branch."""

    test: Any
    then: list[Any]
    other: list[Any]
    line: int = 0


@attrs.define(eq=False)
class Push:
    """A push of a value to the tape."""

    value: Any
    line: int = 0


@attrs.define(eq=False)
class Pop:
    """A pop of the last value on the tape, into a variable or an element of an array."""

    target: Any  # Var or Get
    line: int = 0


@attrs.define(eq=False)
class Add:
    """An addition to an array of adjoints, after summation over broadcast axes."""

    target: Any  # Var or Get
    value: Any
    line: int = 0


@attrs.define(eq=False)
class PullCall:
    """A binding of variables to the gradients of the arguments of a call.

    Attributes:
        names: the names of the variables, one for each argument; None if its gradient is not wanted.
        call: the call.
        grads: the gradients of its results.
    """

    names: tuple[str | None, ...]
    call: Call
    grads: tuple[Any, ...]
    line: int = 0


@attrs.define(eq=False)
class LetMany:
    """A binding of variables to the results of a call."""

    names: tuple[str, ...]
    value: Call
    line: int = 0


@attrs.define(eq=False)
class Segmented:
    """A loop that is run in segments, so that its tape stays within a limit.

    Attributes:
        name: the name of the object that runs the loop.
        low, high: the bounds of a `For`; None for a `While`.
        step: the step of a `For`.
        plain: iterations without the tape.
        taped: iterations with the tape.
        first, until: the variables for the bounds of a segment; for a `While`, the second is a number of iterations.
        ran: the variable that stores how far a segment ran; None if it always runs to its end.
        stop: the variable that ends the loop early.
        state: the state to restore before iterations are run again.
    """

    name: str
    low: Any
    high: Any
    step: int
    plain: list[Any]
    taped: list[Any]
    first: str
    until: str
    ran: str | None
    stop: str | None
    state: Any
    line: int = 0


@attrs.define(eq=False)
class SegmentedBack:
    """The reverse of a loop that runs in segments.

    Attributes:
        loop: the loop.
        body: the reverse of a segment.
    """

    loop: Segmented
    body: list[Any]
    line: int = 0


Block = list[Any]


# The fields of statements that contain blocks.
BLOCKS: Final[dict[type, tuple[str, ...]]] = {
    For: ("body",), While: ("body",), SegmentedBack: ("body",), Segmented: ("plain", "taped"), If: ("then", "other"),
}


def blocks_of(stmt: Any) -> Sequence[Block]:
    """Return the blocks inside a statement."""
    return [getattr(stmt, name) for name in BLOCKS.get(type(stmt), ())]


def with_statements(block: Block, replacements: Mapping[int, Any]) -> Block:
    """Return a block with some statements without nested blocks replaced; unchanged parts are not copied.

    Arguments:
        block: the block.
        replacements: the new statements, by the `id` of the old ones.
    """
    found: Block = []
    for stmt in block:
        inner = {name: with_statements(getattr(stmt, name), replacements) for name in BLOCKS.get(type(stmt), ())}
        if any(one is not other for name, new in inner.items() for one, other in zip(new, getattr(stmt, name))):
            stmt = attrs.evolve(stmt, **inner)
        found.append(replacements.get(id(stmt), stmt))
    return found


def with_loops(block: Block, change: Callable[[Any, tuple[Any, ...]], Block], loops: tuple[Any, ...] = ()) -> Block:
    """Return a block with its outermost loops replaced by other statements.

    Arguments:
        block: the block.
        change: a function that returns the statements for a loop, given the enclosing loops.
        loops: the loops that enclose the block.
    """
    found: Block = []
    for stmt in block:
        if isinstance(stmt, (For, While)):
            found += change(stmt, loops)
        elif isinstance(stmt, If):
            then, other = with_loops(stmt.then, change, loops), with_loops(stmt.other, change, loops)
            found.append(attrs.evolve(stmt, then=then, other=other))
        else:
            found.append(stmt)
    return found


def targets_text(names: Sequence[str]) -> str:
    """Return the source of the targets of a tuple assignment, which may have a single element."""
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)


def statements(block: Block) -> Iterator[Any]:
    """Yield the statements of a block and of all blocks inside."""
    for stmt in block:
        yield stmt
        for inner in blocks_of(stmt):
            yield from statements(inner)


def expressions_of(stmt: Any) -> Iterator[Any]:
    """Yield the expressions that a statement reads itself, excluding its blocks."""
    if isinstance(stmt, (Let, LetMany, Push)):
        yield stmt.value
    elif isinstance(stmt, Set):
        for item in stmt.index:
            yield from index_parts(item)
        yield stmt.value
    elif isinstance(stmt, (Check, While, If)):
        yield stmt.test
    elif isinstance(stmt, For) or (isinstance(stmt, Segmented) and stmt.low is not None):
        yield from (stmt.low, stmt.high)
    elif isinstance(stmt, Pop):
        if isinstance(stmt.target, Get):
            for item in stmt.target.index:
                yield from index_parts(item)
    elif isinstance(stmt, Add):
        yield from (stmt.target, stmt.value)
    elif isinstance(stmt, PullCall):
        yield stmt.call
        yield from stmt.grads


def nodes_of(stmt: Any) -> Iterator[Any]:
    """Yield the expressions that a statement reads itself, and all of their subexpressions."""
    for expr in expressions_of(stmt):
        yield from nodes(expr)


def variables_in(block: Block) -> Iterator[str]:
    """Yield the variables that the expressions of a block read, each as often as it occurs."""
    for stmt in statements(block):
        for node in nodes_of(stmt):
            if isinstance(node, Var):
                yield node.name


def assigned(stmt: Any) -> tuple[str, ...]:
    """Return the variables that a statement binds itself."""
    if isinstance(stmt, Let):
        return (stmt.name,)
    if isinstance(stmt, LetMany):
        return stmt.names
    if isinstance(stmt, For):
        return (stmt.name,) if stmt.last is None else (stmt.name, stmt.last)
    if isinstance(stmt, While) and stmt.count is not None:
        return (stmt.count,)
    if isinstance(stmt, PullCall):
        return tuple([name for name in stmt.names if name is not None])
    if isinstance(stmt, Pop) and isinstance(stmt.target, Var):
        return (stmt.target.name,)
    return ()


def bound_in(block: Block) -> set[str]:
    """Return the variables that a block binds."""
    return {name for stmt in statements(block) for name in assigned(stmt)}


def place_kind(base: Var, index: Sequence[Any]) -> Kind:
    """Return the kind of a part of an array."""
    slices = sum(1 for each in index if each is NEW or isinstance(each, Slice))
    arrays = [each.kind for each in index if isinstance(getattr(each, "kind", None), Arr)]
    ndim = slices + (max(1 if kind.dtype == "?" else kind.ndim for kind in arrays) if arrays else 0)
    return Arr(base.kind.dtype, ndim) if ndim else Num(base.kind.dtype)


def get(base: Var, index: tuple[Any, ...]) -> Get:
    """Return a part of an array, given an index item for each axis."""
    return Get(base, index, place_kind(base, index))


def bar(name: str) -> str:
    """Return the name of the adjoint of a variable."""
    return f"{name}_bar"


def is_bar(name: str) -> bool:
    """Return whether a variable is an adjoint."""
    return name.endswith("_bar")


def is_number(expr: Any) -> bool:
    """Return whether the value of an expression is a number."""
    return isinstance(expr.kind, Num)


# -- text --------------------------------------------------------------------------------------------------------------


def program_text(block: Block, indent: str = "") -> str:
    """Return a block as text, for tests and messages."""
    return "\n".join(line for stmt in block for line in _lines(stmt, indent))


def _lines(stmt: Any, indent: str) -> Iterator[str]:
    inner = indent + "    "
    if isinstance(stmt, Let):
        yield f"{indent}{stmt.name} = {text_of(stmt.value)}"
    elif isinstance(stmt, LetMany):
        yield f"{indent}{targets_text(stmt.names)} = {text_of(stmt.value)}"
    elif isinstance(stmt, Set):
        sign = {"": "=", "add": "+=", "sub": "-="}[stmt.op]
        yield f"{indent}{stmt.base.name}[{_index(stmt.index)}] {sign} {text_of(stmt.value)}"
    elif isinstance(stmt, Check):
        yield f"{indent}check {text_of(stmt.test)}"
    elif isinstance(stmt, For):
        way = "down " if stmt.down else ""
        stop = f" until {stmt.stop}" if stmt.stop else ""
        yield f"{indent}for {stmt.name} {way}in {text_of(stmt.low)}, {text_of(stmt.high)}, {stmt.step}{stop}:"
        yield program_text(stmt.body, inner) or f"{inner}pass"
    elif isinstance(stmt, While):
        head = f"undo {stmt.count}" if stmt.down else f"while {text_of(stmt.test)}"
        yield f"{indent}{head}{f' until {stmt.stop}' if stmt.stop else ''}:"
        yield program_text(stmt.body, inner) or f"{inner}pass"
    elif isinstance(stmt, If):
        yield f"{indent}if {text_of(stmt.test)}:"
        yield program_text(stmt.then, inner) or f"{inner}pass"
        if stmt.other:
            yield f"{indent}else:"
            yield program_text(stmt.other, inner)
    elif isinstance(stmt, Push):
        yield f"{indent}push {text_of(stmt.value)}"
    elif isinstance(stmt, Pop):
        yield f"{indent}{text_of(stmt.target)} = pop"
    elif isinstance(stmt, Add):
        yield f"{indent}{text_of(stmt.target)} += {text_of(stmt.value)}"
    elif isinstance(stmt, PullCall):
        yield f"{indent}pull {text_of(stmt.call)}"
    elif isinstance(stmt, Segmented):
        yield f"{indent}{stmt.name} in segments, restoring {stmt.state}:"
        yield program_text(stmt.plain, inner)
        yield f"{indent}with the tape:"
        yield program_text(stmt.taped, inner)
    elif isinstance(stmt, SegmentedBack):
        yield f"{indent}{stmt.loop.name} backwards:"
        yield program_text(stmt.body, inner)


def text_of(expr: Any) -> str:
    """Return an expression as text."""
    if isinstance(expr, Const):
        return repr(expr.value)
    if isinstance(expr, Var):
        return expr.name
    if isinstance(expr, Dim):
        return f"{expr.base.name}.shape[{expr.axis}]"
    if isinstance(expr, Get):
        return f"{expr.base.name}[{_index(expr.index)}]"
    if isinstance(expr, (Op, Lazy)):
        return f"{expr.name}({', '.join(map(text_of, expr.args))})"
    if isinstance(expr, Call):
        args = [f"({', '.join(map(text_of, arg))})" if isinstance(arg, tuple) else text_of(arg) for arg in expr.args]
        return f"{expr.name}({', '.join(args + [f'{name}={value!r}' for name, value in expr.options])})"
    assert isinstance(expr, Pull)
    args = ["_" if arg is None else text_of(arg) for arg in expr.args]
    return f"pull[{expr.name}, {expr.number}]({', '.join(args)}; {text_of(expr.grad)})"


def _index(index: Sequence[Any]) -> str:
    def one(item: Any) -> str:
        if item is NEW:
            return "None"
        if isinstance(item, Slice):
            low, high, step = ["" if part is None else text_of(part) for part in (item.low, item.high, item.step)]
            return f"{low}:{high}" + (f":{step}" if step else "")
        return text_of(item)

    return ", ".join(map(one, index))
