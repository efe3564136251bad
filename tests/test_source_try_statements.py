"""`try` in functions compiled from their source: values, gradients and errors of eager runs."""

import itertools
import linecache
import textwrap

import numpy as np
import pytest

import viewgrad as vg

_numbers = itertools.count()


class Infeasible(Exception):
    pass


class Worse(Infeasible):
    pass


IN_LOOP = {  # statements in a loop over the elements v of x
    "caught": "if v < 0: raise ValueError('negative')\n    t += v * v\nexcept ValueError:\n    t -= v",
    "one of two": "if v < 0: raise KeyError\n    if v > 1: raise ValueError\n    t += v\n"
                  "except KeyError:\n    t *= 0.5\n"
                  "except (ValueError, TypeError):\n    t += 2 * v",
    "else and finally": "if v < 0: raise KeyError\n    t += v\nexcept (KeyError, IndexError):\n    t *= 0.5\n"
                        "else:\n    t += 1.0\nfinally:\n    t += 0.1 * v",
    "by a base class": "t += 0.5\n    if v < 0:\n        t += 1.0\n        raise IndexError\n    t *= v\n"
                       "except LookupError:\n    t -= v",
    "by any": "if v < 0: raise Worse('x')\n    t += v\nexcept:\n    t += 2 * v",
    "classes of the user": "if v < 0: raise Worse\n    if v > 1: raise Infeasible\n    t += v\n"
                           "except Worse:\n    t -= v\n"
                           "except Infeasible:\n    t *= 0.5",
    "jumps": "if v < 0: raise ValueError\n    if v > 1: continue\n    t += v\nexcept Exception:\n    break",
    "return": "if v < -1: raise ArithmeticError\n    if v > 1: return v * 2\nexcept ValueError:\n    return v\n"
              "except ArithmeticError:\n    return v * 3",
    "uncaught": "if v > 1.2: raise RuntimeError\n    if v < 0: raise ValueError\n    t += v\n"
                "except ValueError:\n    t -= v",
    "inside another": "try:\n        if v < 0: raise ValueError\n        if v > 1: raise KeyError\n        t += v\n"
                      "    except KeyError:\n        t += 2 * v\n    t += 0.1\nexcept ValueError:\n    t -= v",
}
BY_EAGER_RUNS = {  # errors of operations, or behind a loop or a call
    "index": "t += x[3] ** 2\nexcept IndexError:\n    t *= 2",
    "division": "t += v * (6 // (len(x) - 4))\nexcept ZeroDivisionError:\n    t += v",
    "behind a loop": "for w in x:\n        if w > 1: raise ValueError\n        t += w\n"
                     "except ValueError:\n    t *= 0.5",
    "linear algebra": "t += np.linalg.cholesky(np.eye(2) * v)[0, 0]\nexcept np.linalg.LinAlgError:\n    t += v",
    "raised again": "if v > 1: raise ValueError\n    t += v\nexcept ValueError:\n    t = 0.0\n    raise",
    "hidden class": "if v < 0: raise HiddenIndexError\n    t += v\nexcept LookupError:\n    t -= v",
    "error that is read": "if v > 1: raise ValueError('ab')\n    t += v\nexcept ValueError as e:\n"
                          "    t += len(str(e)) * v",
    "finally behind a jump": "if v < 0: raise ValueError\n    t += v\nexcept ValueError:\n"
                             "    return t * v\nfinally:\n    t += 1",
}


def made(text):
    text = "def program(x):\n    t = 0.0\n    for v in x:\n" + textwrap.indent("try:\n    " + text, " " * 8)
    text += "\n    return t + 0.1 * x[0]\n"
    text = text.replace("HiddenIndexError", "IndexError") if "Hidden" in text else text
    name = f"<attempt {next(_numbers)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"np": np, "Infeasible": Infeasible, "Worse": Worse, "__name__": "attempts"}
    exec(compile(text, name, "exec"), space)
    return space["program"], space


def outcome(function, x):
    try:
        value, gradient = vg.func.value_and_grad(function)(x)
    except Exception as error:
        return type(error).__name__, None
    return value, gradient


def check(function, executor):
    compiled = vg.compile(function, executor=executor, specialize=False, check=False)
    for n, seed in ((6, 0), (9, 1), (4, 2), (2, 3), (12, 4)):
        x = np.random.default_rng(seed).normal(size=n)
        expected = outcome(function, x)
        for _ in range(2):
            found = outcome(compiled, x)
            if isinstance(expected[0], str):
                assert found[0] == expected[0]
                continue
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-8, atol=1e-11)
    return compiled


@pytest.mark.parametrize("executor", ["python", pytest.param("numba", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", IN_LOOP)
def test_errors_that_are_raised_and_caught_are_branches(name, executor):
    if executor == "numba":
        pytest.importorskip("numba")
    told = check(made(IN_LOOP[name])[0], executor).explain()
    assert "not compiled" not in told, told
    assert "ran eagerly" not in told or name == "uncaught", told


@pytest.mark.parametrize("name", BY_EAGER_RUNS)
def test_other_errors_are_caught_by_eager_runs(name):
    function, space = made(BY_EAGER_RUNS[name])
    if "hidden" in name:
        space["IndexError"] = Infeasible
    check(function, "python")


def test_exception_names_are_guarded():
    function, space = made(IN_LOOP["by a base class"])
    compiled = vg.compile(function, executor="python", specialize=False, check=False)
    x = np.array([0.5, -0.5])
    assert outcome(compiled, x)[0] == outcome(function, x)[0]
    space["IndexError"] = Infeasible
    assert outcome(compiled, x)[0] == outcome(function, x)[0] == "Infeasible"
