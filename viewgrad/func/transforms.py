"""The transforms, which map a function to a function that computes its derivative.

All of them pass copies of the arguments to the function, so it may write to them, in place and through views. The
caller's tensors keep their values. Arguments and outputs are trees (see `func/tree.py`) of tensors; arrays and
floating-point numbers are converted to tensors. Transforms can be nested to any depth.

Results have no history unless they can be differentiated with respect to something outside: an argument that requires
grad or was computed from one that does, a captured tensor of this kind, or an enclosing transform.

The public transforms, with their documentation, are in `func/api.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.modes.forward_ad import dual_level
from ..autograd.modes.infinite_tangents import guarded_tangent
from ..autograd.transform_inputs import Transform, as_gradient, from_columns, one_hot
from ..errors import DifferentiabilityError
from ..tensor.async_safety import in_own_context
from ..tensor.creation import as_tensor, ones_like, zeros_like
from ..tensor.modes import GRAD, current_mode
from ..tensor.tangents import set_tangent, tangent_of
from ..tensor.tensor import Tensor, current_edge, from_array
from ..views.view_ops import broadcast_to
from .arguments import Argnums, Differentiated, Output, copies, differentiated, scalar, split_output
from .captured_state import RandomState
from .program_methods import add_program_method, program_method
from .tree import Structure, flatten, leaves_like, map_leaves

Function = Callable[..., Any]
FEWEST_COLUMNS = 4  # columns of a Jacobian; fewer are not computed together


def grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Implement `viewgrad.func.grad` for tensors."""
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f, updated=())
    @in_own_context
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    arrays = getattr(both, "over_arrays", None)
    if arrays is not None:

        def over_arrays(args: tuple[Any, ...]) -> Any:
            known = arrays(args)
            return None if known is None else known[1]

        gradient.over_arrays = over_arrays  # type: ignore[attr-defined]
    batched = _batched_like(f, argnums) if not has_aux else None
    if batched is not None:
        add_program_method(
            gradient, "__viewgrad_batched__",
            lambda _, *batch: lambda *args, **kwargs: batched(*batch)(*args, **kwargs)[1],
        )
    return _with_compiled_jvp(f, grad, gradient, argnums, has_aux)


def value_and_grad(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Implement `viewgrad.func.value_and_grad` for tensors."""

    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    plain = not has_aux and len(set(numbers)) == len(numbers)
    shortcut = program_method(f, "__viewgrad_gradients__") if plain else None

    @functools.wraps(f, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        if shortcut is not None and not kwargs and not any(map(_has_history, args)):
            known = shortcut(args, numbers)
            if known is not None:
                return known[0], known[1][0] if isinstance(argnums, int) else tuple(known[1])
        return by_transform(*args, **kwargs)

    @in_own_context
    def by_transform(*args: Any, **kwargs: Any) -> Any:
        transform = Transform()
        given, others, wanted = copies(transform, args, kwargs, argnums, "grad", transform.primal)
        with transform:
            output = split_output(f(*given, **others), has_aux, "grad")
        value = scalar(output, "grad")
        found = transform.gradients([value], [ones_like(value)])
        value = transform.result(value)
        gradient = wanted.tree(transform.materialized(found))
        return ((value, _results(transform, output.aux)) if has_aux else value), gradient

    arrays = program_method(f, "__viewgrad_array_gradients__") if plain else None
    if arrays is not None:

        def over_arrays(args: tuple[Any, ...]) -> Any:
            """Return the value and the gradients of a compiled function of arrays, or None if the function must be
            called.
            """
            known = arrays(args, numbers)
            if known is None:
                return None
            return known[0], known[1][0] if isinstance(argnums, int) else tuple(known[1])

        value_and_gradient.over_arrays = over_arrays  # type: ignore[attr-defined]
    batched = _batched_like(f, argnums) if plain else None
    if batched is not None:
        add_program_method(value_and_gradient, "__viewgrad_batched__", lambda _, *batch: batched(*batch))
    return _with_compiled_jvp(f, value_and_grad, value_and_gradient, argnums, has_aux)


@in_own_context
def vjp(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Implement `viewgrad.func.vjp` for tensors."""
    transform = Transform()
    given, structures = _differentiated(transform, primals, "vjp", transform.primal)
    with transform:
        output = split_output(f(*given), has_aux, "vjp")
    del given

    @in_own_context
    def vjp_fn(cotangents: Any) -> Any:
        pulled = transform.gradients(output.leaves, _gradients_like(output, cotangents, "the gradient"), retain=True)
        return Differentiated(structures, single=False).tree(transform.materialized(pulled))

    value = output.tree([transform.result(leaf) for leaf in output.leaves])
    return (value, vjp_fn, _results(transform, output.aux)) if has_aux else (value, vjp_fn)


@in_own_context
def linearize(f: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Implement `viewgrad.func.linearize` for tensors."""
    # The vjp is linear, so its own vjp is its transpose: the jvp.
    transform = Transform()
    given, structures = _differentiated(transform, primals, "linearize", transform.primal)
    with transform:
        output = split_output(f(*given), has_aux, "linearize")
    del given
    pull = Transform(after=transform)
    numbers = output.differentiable
    cotangents = [pull.primal(zeros_like(output.leaves[i])) for i in numbers]
    with pull:
        pulled = transform.gradients([output.leaves[i] for i in numbers], cotangents)
    likes = [from_array(array) for array in transform.arrays]
    del cotangents

    @in_own_context
    def jvp_fn(*tangents: Any) -> Any:
        _require_count(tangents, structures, "jvp_fn")
        supplied = _tangents_like(structures, likes, tangents, "jvp_fn")
        pairs = [(u, v) for u, v in zip(pulled, supplied, strict=True) if u is not None and v is not None]
        products = pull.gradients([u for u, _ in pairs], [v for _, v in pairs], retain=True)
        found = dict(zip(numbers, products, strict=True))
        return output.tree([_or_zeros(found.get(i), leaf) for i, leaf in enumerate(output.leaves)])

    value = output.tree([transform.result(leaf) for leaf in output.leaves])
    return (value, jvp_fn, _results(transform, output.aux)) if has_aux else (value, jvp_fn)


@in_own_context
def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Implement `viewgrad.func.jvp` for tensors."""
    _require_sequence(primals, tangents, "jvp")
    compiled_jvp = _compiled_jvp_of(f)
    if compiled_jvp is not None:
        found = compiled_jvp(range(len(primals)), primals, {}, tangents, has_aux)
        if _is_finite(found):
            return found
    transform = Transform()
    copied: list[Tensor] = []
    given, structures = _differentiated(transform, primals, "jvp", _kept(transform.copy, copied))
    supplied = _tangents_like(structures, copied, tangents, "jvp")
    output, slopes = _call_with_tangents(transform, lambda: split_output(f(*given), has_aux, "jvp"), copied, supplied)
    value = output.tree([transform.result(leaf) for leaf in output.leaves])
    tangent = output.tree([_or_zeros(grad, leaf) for grad, leaf in zip(slopes, output.leaves, strict=True)])
    return (value, tangent, _results(transform, output.aux)) if has_aux else (value, tangent)


def jacrev(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Implement `viewgrad.func.jacrev` for tensors."""

    @functools.wraps(f, updated=())
    @in_own_context
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        transform = Transform()
        given, others, wanted = copies(transform, args, kwargs, argnums, "jacrev", transform.primal)
        with transform:
            output = split_output(f(*given, **others), has_aux, "jacrev")
        result = output.tree([wanted.tree(transform.jacobian(leaf)) for leaf in output.leaves])
        return (result, _results(transform, output.aux)) if has_aux else result

    return _with_compiled_jvp(f, jacrev, jacobian, argnums, has_aux)


def jacfwd(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Implement `viewgrad.func.jacfwd` for tensors."""

    @functools.wraps(f, updated=())
    @in_own_context
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        before = RandomState.of(f, args, kwargs)
        known = _columns_at_once(f, args, kwargs, argnums, has_aux)
        return column_by_column(before, args, kwargs) if known is None else known[0]

    def column_by_column(before: RandomState, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        transform = Transform()
        output: Output | None = None
        program = _compiled_jvp_of(f)

        def column(direction: Tensor, number: int) -> list[Tensor]:
            nonlocal output
            if program is not None:
                given, others, wanted = copies(transform, args, kwargs, argnums, "jacfwd", transform.copy)
                along = wanted.trees([direction if i == number else zeros_like(each) for i, each in enumerate(inputs)])
                value, tangent, *aux = found = program(wanted.numbers, given, others, along, has_aux)
                if _is_finite(found):
                    output = split_output((value, *aux) if has_aux else value, has_aux, "jacfwd")
                    return flatten(tangent)[0]
            copied: list[Tensor] = []
            make = _kept(transform.copy, copied)
            given, others, _ = copies(transform, args, kwargs, argnums, "jacfwd", make)
            tangents = [direction if i == number else None for i in range(len(copied))]
            output, slopes = _call_with_tangents(
                transform, lambda: split_output(f(*given, **others), has_aux, "jacfwd"), copied, tangents
            )
            return [_or_zeros(grad, leaf) for grad, leaf in zip(slopes, output.leaves, strict=True)]

        inputs: list[Tensor] = []
        given, others, wanted = copies(transform, args, kwargs, argnums, "jacfwd", _kept(transform.copy, inputs))
        arrays = [tensor._array.copy() for tensor in inputs]
        draws = None if before.is_current() else True  # by an attempt to compute all columns at once
        columns: list[list[list[Tensor]]] = []
        for number, array in enumerate(arrays):
            columns.append([])
            for direction in one_hot(array):
                if draws:
                    before.restore()
                columns[-1].append(column(direction, number))
                if draws is None:
                    draws = not before.is_current()
        if output is None:  # all inputs are empty
            output = split_output(f(*given, **others), has_aux, "jacfwd")
        trees = []
        for i, leaf in enumerate(output.leaves):
            if leaf.dtype.kind not in "fc":
                raise DifferentiabilityError(f"jacfwd: an output of dtype {leaf.dtype} has no derivative")
            parts = zip(columns, arrays, strict=True)
            trees.append(wanted.tree([from_columns([c[i] for c in column], leaf, array) for column, array in parts]))
        return (output.tree(trees), _results(transform, output.aux)) if has_aux else output.tree(trees)

    return jacobian


def _columns_at_once(
    f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums, has_aux: bool
) -> tuple[Any] | None:
    """Return the result of `jacfwd` as a tuple, from batched passes over columns; None if batching is not possible.

    The function is called once and recorded. Its gradient is linear in the gradients of the outputs, so the Jacobian of
    the gradient with respect to these is the transpose of the Jacobian. If the outputs have no more elements than the
    inputs, the rows of the Jacobian itself are computed. Operators whose nodes do not support batched gradients, such
    as custom functions with a `jvp` of their own, need a call for each column; see Note [Rows at once].
    """
    has_program = program_method(f, "__viewgrad_jvp__") is not None
    if current_mode() & ~GRAD or (has_program and not (program_method(f, "__viewgrad_rows__") or bool)()):
        return None
    transform = Transform()
    given, others, wanted = copies(transform, args, kwargs, argnums, "jacfwd", transform.primal)
    size = sum(array.size for array in transform.arrays)
    if size < FEWEST_COLUMNS or not all(array.dtype.kind == "f" for array in transform.arrays):
        return None
    with transform:
        output = split_output(f(*given, **others), has_aux, "jacfwd")
    leaves = output.leaves
    if not all(leaf.dtype.kind == "f" and transform.may_run_at_once(leaf) for leaf in leaves):
        return None
    by_rows = sum(leaf.size for leaf in leaves) <= size
    if has_program and not by_rows:
        return None  # a separate program computes its columns
    parts = [transform.rows_at_once(leaf) for leaf in leaves] if by_rows else _transposed_rows(transform, leaves)
    trees = []
    for part in parts:
        if part is None or not all(np.isfinite(each._array).all() for each in part):
            return None  # NaN, possibly from 0 * inf, which forward mode omits more often
        trees.append(wanted.tree(part))
    result = output.tree(trees)
    return ((result, _results(transform, output.aux)) if has_aux else result,)


def _transposed_rows(transform: Transform, leaves: Sequence[Tensor]) -> list[list[Tensor] | None]:
    """Return the derivatives of leaves from the Jacobian of the gradient; None for leaves that need other passes."""
    pull = Transform(after=transform)
    cotangents = [pull.primal(zeros_like(leaf)) for leaf in leaves]
    with pull:
        pulled = transform.gradients(leaves, cotangents)
    found: list[list[Tensor] | None] = [[] for _ in leaves]
    for gradient, array in zip(pulled, transform.arrays, strict=True):
        columns = pull.rows_at_once(gradient) if gradient is not None else [None] * len(leaves)
        for i, leaf in enumerate(leaves):
            part = found[i]
            if columns is None or part is None:
                found[i] = None
                continue
            shape = (*leaf.shape, *array.shape)
            column = columns[i]
            matrix = np.zeros(shape, leaf.dtype)
            if column is not None:
                matrix = np.ascontiguousarray(column._array.reshape(array.size, leaf.size).T).reshape(shape)
            part.append(from_array(matrix))
    return found


def hessian(f: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Implement `viewgrad.func.hessian` for tensors."""
    return jacfwd(jacrev(f, argnums, has_aux), argnums, has_aux)


@in_own_context
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Implement `viewgrad.func.hvp` for tensors."""
    _require_sequence(primals, tangents, "hvp")
    compiled_jvp = _compiled_jvp_of(f)
    if compiled_jvp is not None and _is_finite(found := _product_by(compiled_jvp, primals, tangents, has_aux)):
        return found
    _, product, value = jvp(_gradient_and_value(f, len(primals), has_aux), primals, tangents, has_aux=True)
    return (value[0], product, value[1]) if has_aux else (value, product)


@in_own_context
def vhp(f: Function, primals: Sequence[Any], cotangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Implement `viewgrad.func.vhp` for tensors."""
    _require_sequence(primals, cotangents, "vhp")
    compiled_jvp = _compiled_jvp_of(f)
    if compiled_jvp is not None and _is_finite(found := _product_by(compiled_jvp, primals, cotangents, has_aux)):
        return found
    _, pull, value = vjp(_gradient_and_value(f, len(primals), has_aux), *primals, has_aux=True)
    product = pull(tuple(cotangents))
    return (value[0], product, value[1]) if has_aux else (value, product)


# -- forward mode ------------------------------------------------------------------------------------------------------


def _call_with_tangents(
    transform: Transform, call: Callable[[], Output], copied: Sequence[Tensor], tangents: Sequence[Tensor | None]
) -> tuple[Output, list[Tensor | None]]:
    """Call a function on copies that have tangents; return its output and the tangents of the output's leaves, None for
    zero.
    """
    with transform.runs(), dual_level() as level:
        for tensor, tangent in zip(copied, tangents, strict=True):
            if tangent is not None:
                set_tangent(tensor, tangent, level)
        output = call()
        found = [guarded_tangent(tangent_of(leaf, level)) for leaf in output.leaves]
        if all(tangent is None for tangent in found):
            transform.refuse_earlier_results(output.leaves)
    # Copied, since the result may be the supplied tangent itself.
    return output, [None if tangent is None else transform.result(tangent.clone()) for tangent in found]


def _kept(make: Callable[[Tensor], Tensor], into: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """Wrap `make` so that it also appends its results to a list."""

    def make_and_keep(tensor: Tensor) -> Tensor:
        made = make(tensor)
        into.append(made)
        return made

    return make_and_keep


# -- compiled programs -------------------------------------------------------------------------------------------------


def _compiled_jvp_of(f: Function) -> Function | None:
    """Return the jvp computed by the program of a compiled function; None for other functions, and while tracing."""
    return None if current_mode() & ~GRAD else program_method(f, "__viewgrad_jvp__")


def _is_finite(found: Sequence[Any]) -> bool:
    """Return whether the tangents computed by a program are finite.

    If not, NaN may come from a product of zero and infinity, which forward mode omits more often than the gradient of a
    program.
    """
    return all(np.isfinite(leaf._array).all() for leaf in flatten(found[1])[0])


def _with_compiled_jvp(f: Function, derive: Function, derived: Function, argnums: Argnums, has_aux: bool) -> Function:
    """Return the directional derivative of a function's gradient, computed by differentiating its jvp."""
    compiled_jvp = program_method(f, "__viewgrad_jvp__")
    if compiled_jvp is not None and not has_aux:

        def jvp(_: Function, numbers: Any, args: Any, kwargs: Any, tangents: Any, has_aux: bool) -> Any:
            def along(*given: Any, **others: Any) -> Any:
                with np.errstate(all="ignore"):  # derivatives may be infinite; derived() also computes the function
                    return compiled_jvp(numbers, given, others, tangents, False)[1]

            output, tangent = derived(*args, **kwargs), derive(along, argnums)(*args, **kwargs)
            if not has_aux:
                return output, tangent
            split_output(output, has_aux, "jvp")
            return output[0], tangent[0], output[1]

        add_program_method(derived, "__viewgrad_jvp__", jvp)
        second = program_method(f, "__viewgrad_second__")
        if second is not None:
            add_program_method(derived, "__viewgrad_rows__", lambda _: second())
    return derived


def _product_by(compiled_jvp: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any:
    """Return the result of `hvp` in reverse over forward mode: the gradient of the tangent that a program computes."""
    numbers = tuple(range(len(primals)))

    def along(*given: Any) -> Any:
        with np.errstate(all="ignore"):  # derivatives may be infinite
            value, tangent, *aux = compiled_jvp(numbers, given, {}, tangents, has_aux)
        return tangent, (value, *aux)

    (_, (value, *aux)), product = value_and_grad(along, numbers, has_aux=True)(*primals)
    return value, product, *aux


def _batched_like(f: Function, argnums: Argnums) -> Function | None:
    """Return the gradient of a compiled function, computed by its program for `vmap`; None for other functions.

    It is the gradient of the sum over the examples. Arguments shared by all examples are repeated first, so that each
    example has its own gradient.
    """
    batch_of = program_method(f, "__viewgrad_batched__")
    if batch_of is None:
        return None
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def batched(mapped: tuple[int | str, ...], count: int) -> Function:
        def by_program(*args: Any, **kwargs: Any) -> Any:
            wanted = {number % len(args) for number in numbers if -len(args) <= number < len(args)}
            repeat = functools.partial(map_leaves, lambda leaf: broadcast_to(as_tensor(leaf), (count, *np.shape(leaf))))
            given = [repeat(arg) if n in wanted and n not in mapped else arg for n, arg in enumerate(args)]
            program = batch_of(tuple({*mapped, *wanted}), count)

            def total(*given: Any, **kwargs: Any) -> Any:
                values = program(*given, **kwargs)
                scalar(split_output(map_leaves(lambda leaf: leaf[0, ...], values), False, "grad"), "grad")
                return values.sum(), values

            (_, values), gradients = value_and_grad(total, argnums, has_aux=True)(*given, **kwargs)
            return values, gradients

        return by_program

    return batched


# -- trees of results --------------------------------------------------------------------------------------------------


def _results(transform: Transform, tree: Any) -> Any:
    """Return the auxiliary output of a function in the form that the caller expects."""
    return map_leaves(lambda leaf: transform.result(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def _has_history(arg: Any) -> bool:
    """Return whether an argument has a history from outside, which its gradients then have as well."""
    if isinstance(arg, Tensor):
        return current_edge(arg) is not None
    if isinstance(arg, np.ndarray | float | int):
        return False
    return any(isinstance(leaf, Tensor) and current_edge(leaf) is not None for leaf in flatten(arg)[0])


def _gradient_and_value(f: Function, count: int, has_aux: bool) -> Function:
    """Return a function that computes the gradient with respect to all arguments, with the value as its auxiliary
    output.
    """
    both = value_and_grad(f, tuple(range(count)), has_aux)

    @in_own_context
    def gradient(*args: Any) -> Any:
        value, result = both(*args)
        return result, value

    return gradient


def _or_zeros(grad: Tensor | None, like: Tensor) -> Tensor:
    return zeros_like(like) if grad is None else grad


def _differentiated(
    transform: Transform, args: Sequence[Any], name: str, make: Callable[[Tensor], Tensor]
) -> tuple[list[Any], list[Structure]]:
    """Return all arguments with each of their leaves replaced by `make(tensor)`, and their structures."""
    transform.inputs.clear()
    made = [differentiated(transform, arg, f"{name}: argument {number}", make) for number, arg in enumerate(args)]
    return [tree for tree, _ in made], [structure for _, structure in made]


def _gradients_like(output: Output, tree: Any, what: str) -> list[Tensor]:
    """Return the gradients supplied for an output, one for each leaf."""
    grads = leaves_like(output.structure, tree, what)
    return [
        as_gradient(grad, leaf, what) if leaf.dtype.kind in "fc" else leaf
        for grad, leaf in zip(grads, output.leaves, strict=True)
    ]


def _tangents_like(
    structures: Sequence[Structure], likes: Sequence[Tensor], trees: Sequence[Any], name: str
) -> list[Tensor | None]:
    """Return the tangents supplied for arguments, one for each leaf; None for zero."""
    found: list[Any] = []
    for number, (structure, tree) in enumerate(zip(structures, trees, strict=True)):
        found += [None] * structure.count if tree is None else leaves_like(structure, tree, f"{name}: tangent {number}")
    what = f"{name}: a tangent"
    return [None if leaf is None else as_gradient(leaf, like, what) for leaf, like in zip(found, likes, strict=True)]


def _require_count(trees: Sequence[Any], structures: Sequence[Structure], name: str) -> None:
    if len(trees) != len(structures):
        raise TypeError(f"{name} expected {len(structures)} tangents, one for each argument, got {len(trees)}")


def _require_sequence(primals: Any, tangents: Any, name: str) -> None:
    for what, value in (("arguments", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"{name} expected a tuple of {what}, got {type(value).__name__}")
    if len(primals) != len(tangents):
        raise TypeError(f"{name} got {len(primals)} arguments, but {len(tangents)} tangents")
