"""Edge cases that NumPy's own tests have, called with tensors: NumPy's values, or its class of error."""

import math
import operator
import warnings
from collections import namedtuple

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import grad

Place = namedtuple("Place", ["row", "column"])
TABLE = np.arange(12.0).reshape(3, 4)


def after(write, array):
    """Return an array that was written to."""
    write(array)
    return array


CASES = {
    # values
    "histogram2d of points on the edges": lambda m: m.histogram2d(
        m.array([1.0, 1, 2, 3, 4, 4, 4, 5]), m.array([1.0, 3, 2, 0, 1, 2, 3, 4]), (6, 5), [[0, 6], [0, 5]], density=True
    ),
    "density of bins of several widths": lambda m: m.histogram(
        m.arange(10.0), m.array([0, 1, 3, 6, 10.0]), density=True
    ),
    "edges are rounded alike": lambda m: m.histogram(m.array([1.0, 2, 50, 99]), bins=11, range=(0, 100)),
    "single precision": lambda m: m.histogram(m.array([0.5, 1.5], dtype="f4"), bins=3, range=(0, 2))[1],
    "edges of both kinds": lambda m: m.histogramdd(
        m.array([[0.0, 0.5], [1.0, 0.25], [0.3, 0.4]]), bins=[3, m.array([-1, 2, m.inf])]
    ),
    "edges of both kinds by name": lambda m: m.histogram2d(
        m.array([0.5]), m.array([1.0]), bins=[3, m.array([0.0, 2.0])]
    ),
    "spacing": lambda m: [m.linspace(m.array(0.0), m.array(100.0), 12), m.logspace(m.array(0.1), 2.3, 7)],
    "an array of bases": lambda m: [m.logspace(0, 1, 3, base=m.array([2.0, 10.0]), axis=axis) for axis in (0, 1)],
    "coordinates that are unsigned": lambda m: m.gradient(m.array([1.0, 3, 5]), m.array([3, 2, 1], dtype="u1")),
    "coordinates that are small integers": lambda m: m.gradient(m.array([-1.0, 1]), m.array([-127, 127], dtype="i1")),
    "named tuples index": lambda m: m.array(TABLE)[Place(1, 2)],
    "named tuples index arrays": lambda m: m.array(TABLE)[Place(m.array([0, 1]), slice(2))],
    "named tuples are written to": lambda m: after(lambda a: operator.setitem(a, Place(1, 2), 7.0), m.array(TABLE)),
    "insert at a list of one": lambda m: m.insert(m.array(TABLE), [1], [1.0, 2, 3], axis=1),
    "insert a column": lambda m: m.insert(m.array(TABLE), 1, [1.0, 2, 3], axis=1),
    "put into the flattened array": lambda m: after(
        lambda a: m.put_along_axis(a, m.array([3, -1]), 9.0, None), m.array(TABLE)
    ),
    "one condition": lambda m: m.piecewise(m.array([0.0, 0]), m.array([True, False]), [1]),
    "a rule of casting": lambda m: m.einsum(
        "i,i->", m.array([1.0, 2]), m.array([3.0, 4]), out=m.zeros((), dtype=int), casting="unsafe"
    ),
    "bounds that the dtype implies": lambda m: [
        m.clip(m.array([1, 250], dtype="u1"), -1, 300), m.array([1, 250], dtype="u1").clip(-(2**70), 200),
        m.clip(m.array([-5, 5]), -(10**30), 3), m.clip(m.array([1, 250], dtype="u1"), None, 300),
    ],
    "a sum in the dtype of out": lambda m: m.einsum("i,i", m.array([200, 250], dtype="u1"),
                                                   m.array([200, 250], dtype="u1"), out=m.array(0.0)),
    "differences in the dtype of out": lambda m: m.subtract.reduce(
        m.array([[1, 2], [250, 3]], dtype="u1"), out=m.zeros(2)
    ),
    "running quotients in the dtype of out": lambda m: m.floor_divide.accumulate(
        m.array([4, 3], dtype="i4"), out=m.zeros(2)
    ),
    "slices in the dtype of out": lambda m: m.hypot.reduceat(
        m.array([9, 2, 1], dtype="u1"), [0, 2], out=m.zeros(2)
    ),
    "whole numbers of floats": lambda m: m.fmax.reduce(m.array([1.5, 2.5]), out=m.zeros((), dtype=int)),
    "no slices": lambda m: m.add.reduceat(m.array(TABLE), [], axis=1),
    "slices at whole floats": lambda m: m.add.reduceat(m.array(TABLE), [0.0, 2.5]),
    "one of two outputs": lambda m: [
        m.modf(m.array([1.5, -2.5]), m.zeros(2)), m.modf(m.array([1.5, 2.0]), out=(None, m.zeros(2))),
        m.frexp(m.array(1.5), out=(m.zeros(2), None)), m.divmod(m.array([7.0, 9.0]), 4.0, out=(None, m.zeros(2))),
    ],
    "copy a number to small integers": lambda m: [
        after(lambda a: m.copyto(a, 5), m.array([1, 2], dtype="u1")),
        after(lambda a: m.copyto(a, 5, where=[True, False]), m.array([1, 2], dtype="u1")),
    ],
    "weights of no number": lambda m: [
        m.average(m.array([[m.nan, 1.0], [m.inf, 2.0]]), returned=True),
        m.average(m.array([[m.nan, 1.0], [m.inf, 2.0]]), axis=0, returned=True),
    ],
    "choose a number": lambda m: [
        m.choose(m.array([0, 1]), [m.array([1, 2], dtype="u1"), 10]),
        m.choose(m.array([True, False]), [m.array([1.0, 2.0], dtype="f4"), 10]),
    ],
    "slopes of single precision": lambda m: m.gradient(m.array([1, 2, 4], dtype="f4"), m.array([0.0, 1, 3])),
    "margins of single precision": lambda m: m.pad(m.array([1, 2], dtype="f4"), 3, "reflect", reflect_type="odd"),
    # errors
    "slices at an array of floats": lambda m: m.add.reduceat(m.array(TABLE), m.array([0.0, 2.0])),
    "no number among integers": lambda m: operator.setitem(m.array([1, 2]), True, m.nan),
    "no number at several places": lambda m: operator.setitem(m.array([1, 2]), [0, 1], m.nan),
    "infinity among integers": lambda m: operator.setitem(m.array([1, 2], dtype="u1"), 0, m.inf),
    "copy a large number": lambda m: m.copyto(m.array([1, 2], dtype="u1"), 300),
    "copy a float to integers": lambda m: m.copyto(m.array([1, 2]), 2.5),
    "a lower bound out of range": lambda m: m.clip(m.array([1, 2], dtype="u1"), 300, None),
    "slices before the beginning": lambda m: m.add.reduceat(m.array(TABLE), [-1]),
    "one slice": lambda m: m.add.reduceat(m.array(TABLE), 0),
    "one target of two": lambda m: m.modf(m.array([1.5]), out=m.zeros(1)),
    "no numbers": lambda m: m.nanargmax(m.array([m.nan, m.nan])),
    "no numbers in a row": lambda m: m.nanargmin(m.array([[m.nan, m.nan], [1.0, 2.0]]), axis=1),
    "no values": lambda m: m.place(m.array([1.0, 2]), m.array([True, False]), m.array([])),
    "trim": lambda m: m.trim_zeros(m.array([0.0, 1, 0]), "x"),
    "insert at no axis": lambda m: m.insert(m.array(1.0), [], 2, axis=0),
    "insert at floats": lambda m: m.insert(m.array([0.0, 1, 2]), m.array([]), []),
    "delete at no axis": lambda m: m.delete(m.array(1.0), [], axis=0),
    "resize to less than nothing": lambda m: m.resize(m.ones(3), (2, -1)),
    "diagonals of a vector": lambda m: m.diag_indices_from(m.ones(7)),
    "diagonals of a rectangle": lambda m: m.diag_indices_from(m.ones((2, 3))),
    "triangles of a vector": lambda m: m.tril_indices_from(m.ones(3)),
    "vsplit of a vector": lambda m: m.vsplit(m.ones(4), 2),
    "hsplit of a number": lambda m: m.hsplit(m.array(1.0), 1),
    "dsplit of a matrix": lambda m: m.dsplit(m.ones((4, 4)), 2),
    "sums that are not named": lambda m: m.einsum("a...b->ab", m.ones((2, 3, 2))),
    "weights of another number": lambda m: m.histogram(m.array([1.0, 2, 3]), weights=m.ones(4)),
    "a fraction of a number": lambda m: m.linspace(m.array(0.0), 1.0, 2.5),
    "integers out of range": lambda m: operator.setitem(m.array([1, 2], dtype="u1"), 0, 300),
    "fill with one": lambda m: m.full_like(m.zeros(2, dtype="u1"), -1),
}  # fmt: skip


def leaves(value):
    """Return the arrays of a result, which may be nested."""
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [np.asarray(value.detach() if isinstance(value, vg.Tensor) else value)]


def outcome(case, namespace):
    """Return the arrays of a result, or the class of an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return leaves(case(namespace))
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        return type(error)


@pytest.mark.parametrize("name", CASES)
def test_edge_cases_match_numpy(name):
    ours, theirs = outcome(CASES[name], vnp), outcome(CASES[name], np)
    if isinstance(theirs, type):
        assert isinstance(ours, type) and issubclass(ours, theirs), ours
        return
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)
        assert our.dtype == their.dtype


def test_elements_at_named_tuples_have_gradients():
    table = vg.Tensor(TABLE, requires_grad=True)
    written = table.clone()
    written[Place(1, 2)] = written[Place(0, 0)] * 3.0
    assert grad(written.sum(), table)[0].numpy().tolist() == [[4, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]]


def test_correlations_are_at_most_one():
    rows = vg.Tensor([[1.2, 1.1, 1.7], [2.4, 2.2, 3.4]], requires_grad=True)
    assert (np.abs(vg.corrcoef(rows).detach().numpy()) <= 1.0).all()


def test_ediff1d_of_bools_raises_as_in_numpy():
    for given in (np.array([True, False]), vg.Tensor([True, False])):
        with pytest.raises(TypeError, match="boolean subtract"):
            np.ediff1d(given)


@pytest.mark.parametrize("x", [1.3, 5.2, 0.01, -5.4])
def test_frexp_and_nextafter_of_the_math_module(x):
    def f(x):
        mantissa, exponent = math.frexp(x)
        return mantissa**2 * exponent + math.ldexp(mantissa, exponent) + math.nextafter(x, 9.0)

    for function in (f, vg.compile(f)):
        value, gradient = vg.value_and_grad(function)(x)
        assert value == f(x)
        np.testing.assert_allclose(gradient, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-6)
        np.testing.assert_allclose(vg.jvp(function, (x,), (1.0,))[1], gradient)
