"""The splines of `scipy.interpolate` with FITPACK's names, and classes based on them, for tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.interpolate as theirs  # type: ignore[import-untyped]

from ..operators.numpy_api.adapted import lost
from ..operators.numpy_api.conversion import as_argument, as_tensors, carries_history, plain_values
from ..tensor.creation import as_operand, holds_tensor
from .piecewise import BSpline, as_array, spline_basis, through_points
from .wrap import float_copy

EXTENSIONS: Final = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}  # the modes for values beyond the ends


def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1,
) -> Any:  # fmt: skip
    """Return the knots, coefficients and degree of a spline; without smoothing, gradients flow to points and values."""
    if not carries_history((x, y, w)):
        values = [None if each is None else as_array(each) for each in (x, y, w, t)]
        return theirs.splrep(*values[:3], xb, xe, k, task, s, values[3], full_output, per, quiet)
    if carries_history(w) or per or full_output or (s if s is not None else w is not None and task != -1):
        raise lost("scipy.interpolate.splrep", "gradients flow only to points and values, and only with s=0")
    if carries_history(x):
        if not (t is xb is xe is None and task == 0):
            raise lost("scipy.interpolate.splrep", "with t, xb, xe or task=-1, no gradient flows to the points")
        found = through_points(float_copy(x), float_copy(y), k, None, 0)
        return found.t, np.concatenate([found.c, np.zeros(k + 1)]), k
    places, values = as_array(x), float_copy(y)
    knots, _, degree = theirs.splrep(places, as_array(y), w, xb, xe, k, task, 0 if s is None else s, t)
    columns = [theirs.splrep(places, unit, w, xb, xe, k, task, 0, t)[1] for unit in np.eye(len(places))]
    return knots, as_tensors(np.stack(columns, -1)) @ values, degree


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Return the values of a spline, or of its derivative."""
    if isinstance(tck, BSpline):
        tck = tck.tck
    if not holds_tensor((x, *tck[:2])):
        return as_tensors(theirs.splev(x, tck, der, ext))
    if ext not in EXTENSIONS.values():
        raise ValueError(f"ext must be 0, 1, 2 or 3, not {ext!r}")
    t, c, k = tck
    places, t = float_copy(x), float_copy(t) if carries_history(t) else as_array(t)
    plain, low, high = plain_values(places.detach()), t[k], t[-k - 1]
    outside = (plain < as_array(low)) | (plain > as_array(high))
    if ext == 2 and np.any(outside):
        raise ValueError("x value outside the interval of the knots")
    if ext == 3 and not der:  # FITPACK extrapolates derivatives
        places = np.clip(places, low, high)
    is_parametric = np.ndim(plain_values(c[0])) > 0  # in this case `c` contains the coefficients of each function
    coefficients = list(c) if is_parametric else [float_copy(as_argument(c))]
    found = [BSpline(t, each, k)(places, der) for each in coefficients]
    if ext == 1:
        found = [np.where(outside, 0.0, each) for each in found]
    return found if is_parametric else found[0]


def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """Return the values of a bivariate spline on a grid."""
    if not holds_tensor((x, y, *tck[:3])):
        return as_tensors(theirs.bisplev(x, y, tck, dx, dy))
    tx, ty, c, kx, ky = tck
    if carries_history((tx, ty)):
        raise lost("scipy.interpolate.bisplev", "no gradient flows to the knots; pass detach() of them")
    rows = []
    for places, t, k, nu in ((x, tx, kx, dx), (y, ty, ky, dy)):
        t = as_array(t)
        rows.append(spline_basis(np.clip(np.atleast_1d(float_copy(places)), t[k], t[-k - 1]), t, k, nu))
    found = rows[0] @ float_copy(c).reshape(rows[0].shape[1], rows[1].shape[1]) @ rows[1].T
    return found if found.shape[0] > 1 else found[0] if found.shape[1] > 1 else found[0, 0]


def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Return the integral of a spline between two points; the spline is 0 outside its interval."""
    if full_output:
        raise lost("scipy.interpolate.splint", "omit full_output")
    t, c, k = tck
    t = float_copy(t) if carries_history(t) else as_array(t)
    low, high = t[k], t[-k - 1]
    return BSpline(t, c, k).integrate(np.clip(float_copy(a), low, high), np.clip(float_copy(b), low, high))


def spalde(x: Any, tck: Any) -> Any:
    """Return the value of a spline and all of its derivatives; for several points, return a list."""
    found = np.stack([splev(x, tck, nu) for nu in range(tck[2] + 1)], -1)
    return list(found) if found.ndim > 1 else found


def insert(x: Any, tck: Any, m: int = 1, per: int = 0) -> tuple[Any, Any, int]:
    """Insert knots and return the knots, coefficients and degree; gradients flow to the coefficients."""
    if carries_history((x, tck[0])):
        raise lost(
            "scipy.interpolate.insert", "gradients flow only to the coefficients; pass detach() of other arguments"
        )
    t, c, k = _inner(tck)
    units = np.concatenate([np.eye(len(c)), np.zeros((len(c), k + 1))], axis=1)
    made = [theirs.insert(plain_values(x), (t, unit, k), m, per) for unit in units]
    weights = np.stack([each[1][: -k - 1] for each in made])  # those that FITPACK ignores are not initialized
    return made[0][0], np.concatenate([np.tensordot(c, as_tensors(weights), 1), np.zeros(k + 1)]), k


def splder(tck: Any, n: int = 1) -> tuple[Any, Any, int]:
    """Return the knots, coefficients and degree of the derivative of a spline; gradients flow to both."""
    if n < 0:
        return splantider(tck, -n)
    t, c, k = _inner(tck)
    if n > k:
        raise ValueError(f"Order of derivative (n = {n}) must be <= order of spline (k = {k})")
    for _ in range(n):
        widths = t[k + 1 : -1] - t[1 : -k - 1]
        if not plain_values(widths).all():
            raise ValueError(f"The spline has internal repeated knots and is not differentiable {n} times")
        t, c, k = t[1:-1], (c[1:] - c[:-1]) * k / widths, k - 1
    return t, np.concatenate([c, np.zeros(k + 1)]), k


def splantider(tck: Any, n: int = 1) -> tuple[Any, Any, int]:
    """Return the knots, coefficients and degree of the antiderivative of a spline; gradients flow to both."""
    if n < 0:
        return splder(tck, -n)
    if not n:
        t, c, k = tck
        return t, c, k
    t, c, k = _inner(tck)
    for _ in range(n):
        sums = np.cumsum(c * (t[k + 1 :] - t[: -k - 1])) / (k + 1)
        t, c, k = np.concatenate([t[:1], t, t[-1:]]), np.concatenate([[0.0], sums]), k + 1
    return t, np.concatenate([c, *[c[-1:]] * (k + 1)]), k


def _inner(tck: Any) -> tuple[Any, Any, int]:
    """Return knots, coefficients and degree, without the trailing coefficients that FITPACK adds and ignores."""
    t, c, k = tck
    t = float_copy(t) if carries_history(t) else as_array(t)
    return t, float_copy(c)[: len(t) - k - 1], k


class UnivariateSpline:
    """An interpolating or smoothing spline.

    Gradients flow to the evaluation points and, for an interpolating spline, also to the points and values.

    Arguments:
        x, y, w, bbox, k, s, ext, check_finite: as for `scipy.interpolate.UnivariateSpline`.
    """

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
        check_finite: bool = False,
    ) -> None:  # fmt: skip
        self.ext = EXTENSIONS.get(ext, ext)
        weights = None if w is None else as_array(w)
        self._plain = theirs.UnivariateSpline(as_array(x), as_array(y), weights, list(bbox), k, s, ext, check_finite)
        t, c, degree = self._plain._eval_args
        if carries_history((x, y, w)):
            if s != 0:
                raise lost("scipy.interpolate.UnivariateSpline", "gradients flow to points and values only with s=0")
            t, c, degree = splrep(x, y, None, bbox[0], bbox[1], k, s=0)
        self._eval_args = (t, c, degree)

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        return splev(float_copy(x), self._eval_args, nu, self.ext if ext is None else EXTENSIONS.get(ext, ext))

    @staticmethod
    def _from_tck(tck: Any, ext: int) -> UnivariateSpline:
        """Return a spline with given knots, coefficients and degree."""
        spline = UnivariateSpline.__new__(UnivariateSpline)
        spline.ext, spline._eval_args = ext, tck
        spline._plain = theirs.UnivariateSpline._from_tck((as_array(tck[0]), as_array(tck[1]), tck[2]), ext)
        return spline

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """Return the derivative as a spline, which is 0 outside the interval if this spline is constant there."""
        beyond = EXTENSIONS["zeros"] if self.ext == EXTENSIONS["const"] else self.ext
        return self._from_tck(splder(self._eval_args, n), beyond)

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """Return the integral from the first point as a spline."""
        return self._from_tck(splantider(self._eval_args, n), self.ext)

    def derivatives(self, x: Any) -> Any:
        """Return the value and all derivatives at a point."""
        return np.stack([self(x, nu) for nu in range(self._eval_args[2] + 1)])

    def integral(self, a: Any, b: Any) -> Any:
        """Return the integral between two points; the spline is 0 outside its interval."""
        return splint(a, b, self._eval_args)

    def get_coeffs(self) -> Any:
        """Return the coefficients."""
        t, c, k = self._eval_args
        return as_operand(c)[: len(t) - k - 1]

    def get_knots(self) -> Any:
        """Return the positions of the interior knots and the ends."""
        t, _, k = self._eval_args
        return t[k : len(t) - k] if carries_history(t) else as_tensors(self._plain.get_knots())

    def get_residual(self) -> Any:
        """Return the sum of squared residuals, a plain number."""
        return self._plain.get_residual()

    def roots(self) -> Any:
        """Return the roots; the points and values must have no history."""
        if carries_history(self._eval_args[:2]):
            raise lost("scipy.interpolate.UnivariateSpline.roots", "find the point with viewgrad.scipy.optimize.brentq")
        return as_tensors(self._plain.roots())


class InterpolatedUnivariateSpline(UnivariateSpline):
    """An interpolating spline."""

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
        check_finite: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(x, y, w, bbox, k, 0, ext, check_finite)


class LSQUnivariateSpline(UnivariateSpline):
    """A least-squares spline with given interior knots; gradients flow to the values.

    Arguments:
        x, y, t, w, bbox, k, ext, check_finite: as for `scipy.interpolate.LSQUnivariateSpline`.
    """

    def __init__(
        self, x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
        check_finite: bool = False,
    ) -> None:  # fmt: skip
        if carries_history((x, t, w)):
            raise lost("scipy.interpolate.LSQUnivariateSpline", "gradients flow only to the values")
        self.ext = EXTENSIONS.get(ext, ext)
        places, weights = as_array(x), None if w is None else as_array(w)

        def fitted(values: Any) -> Any:
            return theirs.LSQUnivariateSpline(places, values, as_array(t), weights, list(bbox), k, ext, check_finite)

        self._plain = fitted(as_array(y))
        knots, c, degree = self._plain._eval_args
        if carries_history(y):
            columns = [fitted(unit)._eval_args[1] for unit in np.eye(len(places))]
            c = as_tensors(np.stack(columns, -1)) @ float_copy(y)
        self._eval_args = (knots, c, degree)


FITPACK: Final[dict[str, Any]] = {
    "InterpolatedUnivariateSpline": InterpolatedUnivariateSpline,
    "LSQUnivariateSpline": LSQUnivariateSpline,
    "UnivariateSpline": UnivariateSpline,
    "bisplev": bisplev,
    "insert": insert,
    "spalde": spalde,
    "splantider": splantider,
    "splder": splder,
    "splev": splev,
    "splint": splint,
    "splrep": splrep,
}
