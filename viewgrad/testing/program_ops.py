"""The steps of programs, each printed as a line of Python.

A `Machine` executes steps on arrays, on tensors or as an oracle, with a method for each kind of step.

The file is long because it is a table: a few lines for each kind of step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol

import attrs
import numpy as np

from ..type_aliases import Array
from .functions import ProgramFunction, ViewOp
from .indices import Index, array_source, index_source, names_in_index


@attrs.frozen
class Table:
    """An array of constants, printed by its shape."""

    shape: tuple[int, ...]
    phase: int = 0
    kind: str = "f"

    def source(self) -> str:
        """Return the array as an expression."""
        size = int(np.prod(self.shape))
        if self.kind == "i":
            text = f"np.arange({self.phase}, {self.phase + size}) % 3"
            return text if len(self.shape) == 1 else f"({text}).reshape({self.shape})"
        text = f"np.sin(np.arange({size}.0) + {self.phase})"
        if self.kind == "c":
            text = f"np.exp(1j * (np.arange({size}) + {self.phase})) * np.cos(np.arange({size}))"
        if len(self.shape) == 1:
            return text
        return f"{text}.reshape({self.shape})" if self.kind == "f" else f"({text}).reshape({self.shape})"

    def array(self) -> Array:
        """Return the array itself."""
        return np.asarray(eval(self.source(), {"np": np}))


Operand = str | int | float | complex | Table  # a string names a tensor


@attrs.frozen
class Leaf:
    """A tensor that a program starts with.

    Arguments:
        name: the name.
        shape: the shape.
        kind: "f" (float64), "c" (complex128) or "i" (int64).
        layout: "C", "F", or, in memory owned by NumPy, "foreign", "strided" (with gaps) or "reversed".
        phase: a number that distinguishes its values from those of other leaves.
        requires_grad: whether it requires grad.
        single: whether it is float32 or complex64 instead.
    """

    name: str
    shape: tuple[int, ...]
    kind: str = "f"
    layout: str = "C"
    phase: int = 0
    requires_grad: bool = True
    single: bool = False

    def expression(self) -> str:
        """Return the data as an expression."""
        cast = f".astype(np.{'complex64' if self.kind == 'c' else 'float32'})" if self.single else ""
        if self.layout in ("strided", "reversed") and self.shape:
            step = 2 if self.layout == "strided" else -1
            wide = (*self.shape[:-1], self.shape[-1] * abs(step))
            return f"({Table(wide, self.phase, self.kind).source()}){cast}[..., ::{step}]"
        text = Table(self.shape, self.phase, self.kind).source()
        if cast:
            text = f"({text}){cast}"
        return f"np.asfortranarray({text})" if self.layout == "F" else text

    def source(self) -> str:
        """Return the line that creates the leaf."""
        make = "vg.Tensor" if self.layout in ("C", "F") else "vg.from_numpy"
        data = self.expression()
        text = f"{make}({data})" if self.shape or make == "vg.Tensor" else f"{make}(np.asarray({data}))"
        return f"{self.name} = {text}{'.requires_grad_()' if self.requires_grad else ''}"

    def array(self) -> Array:
        """Return the data in the memory layout of the tensor."""
        array = np.asarray(eval(self.expression(), {"np": np}))
        return array if self.layout in ("strided", "reversed") else array.copy(order="K")


class Step:
    """One line of a program. By default, the names that it binds and uses are those in its fields."""

    __slots__ = ()
    method: ClassVar[str]  # the name of the method that executes it on a machine

    def __init_subclass__(cls) -> None:
        cls.method = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def outs(self) -> tuple[str, ...]:
        """The names that the step binds."""
        return (self.out,) if hasattr(self, "out") else ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The names that the step uses."""
        found = [names(getattr(self, field)) for field, names in READ.items() if hasattr(self, field)]
        return tuple([name for names in found for name in names])

    def source(self) -> str:
        """Return the line or lines of the step."""
        raise NotImplementedError

    def run(self, machine: Machine) -> None:
        """Run the step on a machine."""
        getattr(machine, self.method)(self)


@attrs.frozen
class View(Step):
    """`out = source.transpose(1, 0)`."""

    out: str
    tensor: str
    op: ViewOp

    def source(self) -> str:
        return f"{self.out} = {self.op.source(self.tensor)}"


@attrs.frozen
class Unpack(Step):
    """`a, b = source.unbind(0)`."""

    outs: tuple[str, ...]
    tensor: str
    op: ViewOp

    def source(self) -> str:
        return f"{', '.join(self.outs)}{',' if len(self.outs) == 1 else ''} = {self.op.source(self.tensor)}"


@attrs.frozen
class Compute(Step):
    """`out = a * b`, elementwise."""

    out: str
    function: ProgramFunction
    operands: tuple[Operand, ...]
    spelling: str = "operator"

    def source(self) -> str:
        return f"{self.out} = {self.function.source([_operand(o) for o in self.operands], self.spelling)}"


@attrs.frozen
class Several(Step):
    """`a, b = f(x)`: an elementwise function with several results."""

    outs: tuple[str, ...]
    function: ProgramFunction
    operands: tuple[Operand, ...]

    def source(self) -> str:
        return f"{', '.join(self.outs)} = {self.function.source([_operand(o) for o in self.operands], 'call')}"

    def parts(self) -> list[tuple[str, ProgramFunction]]:
        """Return each result with the function that computes it alone."""

        def alone(number: int) -> ProgramFunction:
            function = self.function
            return attrs.evolve(
                function,
                numpy=lambda *arrays: function.numpy(*arrays)[number],
                operator=lambda *tensors: function.operator(*tensors)[number],
                outputs=1,
            )

        return [(out, alone(number)) for number, out in enumerate(self.outs)]


@attrs.frozen
class Call(Step):
    """`out = vg.sum(a, axis=0)`: a function that is not elementwise."""

    out: str
    function: ProgramFunction
    operands: tuple[Operand, ...]
    keywords: tuple[tuple[str, Any], ...] = ()

    def source(self) -> str:
        operands = [_operand(o) for o in self.operands]
        if self.function.listed:
            operands = [f"[{', '.join(operands)}]"]
        arguments = [*operands, *(f"{name}={value!r}" for name, value in self.keywords)]
        return f"{self.out} = {self.function.module}{self.function.name}({', '.join(arguments)})"

    def numpy(self, arrays: list[Array]) -> Array:
        """Return the result for arrays."""
        keywords = dict(self.keywords)
        if self.function.listed:
            return np.asarray(self.function.numpy(arrays, **keywords))
        return np.asarray(self.function.numpy(*arrays, **keywords))


@attrs.frozen
class Gather(Step):
    """`out = source[[0, 2, 2]]`: a copy selected by arrays of integers or bools."""

    out: str
    tensor: str
    index: Index

    def source(self) -> str:
        return f"{self.out} = {self.tensor}[{index_source(self.index)}]"


@attrs.frozen
class Write(Step):
    """`target *= value`, or `target.sin_()`."""

    target: str
    function: ProgramFunction
    operands: tuple[Operand, ...] = ()
    spelling: str = "method"

    def source(self) -> str:
        operands = [_operand(o) for o in self.operands]
        if self.spelling == "operator" and self.function.symbol and operands:
            return f"{self.target} {self.function.symbol}= {operands[0]}"
        if self.spelling == "numpy" and self.function.ufunc:
            return f"np.{self.function.ufunc}({', '.join([self.target, *operands])}, out={self.target})"
        if not self.function.module:
            return f"{self.function.name}_({', '.join([self.target, *operands])})"
        return f"{self.target}.{self.function.name}_({', '.join(operands)})"


@attrs.frozen
class Overwrite(Step):
    """`target.copy_(value)`, `fill_`, `zero_`."""

    target: str
    value: Operand

    def source(self) -> str:
        if type(self.value) in (int, float, complex):
            return f"{self.target}.fill_({self.value!r})" if self.value else f"{self.target}.zero_()"
        return f"{self.target}.copy_({_operand(self.value)})"


@attrs.frozen
class Assign(Step):
    """`target[index] = value`."""

    target: str
    index: Index
    value: Operand

    def source(self) -> str:
        return f"{self.target}[{index_source(self.index)}] = {_operand(self.value)}"


@attrs.frozen
class Augment(Step):
    """`target[index] *= value`."""

    target: str
    index: Index
    function: ProgramFunction
    value: Operand

    def source(self) -> str:
        return f"{self.target}[{index_source(self.index)}] {self.function.symbol}= {_operand(self.value)}"


@attrs.frozen
class UfuncOut(Step):
    """`np.multiply(a, b, out=target, where=mask)`."""

    target: str
    function: ProgramFunction
    operands: tuple[Operand, ...]
    where: tuple[Any, ...] | None = None

    def source(self) -> str:
        where = "" if self.where is None else f", where={array_source(self.where)}"
        return f"np.{self.function.ufunc}({', '.join(_operand(o) for o in self.operands)}, out={self.target}{where})"


@attrs.frozen
class Detach(Step):
    """`out = source.detach()`."""

    out: str
    tensor: str

    def source(self) -> str:
        return f"{self.out} = {self.tensor}.detach()"


@attrs.frozen
class DetachInPlace(Step):
    """`tensor.detach_()`, of a base."""

    tensor: str

    def source(self) -> str:
        return f"{self.tensor}.detach_()"


@attrs.frozen
class UnrecordedView(Step):
    """A view that is taken under `no_grad` and used outside it."""

    view: View

    @property
    def outs(self) -> tuple[str, ...]:
        return self.view.outs

    @property
    def reads(self) -> tuple[str, ...]:
        return self.view.reads

    def source(self) -> str:
        return f"with vg.no_grad():\n    {self.view.source()}"


@attrs.frozen
class NoGrad(Step):
    """Steps under `no_grad`."""

    steps: tuple[Any, ...]

    @property
    def outs(self) -> tuple[str, ...]:
        return tuple(name for step in self.steps for name in step.outs)

    @property
    def reads(self) -> tuple[str, ...]:
        inside = self.outs
        return tuple(name for step in self.steps for name in step.reads if name not in inside)

    def source(self) -> str:
        return "\n".join(["with vg.no_grad():", *("    " + step.source() for step in self.steps)])


class Machine(Protocol):
    """The interface of machines that run steps."""

    def view(self, step: View) -> None: ...
    def unpack(self, step: Unpack) -> None: ...
    def compute(self, step: Compute) -> None: ...
    def several(self, step: Several) -> None: ...
    def call(self, step: Call) -> None: ...
    def gather(self, step: Gather) -> None: ...
    def write(self, step: Write) -> None: ...
    def overwrite(self, step: Overwrite) -> None: ...
    def assign(self, step: Assign) -> None: ...
    def augment(self, step: Augment) -> None: ...
    def ufunc_out(self, step: UfuncOut) -> None: ...
    def detach(self, step: Detach) -> None: ...
    def detach_in_place(self, step: DetachInPlace) -> None: ...
    def unrecorded_view(self, step: UnrecordedView) -> None: ...
    def no_grad(self, step: NoGrad) -> None: ...


def flat_steps(steps: tuple[Any, ...]) -> list[Any]:
    """Return the steps, including those under `no_grad`."""
    flat: list[Any] = []
    for step in steps:
        flat.extend(step.steps if isinstance(step, NoGrad) else [step])
    return flat


# -- printing ----------------------------------------------------------------------------------------------------------


def _operand(operand: Operand) -> str:
    if isinstance(operand, str):
        return operand
    return operand.source() if isinstance(operand, Table) else repr(operand)


def _names(*operands: Operand) -> tuple[str, ...]:
    return tuple([operand for operand in operands if isinstance(operand, str)])


# The names in a field of a step.
READ: Final[dict[str, Callable[[Any], tuple[str, ...]]]] = {
    "tensor": _names,
    "target": _names,
    "operands": lambda operands: _names(*operands),
    "value": _names,
    "index": names_in_index,
}
