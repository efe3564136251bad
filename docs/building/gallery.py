"""The gallery: a page for each program in `examples/`, with the picture that it draws when the site is built."""

from __future__ import annotations

import ast
import functools
import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import blocks

__all__ = ["PROGRAMS", "navigation", "pages"]

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
TITLES = {
    "co2_forecast": "A forecast of CO2",
    "denoising": "Image denoising, in place",
    "gauss_seidel": "Optimising through Gauss-Seidel",
    "ground_water": "Ground water, by sparse matrices",
    "inverse_heat": "An inverse heat problem",
    "jax_sources": "Heat sources, located with JAX",
    "kalman_missing": "A Kalman filter with gaps",
    "n_body": "The trajectory of a satellite",
    "pymc_local_level": "A local level model in PyMC",
    "panel_fit": "Many series, on a cluster",
    "sequence_alignment": "Learning to align sequences",
    "solar_cell": "A solar cell, with pvlib",
    "soft_dtw_barycentre": "Soft-DTW barycentre",
    "torch_smoothing": "A loop in a PyTorch network",
    "xarray_seasons": "Seasons in labelled arrays",
}
OPTIONAL = {"jax", "pandas", "pvlib", "pymc", "pytensor", "torch", "xarray"}  # needed by some examples
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def navigation() -> list[dict[str, str]]:
    """Return the pages of the programs, by title."""
    return [{_title(name): f"gallery/{name}.md"} for name in PROGRAMS]


def _title(name: str) -> str:
    return TITLES.get(name, name.replace("_", " ").capitalize())


@functools.cache
def pages() -> dict[str, str]:
    """Return the Markdown of the pages, by their path in the site."""
    made = {f"gallery/{name}.md": _page(name) for name in PROGRAMS}
    lines = ["# Gallery", "", "Programs in `examples/`, run when this site was built.", ""]
    lines += ['<div class="grid cards" markdown>', "", *map(_card, PROGRAMS), "", "</div>"]
    made["gallery/index.md"] = "\n".join(lines) + "\n"
    return made


def _card(name: str) -> str:
    first = _doc(name).partition("\n")[0]
    figure, _ = _figure(name)
    thumbnail = "" if figure is None else f"[{blocks.thumbnail(figure)}]({name}.md)\n\n    "
    return f"-   {thumbnail}**[{_title(name)}]({name}.md)**\n\n    {first}\n"


def _doc(name: str) -> str:
    return ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text())) or ""


def _page(name: str) -> str:
    first, _, rest = _doc(name).partition("\n")
    source = (EXAMPLES / f"{name}.py").read_text()
    code = source[source.index('"""', 3) + 3 :]
    return f"# {_title(name)}\n\n**{first}**\n{rest}\n\n{_picture(name)}\n\n```python\n{code.strip()}\n```\n"


def _picture(name: str) -> str:
    figure, note = _figure(name)
    if figure is None:
        return note
    return f'<figure class="picture">{blocks.drawn(figure)}</figure>'


@functools.cache
def _figure(name: str) -> tuple[Any, str]:
    """Return the figure that a program draws, or None, and a note that names a missing package."""
    if "\ndef figure(" not in (EXAMPLES / f"{name}.py").read_text():
        return None, ""
    sys.path.insert(0, str(EXAMPLES))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name).figure(), ""
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        return None, f"*The picture needs {error.name}, which was not installed when this page was built.*"
    finally:
        sys.path.remove(str(EXAMPLES))
