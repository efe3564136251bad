"""Statements: assignments, branches and loops."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import inspect
import itertools
import sys
import types
from collections.abc import Sequence
from typing import Any

from ...guards.libraries import is_library_module
from ..ir import (
    FULL,
    Block,
    Call,
    Check,
    Const,
    For,
    Get,
    If,
    Lazy,
    Let,
    Op,
    Set,
    Var,
    While,
    assigned,
    get,
    nodes,
    statements,
)
from ..jumps import stop_of
from ..library import BINARY_OPERATORS
from ..objects import Guard
from ..syntax_trees import stores_of, tree_of
from ..value_types import BOOL, INT, Arr
from ..values import (
    CONFLICT,
    Cell,
    Empty,
    FunctionValue,
    ListValue,
    NotSupported,
    Path,
    RecordValue,
    Ref,
    Reread,
    Row,
    Static,
    TupleValue,
    as_expr,
    is_hashed,
    items_in,
    kind_name,
    leaves_of,
)
from . import python_code
from .attributes import attribute
from .comprehensions import UNROLLED
from .function_calls import CallReader
from .generators import free_names, is_generator, loop_over_generator
from .lists import item_kind, item_of_list, joined_item_kinds, kind_of_items, set_item
from .loop_nests import LEN, MOST, NESTS, RANGE, chosen, consecutive, counted, indices, loaded, product
from .operators import arithmetic
from .optional import shown
from .scopes import Scope, always_raises, is_used_outside, joined_scopes, keyword_of, unused_name


class StatementReader(CallReader):
    """Reads statements."""

    def block(self, scope: Scope, stmts: Sequence[ast.stmt]) -> None:
        """Read statements."""
        for number, stmt in enumerate(stmts):
            try:
                self.statement(scope, stmt)
            except Empty:
                for later in stmts[number + 1 :]:  # a later statement may determine the kind of the items, by `Reread`
                    with contextlib.suppress(NotSupported):
                        self.statement(scope, later)
                raise

    def statement(self, scope: Scope, stmt: ast.stmt) -> None:
        """Read a statement."""
        self.out.line = getattr(stmt, "lineno", self.out.line)
        method = getattr(self, f"on_{type(stmt).__name__}", None)
        if method is None:
            raise self.out.refused(f"`{keyword_of(stmt)}` is not supported", stmt)
        method(scope, stmt)

    def on_Pass(self, scope: Scope, stmt: ast.Pass) -> None:
        """Read `pass`."""

    def on_Expr(self, scope: Scope, stmt: ast.Expr) -> None:
        """Read a call for its side effects, or a docstring."""
        if not isinstance(stmt.value, ast.Constant):
            found = self.value(scope, stmt.value)
            for leaf in leaves_of(found):
                if isinstance(leaf, (Call, Get, Op, Lazy)):  # these may raise
                    self.out.temporary(leaf)

    def on_Assign(self, scope: Scope, stmt: ast.Assign) -> None:
        """Read an assignment."""
        if len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Tuple) and isinstance(stmt.value, ast.Tuple):
            targets, parts = stmt.targets[0].elts, stmt.value.elts
            if len(targets) == len(parts) and not any(isinstance(each, ast.Starred) for each in (*targets, *parts)):
                values = [self.kept_value(scope, part) for part in parts]
                for target, value in zip(targets, values):
                    self.assign(scope, target, value)
                return
        value = self.value(scope, stmt.value)
        if len(stmt.targets) > 1 and as_expr(value) is not None and not isinstance(value, (Static, Var)):
            value = self.out.temporary(value)
        for target in stmt.targets:
            self.assign(scope, target, value)

    def kept_value(self, scope: Scope, node: ast.expr) -> Any:
        """Return a value that is not changed by assignments before its use."""
        value = self.value(scope, node)
        return self.copied(value)

    def on_AnnAssign(self, scope: Scope, stmt: ast.AnnAssign) -> None:
        """Read an annotated assignment."""
        if stmt.value is not None:
            self.assign(scope, stmt.target, self.value(scope, stmt.value))

    def extend(self, items: Any, more: Any, stmt: Any) -> None:
        """Read `+=` of a list."""
        if isinstance(items, TupleValue):
            if items.site is None:
                raise self.out.refused("extending this list is not supported", stmt)
            kind = None
            if isinstance(more, (ListValue, Ref)):
                kind = kind_of_items(more)
            elif isinstance(more, TupleValue):
                for each in more.items:
                    kind = joined_item_kinds(self.out, kind, item_kind(self.out, each))
            else:
                raise self.out.refused("extending this list is not supported", stmt)
            raise Reread(items.site, kind)
        self.call_own(python_code.extend, [items, more])

    def update_item(
        self, scope: Scope, items: Any, target: ast.Subscript, name: str | None, stmt: ast.AugAssign
    ) -> None:
        """Read an augmented assignment to an item of a list."""
        (index,) = self.index_items(scope, target.slice)
        index = self.copied(index)
        if isinstance(items, TupleValue):
            if self.updated_array(scope, items, index, name, stmt):
                return
            if items.site is None:
                raise self.out.refused("updating an item of this list is not supported", stmt)
            raise Reread(items.site, None if not items.items else item_kind(self.out, items.items[0]))
        if isinstance(items, ListValue) and isinstance(items.kind, Row):
            if not items.has_views:
                raise Reread(("views", items.site), True)
            row = item_of_list(self.out, items, index)
            self.update(row, (FULL,) * row.kind.ndim, name, self.value(scope, stmt.value), stmt)
            return
        new = self.updated_item(scope, self.copied(item_of_list(self.out, items, index)), name, stmt)
        if new is not None:
            set_item(self.out, items, index, new)

    def updated_item(self, scope: Scope, before: Any, name: str | None, stmt: ast.AugAssign) -> Any:
        """Return the new value of an item after an augmented assignment, or None if this extends a list in place."""
        if isinstance(getattr(as_expr(before), "kind", None), Arr):
            raise self.out.refused("writing to an array in a list is not supported", stmt)
        value = self.value(scope, stmt.value)
        if isinstance(before, Ref) and name == "add":
            self.extend(before, value, stmt)
            return None
        return arithmetic(self.out, name, before, value) if name else self.matmul(before, value)

    def update_hashed(
        self, scope: Scope, items: RecordValue, target: ast.Subscript, name: str | None, stmt: ast.AugAssign
    ) -> None:
        """Read an augmented assignment to an item of a dict with computed keys."""
        key = self.copied(self.value(scope, target.slice))
        new = self.updated_item(scope, self.copied(self.item_of_hashed(items, key, target)), name, stmt)
        if new is not None:
            self.set_hashed(items, key, new, target)

    def updated_array(self, scope: Scope, items: TupleValue, index: Any, name: str | None, stmt: ast.AugAssign) -> bool:
        """Read an augmented assignment to an array in a list, which is written to in place; return whether it is one.
        """
        number = index.value if isinstance(index, Static) else None
        if type(number) is not int or not -len(items.items) <= number < len(items.items):
            return False
        array = as_expr(items.items[number])
        if array is None or not isinstance(array.kind, Arr):
            return False
        value = self.value(scope, stmt.value)
        variable = array if isinstance(array, Var) else self.out.temporary(array)
        self.update(variable, (FULL,) * array.kind.ndim, name, value, stmt)
        return True

    def update_field(
        self, scope: Scope, target: ast.Subscript | ast.Attribute, name: str | None, stmt: ast.AugAssign
    ) -> None:
        """Read an augmented assignment to an item of a dict, or to an attribute."""
        before = self.value(scope, target)
        mark = len(self.out.buffer)
        value = self.value(scope, stmt.value)
        if isinstance(before, Cell):
            self.update(before.store, (Const(0, INT),), name, value, stmt)
            return
        (before,) = self.settled([before], [mark])
        current = as_expr(before)
        if current is not None and isinstance(current.kind, Arr):
            variable = current if isinstance(current, Var) else self.out.temporary(current)
            self.update(variable, (FULL,) * current.kind.ndim, name, value, stmt)
            return
        new = arithmetic(self.out, name, before, value) if name is not None else self.matmul(before, value)
        self.assign(scope, target, new)

    def on_With(self, scope: Scope, stmt: ast.With) -> None:
        """Read `with np.errstate(...)`, which does not change values."""
        for each in stmt.items:
            call = each.context_expr
            function = self.value(scope, call.func) if isinstance(call, ast.Call) else None
            given = [self.value(scope, keyword.value) for keyword in getattr(call, "keywords", ())]
            if not isinstance(function, Static) or getattr(function.value, "__name__", "") != "errstate" or any(
                not isinstance(value, Static) or value.value not in ("ignore", "warn") for value in given
            ):
                raise self.out.refused("the only supported `with` is np.errstate that ignores or warns", stmt)
        self.block(scope, stmt.body)

    def on_Nonlocal(self, scope: Scope, stmt: ast.Nonlocal) -> None:
        """Skip a declaration, which the scope has already read."""

    def on_Import(self, scope: Scope, stmt: ast.Import) -> None:
        """Read an import of a module that is already imported."""
        for alias in stmt.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self.bind(scope, alias.asname or name, Static(self.imported(name, stmt)))

    def on_ImportFrom(self, scope: Scope, stmt: ast.ImportFrom) -> None:
        """Read an import of names from a module that is already imported."""
        if stmt.level or stmt.module is None:
            raise self.out.refused("a relative import is not supported", stmt)
        module = self.imported(stmt.module, stmt)
        for alias in stmt.names:
            if alias.name not in vars(module):
                raise self.out.refused(f"{stmt.module} has no {alias.name}", stmt)
            self.bind(scope, alias.asname or alias.name, Static(vars(module)[alias.name]))

    def imported(self, name: str, stmt: ast.stmt) -> Any:
        """Return a library module; importing a user's module may have side effects."""
        module = sys.modules.get(name)
        if module is None or not is_library_module(module):
            raise self.out.refused(f"an import of {name} is not supported", stmt)
        return module

    def on_Delete(self, scope: Scope, stmt: ast.Delete) -> None:
        """Read `del` of a name."""
        for target in stmt.targets:
            if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
                items = self.value(scope, target.value)
                if is_hashed(items):
                    self.hashed_method(items, "pop", [self.value(scope, target.slice)], target)
                    continue
                if isinstance(items, TupleValue) and items.site is not None:
                    raise Reread(items.site, item_kind(self.out, items.items[0]) if items.items else None)
                if isinstance(items, (ListValue, Ref)):
                    self.call_own(python_code.pop_at, [items, *self.index_items(scope, target.slice)])
                    continue
            if not isinstance(target, ast.Name):
                raise self.out.refused("`del` of an item is not supported", stmt)
            scope.env[target.id] = CONFLICT

    def on_Assert(self, scope: Scope, stmt: ast.Assert) -> None:
        """Read an assertion."""
        test = self.condition(scope, stmt.test)
        if test is False:
            raise self.out.refused("an assertion fails", stmt)
        if test is not True:
            self.out.emit(Check(test, self.out.line))

    def on_Raise(self, scope: Scope, stmt: ast.Raise) -> None:
        """Read `raise`: the function runs eagerly and raises the error."""
        if not self.unsure:
            raise self.out.refused("it always raises", stmt)
        self.out.emit(Check(Const(False, BOOL), self.out.line))

    def on_FunctionDef(self, scope: Scope, stmt: ast.FunctionDef) -> None:
        """Read a nested function."""
        if stmt.decorator_list:
            raise self.out.refused("a nested function with a decorator is not supported", stmt)
        scope.env[stmt.name] = self.nested(scope, stmt)

    def on_AugAssign(self, scope: Scope, stmt: ast.AugAssign) -> None:
        """Read an augmented assignment."""
        target, name = stmt.target, BINARY_OPERATORS.get(type(stmt.op))
        if isinstance(target, ast.Name):
            before = self.lookup(scope, ast.copy_location(ast.Name(target.id, ast.Load()), target))
            mark = len(self.out.buffer)
            value = self.value(scope, stmt.value)
            if isinstance(before, (ListValue, Ref)) or (
                isinstance(before, TupleValue) and before.cls is list and name == "add"
            ):
                self.extend(before, value, stmt)
                return
            if isinstance(before, Cell):
                self.update(before.store, (Const(0, INT),), name, value, stmt)
                return
            (before,) = self.settled([before], [mark])
            current = as_expr(before)
            if current is None:
                raise self.out.refused(f"an in-place operator on {kind_name(before)} is not supported", stmt)
            if isinstance(current.kind, Arr):
                index = (FULL,) * current.kind.ndim
                self.update(current, index, name, value, stmt)
                return
            if current.kind.boxed:
                raise self.out.refused("writing to a 0-d array here is not supported", stmt)
            self.bind(scope, target.id, arithmetic(self.out, name, before, value) if name is not None
                      else self.matmul(before, value))
            return
        if isinstance(target, ast.Subscript):
            found = self.value(scope, target.value)
            if isinstance(found, RecordValue) and found.cls is dict:
                self.update_field(scope, target, name, stmt)
                return
            if is_hashed(found):
                self.update_hashed(scope, found, target, name, stmt)
                return
            if isinstance(found, (ListValue, Ref)) or (isinstance(found, TupleValue) and found.cls is list):
                self.update_item(scope, found, target, name, stmt)
                return
            base, index = self.place(scope, found, target)
            mark = len(self.out.buffer)
            value = self.value(scope, stmt.value)
            changed = {each for later in statements(self.out.buffer[mark:]) for each in assigned(later)}
            writes = any(isinstance(later, Set) for later in statements(self.out.buffer[mark:]))
            if writes or changed & {each.name for each in nodes(get(base, index)) if isinstance(each, Var)}:
                raise self.out.refused(
                    "an in-place operator whose operand writes to arrays or changes the index is not supported", stmt)
            self.update(base, index, name, value, stmt)
            return
        self.update_field(scope, target, name, stmt)

    def on_If(self, scope: Scope, stmt: ast.If) -> None:
        """Read a branch, or only one side if the condition is known."""
        test = self.condition(scope, stmt.test)
        if test is True or test is False:
            self.block(scope, stmt.body if test else stmt.orelse)
            return
        line = self.out.line
        entry, present = dict(scope.env), scope.present
        scope.present = present | shown(stmt.test, True)
        try:
            then = self.within(lambda: self.block(scope, stmt.body))
        except Empty:
            scope.env = dict(entry)
            with contextlib.suppress(NotSupported):  # the other side may determine the kind of the items, by `Reread`
                self.within(lambda: self.block(scope, stmt.orelse))
            raise
        after_then, scope.env = scope.env, dict(entry)
        present_after, scope.present = scope.present, present | shown(stmt.test, False)
        other = self.within(lambda: self.block(scope, stmt.orelse))
        scope.present &= present_after
        if always_raises(then):
            pass
        elif always_raises(other):
            scope.env = after_then
        else:
            scope.env = joined_scopes(after_then, scope.env)
        self.out.emit(If(test, then, other, line))

    def on_While(self, scope: Scope, stmt: ast.While) -> None:
        """Read a `while` loop."""
        line = self.out.line
        stop = stop_of(stmt)
        flag = None if stop is None else scope.prefix + stop
        state: dict[str, Any] = {}

        def read() -> None:
            test = self.condition(scope, stmt.test)
            if self.out.buffer:  # statements that the condition requires are executed in the body
                if flag is None:
                    raise self.out.refused("a condition that needs statements is not supported", stmt)
                pre, self.out.buffer = self.out.buffer, []
                entry = dict(scope.env)
                self.block(scope, stmt.body)
                body, self.out.buffer = self.out.buffer, pre
                scope.env = joined_scopes(scope.env, entry)
                end = Let(flag, Const(True, BOOL), line)
                self.out.emit(If(test, body, [end], line))
                state["test"] = Const(True, BOOL)
                return
            if test is False:
                state["test"] = Const(False, BOOL)
                return
            state["test"] = Const(True, BOOL) if test is True else test
            self.block(scope, stmt.body)

        if flag is None:
            probe = self.within(lambda: self.condition(scope, stmt.test))
            if probe:
                flag = self.out.fresh("_stop_")
                self.out.kinds[flag] = BOOL
                self.out.emit(Let(flag, Const(False, BOOL), line))
        body = self.looped(scope, read)
        if isinstance(state["test"], Const) and state["test"].value is False:
            return
        self.out.emit(While(state["test"], body, None, flag, line=line))

    def generated(self, scope: Scope, stmt: ast.For) -> list[ast.stmt] | None:
        """Return the statements of a loop over a generator function, or None for other loops."""
        if not isinstance(stmt.iter, ast.Call) or not isinstance(stmt.iter.func, ast.Name):
            return None
        function = self.value(scope, stmt.iter.func)
        node: Any = None
        if isinstance(function, FunctionValue) and function.scope is scope:
            node = function.node
        elif isinstance(function, Static) and isinstance(function.value, types.FunctionType) \
                and function.value.__code__.co_flags & inspect.CO_GENERATOR:
            own = function.value
            node = tree_of(own)
            self.guards.setdefault(("code", id(own)), Guard(
                Path(own, False).to("attr", "__code__"), own.__code__, "is"))
            self.paths.append(own)
            local = {*scope.stores, *scope.env, *scope.cells}
            if own.__closure__ or own.__globals__ is not scope.variables or scope.outer or local & free_names(node):
                raise self.out.refused("a generator function of another module is not supported", stmt)
        if not is_generator(node):
            return None
        try:
            found = loop_over_generator(node, stmt, self.out.fresh(node.name) + "__")
        except NotImplementedError as error:
            raise self.out.refused(f"{error} is not supported", stmt) from None
        for name in stores_of(found):
            scope.stores[name] = scope.stores.get(name, 0) + 2
        scope.body = [*scope.body, *found]
        return found

    def nested_loops(self, scope: Scope, stmt: ast.For) -> bool:
        """Read a loop over `itertools.product` or a similar function; return whether it is one."""
        name = self.library_called(scope, stmt.iter) if isinstance(stmt.iter, ast.Call) else None
        if name not in NESTS:
            return False
        assert isinstance(stmt.iter, ast.Call)
        kind, args = name.rpartition(".")[2], stmt.iter.args
        options = {each.arg: self.value(scope, each.value) for each in stmt.iter.keywords}
        if set(options) - ({"repeat"} if kind == "product" else set()) or any(
            isinstance(arg, ast.Starred) for arg in args
        ):
            raise self.out.refused(f"{kind} with these arguments is not supported", stmt)
        scope.env |= {RANGE: Static(range), LEN: Static(len)}
        fresh = functools.partial(unused_name, scope)
        given: Any = None
        if kind == "product":
            iterables = [self.consumed(scope, arg) for arg in args]
            repeat = options.get("repeat", Static(1))
            if not isinstance(repeat, Static) or not 0 < len(iterables) * repeat.value <= MOST:
                raise self.out.refused("a product of this many iterables is not supported", stmt)
            nest = product([copy.deepcopy(each) for each in iterables * repeat.value], fresh)
        elif kind in ("ndindex", "ndenumerate"):
            values, array = [items_in(self.value(scope, arg)) for arg in args], None
            if kind == "ndenumerate":
                array = self.kept(scope, values[0])
                values = [attribute(self.out, scope.env[array], "shape", stmt)]
            sizes = values[0].items if len(values) == 1 and isinstance(values[0], TupleValue) else values
            if not 0 < len(sizes) <= MOST:
                raise self.out.refused(f"{kind} of this many dimensions is not supported", stmt)
            nest = indices([self.kept(scope, size) for size in sizes], fresh, array)
        elif kind == "pairwise":
            given = items_in(self.value(scope, args[0]))
            if isinstance(given, TupleValue):
                self.over_values(scope, stmt, [TupleValue(pair) for pair in itertools.pairwise(given.items)])
                return True
            nest = consecutive(self.kept(scope, given), fresh)
        else:
            count = self.value(scope, args[1]) if len(args) == 2 else Static(None)
            if not isinstance(count, Static) or type(count.value) is not int or not 0 < count.value <= MOST:
                raise self.out.refused(f"{kind} with these arguments is not supported", stmt)
            items = self.consumed(scope, args[0], ranges=False)
            assert isinstance(items, ast.Name)
            nest = chosen(kind, items.id, count.value, fresh)
        mark = len(self.out.buffer)
        self.block(scope, [nest.over(stmt)])
        if given is not None:
            self.check_unwritten(given, self.out.buffer[mark:], stmt)
        return True

    def kept(self, scope: Scope, value: Any) -> str:
        """Bind a value to a name that does not occur in any function, and return the name."""
        name = self.out.fresh(" kept")
        scope.env[name] = self.held(value)
        return name

    def consumed(self, scope: Scope, node: ast.expr, ranges: bool = True) -> ast.expr:
        """Return an expression for the items of an iterable that is consumed before a loop begins.

        Arguments:
            scope: the variables.
            node: the iterable.
            ranges: whether it may be a range.
        """
        if ranges and isinstance(node, ast.Call) and self.library_called(scope, node) == "builtins.range":
            return counted(*[loaded(self.kept(scope, self.value(scope, arg))) for arg in node.args])
        value = items_in(self.value(scope, node))
        if not isinstance(value, TupleValue):
            value = self.list_of(scope, value, node)
        return loaded(self.kept(scope, value))

    def check_unwritten(self, given: Any, block: Block, node: Any) -> None:
        """Refuse a loop whose items are read before it if it may write to them."""
        stores = given.stores if isinstance(given, ListValue) else given.heap.stores if isinstance(given, Ref) else ()
        names = {store.name for store in stores}
        expr = as_expr(given)
        for each in statements(block):
            if isinstance(each, Set) and (each.base.name in names if expr is None else not each.safe
                                          and each.base.kind.dtype == expr.kind.dtype):
                raise self.out.refused("a loop that writes to the array it iterates over is not supported", node)

    def over_values(self, scope: Scope, stmt: ast.For, items: Sequence[Any]) -> None:
        """Read a loop over known values by unrolling it."""
        if len(items) > UNROLLED:
            raise self.out.refused(f"a loop over {len(items)} constant values is not supported", stmt)
        stop = stop_of(stmt)
        if stop is not None:
            rest: list[ast.stmt] = []
            for item in reversed(items):
                begin = ast.Assign([copy.deepcopy(stmt.target)], loaded(self.kept(scope, item)))
                more = [ast.If(ast.UnaryOp(ast.Not(), loaded(stop)), rest, [])] if rest else []
                rest = [begin, *copy.deepcopy(stmt.body), *more]
                for each in (begin, *more):
                    ast.fix_missing_locations(ast.copy_location(each, stmt))
            self.block(scope, rest)
            return
        for item in items:
            self.assign(scope, stmt.target, item)
            self.block(scope, stmt.body)

    def on_For(self, scope: Scope, stmt: ast.For) -> None:
        """Read a `for` loop over ranges and arrays; loops over known values are unrolled."""
        generated = self.generated(scope, stmt)
        if generated is not None:
            self.block(scope, generated)
            return
        if self.nested_loops(scope, stmt):
            return
        line = self.out.line
        stop = stop_of(stmt)
        sequence = self.sequence(scope, stmt.iter)
        if isinstance(sequence, TupleValue):
            self.over_values(scope, stmt, sequence.items)
            return
        plain = sequence.is_range and isinstance(stmt.target, ast.Name)
        hint = stmt.target.id if plain else "k"  # type: ignore[attr-defined]
        kept = plain and is_used_outside(scope, stmt, hint)
        low, high = sequence.low, sequence.high
        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (low, high)]
        numbers = dict(self.out.numbers)
        self.out.numbers = numbers
        name = self.out.fresh(scope.prefix + (hint if plain and not kept else "k"))
        self.out.kinds[name] = INT
        counter = Var(name, INT)

        def read() -> None:
            if plain and not kept:
                scope.env[hint] = counter
            else:
                self.assign(scope, stmt.target, sequence.item(counter))
            self.block(scope, stmt.body)
            self.checked(sequence)

        if plain and not kept:
            scope.env.pop(hint, None)
        body = self.looped(scope, read)
        if sequence.lists & {each for inner in statements(body) for each in assigned(inner)}:
            raise self.out.refused("a loop over a list that changes in the loop is not supported", stmt)
        flag = None if stop is None else scope.prefix + stop
        self.out.emit(For(name, low, high, sequence.step, body, None, flag, line=line))
