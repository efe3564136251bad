"""The text of the graphs of five small programs."""

import re

import pytest
from leaves import leaf

import viewgrad as vg
from viewgrad.symbolic import differentiate, parse, trace


def heron(x):
    """Return a square root by three of Heron's steps."""
    root = x
    for _ in range(2):
        root = (root + x / root) * 0.5
    return root


def overlapping(x):
    """Write through views that overlap."""
    y = x.clone()
    left, right = y[:3], y[1:]
    left *= 2.0
    right += left
    left[0] = y[2]
    return y.sum()


def transposed(x):
    """Write to a diagonal and a row of a transposed table."""
    table = vg.zeros(2, 2)
    table.T[0] = x
    table.diagonal()[...] = x * x
    return table


def clipped(x, limit):
    """Python's control flow, and a gather by a tensor of indices."""
    order = vg.argsort(x)
    if x[0] > limit[0]:
        x = vg.minimum(x, limit)
    return x[order]


def unrecorded(x):
    """Write without recording: under no_grad, and through a detached tensor."""
    y = x * x
    with vg.no_grad():
        y[0] = 1.0
    y.detach()[1] = 5.0
    return y * x


GRAPHS = {
    heron: (
        (leaf(2.0),),
        """
graph(%x : float64[1] grad):
  %1 : float64[1] grad = div(%x, %x)
  %2 : float64[1] grad = add(%x, %1)
  %3 : float64[] = constant(; array(0.5, 'float64'))
  %4 : float64[1] grad = mul(%2, %3)
  %5 : float64[1] grad = div(%x, %4)
  %6 : float64[1] grad = add(%4, %5)
  %7 : float64[1] grad = mul(%6, %3)
  return (%7)
""",
    ),
    overlapping: (
        (leaf(1.0, 2.0, 3.0, 4.0),),
        """
graph(%x : float64[4] grad):
  %1 : float64[4] grad = clone(%x)
  %2 : float64[3] grad = read(%1; window([3], [1], 0))
  %3 : float64[] = constant(; array(2.0, 'float64'))
  %4 : float64[3] grad = mul(%2, %3)
  %5 : float64[4] grad = write(%1, %4; window([3], [1], 0))
  %6 : float64[3] grad = read(%5; window([3], [1], 1))
  %7 : float64[3] grad = read(%5; window([3], [1], 0))
  %8 : float64[3] grad = add(%6, %7)
  %9 : float64[4] grad = write(%5, %8; window([3], [1], 1))
  %10 : float64[] grad = read(%9; window([], [], 2))
  %11 : float64[4] grad = write(%9, %10; window([], [], 0))
  %12 : float64[] grad = sum(%11; axis=None, keepdims=False)
  return (%12)
""",
    ),
    transposed: (
        (leaf(1.0, 2.0),),
        """
graph(%x : float64[2] grad):
  %1 : float64[2, 2] = full(; (2, 2), 0.0, dtype('float64'))
  %2 : float64[2, 2] grad = write(%1, %x; window([2], [2], 0))
  %3 : float64[2] grad = mul(%x, %x)
  %4 : float64[2, 2] grad = write(%2, %3; window([2], [3], 0))
  return (%4)
""",
    ),
    clipped: (
        (leaf(3.0, 1.0), vg.Tensor([2.0, 2.0])),
        """
graph(%x : float64[2] grad, %limit : float64[2]):
  %2 : int64[2] = argsort(%x; axis=-1)
  %3 : float64[] grad = read(%x; window([], [], 0))
  %4 : float64[] = read(%limit; window([], [], 0))
  %5 : bool[] = greater(%3, %4)
  guard(%5; 'bool()', True)
  %6 : float64[2] grad = minimum(%x, %limit)
  %7 : float64[2] grad = gather_at(%6, %2; (input(0),))
  return (%7)
""",
    ),
    unrecorded: (
        (leaf(1.0, 2.0),),
        """
graph(%x : float64[2] grad):
  %1 : float64[2] grad = mul(%x, %x)
  %2 : float64[] = constant(; array(1.0, 'float64'))
  %3 : float64[2] grad = overwrite(%1, %2; window([], [], 0))
  %4 : float64[2] = detach(%3)
  %5 : float64[] = constant(; array(5.0, 'float64'))
  %6 : float64[2] grad = overwrite(%3, %5; window([], [], 1))
  %7 : float64[2] = write(%4, %5; window([], [], 1))
  %8 : float64[2] grad = mul(%6, %x)
  return (%8)
""",
    ),
}


@pytest.mark.parametrize("program", GRAPHS, ids=lambda program: program.__name__)
def test_graph(program):
    inputs, expected = GRAPHS[program]
    graph = trace(program, *inputs)
    assert graph.text(locations=False) == expected.strip()
    located = graph.text()
    assert f"# {__file__}:" in located
    assert parse(located).text() == located


def test_the_reverse_of_writes_through_overlapping_views():
    gradient = differentiate(trace(overlapping, leaf(1.0, 2.0, 3.0, 4.0)))
    kinds = [node.kind for node in gradient.df.nodes() if node.kind in ("read", "write", "accumulate")]
    assert gradient.df.text(locations=False) == REVERSE.strip()
    assert kinds.count("write") == 3


REVERSE = """
graph(%grad0 : float64[] grad):
  %1 : float64[] = constant(; array(2.0, 'float64'))
  %2 : float64[] = constant(; array(0.0, 'float64'))
  %3 : float64[4] grad = GradOf(%grad0; 'sum')
    block():
      %4 : float64[4] grad = read(%grad0; window([4], [0], 0))
      return (%4)
  %5 : float64[4] grad, %6 : float64[] grad = GradOf(%3; 'write')
    block():
      %7 : float64[] grad = read(%3; window([], [], 0))
      %8 : float64[4] grad = write(%3, %2; window([], [], 0))
      return (%8, %7)
  %9 : float64[4] grad = GradOf(%6, %5; 'read')
    block():
      %10 : float64[4] grad = accumulate(%5, %6; window([], [], 2))
      return (%10)
  %11 : float64[4] grad, %12 : float64[3] grad = GradOf(%9; 'write')
    block():
      %13 : float64[3] grad = read(%9; window([3], [1], 1))
      %14 : float64[4] grad = write(%9, %2; window([3], [1], 1))
      return (%14, %13)
  %15 : float64[3] grad, %16 : float64[3] grad = GradOf(%12; 'add')
    block():
      return (%12, %12)
  %17 : float64[4] grad = GradOf(%16, %11; 'read')
    block():
      %18 : float64[4] grad = accumulate(%11, %16; window([3], [1], 0))
      return (%18)
  %19 : float64[4] grad = GradOf(%15, %17; 'read')
    block():
      %20 : float64[4] grad = accumulate(%17, %15; window([3], [1], 1))
      return (%20)
  %21 : float64[4] grad, %22 : float64[3] grad = GradOf(%19; 'write')
    block():
      %23 : float64[3] grad = read(%19; window([3], [1], 0))
      %24 : float64[4] grad = write(%19, %2; window([3], [1], 0))
      return (%24, %23)
  %25 : float64[3] grad = GradOf(%22; 'mul')
    block():
      %26 : float64[3] grad = mul(%22, %1)
      return (%26)
  %27 : float64[4] grad = GradOf(%25, %21; 'read')
    block():
      %28 : float64[4] grad = accumulate(%21, %25; window([3], [1], 0))
      return (%28)
  %29 : float64[4] grad = GradOf(%27; 'clone')
    block():
      return (%27)
  return (%29)
"""


def test_a_drawing_has_a_box_for_each_node_and_no_arrow_from_nowhere():
    def f(x):
        y = x.clone()
        y[1:] *= 2.0
        return (y * vg.exp(x)).sum() if y[0] > 0 else y.sum()

    graph = vg.symbolic.trace(f, vg.ones(3, requires_grad=True))
    gradient = vg.symbolic.differentiate(graph)
    for each in (graph, gradient.f, gradient.df):
        text = each.to_dot()
        drawn = re.findall(r"^ *(n\d+) \[", text, re.MULTILINE)
        arrows = re.findall(r"(n\d+) -> (n\d+)", text)
        assert len(drawn) == len(set(drawn))
        assert {end for arrow in arrows for end in arrow} <= set(drawn)
        assert text.count("ellipse") == len(each.inputs) + len(each.outputs)
        assert len(drawn) == text.count("[label=") - len(arrows)
        assert text.count("subgraph") == text.count("GradOf")
        assert text.count("{") == text.count("}")


def test_equal_code_in_two_files_has_separate_locations():
    source = "def doubled(x):\n    return x * 2.0\n"
    functions = []
    for file in ("first.py", "second.py"):
        names = {}
        exec(compile(source, file, "exec"), names)
        functions.append(names["doubled"])
    assert functions[0].__code__ == functions[1].__code__
    graph = trace(lambda x: functions[0](x) + functions[1](x), leaf(1.0, 2.0))
    places = [graph.where(node) for node in graph.block if node.kind == "mul"]
    assert places == ["first.py:2", "second.py:2"]
