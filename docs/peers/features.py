"""Behaviours that need code of their own for each library: that code, or the reason why there is none.

An entry takes the library and returns the result as text, which starts with "yes" if viewgrad does the same.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

FEATURES: dict[str, dict[str, Any]] = {}


def feature(key: str, *libraries: str, **absent: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the code of a behaviour for some libraries, and the reason why others do not have it."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        entries = FEATURES.setdefault(key, {})
        entries.update(absent)
        for library in libraries:
            entries[library] = function
        return function

    return register


def listed(array: Any) -> str:
    """Return an array as nested lists of rounded numbers."""
    return str(np.round(np.asarray(array, float), 4).tolist())


NO_WRITES = "no such feature: arrays cannot be written to"
NO_GRAPH = "no such feature: the graph is not accessible"
NO_TENSORS = "no such feature: it differentiates functions, not tensors"


# -- what is refused -------------------------------------------------------------------------------------------------


@feature("no_grad_view", "PyTorch", autograd=NO_WRITES, JAX=NO_WRITES)
def _(lib: Any) -> str:
    torch = lib.module
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = t.clone()
    with torch.no_grad():
        view = base[0]
    view *= 2.0
    return f"no error; gradient of the base's sum: {listed(torch.autograd.grad(base.sum(), t)[0])}"


@feature("no_grad_view", "MyGrad")
def _(lib: Any) -> str:
    mg = lib.module
    t = mg.tensor([[1.0, 2.0], [3.0, 4.0]])
    base = t * 1.0
    with mg.no_autodiff:
        view = base[0]
    view *= 2.0
    total = base.sum()
    total.backward()
    return f"no error; the sum is {total.item():g}, the gradient {listed(t.grad)}"


@feature("second_backward", "PyTorch")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    z = (x * x).sum()
    z.backward()
    z.backward()
    return f"no error; grad is {listed(x.grad)}"


@feature("second_backward", "MyGrad", autograd=NO_GRAPH, JAX=NO_GRAPH)
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0])
    z = (x * x).sum()
    z.backward()
    first = x.grad
    z.backward()
    return f"no error; grad is {listed(first)} after the first run and {listed(x.grad)} after the second"


HALF = np.frompyfunc(lambda number: number / 2, 1, 1)  # a function unknown to every library


@feature("unknown_function", "PyTorch")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
    return f"no error; a result of type {type(HALF(x)).__name__}"


@feature("unknown_function", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0, 4.0, 8.0])
    return f"no error; a result of type {type(HALF(x)).__name__}, which carries no gradient"


@feature("unknown_function", "autograd")
def _(lib: Any) -> str:
    def f(x: Any) -> Any:
        return HALF(x).sum()

    return f"no error; a gradient {listed(lib.module.grad(f)(np.array([1.0, 2.0, 4.0, 8.0])))}"


@feature("unknown_function", "JAX")
def _(lib: Any) -> str:
    return f"no error; {lib.module.grad(lambda x: HALF(x).sum())(lib.jnp.array([1.0, 2.0, 4.0, 8.0]))}"


@feature("copying", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    said = []
    for what in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))):
        try:
            said.append(f"a tensor whose grad_fn is {what(x * 2.0).grad_fn}")
        except RuntimeError as error:
            said.append("RuntimeError: " + str(error).split(",")[0])
    return f"deepcopy: {said[0]}; pickle: {said[1]}"


@feature("copying", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0])
    copied, pickled = copy.deepcopy(x * 2.0), pickle.loads(pickle.dumps(x * 2.0))
    said = ["kept" if t.creator is not None else "lost" for t in (copied, pickled)]
    return f"deepcopy: the history is {said[0]}; pickle: the history is {said[1]}"


# -- gradients with respect to what ----------------------------------------------------------------------------------


@feature("gradient_by_intermediate", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    torch = lib.module
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = t.clone()
    row = base[0]
    row *= 3.0
    after = (base * base).sum()
    by_base = torch.autograd.grad(after, base, retain_graph=True)[0]
    by_row = torch.autograd.grad(after, row, retain_graph=True, allow_unused=True)[0]
    return f"yes: with respect to the base after the write {listed(by_base)}, to the view {by_row}"


@feature("gradient_by_intermediate", "MyGrad")
def _(lib: Any) -> str:
    t = lib.module.tensor([[1.0, 2.0], [3.0, 4.0]])
    base = t * 1.0
    row = base[0]
    row *= 3.0
    (base * base).sum().backward()
    return (
        f"with respect to the base after the write {listed(base.grad)}, "
        f"to the view the same window of it, {listed(row.grad)}"
    )


@feature("restricted_inputs", "PyTorch", autograd=NO_GRAPH, JAX=NO_GRAPH)
def _(lib: Any) -> str:
    torch = lib.module
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    s = torch.tensor(5.0, requires_grad=True)
    base = t.clone()
    v = base[0]
    v *= s
    by_t = torch.autograd.grad(v.sum(), t, retain_graph=True)[0]
    by_s = torch.autograd.grad(v.sum(), s, retain_graph=True)[0]
    v.sum().backward(inputs=[s])
    return f"yes: {listed(by_t)}, {listed(by_s)}, and t.grad is {t.grad}"


@feature("grad_is_read", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    return f"the gradient that was read changes from [2.0, 4.0] to {listed(first)}"


@feature("grad_is_read", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0])
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    return f"gradients of several backward passes are not accumulated: first {listed(first)}, then {listed(x.grad)}"


@feature("retain_grad_after_write", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2.0
    y.retain_grad()
    y *= 10.0
    y.sum().backward()
    return f"{'yes' if y.grad.tolist() == [1.0, 1.0] else 'no'}: {listed(y.grad)}"


@feature("retain_grad_after_write", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0])
    y = x * 2.0
    y *= 10.0
    y.sum().backward()
    return f"yes, for every tensor without asking: {listed(y.grad)}"


# -- higher order ----------------------------------------------------------------------------------------------------


@feature("third_order", "PyTorch")
def _(lib: Any) -> str:
    torch = lib.module
    c = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = torch.zeros(3, dtype=torch.float64)
    y[0] = c
    y[1] = y[0] * c
    y[2] = y[1] * y[0] * c
    value = y[2]
    found = []
    for _ in range(3):
        (value,) = torch.autograd.grad(value, c, create_graph=True)
        found.append(value.item())
    return f"yes: {found}"


@feature("third_order", "MyGrad")
def _(lib: Any) -> str:
    c = lib.module.tensor(2.0)
    y = c * c
    y.backward()
    return f"has no higher order: the gradient is of type {type(c.grad).__name__}"


def _in_place(c: Any, zeros: Callable[..., Any]) -> Any:
    y = zeros(3)
    y[0] = c
    y[1] = y[0] * c
    y[2] = y[1] * y[0] * c
    return y[2]


@feature("third_order", "autograd", "JAX")
def _(lib: Any) -> str:
    grad = lib.module.grad
    return f"yes: {grad(grad(grad(lambda c: _in_place(c, lib.zeros))))(2.0)}"


# -- the engine ------------------------------------------------------------------------------------------------------


@feature("freed_without_gc", "PyTorch", autograd=NO_GRAPH, JAX=NO_GRAPH)
def _(lib: Any) -> str:
    x = lib.module.ones(3, requires_grad=True)
    gc.disable()
    try:
        y = lib.module.exp(x)
        watched = weakref.ref(y)
        del y
        return "yes" if watched() is None else "no: the collector of cycles is needed"
    finally:
        gc.enable()


@feature("freed_without_gc", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.ones(3)
    gc.disable()
    try:
        y = lib.module.exp(x)
        watched = weakref.ref(y)
        del y
        return "yes" if watched() is None else "no: the collector of cycles is needed"
    finally:
        gc.enable()


@feature("reentrant", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0

    def inside(g: Any) -> None:
        with lib.module.enable_grad():
            (x * 100.0).sum().backward()

    y.register_hook(inside)
    y.sum().backward()
    return f"{'yes' if x.grad.tolist() == [103.0, 103.0] else 'no'}: {listed(x.grad)}"


@feature("after_an_error", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    y = x * x

    def failing(g: Any) -> None:
        raise ArithmeticError("no")

    handle = y.register_hook(failing)
    try:
        y.sum().backward(retain_graph=True)
    except ArithmeticError:
        handle.remove()
    first = x.grad
    y.sum().backward()
    return f"{'yes' if first is None and x.grad.tolist() == [2.0, 4.0] else 'no'}: {first}, then {listed(x.grad)}"


# -- modes and threads -----------------------------------------------------------------------------------------------


@feature("no_grad_generator", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    torch = lib.module

    @torch.no_grad()
    def numbers() -> Any:
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    found = [(inside, torch.is_grad_enabled()) for inside in numbers()]
    return f"{'yes' if found == [(False, True)] * 2 else 'no'}: inside and outside {found}"


@feature("no_grad_generator", "MyGrad")
def _(lib: Any) -> str:
    mg = lib.module
    x = mg.tensor([1.0, 2.0])

    @mg.no_autodiff
    def numbers() -> Any:
        yield _mygrad_records(x)
        yield _mygrad_records(x)

    found = [(inside, _mygrad_records(x)) for inside in numbers()]
    return f"{'yes' if found == [(False, True)] * 2 else 'no'}: inside and outside {found}"


def _mygrad_records(x: Any) -> bool:
    return (x * 2.0).creator is not None


def _in_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@feature("mode_per_thread", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    with lib.module.no_grad():
        found = _in_thread(lib.module.is_grad_enabled)
    return "yes" if found else "no: the other thread is in no_grad too"


@feature("mode_per_thread", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0])
    with lib.module.no_autodiff:
        found = _in_thread(lambda: _mygrad_records(x))
    return "yes" if found else "no: the other thread is in no_autodiff too"


def _in_tasks(switch: Any, enabled: Callable[[], bool]) -> str:
    async def without() -> bool:
        with switch:
            await asyncio.sleep(0.01)
            return enabled()

    async def beside() -> bool:
        await asyncio.sleep(0.005)
        return enabled()

    async def both() -> Any:
        return await asyncio.gather(without(), beside())

    found = asyncio.run(both())
    if found == [False, True]:
        return "yes"
    return f"no: recording is {found[0]} in the task with the mode, and {found[1]} in the one beside it"


@feature("mode_per_task", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    return _in_tasks(lib.module.no_grad(), lib.module.is_grad_enabled)


@feature("mode_per_task", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0])
    return _in_tasks(lib.module.no_autodiff, lambda: _mygrad_records(x))


def _threads(work: Callable[[], Any]) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@feature("threads_share_leaves", "PyTorch", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    shared = lib.module.ones(1000, requires_grad=True)

    def work() -> None:
        for _ in range(20):
            (shared * 2.0).sum().backward()

    errors = _threads(work)
    right = shared.grad.tolist() == [160.0] * 1000 and not errors
    return "yes" if right else f"gradients between {shared.grad.min():g} and {shared.grad.max():g}, where 160 is right"


@feature("threads_share_leaves", "MyGrad")
def _(lib: Any) -> str:
    shared = lib.module.ones(1000)

    def work() -> None:
        for _ in range(20):
            (shared * 2.0).sum().backward()

    errors = _threads(work)
    if errors:
        return f"in a thread: {type(errors[0]).__name__}: {errors[0]}"
    return f"gradients of several backward passes are not accumulated: {shared.grad[0]:g} instead of 160"


@feature("inference_mode", "PyTorch", MyGrad="no such feature", autograd=NO_TENSORS, JAX=NO_TENSORS)
def _(lib: Any) -> str:
    torch = lib.module
    x = torch.ones(4, requires_grad=True)
    with torch.inference_mode():
        constant = torch.ones(4) * 3.0
    said = []
    for use in (lambda: x * constant, lambda: x + constant, constant.requires_grad_, lambda: constant.mul_(2.0)):
        try:
            use()
            said.append("no error")
        except RuntimeError as error:
            said.append(f"RuntimeError ({str(error).split('.')[0]})")
    return f"yes: product: {said[0]}; sum: {said[1]}; requires_grad_: {said[2]}; write: {said[3]}"


# -- custom functions ------------------------------------------------------------------------------------------------


def _torch_double(torch: Any) -> Any:
    class Double(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2.0)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2.0

    return Double


@feature("function", "PyTorch")
def _(lib: Any) -> str:
    torch = lib.module

    class Cube(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3.0 * x**2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return f"yes: first {listed(first.detach())}, second {listed(second)}"


@feature("function", "MyGrad")
def _(lib: Any) -> str:
    from mygrad.operation_base import Operation

    class Cube(Operation):  # type: ignore[misc]
        def __call__(self, x: Any) -> Any:
            self.variables = (x,)
            return x.data**3

        def backward_var(self, grad: Any, index: int, **_: Any) -> Any:
            return grad * 3.0 * self.variables[0].data ** 2

    x = lib.module.tensor([1.0, 2.0])
    lib.module.execute_op(Cube, x).sum().backward()
    return f"yes, by a subclass of Operation; first {listed(x.grad)}, no second"


@feature("function", "autograd")
def _(lib: Any) -> str:
    from autograd.extend import defvjp, primitive

    @primitive
    def cube(x: Any) -> Any:
        return x**3

    defvjp(cube, lambda ans, x: lambda g: g * 3.0 * x**2)
    grad = lib.module.elementwise_grad
    x = np.array([1.0, 2.0])
    return f"yes, by primitive and defvjp: first {listed(grad(cube)(x))}, second {listed(grad(grad(cube))(x))}"


@feature("function", "JAX")
def _(lib: Any) -> str:
    jax = lib.module

    @jax.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3.0 * x**2,))
    x = lib.jnp.array([1.0, 2.0])
    first = jax.grad(lambda x: cube(x).sum())
    return f"yes, by custom_vjp: first {listed(first(x))}, second {listed(jax.grad(lambda x: first(x).sum())(x))}"


@feature("function_writes_to_a_view", "PyTorch", autograd=NO_WRITES, JAX=NO_WRITES)
def _(lib: Any) -> str:
    torch = lib.module
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = t.clone()
    _torch_double(torch).apply(base[0])
    return f"yes: {type(base.grad_fn).__name__}, gradient {listed(torch.autograd.grad(base.sum(), t)[0])}"


@feature("function_wrong_gradients", "PyTorch")
def _(lib: Any) -> str:
    torch = lib.module

    class Wrong(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.ones(3)

    x = torch.ones(2, requires_grad=True)
    Wrong.apply(x).sum().backward()
    return "no error"


@feature("function_wrong_gradients", "MyGrad")
def _(lib: Any) -> str:
    from mygrad.operation_base import Operation

    class Wrong(Operation):  # type: ignore[misc]
        def __call__(self, x: Any) -> Any:
            self.variables = (x,)
            return x.data * 2.0

        def backward_var(self, grad: Any, index: int, **_: Any) -> Any:
            return np.ones(3)

    x = lib.module.ones(2)
    lib.module.execute_op(Wrong, x).sum().backward()
    return f"no error: the gradient of an input of shape (2,) has shape {x.grad.shape}"


@feature("function_wrong_gradients", "autograd")
def _(lib: Any) -> str:
    from autograd.extend import defvjp, primitive

    @primitive
    def wrong(x: Any) -> Any:
        return x * 2.0

    defvjp(wrong, lambda ans, x: lambda g: np.ones(3))
    found = lib.module.grad(lambda x: wrong(x)[0])(np.ones(2))
    return f"no error: the gradient of an input of shape (2,) has shape {found.shape}"


@feature("function_wrong_gradients", "JAX")
def _(lib: Any) -> str:
    @lib.module.custom_vjp
    def wrong(x: Any) -> Any:
        return x * 2.0

    wrong.defvjp(lambda x: (x * 2.0, None), lambda _, g: (lib.jnp.ones(3),))
    return f"no error: {lib.module.grad(lambda x: wrong(x).sum())(lib.jnp.ones(2))}"


@feature("function_returns_a_view", "PyTorch", autograd=NO_WRITES, JAX=NO_WRITES)
def _(lib: Any) -> str:
    torch = lib.module

    class Head(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.cat([grad, torch.zeros(1)])

    head = Head.apply(torch.ones(2, requires_grad=True).clone())
    head += 1.0
    return "no error"


@feature("function_outputs", "PyTorch", MyGrad="has one output per operation")
def _(lib: Any) -> str:
    torch = lib.module
    seen = []

    class Divided(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(a: Any, b: Any) -> Any:
            return a / b, a * b, torch.floor(a / b)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output[2])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, grad_quotient: Any, grad_product: Any, grad_floor: Any) -> Any:
            seen.append((ctx.needs_input_grad, grad_product))
            return grad_quotient / ctx.saved_tensors[1], None

    x = torch.tensor([7.0, 8.0], requires_grad=True)
    quotient, product, floor = Divided.apply(x, torch.tensor([2.0, 2.0]))
    quotient.sum().backward()
    return f"yes: {product.requires_grad}, {floor.requires_grad}; wanted {seen[0][0]}, of the product {seen[0][1]}"


@feature("function_outputs", "autograd")
def _(lib: Any) -> str:
    from autograd.extend import defvjp, primitive

    seen = []

    @primitive
    def divided(a: Any, b: Any) -> Any:
        return a / b, a * b, np.floor(a / b)

    def backward(ans: Any, a: Any, b: Any) -> Any:
        return lambda grads: (seen.append(listed(grads[1])), grads[0] / b)[1]

    defvjp(divided, backward, argnums=[0])
    lib.module.grad(lambda a: divided(a, np.array([2.0, 2.0]))[0].sum())(np.array([7.0, 8.0]))
    return f"several outputs, with zeros for those that are not used: of the product {seen[0]}"


@feature("function_outputs", "JAX")
def _(lib: Any) -> str:
    jax, jnp = lib.module, lib.jnp
    seen = []

    @jax.custom_vjp
    def divided(a: Any, b: Any) -> Any:
        return a / b, a * b, jnp.floor(a / b)

    def backward(b: Any, grads: Any) -> Any:
        seen.append(listed(grads[1]))
        return grads[0] / b, jnp.zeros_like(b)

    divided.defvjp(lambda a, b: (divided(a, b), b), backward)
    jax.grad(lambda a: divided(a, jnp.array([2.0, 2.0]))[0].sum())(jnp.array([7.0, 8.0]))
    return f"several outputs, with zeros for those that are not used: of the product {seen[0]}"


@feature("function_jvp", "PyTorch", MyGrad="has no forward mode")
def _(lib: Any) -> str:
    torch = lib.module

    class Squared(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2.0 * grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return 2.0 * tangent * ctx.saved_tensors[0]

    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    return "yes" if torch.autograd.gradcheck(Squared.apply, x, check_forward_ad=True) else "no"


@feature("function_jvp", "autograd")
def _(lib: Any) -> str:
    from autograd import make_jvp
    from autograd.extend import defjvp, primitive

    @primitive
    def squared(x: Any) -> Any:
        return x * x

    defjvp(squared, lambda t, ans, x: 2.0 * t * x)
    return f"yes, by defjvp: {listed(make_jvp(squared)(np.array([0.5, 2.0]))(np.ones(2))[1])}"


@feature("function_jvp", "JAX")
def _(lib: Any) -> str:
    jax, jnp = lib.module, lib.jnp

    @jax.custom_jvp
    def squared(x: Any) -> Any:
        return x * x

    squared.defjvp(lambda primals, tangents: (squared(primals[0]), 2.0 * tangents[0] * primals[0]))
    found = jax.jvp(squared, (jnp.array([0.5, 2.0]),), (jnp.ones(2),))[1]
    return f"yes, by custom_jvp, from which it makes the reverse mode too: {listed(found)}"


@feature(
    "function_once_differentiable",
    "PyTorch",
    MyGrad="has no higher order",
    autograd="no such feature",
    JAX="no such feature",
)
def _(lib: Any) -> str:
    torch = lib.module

    class Sine(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.sin(x)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.from_numpy(grad.numpy() * np.cos(ctx.saved_tensors[0].numpy()))

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    (first,) = torch.autograd.grad(Sine.apply(x).sum(), x, create_graph=True)
    return f"no error: {torch.autograd.grad(first.sum(), x)}"


# -- hooks -----------------------------------------------------------------------------------------------------------


@feature("hook_before_write", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    torch = lib.module
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y *= 10.0
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    right = seen == [("after", [1.0, 1.0]), ("before", [10.0, 10.0])]
    return f"{'yes' if right else 'no'}: {seen}"


@feature("hooks_on_base_and_view", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    torch = lib.module
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = t.clone()
    row = base[0]
    seen = []
    base.register_hook(lambda g: seen.append(("base", g.tolist())))
    row.register_hook(lambda g: seen.append(("row", g.tolist())))
    (row.sum() + base.sum()).backward()
    return f"yes: {seen}"


@feature("node_hooks", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3.0
    seen = []
    y.grad_fn.register_prehook(lambda grads: seen.append("before"))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append("after"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(f"accumulated {listed(leaf.grad)}"))
    y.sum().backward()
    return f"yes: {', '.join(seen)}"


@feature("multi_grad_hook", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    torch = lib.module
    a, b = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    seen = []
    torch.autograd.graph.register_multi_grad_hook([a, b], lambda grads: seen.append([g.tolist() for g in grads]))
    (a * b).sum().backward()
    return f"yes: {seen}"


@feature("saved_tensors_hooks", "PyTorch", MyGrad="has no hooks", autograd="has no hooks", JAX="has no hooks")
def _(lib: Any) -> str:
    torch = lib.module
    packed = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or len(packed) - 1,
                                                  lambda k: torch.tensor(packed[k])):
        y = (x * x).sum()
    y.backward()
    return f"yes: packed {packed}, gradient {listed(x.grad)}"


# -- forward mode ----------------------------------------------------------------------------------------------------


@feature("forward_mode", "PyTorch", MyGrad="has no forward mode")
def _(lib: Any) -> str:
    torch = lib.module
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        base = fw.make_dual(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 10.0, 100.0]))
        base[1:] *= base[:1]
        return f"yes: {listed(fw.unpack_dual(base).tangent)}"


@feature("forward_mode", "autograd")
def _(lib: Any) -> str:
    from autograd import make_jvp

    def f(x: Any) -> Any:
        x[1:] *= x[:1]
        return x

    return f"yes: {listed(make_jvp(f)(np.array([1.0, 2.0, 3.0]))(np.array([1.0, 10.0, 100.0]))[1])}"


@feature("forward_mode", "JAX")
def _(lib: Any) -> str:
    def f(x: Any) -> Any:
        x[1:] *= x[:1]
        return x

    jnp = lib.jnp
    return f"yes: {listed(lib.module.jvp(f, (jnp.array([1.0, 2.0, 3.0]),), (jnp.array([1.0, 10.0, 100.0]),))[1])}"


@feature("forward_view_tangent", "PyTorch", MyGrad="has no forward mode", autograd=NO_WRITES, JAX=NO_WRITES)
def _(lib: Any) -> str:
    torch = lib.module
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        base = torch.zeros(3)
        view = base[1:]
        view += fw.make_dual(torch.tensor([2.0, 3.0]), torch.tensor([10.0, 100.0]))
        return f"yes: the base's tangent is {listed(fw.unpack_dual(base).tangent)}"


# -- transforms ------------------------------------------------------------------------------------------------------


def _mutating(x: Any) -> Any:
    x[1:] *= x[0]
    return (x * x).sum()


@feature("hessian", "PyTorch")
def _(lib: Any) -> str:
    found = lib.module.func.hessian(lambda x: _mutating(x.clone()))(lib.module.tensor([1.0, 2.0, 3.0]))
    return f"yes: {listed(found)}"


@feature("hessian", "autograd")
def _(lib: Any) -> str:
    return f"yes: {listed(lib.module.hessian(_mutating)(np.array([1.0, 2.0, 3.0])))}"


@feature("hessian", "JAX")
def _(lib: Any) -> str:
    return f"yes: {listed(lib.module.hessian(_mutating)(lib.jnp.array([1.0, 2.0, 3.0])))}"


FEATURES.setdefault("hessian", {})["MyGrad"] = "has no higher order"


@feature(
    "functionalize",
    "PyTorch",
    MyGrad="no such feature",
    autograd=NO_WRITES,
    JAX=NO_WRITES,
)
def _(lib: Any) -> str:
    torch = lib.module
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    before = x.clone()
    result = torch.func.functionalize(lambda x: _mutating(x.clone()))(before)
    return f"yes: {result.item():g}, {before._version}, gradient {listed(torch.autograd.grad(result, x)[0])}"


# -- debugging -------------------------------------------------------------------------------------------------------


@feature("explain", "PyTorch", autograd=NO_GRAPH)
def _(lib: Any) -> str:
    torch = lib.module
    found = [name for name in ("explain", "to_dot", "to_mermaid", "preserved") if hasattr(torch.autograd.graph, name)]
    return f"has {', '.join(found)}" if found else "has no such tools; nodes can be walked by next_functions"


@feature("explain", "MyGrad")
def _(lib: Any) -> str:
    from mygrad.computational_graph import build_graph

    return f"has a drawing: {build_graph.__name__}, with Graphviz"


@feature("explain", "JAX")
def _(lib: Any) -> str:
    jaxpr = lib.module.make_jaxpr(lib.module.grad(lambda x: (x * 2.0).sum()))(lib.jnp.ones(2))
    return f"has make_jaxpr, which prints a function as a program of {len(jaxpr.eqns)} equations here"


@feature("anomaly", "PyTorch", MyGrad="no such feature", autograd="no such feature")
def _(lib: Any) -> str:
    torch = lib.module
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        y = (torch.sqrt(x) * 0.0).sum()
        y.backward()
    return f"no error: {listed(x.grad)}"


@feature("anomaly", "JAX")
def _(lib: Any) -> str:
    jnp = lib.jnp
    with lib.module.debug_nans(True):
        return f"no error: {lib.module.grad(lambda x: (jnp.sqrt(x) * 0.0).sum())(jnp.zeros(2))}"
