"""The functions and view operators that programs are drawn from, with their implementations for arrays.

Each function has a method `tame`, which returns whether the function is smooth at given arguments, and not so steep
that finite differences become unreliable.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..autograd.function import Function
from ..operators.define import OPERATORS
from ..operators.language.spec import Operator
from ..tensor.modes import no_grad
from ..tensor.signatures import signature_of
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from .indices import index_source


@attrs.frozen
class ProgramFunction:
    """A function that drawn programs can call.

    Arguments:
        name: its name in a program.
        numpy: its implementation on arrays.
        operator: its implementation on tensors.
        arity: the number of operands.
        symbol: its infix or prefix operator, if any.
        ufunc: the name of the equivalent ufunc, if any.
        domain: the interval from which operands are drawn.
        complex: whether it accepts complex operands.
        inplace: whether it has an in-place form.
        elementwise: whether it works element by element, with broadcasting.
        listed: whether its operands are passed as one list.
        outputs: the number of results.
        module: the module that a program imports it from; "" for user-defined functions.
        inplace_operator: the in-place form of a user-defined function.
        constants: the positions of operands without gradient.
    """

    name: str
    numpy: Callable[..., Any] = attrs.field(repr=False, eq=False)
    operator: Callable[..., Any] = attrs.field(repr=False, eq=False)
    arity: int = 1
    symbol: str = ""
    ufunc: str = ""
    domain: tuple[float, float] = (-2.0, 2.0)
    complex: bool = True
    inplace: bool = True
    elementwise: bool = True
    listed: bool = False
    outputs: int = 1
    module: str = "vg."
    inplace_operator: Callable[..., Any] | None = attrs.field(default=None, repr=False, eq=False)
    constants: tuple[int, ...] = ()

    def flowing(self, operands: Sequence[Any], first: int = 0) -> tuple[Any, ...]:
        """Return the operands that gradients flow to, if the function's operands start at position `first`."""
        return tuple(operand for place, operand in enumerate(operands, first) if place not in self.constants)

    def source(self, operands: Sequence[str], spelling: str) -> str:
        """Return the call as an expression, in one of its spellings."""
        if spelling == "operator" and self.symbol:
            return f" {self.symbol} ".join(operands) if len(operands) == 2 else f"{self.symbol}{operands[0]}"
        if spelling == "numpy" and self.ufunc:
            return f"np.{self.ufunc}({', '.join(operands)})"
        return f"{self.module}{self.name}({', '.join(operands)})"

    def tame(self, operands: Sequence[Any]) -> bool:
        """Return whether the function can be differentiated numerically: smooth, of moderate size, and not steep."""
        low, high = self.domain
        operands = [
            np.asarray(o, np.result_type(o, np.float64)) if np.asarray(o).dtype.kind in "fc" else o for o in operands
        ]
        for operand in operands:
            if not (np.all(np.real(operand) >= low) and np.all(np.abs(operand) <= max(4.0, high))):
                return False
        shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands))
        around = AROUND.reshape(-1, *(1,) * len(shape))
        with np.errstate(all="ignore"):
            for i, operand in enumerate(operands):
                kind = np.asarray(operand).dtype.kind
                for turn in {"f": (1,), "c": (1, 1j)}.get(kind, (0,)):
                    moved = list(operands)
                    moved[i] = np.broadcast_to(operand, shape) + turn * around
                    near = np.stack(self.numpy(*moved), -1) if self.outputs > 1 else np.asarray(self.numpy(*moved))
                    for largest in (LARGEST, *STEEPEST):  # limits for the value, and for each derivative
                        if not (np.abs(near) <= largest).all():
                            return False
                        near = np.diff(near, axis=0) / STEP
        return True


LARGEST: Final = 6.0
STEEPEST: Final = (12.0, 12.0, 100.0)  # a jump of a derivative appears as a very large next derivative
STEP: Final = 4e-3
AROUND: Final = np.arange(-20, 21) * STEP
SYMBOLS: Final = {"mul": "*", "add": "+", "sub": "-", "div": "/", "neg": "-", "pow": "**", "matmul": "@"}


def function_of(operator: Operator) -> ProgramFunction | None:
    """Wrap an elementwise operator of one or two tensors as a function for programs; return None for other operators.

    Arguments:
        operator: an operator of viewgrad, or one created by `define_op`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.testing import function_of
        >>> cube = vg.autograd.define_op(
        ...     "cube_example(self)",
        ...     forward=lambda x: x**3,
        ...     derivatives={"self": "grad * 3 * square(self)"},
        ...     elementwise=True,
        ... )
        >>> function_of(cube).source(["x"], "call")
        'cube_example(x)'
    """
    arguments = operator.signature.arguments
    if not operator.elementwise or not operator.differentiable or not 1 <= len(arguments) <= 2:
        return None
    if any(argument.kind != "tensor" or argument.default is not None for argument in arguments):
        return None
    outputs = len(operator.signature.outputs)
    if operator.nondifferentiable_outputs:
        return None
    reference = operator.reference
    ufunc = getattr(reference, "__name__", "")
    return ProgramFunction(
        operator.name,
        operator.forward,
        operator.function,
        len(arguments),
        SYMBOLS.get(operator.name, ""),
        ufunc if isinstance(reference, np.ufunc) and getattr(np, ufunc, None) is reference else "",
        operator.domain,
        operator.dtype_kinds == "fc",
        operator.has_inplace,
        outputs=outputs,
        module="" if operator.user_defined else "vg.",
        inplace_operator=operator.inplace if operator.user_defined and operator.has_inplace else None,
        constants=tuple(i for i, argument in enumerate(arguments) if argument.name not in operator.differentiable),
    )


def function_of_tensors(function: Any, arity: int | None = None) -> ProgramFunction:
    """Wrap any function of tensors for use in programs; several results are concatenated.

    Arguments:
        function: an operator, a class of `Function`, or a function that returns a tensor, or a tuple or list of
            tensors.
        arity: the number of its tensor arguments; by default, the number of its arguments without default.
    """
    called = function.apply if isinstance(function, type) and issubclass(function, Function) else function
    inner = function.func if isinstance(function, functools.partial) else function
    name = getattr(inner, "__name__", getattr(inner, "name", "function"))

    def operator(*tensors: Tensor) -> Tensor:
        result = called(*tensors)
        if isinstance(result, Tensor):
            return result
        flat = [output.reshape(-1) for output in result if isinstance(output, Tensor) and output.dtype.kind in "fc"]
        joined: Tensor = OPERATORS["concatenate"].function(flat)
        return joined

    def numpy(*arrays: Any) -> Array:
        with no_grad():
            return np.array(operator(*(Tensor(np.array(array)) for array in arrays))._array)

    return ProgramFunction(
        name if name.isidentifier() else "function",
        numpy,
        operator,
        _arity_of(function) if arity is None else arity,
        domain=(0.2, 1.5),
        complex=False,
        inplace=False,
        elementwise=False,
        module="",
    )


def _arity_of(function: Any) -> int:
    """Return the number of arguments without default, but at least one."""
    if isinstance(function, Operator):
        return max(1, sum(a.default is None and not a.keyword_only for a in function.signature.arguments))
    if isinstance(function, type) and issubclass(function, Function):
        skipped = 1 if function.setup_context is Function.setup_context else 0
        parameters = list(signature_of(function.forward).parameters.values())[skipped:]
    else:
        parameters = list(signature_of(function).parameters.values())
    dtype_kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return max(1, sum(p.default is p.empty and p.kind in dtype_kinds for p in parameters))


def _elementwise() -> tuple[ProgramFunction, ...]:
    """Return the elementwise functions of the table, simplest first."""
    first = ("mul", "add", "sub", "div", "neg", "sin", "exp")
    names = [name for name in first if name in OPERATORS] + [name for name in OPERATORS if name not in first]
    functions = [function_of(OPERATORS[name]) for name in names if OPERATORS[name].is_installed]
    return tuple(function for function in functions if function is not None)


def _others() -> tuple[ProgramFunction, ...]:
    """Return the functions of the table that are not elementwise."""
    meanings: dict[str, tuple[Callable[..., Any], int]] = {
        "clone": (np.copy, 1),
        "sum": (np.sum, 1),
        "mean": (np.mean, 1),
        "prod": (np.prod, 1),
        "cumsum": (np.cumsum, 1),
        "outer": (np.outer, 2),
        "matmul": (np.matmul, 2),
        "concatenate": (np.concatenate, 2),
        "stack": (np.stack, 2),
    }
    return tuple(
        ProgramFunction(
            name, numpy, OPERATORS[name].function, arity, elementwise=False, listed=name in ("concatenate", "stack")
        )
        for name, (numpy, arity) in meanings.items()
        if name in OPERATORS
    )


ELEMENTWISE: Final = _elementwise()
OTHERS: Final = _others()


@attrs.frozen
class ViewOp:
    """A view operator with its arguments.

    Arguments:
        name: the name of the method; "index" is `x[...]`, and a property has no arguments.
        args: its arguments.
        copies: whether it returns a copy here, as `reshape` may.
    """

    name: str
    args: tuple[Any, ...] = ()
    copies: bool = False

    def source(self, tensor: str) -> str:
        """Return the expression that takes the view of the tensor with the given name."""
        if self.name == "index":
            return f"{tensor}[{index_source(self.args)}]"
        if self.name in PROPERTIES:
            return f"{tensor}.{self.name}"
        if self.name.startswith("np."):
            return f"{self.name}({', '.join([tensor, *map(repr, self.args)])})"
        return f"{tensor}.{self.name}({', '.join(map(repr, self.args))})"


PROPERTIES: Final = frozenset({"T", "mT", "real", "imag"})


def view_of_array(op: ViewOp, array: Array) -> Any:
    """Return the view of an array as NumPy takes it, or a list of views for `unbind`, `split` and `chunk`."""
    return ARRAY_VIEWS[op.name](array, *op.args)


def _window(array: Array, *index: Any) -> Array:
    """Index an array by a basic index, returning a 0-d window instead of a number."""
    return array[index if Ellipsis in index else (*index, ...)]


def _diagonal(array: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    view = array.diagonal(offset, axis1, axis2)
    if array.flags.writeable:
        view.flags.writeable = True
    return view


def _select(array: Array, dim: int, index: int) -> Array:
    return _window(np.moveaxis(array, dim, 0), index)


def _narrow(array: Array, dim: int, start: int, length: int) -> Array:
    moved = np.moveaxis(array, dim, 0)
    start = start + len(moved) if start < 0 else start
    return np.moveaxis(moved[start : start + length], 0, dim)


def _unfold(array: Array, dim: int, size: int, step: int) -> Array:
    dim %= array.ndim
    windows = np.lib.stride_tricks.sliding_window_view(array, size, axis=dim, writeable=array.flags.writeable)
    moved = np.moveaxis(windows, dim, 0)[::step]
    return np.moveaxis(moved, 0, dim)


def _expand(array: Array, *sizes: int) -> Array:
    new = len(sizes) - array.ndim
    return np.broadcast_to(array, tuple(array.shape[i - new] if size == -1 else size for i, size in enumerate(sizes)))


def _flatten(array: Array, start: int, end: int) -> Array:
    merged = int(np.prod(array.shape[start : end + 1]))
    return array.reshape(*array.shape[:start], merged, *array.shape[end + 1 :]).copy()


def _split(array: Array, size: Any, dim: int) -> list[Array]:
    extent = array.shape[dim]
    sizes = [min(size, extent - start) for start in range(0, extent, size)] or [0] if isinstance(size, int) else size
    stops = np.cumsum(sizes)
    return [_narrow(array, dim, int(stop - length), int(length)) for stop, length in zip(stops, sizes, strict=True)]


ARRAY_VIEWS: Final[dict[str, Callable[..., Any]]] = {
    "index": _window,
    "select": _select,
    "narrow": _narrow,
    "reshape": lambda array, shape: array.reshape(shape),
    "view": lambda array, shape: array.reshape(shape),
    "np.reshape": lambda array, shape: array.reshape(shape),
    "ravel": lambda array: array.ravel(),
    "np.ravel": lambda array: array.ravel(),
    "flatten": _flatten,
    "transpose": lambda array, *axes: array.transpose(*axes),
    "permute": lambda array, *axes: array.transpose(*axes),
    "np.transpose": lambda array, axes: array.transpose(axes),
    "swapaxes": np.swapaxes,
    "np.swapaxes": np.swapaxes,
    "moveaxis": np.moveaxis,
    "np.moveaxis": np.moveaxis,
    "T": lambda array: array.T,
    "mT": lambda array: np.swapaxes(array, -1, -2),
    "squeeze": lambda array, *axis: np.squeeze(array, *axis),
    "np.squeeze": lambda array, *axis: np.squeeze(array, *axis),
    "unsqueeze": np.expand_dims,
    "np.expand_dims": np.expand_dims,
    "expand": _expand,
    "broadcast_to": np.broadcast_to,
    "np.broadcast_to": np.broadcast_to,
    "diagonal": _diagonal,
    "np.diagonal": _diagonal,
    "unfold": _unfold,
    "real": np.real,
    "imag": np.imag,
    "view_as_real": lambda array: array[..., None].view(array.real.dtype),
    "view_as_complex": lambda array: array.view(np.result_type(array.dtype, np.complex64))[..., 0],
    "unbind": lambda array, dim: [_select(array, dim, i) for i in range(array.shape[dim])],
    "split": _split,
    "chunk": lambda array, chunks, dim: _split(array, max(1, -(-array.shape[dim] // chunks)), dim),
}
