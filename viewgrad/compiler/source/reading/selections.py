"""Functions that select, sort or fold items: `max` with a key, `sorted`, `functools.reduce`."""

from __future__ import annotations

import ast
import functools
import operator
from typing import Any, Final

from ..ir import Const, Slice, get
from ..value_types import INT
from ..values import ListValue, Ref, Static, TupleValue, as_expr, is_none
from . import python_code
from .comprehensions import ComprehensionReader
from .library_calls import library
from .lists import array_of_list, vector_of
from .operators import arithmetic
from .scopes import Scope

# The implementations of `max` and `min`: with a key, with a key and a default, of two items with a key, and with a
# default.
CHOSEN: Final = {
    "builtins.max": ((python_code.max_by, python_code.max_by_or, python_code.greater_by), python_code.max_or),
    "builtins.min": ((python_code.min_by, python_code.min_by_or, python_code.less_by), python_code.min_or),
}  # fmt: skip
# The implementations by number of initial values.
FOLDS: Final = {
    "functools.reduce": (python_code.reduced, python_code.reduced_from),
    "itertools.accumulate": (python_code.accumulated, python_code.accumulated_from),
}  # fmt: skip

HEAPS: Final = {
    "heapq.heappush": python_code.heappush, "heapq.heappop": python_code.heappop,
    "heapq.heapify": python_code.heapify,
}  # fmt: skip


class SelectionReader(ComprehensionReader):
    """Reads functions that select, sort or fold items."""

    def called(self, scope: Scope, function: Any, args: list[Any], keywords: dict[str, Any], node: Any) -> Any:
        """Read a call of a function."""
        raise NotImplementedError

    def selection(
        self, scope: Scope, name: str, args: list[Any], keywords: dict[str, Any], node: ast.Call
    ) -> Any:
        """Return the result of a function that selects, sorts or folds items, or None for other functions."""
        if name == "builtins.sorted":
            return self.sorted_items(scope, args, keywords, node)
        if name in FOLDS:
            return self.folded(scope, name, args, keywords, node)
        if name in HEAPS and not keywords and len(args) == HEAPS[name].__code__.co_argcount:
            return self.call_own(HEAPS[name], args)
        if name in CHOSEN and set(keywords) & {"key", "default"}:
            return self.chosen(scope, name, args, keywords, node)
        if name == "math.prod" and len(args) == 1 and set(keywords) <= {"start"}:
            start = keywords.get("start", Static(1))
            if not isinstance(args[0], TupleValue):
                return self.call_own(python_code.product_of, [args[0], start])
            return functools.reduce(lambda one, two: arithmetic(self.out, "mul", one, two), args[0].items, start)
        return None

    def items_of(self, scope: Scope, node: ast.Call, is_nest: bool) -> Any:
        """Read an iterable as a list of its items.

        Arguments:
            scope: the variables.
            node: the call that creates the iterable.
            is_nest: whether it is read as nested loops.
        """
        each = ast.Name("each", ast.Load())
        generator = ast.comprehension(ast.Name("each", ast.Store()), node, [], 0)
        made = ast.fix_missing_locations(ast.copy_location(ast.ListComp(each, [generator]), node))
        return self.by_loop(scope, made) if is_nest else self.over_known(scope, made, list)

    def chosen(
        self, scope: Scope, name: str, args: list[Any], keywords: dict[str, Any], node: ast.Call
    ) -> Any:
        """Read `max` or `min` with a key or a default."""
        if set(keywords) - {"key", "default"} or not args:
            raise self.out.refused(f"{name.rpartition('.')[2]} with {next(iter(keywords))}= is not supported")
        items = args[0] if len(args) == 1 else TupleValue(tuple(args))
        key = keywords.get("key", Static(None))
        by_key, plain = CHOSEN[name]
        if "default" in keywords:
            if isinstance(items, TupleValue):
                if not items.items:
                    return keywords["default"]
            else:
                rest = [key] if not is_none(key) else []
                return self.call_own(by_key[1] if rest else plain, [items, *rest, keywords["default"]])
        if is_none(key):
            raise self.out.refused(f"{name.rpartition('.')[2]} with these arguments is not supported")
        if not isinstance(items, TupleValue):
            return self.call_own(by_key[0], [items, key])
        if not items.items:
            raise self.out.refused("the extremum of an empty sequence is not supported")
        pairs = [TupleValue((each, self.held(self.called(scope, key, [each], {}, node)))) for each in map(
            self.held, items.items)]
        return functools.reduce(lambda one, other: self.call_own(by_key[2], [one, other]), pairs).items[0]

    def folded(self, scope: Scope, name: str, args: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        """Read `functools.reduce` or `itertools.accumulate`."""
        if name == "functools.reduce":
            function, items, *start = args
        else:
            items, function = [*args, Static(operator.add)][:2]
            start = [keywords.pop("initial")] if "initial" in keywords else []
            function = keywords.pop("func", function)
        if keywords or len(start) > 1 or len(args) > 3:
            raise self.out.refused(f"{name} with these arguments is not supported", node)
        if not isinstance(items, TupleValue):
            return self.call_own(FOLDS[name][len(start)], [function, items, *start])
        values = [*start, *items.items]
        if not values:
            raise self.out.refused(f"{name} of an empty sequence is not supported", node)
        found = [self.held(values[0])]
        for each in values[1:]:
            found.append(self.held(self.called(scope, function, [found[-1], each], {}, node)))
        return found[-1] if name == "functools.reduce" else TupleValue(tuple(found))

    def sorted_items(self, scope: Scope, args: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        """Read `sorted`."""
        is_reversed, key = keywords.get("reverse", Static(False)), keywords.get("key", Static(None))
        if set(keywords) - {"reverse", "key"} or len(args) != 1 or not isinstance(is_reversed, Static):
            raise self.out.refused("sorted with these arguments is not supported", node)
        expr = as_expr(args[0])
        is_given = isinstance(args[0], (ListValue, Ref)) or expr is not None
        given = args[0] if is_given else self.list_of(scope, args[0], node)
        is_vector = expr is not None and expr.kind.ndim == 1
        if not is_none(key) or not (is_vector or vector_of(self.out, given) is not None):
            order = python_code.sorted_down if is_reversed.value else python_code.sorted_up
            return self.call_own(order, [given, Static(python_code.itself) if is_none(key) else key])
        array = array_of_list(self.out, given) if isinstance(given, (ListValue, Ref)) else given
        array = self.out.temporary(library(self.out, "numpy.sort", [array], {}), "ordered")
        step = Const(-1, INT)
        part = self.out.temporary(get(array, (Slice(None, None, step),)), "ordered") if is_reversed.value else array
        return self.list_of(scope, part, node)
