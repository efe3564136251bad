"""Hints in AttributeErrors for names that exist in PyTorch, JAX or autograd but not in viewgrad."""

from __future__ import annotations

from typing import Any, Final, NoReturn

__all__ = ["MODULE_HINTS", "TENSOR_HINTS", "MissingName", "add_hints"]

_CPU: Final = "tensors are arrays in main memory, so there is nothing to move"
_RANDOM: Final = "viewgrad.numpy.random.default_rng(seed) draws random tensors"
_NETWORKS: Final = "viewgrad.torch_names has relu, conv2d, cross_entropy and similar functions"
_CUSTOM: Final = "use viewgrad.autograd.define_op, or a class of viewgrad.autograd.Function"
_DTYPES: Final = {
    "bool": "bool", "double": "np.float64", "float": "np.float32", "half": "np.float16", "int": "np.int32",
    "long": "np.int64",
}  # fmt: skip

# For a tensor x.
TENSOR_HINTS: Final = {
    **{name: f"use x.astype({dtype})" for name, dtype in _DTYPES.items()},
    "at": "write in place: x[i] = value, x[i] += value",
    "block_until_ready": "not needed: operations have finished when they return",
    "bmm": "use x @ y",
    "clamp": "use x.clip(min, max)",
    "cpu": _CPU,
    "cuda": _CPU,
    "data_ptr": "use x.numpy().ctypes.data",
    "dim": "use x.ndim",
    "element_size": "use x.itemsize",
    "gather": "use viewgrad.take_along_axis(x, index, axis)",
    "index_select": "use x.take(index, axis)",
    "is_cuda": _CPU,
    "masked_select": "use x[mask]",
    "mm": "use x @ y",
    "ndimension": "use x.ndim",
    "nelement": "use x.size",
    "new_ones": "use viewgrad.ones(shape, dtype=x.dtype)",
    "new_zeros": "use viewgrad.zeros(shape, dtype=x.dtype)",
    "numel": "use x.size",
    "repeat_interleave": "use x.repeat(repeats, axis)",
    "rsqrt": "use 1 / viewgrad.sqrt(x)",
    "t": "use x.T",
    "to": "use x.astype(dtype); " + _CPU,
    "type": "use x.dtype, or x.astype(dtype)",
}
# For the module viewgrad.
MODULE_HINTS: Final = {
    **{name: f"use {dtype}" for name, dtype in _DTYPES.items() if name not in ("bool", "float", "int")},
    "bmm": "use viewgrad.matmul",
    "cat": "use viewgrad.concatenate",
    "clamp": "use viewgrad.clip",
    "cuda": _CPU,
    "custom_jvp": _CUSTOM,
    "custom_vjp": _CUSTOM,
    "defvjp": _CUSTOM,
    "elementwise_grad": "use viewgrad.grad(lambda x: f(x).sum())",
    "float": "use np.float32",
    "functional": _NETWORKS,
    "gather": "use viewgrad.take_along_axis(x, index, axis)",
    "index_select": "use viewgrad.take(x, index, axis)",
    "inverse": "use viewgrad.linalg.inv",
    "is_tensor": "use isinstance(x, viewgrad.Tensor)",
    "jacobian": "use viewgrad.jacrev, or viewgrad.jacfwd",
    "lax": "use Python's loops and branches",
    "make_jvp": "use viewgrad.jvp",
    "make_vjp": "use viewgrad.vjp",
    "manual_seed": _RANDOM,
    "masked_select": "use x[mask]",
    "mm": "use viewgrad.matmul",
    "nn": _NETWORKS,
    "numel": "use viewgrad.size(x)",
    "optim": "use scipy.optimize, or write the update under viewgrad.no_grad(): p -= rate * p.grad",
    "primitive": _CUSTOM,
    "rand": _RANDOM,
    "randint": _RANDOM,
    "randn": _RANDOM,
    "rsqrt": "use 1 / viewgrad.sqrt(x)",
    "set_default_dtype": "the default is float64; pass dtype= when you create a tensor",
    "stop_gradient": "use x.detach()",
    "tree_map": "transforms take lists, tuples, dictionaries and dataclasses as they are",
}


class MissingName:
    """An attribute of `Tensor` that raises AttributeError and names the alternative."""

    __slots__ = ("hint", "name")

    def __init__(self, name: str, hint: str) -> None:
        self.name = name
        self.hint = hint

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        raise AttributeError(f"Tensor has no attribute {self.name!r}: {self.hint}", name=self.name, obj=tensor)


def add_hints(cls: type) -> None:
    """Add the hints to a class of tensors, for names that it does not define."""
    for name, hint in TENSOR_HINTS.items():
        if not hasattr(cls, name):
            setattr(cls, name, MissingName(name, hint))
