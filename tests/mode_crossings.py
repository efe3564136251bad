"""Drawn programs in which modes of the library meet: views, writes and errors inside one mode, run inside another.

The same source runs on tensors and on complex arrays. A complex step is the oracle: the imaginary part of a number is
its tangent. If a mode does not record, only real parts change. Derivatives of functions that are differentiated inside
are known in closed form.
"""

from __future__ import annotations

import itertools
import linecache
import random
import warnings

import numpy as np

import viewgrad as vg
from viewgrad.autograd import detect_anomaly, enable_grad, grad, no_grad
from viewgrad.autograd.graph import saved_tensors_hooks

STEP = 1e-30
WEIGHTS = np.array([1.0, -0.5, 0.3, 0.7])  # of the gradient, for second derivatives
# How functions are compiled: both tiers, and with NumPy's names replaced.
COMPILED = {"traced": {"specialize": True}, "from source": {"specialize": False}, "adopted": {"adopt": True}}
EXECUTED = {"executor": "python"}

# Functions of vectors that write through views.
PARTS = """
def shifted(a):
    b = a * 1.0
    b[1:] += b[:-1] * 0.3
    return b

def interleaved(a):
    b = np.zeros_like(a)
    b[::2] = a[::2] ** 2
    b[1::2] = np.sin(a[1::2])
    return b

def scaled_by_view(a):
    b = a * 0.5
    v = b[:-1]
    v *= a[1:]
    return b + a

def recurrence(a):
    b = np.exp(a * 0.3)
    for i in range(1, len(b)):
        b[i] = b[i] * 0.5 + b[i - 1] * a[i] * 0.3
    return b

def view_of_row(a):
    b = a.reshape(1, -1) * 1.0
    c = b[0]
    c[0] = c[-1] * 2.0
    b *= 0.7
    return c

def reversed_product(a):
    b = a * 1.0
    b[...] = b[::-1] * a
    return np.cos(b)

def in_place(a):
    a *= a * 0.5 + 0.4
    a[1:] += a[:-1] * 0.3
"""
PART_NAMES = "shifted interleaved scaled_by_view recurrence view_of_row reversed_product".split()


def with_source(text, file, namespace):
    """Execute a source whose lines Python finds."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    return namespace


# -- inner modes: methods of `modes` in the programs -------------------------------------------------------------------


def is_tensor(value):
    return isinstance(value, vg.Tensor)


class Modes:
    """The operations of the programs. For complex arrays they compute the same without entering a mode."""

    def __init__(self) -> None:
        self.compiled_functions = {}

    def scaled_unrecorded(self, v, window, factor):
        if is_tensor(v):
            with no_grad():
                v[window] *= factor
        else:
            v[window] = v[window].real * factor + 1j * v[window].imag

    def set_detached(self, v, place, number):
        if is_tensor(v):
            v.detach()[place] = number
        else:
            v[place] = number + 1j * v[place].imag

    def scaled_enabled(self, v, window, factor):
        if is_tensor(v):
            with no_grad(), enable_grad():
                v[window] *= factor
        else:
            v[window] *= factor

    def constant(self, v):
        return v.detach() * 1.0 if is_tensor(v) else v.real + 0j

    def checkpointed(self, f, v):
        return vg.checkpoint(f)(v) if is_tensor(v) else f(v)

    def mapped(self, f, v):
        rows = v.reshape(2, 2)
        return (vg.func.vmap(f)(rows) if is_tensor(v) else np.stack([f(row) for row in rows])).reshape(-1) * 1.0

    def compiled(self, way, f, v):
        if not is_tensor(v):
            return f(v)
        key = way, f.__name__
        if key not in self.compiled_functions:
            self.compiled_functions[key] = vg.compile(f, **EXECUTED, **COMPILED[way])
        return self.compiled_functions[key](v)

    def recomputed(self, way, f, v):
        """Checkpoint a compiled function that has a checkpoint inside."""
        if not is_tensor(v):
            return f(v)
        key = way, f.__name__, "inside"
        if key not in self.compiled_functions:
            self.compiled_functions[key] = vg.compile(lambda b: vg.checkpoint(f)(b) * 1.0, **EXECUTED, **COMPILED[way])
        return vg.checkpoint(self.compiled_functions[key])(v)

    def recomputed_rows(self, way, f, v):
        """Checkpoint a compiled function of each row."""
        if not is_tensor(v):
            return self.mapped(f, v)
        key = way, f.__name__
        if key not in self.compiled_functions:
            self.compiled_functions[key] = vg.compile(f, **EXECUTED, **COMPILED[way])
        compiled = self.compiled_functions[key]
        return vg.checkpoint(lambda b: self.mapped(compiled, b))(v)

    def rewritten(self, way, f, v):
        """Call a compiled function that writes to its argument."""
        if is_tensor(v):
            self.compiled(way, f, v)
        else:
            f(v)

    def adopted(self, f, v):
        return vg.adopt(f)(v) if is_tensor(v) else f(v)

    def functionalized(self, f, v):
        return vg.func.functionalize(f)(v) if is_tensor(v) else f(v)

    def symbolic(self, f, v):
        return vg.symbolic.function_of(f, v)(v) if is_tensor(v) else f(v)

    def checked(self, f, v):
        if not is_tensor(v):
            return f(v)
        with detect_anomaly():
            return f(v)

    def hooked(self, f, v):
        if not is_tensor(v):
            return f(v)
        with hooks():
            return f(v)

    def replayed(self, f, v):
        if not is_tensor(v):
            return f(v)
        with vg.view_replay(True):
            return f(v)

    def gradient(self, v):
        def loss(b):
            c, s = b * 1.0, np.sin(b)
            c[...] = s * b
            return c.sum()

        return vg.func.grad(loss)(v) if is_tensor(v) else np.cos(v) * v + np.sin(v)

    def tangent(self, v):
        def cube(b):
            c = b * 1.0
            c *= b
            c *= b
            return c

        return vg.func.jvp(cube, (v,), (v,))[1] if is_tensor(v) else 3 * v**3

    def curvature(self, v):
        def quartic(b):
            c = b * b
            c *= c
            return c.sum()

        return np.diagonal(vg.func.hessian(quartic)(v)) * 1.0 if is_tensor(v) else 12 * v * v

    def pulled_back(self, v):
        def sine(b):
            c = np.zeros_like(b)
            c[...] = np.sin(b)
            return c

        return vg.func.vjp(sine, v)[1](v)[0] if is_tensor(v) else np.cos(v) * v

    def failing_writes(self, v, place):
        v[place] *= 1.5
        try:
            v[:2] = v[:3]
        except ValueError:
            v[place] += 0.25
        try:
            np.add(v, v, out=v[:1])
        except ValueError:
            v[-1] *= 0.9

    def interrupted(self, f, v):
        b = v * 1.0
        b[0] *= 2.0
        try:
            b[1:2] *= 3.0
            raise KeyError
        except KeyError:
            b[-1] += 1.0
        return f(b)


def hooks():
    """Return hooks that keep saved values as arrays."""
    return saved_tensors_hooks(lambda tensor: np.array(tensor.detach().numpy()), lambda array: vg.Tensor(array))


# -- programs ----------------------------------------------------------------------------------------------------------

WRITES = [
    "{t}[{index}] *= 0.7", "{t}[{part}] = {v}[{part}] * 0.9", "{t} *= {v}", "{t}[{index}] += 0.3",
    "{t}[{n}] = {v}[{m}] * {u}[{n}]", "w = {t}[{part}]; w *= {v}[{part}]",
    "w = {t}.reshape(2, 2); w[0] += w[1] * 0.4", "w = {t}.reshape(2, 2).T; w[1] *= 0.8",
    "np.multiply({t}, {v}, out={t})", "np.add.at({t}, [0, 0, 3], {v}[:3])",
    "w = {t}[:]; w[1:] -= {v}[:-1]; {t} += 0.1 * w", "{t}[...] = {v} * 0.6 + {t}",
    "modes.scaled_enabled({t}, slice(None, 2), 0.8)", "modes.failing_writes({t}, {n})",
    "modes.scaled_unrecorded({t}, slice({n}, None), 1.2)", "modes.scaled_unrecorded({t}[1:], slice(None, 1), 1.1)",
    "modes.set_detached({t}, {n}, 0.6)", "modes.rewritten({way!r}, in_place, {t}[{part}])",
    "modes.rewritten({way!r}, in_place, {t})",
]  # fmt: skip
VALUES = [
    "{v} * {u}", "{v}[::-1]", "modes.constant({v}) * {u}", "modes.gradient({v})", "modes.tangent({v})",
    "modes.curvature({v})", "modes.pulled_back({v})", "modes.mapped(modes.gradient, {v})",
    "modes.recomputed({way!r}, {f}, {v})", "modes.recomputed_rows({way!r}, {f}, {v})",
    "modes.checkpointed({f}, modes.compiled({way!r}, {g}, {v}))", "modes.compiled({way!r}, {f}, {v})",
    "modes.mapped(lambda row: modes.checkpointed({f}, row), {v})",
    "modes.checkpointed(lambda row: modes.gradient({f}(row)), {v})",
    "modes.hooked(lambda row: modes.replayed({f}, row), {v})",
    *(f"modes.{name}({{f}}, {{v}})" for name in (
        "checkpointed", "mapped", "adopted", "checked", "hooked", "replayed", "functionalized", "interrupted",
        "symbolic",
    )),
]  # fmt: skip
INDICES = ["0", "-1", "1", ":2", "1:", "::2", "::-1", "1:3", ":", "[0, 2]", "[True, False, True, False]"]
SLICES = [":2", "1:3", "2:", "::2", "1::2", "-2:"]
_numbers = itertools.count()


class CrossingProgram:
    """A drawn function of a vector of four numbers; `text` is its source."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.at = np.random.default_rng(seed).uniform(0.4, 1.6, 4)
        names = ["a", "b"]
        lines = ["def f(x):", "    a = x * 1.0", "    b = np.sin(x)"]
        for _ in range(self.random.randint(2, 7)):
            if self.random.random() < 0.45:
                lines.append("    " + self.filled(self.random.choice(WRITES), names))
            else:
                value = self.filled(self.random.choice(VALUES), names)
                names.append(f"t{len(names)}")
                lines.append(f"    {names[-1]} = {value}")
        terms = [f"({name} * {0.4 + 0.3 * n:.1f} * np.arange(1.0, 5.0)).sum()" for n, name in enumerate(names)]
        self.text = "\n".join([*lines, "    return " + " + ".join(terms)]) + "\n"

    def filled(self, template, names):
        choose = self.random.choice
        words = {letter: choose(names) for letter in "tuv"} | {letter: choose(PART_NAMES) for letter in "fg"}
        places = {letter: self.random.randrange(3) for letter in "nm"}
        return template.format(
            **words, **places, index=choose(INDICES), part=choose(SLICES), way=choose(list(COMPILED))
        )

    @property
    def keeps_tangents_back(self) -> bool:
        """True if it writes without recording, which forward mode does not support."""
        return "unrecorded" in self.text or "detached" in self.text

    def loaded(self):
        """Return the function; its modes are new ones."""
        number = next(_numbers)
        linecache.cache.pop(f"/home/user/crossing_{number - 200}.py", None)
        namespace = with_source(PARTS, "/home/user/parts_of_crossings.py", {"np": np}) | {"modes": Modes()}
        return with_source(self.text, f"/home/user/crossing_{number}.py", namespace)["f"]


def complex_step(f, x):
    """Return the value and the gradient of a function of complex vectors."""
    steps = [f(x + 1j * STEP * row) for row in np.eye(x.size)]
    return float(np.real(steps[0])), np.imag(steps) / STEP


# -- outer modes: value and gradient -----------------------------------------------------------------------------------


def eager(f, x):
    t = vg.Tensor(x, requires_grad=True)
    y = f(t)
    return y.item(), grad(y, t)[0].numpy()


def eager_twice(f, x):
    t = vg.Tensor(x, requires_grad=True)
    y = f(t)
    grad(y, t, create_graph=True)
    return y.item(), grad(y, t)[0].numpy()


def replayed(f, x):
    with vg.view_replay(True):
        return eager(f, x)


def checked(f, x):
    with detect_anomaly():
        return eager(f, x)


def hooked(f, x):
    with hooks():
        return eager(f, x)


def compiled(way):
    def run(f, x):
        function = vg.compile(f, executor="python", **COMPILED[way])
        for shift in (0.02, 0.01):
            eager(function, x + shift)
        return eager(function, x)

    return run


def mapped(f, x):
    t = vg.Tensor(np.stack([x + 0.1, x]), requires_grad=True)
    y = vg.func.vmap(f)(t)
    return y[1].item(), grad(y[1], t)[0].numpy()[1]


def transformed(f, x):
    value, found = vg.func.value_and_grad(f)(x)
    return float(value), np.asarray(found)


def forward(f, x):
    return None, np.asarray(vg.func.jacfwd(f)(x))


def symbolic(f, x):
    return eager(vg.symbolic.function_of(f, vg.Tensor(x, requires_grad=True)), x)


def second(f, x):
    t = vg.Tensor(x, requires_grad=True)
    (first,) = grad(f(t), t, create_graph=True, materialize_grads=True)
    total = (first * WEIGHTS).sum()
    if not total.requires_grad:
        return None, np.zeros(4)
    return None, grad(total, t, allow_unused=True, materialize_grads=True)[0].numpy()


def forward_over_reverse(f, x):
    return None, np.asarray(vg.func.jvp(vg.func.grad(f), (x,), (WEIGHTS,))[1])


OUTER = {
    "eager": eager,
    "eager, twice": eager_twice,
    "view_replay": replayed,
    "detect_anomaly": checked,
    "saved_tensors_hooks": hooked,
    "functionalize": lambda f, x: eager(vg.func.functionalize(f), x),
    "checkpoint": lambda f, x: eager(vg.checkpoint(f), x),
    "adopt": lambda f, x: eager(vg.adopt(f), x),
    "vmap": mapped,
    "func": transformed,
    "symbolic": symbolic,
    **{way: compiled(way) for way in COMPILED},
}
FORWARD = {"jacfwd": forward}
SECOND = {"second": second, "forward over reverse": forward_over_reverse}


def check(seed: int, number: int = 3) -> bool:
    """Compare a program with the complex step in some outer modes; return whether its derivatives could be compared.

    Raises:
        AssertionError: if a value or a gradient differs; the message shows the program.
    """
    program = CrossingProgram(seed)
    f, x = program.loaded(), program.at
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        value, slope = complex_step(f, x)
        if not np.isfinite(slope).all() or np.abs(slope).max() > 1e6:
            return False
        outer = program.random.sample(list(OUTER), number)
        if not program.keeps_tangents_back:
            outer += [*FORWARD, program.random.choice(list(SECOND))]
        if "modes.symbolic" in program.text or "modes.hooked" in program.text:  # traces refuse tensors made by hooks
            outer = [name for name in outer if name not in ("symbolic", "saved_tensors_hooks")]
        for name in outer:
            expected, tolerance = slope, 1e-9
            if name in SECOND:
                if "modes.constant" in program.text:
                    continue
                expected, tolerance = curvature_along(f, x), 1e-5
                if expected is None:
                    continue
            try:
                given, found = (OUTER | FORWARD | SECOND)[name](f, x)
            except Exception as error:
                error.add_note(f"In program {seed}, inside {name}:\n{program.text}")
                raise
            same = np.allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max()))
            if not same or not (given is None or np.isclose(given, value, rtol=1e-10)):
                raise AssertionError(
                    f"program {seed}, inside {name}: {given}, {found}; not {value}, {expected}\n{program.text}"
                )
    return True


def curvature_along(f, x, h=1e-4):
    """Return the derivative of the gradient along `WEIGHTS`, by differences; None if they are not precise."""
    wide, near, nearest = (
        (complex_step(f, x + step * WEIGHTS)[1] - complex_step(f, x - step * WEIGHTS)[1]) / (2 * step)
        for step in (2 * h, h, h / 2)
    )
    coarse, fine = (4 * near - wide) / 3, (4 * nearest - near) / 3
    return fine if np.allclose(coarse, fine, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(fine).max())) else None
