"""The pipeline from a function's source to an executable program: the passes, in order."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import attrs

from ..verification import verifies_passes
from .adjoint import adjoint
from .aliases import base_of, roots_of, written_inputs
from .bounds import check_bounds
from .copy_propagation import propagate_copies
from .definitions import Definitions
from .ir import Block, For, Let, Push, Var, While, program_text, statements
from .load import load
from .objects import Input
from .read import Source
from .scalar_replacement import promote_to_scalars
from .scalarize import scalarize
from .sums import fuse_sums
from .tangent import tangent_source
from .value_types import Arr, Num
from .values import NotSupported, leaves_of
from .verify_ir import verify_program
from .write import Writer, Written

KEEPING: Final = {"numba"}  # executors whose loops keep array elements in variables


@attrs.define(eq=False)
class Program:
    """An executable program.

    Attributes:
        source: the function as read.
        written: the generated source.
        run: the function `program`.
        careful: the same function, with NumPy's numbers.
        inputs: its inputs.
        wanted: the numbers of the inputs whose gradients it computes.
        results: the variables that contain its results.
        mutated: the inputs that it writes to, by number.
        active: the variables that have an adjoint.
        notes: the values saved on the tape, as lines and names.
        text: the program and its reverse, as text.
        limit: the maximum number of bytes on the tape.
        bounded: a function that returns the same program with its outermost loops in segments, or None.
        reports: the last run of each loop in segments.
        is_segmented: whether outermost loops run in segments.
        exceeds_limit: whether the tape exceeded its limit.
        second: a function that returns the tangent of the program along the inputs in `wanted`, with its reverse, or
            None.
        checks_second: whether the first second derivatives are compared with those of the function.
    """

    source: Source
    written: Written
    run: Callable[..., Any]
    careful: Callable[..., Any] | None
    inputs: list[Input]
    wanted: list[int]
    results: list[str]
    mutated: list[int]
    active: set[str]
    notes: list[tuple[int, str]]
    text: str
    limit: float = math.inf
    bounded: Any = None
    reports: dict[str, str] = attrs.Factory(dict)
    is_segmented: bool = False
    exceeds_limit: bool = False
    second: Any = None
    checks_second: bool = False

    def lift_limit(self) -> None:
        """Remove the limit on the tape."""
        self.limit, self.exceeds_limit = math.inf, True
        for each in (self.run, self.careful):
            if each is not None:
                each.__globals__["tape_limit"] = math.inf

    def with_more_capacity(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the inputs of a run, which had no room for the items of its lists, with more capacity."""
        capacity = self.source.capacity
        number = next(n for n, each in enumerate(self.inputs) if each.path.root is capacity)
        assert capacity is not None
        given = list(arrays)
        given[number] = capacity.size = max(capacity.size, given[number] * 4)
        return given


def build(
    source: Source, wanted: Sequence[int], executor: str, wraps: bool, lowers: bool = True, limit: float = math.inf,
    is_segmented: bool = False,
) -> Program:
    """Return the executable program of a source.

    Arguments:
        source: the function as read.
        wanted: the numbers of the inputs whose gradients are requested.
        executor: "numba" or "python".
        wraps: whether indices may be negative.
        lowers: whether array operations in loops become loops over elements, for Numba.
        limit: the maximum number of bytes on the tape.
        is_segmented: whether outermost loops run in segments, so that their tapes stay within the limit.

    Raises:
        NotSupported: if the program cannot be built.
    """
    kinds = dict(source.kinds)
    inputs = source.inputs
    names = [each.name for each in inputs]
    roots = roots_of(source.body)
    changed = written_inputs(source.body, names)
    mutated = [number for number, name in enumerate(names) if name in changed]
    results = list(dict.fromkeys(leaf.name for leaf in leaves_of(source.result) if isinstance(leaf, Var)))
    _check_results(source, results, roots)
    taken = set(kinds)

    def fresh(name: str) -> str:
        for number in itertools.count(1):
            found = f"{name}{number}" if number > 1 or name in ("b", "r", "g") else name
            if found not in taken:
                taken.add(found)
                return found
        raise AssertionError

    def optimized(block: Block, is_checked: bool) -> Block:
        if executor not in KEEPING or wraps:  # with wrapped indices, x[i - 1] may be x[i] if there is a single element
            return block
        return verified(promote_to_scalars(block, kinds, roots, fresh, cells, is_checked))

    def verified(block: Block, is_last: bool = False) -> Block:
        return verify_program(block, kinds, names) if is_last or verifies_passes() else block

    body = verified(propagate_copies(source.body, kinds, [*names, *results]))
    if executor == "numba" and lowers:
        body = verified(scalarize(body, kinds, names, fresh))
    body = verified(fuse_sums(body, results))
    definitions = Definitions(body, names)
    body = verified(body if wraps else check_bounds(body, definitions), is_last=True)
    roots, cells = roots_of(body), set[str]()
    writer = Writer(kinds, source.file, executor == "numba", wraps, limit < math.inf, roots, cells)
    bounded: Any = None
    reports: dict[str, str] = {}
    mutated_names = [names[number] for number in mutated]
    if wanted:
        reverse = adjoint(
            body, kinds, [names[n] for n in wanted], [*results, *mutated_names], fresh, definitions, wraps,
            is_segmented, "plus" if executor == "numba" else "add", preaccumulates=executor == "numba",
        )
        differentiated = [names[n] for n in wanted if names[n] in reverse.active]
        forward, backward = optimized(verified(reverse.forward), False), optimized(verified(reverse.backward), True)
        written = writer.program(
            names, forward, results, backward, reverse.active, reverse.numbers, differentiated, mutated_names
        )
        active, notes = reverse.active, reverse.notes
        text = program_text(forward) + "\n-- backwards\n" + program_text(backward)
        numbers = [n for n in wanted if names[n] in reverse.active]
        if not is_segmented and _has_taped_loops(reverse.forward):
            bounded = functools.cache(functools.partial(build, source, wanted, executor, wraps, lowers, limit, True))
    else:
        body = optimized(body, False)
        written = writer.program(names, body, results, written=mutated_names)
        active, notes, numbers, text = set(), [], [], program_text(body)
    second = functools.cache(functools.partial(_second, source, numbers, executor, wraps, lowers, limit))
    run, careful = load(written, executor, {"tape_limit": limit, "reports": reports})
    return Program(source, written, run, careful, inputs, numbers, results, mutated, active, notes, text, limit,
                   bounded, reports, is_segmented, second=second)


def _second(
    source: Source, numbers: Sequence[int], executor: str, wraps: bool, lowers: bool, limit: float
) -> Program | None:
    """Return the tangent of a program along some inputs, with its reverse, or None if there is none."""
    directions = {}
    for number in numbers:
        each = source.inputs[number]
        kind = each.kind if isinstance(each.kind, Arr) else Num(each.kind.dtype, boxed=True)
        name = f"{each.name}_dot"
        while name in source.kinds:
            name += "_"
        directions[number] = Input(name, kind, each.path)
    try:
        return build(tangent_source(source, directions), numbers, executor, wraps, lowers, limit)
    except (NotSupported, KeyError):
        return None


def _has_taped_loops(forward: Block) -> bool:
    """Return whether any outermost loop pushes to the tape."""
    return any(isinstance(stmt, (For, While)) and any(isinstance(each, Push) for each in statements([stmt]))
               for stmt in forward)


def _check_results(source: Source, results: Collection[str], roots: dict[str, str]) -> None:
    """Refuse results that certainly share memory; other results are checked when the program has run."""
    inputs = {each.name for each in source.inputs}
    bound: dict[str, set[bool]] = {}  # by group of variables that share memory, whether one is a view
    for stmt in statements(source.body):
        if isinstance(stmt, Let) and isinstance(stmt.value.kind, Arr):
            bound.setdefault(roots.get(stmt.name, stmt.name), set()).add(base_of(stmt.value) is None)
    seen: set[str] = set()
    for name in results:
        kind = source.kinds[name]
        if isinstance(kind, Arr) or (name in inputs and kind.boxed):
            root = roots.get(name, name)
            if root in {roots.get(each, each) for each in inputs} and True not in bound.get(root, ()):
                raise NotSupported("it returns an argument, or a view of one")
            if root in seen:
                raise NotSupported("its results share memory")
            seen.add(root)
