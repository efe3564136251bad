"""Translation of the source of a function to the intermediate representation.

The function is interpreted abstractly, with kinds in place of values: each name refers to an expression or to a known
object. Functions that it calls are inlined. A loop is read until the kinds of its variables no longer change.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from .aliases import line_of_write
from .ir import Block, Const, For, Let, Var, assigned, blocks_of
from .objects import PLAIN, Guard, Input, ListCapacity, record_fields
from .reading.lists import arrays_of_list, has_uncertain_dtype, kind_of_items
from .reading.optional import with_unset_flags
from .reading.result_dtypes import check_dtypes
from .reading.statements import StatementReader
from .renaming import rename_versions
from .syntax_trees import users_function
from .value_types import BOOL, Kind, is_uncertain
from .values import (
    CONFLICT,
    Cell,
    CellOrNumber,
    FunctionValue,
    ListResult,
    ListValue,
    Maybe,
    NotSupported,
    Path,
    RecordValue,
    Ref,
    Reread,
    SeveralLists,
    Static,
    TupleValue,
    leaves_of,
)


@attrs.define(eq=False)
class Source:
    """A function as a program.

    Attributes:
        name: the name of the function.
        inputs: the inputs.
        guards: the conditions under which the program is valid.
        body: the statements.
        result: a tree of expressions and known objects.
        kinds: the kinds of the variables.
        files: by line number, the file, if it differs from the function's.
        capacity: the capacity of its lists; None if it has none.
        reshapes: whether it creates views that may be copies, depending on the memory layout of arguments.
    """

    name: str
    inputs: list[Input]
    guards: list[Guard]
    body: Block
    result: Any
    kinds: dict[str, Kind]
    file: str
    capacity: ListCapacity | None = None
    reshapes: bool = False


class Reader(StatementReader):
    """Reads a function and translates it.

    Arguments:
        static: the paths of integer arguments that are known objects.
    """

    # -- the whole -----------------------------------------------------------------------------------------------------

    def source(self, function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Source:
        """Return the program of a function for given argument types.

        Raises:
            NotSupported: if the compiler does not support the function.
        """
        try:
            return self._source(function, args, keywords)
        except Reread as found:
            known = {**self.known_sites, **dict.fromkeys((found.site, *found.others), found.known)}
            return Reader(self.static, known).source(function, args, keywords)

    def _source(self, function: Any, args: Sequence[Any], keywords: dict[str, Any]) -> Source:
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
        except NotSupported as error:
            if not error.line:
                raise NotSupported(error.reason, self.out.line, self.out.file) from error
            raise
        except RecursionError as error:
            raise NotSupported("the code is nested too deeply", self.out.line, self.out.file) from error
        self.out.buffer[:0] = self.out.start
        result = self._materialized(result)
        variables = [leaf for leaf in leaves_of(result) if isinstance(leaf, Var)]
        check_dtypes(self.out, [each for each in variables if is_uncertain(each.kind)])
        names = [each.name for each in variables]
        line = line_of_write(self.out.buffer, self.out.inputs, self.out.rows, self.out.moves, names)
        if line is not None:
            if self.out.copying:
                first, *others = [("views", site) for site in self.out.copying]
                raise Reread(first, True, others)
            raise NotSupported("writing to an array in a list is not supported", line, file)
        body, versions = rename_versions(self._with_flags(self.out.buffer), self.out.kinds, self.out.fresh)
        result = _renamed(result, versions)
        name = getattr(function, "__name__", "function")
        return Source(name, list(self.out.inputs.values()), list(self.guards.values()), body, result, self.out.kinds,
                      file, self.capacity, self.out.reshapes)

    def _materialized(self, value: Any) -> Any:
        """Return the result with each expression bound to a variable."""
        if isinstance(value, TupleValue):
            return TupleValue(tuple([self._materialized(item) for item in value.items]), value.cls)
        if isinstance(value, RecordValue):
            if value.cls is not dict and record_fields(value.cls) is None:
                raise self.out.refused(f"its result is of the unsupported type {value.cls.__name__}")
            return RecordValue({key: self._materialized(item) for key, item in value.fields.items()}, value.cls)
        if isinstance(value, (ListValue, Ref)):
            if has_uncertain_dtype(kind_of_items(value)):
                raise self.out.refused("returning a list of integers and floating-point numbers is not supported")
            return ListResult(arrays_of_list(self.out, value), kind_of_items(value))
        if isinstance(value, SeveralLists):
            raise self.out.refused("returning one of several lists is not supported")
        if isinstance(value, Cell):
            return self.out.temporary(value.element, "value")
        if isinstance(value, (FunctionValue, Maybe, CellOrNumber)) or value is CONFLICT:
            raise self.out.refused("its result is a function or may be unassigned")
        if isinstance(value, Static):
            if not isinstance(value.value, PLAIN):
                raise self.out.refused(f"its result is of the unsupported type {type(value.value).__name__}")
            return value
        return value if isinstance(value, Var) else self.out.temporary(value, "value")

    def _with_flags(self, block: Block) -> Block:
        """Return the statements with a flag for each variable that may be undefined when used."""
        block = with_unset_flags(block, self.maybe, self.out.bases)
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
            self.out.kinds[f"{name}_known"] = BOOL
        start = [Let(f"{name}_known", Const(False, BOOL), 0) for name in sorted(self.maybe)]
        return start + flagged(block)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a result with renamed variables."""
    if isinstance(value, TupleValue):
        return TupleValue(tuple([_renamed(item, names) for item in value.items]), value.cls)
    if isinstance(value, RecordValue):
        return RecordValue({key: _renamed(item, names) for key, item in value.fields.items()}, value.cls)
    if isinstance(value, ListResult):
        return ListResult(tuple([_renamed(array, names) for array in value.arrays]), value.kind)
    return Var(names.get(value.name, value.name), value.kind) if isinstance(value, Var) else value


def parameter_names(function: Any) -> list[str]:
    """Return the known names of the positional parameters of a function."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return []
    names = list(code.co_varnames[: code.co_argcount])
    return names[1:] if isinstance(function, types.MethodType) else names
