"""Trees of arguments: which objects are containers, and how their structures compare."""

import dataclasses

import numpy as np

import viewgrad as vg
from viewgrad.func.tree import flatten


def test_dataclasses_with_a_constructor_of_their_own_are_not_rebuilt():
    @dataclasses.dataclass
    class Line:
        slope: object
        offset: object

        def __init__(self, points):
            self.slope, self.offset = points[1] - points[0], points[0]

    line = Line([1.0, 3.0])
    assert vg.value_and_grad(lambda x, line: line.slope * x + line.offset)(2.0, line) == (5.0, 2.0)
    run = vg.compile(lambda x, line: line.slope * x + line.offset)
    for offset in (1.0, 4.0, 1.0):
        line.offset = offset
        assert vg.value_and_grad(run)(2.0, line) == (4.0 + offset, 2.0)


def test_values_that_compare_elementwise_belong_to_a_structure():
    class Elementwise:
        def __eq__(self, other):
            return np.array([True, False])

        __hash__ = None

    class Raising:
        def __eq__(self, other):
            raise ValueError("ambiguous")

        __hash__ = None

    for value in (Elementwise(), Raising()):
        one, other = flatten({"a": 1.0, "b": value})[1], flatten({"a": 2.0, "b": value})[1]
        assert one == other
        assert hash(one) == hash(other)
        assert one != flatten({"a": 1.0, "b": type(value)()})[1]
        run = vg.compile(lambda x, value: x * 2.0)
        for _ in range(3):
            assert vg.value_and_grad(run)(3.0, value) == (6.0, 2.0)
