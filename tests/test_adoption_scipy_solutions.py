"""Interpolants, solutions, histograms and polynomials of SciPy made outside adopted code, with tensors."""

import operator

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy import integrate, interpolate, special, stats
from scipy_cases import check_program

import viewgrad as vg
from viewgrad.adoption.foreign import Conversion, converted
from viewgrad.errors import UnsupportedFunctionError
from viewgrad.trace.printer import text_of

X = np.array([1.0, 2.0, 3.0])
RNG = np.random.default_rng(0)
POINTS = RNG.random((20, 2))
HEIGHTS = np.sin(POINTS[:, 0] * 3) + POINTS[:, 1] ** 2
CUBIC = interpolate.CloughTocher2DInterpolator(POINTS, HEIGHTS)
SCALED = interpolate.CloughTocher2DInterpolator(
    POINTS * [1, 50], np.stack([HEIGHTS, HEIGHTS**2], -1), rescale=True, fill_value=0.0
)
SOLUTIONS = {
    method: integrate.solve_ivp(
        lambda t, y: [-y[0] + np.sin(3 * t), y[0] * y[1]], (0, 3), [1.0, 2.0], dense_output=True, method=method
    ).sol
    for method in ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")
}
BACKWARD = integrate.solve_ivp(lambda t, y: -y, (3, 0), [1.0, 2.0], dense_output=True).sol
COUNTS = stats.rv_histogram(np.histogram(RNG.normal(size=200), bins=10))
UNEQUAL = stats.rv_histogram((np.array([1.0, 3, 2]), np.array([0.0, 0.9, 1.5, 4])), density=False)
FROZEN = COUNTS(loc=0.2, scale=1.3)
POLYNOMIALS = [special.legendre(5), special.jacobi(4, 0.5, 1.5, monic=True), special.hermite(3), special.laguerre(0),
               special.sh_chebyt(3), special.gegenbauer(3, 0.7)]  # fmt: skip


def of_new_histogram(x):
    made = stats.rv_histogram((x, np.append(0, np.cumsum(x * 0.5))), density=False)
    of_values = made.cdf(np.array([0.5, 1.6])).sum() + made.pdf(0.5) + made.logsf(1.2) + made.ppf(0.4)
    return of_values + made.mean() + made.var() + made.entropy()


PROGRAMS = {
    "cubic": lambda x: CUBIC(np.stack([x * 0.2, x[::-1] * 0.15], -1)) @ np.arange(1.0, 4),
    "cubic of coordinates": lambda x: CUBIC(x[0] * 0.3, x[1] * 0.2)[()],
    "cubic, rescaled": lambda x: (
        SCALED(np.stack([x * 0.2, x[::-1] * 7.5], -1)) * np.arange(1.0, 7).reshape(3, 2)
    ).sum(),
    "cubic, made inside": lambda x: interpolate.CloughTocher2DInterpolator(POINTS, HEIGHTS)(x[:2] * 0.2)[0] * x[2],
    "linear, at one point": lambda x: interpolate.LinearNDInterpolator(POINTS, HEIGHTS)(x[:2] * 0.2)[0] * x[2],
    "cubic, outside": lambda x: np.nansum(CUBIC(np.stack([x * 0.2, x * 9], -1))) + x[0],
    **{
        f"solution of {method}": lambda x, solution=solution: (
            (solution(x * 0.7) * np.arange(1.0, 7).reshape(2, 3)).sum() + (solution(x[0]) ** 2).sum()
        )
        for method, solution in SOLUTIONS.items()
    },
    "backward solution": lambda x: (BACKWARD(x * 0.7) ** 2).sum(),
    "extrapolated solution": lambda x: SOLUTIONS["RK45"](x[2] * 1.01).sum(),
    "histogram": lambda x: (
        (COUNTS.pdf(x * 0.3) * x).sum() + COUNTS.cdf(x * 0.31).sum() + COUNTS.ppf(x * 0.2).sum()
        + COUNTS.sf(x * 0.3).sum() + COUNTS.logcdf(x * 0.3).sum() + COUNTS.isf(x * 0.2).sum()
        + COUNTS.pdf(0.3, x[0] * 0.2, x[1]) + (COUNTS.mean() + COUNTS.std() + COUNTS.entropy() + COUNTS.median()) * x[0]
    ),
    "frozen histogram": lambda x: (
        FROZEN.cdf(x * 0.3).sum() + FROZEN.pdf(x * 0.1) @ x + FROZEN.mean() * FROZEN.var() * x[0]
    ),
    "unequal bins": lambda x: UNEQUAL.cdf(x).sum() + UNEQUAL.logpdf(x * 1.1) @ x,
    "histogram, made inside": of_new_histogram,
    "polynomials": lambda x: (
        sum((each(x * 0.3) @ x) * (n + 1) for n, each in enumerate(POLYNOMIALS))
        + POLYNOMIALS[0].deriv()(x[0]) + (POLYNOMIALS[0] * 2)(x[0]) + POLYNOMIALS[1].coeffs[0] * x[0]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_match_central_differences(name):
    check_program(PROGRAMS[name], X)


def test_histograms_refuse_methods_without_derivatives():
    assert float(vg.func.grad(lambda x: COUNTS.moment(2) * x)(1.0)) == pytest.approx(COUNTS.moment(2))
    with pytest.raises(UnsupportedFunctionError, match="expect"):
        vg.func.grad(lambda x: stats.rv_histogram((X * x, np.arange(4.0) * x)).expect(lambda v: v))(1.0)


OBJECTS = {"cubic": CUBIC, "histogram": COUNTS, "distribution": FROZEN, "polynomial": POLYNOMIALS[0]} | SOLUTIONS


@pytest.mark.parametrize("name", OBJECTS)
def test_unchanged_objects_are_converted_once(name):
    made = converted(OBJECTS[name], vg.adopt)
    before = list(vars(made).values())
    Conversion(OBJECTS[name], made, list).refresh(vg.adopt)
    assert all(map(operator.is_, before, vars(made).values()))


def test_traces_do_not_contain_conversions():
    def traced():
        compiled = vg.compile(lambda x: (x * x).sum())
        compiled(vg.Tensor([1.0, 2.0]))
        (specialization,) = compiled.specializations
        return [line.partition("#")[0] for line in text_of(specialization.trace.graph).splitlines()]

    before = traced()
    vg.func.grad(lambda x: COUNTS.moment(2) * x)(1.0)
    assert traced() == before
