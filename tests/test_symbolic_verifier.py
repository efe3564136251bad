"""The verifier refuses each of a set of broken graphs with a description of the fault."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import GraphError
from viewgrad.symbolic import Graph, TensorType, Window, differentiate, parse, trace, verify

FLOAT, INT, BOOL, SINGLE = map(np.dtype, (float, np.int64, bool, np.float32))
of = TensorType.of


def plain():
    return trace(lambda x, y: vg.exp(x) * y + vg.sin(x), vg.ones(2, requires_grad=True), vg.ones(2))


def reverse():
    return differentiate(trace(lambda x: vg.exp(x) * x, vg.ones(2, requires_grad=True))).df


def writes(x, i):
    y = x * 2
    y[1:] = y[:-1]
    y[i] = x[i]
    return y.sum()


def written():
    return trace(writes, vg.ones(3, requires_grad=True), np.array([0, 2]))


def text(*lines):
    return lambda: parse("\n".join(["graph(%x : float64[2], %y : float64[3]):", *[f"  {line}" for line in lines]]))


def changed(make, change, kind="mul"):
    """Return a graph with a changed node of a kind."""

    def broken():
        graph = make()
        change(graph, next(node for node in graph.nodes() if node.kind == kind))
        return graph

    return broken


def with_type(dtype, shape, grad=False):
    return lambda graph, node: setattr(node.outputs[0], "type", of(dtype, shape, grad))


def with_options(*options):
    return lambda graph, node: setattr(node, "attributes", options)


def with_window(sizes, strides, offset):
    return lambda graph, node: setattr(node, "attributes", Window(sizes, strides, offset))


def with_kind(kind):
    return lambda graph, node: setattr(node, "kind", kind)


def other_inputs(choose):
    return lambda graph, node: node.set_inputs(choose(graph, node))


def takes_a_bool_with_grad():
    graph = Graph()
    graph.block.set_outputs([graph.add_input(of(BOOL, (2,), True))])
    return graph


TUPLE = "%t : tuple(float64[2], float64[3]) = TupleConstruct(%x, %y)"
BROKEN = {
    # lists of nodes, and uses
    "order": (changed(plain, lambda g, n: n.unlink().insert_before(g.block.first)), "mul .* not defined before it"),
    "another graph": (changed(plain, other_inputs(lambda g, n: plain().inputs)), "that is not defined before it"),
    "lost user": (changed(plain, lambda g, n: setattr(g.inputs[0], "_users", None)), "is not registered as a user"),
    "more users": (changed(plain, lambda g, n: g.inputs[0]._add_user(n)), "has 2 uses, but lists 3"),
    "before": (changed(plain, lambda g, n: setattr(n, "prev", None)), "mul .* is not linked to the node before it"),
    "block": (changed(plain, lambda g, n: setattr(n, "block", plain().block)), "a block other than its own"),
    "ring": (changed(plain, lambda g, n: setattr(n, "next", g.block.first)), "is not linked to the node before it"),
    "end": (changed(plain, lambda g, n: setattr(g.block.returns.prev, "next", None)), "but not its return"),
    "node": (changed(plain, lambda g, n: setattr(n.output, "node", g.block.first)), "not the node of its output 0"),
    # blocks
    "from inside": (
        changed(reverse, lambda g, n: g.block.add_output(n.blocks[0].returns.prev.output), "GradOf"),
        "mul .* has 1 uses, but lists 2",
    ),
    "owner": (changed(reverse, lambda g, n: setattr(n.blocks[0], "owner", None), "GradOf"), "does not own its block"),
    "outputs": (changed(reverse, lambda g, n: n.blocks[0].add_output(n.inputs[0]), "GradOf"), "outputs that differ"),
    "no gradient": (changed(reverse, other_inputs(lambda g, n: ()), "GradOf"), "takes no gradients"),
    "type": (changed(reverse, with_type(FLOAT, (7,)), "GradOf"), r"but is declared as float64\[7\]"),
    "no block": (changed(plain, with_kind("GradOf")), "or lacks one"),
    # operators
    "kind": (changed(plain, with_kind("mull")), "mull .* is of an unknown kind"),
    "param": (changed(plain, with_kind("param")), "is of the unknown kind param"),
    "fewer inputs": (changed(plain, other_inputs(lambda g, n: n.inputs[:1])), "takes 2 inputs, but has 1"),
    "more inputs": (changed(plain, other_inputs(lambda g, n: n.inputs * 2)), "takes 2 inputs, but has 4"),
    "None": (changed(plain, other_inputs(lambda g, n: (None, n.inputs[1]))), "mul .* lacks an input"),
    "shape": (changed(plain, with_type(FLOAT, (3,))), r"returns float64\[2\], .* as float64\[3\]"),
    "dtype": (changed(plain, with_type(SINGLE, (2,))), r"returns float64\[2\], but is declared as float32\[2\]"),
    "whole numbers": (changed(plain, with_type(INT, (2,), True)), "int64.* which cannot carry a gradient"),
    "a bool": (takes_a_bool_with_grad, "param .* cannot carry a gradient"),
    "options": (changed(written, with_options(None), "sum"), "takes 2 options, but has 1"),
    # windows
    "reads too far": (changed(written, with_window((2,), (1,), 2), "read"), r"window\(\[2\], \[1\], 2\) exceeds"),
    "writes too far": (changed(written, with_window((2,), (-1,), 0), "write"), "exceeds float64"),
    "one place": (changed(written, with_window((2,), (0,), 0), "write"), "maps several elements to one location"),
    "no window": (changed(written, with_options(), "write"), "a window is missing"),
    "written": (changed(written, with_type(FLOAT, (2,)), "write"), r"returns float64\[3\], .* as float64\[2\]"),
    "value": (changed(written, other_inputs(lambda g, n: n.inputs[:1] * 2), "write"), "write .* has invalid options"),
    "places": (changed(written, other_inputs(lambda g, n: n.inputs[:2]), "put_at"), "the number of arrays, 0, differs"),
    "pattern": (changed(written, with_options((0,)), "gather_at"), "the number of arrays, 1, differs"),
    # other kinds
    "sum": (text("%a : float64[3] = sum_to_size(%x; (3,))", "return (%a)"), "sum_to_size .* has invalid options"),
    "summands": (text("%a : float64[2] = AutogradAdd(%x, %y)", "return (%a)"), "takes values of several types"),
    "constant": (text("%a : float64[2] = constant(; array(2.0, 'float64'))", "return (%a)"), r"returns float64\[\]"),
    "full": (text("%a : float64[2] = full(; (3,), 0, dtype('float64'))", "return (%a)"), r"returns float64\[3\]"),
    "guard": (text("guard(%x; 'bool()', True)", "return (%x)"), "guard .* is for one number"),
    "guards": (text("guard(%x, %y; 'bool()', True)", "return (%x)"), "takes 1 inputs, but has 2"),
    "step": (text("%a : float64[2] = call(%x; 1)", "return (%a)"), "call .* has no step"),
    "detached": (text("%a : float64[3] = detach(%x)", "return (%a)"), r"returns float64\[2\], .* as float64\[3\]"),
    # tuples and lists
    "items": (text(TUPLE.replace(", %y)", ", %x)"), "return (%t)"), r"returns tuple\(float64\[2\], float64\[2\]\),"),
    "no tuple": (text("%t : float64[2] = TupleConstruct(%x)", "return (%t)"), r"but is declared as float64\[2\]"),
    "fewer": (text(TUPLE, "%a : float64[2] = TupleUnpack(%t)", "return (%a)"), r"returns float64\[2\], float64\[3\]"),
    "a tensor": (text("%a : float64[2] = TupleUnpack(%x)", "return (%a)"), r"TupleUnpack .* takes a float64\[2\]"),
    "list": (text("%t : list(float64[2]) = ListConstruct(%x, %y)", "return (%t)"), r"for a list\(float64\[2\]\)"),
    "length": (
        text(
            "%t : list(float64[2]) = ListConstruct(%x, %x)", "%a : float64[2] = ListUnpack(%t)", "return (%a)"
        ),
        r"ListUnpack .* returns float64\[2\], float64\[2\], but is declared as float64\[2\]",
    ),
    # the signature
    "argument": (changed(plain, lambda g, n: g.add_input(of(FLOAT, (2,)))), "but its signature says float64"),
    "result": (changed(plain, lambda g, n: g.block.set_outputs(())), "the output 0 of the graph is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_corrupted_graphs_are_rejected(name):
    make, message = BROKEN[name]
    graph = make()
    with pytest.raises(GraphError, match=message):
        verify(graph)
