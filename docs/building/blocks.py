"""Blocks of code as the site shows them."""

from __future__ import annotations

import re

PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(markdown: str) -> str:
    """The text of a page, with console sessions marked as such, and what code printed marked as output."""
    markdown = PYTHON.sub(_session, markdown)
    return re.sub(r"^```output$", "``` { .text .output }", markdown, flags=re.MULTILINE)


def _session(match: re.Match[str]) -> str:
    return f"```pycon\n{match['code']}```" if match["code"].startswith(">>>") else match[0]
