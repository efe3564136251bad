"""Checking an operator: any function of tensors, wherever in memory its operands lie, and whatever becomes of them."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import viewgrad as vg

from ..operators.language.declaration import Operator
from .checks import Mismatch

__all__ = ["check_operator"]

Array = np.ndarray[Any, Any]

STEP = 1e-2
NUMERIC = 1e-6
CLOSE = 1e-9


def check_operator(
    operator: Callable[..., Any],
    *args: Any,
    inplace: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    order: int = 2,
    max_examples: int = 60,
    **kwargs: Any,
) -> None:
    """Check values, gradients and gradients of gradients of an operator, on views and in place.

    At the arguments given, gradients are compared with finite differences. Then the operator is called in
    circumstances that Hypothesis draws (operands that are transposed, strided or reversed views, rows of a larger
    base, parts of complex numbers; overwritten afterwards; the in-place form, through views and on whole tensors),
    in which everything must stay as it was.

    Arguments:
        operator: what to check: an operator made by `define_op`, or any function of tensors that returns one or
            several.
        args: its arguments. Arrays become tensors (of which those of float and complex dtype are differentiated),
            and all else is passed as it is. They must lie where the operator is smooth.
        inplace: its in-place form, which writes the result over the first argument; known of an operator by
            `define_op`.
        reference: what it computes, for arrays, where the values are to be compared too.
        order: 1 for gradients, 2 for gradients of gradients too.
        max_examples: how many circumstances are drawn.
        kwargs: keyword arguments, passed as they are.

    Raises:
        Mismatch: where anything is not as it should be; the message shows the circumstances as Python.

    Example:
        >>> import numpy as np, viewgrad as vg
        >>> from viewgrad.testing import check_operator
        >>> check_operator(lambda x, y: vg.exp(x) * y, np.linspace(-1, 1, 6).reshape(2, 3), np.array([1.0, -2.0, 0.5]))
    """
    if inplace is None and isinstance(operator, Operator) and operator.has_inplace:
        inplace = operator.inplace
    arrays = {f"a{i}": arg for i, arg in enumerate(args) if isinstance(arg, np.ndarray)}
    called = Called(operator, inplace, args, kwargs, arrays, order)
    plain = called.run(Circumstances(dict.fromkeys(arrays, "a tensor of its own")))
    if reference is not None:
        expected = reference(*(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args), **kwargs)
        for ours, other in zip(plain.values, _as_tuple(expected), strict=True):
            _compare("value", ours, np.asarray(other), CLOSE, "the reference")
    _compare_with_differences(called, plain)

    @settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(circumstances(called))
    def check(drawn: Circumstances) -> None:
        source = called.source(drawn)
        try:
            _compare_results(called.run(drawn), plain)
        except Exception as error:
            error.add_note(f"In these circumstances:\n\n{source}")
            raise

    check()


# -- circumstances -----------------------------------------------------------------------------------------------------

# How an operand `{x}` with the value of the leaf `{a}` comes to lie in a base `{b}`, and how it is read there again.
PLACES: dict[str, tuple[str, str]] = {
    "a tensor of its own": ("{b} = {x} = vg.clone({a})", "{b}"),
    "the leaf itself": ("{b} = {x} = {a}", "{b}"),
    "a transposed view": ("{b} = vg.clone(vg.contiguous_copy({a}.T)); {x} = {b}.T", "{b}.T"),
    "a row of a larger base": (
        "{b} = vg.zeros((3, *{a}.shape), dtype={a}.dtype); {b}[1] = {a}; {x} = {b}[1]", "{b}[1]"),
    "every other column": (
        "{b} = vg.ones((*{a}.shape[:-1], 2 * {a}.shape[-1]), dtype={a}.dtype); {x} = {b}[..., ::2]; {x}[...] = {a}",
        "{b}[..., ::2]"),
    "a view taken backwards": ("{b} = vg.clone({a}[::-1]); {x} = {b}[::-1]", "{b}[::-1]"),
    "a view of a view": (
        "{b} = vg.zeros((4, *{a}.shape), dtype={a}.dtype); {x} = {b}[1:].T[..., 1].T; {x}.copy_({a})", "{b}[2]"),
    "a flat tensor in its shape": (
        "{b} = vg.clone({a}.reshape(-1)); {x} = {b}.view({a}.shape)", "{b}.reshape({a}.shape)"),
    "the imaginary part of a complex tensor": (
        "{b} = vg.ones({a}.shape, dtype=complex); {b}.imag.copy_({a}); {x} = {b}.imag", "{b}.imag"),
    "pairs of real numbers": (
        "{b} = vg.clone({a}.view_as_real()); {x} = {b}.view_as_complex()", "{b}.view_as_complex()"),
}  # fmt: skip


@attrs.frozen
class Circumstances:
    """Where the operands lie, and what else happens.

    Arguments:
        places: by the name of an operand, a key of `PLACES`.
        inplace: whether the in-place form is called.
        reread: whether the result of the in-place form is read from the base, rather than from the view written to.
        overwritten: whether the operands are overwritten before the backward pass.
        replayed: whether views are taken again by their view functions.
    """

    places: dict[str, str]
    inplace: bool = False
    reread: bool = False
    overwritten: bool = False
    replayed: bool = False


def circumstances(called: Called) -> st.SearchStrategy[Circumstances]:
    """Circumstances in which the operator can be called."""

    def allowed(name: str, array: Array) -> list[str]:
        places = ["a tensor of its own", "a row of a larger base", "a transposed view", "a view of a view",
                  "a flat tensor in its shape"]  # fmt: skip
        if array.ndim:
            places += ["every other column", "a view taken backwards"]
        if array.dtype == np.float64:
            places.append("the imaginary part of a complex tensor")
        if array.dtype == np.complex128:
            places.append("pairs of real numbers")
        return [*places, "the leaf itself"]

    def consistent(drawn: Circumstances) -> bool:
        written = list(drawn.places) if drawn.overwritten else ["a0"] if drawn.inplace else []
        return all(drawn.places[name] != "the leaf itself" for name in written)

    return st.builds(
        Circumstances,
        places=st.fixed_dictionaries({name: st.sampled_from(allowed(name, a)) for name, a in called.arrays.items()}),
        inplace=st.booleans() if called.inplace is not None else st.just(False),
        reread=st.booleans(),
        overwritten=st.booleans(),
        replayed=st.booleans(),
    ).filter(consistent)


# -- calls -------------------------------------------------------------------------------------------------------------


@attrs.frozen
class Results:
    """What a call gave: values, and gradients with respect to each differentiable argument."""

    values: Sequence[Array]
    first: dict[str, Array]
    second: dict[str, Array]


@attrs.frozen
class Called:
    """An operator with its arguments."""

    operator: Callable[..., Any]
    inplace: Callable[..., Any] | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arrays: dict[str, Array]
    order: int

    @property
    def differentiable(self) -> dict[str, Array]:
        """The arrays with respect to which to differentiate."""
        return {name: array for name, array in self.arrays.items() if array.dtype.kind in "fc"}

    def source(self, drawn: Circumstances) -> str:
        """The call as Python; the arguments are a0, a1, ... there."""
        lines = []
        for name in self.arrays:
            place = PLACES[drawn.places[name]][0].format(a=name, b=f"b{name[1:]}", x=f"x{name[1:]}")
            lines += place.split("; ")
        arguments = ", ".join(
            [f"x{i}" if f"a{i}" in self.arrays else f"a{i}" for i in range(len(self.args))] + ["**kwargs"]
        )
        if not drawn.inplace:
            lines.append(f"result = operator({arguments})")
        else:
            lines.append(f"inplace({arguments})")
            again = PLACES[drawn.places["a0"]][1].format(a="a0", b="b0")
            lines.append(f"result = {again if drawn.reread else 'x0'}")
        if drawn.overwritten:
            if drawn.inplace:
                lines.append("result = result * 1")
            for name in self.arrays:
                lines.append(f"b{name[1:]}.zero_()")
        return "".join(f"{line}\n" for line in lines)

    def run(self, drawn: Circumstances, arrays: dict[str, Array] | None = None, order: int | None = None) -> Results:
        """Call it in the circumstances drawn, with other values for the arrays if given."""
        given = {name: vg.Tensor(array) for name, array in (self.arrays | (arrays or {})).items()}
        leaves = {name: given[name].requires_grad_() for name in self.differentiable}
        names: dict[str, Any] = {f"a{i}": arg for i, arg in enumerate(self.args)} | given
        names |= {"vg": vg, "operator": self.operator, "inplace": self.inplace, "kwargs": self.kwargs}
        order = self.order if order is None else order
        with vg.view_replay(drawn.replayed):
            _execute(self.source(drawn), names)
            results = _as_tuple(names["result"])
            values = [result.detach().numpy().copy() for result in results]
            loss = _weighted([result for result in results if result.requires_grad])
            if loss is None:
                return Results(values, {}, {})
            found: Any = vg.autograd.grad(loss, list(leaves.values()), create_graph=order > 1, materialize_grads=True)
            first = {name: gradient.detach().numpy().copy() for name, gradient in zip(leaves, found, strict=True)}
            second = {name: np.zeros_like(array) for name, array in self.differentiable.items()}
            again = _weighted([gradient for gradient in found if gradient.requires_grad], phase=3)
            if order > 1 and again is not None:
                found = vg.autograd.grad(again, list(leaves.values()), materialize_grads=True)
                second = {name: gradient.numpy().copy() for name, gradient in zip(leaves, found, strict=True)}
        return Results(values, first, second)

    def value(self, moved: dict[str, Array]) -> float:
        """The weighted sum of the results at other values of the arrays."""
        with vg.no_grad():
            given = [
                vg.Tensor(moved.get(f"a{i}", arg)) if f"a{i}" in self.arrays else arg for i, arg in enumerate(self.args)
            ]
            results = _as_tuple(self.operator(*given, **self.kwargs))
        return sum(
            float((result.numpy() * _weights(result)).real.sum()) for result in results if result.dtype.kind in "fc"
        )


def _weighted(tensors: Sequence[Any], phase: int = 0) -> Any:
    """The sum of the elements, each with a weight of its own; None of no tensors."""
    total: Any = None
    for tensor in tensors:
        term = (tensor * _weights(tensor, phase)).real.sum()
        total = term if total is None else total + term
    return total


def _weights(tensor: Any, phase: int = 0) -> Array:
    numbers = np.arange(tensor.size)
    weights: Array = np.cos(numbers + phase) + 0.25
    if tensor.dtype.kind == "c":
        weights = weights - 1j * np.sin(2 * numbers + phase)
    return weights.reshape(tensor.shape)


def _execute(source: str, names: dict[str, Any]) -> None:
    filename = f"<circumstances {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)


# -- comparisons -------------------------------------------------------------------------------------------------------


def _compare_results(ours: Results, plain: Results) -> None:
    for mine, value in zip(ours.values, plain.values, strict=True):
        _compare("value", mine, value, CLOSE, "the operator on plain tensors")
    for name, gradient in plain.first.items():
        _compare(f"gradient of {name}", ours.first[name], gradient, CLOSE, "the operator on plain tensors")
    for name, gradient in plain.second.items():
        _compare(f"second gradient of {name}", ours.second[name], gradient, CLOSE, "the operator on plain tensors")


def _compare_with_differences(called: Called, plain: Results) -> None:
    """The gradients at the arguments themselves."""
    for name, gradient in plain.first.items():
        array = called.arrays[name]
        numeric = np.zeros(array.shape, array.dtype)
        off = 0.0
        for index in np.ndindex(array.shape):
            for turn in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):

                def at(
                    step: float, name: str = name, array: Array = array, index: Any = index, turn: Any = turn
                ) -> float:
                    moved = array.copy()
                    moved[index] += turn * step
                    return called.value({name: moved})

                slope, uncertainty = _slope(at)
                numeric[index] += turn * slope
                off = max(off, uncertainty)
        _compare(f"gradient of {name}", gradient, numeric, NUMERIC + 4 * off, "finite differences")
    if called.order > 1 and plain.second:
        plainly = Circumstances(dict.fromkeys(called.arrays, "a tensor of its own"))

        def gradients_at(step: float) -> dict[str, Array]:
            moved = {
                name: array + step * np.conj(_weights(array, 3)).astype(array.dtype)
                for name, array in called.differentiable.items()
            }
            return called.run(plainly, moved, order=1).first

        found = {step: gradients_at(step) for step in _steps()}
        for name, gradient in plain.second.items():
            slopes, uncertainty = _slope(lambda step, name=name: found[step][name])  # type: ignore[misc]
            _compare(f"second gradient of {name}", gradient, slopes, NUMERIC + 4 * uncertainty, "finite differences")


def _steps() -> list[float]:
    return [STEP * factor for factor in (2, -2, 1, -1, 0.5, -0.5)]


def _slope(value: Callable[[float], Any]) -> tuple[Any, float]:
    """The derivative at 0, extrapolated from three central differences, and how far off it may be."""
    steps = _steps()
    coarse, middle, fine = ((value(steps[i]) - value(steps[i + 1])) / (2 * steps[i]) for i in (0, 2, 4))
    once, twice = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    limit = (16 * twice - once) / 15
    return limit, float(np.max(np.abs(limit - twice), initial=0.0))


def _compare(what: str, ours: Array, other: Array, tolerance: float, oracle: str) -> None:
    if ours.shape != other.shape or not np.allclose(
        ours, other, rtol=0, atol=tolerance * max(1.0, float(np.abs(other).max(initial=0.0)))
    ):
        raise Mismatch(f"the {what} is\n{np.array_repr(ours)}\ninstead of {np.array_repr(other)}\nby {oracle}")


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)
