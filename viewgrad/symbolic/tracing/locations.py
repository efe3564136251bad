"""Where in the user's source something happens: the nearest line outside of this library."""

from __future__ import annotations

import random
import secrets
import sys
import uuid
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any, Final

__all__ = ["Locations"]

PACKAGE: Final = str(Path(__file__).parents[2])
GENERATED: Final = "<viewgrad generated"
DRAWING: Final = frozenset([str(module.__file__) for module in (random, secrets, uuid)])  # what draws for its callers


class Locations:
    """Numbers for places in the source: each expression has one of its own.

    Attributes:
        lines: by number, the file and the line; several numbers may be on one line.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []
        self._numbers: dict[tuple[CodeType, int], int] = {}
        self._positions: dict[tuple[CodeType, Any], int] = {}
        self._ours: dict[CodeType, bool] = {}

    def here(self) -> int:
        """The number of the place that is being run, outside of the library."""
        frame = sys._getframe(2)
        ours = self._ours
        while True:
            code = frame.f_code
            is_ours = ours.get(code)
            if is_ours is None:
                name = code.co_filename
                inside = name.startswith(PACKAGE) and not name.startswith(PACKAGE + "/testing")
                is_ours = inside or name.startswith((GENERATED, "<__array_function__")) or "/numpy/" in name
                is_ours = is_ours or name in DRAWING
                ours[code] = is_ours
            behind = frame.f_back
            if not is_ours or behind is None:
                break
            frame = behind
        key = (code, frame.f_lasti)
        number = self._numbers.get(key)
        if number is None:
            # An instruction may be seen at more than one offset: once it was specialised, after its cache.
            position = (code, next(islice(code.co_positions(), frame.f_lasti // 2, None), None))
            number = self._positions.get(position)
            if number is None:
                number = self._positions[position] = len(self.lines)
                self.lines.append((code.co_filename, frame.f_lineno))
            self._numbers[key] = number
        return number

    def told(self, number: int) -> str:
        """The file and line of a number."""
        return "{}:{}".format(*self.lines[number])
