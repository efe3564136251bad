"""Drawings of memory and of graphs: their content, their format, and that drawing has no side effects."""

from xml.etree import ElementTree

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.drawing import graph_svg, memory_strip

SVG = "{http://www.w3.org/2000/svg}"


def shapes(drawing, kind):
    return ElementTree.fromstring(drawing._repr_svg_()).findall(f".//{SVG}{kind}")


def texts(drawing):
    return [element.text for element in shapes(drawing, "text")]


def matrix():
    return vg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)


def test_a_strip_before_and_after_a_write():
    b = matrix().clone()
    row, column, z = b[0], b[:, 1], b * b
    before = memory_strip(b, row=row, column=column, z=z)
    assert str(before) == (
        "base         | 1 | 2 | 3 | 4 |  float64 (2, 2), version 0: CloneBackward -> leaf\n"
        "row          |~~~~~~~|          SelectBackward\n"
        "column           |~~~|   |~~~|  SliceBackward\n"
        "other, self  |===============|  saved by MulBackward"
    )
    row *= 2.0
    after = memory_strip(b, row=row, column=column, z=z, since=before)
    assert str(after) == (
        "base         | 2 | 4 | 3 | 4 |  float64 (2, 2), version 1: CopySlices -> CloneBackward -> leaf\n"
        "row          |~~~~~~~|          (stale) SelectBackward\n"
        "column           |~~~|   |~~~|  (stale) SliceBackward\n"
        "other, self  |...............|  copied, saved by MulBackward: 1 2 3 4"
    )
    assert len([r for r in shapes(after, "rect") if r.get("fill") == "#e8590c"]) == 2  # the cells that were written
    assert not [r for r in shapes(before, "rect") if r.get("fill") == "#e8590c"]
    assert "copied" not in str(memory_strip(b, row=row, z=z))  # the original window is unknown
    row.grad_fn  # access to grad_fn rebuilds a view's history
    assert str(memory_strip(b, row=row)).endswith("|~~~~~~~|          AsStridedBackward")


def test_values_saved_of_other_memory_are_not_shown():
    x = matrix()
    y = x * x  # saves x, which has the same shape as y
    z = y * y
    before = memory_strip(y, z=z)
    y *= 0.0
    assert [window.kind for window in memory_strip(y, z=z, since=before).windows] == ["copy"]


def test_drawing_does_not_rebuild_histories():
    b = matrix().clone()
    column = b[:, 1]
    b[0] *= 2.0
    edge = column._edge
    memory_strip(b, column)
    assert column._edge is edge
    assert b._version == 1


def test_views_without_a_name_have_their_index():
    b = matrix().clone()
    names = [window.name for window in memory_strip(b, b[1:, ::-1], b.mT).windows]
    assert names == ["base[1:, ::-1]", "base.transpose(1, 0)"]


@pytest.mark.parametrize(
    "view, cells",
    [
        (lambda b: b[::-1], (0, 1, 2, 3, 4, 5)),
        (lambda b: b[1:5:2], (1, 3)),
        (lambda b: b[5:5], ()),
        (lambda b: vg.broadcast_to(b[2:3], (4,)), (2,)),
        (lambda b: b.reshape(2, 3)[:, 0], (0, 3)),
    ],
)
def test_the_cells_of_a_window(view, cells):
    b = vg.zeros(6)
    assert memory_strip(b, view(b)).windows[0].cells == cells


def test_drawing_of_transposed_memory_and_parts_of_numbers():
    b = vg.Tensor(np.arange(6.0).reshape(2, 3)).T.clone()
    assert memory_strip(b).cells == ("0", "1", "2", "3", "4", "5")
    c = vg.Tensor([1 + 2j, 3j])
    assert memory_strip(c, c.imag).windows[0].cells == (0, 1)


def test_undrawable_graphs():
    with pytest.raises(ValueError, match="24"):
        memory_strip(vg.zeros(25))
    with pytest.raises(ValueError, match="its views"):
        memory_strip(vg.zeros(3), vg.zeros(3))
    y = matrix()
    for _ in range(90):
        y = y * 1.0
    with pytest.raises(ValueError, match="explain"):
        graph_svg(y)


def test_a_graph_has_a_box_for_each_node_and_tensor():
    b = matrix().clone()
    row = b[0]
    row *= 2.0
    picture = graph_svg([b, row])
    assert len(shapes(picture, "rect")) == 7  # two tensors, four nodes and the wrapped one
    found = texts(picture)
    for text in ("CopySlices", "MulBackward", "AsStridedBackward", "CloneBackward", "AccumulateGrad"):
        assert found.count(text) == 1
    assert str(picture) == vg.autograd.graph.to_mermaid([b, row])


def test_boxes_of_a_drawn_graph_do_not_overlap():
    x = matrix()
    b = x.clone()
    for i in range(2):
        b[i] *= b[1 - i].exp()
    drawn = [[float(rect.get(name)) for name in ("x", "y", "width", "height")] for rect in shapes(graph_svg(b), "rect")]
    for i, (x0, y0, w0, h0) in enumerate(drawn):
        for x1, y1, w1, h1 in drawn[:i]:
            apart = x0 >= x1 + w1 or x1 >= x0 + w0 or y0 >= y1 + h1 or y1 >= y0 + h0
            inside = x1 <= x0 and y1 <= y0 and x0 + w0 <= x1 + w1 and y0 + h0 <= y1 + h1
            assert apart or inside


def test_save_and_escaping(tmp_path):
    base = vg.zeros(2)
    strip = memory_strip(base, **{"a<b": base[:1]})
    assert "a<b" in texts(strip)
    strip.save(tmp_path / "strip.svg")
    assert ElementTree.parse(tmp_path / "strip.svg").getroot().tag == f"{SVG}svg"
