"""Exceptions in control flow: traces and compiled programs guard whether an operator raises."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
from exceptions_in_programs import check_compiled, check_traced
from operator_samples import samples_of

import viewgrad as vg
from viewgrad.operators.define import OPERATORS
from viewgrad.trace.exceptions import MAY_RAISE

EYE = np.eye(2)
ONES = np.array([[1.0, 1.0], [1.0, 1.0]])
SINGULAR_AT_1 = np.array([[0.0, 0.0], [0.0, 1.0]])


def factored(a):
    try:
        return np.linalg.cholesky(EYE * a).sum()
    except np.linalg.LinAlgError:
        return a * 7.0


def definite(a):
    try:
        np.linalg.cholesky(EYE * a)
    except np.linalg.LinAlgError:
        return a * 7.0
    return a * 2.0


def inverted_in_vain(a):
    np.linalg.inv(EYE * a)
    return a * 2.0


def solved(a):
    try:
        return np.linalg.solve(ONES * a + SINGULAR_AT_1 * (a - 1.0), np.ones(2) * a).sum()
    except np.linalg.LinAlgError:
        return a * 7.0


def inverted(a):
    try:
        return np.linalg.inv(ONES * a + SINGULAR_AT_1 * (a - 1.0)).sum()
    except np.linalg.LinAlgError:
        return a * 7.0


def decomposed(a):
    try:
        return np.linalg.svd(np.array([[1.0, 2.0], [3.0, 4.0]]) * a)[1].sum()
    except np.linalg.LinAlgError:
        return np.where(np.isnan(a), 1.0, a) * 7.0


def retried(a):
    matrix, jitter = np.array([[1.0, 2.0], [2.0, 1.0]]) * a, 0.25
    while True:
        try:
            return np.linalg.cholesky(matrix + jitter * EYE).sum()
        except np.linalg.LinAlgError:
            jitter *= 2.0


def checked_by_errstate(a):
    with np.errstate(all="raise"):
        try:
            return np.log(a)
        except FloatingPointError:
            return a * 7.0


def checked_by_seterr(a):
    before = np.seterr(divide="raise")
    try:
        return np.log(a)
    except FloatingPointError:
        return a * 7.0
    finally:
        np.seterr(**before)


def checked_by_warnings(a):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.log(a)
        except RuntimeWarning:
            return a * 7.0


def counted_by_warnings(a):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = np.log(a)
    return a * 7.0 if found else result


def indexed(a):
    place = np.floor(a).detach().astype(int)
    try:
        return (np.arange(3.0) * a)[place] * 1.0
    except IndexError:
        return a * 7.0


def indexed_in_vain(a):
    places = np.floor(a * np.ones(2)).detach().astype(int)
    try:
        (np.arange(3.0) * a)[places]
    except IndexError:
        return a * 7.0
    return a * 2.0


def written(a):
    places, y = np.floor(a * np.ones(2)).detach().astype(int), np.zeros(3) * a
    try:
        y[places] = a
    except IndexError:
        return a * 7.0
    return y.sum()


def handled_broadly(a):
    try:
        return a * float(a.detach())
    except Exception:
        return a * 7.0


class Root(vg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if float(x.detach()) < 0:
            raise ValueError("negative")
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        return g * 2.0


def of_a_function(a):
    try:
        return Root.apply(a)
    except ValueError:
        return a * 7.0


PROGRAMS = {
    factored: (4.0, -1.0),
    definite: (4.0, -1.0),
    inverted_in_vain: (4.0, 0.0),
    solved: (3.0, 1.0),
    inverted: (3.0, 1.0),
    decomposed: (3.0, float("nan")),
    retried: (0.1, 1.0),
    checked_by_errstate: (3.0, 0.0),
    checked_by_seterr: (3.0, 0.0),
    checked_by_warnings: (3.0, 0.0),
    counted_by_warnings: (3.0, 0.0),
    indexed: (1.0, 5.0),
    indexed_in_vain: (1.0, 5.0),
    written: (1.0, 5.0),
    handled_broadly: (3.0, 2.0),
    of_a_function: (3.0, -1.0),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("order", [1, -1], ids=["raises later", "raises first"])
def test_exceptions_that_decide_the_result(program, order):
    one, other = PROGRAMS[program][::order]
    for specialize in (True, False):
        check_compiled(program, [one, one, one, other, other, one], specialize=specialize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_traced(program, [one, other, one])


def test_a_caught_exception_is_a_guard_of_the_program():
    compiled = check_compiled(factored, [-1.0] * 3)
    assert "compiled," in compiled.explain()
    assert "ran eagerly" not in compiled.explain()
    check_compiled(factored, [4.0, 4.0, 4.0, -1.0])


def test_graphs_contain_raised_exceptions():
    graph = vg.symbolic.trace(factored, vg.Tensor(-1.0))
    assert "raises:numpy.linalg:LinAlgError:cholesky" in graph.text()
    assert vg.symbolic.parse(graph.text()).text() == graph.text()
    vg.symbolic.verify(graph)


def test_the_error_of_a_graph_is_of_the_class_of_the_exception():
    traced = vg.symbolic.function_of(factored, vg.Tensor(4.0))
    with pytest.raises(vg.errors.GuardError) as caught:
        traced(vg.Tensor(-1.0))
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)


def test_a_trace_names_the_line_of_an_exception_without_a_guard():
    with pytest.raises(vg.errors.TraceError, match=r"IndexError at .*test_exceptions_guarded.py"):
        vg.symbolic.trace(indexed_in_vain, vg.Tensor(5.0))


def test_caught_refusal_is_raised_at_the_end():
    with pytest.raises(vg.errors.ConcretizationError):
        vg.symbolic.trace(handled_broadly, vg.Tensor(3.0))


@pytest.mark.parametrize("specialize", [True, False], ids=["traces", "source"])
def test_calls_run_eagerly_if_floating_point_errors_raise(specialize):
    compiled = vg.compile(lambda a: 1.0 / a, executor="python", specialize=specialize)
    for _ in range(3):
        compiled(vg.Tensor(2.0, requires_grad=True))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(vg.Tensor(0.0, requires_grad=True))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled.value_and_grad(np.array(0.0))
    assert ("compiled," if specialize else "compiled from its source") in compiled.explain()


def test_values_of_an_exception_of_shapes_need_no_guard():
    def joined(x, y):
        try:
            return x + y
        except TypeError:
            return x

    graph = vg.symbolic.trace(lambda x: joined(x, "text"), vg.ones(2))
    assert "guard" not in graph.text()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_operators_that_raise_by_values_are_known():
    found = set()
    for name, operator in OPERATORS.items():
        if operator.user_defined:  # by other tests
            continue
        for sample in samples_of(operator)[:2]:
            for value in (0.0, -1.0, 2.5, float("nan")):
                for place in (None, 0, 1):
                    if _raises(operator, sample, value, place):
                        found.add(name)
    assert {"cholesky", "inv", "solve", "svd"} <= found <= MAY_RAISE
    assert MAY_RAISE - {"call"} <= OPERATORS.keys()


def _raises(operator, sample, value, place):
    def other(number, array):
        if isinstance(array, (list, tuple)):
            return [other(number, each) for each in array]
        if not isinstance(array, np.ndarray) or place not in (None, number):
            return array
        kinds = "fc" if np.isnan(value) else "fciu"
        return np.full_like(array, value) if array.dtype.kind in kinds else array

    try:
        with np.errstate(all="ignore"):
            operator.forward(*[other(*each) for each in enumerate(sample.args)], **sample.kwargs)
    except (TypeError, ModuleNotFoundError):
        return False
    except Exception:
        return True
    return False


# -- drawn programs ----------------------------------------------------------------------------------------------------

STEPS = {
    "cholesky": lambda a: np.linalg.cholesky(EYE * a).sum(),
    "inv": lambda a: np.linalg.inv(EYE * np.maximum(a, 0.0)).sum(),
    "solve": lambda a: np.linalg.solve(EYE * np.maximum(a, 0.0), np.ones(2)).sum(),
    "svd": lambda a: np.linalg.svd(EYE * np.where(a < 0.0, np.nan, a))[1].sum(),
    "eigh": lambda a: np.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]) * np.where(a < 0.0, np.nan, a))[0].sum(),
    "log": lambda a: np.log(np.maximum(a, 0.0)),
    "index": lambda a: (np.arange(3.0) * a)[np.floor(a * np.ones(2)).detach().astype(int) + 2].sum(),
    "bool": lambda a: 1.0 / (a if a > 0 else np.array([])[0]),
}
CAUGHT = {
    "LinAlgError": np.linalg.LinAlgError,
    "Exception": Exception,
    "all": (np.linalg.LinAlgError, FloatingPointError, IndexError),
    "IndexError": IndexError,
}


def drawn_program(rng):
    """Draw a program of one to three steps, each in a different kind of handler, whose result may be unused."""
    plan = [
        (STEPS[rng.choice(list(STEPS))], CAUGHT[rng.choice(list(CAUGHT))], rng.choice(["used", "unused", "loop"]),
         rng.random() < 0.3, rng.choice([1.0, -1.0]))
        for _ in range(rng.randint(1, 3))
    ]  # fmt: skip

    def program(a):
        total = a * 1.0
        for number, (step, caught, how, strict, sign) in enumerate(plan):
            shifted = a * sign
            for _ in range(3 if how == "loop" else 1):
                try:
                    with np.errstate(all="raise" if strict else "ignore"):
                        value = step(shifted)
                    if how != "unused":
                        total = total + value
                    break
                except caught:
                    total = total * (number + 2.0)
                    shifted = shifted + 1.5
        return total

    return program


@pytest.mark.parametrize("seed", range(6))
def test_drawn_programs_that_catch_exceptions(seed):
    _check_drawn(seed, "python")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 60))
def test_more_drawn_programs_that_catch_exceptions(seed):
    _check_drawn(seed, "numba" if seed % 8 == 0 else "python")


def _check_drawn(seed, executor):
    rng = random.Random(seed)
    program = drawn_program(rng)
    one, other = rng.sample([1.25, -1.25, -2.5, 2.5], 2)
    for specialize in (True, False):
        check_compiled(program, [one, one, one, other, one, other, other, other], executor, specialize)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_traced(program, [one, other])
