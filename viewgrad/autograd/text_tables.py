"""Text tables of counts by operator and by line."""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from typing import Any, Final

from ..tensor.creation_sites import Line

UNKNOWN_LINE: Final = "(line not noted)"
LONGEST: Final = 60  # the number of characters shown of a source line


def line_text(line: Line | None) -> str:
    """Return a line of the user's program: its file, its number, and its source if available."""
    if line is None:
        return UNKNOWN_LINE
    filename, number = line
    source = linecache.getline(filename, number).strip()
    short = source if len(source) <= LONGEST else f"{source[: LONGEST - 3]}..."
    return f"{os.path.basename(filename)}:{number}  {short}".rstrip()


def table_text(head: Sequence[str], rows: Sequence[Sequence[Any]], last: Sequence[Any], limit: int) -> str:
    """Return a table whose last column is left-aligned and whose other columns are right-aligned.

    Arguments:
        head: the headings of the columns.
        rows: the rows; the first `limit` are shown.
        last: a final row with the totals.
        limit: the number of rows to show.
    """
    shown = [tuple(map(str, row)) for row in (head, *rows[:limit], last)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(head) - 1)]
    lines = ["  ".join([*(cell.rjust(width) for cell, width in zip(row, widths)), row[-1]]) for row in shown]
    if len(rows) > limit:
        lines.insert(-1, f"... and {len(rows) - limit} more")
    return "\n".join(lines)
