"""Transforms of drawn functions: views, writes and branches by value, compared with loops and with each other."""

import linecache
import random

import numpy as np
import pytest

import viewgrad as vg
from viewgrad import func

MATRIX = np.array([[2.0, 1.0, 0.0, 0.3], [0.0, 1.0, 0.5, 0.0], [1.0, 0.0, 1.0, 0.2], [0.1, 0.2, 0.3, 1.0]])


class Draft:
    """The source of a function `f(x, w)` of two vectors of length 4, which computes without infinities."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.vectors, self.scalars, self.own = [], ["x", "w"], ["0.5", "1.5"], []
        for place in range(self.random.randrange(3, 9)):
            self.statement(f"v{place}")
        self.result()

    def vector(self):
        return self.random.choice(self.vectors)

    def scalar(self):
        return self.random.choice([*self.scalars, f"{self.vector()}[{self.random.randrange(4)}]"])

    def element(self):
        return f"[{self.random.randrange(4)}]"

    def statement(self, name):
        kind, target = self.random.randrange(10), self.random.choice(self.own) if self.own else None
        if kind == 0 and target:
            self.lines += [f"{target}[{self.random.choice(['1:', '::2', ':-1', ':'])}] *= {self.scalar()}"]
        elif kind == 1 and target:
            self.lines += [f"{name} = {target}[1:]", f"{name}[0] = {name}[0] * {self.scalar()} + {self.scalar()}"]
        elif kind == 2 and target:
            self.lines += [f"{target}{self.element()} = {self.scalar()} * {self.vector()}{self.element()}"]
        elif kind == 3 and target:
            self.lines += [
                f"if {self.vector()}{self.element()} > {self.random.uniform(-0.5, 0.5):.2f}:",
                f"    {target}{self.element()} *= {self.scalar()}",
                "else:",
                f"    {target}[1:] += {self.vector()}[:-1]",
            ]
        elif kind == 4:
            self.lines.append(f"{name} = {self.random.choice(['np.sum', 'np.mean', 'np.max'])}({self.vector()})")
            self.scalars.append(name)
        else:
            self.lines += {
                5: [
                    f"{name} = np.zeros(4)",
                    "for i in range(1, 4):",
                    f"    {name}[i] = {name}[i - 1] * {self.scalar()} + {self.vector()}[i] * {self.vector()}[i - 1]",
                ],
                6: [f"{name} = np.where({self.vector()} > 0.1, {self.vector()}, {self.vector()} * 2.0)"],
                7: [f"{name} = {self.vector()}[::-1] * {self.scalar()}"],
                8: [f"{name} = MATRIX @ {self.vector()}"],
            }.get(kind, [f"{name} = {self.random.choice(['np.sin', 'np.tanh'])}({self.vector()}) + {self.vector()}"])
            self.vectors.append(name)
            self.own.append(name)

    def result(self):
        last = self.vectors[-1]
        self.lines.append(
            self.random.choice(
                [f"return {last} * {self.scalar()}", f"return {last}[1:]", f"return np.concatenate([{last}, x * w])"]
            )
        )

    def function(self):
        source = "def f(x, w):\n" + "".join(f"    {line}\n" for line in self.lines)
        name = f"<drawn {id(self)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        namespace = {"np": np, "MATRIX": MATRIX}
        exec(compile(source, name, "exec"), namespace)
        return namespace["f"], source


@pytest.mark.parametrize("seed", range(24))
def test_transforms_agree_with_loops_and_with_each_other(seed):
    f, source = Draft(seed).function()
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((2, 4))
    xs, ws, deep = rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), rng.standard_normal((2, 3, 4))
    factors = rng.standard_normal(f(x.copy(), w.copy()).shape)

    def loss(x, w):
        return (factors * f(x, w)).sum()

    def same(found, expected):
        scale = np.max(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * scale, err_msg=source)

    jacobian = func.jacrev(f)(x, w)
    steps = np.eye(4) * 1e-6
    differences = [np.stack([(f(x + h * e, w) - f(x - h * e, w)) / (2e-6 * h) for e in steps], -1) for h in (1, 0.5)]
    if np.allclose(*differences, rtol=1e-4, atol=1e-5):  # no branch, and no greatest element, changes nearby
        np.testing.assert_allclose(jacobian, differences[0], rtol=1e-4, atol=1e-5, err_msg=source)
    same(func.jacfwd(f)(x, w), jacobian)
    same(func.sparse_jacobian(f, np.ones_like(jacobian))(x, w).toarray(), jacobian)
    gradient, other = func.grad(loss, (0, 1))(x, w)
    same(gradient, factors @ jacobian)
    hessian = func.jacrev(func.grad(loss))(x, w)
    same(func.hessian(loss)(x, w), hessian)
    same(func.jacfwd(func.jacfwd(loss))(x, w), hessian)
    kept = vg.checkpoint(f)
    same(func.grad(lambda x, w: (factors * kept(x, w)).sum(), 1)(x, w), other)
    same(func.jacrev(func.grad(lambda x, w: (factors * kept(x, w)).sum()))(x, w), hessian)

    rows = np.stack([f(a.copy(), b.copy()) for a, b in zip(xs, ws)])
    slopes = np.stack([func.grad(loss)(a, b) for a, b in zip(xs, ws)])
    same(func.vmap(f, in_axes=(1, 0), out_axes=-1)(xs.T.copy(), ws), rows.T)
    same(func.vmap(func.grad(loss))(xs, ws), slopes)
    same(func.grad(lambda xs: (func.vmap(f)(xs, ws) * factors).sum())(xs), slopes)
    same(func.vmap(func.jacfwd(f))(xs, ws), np.stack([func.jacrev(f)(a, b) for a, b in zip(xs, ws)]))

    def whole(xs):
        return (func.vmap(f, in_axes=(0, None))(xs, w) * factors).sum()

    same(func.vmap(func.grad(whole))(deep), np.stack([[func.grad(loss)(a, w) for a in each] for each in deep]))


def test_sparse_jacobians_adopt_functions_for_numpy():
    def neighbours(x):
        out = np.zeros(len(x))
        for i in range(1, len(x)):
            out[i] = x[i] * x[i - 1]
        return out

    x = np.arange(1.0, 5.0)
    band = np.eye(4) + np.eye(4, k=-1)
    for mode in ("fwd", "rev"):
        found = func.sparse_jacobian(neighbours, band, mode=mode)(x).toarray()
        np.testing.assert_allclose(found, func.jacrev(neighbours)(x))
    with pytest.raises(vg.errors.DetachedConversionError):
        func.sparse_jacobian(neighbours, band, adopt=False)(x)
