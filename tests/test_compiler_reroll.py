"""Nested loop recognition: unrolling restores the stream, and loops are recovered."""

from __future__ import annotations

import random

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.compiler.irregular_loops as choices
from viewgrad.compiler.reroll import LoopReroller, Structures, expanded, size
from viewgrad.errors import TraceTooLongError


def drawn_nest(rng: random.Random, depth: int, variables: list[str]) -> list[tuple]:
    """Random loops within loops, with affine integers and affine counts."""
    body = []
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.5:
            name = f"i{len(variables)}"
            count = (rng.randint(4, 7), {variable: rng.choice([0, 0, 1]) for variable in variables})
            body.append((name, count, drawn_nest(rng, depth - 1, [*variables, name])))
        else:
            ints = [
                (rng.randint(0, 9), {variable: rng.randint(-2, 3) for variable in variables})
                for _ in range(rng.randint(0, 3))
            ]
            body.append((rng.randint(0, 5), ints))
    return body


def run(nest: list[tuple], values: dict[str, int], rng: random.Random, structures: Structures):
    def value(affine):
        first, steps = affine
        return first + sum(step * values[name] for name, step in steps.items())

    for item in nest:
        if len(item) == 2:
            kind, ints = item
            yield structures.number_of(("test", kind, len(ints))), tuple(map(value, ints)), (rng.random(),)
        else:
            name, count, body = item
            for i in range(value(count)):
                values[name] = i
                yield from run(body, values, rng, structures)


def length(nest: list[tuple]) -> int:
    return sum(1 if len(item) == 2 else 1 + length(item[2]) for item in nest)


@pytest.mark.parametrize("batch", range(4))
def test_rerolled_stream_expands_to_itself(batch):
    for number in range(100):
        rng = random.Random(1000 * batch + number)
        nest = drawn_nest(rng, 3, [])
        roller = LoopReroller()
        stream = list(run(nest, {}, rng, roller.structures))
        if len(stream) > 4000:
            continue
        for instruction in stream:
            roller.take(*instruction)
        assert list(expanded(roller.terms)) == stream
        # First iterations, and inner loops of one or two iterations, may stay unrolled, for loops of any length.
        assert size(roller.terms) <= 20 * length(nest)


@pytest.mark.parametrize("n", [20, 60])
def test_the_size_of_a_triangular_nest_does_not_depend_on_its_length(n):
    roller = LoopReroller()
    a, b, c = (roller.structures.number_of(("triangle", i)) for i in range(3))
    for i in range(n):
        for j in range(i):
            roller.take(a, (i * n + j,))
            for k in range(j):
                roller.take(b, (i * n + k, j * n + k))
        roller.take(c, (i,))
    assert size(roller.terms) < 70


def test_two_streams_that_alternate_are_a_loop_of_two_blocks():
    roller = LoopReroller()
    a, b = roller.structures.number_of("a"), roller.structures.number_of("b")
    for i in range(50):
        roller.take(a if i % 2 else b, (i,))
    assert size(roller.terms) <= 4


def test_irregular_code_is_kept_up_to_a_limit():
    rng = random.Random(0)
    roller = LoopReroller()
    number_of = roller.structures.number_of
    stream = [(number_of(("noise", rng.randrange(20))), (rng.randrange(4),), ()) for _ in range(3000)]
    for instruction in stream:
        roller.take(*instruction)
    assert list(expanded(roller.terms)) == stream
    limited = LoopReroller(limit=100)
    limited.structures = roller.structures
    with pytest.raises(TraceTooLongError, match="belong to no loop; at most 100"):
        for instruction in stream:
            limited.take(*instruction)


def test_a_regular_loop_beside_irregular_code():
    def f(x, w):
        level, slope = vg.zeros(60), vg.zeros(60)
        for t in range(1, 60):
            level[t] = w[0] * x[t] + (1 - w[0]) * (level[t - 1] + slope[t - 1]) + w[1] * slope[t - 1]
            slope[t] = w[1] * (level[t] - level[t - 1]) + (1 - w[1]) * slope[t - 1] + w[2] * x[t] * x[t - 1]
        total = 0.0
        for t in (3, 5, 6, 11, 17, 18, 20, 31, 35, 44, 46, 53) if len(w) > 3 else ():
            total = total + level[t] * slope[t - 1] + w[3] * level[t]
        return total + (level * slope).sum()

    for extra in (3, 4):
        compiled = vg.compile(f, executor="python")
        for _ in range(3):
            x, w = vg.Tensor(np.sin(np.arange(60.0))), vg.Tensor(np.full(extra, 0.3), requires_grad=True)
            value = compiled(x, w)
        assert value.item() == pytest.approx(f(x, w).item())
        np.testing.assert_allclose(vg.autograd.grad(value, w)[0].numpy(), vg.autograd.grad(f(x, w), w)[0].numpy())
        told = compiled.explain()
        assert "59 times, test_" in told or "58 times, test_" in told, told
        assert told.count("indices from tables") == (extra == 4), told


def test_distinct_positions_from_a_table():
    order = np.random.default_rng(0).permutation(400)

    def f(x):
        y, total = x.copy(), 0.0
        for place in order:
            y[int(place)] = y[int(place)] * x[int(place)] + total * 0.1
            total = total + y[int(place)]
        return total

    compiled = vg.compile(f, executor="python")
    for seed in range(3):
        x = vg.Tensor(np.random.default_rng(seed).normal(size=400), requires_grad=True)
        found, wanted = compiled(x), f(x)
        np.testing.assert_allclose(found.detach(), wanted.detach(), rtol=1e-12)
        np.testing.assert_allclose(vg.autograd.grad(found, x)[0], vg.autograd.grad(wanted, x)[0], rtol=1e-12)
    assert "with indices from tables" in compiled.explain()


@pytest.mark.parametrize(("iterations", "taken_apart"), [(20, True), (1_000, False)])
def test_short_programs_of_long_loops_are_not_split(iterations, taken_apart, monkeypatch):
    asked = []
    monkeypatch.setattr(choices, "split_iterations", lambda terms: asked.append(terms))
    roller = LoopReroller()
    for kind in range(6):
        for i in range(iterations):
            for place in range(8):
                roller.take(roller.structures.number_of(("test", kind, place)), (i,))
    assert size(roller.terms) == 54
    assert choices.with_choices(roller.terms, roller.structures) == roller.terms
    assert bool(asked) == taken_apart
