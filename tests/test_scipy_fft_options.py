"""Options of transforms, all pairs of them: values are SciPy's, and the same calls raise errors."""

import itertools

import numpy as np
import pytest

pytest.importorskip("scipy")
from scipy import fft, fftpack

import viewgrad as vg
from viewgrad import scipy as ours
from viewgrad.autograd import gradcheck

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(3, 4))
ARRAYS = (TABLE, TABLE + 1j * TABLE[::-1], RNG.normal(size=5))
SHAPES = ((2, 3), (5, 6), 5, (3,), (2, 3, 4), (0, 3), (2, -1), (-1, 3))
AXES = ((0, 1), (1, 0), (0,), 0, (0, 0), (-1,), 5)
NORMS = ("ortho", "forward", "backward", "other")


def options(module, name):
    """Return the values of each option of a function."""
    several = name[-1] in "2n"
    if several:
        found = {"s" if module == "fft" else "shape": SHAPES, "axes": AXES}
    else:
        found = {"n": (1, 3, 7, -1), "axis": (0, -2, 5)}
    if "ct" in name or "st" in name:
        found |= {"type": (1, 2, 3, 4, 5), "norm": NORMS}
    if module == "fft":
        found["norm"] = NORMS
        if "ct" in name or "st" in name:
            found["orthogonalize"] = (True, False)
    return found | {"overwrite_x": (True,)}


def pairs(choices):
    """Return no option, each alone, and each pair."""
    yield {}
    for name, values in choices.items():
        yield from ({name: value} for value in values)
    for (first, values), (second, others) in itertools.combinations(choices.items(), 2):
        yield from ({first: value, second: other} for value, other in itertools.product(values, others))


def outcome(function, x, given):
    try:
        found = function(x, **given)
    except (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError, KeyError):
        return None
    return found.detach().numpy() if isinstance(found, vg.Tensor) else found


FOURIER = [f"{kind}fft{over}" for kind in ("", "i", "r", "ir", "h", "ih") for over in ("", "2", "n")]
COSINES = [f"{inverse}{kind}{over}" for inverse in ("", "i") for kind in ("dct", "dst") for over in ("", "n")]
MODULES = {"fft": fft, "fftpack": fftpack}
NAMES = [(module, name) for module in MODULES for name in (*FOURIER, *COSINES) if hasattr(MODULES[module], name)]


@pytest.mark.parametrize("module, name", NAMES)
def test_values_and_errors_match_scipy(module, name):
    function, counterpart = getattr(MODULES[module], name), getattr(getattr(ours, module), name)
    for place, given in enumerate(pairs(options(module, name))):
        x = ARRAYS[place % len(ARRAYS)]
        wanted = outcome(function, x.copy(), given)
        found = outcome(counterpart, vg.Tensor(x.copy(), requires_grad=place % 4 != 0), given)
        assert (wanted is None) == (found is None), (given, wanted, found)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
            assert found.dtype == wanted.dtype


@pytest.mark.parametrize("orthogonalize", [True, False])
@pytest.mark.parametrize("name", ["dct", "idst", "dctn"])
def test_gradients_of_orthogonalized_transforms(name, orthogonalize):
    function = getattr(ours.fft, name)
    x = vg.Tensor(TABLE, requires_grad=True)
    assert gradcheck(lambda x: function(x, 2, norm="ortho", orthogonalize=orthogonalize), x)


@pytest.mark.parametrize("name", ["hfftn", "ihfftn", "hfft2", "ihfft2"])
def test_gradients_of_hermitian_transforms(name):
    function = getattr(ours.fft, name)
    x = vg.Tensor(TABLE, requires_grad=True)
    assert gradcheck(lambda x: abs(function(x * (1 if name.startswith("i") else 1 + 0.5j), norm="forward")) ** 2, x)
