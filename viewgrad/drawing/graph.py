"""Drawings of backward graphs that fit on a page, without Graphviz."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs

from ..autograd.graph.drawing import Arrow, Box, boxes_and_arrows, to_mermaid
from ..tensor.tensor import Tensor
from .svg import ACCENT, CHARACTER, GREEN, ORANGE, Drawing, box, label, line, sheet

MOST_BOXES: Final = 80
LINE: Final = 16.0
GAP: Final = (22.0, 34.0)
COLOURS: Final = {"tensor": ACCENT, "node": "none", "leaf": GREEN}


def graph_svg(tensor: Tensor | Sequence[Tensor]) -> Drawing:
    """Draw the graph that leads to a tensor: tensors, leaves, and nodes with their saved values.

    Graphviz is not required.

    Arguments:
        tensor: one tensor or several.

    Returns:
        A drawing that notebooks display. `print` shows its Mermaid source.

    Raises:
        ValueError: if the graph has more than eighty nodes and tensors; see `autograd.graph.explain` and `to_dot`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> picture = vg.drawing.graph_svg(x.exp())
        >>> picture.svg.count("<rect"), "ExpBackward" in picture.svg
        (3, True)
    """
    boxes, arrows = boxes_and_arrows(tensor)
    if len(boxes) > MOST_BOXES:
        raise ValueError(
            f"a graph of {len(boxes)} nodes and tensors is too large to be legible; draw at most {MOST_BOXES}, or use "
            "autograd.graph.explain, which describes it in words"
        )
    return Drawing(_svg(boxes, arrows), to_mermaid(tensor))


@attrs.define(eq=False)
class Place:
    """A point of the layout: a box, or a bend where an arrow crosses a layer.

    Arguments:
        lines: its text; none for a bend.
        kind: the kind of the box.
        inner: the text of the inner box.
        x, y: its upper left corner.
        depth: the height of its layer.
    """

    lines: tuple[str, ...] = ()
    kind: str = ""
    inner: tuple[str, ...] = ()
    x: float = 0.0
    y: float = 0.0
    depth: float = 0.0

    @property
    def width(self) -> float:
        """The width of the box."""
        longest = max((len(text) for text in (*self.lines, *self.inner)), default=0)
        return CHARACTER * longest + (16 if self.lines else 0) + (16 if self.inner else 0)

    @property
    def height(self) -> float:
        """The height of the box."""
        return LINE * (len(self.lines) + len(self.inner)) + (8 if self.lines else 0) + (18 if self.inner else 0)

    @property
    def middle(self) -> float:
        """The horizontal centre of the box."""
        return self.x + self.width / 2


def _svg(boxes: list[Box], arrows: list[Arrow]) -> str:
    layer_of = _layers(boxes, arrows)
    places = {one.name: Place(one.lines, one.kind, one.inner.lines if one.inner else ()) for one in boxes}
    layers: list[list[Place]] = [[] for _ in range(max(layer_of.values(), default=0) + 1)]
    for one in boxes:
        layers[layer_of[one.name]].append(places[one.name])
    paths: list[tuple[Arrow, list[Place]]] = []
    for arrow, count in Counter(arrows).items():
        if count > 1:
            arrow = attrs.evolve(arrow, text=f"{arrow.text} {count} times".strip())
        path = [places[arrow.start]]
        for layer in range(layer_of[arrow.start] + 1, layer_of[arrow.end]):
            path.append(Place())
            layers[layer].append(path[-1])
        paths.append((arrow, [*path, places[arrow.end]]))
    _order(layers, [path for _, path in paths])
    width, height = _place(layers)
    shapes = [shape for arrow, path in paths for shape in _arrow(arrow, path)]
    shapes += [shape for place in places.values() for shape in _box(place)]
    return sheet(width, height, shapes, f"A graph of {len(boxes)} boxes and {len(arrows)} arrows")


def _layers(boxes: list[Box], arrows: list[Arrow]) -> dict[str, int]:
    """Return the layer of each box, counted from the top: below all boxes that lead to it."""
    layer_of = {one.name: 0 for one in boxes}
    for _ in boxes:
        changed = False
        for arrow in arrows:
            if layer_of[arrow.end] <= layer_of[arrow.start]:
                layer_of[arrow.end] = layer_of[arrow.start] + 1
                changed = True
        if not changed:
            break
    return layer_of


def _order(layers: list[list[Place]], paths: list[list[Place]]) -> None:
    """Align connected boxes vertically, by the mean position of the boxes above."""
    above: dict[int, list[Place]] = {}
    for path in paths:
        for first, second in itertools.pairwise(path):
            above.setdefault(id(second), []).append(first)
    for upper, layer in itertools.pairwise(layers):
        number = {id(place): i / max(len(upper), 1) for i, place in enumerate(upper)}

        def mean(place: Place, number: dict[int, float] = number) -> float:
            found = [number[id(other)] for other in above.get(id(place), []) if id(other) in number]
            return sum(found) / len(found) if found else 0.0

        layer.sort(key=mean)


def _place(layers: list[list[Place]]) -> tuple[float, float]:
    widths = [sum(place.width for place in layer) + GAP[0] * (len(layer) - 1) for layer in layers]
    widest, y = max(widths, default=0.0), 6.0
    for layer, width in zip(layers, widths):
        x = 6 + (widest - width) / 2
        for place in layer:
            place.x, place.y = x, y
            place.depth = max(other.height for other in layer)
            x += place.width + GAP[0]
        y += max(place.height for place in layer) + GAP[1]
    return widest + 12, y - GAP[1] + 6


def _arrow(arrow: Arrow, path: list[Place]) -> list[str]:
    first, *bends, last = path
    passed = [(bend.x, y) for bend in bends for y in (bend.y, bend.y + bend.depth)]
    points = [(first.middle, first.y + first.height), *passed, (last.middle, last.y)]
    shapes = [line(points, arrow=True, dashed=arrow.dashed)]
    if arrow.text:
        (x0, y0), (x1, y1) = points[:2]
        shapes.append(label((x0 + x1) / 2 + 5, (y0 + y1) / 2 + 2, arrow.text, faint=True))
    return shapes


def _box(place: Place) -> list[str]:
    round = {"tensor": 9, "node": 2, "leaf": 2}[place.kind]
    colour = ORANGE if place.inner else COLOURS[place.kind]
    shapes = [box(place.x, place.y, place.width, place.height, fill=colour, round=round)]
    for i, text in enumerate(place.lines):
        shapes.append(label(place.middle, place.y + LINE * (i + 1), text, anchor="middle", bold=not i))
    if place.inner:
        y = place.y + LINE * len(place.lines) + 10
        shapes.append(box(place.x + 8, y, place.width - 16, LINE * len(place.inner) + 8, round=2))
        for i, text in enumerate(place.inner):
            shapes.append(label(place.middle, y + LINE * (i + 1), text, anchor="middle", bold=not i))
    return shapes
