"""Implicit differentiation: solutions found by a search, as functions of the tensors that the function captures.

By the implicit function theorem, a root of a function depends on the function's parameters. Newton's method yields the
same derivatives: a step from the root changes it only through the parameters. Each step taken on tensors raises the
order of exact derivatives from n to 2 n + 1; three steps are exact up to the seventh order.

Source: A. Griewank, A. Walther, "Evaluating Derivatives" (2008), chapter 15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..errors import DifferentiabilityError
from ..func.implicit import is_singular
from ..func.transforms import grad, jacrev
from ..operators.numpy_api.conversion import as_tensors, plain_values
from .wrap import call_nearby, copied, float_copy

STEPS: Final = 3
FAR: Final = 0.1  # allowed relative distance of the solution from that of Newton's method
LOOSE: Final = 1e-6  # allowed distance from the fixed point of Newton's method once it no longer converges
Function = Callable[[Any], Any]


def _at(place: Any, step: Function) -> Any:
    """Return the solution with the value that was found and the history of Newton steps from it."""
    found = np.asarray(plain_values(place), float)
    start = moved = copied(found)
    for _ in range(STEPS):
        moved = moved - step(moved)
    return moved + (start - moved.detach())


def _settled(moves: list[Any], place: Any) -> None:
    """Raise if Newton's method does not converge at a solution, so that the theorem does not apply."""
    sizes = [float(np.max(np.abs(plain_values(move.detach())), initial=0.0)) for move in moves]
    scale = 1.0 + float(np.max(np.abs(plain_values(place)), initial=0.0))
    if not (sizes[0] <= FAR * scale and max(sizes[1:]) <= max(0.5 * sizes[0], LOOSE * scale)):
        raise DifferentiabilityError(
            "the solution has no derivative with respect to the tensors that the function captures: the function has a "
            "kink there, such as a norm at 0, or the search stopped too early; minimize a smooth function (the square "
            "of the norm), use a smaller tolerance, or pass detach() of the captured tensors"
        )


def computed_anew(function: Function) -> Function:
    """Return a function that uses no result cached for an equal argument; see `call_nearby`."""

    def compute(x: Any) -> Any:
        call_nearby(function, plain_values(x.detach()))
        return function(x)

    return compute


def root_place(function: Function, place: Any) -> Any:
    """Return a root of a function of a tensor, with its history.

    Arguments:
        function: a function that returns as many values as the point has elements; it may refer to tensors that have a
            history.
        place: a root, an array or a number.
    """
    return root_by_newton(computed_anew(function), place)


def root_by_newton(function: Function, place: Any) -> Any:
    """Return a root as `root_place` does, for a function that caches no results."""

    def residual(x: Any) -> Any:
        return float_copy(function(x)).reshape(-1)

    moves: list[Any] = []

    def step(x: Any) -> Any:
        slopes = jacrev(residual)(x).reshape(x.size, x.size)
        if not moves and is_singular(plain_values(slopes.detach())):
            raise DifferentiabilityError(
                "the solution has no derivative with respect to the tensors that the function captures: it is not "
                "isolated, since the Jacobian (for a minimum, the Hessian) is singular there; add a term that makes it "
                "unique, or pass detach() of the captured tensors"
            )
        moves.append(np.linalg.solve(slopes, residual(x)).reshape(x.shape))
        return moves[-1]

    found = _at(place, step)
    _settled(moves, place)
    return found


def root_of_many(function: Function, place: Any) -> Any:
    """Return a root of a function of many unknowns, using the Jacobian at the root for all steps.

    This is cheaper than Newton's method; each step makes derivatives exact to one more order, up to the third.
    """
    start = np.array(plain_values(place), float)
    slopes = plain_values(jacrev(function)(as_tensors(start.copy())).detach())
    return _at(start, lambda x: np.linalg.solve(slopes, function(x)))


def root_by_elements(function: Function, place: Any) -> Any:
    """Return the root of an elementwise function."""
    function = computed_anew(function)

    def summed(x: Any) -> Any:
        return float_copy(function(x)).sum()

    return _at(place, lambda x: float_copy(function(x)).reshape(x.shape) / grad(summed)(x))


def least_place(function: Function, place: Any, free: Any = None, values: Any = None) -> Any:
    """Return a minimizer of a function of a tensor, with its history.

    Arguments:
        function: a scalar-valued function, which may refer to tensors that have a history.
        place: the minimizer.
        free: the mask of elements that may vary; the others are at their bounds. By default, all may vary.
        values: the point with the history of elements at their bounds; by default, these are constants.
    """
    found = np.asarray(plain_values(place), float)
    function = computed_anew(function)
    places = np.flatnonzero(np.ones(found.shape, bool) if free is None else free)

    def moved(elements: Any) -> Any:
        x = as_tensors(np.array(found).reshape(-1)) * 1.0 if values is None else (values * 1.0).reshape(-1)
        x[places] = elements
        return x.reshape(found.shape)[()]  # a number becomes a scalar

    def gradient(elements: Any) -> Any:
        return grad(lambda each: float_copy(function(moved(each))).reshape(()))(elements)

    if not places.size:
        return as_tensors(np.array(found)) if values is None else values
    return moved(root_by_newton(gradient, found.reshape(-1)[places]))
