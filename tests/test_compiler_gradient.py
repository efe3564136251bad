"""Compiled gradients, `compile(grad(f))`, which run the program of their function."""

import functools
import pickle

import numpy as np
import pytest

import viewgrad as vg


def smoothed(x, alpha=0.5):
    y = np.zeros(len(x))
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
    return (y * y).sum()


def with_aux(x):
    return smoothed(x), x * 2.0


def of_dict(tree):
    return smoothed(tree["a"]) * tree["b"]


A = np.linspace(0.1, 1.0, 5)
CASES = {
    "grad": (lambda: vg.grad(smoothed), (A,)),
    "value_and_grad": (lambda: vg.value_and_grad(smoothed), (A,)),
    "of a number": (lambda: vg.grad(lambda x: x**3 + np.sin(x)), (0.3,)),
    "with respect to both": (lambda: vg.grad(smoothed, argnums=(0, 1)), (A, 0.3)),
    "with respect to the second": (lambda: vg.value_and_grad(smoothed, argnums=1), (A, 0.3)),
    "aux": (lambda: vg.grad(with_aux, has_aux=True), (A,)),
    "a tree": (lambda: vg.grad(of_dict), ({"a": A, "b": 2.0},)),
    "float32": (lambda: vg.grad(smoothed), (A.astype(np.float32),)),
    "a tensor": (lambda: vg.grad(smoothed), (vg.Tensor(A),)),
    "second derivatives": (lambda: vg.grad(lambda x: vg.grad(smoothed)(x).sum()), (A,)),
    "not compilable": (lambda: vg.grad(lambda x: eval("x * x").sum()), (A,)),
}


def assert_same(ours, expected):
    assert type(ours) is type(expected)
    if isinstance(expected, (tuple, list)):
        for one, other in zip(ours, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert list(ours) == list(expected)
        assert_same(list(ours.values()), list(expected.values()))
    else:
        one, other = (each.detach().numpy() if isinstance(each, vg.Tensor) else each for each in (ours, expected))
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)
        np.testing.assert_allclose(one, other, rtol=1e-5 if getattr(one, "dtype", None) == np.float32 else 1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NotCompiledWarning")
def test_compiled_gradients_have_the_results_of_gradients(name):
    make, args = CASES[name]
    compiled = vg.compile(make(), executor="python", specialize=False)
    for _ in range(3):
        assert_same(compiled(*args), make()(*args))


def test_one_program_for_all_lengths():
    compiled = vg.compile(vg.grad(smoothed), executor="python", specialize=False)
    for n in (3, 5, 8):
        assert_same(compiled(A[:n]), vg.grad(smoothed)(A[:n]))
    assert compiled.explain().count("compiled from its source") == 1
    assert "gradient of x" in compiled.explain() and "def " in compiled.source()
    assert not compiled.specializations  # no traces


def test_derivatives_of_compiled_gradients():
    compiled, plain = vg.compile(vg.grad(smoothed), executor="python", specialize=False), vg.grad(smoothed)
    for _ in range(2):
        assert_same(vg.jvp(compiled, (A,), (A,)), vg.jvp(plain, (A,), (A,)))
        assert_same(vg.jacrev(compiled)(A), vg.jacrev(plain)(A))
        assert_same(vg.jacfwd(compiled)(A), vg.jacfwd(plain)(A))
        batch = np.stack([A, A + 1.0])
        assert_same(vg.func.vmap(compiled)(batch), vg.func.vmap(plain)(batch))
    first = vg.compile(vg.grad(lambda x: x**3), executor="python", specialize=False)
    value, slope = first.value_and_grad(2.0)
    assert (value, float(slope)) == (12.0, 12.0)


def test_arguments_are_not_written_to():
    def doubled(x):
        x *= 2.0
        return (x * x).sum()

    compiled = vg.compile(vg.grad(doubled), executor="python", specialize=False)
    for _ in range(3):
        x = A.copy()
        assert_same(compiled(x), 8.0 * A)
        assert_same(x, A)


def test_captured_values_may_change():
    factor = 2.0
    compiled = vg.compile(vg.grad(lambda x: (factor * x * x).sum()), executor="python", specialize=False)
    compiled(A)
    factor = 3.0
    for _ in range(2):
        assert_same(compiled(A), 6.0 * A)


def test_gradients_of_captured_tensors_remain():
    w = vg.Tensor([2.0], requires_grad=True)
    compiled = vg.compile(vg.grad(lambda x: (w * x * x).sum()), executor="python", specialize=False)
    for _ in range(3):
        found = compiled(vg.Tensor(A))
        assert vg.autograd.grad(found.sum(), w)[0].tolist() == [pytest.approx(2.0 * A.sum())]


def test_wrapped_gradients_are_compiled_as_they_are():
    gradient = vg.grad(smoothed)

    @functools.wraps(gradient)
    def twice(x):
        return 2.0 * gradient(x)

    compiled = vg.compile(twice, executor="python", specialize=False)
    for _ in range(3):
        assert_same(compiled(A), 2.0 * gradient(A))


@vg.compile(executor="python", specialize=False)
@vg.grad
def by_decorators(x):
    return smoothed(x)


class Model:
    @vg.compile(executor="python", specialize=False)
    @functools.partial(vg.grad, argnums=1)
    def slope(self, x):
        return (self.scale * x * x).sum()


def test_decorators():
    assert pickle.loads(pickle.dumps(by_decorators)) is by_decorators
    assert_same(by_decorators(A), vg.grad(smoothed)(A))
    model = Model()
    for model.scale in (1.0, 2.0, 3.0):
        assert_same(model.slope(A), 2.0 * model.scale * A)
