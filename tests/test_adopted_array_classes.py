"""Classes derived from arrays, and objects that hold arrays, in adopted code: they work or are refused."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.errors import DetachedConversionError


class Signal(np.ndarray):
    """The class of NumPy's guide to subclassing."""

    def __new__(cls, data, rate=1.0):
        made = np.asarray(data).view(cls)
        made.rate = rate
        return made

    def __array_finalize__(self, made):
        self.rate = getattr(made, "rate", 1.0)

    def energy(self):
        return (self**2).sum() * self.rate


class Quantity(np.ndarray):
    """An array with a unit, as in astropy."""

    def __new__(cls, data, unit=None):
        made = np.array(data, dtype=float).view(cls)
        made.unit = unit
        return made

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return getattr(ufunc, method)(*map(np.asarray, inputs), **options).view(Quantity)


class Holder:
    """An object that holds an array and defines `__array__`."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values)


class Operand(np.lib.mixins.NDArrayOperatorsMixin, Holder):
    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inputs = [each.values if isinstance(each, Operand) else each for each in inputs]
        return Operand(getattr(ufunc, method)(*inputs, **options))


HANDLED = {}


class Diagonal:
    """The class of NumPy's guide to dispatch, which compares the functions that it receives."""

    def __init__(self, values):
        self.values = values

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if ufunc is not np.multiply and ufunc not in (np.sin, np.add):
            return NotImplemented
        return Diagonal(ufunc(*[each.values if isinstance(each, Diagonal) else each for each in inputs]))

    def __array_function__(self, function, types, args, options):
        if function is np.trace:
            return self.values.sum()
        return HANDLED[function](*args, **options) if function in HANDLED else NotImplemented


HANDLED[np.sum] = lambda diagonal: diagonal.values.sum() * 2
HANDLED[np.copy] = lambda diagonal, *_: Diagonal(diagonal.values * 2)
HANDLED[np.full_like] = lambda diagonal, value, *_: Diagonal(diagonal.values * value)
DIAGONAL = Diagonal(np.ones(3))


class Sequence:
    def __init__(self, items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, place):
        return self.items[place]


SIGNAL, QUANTITY = Signal([1.0, 2.0, 3.0], 2.0), Quantity([1.0, 2.0, 3.0], "m")
POINT = np.array([1.1, 1.25, 1.6])


# Programs whose gradients are correct.
RIGHT = {
    "an array of a class times a tensor": lambda x: (SIGNAL * x).sum() + (x * SIGNAL).sum() + SIGNAL @ x,
    "a class of values without history": lambda x: (Signal(np.ones(3), 2.0) * x).sum() + SIGNAL.energy() * x[0],
    "a view as that class": lambda x: (np.ones(3).view(Signal) + x).sum() + np.ones(3).view(type=Signal) @ x,
    "a view as ndarray": lambda x: (x.view(np.ndarray) * SIGNAL).sum() + x.view(type=np.ndarray)[0],
    "a matrix": lambda x: x.view(np.matrix).T[0, 0] + (x.view(np.matrix) * x.view(np.matrix).T)[0, 0],
    "functions of arrays of a class": lambda x: np.concatenate([SIGNAL, x]).sum() + np.where(SIGNAL > 1, x, SIGNAL)[1],
    "an object with __array__": lambda x: np.asarray(Holder(x)).sum() + np.array(Holder(x))[0],
    "functions of such an object": lambda x: np.sin(Holder(x)).sum() + np.dot(Holder(x), Holder(x)),
    "lists of such objects": lambda x: np.array([Holder(x), Holder(x)]).sum() + np.vstack([Holder(x), x]).sum(),
    "an object with __array_ufunc__": lambda x: np.asarray(Operand(x) * 2 + x).sum() + np.exp(Operand(x)).values.sum(),
    "a class that compares functions": lambda x: np.trace(np.sin(np.multiply(x, Diagonal(x)))) + np.sum(Diagonal(x)),
    "functions that create": lambda x: np.sum(np.copy(Diagonal(x))) * np.sum(np.full_like(Diagonal(x), x[0])),
    "such an object made outside": lambda x: np.sum(np.add(DIAGONAL, x)) * x[0] + np.trace(np.multiply(DIAGONAL, x)),
    "sequences": lambda x: np.array(Sequence([x[0], 2.0])).sum() + np.asarray([Sequence(x)]).sum(),
    "a deque": lambda x: np.mean(collections.deque([x[0], x[1]], maxlen=2)) + np.array(collections.UserList(x)).sum(),
    "the memory of an array": lambda x: memory_of(np.zeros(3), x),
    "a window that is gone": lambda x: (lambda y: (Signal(y).energy(), y.fill(x[0]), y.sum())[2])(np.zeros(3)),
    "a window of a copy": lambda x: (lambda y, s: (y.__setitem__(0, x[0]), y.sum() + s.sum())[1])(*two_arrays()),
}


def memory_of(made, x):
    memory = made.data
    made[0] = x[0]
    return np.asarray(memory).sum()


def two_arrays():
    made = np.zeros(3)
    return made, Signal(made.copy())


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", RIGHT)
def test_gradients(name):
    f = RIGHT[name]
    value, gradient = vg.value_and_grad(f)(POINT)
    steps = np.eye(3) * 1e-6
    differences = [(float(f(POINT + step)) - float(f(POINT - step))) / 2e-6 for step in steps]
    assert value == pytest.approx(float(f(POINT))) and gradient == pytest.approx(differences, abs=1e-6)
    tangent = vg.jvp(f, (POINT,), (np.ones(3),))[1]
    assert tangent == pytest.approx(sum(differences), abs=1e-6)


def records():
    return np.zeros(3, dtype=[("a", float), ("b", int)])


def in_fields(x):
    table = records()
    table["a"] = x
    return table["a"].sum()


def in_field(x):
    table = records()
    table["a"][0] = x[0]
    return table["a"].sum()


def in_record(x):
    table = records()
    table[0] = (x[0], 1)
    return table["a"].sum()


# Programs that would lose the history, and part of the error.
REFUSED = {
    "a tensor as a class": (lambda x: Signal(x).energy(), "Signal is derived from numpy.ndarray"),
    "a list as a class": (lambda x: Signal([x[0], 1.0]).energy(), "Signal is derived from numpy.ndarray"),
    "a view as a class": (lambda x: x.view(Signal).energy(), "use .* a class that stores it in an attribute"),
    "a view with type=": (lambda x: x.view(type=Signal).energy(), "Signal holds plain numbers"),
    "a view of a dtype as a class": (lambda x: x.view(float, Signal).sum(), "Signal holds plain numbers"),
    "a quantity": (lambda x: (Quantity(x) * 2).sum(), "is converted to a plain array"),
    "a quantity from outside": (lambda x: np.asarray(QUANTITY * x).sum(), "is converted to a plain array"),
    "writing to an array of a class": (lambda x: SIGNAL.copy().__setitem__(0, x[0]), "plain number"),
    "a structured array": (lambda x: np.array([(x[0], 1)], dtype=[("a", float), ("b", int)])["a"], "structured dtype"),
    "a field": (lambda x: in_fields(x), "structured dtype holds plain numbers: use an array for each"),
    "an element of a field": (lambda x: in_field(x), "structured dtype holds plain numbers: use an array for each"),
    "a record": (lambda x: in_record(x), "structured dtype holds plain numbers: use an array for each"),
    "a structured cast": (lambda x: x.astype([("a", float)])["a"].sum(), "plain numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    f, message = REFUSED[name]
    for call in (lambda: vg.grad(f)(POINT), lambda: vg.jvp(f, (POINT,), (np.ones(3),))):
        with pytest.raises((TypeError, vg.errors.AutogradError), match=message):
            call()


def kept_by_class(y):
    return Signal(y)


def kept_by_view(y):
    return y.view(Signal)


def kept_by_view_of_view(y):
    return Signal(y)[1:].T


def kept_by_masked_array(y):
    return np.ma.array(y, copy=False)


def kept_from_buffer(y):
    return np.frombuffer(y)


@pytest.mark.parametrize(
    "keeps", [kept_by_class, kept_by_view, kept_by_view_of_view, kept_by_masked_array, kept_from_buffer]
)
def test_writes_to_memory_shared_with_a_plain_array_raise(keeps):
    """Code that reads the other array would get the value without its history."""

    def f(x):
        buffer = np.zeros(3)
        other = keeps(buffer)
        buffer[1] = 2.0
        assert other.sum() == 2.0
        buffer[1] = x[0]
        return other.sum()

    assert f(POINT) == 1.1
    for call in (
        lambda: vg.grad(f)(POINT),
        lambda: vg.jvp(f, (POINT,), (np.ones(3),)),
        lambda: vg.grad(vg.compile(f))(POINT),
    ):
        with pytest.raises(DetachedConversionError, match="whose memory is shared with a plain array"):
            call()
    compiled = vg.compile(f)
    assert [float(compiled(POINT * i)) for i in range(4)] == pytest.approx([0.0, 1.1, 2.2, 3.3])


def test_views_as_a_class_share_the_memory():
    def f(x):
        buffer = np.zeros(3)
        signal = buffer.view(Signal)
        signal[0] = 5.0
        buffer[1] = 2.0
        return (buffer * x).sum() + signal[1] * x[2]

    assert vg.grad(f)(POINT).tolist() == [5.0, 2.0, 2.0]


def test_classes_share_the_memory_that_they_are_created_over():
    def f(x):
        buffer = np.array([1.0, 2.0, 3.0])
        before = buffer * x
        signal = np.ndarray.__new__(Signal, (3,), float, buffer)
        signal[0] = 5.0
        signal /= 2.0
        buffer[1] = 4.0
        return (before + buffer * x).sum() + signal[1] * x[2]

    assert f(np.ones(3)) == 18.0
    assert vg.grad(f)(np.ones(3)).tolist() == [3.5, 6.0, 8.5]


def test_memory_of_a_read_only_array_stays_read_only():
    def f(x):
        signal = np.ndarray.__new__(Signal, (3,), float, np.frombuffer(bytes(24)))
        signal[0] = 5.0
        return x * signal

    with pytest.raises(ValueError, match="read-only"):
        f(1.0)
    with pytest.raises(ValueError, match="read-only"):
        vg.grad(f)(1.0)
