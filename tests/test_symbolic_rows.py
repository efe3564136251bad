"""Every operator with a derivative differentiates as a graph, and agrees with eager runs."""

import numpy as np
import pytest
from operator_samples import samples_of
from symbolic_checks import check

from viewgrad.operators.define import OPERATORS

# some operators are of other tests
DIFFERENTIABLE = [o for o in OPERATORS.values() if o.formulas and not o.user_defined]


def call_of(sample):
    """Return a sample as a function of its tensors, and the arrays of these."""
    given = sample.bound()
    names = [a.name for a in sample.operator.signature.tensors if given.get(a.name) is not None]
    leaves = []
    for name in names:
        leaves.extend(map(np.asarray, given[name] if isinstance(given[name], list) else [given[name]]))

    def function(*tensors):
        rest = list(tensors)
        values = {}
        for name in names:
            if isinstance(given[name], list):
                values[name], rest = rest[: len(given[name])], rest[len(given[name]) :]
            else:
                values[name] = rest.pop(0)
        call = sample.replace(**values)
        return sample.operator.function(*call.args, **call.kwargs)

    return function, leaves


@pytest.mark.parametrize("operator", DIFFERENTIABLE, ids=lambda operator: operator.name)
def test_operator(operator):
    for sample in samples_of(operator)[:2]:
        function, leaves = call_of(sample)
        check(function, leaves, str(sample), again=False)


@pytest.mark.slow
@pytest.mark.parametrize("operator", DIFFERENTIABLE, ids=lambda operator: operator.name)
def test_operator_on_all_samples(operator):
    for sample in samples_of(operator):
        function, leaves = call_of(sample)
        check(function, leaves, str(sample))
