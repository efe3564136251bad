"""Gradients of interpolation on grids with respect to the grid points."""

import numpy as np
import pytest

theirs = pytest.importorskip("scipy.interpolate")

import viewgrad as vg  # noqa: E402
from viewgrad.scipy import interpolate as ours  # noqa: E402

RNG = np.random.default_rng(0)
GRID = np.arange(7) + 0.3 * RNG.random(7), np.arange(6) + 0.3 * RNG.random(6)
VALUES = RNG.standard_normal((7, 6, 2))
PLACES = np.stack([RNG.uniform(0.5, 5.5, 5), RNG.uniform(0.5, 4.5, 5)], 1)
DIRECTIONS = RNG.standard_normal(7), RNG.standard_normal(6)
STEP = 1e-6


@pytest.mark.parametrize("method", ["linear", "slinear", "cubic", "quintic", "pchip"])
def test_gradients_with_respect_to_grid_points(method):
    for descends, beyond in ((False, False), (True, True)):
        options = {"bounds_error": False, "fill_value": None}
        points = GRID[0][::-1] if descends else GRID[0], GRID[1]
        at = np.vstack([PLACES, [7.0, -0.2]]) if beyond else PLACES
        # The other implementation solves for the coefficients by an iteration that ends early.
        exact = f"{method}_legacy" if method in ("cubic", "quintic") else method

        def values(step, points=points, at=at, exact=exact, options=options):
            moved = [axis + step * direction for axis, direction in zip(points, DIRECTIONS)]
            return theirs.RegularGridInterpolator(moved, VALUES, exact, **options)(at)

        weights = RNG.standard_normal((len(at), 2))

        def gradients(step, points=points, at=at, weights=weights, options=options):
            grid = [vg.Tensor(axis + step * d, requires_grad=True) for axis, d in zip(points, DIRECTIONS)]
            found = ours.RegularGridInterpolator(tuple(grid), VALUES, method, **options)(at)
            first = vg.autograd.grad((found * weights).sum(), grid, create_graph=True)
            return grid, found, sum((each * d).sum() for each, d in zip(first, DIRECTIONS))

        grid, found, slope = gradients(0.0)
        np.testing.assert_allclose(found.detach(), values(0.0), rtol=1e-9, atol=1e-9)
        expected = ((values(STEP) - values(-STEP)) * weights).sum() / (2 * STEP)
        np.testing.assert_allclose(float(slope.detach()), expected, rtol=1e-6)
        second = sum((each * d).sum() for each, d in zip(vg.autograd.grad(slope, grid), DIRECTIONS))
        expected = (float(gradients(STEP)[2].detach()) - float(gradients(-STEP)[2].detach())) / (2 * STEP)
        np.testing.assert_allclose(float(second), expected, rtol=1e-5, atol=1e-6)


def test_interpn_passes_the_history_of_the_grid_on():
    axis = vg.Tensor([0.0, 1.0, 3.0], requires_grad=True)
    found = ours.interpn((axis,), np.array([0.0, 2.0, 4.0]), np.array([[2.0]]))
    found.sum().backward()
    # Between 1 and 3, the value is 2 + 2 (x - a) / (b - a).
    np.testing.assert_allclose(axis.grad, [0.0, -0.5, -0.5])
    with pytest.raises(ValueError, match="strictly"):
        ours.interpn((axis[::2].detach() * vg.ones(2, requires_grad=True) * 0.0,), np.zeros(2), np.zeros((1, 1)))
