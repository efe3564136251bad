"""From the source of a function to the intermediate representation.

The function is read as it would run, with kinds in the place of values: each name means an expression, or an object
that is known. Functions that it calls are read in place. A loop is read until the kinds of its variables stay the same.
"""

from __future__ import annotations

import ast
import builtins
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from . import calls
from .exits import is_flag, stop_of, without_jumps
from .functions import stores_of, tree_of, users_function
from .ir import (
    FULL,
    Block,
    Call,
    Check,
    Const,
    Dim,
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
    blocks_of,
    is_number,
    nodes,
)
from .kinds import BOOL, INT, Arr, Kind, Num, joined, kind_of_operator
from .library import library_name
from .objects import PLAIN, Getter, Guard, Input, ObjectReader, record_fields
from .values import (
    CONFLICT,
    TEXT,
    Fn,
    Maybe,
    Path,
    Rec,
    Refused,
    Static,
    Tup,
    as_expr,
    is_plain,
    joined_values,
    kind_name,
    leaves_of,
)  # fmt: skip

__all__ = ["Guard", "Input", "NeedStatic", "Reader", "Source"]

BINARY: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "left_shift", ast.RShift: "right_shift",
}  # fmt: skip
UNARY: Final = {ast.USub: "neg", ast.UAdd: "positive", ast.Invert: "invert"}
COMPARISONS: Final = {
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
    ast.GtE: "greater_equal",
}  # fmt: skip
# Functions that make an array of a list.
ARRAYS_OF_LISTS: Final = frozenset({"numpy.array", "numpy.asarray", "numpy.stack", "numpy.sum", "numpy.mean"})
UNROLLED: Final = 16
DEEP: Final = 24  # calls within calls


class NeedStatic(Exception):
    """An integer among the arguments must be known.

    Attributes:
        name: of the input.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@attrs.define(eq=False)
class Source:
    """A function as a program.

    Attributes:
        name: of the function.
        inputs: the inputs.
        guards: what must be what it was.
        body: the statements.
        result: a tree of expressions and known objects.
        kinds: of each variable.
        files: of each line number the file, where it is not that of the function.
        reshapes: whether it takes views whose being views depends on the layout of arguments.
    """

    name: str
    inputs: list[Input]
    guards: list[Guard]
    body: Block
    result: Any
    kinds: dict[str, Kind]
    file: str
    reshapes: bool = False


@attrs.define(eq=False)
class Scope:
    """The variables of a function that is read.

    Attributes:
        function: the function; None for lambdas and nested ones.
        outer: the scope around it.
        stores: how often each of its variables is assigned.
        prefix: of their names in the program.
        env: what they mean.
    """

    outer: Scope | None
    stores: dict[str, int]
    prefix: str
    variables: dict[str, Any]  # the globals of the module
    path: Path | None  # of the function whose globals and cells are meant
    cells: dict[str, int]
    file: str
    env: dict[str, Any] = attrs.Factory(dict)
    body: Sequence[Any] = ()


@attrs.frozen(eq=False)
class Bound:
    """A method of a record."""

    function: types.FunctionType
    owner: Rec


@attrs.frozen(eq=False)
class Given:
    """A function whose result is known."""

    value: Any


class Reader(ObjectReader):
    """Reads a function.

    Arguments:
        static: the paths of integers among the arguments that are known objects.
    """

    def __init__(self, static: frozenset[str] = frozenset()) -> None:
        super().__init__(static)
        self.depth = 0
        self.maybe: set[str] = set()
        self.unsure = 0  # how many blocks around need not be run

    # -- the whole -----------------------------------------------------------------------------------------------------

    def source(self, function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Source:
        """The program of a function for arguments like some.

        Raises:
            Refused: if the compiler does not take it.
            NeedStatic: if an integer argument must be known.
        """
        function = users_function(function)
        try:
            names = parameter_names(function)
            given = [
                self.object(arg, Path(number, True), names[number] if number < len(names) else f"argument{number}")
                for number, arg in enumerate(args)
            ]
            named = {
                name: self.object(value, Path(len(args) + number, True), name)
                for number, (name, value) in enumerate(keywords.items())
            }
            file = getattr(getattr(function, "__code__", None), "co_filename", "")
            result = self.call_python(function, Path(function, False), given, named, names=True)
        except Refused as error:
            if not error.line:
                raise Refused(error.reason, self.line, self.file) from error
            raise
        except RecursionError as error:
            raise Refused("it is nested too deeply", self.line, self.file) from error
        result = self._materialized(result)
        body = self._with_flags(self.buffer)
        name = getattr(function, "__name__", "function")
        return Source(name, list(self.inputs.values()), list(self.guards.values()), body, result, self.kinds, file,
                      self.reshapes)

    def _materialized(self, value: Any) -> Any:
        """The result with a variable in the place of each expression."""
        if isinstance(value, Tup):
            return Tup(tuple([self._materialized(item) for item in value.items]), value.cls)
        if isinstance(value, Rec):
            return Rec({key: self._materialized(item) for key, item in value.fields.items()}, value.cls)
        if isinstance(value, (Fn, Maybe)) or value is CONFLICT:
            raise self.refused("its result is a function or need not be defined")
        if isinstance(value, Static):
            if not isinstance(value.value, PLAIN):
                raise self.refused(f"its result is a {type(value.value).__name__}")
            return value
        return value if isinstance(value, Var) else self.temporary(value, "value")

    def _with_flags(self, block: Block) -> Block:
        """The statements with a flag for each variable that need not be defined where it is used."""
        if not self.maybe:
            return block

        def flagged(stmts: Block) -> Block:
            found: Block = []
            for stmt in stmts:
                names = [name for name in assigned(stmt) if name in self.maybe]
                for inner in blocks_of(stmt):
                    inner[:] = flagged(inner)
                if isinstance(stmt, For) and stmt.name in names:
                    stmt.body.insert(0, Let(f"{stmt.name}_known", Const(True, BOOL), stmt.line))
                    names.remove(stmt.name)
                found.append(stmt)
                found += [Let(f"{name}_known", Const(True, BOOL), getattr(stmt, "line", 0)) for name in names]
            return found

        for name in self.maybe:
            self.kinds[f"{name}_known"] = BOOL
        start = [Let(f"{name}_known", Const(False, BOOL), 0) for name in sorted(self.maybe)]
        return start + flagged(block)

    # -- names ---------------------------------------------------------------------------------------------------------

    def lookup(self, scope: Scope, node: ast.Name) -> Any:
        """What a name means."""
        name = node.id
        if name in scope.env:
            found = scope.env[name]
            if found is CONFLICT:
                raise self.refused(f"{name} is of several kinds", node)
            if isinstance(found, Maybe):
                found = self.defined(found.value, node)
            return found
        if name in scope.stores:
            raise self.refused(f"{name} is used before it is assigned", node)
        return self.free(scope, name, node)

    def defined(self, value: Any, node: Any) -> Any:
        """A variable that need not be defined, after a check that it is."""
        if value is CONFLICT:
            raise self.refused("a variable is of several kinds", node)
        for leaf in _variables(value):
            if not is_flag(leaf.name.rpartition("__")[2]) and leaf.name not in self.inputs:
                self.maybe.add(leaf.name)
                self.emit(Check(Var(f"{leaf.name}_known", BOOL), self.line))
        return value

    def free(self, scope: Scope, name: str, node: Any) -> Any:
        """What a name means that is no local variable."""
        if name in scope.cells and scope.path is not None:
            function = scope.path
            cell = function.root if not function.steps else None
            owner = getattr(cell, "__closure__", None)
            if owner is not None:
                try:
                    value = owner[scope.cells[name]].cell_contents
                except ValueError:
                    raise self.refused(f"{name} is not assigned yet", node) from None
                return self.object(value, Path(owner[scope.cells[name]], False).to("cell", name), name)
        if scope.outer is not None:
            outer = scope.outer
            if name in outer.env or name in outer.stores:
                return self.lookup(outer, ast.copy_location(ast.Name(name, ast.Load()), node))
            return self.free(outer, name, node)
        if name in scope.variables:
            return self.object(scope.variables[name], Path(scope.variables, False).to("key", name), name)
        builtin = vars(builtins)
        if name in builtin:
            self.guards.setdefault(("absent", id(scope.variables), name), Guard(
                Path(scope.variables, False), name, "absent"))
            return Static(builtin[name])
        raise self.refused(f"{name} is not defined", node)

    def bind(self, scope: Scope, name: str, value: Any) -> None:
        """Let a variable have a value."""
        once = scope.stores.get(name, 1) <= 1
        if isinstance(value, Var) and isinstance(value.kind, Num) and value.kind.boxed:
            if any(_is_updated(stmt, name) for stmt in scope.body):
                raise self.refused("an array without dimensions is written to")
            value = unboxed(value)
        scope.env[name] = self.bound(scope.prefix + name, value, once)

    def bound(self, name: str, value: Any, once: bool) -> Any:
        """A value held by a variable."""
        if isinstance(value, (Tup, Rec)):
            items = list(enumerate(value.items)) if isinstance(value, Tup) else list(value.fields.items())
            kept = {key: self.bound(f"{name}_{key}", item, once) for key, item in items}
            return Tup(tuple(kept.values()), value.cls) if isinstance(value, Tup) else Rec(kept, value.cls)
        if isinstance(value, Static):
            expr = as_expr(value)
            if expr is None or once:
                return value
            value = expr
        if isinstance(value, Fn):
            return value
        if isinstance(value, Var) and once and self._is_fixed(value):
            return value
        if is_number(value) and value.kind.boxed:
            raise self.refused("an array without dimensions is given another name")
        if self.unsure and value.kind == INT and _grows(name, value):
            for each in {node.name for node in nodes(value) if isinstance(node, Var) and is_number(node)}:
                size = Op("abs", (Var(each, INT),), INT)
                self.emit(Check(Op("less", (size, Const(2**31, INT)), BOOL), self.line))
        found = self.let(name, value)
        if once and not self.unsure:
            self.single.add(found.name)
        return found

    def _is_fixed(self, value: Var) -> bool:
        """Whether a variable is bound once in all."""
        return value.name in self.inputs or value.name in self.single

    # -- functions -----------------------------------------------------------------------------------------------------

    def call_python(
        self, function: Any, path: Path, args: Sequence[Any], keywords: dict[str, Any], names: bool = False
    ) -> Any:
        """Read a function in place.

        Arguments:
            function: a function, a method, or a partial one.
            path: how it is reached.
            args, keywords: what it is called with.
            names: whether its variables keep their names.
        """
        args, keywords = list(args), dict(keywords)
        while True:
            if isinstance(function, types.MethodType):
                owner = function.__self__
                args.insert(0, self.object(owner, Path(function, False).to("attr", "__self__"), "self")
                            if not isinstance(owner, type) else Static(owner))
                function = function.__func__
            elif isinstance(function, functools.partial):
                root = Path(function, False)
                args[:0] = [self.object(arg, root.to("attr", "args").to("item", i), f"given{i}")
                            for i, arg in enumerate(function.args)]
                given = {key: self.object(value, root.to("attr", "keywords").to("key", key), key)
                         for key, value in function.keywords.items()}
                keywords = given | keywords
                function = function.func
            elif type(function).__name__ == "Compiled" and hasattr(function, "function"):
                function = function.function
            elif users_function(function) is not function:
                function = users_function(function)
            else:
                break
        if not isinstance(function, types.FunctionType):
            raise self.refused(f"{getattr(function, '__qualname__', function)} is no Python function")
        module = str(function.__module__).partition(".")[0]
        if module in ("viewgrad", "numpy", "scipy"):
            raise self.refused(f"{module}'s {function.__qualname__} has no rule here")
        if function.__code__.co_flags & 0x2A0:  # generators and coroutines
            raise self.refused(f"{function.__qualname__} is a generator")
        if hasattr(function, "__wrapped__"):
            raise self.refused(f"{function.__qualname__} is wrapped by a decorator")
        node = tree_of(function)
        self.guards.setdefault(("code", id(function)), Guard(
            Path(function, False).to("attr", "__code__"), function.__code__, "is"))
        self.paths.append(function)
        defaults = [self.object(value, Path(function, False).to("attr", "__defaults__").to("item", i), f"default{i}")
                    for i, value in enumerate(function.__defaults__ or ())]
        kw_defaults = {key: self.object(value, Path(function, False).to("attr", "__kwdefaults__").to("key", key), key)
                       for key, value in (function.__kwdefaults__ or {}).items()}
        cells = {name: i for i, name in enumerate(function.__code__.co_freevars)}
        prefix = "" if names else self.fresh(f"{_plain_name(function.__name__)}") + "__"
        scope = Scope(None, stores_of(node), prefix, function.__globals__, Path(function, False), cells,
                      function.__code__.co_filename)
        return self.inlined(node, scope, args, keywords, defaults, kw_defaults)

    def call_nested(self, fn: Fn, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Read a nested function, or a lambda, in place."""
        outer = fn.scope
        name = self.fresh(_plain_name(getattr(fn.node, "name", "lambda_")))
        scope = Scope(outer, stores_of(fn.node), f"{name}__", outer.variables, None, {}, outer.file)
        kw_only = [arg.arg for arg in fn.node.args.kwonlyargs]
        kw_defaults = {key: value for key, value in zip(kw_only, fn.kw_defaults) if value is not None}
        return self.inlined(fn.node, scope, list(args), dict(keywords), list(fn.defaults), kw_defaults)

    def inlined(
        self, node: ast.FunctionDef | ast.Lambda, scope: Scope, args: list[Any], keywords: dict[str, Any],
        defaults: Sequence[Any], kw_defaults: dict[str, Any],
    ) -> Any:
        """The result of a function read in place."""
        if self.depth >= DEEP:
            raise self.refused("calls are nested too deeply, as in a recursion", node)
        before = self.line, self.file
        self.depth += 1
        self.file = scope.file
        given = self.parameters(node, args, keywords, defaults, kw_defaults)
        for name, value in given.items():
            if name in scope.stores:
                scope.stores[name] += 1
                if isinstance(value, Var) and isinstance(value.kind, Num) and value.kind.boxed:
                    if _is_updated(node, name):
                        raise self.refused("an array without dimensions is written to", node)
                    value = unboxed(value)
                self.bind(scope, name, value)
            else:
                scope.env[name] = self.held(value)
        result = self.value(scope, node.body) if isinstance(node, ast.Lambda) else self.returned(node, scope, given)
        self.depth -= 1
        self.line, self.file = before
        return result

    def parameters(
        self, node: ast.FunctionDef | ast.Lambda, args: list[Any], keywords: dict[str, Any], defaults: Sequence[Any],
        kw_defaults: dict[str, Any],
    ) -> dict[str, Any]:
        """The parameters of a function, with what it is called with."""
        spec = node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        given = dict(zip(positional, args))
        if len(args) > len(positional):
            if spec.vararg is None:
                raise self.refused("too many arguments")
            given[spec.vararg.arg] = Tup(tuple(args[len(positional) :]))
        elif spec.vararg is not None:
            given[spec.vararg.arg] = Tup(())
        rest = {}
        for key, value in keywords.items():
            if key in given:
                raise self.refused(f"{key} is given twice")
            if key in positional or any(key == arg.arg for arg in spec.kwonlyargs):
                given[key] = value
            else:
                rest[key] = value
        if spec.kwarg is not None:
            given[spec.kwarg.arg] = Rec(rest)
        elif rest:
            raise self.refused(f"it takes no argument {next(iter(rest))}")
        for name, value in zip(positional[len(positional) - len(defaults) :], defaults):
            given.setdefault(name, value)
        for name, value in kw_defaults.items():
            given.setdefault(name, value)
        missing = [name for name in (*positional, *(arg.arg for arg in spec.kwonlyargs)) if name not in given]
        if missing:
            raise self.refused(f"argument {missing[0]} is missing")
        return given

    def returned(self, node: ast.FunctionDef, scope: Scope, given: dict[str, Any]) -> Any:
        """What the statements of a function return."""
        if any(isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)) for each in ast.walk(node)):
            raise self.refused("generators are not taken", node)
        try:
            body = without_jumps(node.body)
        except NotImplementedError as error:
            raise self.refused(f"{error} is not taken", node) from None
        scope.stores = stores_of(body)
        for name in given:
            if name in scope.stores:
                scope.stores[name] += 1
        scope.body = body
        self.block(scope, body)
        result = scope.env.get("_result", Static(None))
        if isinstance(result, Maybe):
            result = result.value
        if result is CONFLICT:
            raise self.refused("it returns values of several kinds", node)
        return result

    def held(self, value: Any) -> Any:
        """An argument as a value that does not change while the function runs."""
        if isinstance(value, Tup):
            return Tup(tuple([self.held(item) for item in value.items]), value.cls)
        if isinstance(value, Rec):
            return Rec({key: self.held(item) for key, item in value.fields.items()}, value.cls)
        if isinstance(value, (Static, Fn, Var, Const)):
            return value
        return self.temporary(value)

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, scope: Scope, stmts: Sequence[ast.stmt]) -> None:
        """Read statements."""
        for stmt in stmts:
            self.line = getattr(stmt, "lineno", self.line)
            method = getattr(self, f"on_{type(stmt).__name__}", None)
            if method is None:
                raise self.refused(f"`{_keyword(stmt)}` is not taken", stmt)
            method(scope, stmt)

    def on_Pass(self, scope: Scope, stmt: ast.Pass) -> None:
        """Nothing."""

    def on_Expr(self, scope: Scope, stmt: ast.Expr) -> None:
        """A call for its effect, or a docstring."""
        if not isinstance(stmt.value, ast.Constant):
            found = self.value(scope, stmt.value)
            for leaf in leaves_of(found):
                if isinstance(leaf, (Call, Get, Op, Lazy)):  # which may raise
                    self.temporary(leaf)

    def on_Assign(self, scope: Scope, stmt: ast.Assign) -> None:
        """An assignment."""
        if len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Tuple) and isinstance(stmt.value, ast.Tuple):
            targets, parts = stmt.targets[0].elts, stmt.value.elts
            if len(targets) == len(parts) and not any(isinstance(each, ast.Starred) for each in (*targets, *parts)):
                values = [self.kept_value(scope, part) for part in parts]
                for target, value in zip(targets, values):
                    self.assign(scope, target, value)
                return
        value = self.value(scope, stmt.value)
        if len(stmt.targets) > 1 and as_expr(value) is not None and not isinstance(value, (Static, Var)):
            value = self.temporary(value)
        for target in stmt.targets:
            self.assign(scope, target, value)

    def kept_value(self, scope: Scope, node: ast.expr) -> Any:
        """A value that does not change by what is assigned before it is used."""
        value = self.value(scope, node)
        return self.copied(value)

    def copied(self, value: Any) -> Any:
        """The value in variables of its own."""
        if isinstance(value, Tup):
            return Tup(tuple([self.copied(item) for item in value.items]), value.cls)
        if isinstance(value, (Static, Fn, Const, Rec)):
            return value
        return self.temporary(value)

    def on_AnnAssign(self, scope: Scope, stmt: ast.AnnAssign) -> None:
        """An annotated assignment."""
        if stmt.value is not None:
            self.assign(scope, stmt.target, self.value(scope, stmt.value))

    def on_Delete(self, scope: Scope, stmt: ast.Delete) -> None:
        """A name that is not used any more."""
        for target in stmt.targets:
            if not isinstance(target, ast.Name):
                raise self.refused("`del` of an item is not taken", stmt)
            scope.env[target.id] = CONFLICT

    def on_Assert(self, scope: Scope, stmt: ast.Assert) -> None:
        """A check."""
        test = self.truth(self.value(scope, stmt.test), stmt)
        if test is False:
            raise self.refused("an assertion fails", stmt)
        if test is not True:
            self.emit(Check(test, self.line))

    def on_Raise(self, scope: Scope, stmt: ast.Raise) -> None:
        """An error: the function runs eagerly, and raises it."""
        if not self.unsure:
            raise self.refused("it always raises", stmt)
        self.emit(Check(Const(False, BOOL), self.line))

    def on_FunctionDef(self, scope: Scope, stmt: ast.FunctionDef) -> None:
        """A nested function."""
        if stmt.decorator_list:
            raise self.refused("a nested function with a decorator is not taken", stmt)
        if any(isinstance(each, (ast.Nonlocal, ast.Global)) for each in ast.walk(stmt)):
            raise self.refused("`nonlocal` is not taken", stmt)
        scope.env[stmt.name] = self.nested(scope, stmt)

    def nested(self, scope: Scope, node: Any) -> Fn:
        """A function that is defined here."""
        defaults = tuple([self.held(self.value(scope, each)) for each in node.args.defaults])
        kw = tuple([None if each is None else self.held(self.value(scope, each)) for each in node.args.kw_defaults])
        return Fn(node, scope, defaults, kw)

    def on_AugAssign(self, scope: Scope, stmt: ast.AugAssign) -> None:
        """An assignment in place."""
        target, name = stmt.target, BINARY.get(type(stmt.op))
        if isinstance(target, ast.Name):
            before = self.lookup(scope, ast.copy_location(ast.Name(target.id, ast.Load()), target))
            value = self.value(scope, stmt.value)
            if isinstance(before, Tup):
                raise self.refused("a list is extended", stmt)
            current = as_expr(before)
            if current is None:
                raise self.refused(f"{kind_name(before)} in place", stmt)
            if isinstance(current.kind, Arr):
                index = (FULL,) * current.kind.ndim
                self.update(current, index, name, value, stmt)
                return
            if current.kind.boxed:
                raise self.refused("an array without dimensions is written to", stmt)
            self.bind(scope, target.id, calls.arithmetic(self, name, before, value) if name is not None
                      else self.matmul(before, value))
            return
        if isinstance(target, ast.Subscript):
            base, index = self.place(scope, target)
            self.update(base, index, name, self.value(scope, stmt.value), stmt)
            return
        raise self.refused("an attribute is assigned", stmt)

    def update(self, base: Any, index: tuple[Any, ...], name: str | None, value: Any, stmt: Any) -> None:
        """Write `place op value` to a place."""
        expr = as_expr(value)
        if expr is None or name is None:
            raise self.refused(f"{kind_name(value)} in place", stmt)
        old = calls.get(base, index)
        new = calls.arithmetic(self, name, old, expr)
        simple = name in ("add", "sub") and isinstance(new, Op) and new.kind.dtype == base.kind.dtype
        if simple and new.kind.dtype in "dfDF":
            self.store(base, index, expr, stmt, name)
        else:
            self.store(base, index, new, stmt)

    def store(self, base: Any, index: tuple[Any, ...], value: Any, stmt: Any, op: str = "") -> None:
        """Write to a place."""
        expr = as_expr(value)
        if expr is None:
            raise self.refused(f"{kind_name(value)} is written to an array", stmt)
        target = calls.get(base, index)
        if not np.can_cast(expr.kind.dtype, base.kind.dtype, "same_kind") or (
            expr.kind.dtype in "dfDF" and base.kind.dtype in "?l"
        ):
            given, held = np.dtype(expr.kind.dtype), np.dtype(base.kind.dtype)
            raise self.refused(f"{given} is written to an array of {held}", stmt)
        if expr.kind.ndim > target.kind.ndim:
            raise self.refused("an array is written to a place of fewer dimensions", stmt)
        if expr.kind.dtype != base.kind.dtype and expr.kind.dtype in "dDF" and base.kind.dtype in "fF" \
                and not expr.kind.weak if is_number(expr) else False:
            raise self.refused("a number is rounded when it is written", stmt)
        self.emit(Set(base, index, self.lifted(expr), op, self.line))

    def assign(self, scope: Scope, target: ast.expr, value: Any) -> None:
        """Assign to a target."""
        if isinstance(target, ast.Name):
            self.bind(scope, target.id, value)
        elif isinstance(target, ast.Subscript):
            expr = as_expr(value)
            if expr is not None and not isinstance(expr, (Const, Var)) and _has_calls(target):
                value = self.temporary(expr)
            base, index = self.place(scope, target)
            self.store(base, index, value, target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = self.unpacked(value, len(target.elts), target)
            if any(isinstance(each, ast.Starred) for each in target.elts):
                raise self.refused("a starred target is not taken", target)
            if not isinstance(value, (Tup, Static)):
                items = [self.temporary(item) if not isinstance(item, (Static, Var)) else item for item in items]
            for each, item in zip(target.elts, items):
                self.assign(scope, each, item)
        else:
            raise self.refused("an attribute is assigned", target)

    def unpacked(self, value: Any, count: int, node: Any) -> list[Any]:
        """The items of what is unpacked."""
        if isinstance(value, Rec) and value.cls is dict:
            return [Static(key) for key in value.fields]
        if isinstance(value, Static) and isinstance(value.value, (tuple, list, str)):
            value = Tup(tuple([Static(each) for each in value.value]))
        if isinstance(value, Tup):
            if len(value.items) != count:
                raise self.refused(f"{len(value.items)} values are unpacked to {count}", node)
            return list(value.items)
        expr = as_expr(value)
        if expr is None or not isinstance(expr.kind, Arr):
            raise self.refused(f"{kind_name(value)} is unpacked", node)
        base = expr if isinstance(expr, Var) else self.temporary(expr)
        self.emit(Check(Op("equal", (Dim(base, 0), Const(count, INT)), BOOL), self.line))
        return [calls.indexed(self, base, [Static(number)]) for number in range(count)]

    def place(self, scope: Scope, target: ast.Subscript) -> tuple[Any, tuple[Any, ...]]:
        """The array and the index that a subscript writes to."""
        base = self.value(scope, target.value)
        expr = as_expr(base)
        if expr is None or not isinstance(expr.kind, Arr):
            if isinstance(expr, Var) and isinstance(expr.kind, Num) and expr.kind.boxed:
                raise self.refused("an array without dimensions is written to", target)
            raise self.refused(f"an item of {kind_name(base)} is assigned", target)
        items = self.index_items(scope, target.slice)
        if isinstance(expr, Get) and expr.is_view:
            inner = calls.indexed(self, expr, items)
            if isinstance(inner, Get) and inner.base == expr.base:
                return inner.base, inner.index
        if not isinstance(expr, Var):
            expr = self.temporary(expr)
        found = calls.indexed(self, expr, items)
        assert isinstance(found, Get)
        return found.base, found.index

    def index_items(self, scope: Scope, node: ast.expr) -> list[Any]:
        """The items of an index."""
        if isinstance(node, ast.Tuple):
            return [self.index_item(scope, each) for each in node.elts]
        found = self.index_item(scope, node)
        return list(found.items) if isinstance(found, Tup) and found.cls is tuple else [found]

    def index_item(self, scope: Scope, node: ast.expr) -> Any:
        """An item of an index: an expression, a `Slice`, or a known object."""
        if isinstance(node, ast.Slice):
            parts = [None if part is None else self.value(scope, part) for part in (node.lower, node.upper, node.step)]
            return calls.sliced(self, parts)
        found = self.value(scope, node)
        if isinstance(found, Static) and isinstance(found.value, slice):
            return calls.sliced(self, [None if part is None else Static(part) for part in (
                found.value.start, found.value.stop, found.value.step)])
        return found

    # -- branches and loops --------------------------------------------------------------------------------------------

    def on_If(self, scope: Scope, stmt: ast.If) -> None:
        """A branch; one of both sides where the condition is known."""
        test = self.truth(self.value(scope, stmt.test), stmt)
        if test is True or test is False:
            self.block(scope, stmt.body if test else stmt.orelse)
            return
        line = self.line
        entry = dict(scope.env)
        then = self.within(lambda: self.block(scope, stmt.body))
        after_then, scope.env = scope.env, dict(entry)
        other = self.within(lambda: self.block(scope, stmt.orelse))
        if _never_ends(then):
            pass
        elif _never_ends(other):
            scope.env = after_then
        else:
            scope.env = _joined_envs(after_then, scope.env)
        self.emit(If(test, then, other, line))

    def within(self, read: Callable[[], None]) -> Block:
        """The statements that something reads."""
        before, self.buffer = self.buffer, []
        self.unsure += 1
        try:
            read()
            return self.buffer
        finally:
            self.buffer = before
            self.unsure -= 1

    def looped(self, scope: Scope, read: Callable[[], None]) -> Block:
        """The body of a loop, read until the kinds of variables stay what they are."""
        entry = dict(scope.env)
        numbers = dict(self.numbers)
        for _ in range(8):
            scope.env = dict(entry)
            self.numbers = dict(numbers)
            body = self.within(read)
            merged = {name: joined_values(value, scope.env.get(name, value)) for name, value in entry.items()}
            if all(_same(merged[name], value) for name, value in entry.items()):
                for name, value in scope.env.items():
                    if name not in entry:
                        merged[name] = value if isinstance(value, (Maybe, Fn)) or value is CONFLICT else Maybe(value)
                scope.env = merged
                return body
            entry = merged
        raise self.refused("the kinds of its variables do not settle")

    def on_While(self, scope: Scope, stmt: ast.While) -> None:
        """A loop while a condition holds."""
        line = self.line
        stop = stop_of(stmt)
        flag = None if stop is None else scope.prefix + stop
        state: dict[str, Any] = {}

        def read() -> None:
            test = self.truth(self.value(scope, stmt.test), stmt)
            if self.buffer:  # what the condition needs is computed in the body
                if flag is None:
                    raise self.refused("a condition that needs statements", stmt)
                pre, self.buffer = self.buffer, []
                entry = dict(scope.env)
                self.block(scope, stmt.body)
                body, self.buffer = self.buffer, pre
                scope.env = _joined_envs(scope.env, entry)
                end = Let(flag, Const(True, BOOL), line)
                self.emit(If(test, body, [end], line))
                state["test"] = Const(True, BOOL)
                return
            if test is False:
                state["test"] = Const(False, BOOL)
                return
            state["test"] = Const(True, BOOL) if test is True else test
            self.block(scope, stmt.body)

        if flag is None:
            probe = self.within(lambda: self.truth(self.value(scope, stmt.test), stmt))
            if probe:
                flag = self.fresh("_stop_")
                self.kinds[flag] = BOOL
                self.emit(Let(flag, Const(False, BOOL), line))
        body = self.looped(scope, read)
        if isinstance(state["test"], Const) and state["test"].value is False:
            return
        self.emit(While(state["test"], body, None, flag, line=line))

    def on_For(self, scope: Scope, stmt: ast.For) -> None:
        """A loop over a range, an array, or what is made of them; over known values, its iterations one by one."""
        line = self.line
        stop = stop_of(stmt)
        sequence = self.sequence(scope, stmt.iter)
        if isinstance(sequence, Tup):
            if stop is not None or len(sequence.items) > UNROLLED:
                raise self.refused(f"a loop over {len(sequence.items)} known values", stmt)
            for item in sequence.items:
                self.assign(scope, stmt.target, item)
                self.block(scope, stmt.body)
            return
        plain = sequence.is_range and isinstance(stmt.target, ast.Name)
        hint = stmt.target.id if plain else "k"  # type: ignore[attr-defined]
        kept = plain and _used_outside(scope, stmt, hint)
        low, high = sequence.low, sequence.high
        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (low, high)]
        numbers = dict(self.numbers)
        self.numbers = numbers
        name = self.fresh(scope.prefix + (hint if plain and not kept else "k"))
        self.kinds[name] = INT
        counter = Var(name, INT)

        def read() -> None:
            if plain and not kept:
                scope.env[hint] = counter
            else:
                self.assign(scope, stmt.target, sequence.item(counter))
            self.block(scope, stmt.body)

        if plain and not kept:
            scope.env.pop(hint, None)
        body = self.looped(scope, read)
        flag = None if stop is None else scope.prefix + stop
        self.emit(For(name, low, high, sequence.step, body, None, flag, line=line))

    def fixed(self, expr: Any) -> Any:
        """A bound of a loop as an expression that nothing in it changes."""
        for node in nodes(expr):
            if isinstance(node, Get) or (
                isinstance(node, Var) and node.name in self.variables and node.name not in self.single
            ):
                return self.temporary(expr, "n")
        return expr

    # -- expressions ---------------------------------------------------------------------------------------------------

    def value(self, scope: Scope, node: ast.expr) -> Any:
        """What an expression means."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            raise self.refused(f"`{type(node).__name__}` is not taken", node)
        return method(scope, node)

    def number(self, scope: Scope, node: ast.expr) -> Any:
        """An expression that is a number or an array."""
        found = as_expr(self.value(scope, node))
        if found is None:
            raise self.refused("something else than a number or an array", node)
        return found

    def of_Constant(self, scope: Scope, node: ast.Constant) -> Any:
        """A constant."""
        return Static(node.value)

    def of_Name(self, scope: Scope, node: ast.Name) -> Any:
        """A name."""
        return self.lookup(scope, node)

    def of_Tuple(self, scope: Scope, node: ast.Tuple) -> Any:
        """A tuple."""
        return Tup(tuple(self._starred(scope, node.elts)))

    def of_List(self, scope: Scope, node: ast.List) -> Any:
        """A list."""
        return Tup(tuple(self._starred(scope, node.elts)), list)

    def _starred(self, scope: Scope, elements: Sequence[ast.expr]) -> Iterator[Any]:
        for each in elements:
            if isinstance(each, ast.Starred):
                inner = self.value(scope, each.value)
                if not isinstance(inner, Tup):
                    raise self.refused("a starred value whose length is not known", each)
                yield from inner.items
            else:
                yield self.value(scope, each)

    def of_Dict(self, scope: Scope, node: ast.Dict) -> Any:
        """A dict with known keys."""
        fields = {}
        for key, value in zip(node.keys, node.values):
            known = None if key is None else self.value(scope, key)
            if not isinstance(known, Static) or not is_plain(known.value):
                raise self.refused("a dict whose keys are not known", node)
            fields[known.value] = self.held(self.value(scope, value))
        return Rec(fields)

    def of_JoinedStr(self, scope: Scope, node: ast.JoinedStr) -> Any:
        """A text, which is of no use here."""
        return TEXT

    def of_Lambda(self, scope: Scope, node: ast.Lambda) -> Any:
        """A lambda."""
        return self.nested(scope, node)

    def of_NamedExpr(self, scope: Scope, node: ast.NamedExpr) -> Any:
        """An assignment inside an expression."""
        self.assign(scope, node.target, self.value(scope, node.value))
        return self.lookup(scope, ast.copy_location(ast.Name(node.target.id, ast.Load()), node))

    def of_BinOp(self, scope: Scope, node: ast.BinOp) -> Any:
        """An operator."""
        left = self.value(scope, node.left)
        right = self.value(scope, node.right)
        if isinstance(node.op, ast.MatMult):
            return self.matmul(left, right)
        return calls.arithmetic(self, BINARY[type(node.op)], left, right)

    def matmul(self, left: Any, right: Any) -> Any:
        """The product of matrices."""
        return calls.pure(self, "matmul", [left, right], {})

    def of_UnaryOp(self, scope: Scope, node: ast.UnaryOp) -> Any:
        """An operator of one operand."""
        value = self.value(scope, node.operand)
        if isinstance(node.op, ast.Not):
            test = self.truth(value, node)
            return Static(not test) if isinstance(test, bool) else Lazy("not", (test,), BOOL)
        return calls.arithmetic(self, UNARY[type(node.op)], value)

    def of_BoolOp(self, scope: Scope, node: ast.BoolOp) -> Any:
        """`and` and `or`, of conditions."""
        is_and = isinstance(node.op, ast.And)
        found: Any = None
        for number, part in enumerate(node.values):
            last = number == len(node.values) - 1
            if found is None:
                value = self.value(scope, part)
                test = self.truth(value, part)
                if isinstance(test, bool):
                    if test is not is_and:
                        return value
                    if last:
                        return value
                    continue
                found = test
                continue
            found = self.second(scope, part, found, is_and)
        return found

    def second(self, scope: Scope, part: ast.expr, first: Any, is_and: bool) -> Any:
        """A condition that is asked only if the first leaves it open."""
        result: list[Any] = []

        def read() -> None:
            result.append(self.truth(self.value(scope, part), part))

        entry = dict(scope.env)
        block = self.within(read)
        test = result[0]
        if isinstance(test, bool):
            return first if test is is_and else Static(test) if not block else Lazy(
                "and" if is_and else "or", (first, Const(test, BOOL)), BOOL)
        if not block:
            return Lazy("and" if is_and else "or", (first, test), BOOL)
        scope.env = _joined_envs(scope.env, entry)
        name = self.fresh("test")
        self.kinds[name] = BOOL
        skipped = [Let(name, Const(not is_and, BOOL), self.line)]
        asked = [*block, Let(name, test, self.line)]
        self.emit(If(first, asked, skipped, self.line) if is_and else If(first, skipped, asked, self.line))
        return Var(name, BOOL)

    def of_Compare(self, scope: Scope, node: ast.Compare) -> Any:
        """Comparisons."""
        left = self.value(scope, node.left)
        found: Any = None
        for operator, part in zip(node.ops, node.comparators):
            right = self.value(scope, part)
            test = calls.comparison(self, operator, left, right, COMPARISONS)
            if found is None:
                found = test
            else:
                one, two = self.truth(found, node), self.truth(test, node)
                if isinstance(one, bool):
                    found = test if one else found
                elif isinstance(two, bool):
                    found = found if two else test
                else:
                    found = Lazy("and", (one, two), BOOL)
            left = right
        return found

    def of_IfExp(self, scope: Scope, node: ast.IfExp) -> Any:
        """A conditional expression."""
        test = self.truth(self.value(scope, node.test), node)
        if isinstance(test, bool):
            return self.value(scope, node.body if test else node.orelse)
        sides: list[Any] = []
        entry = dict(scope.env)
        blocks = []
        for part in (node.body, node.orelse):
            scope.env = dict(entry)
            blocks.append(self.within(lambda part=part: sides.append(self.value(scope, part))))  # type: ignore[misc]
        scope.env = entry
        exprs = [as_expr(side) for side in sides]
        if any(expr is None for expr in exprs):
            raise self.refused("a choice of something else than numbers and arrays", node)
        kinds = [expr.kind for expr in exprs]
        kind = joined(*kinds)
        if kind is None:
            raise self.refused("a choice of two kinds", node)
        if isinstance(kind, Num) and not any(blocks):
            return Lazy("if", (test, *exprs), kind)
        name = self.fresh("choice")
        self.kinds[name] = kind
        self.variables.add(name)
        then, other = [[*block, Let(name, expr, self.line)] for block, expr in zip(blocks, exprs)]
        self.emit(If(test, then, other, self.line))
        return Var(name, kind)

    def of_Subscript(self, scope: Scope, node: ast.Subscript) -> Any:
        """An item."""
        base = self.value(scope, node.value)
        return calls.item(self, base, self.index_items(scope, node.slice), node)

    def of_Attribute(self, scope: Scope, node: ast.Attribute) -> Any:
        """An attribute."""
        base = self.value(scope, node.value)
        if isinstance(base, Static):
            return self.attribute_value(base, node.attr)
        if isinstance(base, Rec):
            if node.attr in base.fields and base.cls is not dict:
                return base.fields[node.attr]
            raise self.refused(f"attribute {node.attr} of a {base.cls.__name__}", node)
        if isinstance(base, Tup) and hasattr(base.cls, "_fields") and node.attr in base.cls._fields:
            return base.items[base.cls._fields.index(node.attr)]
        return calls.attribute(self, base, node.attr, node)

    def attribute_value(self, base: Static, name: str) -> Any:
        """An attribute of an object that is known, which may be a property."""
        found = self.attribute_of(base, name)
        if type(found) is Getter:
            return self.call_python(found.function, Path(found.function, False), [base], {})
        return found

    def of_Call(self, scope: Scope, node: ast.Call) -> Any:
        """A call."""
        base: Any = None
        if isinstance(node.func, ast.Attribute):
            base = self.value(scope, node.func.value)
            if isinstance(base, Static):
                function = self.attribute_value(base, node.func.attr)
            elif isinstance(base, Rec):
                function = self.member(base, node.func.attr, node)
            else:
                function = None
        else:
            function = self.value(scope, node.func)
        if isinstance(function, Static) and library_name(function.value) == "builtins.isinstance":
            return self.is_instance(scope, node)
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                inner = self.value(scope, arg.value)
                if not isinstance(inner, Tup):
                    raise self.refused("starred arguments whose number is not known", node)
                args += inner.items
            else:
                args.append(self.argument(scope, arg))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(scope, keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Rec) and value.cls is dict:
                keywords |= value.fields
            else:
                raise self.refused("keywords that are not known", node)
        if function is None:
            assert isinstance(node.func, ast.Attribute)
            return calls.method(self, base, node.func.attr, args, keywords)
        return self.called(function, args, keywords, node)

    def argument(self, scope: Scope, node: ast.expr) -> Any:
        """An argument of a call."""
        if isinstance(node, ast.GeneratorExp) and len(node.generators) == 1 and not node.generators[0].ifs:
            sequence = self.sequence(scope, node.generators[0].iter)
            if not isinstance(sequence, Tup):
                return Fn(ast.Lambda(ast.arguments([], [], None, [], [], None, []), node), scope)
        if isinstance(node, ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
            sequence = self.sequence(scope, node.generators[0].iter)
            if not isinstance(sequence, Tup):
                return Fn(ast.Lambda(ast.arguments([], [], None, [], [], None, []), node), scope)
        return self.value(scope, node)

    def called(self, function: Any, args: list[Any], keywords: dict[str, Any], node: Any) -> Any:
        """The result of a call."""
        if isinstance(function, Given):
            return function.value
        if isinstance(function, Bound):
            path = Path(function.function, False)
            return self.call_python(function.function, path, [function.owner, *args], keywords)
        if isinstance(function, Fn):
            return self.call_nested(function, args, keywords)
        if not isinstance(function, Static):
            raise self.refused(f"{kind_name(function)} is called", node)
        value = function.value
        name = library_name(value)
        if name is not None:
            if name == "builtins.sum" and args and isinstance(args[0], Fn):
                return self.summed(args[0], args[1] if len(args) > 1 else keywords.get("start", Static(0)))
            if name in ARRAYS_OF_LISTS and args and isinstance(args[0], Fn) and isinstance(
                args[0].node.body, ast.ListComp
            ):
                args = [self.listed(args[0]), *args[1:]]
                if name == "numpy.stack" and len(args) == 1 and not keywords:
                    return args[0]
            if any(isinstance(arg, Fn) for arg in args):
                raise self.refused(f"a generator is given to {name.rpartition('.')[2]}", node)
            return calls.library(self, name, args, keywords)
        if isinstance(value, type):
            fields = record_fields(value)
            if fields is not None and not hasattr(value, "__post_init__") and not hasattr(value, "__attrs_post_init__"):
                by_keyword = {key: self.held(each) for key, each in keywords.items()}
                return Rec(dict(zip(fields, map(self.held, args))) | by_keyword, value)
            if hasattr(value, "_fields"):
                given = dict(zip(value._fields, args)) | keywords
                if list(given) == list(value._fields):
                    return Tup(tuple(map(self.held, given.values())), value)
            raise self.refused(f"an instance of {value.__name__} is made", node)
        return self.call_python(value, function.path or Path(value, False), args, keywords)

    def member(self, base: Rec, name: str, node: Any) -> Any:
        """A method of a record, or a function that it holds."""
        if base.cls is dict:
            method = {"keys": [Static(key) for key in base.fields], "values": list(base.fields.values()),
                      "items": [Tup((Static(key), value)) for key, value in base.fields.items()]}.get(name)
            if method is None:
                raise self.refused(f"dict.{name} is not taken", node)
            return Given(Tup(tuple(method)))
        if name in base.fields:
            return base.fields[name]
        member = next((vars(each)[name] for each in base.cls.__mro__ if name in vars(each)), None)
        if not isinstance(member, types.FunctionType):
            raise self.refused(f"{base.cls.__name__} has no method {name}", node)
        self.guard(member, Path(base.cls, False).to("attr", name))
        return Bound(member, base)

    def is_instance(self, scope: Scope, node: ast.Call) -> Any:
        """`isinstance`, of what is known."""
        value = self.value(scope, node.args[0])
        kind = self.value(scope, node.args[1])
        classes = kind.items if isinstance(kind, Tup) else (kind,)
        if not all(isinstance(each, Static) and isinstance(each.value, type) for each in classes):
            raise self.refused("isinstance of a class that is not known", node)
        given = tuple([each.value for each in classes])
        if isinstance(value, Static):
            return Static(isinstance(value.value, given))
        if isinstance(value, (Tup, Rec)):
            return Static(issubclass(value.cls, given))
        raise self.refused("isinstance of a number or an array", node)

    def summed(self, generator: Fn, start: Any) -> Any:
        """The sum of what a generator gives, by a loop."""
        node: Any = generator.node.body
        scope = generator.scope
        comprehension = node.generators[0]
        sequence = self.sequence(scope, comprehension.iter)
        names = [each.id for each in ast.walk(comprehension.target) if isinstance(each, ast.Name)]
        inner = Scope(scope, dict.fromkeys(names, 2), scope.prefix, scope.variables, None, {}, scope.file)
        inner.stores["total "] = 2
        total = self.fresh("total")
        inner.env["total "] = self.bound(total, start, False)
        name = self.fresh("k")
        self.kinds[name] = INT
        line = self.line

        def read() -> None:
            self.assign(inner, comprehension.target, sequence.item(Var(name, INT)))
            value = self.value(inner, node.elt)
            inner.env["total "] = self.bound(total, calls.arithmetic(self, "add", inner.env["total "], value), False)

        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (sequence.low, sequence.high)]
        body = self.looped(inner, read)
        self.emit(For(name, low, high, sequence.step, body, line=line))
        return inner.env["total "]

    def listed(self, comprehension: Fn) -> Any:
        """A list whose length is not known, of numbers or of rows, as an array."""
        node: Any = comprehension.node.body
        scope = comprehension.scope
        generator = node.generators[0]
        sequence = self.sequence(scope, generator.iter)
        names = [each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)]
        inner = Scope(scope, dict.fromkeys(names, 2), scope.prefix, scope.variables, None, {}, scope.file)
        count = sequence.count if isinstance(sequence.count, (Const, Var)) else self.temporary(sequence.count, "n")
        name = self.fresh("k")
        self.kinds[name] = INT
        line = self.line
        counter = Var(name, INT)
        number = Op("sub", (counter, sequence.low), INT)
        if sequence.step != 1:
            number = Op("floor_divide", (number, Const(sequence.step, INT)), INT)
        if sequence.step == 1 and sequence.low == Const(0, INT):
            number = counter  # type: ignore[assignment]
        found: list[Any] = []

        def read() -> None:
            self.assign(inner, generator.target, sequence.item(counter))
            found[:] = [as_expr(self.value(inner, node.elt))]

        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (sequence.low, sequence.high)]
        probe = self.looped(inner, read)
        if found[0] is None or not is_number(found[0]) or found[0].kind.dtype != "d":
            raise self.refused("a list of something else than floats, whose length is not known", node)
        array = self.temporary(Call("empty", ((count,),), (("dtype", "float64"),), Arr("d", 1)), "listed")
        self.emit(Check(Op("less_equal", (Const(0, INT), count), BOOL), line))
        probe.append(Set(array, (number,), found[0], "", line))
        self.emit(For(name, low, high, sequence.step, probe, line=line))
        return array

    def sequence(self, scope: Scope, node: ast.expr) -> Any:
        """What is iterated over: a `calls.Sequence`, or a `Tup` of known length."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            function = self.value(scope, node.func)
            name = library_name(function.value) if isinstance(function, Static) else None
            if name == "builtins.range":
                return calls.range_of(self, [self.value(scope, arg) for arg in node.args])
            if name in ("builtins.enumerate", "builtins.zip", "builtins.reversed"):
                count = 1 if name != "builtins.zip" else len(node.args)
                parts = [self.sequence(scope, arg) for arg in node.args[:count]]
                if name == "builtins.reversed":
                    return calls.reversed_sequence(self, parts[0])
                if name == "builtins.zip":
                    return calls.zipped(self, parts)
                start = self.value(scope, node.args[1]) if len(node.args) > 1 else Static(0)
                return calls.enumerated(self, parts[0], start)
        return calls.sequence_of(self, self.value(scope, node))

    def of_ListComp(self, scope: Scope, node: ast.ListComp) -> Any:
        """A list over known values."""
        return Tup(tuple(self.each(scope, node.elt, node.generators, node)), list)

    def of_DictComp(self, scope: Scope, node: ast.DictComp) -> Any:
        """A dict over known values."""
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        fields = {}
        for each in self.each(scope, pair, node.generators, node):
            key, value = each.items
            if not isinstance(key, Static):
                raise self.refused("a dict whose keys are not known", node)
            fields[key.value] = value
        return Rec(fields)

    def of_GeneratorExp(self, scope: Scope, node: ast.GeneratorExp) -> Any:
        """What a generator over known values gives."""
        return Tup(tuple(self.each(scope, node.elt, node.generators, node)))

    def each(self, scope: Scope, element: ast.expr, generators: list[ast.comprehension], node: Any) -> list[Any]:
        """The values of a comprehension over known values."""
        inner = Scope(scope, {}, scope.prefix, scope.variables, None, {}, scope.file)
        if len(generators) != 1 or generators[0].ifs:
            raise self.refused("a comprehension with several loops or conditions", node)
        names = [each.id for each in ast.walk(generators[0].target) if isinstance(each, ast.Name)]
        inner.stores = dict.fromkeys(names, 2)
        sequence = self.sequence(scope, generators[0].iter)
        if not isinstance(sequence, Tup) or len(sequence.items) > UNROLLED:
            raise self.refused("a comprehension whose length is not known", node)
        found = []
        for item in sequence.items:
            inner.stores = dict.fromkeys(names, 1)
            self.assign(inner, generators[0].target, item)
            found.append(self.held(self.value(inner, element)))
        return found

    def truth(self, value: Any, node: Any) -> Any:
        """The truth of a value: a bool, or an expression."""
        if isinstance(value, Static):
            if not is_plain(value.value) and not _is_true_by_default(type(value.value)):
                raise self.refused(f"the truth of {kind_name(value)}", node)
            return bool(value.value)
        if isinstance(value, Tup):
            return bool(value.items)
        if isinstance(value, (Rec, Fn)):
            return True if isinstance(value, Fn) else bool(value.fields) or value.cls is not dict
        expr = as_expr(value)
        if expr is None or not is_number(expr):
            raise self.refused(f"the truth of {kind_name(value)}", node)
        if isinstance(expr, Const):
            return bool(expr.value)
        if expr.kind.dtype == "?":
            return expr
        return Op("not_equal", (expr, Const(0, INT)), kind_of_operator("not_equal", (expr.kind, INT)))


def _is_true_by_default(kind: type) -> bool:
    """Whether the objects of a class are true because it does not say when they are."""
    return not hasattr(kind, "__bool__") and not hasattr(kind, "__len__")


def parameter_names(function: Any) -> list[str]:
    """The names of the positional parameters of a function, as far as they are known."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return []
    names = list(code.co_varnames[: code.co_argcount])
    return names[1:] if isinstance(function, types.MethodType) else names


def unboxed(value: Var) -> Var:
    """A number that is not written to."""
    kind = value.kind
    assert isinstance(kind, Num)
    return Var(value.name, attrs.evolve(kind, boxed=False))


def _variables(value: Any) -> Iterator[Var]:
    if isinstance(value, Tup):
        for item in value.items:
            yield from _variables(item)
    elif isinstance(value, Rec):
        for item in value.fields.values():
            yield from _variables(item)
    elif isinstance(value, Var):
        yield value


def _joined_envs(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name in dict.fromkeys((*a, *b)):
        if name in a and name in b:
            found[name] = joined_values(a[name], b[name])
        else:
            value = a.get(name, b.get(name))
            found[name] = value if isinstance(value, (Maybe, Fn)) or value is CONFLICT else Maybe(value)
    return found


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Var) and isinstance(b, Var):
        return a == b
    if isinstance(a, Tup) and isinstance(b, Tup):
        return len(a.items) == len(b.items) and all(map(_same, a.items, b.items))
    if isinstance(a, Rec) and isinstance(b, Rec):
        return list(a.fields) == list(b.fields) and all(map(_same, a.fields.values(), b.fields.values()))
    if isinstance(a, Maybe) and isinstance(b, Maybe):
        return _same(a.value, b.value)
    return joined_values(a, b) is a if isinstance(a, Static) else a == b


def _never_ends(block: Block) -> bool:
    """Whether a block gives up."""
    return bool(block) and isinstance(block[-1], Check) and block[-1].test == Const(False, BOOL)


def _has_calls(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))


def _used_outside(scope: Scope, loop: ast.For, name: str) -> bool:
    """Whether a loop variable is read outside of the loops that have it."""
    inside = set()
    body = scope.body
    for stmt in body:
        for each in ast.walk(stmt):
            if isinstance(each, ast.For) and isinstance(each.target, ast.Name) and each.target.id == name:
                inside |= {id(node) for part in each.body for node in ast.walk(part)}
    stores = {id(node) for part in loop.body for node in ast.walk(part)
              if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)}
    return bool(stores) or any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load) and id(each) not in inside
        for stmt in body for each in ast.walk(stmt)
    )


def _is_updated(node: ast.AST, name: str) -> bool:
    """Whether a variable is assigned in place."""
    return any(isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id == name
               for each in ast.walk(node))


def _grows(name: str, value: Any) -> bool:
    """Whether an integer is multiplied into itself."""
    grows = any(isinstance(each, Op) and each.name in ("mul", "pow", "left_shift") for each in nodes(value))
    return grows and any(isinstance(each, Var) and each.name == name for each in nodes(value))


def _keyword(stmt: ast.stmt) -> str:
    return {"With": "with", "Try": "try", "Global": "global", "Nonlocal": "nonlocal", "ClassDef": "class",
            "Import": "import", "ImportFrom": "import", "Match": "match"}.get(type(stmt).__name__, type(stmt).__name__)


def _plain_name(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_") or "f"
