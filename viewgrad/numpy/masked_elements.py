"""The elements of masked tensors: values, masks, selection, assignment and rearrangement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, plain_values
from ..tensor.creation import as_operand
from ..tensor.tensor import Tensor


class MaskedElements:
    """A tensor with a mask that marks invalid elements.

    Arguments:
        data: the values.
        mask: the mask, which is true for masked elements.
        fill_value: the value with which `filled` replaces masked elements.
    """

    def __init__(self, data: Any, mask: Any = False, fill_value: Any = None) -> None:
        self.data = as_operand(as_argument(data))
        self.fill_value = np.ma.default_fill_value(self.data.dtype) if fill_value is None else fill_value
        self.hardmask = False
        # Views share the mask of an array that has one; as in NumPy, an array has no mask until one is given or
        # assigned.
        self._is_shared = mask is not False and mask is not np.ma.nomask
        self._mask = np.array(np.broadcast_to(np.asarray(plain_values(mask), bool), self.data.shape))

    @property
    def mask(self) -> Any:
        """The mask, True for masked values. It can be assigned to as a whole or in part."""
        return self._mask

    @mask.setter
    def mask(self, mask: Any) -> None:
        given = np.asarray(plain_values(mask), bool)
        self._mask[...] = self._mask | given if self.hardmask else given
        self._is_shared = True

    def _view(self, data: Any, mask: Any) -> Self:
        """Return other elements of the same memory with the same settings."""
        made = type(self)(data, mask, self.fill_value)
        made.hardmask, made._is_shared = self.hardmask, self._is_shared
        if self._is_shared:
            made._mask = mask
        return made

    def share_mask(self, mask: Any) -> None:
        """Use a boolean array of the same shape as the mask, without a copy."""
        self._mask, self._is_shared = mask, True

    # -- attributes ----------------------------------------------------------------------------------------------------

    baseclass = np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the dimensions."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """The number of elements, including masked ones."""
        return self.data.size

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""
        return self.data.itemsize

    @property
    def nbytes(self) -> int:
        """The number of bytes of all values."""
        return self.data.nbytes

    @property
    def sharedmask(self) -> bool:
        """True if the mask is shared with other arrays."""
        return self._is_shared

    @property
    def T(self) -> Self:
        """The transpose."""
        return self._view(self.data.T, self._mask.T)

    @property
    def mT(self) -> Self:
        """The transpose of the last two dimensions."""
        return self._view(self.data.mT, np.swapaxes(self._mask, -1, -2))

    @property
    def real(self) -> Self:
        """The real parts."""
        return self._view(self.data.real, self._mask)

    @property
    def imag(self) -> Self:
        """The imaginary parts."""
        return self._view(self.data.imag, self._mask)

    @property
    def flat(self) -> Any:
        """An iterator over the elements, with `numpy.ma.masked` for masked ones."""
        return iter(self.ravel())

    def get_fill_value(self) -> Any:
        """Return the value that `filled` uses."""
        return self.fill_value

    def set_fill_value(self, value: Any = None) -> None:
        """Set the value that `filled` uses, by default the default of the dtype."""
        self.fill_value = np.ma.default_fill_value(self.dtype) if value is None else value

    def harden_mask(self) -> Self:
        """Prevent assignments from unmasking values."""
        self.hardmask = True
        return self

    def soften_mask(self) -> Self:
        """Allow assignments to unmask elements; this is the default."""
        self.hardmask = False
        return self

    def unshare_mask(self) -> Self:
        """Copy the mask, so that assignments to it do not affect other arrays."""
        self._mask, self._is_shared = self._mask.copy(), False
        return self

    def shrink_mask(self) -> Self:
        """Return the array itself: a mask without masked elements has no cost here."""
        return self

    # -- access --------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._mask)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in np.arange(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((plain_values(self.data.detach()) == plain_values(value)).any())

    def __getitem__(self, index: Any) -> Any:
        index = _index(index)
        data, mask = self.data[index], self._mask[index]
        if np.ndim(mask) or not mask:
            return self._view(data, mask) if np.ndim(mask) else data
        return np.ma.masked

    def __setitem__(self, index: Any, value: Any) -> None:
        index = _index(index)
        if value is np.ma.masked:
            self._mask[index] = True
            self._is_shared = True
            return
        data, mask = values_and_mask(value)
        if self.hardmask:
            open_to = ~self._mask[index]
            self.data[index] = np.where(open_to, data, self.data[index])
            self._mask[index] = self._mask[index] | np.broadcast_to(mask, open_to.shape)
            return
        self.data[index] = data
        self._mask[index] = mask
        self._is_shared |= bool(np.any(mask))

    def item(self, *place: Any) -> Any:
        """Return an element as a number.

        Raises:
            UnsupportedFunctionError: if the element is masked.
        """
        if np.any(self._mask.item(*place)):
            raise lost("numpy.ma.MaskedArray.item", "masked tensors keep no values below masks; use filled()")
        return self.data.item(*place)

    def tolist(self) -> Any:
        """Return the values as nested lists, with None for masked ones."""
        if self.ndim == 1:
            return [None if each is np.ma.masked else each for each in self]
        return [row.tolist() for row in self]

    def filled(self, fill_value: Any = None) -> Any:
        """Return the tensor with masked values replaced by a fill value."""
        value = self.fill_value if fill_value is None else fill_value
        found: Any = np.where(self._mask, value, self.data) if self._mask.any() else self.data
        return found

    def compressed(self) -> Tensor:
        """Return the unmasked values as a one-dimensional tensor."""
        found: Tensor = self.data[~self._mask]
        return found

    def count(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return the number of unmasked values."""
        return (~self._mask).sum(axis=axis, keepdims=keepdims)

    def fill(self, value: Any) -> None:
        """Assign a value to all elements, including masked ones; the mask does not change."""
        self.data[...] = value

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        """Assign values to elements at indices of the flattened array."""
        data, hidden = values_and_mask(values)
        places = np.asarray(plain_values(indices))
        if self.hardmask:
            kept = ~np.take(self._mask, places, mode=mode)
            data, hidden = (np.resize(each, places.shape)[kept] for each in (data, hidden))
            places = places[kept]
        own: Any = self.data
        np.put(own, places, data, mode)
        np.put(self._mask, places, hidden, mode)
        self._is_shared |= bool(np.any(hidden))

    def sort(
        self, axis: Any = -1, kind: Any = None, order: Any = None, endwith: bool = True, fill_value: Any = None,
        *, stable: Any = False,
    ) -> None:  # fmt: skip
        """Sort the values along a dimension in place, with masked values last."""
        options = {"kind": kind, "endwith": endwith, "fill_value": fill_value}
        self[...] = self.sorted(axis, **options)

    def sorted(self, axis: Any = -1, **options: Any) -> Self:
        """Return the values sorted along a dimension; the options are those of `numpy.ma.argsort`."""
        found = self.ravel() if axis is None else self
        axis = -1 if axis is None else axis
        order = without_history(found).argsort(axis=axis, **options)
        data, mask = (np.take_along_axis(each, order, axis=axis) for each in (found.data, found._mask))
        return type(self)(data, mask, self.fill_value)

    def argpartition(self, *args: Any, **kwargs: Any) -> Any:
        """Return the indices that partition the values; masks are ignored, as in NumPy."""
        return np.argpartition(plain_values(self.data.detach()), *args, **kwargs)

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        """Return the insertion points of values in a sorted array; masks are ignored, as in NumPy."""
        wanted = plain_values(values_and_mask(v)[0].detach())
        return np.searchsorted(plain_values(self.data.detach()), wanted, side, sorter)

    # -- rearrangements ------------------------------------------------------------------------------------------------

    def copy(self, order: Any = "C") -> Self:
        """Return a copy with its history."""
        made = type(self)(self.data.clone(), self._mask, self.fill_value)
        made.hardmask, made._is_shared = self.hardmask, False
        return made

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def view(self, dtype: Any = None, type: Any = None, fill_value: Any = None) -> Any:
        """Return a view of the same elements; with a class of plain arrays, the values alone.

        Raises:
            UnsupportedFunctionError: for another dtype.
        """
        kind = dtype if type is None else type
        if isinstance(kind, _CLASS) and (issubclass(Tensor, kind) or issubclass(np.ndarray, kind)):
            return self.data
        if kind is not None and not (isinstance(kind, _CLASS) and issubclass(kind, MaskedElements | np.ma.MaskedArray)):
            raise lost("numpy.ma.MaskedArray.view", "masked tensors cannot be viewed in another dtype")
        made = self._view(self.data, self._mask)
        made.fill_value = self.fill_value if fill_value is None else fill_value
        return made

    def reshape(self, *shape: Any, order: Any = "C") -> Self:
        """Return the elements in another shape."""
        return self._view(self.data.reshape(*shape, order=order), self._mask.reshape(*shape, order=order))

    def ravel(self, order: Any = "C") -> Self:
        """Return the elements as a one-dimensional tensor."""
        return self.reshape(-1, order=order)

    def flatten(self, order: Any = "C") -> Self:
        """Return a copy of the elements as a one-dimensional tensor."""
        return self.copy().ravel(order)

    def resize(self, *shape: Any, **options: Any) -> None:
        """Raise an error, as NumPy does."""
        raise ValueError(
            "A masked array does not own its data and therefore cannot be resized.\n"
            "Use the numpy.ma.resize function instead."
        )

    def astype(self, dtype: Any, **options: Any) -> Self:
        """Return the elements converted to another dtype."""
        return type(self)(self.data.astype(dtype), self._mask, self.fill_value)

    def transpose(self, *axes: Any) -> Self:
        """Return the elements with permuted dimensions."""
        return self._view(self.data.transpose(*axes), self._mask.transpose(*axes))

    def squeeze(self, axis: Any = None) -> Self:
        """Return the elements without dimensions of length 1."""
        return self._view(self.data.squeeze(axis), self._mask.squeeze(axis))

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Return the elements with two dimensions swapped."""
        return self._view(np.swapaxes(self.data, axis1, axis2), np.swapaxes(self._mask, axis1, axis2))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Return the elements on a diagonal."""
        data, mask = (np.diagonal(part, offset, axis1, axis2) for part in (self.data, self._mask))
        return type(self)(data, mask, self.fill_value)

    def repeat(self, repeats: Any, axis: Any = None) -> Self:
        """Return each element repeated."""
        times = plain_values(repeats)
        data, mask = (np.repeat(part, times, axis) for part in (self.data, self._mask))
        return type(self)(data, mask, self.fill_value)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """Return the elements at the given indices; masked indices yield masked elements."""
        places, hidden = places_and_mask(indices)
        data, mask = (np.take(part, places, axis=axis, mode=mode) for part in (self.data, self._mask))
        if np.any(hidden):
            where = 0 if axis is None else axis % self.ndim
            mask = mask | hidden.reshape(hidden.shape + (1,) * (np.ndim(mask) - where - hidden.ndim))
        found = type(self)(data, mask, self.fill_value) if np.ndim(mask) else np.ma.masked if mask else data
        return delivered(found, out)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """Return the elements for which a condition is true; the mask of the condition is ignored, as in NumPy."""
        chosen = np.asarray(plain_values(values_and_mask(condition)[0].detach()), bool)
        data, mask = (np.compress(chosen, part, axis=axis) for part in (self.data, self._mask))
        return delivered(type(self)(data, mask, self.fill_value), out)

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Return the elements rounded to a number of decimals."""
        return delivered(type(self)(np.round(self.data, decimals), self._mask, self.fill_value), out)

    def conj(self) -> Self:
        """Return the complex conjugates."""
        return type(self)(self.data.conj(), self._mask, self.fill_value)

    conjugate = conj


_CLASS = type  # the parameter of `view` has its name


def delivered(found: Any, out: Any) -> Any:
    """Return a result, written into `out` if it is given."""
    if out is None:
        return found
    out[...] = found
    return out


def unmasked(value: Any, name: str) -> Any:
    """Replace masked tensors among an argument, also in lists, by their values, for a function that ignores masks.

    Raises:
        UnsupportedFunctionError: if any value is masked, since NumPy's value there depends on how the array was
            computed.
    """
    if isinstance(value, list | tuple):
        return type(value)([unmasked(each, name) for each in value])
    if not isinstance(value, MaskedElements):
        return value
    if value.mask.any():
        raise lost(
            name,
            "it ignores masks, and masked tensors keep no values below them; use filled() or the function of numpy.ma",
        )
    return value.data


def _index(index: Any) -> Any:
    """Convert an index to NumPy's types; masked conditions are replaced by their values."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    return plain_values(index.data if isinstance(index, MaskedElements) else index)


def values_and_mask(value: Any) -> tuple[Any, Any]:
    """Return the values and the mask of an operand."""
    if isinstance(value, list | tuple) and any(isinstance(each, MaskedElements) for each in value):
        found = [values_and_mask(each) for each in value]
        return np.stack([data for data, _ in found]), np.stack([mask for _, mask in found])
    if isinstance(value, MaskedElements):
        return value.data, value.mask
    if isinstance(value, np.ma.MaskedArray):
        return as_operand(np.ma.getdata(value)), np.ma.getmaskarray(value)
    data = as_operand(as_argument(value))
    return data, np.zeros(data.shape, bool)


def places_and_mask(value: Any) -> tuple[Any, Any]:
    """Return indices, with 0 for masked ones, and their mask."""
    if isinstance(value, np.ma.MaskedArray):
        return value.filled(0), np.ma.getmaskarray(value)
    places = np.asarray(plain_values(value))
    return places, np.zeros(places.shape, bool)


def without_history(value: Any) -> Any:
    """Convert masked tensors, also in lists, to NumPy's masked arrays."""
    if isinstance(value, list | tuple):
        return type(value)([without_history(each) for each in value])
    if isinstance(value, MaskedElements):
        return np.ma.array(plain_values(value.data.detach()), mask=value.mask)
    return plain_values(value.detach()) if isinstance(value, Tensor) else value
