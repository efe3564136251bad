"""Formulas as graphs: each is traced once for each kind of operands, and then copied.

See Note [Formulas as graphs] in docs/notes/symbolic.md.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np

from ..errors import GradientNotImplementedError, GraphError, TraceError
from ..operators.language.spec import Formula, Operator
from ..tensor.modes import MODE, TRACE
from ..tensor.tensor import Tensor, from_array
from ..tensor.trace_hooks import OBSERVER
from ..trace.attributes import unfrozen
from ..trace.graph import Block, Graph, Node, Value
from ..trace.opaque_ops import FormulaStep, run_formula
from ..trace.primitives import input_places
from ..trace.tracing.tracer import Tracer
from ..trace.types import TensorType
from .passes.dead_code import eliminate_dead_code

LIMIT: Final = 1 << 12  # the number of cached templates


@attrs.frozen(eq=False)
class Template:
    """A formula as a graph.

    Arguments:
        graph: the graph from the values that the formula reads to the gradients.
        reads: the inputs of the graph: ("grad", output), ("input", number) or ("output", number).
        gives: the number of the input whose gradient each output of the graph is.
    """

    graph: Graph
    reads: tuple[tuple[str, int], ...]
    gives: tuple[int, ...]

    @property
    def is_opaque(self) -> bool:
        """Return whether the template is an opaque step."""
        return self.graph.block.first.kind == "call"


_templates: dict[Any, tuple[Template, ...]] = {}


def template_for(operator: Operator, node: Node, arriving: tuple[bool, ...], wanted: tuple[bool, ...]) -> Any:
    """Return the templates of the formulas that compute the wanted gradients of a node.

    Arguments:
        operator: the operator of the node.
        node: the node.
        arriving: for each output, whether its gradient may be nonzero.
        wanted: for each input, whether its gradient is wanted.
    """
    options = node.attributes
    key: Any = (
        id(operator),
        node.kind,
        repr(options) if options else (),
        tuple([None if value is None else (value.type.dtype, value.type.shape) for value in node.inputs]),  # type: ignore[attr-defined]
        tuple([(value.type.dtype, value.type.shape) for value in node.outputs]),  # type: ignore[attr-defined]
        arriving,
        wanted,
    )
    found = _templates.get(key)
    if found is None or _has_objects(options):
        found = _cached(key, tuple(_templates_of(operator, node, arriving, wanted)))
    if any(template.is_opaque for template in found):
        # It inspects values, which is possible for constants.
        constants = tuple([known_constant(value) for value in node.inputs])
        if any(constant is not None for constant in constants):
            key = (key, constants)
            found = _templates.get(key)
            if not found:
                found = _cached(key, tuple(_templates_of(operator, node, arriving, wanted, constants)))
    return found


def _cached(key: Any, templates: tuple[Template, ...]) -> tuple[Template, ...]:
    if len(_templates) >= LIMIT:
        _templates.clear()
    _templates[key] = templates
    return templates


def known_constant(value: Value | None) -> Any:
    """Return the elements of a small constant."""
    if value is None or value.node.kind != "constant" or value.node.attributes[0].array.size > SMALL:
        return None
    return value.node.attributes[0]


def _has_objects(options: Any) -> bool:
    """Return whether options contain objects that are not determined by their text."""
    if isinstance(options, (tuple, list)):
        return any(_has_objects(option) for option in options)
    return isinstance(options, Tensor) or not isinstance(options, PRINTED)


SMALL: Final = 16  # elements
PRINTED: Final = (int, float, complex, str, bool, type(None), slice, type(Ellipsis), np.dtype)


def _templates_of(
    operator: Operator, node: Node, arriving: tuple[bool, ...], wanted: tuple[bool, ...], constants: Any = ()
) -> Any:
    places = input_places(operator, len(node.inputs))
    for formula in operator.formulas:
        gives = [number for name in formula.inputs for number in places[name]]
        if not any(wanted[number] for number in gives):
            continue
        if not any(arriving[number] for number in formula.grads):
            continue
        yield TemplateBuilder(operator, formula, node, arriving, places, constants).template(gives)


class TemplateBuilder:
    """Builds the template of a formula.

    Arguments:
        operator, formula: the formula, and its operator.
        node: a node of the operator.
        arriving: for each output, whether its gradient may be nonzero.
        places: the numbers of the inputs of each argument.
        constants: the known values of inputs; empty if the formula must not inspect them.
    """

    def __init__(
        self,
        operator: Operator,
        formula: Formula,
        node: Node,
        arriving: tuple[bool, ...],
        places: dict[str, list[int]],
        constants: tuple[Any, ...],
    ) -> None:
        self.operator = operator
        self.formula = formula
        self.node = node
        self.arriving = arriving
        self.places = places
        self.constants = constants
        self.several = len(operator.signature.outputs) - len(operator.nondifferentiable_outputs) > 1
        names = [argument.name for argument in operator.signature.plain]
        self.options = dict(zip(names, node.attributes or (), strict=True))
        self.options = {name: self.options[name] for name in formula.plain}
        for slot, name, attribute in formula.metadata:
            self.options[slot] = self._metadata(name, attribute)

    def _metadata(self, name: str, attribute: str) -> Any:
        if attribute in ("strides", "geometry"):
            raise GraphError(
                f"the formula {self.formula.text!r} of operator {self.operator.name!r} depends on the memory layout of "
                f"{name}, which is unknown for values of a graph"
            )
        outputs = self.operator.signature.outputs
        if name in outputs:
            return metadata_of(self.node.outputs[outputs.index(name)], attribute)
        values = [self.node.inputs[number] for number in self.places[name]]
        if attribute in ("shapes", "dtypes"):
            return [metadata_of(value, attribute[:-1]) for value in values]
        return metadata_of(values[0], attribute)

    def template(self, gives: list[int]) -> Template:
        """Return the template, which is opaque if the formula inspects values."""
        try:
            first, reads = self._traced(1)
            second, _ = self._traced(2)
            if same_graph(first, second):
                return Template(first, reads, tuple(gives))
        except GradientNotImplementedError:
            raise
        except (TraceError, ArithmeticError, np.linalg.LinAlgError, ValueError, TypeError, IndexError):
            pass
        return self._opaque(gives)

    def reads(self) -> list[tuple[str, tuple[str, int]]]:
        """Return the names that the formula reads, each with its kind."""
        outputs = self.operator.signature.outputs
        return [
            *[(f"grads[{number}]" if self.several else "grad", ("grad", number))
              for number in self.formula.grads if self.arriving[number]],
            *[(self._listed(name, i), ("input", number)) for name in self.formula.reads
              for i, number in enumerate(self.places[name]) if self.node.inputs[number] is not None],
            *[(name, ("output", outputs.index(name))) for name in self.formula.results],
        ]

    def _listed(self, name: str, number: int) -> str:
        return f"{name}[{number}]" if self.operator.signature.argument(name).kind == "tensors" else name

    def value(self, read: tuple[str, int]) -> Value:
        """Return the value of the node, or of the gradient, that is read."""
        kind, number = read
        if kind == "input":
            value = self.node.inputs[number]
            assert value is not None
            return value
        return self.node.outputs[number]

    @property
    def specs(self) -> tuple[Any, ...]:
        """The shapes and dtypes of the inputs of the formula."""
        specs = []
        for name in self.formula.inputs:
            values = [self.node.inputs[number] for number in self.places[name]]
            each = [None if v is None else (v.type.shape, v.type.dtype) for v in values]  # type: ignore[attr-defined]
            specs.append(each if self.operator.signature.argument(name).kind == "tensors" else each[0])
        return tuple(specs)

    @property
    def output_specs(self) -> tuple[Any, ...] | None:
        """The shapes and dtypes of the outputs, if there are several gradients."""
        if not self.several:
            return None
        return tuple([(value.type.shape, value.type.dtype) for value in self.node.outputs])  # type: ignore[attr-defined]

    def _traced(self, seed: int) -> tuple[Graph, tuple[tuple[str, int], ...]]:
        """Trace the formula on example tensors."""
        rng = np.random.default_rng(seed)
        tracer = Tracer(lenient=True)
        given: dict[str, Any] = {}
        reads = []
        for name, read in self.reads():
            kind = self.value(read).type
            assert type(kind) is TensorType
            constant = self.constants[read[1]] if self.constants and read[0] == "input" else None
            if constant is not None:
                given[name] = tensor = from_array(constant.array.copy())
                tracer.memories.add(tensor._array, tracer.constant(tensor._array))
                continue
            given[name] = tensor = from_array(numbers_like(kind, rng))
            tracer.memories.add(tensor._array, tracer.graph.add_input(kind.with_grad(False), named(name)))
            reads.append(read)
        given = gathered_lists(given)
        for name in self.formula.reads:
            given.setdefault(name, None)
        given |= {name: unfrozen(value) for name, value in self.options.items()}
        mode = MODE.set(TRACE)
        token = OBSERVER.set(tracer)
        try:
            with np.errstate(all="ignore"):
                results = run_formula(self.operator, self.formula, given, self.specs, self.output_specs, True)
                for result in results:
                    tracer.block.add_output(
                        None if result is None else tracer.value_of(result) if isinstance(result, Tensor)
                        else tracer.constant(np.asarray(result))
                    )
        finally:
            OBSERVER.reset(token)
            MODE.reset(mode)
        eliminate_dead_code(tracer.block)
        return tracer.graph, tuple(reads)

    def _opaque(self, gives: list[int]) -> Template:
        names, reads = zip(*self.reads(), strict=True)
        missing = [(name, None) for name in self.formula.reads if name not in gathered_lists(dict.fromkeys(names))]
        options = (*self.options.items(), *missing)
        step = FormulaStep(self.operator, self.formula, names, options, self.specs, self.output_specs)
        graph = Graph()
        inputs = [graph.add_input(self.value(read).type, named(name)) for name, read in zip(names, reads, strict=True)]
        types = []
        for number in gives:
            value = self.node.inputs[number]
            types.append(value.type.with_grad(False) if value is not None else None)
        node = graph.block.append("call", inputs, (step,), [each for each in types if each is not None])
        graph.block.set_outputs(node.outputs)
        return Template(graph, reads, tuple([n for n, each in zip(gives, types, strict=True) if each is not None]))


def metadata_of(value: Value | None, attribute: str) -> Any:
    """Return a property of a value that a formula depends on: shape, dtype, or number of dimensions or elements."""
    if value is None:
        return None
    kind = value.type
    assert type(kind) is TensorType
    return {"shape": kind.shape, "dtype": kind.dtype, "ndim": len(kind.shape), "size": kind.size}[attribute]


def named(name: str) -> str:
    """Return the name of a template's input."""
    return name.replace("[", "_").replace("]", "")


def gathered_lists(given: dict[str, Any]) -> dict[str, Any]:
    """Return the values by name, with the items `name[0]`, `name[1]`, ... collected in lists."""
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name.endswith("]") and not name.startswith("grads["):
            result.setdefault(name.partition("[")[0], []).append(value)
        else:
            result[name] = value
    return result


def numbers_like(kind: TensorType, rng: np.random.Generator) -> Any:
    """Return an example array of a type; square matrices are invertible."""
    shape, dtype = kind.shape, kind.dtype
    if dtype.kind in "iub":
        return np.zeros(shape, dtype)
    numbers = rng.uniform(0.5, 1.5, shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        numbers = numbers + 2 * shape[-1] * np.eye(shape[-1])
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.uniform(0.5, 1.5, shape)
    return np.asarray(numbers).astype(dtype)


def same_graph(first: Graph, second: Graph) -> bool:
    """Return whether two graphs have the same nodes in the same order."""
    numbers: dict[Value, Value] = dict(zip(first.inputs, second.inputs, strict=True))
    return same_blocks(first.block, second.block, numbers)


def same_blocks(first: Block, second: Block, numbers: dict[Value, Value]) -> bool:
    """Return whether two blocks have the same nodes; `numbers` maps corresponding values to numbers."""
    one, other = list(first), list(second)
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a.kind != b.kind or len(a.inputs) != len(b.inputs) or len(a.blocks) != len(b.blocks):
            return False
        inputs = zip(a.inputs, b.inputs, strict=True)
        if any(u is not v and (u is None or numbers.get(u, u) is not v) for u, v in inputs):
            return False
        if [v.type for v in a.outputs] != [v.type for v in b.outputs] or repr(a.attributes) != repr(b.attributes):
            return False
        for inner, opposite in zip(a.blocks, b.blocks, strict=True):
            if len(inner.inputs) != len(opposite.inputs):
                return False
            numbers.update(zip(inner.inputs, opposite.inputs, strict=True))
            if not same_blocks(inner, opposite, numbers):
                return False
        numbers.update(zip(a.outputs, b.outputs, strict=True))
    outputs = zip(first.outputs, second.outputs, strict=True)
    return all(u is v or (u is not None and numbers.get(u, u) is v) for u, v in outputs)


