"""A graph as a function of tensors: one node of the eager graph, differentiable to any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..autograd.function.api import Function
from ..errors import AutogradError, ForwardModeError, GraphError, GuardError
from ..func.tree import Branch, Fixed, Structure, flatten, leaves_like, unflatten
from ..tensor.async_safety import in_own_context
from ..tensor.creation import from_numpy
from ..tensor.equality import is_same_constant
from ..tensor.escapes import has_tangent
from ..tensor.modes import FORWARD, GRAD, TRACE, ModeSwitch, current_mode
from ..tensor.saved_windows import address_of
from ..tensor.tensor import Tensor, as_scalar, current_edge, from_array, is_scalar, root_of
from ..trace.graph import Graph
from ..trace.on_tensors import run_on_tensors
from ..trace.scalar_inputs import number_given
from ..trace.signature import InputSpec, ResultSpec, Signature, laid_out
from ..trace.trace import trace
from ..trace.tracing.memory import owner_of
from ..trace.types import TensorType
from ..views.detached_views import has_ended
from .differentiate import differentiate
from .gradient import Gradient
from .passes.grad_of import inline_grad_of, specialize_autograd_zero
from .source import Program, program_of


class GraphFunction:
    """A graph as a function from a list of tensors to a list of tensors.

    Arguments:
        graph: the graph.
        name: the name of the generated function.
        layouts: by number, the memory layout of outputs that are not in row-major order.
        requiring: the numbers of the outputs that have a history although no gradient flows from them to the inputs.

    Attributes:
        gradient: the differentiated graph, created on demand.
    """

    def __init__(
        self, graph: Graph, name: str = "graph", layouts: Mapping[int, tuple[int, ...]] | None = None,
        requiring: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self.graph = graph
        self.name = name
        self.layouts = layouts or {}
        self.requiring = requiring
        self.gradient: Gradient | None = None
        self._plain_program: Program | None = None
        self._with_temporaries: Program | None = None
        self._reverses: dict[tuple[int, ...], GraphFunction] = {}

    def program(self) -> Program:
        """Return the program of the graph without temporaries."""
        if self._plain_program is None:
            self._plain_program = program_of(self.graph, self.name)
        return self._plain_program

    def forward(self) -> Program:
        """Return the program of the graph, including the temporaries that its reverse needs."""
        if self._with_temporaries is None:
            self.gradient = differentiate(self.graph)
            self._with_temporaries = program_of(self.gradient.f, self.name)
        return self._with_temporaries

    def reverse(self, undefined: Sequence[int]) -> GraphFunction:
        """Return the reverse, specialized for which of its first inputs are undefined gradients."""
        key = tuple(undefined)
        found = self._reverses.get(key)
        if found is None:
            assert self.gradient is not None
            df = specialize_autograd_zero(self.gradient.df.clone(), key)
            found = self._reverses[key] = GraphFunction(df, f"{self.name}_gradient")
        return found

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of the graph as new tensors, which in grad mode come from one node of the eager graph."""
        mode = current_mode()
        if mode & FORWARD:
            return list(run_on_tensors(flat(self.graph), inputs))
        recorded = mode & GRAD and any(isinstance(t, Tensor) and current_edge(t) is not None for t in inputs)
        if not recorded and not mode & TRACE:
            return self.run(self.program(), inputs)
        outputs = DifferentiableGraph.apply(self, *inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return list(outputs[: len(self.graph.outputs)])

    def run(self, program: Program, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs of a program as new tensors without history."""
        given = [None if each is None else np.asarray(each._array) for each in inputs]
        outputs: list[Any] = []
        held = {id(array) for array in given} | program.constants  # memory that results must not share
        for number, array in enumerate(program(given)):
            if array is None:
                outputs.append(None)
                continue
            if number in self.layouts:
                array = laid_out(array, self.layouts[number])
            elif array.base is not None or not array.flags.writeable or id(array) in held:
                array = array.copy()
            held.add(id(array))
            outputs.append(from_array(array))
        return outputs


class DifferentiableGraph(Function):
    """A graph as one differentiable step."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the graph; in forward mode, node by node to compute tangents."""
        function, *inputs = args
        if current_mode() & FORWARD:
            function.forward()
            return run_on_tensors(function.gradient.f, inputs)
        return super().apply(*args, **kwargs)

    @staticmethod
    def forward(ctx: Any, function: GraphFunction, *inputs: Any) -> Any:
        """Run the graph; temporaries are additional outputs."""
        program = function.forward()
        gradient = function.gradient
        assert gradient is not None
        ctx.function = function
        ctx.set_materialize_grads(False)
        with ModeSwitch(off=TRACE):
            outputs = function.run(program, inputs)
        constant = [
            tensor
            for number, (tensor, value) in enumerate(zip(outputs, gradient.f.outputs, strict=True))
            if not (tensor is None or value is None or value.type.requires_grad or number in function.requiring)
        ]
        ctx.mark_non_differentiable(*constant)
        ctx.save_for_backward(
            *[inputs[number] for number in gradient.df_input_captured_inputs],
            *[outputs[number] for number in gradient.df_input_captured_outputs],
        )
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the reverse, specialized for which gradients are undefined."""
        function: GraphFunction = ctx.function
        gradient = function.gradient
        assert gradient is not None
        arriving = [grads[number] for number in gradient.df_input_vjps]
        undefined = [number for number, grad in enumerate(arriving) if grad is None]
        reverse = function.reverse(undefined)
        with np.errstate(divide="ignore", invalid="ignore"):  # no gradient flows there; see Note [Infinite slopes]
            found = reverse([*arriving, *ctx.saved_tensors])
        result: list[Any] = [None] * (len(function.graph.inputs) + 1)
        for number, grad in zip(gradient.df_output_vjps, found, strict=True):
            result[number + 1] = grad
        return tuple(result)


def flat(graph: Graph) -> Graph:
    """Return a graph without linear blocks."""
    if any(node.blocks for node in graph.block):
        graph = graph.clone()
        inline_grad_of(graph.block)
    return graph


# -- with the signature of the traced function -------------------------------------------------------------------------


class TracedFunction:
    """A traced function, with the same arguments and result as the original function.

    Arguments:
        graph: a graph with a signature, as returned by `trace`.

    Raises:
        GraphError: if the graph has no signature.
    """

    def __init__(self, graph: Graph) -> None:
        if graph.signature is None:
            raise GraphError("only a traced graph can be called with the arguments of the original function")
        self.graph = graph
        self.signature: Signature = graph.signature
        requiring = frozenset(
            spec.output for spec in self.signature.results if isinstance(spec, ResultSpec) and spec.type.requires_grad
        )
        self.function = GraphFunction(graph, "graph", self.signature.layouts, requiring)

    @in_own_context
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the result for other arguments of the same kind, and write to the arguments as the function does.

        Raises:
            GraphError: for arguments with another structure, other shapes or dtypes, or other memory sharing.
            GuardError: if a value that control flow depends on differs, or an operator raises an exception that it did
                not raise during tracing (the error is then also an instance of that exception's class).
            ForwardModeError: for tangents of memory that a detached tensor shares and that was written to.
        """
        inputs = self.bound(args, keywords)
        if self.signature.aliased is not None and current_mode() & FORWARD and any(map(has_tangent, inputs)):
            raise ForwardModeError(
                f"the write at {self.signature.aliased} is to memory that a detached tensor shares with one to which "
                "gradients flow, and the graph does not determine the tangent of that memory; clone() the result of "
                "detach()"
            )
        if any(has_ended(inputs[each.input]) for each in self.signature.mutations if not each.recorded):
            raise GraphError(
                "the function writes to an argument that shares memory with a tensor that was detached in place, and "
                "the graph does not determine which elements keep their history; pass a clone() of the argument"
            )
        try:
            outputs = self.function(inputs)
        except AutogradError:
            raise
        except Exception as error:
            raise exception_guard_error(error) from error
        for number in self.signature.ended:
            inputs[number].detach_()
        for mutation in self.signature.mutations:
            with ModeSwitch(off=0 if mutation.recorded else GRAD):
                inputs[mutation.input].copy_(outputs[mutation.output])
        results = [self._result(spec, inputs, outputs) for spec in self.signature.results]
        return unflatten(self.signature.result, results)

    def _result(self, spec: Any, inputs: list[Any], outputs: list[Any]) -> Any:
        if not isinstance(spec, ResultSpec):
            return spec
        if spec.input is not None:
            found = inputs[spec.input]
        else:
            found = outputs[spec.output if spec.base is None else spec.base]
        for step in spec.steps:
            found = step(found)
        return as_scalar(found) if spec.scalar else found

    def bound(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Tensor]:
        """Return the tensors that are the inputs of the graph."""
        _, structure = flatten((args, keywords))
        signature = self.signature
        other = difference(signature.arguments, structure, "")
        if other is not None:
            raise GraphError(f"the arguments have a different structure than when the function was traced: {other}")
        leaves = leaves_like(signature.arguments, (args, keywords), "the arguments")  # also for dicts in another order
        for number, wanted in signature.fixed.items():
            if not is_same_constant(leaves[number], wanted):
                raise GraphError(
                    f"the function was traced with {wanted!r}, but is called with {leaves[number]!r}; numbers are part "
                    "of the graph: trace it with numbers='inputs', pass a tensor, or trace the function again"
                )
        inputs: list[Tensor] = []
        for spec in signature.inputs:
            leaf = spec.tensor if spec.kind == "closure" else number_given(leaves[spec.leaf])
            inputs.append(checked(from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf, spec))
        check_sharing(inputs, signature.inputs, bool(signature.mutations or signature.ended))
        return inputs


def exception_guard_error(error: Exception) -> GuardError:
    """Return the error for an exception that did not occur when the program was traced.

    It is also an instance of the exception's class, for programs that catch the exception.
    """
    kind = type(error)
    message = (
        f"{kind.__name__}: {error}; no such exception was raised when the program was traced, and the function may "
        "handle it: the graph is not valid for this run"
    )
    try:
        combined: type[GuardError] = type(kind.__name__, (GuardError, kind), {"__module__": kind.__module__})
        return combined(message)
    except TypeError:  # a class with its own constructor or layout
        return GuardError(message)


def function_of(f: Callable[..., Any], *example_inputs: Any, **options: Any) -> TracedFunction:
    """Trace a function and return it as a single node of the eager graph.

    Arguments:
        f: the function.
        example_inputs, options: as for `trace`.

    Example:
        >>> import viewgrad as vg
        >>> traced = vg.symbolic.function_of(lambda a, b: (a + b) * b, vg.ones(2, requires_grad=True), vg.ones(2))
        >>> a = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = traced(a, vg.Tensor([3.0, 4.0]))
        >>> y
        Tensor([12., 24.], grad_fn=<DifferentiableGraphBackward>)
        >>> vg.autograd.grad(y.sum(), a)
        (Tensor([3., 4.]),)
    """
    return TracedFunction(trace(f, *example_inputs, **options))


def checked(tensor: Any, spec: InputSpec) -> Tensor:
    """Return an input after checking that it has the expected type."""
    kind = spec.type
    assert type(kind) is TensorType
    if not isinstance(tensor, Tensor) or tensor.shape != kind.shape or tensor.dtype != kind.dtype:
        given = f"{tensor.dtype.name}{list(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise GraphError(f"the argument {spec.path} is {given}, but the function was traced with {kind}")
    if tensor.requires_grad and not kind.requires_grad:
        raise GraphError(f"the argument {spec.path} requires grad, which it did not when the function was traced")
    return tensor


def check_sharing(inputs: Sequence[Tensor], specs: Sequence[InputSpec], writes: bool) -> None:
    """Check that inputs share memory and histories as they did when traced.

    Arguments:
        inputs, specs: the inputs and their descriptions.
        writes: whether the function changes an input. Otherwise an argument may share memory with captured tensors.
    """
    owners: dict[int, int] = {}
    histories: dict[int, int] = {}
    first: dict[int, tuple[Tensor, InputSpec]] = {}
    for tensor, spec in zip(inputs, specs, strict=True):
        # shares no memory: it may replace several inputs, but several inputs must not replace one
        if is_scalar(tensor):
            if first.setdefault(spec.memory, (tensor, spec))[0] is not tensor:
                raise other_sharing(spec)
            continue
        owner = owner_of(tensor._array)
        root = root_of(tensor)
        same = owners.setdefault(id(owner), spec.memory) == spec.memory
        same = same and histories.setdefault(id(root), spec.history) == spec.history
        same = same or (spec.kind == "closure" and not writes)
        if spec.memory in first:
            other, theirs = first[spec.memory]
            same = same and is_placed_alike(tensor, other, spec, theirs)
        else:
            first[spec.memory] = (tensor, spec)
        if not same:
            raise other_sharing(spec)


def other_sharing(spec: InputSpec) -> GraphError:
    """Return a description of the problem if an input shares memory with others that it did not share with."""
    return GraphError(
        f"the argument {spec.path} shares memory with others in a different way than when the function was traced"
    )


def is_placed_alike(tensor: Tensor, other: Tensor, spec: InputSpec, theirs: InputSpec) -> bool:
    """Return whether two tensors share memory in the same way as two inputs did."""
    assert spec.place is not None and theirs.place is not None
    distance = address_of(tensor._array) - address_of(other._array)
    return bool(
        owner_of(tensor._array) is owner_of(other._array)
        and distance == spec.place[0] - theirs.place[0]
        and tensor._array.strides == spec.place[1]
    )


def difference(wanted: Structure, given: Structure, path: str) -> str | None:
    """Return the path at which two trees `(args, keywords)` differ in structure, or None."""
    if isinstance(wanted, Branch) and isinstance(given, Branch):
        if wanted.kind is not given.kind or {*wanted.keys} != {*given.keys}:
            one, other = [f"a {each.kind.__name__} of {', '.join(map(repr, each.keys))}" for each in (wanted, given)]
            return f"{path} was {one}, and is {other}"
        children = dict(zip(given.keys, given.children, strict=True))
        for key, child in zip(wanted.keys, wanted.children, strict=True):
            found = difference(child, children[key], f"{path}[{key!r}]")
            if found is not None:
                return found
        return None
    if isinstance(wanted, Fixed) and isinstance(given, Fixed):
        same = is_same_constant(wanted.value, given.value)
        return None if same else f"{path} was {wanted.value!r}, and is {given.value!r}"
    same = type(wanted) is type(given)
    return None if same else f"{path} was {describe_structure(wanted)}, and is {describe_structure(given)}"


def describe_structure(structure: Structure) -> str:
    """Describe the structure of a tree for a message."""
    if isinstance(structure, Branch):
        return f"a {structure.kind.__name__}"
    return repr(structure.value) if isinstance(structure, Fixed) else "a tensor, an array or a float"
