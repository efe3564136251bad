"""State changed by a program, inside and outside adopted code, is the same as without adoption."""

from __future__ import annotations

import random
import sys
import types

import numpy as np
import pytest

import viewgrad as vg


class Model:
    factor = 1.0
    table = [1.0]  # noqa: RUF012
    named = {"a": 1.0}  # noqa: RUF012

    def __init__(self):
        self.rate = 1.0
        self.history = []

    def out(self, x):
        return x * self.rate * self.factor + np.zeros(1)[0]


OUT = Model.out
counter = 0
settings = {"a": 1.0}
numbers = [1.0, 2.0]
function = np.exp
array = np.array([1.0, 2.0])
space = types.SimpleNamespace(value=1.0)
model = Model()


def counting():
    count = 0.0

    def counted(x):
        nonlocal count
        count += 1.0
        return x * count

    def set_count(value):
        nonlocal count
        count = value

    return counted, set_count


counted, set_count = counting()


def step(x):
    """Change all of the state, and return a value that depends on all of it."""
    global counter
    counter += 1
    settings["a"] += 1.0
    numbers[0] += 1.0
    space.value += 1.0
    model.rate += 1.0
    model.history.append(1.0)
    Model.factor += 1.0
    Model.table[0] += 1.0
    Model.named["a"] += 1.0
    changing = counter + settings["a"] + numbers[0] + space.value + Model.table[0] + Model.named["a"]
    return x * (changing + len(model.history) + array.sum()) + function(x) + model.out(x) + counted(x)


def assign(name, value):
    globals()[name] = value


# The user's actions between calls; most of them restore an earlier value.
ACTIONS = {
    "counter": lambda: assign("counter", 0),
    "item of dict": lambda: settings.__setitem__("a", 1.0),
    "another dict": lambda: assign("settings", {"a": 1.0}),
    "item of list": lambda: numbers.__setitem__(0, 1.0),
    "another list": lambda: assign("numbers", [1.0, 2.0]),
    "function": lambda: assign("function", np.exp),
    "another function": lambda: assign("function", lambda x: x * np.ones(1)[0]),
    "element": lambda: array.__setitem__(0, 1.0),
    "another array": lambda: assign("array", np.array([3.0, 2.0])),
    "attribute of namespace": lambda: setattr(space, "value", 1.0),
    "another namespace": lambda: assign("space", types.SimpleNamespace(value=1.0)),
    "attribute": lambda: setattr(model, "rate", 1.0),
    "another object": lambda: assign("model", Model()),
    "attribute of class": lambda: setattr(Model, "factor", 1.0),
    "item of list of class": lambda: Model.table.__setitem__(0, 1.0),
    "another list of class": lambda: setattr(Model, "table", [1.0]),
    "item of dict of class": lambda: Model.named.__setitem__("a", 1.0),
    "method": lambda: setattr(Model, "out", OUT),
    "another method": lambda: setattr(Model, "out", lambda self, x: x * self.rate),
    "cleared list": lambda: model.history.clear(),
    "another list of object": lambda: setattr(model, "history", []),
    "attribute hides that of class": lambda: setattr(model, "factor", 2.0),
    "attribute of class shows again": lambda: vars(model).pop("factor", None),
    "object begins again": lambda: (vars(model).clear(), model.__init__()),
    "variable": lambda: set_count(0.0),
    "variable of another value": lambda: set_count(3.0),
}
SLOPE, ADOPTED = vg.value_and_grad(step), vg.adopt(step)
CALLS = {"grad": lambda x: SLOPE(x)[0], "adopt": ADOPTED, "plain": step}


def restart():
    for name in ACTIONS:
        if not name.startswith("another"):
            ACTIONS[name]()
    for name in ("another array", "element", "another object"):
        ACTIONS[name]()


def values_of(program, *, is_adopted):
    restart()
    found = []
    for name in program:
        if name in ACTIONS:
            ACTIONS[name]()
        else:
            found.append(float((CALLS[name] if is_adopted else step)(1.5)))
    parts = counter, settings["a"], numbers[0], space.value, model.rate, Model.factor, len(model.history), counted(1.0)
    return [*found, *map(float, parts)]


@pytest.mark.parametrize("seed", range(60))
def test_drawn_programs(seed):
    draw = random.Random(seed)
    program = [draw.choice([*ACTIONS, *CALLS, *CALLS, *CALLS]) for _ in range(25)]
    assert values_of(program, is_adopted=True) == pytest.approx(values_of(program, is_adopted=False)), program


def test_functions_elsewhere_are_renewed_after_others_were_freed():
    def scaled(x, *, by=2.0):
        return x * by

    table = {"scaled": [scaled], "other": [lambda x: x]}
    f = vg.adopt(lambda x: sum(function(x) for functions in table.values() for function in functions))
    assert f(3.0) == 9.0 and f(3.0) == 9.0
    scaled.__kwdefaults__["by"] = 5.0
    assert f(3.0) == 18.0
    del table["other"]
    assert f(3.0) == 15.0
    scaled.__code__ = (lambda x, *, by=2.0: x + by).__code__
    assert f(3.0) == 8.0 and f(3.0) == 8.0


def test_modules_imported_in_loops_are_those_of_the_module_level(monkeypatch, tmp_path):
    (tmp_path / "settings_in_loops.py").write_text("import numpy as np\nscale = 2.0\ndef table(): return np.zeros(2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import settings_in_loops

    found = []

    def f(x):
        total = 0.0
        for _ in range(2):
            import settings_in_loops
            from settings_in_loops import scale, table

            y = table()
            y[0] = x
            total += y[0] * scale
            found.append(settings_in_loops)
        return total

    assert vg.grad(f)(3.0) == 4.0
    settings_in_loops.scale = 5.0
    settings_in_loops.table = lambda: np.ones(2)
    assert vg.grad(f)(3.0) == 10.0
    assert len({id(each) for each in found}) == 1


def test_globals_of_a_frame_and_of_a_function():
    assign("hidden", 3.0)
    assert vg.grad(lambda x: x * sys._getframe(0).f_globals["hidden"])(2.0) == 3.0
    assert vg.grad(lambda x: x * assign.__globals__["hidden"])(2.0) == 3.0


def test_names_imported_from_a_module_are_those_at_the_time_of_the_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "changing_names.py").write_text("factor = 2.0\n")
    import changing_names

    def f(x):
        for _ in range(3):
            from changing_names import factor

            x = x * factor
        return x

    slope = vg.grad(f)
    assert slope(1.0) == 8.0
    changing_names.factor = 3.0
    assert slope(1.0) == 27.0
    monkeypatch.setitem(sys.modules, "changing_names", types.ModuleType("changing_names"))
    sys.modules["changing_names"].factor = 1.0
    assert slope(1.0) == 1.0
    del sys.modules["changing_names"].factor
    with pytest.raises(ImportError):
        slope(1.0)
