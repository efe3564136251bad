"""SciPy's functions for tensors: `from viewgrad.scipy import linalg, special, stats`.

Supported functions are differentiable. All others are SciPy's own: they accept tensors without history and return
tensors. For tensors with history they raise an `UnsupportedFunctionError` that suggests an alternative.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings

from scipy import LowLevelCallable, __version__, show_config  # type: ignore[import-untyped]

from . import (
    constants,
    elementwise,
    fft,
    fftpack,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    sparse,
    spatial,
    special,
    stats,
)

# Modules that remain SciPy's: constants, files, and functions of plain arrays, which reject tensors with a history.
PLAIN = ("cluster", "differentiate", "io", "odr", "version")
INNER = ("cluster.hierarchy", "cluster.vq", "linalg.blas", "linalg.interpolative", "linalg.lapack")
STATISTICS = ("contingency", "qmc", "sampling")
for _name in (*PLAIN, *INNER, *[f"stats.{_part}" for _part in STATISTICS]):
    if importlib.util.find_spec(f"scipy.{_name}") is None:  # in the installed version of SciPy
        continue
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # names of unimported modules
        _module = sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"scipy.{_name}")
    if _name in PLAIN:
        globals()[_name] = _module
# Deprecated names of modules, which programs still use, and windows, which are constant.
for _name, _value in {
    "ndimage.filters": ndimage,
    "ndimage.interpolation": ndimage,
    "optimize.elementwise": elementwise,
    "signal.windows": signal.windows,
    "stats.distributions": stats,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _value

__all__ = [
    "LowLevelCallable",
    "__version__",
    "constants",
    "fft",
    "fftpack",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "show_config",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]
