"""The fast path of transforms of compiled functions, and when it is not taken."""

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import forward_ad


def smoothed(rates, sales, start):
    level = vg.zeros(len(sales))
    level[0] = start
    for t in range(1, len(sales)):
        level[t] = rates[0] * sales[t] + (1 - rates[0]) * level[t - 1] * rates[1]
    return ((level - sales) ** 2).sum()


RATES, SALES, START = np.array([0.3, 0.9]), np.array([1.0, 2.0, -1.0, 0.5, 3.0]), 0.7
WANTED = vg.func.value_and_grad(smoothed, (0, 1, 2))(RATES, SALES, START)


def same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert (type(ours), np.shape(ours)) == (type(theirs), np.shape(theirs))
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)
        ours, theirs = (each.detach().numpy() if isinstance(each, vg.Tensor) else each for each in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.fixture(params=["python", "numba"])
def compiled(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    made = vg.compile(smoothed, executor=request.param)
    for _ in range(3):
        vg.func.grad(made, (0, 1, 2))(RATES, SALES, START)
    assert len(made.cache.fast_calls) == 1
    return made


def forbidden(*args):
    raise AssertionError("the function was called by the transform")


@pytest.mark.parametrize("of", [np.array, vg.Tensor])
def test_the_fast_path_matches_the_transform(compiled, of, monkeypatch):
    both = vg.func.value_and_grad(compiled, (2, 0, 1))
    monkeypatch.setattr(type(compiled), "__call__", forbidden)
    wanted = [WANTED[0], *WANTED[1]]
    wanted_tensors = [vg.Tensor(each) for each in wanted]
    value, (by_start, by_rates, by_sales) = both(of(RATES), of(SALES), START)
    same([value, by_rates, by_sales, by_start], wanted if of is np.array else wanted_tensors)
    if of is vg.Tensor:
        assert not value.requires_grad and value.grad_fn is None and not by_rates.requires_grad
    by_rates[0] = 99.0  # nothing else holds it
    value, (_, again, _) = both(of(RATES), vg.Tensor(SALES), START)
    same([value, again], wanted_tensors[:2])
    with vg.no_grad():
        found = vg.func.grad(compiled, (0, 1, 2))(of(RATES), of(SALES), START)
    same(found, (wanted if of is np.array else wanted_tensors)[1:])


def test_tensors_with_history_take_the_general_path(compiled):
    leaf = vg.Tensor(RATES, requires_grad=True)
    value, (by_rates, *_) = vg.func.value_and_grad(compiled, (0, 1, 2))(leaf * 1.0, SALES, START)
    assert value.requires_grad and by_rates.requires_grad
    second = vg.func.hessian(lambda rates: smoothed(rates, SALES, START))(RATES)
    (found,) = vg.autograd.grad(by_rates.sum(), leaf)
    np.testing.assert_allclose(found, second.sum(0), rtol=1e-9)
    outer = vg.func.grad(lambda rates: vg.func.grad(compiled, (0, 1, 2))(rates, SALES, START)[0].sum())(RATES)
    np.testing.assert_allclose(outer, second.sum(0), rtol=1e-9)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vg.Tensor(RATES), vg.ones(2))
        pushed = forward_ad.unpack_dual(vg.func.grad(compiled, (0, 1, 2))(dual, SALES, START)[0]).tangent
    np.testing.assert_allclose(pushed.detach(), second.sum(0), rtol=1e-9)


def test_other_argument_types_take_the_general_path(compiled):
    found = vg.func.grad(compiled)(RATES, SALES, START)
    same([found], [WANTED[1][0]])
    turned = SALES[::-1].copy()[::-1]  # another memory layout
    same([vg.func.grad(compiled)(RATES, turned, START)], [WANTED[1][0]])
    found = vg.func.grad(compiled, (-3, 1, 2))(RATES, SALES, START)
    same(found, WANTED[1])
    with pytest.raises(ValueError, match="twice"):
        vg.func.grad(compiled, (0, 0))(RATES, SALES, START)
    with pytest.raises(vg.errors.DifferentiabilityError):
        vg.func.grad(compiled, (0, 1, 2))(RATES, np.arange(5), START)
    longer = vg.func.grad(compiled, (0, 1, 2))(RATES, np.ones(6), START)
    same(longer, vg.func.grad(smoothed, (0, 1, 2))(RATES, np.ones(6), START))


FACTOR = 2.0


def test_the_fast_path_detects_changes(monkeypatch):
    def program(x, y):
        total = vg.zeros(1)
        for i in range(len(x)):
            if x[i] > 0:
                total[0] += FACTOR * x[i] * y[i]
            else:
                total[0] -= x[i]
        return total[0]

    compiled = vg.compile(program, executor="python")
    both = vg.func.value_and_grad(compiled, (0, 1))
    x = np.array([1.0, 2.0, -3.0])
    for _ in range(3):
        same(both(x, x)[1], vg.func.grad(program, (0, 1))(x, x))
    for other in (-x, x * 3, x[::-1]):
        same(both(other, x)[1], vg.func.grad(program, (0, 1))(other, x))
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    same(both(x, x)[1], vg.func.grad(program, (0, 1))(x, x))


def test_arguments_that_are_written_to_keep_their_values():
    def program(x):
        x[1:] *= x[:-1]
        return (x * x).sum()

    compiled = vg.compile(program, executor="python")
    x = np.array([1.0, 2.0, -3.0])
    for _ in range(4):
        same([vg.func.grad(compiled)(x)], [vg.func.grad(program)(x)])
        assert x.tolist() == [1.0, 2.0, -3.0]


@pytest.fixture
def native():
    pytest.importorskip("numba")
    made = vg.compile(smoothed, executor="numba")
    for _ in range(3):
        vg.func.grad(made, (0, 1, 2))(RATES, SALES, START)
    return made


def test_value_and_gradient_share_reused_buffers(native, monkeypatch):
    ((_, way),) = native.cache.fast_calls
    monkeypatch.setattr(type(way.program), "run", forbidden)
    both = vg.func.value_and_grad(native, (0, 1, 2))
    kept = []
    for _ in range(3):
        value, gradients = both(RATES, SALES, START)
        same([value, *gradients], [WANTED[0], *WANTED[1]])
        gradients[1][...] = np.nan  # nothing else holds it
        (rooms,) = way.runner._spare
        kept.append([id(room) for room in rooms])
        for room in rooms[way.runner.zeros :]:
            room.fill(np.nan)  # only arrays that must begin with zeros do
        del rooms
    assert kept[0] == kept[1] == kept[2] and way.runner.zeros < len(kept[0])


def test_arguments_that_need_conversion_run_separately(native):
    ((_, way),) = native.cache.fast_calls
    fixed = SALES.copy()
    fixed.flags.writeable = False
    way.runner.run = forbidden
    same(vg.func.grad(native, (0, 1, 2))(RATES, fixed, START), WANTED[1])
    with pytest.raises(AssertionError, match="called"):
        vg.func.grad(native, (0, 1, 2))(RATES, SALES, START)


def test_programs_that_write_to_inputs_or_return_arrays_run_separately():
    pytest.importorskip("numba")

    def written(x):
        x *= 2.0
        return (x * x).sum()

    def kept(x):
        y = vg.zeros(1)
        y[0] = (x * x).sum()
        return y

    for function in (written, kept):
        made = vg.compile(function, executor="numba")
        for _ in range(3):
            made(vg.Tensor(SALES) * vg.Tensor(1.0, requires_grad=True))
        assert all(way.runner is None for _, way in made.cache.fast_calls)


def test_guard_failures_in_combined_runs():
    pytest.importorskip("numba")

    def bent(x):
        y = x * 1.0
        for i in range(len(y)):
            y[i] = y[i] * y[i] if y[i] > 0 else 3 * y[i]
        return y.sum()

    made = vg.compile(bent, executor="numba")
    up, down = np.array([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 3.0])
    for _ in range(3):
        vg.func.grad(made)(up)
    ((_, way),) = made.cache.fast_calls
    assert way.runner is not None
    np.testing.assert_array_equal(vg.func.grad(made)(down), [2.0, 3.0, 6.0])
    np.testing.assert_array_equal(vg.func.grad(made)(up), 2 * up)


def test_value_and_grad_inside_a_transform_keeps_outer_history():
    x = np.array([1.0, 2.0])
    compiled = vg.compile(lambda x, t: (x * x).sum() * t)
    programs = {
        "value": (lambda t: compiled.value_and_grad(x, t)[0] * t, 30.0),
        "gradient": (lambda t: compiled.value_and_grad(x, t)[1].sum() * t, 36.0),
        "point": (lambda t: compiled.value_and_grad(x * t, 2.0)[0], 60.0),
        "captured": (lambda t: vg.compile(lambda x: (x * x).sum() * t).value_and_grad(x)[0] * t, 30.0),
        "plain": (lambda t: compiled.value_and_grad(x, 2.0)[0] * t, 10.0),
    }
    for _ in range(3):
        for program, slope in programs.values():
            assert vg.grad(program)(3.0) == pytest.approx(slope)
    value, gradient = compiled.value_and_grad(x, 2.0)
    assert type(value) is float and type(gradient) is np.ndarray
