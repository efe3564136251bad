"""Drawings of memory and graphs as SVG, which notebooks display."""

from .graph import graph_svg
from .memory import MemoryStrip, memory_strip
from .svg import Drawing

__all__ = ["Drawing", "MemoryStrip", "graph_svg", "memory_strip"]


def __dir__() -> list[str]:
    return sorted(__all__)
