"""The public transforms, which adopt the given function and return NumPy arrays if called with NumPy arrays.

The derivatives themselves are computed in `func/transforms.py`. This module adopts functions written for NumPy (see
`viewgrad.adopt`), converts array arguments to tensors, and, if no argument was a tensor, converts the results back. A
result that can still be differentiated with respect to something outside remains a tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec

from ..adoption import adopted_callable
from . import transforms
from .arguments import Argnums, checked_argnums
from .numpy_results import PLAIN, as_given, as_inputs, holds_tensors, partial_inputs
from .program_methods import add_program_method, program_method, share_program_methods

Function = Callable[..., Any]
P = ParamSpec("P")


GRADIENTS: Final = (transforms.grad, transforms.value_and_grad)


def grad(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Callable[P, Any]:
    """Return a function that computes the gradient of the scalar-valued function `f`.

    Arguments:
        f: the function to differentiate. It returns one real number.
        argnums: the positional argument, or a sequence of them, to differentiate with respect to.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: whether to adopt `f`, so that it computes with viewgrad instead of NumPy; see `viewgrad.adopt`.

    Returns:
        A function with the same arguments. It returns a tree with the structure of the argument, whose leaves are
        gradients, or zeros if a leaf was not used. If `argnums` is a sequence, it returns a tuple of these trees. With
        `has_aux`, it returns `(gradient, aux)`. The results are tensors if an argument is a tensor, and NumPy arrays
        and floats otherwise.

    Raises:
        DifferentiabilityError: when called with an argument of integer or bool dtype, or if the output is not one real
            number.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> def power(x, n):
        ...     y = np.ones(n + 1)
        ...     for i in range(n):
        ...         y[i + 1] = y[i] * x
        ...     return y[n]
        >>> vg.grad(power)(2.0, 3), vg.grad(power)(vg.Tensor(2.0), 3)
        (12.0, Tensor(12.))
        >>> vg.grad(vg.grad(power))(2.0, 3)
        12.0
    """
    return _derived(transforms.grad, f, (checked_argnums(argnums), has_aux), adopt)


def value_and_grad(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True
) -> Callable[P, tuple[Any, Any]]:
    """Return a function that computes both the value and the gradient of `f`; see `grad`.

    Arguments:
        f, argnums, has_aux, adopt: as for `grad`.

    Returns:
        A function with the same arguments that returns `(value, gradient)`; with `has_aux`, `((value, aux), gradient)`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> loss = lambda w: (w["a"] * w["b"]).sum()
        >>> vg.value_and_grad(loss)({"a": np.ones(2), "b": np.full(2, 3.0)})
        (6.0, {'a': array([3., 3.]), 'b': array([1., 1.])})
    """
    return _derived(transforms.value_and_grad, f, (checked_argnums(argnums), has_aux), adopt)


def jacrev(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `f` row by row, in reverse mode.

    `f` is called once, followed by a backward pass for each element of the output, or for many at once.

    Arguments:
        f: the function to differentiate. It returns a tree of tensors.
        argnums: the positional argument, or a sequence of them, to differentiate with respect to.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        A function with the same arguments. It returns a tree with the structure of the output. Each leaf is replaced by
        a tree with the structure of the argument, whose leaves have shape `(*output.shape, *argument.shape)`; if
        `argnums` is a sequence, by a tuple of such trees. With `has_aux`, it returns `(jacobian, aux)`. For a complex
        output, the Jacobian is the complex derivative; for a real output and a complex argument, it is the gradient as
        `grad` computes it. The results are tensors if an argument is a tensor, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: when called with an argument of integer or bool dtype, if an output has such a dtype, or
            if a complex output is not holomorphic in a complex argument.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return _derived(transforms.jacrev, f, (checked_argnums(argnums), has_aux), adopt)


def jacfwd(f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `f` column by column, in forward mode.

    It costs less than `jacrev` if the argument has fewer elements than the output. If `f` consists of the library's
    operators, it is called once and all columns are computed at once if possible; otherwise it is called once for each
    column, with the same random numbers from NumPy's and Python's global generators and from generators that it refers
    to.

    Arguments:
        f, argnums, has_aux, adopt: as for `jacrev`.

    Returns:
        A function with the same results as the one returned by `jacrev`.

    Raises:
        DifferentiabilityError: as for `jacrev`.

    Example:
        >>> import viewgrad as vg
        >>> vg.jacfwd(lambda x: x**2)(vg.Tensor([1.0, 2.0]))
        Tensor([[2., 0.],
                [0., 4.]])
    """
    return _derived(transforms.jacfwd, f, (checked_argnums(argnums), has_aux), adopt)


def hessian(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True
) -> Callable[P, Any]:
    """Return a function that computes the second derivatives of `f`: `jacfwd(jacrev(f))`.

    Arguments:
        f: the function to differentiate. It returns a tree of tensors.
        argnums: the positional argument, or a sequence of them, to differentiate with respect to.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        A function with the same arguments. Its result is structured like that of `jacrev`, with each leaf replaced by a
        tree with the structure of the argument, whose leaves have shape `(*output.shape, *argument.shape,
        *argument.shape)`.

    Raises:
        DifferentiabilityError: as for `jacrev`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    return _derived(transforms.hessian, f, (checked_argnums(argnums), has_aux), adopt)


def vjp(f: Callable[P, Any], *primals: Any, has_aux: bool = False, adopt: bool = True) -> Any:
    """Return the value of `f` and a function that computes vector-Jacobian products.

    Arguments:
        f: the function to differentiate.
        primals: its arguments, all of which are differentiated.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(output, vjp_fn)`, or `(output, vjp_fn, aux)`. `vjp_fn` takes a tree of gradients with the structure of the
        output and returns a tuple of trees with the structures of the arguments. It ignores gradients for leaves of
        integer or bool dtype, and can be called any number of times. The results are tensors if an argument is a
        tensor, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: if an argument has an integer or bool dtype.
        TreeError, GradientMismatchError: by `vjp_fn`, if the gradients do not match the output.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> output, pull = vg.vjp(lambda x, y: x * y, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        >>> output
        array([3., 8.])
        >>> pull(np.array([1.0, 0.0]))
        (array([3., 0.]), array([1., 0.]))
    """
    output, pull, *aux = transforms.vjp(_function(f, adopt), *as_inputs(primals), has_aux=has_aux)

    def vjp_fn(cotangents: Any) -> Any:
        return as_given(pull(cotangents), (primals, cotangents))

    return (as_given(output, primals), vjp_fn, *(as_given(each, primals) for each in aux))


def linearize(f: Callable[P, Any], *primals: Any, has_aux: bool = False, adopt: bool = True) -> Any:
    """Return the value of `f` and a function that computes Jacobian-vector products.

    `jvp_fn` does not call `f` again. For a single direction, `jvp` costs less.

    Arguments:
        f: the function to differentiate.
        primals: its arguments, all of which are differentiated.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(output, jvp_fn)`, or `(output, jvp_fn, aux)`. `jvp_fn` takes a tree of tangents for each argument and returns
        a tree with the structure of the output (zeros for leaves of integer or bool dtype). It can be called any number
        of times. The results are tensors if an argument is a tensor, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: if an argument has an integer or bool dtype.
        TreeError, GradientMismatchError: by `jvp_fn`, if the tangents do not match the arguments.

    Example:
        >>> import viewgrad as vg
        >>> output, push = vg.func.linearize(lambda x: x**3, 2.0)
        >>> output, push(1.0), push(10.0)
        (8.0, 12.0, 120.0)
    """
    output, push, *aux = transforms.linearize(_function(f, adopt), *as_inputs(primals), has_aux=has_aux)

    def jvp_fn(*tangents: Any) -> Any:
        return as_given(push(*tangents), (primals, tangents))

    return (as_given(output, primals), jvp_fn, *(as_given(each, primals) for each in aux))


def jvp(
    f: Callable[P, Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *, adopt: bool = True
) -> Any:
    """Return the value of `f` and its derivative in one direction, in forward mode.

    Arguments:
        f: the function to differentiate.
        primals: a tuple of its arguments, all of which are differentiated.
        tangents: a tuple of trees with the structures of the arguments: the direction. None means zeros.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(output, tangent)`, or `(output, tangent, aux)`. The tangent has the structure of the output. The results are
        tensors if an argument or a tangent is a tensor, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: if an argument has an integer or bool dtype.
        TreeError, GradientMismatchError: if the tangents do not match the arguments.

    Example:
        >>> import viewgrad as vg
        >>> vg.jvp(lambda x: x**3, (2.0,), (1.0,))
        (8.0, 12.0)
    """
    return _directional(transforms.jvp, f, primals, tangents, has_aux, adopt)


def hvp(
    f: Callable[P, Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *, adopt: bool = True
) -> Any:
    """Return the value of `f` and its Hessian-vector product, by forward over reverse mode.

    The Hessian itself is not formed.

    Arguments:
        f: the function to differentiate. It returns one real number.
        primals: a tuple of its arguments, all of which are differentiated.
        tangents: a tuple of trees with the structures of the arguments: the vector. None means zeros.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(value, product)`, or `(value, product, aux)`. The product is a tuple of trees with the structures of the
        arguments. The results are tensors if an argument or a tangent is a tensor, and NumPy arrays and floats
        otherwise.

    Raises:
        DifferentiabilityError, TreeError, GradientMismatchError: as for `grad` and `jvp`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.func.hvp(lambda x: x[0] ** 2 * x[1], (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        (2.0, (array([4., 2.]),))
    """
    return _directional(transforms.hvp, f, primals, tangents, has_aux, adopt)


def vhp(
    f: Callable[P, Any], primals: Sequence[Any], cotangents: Sequence[Any], has_aux: bool = False, *, adopt: bool = True
) -> Any:
    """Return the value of `f` and its vector-Hessian product, by reverse over reverse mode.

    For a real function, the result equals that of `hvp`, which costs less.

    Arguments:
        f: the function to differentiate. It returns one real number.
        primals: a tuple of its arguments, all of which are differentiated.
        cotangents: a tuple of trees with the structures of the arguments: the vector.
        has_aux: whether `f` returns `(output, aux)`, where only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(value, product)`, or `(value, product, aux)`. The product is a tuple of trees with the structures of the
        arguments. The results are tensors if an argument or a cotangent is a tensor, and NumPy arrays and floats
        otherwise.

    Raises:
        DifferentiabilityError, TreeError, GradientMismatchError: as for `grad` and `vjp`.

    Example:
        >>> import viewgrad as vg
        >>> vg.func.vhp(lambda x: x[0] ** 2 * x[1], (vg.Tensor([1.0, 2.0]),), (vg.Tensor([1.0, 0.0]),))
        (Tensor(2.), (Tensor([4., 2.]),))
    """
    return _directional(transforms.vhp, f, primals, cotangents, has_aux, adopt)


def _function(f: Function, adopt: bool) -> Function:
    found: Function = adopted_callable(f) if adopt else f
    return found


def _derived(transform: Function, f: Function, options: tuple[Any, ...], adopt: bool) -> Function:
    """Return the derivative of a function as a transform computes it, for tensors and for arrays."""
    function = _function(f, adopt)
    derivative = transform(function, *options)
    argnums = options[0]
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    is_compiled = program_method(function, "__viewgrad_gradients__") is not None  # which accepts arrays directly
    over_arrays = getattr(derivative, "over_arrays", None)

    @functools.wraps(derivative, updated=())
    def transformed(*args: Any, **kwargs: Any) -> Any:
        if over_arrays is not None and not kwargs and PLAIN.issuperset(map(type, args)):
            known = over_arrays(args)
            if known is not None:
                return known
        given, keywords = (args, kwargs) if is_compiled else partial_inputs(args, kwargs, numbers)
        found = derivative(*given, **keywords)
        return found if holds_tensors((args, kwargs)) else as_given(found, ())

    share_program_methods(derivative, transformed)
    if transform in GRADIENTS and not is_compiled and program_method(function, "__viewgrad_parts__") is None:

        def parts(_: Function) -> tuple[Function, Function]:
            """Return the function that is differentiated, and a function that differentiates another one likewise."""
            return function, functools.partial(_derived, transform, options=options, adopt=False)

        add_program_method(transformed, "__viewgrad_parts__", parts)
    return transformed


def _directional(
    transform: Function, f: Function, primals: Any, directions: Any, has_aux: bool, adopt: bool
) -> Any:
    """Return the result of a directional transform, for tensors and for arrays."""
    given = as_inputs(primals) if isinstance(primals, (tuple, list)) else primals
    found = transform(_function(f, adopt), given, directions, has_aux)
    return as_given(found, (primals, directions))


