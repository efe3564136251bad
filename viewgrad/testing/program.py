"""Programs: leaves, steps, and a real result."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, Protocol

import attrs
import numpy as np

import viewgrad

from ..operators.codegen.source_cache import list_source
from . import program_ops as s
from .functions import ProgramFunction


class MachineWithLeaves(s.Machine, Protocol):
    """A machine that runs programs."""

    def leaf(self, leaf: s.Leaf) -> None: ...


@attrs.frozen(repr=False)
class Program:
    """A program that modifies tensors through views, and can be run in several ways.

    Printing it shows Python code that can be pasted and run.

    Arguments:
        leaves: the leaves that it starts with.
        steps: its steps, in order.
        loss: the name of its result, a real number.
        inputs: names of other tensors to differentiate with respect to.
    """

    leaves: tuple[s.Leaf, ...]
    steps: tuple[Any, ...]
    loss: str
    inputs: tuple[str, ...] = ()

    @property
    def differentiable_leaves(self) -> tuple[s.Leaf, ...]:
        """The leaves to differentiate with respect to."""
        return tuple(leaf for leaf in self.leaves if leaf.requires_grad)

    @property
    def in_double_precision(self) -> Program:
        """Return the program with all leaves in double precision."""
        return attrs.evolve(self, leaves=tuple(attrs.evolve(leaf, single=False) for leaf in self.leaves))

    @property
    def functions(self) -> tuple[ProgramFunction, ...]:
        """The functions that the program calls, without repetition."""
        found = {step.function: None for step in s.flat_steps(self.steps) if hasattr(step, "function")}
        return tuple(found)

    def run(self, machine: MachineWithLeaves) -> None:
        """Run the program on one of the machines of this package."""
        for leaf in self.leaves:
            machine.leaf(leaf)
        for step in self.steps:
            step.run(machine)

    def execute(self) -> dict[str, Any]:
        """Run the program on viewgrad tensors, as printed; return all variables by name."""
        names = self._environment()
        exec(_compiled(self.body()), names)
        del names["__builtins__"]
        return names

    def execute_stepwise(
        self, leaves: Mapping[str, Any], after_step: Callable[[Any, dict[str, Any]], None] = lambda step, names: None
    ) -> dict[str, Any]:
        """Run the program step by step on the given leaves.

        Arguments:
            leaves: by name, the replacement for each leaf.
            after_step: a function that is called after each step with the step and all variables so far.
        """
        names = self._environment() | dict(leaves)
        for step in self.steps:
            exec(_compiled(step.source() + "\n"), names)
            after_step(step, names)
        del names["__builtins__"]
        return names

    def make_leaves(self) -> dict[str, Any]:
        """Return the leaves, by name."""
        names = self._environment()
        exec(_compiled("".join(f"{leaf.source()}\n" for leaf in self.leaves)), names)
        return {leaf.name: names[leaf.name] for leaf in self.leaves}

    def _environment(self) -> dict[str, Any]:
        names: dict[str, Any] = {"vg": viewgrad, "np": np}
        for function in self.functions:
            if not function.module:
                names[function.name] = function.operator
                names[f"{function.name}_"] = function.inplace_operator
        return names

    def body(self) -> str:
        """Return the lines of the program, without imports and the gradient."""
        return "\n".join([*(leaf.source() for leaf in self.leaves), *(step.source() for step in self.steps)]) + "\n"

    def source(self) -> str:
        """Return the whole program as Python code."""
        wanted = [*(leaf.name for leaf in self.differentiable_leaves), *self.inputs]
        return (
            "import numpy as np\nimport viewgrad as vg\n\n"
            + self.body()
            + f"print(vg.autograd.grad({self.loss}, [{', '.join(wanted)}], allow_unused=True))\n"
        )

    def __repr__(self) -> str:
        return f"<program>\n{self.source()}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # used by Hypothesis to display programs
        printer.text(repr(self))

    def __str__(self) -> str:
        return self.source()


@functools.lru_cache(maxsize=64)
def _compiled(body: str) -> CodeType:
    filename = f"<drawn program {abs(hash(body)):x}>"
    code = compile(body, filename, "exec")
    list_source(filename, body, code)
    return code
