"""Named results of several parts, as in NumPy: `svd(x).S`, `eigh(x).eigenvalues`, `slogdet(x).logabsdet`."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...tensor.tensor import FUNCTIONS, Tensor

# For each NumPy function, the name of the corresponding method, and the names of the parts.
NAMED: Final[dict[Any, tuple[str, tuple[str, ...]]]] = {
    np.linalg.svd: ("svd", ("U", "S", "Vh")),
    np.linalg.eigh: ("eigh", ("eigenvalues", "eigenvectors")),
    np.linalg.eig: ("eig", ("eigenvalues", "eigenvectors")),
    np.linalg.qr: ("qr", ("Q", "R")),
    np.linalg.slogdet: ("slogdet", ("sign", "logabsdet")),
    np.unique_all: ("unique_all", ("values", "indices", "inverse_indices", "counts")),
    np.unique_counts: ("", ("values", "counts")),
    np.unique_inverse: ("", ("values", "inverse_indices")),
}


def _named(function: Callable[..., Any], made: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return made(*result) if type(result) is tuple and len(result) == len(made._fields) else result

    if hasattr(function, "means"):  # the operator, which viewgrad.numpy calls without the adapter of NumPy's function
        call.means = _named(function.means, made)  # type: ignore[attr-defined]
    return call


def _install() -> None:
    for numpy, (method, fields) in NAMED.items():
        name = f"{numpy.__name__.title().replace('_', '')}Result"
        made = namedtuple(name, fields)  # type: ignore[misc]
        FUNCTIONS.decorate(numpy, functools.partial(_named, made=made))
        if method:
            setattr(Tensor, method, _named(getattr(Tensor, method), made))


_install()
