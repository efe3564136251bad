"""A training step of a multilayer perceptron at batch 64: forward, cross-entropy, backward, gradient descent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from benchmarks.backends import Backend, NumPy
from benchmarks.functional import Functional, HipsAutograd, Jax
from benchmarks.measuring import Effort, Timing, measure_in_turn

__all__ = ["LAYERS", "measure_training"]

Array = np.ndarray[Any, Any]
BATCH: Final = 64
RATE: Final = 0.01
LAYERS: Final = {"32-64-64-10": (32, 64, 64, 10), "784-256-256-10": (784, 256, 256, 10)}


def loss_of(b: Any, x: Any, wanted: Any, parameters: Sequence[Any]) -> Any:
    """Return the mean cross-entropy of the network's predictions; `b` has `tanh`, `exp` and `log`."""
    h = x
    for i in range(0, len(parameters) - 2, 2):
        h = b.tanh(h @ parameters[i] + parameters[i + 1])
    z = h @ parameters[-2] + parameters[-1]
    return (b.log(b.exp(z).sum(1)) - (z * wanted).sum(1)).sum() / len(x)


def measure_training(
    layers: Sequence[int], engines: Sequence[Backend | Functional], effort: Effort
) -> tuple[dict[str, Timing], list[str]]:
    """Return the times of a step on each engine, and a line for each engine that cannot be measured."""
    random = np.random.default_rng(0)
    x = random.standard_normal((BATCH, layers[0]))
    wanted = np.eye(layers[-1])[random.integers(0, layers[-1], BATCH)]
    parameters = []
    for rows, columns in pairwise(layers):
        parameters += [random.standard_normal((rows, columns)) / rows**0.5, np.zeros(columns)]
    steps: dict[str, Callable[[], Any]] = {}
    notes = []
    expected: float | None = None
    for engine in engines:
        if isinstance(engine, NumPy):
            continue
        try:
            step = _step(engine, x, wanted, parameters)
            loss = [float(step()) for _ in range(3)][-1]  # this verifies the first two updates
            if expected is None:
                expected = loss
            if abs(loss - expected) > 1e-9:
                notes.append(f"{engine.name}: another loss after two steps ({loss} instead of {expected})")
                continue
            steps[engine.name] = step
        except Exception as error:  # a failing engine must not stop the measurement of the others
            notes.append(f"{engine.name}: {type(error).__name__}: {str(error)[:200]}")
    return measure_in_turn(steps, effort), notes


def _step(engine: Backend | Functional, x: Array, wanted: Array, initial: Sequence[Array]) -> Callable[[], Any]:
    """Return a function that makes one training step and returns the loss before it."""
    if isinstance(engine, Jax):
        return _jax_step(engine.module, x, wanted, initial)
    if isinstance(engine, HipsAutograd):
        return _autograd_step(engine.module, x, wanted, initial)
    assert isinstance(engine, Backend)
    inputs, targets = engine.constant(x), engine.constant(wanted)
    parameters = [engine.leaf(array) for array in initial]
    if engine.name == "mygrad":

        def step() -> Any:
            loss = loss_of(engine, inputs, targets, parameters)
            loss.backward()
            for parameter in parameters:
                parameter.data -= RATE * parameter.grad
            return loss.item()

    else:

        def step() -> Any:
            loss = loss_of(engine, inputs, targets, parameters)
            loss.backward()
            with engine.no_grad():
                for parameter in parameters:
                    parameter -= RATE * parameter.grad
                    parameter.grad = None
            return loss.detach().item()

    return step


def _jax_step(jax: Any, x: Array, wanted: Array, initial: Sequence[Array]) -> Callable[[], Any]:
    state = [jax.numpy.asarray(array) for array in initial]

    def update(parameters: Any, x: Any, wanted: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: loss_of(jax.numpy, x, wanted, p))(parameters)
        return loss, [parameter - RATE * grad for parameter, grad in zip(parameters, grads)]

    compiled = jax.jit(update)

    def step() -> Any:
        loss, state[:] = jax.block_until_ready(compiled(state, x, wanted))
        return loss

    return step


def _autograd_step(autograd: Any, x: Array, wanted: Array, initial: Sequence[Array]) -> Callable[[], Any]:
    state = [array.copy() for array in initial]
    differentiated = autograd.value_and_grad(lambda p: loss_of(autograd.numpy, x, wanted, p))

    def step() -> Any:
        loss, grads = differentiated(state)
        for parameter, grad in zip(state, grads):
            parameter -= RATE * grad
        return loss

    return step
