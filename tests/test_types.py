"""What type checkers and editors see: stub files that are current, and mistakes in a user's program that are found."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import viewgrad
from viewgrad.stubs import written_stubs

PROGRAM = '''
import viewgrad as vg
from viewgrad import Tensor


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
'''
MISTAKES = {
    "vg.sinn(x)": "sinn",
    "number: int = vg.sin(x)": "int",
    "x.summ()": "summ",
    "vg.sum(x, axs=1)": "axs",
}


def test_the_stub_files_are_current():
    """`python -m viewgrad.stubs` writes them."""
    for path, text in written_stubs().items():
        assert path.read_text() == text, f"{path.name} is not what the declarations say; run python -m viewgrad.stubs"


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_finds_mistakes_and_nothing_else(tmp_path, checker):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "\n".join(MISTAKES) + "\n")
    package = Path(viewgrad.__file__).parent.parent
    if checker == "mypy":
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)]
    else:
        found_at = shutil.which(checker)
        if found_at is None:
            pytest.skip(f"{checker} is not installed")
        command = [found_at, "--pythonpath", sys.executable, str(program)]
    output = subprocess.run(
        command, cwd=package, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(package)}
    ).stdout
    errors = [line for line in output.splitlines() if re.search(r":\d+(:\d+ -)?:? error: ", line)]
    first = PROGRAM.count("\n") + 1
    found = {int(line.split(":")[1]) - first: line for line in errors}
    assert sorted(found) == list(range(len(MISTAKES))), output
    for number, substance in enumerate(MISTAKES.values()):
        assert substance in found[number]
