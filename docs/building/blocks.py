"""Code blocks as the site shows them, and pictures made by the code of a page.

In the source of a page, a picture is a comment with an expression, as in `<!-- picture: memory_strip(b, row) -->`. Its
names are those of the code above it. The text after a `#` is the caption. The code runs when the site is built.
"""

from __future__ import annotations

import base64
import contextlib
import doctest
import html
import io
import re
from typing import Any

import numpy as np

from viewgrad.drawing import graph_svg, memory_strip

__all__ = ["PICTURE", "drawn", "shown", "thumbnail", "with_pictures"]

PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"^<!-- picture: (?P<expression>.*?)(?: # (?P<caption>.*?))? -->$", re.MULTILINE | re.DOTALL)


def shown(markdown: str) -> str:
    """Return the text of a page with console sessions and printed output marked as such."""
    markdown = PYTHON.sub(_session, markdown)
    return re.sub(r"^```output$", "``` { .text .output }", markdown, flags=re.MULTILINE)


def _session(match: re.Match[str]) -> str:
    return f"```pycon\n{match['code']}```" if match["code"].startswith(">>>") else match[0]


def with_pictures(markdown: str, page: str) -> str:
    """Return the text of a page with its pictures, which are made by running its code.

    Arguments:
        markdown: the text.
        page: where it is, for messages.
    """
    if not PICTURE.search(markdown):
        return markdown
    names: dict[str, Any] = {"__name__": "__main__", "memory_strip": memory_strip, "graph_svg": graph_svg}
    parts, end = [], 0
    for match in sorted([*PYTHON.finditer(markdown), *PICTURE.finditer(markdown)], key=lambda match: match.start()):
        if match.re is PYTHON:
            _run(match["code"], names, page)
        else:
            figure = drawn(eval(match["expression"], names))
            caption = f"<figcaption>{html.escape(match['caption'])}</figcaption>" if match["caption"] else ""
            parts += [markdown[end : match.start()], f'<figure class="picture">{figure}{caption}</figure>']
            end = match.end()
    return "".join([*parts, markdown[end:]])


def _run(code: str, names: dict[str, Any], page: str) -> None:
    """Run a block; the tests check its output and errors."""
    sources = [example.source for example in doctest.DocTestParser().get_examples(code)] if ">>>" in code else [code]
    for source in sources:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception), np.errstate(all="ignore"):
            exec(compile(source, page, "exec"), names)


def drawn(picture: Any) -> str:
    """Return a picture as an element of a page: an SVG of the library, or a Matplotlib figure.

    Raises:
        TypeError: for other objects.
    """
    if hasattr(picture, "_repr_svg_"):
        return str(picture._repr_svg_())
    if hasattr(picture, "savefig"):
        return _image(picture, dpi=120)
    raise TypeError(f"a picture is an SVG drawing or a figure of Matplotlib, not {type(picture).__name__}")


def thumbnail(figure: Any) -> str:
    """Return a small image of a Matplotlib figure, for a card."""
    return _image(figure, dpi=50)


def _image(figure: Any, dpi: int) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight")
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
