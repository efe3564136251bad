"""Code generation: the function, the in-place variant and the node class of an operator, as Python source.

The generated code is flat and specialized: no loops over arguments, no dispatch on properties of the declaration. The
source is registered with `linecache`, so that tracebacks and debuggers show it. The code of each operator has its own
module, so that `inspect` finds the source of functions and classes.

The functions of the library's operators are generated on their first call. Until then, a function with the same
signature generates them and takes over their code object, so that references to it remain valid and later calls have no
overhead. See Note [Code generation on first call] in docs/notes/declarations.md.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from ...errors import UnsupportedTypeError
from ...tensor.creation import as_operand
from ...tensor.masked_backward import MASKED_RUNS, gradient_masked, is_masked_run
from ...tensor.modes import GRAD, TRACE, current_mode
from ...tensor.node import ONE_EDGE, TWO_EDGES, Edge, Node, new
from ...tensor.refcounts import ALONE_IN_NODE, getrefcount
from ...tensor.saved import RELEASED, SavedTensor
from ...tensor.storage import save, save_scalar
from ...tensor.tensor import Tensor, current_edge, tensor_like
from ...views.copy_slices import CopyBackwards
from ...views.inplace import ENVIRONMENT
from ...views.scalar_nodes import ScalarOfOne, ScalarOfTwo, ScalarRule
from ...views.unbroadcast import match_spec
from ..dtype_kinds import confirm_kinds, refuse_kinds
from ..interception import run_special, run_special_inplace
from ..language.namespace import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS, set_meaning
from ..language.spec import UNDECIDED, Code, Operator
from ..operands import (
    HOLDERS,
    MUTABLE,
    NUMBERS,
    checked_gradient,
    clip_operands,
    flowing_elements,
    foreign_operand,
    forward_array,
    frozen_copy,
    geometry_of,
    number_beside_scalar,
    operand_pair,
    operands,
    optional_operands,
    owned_array,
    plain_option,
    refuse_tensors,
    wide_operands,
    without_lost_values,
    writes_reals,
)
from .function_writer import FunctionWriter, may_write_reals
from .node_writer import LARGE, MANY_ELEMENTS, NodeWriter, backward_name
from .scalars import form_of

try:  # the function behind numpy.count_nonzero, whose checks double the cost
    from numpy._core.multiarray import count_nonzero
except ImportError:
    from numpy import count_nonzero

# The helper functions called by generated code.
INTERNAL: Final[dict[str, Any]] = ENVIRONMENT | {
    "ALONE_IN_NODE": ALONE_IN_NODE,
    "CopyBackwards": CopyBackwards,
    "Edge": Edge,
    "UnsupportedTypeError": UnsupportedTypeError,
    "GRAD": GRAD,
    "HOLDERS": HOLDERS,
    "LARGE": LARGE,
    "MANY_ELEMENTS": MANY_ELEMENTS,
    "MUTABLE": MUTABLE,
    "NUMBERS": NUMBERS,
    "Node": Node,
    "ONE_EDGE": ONE_EDGE,
    "RELEASED": RELEASED,
    "SavedTensor": SavedTensor,
    "ScalarOfOne": ScalarOfOne,
    "ScalarOfTwo": ScalarOfTwo,
    "TRACE": TRACE,
    "TWO_EDGES": TWO_EDGES,
    "UNDECIDED": UNDECIDED,
    "UNSUITABLE": sys.maxsize,
    "Tensor": Tensor,
    "forward_array": forward_array,
    "as_operand": as_operand,
    "asarray": np.asarray,
    "all_nonzero": np.logical_and.reduce,
    "nonzeros": count_nonzero,
    "errstate": np.errstate,
    "copyto": np.copyto,
    "checked_gradient": checked_gradient,
    "confirm_kinds": confirm_kinds,
    "match_spec": match_spec,
    "current_edge": current_edge,
    "current_mode": current_mode,
    "float64": np.float64,
    "flowing_elements": flowing_elements,
    "without_lost_values": without_lost_values,
    "foreign_operand": foreign_operand,
    "owned_array": owned_array,
    "geometry_of": geometry_of,
    "gradient_masked": gradient_masked,
    "is_masked_run": is_masked_run,
    "getrefcount": getrefcount,
    "save_scalar": save_scalar,
    "new": new,
    "number_beside_scalar": number_beside_scalar,
    "np_add": np.add,
    "np_divide": np.true_divide,
    "np_multiply": np.multiply,
    "np_negative": np.negative,
    "operand_pair": operand_pair,
    "operands": operands,
    "optional_operands": optional_operands,
    "clip_operands": clip_operands,
    "plain_option": plain_option,
    "refuse_kinds": refuse_kinds,
    "refuse_tensors": refuse_tensors,
    "run_special": run_special,
    "run_special_inplace": run_special_inplace,
    "save": save,
    "frozen_copy": frozen_copy,
    "tensor_like": tensor_like,
    "wide_operands": wide_operands,
    "writes_reals": writes_reals,
}

_generation: Final = itertools.count(2)


def environment_of(operator: Operator) -> dict[str, Any]:
    """Return the globals of the generated code of an operator, like those of a module."""
    name = operator.name
    label = name
    if operator.user_defined and f"<viewgrad generated: {name}>" in linecache.cache:
        # tracebacks into the earlier definition still show its source
        label = f"{name}, definition {next(_generation)}"
    module = ModuleType(f"viewgrad.operators.generated.{label}", f"Generated from the row of {name}.")
    module.__file__ = f"<viewgrad generated: {label}>"
    environment = vars(module)
    environment |= {
        "_module": module,
        "_write": write,
        "arrays": ARRAY_FUNCTIONS,
        "ops": TENSOR_FUNCTIONS,
        **INTERNAL,
        f"{name}_forward": operator.declared_forward,
        f"{name}_operator": operator,
    }
    return environment


def unwritten(operator: Operator, environment: dict[str, Any]) -> None:
    """Define the functions of `operator`, whose code is generated on the first call.

    Arguments:
        operator: its declaration.
        environment: the globals of the generated code.
    """
    name = operator.name
    source = _first_call(operator, name, "function")
    if operator.has_inplace:
        source += "\n\n" + _first_call(operator, f"{name}_", "inplace_function")
    scope = compile_source(source, f"{label_of(environment)}, first call", environment)
    operator.function = environment[f"{name}_function"] = environment["_this_function"] = scope[name]
    operator.function.__doc__ = operator.doc
    if operator.has_inplace:
        operator.inplace_function = environment[f"{name}_"] = scope[f"{name}_"]
        environment["_this_inplace_function"] = operator.inplace_function
        operator.inplace_function.__doc__ = f"Compute `{operator.name}` in place; return the tensor."


def _first_call(operator: Operator, name: str, which: str) -> str:
    signature = operator.signature
    call = f"_write({operator.name}_operator, {which!r}, _this_{which})({signature.call()})"
    return "\n".join([*signature.definition(name), f"    return {call}  # {operator.name}"]) + "\n"


def write(operator: Operator, which: str, function: FunctionType) -> FunctionType:
    """Generate the functions of an operator on first use, and make `function` one of them.

    Arguments:
        operator: the operator.
        which: "function" or "inplace_function".
        function: the function itself, or a copy of it with other globals.
    """
    operator.write_code()
    written: FunctionType = getattr(operator, which)
    names = function.__globals__
    if names is not written.__globals__:
        names |= {name: value for name, value in written.__globals__.items() if name not in names}
    function.__code__ = written.__code__
    return function


def with_names(function: Callable[..., Any], names: dict[str, Any]) -> FunctionType:
    """Return a copy of a generated function, or of one to be generated, with other values for some global names."""
    assert isinstance(function, FunctionType)
    names = function.__globals__ | names
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    names |= {"_this_function": made, "_this_inplace_function": made}
    return made


def generate(operator: Operator, environment: dict[str, Any]) -> Code:
    """Generate and compile the code of `operator`, and install it in its functions.

    Arguments:
        operator: its declaration.
        environment: the globals of the generated code.
    """
    name = operator.name
    environment[f"{name}_forward"] = operator.forward
    sources = []
    node_name = inplace_name = ""
    written = operator
    if operator.formulas:
        node_name = inplace_name = backward_name(name)
        sources.append(NodeWriter(operator, node_name).source())
    declared = operator.inplace_declaration
    if declared is not None:
        environment[f"{name}_inplace_forward"] = declared.forward
        if declared.formulas and declared.formulas is not operator.formulas:
            inplace_name = backward_name(f"{name}_in_place")
            sources.append(NodeWriter(declared, inplace_name).source())
            written = declared
    sources.append(FunctionWriter(operator).function())
    if operator.has_inplace:
        if inplace_name:
            writer = NodeWriter(written, inplace_name)
            sources.append(writer.inplace_class(may_write_reals(declared or operator)))
        sources.append(FunctionWriter(operator).inplace())
    source = f"# {operator.signature}, generated from its row: {operator.row}\n\n\n" + "\n\n".join(sources)
    scope = compile_source(source, label_of(environment), environment)
    environment |= {key: value for key, value in scope.items() if isinstance(value, type)}
    if operator.zero_in_masked_runs:
        MASKED_RUNS.prepare(scope[node_name])
    form = form_of(operator) if operator.elementwise else None
    if form is not None:
        environment[f"{name}_scalar_rule"] = ScalarRule(form, scope[node_name])
    if f"{inplace_name}InPlace" in scope:
        scope[f"{inplace_name}InPlace"].__name__ = inplace_name  # the name shown to users
    sys.modules[environment["__name__"]] = environment["_module"]
    for function in (operator.function, operator.inplace_function):
        if isinstance(function, FunctionType):
            function.__code__ = scope[function.__name__].__code__
    return Code(
        scope.get(node_name),
        source,
        functools.partial(compile_plain, operator, environment),
        scope.get(inplace_name),
    )


def announce(operator: Operator) -> None:
    """Make `operator` callable by name in formulas."""
    set_meaning(operator.name, operator.declared_forward, operator.function)


def compile_plain(
    operator: Operator, environment: dict[str, Any]
) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return the function of an operator and its in-place variant, which ignore every mode except grad mode."""
    name = operator.name
    label = label_of(environment)
    writer = FunctionWriter(operator, plain=True)
    function = compile_source(writer.function(), f"{label}, plain", environment)[name]
    if not operator.has_inplace:
        return function, None
    return function, compile_source(writer.inplace(), f"{label}_, plain", environment)[f"{name}_"]


def label_of(environment: dict[str, Any]) -> str:
    """Return the file name shown in tracebacks for the generated code of an operator."""
    return str(environment["__name__"]).rpartition(".")[2]


def augmented(operator: Operator) -> Callable[..., Any]:
    """Return the in-place variant as called by Python's `x += y` and similar statements; it returns NotImplemented for
    scalars.
    """
    operator.write_code()
    environment = operator.function.__globals__
    source = FunctionWriter(operator).inplace(augmented=True)
    scope = compile_source(source, f"{label_of(environment)}_, augmented", environment)
    function: Callable[..., Any] = scope[f"{operator.name}_"]
    return function


def reflected(operator: Operator) -> Callable[..., Any]:
    """Return the function of an operator with its two operands swapped, for Python's `2.0 - x`.

    It is generated separately, since a call of the function would make operators on scalars 10 % slower.
    """
    operator.write_code()
    environment = operator.function.__globals__
    first, second = (argument.name for argument in operator.signature.tensors)
    source = FunctionWriter(operator).function()
    head = f"def {operator.name}({first}, {second}):"
    assert source.startswith(head)
    source = source.replace(head, f"def {operator.name}({second}, {first}):", 1)
    scope = compile_source(source, f"{label_of(environment)}, reflected", environment)
    function: Callable[..., Any] = scope[operator.name]
    return function


def body(operator: Operator) -> str:
    """Return the code of the function of an operator without its first line, for a function with additional parameters.
    """
    operator.write_code()
    return FunctionWriter(operator).function().partition("\n")[2]


def environment(operator: Operator) -> dict[str, Any]:
    """Return the names that the code of an operator uses."""
    operator.write_code()
    return operator.function.__globals__


def compile_source(source: str, what: str, environment: dict[str, Any]) -> dict[str, Any]:
    """Run generated source, with the names of `environment` as its globals, and return its definitions."""
    filename = f"<viewgrad generated: {what}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), environment, scope)
    return scope
