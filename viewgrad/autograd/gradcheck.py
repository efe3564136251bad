"""`gradcheck` and `gradgradcheck`: comparison of gradients with finite differences.

Complex numbers are treated as pairs of real numbers. The gradient `g` of a real `L` with respect to a complex `z = x +
iy` is dL/dx + i dL/dy, so dL is the real part of conj(g) dz. A gradient `v` of a complex output `w` stands for the real
function Re(conj(v) w). Real and imaginary parts of every output are checked against those of every input, which covers
functions from C to R, R to C and C to C.

The file is long because each way in which a check can fail has its own message.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import numpy as np

from ..adoption import adopted_callable
from ..errors import GradcheckError
from ..tensor.async_safety import in_own_context
from ..tensor.modes import enable_grad
from ..tensor.tensor import Tensor, from_array
from ..type_aliases import Array
from ..views.geometry import overlaps_itself
from .api import grad
from .modes.forward_ad import dual_level, make_dual, unpack_dual

SEED: Final = 20240229  # the seed of the random directions, so that failures are reproducible


@in_own_context
def gradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    adopt: bool = True,
) -> bool:
    """Check the gradients of `fn` at `inputs` against central differences.

    `fn` is called with clones of the inputs, so it may write to them and to views of them. A clone has the input's
    order of dimensions in memory, without gaps. To check operations on a strided view, take that view inside `fn`.

    Arguments:
        fn: a function of the inputs that returns a tensor or several. Integer outputs, and outputs that are not
            tensors, are ignored.
        inputs: one tensor or a sequence of arguments. Those that require grad are checked; the others are passed
            through.
        eps: half the distance between the two points of a difference.
        atol: the absolute tolerance.
        rtol: the relative tolerance, as a fraction of the finite difference.
        raise_exception: whether to raise an error, instead of returning False, if a check fails.
        nondet_tol: the tolerance for differences between two runs of `fn`, and between two runs of its backward pass.
        check_undefined_grad: whether to check that an output without gradient is treated as having a zero gradient.
        check_forward_ad: whether to check forward mode as well.
        check_backward_ad: whether to check the backward pass; pass False for functions with forward mode only.
        adopt: whether to adopt `fn`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.

    Returns:
        True.

    Raises:
        GradcheckError: if a check fails, with the input, the output, the element and both values.
        ValueError: if there is nothing to check, or elements of an input share memory.

    Example:
        >>> import viewgrad as vg
        >>> def cumulate(x):
        ...     for i in range(1, 3):
        ...         x[i] += x[i - 1] * x[i]
        ...     return x
        >>> vg.autograd.gradcheck(cumulate, vg.Tensor([0.5, 2.0, 3.0], requires_grad=True))
        True
    """
    if not (check_backward_ad or check_forward_ad):
        raise ValueError("gradcheck has nothing to check with check_backward_ad=False and check_forward_ad=False")
    program = Program.of(adopted_callable(fn) if adopt else fn, inputs, eps)
    try:
        leaves, outputs = program.run()
        if not outputs:
            raise ValueError("gradcheck needs a function that returns a tensor of floating-point or complex dtype")
        _check_repeatable(program, outputs, nondet_tol)
        numerical = _numerical(program, outputs, eps)
        if check_backward_ad:
            _check_runs_agree(leaves, outputs, nondet_tol, check_undefined_grad)
            analytical = _analytical(leaves, outputs)
            for j, output in enumerate(outputs):
                for k, leaf in enumerate(leaves):
                    pair = Pair(program.positions[k], leaf, j, output)
                    _compare(pair, numerical[k][j], analytical[j][k], "the backward pass", atol, rtol)
            _check_linear(leaves, outputs, *_rounding(leaves, outputs, nondet_tol, atol, rtol))
        if check_forward_ad:
            for k, row in enumerate(_forward(program, outputs)):
                for j, tangents in enumerate(row):
                    pair = Pair(program.positions[k], leaves[k], j, outputs[j])
                    _compare(pair, numerical[k][j], tangents, "forward mode", atol, rtol)
                rounding = _rounding(leaves, outputs, nondet_tol, atol, rtol)
                _check_linear_tangents(program, outputs, k, row, *rounding)
        if check_backward_ad:
            _check_release(leaves, outputs, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@in_own_context
def gradgradcheck(
    fn: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_forward_ad: bool = False,
    adopt: bool = True,
) -> bool:
    """Check the second derivatives of `fn` against central differences of its gradients.

    Arguments:
        fn, inputs: as for `gradcheck`.
        grad_outputs: the gradients of the outputs to use; by default drawn at random, with a fixed seed.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, adopt: as for `gradcheck`.
        check_forward_ad: whether to check forward mode over the backward pass as well.

    Returns:
        True.

    Raises:
        GradcheckError: if a check fails. "Output k" then refers to the gradient with respect to the k-th input that
            requires grad; the gradients of the outputs are numbered after the inputs.
        ValueError: as for `gradcheck`.

    Example:
        >>> import viewgrad as vg
        >>> vg.autograd.gradgradcheck(lambda x: x * x * x, vg.Tensor([0.5, 2.0], requires_grad=True))
        True
    """
    fn = adopted_callable(fn) if adopt else fn
    program = Program.of(fn, inputs, eps)
    leaves, outputs = program.run()
    if grad_outputs is None:
        generator = np.random.default_rng(SEED)
        starts = [Tensor(_direction(output, generator), requires_grad=True) for output in outputs]
    else:
        given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
        starts = [Tensor(start._array, requires_grad=True) for start in given]
    count = len(program.arguments)

    def first_gradients(*arguments: Any) -> tuple[Tensor | None, ...]:
        sources, given = list(arguments[:count]), arguments[count:]
        wanted = [sources[k] for k in program.positions]
        # fn must not write to the tensors that are differentiated.
        results = fn(*[source.clone() if isinstance(source, Tensor) else source for source in sources])
        pairs = [
            (result, start)
            for result, start in zip(_differentiable(results), given, strict=True)
            if result.requires_grad
        ]
        if not pairs:
            return tuple(from_array(np.zeros_like(source._array)) for source in wanted)
        return grad([r for r, _ in pairs], wanted, [s for _, s in pairs], create_graph=True, materialize_grads=True)

    try:
        _check_recorded(leaves, outputs, starts, nondet_tol)
        gradcheck(
            first_gradients,
            (*program.arguments, *starts),
            eps=eps,
            atol=atol,
            rtol=rtol,
            nondet_tol=nondet_tol,
            check_undefined_grad=check_undefined_grad,
            check_forward_ad=check_forward_ad,
        )
    except GradcheckError as error:
        if raise_exception:
            error.args = (f"in the second derivatives: {error.message}",)
            raise
        return False
    return True


# -- running the function --------------------------------------------------------------------------------------------


@attrs.frozen
class Program:
    """A function and the arguments at which it is checked.

    Arguments:
        fn: the function.
        arguments: all of its arguments.
        positions: the positions of the differentiated arguments.
    """

    fn: Callable[..., Any]
    arguments: tuple[Any, ...]
    positions: tuple[int, ...]

    @classmethod
    def of(cls, fn: Callable[..., Any], inputs: Any, eps: float) -> Program:
        """Return the program after verifying that it can be checked."""
        arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        positions = tuple(k for k, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad)
        if not positions:
            raise ValueError("gradcheck needs at least one input tensor that requires grad")
        for k in positions:
            array = arguments[k]._array
            if overlaps_itself(array):
                raise ValueError(
                    f"elements of input {k}, of shape {array.shape}, share memory (as after expand), so they "
                    "cannot be changed one by one; pass clone(), or what was expanded, and expand inside the function"
                )
            if eps < np.finfo(array.dtype).eps ** 0.5:
                warnings.warn(
                    f"input {k} has dtype {array.dtype}, which is not precise enough for finite differences with "
                    f"eps={eps}; "
                    "use float64 or complex128, or a larger eps and tolerance",
                    stacklevel=4,
                )
        return cls(fn, arguments, positions)

    def run(
        self, number: int | None = None, array: Array | None = None, tangent: Array | None = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Run the function on fresh clones, with a given array or tangent for leaf `number`; return the leaves and
        outputs.
        """
        leaves: list[Tensor] = []
        handed = list(self.arguments)
        with enable_grad():
            for k, argument in enumerate(self.arguments):
                if k in self.positions:
                    changed = number == len(leaves)
                    leaf = Tensor(array if changed else argument._array, requires_grad=True)
                    leaves.append(leaf)
                    if changed and tangent is not None:
                        handed[k] = make_dual(leaf, from_array(tangent)).clone()
                    else:
                        handed[k] = leaf.clone()
                elif isinstance(argument, Tensor):
                    handed[k] = Tensor(argument._array)
            return leaves, _differentiable(self.fn(*handed))


def _differentiable(results: Any) -> list[Tensor]:
    """Return the differentiable outputs of a function."""
    listed = results if isinstance(results, (tuple, list)) else (results,)
    return [result for result in listed if isinstance(result, Tensor) and result.dtype.kind in "fc"]


# -- the two Jacobians -----------------------------------------------------------------------------------------------


def _components(array: Array) -> Array:
    """Return the elements in row-major order as real numbers; a complex element yields its real and imaginary part."""
    flat = np.array(array, order="C").reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _basis(array: Array, component: int) -> Array:
    """Return an array like `array` with 1 in the given component, and 0 elsewhere."""
    vector = np.zeros_like(array)
    pairs = array.dtype.kind == "c"
    vector[np.unravel_index(component // 2 if pairs else component, array.shape)] = 1j if pairs and component % 2 else 1
    return vector


def _numerical(program: Program, outputs: list[Tensor], eps: float) -> list[list[Array]]:
    """Return the matrix of derivatives for each leaf and output, with a row for each component of the leaf."""
    jacobians = []
    for number, position in enumerate(program.positions):
        array = program.arguments[position]._array
        rows: list[list[Array]] = [[] for _ in outputs]
        for component in range(_components(array).size):
            step = _basis(array, component) * eps
            above, below = array + step, array - step
            distance = _components(above - below)[component]
            differences = [
                (_components(high._array).astype(float) - _components(low._array).astype(float)) / distance
                for high, low in zip(
                    _same_outputs(program, outputs, number, above),
                    _same_outputs(program, outputs, number, below),
                    strict=True,
                )
            ]
            for row, difference in zip(rows, differences, strict=True):
                row.append(difference)
        jacobians.append(
            [np.array(row).reshape(len(row), _components(output._array).size) for row, output in zip(rows, outputs)]
        )
    return jacobians


def _forward(program: Program, outputs: list[Tensor]) -> list[list[Array | None]]:
    """Return the same matrices computed in forward mode, or None if no output has a tangent."""
    jacobians: list[list[Array | None]] = []
    for number, position in enumerate(program.positions):
        array = program.arguments[position]._array
        rows: list[list[Array | None]] = [[] for _ in outputs]
        for component in range(_components(array).size):
            for row, found in zip(rows, _tangents(program, outputs, number, _basis(array, component)), strict=True):
                row.append(found)
        jacobians.append(
            [
                None
                if all(entry is None for entry in row)
                else np.array([np.zeros(_components(x._array).size) if entry is None else entry for entry in row])
                for row, x in zip(rows, outputs, strict=True)
            ]
        )
    return jacobians


def _tangents(program: Program, outputs: list[Tensor], number: int, tangent: Array) -> list[Array | None]:
    """Return the components of the tangents of all outputs for one tangent of leaf `number`, or None if there are none.
    """
    with dual_level():
        _, found = program.run(number, program.arguments[program.positions[number]]._array, tangent=tangent)
        tangents = [unpack_dual(output).tangent for output in found]
    for j, (output, pushed) in enumerate(zip(outputs, tangents, strict=True)):
        if pushed is not None and (pushed.shape != output.shape or pushed.dtype != output.dtype):
            raise GradcheckError(
                f"the tangent of output {j} has shape {pushed.shape} and dtype {pushed.dtype}; the output has shape "
                f"{output.shape} and dtype {output.dtype}"
            )
    return [None if pushed is None else _components(pushed._array) for pushed in tangents]


def _same_outputs(program: Program, outputs: list[Tensor], number: int, array: Array) -> list[Tensor]:
    _, found = program.run(number, array)
    shapes, others = [(x.shape, x.dtype) for x in outputs], [(x.shape, x.dtype) for x in found]
    if shapes != others:
        raise GradcheckError(
            f"a small change of input {program.positions[number]} changes the outputs from {shapes} to {others}"
        )
    return found


def _analytical(leaves: list[Tensor], outputs: list[Tensor]) -> list[list[Array | None]]:
    """Return the matrix for each output and leaf, computed by columns in backward passes; None if there is no gradient.
    """
    jacobians: list[list[Array | None]] = []
    for output in outputs:
        columns: list[list[Array | None]] = [[] for _ in leaves]
        for component in range(_components(output._array).size if output.requires_grad else 0):
            found = _gradients([output], leaves, [_basis(output._array, component)])
            for column, gradient in zip(columns, found, strict=True):
                column.append(None if gradient is None else _components(gradient))
        row: list[Array | None] = []
        for leaf, column in zip(leaves, columns, strict=True):
            if all(entry is None for entry in column):
                row.append(None)
                continue
            zeros = np.zeros(_components(leaf._array).size)
            row.append(np.array([zeros if entry is None else entry for entry in column]).T)
        jacobians.append(row)
    return jacobians


def _gradients(
    outputs: Sequence[Tensor], leaves: list[Tensor], starts: Sequence[Any], **options: Any
) -> list[Array | None]:
    """Return the gradients for each leaf after checking their shapes and dtypes."""
    options.setdefault("retain_graph", True)
    grads = grad(outputs, leaves, [_as_tensor(start) for start in starts], allow_unused=True, **options)
    for k, (leaf, gradient) in enumerate(zip(leaves, grads, strict=True)):
        if gradient is not None and (gradient.shape != leaf.shape or gradient.dtype != leaf.dtype):
            raise GradcheckError(
                f"the gradient with respect to the {_ordinal(k)} input that requires grad has shape {gradient.shape} "
                f"and dtype {gradient.dtype}; the input has shape {leaf.shape} and dtype {leaf.dtype}"
            )
    return [None if gradient is None else gradient._array for gradient in grads]


def _as_tensor(start: Any) -> Tensor:
    return start if isinstance(start, Tensor) else Tensor(start)


# -- the comparisons -------------------------------------------------------------------------------------------------


@attrs.frozen
class Pair:
    """An input and an output, with their numbers in error messages."""

    position: int
    leaf: Tensor
    number: int
    output: Tensor


def _compare(pair: Pair, numerical: Array, analytical: Array | None, who: str, atol: float, rtol: float) -> None:
    """Compare a matrix of derivatives with that of finite differences."""
    position, leaf, j, output = pair.position, pair.leaf, pair.number, pair.output
    found = np.zeros_like(numerical) if analytical is None else analytical
    tolerance = atol + rtol * np.abs(numerical)
    difference = np.abs(numerical - found)
    wrong = ~(difference <= tolerance)  # negated, so that NaN fails
    if not wrong.any():
        return
    excess = np.where(np.isnan(difference), np.inf, difference / np.maximum(tolerance, np.finfo(float).tiny))
    row, column = np.unravel_index(int(np.argmax(np.where(wrong, excess, -1.0))), wrong.shape)
    of = _element(f"output {j}", output, int(column))
    by = _element(f"input {position}", leaf, int(row))
    computed = "no gradient" if analytical is None else f"{found[row, column]:.8g}"
    raise GradcheckError(
        f"the gradient of output {j} (shape {output.shape}) with respect to input {position} (shape {leaf.shape}) is "
        f"wrong in {int(wrong.sum())} of {wrong.size} entries. The worst is the derivative of {of} with respect to "
        f"{by}: {who} computes {computed}, finite differences {numerical[row, column]:.8g}; they differ by "
        f"{difference[row, column]:.3g}, where {tolerance[row, column]:.3g} is allowed (atol={atol:g}, rtol={rtol:g})",
        input=position,
        output=j,
        element=_index(leaf, int(row)),
        output_element=_index(output, int(column)),
        analytical=float(found[row, column]),
        numerical=float(numerical[row, column]),
        tolerance=float(tolerance[row, column]),
    )


def _index(tensor: Tensor, component: int) -> tuple[int, ...]:
    flat = component // 2 if tensor.dtype.kind == "c" else component
    return tuple(int(i) for i in np.unravel_index(flat, tensor.shape)) if tensor.shape else ()


def _element(name: str, tensor: Tensor, component: int) -> str:
    index = _index(tensor, component)
    text = f"{name}[{', '.join(map(str, index))}]" if index else name
    if tensor.dtype.kind == "c":
        text = f"the {'imaginary' if component % 2 else 'real'} part of {text}"
    return text


def _check_repeatable(program: Program, outputs: list[Tensor], nondet_tol: float) -> None:
    _, again = program.run()
    for j, output in enumerate(outputs):
        if j >= len(again) or not _alike(output._array, again[j]._array, nondet_tol):
            raise GradcheckError(
                f"the function is not repeatable: run twice at the same inputs, it returns different values of output "
                f"{j}; draw random numbers outside it"
            )


def _check_runs_agree(
    leaves: list[Tensor], outputs: list[Tensor], nondet_tol: float, check_undefined_grad: bool
) -> None:
    """Compare a backward pass with a second one, and undefined gradients with zeros."""
    generator = np.random.default_rng(SEED)
    reached = [output for output in outputs if output.requires_grad]
    if not reached:
        return
    directions = [_direction(output, generator) for output in reached]
    once = _gradients(reached, leaves, directions)
    again = _gradients(reached, leaves, directions)
    for k, (one, other) in enumerate(zip(once, again, strict=True)):
        if not _alike(one, other, nondet_tol):
            raise GradcheckError(
                "the backward pass is not repeatable: run twice, it returns different gradients with respect to the "
                f"{_ordinal(k)} input that requires grad: {one} and {other}"
            )
    if check_undefined_grad and len(reached) > 1:
        for j, (output, direction) in enumerate(zip(reached, directions, strict=True)):
            alone = _gradients([output], leaves, [direction])
            zeros = [direction if other is output else np.zeros_like(other._array) for other in reached]
            together = _gradients(reached, leaves, zeros)
            for k, (undefined, defined) in enumerate(zip(alone, together, strict=True)):
                what = f"with undefined gradients for all outputs but the {_ordinal(j)}"
                _must_agree(undefined, defined, what, "with zeros in their place", k, nondet_tol)


def _rounding(
    leaves: list[Tensor], outputs: list[Tensor], nondet_tol: float, atol: float, rtol: float
) -> tuple[float, float]:
    """Return tolerances for rounding errors alone, regardless of the tolerances passed by the user."""
    eps = max(float(np.finfo(tensor.dtype).eps) for tensor in (*leaves, *outputs))
    tight = eps**0.6  # 4e-10 in double precision, 7e-5 in single precision
    return nondet_tol + min(atol, tight), min(rtol, tight)


def _check_linear(leaves: list[Tensor], outputs: list[Tensor], atol: float, rtol: float) -> None:
    """Check that the backward pass is linear in its gradients."""
    generator = np.random.default_rng(SEED)
    for j, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        first, second = _direction(output, generator), _direction(output, generator)
        ones = _gradients([output], leaves, [first])
        others = _gradients([output], leaves, [second])
        finite = all(g is None or np.isfinite(g).all() for g in (*ones, *others))
        for factor, term in ((-1.75, 0.0), (0.5, -3.0), (0.0, 0.0)):
            if not finite and not (factor and term):  # zero times infinity is NaN
                continue
            start = (factor * first + term * second).astype(output.dtype)
            found = _gradients([output], leaves, [start])
            for k, (one, other, gradient) in enumerate(zip(ones, others, found, strict=True)):
                parts = [weight * g for weight, g in ((factor, one), (term, other)) if g is not None]
                expected = np.sum(parts, axis=0) if parts else None
                what = f"for the gradient {start} of output {j}"
                scale = max((float(np.abs(part).max()) for part in parts if part.size), default=0.0)
                _must_agree(gradient, expected, what, "by linearity from two others", k, atol + rtol * scale)


def _check_linear_tangents(
    program: Program, outputs: list[Tensor], number: int, row: list[Array | None], atol: float, rtol: float
) -> None:
    """Check that forward mode is linear: compare with the tangents along single components."""
    position = program.positions[number]
    tangent = -1.75 * _direction(program.arguments[position], np.random.default_rng(SEED))
    tangent = tangent.astype(program.arguments[position].dtype)
    for j, (found, matrix) in enumerate(zip(_tangents(program, outputs, number, tangent), row, strict=True)):
        expected = None if matrix is None else _components(tangent) @ matrix
        if expected is not None and not np.isfinite(expected).all():
            continue
        scale = 0.0 if matrix is None else float(np.abs(matrix).max(initial=0.0))
        if not _alike(found, expected, atol + 2 * tangent.size * rtol * scale):
            raise GradcheckError(
                f"for the tangent {tangent} of input {position}, the tangent of output {j} is {found}; by "
                f"linearity, the tangents along its components give {expected}"
            )


def _check_release(leaves: list[Tensor], outputs: list[Tensor], nondet_tol: float) -> None:
    """Compare a run that releases saved values, the last over this graph, with one that retains them."""
    generator = np.random.default_rng(SEED)
    reached = [output for output in outputs if output.requires_grad]
    if not reached:
        return
    directions = [_direction(output, generator) for output in reached]
    kept = _gradients(reached, leaves, directions)
    released = _gradients(reached, leaves, directions, retain_graph=False)
    for k, (one, other) in enumerate(zip(kept, released, strict=True)):
        _must_agree(one, other, "with retain_graph=True", "with retain_graph=False", k, nondet_tol)


def _check_recorded(
    leaves: list[Tensor], outputs: list[Tensor], starts: list[Tensor], nondet_tol: float
) -> None:
    """Compare the gradients of a recorded run with those of an ordinary one."""
    pairs = [(output, start) for output, start in zip(outputs, starts, strict=True) if output.requires_grad]
    if not pairs:
        return
    reached, given = [output for output, _ in pairs], [start for _, start in pairs]
    plain = _gradients(reached, leaves, given)
    recorded = _gradients(reached, leaves, given, create_graph=True)
    for k, (one, other) in enumerate(zip(plain, recorded, strict=True)):
        _must_agree(one, other, "with create_graph=False", "with create_graph=True", k, nondet_tol)


def _must_agree(
    one: Array | None, other: Array | None, what: str, against: str, k: int, nondet_tol: float
) -> None:
    scale = max((float(np.abs(x).max()) for x in (one, other) if x is not None and x.size), default=0.0)
    precision = np.finfo(next((x.dtype for x in (one, other) if x is not None), np.dtype(float))).eps
    if not _alike(one, other, nondet_tol + 1000 * float(precision) * max(scale, 1.0)):
        raise GradcheckError(
            f"the gradient with respect to the {_ordinal(k)} input that requires grad is {one} {what}, but {other} "
            f"{against}"
        )


def _alike(one: Array | None, other: Array | None, tolerance: float) -> bool:
    """Return whether two gradients are equal up to `tolerance`, with None treated as zeros."""
    if one is None or other is None:
        rest = one if other is None else other
        return rest is None or bool((np.abs(rest) <= tolerance).all())
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0.0, atol=tolerance, equal_nan=True))


def _direction(output: Tensor, generator: np.random.Generator) -> Array:
    """Return a random gradient for `output`."""
    real = generator.uniform(0.5, 1.5, output.shape)
    if output.dtype.kind == "c":
        return np.asarray(real + 1j * generator.uniform(0.5, 1.5, output.shape)).astype(output.dtype)
    return np.asarray(real).astype(output.dtype)


def _ordinal(k: int) -> str:
    return ("first", "second", "third")[k] if k < 3 else f"{k + 1}th"
