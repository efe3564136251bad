"""Dual numbers: NumPy arrays with derivatives, a reference for programs with views and in-place writes.

A `DualArray` is a window on memory, and the same window on a second memory, which holds the change of each element
when the leaves move along a direction. Every view is taken of both, and every write is made to both, so NumPy alone
determines which arrays share memory. A program thus computes its values and its directional derivative, up to
rounding, without a graph or an engine.
"""

from __future__ import annotations

import numpy as np

# The derivative of each function, from its result, its arguments and how these change.
DERIVATIVES = {
    np.negative: lambda r, a, da: -da,
    np.positive: lambda r, a, da: da,
    np.sin: lambda r, a, da: np.cos(a) * da,
    np.cos: lambda r, a, da: -np.sin(a) * da,
    np.tanh: lambda r, a, da: (1 - r * r) * da,
    np.arctan: lambda r, a, da: da / (1 + a * a),
    np.square: lambda r, a, da: 2 * a * da,
    np.conjugate: lambda r, a, da: np.conjugate(da),
    np.abs: lambda r, a, da: (np.conjugate(np.sign(a)) * da).real,
    np.add: lambda r, a, b, da, db: da + db,
    np.subtract: lambda r, a, b, da, db: da - db,
    np.multiply: lambda r, a, b, da, db: da * b + a * db,
    np.true_divide: lambda r, a, b, da, db: (da - r * db) / b,
    np.maximum: lambda r, a, b, da, db: np.where(a == b, (da + db) / 2, np.where(a > b, da, db)),
    np.minimum: lambda r, a, b, da, db: np.where(a == b, (da + db) / 2, np.where(a < b, da, db)),
    np.sum: lambda r, a, da, **options: np.sum(da, **options),
    np.mean: lambda r, a, da, **options: np.mean(da, **options),
    np.cumsum: lambda r, a, da, **options: np.cumsum(da, **options),
    np.roll: lambda r, a, shift, da, _, **options: np.roll(da, shift, **options),
    np.matmul: lambda r, a, b, da, db: da @ b + a @ db,
}


class DualArray:
    """An array `value` and, in the same layout, its directional `change`."""

    frozen = False  # under no_grad: results do not change, and writes keep changes as they are

    def __init__(self, value, change=None):
        self.value = np.asarray(value)
        self.change = np.zeros_like(self.value, dtype=self._dtype()) if change is None else change

    def _dtype(self):
        return self.value.dtype if self.value.dtype.kind in "fc" else float

    @classmethod
    def computed(cls, value, change):
        """Return a new value, whose tangent has the same layout."""
        value = np.asarray(value)
        change = 0 if DualArray.frozen else change
        result = cls(value)
        if value.dtype.kind in "fc":
            result.change[...] = change.real if value.dtype.kind == "f" and np.iscomplexobj(change) else change
        return result

    # -- what it is ----------------------------------------------------------------------------------------------------

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)

    # -- views ---------------------------------------------------------------------------------------------------------

    def _view(self, take):
        return DualArray(take(self.value), take(self.change))

    def __getitem__(self, index):
        if is_basic(index) and not isinstance(self.value[index], np.generic):
            index = (*index, ...) if isinstance(index, tuple) and ... not in index else index
            index = (index, ...) if isinstance(index, int) else index
            return self._view(lambda array: array[index])
        return DualArray.computed(self.value[index], self.change[index])

    def broadcast_to(self, shape):
        return self._view(lambda array: np.broadcast_to(array, shape))

    T = property(lambda self: self._view(lambda array: array.T))
    real = property(lambda self: self._view(lambda array: array.real))
    imag = property(lambda self: self._view(lambda array: array.imag))

    def transpose(self, *axes):
        return self._view(lambda array: array.transpose(*axes))

    def reshape(self, *shape):
        return self._view(lambda array: array.reshape(*shape))

    def diagonal(self, *options):
        def take(array):
            window = array.diagonal(*options)
            window.flags.writeable = True
            return window

        return self._view(take)

    def unbind(self, dim):
        return [self[(slice(None),) * dim + (i, ...)] for i in range(self.shape[dim])]

    def detach(self):
        return DualArray(self.value)

    def clone(self):
        return DualArray.computed(self.value.copy(order="K"), self.change)

    # -- writes --------------------------------------------------------------------------------------------------------

    def write(self, index, value, change):
        """Write to `self[index]` a value and its change."""
        self.value[index] = value
        if not DualArray.frozen:
            self.change[index] = change.real if self.value.dtype.kind == "f" and np.iscomplexobj(change) else change

    def __setitem__(self, index, other):
        other = as_dual(other)
        self.write(index, other.value.copy(), other.change.copy())

    def copy_(self, other):
        self[...] = other
        return self

    def zero_(self):
        return self.copy_(0.0)

    def index_accumulate_(self, index, other):
        other = as_dual(other)
        value, change = other.value.copy(), other.change.copy()
        np.add.at(self.value, index, value)
        if not DualArray.frozen:
            np.add.at(self.change, index, change)
        return self

    # -- functions -----------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc, kind, *inputs, out=None, where=True):
        assert kind == "__call__"
        values = [given.value if isinstance(given, DualArray) else given for given in inputs]  # numbers adapt
        inputs = [as_dual(given) for given in inputs]
        mask = ... if where is True else np.broadcast_to(where, out[0].shape)
        value = ufunc(*values)
        change = DERIVATIVES[ufunc](value, *values, *(given.change for given in inputs))
        if out is None:
            return DualArray.computed(value, change)
        value, change = np.broadcast_to(value, out[0].shape), np.broadcast_to(change, out[0].shape)
        out[0].write(mask, value[mask], change[mask])
        return out[0]

    def __array_function__(self, function, types, args, kwargs):
        if function in (np.concatenate, np.stack):
            parts = [as_dual(part) for part in args[0]]
            return DualArray.computed(
                function([part.value for part in parts], **kwargs), function([part.change for part in parts], **kwargs)
            )
        if function is np.flip:
            return args[0]._view(lambda array: np.flip(array, **kwargs))
        if function is np.where:
            mask, *parts = args
            values = [part.value if isinstance(part, DualArray) else part for part in parts]
            return DualArray.computed(
                np.where(mask, *values), np.where(mask, *(as_dual(part).change for part in parts))
            )
        inputs = [as_dual(given) for given in args]
        values = [given.value for given in inputs]
        values = [int(value) if value.dtype.kind == "i" and not value.ndim else value for value in values]
        value = function(*values, **kwargs)
        change = DERIVATIVES[function](value, *values, *(given.change for given in inputs), **kwargs)
        return DualArray.computed(value, change)


def as_dual(value):
    return value if isinstance(value, DualArray) else DualArray(value)


def is_basic(index):
    items = index if isinstance(index, tuple) else (index,)
    return all(item is None or item is ... or isinstance(item, int | slice) for item in items)


def _operator(ufunc):
    return (
        lambda self, other: ufunc(self, other),
        lambda self, other: ufunc(other, self),
        (lambda self, other: ufunc(self, other, out=self)),
    )


for _name, _ufunc in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "matmul": np.matmul,
}.items():
    for _prefix, _method in zip(("__", "__r", "__i"), _operator(_ufunc)):
        setattr(DualArray, f"{_prefix}{_name}__", _method)
for _name, _ufunc in {
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "arctan": np.arctan,
    "square": np.square,
    "neg": np.negative,
    "abs": np.abs,
    "conj": np.conjugate,
}.items():
    setattr(DualArray, _name, lambda self, ufunc=_ufunc: ufunc(self))
    setattr(DualArray, f"{_name}_", lambda self, ufunc=_ufunc: ufunc(self, out=self))
