"""Loops over several counters at once, such as `itertools.product` and `np.ndindex`, as nested loops."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from ..jumps import STOP, stop_of

NESTS: Final = frozenset({
    "itertools.product", "itertools.combinations", "itertools.combinations_with_replacement", "itertools.permutations",
    "itertools.pairwise", "numpy.ndindex", "numpy.ndenumerate",
})  # fmt: skip
RANGE: Final = " range"  # names that do not occur in any function
LEN: Final = " len"
MOST: Final = 4  # the maximum number of loops


@attrs.frozen(eq=False)
class Nest:
    """The nested loops that replace a loop over items.

    Attributes:
        counters: the variable and the iterable of each loop, outermost first.
        item: the item.
        test: the condition under which there is an item; None if there always is one.
    """

    counters: Sequence[tuple[str, ast.expr]]
    item: ast.expr
    test: ast.expr | None = None

    def over(self, loop: ast.For) -> ast.For:
        """Return the nested loops that replace a loop without jumps."""
        body: list[ast.stmt] = [ast.Assign([copy.deepcopy(loop.target)], self.item), *loop.body]
        if self.test is not None:
            body = [ast.If(self.test, body, [])]
        for name, iterable in reversed(self.counters):
            made = ast.For(ast.Name(name, ast.Store()), iterable, body, [])
            setattr(made, STOP, stop_of(loop))
            body = [made]
        for node in ast.walk(made):
            if isinstance(node, (ast.stmt, ast.expr)) and not hasattr(node, "lineno"):
                ast.copy_location(node, loop)
        return ast.fix_missing_locations(made)


def loaded(name: str) -> ast.Name:
    """Return an expression that reads a variable."""
    return ast.Name(name, ast.Load())


def subscript(name: str, index: ast.expr) -> ast.Subscript:
    """Return an expression that reads an item of a variable."""
    return ast.Subscript(loaded(name), index, ast.Load())


def counted(*bounds: ast.expr) -> ast.Call:
    """Return a call of `range`."""
    return ast.Call(loaded(RANGE), list(bounds), [])


def product(iterables: Sequence[ast.expr], fresh: Callable[[str], str]) -> Nest:
    """Return the loops for `itertools.product` of iterables."""
    names = [fresh("factor") for _ in iterables]
    return Nest(list(zip(names, iterables)), _tuple_of(names))


def chosen(kind: str, items: str, count: int, fresh: Callable[[str], str]) -> Nest:
    """Return the loops for combinations and permutations.

    Arguments:
        kind: "combinations", "combinations_with_replacement" or "permutations".
        items: the variable for the items.
        count: the number of chosen items.
        fresh: returns an unused name.
    """
    size = ast.Call(loaded(LEN), [loaded(items)], [])
    counters: list[tuple[str, ast.expr]] = []
    tests: list[ast.expr] = []
    for _ in range(count):
        name, names = fresh("number"), [each for each, _ in counters]
        low: list[ast.expr] = []
        if names and kind != "permutations":
            last = loaded(names[-1])
            low = [last if kind != "combinations" else ast.BinOp(last, ast.Add(), ast.Constant(1))]
        if kind == "permutations":
            tests += [ast.Compare(loaded(name), [ast.NotEq()], [loaded(each)]) for each in names]
        counters.append((name, counted(*low, copy.deepcopy(size))))
    item = ast.Tuple([subscript(items, loaded(name)) for name, _ in counters], ast.Load())
    test = None if not tests else tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    return Nest(counters, item, test)


def indices(sizes: Sequence[str], fresh: Callable[[str], str], array: str | None = None) -> Nest:
    """Return the loops for `np.ndindex` and `np.ndenumerate`.

    Arguments:
        sizes: the variables for the lengths of the axes.
        fresh: returns an unused name.
        array: the variable for the array whose elements are also items, or None.
    """
    names = [fresh("number") for _ in sizes]
    place = _tuple_of(names)
    item = place if array is None else ast.Tuple([place, subscript(array, copy.deepcopy(place))], ast.Load())
    return Nest([(name, counted(loaded(size))) for name, size in zip(names, sizes)], item)


def consecutive(items: str, fresh: Callable[[str], str]) -> Nest:
    """Return the loop for `itertools.pairwise`.

    Arguments:
        items: the variable for the items.
        fresh: returns an unused name.
    """
    name = fresh("number")
    high = ast.BinOp(ast.Call(loaded(LEN), [loaded(items)], []), ast.Sub(), ast.Constant(1))
    after = ast.BinOp(loaded(name), ast.Add(), ast.Constant(1))
    item = ast.Tuple([subscript(items, loaded(name)), subscript(items, after)], ast.Load())
    return Nest([(name, counted(high))], item)


def _tuple_of(names: Sequence[str]) -> ast.Tuple:
    return ast.Tuple(list(map(loaded, names)), ast.Load())
