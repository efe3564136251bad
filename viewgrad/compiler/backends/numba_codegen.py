"""Code generation for Numba: scalars, and fused loops over elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..access_analysis import AccessAnalysis
from ..arena import Arena
from ..build_ir import out_sizes
from ..callbacks import native_caller
from ..element_types import FLOAT, kind_of, taped
from ..index_expr import ONE, Integer, row_strides_of
from ..loop_ir import Access, Block, Call, Compute, Operand, Pop, Program, Read, Step, Value
from .codegen import EXTREMA, RAISED, CodeWriter, Kernel, LoopNest, flat, is_one_row, product_of
from .small_matrix import quick_call

SUM_IN_PAIRS: Final = "pairwise_sum"
SMALL: Final = 1000  # the number of products in a sum up to which the order of the loops is irrelevant


def write_kernel(
    program: Program, analysis: AccessAnalysis, *, arenas: Mapping[str, Arena], down: bool = False
) -> Kernel:
    """Return a program as the source of one function.

    Arguments:
        program: the program, or its gradient.
        analysis: the analysis of the program, even if its gradient is generated.
        arenas: the arenas of buffers and tapes, by the names of the latter.
        down: whether it is the gradient, in which loops and counters run backwards.
    """
    return NumbaWriter(program, analysis, arenas, down).kernel()


class NumbaWriter(CodeWriter):
    """Generates loop nests as loops over elements."""

    def _dimensional(self, block: Block, step: Step, indent: str) -> bool:
        return False

    def _called(self, step: Call) -> list[str]:
        """Return the lines of a call without a kernel: through the interpreter, over buffers."""
        kinds = step.kinds
        arguments = [
            self._buffer(value) if shape else kind_of(taped(dtype)).to_number.format(self._value(value, {}))
            for value, (shape, dtype) in zip(step.operands, kinds)
        ]
        arguments.append(f"b{step.name}")
        function = native_caller(self._callable(step), kinds, int(np.prod(step.shape)), step.dtype)
        name = self._function(step, function)
        result = self._buffered(step, ["0"] * len(step.sizes))
        shapes = [*[shape for shape, _ in kinds], True]
        addresses = [f"{each}.ctypes.data" if shape else each for each, shape in zip(arguments, shapes)]
        call, quick = f"{name}({', '.join(addresses)})", quick_call(step)
        if quick is not None:
            call = f"{quick[0]}({', '.join(arguments)}, {quick[1]}) and {call}"
        lines = [f"if {call}: return {RAISED}"]
        if not step.sizes:
            lines.append(f"{step.name} = {result}")
        return lines

    def _buffer(self, value: Value) -> str:
        """Return the name of the buffer for a value that has dimensions."""
        assert isinstance(value, Operand)
        self._buffered(value.step, ["0"] * len(out_sizes(value.step)))
        return f"b{value.step.name}"

    def _loops(self, block: Block, nest: LoopNest, indent: str) -> None:
        """Generate a nest as loops."""
        inside = set(nest.steps)
        if len(nest.steps) == 1 and self._summed_in_a_variable(nest.steps[0], indent):
            return
        at = {label: f"e{label}" for label in range(len(nest.sizes))}
        sizes: Sequence[Integer] = nest.sizes
        if len(sizes) > 1 and self._is_one_row(nest):
            at = dict.fromkeys(at, "0") | {len(sizes) - 1: "e0"}
            sizes = [product_of(sizes)]
        body: list[str] = []
        after: list[str] = []
        before: list[str] = []
        inner: list[str] = []  # the lines after the innermost loop, in its parent
        self.current = inside
        deep = indent + "    " * len(sizes)
        for step in nest.steps:
            if isinstance(step, Compute) and step.summed:
                self._sum(step, at, indent, deep, before, body, inner, after)
                continue
            body.append(deep + self._statement(block, step, at))
            if isinstance(step, (Compute, Read, Pop)) and any(
                user not in inside or not self._is_direct(user, step) for user in self.users.get(step, [])
            ):
                labels = step.out if isinstance(step, Compute) else tuple(range(len(step.sizes)))
                positions = ["0" if label < 0 else at[label] for label in labels]
                body.append(f"{deep}{self._buffered(step, positions)} = {step.name}")
        self.lines += before
        for label, size in enumerate(sizes):
            self.lines.append(f"{indent}{'    ' * label}for e{label} in range({size}):")
        self.lines += body + inner + after
        self.current = frozenset()

    def _is_one_row(self, nest: LoopNest) -> bool:
        """Return whether each step of a nest accesses equally spaced elements in the nest's order.
        """
        sizes = nest.sizes
        identity = tuple(range(len(sizes)))
        for step in nest.steps:
            if isinstance(step, Compute) and (step.summed or step.out != identity):
                return False
            if isinstance(step, Access) and (step.moves or not is_one_row(sizes, step.strides)):
                return False
            for value in step.operands:
                if isinstance(value, Operand) and value.labels and (dims := out_sizes(value.step)):
                    if value.labels != identity or dims != sizes:
                        return False
                    read: Any = value.step
                    if read in self.inlined and (read.moves or not is_one_row(sizes, read.strides)):
                        return False
        return True

    def _summed_in_a_variable(self, step: Step, indent: str) -> bool:
        """Generate a sum over the last labels, or a small sum, with a variable for each element; return whether this
        was possible.
        """
        if not isinstance(step, Compute) or not step.summed or step.operator in EXTREMA or -1 in step.out:
            return False
        order = [*sorted(step.out), *step.summed]
        count = product_of(step.sizes).value
        small = count is not None and count <= SMALL
        if not step.out or (order != sorted(order) and not small):
            return False
        at = {label: f"e{label}" for label in order}
        self.current = {step}
        loops = [f"for {at[label]} in range({step.sizes[label]}):" for label in order]
        before = [f"{indent}{'    ' * depth}{loop}" for depth, loop in enumerate(loops)]
        outer = len(step.out)
        deep = indent + "    " * outer
        target = self._buffered(step, [at[label] for label in step.out])
        self.lines += [
            *before[:outer], f"{deep}{step.name} = {kind_of(step.dtype).zero}", *before[outer:],
            f"{indent}{'    ' * len(order)}{step.name} += {self._expression(step, at)}",
            f"{deep}{target} = {step.name}",
        ]
        self.current = frozenset()
        return True

    def _is_direct(self, user: Step, step: Step) -> bool:
        if isinstance(user, Call):
            return False
        identity = tuple(range(len(user.sizes)))
        return all(
            value.labels == identity for value in user.operands if isinstance(value, Operand) and value.step is step
        )

    def _sum(
        self, step: Compute, at: dict[int, str], indent: str, deep: str, before: list[str], body: list[str],
        inner: list[str], after: list[str],
    ) -> None:
        """Generate a sum at the end of the nest."""
        expression = self._expression(step, at)
        if step.operator in EXTREMA:
            self._extremum(step, at, indent, deep, before, body, expression)
            return
        if not step.out:
            if step.dtype == FLOAT and step.operator in ("sum", ""):
                self._sum_in_pairs(step, at, indent, deep, body, inner, after, expression)
            else:
                before.append(f"{indent}{step.name} = {kind_of(step.dtype).zero}")
                body.append(f"{deep}{step.name} += {expression}")
            return
        dims = out_sizes(step)
        size = ONE
        for n in dims:
            size = size * n
        positions = ["0" if label < 0 else at[label] for label in step.out]
        target = self._buffered(step, positions)
        zero = kind_of(step.dtype).zero
        before += [f"{indent}for e in range({size}):", f"{indent}    b{step.name}[e] = {zero}"]
        body.append(f"{deep}{target} += {expression}")

    def _sum_in_pairs(
        self, step: Compute, at: dict[int, str], indent: str, deep: str, body: list[str], inner: list[str],
        after: list[str], expression: str,
    ) -> None:
        """Generate a sum over all labels, as accurate as NumPy's: over each row, then over the rows."""
        block = self.owner[step].name
        outer, last = step.sizes[:-1], step.sizes[-1]
        row, rows = f"q{step.name}", f"s{step.name}"
        self.buffers[row] = self.analysis.largest_named(block, (last,)), ""
        body.append(f"{deep}{row}[{at[len(outer)]}] = {expression}")
        if not outer:
            after.append(f"{indent}{step.name} = {SUM_IN_PAIRS}({row}, 0, {last})")
            return
        self.buffers[rows] = self.analysis.largest_named(block, outer), ""
        position = flat([at[label] for label in range(len(outer))], row_strides_of(outer))
        inner.append(f"{indent}{'    ' * len(outer)}{rows}[{position}] = {SUM_IN_PAIRS}({row}, 0, {last})")
        size = ONE
        for n in outer:
            size = size * n
        after.append(f"{indent}{step.name} = {SUM_IN_PAIRS}({rows}, 0, {size})")

    def _extremum(
        self, step: Compute, at: dict[int, str], indent: str, deep: str, before: list[str], body: list[str],
        expression: str,
    ) -> None:
        """Generate a maximum or minimum at the end of the nest."""
        first, function = EXTREMA[step.operator]
        if not step.out:
            before.append(f"{indent}{step.name} = {first}")
            body.append(f"{deep}{step.name} = {function}({step.name}, {expression})")
            return
        size = ONE
        for n in out_sizes(step):
            size = size * n
        target = self._buffered(step, ["0" if label < 0 else at[label] for label in step.out])
        before += [f"{indent}for e in range({size}):", f"{indent}    b{step.name}[e] = {first}"]
        body.append(f"{deep}{target} = {function}({target}, {expression})")
