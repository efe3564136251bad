"""The names of `viewgrad.scipy.spatial`, written by `python tools/stubs.py` with SciPy 1.17.1; do not edit."""

from typing import Any


HalfspaceIntersection: Any
QhullError: Any
Rectangle: Any
SphericalVoronoi: Any
Voronoi: Any
cKDTree: Any
def convex_hull_plot_2d(hull: Any, ax: Any = ...) -> Any: ...
def delaunay_plot_2d(tri: Any, ax: Any = ...) -> Any: ...
tsearch: Any
def voronoi_plot_2d(vor: Any, ax: Any = ..., **kw: Any) -> Any: ...
