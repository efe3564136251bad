"""Pickling of tensors, functions, operators and compiled programs."""

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from types import FunctionType

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import AutogradError
from viewgrad.operators.define import OPERATORS

TENSORS = {
    "leaf": lambda: vg.Tensor([1.0, 2.0], requires_grad=True),
    "whole numbers": lambda: vg.arange(5),
    "view": lambda: vg.arange(12.0).reshape(3, 4)[1:, ::2],
    "transposed": lambda: vg.arange(6.0).reshape(2, 3).T,
    "complex": lambda: vg.Tensor([1 + 2j]),
    "half": lambda: vg.ones(3, dtype=np.float16),
    "nothing": lambda: vg.zeros(0, 3),
    "scalar": lambda: vg.arange(4.0).sum(),
    "without dimensions": lambda: vg.Tensor(2.5),
    "from outside": lambda: vg.from_numpy(np.arange(3.0)),
}


def again(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_without_history(name):
    tensor = TENSORS[name]()
    other = again(tensor)
    assert (other.dtype, other.shape, other.requires_grad) == (tensor.dtype, tensor.shape, tensor.requires_grad)
    np.testing.assert_array_equal(other.detach().numpy(), tensor.detach().numpy())
    assert other.is_leaf and other._version == 0
    if other.ndim:
        (other.detach() if other.requires_grad else other)[...] = 0  # the copy has memory of its own
        np.testing.assert_array_equal(TENSORS[name]().detach().numpy(), tensor.detach().numpy())


def test_pickling_tensors_with_history_raises_with_advice():
    with pytest.raises(AutogradError, match=r"MulBackward.*detach"):
        pickle.dumps(vg.Tensor([1.0], requires_grad=True) * 2)


SPACES = {"viewgrad": vg, "Tensor": vg.Tensor, "linalg": vg.linalg, "fft": vg.fft}


@pytest.mark.parametrize("space", SPACES)
def test_every_public_function_has_its_name(space):
    names = vars(SPACES[space])
    functions = {name: each for name, each in names.items() if type(each) is FunctionType and name[0] != "_"}
    assert len(functions) > 15
    for name, function in functions.items():
        assert again(function) is function, name


def test_operators_of_the_library_by_name():
    for operator in OPERATORS.values():
        if not operator.user_defined:
            assert again(operator) is operator


PROGRAM = """
import pickle, sys
operator, x = pickle.loads(sys.stdin.buffer.read())
twice = pickle.loads(pickle.dumps(operator))
assert twice is operator
y = operator(x, by=3.0)
y.sum().backward()
print(y.detach().tolist(), x.grad.tolist(), operator.inplace_function is not None)
"""


def test_user_operators_are_redefined_in_another_process():
    scaled = vg.autograd.define_op(
        "scaled_in_pickles(self, *, by)",
        forward=_scaled,
        derivatives={"self": "grad * by"},
        inplace=True,
    )
    try:
        assert again(scaled) is scaled
        data = pickle.dumps((scaled, vg.Tensor([1.0, 2.0], requires_grad=True)))
    finally:
        del OPERATORS["scaled_in_pickles"]
    path = [str(path) for path in sys.path if path]
    program = f"import sys; sys.path[:0] = {path!r}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True)
    assert done.stdout.decode().split() == "[3.0, 6.0] [3.0, 3.0] True".split(), done.stderr.decode()


def _scaled(x, *, by):
    return x * by


@vg.compile
def smoothed(x, alpha):
    out = vg.zeros_like(x)
    for i in range(1, len(x)):
        out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
    return (out * out).sum()


def gradient(alpha):
    alpha = vg.Tensor(alpha, requires_grad=True)
    return vg.autograd.grad(smoothed(vg.arange(8.0), alpha), alpha)[0]


def test_compiled_programs_and_gradients_cross_processes():
    assert again(smoothed) is smoothed
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(gradient, [0.2, 0.7], timeout=100))
    for alpha, each in zip([0.2, 0.7], found, strict=True):
        np.testing.assert_allclose(each.numpy(), gradient(alpha).numpy(), rtol=1e-12)
