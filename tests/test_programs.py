"""Programs drawn at random, which take views of tensors and write to them in any order, against oracles.

See `viewgrad.testing` for what is drawn and for the oracles; `tests/conftest.py` has the options for long runs.
"""

from __future__ import annotations

import contextlib
import functools
import io
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad.operators.define import OPERATORS
from viewgrad.tensor import saved_windows, storage
from viewgrad.testing import (
    FEATURES,
    Mismatch,
    Program,
    ProgramFunction,
    array_indices,
    basic_indices,
    check_feature,
    check_program,
    compare_backends,
    function_of,
    programs,
    tensors,
    views_of,
)
from viewgrad.testing.backends import compare_many
from viewgrad.views import advanced_indexing, construct, copy_slices, meta, view_nodes, write_checks
from viewgrad.views import unbroadcast as conform

# Programs retain gradients of tensors that they write to afterwards.
pytestmark = pytest.mark.filterwarnings("ignore::viewgrad.errors.NonLeafGradWarning")
BATCHES = 8


@pytest.fixture
def drawn(request):
    """Return a function that draws a share of the programs and checks them: `drawn(check, number, batch)`."""

    def run(check, number: int | None = None, batch: int = 0, strategy=None, **kwargs) -> None:
        number = request.config.getoption("--programs") if number is None else number
        first = request.config.getoption("--programs-seed") * BATCHES
        inner = given(programs() if strategy is None else strategy)(lambda program: check(program))
        seed(first + batch)(settings(max_examples=number, database=None, report_multiple_bugs=False, **kwargs)(inner))()

    return run


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_agree_with_finite_differences_without_aliasing_and_with_replayed_views(drawn, request, batch):
    number = request.config.getoption("--programs")
    drawn(check_program, -(-number // BATCHES), batch)


def test_programs_agree_at_the_third_order(drawn, request):
    number = request.config.getoption("--programs") // 4
    drawn(lambda program: check_program(program, order=3, numeric=False), number, batch=4)


def test_a_printed_program_runs_and_prints_its_gradients(drawn):
    def check(program: Program) -> None:
        names = program.execute()
        assume(names[program.loss].requires_grad)
        tensors = [names[name] for name in (*(leaf.name for leaf in program.differentiable_leaves), *program.inputs)]
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(program.source(), {})
        expected = vg.autograd.grad(names[program.loss], tensors, allow_unused=True)
        assert output.getvalue() == f"{expected}\n"

    drawn(check, 50)


def test_pytorch_agrees_if_it_runs_the_program(drawn, request):
    pytest.importorskip("torch")
    from viewgrad.testing.backends.pytorch import gradients
    from viewgrad.testing.backends.unsupported import Unsupported

    ran = []

    def check(program: Program) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values, theirs = gradients(program)
            except (Unsupported, RuntimeError, TypeError, ValueError, IndexError):
                assume(False)
        names = program.execute()
        # If memory overlaps, PyTorch's values depend on the order of its writes.
        assume(all(np.allclose(names[name].detach().numpy(), value, atol=1e-9) for name, value in values.items()))
        ran.append(program)
        leaves = [names[name] for name in theirs]
        loss = names[program.loss]
        ours = vg.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None] * len(leaves)
        for (name, their), our in zip(theirs.items(), ours, strict=True):
            their = np.zeros(names[name].shape) if their is None else their
            our = np.zeros(names[name].shape) if our is None else our.numpy()
            if not np.allclose(our, their, rtol=1e-9, atol=1e-9):
                raise Mismatch(f"the gradient of {name} is\n{our}\ninstead of\n{their}\nby PyTorch\n\n{program}")

    number = request.config.getoption("--programs") // 3
    drawn(check, number, suppress_health_check=list(HealthCheck))  # it refuses many
    assert len(ran) > number // 5


# -- features ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feature", FEATURES)
def test_features_leave_values_and_gradients_as_they_are(drawn, request, feature):
    number = request.config.getoption("--programs") // 4
    drawn(lambda program: check_feature(program, feature), number, batch=1)


class Squash(vg.autograd.Function):
    """The hyperbolic tangent, written over its argument."""

    @staticmethod
    def forward(ctx, x):
        x.tanh_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * (1.0 - result * result)

    @staticmethod
    def jvp(ctx, tangent):
        (result,) = ctx.saved_tensors
        return tangent.mul_(1.0 - result * result)


class AddSquare(vg.autograd.Function):
    """The second argument, squared, added to the first in place."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        ctx.shapes = x.shape, y.shape
        x.add_(y * y)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad, conform.sum_to(grad * 2.0 * y, ctx.shapes[1])

    @staticmethod
    def jvp(ctx, of_x, of_y):
        (y,) = ctx.saved_tensors
        return of_x if of_y is None else of_x.add_(2.0 * y * of_y)


class SineAndCosine(vg.autograd.Function):
    """Two outputs, each of which is saved."""

    @staticmethod
    def forward(ctx, x):
        sine, cosine = x.sin(), x.cos()
        ctx.save_for_backward(sine, cosine)
        return sine, cosine

    @staticmethod
    def backward(ctx, of_sine, of_cosine):
        sine, cosine = ctx.saved_tensors
        return of_sine * cosine - of_cosine * sine

    @staticmethod
    def jvp(ctx, tangent):
        sine, cosine = ctx.saved_tensors
        return tangent * cosine, -tangent * sine


EXPONENTIALS = vg.autograd.define_op(
    "exponentials_of_programs(self) -> (growing, falling)",
    forward=lambda x: (np.exp(x), np.exp(-x)),
    derivatives={"self": "grads[0] * conj(growing) - grads[1] * conj(falling)"},
    forward_derivative={"growing": "self_t * growing", "falling": "-self_t * falling"},
    elementwise=True,
)
del OPERATORS[EXPONENTIALS.name]  # other tests iterate over this table
OWN = (
    ProgramFunction("squash", np.tanh, vg.tanh, complex=False, module="", inplace_operator=Squash.apply),
    ProgramFunction(
        "add_square",
        lambda x, y: x + y * y,
        lambda x, y: x + y * y,
        arity=2,
        complex=False,
        module="",
        # An operand saved for jvp must not share memory with the target.
        inplace_operator=lambda x, y: AddSquare.apply(x, y.clone() if isinstance(y, vg.Tensor) else vg.Tensor(y)),
    ),
    ProgramFunction(
        "sine_and_cosine", lambda x: (np.sin(x), np.cos(x)), SineAndCosine.apply, complex=False, outputs=2, module=""
    ),
    function_of(EXPONENTIALS),
)


def test_custom_functions_that_write_in_place_and_that_have_several_outputs(drawn, request):
    used = set()

    def check(program: Program) -> None:
        used.update(function.name for function in program.functions)
        check_program(program)

    drawn(check, request.config.getoption("--programs") // 2, batch=2, strategy=programs(functions=OWN))
    assert used >= {function.name for function in OWN}


@pytest.mark.parametrize("feature", FEATURES)
def test_custom_functions_with_features(drawn, request, feature):
    number = request.config.getoption("--programs") // 8
    drawn(lambda program: check_feature(program, feature), number, batch=3, strategy=programs(functions=OWN))


# -- the tests tested --------------------------------------------------------------------------------------------------
#
# Faults inserted into the library. Drawn programs must detect each fault.


def views_keep_their_old_history(monkeypatch):
    monkeypatch.setattr(meta.DifferentiableViewMeta, "edge_of", lambda self, tensor: tensor._edge)


def writes_do_not_preserve_what_was_saved(monkeypatch):
    monkeypatch.setattr(storage.Storage, "preserve", lambda *args, **kwargs: None)


def writes_preserve_only_the_whole(monkeypatch):
    monkeypatch.setattr(saved_windows.SavedWindows, "pop_overlapping", lambda *args: [])


def the_whole_is_not_preserved_from_a_write_to_a_part(monkeypatch):
    preserve = storage.Storage.preserve

    def broken(self, window, index, writer=""):
        if window is self.root:
            preserve(self, window, index, writer)

    monkeypatch.setattr(storage.Storage, "preserve", broken)


def overwritten_values_still_get_a_gradient(monkeypatch):
    def broken(self, grad, edges):
        return grad, conform.conform(grad[self.index].copy(), self.like)

    monkeypatch.setattr(copy_slices.CopySlicesOfCopy, "apply", broken)
    monkeypatch.setattr(copy_slices.CopySlicesOfCopy, "consume", broken)


def places_written_twice_count_twice(monkeypatch):
    monkeypatch.setattr(advanced_indexing, "_reads_once", lambda index: True)


def elements_that_share_places_do_not_add_up(monkeypatch):
    def broken(self, accumulator, grad):
        self.window(accumulator)[...] = grad

    monkeypatch.setattr(view_nodes.ViewBackward, "add_to", broken)


def broadcast_operands_get_the_gradient_of_one_element(monkeypatch):
    def broken(grad, shape):
        return grad[(0,) * (grad.ndim - len(shape))][tuple(slice(0, n) for n in shape)]

    monkeypatch.setattr(conform, "sum_to", broken)


def detached_tensors_do_not_share(monkeypatch):
    monkeypatch.setattr(vg.Tensor, "detach", lambda self: vg.Tensor(self._array))


def views_lose_their_history_with_their_base(monkeypatch):
    def broken(self):
        self._edge = None
        return self

    monkeypatch.setattr(vg.Tensor, "detach_", broken)


def views_taken_under_no_grad_follow_their_base(monkeypatch):
    monkeypatch.setattr(construct, "_creation", lambda mode: construct.DEFAULT)


def parts_of_what_overlaps_itself_are_refused(monkeypatch):
    monkeypatch.setattr(write_checks, "overlaps_itself", lambda window: True)


@pytest.mark.parametrize(
    "fault",
    [
        views_keep_their_old_history,
        writes_do_not_preserve_what_was_saved,
        writes_preserve_only_the_whole,
        the_whole_is_not_preserved_from_a_write_to_a_part,
        overwritten_values_still_get_a_gradient,
        places_written_twice_count_twice,
        elements_that_share_places_do_not_add_up,
        broadcast_operands_get_the_gradient_of_one_element,
        detached_tensors_do_not_share,
        views_lose_their_history_with_their_base,
        pytest.param(views_taken_under_no_grad_follow_their_base, marks=pytest.mark.slow),  # found after many programs
        parts_of_what_overlaps_itself_are_refused,
    ],
)
def test_drawn_programs_find_a_fault_in_the_library(drawn, monkeypatch, fault):
    fault(monkeypatch)
    with pytest.raises(Exception) as found:  # an error of NumPy's as likely as a mismatch
        drawn(check_program, 2500, batch=2, phases=[Phase.generate])
    assert "import viewgrad as vg" in "".join(found.value.__notes__)


# -- the strategies ----------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(programs(functions=[EXPONENTIALS]))
def test_a_user_function_occurs_in_every_program_and_its_result(program):
    assert any(function.name == EXPONENTIALS.name for function in program.functions)
    names = program.execute()
    results = [out for step in program.steps if getattr(step, "function", None) is not None
               and step.function.name == EXPONENTIALS.name for out in step.outs]  # fmt: skip
    reached = vg.autograd.grad(names[program.loss], [names[name] for name in results], allow_unused=True)
    assert any(gradient is not None for gradient in reached)


def weighted(x, y, z, power=2):
    return x * y**power + z.sum()


@pytest.mark.parametrize(
    "function",
    [SineAndCosine, weighted, functools.partial(weighted, power=3), lambda x: (vg.cumsum(x.reshape(-1)), x * x)],
    ids=["class", "function", "partial", "lambda"],
)
def test_any_function_of_tensors_occurs_in_programs(function):
    @settings(max_examples=15, deadline=None)
    @given(programs(functions=[function], max_steps=6))
    def check(program):
        (own,) = {function for function in program.functions if not function.module}
        assert own.arity == (3 if "weighted" in own.name else 1)
        check_program(program)

    check()


@settings(max_examples=25)
@given(tensors(requires_grad=True), tensors(shape=(2, 3), dtype=complex), st.data())
def test_tensors_views_and_indices_are_drawn(x, z, data):
    assert x.requires_grad and x.is_leaf and x.dtype == np.float64
    assert z.shape == (2, 3) and z.dtype == np.complex128
    view = data.draw(views_of(z))
    assert not view.size or np.shares_memory(view._array, z._array)
    for index in (data.draw(basic_indices((2, 3))), data.draw(array_indices((2, 3)))):
        np.testing.assert_array_equal(z[index].numpy(), z.numpy()[index])


def test_backends_agree(drawn):
    def check(program: Program) -> None:
        assert compare_backends(program).agrees

    drawn(check, 10)
    found = compare_many(5, backends=["viewgrad"])
    assert not found.failures and found.counts["viewgrad"]["agrees"] == 5
