"""Idioms of packages: each module is adopted before anything has imported the original, which is then compared."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

import viewgrad as vg

SCIPY = pytest.mark.skipif(not importlib.util.find_spec("scipy"), reason="needs SciPy")
IDIOMS = {
    "dataclasses_with_text_annotations": """
        from __future__ import annotations
        from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
        from typing import ClassVar, get_type_hints
        @dataclass
        class Part:
            weight: float
        @dataclass
        class Whole:
            part: Part
            count: ClassVar[int] = 3
            _: KW_ONLY
            scale: InitVar[float] = 2.0
            parts: list[Part] = field(default_factory=list)
            def __post_init__(self, scale):
                self.total = self.part.weight * scale * self.count
        assert get_type_hints(Whole)["part"] is Part
        assert [each.name for each in fields(Whole)] == ["part", "parts"]
        def f(x):
            return Whole(Part(x), scale=x).total
    """,
    "dataclasses_by_the_name_of_the_module": """
        from __future__ import annotations
        import dataclasses
        import typing as t
        @dataclasses.dataclass(frozen=True, order=True)
        class Point:
            x: float
            dimension: t.ClassVar[int] = 2
            offset: dataclasses.InitVar[float] = 0.5
        Other = dataclasses.make_dataclass("Other", [("x", "float")])
        assert [each.name for each in dataclasses.fields(Point)] == ["x"]
        assert dataclasses.is_dataclass(Point) and t.get_type_hints(Other)["x"] == float
        def f(x):
            return dataclasses.replace(Point(x), x=2 * x, offset=1.0).x * Other(x).x * Point.dimension
    """,
    "classes_of_numbers": """
        from abc import ABC, abstractmethod
        from enum import Enum
        import numpy as np
        class Direction(float, Enum):
            NORTH = 0.0
            EAST = np.pi / 2
        class Quantity(float, ABC):
            @abstractmethod
            def unit(self): ...
        class Length(Quantity):
            def __new__(cls, value, unit="m"):
                self = float.__new__(cls, value)
                self._unit = unit
                return self
            def unit(self):
                return self._unit
            def __add__(self, other):
                return Length(float.__add__(self, other), self._unit)
            def __str__(self):
                return float.__repr__(self) + self._unit
            __hash__ = float.__hash__
            def __eq__(self, other):
                return float.__eq__(self, other)
        class Meta(type):
            pass
        class Plain(complex, metaclass=Meta):
            def __new__(cls, value):
                return complex.__new__(cls, value)
        assert str(Length(1.5) + 0.5) == "2.0m" and Length(2.0) == 2.0 and hash(Length(2.0)) == hash(2.0)
        assert isinstance(Plain, Meta) and isinstance(Direction.EAST, float) and not hasattr(Plain(1j), "unit")
        def f(x):
            return np.sin(Direction.EAST * x) * float(Length(2.0) + 1.0) * Plain(2j).imag
    """,
    "explicit_methods_of_numbers": """
        def f(x):
            number = float.__new__(float, "2.0")
            assert type(number) is float and number.hex() == float.hex(number)
            return float.__mul__(x, number) + float.__add__(1.0, x) + float.__pow__(x, 2) + complex.__mul__(2j, x).imag
    """,
    "a_folder_without_init": """
        from .folder_without_init import inner
        from .folder_without_init.inner import double
        def f(x):
            return double(x) * inner.double(x)
    """,
    "modules_with_a_class_of_their_own": """
        import sys
        import types
        import numpy as np
        class Lazy(types.ModuleType):
            @property
            def rate(self):
                return np.ones(1)[0] * 3
        sys.modules[__name__].__class__ = Lazy
        def f(x):
            return sys.modules[__name__].rate * x
    """,
    "private_modules_of_scipy": """
        import scipy.special
        import scipy.stats
        class Normal(scipy.stats._continuous_distns.norm_gen):
            pass
        def f(x):
            return scipy.special._ufuncs.erf(x) * scipy.stats._continuous_distns.norm.pdf(x)
    """,
}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    root = tmp_path_factory.mktemp("idioms")
    folder = root / "package_of_idioms"
    (folder / "folder_without_init").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "folder_without_init" / "inner.py").write_text("def double(x):\n    return 2 * x\n")
    for name, text in IDIOMS.items():
        (folder / f"{name}.py").write_text(inspect.cleandoc(text) + "\n")
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    yield "package_of_idioms"
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.startswith("package_of_idioms")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[SCIPY] * ("scipy" in name)) for name in IDIOMS])
def test_an_idiom_of_packages(package, name):
    before = set(sys.modules)
    adopted = vg.adopt(f"{package}.{name}")
    assert not {each for each in set(sys.modules) - before if each.startswith(package)}
    value, gradient = vg.value_and_grad(adopted.f)(0.7)
    plain = importlib.import_module(f"{package}.{name}").f
    assert value == pytest.approx(plain(0.7))
    assert gradient == pytest.approx((plain(0.7 + 1e-6) - plain(0.7 - 1e-6)) / 2e-6)
    assert vg.grad(plain)(0.7) == pytest.approx(gradient)
