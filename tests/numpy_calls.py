"""Calls of every public function, ufunc and method of NumPy on numbers, with arrays and with tensors.

Handwritten calls of each name are in numpy_calls.txt. Calls with each option of `OPTIONS` that a name takes are added.
`verdict` compares the value of a call with NumPy's, and its gradient with a difference. Run as a program, this file
counts the verdicts: `python tests/numpy_calls.py`.
"""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import operator
import re
import types
import warnings
from pathlib import Path

import numpy

import viewgrad as vg
import viewgrad.numpy
from viewgrad.autograd import grad
from viewgrad.errors import AutogradError, DetachedConversionWarning
from viewgrad.numpy.namespace import public_names
from viewgrad.numpy.passthrough import FROM_NUMPY

RIGHT, CLEAR, WARNED, REFUSED, WRONG, SILENT = "right", "clear error", "warned", "refused", "wrong", "silent"

# Arguments of the calls: a and b have shape (3, 4), v has 4 elements, w 3, s is positive definite, m regular.
# All but s and m lie between 0 and 1; j has integers, k is a mask. `after` is the value after a change in place.
RNG = numpy.random.default_rng(3)
ARRAYS = {
    "a": RNG.uniform(0.15, 0.9, (3, 4)),
    "b": RNG.uniform(0.15, 0.9, (3, 4)),
    "v": RNG.uniform(0.15, 0.9, 4),
    "w": RNG.uniform(0.15, 0.9, 3),
    "m": RNG.normal(size=(3, 3)) + 2 * numpy.eye(3),
}
ARRAYS["s"] = ARRAYS["m"] @ ARRAYS["m"].T
PLAIN = {
    "j": numpy.array([[1, 0, 2, 1], [2, 2, 0, 1], [0, 1, 1, 2]]),
    "k": numpy.array([[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0]], bool),
}

# -- the calls ---------------------------------------------------------------------------------------------------------


def tables() -> dict[str, dict[str, list[str]]]:
    """Return the explicit calls: for each section of the table, the calls of each name."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    named: list[str] = []
    calls: list[str] = []
    for line in (Path(__file__).with_suffix(".txt")).read_text().splitlines():
        if line.startswith("["):
            section = found[line.strip("[]")] = {}
        elif line.startswith(" "):
            calls.append(line.strip())
            for name in named:
                section.setdefault(name, []).append(line.strip().replace("{}", name))
        elif line and not line.startswith("#"):
            named, calls = ([] if calls else named) + line.split(), []
    return found


# Binary ufuncs, whose methods are called.
FOLDED = "add multiply subtract maximum minimum fmax fmin logaddexp hypot divide logical_and logical_or".split()

# Values of options by parameter names, tried one at a time, except those that NumPy refuses.
MODES = "wrap clip same reflect symmetric linear_ramp mean complete raw".split()
LIKE_RAISE = [f"mode:{place}" for place, mode in enumerate(MODES) if mode in ("reflect", "complete", "raw")]
TRUE = """keepdims bias stable descending deg subok copy include_initial density invert assume_unique return_index
return_counts return_inverse equal_nan full cov""".split()
OPTIONS = {
    **{key: [True] for key in TRUE}, "axis": [0, -1, (0, 1), None], "axes": [(0,), (1, 0)], "axis1": [1],
    "append": [0.3], "correction": [1], "ddof": [1], "decimals": [1], "discont": [4.0], "dx": [0.5],
    "dtype": [numpy.float32, complex],
    "edge_order": [2], "endpoint": [False], "initial": [0.5], "k": [1, -1], "kind": ["stable"], "mode": MODES,
    "method": ["hazen", "lower", "nearest", "median_unbiased"], "n": [2], "nan": [0.5], "norm": ["ortho", "forward"],
    "offset": [1], "optimize": [True, "greedy"], "ord": [1, 2, -1, 3, "fro", numpy.inf], "order": ["F", "K"],
    "period": [0.5], "prepend": [0.3], "rcond": [1e-10], "rowvar": [False], "side": ["right"], "trim": ["f"],
    "out": ["like the result"], "where": ["a mask"],
}  # fmt: skip

# Functions that do not accept numbers: those of files, texts and external memory.
NO_NUMBERS = frozenset("fromfile fromregex from_dlpack load save savetxt savez savez_compressed sctypeDict".split())
DROPPED = frozenset({"in1d", "trapz"})  # by later versions than the oldest that is allowed


CALLS = tables()
REDUCING = re.compile(r"(np|a)\.(nan|a|)(sum|prod|mean|std|var|max|min|all|any)\(|.*\.reduce\(")


def after(change, array):
    """Return the target after an in-place change."""
    copy = array * 1
    changed = change(copy)
    return copy if changed is None or changed.ndim != copy.ndim or changed.shape != copy.shape else changed


def names() -> dict[str, object]:
    """Return the public functions of NumPy that make sense for numbers, with the functions."""
    found = {}
    for module, before in (
        (numpy, ""), (numpy.linalg, "linalg."), (numpy.fft, "fft."), (numpy.lib.stride_tricks, "lib.stride_tricks."),
    ):  # fmt: skip
        for name in public_names(module):
            value = getattr(module, name)
            if name not in FROM_NUMPY | NO_NUMBERS | DROPPED and not isinstance(value, (type, types.ModuleType)):
                if module is numpy or before[:-1] in ("linalg", "fft") or name in ("as_strided", "sliding_window_view"):
                    found[before + name] = value
    for each in ("LinAlgError", "linalg", "test", "helper"):
        found.pop(f"linalg.{each}", None)
        found.pop(f"fft.{each}", None)
    return found


def calls_of(name: str, function: object) -> list[tuple[str, str]]:
    """Return the calls of a name: the explicit ones, and one for each option, as texts with the option's name."""
    texts = CALLS["functions"].get(name)
    if texts is None:
        assert isinstance(function, numpy.ufunc), f"no calls of {name} in the table"
        texts = [f"np.{name}(a)", f"np.{name}(v)"] if function.nin == 1 else [f"np.{name}(a, b)", f"np.{name}(v, 0.5)"]
    return with_options(texts, f"np.{name}(", parameters(function))


def with_options(texts: list[str], start: str, known: list[str]) -> list[tuple[str, str]]:
    """Return explicit calls, and calls with a given beginning and each option."""
    calls = [(text, "") for text in texts]
    for text in [text for text in texts if text.startswith(start) and text.endswith(")")][:2]:
        longer = f"{text[:-1]}, **o)".replace("(, ", "(")
        for option in known:
            if option in OPTIONS and not re.search(rf"\b{option}=", text):
                named = [f"{option}:{place}" for place in range(len(OPTIONS[option]))]
                if start == "np.choose(":  # NumPy 2.0 reads only the first letter
                    named = [each for each in named if each not in LIKE_RAISE]
                calls += [(longer, each) for each in named]
    return calls


def parameters(function: object) -> list[str]:
    """Return the names of a function's parameters."""
    if isinstance(function, numpy.ufunc):
        return ["out", "where", "dtype"] if function.signature is None else ["out", "axis", "dtype"]
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def all_calls() -> dict[str, list[tuple[str, str]]]:
    """Return every name with its calls: functions, methods of arrays, methods of ufuncs."""
    found = {name: calls_of(name, function) for name, function in names().items()}
    for name, texts in CALLS["methods"].items():
        if hasattr(numpy.ndarray, name.partition(".")[0]):
            found[f"ndarray.{name}"] = with_options(texts, f"a.{name}(", parameters(getattr(numpy, name, None)))
    known = {"reduce": ["axis", "dtype", "out", "keepdims", "initial", "where"], "at": []}
    for kind, templates in CALLS["methods of ufuncs"].items():
        for name in FOLDED:
            texts = [text.replace("{ufunc}", name) for text in templates]
            found[f"{name}.{kind}"] = with_options(
                texts, f"np.{name}.{kind}(", known.get(kind, ["axis", "dtype", "out"])
            )
    return found


# -- the outcome of a call ---------------------------------------------------------------------------------------------


def option_of(option: str, result) -> dict:
    if not option:
        return {}
    name, place = option.split(":")
    value = OPTIONS[name][int(place)]
    if name == "where":
        return {"where": PLAIN["k"]}
    if name == "out":
        return {"out": numpy.zeros(numpy.shape(result), numpy.asarray(result).dtype)}
    return {name: value}


def run(code, np, arrays, options):
    return eval(code, {"np": np, "after": after, "operator": operator, "copy": copy, "o": options} | PLAIN | arrays)


def flat(value) -> list:
    """Return the parts of a result, without the tuples, lists and dicts around them."""
    if isinstance(value, (tuple, list)):
        return [part for each in value for part in flat(each)]
    if isinstance(value, (numpy.flatiter, range)) or type(value).__name__ == "FlatElements":
        return [value[:]] if not isinstance(value, range) else list(value)
    return [value.A if type(value).__name__ == "matrix" else value]  # whose products are others


def is_number(value) -> bool:
    return isinstance(value, (numpy.ndarray, numpy.generic, vg.Tensor)) and value.dtype.kind in "fc"


def is_float(value) -> bool:
    return is_number(value) or isinstance(value, (float, complex))


def plain(value):
    return value.detach().numpy() if isinstance(value, vg.Tensor) else value


@functools.cache
def weights_of(shape, place):
    size = int(numpy.prod(shape))
    return numpy.cos(1.3 * numpy.arange(size) + place).reshape(shape)


def total(parts):
    """Return a number that depends on all numbers in a result."""
    found = 0.0
    for place, part in enumerate(parts):
        if is_float(part):
            part = part if is_number(part) else numpy.asarray(part)
            term = (part * weights_of(tuple(part.shape), place)).sum()
            found = found + (term.real + 0.5 * term.imag if part.dtype.kind == "c" else term)
    return found


def equal(ours, theirs, tolerance) -> bool:
    ours = plain(ours)
    if isinstance(theirs, (numpy.ndarray, numpy.generic)) and theirs.dtype.kind in "fciub":
        return (
            numpy.shape(ours) == theirs.shape
            and getattr(ours, "dtype", theirs.dtype) == theirs.dtype
            and numpy.allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
        )
    if isinstance(theirs, (float, complex)):
        return bool(numpy.isclose(ours, theirs, rtol=1e-12))
    return bool(numpy.all(ours == theirs))


def verdict(text: str, option: str = "") -> tuple[str, str] | None:
    """Return the outcome of a call, and its reason; None if NumPy raises, or leaves memory uninitialized."""
    code = compile(text, "<call>", "eval")
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        name = option.partition(":")[0]
        try:
            first = run(code, numpy, ARRAYS, {}) if name == "out" else None
            options = option_of(option, first)
            if name == "where" and not REDUCING.match(text):  # unwritten elements keep their values
                options |= option_of("out:0", run(code, numpy, ARRAYS, {}))
            expected = flat(run(code, numpy, ARRAYS, {key: copied(value) for key, value in options.items()}))
        except Exception:
            return None if option else (WRONG, "NumPy refuses it")
    return compared(code, options, expected)


def copied(value):
    return value.copy() if isinstance(value, numpy.ndarray) else value


def compared(code, options, expected) -> tuple[str, str]:
    leaves = {name: vg.Tensor(array, requires_grad=True) for name, array in ARRAYS.items()}
    ours = {key: vg.Tensor(value) if key == "out" else value for key, value in options.items()}
    with warnings.catch_warnings(record=True) as told, numpy.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            found = flat(run(code, viewgrad.numpy, leaves, ours))
        except AutogradError as error:
            return CLEAR, str(error)
        except Exception as error:
            if "tensor" in str(error):
                return CLEAR, str(error)
            return REFUSED, f"{type(error).__name__}: {error}"
    single = any(is_number(part) and part.dtype.itemsize // (1 + (part.dtype.kind == "c")) < 8 for part in expected)
    tolerance = 2e-6 if single else 1e-10
    if len(found) != len(expected):
        return WRONG, f"{len(found)} results, not {len(expected)}"
    for mine, theirs in zip(found, expected):
        if not equal(mine, theirs, tolerance):
            return WRONG, f"{mine!r}, not {theirs!r}"
    if any(issubclass(each.category, DetachedConversionWarning) for each in told):
        return WARNED, str(told[0].message)
    return slopes(code, options, leaves, found, single)


def slopes(code, options, leaves, found, single) -> tuple[str, str]:
    directions = {name: weights_of(array.shape, 0.7) for name, array in ARRAYS.items()}
    directions["s"] = directions["s"] + directions["s"].T
    step = 1e-3 if single else 1e-6

    def moved(step):
        arrays = {name: array + step * directions[name] for name, array in ARRAYS.items()}
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return total(flat(run(code, numpy, arrays, {key: copied(value) for key, value in options.items()})))

    slope = float(moved(step) - moved(-step)) / (2 * step)
    result = total(found)
    ours = 0.0
    if isinstance(result, vg.Tensor) and result.requires_grad:
        gradients = grad(result, list(leaves.values()), allow_unused=True)
        ours = sum(float((g.numpy() * directions[name]).sum()) for name, g in zip(leaves, gradients) if g is not None)
    near = 3e-3 if single else 1e-5
    if abs(ours - slope) <= near * (1 + abs(slope)):
        return RIGHT, ""
    return (WRONG if ours else SILENT), f"the slope is {ours}, not {slope}"


def judged(calls: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the verdicts on the calls of a name, each with the calls and their outcomes."""
    found = collections.defaultdict(list)
    for text, option in calls:
        outcome = verdict(text, option)
        if outcome is not None:
            found[outcome[0]].append(f"{text} {option}: {outcome[1]}")
    return found


def main() -> None:
    """Count names and calls by outcome, and print the calls that are wrong."""
    by_name: collections.Counter[str] = collections.Counter()
    by_call: collections.Counter[str] = collections.Counter()
    for name, calls in all_calls().items():
        found = judged(calls)
        by_call.update({kind: len(told) for kind, told in found.items()})
        by_name["all right" if found.keys() == {RIGHT} else ", ".join(sorted(found))] += 1
        for kind in found.keys() - {RIGHT}:
            print(*(f"{kind:12} {name:28} {each[:300]}" for each in found[kind]), sep="\n")
    print("names", sum(by_name.values()), dict(by_name))
    print("calls", sum(by_call.values()), dict(by_call))


if __name__ == "__main__":
    main()
