"""`trace`: run a program once and return its graph."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from numbers import Number
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

import attrs
import numpy as np

from ..errors import TraceError
from ..func.captured_state import LIMIT, reachable
from ..func.containers import Containers
from ..func.tree import Structure, flatten, opaque_parts, paths
from ..tensor.async_safety import in_own_context
from ..tensor.captured_storage import refuse_unseen_writes
from ..tensor.creation import from_numpy
from ..tensor.modes import GRAD, TRACE, ModeSwitch
from ..tensor.saved_windows import address_of
from ..tensor.tensor import Tensor, is_scalar, root_of
from ..tensor.trace_hooks import OBSERVER
from ..views.geometry import overlaps_itself
from .exceptions import guard_exceptions
from .graph import Graph, Value
from .scalar_inputs import WEAK, check_numbers, number_traced
from .signature import InputSpec, MutationSpec, ResultSpec, Signature, layout_of
from .tracing import call_hooks  # noqa: F401 -- registers the hooks that trace operators, reads and writes
from .tracing.alias_histories import remember
from .tracing.error_modes import warnings_refused
from .tracing.memory import Memory, identified, owner_of
from .tracing.rng_guard import Generators, seeds_refused
from .tracing.tracer import Tracer
from .types import TensorType

CONSTANT_TYPES: Final = (
    str, bytes, Number, np.generic, np.dtype, np.ufunc, enum.Enum, ModuleType, type(...), type(NotImplemented),
)  # fmt: skip


@attrs.frozen(eq=False)
class Record:
    """A recorded run of a function.

    Arguments:
        graph: the graph of the run.
        result: the result of the function, with its history.
    """

    graph: Graph
    result: Any


def trace(
    f: Callable[..., Any], *example_inputs: Any, escapes: str = "error", numbers: str = "fixed", **keywords: Any
) -> Graph:
    """Return the graph of a function, recorded in one run.

    The function runs normally, including its writes and side effects. The graph is valid for arguments of the same
    shapes and dtypes, with the same `requires_grad` and memory sharing. Control flow is unrolled; the values it depends
    on become guards, which each run of the graph checks. Captured tensors are inputs, after those for the arguments.
    Captured NumPy arrays and numbers are constants. Side effects, such as printing or appending to a captured list,
    happen in this run only.

    Arguments:
        f: any function of tensors, which may be nested in trees.
        example_inputs: its arguments. NumPy arrays are passed as tensors that share their memory. If the function
            captures that memory too, it receives a copy.
        escapes: what to do if a value leaves the library through `item()`, `float()` or `numpy()`: "error" to raise, or
            "guard" to check in each run that the value is unchanged.
        numbers: how to treat floats and complex numbers among the arguments: "fixed" makes them constants of the graph;
            "inputs" makes them inputs with gradients, and the function receives scalars of type `np.float64` or
            similar. Integers, bools and strings are always constants.
        keywords: keyword arguments.

    Returns:
        The graph. Its inputs are the tensors among the arguments, in the order of `func.tree`, then captured tensors.
        Its outputs are the tensors among the results, then the values of the inputs that were written to.

    Raises:
        ConcretizationError: if a value leaves the library, with the file and line.
        TraceError: if a graph cannot represent the program. With `numbers="inputs"`, also if a number is combined with
            a narrower dtype, such as float32: it would take that dtype, but an input has its own.

    Example:
        >>> import viewgrad as vg
        >>> def f(x):
        ...     y = x * x
        ...     y[1:] += y[:-1]
        ...     return y
        >>> print(vg.symbolic.trace(f, vg.ones(3)).text(locations=False))
        graph(%x : float64[3]):
          %1 : float64[3] = mul(%x, %x)
          %2 : float64[2] = read(%1; window([2], [1], 1))
          %3 : float64[2] = read(%1; window([2], [1], 0))
          %4 : float64[2] = add(%2, %3)
          %5 : float64[3] = write(%1, %4; window([2], [1], 1))
          return (%5)
    """
    return record(f, example_inputs, keywords, escapes=escapes, numbers=numbers).graph


@in_own_context
def record(
    f: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any] | None = None,
    *,
    escapes: str = "error",
    numbers: str = "fixed",
    limit: int | None = None,
) -> Record:
    """Run a function normally and record its graph; see `trace`.

    Arguments:
        f: the function.
        args, keywords: its arguments.
        escapes: "error" or "guard".
        numbers: "fixed" or "inputs".
        limit: the maximum number of nodes.
    """
    leaves, structure = flatten((tuple(args), dict(keywords or {})))
    tracer = Tracer(escapes, limit=limit)
    given = [from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    copied = copy_captured(f, given)
    if numbers == "inputs":
        given = [number_traced(leaf) for leaf in given]
    elif numbers != "fixed":
        raise ValueError(f"numbers must be 'fixed' or 'inputs', not {numbers!r}")
    binder = Binder(tracer, given, structure, argument_names(f))
    containers = Containers((tuple(args), dict(keywords or {})), structure, given)
    bound_args, bound_keywords = containers.given
    generators = Generators(tracer.existing.generators if tracer.existing is not None else [])
    with observing(tracer):
        result = f(*bound_args, **bound_keywords)
        tracer.check_caught()
        drawn = generators.drawn_from(options_of(tracer.graph))
        if drawn is not None:
            raise TraceError(
                f"the function has drawn random numbers from {drawn}, which its graph would keep as constants; draw "
                "them outside of the function, and pass them as tensors"
            )
        check_containers(containers)
        signature = binder.signature(structure, given, result)
    written = [signature.inputs[each.input] for each in signature.mutations]
    if copied and any(spec.kind == "argument" and spec.leaf in copied for spec in written):
        raise TraceError(
            "the function writes to an example argument that shares memory with a tensor or array that it captures, or "
            "it captures too many objects to tell; pass a copy() of the example, or capture less"
        )
    tracer.graph.signature = signature
    guard_exceptions(tracer.graph)
    check_numbers(tracer.graph, [value for leaf, _, value in binder.tensors if type(leaves[leaf]) in WEAK])
    return Record(tracer.graph, result)


def copy_captured(f: Callable[..., Any], given: list[Any]) -> frozenset[int]:
    """Replace examples that share memory with captured state by copies, and return their numbers.

    Otherwise the trace would read captured state from the argument, also in calls with other arguments. All examples
    are copied if the function captures more objects than are searched.
    """
    tensors = [number for number, leaf in enumerate(given) if isinstance(leaf, Tensor) and not is_scalar(leaf)]
    found = list(reachable(f)) if tensors else []
    arrays = (each._array if isinstance(each, Tensor) else each for each in found)
    owners = {id(owner_of(array)) for array in arrays if isinstance(array, np.ndarray)}
    is_incomplete = len(found) == LIMIT
    shared = [number for number in tensors if is_incomplete or id(owner_of(given[number]._array)) in owners]
    if len({id(owner_of(given[number]._array)) for number in shared}) < len(shared):
        raise TraceError(
            "several example arguments share memory with each other and with a tensor or array that the function "
            "captures; pass copies of the examples"
        )
    with ModeSwitch(on=GRAD):
        for number in shared:
            given[number] = given[number].clone()
    return frozenset(shared)


def options_of(graph: Graph) -> list[Any]:
    """Return all options of the nodes of a graph."""
    return [option for node in graph.nodes() if type(node.attributes) is tuple for option in node.attributes]


def check_containers(containers: Containers) -> None:
    """Raise if a function has changed the items of lists and dicts among its arguments."""
    changed = containers.changed()
    if changed is not None:
        containers.give_back()
        raise TraceError(
            f"the function changes the items of its argument {changed}, a container, which its graph would not "
            "reproduce; return them instead"
        )


def check_result(result: Structure, arguments: Structure) -> None:
    """Raise an error if a result contains an object that the run created, which a graph cannot create again.

    Arguments:
        result, arguments: the structure of the result, and that of the arguments, whose objects may be returned.

    Raises:
        TraceError: if there is such an object.
    """
    given = opaque_parts(arguments)
    for part in opaque_parts(result):
        if not _is_constant(part) and not any(part is each for each in given):
            kind = f"the function {part.__qualname__}" if isinstance(part, FunctionType) else f"a {type(part).__name__}"
            raise TraceError(
                f"the result contains {kind}, which the graph cannot create again: return tensors, in tuples, lists, "
                "dicts or dataclasses"
            )


def _is_constant(value: Any) -> bool:
    """Return whether an object is immutable and contains no tensor."""
    if isinstance(value, FunctionType):
        return value.__closure__ is None and value.__defaults__ is None and value.__kwdefaults__ is None
    if isinstance(value, type):
        return "<locals>" not in value.__qualname__
    if isinstance(value, BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    if isinstance(value, frozenset):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, CONSTANT_TYPES)


@contextmanager
def observing(tracer: Tracer) -> Any:
    """Install a tracer for a block."""
    refuse_unseen_writes()  # from here on, copies of captured arrays are recorded
    token = OBSERVER.set(tracer)
    try:
        with ModeSwitch(on=TRACE), seeds_refused(), warnings_refused():
            yield
    finally:
        OBSERVER.reset(token)


def argument_names(f: Callable[..., Any]) -> list[str]:
    """Return the known names of a function's positional arguments."""
    code = getattr(f, "__code__", None)
    return [] if code is None else list(code.co_varnames[: code.co_argcount])


class Binder:
    """Converts arguments to inputs of the graph, and results to outputs.

    Arguments:
        tracer: the current tracer.
        leaves: the leaves of the arguments, tensors and others.
        structure: the structure of `(args, keywords)`.
        names: the names of the positional arguments.
    """

    def __init__(self, tracer: Tracer, leaves: list[Any], structure: Structure, names: list[str]) -> None:
        self.tracer = tracer
        self.tensors: list[tuple[int, Tensor, Value]] = []
        self.paths = paths(structure)
        self.histories: dict[int, int] = {}
        self.memories: dict[int, int] = {}
        self.outputs: dict[int, int] = {}
        self.owners: dict[int, Any] = {}  # for each output, the owner of the memory of its tensor
        self.layouts: dict[int, tuple[int, ...]] = {}
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                kind = TensorType.of(leaf.dtype, leaf.shape, leaf.requires_grad)
                value = tracer.graph.add_input(kind, input_name(self.paths[number], names))
                self.tensors.append((number, leaf, value))
        groups: dict[int, list[tuple[Tensor, Value]]] = {}
        for _, tensor, value in self.tensors:
            groups.setdefault(id(owner_of(identified(tensor))), []).append((tensor, value))
        for group in groups.values():
            self._fill_memory(group)

    def _fill_memory(self, group: list[tuple[Tensor, Value]]) -> None:
        """Record the values of arguments that share memory."""
        tracer = self.tracer
        roots: dict[int, list[tuple[Tensor, Value]]] = {}
        for tensor, value in group:
            roots.setdefault(id(root_of(tensor)), []).append((tensor, value))
        memory: Memory | None = None
        for parts in roots.values():
            tensor, value = parts[0]
            if memory is None:
                memory = tracer.input_memory(tensor, value)
                remember(memory, root_of(tensor))
                if len(group) > 1:
                    tracer.memories.make_base(memory)
                    memory.value = tracer.memories.filled(memory, distinct(parts))
            else:
                tracer.branch(memory, root_of(tensor), distinct(parts))

    # -- results -------------------------------------------------------------------------------------------------------

    def signature(self, structure: Structure, leaves: list[Any], result: Any) -> Signature:
        """Return the signature after the function has returned `result`, and add the outputs to the graph."""
        tracer = self.tracer
        result_leaves, result_structure = flatten(result)
        check_result(result_structure, structure)
        inputs = [(tensor, value) for _, tensor, value in self.tensors] + tracer.closures
        results = self._results(result_leaves)
        mutations = []
        for number, (tensor, _) in enumerate(inputs):
            memory = tracer.memories.find(tensor._array)
            if memory is not None and memory.written:
                recorded = tracer.chain_of(memory, tensor).recorded
                mutations.append(MutationSpec(number, self._output(tensor), recorded))
        inputs = [(tensor, value) for _, tensor, value in self.tensors] + tracer.closures
        specs = []
        for number, (tensor, value) in enumerate(inputs):
            argument = number < len(self.tensors)
            leaf = self.tensors[number][0] if argument else -1
            kind = "argument" if argument else "closure"
            path = self.paths[leaf] if argument else tracer.graph.names.get(value, "")
            owner = owner_of(tensor._array)
            specs.append(
                InputSpec(
                    kind,
                    leaf,
                    path,
                    value.type,
                    None if argument else tensor,
                    self.memories.setdefault(id(owner), len(self.memories)),
                    (address_of(tensor._array) - address_of(owner), tensor._array.strides),
                    self.histories.setdefault(id(root_of(tensor)), len(self.histories)),
                    tensor._view is not None,
                )
            )
        numbers = [self._input_number(tensor) for tensor in tracer.ended]
        ended = sorted({number for number in numbers if number is not None})
        fixed = {i: leaf for i, leaf in enumerate(leaves) if not isinstance(leaf, Tensor)}
        return Signature(
            structure, tuple(specs), result_structure, tuple(results), tuple(mutations), fixed, tracer.aliased,
            self.layouts, tuple(ended),
        )  # fmt: skip

    def _results(self, leaves: list[Any]) -> list[Any]:
        """Return the leaves of the result; each tensor among them has its own output, in order."""
        block = self.tracer.block
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        for number, tensor in enumerate(tensors):
            self.owners[block.add_output(self.tracer.value_of(tensor))] = owner_of(tensor._array)
            self._lay_out(number, tensor)
        owners = [id(owner_of(tensor._array)) for tensor in tensors]
        numbers = iter(range(len(tensors)))
        results: list[Any] = []
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                results.append(leaf)
                continue
            number = next(numbers)
            kind = TensorType.of(leaf.dtype, leaf.shape, leaf.requires_grad)
            root = root_of(leaf)
            steps = () if leaf._view is None else leaf._view.steps
            given = self._input_number(leaf)
            old = root._edge is None and leaf.requires_grad  # a view created before the history of its base ended
            if old and self._is_from_outside(root):
                raise TraceError(
                    "a result is a view of an argument, taken before the argument was detached in place by detach_() "
                    "or requires_grad_(False), which a graph cannot reproduce; return a clone() of the view"
                )
            if given is not None:
                results.append(ResultSpec(number, kind, given))
            elif is_scalar(leaf):
                results.append(ResultSpec(number, kind, scalar=True))
            elif self._input_number(root) is not None:
                results.append(ResultSpec(number, kind, self._input_number(root), None, steps))
            elif (owners.count(owners[number]) > 1 or is_expanded(leaf)) and not (old or self._is_from_outside(root)):
                results.append(ResultSpec(number, kind, None, self._output(root), steps))
            else:
                results.append(ResultSpec(number, kind))
        return results

    def _is_from_outside(self, root: Tensor) -> bool:
        """Return whether a tensor is not an argument itself although views of it are."""
        memory = self.tracer.memories.find(root._array)
        return memory is not None and memory.root is not None

    def _input_number(self, tensor: Tensor) -> int | None:
        inputs = [other for _, other, _ in self.tensors] + [other for other, _ in self.tracer.closures]
        return next((number for number, other in enumerate(inputs) if other is tensor), None)

    def _output(self, tensor: Tensor) -> int:
        """Return the number of an output whose value is that of a tensor; a value may be an output twice."""
        number = self.outputs.get(id(tensor))
        if number is None:
            value, owner = self.tracer.value_of(tensor), owner_of(tensor._array)
            same = [n for n, other in enumerate(self.tracer.graph.outputs) if other is value]
            # other memory may contain the same value
            number = next((n for n in same if self.owners.get(n) is owner), None)
            if number is None:
                number = self.tracer.block.add_output(value)
                self.owners[number] = owner
            self.outputs[id(tensor)] = number
            self._lay_out(number, tensor)
        return number

    def _lay_out(self, number: int, tensor: Tensor) -> None:
        """Record the memory layout of a tensor whose value is an output."""
        if not tensor._array.flags.c_contiguous and not is_expanded(tensor):
            self.layouts.setdefault(number, layout_of(tensor._array))


def distinct(parts: list[tuple[Tensor, Value]]) -> list[tuple[Any, Value]]:
    """Return the arrays and values of the arguments, without duplicates."""
    found: dict[int, tuple[Any, Value]] = {}
    for tensor, value in parts:
        found.setdefault(id(tensor), (tensor._array, value))
    return list(found.values())


def is_expanded(tensor: Tensor) -> bool:
    """Return whether elements of a tensor share memory, as after `np.broadcast_to`, so that it cannot be written to."""
    return overlaps_itself(tensor._array)


def input_name(path: str, names: list[str]) -> str | None:
    """Return a name for the input with a path such as `[0][1]['w']` in `(args, keywords)`."""
    inside = path[4:] if path.startswith(("[0][", "[1][")) else path
    first, _, rest = inside.partition("]")
    if path.startswith("[0][") and first.isdigit() and int(first) < len(names):
        first = names[int(first)]
    text = "".join(c if c.isalnum() else "_" for c in first.strip("'\"") + rest).strip("_")
    return text if text.isidentifier() else None
