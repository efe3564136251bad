"""Types: stub files are current, and mistakes in a user's program are found."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import viewgrad

TOOLS = Path(viewgrad.__file__).parent.parent / "tools"

PROGRAM = """
from typing import Any

import numpy as np
import numpy.typing as npt

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad import Tensor, func
from viewgrad import scipy as vscipy
from viewgrad.autograd import Function, define_op, forward_ad, gradcheck


def model(x: Tensor, weight: Tensor) -> Tensor:
    hidden = vg.tanh(x @ weight)
    hidden[0] *= 2.0
    return (hidden**2).sum()


x = vg.Tensor([[1.0, 2.0]], requires_grad=True)
loss = model(x, vg.ones(2, 2))
loss.backward()
(grad,) = vg.autograd.grad(model(x, vg.eye(2)), x)
spectrum = vg.fft.rfft(vg.arange(4.0)).real.reshape(3)
values = vg.linalg.svd(x).S
joined = vg.sort(vg.concatenate([x, x]).T, 0)
compiled = vg.compile(model)
with vg.autograd.profile() as profile:
    rows = profile.operators
kept: int = vg.autograd.graph.memory(loss).total.saved


def fit(inputs: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64], steps: int) -> npt.NDArray[np.float64]:
    weight = vg.zeros(inputs.shape[1], requires_grad=True)
    for _ in range(steps):
        z = vg.tensor(inputs) @ weight
        vg.mean(vg.softplus(z) - wanted * z).backward()
        found = weight.grad
        assert found is not None
        with vg.no_grad():
            weight -= 0.1 * found
        weight.grad = None
    fitted: npt.NDArray[np.float64] = weight.detach().numpy()
    return fitted


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x: Tensor = ctx.saved_tensors[0]
        return 3.0 * x * x * grad


def twice(grad: Tensor) -> Tensor:
    return grad * 2


handle = x.register_hook(twice)
(first,) = vg.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
handle.remove()
(second,) = vg.autograd.grad(first.sum(), x)
total: float = float(second.detach().sum())
right: bool = gradcheck(lambda t: (t * t).sum(), (x,))


def logdet(a: Tensor) -> Tensor:
    a = a.clone()
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= vg.outer(a[k + 1 :, k], a[k, k + 1 :])
    return vg.log(abs(vg.diagonal(a))).sum()


hessian = func.hessian(logdet)(vg.eye(3, dtype=vg.float64) * vg.pi)
value, tangent = func.jvp(logdet, (vg.eye(3),), (vg.ones(3, 3),))
shape: tuple[int, ...] = hessian.shape
(counts, edges), length = vg.histogram(vg.arange(4.0)), vg.linalg.norm(x)
softabs = define_op(
    "softabs_of_types(self)", forward=lambda x: np.sqrt(x * x + 1), derivatives={"self": "grad * self / result"}
)
smooth: Tensor = softabs(x)
with forward_ad.dual_level():
    primal, moved = forward_ad.unpack_dual(vg.sin(forward_ad.make_dual(vg.zeros(1), vg.ones(1))))
text: bytes = x.detach().tobytes()


@vg.compile(executor="python")
def doubled(x: Tensor) -> Tensor:
    return x * 2


class Layer:
    @vg.compile
    def apply(self, x: Tensor) -> Tensor:
        return x


more: Tensor = doubled(compiled(x, vg.ones(2, 2)))
doubled.value_and_grad(vg.ones(2))
Layer().apply(x)
summed: Tensor = vnp.sum(vnp.zeros(3), axis=0)
density = vscipy.stats.norm.logpdf(x, scale=2.0)
solution = vscipy.linalg.solve(vg.eye(2), vg.ones(2))


def squares(w: Tensor, power: int) -> Tensor:
    return (w**power).sum()


gradient = func.grad(squares)
gradient(x, power=2)
cheaper: Tensor = vg.checkpoint(squares)(x, 3)
per_example = func.vmap(func.grad(lambda w, x: (w * x).sum()), in_axes=(None, 0))
curvature = func.grad(func.grad(lambda w: w * w))(2.0)
found_value, found_gradient = vg.value_and_grad(squares)(x, 2)
"""
# Each line, and a word of the error that it must be.
MISTAKES = {
    "vg.sinn(x)": "sinn",
    "number: int = vg.sin(x)": "int",
    "x.summ()": "summ",
    "vg.sum(x, axs=1)": "axs",
    "vg.linalg.slvd(x)": "slvd",
    "vg.fft.rffft(x)": "rffft",
    "vg.autograd.gradd(loss, x)": "gradd",
    "vg.zeros(3, requires_grads=True)": "requires_grads",
    "vg.autograd.grad(loss)": "grad",
    "loss.backward(retain_grph=True)": "retain_grph",
    "name: str = x.shape": "str",
    "array: np.ndarray[Any, Any] = vg.sin(x)": "ndarray",
    "one: Tensor = vg.linalg.qr(x)": "QRResult",
    "x.grad.sum()": "None",
    "vg.autograd.grad(loss, x, allow_unused=True)[0].sum()": "None",
    'vg.concatenate([x, x], "0")': "axis|concatenate",
    "vg.clip(x, 0, 1, 2, 3)": "arguments",
    "x.register_hook(3)": "register_hook",
    "func.grad(3)": "grad",
    "vg.maximum(x)": "x2|argument",
    "vg.compile(5)": "compile",
    "compiled(x)": "weight|argument",
    "doubled(3)": "int|argument",
    "vnp.sum(x, axs=1)": "axs",
    "vscipy.linalg.solve(x)": "argument|missing",
    "x.sum(axis=0.5)": "float",
    "x @ None": "None",
    'x + "a"': "str|Literal",
    "vg.save(x)": "save|tree",
    "Cube()()": "callable|call",
    "vnp.summ(x)": "summ",
    "vnp.linalg.slvd(x)": "slvd",
    'gradient(x, power="two")': "str|Literal",
    "func.hessian(squares)(x)": "power|few arguments",
    "vg.checkpoint(squares)(x, steps=2)": "steps|power",
}


def test_the_stub_files_are_current(monkeypatch):
    """`python tools/stubs.py` generates them."""
    monkeypatch.syspath_prepend(TOOLS)
    written_stubs = importlib.import_module("stubs").written_stubs
    for path, text in written_stubs().items():
        if "names of `viewgrad." in text and path.read_text().partition("\n")[0] != text.partition("\n")[0]:
            continue  # written with another version of NumPy or SciPy
        assert path.read_text() == text, f"{path.name} is not what the declarations say; run python tools/stubs.py"


def errors_of(checker, program):
    """Return the lines of a type checker's output that are errors."""
    package = Path(viewgrad.__file__).parent.parent
    if checker == "mypy":
        cache = str(program.parent / "cache")
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, str(program)]
    else:
        found_at = shutil.which(checker) or shutil.which(f"based{checker}")
        if found_at is None:
            pytest.skip(f"{checker} is not installed")
        settings = program.with_name("pyrightconfig.json")
        said = {"typeCheckingMode": "standard", "include": ["program.py"], "extraPaths": [str(package)]}
        settings.write_text(json.dumps(said))
        command = [found_at, "--pythonpath", sys.executable, "--project", str(settings)]
    output = subprocess.run(
        command, cwd=package, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(package)}
    ).stdout
    assert "error" in output or "Success" in output, output
    return [line for line in output.splitlines() if re.search(r":\d+(:\d+ -)?:? error: ", line)]


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_reports_exactly_the_mistakes(tmp_path, checker):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
    errors = errors_of(checker, program)
    first = PROGRAM.count("\n") + 1
    found = {int(line.split(":")[1]) - first: line for line in errors}
    assert sorted(found) == list(range(len(MISTAKES))), errors
    for number, substance in enumerate(MISTAKES.values()):
        assert re.search(substance, found[number], re.IGNORECASE), found[number]


@pytest.mark.slow
def test_a_type_checker_resolves_every_public_name(tmp_path):
    """Run mypy in strict mode, which rejects imports of names that are not public."""
    spaces = " linalg fft func autograd autograd.graph numpy scipy.special scipy.stats testing errors".split(" ")
    lines = []
    for space in (f"viewgrad.{space}".rstrip(".") for space in spaces):
        names = [name for name in importlib.import_module(space).__all__ if not name.startswith("_")]
        lines += [f"import {space}", *(f"{space}.{name}" for name in names)]
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines) + "\n")
    assert errors_of("mypy", program) == []
