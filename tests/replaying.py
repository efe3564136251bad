"""Checks of traced and compiled functions with inputs that differ from the traced ones.

As a plugin of pytest (`-p replaying`), this replays each function that a test hands to `gradcheck` or `gradgradcheck`:
every program tested for derivatives is also tested for values that a trace holds fixed. The end shows a summary.
"""

from __future__ import annotations

import collections
import warnings

import numpy as np

import viewgrad as vg
import viewgrad.autograd
from viewgrad.autograd import grad
from viewgrad.errors import ConcretizationError, GraphError, GuardError, TraceError
from viewgrad.func.tree import flatten
from viewgrad.symbolic import function_of

OUTCOMES = collections.Counter()
TOLERANCE = 1e-6
COMPILED = 2  # the number of other inputs on which compiled programs are compared


def others(arrays):
    """Yield arrays of the same shapes and dtypes: permuted, scaled, shifted, with other signs.

    Ones among other numbers are kept: some functions require them, such as filters by sections.
    """
    rng = np.random.default_rng(len(arrays))
    changes = [
        lambda array: array[..., ::-1] if array.ndim else array,
        lambda array: array * 1.25,
        lambda array: array * (1 + 0.2 * rng.uniform(-1, 1, array.shape)),
        lambda array: array * rng.choice([-1, 1], array.shape),
        lambda array: array * 4,
    ]
    for change in changes:
        yield [changed(array, np.asarray(change(array), array.dtype)) for array in arrays]


def changed(array, other):
    """Return `other` with the ones of the first array, if that also contains other numbers."""
    ones = array == 1
    return np.where(ones, array, other) if np.any(ones) and not np.all(ones) else other.copy()


def outcome(function, tensors):
    """Return the values of a function, and the gradient of a number that depends on them; None if it fails."""
    leaves = [
        vg.Tensor(each.detach().numpy(), requires_grad=each.requires_grad) if isinstance(each, vg.Tensor) else each
        for each in tensors
    ]
    results = [each for each in flatten(function(*leaves))[0] if isinstance(each, vg.Tensor)]
    values = [np.array(each.detach().numpy()) for each in results]
    total = 0.0
    for number, each in enumerate(results):
        if each.requires_grad:
            weights = np.random.default_rng(number).uniform(0.5, 1.5, each.shape)
            total = total + ((each * weights).sum() if each.dtype.kind == "f" else (abs(each) ** 2 * weights).sum())
    wanted = [each for each in leaves if isinstance(each, vg.Tensor) and each.requires_grad]
    found = grad(total, wanted, materialize_grads=True) if isinstance(total, vg.Tensor) else []
    return values, [each.detach().numpy() for each in found]


def attempted(function, tensors):
    try:
        return outcome(function, tensors)
    except Exception:
        return None


def is_settled(result) -> bool:
    return result is not None and all(np.isfinite(each).all() for part in result for each in part)


def compare(ours, right, what) -> None:
    for kind, parts, wanted in zip(("value", "gradient"), ours, right):
        assert len(parts) == len(wanted), f"{what}: {len(parts)} {kind}s, not {len(wanted)}"
        for one, other in zip(parts, wanted):
            scale = float(np.abs(other).max(initial=1.0)) if other.dtype.kind in "fc" else 1.0
            close = one.shape == other.shape and np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale)
            assert close, f"{what}: the {kind} is {one}, not {other}"


def replay(function, inputs, told=""):
    """Record a function with some inputs, and compare it with its eager self with others."""
    tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if attempted(function, tensors) is None:
            return
        traced = None
        try:
            traced = function_of(function, *tensors)
            OUTCOMES["traced"] += 1
        except (ConcretizationError, TraceError) as refusal:
            OUTCOMES[f"refused: {str(refusal).partition(' at ')[0][:60]}"] += 1
        compiled = vg.compile(function, executor="python")
        for _ in range(2):
            outcome(compiled, tensors)
        arrays = [each.detach().numpy() for each in tensors if isinstance(each, vg.Tensor)]
        for number, given in enumerate(others(arrays)):
            rest = iter(given)
            changed = [
                vg.Tensor(next(rest), requires_grad=each.requires_grad) if isinstance(each, vg.Tensor) else each
                for each in tensors
            ]
            right = attempted(function, changed)
            if not is_settled(right):
                continue
            OUTCOMES["compared"] += 1
            if number < COMPILED:
                compare(outcome(compiled, changed), right, f"{told} compiled, inputs {number}")
            if traced is not None:
                try:
                    found = outcome(traced, changed)
                except (GuardError, GraphError) as refusal:  # a graph has the shapes and dtypes of its trace
                    assert isinstance(refusal, GuardError) or "when the program was traced" in str(refusal)
                    OUTCOMES["guarded"] += 1
                    continue
                compare(found, right, f"{told} traced, inputs {number}")


def replayed(function, inputs, *args, **kwargs):
    """Replay a traced function in place of `gradcheck`."""
    replay(function, inputs)
    return True


def pytest_configure(config):
    viewgrad.autograd.gradcheck = viewgrad.autograd.gradgradcheck = replayed


def pytest_terminal_summary(terminalreporter):
    for name, count in OUTCOMES.most_common():
        terminalreporter.write_line(f"replayed: {count} {name}")
