"""Programs that write to arrays, each written once and run by every library.

A program takes a library (see libraries.py: an array module with a few names in common) and its inputs, and returns a
number. The correct value is NumPy's. `copy` returns a new array that depends on its argument, since some libraries
forbid writing to an input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {}

VECTOR = np.array([1.0, 2.0, 3.0, 4.0])
MATRIX = np.array([[1.0, 2.0], [3.0, 4.0]])


def program(*inputs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program under its name, with the inputs at which it is run."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, tuple(np.asarray(x) for x in inputs)
        return function

    return register


# -- saved values ----------------------------------------------------------------------------------------------------


@program(VECTOR)
def overwrite_saved(lib: Any, x: Any) -> Any:
    y = x * x
    z = y * y
    y *= 0.0
    return z.sum()


@program(VECTOR)
def overwrite_part_of_saved(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    z = y[:2] * y[2:]
    y[1] = 0.0
    return z.sum()


@program(VECTOR)
def multiply_by_itself(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y *= y
    return y.sum()


@program(VECTOR)
def overwrite_result(lib: Any, x: Any) -> Any:
    y = lib.exp(x)
    z = y + 1.0
    y *= 0.0
    return (y + z).sum()


@program(0.5, 8.0)
def recurrence(lib: Any, a: Any, start: Any) -> Any:
    x = lib.zeros(4)
    x[0] = start
    for i in range(1, 4):
        x[i] = a * x[i - 1]
    return x[3]


@program(np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 1.0], [2.0, 1.0, 6.0]]))
def lu_in_place(lib: Any, matrix: Any) -> Any:
    A = lib.copy(matrix)
    for k in range(2):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= lib.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A[0, 0] * A[1, 1] * A[2, 2]


@program(VECTOR)
def write_through_detached(lib: Any, x: Any) -> Any:
    y = x * x
    z = y * y
    alias = lib.detach(y)
    alias *= 0.0
    return z.sum()


@program(VECTOR)
def memory_written_from_outside(lib: Any, x: Any) -> Any:
    buffer = np.array([5.0, 6.0, 7.0, 8.0])
    z = x * lib.share(buffer)
    buffer[...] = 0.0
    return z.sum()


@program(VECTOR)
def write_to_exported_array(lib: Any, x: Any) -> Any:
    y = x * 2.0
    z = y * y
    lib.export(y)[...] = 0.0
    return z.sum()


# -- views -----------------------------------------------------------------------------------------------------------


@program(MATRIX)
def write_through_view_read_base(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    v = base[0]
    v *= 2.0
    return base.sum()


@program(MATRIX)
def write_through_view_read_view(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    v = base[0]
    v *= 2.0
    return v.sum()


@program(MATRIX)
def write_through_base_read_old_view(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    v = base[0]
    base *= 2.0
    return (v * v).sum()


@program(MATRIX)
def write_through_one_view_read_another(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    column = base[:, 1]
    base[0] *= 2.0
    return (column * column).sum()


@program(MATRIX)
def view_of_view_then_base_then_old_view(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    row = base[0]
    element = row[1:]
    element *= 2.0
    base += 1.0
    row *= 3.0
    return (element * base[1, 1]).sum()


@program(MATRIX)
def write_through_transpose(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    base.T[0] *= 2.0
    return (base * base).sum()


@program(VECTOR)
def write_to_pieces_of_split(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    first, second = lib.split(y, 2)
    first *= 2.0
    second *= first
    return y.sum()


@program(MATRIX)
def write_to_rows_in_a_loop(lib: Any, t: Any) -> Any:
    base = lib.copy(t)
    for row in base:
        row *= 2.0
    return (base * base).sum()


@program(VECTOR)
def write_through_negative_steps(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[::-1] += x
    return (y * y).sum()


@program(VECTOR)
def view_outlives_base(lib: Any, x: Any) -> Any:
    v = lib.copy(x)[1:]
    v *= 2.0
    return v.sum()


@program(np.array([1.0 + 2.0j, 3.0 - 1.0j]))
def write_through_real_part(lib: Any, z: Any) -> Any:
    w = lib.copy(z)
    part = lib.real(w)
    part *= 10.0
    return lib.real(w * lib.conj(w)).sum()


@program(np.array(2.0))
def write_to_broadcast(lib: Any, x: Any) -> Any:
    wide = lib.broadcast_to(lib.copy(x), (3,))
    wide += 1.0
    return wide.sum()


# -- writes of every kind --------------------------------------------------------------------------------------------


@program(VECTOR)
def shift_into_itself(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[1:] = y[:-1]
    return (y * y).sum()


@program(VECTOR)
def add_to_itself_shifted(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[1:] += y[:-1]
    return (y * y).sum()


@program(MATRIX, np.array([5.0, 6.0]))
def broadcasting_write(lib: Any, t: Any, row: Any) -> Any:
    base = lib.copy(t)
    base[...] = row
    return (base * base).sum()


@program(np.array([1.0, 2.0]), np.array([3.0, 4.0], np.float32))
def casting_write(lib: Any, x: Any, y: Any) -> Any:
    out = lib.copy(y)
    out[...] = x * x
    return out.sum()


@program(VECTOR)
def boolean_mask_write(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[lib.mask([True, False, True, False])] = 0.5
    return (y * x).sum()


@program(VECTOR, np.array([5.0, 6.0]))
def repeated_indices_write(lib: Any, x: Any, values: Any) -> Any:
    y = lib.copy(x)
    y[lib.indices([0, 0])] = values
    return (y * y).sum()


@program(VECTOR)
def repeated_indices_add(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[lib.indices([0, 0, 1])] += x[1:]
    return (y * y).sum()


@program(VECTOR)
def zero_size_write(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[2:2] = 7.0
    y[2:2] *= x[2:2]
    return (y * y).sum()


@program(np.array(3.0))
def zero_dimensional_write(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    y[...] = 3.0 * x
    y[()] *= 2.0
    return y


@program(VECTOR)
def out_argument(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    lib.multiply(x, x, out=y[:])
    return (y * x).sum()


@program(VECTOR)
def where_argument(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    lib.multiply(y, x, out=y, where=lib.mask([True, False, True, False]))
    return y.sum()


@program(VECTOR)
def integer_write(lib: Any, x: Any) -> Any:
    count = lib.integers(4)
    for i in (0, 2, 2):
        count[i] += 1
    return (x * count).sum()


@program(VECTOR)
def augmented_attribute_and_item(lib: Any, x: Any) -> Any:
    class Box:
        pass

    y = lib.copy(x)
    box = Box()
    box.whole = y
    parts = [y[:2]]
    box.whole *= 2.0
    parts[0] += 1.0
    return (y * y).sum()


@program(VECTOR)
def before_and_after(lib: Any, x: Any) -> Any:
    y = x * x
    before = y * 2.0
    y += before
    y[0] = 1.0
    return (before * y).sum()


@program(VECTOR)
def write_to_input(lib: Any, x: Any) -> Any:
    x *= 2.0
    return (x * x).sum()


# -- the engine ------------------------------------------------------------------------------------------------------


@program(np.array([1.0, 2.0]))
def long_chain(lib: Any, x: Any) -> Any:
    y = lib.copy(x)
    for _ in range(20_000):
        y = y * 1.0001
    return y.sum()
