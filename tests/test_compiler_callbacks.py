"""Callbacks: operators without a kernel, whose gradients by formulas equal those of eager runs."""

from __future__ import annotations

import numpy as np
import pytest
from operator_samples import samples_of

import viewgrad.compiler.callbacks as calls
from viewgrad.operators import OPERATORS
from viewgrad.trace.tracing.call_hooks import attribute_of

KINDS = ("f", "b", "i")
TOLD = ("trapezoid", "cumsum", "prod", "tensordot", "take", "interp", "sinc", "tril", "vector_norm", "convolve", "gelu")


def operations_of(operator):
    """Return the operator as an operation on the operands of its samples."""
    if len(operator.signature.outputs) > 1 or any(each.kind == "tensors" for each in operator.signature.tensors):
        return
    for sample in samples_of(operator):
        given = {argument.name: argument.default for argument in operator.signature.plain} | sample.bound()
        arrays = [given.get(argument.name) for argument in operator.signature.tensors]
        arrays = [None if array is None else np.asarray(array) for array in arrays]
        attributes = []
        for argument in operator.signature.plain:
            option = sample.bound().get(argument.name, None)
            named = argument.name in sample.bound()
            attributes.append(attribute_of(option if named else eval(argument.default, {"np": np})))
        if any(array is not None and array.dtype.kind not in KINDS for array in arrays):
            continue
        kinds = tuple([None if array is None else (array.shape, array.dtype) for array in arrays])
        args, keywords = calls.forward_call(operator, arrays, tuple(attributes))
        result = np.asarray(operator.forward(*args, **keywords))
        if result.dtype.char == "d":
            yield calls.Operation(operator.name, tuple(attributes), kinds, 0, result.shape, result.dtype), arrays


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_gradients_match_formulas(name, monkeypatch):
    rng = np.random.default_rng(0)
    told = 0
    for operation, arrays in operations_of(OPERATORS[name]):
        for number, kind in enumerate(operation.operands):
            if kind is None or kind[1].char != "d":
                continue
            by_formula = calls.backward_of(operation, number)
            with monkeypatch.context() as patch:
                patch.setattr(calls, "gradient_by_formula", lambda *given: None)
                eager = calls.backward_of(operation, number)
            told += by_formula.__qualname__ != eager.__qualname__
            for specials in ((), (0.0, 1.0), (np.nan, np.inf, -np.inf, -1.0)):
                given = [array.copy() for array in arrays if array is not None]
                for array in given:
                    if specials and array.dtype.char == "d":
                        array.reshape(-1)[: len(specials)] = specials[: array.size]
                seed = rng.normal(size=operation.shape) * (rng.random(operation.shape) > 0.2)
                try:
                    wanted = eager(seed, *given)
                except Exception:  # the forward raises, or returns another shape
                    continue
                if np.shape(wanted) == kind[0]:
                    np.testing.assert_array_equal(by_formula(seed, *given), wanted)
    assert told or name not in TOLD
