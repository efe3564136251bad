"""Where a node was made: noted under anomaly detection, and told when a backward pass fails."""

from __future__ import annotations

import os
import traceback
from contextvars import ContextVar
from typing import Final

from .node import Node

__all__ = ["RUNNING", "note", "origin"]

PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
RUNNING: Final[ContextVar[Node | None]] = ContextVar("viewgrad_running_node", default=None)


def note(node: Node) -> None:
    """Let `node` remember where it was made.

    That is `metadata["traceback"]`, a list of lines, and `metadata["parent"]`, the node in whose recorded backward pass
    it was made, or None.
    """
    if "traceback" not in node.metadata:
        # The frames of the user's code, which ends where it called into this package.
        frames = [frame for frame in traceback.extract_stack() if not _is_ours(frame.filename)]
        node.metadata["traceback"] = traceback.format_list(frames)
        node.metadata["parent"] = RUNNING.get()


def origin(node: Node) -> str:
    """Where a node was made, in words and as a traceback; and in which pass over which other node, if any."""
    parts = []
    current: Node | None = node
    while current is not None:
        lines = current.metadata.get("traceback")
        what = "It was made here"
        if current is not node:
            what = f"That was done by the backward pass of {current.name()}, which was made here"
        if lines is None:
            parts.append(f"{what.removesuffix(' here')} outside of anomaly detection, which notes where.")
        else:
            parts.append(f"{what} (most recent call last):\n{''.join(lines)}")
        current = current.metadata.get("parent")
    return "\n".join(parts)


def _is_ours(filename: str) -> bool:
    return filename.startswith((PACKAGE, "<viewgrad generated"))
