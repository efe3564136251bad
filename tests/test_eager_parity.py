"""Programs that run eagerly give the same results when traced and compiled, without errors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import grad
from viewgrad.scipy import interpolate

POINT = [1.0, 2.0, 4.0, 3.0]
AT = np.array([1.0, 2.5])


class Derived(np.ndarray):
    pass


def square(y):
    y.shape = (2, 2)
    return y @ y


def shaped_and_written(v):
    y = v * 1.0
    y.shape = (2, 2)
    y[0] *= 2.0
    return (y * y).sum()


def looked_up(v):
    return v.sum() * {2.0: 3.0, 10.0: 5.0}.get(v.detach().sum(), 7.0)


PROGRAMS = {
    "a new shape": lambda v: square(v * 1.0).sum(),
    "a new shape, then a write": shaped_and_written,
    "isinstance of an array": lambda v: v * 3.0 if isinstance(v * 2.0, np.ndarray) else v * 5.0,
    "isinstance of a scalar": lambda v: v * 3.0 if isinstance(v.sum() * 2.0, np.ndarray) else v * 5.0,
    "isinstance of the namespace": lambda v: v * 3.0 if isinstance(v.sum() * 2.0, vnp.ndarray) else v * 5.0,
    "isinstance of a number": lambda v: v * 3.0 if isinstance(v.sum(), float) else v * 5.0,
    "a scalar as a key": looked_up,
    "CubicSpline": lambda v: interpolate.CubicSpline(vg.arange(4.0) * 2.0, v)(AT).sum(),
    "interp1d": lambda v: interpolate.interp1d(vg.arange(4.0) * 2.0, v)(AT).sum(),
    "splrep": lambda v: interpolate.splev(AT, interpolate.splrep(vg.arange(4.0) * 2.0, v)).sum(),
    "BSpline": lambda v: interpolate.BSpline(vg.arange(8.0), v, 3)(AT + 2.0).sum(),
    "RegularGridInterpolator": lambda v: interpolate.RegularGridInterpolator((vg.arange(4.0),), v)(AT[:, None]).sum(),
    "griddata": lambda v: interpolate.griddata(vg.eye(4)[:, :2] * 1.0 + vg.eye(4)[:, 2:3], v, AT[None] / 4.0).sum(),
    "a derived class outside": lambda v: (v * np.arange(4.0).view(Derived)).sum(),
}


def result_and_slope(function):
    v = vg.Tensor(POINT, requires_grad=True)
    result = function(v)
    return result.detach().tolist(), grad(result.sum(), v)[0].tolist()


@pytest.mark.parametrize("what", PROGRAMS)
def test_traced_and_compiled_programs_run_like_eager_ones(what):
    program = PROGRAMS[what]
    expected = result_and_slope(program)
    compiled = vg.compile(program, executor="python", adopt=False)
    traced = vg.symbolic.function_of(program, vg.Tensor(POINT, requires_grad=True), escapes="guard")
    for each in (traced, compiled, compiled, compiled):
        for one, other in zip(result_and_slope(each), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_the_places_of_a_spline_may_be_an_argument():
    def spline(x, v):
        return interpolate.CubicSpline(x, v)(AT).sum()

    compiled, v = vg.compile(spline, executor="python"), vg.Tensor(POINT, requires_grad=True)
    for step in (2.0, 2.0, 2.0, 3.0):
        x = vg.arange(4.0) * step
        assert compiled(x, v).detach().item() == pytest.approx(spline(x, v).detach().item())


def test_a_new_shape_of_an_argument_is_not_traced():
    def f(x):
        x.shape = (2, 2)
        return x.sum()

    with pytest.raises(vg.errors.TraceError, match="changing in place the shape of a tensor"):
        vg.symbolic.trace(f, vg.Tensor(POINT))
    compiled = vg.compile(f, executor="python")
    for _ in range(3):
        x = vg.Tensor(POINT)
        compiled(x)
        assert x.shape == (2, 2)


def test_hashing_a_value_adds_a_guard():
    traced = vg.symbolic.function_of(looked_up, vg.Tensor(POINT), escapes="guard")
    with pytest.raises(vg.errors.GuardError, match=r"hash\(\)"):
        traced(vg.Tensor([1.0, 1.0, 0.0, 0.0]))


def test_ninth_shape_evicts_the_least_recently_used():
    compiled = vg.compile(lambda x: (x * x).sum(), executor="python")
    for size in range(1, 12):
        compiled(vg.ones(size))
    for _ in range(3):
        assert compiled(vg.ones(11)).item() == 11.0
    assert "compiled," in compiled.explain()
    for size in (3, 11, 3, 11, 3):  # a replaced value, and a value used in the meantime
        assert compiled(vg.ones(size)).item() == size
    assert compiled.explain().count("compiled,") == 2
    assert len(compiled.specializations) == 8


def test_unique_shapes_do_not_disable_recurring_ones():
    compiled = vg.compile(lambda x: (x * x).sum(), executor="python")
    with pytest.warns(vg.errors.NotCompiledWarning, match="shapes, dtypes or numbers"):
        for size in range(1, 60):
            assert compiled(vg.ones(size)).item() == size
            compiled(vg.ones(2))
    compiled(vg.ones(2))
    assert "compiled," in compiled.explain()


@dataclasses.dataclass
class Model:
    weight: Any
    power: int = 2


@pytest.mark.parametrize("specialize", [True, False])
def test_dataclasses_are_trees(specialize):
    def loss(model):
        return (model.weight**model.power).sum()

    compiled = vg.compile(loss, executor="python", specialize=specialize)
    for k in range(4):
        weight = vg.Tensor([1.0, 2.0 + k], requires_grad=True)
        assert grad(compiled(Model(weight)), weight)[0].tolist() == [2.0, 4.0 + 2 * k]
        assert float(compiled(Model(np.array([1.0, 2.0 + k])))) == 1.0 + (2.0 + k) ** 2
        assert compiled(Model(weight, 3)).detach().item() == 1.0 + (2.0 + k) ** 3
    slope = vg.func.grad(loss)(Model(np.array([1.0, 2.0])))
    assert type(slope) is Model and slope.power == 2 and slope.weight.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("adopt", [True, False])
@pytest.mark.parametrize("specialize", [True, False])
def test_arrays_among_the_arguments_are_tensors_in_all_runs(adopt, specialize):
    def f(v, start):
        x = start.copy()
        x += v
        return (x * x).sum()

    compiled = vg.compile(f, executor="python", adopt=adopt, specialize=specialize)
    for k in range(4):
        v = vg.Tensor([1.0, 2.0 + k], requires_grad=True)
        result = compiled(v, np.ones(2))
        assert result.detach().item() == 4.0 + (3.0 + k) ** 2
        assert grad(result, v)[0].tolist() == [4.0, 6.0 + 2 * k]
