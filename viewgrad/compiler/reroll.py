"""Nested loop recognition: recovers loops from a stream of instructions.

An instruction consists of a structure (a number for the operation and the kinds of its operands), integers (offsets,
sizes, distances) and constants (floats). If the same structures repeat with integers that change by constant steps,
they form a loop. A loop is a term, like an instruction, and has integers too, so loops nest. The number of iterations
of an inner loop may change from one iteration of the outer loop to the next.

Source: Ketterlin, A., Clauss, P., 2008. Prediction and trace compression of data access addresses through nested loop
recognition. CGO 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add, sub
from typing import Any, Final

from ..errors import TraceTooLongError

FEWEST: Final = 3  # the minimum number of iterations of a loop
PRIME: Final = (1 << 61) - 1
FACTOR: Final = 0x9E3779B97F4A7C15 % PRIME
TRIED: Final = 128  # the maximum number of body lengths to try
Ints = tuple[int, ...]


class Instruction:
    """An instruction of a stream, or of a loop's body, where it represents all executions.

    Attributes:
        structure: the number of its structure.
        ints: its integers in the first execution.
        constants: for each constant, its values in the order of execution.
    """

    __slots__ = ("constants", "ints", "structure")

    def __init__(self, structure: int, ints: Ints, constants: tuple[list[float], ...] = ()) -> None:
        self.structure = structure
        self.ints = ints
        self.constants = constants


class Loop:
    """A loop that repeats a body.

    Attributes:
        structure: the number of the structure of its body.
        body: the terms of the first iteration.
        steps: for each term, the change of its integers from one iteration to the next.
        count: the number of iterations.
        ints: the count, the integers of the body and their steps, concatenated.
        following: the integers of the body in one more iteration, for a loop that may grow.
    """

    __slots__ = ("body", "count", "following", "ints", "steps", "structure")

    following: list[Ints]

    def __init__(self, structure: int, body: list[Term], count: int, steps: list[Ints]) -> None:
        self.structure = structure
        self.body = body
        self.steps = steps
        self.count = count
        flat = [count]
        for term in body:
            flat.extend(term.ints)
        for moves in steps:
            flat.extend(moves)
        self.ints: Ints = tuple(flat)

    def predict(self) -> None:
        """Predict the instructions that would extend the loop."""
        self.following = [
            tuple([n + self.count * step for n, step in zip(term.ints, moves)])
            for term, moves in zip(self.body, self.steps)
        ]

    def grow(self) -> None:
        """Add one more iteration."""
        self.count += 1
        self.ints = (self.count, *self.ints[1:])
        self.following = [tuple(map(add, now, moves)) for now, moves in zip(self.following, self.steps)]


Term = Instruction | Loop


class Structures:
    """The structures of the instructions and loops of a stream, each identified by a number.

    They belong to the stream, since a global table would grow with every program.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._structures: list[Any] = []

    def number_of(self, structure: Any) -> int:
        """Return the number of a structure."""
        found = self._numbers.get(structure)
        if found is None:
            found = self._numbers[structure] = len(self._structures)
            self._structures.append(structure)
        return found

    def __getitem__(self, number: int) -> Any:
        return self._structures[number]

    def loop_over(self, body: Sequence[Term]) -> int:
        """Return the number of a loop over terms."""
        return self.number_of(("loop", *[term.structure for term in body]))


class LoopReroller:
    """Rolls up a stream of instructions into loops, one instruction at a time.

    Arguments:
        limit: the maximum number of terms after rolling up.
        longest: the maximum length of a loop's body.

    Attributes:
        terms: the rolled-up instructions so far.
        structures: the structures of the instructions and loops.
    """

    def __init__(self, limit: int = 100_000, longest: int = 20_000) -> None:
        self.terms: list[Term] = []
        self.structures = Structures()
        self.limit = limit
        self.longest = longest
        self.operation_count = 0
        self._ints: list[Ints] = []  # the integers of the terms
        self._structures: list[int] = []
        self._hashes = [0]  # the hashes of the structures of the first terms
        self._powers = [1]
        self._positions: dict[int, list[int]] = {}  # the positions of each structure
        # the loops, by the position at which another iteration would end
        self._loop_ends: dict[int, list[tuple[int, Loop]]] = {}
        # by length, the position at which the steps were last found to differ
        self._failed: dict[int, tuple[int, Ints]] = {}

    def take(self, structure: int, ints: Ints, constants: tuple[float, ...] = ()) -> None:
        """Add an instruction.

        Raises:
            TraceTooLongError: if too many terms remain.
        """
        self.operation_count += 1
        self._push(Instruction(structure, ints, tuple([[value] for value in constants])), ints)
        while self._extend() or self._begin():
            pass
        if len(self.terms) > self.limit:
            raise TraceTooLongError(
                f"{len(self.terms)} of the first {self.operation_count} operations belong to no loop; at most "
                f"{self.limit} such operations are compiled. Operate on rows and matrices instead of scalars, or "
                "compile a smaller function"
            )

    def _push(self, term: Term, ints: Ints) -> None:
        structure = term.structure
        self._positions.setdefault(structure, []).append(len(self.terms))
        self.terms.append(term)
        self._ints.append(ints)
        self._structures.append(structure)
        self._hashes.append((self._hashes[-1] * FACTOR + structure + 1) % PRIME)

    def _pop(self, count: int) -> None:
        for term in self.terms[-count:]:
            self._positions[term.structure].pop()
        del self.terms[-count:], self._ints[-count:], self._structures[-count:], self._hashes[-count:]

    def _extend(self) -> bool:
        """Extend the preceding loop if the newest terms form another iteration; return whether they do."""
        terms, ints = self.terms, self._ints
        length = len(terms)
        candidates = self._loop_ends.get(length)
        if candidates is None:
            return False
        for position in range(len(candidates) - 1, -1, -1):
            at, loop = candidates[position]
            if at >= length or terms[at] is not loop:
                del candidates[position]
                continue
            k = length - 1 - at
            body = loop.body
            if body[-1].structure != terms[-1].structure or loop.following[-1] != ints[-1]:
                continue
            following = loop.following
            if following != ints[at + 1 :]:
                continue
            if any(term.structure != other for term, other in zip(body, self._structures[at + 1 :])):
                continue
            taken = terms[at + 1 :]
            self._pop(k)
            for term, other in zip(body, taken):
                append_constants(term, other)
            loop.grow()
            ints[at] = loop.ints
            return True
        return False

    def _begin(self) -> bool:
        """Replace the newest terms by a loop if they form three iterations; return whether they do."""
        terms, ints = self.terms, self._ints
        length = len(terms)
        structures = self._structures
        structure = structures[-1]
        positions = self._positions[structure]
        tried = 0
        for position in reversed(positions[:-1]):
            k = length - 1 - position
            tried += 1
            if FEWEST * k > length or k > self.longest or tried > TRIED:
                return False
            if structures[position - k] != structure:
                continue
            failed = self._failed.get(k)
            if failed is not None and length - k <= failed[0] < length and ints[failed[0]] is failed[1]:
                continue
            if structures[-2] != structures[position - 1] or not self._repeats(k):
                continue
            steps: list[Ints] = []
            for i in range(length - 1, length - 1 - k, -1):
                first, second, third = ints[i - 2 * k], ints[i - k], ints[i]
                moves = tuple(map(sub, second, first))
                if moves != tuple(map(sub, third, second)):
                    self._failed[k] = (i, third)
                    break
                steps.append(moves)
            else:
                steps.reverse()
                blocks = terms[length - FEWEST * k :]
                self._pop(FEWEST * k)
                body = blocks[:k]
                for i in range(k, FEWEST * k):
                    append_constants(body[i % k], blocks[i])
                loop = Loop(self.structures.loop_over(body), body, FEWEST, steps)
                loop.predict()
                self._push(loop, loop.ints)
                self._loop_ends.setdefault(len(terms) + k, []).append((len(terms) - 1, loop))
                return True
        return False

    def _repeats(self, k: int) -> bool:
        """Return whether the last three blocks of `k` terms have equal structures."""
        hashes, powers = self._hashes, self._powers
        while len(powers) <= k:
            powers.append(powers[-1] * FACTOR % PRIME)
        power, last = powers[k], len(hashes) - 1
        third = (hashes[last] - hashes[last - k] * power) % PRIME
        return (
            third == (hashes[last - k] - hashes[last - 2 * k] * power) % PRIME
            and third == (hashes[last - 2 * k] - hashes[last - 3 * k] * power) % PRIME
        )


# -- terms -------------------------------------------------------------------------------------------------------------

def append_constants(term: Term, later: Term) -> None:
    """Append the constants of `later` to those of `term`, which has the same structure."""
    if type(term) is Instruction:
        assert type(later) is Instruction
        for values, more in zip(term.constants, later.constants):
            values.extend(more)
    else:
        assert type(term) is Loop and type(later) is Loop
        for inner, other in zip(term.body, later.body):
            append_constants(inner, other)


def with_ints(term: Term, ints: Sequence[int]) -> Term:
    """Return a copy of a term with other integers, which shares the constants."""
    if type(term) is Instruction:
        return Instruction(term.structure, tuple(ints), term.constants)
    assert type(term) is Loop
    body, steps, start = [], [], 1
    for inner in term.body:
        count = len(inner.ints)
        body.append(with_ints(inner, ints[start : start + count]))
        start += count
    for inner in term.body:
        count = len(inner.ints)
        steps.append(tuple(ints[start : start + count]))
        start += count
    return Loop(term.structure, body, ints[0], steps)


def size(terms: Sequence[Term]) -> int:
    """Return the number of instructions and loops, including nested ones."""
    return sum(1 + size(term.body) if isinstance(term, Loop) else 1 for term in terms)


def expanded(terms: Sequence[Term]) -> Iterator[tuple[int, Ints, tuple[float, ...]]]:
    """Return the original stream."""
    return _expanded([(term, term.ints) for term in terms], {})


def _expanded(
    terms: Sequence[tuple[Term, Ints]], executed: dict[int, int]
) -> Iterator[tuple[int, Ints, tuple[float, ...]]]:
    for term, ints in terms:
        if type(term) is Instruction:
            number = executed.get(id(term), 0)
            executed[id(term)] = number + 1
            yield term.structure, ints, tuple([values[number] for values in term.constants])
            continue
        assert type(term) is Loop
        lengths = [len(inner.ints) for inner in term.body]
        total = sum(lengths)
        for i in range(ints[0]):
            inner_terms, start = [], 1
            for inner, length in zip(term.body, lengths):
                now = ints[start : start + length]
                moves = ints[start + total : start + total + length]
                inner_terms.append((inner, tuple([n + i * move for n, move in zip(now, moves)])))
                start += length
            yield from _expanded(inner_terms, executed)
