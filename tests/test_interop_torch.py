"""viewgrad functions in PyTorch programs, and PyTorch functions in viewgrad programs."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import viewgrad as vg  # noqa: E402
from viewgrad import func  # noqa: E402
from viewgrad.autograd import gradcheck, gradgradcheck  # noqa: E402
from viewgrad.errors import InteropError  # noqa: E402
from viewgrad.interop import from_torch, torch_function  # noqa: E402

# PyTorch's forward mode calls deprecated functions of its own.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def recurrence(x, a):
    out = vg.ones(len(x) + 1, dtype=x.dtype)
    for i in range(len(x)):
        out[i + 1] = out[i] * x[i] + a
    tail = out[1:]
    tail *= x
    return out


def in_torch(x, a):
    out = [torch.ones((), dtype=x.dtype)]
    for i in range(len(x)):
        out.append(out[i] * x[i] + a)
    return torch.cat([out[0][None], torch.stack(out[1:]) * x])


def leaves(dtype=torch.float64):
    torch.manual_seed(0)
    return torch.randn(5, dtype=dtype).requires_grad_(), torch.tensor(0.5, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_first_and_second_derivatives_match_pytorch(dtype, compiled):
    f = torch_function(vg.compile(recurrence, executor="python") if compiled else recurrence)
    for _ in range(3):
        found, expected = [], []
        for function, into in ((f, found), (in_torch, expected)):
            x, a = leaves(dtype)
            y = function(x, a)
            gx, ga = torch.autograd.grad((y**2).sum(), [x, a], create_graph=True)
            into += [y, gx, ga, *torch.autograd.grad((gx**3).sum() + ga, [x, a])]
        for mine, theirs in zip(found, expected):
            assert mine.dtype == dtype
            torch.testing.assert_close(mine, theirs)


def test_gradcheck():
    x, a = leaves()
    assert torch.autograd.gradcheck(torch_function(recurrence), (x, a))
    assert torch.autograd.gradgradcheck(torch_function(recurrence), (x, a))
    z = torch.randn(3, dtype=torch.complex128).requires_grad_()
    assert torch.autograd.gradcheck(torch_function(lambda z: z * z.conj() + vg.exp(z)), (z,))


def test_memory_is_shared():
    seen = []
    f = torch_function(lambda x: seen.append(x._array.ctypes.data) or x.sum())
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    f(x).backward()
    f(x.detach())
    assert seen == [x.data_ptr()] * 2
    assert f(x.T).item() == 15.0  # a view, by its strides
    big = torch.ones(1000)
    y = torch_function(lambda x: x * 2)(big)
    y += 1  # nothing of viewgrad's is changed by it
    assert float(y.sum()) == 3000.0


def test_results_that_are_saved_are_copied():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    y = torch_function(vg.exp)(x)
    with torch.no_grad():
        y.zero_()
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.exp(x.detach()))


def test_trees_keywords_integers_and_unused_outputs():
    def f(p, n, *, scale):
        return {"y": p["w"] * scale, "n": n + 1, "order": vg.argsort(p["w"]), "unused": p["w"].sum()}

    w = torch.tensor([2.0, 1.0], requires_grad=True)
    found = torch_function(f)({"w": w}, 3, scale=torch.tensor(5.0))
    assert int(found["n"]) == 4 and found["order"].tolist() == [1, 0] and not found["order"].requires_grad
    found["y"].sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]


def test_module_training():
    """A layer in the middle of a network: the parameters before it have PyTorch's own gradients."""
    torch.manual_seed(0)
    grads = []
    for layer in (torch_function(lambda x: vg.exp(x) * x), lambda x: torch.exp(x) * x):
        torch.manual_seed(1)
        before, after = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
        after(layer(before(torch.ones(2, 3)))).sum().backward()
        grads.append(before.weight.grad)
    torch.testing.assert_close(*grads)


captured = vg.Tensor(2.0, requires_grad=True)


def overwrite(x):
    x *= 2
    return x


@pytest.mark.parametrize(
    "f, message", [(lambda x: x * captured, "captures"), (overwrite, "wrote|in-place"), (lambda x: x[0].bad, "bad")]
)
def test_functions_that_lose_gradients_raise(f, message):
    with pytest.raises((InteropError, vg.errors.LeafInPlaceError, AttributeError), match=message):
        torch_function(f)(torch.ones(2, requires_grad=True))
    if f is overwrite:
        with pytest.raises(InteropError, match="wrote"):
            torch_function(f)(torch.ones(2))
    with pytest.raises(InteropError, match="dtype"):
        torch_function(f)(torch.ones(2, dtype=torch.bfloat16))


def test_pytorch_refuses_a_saved_input_that_was_written_to():
    x = torch.ones(2, requires_grad=True) * 1.0
    y = torch_function(lambda x: x * x)(x)
    x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# -- transforms of PyTorch ---------------------------------------------------------------------------------------------

POINT = torch.tensor([0.5, -1.0, 0.8], dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64)
POINTS = torch.stack([POINT[0], 2.0 * POINT[0]])


def directional(f, x, a):
    with torch.autograd.forward_ad.dual_level():
        return torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(x, x), a)).tangent


def by_rows(f, x, a):
    x = x.clone().requires_grad_()
    y = f(x, a)
    return torch.func.vmap(lambda v: torch.autograd.grad(y, x, v)[0])(torch.eye(len(y), dtype=torch.float64))


def through_vmap(f, x, a):
    points = POINTS.clone().requires_grad_()
    return torch.autograd.grad((torch.func.vmap(f, (0, None))(points, a) ** 2).sum(), points)


TRANSFORMS = {
    "grad": lambda f, x, a: torch.func.grad_and_value(lambda x, a: (f(x, a) ** 2).sum(), (0, 1))(x, a),
    "vjp": lambda f, x, a: torch.func.vjp(f, x, a)[1](torch.arange(4.0, dtype=torch.float64)),
    "jvp": lambda f, x, a: torch.func.jvp(f, (x, a), (x, 2.0 * a)),
    "dual numbers": directional,
    "jacrev": lambda f, x, a: torch.func.jacrev(f, (0, 1), chunk_size=2)(x, a),
    "jacfwd": lambda f, x, a: torch.func.jacfwd(f, (0, 1))(x, a),
    "hessian": lambda f, x, a: torch.func.hessian(lambda x, a: (f(x, a) ** 2).sum(), (0, 1))(x, a),
    "jacrev of jacrev": lambda f, x, a: torch.func.jacrev(torch.func.jacrev(lambda x: f(x, a)))(x),
    "jacfwd of jacfwd": lambda f, x, a: torch.func.jacfwd(torch.func.jacfwd(lambda x: f(x, a)))(x),
    "vmap": lambda f, x, a: torch.func.vmap(f, (1, None), out_dims=1)(POINTS.T, a),
    "vmap of vmap": lambda f, x, a: torch.func.vmap(torch.func.vmap(f, (None, 0)), (0, None))(POINTS, x),
    "vmap of grad": lambda f, x, a: torch.func.vmap(
        torch.func.grad(lambda x, a: f(x, a).sum(), (0, 1)), (0, None)
    )(POINTS, a),
    "grad of vmap": through_vmap,
    "vmap of backward": by_rows,
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_pytorch_match_its_own_operations(name, compiled):
    f = torch_function(vg.compile(recurrence, executor="python") if compiled else recurrence)
    found, expected = (torch.utils._pytree.tree_leaves(TRANSFORMS[name](each, *POINT)) for each in (f, in_torch))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected):
        torch.testing.assert_close(mine, theirs)


def test_forward_mode_of_complex_functions_of_all_orders():
    z = torch.tensor([0.3 + 0.5j, -1.0 + 0.2j], dtype=torch.complex128, requires_grad=True)
    f = torch_function(lambda z: z * z.conj() + vg.exp(z) * z)
    assert torch.autograd.gradcheck(f, z, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, z, check_fwd_over_rev=True, check_rev_over_rev=True)


def test_parameters_of_an_ensemble():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4, dtype=torch.float64)

        def forward(self, x):
            return torch_function(recurrence)(self.linear(x), POINT[1]).sum()

    torch.manual_seed(0)
    models = [Model() for _ in range(2)]
    stacked, _ = torch.func.stack_module_state(models)
    loss = lambda parameters: torch.func.functional_call(models[0], parameters, (POINT[0],))
    gradients = torch.func.vmap(torch.func.grad(loss))(stacked)
    for n, model in enumerate(models):
        model(POINT[0]).backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(gradients[name][n], parameter.grad)


def test_a_batch_of_a_compiled_function_is_computed_by_its_program(monkeypatch):
    compiled = vg.compile(lambda x, a: (x[1:] * x[:-1]).sum() * a, executor="python")
    f, counts = torch_function(compiled), []
    batched = type(compiled).__viewgrad_batched__
    monkeypatch.setattr(type(compiled), "__viewgrad_batched__", lambda *args: counts.append(args[-1]) or batched(*args))
    found = torch.func.vmap(torch.func.grad(f), (0, None))(POINTS, POINT[1])
    assert set(counts) == {2}
    torch.testing.assert_close(found[1], torch.func.grad(f)(POINTS[1], POINT[1]))


def test_integers_under_transforms():
    picked = torch_function(lambda x, places: (x[places] * 2.0, places + 1))
    x, places = POINT[0], torch.tensor([[0, 0], [2, 1]])
    first, second = torch.func.vmap(picked, (None, 0))(x, places)
    assert torch.equal(first, 2.0 * x[places]) and torch.equal(second, places + 1)
    jacobian = torch.func.jacrev(lambda x: picked(x, places[0])[0])(x)
    assert jacobian.tolist() == [[2.0, 0.0, 0.0]] * 2
    assert torch.equal(torch.func.jvp(lambda x: picked(x, places[1])[0], (x,), (x,))[1], 2.0 * x[places[1]])


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x, a: torch.func.linearize(f, x, a),
        lambda f, x, a: torch.jit.trace(f, (x, a)),
        lambda f, x, a: torch.autograd.functional.jacobian(lambda x: f(x, a), x, vectorize=True),
        lambda f, x, a: f(x.to_sparse(), a),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_operations_that_would_lose_values_are_refused(call):
    with pytest.raises(InteropError, match=r"records a program|no values that NumPy can read|strided"):
        call(torch_function(recurrence), *POINT)


def test_random_functions_are_refused_if_value_and_gradient_would_differ():
    generator = np.random.default_rng(0)
    with pytest.raises(InteropError, match="computed different values"):
        torch.func.grad_and_value(torch_function(lambda x: x.sum() * generator.normal()))(POINT[0])


def test_checkpoints_inference_and_autocast():
    f = torch_function(recurrence)
    x = POINT[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(f(x, POINT[1]).sum(), x)
    for reentrant in (False, True):
        y = torch.utils.checkpoint.checkpoint(f, x, POINT[1], use_reentrant=reentrant)
        x.grad = None
        y.sum().backward()
        assert torch.equal(x.grad, expected)
    with torch.inference_mode():
        assert not f(f(x, POINT[1])[1:], POINT[1]).requires_grad
    layer = torch.nn.Linear(3, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = f(layer(torch.ones(3)), torch.tensor(0.3))
    y.sum().backward()
    assert y.dtype == layer.weight.grad.dtype == torch.float32


def test_inputs_that_overlap_or_have_other_strides():
    x = torch.tensor([0.5, -1.0, 0.8, 0.1, 0.3, 0.2], dtype=torch.float64, requires_grad=True)
    rows = torch_function(lambda x: (x**2 * vg.arange(3.0)).sum(axis=1))
    for f in (
        lambda x: rows(x.unfold(0, 3, 1)), lambda x: rows(x.reshape(3, 2).T), lambda x: rows(x[:1].expand(2, 3)),
        lambda x: rows(x[:3].flip(0).expand(2, 3)), lambda x: rows(x[::2][None]),
    ):  # fmt: skip
        assert torch.autograd.gradcheck(f, x)


@pytest.mark.filterwarnings("ignore")
def test_compiled_modules_break_their_graph():
    f = torch_function(recurrence)
    loss = lambda x: (f(2.0 * x, POINT[1]) ** 2).sum()

    def step(x):
        x = x.detach().requires_grad_()
        loss(x).backward()
        return x.grad

    compiled = torch.compile(step, backend="aot_eager")
    torch.testing.assert_close(compiled(POINT[0]), step(POINT[0]))
    compiled = torch.compile(torch.func.grad(loss), backend="aot_eager")
    torch.testing.assert_close(compiled(POINT[0]), step(POINT[0]))


# -- the other way round -----------------------------------------------------------------------------------------------


def test_a_pytorch_function_as_an_operator():
    f = from_torch(lambda x, a: torch.special.erf(x * a) * x.flip(0))
    x, a = vg.Tensor([0.3, -0.5, 1.2], requires_grad=True), vg.Tensor(0.7, requires_grad=True)
    assert gradcheck(f, (x, a)) and gradgradcheck(f, (x, a))
    own = lambda x, a: vg.erf(x * a) * x[::-1]
    x, a = x.detach(), a.detach()
    third = lambda g: func.grad(func.grad(func.grad(lambda c, a: g(x * c, a).sum())))
    for transform, point in (
        (func.jacrev, x),
        (func.jacfwd, x),
        (lambda g: func.hessian(lambda x, a: g(x, a).sum()), x),
        (third, vg.Tensor(0.4)),
    ):
        np.testing.assert_allclose(transform(f)(point, a).numpy(), transform(own)(point, a).numpy(), rtol=1e-10)


def test_torch_functions_inside_a_program_with_writes():
    cell = from_torch(torch.tanh)

    def program(x):
        out = vg.zeros(4)
        for i in range(1, 4):
            out[i] = cell(out[i - 1] + x[i])
        return out.sum()

    x = vg.Tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
    (found,) = vg.autograd.grad(program(x), x)
    h = 1e-6
    for i in range(4):
        step = np.eye(4)[i] * h
        difference = (program(x.detach() + step) - program(x.detach() - step)).item() / (2 * h)
        assert found[i].item() == pytest.approx(difference, abs=1e-8)


def test_parameters():
    module = torch.nn.Linear(3, 2).double()
    x = vg.ones(3)
    with pytest.raises(InteropError, match="requires_grad_"):
        from_torch(module)(x)
    parameters = {name: vg.Tensor(p.detach().numpy()) for name, p in module.named_parameters()}
    call = from_torch(lambda parameters, x: torch.func.functional_call(module, parameters, (x,)))
    slopes = func.grad(lambda p: call(p, x).sum())(parameters)
    np.testing.assert_allclose(slopes["weight"].numpy(), np.ones((2, 3)))
    module.requires_grad_(False)
    np.testing.assert_allclose(func.jacrev(from_torch(module))(x).numpy(), module.weight.numpy())


def test_trees_of_results():
    found = from_torch(lambda x: {"max": x.max(dim=0), "n": 3})(vg.Tensor([[1.0, 5.0], [2.0, 4.0]]))
    assert found["max"].values.numpy().tolist() == [2.0, 5.0] and found["n"] == 3


# -- what surrounds a call ---------------------------------------------------------------------------------------------


def test_integer_arguments_and_results_have_derivatives_of_all_orders_and_modes():
    picked = from_torch(lambda x, places: (x[places] ** 3, x.argmax()))
    x, places = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True), np.array([2, 0])
    (first,) = vg.autograd.grad(picked(x, places)[0].sum(), x, create_graph=True)
    (second,) = vg.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second, [6.0, 0.0, 18.0])
    (_, greatest), (tangent, none) = func.jvp(lambda x: picked(x, places), (vg.Tensor([1.0, 2.0, 3.0]),), (vg.ones(3),))
    np.testing.assert_allclose(tangent, [27.0, 3.0])
    assert greatest == 2 and none == 0 and none.dtype == greatest.dtype


def test_pytorch_functions_are_recorded_in_inference_mode():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with torch.inference_mode():
        (found,) = vg.autograd.grad(from_torch(torch.exp)(x).sum(), x)
    np.testing.assert_allclose(found, np.exp([1.0, 2.0]))


def test_random_numbers_of_pytorch_repeat_the_first_run():
    drop = from_torch(lambda x: torch.nn.functional.dropout(x, 0.5) ** 3)
    x = vg.Tensor(np.ones(20), requires_grad=True)
    y = drop(x)
    (first,) = vg.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = vg.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second, 6.0 * y.detach())
    value, tangent = func.jvp(drop, (vg.ones(20),), (vg.ones(20),))
    np.testing.assert_allclose(tangent, 3.0 * value)
    state = torch.get_rng_state()
    func.jvp(drop, (vg.ones(20),), (vg.ones(20),))
    after = torch.rand(1)
    torch.set_rng_state(state)
    drop(vg.ones(20))
    assert after == torch.rand(1)


def test_functions_that_compute_other_values_again_are_refused():
    counts = []

    def counted(x):
        counts.append(None)
        return x * x * float(len(counts))

    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = torch_function(counted)(x)
    assert torch.allclose(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], 2 * y)
    with pytest.raises(InteropError, match="computed different values"):
        torch.autograd.grad(y.sum(), x, create_graph=True)
    x = vg.Tensor(np.ones(3), requires_grad=True)
    y = from_torch(counted)(x)
    with pytest.raises(InteropError, match="computed different values"):
        vg.autograd.grad(y.sum(), x, create_graph=True)


def test_writes_of_pytorch_functions_to_arguments_are_refused():
    with pytest.raises(InteropError, match="wrote to an argument"):
        from_torch(lambda x: x.add_(1))(vg.ones(3))


@pytest.mark.parametrize("function", [np.exp, np.tanh, vg.compile(np.exp), np.cumprod, lambda x: x, lambda x: x[1:]])
def test_writes_to_results_and_arguments_afterwards_change_no_gradient(function):
    x = torch.linspace(0.5, 2.0, 4, dtype=torch.float64).requires_grad_()
    y = torch_function(function)(x)
    (expected,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    y.data.zero_()
    x.data.mul_(5.0)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected)
    y = torch_function(function)(x)
    y.mul_(3.0)
    (tripled,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(tripled, 3.0 * torch.autograd.grad(torch_function(function)(x).sum(), x)[0])
