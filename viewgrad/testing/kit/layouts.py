"""Memory layouts of tensors, as lines of Python code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ...type_aliases import Array

# How to create an operand {v} with the value of the leaf {a} (whose array is {n}) from a base {b}.
INPUT_LAYOUTS: Final[dict[str, str]] = {
    "in tensors of their own": "{v} = vg.clone({a})",
    "transposed": "{b} = vg.clone(vg.contiguous({a}.T)); {v} = {b}.T",
    "reversed": "{b} = vg.clone({a}[::-1]); {v} = {b}[::-1]",
    "reversed along the last axis": "{b} = vg.clone({a}[..., ::-1]); {v} = {b}[..., ::-1]",
    "with gaps": "{b} = vg.ones((*{a}.shape[:-1], 2 * {a}.shape[-1]), dtype={a}.dtype); {v} = {b}[..., ::2]; "
    "{v}[...] = {a}",
    "in rows of a wider array": "{b} = vg.ones((*{a}.shape[:-1], {a}.shape[-1] + 1), dtype={a}.dtype); "
    "{v} = {b}[..., :-1]; {v}[...] = {a}",
    "with an offset": "{b} = vg.zeros((3, *{a}.shape), dtype={a}.dtype); {b}[1] = {a}; {v} = {b}[1, ...]",
    "as a view of a view": "{b} = vg.zeros((4, *{a}.shape), dtype={a}.dtype); {v} = {b}[1:].T[..., 1].T; "
    "{v}.copy_({a})",
    "as a part of complex numbers": "{b} = vg.ones({a}.shape, dtype=complex); {b}.imag.copy_({a}); {v} = {b}.imag",
    "as pairs of real numbers": "{b} = vg.clone({a}.view_as_real()); {v} = {b}.view_as_complex()",
}
# The same for leaves in memory owned by NumPy.
FOREIGN_LAYOUTS: Final[dict[str, str]] = {
    "in column order": "{v} = vg.from_numpy(np.array({n}, order='F'))",
    "reversed, in foreign memory": "{v} = vg.from_numpy(np.asarray(np.flip(np.flip({n}).copy())))",
    "with gaps, in foreign memory": "{v} = vg.from_numpy(np.repeat({n}[..., None], 2, -1)[..., 0])",
    "read-only": "{b} = {n}.copy(); {b}.flags.writeable = False; {v} = vg.from_numpy({b})",
}


def fits(name: str, array: Array) -> bool:
    """Return whether an array can have this layout."""
    if name in ("reversed", "reversed along the last axis", "with gaps") and not array.ndim:
        return False
    if name in ("transposed", "in rows of a wider array") and array.ndim < 2:
        return False
    if name == "as a part of complex numbers":
        return bool(array.dtype == np.float64)
    if name == "as pairs of real numbers":
        return bool(array.dtype == np.complex128)
    return True


# Memory layouts of a gradient with the values of the array {u}, and whether all of its elements must be equal.
GRADIENT_LAYOUTS: Final[dict[str, tuple[str, bool]]] = {
    "in column order": ("vg.from_numpy(np.array({u}, order='F'))", False),
    "reversed": ("vg.from_numpy(np.asarray(np.flip(np.flip({u}).copy())))", False),
    "with gaps": ("vg.from_numpy(np.repeat({u}[..., None], 2, -1)[..., 0])", False),
    "in rows of a wider array": (
        "vg.from_numpy(np.concatenate([{u}, {u} + 1], -1)[..., : {u}.shape[-1]] if {u}.ndim else {u})",
        False,
    ),
    "with an offset": ("vg.from_numpy(np.stack([{u}, {u} + 1, {u}]))[2, ...]", False),
    "of equal elements without strides": (
        "vg.Tensor(np.resize({u}, (1,) * {u}.ndim)).expand(*{u}.shape)",
        True,
    ),
}


def _first_row(array: Array) -> Array:
    return array[:1].copy()


def _first_column(array: Array) -> Array:
    return array[..., :1].copy()


def _flat(array: Array) -> Array:
    """Return the array from which windows with overlapping rows are taken."""
    rows, columns = array.shape[0], int(np.prod(array.shape[1:]))
    return np.resize(array.reshape(-1), rows + max(columns, 1) - 1)


# Arrays that are expanded to the shape of another array, and how; elements of the result share memory.
OVERLAPS: Final[dict[str, tuple[Callable[[Array], Array], str]]] = {
    "expanded along the first axis": (_first_row, "{a}.expand(*{shape})"),
    "expanded along the last axis": (_first_column, "{a}.expand(*{shape})"),
    "in rows that overlap": (
        _flat,
        "{a}.unfold(0, {a}.shape[0] - {shape}[0] + 1, 1).reshape({shape}) if len({shape}) > 1 else {a}",
    ),
}
