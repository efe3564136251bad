"""Source locations: the innermost line of code outside this library."""

from __future__ import annotations

import random
import secrets
import sys
import uuid
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any, Final

PACKAGE: Final = str(Path(__file__).parents[2])
GENERATED: Final = "<viewgrad generated"
# modules that draw random numbers for their callers
DRAWING: Final = frozenset([str(module.__file__) for module in (random, secrets, uuid)])


class Locations:
    """Numbers for source locations; each expression has its own number.

    Attributes:
        lines: by number, the file and line; several numbers may refer to one line.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._positions: dict[tuple[str, CodeType, Any], int] = {}
        # Code objects are kept alive and identified by id, since hashing one hashes all of its constants.
        self._ours: set[int] = set()
        self._others: set[int] = set()
        self._codes: list[CodeType] = []

    def here(self) -> int:
        """Return the number of the current location outside the library."""
        frame: Any = sys._getframe(2)
        ours = self._ours
        while True:
            code = frame.f_code
            if id(code) not in ours and not self._is_ours(code):
                break
            behind = frame.f_back
            if behind is None:
                break
            frame = behind
        key = (id(code), frame.f_lasti)
        number = self._numbers.get(key)
        if number is None:
            # An instruction may be found at two offsets: after specialization also behind its cache.
            at = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
            position = (code.co_filename, code, at)  # equal code may be in several files
            number = self._positions.get(position)
            if number is None:
                number = self._positions[position] = len(self.lines)
                self.lines.append((code.co_filename, frame.f_lineno))
            self._numbers[key] = number
        return number

    def _is_ours(self, code: CodeType) -> bool:
        """Return whether newly encountered code belongs to the library."""
        if id(code) in self._others:
            return False
        self._codes.append(code)
        is_ours = is_of_library(code.co_filename)
        (self._ours if is_ours else self._others).add(id(code))
        return is_ours

    def line_of(self, number: int) -> str:
        """Return the file and line of a number."""
        return "{}:{}".format(*self.lines[number])


def is_of_library(file: str) -> bool:
    """Return whether code from a file is skipped: this library, NumPy, and modules that draw random numbers."""
    inside = file.startswith(PACKAGE) and not file.startswith(PACKAGE + "/testing")
    return inside or file.startswith((GENERATED, "<__array_function__")) or "/numpy/" in file or file in DRAWING
