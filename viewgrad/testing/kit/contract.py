"""The contract of an operator: its domain, structures and options, as declared by its author."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ...tensor.tensor import Tensor
from ...type_aliases import Array
from .arguments import Example, mapped, slots_in

Interval = tuple[float, float]

# the smallest eigenvalue of derived positive definite matrices, relative to the largest one
SMALLEST_EIGENVALUE: Final = 0.05
WITHIN: Final = 1e-9  # the relative distance up to which an array counts as having a structure


@attrs.frozen(eq=False)
class Contract:
    """The author's declarations about an operator.

    Arguments:
        inplace: its in-place form, or None.
        reference: the same function for arrays, or None.
        surrogate: the function whose derivative is used as the gradient, or None for the operator itself.
        domain: the interval of all arguments, or one interval (or None) for each.
        complex: whether it supports complex numbers; None to find out.
        valid: a function that returns whether a call is valid, or None if all accepted calls are.
        structure: by argument, the set of matrices that contains it.
        options: by argument, the values to try.
        whole: the arguments for which a sequence was passed that is one value and no list of values to try.
        disturb: a function, called between two calls, that changes state the operator may have.
    """

    inplace: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    surrogate: Callable[..., Any] | None = None
    domain: Any = None
    complex: bool | None = None
    valid: Callable[..., bool] | None = None
    structure: Mapping[Any, Any] = attrs.Factory(dict)
    options: Mapping[str, Sequence[Any]] = attrs.Factory(dict)
    whole: Sequence[str] = ()
    disturb: Callable[..., Any] | None = None

    def domains(self, example: Example, parameters: Sequence[str]) -> dict[int, Interval]:
        """Return the domain of each tensor of a call, by slot, if it is bounded."""
        domain = self.domain
        if domain is None:
            return {}
        if isinstance(domain, Mapping):
            each = dict(domain)
        elif all(isinstance(end, int | float | np.number) for end in domain):
            return dict.fromkeys(range(len(example.arrays)), _interval(domain))
        else:
            each = dict(enumerate(domain))
        found: dict[int, Interval] = {}
        for place, interval in each.items():
            if interval is not None:
                found |= dict.fromkeys(slots_of(example, place, parameters, "domain"), _interval(interval))
        return found

    def structures(self, example: Example, parameters: Sequence[str]) -> dict[int, Structure]:
        """Return the structure of each tensor of a call, by slot, if it has one."""
        found = {}
        for place, given in self.structure.items():
            for slot in slots_of(example, place, parameters, "structure"):
                found[slot] = structure_of(given, example.arrays[slot], place)
        return found


def _interval(given: Any) -> Interval:
    """Return an interval as two floats.

    Raises:
        ValueError: for anything but a pair of numbers.
    """
    try:
        low, high = given
        return float(low), float(high)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"domain= has {given!r} in place of an interval (low, high); pass one interval, or one or None for each "
            "argument"
        ) from error


def require_within(example: Example, domains: Mapping[int, Interval]) -> None:
    """Check that a call lies in its declared domains.

    Raises:
        ValueError: if it does not.
    """
    for slot, (low, high) in domains.items():
        array = example.arrays[slot]
        outside = array[(array < low) | (array > high)] if array.dtype.kind == "f" else array[:0]
        if outside.size:
            raise ValueError(
                f"{example.named(slot)} of the call has {float(outside.flat[0]):g}, which is outside its domain "
                f"({low:g}, {high:g})"
            )


@attrs.frozen(eq=False)
class Structure:
    """A set of arrays: symmetric, triangular or positive definite matrices, or a set defined by the user.

    Arguments:
        name: for messages.
        tangent: the projection of perturbations onto the tangent space of the set.
        project: the projection of an array onto the set.
    """

    name: str
    tangent: Callable[[Array], Array]
    project: Callable[[Array], Array]

    def contains(self, array: Array) -> bool:
        """Return whether an array lies in the set."""
        try:
            return bool(np.allclose(self.tangent(array), array, rtol=WITHIN, atol=WITHIN))
        except Exception:  # a user's projection may raise anything for other shapes
            return False

    def jacobian(self, array: Array) -> Array:
        """Return the derivative of the projection, as a real matrix."""
        kind = complex if array.dtype.kind == "c" else float
        start = np.array(array, kind, order="C").reshape(-1).view(float)

        def at(vector: Array) -> Array:
            projected = np.asarray(self.tangent(vector.view(kind).reshape(array.shape)), kind)
            return np.array(projected, order="C").reshape(-1).view(float)

        columns = []
        for place in range(start.size):
            step = np.zeros(start.size)
            step[place] = 2.0**-17 * max(1.0, float(np.abs(start[place])))
            with np.errstate(all="ignore"):  # infinite elements
                columns.append((at(start + step) - at(start - step)) / (2 * step[place]))
        jacobian = np.array(columns).T.reshape(start.size, start.size)
        rounded = np.round(jacobian * 2.0**20) / 2.0**20  # the entries of linear projections are 0, 1/2 and 1
        return np.where(np.abs(rounded - jacobian) < 1e-9, rounded, jacobian)


def _symmetric(array: Array) -> Array:
    return (array + np.swapaxes(array, -1, -2).conj()) / 2


def _positive_definite(array: Array) -> Array:
    values, vectors = np.linalg.eigh(_symmetric(array))
    floor = SMALLEST_EIGENVALUE * np.abs(values).max(axis=-1, keepdims=True, initial=1e-3)
    matrix: Array = (vectors * np.maximum(np.abs(values), floor)[..., None, :]) @ np.swapaxes(vectors, -1, -2).conj()
    return _symmetric(matrix)


STRUCTURES: Final = ("symmetric", "triangular", "lower triangular", "upper triangular", "positive definite")


def structure_of(given: Any, array: Array, place: Any) -> Structure:
    """Return the structure with a given name or projection.

    Raises:
        ValueError: for an unknown name, or an array that does not have it.
    """
    if callable(given):
        structure = Structure(getattr(given, "__name__", "the structure"), given, given)
    elif given == "symmetric":
        structure = Structure("symmetric", _symmetric, _symmetric)
    elif given == "positive definite":
        structure = Structure("positive definite", _symmetric, _positive_definite)
    elif given in ("triangular", "lower triangular", "upper triangular"):
        lower = given == "lower triangular" or (given == "triangular" and not np.triu(array, 1).any())
        cut = np.tril if lower else np.triu
        structure = Structure("lower triangular" if lower else "upper triangular", cut, cut)
    else:
        told = near_matches(str(given), STRUCTURES)
        raise ValueError(f"there is no structure {given!r}; {told}or pass a projection")
    if not structure.contains(array):
        raise ValueError(f"argument {place!r} is not {structure.name}: its projection differs from it")
    return structure


def slots_of(example: Example, place: Any, parameters: Sequence[str], of: str) -> list[int]:
    """Return the slots in the argument at a position or with a name.

    Raises:
        ValueError: if there is no such argument.
    """
    if isinstance(place, int) and place < len(example.args):
        return slots_in(example.args[place])
    if place in example.kwargs:
        return slots_in(example.kwargs[place])
    if place in parameters and parameters.index(place) < len(example.args):
        return slots_in(example.args[parameters.index(place)])
    if place in parameters:
        return []  # omitted in this call
    known = [*parameters, *example.kwargs]
    told = near_matches(str(place), known).rstrip("; ")
    raise ValueError(f"{of}= names the argument {place!r}, which the call does not have; {told}")


def near_matches(name: str, known: Sequence[str]) -> str:
    """Return a hint for an error message: similar names, or all names."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}? "
    return f"there are {', '.join(known)}; " if known else ""


def guarded(
    function: Callable[..., Any],
    contract: Contract,
    structures: Mapping[Any, Structure],
    refuse: Callable[[str], Exception],
) -> Callable[..., Any]:
    """Wrap a function so that it rejects calls outside the declared domain.

    Arguments:
        structures: the structure required of an argument, by name or position.
        refuse: a function that creates the error to raise.
    """

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        values = mapped(_array_of, args), mapped(_array_of, kwargs)
        for place, structure in structures.items():
            value = values[1].get(place) if isinstance(place, str) else values[0][place] if place < len(args) else None
            if isinstance(value, np.ndarray) and not structure.contains(value):
                raise refuse(f"argument {place!r} is not {structure.name}")
        if contract.valid is not None:
            try:
                meant = contract.valid(*values[0], **values[1])
            except Exception as error:
                raise refuse(f"valid=... raises {type(error).__name__}: {error}") from error
            if not meant:
                raise refuse("valid=... rejects this call")
        return function(*args, **kwargs)

    return checked


def _array_of(leaf: Any) -> Any:
    return leaf.detach().numpy() if isinstance(leaf, Tensor) else leaf
