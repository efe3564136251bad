"""The evaluations of a search, such as that for a minimum, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize  # type: ignore[import-untyped]

from ..autograd import grad
from ..operators.numpy_api.conversion import carries_history, plain_values
from ..tensor.modes import enable_grad
from ..tensor.temporary_leaves import register_temporary
from ..tensor.tensor import Tensor
from .wrap import call_nearby, copied, numbers, plain_value

Function = Callable[..., Any]


def temporary_leaf(values: Any) -> Tensor:
    """Return a leaf that exists only for the computation of a derivative by the library."""
    leaf = Tensor(np.array(values), requires_grad=True)
    register_temporary(leaf)
    return leaf


def gradient_at(leaf: Tensor, result: Any) -> Any:
    """Return the gradient of a scalar result as an array, or None if the result does not depend on the leaf."""
    if not carries_history(result):
        return None
    with enable_grad():
        (gradient,) = grad(result, leaf, retain_graph=True, allow_unused=True)
    return None if gradient is None else np.array(plain_values(gradient))


class SearchPoints:
    """The points at which a search evaluates its functions.

    Functions often cache what they compute for the last argument. At each point, all functions are therefore evaluated
    with the same leaf, so that a gradient also flows through values cached by another function. Before its first
    evaluation, each function is called at a neighbouring point, as by finite differences: values cached before the
    search, perhaps for the same argument, have no history.
    """

    def __init__(self) -> None:
        self._known: dict[int, Function] = {}
        self._by_values: set[int] = set()  # functions that cannot be called with a leaf
        self._leaf: Tensor | None = None
        self._results: dict[int, tuple[Function, Any]] = {}

    def close(self) -> None:
        """Release the last leaf after the search; values cached by the functions then count as constants."""
        self._leaf, self._results = None, {}

    def value(self, function: Function, args: tuple[Any, ...]) -> Function:
        """Return a function as a function of arrays."""
        return lambda x: np.asarray(plain_value(self._evaluated(function, args, x)[1]))

    def jacobian(self, function: Function, args: tuple[Any, ...]) -> Function:
        """Return the Jacobian of a function, as a function of arrays.

        If the function cannot be called with a leaf, or the result does not depend on it, the Jacobian is that by
        differences, which SciPy uses by default.
        """

        def jacobian(x: Any) -> Any:
            leaf, result = self._evaluated(function, args, x)
            rows = [gradient_at(leaf, element) for element in result.reshape(-1)]
            if all(row is None for row in rows):
                return np.atleast_2d(self._by_differences(function, args, x))
            return np.array([np.zeros(leaf.shape) if row is None else row for row in rows])

        return jacobian

    def value_and_gradient(self, function: Function, args: tuple[Any, ...]) -> Function:
        """Return a scalar-valued function with its gradient, as a function of arrays; see `jacobian`."""

        def both(x: Any) -> tuple[float, Any]:
            leaf, result = self._evaluated(function, args, x)
            result = result.reshape(())
            gradient = gradient_at(leaf, result)
            if gradient is None:
                gradient = self._by_differences(function, args, x).reshape(-1)
            return float(np.asarray(plain_value(result))), gradient

        return both

    def _evaluated(self, function: Function, args: tuple[Any, ...], x: Any) -> tuple[Tensor, Any]:
        """Return the leaf for a point, and a copy of the result of a function there, which is computed once.

        It is a copy because functions may return the same array from all calls.
        """
        x = np.atleast_1d(np.array(x, float))
        if self._leaf is None or not np.array_equal(self._leaf._array, x, equal_nan=True):
            self._leaf, self._results = temporary_leaf(x), {}
        found = self._results.get(id(function))
        if found is None:
            result = numbers(self._called(function, args, self._leaf)).clone()
            found = self._results[id(function)] = function, result
        return self._leaf, found[1]

    def _called(self, function: Function, args: tuple[Any, ...], leaf: Tensor) -> Any:
        key = id(function)
        if key not in self._known:
            self._known[key] = function
            call_nearby(function, leaf._array, args)
        if key not in self._by_values:
            try:
                with enable_grad():
                    return function(leaf.clone(), *args)
            except Exception:  # such as an array of a class that cannot hold tensors: the search needs no gradient
                self._by_values.add(key)
                call_nearby(function, leaf._array, args)
        return function(copied(leaf._array), *args)

    @staticmethod
    def _by_differences(function: Function, args: tuple[Any, ...], x: Any) -> Any:
        def values(x: Any) -> Any:
            return np.asarray(plain_value(function(copied(x), *args)), float)

        return np.asarray(scipy.optimize.approx_fprime(np.atleast_1d(np.array(x, float)), values))
