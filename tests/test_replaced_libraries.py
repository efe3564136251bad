"""Attributes of NumPy, SciPy and `math` that the user's program replaces."""

import math
import types

import numpy as np
import pytest
import scipy.special

import viewgrad as vg


def module_of(source):
    module = types.ModuleType("users_module")
    exec(source, vars(module))
    return module


def square(x):
    return x**2


@pytest.mark.parametrize(
    ("owner", "name", "source"),
    [
        (np, "tan", "import numpy as xp\ndef f(x): return xp.tan(x)"),
        (np, "tan", "def f(x):\n    import numpy as np\n    return np.tan(x)"),
        (np, "tan", "def f(x):\n    from numpy import tan\n    return tan(x)"),
        (np.linalg, "norm", "import numpy as np\ndef f(x): return np.linalg.norm(x)"),
        (np.linalg, "norm", "from numpy import linalg\ndef f(x): return linalg.norm(x)"),
        (math, "tan", "import math\ndef f(x): return math.tan(x)"),
        (scipy.special, "erf", "import scipy.special as sp\ndef f(x): return sp.erf(x)"),
        (scipy.special, "erf", "import scipy\ndef f(x): return scipy.special.erf(x)"),
    ],
)
def test_functions_replaced_later(monkeypatch, owner, name, source):
    module = module_of(source)
    before = vg.value_and_grad(module.f)(0.5)
    assert before[0] == pytest.approx(float(getattr(owner, name)(0.5)))
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, square)
            assert vg.value_and_grad(module.f)(0.5) == (0.25, 1.0)
        assert vg.value_and_grad(module.f)(0.5) == before


def test_functions_replaced_before_they_are_used(monkeypatch):
    module = module_of("import numpy as np\ndef f(x): return np.cos(x)\ndef g(x): return np.tan(x)")
    assert vg.grad(module.f)(0.0) == 0.0
    monkeypatch.setattr(np, "tan", square)
    assert vg.grad(module.g)(0.5) == 1.0
    assert vg.grad(module_of("import numpy as np\ndef f(x): return np.tan(x)").f)(0.5) == 1.0
    monkeypatch.undo()
    assert vg.grad(module.g)(0.0) == 1.0


def test_constants_and_functions_of_random_numbers(monkeypatch):
    module = module_of("import numpy as np\ndef f(x): return x * np.pi * np.random.rand()")
    vg.grad(module.f)(1.0)
    monkeypatch.setattr(np, "pi", 3.0)
    monkeypatch.setattr(np.random, "rand", lambda: 4.0)
    assert vg.grad(module.f)(1.0) == 12.0


def test_compiled_functions(monkeypatch):
    module = module_of("import numpy as np\ndef f(x): return np.tan(x)")
    compiled = vg.compile(vg.grad(module.f))
    assert compiled(0.0) == 1.0
    monkeypatch.setattr(np, "tan", square)
    assert compiled(0.5) == 1.0
    monkeypatch.undo()
    assert compiled(0.0) == 1.0
