"""`implicit`: derivatives of the results of solvers by the implicit function theorem.

If F(x, a) = 0 then dx/da = -(dF/dx)^-1 dF/da. This depends only on the solution, not on the solver and its steps.

Source: A. Griewank, A. Walther, "Evaluating Derivatives" (2008), chapter 15.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..adoption import adopted_callable
from ..autograd.function import Function
from ..autograd.transform_inputs import Transform
from ..errors import DifferentiabilityError
from ..operators.define import OPERATORS
from ..tensor.async_safety import in_own_context
from ..tensor.escapes import has_tangent
from ..tensor.modes import GRAD, ModeSwitch, current_mode
from ..tensor.tensor import Tensor, current_edge, from_new_array, is_scalar
from ..tensor.trace_hooks import composed
from .transforms import jacrev, jvp, vjp
from .tree import Structure, flatten, map_leaves, unflatten

concatenate = OPERATORS["concatenate"].function
TOLERANCE: Final = 1e-6
LinearSolve = Callable[[Callable[[Any], Any], Any], Any]


def implicit(
    residual: Callable[..., Any],
    solve: Callable[..., Any],
    *,
    linear_solve: LinearSolve | None = None,
    tolerance: float = TOLERANCE,
) -> Callable[..., Any]:
    """Make the solution computed by `solve` differentiable, given the equations it satisfies.

    `solve` is not differentiated: it may call a library, iterate until convergence, or be compiled code. Derivatives of
    all orders, in both modes, are computed from `residual`. The solution must be an isolated root: the Jacobian of the
    residual with respect to the solution must be nonsingular.

    Arguments:
        residual: `residual(x, *args)` is 0 at the solution `x`. It returns as many real numbers as `x` has, and depends
            on no differentiable tensors other than its arguments.
        solve: `solve(*args)` returns the solution: an array, float or tensor, or a tree of them. It receives arrays and
            NumPy scalars instead of tensors.
        linear_solve: `linear_solve(matvec, b)` returns the array `y` of shape (n,) with `matvec(y) == b`, for large
            systems; `matvec` takes and returns arrays. The matrix is the Jacobian or its transpose, and is not formed.
            By default it is formed and passed to `numpy.linalg.solve`.
        tolerance: the largest step, relative to the size of the solution, that one more Newton iteration may take (at
            least the square root of the precision); `math.inf` skips this check.

    Returns:
        A function of `*args`, all positional, that returns the result of `solve` as tensors.

    Raises:
        DifferentiabilityError: when called, if the residual and the solution have different sizes, or the residual
            depends on a differentiable tensor that is not an argument. When derivatives are computed, if the Jacobian
            is singular, or the solution is further from the root than `tolerance`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> def kepler(mean_anomaly, eccentricity):
        ...     x = mean_anomaly
        ...     for _ in range(50):
        ...         x = mean_anomaly + eccentricity * np.sin(x)
        ...     return x
        >>> anomaly = vg.func.implicit(lambda x, m, e: x - e * np.sin(x) - m, kepler)
        >>> slope = vg.func.grad(anomaly, argnums=1)(1.0, 0.3)
        >>> x = anomaly(1.0, 0.3)
        >>> bool(np.isclose(slope, np.sin(x) / (1 - 0.3 * np.cos(x))))
        True
    """

    residual = adopted_callable(residual)

    @in_own_context
    def run(*args: Any) -> Any:
        leaves, structure = flatten(args)
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.dtype.kind in "fc"]
        with ModeSwitch(off=GRAD):
            found = solve(*map_leaves(lambda leaf: leaf._array.copy()[()] if isinstance(leaf, Tensor) else leaf, args))
        values, form = flatten(found)
        unknowns = [np.array(_array_of(value)) for value in values]
        if any(array.dtype.kind != "f" for array in unknowns) or not unknowns:
            raise DifferentiabilityError(
                "implicit requires solutions of a real floating-point dtype; split complex unknowns into their real "
                "and "
                "imaginary parts"
            )
        shapes = [x.shape for x in unknowns]
        problem = Problem(residual, structure, leaves, places, form, shapes, linear_solve, tolerance)
        problem.check(unknowns)
        results = _Root.apply(problem, unknowns, *[leaves[n] for n in places])
        return unflatten(form, [_like(x, value) for x, value in zip(results, values)])

    @functools.wraps(solve, updated=())
    def solved(*args: Any) -> Any:
        return composed("implicit", run, args, {})

    return solved


@attrs.define(eq=False)
class Problem:
    """The equations of one call.

    Attributes:
        residual: as for `implicit`.
        structure, leaves: the structure and leaves of the arguments; `places` are the positions of the differentiable
            ones.
        form, shapes: the structure of the solution, and the shapes of its leaves.
        linear_solve, tolerance: as for `implicit`.
    """

    residual: Callable[..., Any]
    structure: Structure
    leaves: list[Any]
    places: list[int]
    form: Structure
    shapes: list[tuple[int, ...]]
    linear_solve: LinearSolve | None
    tolerance: float

    def equations(self, unknowns: Any, *tensors: Any) -> Any:
        """Return the residuals as a vector, given the solution as a vector and the differentiable arguments."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):  # the residual may write to arrays
            leaves[place] = _like(tensor.clone(), self.leaves[place]) if isinstance(tensor, Tensor) else tensor
        returned = self.residual(unflatten(self.form, self.split(unknowns)), *unflatten(self.structure, leaves))
        return flat([each if isinstance(each, Tensor) else Tensor(each) for each in flatten(returned)[0]])

    def split(self, vector: Any) -> list[Any]:
        """Split a vector into the leaves of the solution."""
        leaves = []
        start = 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            leaves.append(vector[start : start + size].reshape(shape).clone() if shape else vector[start])
            start += size
        return leaves

    def check(self, unknowns: Sequence[Any]) -> None:
        """Raise for residuals of the wrong size, and for histories that do not belong to the arguments."""
        transform = Transform()
        tensors = [transform.primal(from_new_array(self.leaves[place]._array.copy())) for place in self.places]
        with transform:
            returned = self.equations(flat([from_new_array(x.copy()) for x in unknowns]), *tensors)
        size = sum(x.size for x in unknowns)
        if returned.size != size:
            raise DifferentiabilityError(
                f"implicit: the residual has {returned.size} elements, but the solution has {size}; there must be one "
                "equation for each unknown"
            )
        captured = transform.graph([current_edge(returned)])[1] if current_mode() & GRAD else []
        if captured or has_tangent(returned):
            raise DifferentiabilityError(
                "implicit: the residual uses a differentiable tensor that is not among the arguments, with respect to "
                "which the solution would have no derivative; pass it to the function as an argument"
            )

    def solution_of(self, matrix: Any, operator: Callable[..., Any], b: Any, given: tuple[Any, ...]) -> Any:
        """Return the vector y with `operator(y, *given) == b`, differentiable; `matrix()` is the operator's matrix."""
        if self.linear_solve is None:
            made = matrix()
            if is_singular(_array_of(made)):
                raise DifferentiabilityError(
                    "implicit: the Jacobian of the residual with respect to the solution is singular there, so the "
                    "solution has no derivative"
                )
            return np.linalg.solve(made, b)
        linear_solve: LinearSolve = self.linear_solve

        def solve(b: Any, *given: Any) -> Any:
            vector = _array_of(b)
            return np.asarray(
                linear_solve(lambda y: _array_of(operator(Tensor(y, dtype=vector.dtype), *given)), vector), vector.dtype
            )

        linear = implicit(
            lambda y, b, *given: operator(y, *given) - b, solve, linear_solve=linear_solve, tolerance=np.inf
        )
        return linear(b, *given)

    def pulled(self, cotangent: Any, x: Any, tensors: tuple[Any, ...]) -> Any:
        """Return the product of the transposed inverse of the Jacobian and a vector."""

        def operator(y: Any, x: Any, *tensors: Any) -> Any:
            return vjp(lambda x: self.equations(x, *tensors), x)[1](y)[0]

        return self.solution_of(lambda: jacrev(self.equations)(x, *tensors).T, operator, cotangent, (x, *tensors))

    def pushed(self, right: Any, x: Any, tensors: tuple[Any, ...]) -> Any:
        """Return the product of the inverse of the Jacobian and a vector."""

        def operator(y: Any, x: Any, *tensors: Any) -> Any:
            return jvp(lambda x: self.equations(x, *tensors), (x,), (y,))[1]

        return self.solution_of(lambda: jacrev(self.equations)(x, *tensors), operator, right, (x, *tensors))

    def require_root(self, x: Any, tensors: tuple[Any, ...]) -> None:
        """Raise for a solution that another Newton step would still change."""
        if self.tolerance == np.inf:
            return
        with ModeSwitch(off=GRAD):
            plain, given = x.detach(), tuple([tensor.detach() for tensor in tensors])
            step = _array_of(self.pushed(self.equations(plain, *given), plain, given))
        moved = float(np.max(np.abs(step), initial=0.0))
        size = 1.0 + float(np.max(np.abs(_array_of(plain)), initial=0.0))
        least = max(self.tolerance, float(np.finfo(step.dtype).eps) ** 0.5)
        if not moved <= least * size:
            raise DifferentiabilityError(
                f"implicit: the solution is not a root of the residual: a Newton step would move it by {moved:.3g}; "
                f"let the solver search with a smaller tolerance, or pass a tolerance above {moved / size:.1g}"
            )


class _Root(Function):
    """The solution of a problem as one node of the graph."""

    @staticmethod
    def forward(ctx: Any, problem: Problem, unknowns: list[Any], *tensors: Any) -> Any:
        outputs = tuple([from_new_array(x) for x in unknowns])
        ctx.problem = problem
        ctx.save_for_backward(*tensors, *outputs)
        ctx.set_materialize_grads(True)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        problem, x, tensors = _solution(ctx)
        problem.require_root(x, tensors)
        solved = problem.pulled(flat(list(grads)), x, tensors)
        pulled = vjp(lambda *tensors: problem.equations(x, *tensors), *tensors)[1](-solved) if tensors else ()
        return None, None, *pulled

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        problem, x, tensors = _solution(ctx)
        problem.require_root(x, tensors)
        given = tuple([np.zeros_like(t) if v is None else v for t, v in zip(tensors, tangents[2:])])
        right = jvp(lambda *tensors: problem.equations(x, *tensors), tensors, given)[1]
        return tuple(problem.split(problem.pushed(-right, x, tensors)))


def _solution(ctx: Any) -> tuple[Problem, Any, tuple[Any, ...]]:
    """Return the problem, its solution as a vector, and the differentiable arguments with their histories."""
    count = len(ctx.problem.places)
    saved = ctx.saved_tensors
    return ctx.problem, flat(list(saved[count:])), tuple(saved[:count])


def _like(tensor: Tensor, leaf: Any) -> Tensor:
    """Return the tensor, as a scalar if the leaf is a number."""
    is_number = is_scalar(leaf) if isinstance(leaf, Tensor) else not isinstance(leaf, np.ndarray)
    return tensor[()] if is_number else tensor


def flat(leaves: Sequence[Any]) -> Any:
    """Flatten tensors and concatenate them."""
    parts = [leaf.reshape(-1) for leaf in leaves]
    return parts[0] if len(parts) == 1 else concatenate(parts)


def _array_of(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def is_singular(matrix: Any) -> bool:
    """Return whether a square matrix is singular up to rounding, regardless of the units of its rows and columns.

    Arguments:
        matrix: an array of shape (n, n).
    """
    if not np.isfinite(matrix).all():
        return False
    for axis in (1, 0):
        largest = np.max(np.abs(matrix), axis=axis, keepdims=True, initial=0.0)
        if not largest.all():
            return True
        matrix = matrix / largest
    precision = np.finfo(matrix.dtype).eps * len(matrix)
    return len(matrix) > 1 and bool(np.linalg.cond(matrix, 1) > 0.1 / precision)
