"""The public transforms: they adopt the function that they are given, and return NumPy arrays for NumPy arrays.

The derivatives themselves are in `func/transforms.py`. Here a function for NumPy gets viewgrad's objects in the place
of NumPy's (see `viewgrad.adopt`), arrays among its arguments become tensors, and if no argument was a tensor, neither
is a result. A result that something outside can be differentiated with respect to stays a tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..adoption import adopted_callable
from . import transforms
from .arguments import Argnums
from .numpy_results import as_given, as_inputs, holds_tensors

__all__ = ["grad", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vhp", "vjp"]

Function = Callable[..., Any]


def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Function:
    """Return the function that computes the gradient of `f`, which returns one real number.

    Arguments:
        f: the function to differentiate.
        argnums: the positional argument, or a sequence of them, with respect to which.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: whether `f` is adopted, so that NumPy's names in it mean viewgrad's; see `viewgrad.adopt`.

    Returns:
        A function of the same arguments. It returns a tree like the argument, with the gradient in the place of each
        leaf, zeros where it was not used. Where `argnums` is a sequence, it returns a tuple of them. With `has_aux`
        it returns `(gradient, aux)`. The results are tensors if an argument is one, and NumPy arrays and floats
        otherwise.

    Raises:
        DifferentiabilityError: by that function, for an argument of integer or bool dtype, or an output that is not one
            real number.

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
    return _derived(transforms.grad, f, (argnums, has_aux), adopt)


def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Function:
    """Return the function that computes both the value and the gradient of `f`; see `grad`.

    Arguments:
        f, argnums, has_aux, adopt: as for `grad`.

    Returns:
        A function of the same arguments that returns `(value, gradient)`; with `has_aux`, `((value, aux), gradient)`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> loss = lambda w: (w["a"] * w["b"]).sum()
        >>> vg.value_and_grad(loss)({"a": np.ones(2), "b": np.full(2, 3.0)})
        (6.0, {'a': array([3., 3.]), 'b': array([1., 1.])})
    """
    return _derived(transforms.value_and_grad, f, (argnums, has_aux), adopt)


def jacrev(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Function:
    """Return the function that computes the Jacobian of `f`, a row at a time.

    `f` is run once, and back once for each output.

    Arguments:
        f: the function to differentiate; it returns a tree of tensors.
        argnums: the positional argument, or a sequence of them, with respect to which.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        A function of the same arguments. It returns a tree like the output. In the place of each leaf is a tree like
        the argument, of arrays of shape `(*output.shape, *argument.shape)`. Where `argnums` is a sequence, that is a
        tuple of trees. With `has_aux`, it returns all that and aux. Of a complex output, this is the complex
        derivative; of a real output, with respect to a complex argument, the gradient as `grad` has it. The results
        are tensors if an argument is one, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: raised by that function for an argument or output of integer or bool dtype. Also where a
            complex output is not holomorphic in a complex argument.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
    """
    return _derived(transforms.jacrev, f, (argnums, has_aux), adopt)


def jacfwd(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Function:
    """Return the function that computes the Jacobian of `f`, a column at a time; see `jacrev`.

    Arguments:
        f, argnums, has_aux, adopt: as for `jacrev`.

    Returns:
        What `jacrev` returns. It costs less where there are fewer elements in the argument than in the output.

    Raises:
        DifferentiabilityError: as `jacrev`.

    Example:
        >>> import viewgrad as vg
        >>> vg.jacfwd(lambda x: x**2)(vg.Tensor([1.0, 2.0]))
        Tensor([[2., 0.],
                [0., 4.]])
    """
    return _derived(transforms.jacfwd, f, (argnums, has_aux), adopt)


def hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False, *, adopt: bool = True) -> Function:
    """Return the function that computes the second derivatives of `f`: `jacfwd(jacrev(f))`.

    Arguments:
        f: the function to differentiate; it returns a tree of tensors.
        argnums: the positional argument, or a sequence of them, with respect to which.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        A function of the same arguments. It returns what `jacrev` would, with such trees in the places of its leaves:
        arrays of shape `(*output.shape, *argument.shape, *argument.shape)`.

    Raises:
        DifferentiabilityError: as `jacrev`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
        array([[4., 2.],
               [2., 0.]])
    """
    return _derived(transforms.hessian, f, (argnums, has_aux), adopt)


def vjp(f: Function, *primals: Any, has_aux: bool = False, adopt: bool = True) -> Any:
    """Return the value of `f`, and the function that pulls gradients of its output back to those of its arguments.

    Arguments:
        f: the function to differentiate.
        primals: its arguments, all of which are differentiated.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(output, vjp_fn)`, or `(output, vjp_fn, aux)`. `vjp_fn` takes a tree like the output with the gradient of each
        leaf, and returns a tuple with a tree like each argument. Whatever it is given for a leaf of integer or bool
        dtype is ignored. It can be called many times. Results are tensors if an argument is one, and NumPy arrays and
        floats otherwise.

    Raises:
        DifferentiabilityError: for an argument of integer or bool dtype.
        TreeError, GradientMismatchError: by `vjp_fn`, for gradients that are not like the output.

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


def linearize(f: Function, *primals: Any, has_aux: bool = False, adopt: bool = True) -> Any:
    """Return the value of `f`, and the function that pushes tangents of its arguments forward.

    `f` is not run again. If a single direction is wanted, `jvp` costs less.

    Arguments:
        f: the function to differentiate.
        primals: its arguments, all of which are differentiated.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(output, jvp_fn)`, or `(output, jvp_fn, aux)`. `jvp_fn` takes a tree like each argument, with the tangents, and
        returns a tree like the output (zeros for leaves of integer or bool dtype). It can be called many times.
        Results are tensors if an argument is one, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: for an argument of integer or bool dtype.
        TreeError, GradientMismatchError: by `jvp_fn`, for tangents that are not like the arguments.

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
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *, adopt: bool = True
) -> Any:
    """Return the value of `f`, and its derivative in one direction.

    Arguments:
        f: the function to differentiate.
        primals: a tuple of its arguments, all of which are differentiated.
        tangents: a tuple of trees like the arguments, with the direction; None stands for zeros.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(output, tangent)`, or `(output, tangent, aux)`; the tangent is a tree like the output. Results are tensors if
        an argument or a tangent is one, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError: for an argument of integer or bool dtype.
        TreeError, GradientMismatchError: for tangents that are not like the arguments.

    Example:
        >>> import viewgrad as vg
        >>> vg.jvp(lambda x: x**3, (2.0,), (1.0,))
        (8.0, 12.0)
    """
    return _directional(transforms.jvp, f, primals, tangents, has_aux, adopt)


def hvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False, *, adopt: bool = True
) -> Any:
    """Return the value of `f`, and its second derivative times a direction, forward over reverse.

    No Hessian is formed.

    Arguments:
        f: the function to differentiate; it returns one real number.
        primals: a tuple of its arguments, all of which are differentiated.
        tangents: a tuple of trees like the arguments, with the direction; None stands for zeros.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(value, product)`, or `(value, product, aux)`; the product is a tuple of trees like the arguments. Results are
        tensors if an argument or a tangent is one, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError, TreeError, GradientMismatchError: as `grad` and `jvp`.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> vg.func.hvp(lambda x: x[0] ** 2 * x[1], (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
        (2.0, (array([4., 2.]),))
    """
    return _directional(transforms.hvp, f, primals, tangents, has_aux, adopt)


def vhp(
    f: Function, primals: Sequence[Any], cotangents: Sequence[Any], has_aux: bool = False, *, adopt: bool = True
) -> Any:
    """Return the value of `f`, and a direction times its second derivative, reverse over reverse.

    Of a real function, the same as `hvp`.

    Arguments:
        f: the function to differentiate; it returns one real number.
        primals: a tuple of its arguments, all of which are differentiated.
        cotangents: a tuple of trees like the arguments, with the direction.
        has_aux: whether `f` returns `(output, aux)`, of which only the output is differentiated.
        adopt: as for `grad`.

    Returns:
        `(value, product)`, or `(value, product, aux)`; the product is a tuple of trees like the arguments. Results are
        tensors if an argument or a cotangent is one, and NumPy arrays and floats otherwise.

    Raises:
        DifferentiabilityError, TreeError, GradientMismatchError: as `grad` and `vjp`.

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
    """The derivative that a transform makes of a function, for tensors and for arrays."""
    function = _function(f, adopt)
    derivative = transform(function, *options)
    # Compiled functions take arrays as they are.
    prepared: Function = tuple if hasattr(function, "__viewgrad_gradients__") else as_inputs

    @functools.wraps(derivative)  # with what tells other transforms of compiled functions
    def transformed(*args: Any, **kwargs: Any) -> Any:
        found = derivative(*prepared(args), **(as_inputs(kwargs) if kwargs else kwargs))
        return found if holds_tensors((args, kwargs)) else as_given(found, ())

    return transformed


def _directional(
    transform: Function, f: Function, primals: Any, directions: Any, has_aux: bool, adopt: bool
) -> Any:
    """Return the result of a transform along directions, for tensors and for arrays."""
    given = as_inputs(primals) if isinstance(primals, (tuple, list)) else primals
    found = transform(_function(f, adopt), given, directions, has_aux)
    return as_given(found, (primals, directions))


