"""Random programs, traced, differentiated as graphs and run, against eager runs."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from symbolic_checks import assert_close, check, tensors

from viewgrad.autograd import grad
from viewgrad.errors import TraceError
from viewgrad.symbolic import function_of
from viewgrad.testing import programs
from viewgrad.testing.checks import check_program
from viewgrad.testing.generator import ProgramGenerator

BATCHES = 4


def as_function(program):
    """Return a program as a function of its leaves, the arrays of the leaves, and options of `check`."""
    made = program.make_leaves()
    names = [leaf.name for leaf in program.leaves if leaf.requires_grad]
    arrays = [made[name].detach().numpy().copy("K") for name in names]

    def function(*leaves):
        others = program.make_leaves()
        return program.execute_stepwise(others | dict(zip(names, leaves, strict=True)))[program.loss]

    def make():
        again = program.make_leaves()
        return [again[name] for name in names]

    return function, arrays, {"make": make, "single": any(leaf.single for leaf in program.leaves)}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_drawn_programs(request, batch):
    number = request.config.getoption("--programs") // (5 * BATCHES)

    @seed(request.config.getoption("--programs-seed") * BATCHES + batch)
    @settings(max_examples=number, database=None, deadline=None, report_multiple_bugs=False, phases=[Phase.generate])
    @given(programs())
    def run(program):
        function, leaves, options = as_function(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(function, leaves, str(program), **options)

    run()


class Ending(ProgramGenerator):
    """Writes programs in which histories are ended in place again and again, among views and writes."""

    def draw_step(self):
        step = self.draw_detach_in_place() if self.draw(st.integers(0, 4)) == 0 else None
        if step is None:
            super().draw_step()
        else:
            self.add(step)


@st.composite
def ending_programs(draw):
    writer = Ending(draw)
    writer.draw_leaf()
    for _ in range(draw(st.integers(4, 16))):
        writer.draw_step()
    return writer.finish()


def test_drawn_programs_that_end_histories(request):
    checked = []

    @seed(request.config.getoption("--programs-seed"))
    @settings(
        max_examples=request.config.getoption("--programs") // 10, database=None, deadline=None,
        report_multiple_bugs=False, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(ending_programs())
    def run(program):
        function, leaves, options = as_function(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_program(program, order=1)
            checked.append(check(function, leaves, str(program), **options))

    run()
    assert len(checked) > 5 * checked.count(None)


def test_sum_of_gradients_with_one_differentiable_summand():
    """The gradient of one operand is a constant zero; its sum with the other's has a derivative."""
    check(lambda x: (np.copysign(x, x) * [1.0, 3.0]).sum(), [np.array([0.5, -2.0])], "copysign(x, x)")
    check(lambda x: (np.copysign(x, x) * x + np.hypot(x, x)).sum(), [np.array([0.5, -2.0])], "copysign(x, x) * x")


def laid_out(leaf, how):
    """Return a tensor with the elements of a leaf in another memory layout; elements may share memory."""
    other = leaf * 1
    if how == "spread" and other.ndim:
        return np.broadcast_to(other[:1], other.shape)
    if how == "turned":
        return (other.T * 1).T
    if how == "reversed" and other.ndim:
        return (other[::-1] * 1)[::-1]
    if how == "part" and other.ndim:
        return np.concatenate([other, other])[: len(other)]
    return other


@pytest.mark.slow
def test_drawn_programs_take_arguments_of_any_layout(request):
    compared = []

    def outcome(function, arrays, how):
        leaves = tensors(arrays)
        result = function(*[laid_out(leaf, how) for leaf in leaves])
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        grads = grad(result, wanted, materialize_grads=True) if result.requires_grad and wanted else []
        return [each.detach().numpy() for each in (result, *grads)]

    @seed(request.config.getoption("--programs-seed"))
    @settings(
        max_examples=request.config.getoption("--programs"), database=None, deadline=None,
        report_multiple_bugs=False, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(), st.sampled_from(["spread", "turned", "reversed", "part"]))
    def run(program, how):
        function, arrays, _ = as_function(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = outcome(function, arrays, how)
            except (ValueError, RuntimeError):
                return  # the program was drawn for other layouts
            try:
                traced = function_of(function, *[laid_out(leaf, how) for leaf in tensors(arrays)])
            except TraceError:
                assert how == "spread"
                return
            for ours, other in zip(outcome(traced, arrays, how), expected, strict=True):
                assert_close(ours, other, f"{how}, {program}")
            compared.append(how)

    run()
    assert {*compared} == {"spread", "turned", "reversed", "part"}
