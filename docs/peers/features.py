"""Behaviours that are no program of arrays alone: for each library its own way of saying it, or why there is none.

An entry takes the library and returns what came back, in a few words; "yes" first where that is what viewgrad does.
"""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

FEATURES: dict[str, dict[str, Any]] = {}


def feature(key: str, *libraries: str, **absent: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what a behaviour looks like in some libraries, and say why there is none in others."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        entries = FEATURES.setdefault(key, {})
        entries.update(absent)
        for library in libraries:
            entries[library] = function
        return function

    return register


def listed(array: Any) -> str:
    """An array as nested lists of short numbers."""
    return str(np.round(np.asarray(array, float), 4).tolist())


NO_WRITES = "has nothing of the kind: arrays cannot be written to"
NO_GRAPH = "has nothing of the kind: there is no graph that a user holds"
NO_TENSORS = "has nothing of the kind: gradients are of functions, not of tensors"


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


@feature("unknown_function", "PyTorch")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
    return f"no error; a result of type {type(np.polyfit(x, x, 1)).__name__}"


@feature("unknown_function", "MyGrad")
def _(lib: Any) -> str:
    x = lib.module.tensor([1.0, 2.0, 4.0, 8.0])
    return f"no error; a result of type {type(np.polyfit(x, x, 1)).__name__}, which carries no gradient"


@feature("unknown_function", "autograd")
def _(lib: Any) -> str:
    def f(x: Any) -> Any:
        return np.polyfit(x, x, 1).sum()

    return f"no error; a gradient {listed(lib.module.grad(f)(np.array([1.0, 2.0, 4.0, 8.0])))}"


@feature("unknown_function", "JAX")
def _(lib: Any) -> str:
    return f"no error; {lib.module.grad(lambda x: np.polyfit(x, x, 1).sum())(lib.jnp.array([1.0, 2.0, 4.0, 8.0]))}"


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
    return f"yes: by the base after the write {listed(by_base)}, by the view {by_row}"


@feature("gradient_by_intermediate", "MyGrad")
def _(lib: Any) -> str:
    t = lib.module.tensor([[1.0, 2.0], [3.0, 4.0]])
    base = t * 1.0
    row = base[0]
    row *= 3.0
    (base * base).sum().backward()
    return f"by the base after the write {listed(base.grad)}, by the view the same window of it, {listed(row.grad)}"


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
    return f"gradients of several backward passes do not add up: first {listed(first)}, then {listed(x.grad)}"


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
