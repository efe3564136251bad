"""SciPy is imported on first use. Without it, functions that need it say so, and the rest works."""

import subprocess
import sys
from pathlib import Path

IMPORTED = """
import sys
import viewgrad as vg
assert not {"scipy", "numba", "matplotlib", "hypothesis"} & sys.modules.keys(), sorted(sys.modules)
x = vg.Tensor([0.5], requires_grad=True)
vg.exp(x).sum().backward()
assert "scipy" not in sys.modules
print(vg.erf(x).tolist())
assert "scipy.special" in sys.modules and "scipy.stats" not in sys.modules
"""

UFUNCS = """
import scipy.special
import viewgrad as vg
x = vg.Tensor([0.5], requires_grad=True)
y = scipy.special.psi(x) + scipy.special.jv(1, x) + scipy.special.betainc(1.0, 2.0, x) + scipy.special.erf(x)
print(y.grad_fn.name(), vg.autograd.grad(y, x)[0].tolist())
"""

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
sys.modules["scipy"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.startswith("scipy") else real(name, *rest)
import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.operators import OPERATORS
from operator_samples import samples_of
x = vg.Tensor([0.5], requires_grad=True)
print(grad(vg.gelu(x), x)[0].tolist())
named = 0
for operator in OPERATORS.values():  # every name is there
    sample = samples_of(operator)[0]
    try:
        operator.function(*sample.args, **sample.kwargs)
    except ModuleNotFoundError as error:
        assert "pip install 'viewgrad[scipy]'" in str(error), error
        named += 1
assert getattr(vg, "erf") and named > 45
try:
    vg.no_such_name
except AttributeError as error:
    print(error)
"""


KIT = """
import sys
sys.modules["scipy"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.startswith("scipy") else real(name, *rest)
import numpy as np
import viewgrad as vg
from viewgrad.testing import Failure, check_operator
print(check_operator(lambda x: vg.exp(x) * x, np.array([0.5, -1.2])).examples["special points"] > 0)
try:
    check_operator(lambda x: x * x.detach(), np.array([0.5, -1.2]))
except Failure as failure:
    print(failure.property)
"""


def run(program):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_scipy_is_imported_when_it_is_first_used():
    assert run(IMPORTED) == ["[0.5204998778130465]"]


def test_scipy_ufuncs_accept_tensors_once_scipy_is_imported():
    (line,) = run(UFUNCS)
    assert line.startswith("AddBackward [7.")


def test_names_that_need_scipy_name_the_extra():
    first, last = run(PROGRAM)
    assert first.startswith("[0.867")
    assert last == "module 'viewgrad' has no attribute 'no_such_name'"


def test_operators_are_checked_without_scipy():
    assert run(KIT) == ["True", "gradients"]
