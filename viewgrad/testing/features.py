"""Programs run with features of the library enabled; no feature may change gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..autograd.api import grad
from ..autograd.modes import forward_ad
from ..autograd.modes.profile import profile
from ..autograd.modes.saved_hooks import saved_tensors_hooks
from ..func import functionalize
from ..tensor.tensor import Tensor
from ..type_aliases import Array
from . import program_ops as s
from .checks import CLOSE, Gradients, Mismatch, array_of, compare_all, differentiated, gradients, weights_for
from .program import Program


def check_feature(program: Program, feature: str, *, order: int = 2) -> None:
    """Run a program with and without a feature enabled, and compare the results.

    Arguments:
        program: the program to run.
        feature: a key of `FEATURES`.
        order: 1 for gradients, 2 for second derivatives too.

    Raises:
        Mismatch: if any result differs; a note shows the program.
    """
    program = program.in_double_precision
    try:
        weights = weights_for(program)
        FEATURES[feature](program, gradients(program, weights, order), weights, order)
    except Exception as error:
        error.add_note(f"The program, with {feature}:\n\n{program.source()}")
        raise


# -- forward mode ------------------------------------------------------------------------------------------------------


def forward_mode(program: Program, plain: Gradients, weights: Mapping[str, Array], order: int) -> None:
    """Check that the tangent of the loss is the gradient times the tangents, also mixed with reverse mode."""
    if any(isinstance(step, s.NoGrad | s.UnrecordedView | s.DetachInPlace) for step in program.steps):
        return  # ignored or refused by forward mode
    with forward_ad.dual_level():
        leaves = program.make_leaves()
        duals = dict(leaves)
        for name, weight in weights.items():
            duals[name] = forward_ad.make_dual(leaves[name], Tensor(weight))
        names = program.execute_stepwise(duals)
        loss = names[program.loss]
        primal, tangent = forward_ad.unpack_dual(loss)
        compare_all("value", "forward mode", {"loss": plain.values[program.loss]}, {"loss": primal._array}, CLOSE)
        expected = sum(
            float((np.conj(gradient) * weights[name]).real.sum())
            for name, gradient in plain.first.items()
            if name in weights and gradient is not None
        )
        derivative = None if tangent is None else tangent._array
        compare_all("derivative", "forward mode", {"loss": np.array(expected)}, {"loss": derivative}, CLOSE)
        if order < 2 or tangent is None or not loss.requires_grad:
            return
        wanted = {leaf.name: leaves[leaf.name] for leaf in program.differentiable_leaves}
        over = dict.fromkeys(wanted, None)
        if tangent.requires_grad:
            found = grad(tangent, list(wanted.values()), retain_graph=True, allow_unused=True)
            over = dict(zip(wanted, map(array_of, found), strict=True))
        compare_all("second gradient", "reverse over forward mode", plain.second, over, CLOSE)
        found = grad(loss, list(wanted.values()), allow_unused=True)
        tangents = [None if gradient is None else forward_ad.unpack_dual(gradient).tangent for gradient in found]
        over = dict(zip(wanted, map(array_of, tangents), strict=True))
        compare_all("second gradient", "forward over reverse mode", plain.second, over, CLOSE)


# -- hooks -------------------------------------------------------------------------------------------------------------


def observing_hooks(program: Program, plain: Gradients, weights: Mapping[str, Array], order: int) -> None:
    """Check that hooks that only read gradients, on every tensor and node, change nothing."""
    seen: list[Any] = []

    def observe(*args: Any) -> None:
        seen.append(args)
        for arg in args:
            for gradient in arg if isinstance(arg, tuple) else (arg,):
                if gradient is not None:
                    gradient.detach().numpy()

    def hook(step: Any, names: dict[str, Any]) -> None:
        for name in {*step.outs, *([step.target] if hasattr(step, "target") else [])} & names.keys():
            tensor = names[name]
            if tensor.requires_grad:
                tensor.register_hook(observe)
                tensor.retain_grad()
                if tensor.grad_fn is not None:
                    tensor.grad_fn.register_hook(observe)
                    tensor.grad_fn.register_prehook(observe)

    names = program.execute_stepwise(program.make_leaves(), hook)
    loss = names[program.loss]
    if loss.requires_grad:
        loss.backward(retain_graph=True)
        # After detach_(), a tensor still retains the gradient of its old value, as in PyTorch.
        ended = {step.tensor for step in s.flat_steps(program.steps) if isinstance(step, s.DetachInPlace)}
        kept = [name for name in plain.first if name not in ended and (names[name].is_leaf or names[name].retains_grad)]
        retained = {name: array_of(names[name].grad) for name in kept}
        expected = {name: plain.first[name] for name in retained}
        compare_all("gradient that was retained", "hooks that observe", expected, retained, CLOSE)
    compare(program, "the program under hooks that observe", plain, names, weights, order)


def hooks_on_saved_values(program: Program, plain: Gradients, weights: Mapping[str, Array], order: int) -> None:
    """Check a run in which every saved value is packed to bytes and unpacked."""

    def pack(tensor: Tensor) -> Any:
        array = tensor.detach().numpy()
        return array.tobytes(), array.shape, array.dtype

    def unpack(packed: Any) -> Tensor:
        data, shape, dtype = packed
        return Tensor(np.frombuffer(data, dtype).reshape(shape))

    with saved_tensors_hooks(pack, unpack):
        names = program.execute()
        compare(program, "the program under saved_tensors_hooks", plain, names, weights, order)


def profiled(program: Program, plain: Gradients, weights: Mapping[str, Array], order: int) -> None:
    """Check a run in which every call and backward step is timed."""
    with profile() as found:
        names = program.execute()
        compare(program, "the program under profile", plain, names, weights, order)
    by_operator, by_line = (sum(row.calls + row.steps for row in rows) for rows in (found.operators, found.lines))
    if by_operator != by_line:
        raise Mismatch(f"the profile has {by_operator} calls and steps by operator, and {by_line} by line")


# -- functionalize -----------------------------------------------------------------------------------------------------


def functionalized(program: Program, plain: Gradients, weights: Mapping[str, Array], order: int) -> None:
    """Check the functionalized program, in which no version may change."""
    leaves = program.make_leaves()
    names: dict[str, Any] = {}

    def run(given: dict[str, Tensor]) -> None:
        names.update(program.execute_stepwise(given))
        for name, tensor in names.items():
            if isinstance(tensor, Tensor) and tensor._version:
                raise Mismatch(f"the version of {name} is {tensor._version} under functionalize")

    functionalize(run)(leaves)
    values = {name: tensor._array.copy() for name, tensor in names.items() if isinstance(tensor, Tensor)}
    compare_all(
        "value", "the program under functionalize", {name: plain.values[name] for name in values}, values, CLOSE
    )
    wanted = {leaf.name: leaves[leaf.name] for leaf in program.differentiable_leaves}
    found = differentiated(names[program.loss], wanted, {}, weights, order, {})
    ours = {name: gradient for name, gradient in plain.first.items() if name in wanted}
    compare_all("gradient", "the program under functionalize", ours, found.first, CLOSE)
    compare_all("second gradient", "the program under functionalize", plain.second, found.second, CLOSE)


def compare(
    program: Program, oracle: str, plain: Gradients, names: Mapping[str, Any], weights: Mapping[str, Array], order: int
) -> None:
    """Compare an ordinary run with the variables of another run."""
    leaves = {leaf.name: names[leaf.name] for leaf in program.differentiable_leaves}
    inputs = {name: names[name] for name in program.inputs}
    found = differentiated(names[program.loss], leaves, inputs, weights, order, {})
    compare_all("gradient", oracle, plain.first, found.first, CLOSE)
    compare_all("second gradient", oracle, plain.second, found.second, CLOSE)


FEATURES: Final[dict[str, Callable[[Program, Gradients, Mapping[str, Array], int], None]]] = {
    "forward mode": forward_mode,
    "observing hooks": observing_hooks,
    "hooks on saved values": hooks_on_saved_values,
    "profile": profiled,
    "functionalize": functionalized,
}
