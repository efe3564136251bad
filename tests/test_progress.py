"""The library's long commands show a progress bar on a terminal, and none in a log."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.progress import ProgressBar
from viewgrad.testing import check_operator

ROOT = Path(__file__).parent.parent


def shown(*arguments):
    """Return the output of a module's command line on standard error, which is a terminal."""
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-m", *arguments]
    process = subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=its_end
    )
    os.close(its_end)
    written = bytearray()
    try:
        while part := os.read(terminal, 4096):
            written += part
    except OSError:  # Linux raises it if the other end is closed
        pass
    os.close(terminal)
    assert process.wait() == 0
    return written.decode()


def test_progress_bar_overwrites_itself_and_is_cleared():
    stream = io.StringIO()
    bar = ProgressBar(stream, always=True)
    check_operator(vg.exp, np.ones((2, 3)), only="gradients", progress=bar.update)
    bar.finish()
    lines = stream.getvalue().split("\r")
    assert any(line.startswith("[") and "gradients" in line for line in lines) and not lines[-1].strip()
    assert len({len(line) for line in lines if line}) == 1  # each line covers the one before


def test_no_progress_bar_in_log_files():
    stream = io.StringIO()
    bar = ProgressBar(stream)
    bar.update("gradients", 1, 2)
    bar.finish()
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    "arguments, seen",
    [
        (("viewgrad.testing", "viewgrad:exp", "--only", "gradients"), "gradients"),
        (("viewgrad.testing", "compare", "--programs", "3", "--backends", "viewgrad"), "3/3 programs"),
        (("benchmarks", "--quick", "--only", "training", "--peers", "", "--out", os.devnull), "training: 32-64-64-10"),
        (("benchmarks.compiled", "--quick", "--only", "recurrence"), "0/1 recurrence"),
    ],
)
def test_commands_show_a_progress_bar(arguments, seen, tmp_path):
    arguments = [str(tmp_path) if argument == os.devnull else argument for argument in arguments]
    written = shown(*arguments)
    assert "\r[" in written and seen in written
    assert written.rstrip(" ").endswith("\r")
