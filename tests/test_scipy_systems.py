"""System objects, partial fractions and smoothing splines of `viewgrad.scipy.signal`."""

import warnings

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.signal")

import viewgrad as vg  # noqa: E402
from viewgrad.scipy import signal as ours  # noqa: E402

RNG = np.random.default_rng(0)
TIMES, AT = np.linspace(0, 3, 7), np.linspace(0.2, 2, 5)
INPUT = np.sin(TIMES)
FUNCTION = ([1.0, 0.3], [1.0, 0.5, 0.2])
ROOTS = ([-0.5], [-0.2 + 0.4j, -0.2 - 0.4j], 1.5)
STATES = ([[0.0, 1.0], [-0.3, -0.4]], [[0.0], [1.0]], [[1.0, 0.2]], [[0.0]])
CONTINUOUS = {
    "step": lambda system, _: system.step(T=TIMES),
    "steps by default": lambda system, _: system.step(),
    "impulse": lambda system, _: system.impulse(T=TIMES, N=5),
    "output": lambda system, _: system.output(INPUT, TIMES),
    "bode": lambda system, _: system.bode(AT),
    "freqresp": lambda system, _: system.freqresp(AT),
    "held": lambda system, _: system.to_discrete(0.1).step(n=5),
    "gbt": lambda system, _: system.to_discrete(0.1, method="gbt", alpha=0.3).impulse(n=5),
    "tf": lambda system, _: (system.to_tf().num, system.to_tf().den),
    "ss": lambda system, _: system.to_ss().step(T=TIMES),
    "zpk": lambda system, _: system.to_zpk().gain,
    "poles": lambda system, _: system.poles,
    "function step": lambda system, module: module.step(system, T=TIMES),
    "function bode": lambda system, module: module.bode(system, AT),
    "function lsim": lambda system, module: module.lsim(system, INPUT, TIMES),
    "function cont2discrete": lambda system, module: module.cont2discrete(system, 0.1).step(n=4),
}
DISCRETE = {
    "step": lambda system, _: system.step(n=6),
    "impulse": lambda system, _: system.impulse(n=6),
    "output": lambda system, _: system.output(INPUT, None),
    "bode": lambda system, _: system.bode(AT),
    "freqresp": lambda system, _: system.freqresp(AT, whole=True),
    "tf": lambda system, _: system.to_tf().den,
    "ss": lambda system, _: system.to_ss().step(n=5),
    "function dstep": lambda system, module: module.dstep(system, n=5),
    "function dlsim": lambda system, module: module.dlsim(system, INPUT),
}


def flat(result):
    if isinstance(result, (tuple, list)):
        return [item for each in result for item in flat(each)]
    return [result]


def arrays(result):
    return [np.asarray(each.detach() if isinstance(each, vg.Tensor) else each) for each in flat(result)]


def compare(call, parts, *, sort=False):
    """Compare values with SciPy's, and the gradient with central differences along a direction."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = arrays(call(theirs, parts))
        leaves = [vg.Tensor(np.array(part), requires_grad=True) for part in parts]
        result = call(ours, leaves)
        found = arrays(result)
        assert [each.shape for each in found] == [each.shape for each in expected]
        for one, other in zip(found, expected):
            one, other = (np.sort_complex(each) if sort else each for each in (one, other))
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
        if sort:
            return
        directions = [RNG.standard_normal(np.shape(part)) for part in parts]
        for place, part in enumerate(parts):
            if np.iscomplexobj(part):
                directions[place] = np.array([0.3 + 0.2j, 0.3 - 0.2j])
        places = [place for place, each in enumerate(flat(result)) if getattr(each, "requires_grad", False)]
        assert places
        weights = {place: RNG.standard_normal(found[place].shape) for place in places}
        loss = sum((flat(result)[place].real * weights[place]).sum() for place in places)
        gradients = vg.autograd.grad(loss, leaves, allow_unused=True)
        slope = sum(
            np.sum(np.conj(each.detach().numpy()) * direction).real
            for each, direction in zip(gradients, directions)
            if each is not None
        )

        def at(step):
            values = arrays(call(theirs, [np.array(part) + step * d for part, d in zip(parts, directions)]))
            return sum(np.sum(values[place].real * weights[place]) for place in places)

        np.testing.assert_allclose(slope, (at(1e-6) - at(-1e-6)) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_systems_in_continuous_time(name):
    for parts, maker in ((FUNCTION, "TransferFunction"), (ROOTS, "ZerosPolesGain"), (STATES, "lti")):
        if (name, maker) in (("steps by default", "lti"), ("tf", "lti")):
            continue  # the number of times, or of coefficients, differs nearby
        given = [np.array([[0.3]]) if np.shape(part) == (1, 1) else part for part in parts] if name == "zpk" else parts
        compare(
            lambda module, parts, maker=maker: CONTINUOUS[name](getattr(module, maker)(*parts), module),
            given,
            sort=name in ("poles", "steps by default"),
        )


@pytest.mark.parametrize("name", DISCRETE)
def test_systems_in_discrete_time(name):
    for parts, maker in ((FUNCTION, "TransferFunction"), (ROOTS, "dlti"), (STATES, "StateSpace")):
        compare(
            lambda module, parts, maker=maker: DISCRETE[name](getattr(module, maker)(*parts, dt=0.1), module), parts
        )


def test_systems_without_history_are_scipy_objects():
    system = ours.lti([1.0], [1.0, 0.5])
    assert isinstance(system, theirs.lti) and isinstance(system, ours.lti) and isinstance(system, ours.TransferFunction)
    tracked = ours.lti(vg.Tensor([1.0], requires_grad=True), [1.0, 0.5])
    assert isinstance(tracked, ours.TransferFunction) and isinstance(tracked, ours.lti)
    assert not isinstance(tracked, ours.dlti) and ours.StateSpace(tracked).A.requires_grad is False
    assert ours.StateSpace(tracked).C.requires_grad and "dt: None" in repr(tracked)
    for wrong in (
        lambda: ours.lti(tracked),
        lambda: ours.TransferFunction(tracked.num),
        lambda: ours.dlti(1, 2, 3, 4, 5),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError):
        ours.StateSpace(vg.Tensor(np.eye(2), requires_grad=True), np.ones((3, 1)), np.ones((1, 2)), np.zeros((1, 1)))


def test_numerator_with_one_row_is_normalized_as_in_scipy():
    for num in ([[0.0, 1.0, 0.3]], [[0.0, 1.0], [0.0, 2.0]], [0.0, 0.0], [1e-15, 2.0]):
        with pytest.warns(theirs.BadCoefficients):
            expected = theirs.normalize(num, [2.0, 1.0])
        with pytest.warns(theirs.BadCoefficients):
            found = ours.normalize(vg.Tensor(num, requires_grad=True), [2.0, 1.0])
        for one, other in zip(arrays(found), expected):
            np.testing.assert_allclose(one, other)
            assert one.shape == other.shape
    with pytest.raises(ValueError, match="nonzero"):
        ours.normalize(vg.Tensor([1.0], requires_grad=True), [0.0])


@pytest.mark.parametrize("poles", [[-1.0, -2.0], [-1.0 + 1.0j, -1.0 - 1.0j]])
def test_gains_that_place_poles(poles):
    def place(module, parts):
        return module.place_poles(
            *(each if isinstance(each, vg.Tensor) else np.array(each) for each in parts), np.array(poles)
        ).gain_matrix

    compare(place, ([[0.1, 1.0], [-1.0, -0.2]], [[0.3], [1.0]]))
    if not np.iscomplexobj(poles):
        compare(
            lambda module, parts: module.place_poles(np.diag([1.0, 2.0]), np.ones((2, 1)), *parts).gain_matrix,
            [np.array(poles)],
        )
    with pytest.raises(vg.errors.UnsupportedFunctionError, match="not unique"):
        ours.place_poles(vg.Tensor(np.eye(2), requires_grad=True), np.eye(2), np.array([-1.0, -2.0]))


@pytest.mark.parametrize("kind", ["min", "max", "avg"])
def test_roots_that_are_close_count_as_one(kind):
    compare(
        lambda module, parts: module.unique_roots(*parts, 2e-2, kind), [np.array([0.0, 1.3, 1.31, 2.8, 1.25, 1.305])]
    )
    with pytest.raises(ValueError, match="rtype"):
        ours.unique_roots(vg.Tensor([1.0], requires_grad=True), rtype="median")


SAMPLES, IMAGE = RNG.standard_normal(60), RNG.standard_normal((40, 50))


@pytest.mark.parametrize(
    ("name", "parts", "options"),
    [
        ("symiirorder2", (SAMPLES, 0.5, 0.7), {}),
        ("symiirorder2", (IMAGE, 0.3, 1.0), {"precision": 1e-4}),
        ("symiirorder2", (SAMPLES, 0.4), {"omega": 0.0}),
        ("cspline1d", (SAMPLES, 2.5), {}),
        ("cspline2d", (IMAGE, 5.0), {}),
        ("spline_filter", (IMAGE, 0.1), {}),
        ("spline_filter", (IMAGE,), {}),
    ],
)
def test_smoothing_splines(name, parts, options):
    def call(module, given):
        numbers = [float(each) if module is theirs and not np.ndim(each) else each for each in given]
        return getattr(module, name)(*numbers, **options)

    compare(call, parts)


def test_splines_raise_as_in_scipy():
    for name, *parts in (("symiirorder2", 1.2, 0.7), ("symiirorder2", 0.999, 0.1), ("cspline1d", 0.001)):
        for module in (theirs, ours):
            with pytest.raises(ValueError):
                getattr(module, name)(vg.Tensor(SAMPLES, requires_grad=True) if module is ours else SAMPLES, *parts)
    with pytest.raises(vg.errors.UnsupportedFunctionError, match="omega"):
        ours.symiirorder2(vg.Tensor(SAMPLES, requires_grad=True), 0.5, np.pi)


@pytest.mark.parametrize("name", ["step", "impulse"])
def test_times_by_default_depend_on_the_system(name):
    def combined(module, a):
        times, values = getattr(module, name)((a, *map(np.array, STATES[1:])))
        return (np.cos(np.arange(100)) * (times + values)).sum()

    a, direction, h = np.array(STATES[0]), np.array([[0.3, -0.2], [0.5, 0.4]]), 1e-6
    leaf = vg.Tensor(a, requires_grad=True)
    (slope,) = vg.autograd.grad(combined(ours, leaf), [leaf])
    wanted = (combined(theirs, a + h * direction) - combined(theirs, a - h * direction)) / (2 * h)
    np.testing.assert_allclose((slope.numpy() * direction).sum(), wanted, rtol=1e-6)


def test_times_by_a_multiple_eigenvalue_are_refused():
    system = (vg.Tensor([[0.0, 1.0], [-1.0, -2.0]], requires_grad=True), *STATES[1:])
    with pytest.raises(vg.errors.UnsupportedFunctionError, match="pass T"):
        ours.step(system)
    assert ours.step(system, T=TIMES)[1].requires_grad
