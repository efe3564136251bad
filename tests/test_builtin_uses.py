"""Built-in functions that adopted code does not need to replace."""

import builtins
import types

import pytest

import viewgrad as vg
from viewgrad.adoption.builtin_names import BUILTINS, CALLED
from viewgrad.adoption.builtin_uses import faster_builtins


def code_of(body, parameters="x, n"):
    names = {}
    exec(f"def f({parameters}):\n" + "\n".join("    " + line for line in body.splitlines()), names)
    return names["f"].__code__


def bound(body, shadowed=()):
    """Return the names bound to Python's objects, and those bound to functions in place of classes."""
    found = faster_builtins(code_of(body), lambda name: name not in shadowed, CALLED)
    pythons = {name for name, value in found.items() if value is getattr(builtins, name)}
    return pythons, found.keys() - pythons


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n): x += float(i)",
        "for i, y in enumerate(x): y += float(i) * float(2 * i - 1)",
        "total = 0.0\nfor i in range(n): total = total / 3 + float(-i)\nreturn float(total)",
        "if x > float('inf'): return float(len(x)) / float(3)",
        "r = range(n)\nfor i in r:\n    j = i\n    while float(j): j -= 1",
        "return isinstance(x, float) or isinstance(x, (int, float)) or isinstance(x, (int, (str, float)))",
    ],
)
def test_calls_with_numbers_match_python(body):
    assert bound(body) == ({"float"}, set())


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(n): x = float(x) + float(i)",
        "for i in range(n):\n    i = x\n    float(i)",
        "i = 0\nfor y in x:\n    float(i)\n    i = y",
        "for i, y in enumerate(x): float(y)",
        "try: pass\nexcept E as i: float(i)",
        "i = n\nfloat(i)",
        "float(x[0]); float('inf')",
        "for i in range(n):\n    j = i if n else x\n    float(j)",
        "float(*x)",
        "i = 0\ndef g():\n    nonlocal i\n    i = x\ng()\nfloat(i)",
        "for n in range(3): pass\nfloat(n)",
    ],
)
def test_calls_with_other_values_are_checked(body):
    assert bound(body)[0] == set()


@pytest.mark.parametrize(
    "body",
    [
        "type(x) is float",
        "float(1 if n else x) if n else float",
        "f = float\nf(x)",
        "x.astype(float)",
        "map(float, x)",
        "isinstance(x, float) and float(x)",
        "[float if n else int][0](x)",
        "isinstance(float, n)",
        "kinds = (int, (float,))\nisinstance(x, kinds)",
        "float.fromhex(x)",
        "float(1)[float]",
    ],
)
def test_other_uses_need_the_class(body):
    assert all("float" not in names for names in bound(body))


def test_types_and_attributes():
    assert bound("for i in range(n): type(i) is int") == ({"type"}, set())
    assert bound("type(2.0) is x; type(x) == n") == (set(), {"type"})
    assert bound("isinstance(x, type) or type(x)") == (set(), set())
    assert bound("type('A', (), {})") == (set(), set())
    assert bound("hasattr(x, 'shape') and hasattr(n, '__len__')") == ({"hasattr"}, set())
    assert bound("hasattr(x, '__iter__')") == bound("hasattr(x, n)") == (set(), set())
    assert bound("for i in range(n): float(i)", shadowed={"range"}) == (set(), {"float"})
    assert bound("for i in range(n): float(i)", shadowed={"float"}) == (set(), set())


def module_of(source):
    module = types.ModuleType("users_module")
    exec(source, vars(module))
    return module


LOOP = "def f(x, n):\n    for i in range(n): x = x * (float(i) + 1.0)\n    return x\n"


def test_functions_take_the_faster_builtins_and_share_their_globals():
    module = module_of(LOOP + "def g(x): return float(x) if type(x) is float else f(x, 2)\n")
    f, g = vg.adopt(module.f), vg.adopt(module.g)
    assert f.function.__builtins__["float"] is float and f.function.__globals__ is g.function.__globals__
    assert g.function.__builtins__["float"] is BUILTINS["float"] is f.function.__globals__["__builtins__"]["float"]
    assert vg.grad(module.f)(2.0, 3) == 6.0 and vg.grad(module.g)(2.0) == 1.0


def test_builtins_that_the_module_defines_later():
    module = module_of(LOOP)
    assert vg.grad(module.f)(2.0, 3) == 6.0
    module.range = lambda x: [x, x]
    assert vg.grad(lambda x: module.f(1.0, x))(2.0) == 6.0
    del module.range
    module.float = lambda i: 2.0
    assert vg.grad(module.f)(2.0, 2) == 9.0


def test_functions_whose_code_is_replaced():
    module = module_of(LOOP + "def g(x, n): return float(x) * n if type(x) is float else None\n")
    assert vg.grad(module.f)(2.0, 3) == 6.0
    module.f.__code__ = module.g.__code__
    assert vg.grad(module.f)(2.0, 3) == 3.0


def test_cached_functions_with_parameters_and_defaults():
    module = module_of(
        "import functools\n"
        "calls = []\n"
        "@functools.lru_cache\n"
        "def power(x, n):\n"
        "    calls.append(n)\n"
        "    return x**n\n"
        "@functools.lru_cache(None)\n"
        "def scaled(x, n=2, *, by=3.0): return by * x**n\n"
        "@functools.lru_cache\n"
        "def constant(): return 2.0\n"
        "def f(x): return power(x, 2) + power(n=3, x=x) + power(3, 2) * scaled(x) + scaled(3) + constant()\n"
    )
    for _ in range(2):
        assert vg.value_and_grad(module.f)(2.0) == (4.0 + 8.0 + 9.0 * 12.0 + 27.0 + 2.0, 4.0 + 12.0 + 9.0 * 12.0)
    assert module.calls == [2, 3, 2] + [2, 3]  # results for numbers are shared with the user's program
    with pytest.raises(TypeError, match="argument"):
        vg.adopt(module.power)(1)
