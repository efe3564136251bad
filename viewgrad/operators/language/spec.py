"""The declaration of an operator with its derivatives: one row of the table, as data."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import threading
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...errors import DeclarationError
from ..domains import USUAL
from ..lazy_imports import LazyFunction, LazyModule

if TYPE_CHECKING:
    from ...tensor.node import Node
    from .jvp_compile import Tangents

NOT_DIFFERENTIABLE: Final = "not_differentiable"
NOT_IMPLEMENTED: Final = "not_implemented"
UNDECIDED: Final = "?"


@attrs.frozen
class Argument:
    """One argument of an operator.

    Arguments:
        name: its name.
        kind: "tensor", "tensors" (a list of tensors) or "plain".
        default: the source text of its default, or None if it has none.
        keyword_only: whether it follows a `*`.
        annotation: the source text of its annotation, or None.
    """

    name: str
    kind: str
    default: str | None = None
    keyword_only: bool = False
    annotation: str | None = None

    @property
    def optional(self) -> bool:
        """True if a tensor argument may be None."""
        return self.default == "None"


TORCH_NAMES: Final = {"dim": "axis", "keepdim": "keepdims"}


@attrs.frozen(slots=False)
class Signature:
    """Name, arguments and outputs of an operator."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: tuple[str, ...]

    @functools.cached_property
    def tensors(self) -> tuple[Argument, ...]:
        """The arguments that are tensors or lists of tensors."""
        return tuple(argument for argument in self.arguments if argument.kind != "plain")

    @functools.cached_property
    def takes_tensors_alone(self) -> bool:
        """Return whether all arguments are tensors, required and positional."""
        return all(each.kind == "tensor" and each.default is None and not each.keyword_only for each in self.arguments)

    @functools.cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of the arguments that may be passed by position."""
        return tuple(argument.name for argument in self.arguments if not argument.keyword_only)

    @functools.cached_property
    def plain(self) -> tuple[Argument, ...]:
        """The plain arguments."""
        return tuple(argument for argument in self.arguments if argument.kind == "plain")

    def argument(self, name: str) -> Argument:
        """Return the argument with the given name."""
        return next(argument for argument in self.arguments if argument.name == name)

    def parameters(self) -> str:
        """Return the text between the parentheses of a function with these arguments."""
        parts = []
        starred = False
        for argument in self.arguments:
            if argument.keyword_only and not starred:
                parts.append("*")
                starred = True
            parts.append(argument.name if argument.default is None else f"{argument.name}={argument.default}")
        return ", ".join(parts)

    @functools.cached_property
    def torch_names(self) -> dict[str, str]:
        """PyTorch's names of arguments with NumPy names: dim for axis, keepdim for keepdims."""
        names = {argument.name for argument in self.arguments}
        return {theirs: ours for theirs, ours in TORCH_NAMES.items() if ours in names and theirs not in names}

    def definition(self, name: str = "") -> list[str]:
        """Return the first lines of a function with these arguments, which also accepts PyTorch's names for them."""
        star = "" if any(argument.keyword_only for argument in self.arguments) else "*, "
        theirs = ", ".join(f"{each}=None" for each in self.torch_names)
        lines = [f"def {name or self.name}({self.parameters()}{f', {star}{theirs}' if theirs else ''}):"]
        for each, ours in self.torch_names.items():
            lines += [f"    if {each} is not None:", f"        {ours} = {each}"]
        return lines

    def call(self, rename: Callable[[str], str] = str) -> str:
        """Return the text between the parentheses of a call that forwards these arguments."""
        pairs = [(rename(argument.name), argument) for argument in self.arguments]
        return ", ".join(f"{argument.name}={name}" if argument.keyword_only else name for name, argument in pairs)

    def __str__(self) -> str:
        arrow = f" -> ({', '.join(self.outputs)})" if len(self.outputs) > 1 else ""
        return f"{self.name}({self.parameters()}){arrow}"


# -- formulas ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class Use:
    """An occurrence of a name in a formula.

    Arguments:
        kind: "argument", "metadata", "result", "grad", "grads", "grads[i]", "grad_NAME", "function" or "unknown".
        name: the name; for metadata, that of the argument or output.
        position: the position in the formula, counted from 1.
        detail: for a gradient, the number of the output; for metadata, the attribute.
    """

    kind: str
    name: str
    position: int
    detail: Any = None


@attrs.frozen
class Formula:
    """A parsed formula.

    Arguments:
        text: the source.
        inputs: the arguments whose gradients it computes; several if it returns a tuple.
        tree: the expression, in which metadata are plain names (`self.shape` is `self_shape`).
        reads: the tensor arguments whose value it reads.
        results: the outputs whose value it reads.
        metadata: the properties of tensor arguments that it reads, saved instead of them: name, argument, attribute.
        plain: the other arguments that it reads.
        grads: the outputs whose gradient it reads.
        functions: the names that it calls.
        uses: all names in it, with their positions.
    """

    text: str
    inputs: tuple[str, ...]
    tree: ast.expr
    reads: tuple[str, ...]
    results: tuple[str, ...]
    metadata: tuple[tuple[str, str, str], ...]
    plain: tuple[str, ...]
    grads: tuple[int, ...]
    functions: tuple[str, ...]
    uses: tuple[Use, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """The names that the node stores apart from saved values: metadata and plain arguments."""
        return (*(entry[0] for entry in self.metadata), *self.plain)

    @property
    def is_implemented(self) -> bool:
        """True if this is a formula, rather than an error to raise."""
        return NOT_IMPLEMENTED not in self.functions


# -- operators ---------------------------------------------------------------------------------------------------------


@attrs.frozen
class InPlace:
    """The parts of an in-place form that a declaration states explicitly.

    Arguments:
        forward: a function that computes the new value from arrays; by default the operator's forward.
        derivatives: the formulas, in which `self` is the value before the write and `result` the value after it; by
            default those of the operator.
        forward_derivative: the tangent of the new value, from `result` and `self_t`, since the old value no longer
            exists; by default that of the operator.
    """

    forward: Callable[..., Any] | None = None
    derivatives: Mapping[str, str] | None = None
    forward_derivative: str | None = None


@attrs.frozen
class Kernel:
    """The computation of one element in compiled programs, from operands that are numbers.

    An expression is Python source that refers to the tensor arguments of the row by name. Its functions are those of
    `compiler/backends/scalar_runtime.py`. The derivative is that of the row.

    Arguments:
        floats: the expression for floats; "" if it is not defined for them.
        integers: the expression for 64-bit integers, which wrap around; "" if it is not defined for them.
        bools: the operator to use for bools; "" if there is none.
        gives_bool: whether the value is a bool.
        takes_bools: whether the operands must be bools.
        is_exact: whether the value needs no rounding in single precision if the operands are rounded.
    """

    floats: str = ""
    integers: str = ""
    bools: str = ""
    gives_bool: bool = False
    takes_bools: bool = False
    is_exact: bool = False


@attrs.frozen
class Decomposition:
    """The formula of an operator along `axis` in compiled programs.

    Arguments:
        formula: the result, from elementwise functions and from `sum`, `max`, `min` and operators with a decomposition,
            whose last arguments are `axis, True`: the reduced dimensions are kept. If a condition depends only on the
            options, the other branch is ignored; if the result is None, the operator is called.
        uses_chain_rule: whether to differentiate the formula instead of using the declared gradient.

    See Note [Compiled forms] in docs/notes/declarations.md.
    """

    formula: str
    uses_chain_rule: bool = False


@attrs.frozen
class Reading:
    """The parts of a declaration that are derived from its formulas.

    Arguments:
        formulas: the formulas of gradients.
        differentiable: the arguments that have a formula.
        tangents: the computation of tangents, from `forward_derivative`.
        inplace_declaration: the operator of the in-place variant, if the row states it explicitly.
    """

    formulas: tuple[Formula, ...]
    differentiable: tuple[str, ...]
    tangents: Tangents | None
    inplace_declaration: Operator | None = None


@attrs.frozen
class Code:
    """The code generated from a declaration.

    Arguments:
        node_class: the class of the backward steps; None if nothing is differentiable.
        source: the Python source.
        plain_functions: a function that compiles the function and its in-place variant without support for any mode
            except grad mode.
        inplace_node_class: the node class of the in-place variant.
    """

    node_class: type[Node] | None
    source: str = ""
    plain_functions: Callable[[], tuple[Callable[..., Any], Callable[..., Any] | None]] | None = None
    inplace_node_class: type[Node] | None = None


# Several threads may need the code of a declaration at the same time; it is generated once.
_making: Final = threading.RLock()


@attrs.define(eq=False)
class Operator:
    """The declaration of an operator, and the code generated from it.

    For the library's own operators, formulas are parsed and code is generated on first use, since there are hundreds of
    operators and a program uses only a few.

    Arguments:
        signature: name, arguments and outputs.
        forward: a function that computes the outputs from arrays.
        read: a function that parses the formulas.
        generate: a function that generates and compiles the code.
        nondifferentiable_outputs: the outputs through which no gradient flows.
        elementwise: whether the tensor arguments are broadcast against each other, and the output is shaped like them.
        forward_derivative: the forward-mode formula or rule.
        has_inplace: whether there is an in-place variant.
        doc: a sentence that describes the result.
        user_defined: whether it was defined by a user; the results of its formulas are then checked in every backward
            pass.
        dtype_kinds: the dtype kinds that its formulas are valid for: "f", or "fc" for complex numbers too; by argument
            if they differ. "?" for a user's operator that does not declare them, until the first complex argument.
        domain: for an elementwise operator, the interval from which tests draw its arguments.
        samples: a function `samples(rng)` that draws arguments for tests, as a list of `(args, kwargs)` with arrays for
            tensors.
        reference: a function of arrays that computes the same values by other means, for tests.
        places: the source lines of its declaration, innermost call first.
        returns_0d_arrays: whether 0-d outputs are arrays instead of scalars.
        masks_gradient: whether a mask sets part of the gradient to zero; see tensor/masked_backward.py.
        zero_in_masked_runs: whether the gradient is 0 in such passes wherever the incoming gradient is 0.
        kernels: the computation of one element in compiled programs, by name; the default is stored under the
            operator's name.
        decomposition: the formula of a reduction in compiled programs.
        recipe: a function and its arguments, which recreate the operator in another process.
    """

    signature: Signature
    declared_forward: Callable[..., Any] = attrs.field(alias="forward")
    read: Callable[[Operator], Reading]
    generate: Callable[[Operator], Code]
    nondifferentiable_outputs: tuple[str, ...] = ()
    elementwise: bool = False
    forward_derivative: str | Mapping[str, str] | None = None
    has_inplace: bool = False
    doc: str = ""
    user_defined: bool = False
    dtype_kinds: str | Mapping[str, str] = "f"
    domain: tuple[float, float] = USUAL
    samples: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    returns_0d_arrays: bool = False
    masks_gradient: bool = False
    zero_in_masked_runs: bool = False
    kernels: Mapping[str, Kernel] = {}
    decomposition: Decomposition | None = None
    places: tuple[tuple[str, int], ...] = ()
    recipe: tuple[Callable[..., Operator], tuple[Any, ...]] | None = None
    function: Callable[..., Any] = attrs.field(default=None)
    inplace_function: Callable[..., Any] = attrs.field(default=None)
    _reading: Reading | None = attrs.field(default=None, init=False)
    _code: Code | None = attrs.field(default=None, init=False)

    @property
    def forward(self) -> Callable[..., Any]:
        """The function that computes the outputs from arrays; a SciPy function is imported on first access."""
        if type(self.declared_forward) is LazyFunction:
            self.declared_forward = self.declared_forward.found()
        return self.declared_forward

    @property
    def is_installed(self) -> bool:
        """Return whether the libraries required by the forward function are installed."""
        forward = self.declared_forward
        used = [forward, *(cell.cell_contents for cell in getattr(forward, "__closure__", None) or ())]
        if isinstance(forward, types.FunctionType):
            used += [forward.__globals__.get(name) for name in forward.__code__.co_names]
        modules = [each.module if type(each) is LazyFunction else each for each in used]
        return all(each.is_installed() for each in modules if type(each) is LazyModule)

    @property
    def reading(self) -> Reading:
        """The parts derived from the formulas, which are parsed on first access."""
        return self.read_formulas()

    def read_formulas(self) -> Reading:
        """Parse and check the formulas, unless this has been done."""
        if self._reading is None:
            with _making:
                if self._reading is None:
                    self._reading = self.read(self)
        return self._reading

    @property
    def code(self) -> Code:
        """The generated code, created on first access."""
        return self.write_code()

    def write_code(self) -> Code:
        """Generate the code of the operator, unless this has been done, and install it in its functions."""
        if self._code is None:
            with _making:
                if self._code is None:
                    self._code = self.generate(self)
        return self._code

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas of the gradients."""
        return self.reading.formulas

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The arguments that have a formula."""
        return self.reading.differentiable

    @property
    def tangents(self) -> Tangents | None:
        """The computation of tangents, derived from `forward_derivative`."""
        return self.reading.tangents

    @property
    def inplace_declaration(self) -> Operator | None:
        """The operator of the in-place variant, if the row states it explicitly."""
        return self.reading.inplace_declaration

    @functools.cached_property
    def row(self) -> str:
        """The name and location of the declaration, for generated code: a call that contains the name."""
        if not self.places:
            return self.name
        file, number = self.places[-1]
        for path, first in self.places:
            lines = linecache.getlines(path)[first - 1 : first + 2]
            if any(re.search(rf"[\"']{self.name}\b", line) for line in lines):
                file, number = path, first
                break
        return f"{self.name}, {file if file.startswith('<') else Path(file).name}:{number}"

    @property
    def node_class(self) -> type[Node] | None:
        """The class of the nodes, or None if nothing is differentiable."""
        return self.code.node_class

    @functools.cached_property
    def plain_functions(self) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
        """The function and its in-place variant without support for any mode except grad mode."""
        compile_plain = self.code.plain_functions
        assert compile_plain is not None
        return compile_plain()

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.signature.name

    def accepts_complex(self, argument: str) -> bool:
        """Return whether a tensor argument may be complex; always true for arguments that are not differentiated."""
        if argument not in self.differentiable:
            return True
        dtype_kinds = self.dtype_kinds if isinstance(self.dtype_kinds, str) else self.dtype_kinds.get(argument, "f")
        return "c" in dtype_kinds or dtype_kinds == UNDECIDED

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[..., Operator], tuple[Any, ...]]:
        if self.recipe is None:
            raise TypeError(f"the in-place variant of {self.name!r} has no name by which it could be pickled")
        return self.recipe

    def inplace(self, *args: Any, **kwargs: Any) -> Any:
        """Write the result to the first argument and return it.

        Raises:
            DeclarationError: if the operator has no in-place variant.
        """
        if self.inplace_function is None:
            raise DeclarationError(f"operator {self.name!r} has no in-place variant; define it with inplace=True")
        return self.inplace_function(*args, **kwargs)

    def source(self) -> str:
        """Return the Python source generated from the declaration."""
        parts = [self.code.source]
        for declared in (self, self.inplace_declaration):
            if declared is not None and declared.tangents is not None:
                parts.append(declared.tangents.source())
        return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"

    def saved(self, name: str) -> tuple[str, ...]:
        """Return the values saved for backward if the argument `name` needs a gradient.

        Arguments:
            name: a differentiable argument.

        Returns:
            The names of arguments and outputs whose values are saved, of metadata (`self_shape`), and of plain
            arguments.

        Raises:
            DeclarationError: for an argument that has no gradient.
        """
        if name not in self.differentiable:
            raise DeclarationError(
                f"operator {self.name!r} has no gradient for {name!r}, only for "
                f"{', '.join(self.differentiable) or 'nothing'}"
            )
        kept: dict[str, None] = {}
        for formula in self.formulas:
            if name in formula.inputs:
                for read in (*formula.reads, *formula.results, *formula.kept):
                    kept[read] = None
        return tuple(kept)

    def __repr__(self) -> str:
        return f"<operator {self.signature}>"
