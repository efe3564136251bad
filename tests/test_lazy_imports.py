"""`import viewgrad` loads what eager programs need; everything else is imported when first used."""

import subprocess
import sys

import pytest


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_loads_neither_the_compiler_nor_optional_dependencies():
    loaded = run("import sys, viewgrad; print(*sorted(sys.modules))").split()
    unwanted = ("viewgrad.compiler", "viewgrad.symbolic", "viewgrad.trace.", "viewgrad.drawing", "viewgrad.testing")
    assert not [name for name in loaded if name.startswith((*unwanted, "viewgrad.scipy", "viewgrad.numpy"))]
    assert not {"scipy", "numba", "hypothesis", "matplotlib"} & set(loaded)


@pytest.mark.parametrize(
    "code",
    [
        "import viewgrad as vg; f = vg.compile(lambda x: x * 2); print(f(vg.ones(1)).item())",
        "import viewgrad as vg; f = vg.compile(abs); f(vg.ones(1)); print(2.0 * ('traced' in f.explain()))",
        "from viewgrad import compile; print(compile(lambda x: x * 2)(__import__('viewgrad').ones(1)).item())",
        "import viewgrad as vg; print(vg.numpy.sin(0.0) + 2.0)",
        "import viewgrad as vg; print(2.0 * (vg.symbolic.trace(lambda x: x, vg.ones(1)) is not None))",
        "import viewgrad as vg; vg.symbolic.trace; print(vg.trace(vg.eye(2)).item())",
        "import viewgrad.compiler, viewgrad.trace.graph; import viewgrad as vg; print(vg.trace(vg.eye(2)).item())",
    ],
)
def test_a_lazy_module_is_there_when_it_is_used(code):
    assert float(run(code)) == 2.0


def test_a_function_is_compiled_without_another_import():
    code = """
import viewgrad as vg
f = vg.compile(lambda x: (x[0] * x).sum(), executor="python")
for _ in range(3):
    f(vg.Tensor([1.0, 2.0], requires_grad=True))
print(f.explain())
"""
    told = run(code)  # from its source on Python 3.13 and later, which keeps the text of `-c`
    assert "compiled" in told and "python executor" in told


def test_an_unknown_name_raises_attribute_error():
    import viewgrad as vg

    with pytest.raises(AttributeError, match="no attribute 'nonexistent'"):
        vg.nonexistent
