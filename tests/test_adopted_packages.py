"""Adopted packages: imported a second time, with viewgrad in place of NumPy."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import pickle
import sys

import numpy as np
import pytest

import viewgrad as vg

FILES = {
    "__init__": """
        '''A package.'''
        import numpy as np
        from . import shapes
        from .shapes import area
        __version__ = "1.0"
        TABLE = np.linspace(0.0, 1.0, 5)
    """,
    "shapes": """
        import logging
        import math
        import sys
        from collections import namedtuple
        from dataclasses import dataclass
        from enum import Enum
        from numpy import zeros as blank, pi
        from numpy.linalg import norm
        log = logging.getLogger(__name__)
        setattr(sys.modules[__name__], "added", lambda x: blank(1)[0] + x)
        Pair = namedtuple("Pair", "first second")
        class Unit(Enum):
            METRE = 1.0
            FOOT = 0.3048
        class Length(float):
            def doubled(self):
                return self * 2
        class Meta(type):
            pass
        class Marked(metaclass=Meta):
            pass
        @dataclass
        class Disc:
            r: float
            unit: Unit = Unit.METRE
            def area(self):
                return float(pi * self.r**2) * self.unit.value**2
        def area(r):
            out = blank(2)
            out[0] = Disc(r).area()
            out[1] = math.sqrt(r)
            pair = Pair(*out)
            return pair.first + pair.second
        def told(x):
            from scipy import special as sp
            import importlib
            lazy = importlib.import_module("." + "lazy", __package__)
            assert isinstance(x, float) and type(x) is float
            return lazy.f(x) + sp.erf(x) + norm(blank(2) + x)
    """,
    "lazy": """
        import numpy as np
        from adopted_constants import *
        from adopted_constants import exponential
        from . import shapes
        def f(x):
            y = np.empty(1)
            y[0] = exponential(x) * RATE * root(x)
            return y[0]
    """,
}
CONSTANTS = """
from numpy import exp as exponential
from math import sqrt as root
RATE = 2.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    (folder / "adopted_package").mkdir()
    for name, text in FILES.items():
        (folder / "adopted_package" / f"{name}.py").write_text(inspect.cleandoc(text) + "\n")
    (folder / "adopted_constants.py").write_text(CONSTANTS)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.startswith(("adopted_package", "adopted_constants"))]:
        del sys.modules[name]


def difference(f, x, step=1e-6):
    return (f(x + step) - f(x - step)) / (2 * step)


def test_a_package_is_adopted_whole_beside_the_original(folder):
    before = set(sys.modules)
    adopted = vg.adopt("adopted_package")
    assert not {name for name in set(sys.modules) - before if name.startswith("adopted_package")}
    assert isinstance(adopted.TABLE, vg.Tensor) and adopted.__version__ == "1.0" and adopted.__doc__ == "A package."
    original = importlib.import_module("adopted_package")
    assert original is not adopted and isinstance(original.TABLE, np.ndarray)
    assert original.shapes.blank is np.zeros and original.area(2.0) == pytest.approx(4 * math.pi + math.sqrt(2.0))
    for name in ("area", "told"):
        plain, f = getattr(original.shapes, name), getattr(adopted.shapes, name)
        assert vg.value_and_grad(f)(1.5) == pytest.approx((plain(1.5), difference(plain, 1.5)))
        assert vg.grad(plain)(1.5) == pytest.approx(difference(plain, 1.5))
        assert f.__code__.co_filename == plain.__code__.co_filename
        assert vg.grad(adopted.shapes.added)(1.5) == 1.0 and adopted.shapes.added is not original.shapes.added
        assert inspect.getsource(f) == inspect.getsource(plain)


def test_submodules_are_imported_when_they_are_first_used(folder):
    adopted = vg.adopt("adopted_package")
    assert adopted.lazy is vg.adopt("adopted_package.lazy")
    assert vg.grad(adopted.lazy.f)(1.0) == pytest.approx(2.0 * math.e * 1.5)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        adopted.missing
    with pytest.raises(ModuleNotFoundError, match=r"adopted_package\.missing"):
        vg.adopt("adopted_package.missing")


def test_adopting_twice_is_adopting_once(folder):
    adopted = vg.adopt("adopted_package")
    original = importlib.import_module("adopted_package")
    assert vg.adopt(adopted) is adopted and vg.adopt("adopted_package") is adopted and vg.adopt(original) is adopted
    assert vg.adopt(original.shapes) is adopted.shapes
    assert vg.adopt(adopted.area) is adopted.area
    assert pickle.loads(pickle.dumps(adopted)) is adopted
    assert repr(adopted) == "<adopted module 'adopted_package'>"


def test_classes_of_an_adopted_package(folder):
    shapes = vg.adopt("adopted_package").shapes
    assert shapes.Length(2.0).doubled() == 4.0 and isinstance(shapes.Length(2.0), shapes.Length)
    assert isinstance(shapes.Marked, shapes.Meta)
    x = vg.Tensor(2.0, requires_grad=True)
    disc = shapes.Disc(x, shapes.Unit.FOOT)
    assert vg.autograd.grad(disc.area(), x)[0].item() == pytest.approx(4 * math.pi * 0.3048**2)
    assert vg.grad(lambda r: shapes.Disc(r).area())(2.0) == pytest.approx(4 * math.pi)


def test_packages_that_are_adopted_together(folder):
    (folder / "adopted_client.py").write_text(
        "import numpy as np\nimport adopted_package.shapes as shapes\nfrom adopted_package import area\n"
        "def f(x):\n    return area(x) * shapes.Disc(x).area() * np.ones(1)[0]\n"
    )
    together = vg.adopt("adopted_client", also=["adopted_package"])
    plain = importlib.import_module("adopted_client").f
    try:
        assert vg.grad(together.f)(1.5) == pytest.approx(difference(plain, 1.5))
        assert vg.adopt("adopted_client", also=["adopted_package"]) is together
        assert vg.adopt("adopted_client").shapes is importlib.import_module("adopted_package.shapes")
    finally:
        del sys.modules["adopted_client"]
    with pytest.raises(TypeError, match="also= names packages to adopt together"):
        vg.adopt(plain, also=["adopted_package"])


def test_a_module_of_the_standard_library():
    colors = vg.adopt("colorsys")
    assert vg.grad(lambda r: colors.rgb_to_yiq(r, 0.4, 0.2)[0])(0.5) == pytest.approx(0.3)


def test_a_module_that_fails_is_not_kept(folder):
    (folder / "adopted_failure.py").write_text("import numpy as np\nx = np.zeros(2)[5]\n")
    for _ in range(2):
        with pytest.raises(IndexError):
            vg.adopt("adopted_failure")
    (folder / "adopted_failure.py").write_text("import numpy as np\nx = np.zeros(2)[1] + 1.0  # mended\n")
    importlib.invalidate_caches()
    assert vg.adopt("adopted_failure").x.item() == 1.0


def test_extension_modules_are_the_original_ones():
    assert vg.adopt("itertools") is itertools and vg.adopt("_struct") is importlib.import_module("_struct")


def test_numpy_itself_is_adopted_as_its_counterpart():
    assert vg.adopt("numpy") is vg.adopt(np) is vg.numpy
    assert vg.adopt("math") is vg.adopt(math) is vg.math


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "function", "point"),
    [
        ("fluids", lambda p: lambda x: p.friction_factor(Re=1e5 * x, eD=1e-4), 1.2),
        ("pvlib", lambda p: lambda x: p.irradiance.disc(700.0 * x, 30.0, 180)["dni"], 1.0),
        ("seawater", lambda p: lambda x: p.dens(35.0 * x, 10.0, 100.0), 1.0),
        ("psychrolib", lambda p: lambda x: _psychrolib(p).GetHumRatioFromRelHum(20.0 * x, 0.5, 101325.0), 1.0),
        ("thermofeel", lambda p: lambda x: p.calculate_utci(300.0 * x, 3.0, 310.0, td_k=290.0), 1.0),
        ("pymap3d", lambda p: lambda x: p.geodetic2ecef(45.0 * x, 10.0, 100.0)[2], 1.0),
    ],
)
def test_real_packages(package, function, point):
    original = pytest.importorskip(package)
    plain, adopted = function(original), function(vg.adopt(package))
    value, slope = vg.value_and_grad(adopted)(point)
    assert value == pytest.approx(float(plain(point)), rel=1e-12)
    assert slope == pytest.approx(float(difference(plain, point, 1e-5)), rel=1e-5)


def _psychrolib(module):
    module.SetUnitSystem(module.SI)
    return module
