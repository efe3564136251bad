"""Long programs as graphs: time and memory are linear in the length of the program."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.symbolic import differentiate, passes, program_of, trace


def recurrence(x):
    """Five nodes for each element: two reads, a sine, a sum and a write among them."""
    y = x.clone()
    for i in range(1, len(x)):
        y[i] = vg.sin(y[i - 1]) * 0.5 + y[i]
    return y.sum()


def leaf(length):
    return vg.Tensor(np.random.default_rng(0).standard_normal(length), requires_grad=True)


def run_as_graph(x):
    """Return the gradient of the recurrence by the source of its graph, and the number of nodes."""
    gradient = differentiate(trace(recurrence, x), copy=False)
    count = len(gradient.f)
    passes.specialize_autograd_zero(gradient.df, range(1, len(gradient.df_input_vjps)))
    inputs = [x.detach().numpy()]
    outputs = program_of(gradient.f)(inputs)
    (found,) = program_of(gradient.df)(gradient.df_inputs(inputs, outputs, [np.array(1.0)]))
    return found, count


def test_a_program_of_several_parts():
    x = leaf(1500)
    found, count = run_as_graph(x)
    assert count > 5000  # too many for one function
    assert np.allclose(found, vg.autograd.grad(recurrence(x), x)[0].numpy())


@pytest.mark.slow
def test_a_hundred_thousand_nodes():
    x = leaf(20_000)
    trace(recurrence, leaf(100))
    tracemalloc.start()
    graph = trace(recurrence, x)
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    count = len(graph)
    assert count > 100_000
    assert traced / count < 500  # bytes for each node, with its values, windows and source line
    found, _ = run_as_graph(x)
    assert np.allclose(found, vg.autograd.grad(recurrence(x), x)[0].numpy())


MILLION = """
import re, sys
from pathlib import Path
import numpy as np
from test_symbolic_scale import leaf, recurrence
from viewgrad.symbolic import differentiate, passes, program_of, trace
x = leaf(int(sys.argv[1]))
gradient = differentiate(trace(recurrence, x), copy=False)
assert len(gradient.f) > 5 * len(x)
passes.specialize_autograd_zero(gradient.df, range(1, len(gradient.df_input_vjps)))
inputs = [x.detach().numpy()]
outputs = program_of(gradient.f)(inputs)
given = gradient.df_inputs(inputs, outputs, [np.array(1.0)])
df = gradient.df
del gradient, outputs
(found,) = program_of(df)(given)
assert np.isfinite(found).all()
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def peak_of(length):
    """Return the peak memory, in bytes, of a process that traces, differentiates and runs a recurrence."""
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent)])}
    command = [sys.executable, "-c", MILLION, str(length)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return int(done.stdout) * 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
def test_a_million_nodes_fit_into_two_gigabytes():
    """The bytes of each further node; there are six for each element."""
    assert (peak_of(22_000) - peak_of(2_000)) / (6 * 20_000) < 2 * 1024**3 / 1e6
