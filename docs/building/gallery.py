"""The gallery: a page for each program in `examples/`, with the picture that it makes when the site is built."""

from __future__ import annotations

import ast
import functools
import importlib
import sys
import warnings
from pathlib import Path

import blocks

__all__ = ["PROGRAMS", "navigation", "pages"]

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
TITLES = {
    "co2_forecast": "A forecast of CO2",
    "denoising": "Noise out of an image, in place",
    "gauss_seidel": "Gauss-Seidel in an optimisation",
    "inverse_heat": "Heat conduction backward",
    "jax_sources": "Heat sources, found by JAX",
    "kalman_missing": "A Kalman filter with gaps",
    "n_body": "Throwing a satellite",
    "pymc_local_level": "A level with gaps, sampled by PyMC",
    "panel_fit": "A panel of series on a cluster",
    "sequence_alignment": "Sequence alignment, learnt",
    "solar_cell": "A solar cell, through an adopted package",
    "soft_dtw_barycentre": "Soft-DTW barycentre",
    "torch_smoothing": "A loop in a PyTorch network",
}
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def navigation() -> list[dict[str, str]]:
    """The pages of the programs, by title."""
    return [{_title(name): f"gallery/{name}.md"} for name in PROGRAMS]


def _title(name: str) -> str:
    return TITLES.get(name, name.replace("_", " ").capitalize())


@functools.cache
def pages() -> dict[str, str]:
    """The pages: where they are in the site, and their Markdown."""
    made = {f"gallery/{name}.md": _page(name) for name in PROGRAMS}
    lines = ["# Gallery", "", "Programs in `examples/`, run when this site was built.", ""]
    for name in PROGRAMS:
        lines.append(f"- [{_title(name)}]({name}.md): {_doc(name).partition(chr(10))[0]}")
    made["gallery/index.md"] = "\n".join(lines) + "\n"
    return made


def _doc(name: str) -> str:
    return ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text())) or ""


def _page(name: str) -> str:
    first, _, rest = _doc(name).partition("\n")
    source = (EXAMPLES / f"{name}.py").read_text()
    code = source[source.index('"""', 3) + 3 :]
    return f"# {_title(name)}\n\n**{first}**\n{rest}\n\n{_picture(name)}\n\n```python\n{code.strip()}\n```\n"


def _picture(name: str) -> str:
    if "\ndef figure(" not in (EXAMPLES / f"{name}.py").read_text():
        return ""
    sys.path.insert(0, str(EXAMPLES))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picture = importlib.import_module(name).figure()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("jax", "pvlib", "pymc", "pytensor", "torch"):
            raise
        return f"*The picture needs {error.name}, which was not there when this page was built.*"
    finally:
        sys.path.remove(str(EXAMPLES))
    return f'<figure class="picture">{blocks.drawn(picture)}</figure>'
