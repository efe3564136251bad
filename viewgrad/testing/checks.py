"""Check a program: values, gradients and higher derivatives, against several oracles.

The oracles are finite differences, the program executed without aliasing, and the program itself with views recreated
by their view functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..autograd.api import grad
from ..tensor.tensor import Tensor, held_grad
from ..type_aliases import Array
from ..views.construct import view_replay
from .alias_model import AliasModel
from .finite_differences import Estimate, finite_differences, second_differences
from .functional_oracle import FunctionalOracle
from .program import Program

CLOSE = 1e-9  # tolerance for two exact computations
CLOSE_THIRD = 1e-7  # the same tolerance for third derivatives
SINGLE = 1e-3  # tolerance in single precision
NUMERIC = 1e-6  # tolerance of finite differences
NUMERIC_SECOND = 1e-5  # tolerance of second differences


class Mismatch(AssertionError):
    """The results of a program disagree with an oracle; the message contains the program, ready to paste."""


@attrs.frozen
class Gradients:
    """The results of a program: arrays by the names of tensors, None for a gradient known to be zero.

    Arguments:
        values: the tensors at the end.
        first: the gradients of the loss with respect to leaves and other inputs.
        second: the gradients of the weighted sum of `first` with respect to the leaves.
        third: the same for `second`.
    """

    values: Mapping[str, Array]
    first: Mapping[str, Array | None]
    second: Mapping[str, Array | None]
    third: Mapping[str, Array | None]


def check_program(program: Program, *, order: int = 2, numeric: bool = True) -> None:
    """Run a program and compare it with the oracles.

    Arguments:
        program: the program to run.
        order: 1 for gradients, 2 for second derivatives too, 3 for third derivatives too.
        numeric: whether to compare with finite differences as well, up to the second order.

    Raises:
        Mismatch: if anything differs; the message shows the program.
    """
    double = program.in_double_precision
    try:
        if program != double:
            _check_single_precision(program, double, order)
        _check_program(double, order, numeric)
    except Exception as error:
        error.add_note(f"The program:\n\n{program.source()}")
        raise


def _check_program(program: Program, order: int, numeric: bool) -> None:
    weights = weights_for(program)
    ours = gradients(program, weights, order)
    _check_sketch(program, ours)
    _check_single_run(program, ours)
    _check_given_gradients(program)
    _compare("the program without aliasing", ours, unaliased_gradients(program, weights, order))
    with view_replay(True):
        _compare("the program under view_replay(True)", ours, gradients(program, weights, order))
    if numeric:
        _compare_numeric("gradient", ours.first, finite_differences(program), NUMERIC)
        if order > 1:
            _compare_numeric("second gradient", ours.second, second_differences(program, weights), NUMERIC_SECOND)


def _check_single_precision(program: Program, double: Program, order: int) -> None:
    """Check that single precision agrees approximately, and that gradients have the dtypes of their tensors."""
    weights = weights_for(double)
    ours, exact = gradients(program, weights, order), gradients(double, weights, order)
    with view_replay(True):
        replayed = gradients(program, weights, order)
    for what in ("values", "first", "second"):
        mine: Mapping[str, Array | None] = getattr(ours, what)
        theirs: Mapping[str, Array | None] = getattr(exact, what)
        again: Mapping[str, Array | None] = getattr(replayed, what)
        cast: dict[str, Array | None] = {}
        for name, gradient in theirs.items():
            cast[name] = None if gradient is None else gradient.astype(ours.values[name].dtype)
        compare_all(f"(in single precision) {what}", "the program in double precision", mine, cast, SINGLE)
        compare_all(f"(in single precision) {what}", "the program under view_replay(True)", again, mine, SINGLE)


def weights_for(program: Program) -> dict[str, Array]:
    """Return the weights of the gradients in second derivatives."""
    weights = {}
    for i, leaf in enumerate(program.differentiable_leaves):
        size = int(np.prod(leaf.shape))
        weight: Array = np.cos(np.arange(size) + i) + 0.25
        if leaf.kind == "c":
            weight = weight + 1j * np.sin(2 * np.arange(size) + i)
        weights[leaf.name] = weight.reshape(leaf.shape)
    return weights


def gradients(program: Program, weights: Mapping[str, Array], order: int) -> Gradients:
    """Return the values and gradients of the program, run as printed."""
    names = program.execute()
    leaves = {leaf.name: names[leaf.name] for leaf in program.differentiable_leaves}
    inputs = {name: names[name] for name in program.inputs}
    values = {name: tensor._array.copy() for name, tensor in names.items() if isinstance(tensor, Tensor)}
    return differentiated(names[program.loss], leaves, inputs, weights, order, values)


def unaliased_gradients(program: Program, weights: Mapping[str, Array], order: int) -> Gradients:
    """Return the values and gradients of the program, run without aliasing."""
    machine = FunctionalOracle()
    program.run(machine)
    inputs = {name: machine.origin(name) for name in program.inputs}
    values = {name: tensor.value() for name, tensor in machine.tensors.items()}
    found = differentiated(machine.tensor(program.loss), machine.leaves, inputs, weights, order, values)
    first = {
        name: gradient if gradient is None or name in machine.leaves else machine.gradient(name, gradient)
        for name, gradient in found.first.items()
    }
    return attrs.evolve(found, first=first)


def differentiated(
    loss: Tensor,
    leaves: Mapping[str, Tensor],
    inputs: Mapping[str, Tensor],
    weights: Mapping[str, Array],
    order: int,
    values: Mapping[str, Array],
) -> Gradients:
    if not loss.requires_grad:
        nothing: dict[str, Array | None] = dict.fromkeys([*leaves, *inputs])
        return Gradients(values, nothing, dict.fromkeys(leaves), dict.fromkeys(leaves))
    wanted = [*leaves.values(), *inputs.values()]
    found: Sequence[Tensor | None] = grad(loss, wanted, create_graph=order > 1, allow_unused=True)
    first = {name: array_of(gradient) for name, gradient in zip([*leaves, *inputs], found, strict=True)}
    higher: list[dict[str, Array | None]] = [{}, {}]
    for i in range(order - 1):
        found = _differentiated_again(found, leaves, weights, create_graph=i < order - 2)
        higher[i] = {name: array_of(gradient) for name, gradient in zip(leaves, found, strict=True)}
    return Gradients(values, first, *higher)


def _differentiated_again(
    gradients: Sequence[Tensor | None],
    leaves: Mapping[str, Tensor],
    weights: Mapping[str, Array],
    *,
    create_graph: bool,
) -> Sequence[Tensor | None]:
    """Return the gradients with respect to the leaves, and those of the weighted sum of these gradients."""
    total: Any = None
    for name, gradient in zip(leaves, gradients, strict=False):
        if gradient is not None and gradient.requires_grad:
            term = (gradient * np.conj(weights[name])).real.sum()
            total = term if total is None else total + term
    if total is None:
        return (None,) * len(leaves)
    return grad(total, list(leaves.values()), create_graph=create_graph, allow_unused=True)


def array_of(gradient: Tensor | None) -> Array | None:
    """Return a gradient as a separate array, or None if there is no gradient."""
    return None if gradient is None else gradient._array.copy()


# -- the comparisons ---------------------------------------------------------------------------------------------------


def _check_sketch(program: Program, ours: Gradients) -> None:
    """Check that the values are those computed by plain NumPy."""
    sketch = AliasModel()
    program.run(sketch)
    values = {name: array for name, array in sketch.arrays.items() if name in ours.values}
    compare_all("value", "NumPy", {name: ours.values[name] for name in values}, values, CLOSE)


def _check_single_run(program: Program, ours: Gradients) -> None:
    """Check that one backward pass, for all inputs or for each, once or twice, computes the same gradients."""
    names = program.execute()
    loss = names[program.loss]
    if not loss.requires_grad:
        return
    wanted = list(ours.first)
    tensors = [names[name] for name in wanted]
    for what in ("a first run", "a second run of the same graph"):
        together = grad(loss, tensors, retain_graph=True, allow_unused=True)
        found = dict(zip(wanted, map(array_of, together), strict=True))
        compare_all("gradient", what, ours.first, found, CLOSE)
        _check_unshared([*tensors, *together], len(tensors))
    for name, tensor in zip(wanted, tensors, strict=True):
        (alone,) = grad(loss, tensor, retain_graph=True, allow_unused=True)
        what = f"a run for {name} alone"
        compare_all("gradient", what, {name: ours.first[name]}, {name: array_of(alone)}, CLOSE)
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    loss.backward(inputs=tensors)
    accumulated = {name: array_of(held_grad(names[name])) for name in wanted}
    times = {name: 3 if names[name].is_leaf else 1 for name in wanted}
    expected = {name: None if mine is None else mine * times[name] for name, mine in ours.first.items()}
    compare_all("accumulated gradient", "backward()", expected, accumulated, CLOSE)


def _check_given_gradients(program: Program) -> None:
    """Check that several outputs with supplied gradients act like a weighted sum, and leave these gradients unchanged.
    """
    names = program.execute()
    leaves = {leaf.name: names[leaf.name] for leaf in program.differentiable_leaves}
    outputs = [names[name] for name in (*program.inputs, program.loss) if names[name].requires_grad]
    if not outputs or not leaves:
        return
    weights = [np.asarray(np.cos(np.arange(output.size)).reshape(output.shape), output.dtype) for output in outputs]
    given = [Tensor(weight) for weight in weights]
    terms = [(output * np.conj(weight)).real.sum() for output, weight in zip(outputs, weights, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    found = grad(total, list(leaves.values()), retain_graph=True, allow_unused=True)
    expected = dict(zip(leaves, map(array_of, found)))
    for what in ("a run from several outputs", "a second run from several outputs"):
        found = grad(outputs, list(leaves.values()), given, retain_graph=True, allow_unused=True)
        compare_all("gradient", what, expected, dict(zip(leaves, map(array_of, found))), CLOSE)
        _check_unshared([*given, *found], len(given))
        for tensor, weight in zip(given, weights, strict=True):
            if not np.array_equal(tensor._array, weight):
                raise Mismatch(f"{what} modified an incoming gradient")


def _check_unshared(tensors: Sequence[Tensor | None], number: int) -> None:
    """Check that the tensors after the first `number` share no memory with the others."""
    for i, tensor in enumerate(tensors):
        for other in tensors[max(i + 1, number) :]:
            if tensor is not None and other is not None and np.shares_memory(tensor._array, other._array):
                raise Mismatch(f"a gradient, number {i}, shares memory")


def _compare(oracle: str, ours: Gradients, theirs: Gradients) -> None:
    values = {name: ours.values[name] for name in theirs.values}
    compare_all("value", oracle, values, theirs.values, CLOSE)
    compare_all("gradient", oracle, ours.first, theirs.first, CLOSE)
    compare_all("second gradient", oracle, ours.second, theirs.second, CLOSE)
    compare_all("third gradient", oracle, ours.third, theirs.third, CLOSE_THIRD)


def _compare_numeric(
    what: str, ours: Mapping[str, Array | None], theirs: Mapping[str, Estimate], tolerance: float
) -> None:
    for name, estimate in theirs.items():
        allowed = tolerance + 4 * estimate.uncertainty
        compare_all(what, "finite differences", {name: ours[name]}, {name: estimate.gradient}, allowed)


def compare_all(
    what: str,
    oracle: str,
    ours: Mapping[str, Array | None],
    theirs: Mapping[str, Array | None],
    tolerance: float,
) -> None:
    for name, mine in ours.items():
        other = theirs[name]
        if mine is None and other is None:
            continue
        mine = np.zeros_like(other) if mine is None else mine
        other = np.zeros_like(mine) if other is None else other
        if mine.shape != other.shape or mine.dtype != other.dtype:
            told = f"{mine.dtype}{list(mine.shape)} instead of {other.dtype}{list(other.shape)}"
            raise Mismatch(f"the {what} of {name} is {told} by {oracle}")
        scale = max(1.0, float(np.abs(other).max(initial=0.0)))
        if not np.allclose(mine, other, rtol=0, atol=tolerance * scale):
            told = f"{np.array_repr(mine)}\ninstead of {np.array_repr(other)}"
            raise Mismatch(f"the {what} of {name} is\n{told}\nby {oracle}")
