"""The passes over graphs, each on a small graph."""

from collections import Counter

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import GraphError
from viewgrad.symbolic import Builder, Graph, TensorType, differentiate, parse, passes, program_of, run, trace, verify
from viewgrad.trace.on_tensors import run_on_tensors


def check(change, before, after):
    """Assert that a pass turns one graph into another, and that a second run changes nothing."""
    graph = parse(before)
    changed = change(graph.block)
    verify(graph)
    assert graph.text() == parse(after).text()
    assert changed
    assert not change(graph.block)


def test_common_subexpressions():
    check(
        passes.eliminate_common_subexpressions,
        """
        graph(%x : float64[2], %y : float64[2]):
          %a : float64[2] = mul(%x, %y)
          %b : float64[2] = mul(%x, %y)
          %c : float64[2] = mul(%y, %x)
          %d : float64[] = sum(%a; axis=None, keepdims=False)
          %e : float64[] = sum(%b; axis=None, keepdims=False)
          %f : float64[1] = sum(%b; axis=None, keepdims=True)
          return (%d, %e, %f, %c)
        """,
        """
        graph(%x : float64[2], %y : float64[2]):
          %a : float64[2] = mul(%x, %y)
          %c : float64[2] = mul(%y, %x)
          %d : float64[] = sum(%a; axis=None, keepdims=False)
          %f : float64[1] = sum(%a; axis=None, keepdims=True)
          return (%d, %d, %f, %c)
        """,
    )


def test_common_subexpressions_distinguish_equal_but_different_constants():
    graph = parse("""
        graph(%x : float64[2]):
          %a : float64[2] = call(%x; 1)
          %b : float64[2] = clip(%x, None, None)
          %c : float64[2] = sum(%x; axis=0, keepdims=False)
          %d : float64[2] = sum(%x; axis=False, keepdims=False)
          return (%a, %b, %c, %d)
        """)
    assert passes.eliminate_common_subexpressions(graph.block) == 0


def test_new_memory_is_not_shared():
    graph = trace(lambda: (vg.zeros(2), vg.zeros(2)))
    passes.eliminate_common_subexpressions(graph.block)
    first, second = graph.outputs
    assert first is not second


def test_dead_code():
    check(
        passes.eliminate_dead_code,
        """
        graph(%x : float64[2]):
          %a : float64[2] = exp(%x)
          %b : float64[2] = sin(%a)
          %c : bool[] = any(%b; axis=None, keepdims=False)
          %d : float64[] = sum(%a; axis=None, keepdims=False)
          guard(%c; 'bool()', True)
          %e : float64[2] = cos(%x)
          %f : float64[2] = neg(%e)
          return (%x)
        """,
        """
        graph(%x : float64[2]):
          %a : float64[2] = exp(%x)
          %b : float64[2] = sin(%a)
          %c : bool[] = any(%b; axis=None, keepdims=False)
          guard(%c; 'bool()', True)
          return (%x)
        """,
    )


def test_dead_code_drops_outputs_of_linear_blocks():
    graph = parse("""
        graph(%g : float64[2], %x : float64[2], %y : float64[2]):
          %a : float64[2], %b : float64[2] = GradOf(%g; 'mul')
            block():
              %c : float64[2] = mul(%g, %y)
              %d : float64[2] = mul(%g, %x)
              return (%c, %d)
          return (%b)
        """)
    live = []
    passes.eliminate_dead_code(graph.block, live.extend)
    verify(graph)
    assert (
        graph.text()
        == parse("""
        graph(%g : float64[2], %x : float64[2], %y : float64[2]):
          %b : float64[2] = GradOf(%g; 'mul')
            block():
              %d : float64[2] = mul(%g, %x)
              return (%d)
          return (%b)
        """).text()
    )
    assert graph.inputs[0] in live and graph.outputs[0] in live


def test_constants_are_pooled():
    check(
        passes.pool_constants,
        """
        graph(%g : float64[2]):
          %a : float64[] = constant(; array(2.0, 'float64'))
          %b : float64[] = constant(; array(2.0, 'float64'))
          %n : int64[] = constant(; array(2, 'int64'))
          %c : float64[2] = mul(%g, %b)
          %d : float64[2] = GradOf(%c; 'mul')
            block():
              %e : float64[] = constant(; array(2.0, 'float64'))
              %f : float64[2] = mul(%c, %e)
              return (%f)
          return (%d, %a, %n)
        """,
        """
        graph(%g : float64[2]):
          %a : float64[] = constant(; array(2.0, 'float64'))
          %n : int64[] = constant(; array(2, 'int64'))
          %c : float64[2] = mul(%g, %a)
          %d : float64[2] = GradOf(%c; 'mul')
            block():
              %f : float64[2] = mul(%c, %a)
              return (%f)
          return (%d, %a, %n)
        """,
    )


def test_zero_and_minus_zero_are_two_constants():
    graph = trace(lambda x: (x * 0.0, x * -0.0), vg.ones(2))
    passes.pool_constants(graph.block)
    outputs = run(graph, [np.ones(2)])
    assert [bool(np.signbit(each[0])) for each in outputs] == [False, True]


def test_constants_are_lifted():
    check(
        passes.lift_constants,
        """
        graph(%g : float64[2]):
          %c : float64[2] = exp(%g)
          %d : float64[2] = GradOf(%c; 'mul')
            block():
              %e : float64[] = constant(; array(2.0, 'float64'))
              %f : float64[2] = mul(%c, %e)
              return (%f)
          return (%d)
        """,
        """
        graph(%g : float64[2]):
          %e : float64[] = constant(; array(2.0, 'float64'))
          %c : float64[2] = exp(%g)
          %d : float64[2] = GradOf(%c; 'mul')
            block():
              %f : float64[2] = mul(%c, %e)
              return (%f)
          return (%d)
        """,
    )


def test_constants_are_folded():
    check(
        passes.fold_constants,
        """
        graph(%x : float64[2]):
          %a : float64[] = constant(; array(2.0, 'float64'))
          %b : float64[] = constant(; array(3.0, 'float64'))
          %c : float64[] = mul(%a, %b)
          %d : float64[2] = read(%c; window([2], [0], 0))
          %e : float64[2] = add(%x, %d)
          return (%e)
        """,
        """
        graph(%x : float64[2]):
          %a : float64[] = constant(; array(2.0, 'float64'))
          %b : float64[] = constant(; array(3.0, 'float64'))
          %c : float64[] = constant(; array(6.0, 'float64'))
          %d : float64[2] = constant(; array([6.0, 6.0], 'float64'))
          %e : float64[2] = add(%x, %d)
          return (%e)
        """,
    )


def test_tuples_are_lowered():
    check(
        passes.lower_tuples,
        """
        graph(%x : float64[2], %y : float64[3]):
          %t : tuple(float64[2], float64[3]) = TupleConstruct(%x, %y)
          %a : float64[2], %b : float64[3] = TupleUnpack(%t)
          %l : list(float64[2]) = ListConstruct(%a, %x)
          %c : float64[2], %d : float64[2] = ListUnpack(%l)
          %e : float64[2] = add(%c, %d)
          return (%e, %b)
        """,
        """
        graph(%x : float64[2], %y : float64[3]):
          %e : float64[2] = add(%x, %x)
          return (%e, %y)
        """,
    )


def test_sums_to_a_size_are_folded():
    check(
        passes.fold_sum_to_size,
        """
        graph(%x : float64[4, 3, 2]):
          %a : float64[3, 2] = sum_to_size(%x; (3, 2))
          %b : float64[1, 2] = sum_to_size(%a; (1, 2))
          %c : float64[1, 2] = sum_to_size(%b; (1, 2))
          return (%c)
        """,
        """
        graph(%x : float64[4, 3, 2]):
          %b : float64[1, 2] = sum_to_size(%x; (1, 2))
          return (%b)
        """,
    )


def test_linear_blocks_are_inlined():
    check(
        passes.inline_grad_of,
        """
        graph(%g : float64[2], %x : float64[2]):
          %a : float64[2] = GradOf(%g; 'mul')
            block():
              %b : float64[2] = mul(%g, %x)
              return (%b)
          %c : float64[2] = exp(%a)
          return (%c)
        """,
        """
        graph(%g : float64[2], %x : float64[2]):
          %b : float64[2] = mul(%g, %x)
          %c : float64[2] = exp(%b)
          return (%c)
        """,
    )


def test_undefined_gradients_go_through_linear_blocks():
    graph = parse("""
        graph(%g : float64[2], %h : float64[2], %x : float64[2]):
          %a : float64[2], %b : float64[2] = GradOf(%g; 'mul')
            block():
              %c : float64[2] = mul(%g, %x)
              %d : float64[2] = mul(%g, %x)
              return (%c, %d)
          %e : float64[2] = GradOf(%h; 'sin')
            block():
              %f : float64[2] = cos(%x)
              %i : float64[2] = mul(%h, %f)
              return (%i)
          %j : float64[2] = AutogradAdd(%a, %e)
          %z : float64[2] = AutogradZero()
          %k : float64[2] = AutogradAdd(%z, %b)
          return (%j, %k)
        """)
    only_second = passes.specialize_autograd_zero(graph.clone(), [0])
    verify(only_second)
    assert (
        only_second.text()
        == parse("""
        graph(%g : float64[2], %h : float64[2], %x : float64[2]):
          %f : float64[2] = cos(%x)
          %i : float64[2] = mul(%h, %f)
          return (%i, None)
        """).text()
    )
    only_first = passes.specialize_autograd_zero(graph.clone(), [1])
    assert (
        only_first.text()
        == parse("""
        graph(%g : float64[2], %h : float64[2], %x : float64[2]):
          %c : float64[2] = mul(%g, %x)
          %d : float64[2] = mul(%g, %x)
          return (%c, %d)
        """).text()
    )


def test_a_graph_is_inlined():
    outer, inner = (trace(f, vg.ones(2)) for f in (lambda x: x * 2, lambda y: vg.exp(y) + y))
    outputs = passes.insert_graph(outer.block, inner, [outer.outputs[0]])
    outer.block.set_outputs(outputs)
    verify(outer)
    assert [node.kind for node in outer.block] == ["constant", "mul", "exp", "add"]
    assert np.allclose(run(outer, [np.ones(2)])[0], np.exp(2.0) + 2.0)


def test_the_first_backward_pass_does_nothing_for_temporaries():
    """The result is what one would write by hand: no zeros, no sums with them, no formula twice."""

    def simple(a, b):
        t = a + b
        return t * b

    def waves(a, b):
        for _ in range(5):
            a = np.sin(a) * b
        return a

    for function, expected in (
        (simple, {"mul": 2, "AutogradAdd": 1}),
        (waves, {"mul": 15, "cos": 5, "AutogradAdd": 4}),
    ):
        gradient = differentiate(trace(function, *[vg.ones(3, requires_grad=True) for _ in range(2)]))
        assert len(gradient.df_input_vjps) > 1  # the gradients of temporaries
        first = passes.specialize_autograd_zero(gradient.df.clone(), range(1, len(gradient.df_input_vjps)))
        assert Counter(node.kind for node in first.nodes()) == expected
        everything = gradient.df.clone()
        passes.inline_grad_of(everything.block)
        assert len(everything) > len(first)
        last = passes.specialize_autograd_zero(gradient.df.clone(), [0])  # nothing arrives at the result
        assert len(last) < len(everything)
        nothing = passes.specialize_autograd_zero(gradient.df.clone(), range(len(gradient.df_input_vjps)))
        assert len(nothing) == 0 and set(nothing.outputs) == {None}


def test_a_program_takes_undefined_gradients():
    def f(a, b):
        t = a + b
        t[1:] *= t[:-1]
        return t * b, t.sum()

    inputs = [np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])]
    gradient = differentiate(trace(f, *[vg.Tensor(each, requires_grad=True) for each in inputs]))
    program = program_of(gradient.df)
    outputs = run(gradient.f, inputs)
    for arriving in ([inputs[0], None], [None, np.array(2.0)], [None, None], [inputs[0], np.array(2.0)]):
        given = gradient.df_inputs(inputs, outputs, arriving)
        for ours, other in zip(program(given), run(gradient.df, given), strict=True):
            assert (ours is None) is (other is None)
            assert ours is None or np.array_equal(ours, other)


# -- last uses ---------------------------------------------------------------------------------------------------------


def kinds_of(nodes):
    return sorted(f"{node.kind} {node.attributes}" for node in nodes)


def test_writes_are_in_place_if_nothing_uses_the_old_version():
    def f(x):
        y = x * 2
        y[0] = 1.0
        z = y.clone()
        y[1] = 2.0
        return y, z

    graph = trace(f, vg.ones(3))
    uses = passes.last_uses(graph.block)
    assert len(uses.in_place) == 2 and not uses.copied
    assert "copied(" not in program_of(graph).source()


def test_inputs_and_live_values_are_not_overwritten():
    graph = parse("""
        graph(%x : float64[3], %v : float64[]):
          %a : float64[3] = write(%x, %v; window([], [], 0))
          %b : float64[3] = write(%a, %v; window([], [], 1))
          %c : float64[3] = write(%b, %v; window([], [], 2))
          return (%b, %c)
        """)
    uses = passes.last_uses(graph.block)
    assert kinds_of(uses.in_place) == ["write window([], [], 1)"]
    given = np.zeros(3)
    b, c = program_of(graph)([given, np.array(5.0)])
    assert given.tolist() == [0, 0, 0] and b.tolist() == [5, 5, 0] and c.tolist() == [5, 5, 5]


def test_exactly_the_windows_that_are_overwritten_before_their_last_use_are_copied():
    def f(x):
        y = x * 2
        even, odd = y[::2], y[1::2]
        y[::2] = 0.0
        return even * odd

    graph = trace(f, vg.ones(4))
    uses = passes.last_uses(graph.block)
    assert kinds_of(uses.copied) == []  # they are read at their use, after the write, from values of their own
    assert np.allclose(run(graph, [np.arange(4.0)])[0], f(vg.Tensor(np.arange(4.0))).numpy())
    graph = parse("""
        graph(%x : float64[4], %v : float64[]):
          %y : float64[4] = exp(%x)
          %even : float64[2] = read(%y; window([2], [2], 0))
          %odd : float64[2] = read(%y; window([2], [2], 1))
          %z : float64[4] = write(%y, %v; window([2], [2], 0))
          %p : float64[2] = mul(%even, %odd)
          return (%p, %z)
        """)
    uses = passes.last_uses(graph.block)
    assert kinds_of(uses.copied) == ["read window([2], [2], 0)"]
    assert len(uses.in_place) == 1
    inputs = [np.arange(4.0), np.array(7.0)]
    for ours, other in zip(program_of(graph)(inputs), run(graph, inputs), strict=True):
        assert np.array_equal(ours, other)


# -- graphs themselves -------------------------------------------------------------------------------------------------


def test_insert_points_and_uses():
    graph = Graph()
    kind = TensorType.of(np.dtype(float), (2,))
    x = graph.add_input(kind, "x")
    builder = Builder(graph)
    y = builder.insert("exp", [x], (), kind)
    z = builder.insert("mul", [y.output, y.output], (), kind)
    graph.block.set_outputs([z.output])
    assert y.output.uses == [(z, 0), (z, 1)] and x.users == [y]
    with builder.at(y):
        doubled = builder.insert("add", [x, x], (), kind)
    y.replace_input(0, doubled.output)
    verify(graph)
    assert [node.kind for node in graph.block] == ["add", "exp", "mul"]
    y.output.replace_all_uses_with(x)
    y.destroy()
    verify(graph)
    assert z.inputs == (x, x) and not doubled.output.is_used


def test_the_verifier_finds_faults():
    graph = trace(lambda x: vg.exp(x) * x, vg.ones(2))
    first, second = graph.block
    first.unlink().insert_after(second)
    with pytest.raises(GraphError, match=r"mul .* that is not defined before it"):
        verify(graph)
    graph = trace(lambda x: vg.exp(x) * x, vg.ones(2))
    graph.block.first.inputs = ()
    with pytest.raises(GraphError, match=r"param .* has 1 uses, but lists 2"):
        verify(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph(%x : float64[2]):\n  %y : float64[2] = exp(%z)\n  return (%y)", "%z is not defined here"),
        ("graph(%x : float64[2]):\n  %y : float64[2] = exp(%x)", "without a return"),
        ("graph(%x : float65):\n  return (%x)", "'float65' is not a type"),
        ("graph(%x : float64[2]):\n  what is this\n  return (%x)", "line 2, 'what is this': expected a node"),
    ],
)
def test_text_that_is_not_a_graph(text, message):
    with pytest.raises(GraphError, match=message):
        parse(text)


def test_a_node_that_is_not_differentiable_is_named():
    graph = parse("""
        graph(%x : float64[2] grad):
          %y : float64[2] grad = _ptp_weights(%x; axis=None)
          return (%y)
        """)
    with pytest.raises(GraphError, match="'_ptp_weights' is not differentiable"):
        differentiate(graph)


def test_a_graph_on_tensors():
    def f(x, i):
        y = x * 2
        y[1:] += y[:-1] * x[1:]
        y[i] = x[i] * y[0]
        y.T[...] = y[::-1].clone()
        return vg.cumsum(y) * x.sum()

    x, i = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2])
    graph = trace(f, vg.Tensor(x), i)
    (ours,) = run_on_tensors(graph, [vg.Tensor(x, requires_grad=True), vg.Tensor(i)])
    assert np.allclose(ours.detach().numpy(), f(vg.Tensor(x), i).numpy())
