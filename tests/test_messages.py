"""What is refused says the way out that keeps the gradient."""

import functools
import io
import warnings

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import (
    AutogradError,
    DifferentiabilityError,
    LostHistoryWarning,
    NonLeafGradWarning,
    UnknownFunctionError,
)


@pytest.fixture
def x():
    return vg.Tensor([1.0, 4.0], requires_grad=True)


REFUSED = {
    "a tensor of tensors": (lambda x: vg.Tensor([x[0], x[1]]), r"stack\(\), concatenate\(\)"),
    "a contiguous array": (lambda x: np.ascontiguousarray(x), r"use contiguous\(\)"),
    "joined by r_": (lambda x: np.r_[x, x], r"stack\(\) or concatenate\(\)"),
    "an array of tensors": (lambda x: np.array([x[0], x[1]]), r"stack\(\) or concatenate\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_lose_the_history_names_what_keeps_it(name, x):
    function, message = REFUSED[name]
    with pytest.raises(AutogradError, match=message):
        function(x)


def test_what_was_refused_and_has_a_derivative(x):
    assert grad(np.emath.sqrt(x).sum(), x)[0].tolist() == [0.5, 0.25]
    assert grad(np.full_like(x, x[1] * 2.0).sum(), x)[0].tolist() == [0, 4]


@pytest.mark.parametrize("save", [np.save, np.savetxt, np.savez, np.savez_compressed])
def test_tensors_without_history_are_saved_by_numpy(save, x):
    file = io.BytesIO()
    save(file, x.detach())
    file.seek(0)
    found = np.loadtxt(file) if save is np.savetxt else np.load(file)
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found["arr_0"], [1.0, 4.0])
    with pytest.raises(UnknownFunctionError, match="keeps no history"):
        save(io.BytesIO(), x * 1.0)


def test_reading_the_grad_of_what_was_computed_warns(x, recwarn):
    y = x * 2.0
    with pytest.warns(NonLeafGradWarning, match=r"retain_grad\(\)"):
        assert y.grad is None
    recwarn.clear()
    y.retain_grad()
    view = y[:1]
    view.retain_grad()
    assert y.grad is None and view.grad is None and x.grad is None and x.detach().grad is None
    z = y * 1.0
    z.sum().backward(inputs=[z, x], retain_graph=True)
    z.sum().backward()
    assert z.grad.tolist() == [1, 1] and y.grad.tolist() == [2, 2]
    with vg.no_grad():
        assert (x * 2.0).grad is None
    assert not [each for each in recwarn.list if issubclass(each.category, NonLeafGradWarning)]


def test_inference_mode_records_no_backward_pass(x):
    with vg.inference_mode(), pytest.raises(DifferentiabilityError, match="does not require grad"):
        grad((x * x).sum(), x, create_graph=True)


def test_other_libraries_are_told_what_they_would_lose(x):
    torch = pytest.importorskip("torch")
    with pytest.raises(AutogradError, match="carries no history"):
        torch.as_tensor(x)
    assert torch.as_tensor(x.detach()).tolist() == [1.0, 4.0]


def test_what_is_kept_under_a_value_may_be_of_another_tensor(x):
    kept = functools.cache(lambda s: s * 2.0)
    with pytest.warns(LostHistoryWarning, match=r"hash\(\) .* another tensor of equal value .* id\(x\)"):
        kept(x[0])
    with pytest.warns(LostHistoryWarning, match=r"tobytes\(\) .* plain bytes"):
        assert x.tobytes() == np.array([1.0, 4.0]).tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept(x.detach()[1]) == 8.0 and hash(x) != hash(x.clone())
        assert x.detach().tobytes("F") == np.array([1.0, 4.0]).tobytes()
