"""The tracer's hooks around calls of operators, indexed reads and writes, and custom functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from ...autograd.function.api import FunctionCall
from ...errors import GraphError
from ...operators.interception import OperatorCall
from ...operators.operands import frozen_copy
from ...tensor.interceptors import feature
from ...tensor.modes import TRACE
from ...tensor.tensor import Tensor
from ...tensor.trace_hooks import OBSERVER
from ...views.advanced_indexing import Accumulate, Gather, ReadElement, Write
from ..attributes import Frozen, unfrozen
from ..evaluate import SHAPE
from ..graph import Value
from ..opaque_ops import FunctionStep
from ..primitives import is_shaped_by_values, kind_of
from ..types import OBJECT, TensorType
from .tracer import Tracer

__all__: list[str] = []

PLAIN: Final = frozenset({int, float, complex, bool, str, type(None), type(...), slice, np.dtype, type})


def tracer() -> Tracer:
    """Return the current tracer."""
    observer = OBSERVER.get()
    assert isinstance(observer, Tracer)
    return observer


@feature(TRACE, OperatorCall)
def operator_traced(call: OperatorCall, run: Callable[[], Any]) -> Any:
    """Run an operator and record it."""
    self = tracer()
    operator = call.operator
    location = self.locations.here()
    if operator.signature.takes_tensors_alone and not call.kwargs:  # the usual case in loops over single numbers
        value_of = self.value_of
        inputs: list[Value | None] = [value_of(value) for value in call.args]
        attributes: tuple[Any, ...] = ()
    else:
        inputs, attributes = taken(self, call)
    try:
        result = run()
    except Exception as error:
        self.raised(error, operator, call.inplace, inputs, attributes, location)
        raise
    name = operator.name
    if call.inplace:
        target = call.args[0]
        declared = operator.inplace_declaration
        kind = kind_of(name if declared is None else f"{name}_")
        recorded = call.history is not None
        produced = result_type(kind, operator if declared is None else declared, target, inputs, recorded)
        self.write(target, self.node(kind, inputs, attributes, (produced,), location).output, recorded)
        return result
    outputs = result if type(result) is tuple else (result,)
    flows = leads_to_an_input(inputs)
    types = [
        TensorType.of(output._array.dtype, output._array.shape, flows and output._edge is not None)
        for output in outputs
    ]
    node = self.node(kind_of(name), inputs, attributes, types, location)
    for output, value in zip(outputs, node.outputs, strict=True):
        self.add(output, value)
    if not self.lenient and is_shaped_by_values(operator, node):
        for output, value in zip(outputs, node.outputs, strict=True):
            self.node("guard", (value,), (SHAPE, output.shape), (), location)
    return result


def taken(self: Tracer, call: OperatorCall) -> tuple[list[Value | None], tuple[Any, ...]]:
    """Return the input values of an operator and its options."""
    given = call.named()
    inputs: list[Value | None] = []
    for argument in call.operator.signature.tensors:
        value = given.get(argument.name)
        if argument.kind == "tensors":
            inputs.extend([self.value_of(item) for item in value or ()])
        else:
            inputs.append(None if value is None else self.value_of(value))
    return inputs, tuple([attribute_of(given[argument.name]) for argument in call.operator.signature.plain])


@feature(TRACE, Gather)
def gather_traced(call: Gather, run: Callable[[], Any]) -> Any:
    """Read by index arrays and record the read."""
    self = tracer()
    source = self.value_of(call.source)
    pattern, indices = self.pattern(call.index)
    location = self.locations.here()
    try:
        out = run()
    except Exception as error:
        self.index_raised(call.index, error)
        raise
    kind = TensorType.of(out._array.dtype, out._array.shape, source.type.requires_grad and out._edge is not None)
    self.add(out, self.node("gather_at", (source, *indices), (pattern,), (kind,), location).output)
    return out


@feature(TRACE, ReadElement)
def element_traced(call: ReadElement, run: Callable[[], Any]) -> Any:
    """Read one element and record it as a 0-d window of the current value."""
    self = tracer()
    value = self.element_of(call.source, call.index)
    out = run()
    self.add(out, value)
    return out


@feature(TRACE, Write)
def write_traced(call: Write, run: Callable[[], Any]) -> Any:
    """Write and record the write."""
    self = tracer()
    value = self.value_of(call.value)
    self.will_be_written(call.target)
    added = isinstance(call, Accumulate)
    own = self.own_value_of(call.target) if added else None
    try:
        result = run()
    except Exception as error:
        self.index_raised(call.items, error)
        raise
    kind = "add_at" if added else "write" if call.items is None else "put_at"
    if own is not None:  # added to, and from now on in the history of the base
        self.write(call.target, own, call.history is not None)
    self.write(call.target, value, call.history is not None, call.items, kind)
    return result


@feature(TRACE, FunctionCall)
def function_traced(call: FunctionCall, run: Callable[[], Any]) -> Any:
    """Call a custom function and record it as a single opaque step."""
    self = tracer()
    tensors = [arg for arg in call.args if isinstance(arg, Tensor)]
    inputs = [self.value_of(tensor) for tensor in tensors]
    applied = Applied(call.function, call.args)
    step = FunctionStep(applied, call.function.__name__)
    location = self.locations.here()
    try:
        result = run()
    except Exception as error:
        self.uncaught(error, call.function.__name__, location)
        raise
    outputs = result if isinstance(result, tuple) else (result,)
    applied.kinds = kinds_of(outputs)
    flows = leads_to_an_input(inputs)
    types = [
        TensorType.of(output.dtype, output.shape, flows and output.requires_grad)
        if isinstance(output, Tensor)
        else OBJECT
        for output in outputs
    ]
    node = self.node("call", inputs, (step,), types, location)
    for output, value in zip(outputs, node.outputs, strict=True):
        if not isinstance(output, Tensor):
            continue
        if any(output is tensor for tensor in tensors):
            self.write(output, value, output.requires_grad)
        elif self.memories.find(output._array) is not None:
            self.refuse(f"{call.function.__name__}, which returns a view of memory that existed before,")
        else:
            self.add(output, value)
    return result


def leads_to_an_input(values: Iterable[Value | None]) -> bool:
    """Return whether a gradient can flow through any of the values to an input, rather than only to new leaves."""
    return any(value is not None and value.type.requires_grad for value in values)


class Applied:
    """A custom function with all arguments bound except tensors.

    Arguments:
        function: the subclass of `Function`.
        args: the arguments of a call, with placeholders for the tensors.

    Attributes:
        kinds: the shapes and dtypes of its results, which are the same in every call.
    """

    kinds: list[Any]

    def __init__(self, function: Any, args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = tuple([None if isinstance(arg, Tensor) else attribute_of(arg) for arg in args])
        self.tensor_positions = [number for number, arg in enumerate(args) if isinstance(arg, Tensor)]

    def __call__(self, *tensors: Tensor) -> Any:
        args = [unfrozen(arg) for arg in self.args]
        for place, tensor in zip(self.tensor_positions, tensors, strict=True):
            args[place] = tensor.clone()  # forward may write to it
        result = self.function.apply(*args)
        kinds = kinds_of(result if isinstance(result, tuple) else (result,))
        if kinds != self.kinds:
            raise GraphError(
                f"results of {self.function.__name__} have the shapes and dtypes {kinds}; they had {self.kinds} when "
                "the program was traced"
            )
        return result


def kinds_of(results: tuple[Any, ...]) -> list[Any]:
    """Return the shapes and dtypes of the tensors among some results."""
    return [(each.shape, each.dtype.name) if isinstance(each, Tensor) else None for each in results]


def result_type(kind: str, operator: Any, target: Tensor, inputs: list[Any], recorded: bool) -> TensorType:
    """Return the type of the result of an in-place operator before it is cast to the dtype of the target."""
    dtype = target.dtype
    if isinstance(operator.forward, np.ufunc):
        # The loop is chosen by the operands; its result is cast.
        dtypes = tuple([value.type.dtype for value in inputs])
        resolved = operator.forward.resolve_dtypes((*dtypes, None))
        dtype = resolved[-1]
    elif dtype.kind == "c" or any(value is not None and value.type.dtype != dtype for value in inputs):
        samples = [None if value is None else np.ones(value.type.shape, value.type.dtype) for value in inputs]
        try:
            with np.errstate(all="ignore"):
                dtype = np.asarray(operator.forward(*samples)).dtype
        except TypeError:
            pass
    return TensorType.of(dtype, target.shape, recorded)


def attribute_of(option: Any) -> Any:
    """Return an option of an operator as an attribute: an object of our own that nothing else can change."""
    kind = type(option)
    if kind is tuple:
        return tuple([attribute_of(item) for item in option])
    if kind is list:
        return [attribute_of(item) for item in option]
    if kind is np.ndarray:
        _report_array_option(option)
        return Frozen(option.copy("C"))
    if kind is type and (option in (bool, int, float, complex) or issubclass(option, np.generic)):
        return np.dtype(option)
    if kind not in PLAIN:
        _report_array_option(option)
    return frozen_copy(option)


def _report_array_option(option: Any) -> None:
    """Notify the tracer, if any, of an option that may contain arrays."""
    observer = OBSERVER.get(None)
    if observer is not None:
        observer.array_option(option)
