"""Dependence tests: whether a write may overwrite an element that an earlier read has read.

Indices that are affine in loop variables and in unchanging integers are compared over all pairs of iterations, within
the bounds of the loops. If a system of linear inequalities has no rational solution (Fourier-Motzkin elimination), the
write never overwrites the element.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs

from .ir import NEW, Const, Dim, For, Lazy, Op, Slice, Var

Affine = dict[str, int]  # coefficients by name; "" for the constant
MOST = 300


@attrs.frozen(eq=False)
class Access:
    """A read from an array, or a write to it.

    Attributes:
        base: the variable.
        index: the index; None for the whole array.
        loops: the enclosing loops, outermost first.
        position: the position in the program.
        conditions: the conditions of enclosing branches, and whether they are true.
    """

    base: str
    index: tuple[Any, ...] | None
    loops: tuple[Any, ...]
    position: float
    conditions: tuple[tuple[Any, bool], ...] = ()


def affine(expr: Any, is_fixed: Callable[[str], bool], meaning: Callable[[Any], Any] | None = None) -> Affine | None:
    """Return an integer expression in affine form, or None if it is not affine.

    Arguments:
        expr: the expression.
        is_fixed: a function that returns whether a variable is a loop variable or never changes.
        meaning: a function that returns the definition of a variable or a length, or None.
    """
    if meaning is not None and isinstance(expr, (Var, Dim)):
        definition = meaning(expr)
        if definition is not None:
            found = affine(definition, is_fixed, meaning)
            if found is not None:
                return found
    if isinstance(expr, Const) and type(expr.value) is int:
        return {"": expr.value}
    if isinstance(expr, Var) and is_fixed(expr.name):
        return {expr.name: 1}
    if isinstance(expr, Dim) and is_fixed(expr.base.name):
        return {f"{expr.base.name}.{expr.axis}": 1}
    if isinstance(expr, Op):
        parts = [affine(arg, is_fixed, meaning) for arg in expr.args]
        if any(part is None for part in parts):
            return None
        if expr.name == "add":
            return combined(parts[0], parts[1], 1)  # type: ignore[arg-type]
        if expr.name == "sub":
            return combined(parts[0], parts[1], -1)  # type: ignore[arg-type]
        if expr.name == "neg":
            return combined({}, parts[0], -1)  # type: ignore[arg-type]
        if expr.name == "mul":
            for one, other in (parts, parts[::-1]):
                if set(one) <= {""}:  # type: ignore[arg-type]
                    return combined({}, other, one.get("", 0))  # type: ignore[arg-type,union-attr]
    return None


def combined(a: Affine, b: Affine, factor: int) -> Affine:
    """Return `a + factor * b`."""
    found = dict(a)
    for name, value in b.items():
        found[name] = found.get(name, 0) + factor * value
    return {name: value for name, value in found.items() if value}


def may_overwrite(
    write: Access, read: Access, is_fixed: Callable[[str], bool], within: int = 0, same_iteration: bool = False,
    meaning: Callable[[Any], Any] | None = None,
) -> bool:
    """Return whether a write may be executed at or after a read and overwrite a cell that it has read.

    Arguments:
        write, read: the accesses, to the same array.
        is_fixed: a function that returns whether a variable never changes.
        within: the number of outer loops for which both are in the same iteration.
        same_iteration: whether to consider only equal iterations of all common loops.
        meaning: as for `affine`.
    """
    common = 0
    for a, b in zip(write.loops, read.loops):
        if a is not b:
            break
        common += 1
    loop_names = {loop.name for loop in (*write.loops, *read.loops) if isinstance(loop, For)}

    def known(name: str) -> bool:
        return name in loop_names or is_fixed(name)

    def form(expr: Any, access: Access, tag: str) -> Affine | None:
        found = affine(expr, known, meaning)
        return None if found is None else _renamed(found, access.loops, tag)

    equalities, bounds, apart = _constraints(write, read, form)
    shared = write.loops[:common]
    for level in range(common + 1):
        if level < common and (level < within or same_iteration):
            continue
        same = [
            combined({f"{loop.name}'": 1}, {f'{loop.name}"': 1}, -1) for loop in shared[:level] if isinstance(loop, For)
        ]
        order: list[Affine] = []
        if level < common:
            if isinstance(shared[level], For):  # the write in a later iteration
                order.append(_ahead(shared[level]))
        elif write.position < read.position:
            continue
        if any(has_solution([*equalities, *same], [*bounds, *order, *sides]) for sides in sides_of(apart[:2])):
            return True
    return False


def _constraints(
    write: Access, read: Access, form: Callable[..., Affine | None]
) -> tuple[list[Affine], list[Affine], list[Affine]]:
    """Return the forms that must be 0, at least 0, and nonzero if a write and a read access the same element."""
    equalities: list[Affine] = []
    if write.index is not None and read.index is not None:
        for w, r in zip(_dims(write.index), _dims(read.index)):
            if isinstance(w, Slice) or isinstance(r, Slice):
                continue
            first, second = form(w, write, "'"), form(r, read, '"')
            if first is not None and second is not None:
                equalities.append(combined(first, second, -1))
    bounds = [each for access, tag in ((write, "'"), (read, '"')) for loop in access.loops if isinstance(loop, For)
              for each in within(loop, tag, functools.partial(form, access=access, tag=tag))]
    apart: list[Affine] = []
    for access, tag in ((write, "'"), (read, '"')):
        for test, holds in access.conditions:
            found = constraints_of(test, holds, functools.partial(form, access=access, tag=tag))
            for all_of, new in zip((equalities, bounds, apart), found):
                all_of += new
    return equalities, bounds, apart


def _renamed(form: Affine, loops: Sequence[Any], tag: str) -> Affine:
    """Return the form with loop variables marked as belonging to one access."""
    own = {loop.name for loop in loops if isinstance(loop, For)}
    return {f"{name}{tag}" if name in own else name: value for name, value in form.items()}


def within(loop: For, tag: str, form: Callable[[Any], Affine | None]) -> list[Affine]:
    """Return the forms that are at least 0 inside a loop whose variable is marked by a tag."""
    found = []
    counter: Affine = {f"{loop.name}{tag}": 1}
    one: Affine = {"": 1}
    low, high = form(loop.low), form(loop.high)
    if low is not None:
        found.append(combined(counter, low, -1) if loop.step > 0 else combined(low, counter, -1))
    if high is not None:
        rest = combined(high, counter, -1) if loop.step > 0 else combined(counter, high, -1)
        found.append(combined(rest, one, -1))
    return found


def constraints_of(
    test: Any, holds: bool, form: Callable[[Any], Affine | None]
) -> tuple[list[Affine], list[Affine], list[Affine]]:
    """Return the forms that must be 0, at least 0, and nonzero if a condition on integers is true, or false."""
    if isinstance(test, Lazy) and test.name == ("and" if holds else "or"):
        parts = [constraints_of(each, holds, form) for each in test.args]
        equal, least, apart = [[each for part in parts for each in part[number]] for number in range(3)]
        return equal, least, apart
    if not isinstance(test, Op) or len(test.args) != 2 or any(arg.kind.dtype != "l" for arg in test.args):
        return [], [], []
    left, right = map(form, test.args)
    if left is None or right is None:
        return [], [], []
    name = test.name if holds else OPPOSITES.get(test.name, "")
    if name in ("less", "less_equal"):
        left, right = right, left
    found = combined(left, right, -1)
    if name in ("less", "greater"):
        found = combined(found, {"": 1}, -1)
    is_order = name in ("less", "less_equal", "greater", "greater_equal")
    return [found] if name == "equal" else [], [found] if is_order else [], [found] if name == "not_equal" else []


def sides_of(apart: Sequence[Affine]) -> Iterator[list[Affine]]:
    """Yield the combinations of signs that nonzero forms may have."""
    for signs in itertools.product((1, -1), repeat=len(apart)):
        yield [combined(combined({}, form, sign), {"": 1}, -1) for form, sign in zip(apart, signs)]


OPPOSITES: Final = {
    "equal": "not_equal", "not_equal": "equal", "less": "greater_equal", "less_equal": "greater",
    "greater": "less_equal", "greater_equal": "less",
}  # fmt: skip


def _ahead(loop: For) -> Affine:
    """Return the form that is at least 0 if the write is in a later iteration than the read."""
    found = combined({f"{loop.name}'": 1}, {f'{loop.name}"': 1}, -1)
    return combined(found if loop.step > 0 else combined({}, found, -1), {"": 1}, -1)


def _dims(index: Sequence[Any]) -> list[Any]:
    return [each for each in index if each is not NEW]


def has_solution(equalities: Sequence[Affine], inequalities: Sequence[Affine]) -> bool:
    """Return whether integers may exist with `e == 0` for all equalities and `e >= 0` for all inequalities.

    This is conservative: the result may be True although there are none.
    """
    system = [dict(each) for each in inequalities]
    equal = [dict(each) for each in equalities]
    while equal:
        if not _eliminate_equality(equal, system):
            return False
    while True:
        if any(set(each) <= {""} and each.get("", 0) < 0 for each in system):
            return False
        names = {name for each in system for name in each if name}
        if not names or len(system) > MOST:
            return True
        system = _without(min(names, key=lambda name: (_cost(system, name), name)), system)


def _eliminate_equality(equal: list[Affine], system: list[Affine]) -> bool:
    """Solve the last equality for a variable and substitute it; return whether it can be satisfied."""
    form = equal.pop()
    names = [name for name in form if name]
    if not names:
        return not form.get("", 0)
    if form.get("", 0) % math.gcd(*[form[name] for name in names]):
        return False
    name = min(names, key=lambda each: abs(form[each]))
    size, sign = abs(form[name]), 1 if form[name] > 0 else -1
    for forms in (equal, system):
        for number, other in enumerate(forms):
            if name in other:
                scaled = {key: size * value for key, value in other.items()}
                forms[number] = combined(scaled, form, -sign * other[name])
    return True


def _cost(system: list[Affine], name: str) -> int:
    """Return the number of inequalities created by the elimination of a variable."""
    above = sum(1 for each in system if each.get(name, 0) > 0)
    return above * sum(1 for each in system if each.get(name, 0) < 0)


def _without(name: str, system: list[Affine]) -> list[Affine]:
    """Return the inequalities after elimination of a variable."""
    rest = [each for each in system if name not in each]
    for one in system:
        for other in system:
            if one.get(name, 0) > 0 > other.get(name, 0):
                scaled = {key: -other[name] * value for key, value in one.items()}
                rest.append(combined(scaled, other, one[name]))
    found: dict[Any, Affine] = {}
    for each in rest:
        sizes = [value for key, value in each.items() if key]
        divisor = math.gcd(*sizes) if sizes else 1
        if divisor > 1:  # with the constant rounded down, since all values are integers
            each = {key: value // divisor for key, value in each.items()}
        found[tuple(sorted(each.items()))] = each
    return list(found.values())
