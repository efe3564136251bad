"""Functions of Python's `statistics`, `cmath`, `functools` and `pickle`, and threads, in adopted code."""

from __future__ import annotations

import cmath
import concurrent.futures
import functools
import inspect
import pickle
import statistics
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import viewgrad as vg

DATA = np.array([1.3, 0.7, 2.1, 0.9, 1.6])
OTHERS = np.array([0.4, 1.1, 0.2, 0.8, 0.5])

OF_SAMPLES = {
    "mean": lambda v: statistics.mean(v),
    "mean of a list": lambda v: statistics.mean([x * x for x in v]),
    "mean of an iterator": lambda v: statistics.mean(x * x for x in v),
    "fmean": lambda v: statistics.fmean(v) + statistics.fmean(v, weights=OTHERS),
    "fmean of weights": lambda v: statistics.fmean(OTHERS, v),
    "geometric_mean": lambda v: statistics.geometric_mean(v),
    "harmonic_mean": lambda v: statistics.harmonic_mean(list(v)) + statistics.harmonic_mean(list(v), weights=OTHERS),
    "variance": lambda v: statistics.variance(v) + statistics.variance(v, xbar=v[0]),
    "pvariance": lambda v: statistics.pvariance(list(v)) + statistics.pvariance(list(v), v[1]),
    "stdev": lambda v: statistics.stdev(v) + statistics.pstdev(v),
    "median": lambda v: statistics.median(v) + statistics.median(list(v[:4])),
    "median_low": lambda v: statistics.median_low(v) + 3 * statistics.median_high(v[:4]),
    "quantiles": lambda v: sum((i + 1) * q for i, q in enumerate(statistics.quantiles(v, n=5))),
    "inclusive quantiles": lambda v: statistics.quantiles(list(v), n=3, method="inclusive")[1],
    "covariance": lambda v: statistics.covariance(v, OTHERS),
    "correlation": lambda v: statistics.correlation(OTHERS, v),
    "linear_regression": lambda v: sum(statistics.linear_regression(OTHERS, v)),
    "proportional": lambda v: statistics.linear_regression(v, OTHERS, proportional=True).slope,
}
NAMES = ("exp", "sqrt", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "tanh", "asinh")


def parts(f):
    return lambda x: (f(x) * (1 + 2j)).real + f(x + 0.5j).imag


OF_NUMBERS = {
    **{name: parts(getattr(cmath, name)) for name in NAMES},
    "log": lambda x: cmath.log(x - 2).imag + cmath.log(1j * x, 3).real,
    "polar": lambda x: cmath.polar(x + 1j)[1] * cmath.phase(1 + x * 1j) * abs(cmath.rect(x, x) - 1),
    "root of a negative number": lambda x: cmath.sqrt(-x).imag,
}


def slopes(f, x, step=1e-5):
    x = np.asarray(x, float)
    found = np.empty(x.size)
    for i in range(x.size):
        away = np.zeros(x.size)
        away[i] = step
        away = away.reshape(x.shape)
        found[i] = (f(x + away) - f(x - away)) / (2 * step)
    return found.reshape(x.shape)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_statistics(name):
    f = OF_SAMPLES[name]
    value, slope = vg.value_and_grad(f)(DATA)
    assert value == pytest.approx(f(DATA), rel=1e-12)
    np.testing.assert_allclose(slope, slopes(f, DATA), atol=1e-7)
    np.testing.assert_allclose(vg.func.jvp(f, (DATA,), (OTHERS,))[1], slope @ OTHERS)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_complex_functions(name):
    f = OF_NUMBERS[name]
    value, slope = vg.value_and_grad(f)(0.4)
    assert value == pytest.approx(f(0.4), rel=1e-12)
    assert slope == pytest.approx(slopes(lambda x: f(float(x)), 0.4).item(), rel=1e-7)


@pytest.mark.parametrize(
    "f",
    [
        lambda v: statistics.mean(v[:0]),
        lambda v: statistics.stdev(v[:1]),
        lambda v: statistics.geometric_mean(v - 5),
        lambda v: statistics.harmonic_mean(list(v - 5)),
        lambda v: statistics.correlation(v[:1], OTHERS[:1]),
        lambda v: statistics.linear_regression([0.0] * 5, v[:4]),
        lambda v: statistics.quantiles(v, method="median"),
        lambda v: statistics.fmean(v, weights=[1.0]),
    ],
)
def test_errors_match_python(f):
    with pytest.raises(ValueError) as plain:
        f(DATA)
    with pytest.raises(type(plain.value)):
        vg.grad(f)(DATA)


def test_plain_data_is_passed_to_the_original_functions():
    def f(x):
        return statistics.mean([1, 2, 4]) * x + statistics.mode("aab").count("a") * x + len(statistics.__doc__) * 0

    assert vg.grad(f)(2.0) == f(1.0)
    assert vg.grad(lambda x: statistics.NormalDist(0.0, 1.0).cdf(0.0) * x)(2.0) == 0.5


def test_compiled_functions_of_statistics():
    compiled = vg.compile(lambda v: statistics.stdev(v) * statistics.mean(v), executor="python")
    for x in (DATA, DATA[::-1] * 2, DATA):
        expected = slopes(lambda v: statistics.stdev(v) * statistics.mean(v), x)
        np.testing.assert_allclose(vg.grad(compiled)(x), expected, atol=1e-7)


# -- threads -----------------------------------------------------------------------------------------------------------


def by_pool(x):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(lambda i: np.sin(x[i]) * x[i] ** 2, range(len(x)))) * x[0]


def by_submitted(x):
    with ThreadPoolExecutor(2) as pool:
        parts = [pool.submit(lambda i: (np.sin(x[i]) * x[i] ** 2).item(), i) for i in range(len(x))]
    return sum(part.result() for part in parts) * x[0]


def by_threads(x):
    parts = [None] * len(x)

    def work(i):
        parts[i] = np.sin(x[i]) * x[i] ** 2

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(x))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert isinstance(threads[0], threading.Thread) and isinstance(threading.current_thread(), threading.Thread)
    return sum(parts) * x[0]


def by_timer(x):
    parts = []
    timer = threading.Timer(0.0, lambda: parts.append(sum(np.sin(x) * x**2)))
    timer.start()
    timer.join()
    return parts[0] * x[0]


class Part(threading.Thread):
    """Calls the constructor of the base explicitly."""

    def __init__(self, x):
        threading.Thread.__init__(self, name="part")
        self.x = x

    def run(self):
        values = np.zeros(1)
        values[0] = np.sin(self.x)
        self.found = values[0] * self.x**2


class LaterPart(Part):
    def __init__(self, x):
        super().__init__(x)
        self.daemon = True


class Pool(ThreadPoolExecutor):
    def __init__(self):
        ThreadPoolExecutor.__init__(self, max_workers=2)


class Delayed(threading.Timer):
    def __init__(self, function, *args):
        super().__init__(0.0, function, args)


def by_users_threads(x):
    class Own(threading.Thread):
        def __init__(self, x):
            super().__init__()
            self.x = x

        def run(self):
            self.found = np.sin(self.x) * self.x**2

    threads = [kind(v) for kind, v in zip((Part, LaterPart, Own), x, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(each, threading.Thread) for each in threads) and not isinstance(threads[2], Part)
    assert isinstance(threads[1], Part) and not isinstance(threads[0], LaterPart) and threads[0].name == "part"
    return sum(each.found for each in threads) * x[0]


def by_users_pool_and_timer(x):
    parts = []
    with Pool() as pool:
        parts += pool.map(lambda v: np.sin(v) * v**2, x[1:])
    delayed = Delayed(lambda v: parts.append(np.sin(v) * v**2), x[0])
    delayed.start()
    delayed.join()
    return sum(parts) * x[0]


BY_THREADS = [by_pool, by_submitted, by_threads, by_timer, by_users_threads, by_users_pool_and_timer]


@pytest.mark.parametrize("program", BY_THREADS)
@pytest.mark.parametrize("specialize", [None, False, True])
def test_threads_compute_in_the_modes_of_the_transform(program, specialize):
    def plain(x):
        return sum(np.sin(v) * v**2 for v in x) * x[0]

    x = np.array([1.5, 2.25, 0.7])
    f = program if specialize is None else vg.compile(program, executor="python", specialize=specialize)
    for transform in (
        vg.grad, vg.jacfwd, vg.hessian, lambda f: lambda x: vg.jvp(f, (x,), (x,))[1],
        lambda f: lambda x: vg.hvp(f, (x,), (x,))[1], lambda f: lambda x: vg.vmap(vg.hessian(f))(np.stack([x, x * 2])),
    ):  # fmt: skip
        for _ in range(2):
            np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=1e-10)
    assert by_threads(x) == pytest.approx(plain(x))


STANDARD_NORMAL, WIDE = statistics.NormalDist(), statistics.NormalDist(1.0, 2.0)


def _of_normal_distributions(x):
    own = statistics.NormalDist(x, 2 * x)
    return (
        STANDARD_NORMAL.cdf(x) * WIDE.pdf(x) + WIDE.inv_cdf(x / 3) + own.cdf(1.3) + own.zscore(0.4) + own.pdf(0.9)
        + own.inv_cdf(0.3) + own.mean * own.stdev * WIDE.cdf(0.3)
    )  # fmt: skip


def test_normal_distributions_made_inside_and_outside():
    x, h = 0.7, 1e-4
    f = _of_normal_distributions
    value, slope = vg.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-14)
    assert slope == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6)
    assert vg.hessian(f)(x) == pytest.approx((f(x + h) - 2 * f(x) + f(x - h)) / h**2, rel=1e-4)


# -- functools ---------------------------------------------------------------------------------------------------------


@functools.singledispatch
def norm(value):
    return abs(value)


@norm.register
def _(value: np.ndarray):
    return np.sqrt((value**2).sum())


class Norm:
    @functools.singledispatchmethod
    def of(self, value):
        return abs(value) * 5.0

    @of.register
    def _(self, value: np.ndarray):
        return np.sqrt((value**2).sum())

    @of.register(list)
    def _(self, value):
        return sum(map(self.of, value))


def norm_inside(x):
    @functools.singledispatch
    def of(value):
        return abs(value)

    @of.register
    def _(value: np.ndarray):
        return np.sqrt((value**2).sum())

    @of.register(float)
    def _(value):
        return value * 3.0

    return of(x) + of(x[0]) + of(2)


@functools.lru_cache
def legendre(n, x):
    calls.append(n)
    if n < 2:
        return x**n
    return ((2 * n - 1) * x * legendre(n - 1, x) - (n - 1) * legendre(n - 2, x)) / n


calls: list[int] = []


def cached_inside(x):
    @functools.cache
    def square(value):
        return value**2

    @functools.cache
    def fibonacci(n):
        return x[n] if n < 2 else fibonacci(n - 1) * x[2] + fibonacci(n - 2)

    return square(x[0]) + square(x[1]) * fibonacci(20) + square(3) + square.cache_info().misses


OF_FUNCTIONS = {
    "singledispatch": lambda v: norm(v) + norm(v[0]) + norm(-2),
    "singledispatchmethod": lambda v: Norm().of(v) + Norm().of([v[:2], v[0]]) + Norm().of(v[1]),
    "singledispatch inside": norm_inside,
    "lru_cache": lambda v: legendre(5, v[0]) * legendre(3, v[1]),
    "lru_cache inside": cached_inside,
}


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_functools(name):
    f = OF_FUNCTIONS[name]
    value, gradient = vg.value_and_grad(f)(DATA)
    assert value == pytest.approx(float(f(DATA)))
    assert gradient == pytest.approx(slopes(f, DATA), rel=1e-5, abs=1e-6)
    assert vg.jvp(f, (DATA,), (np.ones(5),))[1] == pytest.approx(gradient.sum(), rel=1e-6)


def test_recursion_with_a_cache_takes_linear_time():
    calls.clear()
    vg.grad(lambda x: legendre(25, x))(0.3)
    assert sorted(calls) == list(range(26))


CALLED: list[tuple[int, ...]] = []


@functools.lru_cache(None)
def with_defaults(n, others=2, k=3):
    CALLED.append((n, others, k))
    return n * others**k


@functools.lru_cache
def with_options(n, *, k=3):
    CALLED.append((n, k))
    return n**k


@pytest.mark.parametrize(
    "call",
    [
        lambda one: with_defaults(one),
        lambda one: with_defaults(one, 5),
        lambda one: with_defaults(one, k=4),
        lambda one: with_defaults(one, k=4, others=5),
        lambda one: with_defaults(n=one),
        lambda one: with_defaults(2, one),
        lambda one: with_defaults(2, k=one),
        lambda one: with_options(one),
        lambda one: with_options(one, k=2),
        lambda one: with_options(2, k=one),
    ],
)
def test_cached_functions_with_defaults(call):
    """Any arguments may be omitted or named, and each result for plain numbers is computed once."""
    expected = call(2)
    CALLED.clear()
    assert vg.adopt(lambda: [call(2), call(2)])() == [expected] * 2 and len(CALLED) <= 1
    slope = (call(1.5 + 1e-6) - call(1.5 - 1e-6)) / 2e-6
    assert vg.grad(lambda x: call(x) + call(2) * 0.0)(1.5) == pytest.approx(slope, rel=1e-6)


def test_cached_results_for_tensors_are_not_kept_between_calls():
    x = vg.Tensor(0.3, requires_grad=True)
    f = vg.adopt(lambda x: legendre(2, x))
    with vg.no_grad():
        assert not f(x).requires_grad
    f(x).backward()
    f(x).backward()
    assert x.grad.item() == pytest.approx(2 * 3 * 0.3)


def test_cached_results_of_a_tensor_written_during_the_call_are_recomputed():
    @functools.lru_cache(None)
    def total(n, y):
        if n == 0:
            return y.sum()
        first = total(0, y)
        y[0] = 5.0
        return first + total(0, y)

    value, gradient = vg.value_and_grad(lambda x: total(1, x * 1.0))(np.ones(2))
    assert value == 8.0 and gradient.tolist() == [1.0, 2.0]


# -- pickle ------------------------------------------------------------------------------------------------------------


class Layer:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        out = np.zeros(5)
        out[:] = self.weight * x
        return out


def test_objects_made_inside_can_be_pickled_and_loaded():
    def f(x):
        layer = pickle.loads(pickle.dumps(Layer(2.0)))
        assert isinstance(layer, Layer) and pickle.loads(pickle.dumps(Layer)) is Layer
        return layer(x).sum()

    assert vg.grad(f)(DATA).tolist() == [2.0] * 5
    stored = vg.adopt(lambda: pickle.dumps([Layer(3.0), Layer]))()
    assert b"viewgrad" not in stored
    made, cls = pickle.loads(stored)
    assert type(made) is Layer and cls is Layer and made.weight == 3.0


def add(a, b):
    return a + b * b


PAIRWISE = {
    "reduce": lambda v: np.frompyfunc(add, 2, 1).reduce(v),
    "reduce with options": lambda v: np.frompyfunc(add, 2, 1).reduce(np.outer(v, v), axis=1, initial=v[0])[2],
    "accumulate": lambda v: (np.frompyfunc(add, 2, 1).accumulate(v) * v).sum(),
    "reduceat": lambda v: np.frompyfunc(add, 2, 1).reduceat(v, [0, 2])[1],
    "outer": lambda v: np.frompyfunc(add, 2, 1).outer(v, v[:2])[3, 1],
}


@pytest.mark.parametrize("name", PAIRWISE)
def test_methods_of_functions_from_python(name):
    f = PAIRWISE[name]
    value, gradient = vg.value_and_grad(f)(DATA)
    assert value == pytest.approx(float(f(DATA))) and gradient == pytest.approx(slopes(f, DATA), rel=1e-5, abs=1e-6)


class Settings:
    rate = 3.0

    def __init__(self):
        self.gain = 2.0


SETTINGS = Settings()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_getattr_static_finds_attributes_of_the_users_objects(is_compiled, monkeypatch):
    def f(x):
        gain = inspect.getattr_static(SETTINGS, "gain", 0.0) * inspect.getattr_static(SETTINGS, "rate")
        return x * gain * inspect.getattr_static(sys.modules[__name__], "SETTINGS").gain

    adopted, x = (vg.compile(f) if is_compiled else vg.adopt(f)), vg.tensor(1.5)
    for _ in range(4):
        assert adopted(x).item() == 18.0
    monkeypatch.setattr(SETTINGS, "gain", 5.0)
    monkeypatch.setattr(Settings, "rate", 2.0)
    assert adopted(x).item() == adopted(x).item() == 75.0


def test_getattr_static_finds_what_adopted_code_has_assigned(monkeypatch):
    monkeypatch.setattr(SETTINGS, "gain", 2.0)

    def f(x):
        SETTINGS.gain = x * x
        return inspect.getattr_static(SETTINGS, "gain")

    assert vg.grad(f)(3.0) == 6.0
