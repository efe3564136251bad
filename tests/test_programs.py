"""Programs drawn at random, which take views of tensors and write to them in any order, against oracles.

See `viewgrad.testing` for what is drawn and for the oracles; `tests/conftest.py` has the options for long runs.
"""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings

import viewgrad as vg
from viewgrad.autograd import indexing
from viewgrad.tensor import storage, windows
from viewgrad.testing import Mismatch, Program, check_program, programs
from viewgrad.views import conform, copy_slices, meta, nodes

BATCHES = 8
PROGRAMS = given(programs())


@pytest.fixture
def drawn(request, monkeypatch):
    """Draws a share of the programs and has them checked: `drawn(check, number, batch)`."""

    def run(check, number: int | None = None, batch: int = 0, **kwargs) -> None:
        number = request.config.getoption("--programs") if number is None else number
        first = request.config.getoption("--programs-seed") * BATCHES
        inner = PROGRAMS(lambda program: check(program))
        seed(first + batch)(settings(max_examples=number, database=None, report_multiple_bugs=False, **kwargs)(inner))()

    return run


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_agree_with_finite_differences_without_aliasing_and_with_replayed_views(drawn, request, batch):
    number = request.config.getoption("--programs")
    drawn(check_program, -(-number // BATCHES), batch)


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


def test_pytorch_agrees_where_it_runs_the_program(drawn, request):
    pytest.importorskip("torch")
    from programs_in_torch import Unsupported, gradients

    ran = []

    def check(program: Program) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values, theirs = gradients(program)
            except (Unsupported, RuntimeError, TypeError, ValueError, IndexError):
                assume(False)
        names = program.execute()
        # Where memory overlaps, PyTorch's values depend on the order in which it happens to write.
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

    number = request.config.getoption("--programs")
    drawn(check, number, suppress_health_check=list(HealthCheck))
    assert len(ran) > number // 5


# -- the tests tested --------------------------------------------------------------------------------------------------
#
# Each of these breaks one thing in the library; drawn programs must find out, and so would fail if it broke.


def views_keep_their_old_history(monkeypatch):
    monkeypatch.setattr(meta.DifferentiableViewMeta, "edge_of", lambda self, tensor: tensor._edge)


def writes_do_not_preserve_what_was_saved(monkeypatch):
    monkeypatch.setattr(storage.Storage, "preserve", lambda *args, **kwargs: None)


def writes_preserve_only_the_whole(monkeypatch):
    monkeypatch.setattr(windows.SavedWindows, "take_touched", lambda *args: [])


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
    monkeypatch.setattr(indexing, "_reads_once", lambda index: True)


def elements_that_share_places_do_not_add_up(monkeypatch):
    def broken(self, accumulator, grad):
        self.window(accumulator)[...] = grad

    monkeypatch.setattr(nodes.ViewBackward, "add_to", broken)


def broadcast_operands_get_the_gradient_of_one_element(monkeypatch):
    def broken(grad, shape):
        return grad[(0,) * (grad.ndim - len(shape))][tuple(slice(0, n) for n in shape)]

    monkeypatch.setattr(conform, "sum_to", broken)


def detached_tensors_do_not_share(monkeypatch):
    monkeypatch.setattr(vg.Tensor, "detach", lambda self: vg.Tensor(self._array))


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
    ],
)
def test_drawn_programs_find_a_fault_in_the_library(drawn, monkeypatch, fault):
    fault(monkeypatch)
    with pytest.raises(Exception) as found:  # an error of NumPy's as likely as a mismatch
        drawn(check_program, 1000, phases=[Phase.generate])
    assert "import viewgrad as vg" in "".join(found.value.__notes__)
