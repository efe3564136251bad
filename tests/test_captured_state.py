"""Changes of captured state: compiled functions detect them, or stay eager."""

from __future__ import annotations

import builtins
import random

import numpy as np
import pytest
from captured_objects import OTHERS, OVERLOOKED
from captured_state import KINDS, WAYS, program, reset

import viewgrad as vg

# State that adopted functions copy, or read from viewgrad's counterparts of NumPy objects.
NOT_ADOPTED = ("attribute of Polynomial", "attribute of a function of numpy", "statistics of a cache")
# Some programs change the warning filters, so no filter may turn warnings into errors before they run.
pytestmark = pytest.mark.filterwarnings("default", "ignore::viewgrad.errors.NotCompiledWarning")


@pytest.fixture(autouse=True)
def restored():
    yield
    reset()


def check(kind, way="directly", warm=4, adopt=False, specialize=True, executor="python"):
    function, change = program(kind, way, has_source=not specialize)
    compiled, x = vg.compile(function, executor=executor, adopt=adopt, specialize=specialize), vg.ones(1)
    for _ in range(warm):
        before = compiled(x).item()
    change()
    for _ in range(3):
        found = compiled(x).item()
        assert found == function(x).item(), compiled.explain()
    return compiled, before, found


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_captured_state_are_detected(kind, specialize):
    _, before, found = check(kind, specialize=specialize)
    assert before != found  # otherwise nothing was tried


@pytest.mark.parametrize(
    "specialize", [pytest.param(True, marks=pytest.mark.slow, id="traces"), pytest.param(False, id="source")]
)
@pytest.mark.parametrize("kind", OVERLOOKED)
def test_changes_of_indirectly_captured_state_are_detected(kind, specialize):
    _, before, found = check(kind, specialize=specialize)
    assert before != found


@pytest.mark.slow
@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("kind", OTHERS)
def test_changes_of_captured_objects_are_detected(kind, specialize):
    _, before, found = check(kind, specialize=specialize)
    assert before != found


@pytest.mark.parametrize(
    ("setup", "number"),
    [
        ("class C: factor = 2.0", "getattr(C, 'factor', 1.0)"),
        ("class C: factor = 2.0", "getattr(C, 'fac' 'tor')"),
        ("factor = 2.0", "globals()['factor']"),
        ("factor = 2.0", "globals().get('factor')"),
        ("import operator\nclass C: factor = 2.0\nget = operator.attrgetter('factor')", "get(C)"),
    ],
)
def test_attributes_looked_up_by_constant_names_do_not_involve_all_of_the_module(setup, number):
    namespace = {"__name__": "a_users_program"}
    exec(f"import threading\nlock = threading.local()\nask = input\n{setup}\ndef f(x): return x * {number}", namespace)
    compiled = vg.compile(namespace["f"], executor="python")
    for _ in range(3):
        assert compiled(vg.ones(1)).item() == 2.0
    assert "runs eagerly" not in compiled.explain(), compiled.explain()


def test_attributes_by_computed_names_are_compared_in_full():
    namespace = {"__name__": "a_users_program"}
    source = "class C:\n    one, two = [1.0], [2.0]\ndef f(x, name): return x * getattr(C, name)[0]"
    exec(source, namespace)
    compiled = vg.compile(namespace["f"], executor="python")
    for _ in range(3):
        assert compiled(vg.ones(1), "two").item() == 2.0
    assert "runs eagerly" not in compiled.explain(), compiled.explain()
    namespace["C"].two[0] = 3.0
    assert compiled(vg.ones(1), "two").item() == 3.0


ADOPTED = [kind for kind in KINDS if kind not in NOT_ADOPTED]


QUICK = [
    *ADOPTED[::6],
    "class of an instance",
    "attribute of builtins",
    "generic function",
    "code of a function in a dict",
    "default of a static method",
    "code of a wrapped function",
    "arguments of a partial",
    "module by its name",
]


def test_functions_see_names_added_to_builtins_after_their_module_was_adopted():
    assert vg.func.grad(lambda x: x * 2.0)(1.0) == 2.0
    builtins.factor_of_this_test = 3.0
    try:
        assert vg.func.grad(lambda x: x * factor_of_this_test)(1.0) == 3.0  # noqa: F821
    finally:
        del builtins.factor_of_this_test


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("kind", dict.fromkeys(QUICK))
def test_adopted_functions_detect_changes(kind, specialize):
    check(kind, adopt=True, specialize=specialize)


@pytest.mark.slow
@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
@pytest.mark.parametrize("kind", [kind for kind in ADOPTED if kind not in QUICK])
def test_adopted_functions_detect_more_changes(kind, specialize):
    check(kind, adopt=True, specialize=specialize)


def test_at_least_eighty_kinds_of_state_are_tested():
    assert len(KINDS) >= 80


@pytest.mark.parametrize("kind", ["get of a dict", "values of a dict", "attribute of Tensor", "module like profile"])
def test_state_that_can_be_inspected_is_compiled(kind):
    compiled, _, _ = check(kind)
    assert "compiled," in compiled.explain() or "ran eagerly" in compiled.explain(), compiled.explain()
    assert "runs eagerly" not in compiled.explain()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("recursion limit", "sys.getrecursionlimit"),
        ("locked of a lock", "lock.locked"),
        ("garbage collection", "gc.isenabled"),
        ("ctypes number", "c_double"),
    ],
)
def test_state_that_cannot_be_inspected_is_named(kind, reason):
    compiled, _, _ = check(kind)
    assert "runs eagerly" in compiled.explain() and reason in compiled.explain()


@pytest.mark.parametrize("seed", range(8))
def test_drawn_ways_to_captured_state(seed):
    _check_drawn(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 250))
def test_more_drawn_ways_to_captured_state(seed):
    _check_drawn(seed)


def _check_drawn(seed):
    rng = random.Random(seed)
    kind, way, warm = rng.choice(list(KINDS)), rng.choice(list(WAYS)), rng.randint(2, 5)
    check(kind, way, warm)
    check(kind, way, warm, specialize=False)


@pytest.mark.slow
@pytest.mark.numba
@pytest.mark.parametrize("kind", list(KINDS)[::4])
def test_native_programs_notice_a_change_of_captured_state(kind):
    check(kind, specialize=False, executor="numba")


@pytest.mark.parametrize("kind", ["module like profile", "attribute of an instance", "default", "cell", "named tuple"])
def test_programs_from_source_are_guarded(kind):
    compiled, _, _ = check("list in a named tuple" if kind == "named tuple" else kind, specialize=False)
    assert "compiled from its source" in compiled.explain(), compiled.explain()


NUMBERS = iter([1.0, 2.0])


def test_unguardable_state_is_not_compiled_from_source():
    compiled = vg.compile(lambda x: x * 2.0 if NUMBERS is not None else x, executor="python", specialize=False)
    assert compiled(np.ones(1)).tolist() == [2.0]
    assert "not compiled from its source: it captures an iterator" in compiled.explain(), compiled.explain()


@pytest.mark.parametrize(
    ("setup", "step"),
    [
        ("push = []\nlog = push.append", "log(1)"),
        ("push = {}\nlog = push.__setitem__", "log(len(push), 1)"),
        ("push = set()\nlog = push.add", "log(len(push))"),
        ("push = []\nclass Log:\n    def write(self): push.append(1)\nlog = Log().write", "log()"),
        ("import functools\npush = []\nlog = functools.partial(push.append, 1)", "log()"),
        ("import operator\npush = []\nlog = operator.methodcaller('append', 1)", "log(push)"),
    ],
)
def test_side_effects_are_kept(setup, step):
    namespace = {}
    exec(f"{setup}\ndef scaled(x):\n    {step}\n    return x * 2.0", namespace)
    compiled = vg.compile(namespace["scaled"], executor="python")
    before = None
    for _ in range(6):
        compiled(vg.ones(1))
        count = len(namespace["push"])
        assert before is None or count == before + 1
        before = count


def test_module_subclasses_may_have_the_name_of_a_library():
    namespace = {"__name__": "numpy"}
    exec(compile("factor = 2.0\ndef f(x): return x * factor", "/home/user/numpy.py", "exec"), namespace)
    compiled = vg.compile(namespace["f"], executor="python")
    for _ in range(4):
        compiled(vg.ones(1))
    namespace["factor"] = 3.0
    np.testing.assert_array_equal(compiled(vg.ones(1)), [3.0])
