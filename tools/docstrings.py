"""The docstrings and annotations of the operators, written from the declarations.

`python tools/stubs.py` writes them to `viewgrad/operators/docstrings.json`, which is read when the library is
imported. Writing them takes seconds, since each has an example that is run.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from operator_examples import example_of

import viewgrad
from viewgrad.operators import OPERATORS
from viewgrad.operators.language.spec import Argument, Operator
from viewgrad.operators.numpy_api.reductions import REDUCTIONS

__all__ = ["DOCSTRINGS_FILE", "docstring_of", "docstrings_file"]

DOCSTRINGS_FILE: Final = Path(viewgrad.__file__).parent / "operators" / "docstrings.json"

# The descriptions of options by name, for all operators without an entry in `OPTIONS_OF`.
OPTIONS: Final = {
    "UPLO": "the triangle of the matrix to read, `L` or `U`",
    "alpha": "the factor of the product",
    "axes": "the dimensions to operate along",
    "axis": "the dimension to operate along, or several; None for all of them",
    "beta": "the factor of the first tensor",
    "bias": "whether to normalize by the number of observations instead of that number minus 1",
    "correction": "alias of `ddof`",
    "count_include_pad": "whether padding counts as elements of a window",
    "ddof": "the number subtracted from the number of elements to get the divisor",
    "decimals": "the number of decimals",
    "dilation": "the distance between elements of the window",
    "dim": "alias of `axis`, as in PyTorch",
    "dtype": "the dtype of the result",
    "eps": "a small number added to the variance",
    "groups": "the number of groups of channels, each with its own weights",
    "hermitian": "whether the matrix is Hermitian, which saves time",
    "initial": "the starting value",
    "k": "the number of the diagonal; 0 for the main diagonal",
    "keepdim": "alias of `keepdims`, as in PyTorch",
    "keepdims": "whether to keep reduced dimensions with length 1",
    "kth": "the position, or positions, in sorted order",
    "lambd": "the threshold",
    "largest": "whether to return the largest values instead of the smallest",
    "mean": "the mean, if it is known",
    "method": "the interpolation between two values, as in `numpy.quantile`",
    "n": "the length to truncate or zero-pad to",
    "norm": "None scales the inverse transform by 1/n, `forward` the forward one, `ortho` both by 1/sqrt(n)",
    "offset": "the number of the diagonal; 0 for the main diagonal",
    "ord": "the order of the norm",
    "out": "the tensor to write the result to, which is returned",
    "output_padding": "the number of elements added at the end of the result",
    "p": "the probability of an element to be zeroed",
    "padding": "the number of zeros added at each end",
    "q": "the quantile, between 0 and 1",
    "rcond": "singular values are zero below this times the largest one",
    "reduction": "`mean`, `sum`, or `none` for the losses one by one",
    "right": "whether intervals include their right end",
    "s": "the lengths to truncate or zero-pad to",
    "shape": "the shape of the result",
    "stride": "the step of the window",
    "subscripts": "the letters of the dimensions, as in `ij,jk->ik`",
    "upper": "whether the triangle is the upper one",
    "v": "the order",
    "where": "a mask of the elements to include",
    **dict.fromkeys(("kernel_size", "window", "extents"), "the size of the window"),
    **dict.fromkeys(("axis1", "axis2", "dim1", "dim2"), "a dimension of the matrices"),
    **dict.fromkeys(("a", "b", "c"), "a parameter"),
}
ONE_DIMENSION: Final = "the dimension to operate along"
ONE_OR_FLATTENED: Final = f"{ONE_DIMENSION}; None for the flattened tensor"
VALUE_BESIDE: Final = "the factor of the product or quotient"
# The descriptions for single operators, in which the name has another meaning, or which alone have such an option.
OPTIONS_OF: Final[dict[str, dict[str, str]]] = {
    "addcdiv": {"value": VALUE_BESIDE},
    "addcmul": {"value": VALUE_BESIDE},
    "argmax": {"axis": ONE_OR_FLATTENED},
    "argmin": {"axis": ONE_OR_FLATTENED},
    "bincount": {"minlength": "the minimum length of the result"},
    "celu": {"alpha": "the magnitude of the limit for negative values"},
    "convolve": {"mode": "`full`, `same`, or `valid` for the part without padding"},
    "correlate": {"mode": "`full`, `same`, or `valid` for the part without padding"},
    "cov": {"rowvar": "whether rows are variables and columns observations"},
    "cumprod": {"axis": ONE_OR_FLATTENED},
    "cumsum": {"axis": ONE_OR_FLATTENED},
    "diff": {"n": "how many times to take differences"},
    "elu": {"alpha": "the magnitude of the limit for negative values"},
    "gelu": {"approximate": "`none`, or `tanh` for an approximation"},
    "hardtanh": {"min_val": "the lower bound", "max_val": "the upper bound"},
    "huber_loss": {"delta": "the difference at which the loss becomes linear"},
    "interp": {
        "left": "the value below the first point; that of the first point by default",
        "right": "the value above the last point; that of the last point by default",
        "period": "not supported for tensors",
    },
    "isin": {"invert": "whether to test that a value is not among the given values"},
    "kl_div": {"log_target": "whether the target is given by its logarithms"},
    "kthvalue": {"k": "the rank of the value, counted from 1"},
    "layer_norm": {"normalized_shape": "the last dimensions, over which values are normalized"},
    "leaky_relu": {"negative_slope": "the slope for negative values"},
    "matrix_power": {"n": "the exponent"},
    "matrix_rank": {"tol": "the absolute tolerance", "rtol": "the tolerance relative to the largest singular value"},
    "nan_to_num": {
        "nan": "the number in place of NaN",
        "posinf": "the number in place of infinity; the largest finite one by default",
        "neginf": "the number in place of minus infinity; the smallest finite one by default",
    },
    "nll_loss": {"ignore_index": "the class of examples to ignore"},
    "one_hot": {"num_classes": "the number of classes; -1 for the largest integer plus 1"},
    "pad": {
        "pad_width": "the number of elements to add: one number, a pair (before, after), or a pair for each dimension",
        "mode": "`constant`, `edge`, `reflect`, `symmetric` or `wrap`",
        "constant_values": "the number to pad with, in the same forms as `pad_width`",
    },
    "qr": {"mode": "`reduced`, or `complete` for a square Q"},
    "repeat": {"axis": ONE_OR_FLATTENED},
    "roll": {"shift": "the number of places to move, or one for each dimension"},
    "searchsorted": {"side": "`left` or `right`: the side of equal values to insert at"},
    "smooth_l1_loss": {"beta": "the difference at which the loss becomes linear"},
    "softplus": {"beta": "the sharpness of the bend"},
    "solve_triangular": {
        "left": "whether the matrix is on the left of x",
        "unitriangular": "whether the diagonal is taken to be 1",
    },
    "stdtr": {"df": "the degrees of freedom"},
    "svd": {"full_matrices": "whether U and Vh are square"},
    "take": {"axis": ONE_OR_FLATTENED, "mode": "how to treat indices out of range: `raise`, `wrap` or `clip`"},
    "tensordot": {"axes": "a number of dimensions, or two lists of dimensions, to sum over"},
    "threshold": {"threshold": "the threshold", "value": "the value at and below the threshold"},
    "tile": {"reps": "the number of repetitions along each dimension"},
    "topk": {"k": "the number of values", "sorted": "whether the values are in order"},
    "trapezoid": {"dx": "the spacing of the samples, if `x` is None"},
}
INFINITE_SLOPES: Final = "If the incoming gradient is 0, this gradient is 0 too, even if the slope is infinite or NaN."


def docstring_of(operator: Operator, where: str) -> str:
    """Return the docstring of an operator: what it computes, its arguments and result, its gradient, and an example.

    Arguments:
        operator: any operator.
        where: the expression that the user calls it by.
    """
    arguments = [f"{argument.name}: {_described(operator, argument)}." for argument in operator.signature.arguments]
    arguments += [f"{name}: {_option(operator, name)}." for name in operator.signature.torch_names]
    return _text(operator.doc, arguments, _result(operator), _gradient(operator), example_of(operator, where, viewgrad))


def docstring_of_reduction(operator: Operator, function: Callable[..., Any]) -> str:
    """Return a docstring for a function around an operator, with the options of NumPy's function.

    Arguments:
        operator: what it consists of.
        function: the public function.
    """
    first, *options = inspect.signature(function).parameters.values()
    described = _described(operator, operator.signature.arguments[0])
    arguments = [f"{first.name}: {described}."]
    for option in options:
        left_out = "" if option.default is option.empty else f" (default: {option.default!r})"
        arguments.append(f"{option.name}: {_option(operator, option.name)}{left_out}.")
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
        flow = "gradients flow to" if flows else "no gradient flows to"
        return f"{text}{optional}; {flow} {'them' if argument.kind == 'tensors' else 'it'}"
    text = _option(operator, argument.name)
    return text if argument.default is None else f"{text} (default: {argument.default})"


def _option(operator: Operator, name: str) -> str:
    """Return the description of an option of an operator.

    Raises:
        KeyError: if an operator that users can call has an option without a description.
    """
    text = OPTIONS_OF.get(operator.name, {}).get(name)
    if text is None and name == "axis" and operator.signature.argument("axis").default != "None":
        text = ONE_DIMENSION
    if text is None and operator.name.startswith("_"):
        return OPTIONS.get(name, "an option")
    return text or OPTIONS[name]


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
    """Return the text of the file.

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
