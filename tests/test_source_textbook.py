"""Ten textbook programs compiled from source, against eager runs, in all uses of a compiled function."""

import copy
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from textbook_sources import PROGRAMS, garch

import viewgrad as vg

EXECUTORS = ["python", pytest.param("numba", marks=pytest.mark.slow)]
LENGTHS = (9, 6, 13, 7, 21)
HEAVY = {"soft_dtw", "cart_pole", "newton", "soft_viterbi", "hidden_markov"}  # run eagerly, for the default run


@pytest.fixture(params=EXECUTORS)
def executor(request):
    return request.param


@pytest.fixture(params=PROGRAMS, ids=lambda f: f.__name__)
def program(request):
    return request.param


@pytest.fixture(
    params=[pytest.param(f, marks=[pytest.mark.slow] * (f.__name__ in HEAVY)) for f in PROGRAMS],
    ids=lambda f: f.__name__,
)
def light(request):
    return request.param


def compiled(f, executor, **options):
    return vg.compile(f, executor=executor, specialize=False, **options)


def close(found, expected, rtol=1e-8):
    found, expected = [np.asarray(each.detach() if isinstance(each, vg.Tensor) else each) for each in (found, expected)]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * (1e-3 + np.abs(expected).max(initial=0.0)))


def entries_of(tier):
    return [entry for entries in tier.specializations.values() for entry in entries]


def assert_by_source(c, kinds=None):
    """Assert that nothing was traced, and no run was discarded."""
    text = c.explain()
    assert "not compiled" not in text and "ran eagerly" not in text and "traced" not in text, text
    if kinds is not None:
        assert len(entries_of(c.tier)) == kinds


def first(f, arguments):
    """Return the function of the first argument."""
    rest = [vg.Tensor(each) if isinstance(each, np.ndarray) and each.dtype == float else each for each in arguments[1:]]
    return lambda x: f(x, *rest)


def test_value_and_grad(program, executor):
    c = compiled(program, executor)
    reference = vg.func.value_and_grad(program)
    for n in LENGTHS:
        arguments = PROGRAMS[program](n)
        value, gradient = c.value_and_grad(*arguments)
        assert type(value) is float and type(gradient) is np.ndarray
        expected = reference(*arguments)
        close(value, expected[0], 1e-10)
        close(gradient, expected[1])
        close(vg.func.grad(c)(*arguments), expected[1])
        close(vg.func.value_and_grad(c)(*arguments)[1], expected[1])
        assert type(c(*arguments)) is float
        step = 1e-6 * np.cos(np.arange(gradient.size)).reshape(gradient.shape)
        x, rest = arguments[0], arguments[1:]
        slope = (program(x + step, *rest) - program(x - step, *rest)) / 2
        close((gradient * step).sum() / 1e-6, slope / 1e-6, 1e-5)
    assert_by_source(c)
    assert all(len(entry.programs) <= 2 for entry in entries_of(c.tier))  # one with a gradient, one without


def test_jvp_and_vjp(light, executor):
    c = compiled(light, executor)
    for n in (7, 10):
        arguments = PROGRAMS[light](n)
        f, g = first(c, arguments), first(light, arguments)
        x = arguments[0]
        v = np.cos(np.arange(x.size)).reshape(x.shape)
        numbers = (0,)
        found = c.__viewgrad_jvp__(numbers, arguments, {}, (v,), False)
        for one, other in zip(found, vg.func.jvp(g, (x,), (v,))):
            close(one, other)
        value, pull = vg.func.vjp(f, x)
        close(value, g(x), 1e-10)
        for seed in (1.0, -2.5):
            close(pull(seed)[0], vg.func.vjp(g, x)[1](seed)[0])
        close(vg.func.jacrev(c)(*arguments), vg.func.grad(light)(*arguments))
    assert_by_source(c)


def test_second_derivatives(light, executor):
    c = compiled(light, executor)
    for n in (5, 6):
        arguments = PROGRAMS[light](n)
        f = first(light, arguments)
        x = arguments[0]
        expected = vg.func.hessian(f)(x)
        found = vg.func.hessian(c)(*arguments)
        close(found, expected, 1e-6)
        close(vg.func.jacfwd(vg.func.grad(c))(*arguments), expected, 1e-6)
        v = np.cos(np.arange(x.size)).reshape(x.shape)
        product = np.tensordot(np.asarray(expected), v, x.ndim)
        leaf = vg.Tensor(x, requires_grad=True)
        (gradient,) = vg.autograd.grad(c(leaf, *arguments[1:]), [leaf], create_graph=True)
        close(vg.autograd.grad((gradient * v).sum(), [leaf])[0], product, 1e-6)
    assert_by_source(c)


def test_pickles_and_copies(program):
    c = compiled(program, "python", check=False, tape_limit=1e6)
    arguments = PROGRAMS[program](8)
    expected = c.value_and_grad(*arguments)
    for other in (pickle.loads(pickle.dumps(c)), copy.copy(c), copy.deepcopy(c)):
        value, gradient = other.value_and_grad(*arguments)
        assert value == expected[0]
        np.testing.assert_array_equal(gradient, expected[1])
        assert other.tape_limit == 1e6 and not other.check
        assert_by_source(other)


def test_threads(light, executor):
    c = compiled(light, executor)
    expected = {n: vg.func.value_and_grad(light)(*PROGRAMS[light](n)) for n in (5, 8, 11)}
    c.value_and_grad(*PROGRAMS[light](4))
    errors = []

    def work(n):
        try:
            for _ in range(5):
                value, gradient = c.value_and_grad(*PROGRAMS[light](n))
                close(value, expected[n][0], 1e-10)
                close(gradient, expected[n][1])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (5, 8, 11, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert_by_source(c)


def test_scipy_minimizes(light):
    optimize = pytest.importorskip("scipy.optimize")
    c = compiled(light, "python")
    arguments = PROGRAMS[light](6)
    rest = arguments[1:]
    shape = arguments[0].shape
    reference = vg.func.value_and_grad(light)

    def flat(function):
        def of_vector(x):
            value, gradient = function(x.reshape(shape), *rest)
            return float(value) + 0.5 * x @ x, np.asarray(gradient).ravel() + x  # bounded below

        return of_vector

    options = {"jac": True, "options": {"maxiter": 3}}
    found = optimize.minimize(flat(c.value_and_grad), arguments[0].ravel(), **options)
    expected = optimize.minimize(flat(reference), arguments[0].ravel(), **options)
    close(found.x, expected.x, 1e-6)
    assert_by_source(c)


def test_unchecked_functions_do_not_run():
    calls = []

    def counted(x):
        calls.append(1)
        return (x * x).sum()

    c = compiled(counted, "python", check=False)
    assert c.value_and_grad(np.ones(3))[0] == 3.0
    assert not calls or "not compiled" in c.explain()


def test_wrong_program_is_detected(monkeypatch):
    c = compiled(garch, "python")
    arguments = PROGRAMS[garch](8)
    build = sys.modules["viewgrad.compiler.source.tier"].build

    def wrong(*given):
        program = build(*given)
        run = program.run
        program.run = lambda *arrays: (lambda found: ((found[0][0] * (1.0 + 1e-3),), found[1]))(run(*arrays))
        return program

    monkeypatch.setattr("viewgrad.compiler.source.tier.build", wrong)
    expected = vg.func.value_and_grad(garch)(*arguments)
    for _ in range(3):
        close(c.value_and_grad(*arguments)[0], expected[0], 1e-10)
    assert "a different value from the function" in c.explain()


def test_batches(light, executor):
    arguments = PROGRAMS[light](6)
    c = compiled(light, executor, batch=0)
    x = np.stack([arguments[0] * (1.0 + 0.01 * k) for k in range(4)])
    for _ in range(2):
        found = c(x, *arguments[1:])
    close(found, [light(each, *arguments[1:]) for each in x], 1e-10)
    leaf = vg.Tensor(x, requires_grad=True)
    for _ in range(2):
        values = c(leaf, *arguments[1:])
    assert values.grad_fn.name() == "SourceExamplesBackward"
    (gradient,) = vg.autograd.grad(values.sum(), [leaf])
    close(gradient, np.stack([vg.func.grad(light)(each, *arguments[1:]) for each in x]))


def test_tape_limits(program):
    arguments = PROGRAMS[program](60)
    free, limited = compiled(program, "python"), compiled(program, "python", tape_limit=4000.0, check=False)
    free.value_and_grad(*arguments)  # calls the function itself
    expected, found = free.value_and_grad(*arguments), limited.value_and_grad(*arguments)
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])
    assert_by_source(limited)


def test_user_names_do_not_clash_with_generated_names():
    def f(tape, nf, floats, n):
        state, mark, goal, seed0, program, pullback, sin, x_list = tape, nf, 2.0, 3.0, 0.5, floats, 1.5, 0.1
        integers, loop_5, Segments, y_bar, power = 1.0, 0.3, 0.1, 0.7, 2.0
        x = np.array([0.5, 1.5, 0.3])
        for _ in range(n):
            state = np.sin(state) * mark**power * nf + program * seed0 * floats + tape * sin + x_list * x[1]
            mark = mark * np.cos(state) * y_bar + goal * integers * pullback + loop_5 * Segments
        x_shape0 = state * mark
        for k in range(len(x)):
            x_shape0 = x_shape0 * x[k] + np.exp(x_shape0 * 0.01)
        return x_shape0

    for limit in (None, 900.0):
        c = vg.compile(f, executor="python", specialize=False, tape_limit=limit)
        for _ in range(2):
            leaves = [vg.Tensor(v, requires_grad=True) for v in (0.3, 0.4, 0.5)]
            found = vg.autograd.grad(c(*leaves, 60), leaves)
            expected = vg.autograd.grad(vg.adopt(f)(*leaves, 60), leaves)
            for one, other in zip(found, expected):
                np.testing.assert_allclose(one.item(), other.item(), rtol=1e-9)
        assert "not compiled" not in c.explain() and "ran eagerly" not in c.explain(), c.explain()


@pytest.mark.slow
def test_second_process_loads_kernels_from_disk(tmp_path):
    """Nothing is compiled again: the files of Numba's cache stay the same."""
    script = textwrap.dedent("""
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy, viewgrad
        from textbook_sources import PROGRAMS
        for f in PROGRAMS:
            c = viewgrad.compile(f, executor="numba", check=False)
            c.value_and_grad(*PROGRAMS[f](7))
            assert "not compiled" not in c.explain(), c.explain()
    """)
    environment = os.environ | {"VIEWGRAD_CACHE": str(tmp_path)}
    files = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent)], check=True, env=environment)
        files.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")})
    assert files[0] and files[0] == files[1]
