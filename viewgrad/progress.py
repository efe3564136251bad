"""A progress bar on the terminal."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

__all__ = ["ProgressBar"]


class ProgressBar:
    """A progress line that is overwritten as the work proceeds; shown only if the output is a terminal.

    Arguments:
        stream: the output stream.
        always: whether to write even if it is not a terminal.
    """

    def __init__(self, stream: TextIO | None = None, *, always: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown = always or self._stream.isatty()

    def update(self, what: str, done: int, total: int) -> None:
        """Show the progress of the work, and the current item."""
        if not self._shown:
            return
        columns = max(shutil.get_terminal_size().columns, 40)
        filled = 20 * done // max(total, 1)
        line = f"[{'#' * filled}{'.' * (20 - filled)}] {done}/{total} {what}"
        self._stream.write(f"\r{line[: columns - 1]:<{columns - 1}}")
        self._stream.flush()

    def finish(self) -> None:
        """Clear the line."""
        if self._shown:
            columns = max(shutil.get_terminal_size().columns, 40)
            self._stream.write(f"\r{'':<{columns - 1}}\r")
            self._stream.flush()
