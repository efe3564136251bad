"""Scalar replacement: array elements that a loop writes and reads again are kept in variables.

In `level_bar[t - 1] += b`, each iteration adds to an element that the next one reads. Through memory, this costs a
store and a load that depends on it. The pass keeps such an element in a variable, which is moved to the variable of
`level_bar[t]` at the end of the iteration (Callahan, Carr and Kennedy, "Improving register allocation for subscripted
variables", PLDI 1990). The memory is up to date at the end of each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from . import ir
from .dependence import Affine, affine, combined, has_solution, within
from .parallel_loops import is_parallel, root_of
from .value_types import BOOL, FLOAT, INT, Arr, Num

SCALAR: tuple[type, ...] = (ir.Let, ir.Set, ir.Check, ir.For, ir.While, ir.If, ir.Push, ir.Pop)
# per axis, the coefficient of the counter, and the other terms
Shape = tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
Offset = tuple[int, ...]  # per axis, the constant


def promote_to_scalars(
    block: ir.Block, kinds: dict[str, Any], roots: Mapping[str, str], fresh: Callable[[str], str], names: set[str],
    is_checked: bool,
) -> ir.Block:
    """Return a program in which loops keep elements in variables.

    Arguments:
        block: the program.
        kinds: the kinds of the variables; new variables are added.
        roots: the representatives of variables that share memory.
        fresh: a function that returns an unused name.
        names: the set of new variables, to which the created ones are added.
        is_checked: whether all indices are known to be in range.
    """
    return ir.with_loops(block, _Replacement(kinds, roots, fresh, names, is_checked).nest)


@attrs.frozen(eq=False)
class _Access:
    """An access to an element in the body of a loop.

    Attributes:
        expr: the element.
        reads, writes: whether it is read, and whether it is written; `+=` does both.
        always: whether each iteration performs the access.
    """

    expr: ir.Get
    reads: bool
    writes: bool
    always: bool


@attrs.define(eq=False)
class _Cell:
    """An element kept in a variable, at the same position relative to the counter in all iterations."""

    expr: ir.Get
    offset: Offset
    accesses: list[_Access]
    variable: ir.Var | None = None

    @property
    def is_written(self) -> bool:
        return any(access.writes for access in self.accesses)

    @property
    def is_read_first(self) -> bool:
        return self.accesses[0].reads or not self.accesses[0].always

    @property
    def is_reused(self) -> bool:
        """Return whether it is accessed again after a write in the same iteration."""
        first = next((n for n, access in enumerate(self.accesses) if access.writes), len(self.accesses))
        return first + 1 < len(self.accesses)


@attrs.define(eq=False)
class _Replacement:
    kinds: dict[str, Any]
    roots: Mapping[str, str]
    fresh: Callable[[str], str]
    names: set[str]
    is_checked: bool

    def nest(self, loop: Any, loops: tuple[Any, ...]) -> ir.Block:
        """Return the statements for a loop and its nested loops."""
        loop = attrs.evolve(loop, body=ir.with_loops(loop.body, self.nest, (*loops, loop)))
        return self.loop(loop, loops) if isinstance(loop, ir.For) else [loop]

    # -- one loop ------------------------------------------------------------------------------------------------------

    def loop(self, loop: ir.For, loops: tuple[Any, ...]) -> ir.Block:
        """Return the loop with elements in variables, preceded by the statements that load their initial values."""
        if abs(loop.step) != 1 or not all(map(self.is_scalar, ir.statements(loop.body))):
            return [loop]
        if loop.down and is_parallel(loop, self.roots):  # parallel loops run as vector operations
            return [loop]
        chosen: list[_Cell] = []
        carried: list[tuple[_Cell, _Cell]] = []
        step = loop.step if not loop.down else -loop.step
        for cells, strides in self.groups(loop, loops):
            by_offset = {cell.offset: cell for cell in cells}
            flows = []
            for cell in cells:
                before = by_offset.get(tuple([c + a * step for c, a in zip(cell.offset, strides)]))
                if before is not None and cell.is_read_first:
                    flows.append((cell, before))  # the current element, and the same element one iteration earlier
            useful = {id(cell) for cell in cells if cell.is_written and cell.is_reused}
            for cell, before in flows:
                if before.is_written:
                    useful |= {id(cell), id(before)}
            chosen += [cell for cell in cells if id(cell) in useful]
            carried += [pair for pair in flows if id(pair[0]) in useful and id(pair[1]) in useful]
        if not chosen:
            return [loop]
        for cell in chosen:
            name = self.fresh(f"{cell.expr.base.name}_cell")
            self.kinds[name] = FLOAT
            self.names.add(name)
            cell.variable = ir.Var(name, FLOAT)
        return self.rewritten(loop, chosen, carried)

    def is_scalar(self, stmt: Any) -> bool:
        """Return whether a statement computes only with numbers and elements."""
        if not isinstance(stmt, SCALAR) or (isinstance(stmt, ir.Let) and isinstance(self.kinds.get(stmt.name), Arr)):
            return False
        value = getattr(stmt, "value", None)
        return value is None or isinstance(value.kind, Num)

    def groups(self, loop: ir.For, loops: tuple[Any, ...]) -> Iterator[tuple[list[_Cell], Offset]]:
        """Yield groups of elements that no other access in the loop overlaps, and their shift per iteration."""
        changed = ir.bound_in(loop.body) | {loop.name}
        inner = {id(stmt) for each in ir.statements(loop.body) if isinstance(each, (ir.For, ir.While))
                 for stmt in ir.statements([each])}

        def is_fixed(name: str) -> bool:
            return name == loop.name or name not in changed

        accesses: dict[str, list[_Access]] = {}
        others: set[str] = set()  # roots of arrays that are accessed in other ways
        for access, stmt in _accesses(loop.body, True):
            name = access.expr.base.name
            is_plain = name not in changed and id(stmt) not in inner and access.expr.kind == FLOAT
            if is_plain and (self.is_checked or access.expr.safe):
                accesses.setdefault(name, []).append(access)
            else:
                others.add(self.root(name))
        roots = [self.root(name) for name in accesses]
        for name, found in accesses.items():
            root = self.root(name)
            if root in others or roots.count(root) > 1 or not any(access.writes for access in found):
                continue
            forms = [[affine(item, is_fixed) for item in access.expr.index] for access in found]
            if any(form is None for each in forms for form in each):
                continue
            shapes: dict[Shape, list[tuple[Offset, _Access]]] = {}
            for access, each in zip(found, forms):
                shapes.setdefault(_shape(each, loop.name), []).append((_constants(each), access))
            alone = self.are_apart(loop, loops, [each for shape in shapes for each in [shape]], is_fixed, shapes)
            if not alone:
                continue
            for shape, members in shapes.items():
                cells: dict[Offset, _Cell] = {}
                for offset, access in members:
                    cells.setdefault(offset, _Cell(access.expr, offset, [])).accesses.append(access)
                known = [cell for cell in cells.values() if any(access.always for access in cell.accesses)]
                if any(access.writes for _, access in members):
                    yield known, tuple([stride for stride, _ in shape])

    def are_apart(
        self, loop: ir.For, loops: tuple[Any, ...], shapes: Sequence[Shape], is_fixed: Callable[[str], bool],
        members: Mapping[Shape, list[tuple[Offset, _Access]]],
    ) -> bool:
        """Return whether a written element is never accessed by an index of another form."""
        for n, shape in enumerate(shapes):
            for other in shapes[:n]:
                written = any(access.writes for each in (shape, other) for _, access in members[each])
                if written and any(
                    self.may_meet(loop, loops, (shape, one), (other, two), is_fixed)
                    for one in {offset for offset, _ in members[shape]}
                    for two in {offset for offset, _ in members[other]}
                ):
                    return False
        return True

    def may_meet(
        self, loop: ir.For, loops: tuple[Any, ...], one: tuple[Shape, Offset], other: tuple[Shape, Offset],
        is_fixed: Callable[[str], bool],
    ) -> bool:
        """Return whether two elements may coincide in any two iterations."""
        def form(shape: Shape, offset: Offset, axis: int, tag: str) -> Affine:
            stride, rest = shape[axis]
            found: Affine = {loop.name + tag: stride, "": offset[axis]} | dict(rest)
            return {name: value for name, value in found.items() if value}

        equalities = [combined(form(*one, axis, "'"), form(*other, axis, '"'), -1) for axis in range(len(one[0]))]
        bounds: list[Affine] = []
        for each in (*loops, loop):
            if isinstance(each, ir.For):
                for tag in ("'", '"') if each is loop else ("",):
                    bounds += within(each, tag, lambda expr: affine(expr, is_fixed))
        return has_solution(equalities, bounds)

    def root(self, name: str) -> str:
        return root_of(name, self.roots)

    # -- rewriting -----------------------------------------------------------------------------------------------------

    def rewritten(self, loop: ir.For, chosen: list[_Cell], carried: list[tuple[_Cell, _Cell]]) -> ir.Block:
        """Return the loop with elements replaced by variables."""
        variables = {id(access.expr): cell.variable for cell in chosen for access in cell.accesses}
        by_place = {(cell.expr.base.name, access.expr.index): cell.variable
                    for cell in chosen for access in cell.accesses}
        assert all(variables.values())
        arrives = {id(cell) for cell, _ in carried}
        loads = [ir.Let(cell.variable.name, cell.expr) for cell in chosen  # type: ignore[union-attr]
                 if cell.is_read_first and id(cell) not in arrives]
        stores = [ir.Set(cell.expr.base, cell.expr.index, cell.variable, "", 0, cell.expr.safe)
                  for cell in chosen if cell.is_written]
        body = [*loads, *_replaced(loop.body, by_place), *stores, *_moves(carried)]
        before: ir.Block = []
        if carried:
            first, is_run = _entry(loop)
            enter = [ir.Let(cell.variable.name, _at(cell.expr, loop.name, first))  # type: ignore[union-attr]
                     for cell, _ in carried]
            before = [ir.Let(cell.variable.name, ir.Const(0.0, FLOAT)) for cell, _ in carried]  # type: ignore[union-attr]
            before.append(ir.If(is_run, enter, []))
        return [*before, attrs.evolve(loop, body=body)]


def _moves(carried: list[tuple[_Cell, _Cell]]) -> ir.Block:
    """Rotate the variables at the end of an iteration; each is read before it is rebound."""
    waiting = [(cell, before) for cell, before in carried if cell is not before]
    found: ir.Block = []
    while waiting:
        ready = next(pair for pair in waiting if all(before is not pair[0] for _, before in waiting))
        waiting.remove(ready)
        found.append(ir.Let(ready[0].variable.name, ready[1].variable))  # type: ignore[union-attr]
    return found


def _entry(loop: ir.For) -> tuple[Any, Any]:
    """Return the first value of a loop's counter, and the condition that there is an iteration."""
    up = loop.step > 0
    if not loop.down:
        return loop.low, ir.Op("less" if up else "greater", (loop.low, loop.high), BOOL)
    if loop.last is not None:
        last = ir.Var(loop.last, INT)
        return last, ir.Op("greater_equal" if up else "less_equal", (last, loop.low), BOOL)
    first = ir.Op("sub" if up else "add", (loop.high, ir.Const(1, INT)), INT)
    return first, ir.Op("less" if up else "greater", (loop.low, loop.high), BOOL)


def _at(expr: ir.Get, counter: str, value: Any) -> Any:
    """Return an element with a counter replaced by a value."""
    return ir.mapped(expr, lambda node: value if isinstance(node, ir.Var) and node.name == counter else node)


def _replaced(block: ir.Block, variables: Mapping[Any, Any]) -> ir.Block:
    """Return the statements with elements replaced by variables."""
    def change(expr: Any) -> Any:
        return variables.get((expr.base.name, expr.index), expr) if isinstance(expr, ir.Get) else expr

    # Indices contain no replaced elements, so equal elements remain equal.
    found: ir.Block = []
    for stmt in block:
        if isinstance(stmt, ir.Let):
            found.append(ir.Let(stmt.name, ir.mapped(stmt.value, change), stmt.line))
        elif isinstance(stmt, ir.Set):
            value = ir.mapped(stmt.value, change)
            variable = variables.get((stmt.base.name, stmt.index))
            if variable is None:
                found.append(attrs.evolve(stmt, value=value))
            else:
                value = ir.Op(stmt.op, (variable, value), FLOAT) if stmt.op else value
                found.append(ir.Let(variable.name, value, stmt.line))
        elif isinstance(stmt, ir.Pop):
            place = stmt.target
            found.append(ir.Pop(change(place), stmt.line))
        elif isinstance(stmt, ir.Push):
            found.append(ir.Push(ir.mapped(stmt.value, change), stmt.line))
        elif isinstance(stmt, ir.If):
            found.append(ir.If(ir.mapped(stmt.test, change), _replaced(stmt.then, variables),
                            _replaced(stmt.other, variables), stmt.line))
        elif isinstance(stmt, ir.Check):
            found.append(attrs.evolve(stmt, test=ir.mapped(stmt.test, change)))
        else:  # a loop, which does not access them
            found.append(stmt)
    return found


def _shape(forms: Sequence[Affine | None], counter: str) -> Shape:
    known = ("", counter)
    return tuple([
        (form.get(counter, 0), tuple(sorted(item for item in form.items() if item[0] not in known)))
        for form in forms if form is not None
    ])


def _constants(forms: Sequence[Affine | None]) -> Offset:
    return tuple([form.get("", 0) for form in forms if form is not None])


def _accesses(block: ir.Block, always: bool) -> Iterator[tuple[_Access, Any]]:
    """Yield the accesses to arrays in a block, in order, with their statements."""
    for stmt in block:
        for expr in ir.expressions_of(stmt):
            for get, is_run in _elements(expr, always and not isinstance(stmt, ir.While)):
                yield _Access(get, True, False, is_run), stmt
            bases = {id(node.base) for node in ir.nodes(expr) if hasattr(node, "base")}
            for node in ir.nodes(expr):
                if isinstance(node, ir.Var) and isinstance(node.kind, Arr) and id(node) not in bases:
                    yield _Access(ir.Get(node, (), node.kind), True, False, False), stmt
        if isinstance(stmt, ir.Set):
            kind = FLOAT if stmt.base.kind.dtype == "d" else stmt.base.kind
            yield _Access(ir.Get(stmt.base, stmt.index, kind, stmt.safe), bool(stmt.op), True, always), stmt
        elif isinstance(stmt, ir.Pop) and isinstance(stmt.target, ir.Get):
            target = stmt.target
            kind = FLOAT if target.base.kind.dtype == "d" else target.base.kind
            yield _Access(ir.Get(target.base, target.index, kind, target.safe), False, True, always), stmt
        for inner in ir.blocks_of(stmt):
            yield from _accesses(inner, False)


def _elements(expr: Any, always: bool) -> Iterator[tuple[ir.Get, bool]]:
    """Yield the elements that an expression reads, each with whether it is always read."""
    if isinstance(expr, ir.Get):
        for item in ir.children(expr):
            yield from _elements(item, always)
        yield expr, always
    elif isinstance(expr, ir.Lazy):
        for number, arg in enumerate(expr.args):
            yield from _elements(arg, always and number == 0)
    else:
        for child in ir.children(expr):
            yield from _elements(child, always)
