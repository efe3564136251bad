"""Conversions of tensors with a history to plain numbers: allowed, warned of or refused, by line and by mode."""

import array
import functools
import linecache
import logging
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.errors import (
    AutogradError,
    DetachedConversionError,
    DetachedConversionWarning,
    UnsupportedFunctionError,
)
from viewgrad.func import transforms as func  # transforms that do not adopt
from viewgrad.func.checkpoint import checkpoint

LOG = logging.getLogger("test_conversions")


def raised_by(action):
    """Return the viewgrad error that an action raises, directly or as the cause of NumPy's."""
    with pytest.raises((DetachedConversionError, ValueError)) as caught:
        action()
    error = caught.value if isinstance(caught.value, AutogradError) else caught.value.__cause__
    assert isinstance(error, DetachedConversionError), caught.value
    return error


# -- writes to plain arrays --------------------------------------------------------------------------------------------


def store(a):
    plain = np.zeros(3)
    plain[0] = a * 2
    return plain.sum() * a


def store_added(a):
    plain = np.zeros(3)
    plain[1] += a * 2
    return plain.sum() * a


def store_integer(a):
    plain = np.zeros(3, int)
    plain[1] = a * 2
    return plain.sum() * a


def store_complex(a):
    plain = np.zeros(3, complex)
    plain[1] = a * 2
    return plain.real.sum() * a


def store_flat(a):
    plain = np.zeros((2, 2))
    plain.flat[1] = a * 2
    return plain.sum() * a


def store_record(a):
    plain = np.zeros(2, [("value", float)])
    plain["value"][0] = a * 2
    return plain["value"].sum() * a


def store_in_array_module(a):
    plain = array.array("d", [0.0, 0.0])
    plain[0] = a * 2
    return sum(plain) * a


def fill(a):
    plain = np.zeros(3)
    plain.fill(a * 2)
    return plain.sum() * a


def put(a):
    plain = np.zeros(3)
    np.put(plain, [0], a * 2)
    return plain.sum() * a


def full(a):
    return np.full(3, a * 2).sum() * a


def array_of_numbers(a):
    return np.array([a * 2, 1.0], float).sum() * a


def array_of_records(a):
    return np.array([(a * 2,)], [("value", float)])["value"].sum() * a


def cast_objects(a):
    return np.array([a * 2], object).astype(float).sum() * a


def iterated(a):
    return np.fromiter((a * 2 for _ in range(2)), float).sum() * a


def of_math(a):
    return math.sin(a * 2) * a


WRITES = [
    store, store_added, store_integer, store_complex, store_flat, store_record, store_in_array_module, fill, put, full,
    array_of_numbers, array_of_records, cast_objects, iterated, of_math,
]  # fmt: skip


@pytest.mark.parametrize("program", WRITES, ids=lambda program: program.__name__)
def test_plain_arrays_and_functions_refuse_tensors_with_a_history(program):
    if program is store_flat:  # NumPy's error hides ours
        with pytest.raises(ValueError, match="single item"), pytest.warns(DetachedConversionWarning) as told:
            program(vg.Tensor(3.0, requires_grad=True))
        message = str(told[0].message)
    else:
        message = str(raised_by(lambda: program(vg.Tensor(3.0, requires_grad=True))))
    assert "viewgrad." in message or "use the tensor itself" in message
    assert "detach()" in message
    for transform in (func.grad(program), func.jacrev(program), func.jacfwd(program), func.hessian(program)):
        with pytest.raises(DetachedConversionError):
            transform(3.0)
    with pytest.raises(DetachedConversionError):
        func.jvp(program, (3.0,), (1.0,))
    compiled = vg.compile(program, executor="python", adopt=False)
    leaf = vg.Tensor(3.0, requires_grad=True)
    for _ in range(3):
        with pytest.raises(DetachedConversionError):
            compiled(leaf)
    plain = program(vg.Tensor(3.0))
    assert isinstance(plain, vg.Tensor) and float(plain) == program(3.0)


def test_writes_to_plain_arrays_name_the_array_to_change():
    a = vg.Tensor(3.0, requires_grad=True)
    for program in (store, store_added, store_integer, fill, put, full):
        assert "zeros(), empty() or array()" in str(raised_by(functools.partial(program, a))), program

    def added():
        plain = np.zeros(3)
        plain += a

    for refused in (added, lambda: np.putmask(np.zeros(3), [True, False, True], a), lambda: np.copyto(np.zeros(3), a)):
        with pytest.raises(TypeError, match=r"plain array.*viewgrad\.numpy"):
            refused()


def test_objects_keep_tensors():
    def program(a):
        plain = np.zeros(2, object)
        plain[0] = a * 2
        return plain[0] * a

    assert func.grad(program)(3.0).item() == 12.0


# -- conversions that the program asks for -----------------------------------------------------------------------------


def compared(a):
    return a * 2 if float(a) > 1.0 else a


def in_while(a):
    while abs(float(a)) < 5.0:
        a = a * 2
    return a


def in_assertion(a):
    assert math.isfinite(a), float(a)
    return a * 2


def checked_by_math(a):
    return a * 2 if math.isclose(a, 3.0) else a


def printed(a):
    print(float(a), f"{float(a):.3f}", "%.2f" % a)  # noqa: UP031
    return a * 2


def logged(a):
    LOG.info("loss %f", a)
    LOG.warning("loss %s", float(a))
    return a * 2


def sorted_by_value(a):
    return sorted([a * 2, a], key=float)[1]


def in_comprehension(a):
    return sum(each for each in [a * 2, -a] if float(each) > 0)


def rounded(a):
    return a * 2 + (math.floor(float(a)) - int(a)) + 0 * round(float(a))


def cut(a):
    return a * 2 - int(a)


CHOICES = [
    compared, in_while, in_assertion, checked_by_math, printed, logged, sorted_by_value, in_comprehension, rounded, cut,
]  # fmt: skip


@pytest.mark.parametrize("program", CHOICES, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("error::viewgrad.errors.DetachedConversionWarning")
def test_choices_and_texts_are_silent_everywhere(program):
    leaf = vg.Tensor(3.0, requires_grad=True)
    assert grad(program(leaf), leaf)[0].tolist() == 2.0
    assert func.grad(program)(3.0).tolist() == 2.0
    assert func.jvp(program, (3.0,), (1.0,))[1].tolist() == 2.0
    assert func.jacfwd(program)(3.0).tolist() == 2.0


def number(a):
    return float(a) * a


def named(a):
    value = float(a)
    return value * a


def appended(a):
    values = []
    values.append(float(a * 2))
    return sum(values) * a


def listed(a):
    return sum(map(float, [a, a])) * a


def of_logarithm(a):
    return np.log(float(a)) + a


def imaginary(a):
    return complex(a).real * a


def imaginary_of_two(a):
    return complex(a, 1.0).real * a


@pytest.mark.parametrize("program", [number, named, appended, listed, of_logarithm, imaginary, imaginary_of_two])
def test_numbers_that_results_may_depend_on_are_refused_in_transforms(program):
    for transform in (func.grad, func.jacrev, func.jacfwd, func.hessian):
        with pytest.raises(DetachedConversionError, match=r"detach\(\)"):
            transform(program)(3.0)
    with pytest.raises(DetachedConversionError):
        vg.compile(program, executor="python", adopt=False)(vg.Tensor(3.0, requires_grad=True))
    if program is not appended:
        with pytest.warns(DetachedConversionWarning):
            program(vg.Tensor(3.0, requires_grad=True))

    def detached(a):
        return float(a.detach()) * a

    assert func.grad(detached)(3.0).tolist() == 3.0


@pytest.mark.filterwarnings("error")
def test_expression_statements_are_silent_outside_transforms():
    loss = vg.Tensor(3.0, requires_grad=True) * 2
    losses = []
    float(loss)
    losses.append(float(loss))
    losses.append(loss.item() / 2)
    source = "last = float(loss)\nhistory = {'loss': loss.item()}\ntotal = 0.0\ntotal += float(loss)\n"
    run_source(source, loss=loss)
    assert losses == [6.0, 3.0]


def test_conversions_to_numbers_warn_outside_transforms():
    loss = vg.Tensor(3.0, requires_grad=True) * 2
    with pytest.warns(DetachedConversionWarning, match="plain number"):
        run_source("half = float(loss) / 2", loss=loss)
    with pytest.warns(DetachedConversionWarning, match="plain number"):
        value = loss.item()
    assert value == 6.0


COUNT = iter(range(10**9))


def run_source(source, **names):
    """Run a module's code with its source available."""
    file = f"<test_conversions {next(COUNT)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names


def test_code_without_source_is_judged_by_its_instructions():
    def made(body):
        names = {"np": np}
        exec(f"def program(a):\n{body}", names)
        return names["program"]

    kept = made("    while float(a) < 5.0:\n        a = a * 2\n    return a if not float(a) < 0 else -a")
    assert func.grad(kept)(3.0).tolist() == 2.0
    uses = ("if float(a) < 2:", "if float(a) > limit:", "if a.item() == 300 or float(a) == 1:", "f'{float(a):.3f}'; ")
    for use in uses:
        logged = made(f"    limit = 2\n    {use} pass\n    return a * 2")
        assert func.grad(logged)(3.0).tolist() == 2.0, use
    for body in ("    p = np.zeros(2)\n    p[0] = a\n    return p.sum() * a", "    return float(a) * a"):
        with pytest.raises(DetachedConversionError):
            func.grad(made(body))(3.0)


# -- item() and tolist() in transforms ---------------------------------------------------------------------------------


def test_items_are_differentiable_in_transforms():
    def last(x):
        return (x**2).sum().item()

    def middle(x):
        return (x * x.sum().item()).sum()

    def elements(x):
        first, second = (x * x).tolist()
        return first * 3.0 + second

    def one(x):
        return x.reshape(1, 2).item(1) * x.item(0)

    x = np.array([1.0, 2.0])
    for program, slope in ((last, [2, 4]), (middle, [6, 6]), (elements, [6, 4]), (one, [2, 1])):
        assert func.grad(program)(x).tolist() == slope, program
        assert func.jacfwd(program)(x).tolist() == slope
        compiled = vg.compile(program, executor="python", adopt=False)
        assert float(compiled(vg.Tensor(x))) == program(vg.Tensor(x))
        assert compiled.value_and_grad(x)[1].tolist() == func.grad(compiled)(x).tolist() == slope
        with pytest.raises(DetachedConversionError):  # the compiled function detaches as the function does
            compiled(vg.Tensor(x, requires_grad=True))
    assert func.hessian(last)(x).tolist() == [[2, 0], [0, 2]]
    assert func.grad(lambda a: a.item() * a.tolist())(3.0).tolist() == 6.0
    with pytest.raises(ValueError, match="size 1"):
        func.grad(lambda x: x.item())(x)
    assert type(func.grad(lambda x: x.detach().item() * x)(3.0).item()) is float


def test_data_is_not_read_in_transforms():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert not (x * 2).data.requires_grad
    for transform in (func.grad, lambda f: lambda x: func.jvp(f, (x,), (x,)), vg.grad):
        for program in (lambda x: (x.data * x).sum(), lambda x: x[0] * float(x.data[1])):
            with pytest.raises(DetachedConversionError, match="data of a tensor"):
                transform(program)(np.array([1.0, 2.0]))
        transform(lambda x: (x * x.detach().data).sum())(np.array([1.0, 2.0]))


def test_object_arrays_hold_tensors():
    def program(x):
        parts = x.astype(object)
        parts[0] = parts[0] * parts[1]
        return parts.sum() * x[0]

    x = np.array([2.0, 3.0])
    for transform in (vg.grad, vg.jacrev, lambda f: lambda x: [vg.jvp(f, (x,), (e,))[1] for e in np.eye(2)]):
        np.testing.assert_allclose(transform(program)(x), [2 * 6 + 3.0, 4 + 2.0])
    assert type(vg.Tensor([1.0]).astype(object)) is np.ndarray


def test_functions_of_math_without_a_derivative_are_refused_in_forward_mode():
    for transform in (vg.grad, lambda f: lambda x: vg.jvp(f, (x,), (1.0,))):
        with pytest.raises(UnsupportedFunctionError, match=r"math\.ulp"):
            transform(lambda x: math.ulp(x) * x)(1.5)


# -- drawn programs ----------------------------------------------------------------------------------------------------

SINKS = [
    "p = np.zeros(3); p[{i}] = {v}; r = p.sum()",
    "p = np.ones(3); p[{i}] *= {v}; r = p.sum()",
    "p = np.zeros(3); p[{i}:] = {v}; r = p.sum()",
    "p = np.zeros((2, 3)); p[0][{i}] = {v}; r = p.sum()",
    "p = np.zeros((2, 3)); p[1, {i}] = {v}; r = p.sum()",
    "p = np.zeros(3); p.flat[{i}] = {v}; r = p.sum()",
    "p = np.zeros(3); p.fill({v}); r = p.sum()",
    "p = np.zeros(3); np.put(p, [{i}], {v}); r = p.sum()",
    "p = np.zeros(3); np.place(p, p == 0, {v}); r = p.sum()",
    "p = np.zeros(3); np.copyto(p, {v}); r = p.sum()",
    "p = np.zeros(3); np.add.at(p, [{i}], {v}); r = p.sum()",
    "p = np.zeros(3, np.float32); p[{i}] = {v}; r = p.sum()",
    "p = np.zeros(3, complex); p[{i}] = {v}; r = p.real.sum()",
    "p = array.array('d', [0.0]); p.append({v}); r = p[1]",
    "r = np.full(2, {v}).sum()",
    "r = np.array([{v}, 1.0], float).sum()",
    "r = np.array([[{v}], [{v}]]).sum()",
    "r = np.fromiter([{v}], float).sum()",
    "r = np.array([{v}], object).astype(float).sum()",
    "r = np.float64({v})",
    "r = float({v})",
    "r = 1.0 + float({v})",
    "r = {v}.item()",
    "r = [{v}][0].tolist()",
    "r = complex({v}, 2.0).real",
    "r = math.exp({v})",
    "r = sum(map(float, [{v}]))",
    "q = []\n    q.append(float({v}))\n    r = q[0]",
    "r = (lambda z: float(z))({v})",
    "r = [float(z) for z in [{v}]][0]",
    "r = max(float({v}), 0.0)",
    "r = float({v}) if float({v}) > -9.0 else 0.0",
    "r = {v} if float({v}) > 0.5 else -{v}",
    "r = {v}\n    if int({v}) > 1: r = r * 2",
    "r = {v} - int({v})",
    "d = dict(k=float({v})); r = d['k']",
    "r = {v}; assert float({v}) > -99.0, float({v})",
    "r = {v}; print(float({v}), end='')",
]
VALUES = ["(a * 2)", "(a * a)", "abs(a)", "np.sin(a)", "(a + a * a)"]
RESULTS = ["r * a", "r + a", "r", "r * r - a"]


def source_of(sink, value, result, i):
    body = sink.format(v=value, i=i).replace("; ", "\n    ")
    return f"def program(a):\n    {body}\n    return {result}\n"


@settings(max_examples=80)
@given(st.sampled_from(SINKS), st.sampled_from(VALUES), st.sampled_from(RESULTS), st.integers(0, 2), st.floats(0.6, 2))
def test_drawn_programs_are_correct_or_refused(sink, value, result, i, at):
    """Each way to differentiate gives the derivative of the program on plain numbers, raises an error, or warns outside
    transforms.
    """
    names = run_source(source_of(sink, value, result, i), np=np, math=math, array=array)
    program = names["program"]
    at = round(at, 2) + 0.003  # not an integer, where int() has a jump

    class Number(float):  # the requests that a program may make of a tensor
        def item(self):
            return float(self)

        tolist = item

        def _binary(name):
            return lambda x, y: Number(getattr(float, name)(x, float(y)))

        for _name in ("add", "mul", "sub", "radd", "rmul", "rsub"):
            locals()[f"__{_name}__"] = _binary(f"__{_name}__")

        def __abs__(self):
            return Number(float.__abs__(self))

    def plain(x):
        return float(program(Number(x)))

    expected = (plain(at + 1e-6) - plain(at - 1e-6)) / 2e-6
    leaf = vg.Tensor(at, requires_grad=True)

    def by_leaf():
        return grad(program(leaf), leaf)[0]

    def compiled():
        return vg.compile(program, executor="python", adopt=False).value_and_grad(np.array(at))[1]

    routes = {
        "grad": by_leaf,
        "func.grad": lambda: func.grad(program)(at),
        "func.jvp": lambda: func.jvp(program, (at,), (1.0,))[1],
        "func.jacrev": lambda: func.jacrev(program)(at),
        "compile": compiled,
    }
    for name, route in routes.items():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                found = np.asarray(route())
            except (AutogradError, TypeError) as error:
                text = str(error)
                assert isinstance(error, AutogradError) or "plain array" in text or "not float" in text, name
                continue
            except ValueError as error:
                assert name == "grad", name
                assert isinstance(error.__cause__, DetachedConversionError) or "single item" in str(error)
                continue
        warned = any(issubclass(each.category, DetachedConversionWarning) for each in told)
        if name == "grad" and warned:
            continue
        is_silent = name == "grad" and "q.append" in sink  # a statement of its own, as for a log
        assert is_silent or np.allclose(found, expected, rtol=1e-4), (name, source_of(sink, value, result, i))


@pytest.mark.filterwarnings("error")
def test_checkpointed_functions_convert_as_the_function_does():
    losses = []

    def step(x):
        losses.append(float(x.sum()))
        return x * x

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert grad(checkpoint(step)(x).sum(), x)[0].tolist() == [2.0, 4.0] and losses == [3.0, 3.0]

    def scaled(x):
        return x * x.sum().item()

    with pytest.warns(DetachedConversionWarning):
        plain = grad(scaled(x).sum(), x)[0].tolist()
    with pytest.warns(DetachedConversionWarning):
        assert grad(checkpoint(scaled)(x).sum(), x)[0].tolist() == plain == [3.0, 3.0]
    inside = func.grad(lambda x: checkpoint(scaled)(x).sum())(x.detach())
    assert inside.tolist() == func.grad(lambda x: scaled(x).sum())(x.detach()).tolist() == [6.0, 6.0]


# -- plots -------------------------------------------------------------------------------------------------------------


def test_numbers_computed_by_matplotlib_are_refused_and_plots_are_not():
    pytest.importorskip("matplotlib")
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import colors, mlab, tri
    from matplotlib.figure import Figure

    x = np.linspace(0.0, 3.0, 64)
    axes = Figure().subplots()
    computing = (
        lambda t: mlab.psd(t, NFFT=16)[0].sum(),
        lambda t: axes.psd(t, NFFT=16)[0].sum(),
        lambda t: axes.hist(t)[1].sum(),
        lambda t: colors.rgb_to_hsv(t[:63].reshape(-1, 3) / 3.0).sum(),
        lambda t: tri.LinearTriInterpolator(tri.Triangulation(x, x**2), t)(1.0, 1.5).sum(),
    )
    for function in computing:
        with pytest.raises(DetachedConversionError):
            func.grad(function)(vg.Tensor(x))

    def plotted(t):
        axes.plot(t)
        axes.scatter(t, t**2, c=t)
        axes.fill_between(x, t)
        return (t * t).sum()

    assert np.allclose(func.grad(plotted)(vg.Tensor(x)), 2 * x)
