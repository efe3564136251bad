"""Randomly corrupted graphs and texts of graphs are refused, or remain valid."""

import random
import re
import warnings

import numpy as np
import pytest
from numpy_idioms import PROGRAMS

import viewgrad as vg
from viewgrad.errors import GraphError, GuardError
from viewgrad.symbolic import TensorType, differentiate, parse, program_of, run, trace, verify

NAMES = ["views_of_views", "overlapping_writes", "fancy", "complexes", "steer", "singles", "inner_grad", "reductions"]
LONGEST = 150
KINDS = ["nonsense", "read", "write", "guard", "GradOf", "constant", "mul", "sum_to_size", "AutogradAdd"]


def all_graphs():
    graphs = []
    for name in NAMES:
        leaves = [vg.Tensor(np.random.default_rng(k).uniform(-1.5, 1.5, 12), requires_grad=True) * 1 for k in range(2)]
        gradient = differentiate(trace(PROGRAMS[name], *leaves))
        graphs += [graph for graph in (gradient.f, gradient.df) if len(graph) < LONGEST]
    return graphs


def numbers_for(kind):
    return np.random.default_rng(0).uniform(-1, 1, kind.shape).astype(kind.dtype)


def change_text(rng, text):
    """Draw a text with a line, a letter or a number changed."""
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    line = lines[place]
    letter = rng.randrange(len(line) or 1)
    numbers = list(re.finditer(r"\d+", line))
    number = rng.choice(numbers) if numbers else None
    change = rng.choice(["remove", "repeat", "swap", "drop", "put", "number", "dtype", "grad"])
    if change == "remove":
        del lines[place]
    elif change == "repeat":
        lines.insert(place, line)
    elif change == "swap":
        other = rng.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    elif change == "drop":
        lines[place] = line[:letter] + line[letter + 1 :]
    elif change == "put":
        lines[place] = line[:letter] + rng.choice("0123456789-.,()[]%:;= abx'") + line[letter + 1 :]
    elif change == "number" and number is not None:
        lines[place] = line[: number.start()] + str(rng.choice([0, 1, 2, 3, 7, 100, -1])) + line[number.end() :]
    elif change == "dtype":
        lines[place] = line.replace("float64", rng.choice(["float32", "int64", "bool", "complex128"]), 1)
    elif change == "grad":
        lines[place] = line.replace("grad", "", 1)
    return "\n".join(lines)


def change_graph(rng, graph):
    """Draw a graph with an input, a type, a kind, an option or the place of a node corrupted."""
    nodes = list(graph.nodes())
    node = rng.choice(nodes)
    values = [value for each in nodes for value in each.outputs] + list(graph.inputs)
    change = rng.choice(["input", "none", "behind", "type", "kind", "options", "unlink", "output", "more", "fewer"])
    if change == "input" and node.inputs:
        node.replace_input(rng.randrange(len(node.inputs)), rng.choice(values))
    elif change == "none" and node.inputs:
        node.replace_input(rng.randrange(len(node.inputs)), None)
    elif change == "behind":
        node.inputs = tuple(rng.choices(values, k=len(node.inputs)))
    elif change == "type" and node.outputs:
        dtype, shape = rng.choice([float, np.float32, int]), rng.choice([(), (3,), (12,), (3, 4)])
        rng.choice(node.outputs).type = TensorType.of(np.dtype(dtype), shape)
    elif change == "kind":
        node.kind = rng.choice(KINDS)
    elif change == "options":
        node.attributes = rng.choice([rng.choice(nodes).attributes, None, (), (1,)])
    elif change == "unlink":
        node.unlink()
    elif change == "output":
        graph.block.add_output(rng.choice(values))
    elif change == "more":
        node.set_inputs((*node.inputs, rng.choice(values)))
    elif change == "fewer":
        node.set_inputs(node.inputs[:-1])


def check_what_is_left(graph):
    """Check that the interpreter and the source of a graph accepted by the verifier agree."""
    inputs = [numbers_for(value.type) for value in graph.inputs]
    try:
        found = run(graph, inputs)
    except (GraphError, GuardError, ValueError, IndexError):  # some depend on values: indices, matrices
        return
    for value, array in zip(graph.outputs, found, strict=True):
        if value is not None and array is not None:
            assert (array.shape, array.dtype) == (value.type.shape, value.type.dtype)
    for ours, other in zip(program_of(graph)(inputs), found, strict=True):
        if ours is not None and other is not None:
            np.testing.assert_allclose(ours, other, rtol=1e-6)


@pytest.mark.parametrize("what", ["text", "graph"])
def test_corrupted_graphs_are_refused_or_correct(request, what):
    rng = random.Random(request.config.getoption("--programs-seed"))
    graphs = all_graphs()
    refused = 0
    warnings.simplefilter("ignore")
    number = request.config.getoption("--programs") // 2
    for _ in range(number):
        graph = rng.choice(graphs)
        try:
            if what == "text":
                objects = []
                text = graph.text(locations=False, objects=objects)
                changed = parse(change_text(rng, text), objects)
            else:
                changed = graph.clone()
                change_graph(rng, changed)
            verify(changed)
        except GraphError:
            refused += 1
            continue
        check_what_is_left(changed)
    assert number // 4 < refused < number
