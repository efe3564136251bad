"""Drawings in SVG, and the shapes they consist of."""

from __future__ import annotations

import html
from pathlib import Path

import attrs

# The colours of shapes; lines and text have the colour of the surrounding text, on light and dark pages.
ACCENT = "#4051b5"
GREEN = "#2e9e5b"
ORANGE = "#e8590c"
CHARACTER = 7.3  # the width of a character of the font, in pixels


@attrs.frozen(repr=False)
class Drawing:
    """A drawing that notebooks display.

    Arguments:
        svg: the SVG source.
        text: a text version for the terminal.
    """

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the SVG source to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return self.text


def sheet(width: float, height: float, shapes: list[str], title: str) -> str:
    """Return the source of a picture.

    Arguments:
        width, height: the size in pixels.
        shapes: the source of its contents.
        title: the text for screen readers.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" '
        f'fill="currentColor" stroke-width="1.2" role="img"><title>{html.escape(title)}</title>{"".join(shapes)}</svg>'
    )


def box(x: float, y: float, width: float, height: float, *, fill: str = "none", round: float = 0, dashed: bool = False,
        stroke: str = "currentColor") -> str:  # fmt: skip
    """Return a rectangle; a colour given for `fill` is made lighter."""
    style = ' stroke-dasharray="4 3"' if dashed else ""
    opacity = ' fill-opacity="0.2"' if fill != "none" else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round}" '
        f'fill="{fill}"{opacity} stroke="{stroke}"{style}/>'
    )


def label(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False, faint: bool = False) -> str:
    """Return a line of text with its baseline at `y`."""
    style = ' font-weight="bold"' if bold else ""
    style += ' opacity="0.65"' if faint else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}'
    return f'<text {place} xml:space="preserve">{html.escape(text)}</text>'


def line(points: list[tuple[float, float]], *, arrow: bool = False, dashed: bool = False,
         stroke: str = "currentColor") -> str:  # fmt: skip
    """Return a line through points; an arrowhead, if any, is at the last point."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    style = ' stroke-dasharray="4 3"' if dashed else ""
    drawn = f'<polyline points="{path}" fill="none" stroke="{stroke}"{style}/>'
    return drawn + (_head(points[-2], points[-1], stroke) if arrow else "")


def _head(start: tuple[float, float], end: tuple[float, float], stroke: str) -> str:
    along = (end[0] - start[0], end[1] - start[1])
    length = (along[0] ** 2 + along[1] ** 2) ** 0.5 or 1.0
    ux, uy = along[0] / length, along[1] / length
    back = (end[0] - 7 * ux, end[1] - 7 * uy)
    corners = [end, (back[0] - 3.5 * uy, back[1] + 3.5 * ux), (back[0] + 3.5 * uy, back[1] - 3.5 * ux)]
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}" fill="{stroke}"/>'
