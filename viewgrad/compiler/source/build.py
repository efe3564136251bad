"""From a function to a program that runs: the passes, in order."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import math
import types
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from ...operators.codegen.source_cache import list_source
from ..backends import numba_cache as native
from ..backends import scalar_runtime as functions
from ..backends.array_runtime import CAREFUL
from ..backends.scalar_runtime import FUNCTIONS, MATH, NATIVE
from . import runtime
from .adjoint import adjoint
from .aliases import base_of, roots_of, written_inputs
from .bounds import with_bounds
from .copy_propagation import without_copies
from .definitions import Definitions
from .ir import Block, For, Let, Push, Var, While, program_text, statements
from .kinds import Arr, Num
from .objects import Input
from .read import Source
from .runtime import HOST, KERNEL, NoRoom
from .scalar_replacement import with_scalars
from .scalarize import scalarized
from .sums import with_sums_of_expressions
from .tangent import tangent_source
from .unsigned_indices import with_unsigned_indices
from .values import NotSupported, leaves_of
from .verify_ir import verified
from .write import Kernel, Writer, Written

KEEPING: Final = {"numba"}  # executors whose loops keep array elements in variables
_numbers: Final = itertools.count()


@attrs.define(eq=False)
class Program:
    """A program that runs.

    Attributes:
        source: the source that was read.
        written: the generated source.
        run: the function `program`.
        careful: the same, in which numbers are NumPy's.
        inputs: its inputs.
        wanted: the numbers of the inputs whose gradients it computes.
        results: the variables that hold its results.
        mutated: the inputs that it writes to, by number.
        active: the variables that have an adjoint.
        notes: the values saved on the tape, as lines and names.
        text: the program and its reverse, as text.
        limit: the most bytes on the tape.
        bounded: returns the same program with its outermost loops in segments; None if they are, or if there is none.
        reports: the last run of each loop in segments.
        is_segmented: whether outermost loops are run in segments.
        exceeds_limit: whether the tape has grown beyond its limit.
        second: returns the tangent of the program along the inputs in `wanted`, with its reverse; or None.
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
        """Lift the limit of the tape."""
        self.limit, self.exceeds_limit = math.inf, True
        for each in (self.run, self.careful):
            if each is not None:
                each.__globals__["tape_limit"] = math.inf

    def with_more_room(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the inputs of a run that had no room for the items of its lists, with more."""
        room = self.source.room
        number = next(n for n, each in enumerate(self.inputs) if each.path.root is room)
        assert room is not None
        given = list(arrays)
        given[number] = room.size = max(room.size, given[number] * 4)
        return given


def build(
    source: Source, wanted: Sequence[int], executor: str, wraps: bool, lowers: bool = True, limit: float = math.inf,
    is_segmented: bool = False,
) -> Program:
    """Return the executable program of a source.

    Arguments:
        source: the source that was read.
        wanted: the numbers of the inputs whose gradients are requested.
        executor: "numba" or "python".
        wraps: whether indices may be negative.
        lowers: whether operations on arrays in loops become loops over elements, for Numba.
        limit: the most bytes on the tape.
        is_segmented: whether outermost loops are run in segments, so that their tapes stay within the limit.

    Raises:
        NotSupported: if it cannot be made.
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
        if executor not in KEEPING or wraps:  # with wrapped indices, x[i - 1] may be x[i] if there is one element
            return block
        return with_scalars(block, kinds, roots, fresh, cells, is_checked)

    body = without_copies(source.body, kinds, [*names, *results])
    if executor == "numba" and lowers:
        body = verified(scalarized(body, kinds, names, fresh), kinds, names)
    body = with_sums_of_expressions(body, results)
    definitions = Definitions(body, names)
    body = body if wraps else with_bounds(body, definitions)
    verified(body, kinds, names)
    roots, cells = roots_of(body), set[str]()
    writer = Writer(kinds, source.file, executor == "numba", wraps, limit < math.inf, roots, cells)
    bounded: Any = None
    reports: dict[str, str] = {}
    ends = [names[number] for number in mutated]
    if wanted:
        made = adjoint(body, kinds, [names[n] for n in wanted], [*results, *ends], fresh, definitions, wraps,
                       is_segmented, "plus" if executor == "numba" else "add", preaccumulates=executor == "numba")
        asked = [names[n] for n in wanted if names[n] in made.active]
        forward, backward = optimized(made.forward, False), optimized(made.backward, True)
        written = writer.program(names, forward, results, backward, made.active, made.numbers, asked, ends)
        active, notes = made.active, made.notes
        text = program_text(forward) + "\n-- backwards\n" + program_text(backward)
        numbers = [n for n in wanted if names[n] in made.active]
        if not is_segmented and _has_taped_loops(made.forward):
            bounded = functools.cache(functools.partial(build, source, wanted, executor, wraps, lowers, limit, True))
    else:
        body = optimized(body, False)
        written = writer.program(names, body, results, written=ends)
        active, notes, numbers, text = set(), [], [], program_text(body)
    second = functools.cache(functools.partial(_second, source, numbers, executor, wraps, lowers, limit))
    run, careful = loaded(written, executor, {"tape_limit": limit, "reports": reports})
    return Program(source, written, run, careful, inputs, numbers, results, mutated, active, notes, text, limit,
                   bounded, reports, is_segmented, second=second)


def _second(
    source: Source, numbers: Sequence[int], executor: str, wraps: bool, lowers: bool, limit: float
) -> Program | None:
    """Return the tangent of a program along some inputs, with its reverse; None if there is none."""
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
    """Return whether loops that are in no other loop put something on the tape."""
    return any(isinstance(stmt, (For, While)) and any(isinstance(each, Push) for each in statements([stmt]))
               for stmt in forward)


def _check_results(source: Source, results: Collection[str], roots: dict[str, str]) -> None:
    """Refuse results that share memory whatever happens; others are checked when the program has run."""
    inputs = {each.name for each in source.inputs}
    bound: dict[str, set[bool]] = {}  # by class of variables that share memory: whether one is a view
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


# -- running -----------------------------------------------------------------------------------------------------------


def as_list(array: Any) -> Any:
    """Return the elements of an array, as lists."""
    return array.tolist()


def take_list(array: Any, elements: Any) -> None:
    """Write elements from lists to an array."""
    array[...] = elements


def as_number(value: Any) -> Any:
    """Return a number as a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def not_negative(index: int) -> int:
    """Return an index that does not count from the end."""
    if index < 0:
        raise IndexError
    return index


def loaded(
    written: Written, executor: str, given: dict[str, Any]
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return the function `program` of a source, and for Python one in which numbers are NumPy's.

    Arguments:
        written: the source.
        executor: "numba" or "python".
        given: names that it uses besides those of the library.
    """
    if executor == "numba":
        space = _host_space() | given
        for kernel in written.kernels:
            space[kernel.name] = compiled_kernel(kernel, space)
        return _executed(written.host, space, "program"), None
    whole = written.source()
    quick = _host_space() | _python_space() | given | {
        "as_list": as_list, "take_list": take_list, "as_number": as_number, "not_negative": not_negative}
    run = _executed(whole, quick, "program")
    careful = _host_space() | _python_space() | CAREFUL | given | {
        "as_list": lambda array: array, "take_list": lambda array, elements: None, "not_negative": not_negative,
        "as_number": lambda value: np.float64(value) if isinstance(value, float) else value}
    return run, _executed(whole, careful, "program")


def _host_space() -> dict[str, Any]:
    space: dict[str, Any] = {**MATH, **HOST, **_plain_functions(), **CAREFUL}
    space.update({name: function for name, function in vars(np).items() if name in ("inf", "nan")})
    return space


@functools.cache
def _plain_functions() -> dict[str, Any]:
    return {function.__name__: function for function in (*FUNCTIONS, *KERNEL)}


def _python_space() -> dict[str, Any]:
    return {**MATH, **_plain_functions()}


def _executed(source: str, space: dict[str, Any], name: str) -> Callable[..., Any]:
    file = f"<viewgrad source program {next(_numbers)}>"
    exec(compile(source, file, "exec"), space)
    found: Callable[..., Any] = space[name]
    list_source(file, source, found.__code__)
    return found


@functools.lru_cache(maxsize=512)
def _compiled(source: str, name: str, wraps: bool) -> Any:
    numba = native._numba()
    source = source if wraps else with_unsigned_indices(source)
    path = _written(source)
    file = f"<viewgrad source kernel {next(_numbers)}>" if path is None else str(path)
    code = compile(source, file, "exec")
    space: dict[str, Any] = {"__name__": __name__, "NoRoom": NoRoom, "unsigned": np.uint64, **MATH}
    used = _names_in(code)
    known = native_functions()
    space.update({each: known[each]() for each in used if each in known})
    exec(code, space)
    list_source(file, source, space[name].__code__)
    return numba.njit(nogil=True, error_model="numpy", fastmath=False, cache=path is not None)(space[name])


def compiled_kernel(kernel: Kernel, space: dict[str, Any]) -> Any:
    """Return a kernel as a function that Numba compiles when it is first called.

    Arguments:
        kernel: the kernel.
        space: the names of the program that calls it; the compiled function itself replaces the first one there.
    """
    compiled = _compiled(kernel.source, kernel.name, kernel.wraps)

    def run(*args: Any) -> Any:
        with native._lock, native._deep(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compiled(*args)
        space[kernel.name] = compiled
        return found

    return run


def _names_in(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            found |= _names_in(each)
    return found


@functools.cache
def native_functions() -> dict[str, Callable[[], Any]]:
    """Return the makers of the compiled forms of the functions that kernels call."""
    made: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for module, these in ((functions, FUNCTIONS), (runtime, KERNEL)):
        for function in these:
            plain[function.__name__] = (module, NATIVE.get(function.__name__, function))

    def make(name: str) -> Any:
        if name not in made:
            module, function = plain[name]
            space = dict(vars(module)) | {"math": math, "np": np}
            for each in _names_in(function.__code__):
                if each in plain and each != name:
                    space[each] = make(each)
            fastmath: Any = {"reassoc"} if name == "plus" else False
            jit = native._numba().njit(nogil=True, error_model="numpy", fastmath=fastmath)
            made[name] = jit(types.FunctionType(function.__code__, space, name))
        return made[name]

    return {name: functools.partial(make, name) for name in plain}


def _written(source: str) -> Path | None:
    return native.source_file(source + "\n# " + _version() + "\n")


@functools.cache
def _version() -> str:
    return hashlib.sha256(inspect.getsource(runtime).encode()).hexdigest()[:16]


