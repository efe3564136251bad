"""The docstrings and annotations of the operators, written from the declarations.

`python tools/stubs.py` writes them to `viewgrad/operators/docstrings.json`, which is read when the library is
imported: to make them takes seconds, since each has an example that is run.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import viewgrad
from viewgrad.operators import OPERATORS
from viewgrad.operators.examples import example_of
from viewgrad.operators.language.spec import Argument, Operator
from viewgrad.operators.numpy_api.reductions import REDUCTIONS

__all__ = ["DOCSTRINGS_FILE", "docstring_of", "docstrings_file"]

DOCSTRINGS_FILE: Final = Path(viewgrad.__file__).parent / "operators" / "docstrings.json"

# What options of these names say, in every operator that has them.
OPTIONS: Final = {
    "axis": "the dimension to operate along, or several; None for all of them",
    "dim": "alias of `axis`, as in PyTorch",
    "axes": "the dimensions to operate along",
    "keepdims": "whether to keep reduced dimensions with length 1",
    "keepdim": "alias of `keepdims`, as in PyTorch",
    "norm": "where the factor 1/n is applied: in the inverse, half in each (`ortho`), or in the forward transform",
    "n": "the length to truncate or zero-pad to, or the number of repetitions",
    "s": "the lengths to truncate or zero-pad to",
    "stride": "the step of the window",
    "padding": "the number of zeros added at each end",
    "dilation": "the distance between elements of the window",
    "groups": "the number of groups of channels, each with its own weights",
    **dict.fromkeys(("kernel_size", "window", "extents"), "the size of the window"),
    "reduction": "`mean`, `sum`, or `none` for the losses one by one",
    "ddof": "subtracted from the number of elements to get the divisor",
    "v": "the order",
    "dtype": "the dtype of the result",
    "shape": "the shape of the result",
    "alpha": "a factor",
    "beta": "a factor",
    "eps": "a small number added to the divisor",
    "k": "the diagonal, or a number of elements",
    "offset": "the diagonal",
    "value": "the value to write",
    "q": "the quantile, between 0 and 1",
    "UPLO": "the triangle of the matrix to read, `L` or `U`",
    "upper": "whether the triangle is the upper one",
    "right": "whether intervals include their right end",
    "subscripts": "the letters of the dimensions, as in `ij,jk->ik`",
    "decimals": "the number of decimals",
    "p": "a probability, or the order of a norm",
    "initial": "the starting value",
    "where": "a mask of the elements to include",
    "out": "the tensor to write the result to, which is returned",
    "correction": "alias of `ddof`",
    "mean": "the mean, if it is known",
}
INFINITE_SLOPES: Final = "If the incoming gradient is 0, this gradient is 0 too, even if the slope is infinite or NaN."


def docstring_of(operator: Operator, where: str) -> str:
    """The docstrings of operators: what each computes, its arguments and result, its gradient, and an example.

    Arguments:
        operator: any operator.
        where: the expression that the user calls it by.
    """
    arguments = [f"{argument.name}: {_described(operator, argument)}." for argument in operator.signature.arguments]
    arguments += [f"{name}: {OPTIONS[name]}." for name in operator.signature.torch_names]
    return _text(operator.doc, arguments, _result(operator), _gradient(operator), example_of(operator, where, viewgrad))


def docstring_of_reduction(operator: Operator, function: Callable[..., Any]) -> str:
    """A docstring for a function around an operator, which takes the options that NumPy's function has.

    Arguments:
        operator: what it consists of.
        function: the public function.
    """
    first, *options = inspect.signature(function).parameters.values()
    arguments = [f"{first.name}: a tensor, an array or a number; gradients flow to it."]
    for option in options:
        left_out = "" if option.default is option.empty else f" (default: {option.default!r})"
        arguments.append(f"{option.name}: {OPTIONS.get(option.name, 'an option')}{left_out}.")
    example = example_of(operator, f"vg.{operator.name}", viewgrad)
    return _text(operator.doc, arguments, _result(operator), _gradient(operator), example)


def _text(doc: str, arguments: list[str], result: str, gradient: Iterable[str], example: str) -> str:
    parts = {
        "Arguments": arguments,
        "Returns": [f"{result}."],
        "Gradient": list(gradient),
        "Example": [">>> import viewgrad as vg", *example.splitlines()] if example else [],
    }
    lines = [doc]
    for title, inside in parts.items():
        if inside:
            lines += ["", f"{title}:", *(f"    {line}" for line in inside)]
    return "\n".join(lines)


def _described(operator: Operator, argument: Argument) -> str:
    if argument.kind in ("tensor", "tensors"):
        text = "a sequence of tensors" if argument.kind == "tensors" else "a tensor, an array or a number"
        if operator.elementwise and len(operator.signature.tensors) > 1:
            text += ", broadcast against the others"
        flows = argument.name in operator.differentiable
        optional = ", or None" if argument.optional else ""
        return f"{text}{optional}; {'gradients flow to it' if flows else 'no gradient flows to it'}"
    text = OPTIONS.get(argument.name, "an option")
    return text if argument.default is None else f"{text} (default: {argument.default})"


def _result(operator: Operator) -> str:
    outputs = operator.signature.outputs
    text = "a tensor" if len(outputs) == 1 else f"tensors: {', '.join(outputs)}"
    if not operator.elementwise:
        return text
    several = len(operator.signature.tensors) > 1
    return f"{text} of the shape {'to which the arguments are broadcast' if several else 'of the argument'}"


def _gradient(operator: Operator) -> Iterator[str]:
    if not operator.formulas:
        yield "none: the result is piecewise constant."
        return
    infinite = False
    for formula in operator.formulas:
        text = " ".join(formula.text.split())
        if text.startswith("flowing(") and text.endswith(", grad)"):
            text, infinite = text.removeprefix("flowing(").removesuffix(", grad)"), True
        yield f"of {', '.join(formula.inputs)}: `{text}`"
    if infinite:
        yield INFINITE_SLOPES


def _annotation(argument: Argument, stated: dict[str, str]) -> str:
    if argument.kind == "tensors":
        return "Sequence[TensorLike]"
    if argument.kind == "tensor":
        return "TensorLike | None" if argument.optional else "TensorLike"
    return stated[argument.name]


def docstrings_file(types: dict[str, dict[str, str]]) -> str:
    """The text of the file.

    Arguments:
        types: of each operator, the types of its options, and of its result as "return".
    """
    entries: dict[str, Any] = {}
    for name, operator in sorted(OPERATORS.items()):
        if operator.user_defined:
            continue
        stated = types[name]
        if name in REDUCTIONS:
            entries[name] = {"doc": docstring_of_reduction(operator, REDUCTIONS[name]), "annotations": None}
            continue
        annotations = {each.name: _annotation(each, stated) for each in operator.signature.arguments}
        annotations |= {theirs: f"{stated[ours]} | None" for theirs, ours in operator.signature.torch_names.items()}
        entries[name] = {
            "doc": docstring_of(operator, f"vg.{'fft.fft' if name == 'fft' else name}"),
            "annotations": annotations | {"return": stated["return"]},
        }
    return json.dumps(entries, indent=0, ensure_ascii=False) + "\n"
