"""The engines whose tensors can be written to, behind one small interface, so that all run the same program."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["PEERS", "Backend", "MyGrad", "NumPy", "Torch", "Viewgrad", "mutable_backends"]

Array = np.ndarray[Any, Any]


class Backend:
    """An engine: the functions `exp`, `log`, `sqrt`, `sin` and `tanh`; its tensors have operators and indexing."""

    name: str
    exp: Any
    log: Any
    sqrt: Any
    sin: Any
    tanh: Any
    minimum: Any

    def leaf(self, array: Array) -> Any:
        """Return a tensor to differentiate with respect to."""
        raise NotImplementedError

    def constant(self, array: Array) -> Any:
        """Return a tensor that is not differentiated, also of index arrays and masks."""
        raise NotImplementedError

    def zeros(self, *shape: int) -> Any:
        """Return a tensor of zeros to write results to."""
        raise NotImplementedError

    def clone(self, tensor: Any) -> Any:
        """Return a copy with history."""
        return tensor.clone()

    def no_grad(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which no history is recorded."""
        raise NotImplementedError

    def gradient(self, loss: Any, leaves: Sequence[Any]) -> list[Array]:
        """Return the gradient of a number with respect to each of the leaves, as arrays."""
        raise NotImplementedError

    def gradient_of_gradient(self, loss: Any, leaf: Any) -> list[Array]:
        """Return the gradient of the sum of squares of the gradient of a number."""
        raise NotImplementedError


class NumPy(Backend):
    """Plain NumPy, which runs the program without differentiating it."""

    name = "numpy"

    def __init__(self) -> None:
        self.exp, self.log, self.sqrt, self.sin, self.tanh = np.exp, np.log, np.sqrt, np.sin, np.tanh
        self.minimum = np.minimum

    def leaf(self, array: Array) -> Array:
        return array

    def constant(self, array: Array) -> Array:
        return array

    def zeros(self, *shape: int) -> Array:
        return np.zeros(shape)

    def clone(self, tensor: Array) -> Array:
        return tensor.copy()

    def no_grad(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()


class TorchLike(Backend):
    """An engine with PyTorch's names: PyTorch and this library."""

    module: Any

    def _take(self, module: Any) -> None:
        self.module = module
        for name in ("exp", "log", "sqrt", "sin", "tanh", "minimum"):
            setattr(self, name, getattr(module, name))

    def zeros(self, *shape: int) -> Any:
        return self.module.zeros(shape)

    def no_grad(self) -> contextlib.AbstractContextManager[Any]:
        context: contextlib.AbstractContextManager[Any] = self.module.no_grad()
        return context

    def gradient(self, loss: Any, leaves: Sequence[Any]) -> list[Array]:
        for leaf in leaves:
            leaf.grad = None
        loss.backward()
        return [leaf.grad.numpy() for leaf in leaves]

    def gradient_of_gradient(self, loss: Any, leaf: Any) -> list[Array]:
        grad = self.module.autograd.grad
        (first,) = grad(loss, leaf, create_graph=True)
        return [second.numpy() for second in grad((first * first).sum(), [leaf])]


class Viewgrad(TorchLike):
    """This library."""

    name = "viewgrad"

    def __init__(self) -> None:
        import viewgrad

        self._take(viewgrad)

    def leaf(self, array: Array) -> Any:
        return self.module.Tensor(array, requires_grad=True)

    def constant(self, array: Array) -> Any:
        return array if array.dtype.kind in "bi" else self.module.Tensor(array)


class Torch(TorchLike):
    """PyTorch on the CPU, with one thread."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        with contextlib.suppress(RuntimeError):  # may be set only once in a process
            torch.set_num_interop_threads(1)
        torch.set_default_dtype(torch.float64)
        self._take(torch)

    def leaf(self, array: Array) -> Any:
        return self.module.tensor(array, requires_grad=True)

    def constant(self, array: Array) -> Any:
        return self.module.tensor(array)


class MyGrad(Backend):
    """MyGrad, the other engine over NumPy that differentiates writes to views."""

    name = "mygrad"

    def __init__(self) -> None:
        import mygrad

        self.module: Any = mygrad
        for name in ("exp", "log", "sqrt", "sin", "tanh", "minimum"):
            setattr(self, name, getattr(mygrad, name))

    def leaf(self, array: Array) -> Any:
        return self.module.tensor(array.copy())

    def constant(self, array: Array) -> Any:
        return array if array.dtype.kind in "bi" else self.module.tensor(array.copy(), constant=True)

    def zeros(self, *shape: int) -> Any:
        return self.module.zeros(shape, dtype=float)

    def clone(self, tensor: Any) -> Any:
        return +tensor

    def no_grad(self) -> contextlib.AbstractContextManager[Any]:
        context: contextlib.AbstractContextManager[Any] = self.module.no_autodiff
        return context

    def gradient(self, loss: Any, leaves: Sequence[Any]) -> list[Array]:
        loss.backward()
        return [leaf.grad for leaf in leaves]


PEERS = ("torch", "mygrad", "autograd", "jax")


def mutable_backends(peers: Sequence[str]) -> tuple[list[Backend], list[str]]:
    """Return the installed engines, plain NumPy and this library first, and a line for each missing one."""
    backends: list[Backend] = [NumPy(), Viewgrad()]
    skipped = []
    for kind in (Torch, MyGrad):
        if kind.name in peers:
            try:
                backends.append(kind())
            except ImportError as error:
                skipped.append(f"{kind.name} is skipped: {error}")
    return backends, skipped
