"""Use viewgrad functions in JAX, and JAX functions in viewgrad."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..adoption import adopted_callable
from ..autograd.function import Function
from ..errors import InteropError
from ..func.tree import flatten
from ..func.vmap import vmap
from ..tensor.modes import FORWARD, GRAD, current_mode
from ..tensor.tensor import Tensor, from_new_array
from .operation import Operation, on_leaves

__all__ = ["from_jax", "jax_function"]

Shape = Any  # a jax.ShapeDtypeStruct


def jax_function(f: Callable[..., Any], result_shape: Any = None, *, adopt: bool = True) -> Callable[..., Any]:
    """Make a viewgrad function, eager or compiled, a differentiable operation of JAX.

    It works under `jit`, `vmap` and `grad`, with reverse mode of any order. The function runs on the host, through
    `jax.pure_callback`. Under `vmap`, all examples are computed in one callback; see `viewgrad.func.vmap`.

    Arguments:
        f: a function that takes viewgrad tensors and returns tensors, or a tree of them. It should be pure, as JAX
            requires of all functions, and must not capture viewgrad tensors that require grad.
        result_shape: a tree of `jax.ShapeDtypeStruct` with the structure of the result, or a function of the arguments'
            shape structs that returns one. By default `f` is run once on arrays of ones for each combination of shapes.
        adopt: whether to adopt `f`; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments, with JAX arrays instead of tensors, which may be nested. Numbers and NumPy
        arrays become JAX arrays.

    Raises:
        InteropError: if `f` returns unexpected shapes, writes to an argument, or captures a viewgrad tensor that
            requires grad.
        TypeError: by JAX, in forward mode, which it does not support for functions with their own reverse-mode rule.

    Example:
        >>> import jax, viewgrad as vg
        >>> from viewgrad.interop import jax_function
        >>> def running_product(x):
        ...     out = vg.ones(len(x) + 1, dtype=x.dtype)
        ...     for i in range(len(x)):
        ...         out[i + 1] = out[i] * x[i]
        ...     return out[-1]
        >>> jax.jit(jax.grad(jax_function(running_product)))(jax.numpy.array([1.0, 2.0, 3.0]))
        Array([6., 3., 2.], dtype=float32)
    """
    shapes: dict[Any, Any] = {}
    if adopt:
        f = adopted_callable(f)

    @functools.wraps(f, updated=())
    def operation(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        places = [n for n, leaf in enumerate(leaves) if _is_array(leaf)]
        arrays = [jax.numpy.asarray(leaves[n]) for n in places]

        forms: list[Any] = []

        def flat(*tensors: Any) -> Any:
            given = list(leaves)
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            positional, keywords = jax.tree.unflatten(structure, given)
            results, form = jax.tree.flatten(f(*positional, **keywords))  # in JAX's order of keys
            forms[:] = [form]
            return [each if isinstance(each, Tensor) else Tensor(each) for each in results]

        structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
        others = tuple([repr(leaf) for n, leaf in enumerate(leaves) if n not in places])
        key = structure, others, tuple([(x.shape, x.dtype) for x in structs])
        name = getattr(f, "__name__", repr(f))
        if key not in shapes:
            if result_shape is None:
                found = _shapes_by_run(Operation(flat, name), structs)
                shapes[key] = jax.tree.unflatten(forms[0], found)
            else:
                given = list(leaves)
                for place, struct in zip(places, structs):
                    given[place] = struct
                positional, keywords = jax.tree.unflatten(structure, given)
                shapes[key] = result_shape(*positional, **keywords) if callable(result_shape) else result_shape
        expected, form = jax.tree.flatten(shapes[key])
        outputs = _operation(Operation(flat, name), expected)(*arrays)
        return jax.tree.unflatten(form, outputs)

    return operation


def _operation(operation: Operation, expected: Sequence[Shape]) -> Callable[..., Any]:
    """Return a function of JAX arrays whose rule is the gradient of an operation."""

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def call(*arrays: Any) -> Any:
        run = functools.partial(_on_host, operation, expected, [x.ndim for x in arrays])
        return jax.pure_callback(run, list(expected), *arrays, vmap_method="expand_dims")

    def forward(*arrays: Any) -> Any:
        return call(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> Any:
        inexact = [x for x in arrays if _is_inexact(x)]
        given = [_conjugate(c) for c, out in zip(cotangents, expected) if _is_inexact(out)]
        structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inexact]
        pulled = _operation(operation.pullback(len(arrays)), structs)(*arrays, *given) if inexact else ()
        found = map(_conjugate, pulled)
        return tuple([next(found) if _is_inexact(x) else np.zeros(x.shape, jax.dtypes.float0) for x in arrays])

    call.defvjp(forward, backward)
    return call  # type: ignore[no-any-return]


def _on_host(operation: Operation, expected: Sequence[Shape], dims: Sequence[int], *arrays: Any) -> list[Any]:
    """Run an operation on the values of JAX arrays, which have additional dimensions under `vmap`."""
    values = [np.asarray(x) for x in arrays]
    batched = values[0].ndim - dims[0] if values else 0
    if not batched:
        return _checked(operation(values, [False] * len(values)).arrays(), expected, (), operation.name)
    leading = np.broadcast_shapes(*[x.shape[:batched] for x in values])
    count = int(np.prod(leading))
    axes: list[int | None] = []
    for n, x in enumerate(values):
        if x.shape[:batched] == (1,) * batched and count > 1:
            values[n], axis = x.reshape(x.shape[batched:]), None
        else:
            values[n], axis = np.broadcast_to(x, (*leading, *x.shape[batched:])).reshape(count, *x.shape[batched:]), 0
        axes.append(axis)
    if all(axis is None for axis in axes) or not count:
        raise InteropError(f"{operation.name} was mapped over an empty axis")
    function = vmap(operation.function, tuple(axes))
    found = Operation(lambda *given: flatten(function(*given))[0], operation.name)(values, [False] * len(values))
    return _checked(found.arrays(), expected, leading, operation.name)


def _checked(found: Sequence[Any], expected: Sequence[Shape], leading: tuple[int, ...], name: str) -> list[Any]:
    if len(found) != len(expected):
        raise InteropError(f"{name} returned {len(found)} arrays, but result_shape has {len(expected)}")
    results = []
    for array, struct in zip(found, expected):
        if array.shape[1 if leading else 0 :] != struct.shape:
            shape = array.shape[1 if leading else 0 :]
            raise InteropError(
                f"{name} returned an array of shape {shape} where {struct.shape} was expected; under JAX the shapes of "
                "results may depend on the shapes of arguments only"
            )
        results.append(np.asarray(array.reshape((*leading, *struct.shape)), struct.dtype))
    return results


def _shapes_by_run(operation: Operation, structs: Sequence[Shape]) -> list[Shape]:
    """Determine the shapes of the results by a run on ones."""
    ones = [np.ones(struct.shape, struct.dtype) for struct in structs]
    found = operation(ones, [_is_inexact(struct) for struct in structs])
    return [jax.ShapeDtypeStruct(out.shape, jax.dtypes.canonicalize_dtype(out.dtype)) for out in found.outputs]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, float, complex)) and not isinstance(leaf, bool)


def _conjugate(array: Any) -> Any:
    """Return the conjugate of a gradient: viewgrad's gradients, like PyTorch's, are the conjugates of JAX's."""
    return jax.numpy.conj(array) if jax.numpy.iscomplexobj(array) else array


def _is_inexact(value: Any) -> bool:
    return bool(jax.numpy.issubdtype(value.dtype, jax.numpy.inexact))


# -- from JAX to viewgrad ----------------------------------------------------------------------------------------------


def from_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a JAX function a differentiable operator of viewgrad, in both modes and to any order.

    Arguments:
        f: a function that takes JAX arrays and returns arrays, or a tree of them. It may be jitted. Captured arrays are
            constants.

    Returns:
        A function with the same arguments, with viewgrad tensors and arrays instead of JAX arrays.

    Raises:
        InteropError: when called with float64 tensors, if JAX computes in 32 bits (its default).

    Example:
        >>> import jax, viewgrad as vg
        >>> from viewgrad.interop import from_jax
        >>> vg.func.grad(from_jax(jax.nn.softplus))(vg.Tensor(0.0, dtype="float32"))
        Tensor(0.5, dtype=float32)
    """

    @functools.wraps(f, updated=())
    def operator(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        forms: list[Any] = []
        tensors = [x if isinstance(x, Tensor) else Tensor(x) for x in leaves]
        outputs = _Operator.apply(on_leaves(f, structure), forms, *tensors)
        return jax.tree.unflatten(forms[0], list(outputs))

    return operator


class _Operator(Function):
    """A JAX function as one node of a viewgrad graph."""

    @staticmethod
    def forward(ctx: Any, f: Callable[..., Any], forms: list[Any], *tensors: Tensor) -> Any:
        inputs = [_jax_of(tensor) for tensor in tensors]
        leaves: Any
        if any(ctx.needs_input_grad):
            shape: list[Any] = []

            def flat(*arrays: Any) -> Any:
                leaves, form = jax.tree.flatten(f(*arrays))
                shape[:] = [form]
                return leaves

            leaves, ctx.pull = jax.vjp(flat, *inputs)
            forms.append(shape[0])
        else:
            leaves, form = jax.tree.flatten(f(*inputs))
            forms.append(form)
        ctx.f = f
        ctx.save_for_backward(*tensors)
        return tuple([from_new_array(np.array(leaf)) for leaf in leaves])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        tensors = ctx.saved_tensors
        needed = ctx.needs_input_grad[2:]
        if not current_mode() & (GRAD | FORWARD):
            found = ctx.pull(_cotangents(grads))
            return None, None, *[
                from_new_array(np.array(_conjugate(g))) if need and _is_inexact(g) else None
                for g, need in zip(found, needed)
            ]  # fmt: skip
        count = len(tensors)
        places = [n for n, x in enumerate(tensors) if x.dtype.kind in "fc"]

        def pullback(*given: Any) -> Any:
            outputs, pull = jax.vjp(lambda *arrays: jax.tree.leaves(ctx.f(*arrays)), *given[:count])
            found = pull([
                _conjugate(g) if _is_inexact(out) else np.zeros(out.shape, jax.dtypes.float0)
                for out, g in zip(outputs, given[count:])
            ])  # fmt: skip
            return [_conjugate(found[n]) for n in places]

        pulled = iter(_Operator.apply(pullback, [], *tensors, *grads))
        gradients = [next(pulled) if n in places else None for n in range(count)]
        return None, None, *[g if need else None for g, need in zip(gradients, needed)]

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        tensors, given = ctx.saved_tensors, tangents[2:]
        count = len(tensors)
        places = [n for n, x in enumerate(tensors) if given[n] is not None and x.dtype.kind in "fc"]

        def pushed(*both: Any) -> Any:
            directions = [
                jax.numpy.zeros_like(x) if _is_inexact(x) else np.zeros(x.shape, jax.dtypes.float0)
                for x in both[:count]
            ]
            for n, direction in zip(places, both[count:]):
                directions[n] = direction
            outputs, found = jax.jvp(lambda *x: jax.tree.leaves(ctx.f(*x)), both[:count], tuple(directions))
            return [
                each if _is_inexact(out) else jax.numpy.zeros(out.shape, out.dtype) for out, each in zip(outputs, found)
            ]

        return tuple(_Operator.apply(pushed, [], *tensors, *[given[n] for n in places]))


def _jax_of(tensor: Tensor) -> Any:
    array = jax.numpy.array(tensor._array)
    if array.dtype != tensor.dtype and tensor.dtype.kind in "fc":
        raise InteropError(
            f"JAX would compute with {array.dtype} where the tensor has {tensor.dtype}; set "
            "jax.config.update('jax_enable_x64', True), or convert the tensor"
        )
    return array


def _cotangents(grads: Sequence[Tensor]) -> list[Any]:
    return [
        _conjugate(jax.numpy.array(g._array)) if g.dtype.kind in "fc" else np.zeros(g.shape, jax.dtypes.float0)
        for g in grads
    ]
