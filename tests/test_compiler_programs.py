"""Random programs, compiled against eager: values, gradients, second derivatives, aliasing."""

from __future__ import annotations

import importlib.util
import warnings

import drawn_loops
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from interpreted_kernels import compiled_by

import viewgrad as vg
from viewgrad.testing import Program, programs

CALLS = 4
NUMBA = pytest.param("numba", 4, marks=pytest.mark.skipif(not importlib.util.find_spec("numba"), reason="needs Numba"))


def close(found, wanted, rtol=1e-8, noise=0.0) -> bool:
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if found.dtype.kind not in "fc":
        return bool((found == wanted).all())
    scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0)
    return bool(np.isclose(found, wanted, rtol=rtol, atol=rtol * scale + noise, equal_nan=True).all())


def leaves(program: Program, number: int) -> dict[str, vg.Tensor]:
    """Return the leaves of a program, with different values in each call."""
    made = program.make_leaves()
    rng = np.random.default_rng(number)
    with vg.no_grad():
        for tensor in made.values():
            if number and tensor.dtype == np.float64:
                tensor *= 1 + 0.1 * rng.random()
    return made


def check_compiled(program: Program, executor: str) -> None:
    """Call a program several times, compiled and eagerly, and compare everything observable."""
    program = program.in_double_precision

    def run(given):
        names = program.execute_stepwise(given)
        tensors = {
            name: value
            for name, value in names.items()
            if isinstance(value, vg.Tensor) and name not in given and name != program.loss
        }
        return names[program.loss], tensors

    compiled = vg.compile(run, executor=executor)
    for number in range(CALLS):
        seen = []
        for function in (compiled, run):
            given = leaves(program, number)
            loss, tensors = function(given)
            wanted = [given[leaf.name] for leaf in program.differentiable_leaves]
            seen.append(everything(loss, tensors, given, wanted))
        for one, other in zip(*seen, strict=True):
            assert close(one, other, 1e-7), f"{compiled.explain()}\n{program.source()}"


def everything(loss, tensors, given, wanted):
    """Return values, gradients and second derivatives, before and after writes to some values."""
    found = [loss, *tensors.values(), *given.values()]
    seen = [np.array(has_history(tensor)) for tensor in found] + [tensor.detach().numpy().copy() for tensor in found]
    if loss.requires_grad and wanted:
        first = vg.autograd.grad(loss, wanted, allow_unused=True, create_graph=True)
        seen += [np.zeros(w.shape, w.dtype) if g is None else g.detach().numpy() for g, w in zip(first, wanted)]
        parts = [(g * g).real.sum() for g in first if g is not None and g.requires_grad]
        second = vg.autograd.grad(sum(parts), wanted, allow_unused=True) if parts else [None] * len(wanted)
        seen += [np.zeros(w.shape, w.dtype) if g is None else g.numpy() for g, w in zip(second, wanted)]
    for tensor in [each for each in tensors.values() if each.dtype.kind in "fc"][:3]:
        try:
            with vg.no_grad():
                tensor.mul_(2.0)
        except vg.errors.AutogradError:
            pass
    return seen + [tensor.detach().numpy().copy() for tensor in found]


def has_history(tensor):
    """Return whether a tensor requires grad; NaN for a view with an ambiguous history."""
    try:
        return float(tensor.requires_grad)
    except vg.errors.ViewInPlaceError:
        return np.nan


def test_results_with_an_ambiguous_history_are_returned_unchanged():
    def function(x):
        base = x.clone()
        view = base[()]
        for _ in range(9):
            base.detach_()
            base[:1].mul_(x[:1])
        return base, view

    compiled = vg.compile(function, executor="python")
    for _ in range(3):
        base, view = compiled(vg.Tensor([0.3, 0.4], requires_grad=True))
        assert base.requires_grad and view.detach().tolist() == base.detach().tolist()
        with pytest.raises(vg.errors.ViewInPlaceError):
            bool(view.requires_grad)
    assert "history" in compiled.explain()


@pytest.mark.usefixtures("verified_ir")
@pytest.mark.parametrize(("executor", "number"), [("python", 40), NUMBA])
def test_compiled_drawn_programs_match_eager(executor, number, request):
    def check(program: Program) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_compiled(program, executor)

    options = {"database": None, "deadline": None, "phases": [Phase.generate], "suppress_health_check": HealthCheck}
    seed(request.config.getoption("--programs-seed"))(
        settings(max_examples=number, **options)(given(programs())(check))
    )()


@pytest.mark.usefixtures("verified_ir")
@pytest.mark.parametrize("executor", ["python", "interpreted"])
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_compiled_drawn_loops_match_eager_and_numpy(executor, request):
    start = 5 * request.config.getoption("--programs-seed")
    for number in range(start, start + 5):
        program, plain = drawn_loops.loop_program(number), drawn_loops.loop_program(number, np.zeros)
        compiled = compiled_by(executor, program, check=False)
        for call in range(3):
            given = drawn_loops.inputs(number, call)
            value, gradients = vg.func.value_and_grad(compiled, (0, 1, 2))(*given)
            wanted, wanted_gradients = vg.func.value_and_grad(program, (0, 1, 2))(*given)
            assert close(np.asarray(plain(*given)), np.asarray(wanted)) and close(np.asarray(value), np.asarray(wanted))
            for one, other in zip(gradients, wanted_gradients, strict=True):
                assert close(np.asarray(one), np.asarray(other), 1e-6, noise=1e-9)
