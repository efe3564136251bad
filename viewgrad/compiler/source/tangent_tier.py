"""Programs from source for directional derivatives: the tangent of the program of a function."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import attrs
import numpy as np

from ...tensor.tensor import Tensor
from ..guards.closure_walk import user_function
from .inputs import input_arrays
from .objects import Input
from .read import Reader, Source
from .syntax_trees import users_function
from .tangent import tangent_source
from .tier import SourceTier
from .value_types import Num, kind_of
from .values import NotSupported, Path


class TangentTier(SourceTier):
    """Runs calls of a function of `(args, keywords, numbers, tangents, has_aux)` with the results of `func.jvp`.

    Arguments:
        original: the function to differentiate.
        function: the function of these arguments.
        executor, check, is_on, tape_limit: as for `SourceTier`.
    """

    def __init__(
        self, original: Callable[..., Any], function: Callable[..., Any], executor: str, check: bool, is_on: bool,
        tape_limit: float | None,
    ) -> None:
        super().__init__(function, executor, (), check, is_on, tape_limit)
        self.original = original

    def _key(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if keywords or args[4]:
            return None
        found = super()._key(args, keywords)
        return None if found is None else (*found, ("is", args[2]))

    def _source(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Source]:
        positional, named, numbers, _, _ = args
        function = users_function(user_function(self.original))
        source = Reader().source(function, tuple(positional), named)

        def moved(path: Path) -> Path:
            if not path.is_argument:
                return path
            if path.root < len(positional):
                return Path(0, True, (("item", path.root), *path.steps))
            return Path(1, True, (("key", list(named)[path.root - len(positional)]), *path.steps))

        given: dict[int, Input] = {}
        for number, each in enumerate(source.inputs):
            if each.path.is_argument and each.path.root in numbers and each.kind.dtype in "fdFD":
                path = Path(3, True, (("item", numbers.index(each.path.root)), *each.path.steps))
                found = self._tangent(each, path, args, source.kinds)
                if found is not None:
                    given[number] = found
        inputs = [attrs.evolve(each, path=moved(each.path)) for each in source.inputs]
        guards = [attrs.evolve(each, path=moved(each.path)) for each in source.guards]
        return function, tangent_source(attrs.evolve(source, inputs=inputs, guards=guards), given)

    @staticmethod
    def _arrays(source: Source, given: Sequence[Any], may_share: bool = True) -> list[Any] | None:
        found = input_arrays(source, given, may_share)  # nothing is written to arguments
        for each, array in zip(source.inputs, found or ()):
            if each.path.is_argument and each.path.root == 3:
                (_, number), *steps = each.path.steps
                primal = Path(0, True, (("item", given[2][number]), *steps)).now(given)
                if np.shape(primal) != np.shape(array):
                    return None
        return found

    def _is_conclusive(self, outputs: Sequence[Any]) -> bool:
        return all(np.isfinite(each).all() for each in outputs)  # zeros may have met infinite slopes

    def _tangent(self, primal: Input, path: Path, args: Sequence[Any], taken: Container[str]) -> Input | None:
        """Return the input with the tangent of another input, or None if the tangent is 0."""
        if args[3][path.steps[0][1]] is None:
            return None
        value = path.now(args)
        array = value._array if isinstance(value, Tensor) else value
        kind = kind_of(array)
        if kind is None or kind.dtype != "d" or np.ndim(array) != primal.kind.ndim:
            raise NotSupported("a tangent with another shape or dtype than its argument is not supported")
        if isinstance(array, np.ndarray) and not array.ndim:
            kind = Num("d", boxed=True)
        name = f"{primal.name}_dot"
        while name in taken:
            name += "_"
        return Input(name, kind, path)
