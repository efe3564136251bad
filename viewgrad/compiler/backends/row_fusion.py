"""Code generation for Python that computes values where they are used, and over contiguous runs of rows.

NumPy needs a loop for each row of a window such as `u[1:-1, 1:-1]`, which takes longer than the arithmetic if rows are
short. From its first to its last element, the window is one contiguous run with gaps between its rows. A value computed
over such runs has meaningless numbers in the gaps. They are set to -0 before the value is added to a window, which
changes no number it is added to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..access_analysis import AccessAnalysis
from ..arena import Arena
from ..build_ir import out_sizes
from ..index_expr import constant
from ..loop_ir import Access, Add, Block, Compute, Operand, Program, Read, Step, Write
from .codegen import Kernel, product_of
from .numpy_codegen import INTO, NumpyWriter, is_one_to_one

SPREADING: Final = frozenset({"{0} + {1}", "{0} * {1}", "{0} - {1}", "-{0}"})  # also computed in the gaps between rows
MOST: Final = 1.25  # the maximum ratio of computed to needed elements
WORTH_A_COPY: Final = 16  # elements; copying fewer than this costs nothing
LEAST: Final = 512  # elements; for fewer than this, a loop over rows is cheap


def write_vectors(
    program: Program,
    analysis: AccessAnalysis,
    *,
    arenas: Mapping[str, Arena],
    down: bool = False,
    careful: bool = False,
) -> Kernel:
    """Return a program as the source of one Python function; see `write_kernel`.

    Arguments:
        program, analysis, arenas, down: as for `write_kernel`.
        careful: whether division by 0 follows NumPy.
    """
    writer = RunWriter(program, analysis, arenas, down)
    writer.careful = careful
    return writer.kernel()


class RunWriter(NumpyWriter):
    """Computes values where they are used, and over runs of adjacent elements if that takes less time."""

    def __init__(self, program: Program, analysis: AccessAnalysis, arenas: Mapping[str, Arena], down: bool) -> None:
        super().__init__(program, analysis, arenas, down)
        self.done: set[Write] = set()  # writes that were emitted where their value is computed
        self._spreads: dict[Step, Spread | None] = {}
        self._buffers_of: dict[Step, str] = {}  # the buffers of values computed as runs
        self._between: dict[str, str] = {}  # the numbers in the gaps between the rows of a buffer, if they were set

    def _lines_of(self, block: Block, step: Step) -> list[str]:
        lines: list[str] | None = None
        if type(step) is Read:
            lines = self._read_as_wanted(block, step)
        elif type(step) is Compute:
            lines = self._added_in_place(step) or self._written_at_once(step) or self._computed_in_a_run(step)
        elif isinstance(step, Write):
            lines = [] if step in self.done else self._added_in_place(step)
        return super()._lines_of(block, step) if lines is None else lines

    def _read_as_wanted(self, block: Block, step: Read) -> list[str] | None:
        """Return the lines that take a window, or the run that contains it; None for windows that are copied."""
        if step.is_picked or not self._is_inlined(block, step):
            return None
        users = self.users.get(step, [])
        lines = []
        if any(not self._takes_runs(user, step) for user in users):
            lines.append(f"{step.name} = {self._window(step)}")
        if any(self._takes_runs(user, step) and self._added(user) is None for user in users):
            lines.append(f"q{step.name} = {self._run_at(step)}")
        return lines

    def _target(self, step: Step) -> Write | None:
        """Return the write of a value if it immediately follows the computation and is the only use, or None."""
        identity = tuple(range(len(step.sizes)))
        users = self.users.get(step, [])
        if type(step) is not Compute or step.expression not in INTO or step.out != identity or not step.sizes:
            return None
        write = users[0] if len(users) == 1 else None
        if write is None or type(write) is not Write or step.dtype != float:
            return None
        if (product_of(step.sizes).value or WORTH_A_COPY) < WORTH_A_COPY:
            return None
        block = self.owner[step]
        positions = self._positions(block)
        if self.owner[write] is not block or positions[write] != positions[step] + 1:
            return None
        if not isinstance(write.value, Operand) or write.value.labels != identity or write.sizes != step.sizes:
            return None
        fits = not write.is_picked and write.base.dtype == float and is_one_to_one(write)
        fits = fits and any(isinstance(each, Operand) and each.labels for each in step.operands)
        return write if fits else None

    def _written_at_once(self, step: Compute) -> list[str] | None:
        """Return the line that computes a value directly into the window to which it is written."""
        write = self._target(step)
        if write is None:
            return None
        self.done.add(write)
        values = [self._aligned(value, len(step.sizes)) for value in step.operands]
        return [f"{INTO[step.expression]}({', '.join([*values, self._window(write)])})"]

    def _layout(self, step: Step) -> Spread | None:
        """Return the layout of a step's value in a run, or None if it has none."""
        if step not in self._spreads:
            self._spreads[step] = self._found_spread(step)
        return self._spreads[step]

    def _found_spread(self, step: Step) -> Spread | None:
        if type(step) is Read:
            return spread_of(step) if self._is_inlined(self.owner[step], step) else None
        if type(step) is not Compute or step.expression not in SPREADING or step.dtype != float:
            return None
        identity = tuple(range(len(step.sizes)))
        if step.out != identity or self._target(step) is not None:
            return None
        found: set[Spread | None] = set()
        for value in step.operands:
            if isinstance(value, Operand) and out_sizes(value.step):
                alike = value.labels == identity and self.owner[value.step] is self.owner[step]
                found.add(self._layout(value.step) if alike else None)
        return found.pop() if len(found) == 1 else None

    def _added(self, user: Step) -> Operand | None:
        """Return the operand that a step adds to a window, or subtracts from it, as a run; None for other steps."""
        if type(user) is Add:
            value, window = user.value, user
        else:
            target = self._target(user)
            if target is None or not isinstance(user, Compute) or user.expression not in ("{0} + {1}", "{0} - {1}"):
                return None
            window = target  # type: ignore[assignment]
            positions = [
                position for position, each in enumerate(user.operands[: 2 if "+" in user.expression else 1])
                if isinstance(each, Operand) and self._is_read_there(each.step, window)
            ]
            identity = tuple(range(len(user.sizes)))
            if not positions or any(isinstance(each, Operand) and each.labels != identity for each in user.operands):
                return None
            value = user.operands[1 - positions[0]]
        if not isinstance(value, Operand) or type(value.step) is not Compute:
            return None
        fits = value.labels == tuple(range(len(window.sizes))) and self.owner[value.step] is self.owner[user]
        return value if fits and self._layout(value.step) == spread_of(window) is not None else None

    def _is_read_there(self, step: Step, write: Write) -> bool:
        """Return whether a step reads the window being written, so that the window has the value until then."""
        if type(step) is not Read or self.owner[step] is not self.owner[write] or not _is_same_window(step, write):
            return False
        return self._is_inlined(self.owner[step], step)

    def _takes_runs(self, user: Step, step: Step) -> bool:
        """Return whether all users of a value accept it as a run."""
        if self.owner[user] is not self.owner[step] or self._layout(step) is None:
            return False
        return self._added(user) is not None or (type(user) is Compute and self._layout(user) is not None)

    def _added_in_place(self, step: Compute | Write) -> list[str] | None:
        """Return the lines that add a run to a window or subtract it."""
        value = self._added(step)
        if value is None:
            return None
        window: Any = step
        if isinstance(step, Compute):
            window = self._target(step)
            self.done.add(window)
        subtracted = isinstance(step, Compute) and "-" in step.expression
        buffer = self._buffers_of[value.step]
        spread = spread_of(window)
        assert spread is not None
        lines = []
        neutral = "0.0" if subtracted else "-0.0"
        if self._between.get(buffer) != neutral:
            self._between[buffer] = neutral
            for number, text in enumerate(spread.between(buffer)):
                lines.append(f"{self.fixed.setdefault(text, f'{buffer}_{number}')}[...] = {neutral}")
        return [*lines, f"w = {self._run_at(window)}", f"w {'-' if subtracted else '+'}= q{value.step.name}"]

    def _run_at(self, step: Access) -> str:
        """Return the run of adjacent elements from the first to the last element of a window."""
        spread = spread_of(step)
        assert spread is not None
        text = f"{step.base.name}[{step.offset}:{step.offset + constant(spread.length)}]"
        return text if step.offset.value is None else self.fixed.setdefault(text, f"f{len(self.fixed)}")

    def _computed_in_a_run(self, step: Compute) -> list[str] | None:
        """Return the lines that compute a value as a run."""
        spread = self._layout(step)
        if spread is None:
            return None
        buffer = None
        for value in step.operands:
            if isinstance(value, Operand) and self.users.get(value.step) == [step]:
                buffer = buffer or self._buffers_of.get(value.step)
        if buffer is None:
            buffer = self._scratch(f"o{step.name}", spread.room)
        self._buffers_of[step] = buffer
        self.quiet = True
        self._between.pop(buffer, None)
        run = self.fixed.setdefault(f"{buffer}[:{spread.length}]", f"{buffer}_run")
        values = [
            f"q{value.step.name}" if isinstance(value, Operand) and out_sizes(value.step)
            else self._aligned(value, len(step.sizes))
            for value in step.operands
        ]  # fmt: skip
        lines = [f"q{step.name} = {INTO[step.expression]}({', '.join([*values, run])})"]
        if any(not self._takes_runs(user, step) for user in self.users.get(step, [])):
            lines.append(f"{step.name} = {self.fixed.setdefault(spread.whole(buffer), f'{buffer}_whole')}")
        return lines


@attrs.frozen
class Spread:
    """The layout of the elements of a window, or of a value of its shape, in a run.

    Arguments:
        sizes, strides: the sizes and strides of the window.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def length(self) -> int:
        """The number of elements from the first to the last."""
        return 1 + sum((n - 1) * stride for n, stride in zip(self.sizes, self.strides))

    @property
    def room(self) -> int:
        """The number of elements in a buffer of whole rows."""
        return self.sizes[0] * self.strides[0]

    def whole(self, buffer: str) -> str:
        """Return the value itself, in a buffer of whole rows."""
        return f"{self._shaped(buffer, len(self.sizes))}[{', '.join([':', *(f':{n}' for n in self.sizes[1:])])}]"

    def between(self, buffer: str) -> list[str]:
        """Return the gaps between the rows in such a buffer."""
        return [
            f"{self._shaped(buffer, depth + 1)}[{':, ' * depth}{n}:]"
            for depth, n in enumerate(self.sizes)
            if depth and self.strides[depth - 1] > n * self.strides[depth]
        ]

    def _shaped(self, buffer: str, depth: int) -> str:
        """Return the buffer reshaped, with the remaining elements in the last dimension."""
        lengths = [outer // inner for outer, inner in itertools.pairwise(self.strides[:depth])]
        rest = self.strides[depth - 1]
        shape = [self.sizes[0], *lengths, *([rest] if rest > 1 else [])]
        return f"{buffer}.reshape({', '.join(map(str, shape))})"


def spread_of(step: Access) -> Spread | None:
    """Return the layout of a window in a run, or None if it is contiguous or its rows are too far apart."""
    sizes: list[Any] = [n.value for n in step.sizes]
    strides: list[Any] = [n.value for n in step.strides]
    if len(sizes) < 2 or None in sizes or None in strides or step.is_picked or step.base.dtype != float:
        return None
    if strides[-1] != 1 or min(strides) < 1 or math.prod(sizes) < LEAST:
        return None
    gaps = False
    for (outer, _), (stride, n) in itertools.pairwise(zip(strides, sizes)):
        if outer % stride or outer < n * stride:
            return None
        gaps |= outer > n * stride
    found = Spread(tuple(sizes), tuple(strides))
    return found if gaps and found.room <= MOST * math.prod(sizes) else None


def _is_same_window(first: Access, second: Access) -> bool:
    if first.moves or second.moves:
        return False
    same = first.base is second.base and first.offset == second.offset and first.positions == second.positions
    return same and first.sizes == second.sizes and first.strides == second.strides
