"""Pictures of memory and of graphs, as SVG: in a notebook they show themselves."""

from .graph import graph_svg
from .memory import MemoryStrip, memory_strip
from .svg import Drawing

__all__ = ["Drawing", "MemoryStrip", "graph_svg", "memory_strip"]
