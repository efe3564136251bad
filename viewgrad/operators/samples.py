"""Arguments for testing operators: `draws` declares them, and `samples_of` draws them."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from .dtype_kinds import as_list
from .language.spec import Operator

Call = tuple[tuple[Any, ...], dict[str, Any]]


@attrs.frozen
class Sample:
    """A call of an operator, with arrays for its tensors."""

    operator: Operator
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def bound(self) -> dict[str, Any]:
        """Return the given arguments by name."""
        names = [argument.name for argument in self.operator.signature.arguments]
        return dict(zip(names, self.args)) | self.kwargs

    def differentiable(self) -> list[str]:
        """Return the names of the given arguments that can require gradients, because of their declaration and dtype.
        """
        given = self.bound()
        return [
            name
            for name in self.operator.differentiable
            if given.get(name) is not None
            and all(np.asarray(array).dtype.kind in "fc" for array in as_list(given[name]))
        ]

    def replace(self, /, **arguments: Any) -> Sample:
        """Return the call with other values for some arguments."""
        given = self.bound() | arguments
        names = [argument.name for argument in self.operator.signature.arguments]
        return Sample(self.operator, tuple(given.pop(name) for name in names[: len(self.args)]), given)

    def astype(self, dtype: Any, rng: np.random.Generator) -> Sample:
        """Return the call with its differentiable arguments in another dtype; imaginary parts are drawn.

        Arguments that cannot be complex are converted to the real dtype of the same precision.
        """

        def converted(name: str, array: Any) -> Any:
            array = np.asarray(array)
            if np.dtype(dtype).kind == "c" and not self.operator.accepts_complex(name):
                return array.astype(np.empty(0, dtype).real.dtype)
            if np.dtype(dtype).kind == "c" and array.dtype.kind == "f":
                array = array + 1j * rng.uniform(-1, 1, array.shape)
            return array.astype(dtype)

        given = self.bound()
        changed: dict[str, Any] = {}
        for name in self.differentiable():
            value = given[name]
            is_list = isinstance(value, list)
            changed[name] = [converted(name, array) for array in value] if is_list else converted(name, value)
        return self.replace(**changed)

    def __str__(self) -> str:
        def short(value: Any) -> str:
            if isinstance(value, np.ndarray):
                return f"{value.dtype.name}{list(value.shape)}"
            return f"[{', '.join(map(short, value))}]" if isinstance(value, list) else repr(value)

        parts = [short(value) for value in self.args]
        parts += [f"{name}={short(value)}" for name, value in self.kwargs.items()]
        return f"{self.operator.name}({', '.join(parts)})"


def case(*args: Any, **kwargs: Any) -> Call:
    """Return a call for `draws`.

    Positional tuples are shapes of tensors to draw, and lists of tuples are lists of tensors. Everything else,
    including arrays and keyword arguments, is passed unchanged.
    """
    return args, kwargs


def draws(*cases: Call, domain: tuple[float, float] | None = None) -> Callable[[np.random.Generator], list[Call]]:
    """Return the `samples` of an operator, from calls written with `case`.

    Arguments:
        cases: the calls.
        domain: the interval to draw from; if omitted, the numbers are normally distributed.

    Example:
        >>> import numpy as np
        >>> samples = draws(case((2, 3), axis=0), case((), (4,)))
        >>> [[np.shape(array) for array in args] for args, kwargs in samples(np.random.default_rng(0))]
        [[(2, 3)], [(), (4,)]]
    """

    def samples(rng: np.random.Generator) -> list[Call]:
        def drawn(argument: Any) -> Any:
            if isinstance(argument, tuple):
                return np.asarray(rng.standard_normal(argument) if domain is None else rng.uniform(*domain, argument))
            return [drawn(item) for item in argument] if isinstance(argument, list) else argument

        return [(tuple(drawn(argument) for argument in args), dict(kwargs)) for args, kwargs in cases]

    return samples


def given_calls(calls: Sequence[Call]) -> Callable[[np.random.Generator], list[Call]]:
    """Return the `samples` of an operator that are always the same.

    Raises:
        TypeError: if an item is not a call.
    """
    for call in calls if isinstance(calls, list | tuple) else [calls]:
        pair = isinstance(call, tuple) and len(call) == 2
        if not (pair and isinstance(call[0], tuple) and isinstance(call[1], dict)):
            raise TypeError(
                "samples is a list of calls, each a pair of arguments and keyword arguments such as "
                f"((np.ones(3),), {{'axis': 0}}), or a function that returns one for a random generator; not {call!r}"
            )
    return lambda rng: copy.deepcopy(list(calls))


def samples_of(operator: Operator, seed: int = 0) -> list[Sample]:
    """Return the calls with which `operator` is tested, which are always the same."""
    rng = np.random.default_rng([seed, zlib.crc32(operator.name.encode())])
    samples = operator.samples
    if samples is None:
        tensors = [argument for argument in operator.signature.tensors if not argument.optional]
        plain = [argument for argument in operator.signature.plain if argument.default is None]
        if plain or not (operator.elementwise or len(tensors) == 1):
            raise ValueError(
                f"operator {operator.name!r} has several tensors or options: declare samples=, or pass arguments"
            )
        samples = draws(case(*[(3, 4)] * len(tensors)), domain=operator.domain)
    return [Sample(operator, args, kwargs) for args, kwargs in samples(rng)]


def samples_in_each_kind(operator: Operator, seed: int = 0) -> list[Sample]:
    """Return sample calls with real numbers and, if the operator supports them, with complex numbers."""
    samples = samples_of(operator, seed)
    rng = np.random.default_rng([seed, 1])
    if any(operator.accepts_complex(name) for name in operator.differentiable):
        samples = samples + [sample.astype(np.complex128, rng) for sample in samples]
    return samples
