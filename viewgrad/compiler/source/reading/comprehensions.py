"""What is iterated over, comprehensions, and generators that are summed up."""

from __future__ import annotations

import ast
from typing import Any, Final

from ..ir import Call, Check, Const, For, Op, Set, Var, is_number
from ..kinds import BOOL, INT, Arr
from ..library import library_name
from ..values import Fn, Rec, Static, Tup, as_expr
from .iteration import enumerated, range_of, reversed_sequence, sequence_of, zipped
from .operators import arithmetic
from .scopes import Scope
from .targets import TargetReader

__all__ = ["ComprehensionReader", "UNROLLED"]

UNROLLED: Final = 16


class ComprehensionReader(TargetReader):
    """Reads what is iterated over."""

    def summed(self, generator: Fn, start: Any) -> Any:
        """The sum of what a generator gives, by a loop."""
        node: Any = generator.node.body
        scope = generator.scope
        comprehension = node.generators[0]
        sequence = self.sequence(scope, comprehension.iter)
        names = [each.id for each in ast.walk(comprehension.target) if isinstance(each, ast.Name)]
        inner = Scope(scope, dict.fromkeys(names, 2), scope.prefix, scope.variables, None, {}, scope.file)
        inner.stores["total "] = 2
        total = self.out.fresh("total")
        inner.env["total "] = self.bound(total, start, False)
        name = self.out.fresh("k")
        self.out.kinds[name] = INT
        line = self.out.line

        def read() -> None:
            self.assign(inner, comprehension.target, sequence.item(Var(name, INT)))
            value = self.value(inner, node.elt)
            inner.env["total "] = self.bound(total, arithmetic(self.out, "add", inner.env["total "], value), False)

        low, high = [each if isinstance(each, Const) else self.fixed(each) for each in (sequence.low, sequence.high)]
        body = self.looped(inner, read)
        self.out.emit(For(name, low, high, sequence.step, body, line=line))
        return inner.env["total "]

    def listed(self, comprehension: Fn) -> Any:
        """A list whose length is not known, of numbers or of rows, as an array."""
        node: Any = comprehension.node.body
        scope = comprehension.scope
        generator = node.generators[0]
        sequence = self.sequence(scope, generator.iter)
        names = [each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)]
        inner = Scope(scope, dict.fromkeys(names, 2), scope.prefix, scope.variables, None, {}, scope.file)
        count = sequence.count if isinstance(sequence.count, (Const, Var)) else self.out.temporary(sequence.count, "n")
        name = self.out.fresh("k")
        self.out.kinds[name] = INT
        line = self.out.line
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
            raise self.out.refused("a list of something else than floats, whose length is not known", node)
        array = self.out.temporary(Call("empty", ((count,),), (("dtype", "float64"),), Arr("d", 1)), "listed")
        self.out.emit(Check(Op("less_equal", (Const(0, INT), count), BOOL), line))
        probe.append(Set(array, (number,), found[0], "", line))
        self.out.emit(For(name, low, high, sequence.step, probe, line=line))
        return array

    def sequence(self, scope: Scope, node: ast.expr) -> Any:
        """What is iterated over: a `calls.Sequence`, or a `Tup` of known length."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            function = self.value(scope, node.func)
            name = library_name(function.value) if isinstance(function, Static) else None
            if name == "builtins.range":
                return range_of(self.out, [self.value(scope, arg) for arg in node.args])
            if name in ("builtins.enumerate", "builtins.zip", "builtins.reversed"):
                count = 1 if name != "builtins.zip" else len(node.args)
                parts = [self.sequence(scope, arg) for arg in node.args[:count]]
                if name == "builtins.reversed":
                    return reversed_sequence(self.out, parts[0])
                if name == "builtins.zip":
                    return zipped(self.out, parts)
                start = self.value(scope, node.args[1]) if len(node.args) > 1 else Static(0)
                return enumerated(self.out, parts[0], start)
        return sequence_of(self.out, self.value(scope, node))

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
                raise self.out.refused("a dict whose keys are not known", node)
            fields[key.value] = value
        return Rec(fields)

    def of_GeneratorExp(self, scope: Scope, node: ast.GeneratorExp) -> Any:
        """What a generator over known values gives."""
        return Tup(tuple(self.each(scope, node.elt, node.generators, node)))

    def each(self, scope: Scope, element: ast.expr, generators: list[ast.comprehension], node: Any) -> list[Any]:
        """The values of a comprehension over known values."""
        inner = Scope(scope, {}, scope.prefix, scope.variables, None, {}, scope.file)
        if len(generators) != 1 or generators[0].ifs:
            raise self.out.refused("a comprehension with several loops or conditions", node)
        names = [each.id for each in ast.walk(generators[0].target) if isinstance(each, ast.Name)]
        inner.stores = dict.fromkeys(names, 2)
        sequence = self.sequence(scope, generators[0].iter)
        if not isinstance(sequence, Tup) or len(sequence.items) > UNROLLED:
            raise self.out.refused("a comprehension whose length is not known", node)
        found = []
        for item in sequence.items:
            inner.stores = dict.fromkeys(names, 1)
            self.assign(inner, generators[0].target, item)
            found.append(self.held(self.value(inner, element)))
        return found
