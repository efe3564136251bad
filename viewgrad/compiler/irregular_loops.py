"""Loops whose iterations differ: a table selects one of a few bodies for each iteration.

If, for example, some data is missing, a long sequence of short loops remains after loop recognition. It is then split
into iterations, each beginning at a certain instruction. Equal iterations share a body, whose integers come from tables
if they are not affine in the iteration number.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from ..type_aliases import Array
from .reroll import Instruction, Ints, Loop, Structures, Term, append_constants, size, with_ints

LONG: Final = 40  # terms; shorter sequences are unchanged
FEWEST: Final = 6  # the minimum number of iterations
WORTH_A_LOOK: Final = 150  # terms; in shorter sequences, nested loops are unchanged
MOST_ITERATIONS: Final = 100  # the maximum fraction of terms that may remain for an irregular loop to pay off
WORTH: Final = 0.6  # the fraction of the terms; if more remain, an irregular loop does not pay off
DEEPEST: Final = 3  # the maximum depth of nested loops that are unrolled
MOST_BODIES: Final = 24
MOST_TERMS: Final = 1_000_000
CANDIDATES: Final = 24


@attrs.define(eq=False)
class Body:
    """The body of some iterations of a loop.

    Arguments:
        terms: the terms of the first of these iterations.
        ints: for each term, its integers in each of these iterations.
    """

    terms: list[Term]
    ints: list[Array]


@attrs.define(eq=False)
class IrregularIteration:
    """A loop with differing iterations.

    Arguments:
        kinds: for each iteration, the number of its body.
        bodies: the bodies.
    """

    kinds: Array
    bodies: list[Body]


def program_size(term: Term | IrregularIteration) -> int:
    """Return the number of instructions and loops of a term, including nested ones."""
    return 1 + sum(size(body.terms) for body in term.bodies) if isinstance(term, IrregularIteration) else size([term])


def with_choices(terms: list[Term], structures: Structures) -> list[Term | IrregularIteration]:
    """Return the terms with long irregular sequences replaced by irregular loops, if this makes the program shorter.

    Arguments:
        terms: the terms of a stream.
        structures: the structures of its instructions and loops.
    """
    before = size(terms)
    if before < LONG or (before < WORTH_A_LOOK and _unrolled_size(terms) > MOST_ITERATIONS * before):
        return list(terms)
    best: tuple[int, list[Term | IrregularIteration]] = (int(WORTH * before), list(terms))
    rows: list[Term] | None = list(terms)
    for depth in range(DEEPEST):
        if depth and before < WORTH_A_LOOK:
            break
        whole, rows = rows, split_iterations(rows) if rows is not None else None
        if rows is None or whole is None or (depth and len(rows) == len(whole)):
            break
        found = _with_choice(rows, structures)
        if found is not None and found[0] < best[0]:
            best = found
    return best[1]


def _with_choice(rows: list[Term], known: Structures) -> tuple[int, list[Term | IrregularIteration]] | None:
    """Return the length of the program with an irregular loop, and the terms, whose sequences are not modified."""
    structures = [term.structure for term in rows]
    positions_of: dict[int, list[int]] = {}
    for position, structure in enumerate(structures):
        positions_of.setdefault(structure, []).append(position)
    best: tuple[int, list[int], int] | None = None
    candidates = [structure for structure, found in positions_of.items() if len(found) >= FEWEST]
    candidates.sort(key=lambda structure: -len(positions_of[structure]))
    for structure in candidates[: CANDIDATES if len(rows) < 100_000 else 6]:
        cut = _iterations_from(structures, list(positions_of[structure]))
        if cut is not None and (best is None or cut[0] < best[0]):
            best = cut
    if best is None:
        return None
    _, positions, end = best
    bodies: dict[tuple[int, ...], int] = {}
    members: list[list[int]] = []
    kinds = []
    for start, stop in zip(positions, [*positions[1:], end]):
        signature = tuple(structures[start:stop])
        number = bodies.setdefault(signature, len(bodies))
        if number == len(members):
            members.append([])
        members[number].append(start)
        kinds.append(number)
    made = [_body(rows, starts, len(signature)) for signature, starts in zip(bodies, members)]
    inner = sum(size(body.terms) for body in made)
    if inner >= WORTH * size(rows[positions[0] : end]):
        return None
    before, after = [_with_choices_of(part, known) for part in (rows[: positions[0]], rows[end:])]
    regular = _loop(made[0], len(kinds), known) if len(made) == 1 else None
    middle = regular or IrregularIteration(np.array(kinds), made)
    return before[0] + inner + after[0], [*before[1], middle, *after[1]]


def _loop(body: Body, count: int, known: Structures) -> Loop | None:
    """Return the iterations of one body as a loop, if all their integers change by constant steps."""
    steps = []
    for ints in body.ints:
        moves = np.diff(ints, axis=0)
        if (moves != moves[:1]).any():
            return None
        steps.append(tuple(moves[0].tolist()))
    return Loop(known.loop_over(body.terms), body.terms, count, steps)


def _with_choices_of(rows: list[Term], known: Structures) -> tuple[int, list[Term | IrregularIteration]]:
    """Return the terms before or after an irregular loop, with their own loops."""
    found = _with_choice(rows, known) if size(rows) >= LONG else None
    return (size(rows), list(rows)) if found is None else found


def _iterations_from(structures: list[int], positions: list[int]) -> tuple[int, list[int], int] | None:
    """Return the program length with iterations beginning at given positions, their starts, and the end."""
    signatures: Counter[tuple[int, ...]] = Counter()
    for start, stop in itertools.pairwise(positions):
        signatures[tuple(structures[start:stop])] += 1
        if len(signatures) > 4 * MOST_BODIES:
            return None
    # The first and last terms may belong to other code on the same line.
    while len(positions) > 1 and signatures[tuple(structures[positions[0] : positions[1]])] == 1:
        del signatures[tuple(structures[positions[0] : positions[1]])]
        del positions[0]
    last = positions[-1]
    end = last
    for signature in sorted(signatures, key=len, reverse=True):
        if tuple(structures[last : last + len(signature)]) == signature:
            end = last + len(signature)
            break
    else:
        positions = positions[:-1]
    if len(signatures) > MOST_BODIES or len(positions) < FEWEST:
        return None
    total = sum(map(len, signatures)) + positions[0] + len(structures) - end
    return total, positions, end


def _body(rows: list[Term], starts: list[int], length: int) -> Body:
    terms = [with_own_constants(term) for term in rows[starts[0] : starts[0] + length]]
    ints = []
    for i, term in enumerate(terms):
        ints.append(np.array([rows[start + i].ints for start in starts], dtype=np.int64).reshape(len(starts), -1))
        for start in starts[1:]:
            append_constants(term, rows[start + i])
    return Body(terms, ints)


def with_own_constants(term: Term) -> Term:
    """Return a copy of a term to whose constants others can be appended."""
    if type(term) is Instruction:
        return Instruction(term.structure, term.ints, tuple([list(values) for values in term.constants]))
    assert type(term) is Loop
    return Loop(term.structure, [with_own_constants(inner) for inner in term.body], term.count, term.steps)


def _unrolled_size(terms: Sequence[Term]) -> int:
    """Return the number of terms if the outermost loops are unrolled."""
    return sum(term.count * len(term.body) if isinstance(term, Loop) else 1 for term in terms)


def split_iterations(terms: Sequence[Term]) -> list[Term] | None:
    """Return the terms with the iterations of the outermost loops in sequence, or None if there are too many."""
    rows: list[Term] = []
    for term in terms:
        if type(term) is Instruction:
            rows.append(term)
            continue
        assert type(term) is Loop
        body = [
            (inner, moves, any(leaf.constants for leaf in _leaves(inner)))
            for inner, moves in zip(term.body, term.steps)
        ]
        used: Counter[int] = Counter()  # by instruction, the number of its executions so far
        for i in range(term.count):
            for inner, moves, has_constants in body:
                ints = tuple([n + i * move for n, move in zip(inner.ints, moves)])
                rows.append(_executed(inner, ints, used) if has_constants else with_ints(inner, ints))
        if len(rows) > MOST_TERMS:
            return None
    return rows


def _executed(term: Term, ints: Ints, used: Counter[int]) -> Term:
    """Return one execution of a term of a loop's body, with its share of the constants."""
    if type(term) is Instruction:
        start = used[id(term)]
        used[id(term)] = start + 1
        return Instruction(term.structure, ints, tuple([values[start : start + 1] for values in term.constants]))
    assert type(term) is Loop
    counts: Counter[int] = Counter()
    _count(term, ints, counts)
    made = with_ints(term, ints)
    for leaf, new in zip(_leaves(term), _leaves(made)):
        start, count = used[id(leaf)], counts[id(leaf)]
        new.constants = tuple([values[start : start + count] for values in leaf.constants])
        used[id(leaf)] += count
    return made


def _count(term: Loop, ints: Ints, counts: Counter[int]) -> None:
    """Count the executions of the instructions in one execution of a loop."""
    lengths = [len(inner.ints) for inner in term.body]
    total = sum(lengths)
    for i in range(ints[0]):
        start = 1
        for inner, length in zip(term.body, lengths):
            if isinstance(inner, Loop):
                moves = ints[start + total : start + total + length]
                now = tuple([n + i * move for n, move in zip(ints[start : start + length], moves)])
                _count(inner, now, counts)
            elif not i:
                counts[id(inner)] += ints[0]
            start += length


def _leaves(term: Term) -> list[Instruction]:
    if type(term) is Instruction:
        return [term]
    assert type(term) is Loop
    return [leaf for inner in term.body for leaf in _leaves(inner)]
