"""The libraries that are compared, each with its array functions and its way to compute gradients."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Library:
    """An array module under common names, and its way to compute gradients.

    `value_and_gradients(program, inputs)` returns the number that the program returns, and its gradient with respect
    to each input.
    """

    name: str
    package: str

    def __init__(self) -> None:
        self.load()

    @property
    def version(self) -> str:
        """The version that is installed."""
        return importlib.metadata.version(self.package)

    def load(self) -> None:
        """Import the library."""
        raise NotImplementedError

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        """Return the value of a program and its gradients."""
        raise NotImplementedError

    def copy(self, x: Any) -> Any:
        """Return a fresh array that depends on `x`."""
        return x * 1.0

    def mask(self, values: list[bool]) -> Any:
        """Return a boolean array."""
        return np.array(values)

    def indices(self, values: list[int]) -> Any:
        """Return an array of integers to index with."""
        return np.array(values)


class NumPy(Library):
    """The reference: values by NumPy, gradients by finite differences."""

    name = "NumPy"
    package = "numpy"

    def load(self) -> None:
        for function in ("exp", "outer", "split", "real", "conj", "multiply", "zeros", "broadcast_to"):
            setattr(self, function, getattr(np, function))

    def copy(self, x: Any) -> Any:
        return np.array(x)

    def integers(self, n: int) -> Any:
        return np.zeros(n, int)

    def detach(self, x: Any) -> Any:
        return x.copy()  # not used: NumPy has no detached tensors

    def share(self, array: Any) -> Any:
        return array

    def export(self, x: Any) -> Any:
        return x

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        def value(changed: int, step: np.ndarray) -> Any:
            arrays = [np.array(x, complex if x.dtype.kind == "c" else float) for x in inputs]
            arrays[changed] += step
            return np.array(program(self, *arrays))

        gradients = []
        for number, x in enumerate(inputs):
            gradient = np.zeros(x.shape, complex if x.dtype.kind == "c" else float)
            for index in np.ndindex(x.shape):
                for part in (1.0, 1.0j) if x.dtype.kind == "c" else (1.0,):
                    step = np.zeros(x.shape, gradient.dtype)
                    step[index] = 1e-6 * part
                    gradient[index] += part * (value(number, step) - value(number, -step)) / 2e-6
            gradients.append(gradient)
        return value(0, np.zeros(inputs[0].shape)), gradients


class Viewgrad(Library):
    """This library."""

    name = "viewgrad"
    package = "viewgrad"

    def load(self) -> None:
        import viewgrad as vg

        self.module = vg
        for function in ("exp", "outer", "real", "conj", "zeros", "broadcast_to"):
            setattr(self, function, getattr(vg, function))
        self.split = np.split
        self.multiply = np.multiply

    @property
    def version(self) -> str:
        return str(self.module.__version__)

    def copy(self, x: Any) -> Any:
        return x.clone()

    def integers(self, n: int) -> Any:
        return self.module.zeros(n, dtype=int)

    def detach(self, x: Any) -> Any:
        return x.detach()

    def share(self, array: Any) -> Any:
        return self.module.from_numpy(array)

    def export(self, x: Any) -> Any:
        return x.detach().numpy()

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        leaves = [self.module.Tensor(x, requires_grad=True) for x in inputs]
        value = program(self, *leaves)
        grads = self.module.autograd.grad(value, leaves, materialize_grads=True)
        return value.item(), [np.asarray(g) for g in grads]


class PyTorch(Library):
    """PyTorch, eager."""

    name = "PyTorch"
    package = "torch"

    def load(self) -> None:
        import torch

        self.module = torch
        for function in ("exp", "outer", "real", "conj", "multiply", "broadcast_to"):
            setattr(self, function, getattr(torch, function))
        self.split = torch.tensor_split

    def copy(self, x: Any) -> Any:
        return x.clone()

    def zeros(self, n: int) -> Any:
        return self.module.zeros(n, dtype=self.module.float64)

    def integers(self, n: int) -> Any:
        return self.module.zeros(n, dtype=self.module.int64)

    def mask(self, values: list[bool]) -> Any:
        return self.module.tensor(values)

    indices = mask

    def detach(self, x: Any) -> Any:
        return x.detach()

    def share(self, array: Any) -> Any:
        return self.module.from_numpy(array)

    def export(self, x: Any) -> Any:
        return x.detach().numpy()

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        leaves = [self.module.tensor(x, requires_grad=True) for x in inputs]
        value = program(self, *leaves)
        grads = self.module.autograd.grad(value, leaves, materialize_grads=True)
        return value.item(), [g.resolve_conj().numpy() for g in grads]


class MyGrad(Library):
    """MyGrad."""

    name = "MyGrad"
    package = "mygrad"

    def load(self) -> None:
        import mygrad

        self.module = mygrad
        for function in ("exp", "multiply", "zeros", "broadcast_to"):
            setattr(self, function, getattr(mygrad, function))

    def outer(self, a: Any, b: Any) -> Any:
        return a[:, None] * b[None, :]

    def split(self, x: Any, n: int) -> Any:
        size = len(x) // n
        return [x[i * size : (i + 1) * size] for i in range(n)]

    def real(self, x: Any) -> Any:
        return x.real

    def conj(self, x: Any) -> Any:
        return x.conj()

    def integers(self, n: int) -> Any:
        return self.module.zeros(n, dtype=int)

    def detach(self, x: Any) -> Any:
        return x.data

    def share(self, array: Any) -> Any:
        return self.module.tensor(array, copy=False, constant=True)

    def export(self, x: Any) -> Any:
        return x.data

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        leaves = [self.module.tensor(x) for x in inputs]
        value = program(self, *leaves)
        value.backward()
        return value.item(), [np.zeros(x.shape) if leaf.grad is None else leaf.grad for leaf, x in zip(leaves, inputs)]


class Autograd(Library):
    """HIPS autograd."""

    name = "autograd"
    package = "autograd"

    def load(self) -> None:
        import autograd
        import autograd.numpy as anp
        from autograd.tracer import getval

        self.getval = getval
        self.module = autograd
        for function in ("exp", "outer", "split", "real", "conj", "multiply", "zeros", "broadcast_to"):
            setattr(self, function, getattr(anp, function))

    def integers(self, n: int) -> Any:
        return np.zeros(n, int)

    def detach(self, x: Any) -> Any:
        return self.getval(x)

    def share(self, array: Any) -> Any:
        return array

    def export(self, x: Any) -> Any:
        return self.getval(x)

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        arrays = tuple(x.copy() for x in inputs)
        value, grads = self.module.value_and_grad(lambda xs: program(self, *xs))(arrays)
        return value, [np.conj(g) for g in grads]  # its gradient is the conjugate of the direction of ascent


class Jax(Library):
    """JAX."""

    name = "JAX"
    package = "jax"

    def load(self) -> None:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        self.module = jax
        self.jnp = jnp
        for function in ("exp", "outer", "split", "real", "conj", "multiply", "zeros", "broadcast_to"):
            setattr(self, function, getattr(jnp, function))

    def integers(self, n: int) -> Any:
        return self.jnp.zeros(n, int)

    def mask(self, values: list[bool]) -> Any:
        return self.jnp.array(values)

    indices = mask

    def detach(self, x: Any) -> Any:
        return self.module.lax.stop_gradient(x)

    def share(self, array: Any) -> Any:
        return self.jnp.asarray(array)

    def export(self, x: Any) -> Any:
        return np.asarray(self.module.lax.stop_gradient(x))

    def value_and_gradients(self, program: Callable[..., Any], inputs: Sequence[np.ndarray]) -> tuple[Any, list[Any]]:
        arrays = [self.jnp.asarray(x) for x in inputs]
        numbers = tuple(range(len(inputs)))
        value, grads = self.module.value_and_grad(lambda *xs: program(self, *xs), numbers)(*arrays)
        return value, [np.conj(g) for g in grads]  # its gradient is the conjugate of the direction of ascent


PEERS = (PyTorch, MyGrad, Autograd, Jax)
