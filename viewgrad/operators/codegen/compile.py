"""From a declaration to code: the function, its in-place variant and the node class of an operator, as Python source.

What is generated is flat and specialised: no loops over arguments, no dispatch on what the declaration settles. The
source is registered with `linecache`, so that tracebacks and debuggers show it.
"""

from __future__ import annotations

import itertools
import linecache
from typing import Any, Final

import numpy as np

from ...errors import ForeignTypeError
from ...tensor.modes import GRAD, current_mode
from ...tensor.node import ONE_EDGE, TWO_EDGES, Edge, Node, new, next_sequence_nr
from ...tensor.ownership import ALONE_IN_NODE, getrefcount
from ...tensor.saved import RELEASED, SavedTensor
from ...tensor.storage import keep_number, prepare_write, save
from ...tensor.tensor import Tensor, tensor_like
from ...views.copy_slices import INTERRUPTIONS, CopyBackwards, interrupt_history, rebase_history
from ...views.specs import match_spec
from ...views.write_checks import check_write
from ..features import run_special, run_special_inplace
from ..language.declaration import Operator
from ..language.names import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS, formula_function, is_formula_function
from ..operands import (
    HOLDERS,
    MUTABLE,
    as_operand,
    checked_gradient,
    foreign_operand,
    frozen_copy,
    geometry_of,
    operands,
    optional_operands,
    overwrite,
    owned_array,
    plain_option,
    refuse_tensors,
)
from .function_writer import FunctionWriter
from .node_writer import LARGE, NodeWriter, backward_name, of_reals

__all__ = [
    "ARRAY_FUNCTIONS",
    "INTERNAL",
    "TENSOR_FUNCTIONS",
    "announce",
    "compile_source",
    "environment_of",
    "formula_function",
    "generate",
    "is_formula_function",
]

# What generated code calls for its own purposes.
INTERNAL: Final[dict[str, Any]] = {
    "ALONE_IN_NODE": ALONE_IN_NODE,
    "CopyBackwards": CopyBackwards,
    "Edge": Edge,
    "ForeignTypeError": ForeignTypeError,
    "GRAD": GRAD,
    "HOLDERS": HOLDERS,
    "INTERRUPTIONS": INTERRUPTIONS,
    "LARGE": LARGE,
    "MUTABLE": MUTABLE,
    "Node": Node,
    "ONE_EDGE": ONE_EDGE,
    "RELEASED": RELEASED,
    "SavedTensor": SavedTensor,
    "TWO_EDGES": TWO_EDGES,
    "Tensor": Tensor,
    "as_operand": as_operand,
    "asarray": np.asarray,
    "check_write": check_write,
    "checked_gradient": checked_gradient,
    "match_spec": match_spec,
    "current_mode": current_mode,
    "float64": np.float64,
    "foreign_operand": foreign_operand,
    "owned_array": owned_array,
    "geometry_of": geometry_of,
    "getrefcount": getrefcount,
    "interrupt_history": interrupt_history,
    "keep_number": keep_number,
    "ndarray": np.ndarray,
    "new": new,
    "next_sequence_nr": next_sequence_nr,
    "np_add": np.add,
    "np_divide": np.true_divide,
    "np_multiply": np.multiply,
    "np_negative": np.negative,
    "operands": operands,
    "optional_operands": optional_operands,
    "overwrite": overwrite,
    "plain_option": plain_option,
    "prepare_write": prepare_write,
    "rebase_history": rebase_history,
    "refuse_tensors": refuse_tensors,
    "run_special": run_special,
    "run_special_inplace": run_special_inplace,
    "save": save,
    "frozen_copy": frozen_copy,
    "tensor_like": tensor_like,
}

_generation: Final = itertools.count(2)


def environment_of(operator: Operator) -> dict[str, Any]:
    """The globals of the generated code of one operator."""
    return {
        "__builtins__": ARRAY_FUNCTIONS,
        "__name__": "viewgrad.operators.generated",
        "ops": TENSOR_FUNCTIONS,
        **INTERNAL,
        operator.name: operator.forward,
        f"{operator.name}_forward": operator.forward,
        f"{operator.name}_operator": operator,
    }


def generate(operator: Operator, environment: dict[str, Any]) -> None:
    """Write and compile the code of `operator`, and fill in its function, in-place function and node class.

    Arguments:
        operator: its declaration.
        environment: the globals of what is generated.
    """
    name = operator.name
    label = name
    if operator.user_defined and f"<viewgrad generated: {name}>" in linecache.cache:
        label = f"{name}, definition {next(_generation)}"  # tracebacks into the earlier one go on showing its source
    if operator.formulas:
        class_name = backward_name(name)
        operator.sources["node"] = NodeWriter(operator, class_name).source()
        scope = compile_source(operator.sources["node"], f"{label}, node", environment)
        operator.node_class = environment[class_name] = scope[class_name]
    declared = operator.inplace_declaration
    if declared is not None:
        environment[f"{name}_inplace_forward"] = declared.forward
        if declared.formulas and declared.formulas is not operator.formulas:
            class_name = backward_name(f"{name}_in_place")
            operator.sources["inplace node"] = NodeWriter(declared, class_name).source()
            scope = compile_source(operator.sources["inplace node"], f"{label}_, node", environment)
            declared.node_class = environment[class_name] = scope[class_name]
        else:
            declared.node_class = operator.node_class
    operator.sources["function"] = FunctionWriter(operator).function()
    operator.function = compile_source(operator.sources["function"], label, environment)[name]
    operator.function.__doc__ = operator.doc
    if operator.has_inplace:
        written = operator.node_class if declared is None else declared.node_class
        if written is not None:
            environment[f"{written.__name__}InPlace"] = inplace = type(
                written.__name__, (written,), {"__slots__": (), "inplace": True, "__module__": written.__module__}
            )
            environment[f"{written.__name__}InPlaceOfReals"] = of_reals(inplace)
        operator.sources["inplace"] = FunctionWriter(operator).inplace()
        operator.inplace_function = compile_source(operator.sources["inplace"], f"{label}_", environment)[f"{name}_"]
        operator.inplace_function.__doc__ = f"In place: {operator.doc}"
        environment[f"{name}_"] = operator.inplace_function
    operator.compile_plain = lambda: compile_plain(operator, label, environment)


def announce(operator: Operator) -> None:
    """Let formulas call `operator` by its name."""
    ARRAY_FUNCTIONS[operator.name] = operator.forward
    setattr(TENSOR_FUNCTIONS, operator.name, operator.function)


def compile_plain(operator: Operator, label: str, environment: dict[str, Any]) -> tuple[Any, Any]:
    """The function of an operator and its in-place variant, written without a look at what the mode asks for."""
    name = operator.name
    writer = FunctionWriter(operator, plain=True)
    function = compile_source(writer.function(), f"{label}, plain", environment)[name]
    if not operator.has_inplace:
        return function, None
    return function, compile_source(writer.inplace(), f"{label}_, plain", environment)[f"{name}_"]


def compile_source(source: str, what: str, environment: dict[str, Any]) -> dict[str, Any]:
    """Run generated source, with the names of `environment` as its globals, and return what it defines."""
    filename = f"<viewgrad generated: {what}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), environment, scope)
    return scope
