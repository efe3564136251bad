"""Drawn functions of several arrays, compiled and called with arrays that were computed from one another.

The arrays are arguments or are captured. Derivatives with respect to the two leaves that they were computed from, by
`autograd.grad` to any order or by a transform, are compared with those of the function itself.
"""

from __future__ import annotations

import linecache
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import viewgrad as vg
from viewgrad.autograd import grad

ELEMENTWISE = (
    "np.sin({0})", "np.exp(-{0} * {0})", "np.sqrt({0} * {0} + 1.0)", "np.tanh({0})", "({0} * {0})", "abs({0})",
    "(-{0})", "np.maximum({0}, 0.3)",
)  # fmt: skip
STEPS = (  # of two arrays, an elementwise function of the first, and its argument
    ("for i in range(n):", "    y[i] = y[i - 1] * 0.5 + {f[a[i]]} * b[i - 1]"),
    ("for i in range(1, n):", "    s += {f[a[i]]} * y[i - 1]"),
    ("y[1:] += {f[a[:-1]]} * b[1:]",),
    ("if a[0] > 0.2:", "    y[:2] = a[1:3] * b[0]", "else:", "    y *= b[-1]"),
    ("y = y * {f[a]} + b",),
    ("s = s + {f[a]}.sum() * y[0]",),
    ("y[a > 0.5] *= 2.0", "s += (b * y)[::2].sum()"),
    ("v = y[::2]", "v *= {f[a[::2]]}", "s += v.sum()"),
    ("y = np.where(a > b, y * a, {f[b]})",),
)
STARTS = "y = np.zeros(n)", "y = np.ones(n)", "y = a * 1.0", "y = a.copy()"
RESULTS = "(y * y).sum() + s", "s + y[-1] * y[0]", "y.sum() * (s + 1.0) + y[1]"
INPUTS = (
    "x * w", "x * 1.0", "w * 2.0", "x + w", "np.sin(x) * w", "x[:3]", "w[:3]", "x[1:4]", "(x * w)[:3]", "x", "w",
    "x[::-1]", "x * x", "w * x[0]",
)  # fmt: skip
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, p, t: vg.grad(f, argnums=(0, 1))(*p),
    "jacrev": lambda f, p, t: vg.jacrev(f, argnums=(0, 1))(*p),
    "jacfwd": lambda f, p, t: vg.jacfwd(f, argnums=(0, 1))(*p),
    "hessian": lambda f, p, t: sum(vg.hessian(f, argnums=(0, 1))(*p), ()),
    "jvp": lambda f, p, t: vg.jvp(f, p, t),
    "hvp": lambda f, p, t: vg.hvp(f, p, t)[1],
    "vhp": lambda f, p, t: vg.func.vhp(f, p, t)[1],
    "vjp of grad": lambda f, p, t: vg.vjp(vg.grad(f), *p)[1](t[0]),
    "vmap of grad": lambda f, p, t: (vg.func.vmap(vg.grad(f))(np.stack([p[0], t[0]]), np.stack([p[1], t[1]])),),
}


class DependentInputs:
    """A drawn function, with the expressions of its inputs.

    Arguments:
        seed: the number of the function.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.seed = seed
        self.arguments = [f"a{n}" for n in range(draw.randint(1, 3))]
        self.captured = [f"c{n}" for n in range(draw.randint(0, 2))]
        names = self.arguments + self.captured
        self.inputs = [draw.choice(INPUTS) for _ in names]
        lines = [f"n = len({names[0]})", draw.choice(STARTS).replace("a", draw.choice(names)), "s = 0.0"]
        for _ in range(draw.randint(1, 3)):
            lines += self._step(draw, names)
        body = "".join(f"    {line}\n" for line in [*lines, f"return {draw.choice(RESULTS)}"])
        self.source = f"def f({', '.join(self.arguments)}):\n{body}"
        self.transform = None if self.captured or draw.random() < 0.5 else draw.choice(list(TRANSFORMS))
        self.order = draw.choice([1, 1, 2, 2, 3])
        self.by = [draw.randint(0, 1) for _ in range(self.order)]  # differentiated with respect to x or w
        self.options = {"specialize": draw.random() < 0.5, "check": draw.random() < 0.7}
        self.leaves = [np.array([draw.uniform(-1, 1.5) for _ in range(4)]) for _ in range(2)]

    @staticmethod
    def _step(draw: random.Random, names: Sequence[str]) -> list[str]:
        function, step = draw.choice(ELEMENTWISE), draw.choice(STEPS)
        a, b = draw.choice(names), draw.choice(names)
        lines = []
        for line in step:
            before, _, rest = line.partition("{f[")
            if rest:
                inner, _, after = rest.partition("]}")
                line = before + function.format(inner) + after
            words = [{"a": a, "b": b}.get(word, word) for word in _words(line)]
            lines.append("".join(words))
        return lines

    def made(self, x: Any, w: Any) -> tuple[Callable[..., Any], list[Any]]:
        """Return the function and its arguments for given leaves."""
        names: dict[str, Any] = {"np": vg.numpy, "vg": vg}
        values = [eval(each, {"np": vg.numpy, "x": x, "w": w}) for each in self.inputs]
        length = min(map(len, values))
        values = [value if len(value) == length else value[:length] for value in values]
        names |= dict(zip(self.captured, values[len(self.arguments) :]))
        file = f"<dependent inputs {self.seed}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        exec(compile(self.source, file, "exec"), names)
        return names["f"], values[: len(self.arguments)]

    def derivatives(self, is_compiled: bool) -> list[Any]:
        """Return the derivatives in three calls."""
        points = [(self.leaves[0] + 0.01 * k, self.leaves[1]) for k in range(3)]
        called = None
        found: list[Any] = []
        if self.transform is not None:
            called = self._called(self.made(*map(vg.Tensor, self.leaves))[0], is_compiled)
            along = np.arange(1.0, 5.0), np.full(4, 0.5)
            for point in points:
                found += TRANSFORMS[self.transform](lambda x, w: called(*self.made(x, w)[1]), point, along)
            points = []
        for k, (x, w) in enumerate(points):
            if k == 0 or not self.captured:
                leaves = [vg.Tensor(x, requires_grad=True), vg.Tensor(w, requires_grad=True)]
                function, arguments = self.made(*leaves)
                called = called or self._called(function, is_compiled)
            y = called(*arguments)
            for number in self.by[1:]:
                (y,) = grad(y.sum(), leaves[number], create_graph=True, materialize_grads=True)
                y = (y * np.arange(1.0, 5.0)).sum() + 0.0 * (leaves[0].sum() + leaves[1].sum())
            found += grad(y.sum(), leaves, retain_graph=True, materialize_grads=True)
        return [np.asarray(each.detach() if isinstance(each, vg.Tensor) else each) for each in found]

    def _called(self, function: Callable[..., Any], is_compiled: bool) -> Callable[..., Any]:
        return vg.compile(function, executor="python", **self.options) if is_compiled else function

    def __repr__(self) -> str:
        how = self.transform or f"derivative of order {self.order}"
        return f"# {how}, {self.options}, inputs: {'; '.join(self.inputs)}\n{self.source}"


def _words(line: str) -> list[str]:
    """Return a line as names and the text between them."""
    words = [""]
    for char in line:
        if char.isidentifier() != words[-1].isidentifier():
            words.append("")
        words[-1] += char
    return words


def check(drawn: DependentInputs) -> None:
    """Check that the derivatives of the compiled function are those of the function itself."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected, found = drawn.derivatives(False), drawn.derivatives(True)
    for ours, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-7, atol=1e-9, err_msg=repr(drawn))
