"""Use viewgrad functions in JAX, and JAX functions in viewgrad."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..adoption import adopted_callable
from ..autograd.function import Function
from ..errors import InteropError
from ..func.program_methods import program_method
from ..func.tree import flatten
from ..func.vmap import vmap
from ..tensor.modes import FORWARD, GRAD, current_mode
from ..tensor.tensor import Tensor, from_new_array
from .operation import OnLeaves, Operation

__all__ = ["from_jax", "jax_function"]

Shape = Any  # a jax.ShapeDtypeStruct


def jax_function(f: Callable[..., Any], result_shape: Any = None, *, adopt: bool = True) -> Callable[..., Any]:
    """Make a viewgrad function, eager or compiled, a differentiable operation of JAX.

    It works under JAX's transformations, such as `jit`, `vmap`, `grad`, `jvp`, `hessian` and `checkpoint`, with
    derivatives of any order. The function runs on the host, through `jax.pure_callback`. Under `vmap`, all examples are
    computed in one callback; see `viewgrad.func.vmap`.

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

        def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
            def flat(*tensors: Any) -> Any:
                given = list(leaves)
                for place, tensor in zip(places, tensors):
                    given[place] = tensor
                positional, keywords = jax.tree.unflatten(structure, given)
                results, form = jax.tree.flatten(function(*positional, **keywords))  # in JAX's order of keys
                forms[:] = [form]
                return [each if isinstance(each, Tensor) else Tensor(each) for each in results]

            return flat

        def by_program(axes: Sequence[int | None]) -> Callable[..., Any] | None:
            if program_method(f, "__viewgrad_batched__") is None or kwargs or not jax.tree_util.all_leaves(args):
                return None
            by_leaf = dict(zip(places, axes))
            return on_arrays(vmap(f, tuple([by_leaf.get(n) for n in range(len(args))]), adopt=False))

        flat = on_arrays(f)
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
        outputs = _bound(Operation(flat, name, by_program), expected, arrays)
        return jax.tree.unflatten(form, outputs)

    return operation


# An operation as one node of a JAX program. Its parameters are:
#   operation: an `Operation`.
#   expected: the shapes and dtypes of the results.
#   linear, transposed: for derivatives, the number of trailing inputs in which the operation is linear, and the
#       operation from the other inputs and the cotangents of the results to the cotangents of these inputs.
operation_p = Primitive("viewgrad_operation")
operation_p.multiple_results = True


def _bound(
    operation: Operation,
    expected: Sequence[Shape],
    arrays: Sequence[Any],
    linear: int = 0,
    transposed: Operation | None = None,
) -> list[Any]:
    parameters = {"expected": tuple(expected), "linear": linear, "transposed": transposed}
    return operation_p.bind(*arrays, operation=operation, **parameters)  # type: ignore[no-any-return]


def _run_now(*arrays: Any, operation: Operation, expected: Sequence[Shape], **derivative: Any) -> Any:
    # Outside jit, JAX would compile each callback for its only call.
    return [jax.numpy.asarray(each) for each in _on_host(operation, expected, *arrays)]


def _run_by_callback(*arrays: Any, operation: Operation, expected: Sequence[Shape], **derivative: Any) -> Any:
    return jax.pure_callback(functools.partial(_on_host, operation, expected), list(expected), *arrays)


def _on_host(operation: Operation, expected: Sequence[Shape], *arrays: Any) -> list[Any]:
    """Run an operation on the values of JAX arrays."""
    found = operation([np.asarray(x) for x in arrays], [False] * len(arrays)).arrays()
    return _checked(found, expected, operation.name)


def _abstract(*arrays: Any, expected: Sequence[Shape], **parameters: Any) -> Any:
    return [jax.core.ShapedArray(struct.shape, struct.dtype) for struct in expected]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> Any:
    operation = parameters["operation"]
    outputs = operation_p.bind(*primals, **parameters)
    wanted = [type(v) is not ad.Zero and _is_inexact(x) for x, v in zip(primals, tangents)]
    given = [v for v, each in zip(tangents, wanted) if each]
    floats = [jax.ShapeDtypeStruct(out.shape, out.dtype) for out in outputs if _is_inexact(out)]
    pushed: Any = iter(())
    if given and floats:
        arrays, transposed = [*primals, *given], operation.pullback(wanted)
        pushed = iter(_bound(operation.pushforward(wanted), floats, arrays, len(given), transposed))
    return outputs, [next(pushed) if given and _is_inexact(out) else _no_tangent(out) for out in outputs]


def _no_tangent(out: Any) -> Any:
    return ad.Zero(jax.core.ShapedArray(out.shape, out.dtype if _is_inexact(out) else jax.dtypes.float0))


def _transpose(cotangents: Sequence[Any], *arrays: Any, linear: int, **parameters: Any) -> Any:
    operation, transposed = parameters["operation"], parameters["transposed"]
    constants, variables = arrays[: len(arrays) - linear], arrays[len(arrays) - linear :]
    avals = [x.aval if ad.is_undefined_primal(x) else jax.typeof(x) for x in variables]
    given = [_conjugate(ad.instantiate_zeros(each)) for each in cotangents]
    structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    pulled = _bound(transposed, structs, [*constants, *given], len(given), operation)
    found = [_conjugate(each) if ad.is_undefined_primal(x) else None for x, each in zip(variables, pulled)]
    return [None] * len(constants) + found


def _batch(arrays: Sequence[Any], axes: Sequence[int | None], **parameters: Any) -> Any:
    operation, transposed, linear = parameters["operation"], parameters["transposed"], parameters["linear"]
    length = next(x.shape[axis] for x, axis in zip(arrays, axes) if axis is not None)
    expected = [jax.ShapeDtypeStruct((length, *struct.shape), struct.dtype) for struct in parameters["expected"]]
    if not length:
        return [jax.numpy.zeros(struct.shape, struct.dtype) for struct in expected], [0] * len(expected)
    constants = len(arrays) - linear
    rows = [
        jax.numpy.moveaxis(x, axis, 0) if axis is not None
        # Each example has its own tangent, so that the transposed operation gives each its own cotangent.
        else jax.numpy.broadcast_to(x, (length, *x.shape)) if n >= constants
        else x
        for n, (x, axis) in enumerate(zip(arrays, axes))
    ]  # fmt: skip
    fronts = [None if axis is None and n < constants else 0 for n, axis in enumerate(axes)]
    if transposed is not None:
        transposed = transposed.mapped([*fronts[:constants], *[0] * len(expected)])
    return _bound(operation.mapped(fronts), expected, rows, linear, transposed), [0] * len(expected)


operation_p.def_impl(_run_now)
operation_p.def_abstract_eval(_abstract)
mlir.register_lowering(operation_p, mlir.lower_fun(_run_by_callback, multiple_results=True))
ad.primitive_jvps[operation_p] = _jvp
ad.primitive_transposes[operation_p] = _transpose
batching.primitive_batchers[operation_p] = _batch


def _checked(found: Sequence[Any], expected: Sequence[Shape], name: str) -> list[Any]:
    if len(found) != len(expected):
        raise InteropError(f"{name} returned {len(found)} arrays, but result_shape has {len(expected)}")
    for array, struct in zip(found, expected):
        if array.shape != struct.shape:
            raise InteropError(
                f"{name} returned an array of shape {array.shape} where {struct.shape} was expected; under JAX the "
                "shapes of results may depend on the shapes of arguments only"
            )
    return [np.asarray(array, struct.dtype) for array, struct in zip(found, expected)]


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
        outputs = _Operator.apply(OnLeaves(f, structure), forms, *tensors)
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
