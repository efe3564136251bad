"""Without SciPy: what needs it says so, and the rest works."""

import subprocess
import sys

from viewgrad.operators.define import OPERATORS
from viewgrad.operators.derivatives import special_functions

PROGRAM = """
import sys
sys.modules["scipy"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.startswith("scipy") else real(name, *rest)
import viewgrad as vg
from viewgrad.autograd import grad
x = vg.Tensor([0.5], requires_grad=True)
print(grad(vg.gelu(x), x)[0].tolist())
for name in sorted(vg.operators.derivatives.special_functions.OF_SCIPY):
    try:
        getattr(vg, name)
    except AttributeError as error:
        assert "pip install 'viewgrad[scipy]'" in str(error), error
    else:
        raise AssertionError(name)
try:
    vg.no_such_name
except AttributeError as error:
    print(error)
"""


def test_names_that_need_scipy_name_the_extra():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    first, last = done.stdout.splitlines()
    assert first.startswith("[0.867")
    assert last == "module 'viewgrad' has no attribute 'no_such_name'"


def test_the_list_of_names_is_that_of_the_rows():
    special = special_functions.special
    computed = {name for name, operator in OPERATORS.items() if operator.forward is getattr(special, name, None)}
    assert computed - {"ndtr", "sinc"} <= special_functions.OF_SCIPY <= OPERATORS.keys()
