"""Drawn hierarchies of classes: adopted methods call the same methods as Python's originals."""

from __future__ import annotations

import abc
import dataclasses
import fractions
import functools
import gc
import inspect
import pickle
import random
import sys
import types
import typing
from collections import namedtuple
from collections.abc import Hashable

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.adoption import registry

ROOT = """\
import numpy as np

class K0:
    w = 1.5
    def __init__(self, n):
        super().__init__()
        self.n = n
    def f(self, x):
        y = np.zeros(2)
        y[0] = x * self.n
        return y.sum() * self.w
    def g(self, x):
        return np.sin(x) + self.n
    @property
    def p(self):
        return np.ones(1)[0] * self.n
    @classmethod
    def made(cls, n):
        return cls(n)
    @staticmethod
    def s(x):
        return np.array([x])[0] * 2
"""
BODIES = {
    "def __init__(self, n):": ["super().__init__(n + {c})", "super({k}, self).__init__(n); self.n = self.n * {c}"],
    "def f(self, x):": [
        "return super().f(x) * {c}", "return super({k}, self).f(x) + self.g(x) * {c}",
        "y = np.full(2, x); y[1] = self.p * {c}; return y.sum() + K0.f(self, x)",
        "return super().f(x) + self.s(x) + __class__.w * {c}",
    ],
    "def g(self, x):": ["return super().g(x) * x + {c}", "return self.made({c}).p * x", "return np.cos(x) * self.w"],
    "@property\n    def p(self):": ["return super().p * {c}", "return np.zeros(1)[0] + self.n * self.w * {c}"],
    "@classmethod\n    def made(cls, n):": ["return super().made(n + {c})", "return cls(n * {c})"],
}  # fmt: skip


def drawn_source(rng: random.Random) -> tuple[str, int]:
    """Draw the source of classes, each derived from earlier ones, and their number."""
    lines, count = [ROOT], rng.randint(2, 6)
    ancestors: list[set[int]] = [{0}]
    for number in range(1, count):
        bases = [rng.randrange(number)]
        other = rng.randrange(number)
        if other not in ancestors[bases[0]] and bases[0] not in ancestors[other]:
            bases.append(other)
        ancestors.append({number}.union(*(ancestors[base] for base in bases)))
        lines.append(f"class K{number}({', '.join(f'K{base}' for base in bases)}):")
        if rng.random() < 0.4:
            lines.append(f"    w = {rng.randint(2, 9) / 4}")
        for head, bodies in BODIES.items():
            if rng.random() < 0.5:
                body = rng.choice(bodies).format(c=rng.randint(1, 9) / 4, k=f"K{number}")
                lines += [f"    {head}", f"        {body}"]
        lines.append("    pass")
    return "\n".join(lines), count


def check(seed: int, name: str) -> None:
    """Compare values and slopes of objects of drawn classes, made inside and outside of the adopted function."""
    source, count = drawn_source(random.Random(seed))
    module = types.ModuleType(name)
    module.__file__ = f"/home/user/{name}.py"
    sys.modules[name] = module
    try:
        exec(compile(source, module.__file__, "exec"), vars(module))
        for number in range(count):
            kind = getattr(module, f"K{number}")
            outside = kind(1.25)

            def inside(x, kind=kind):
                made = kind(x)
                return made.f(x) + made.g(x) * made.p + kind.made(2.0).f(x)

            def methods(x, outside=outside):
                return outside.f(x) + outside.g(x) * outside.p + outside.made(x).p

            for f in (inside, methods):
                value, slope = vg.value_and_grad(f)(0.7)
                expected = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
                assert value == pytest.approx(float(f(0.7)), rel=1e-12), source
                assert slope == pytest.approx(float(expected), rel=1e-6, abs=1e-7), source
    finally:
        del sys.modules[name]


@pytest.mark.parametrize("seed", range(12))
def test_drawn_hierarchies(seed):
    check(seed, f"drawn_classes_{seed}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 300))
def test_more_drawn_hierarchies(seed):
    check(seed, f"drawn_classes_{seed}")


class First:
    def __init__(self, n):
        super().__init__()
        self.n = n

    def f(self, x):
        return x * self.n


class Second(First):
    def __init__(self):
        super().__init__(2.0)

    def f(self, x):
        return super().f(x) * np.ones(1)[0] * 3


def test_super_does_not_find_the_class_itself():
    assert vg.grad(lambda x: First(2.0).f(x))(1.0) == 2.0
    assert vg.grad(lambda x: Second().f(x))(1.0) == 6.0
    second = Second()
    assert vg.grad(lambda x: second.f(x))(1.0) == 6.0


class HasValue(typing.Protocol):
    def f(self, x): ...


class Fulfils(HasValue):
    count = 0

    def f(self, x):
        type(self).count += 1
        return np.zeros(1)[0] + x * 5


class OneObject:
    found = None

    def __new__(cls, *given):
        if cls.found is None:
            cls.found = super().__new__(cls)
        return cls.found

    def __init__(self, n):
        self.n = n

    def f(self, x):
        y = np.zeros(1)
        y[0] = x * self.n
        return y[0]


def test_attributes_that_adopted_code_sets_on_classes():
    assert vg.grad(lambda x: Fulfils().f(x) + Fulfils().f(x))(1.0) == 10.0
    assert Fulfils.count == 2
    assert vg.grad(lambda x: OneObject(x).f(x) if OneObject(1.0) is OneObject(2.0) else x)(3.0) == 6.0
    Fulfils.count = 7
    assert vg.grad(lambda x: x * Fulfils.count)(1.0) == 7.0


def test_classes_with_slots_and_a_dict_property():
    class Segment:
        __slots__ = ("end", "start")

        def __init__(self, start, end):
            self.start, self.end = start, end

        @property
        def __dict__(self):
            return {"start": self.start, "end": self.end}

        def length(self):
            return np.sqrt((self.end - self.start) ** 2).sum()

    assert vg.grad(lambda x: Segment(x, x * 3).length() * len(vars(Segment(x, 1.0))))(2.0) == 4.0


class Side(typing.NamedTuple):
    width: float
    height: float

    def area(self):
        z = np.zeros(1)
        z[0] = self.width * self.height
        return z[0]


class DoubledSide(Side):
    def area(self):
        return 2 * super().area()


class Totals:
    def total(self):
        z = np.zeros(1)
        for item in self:
            z[0] += self[item] if isinstance(self, dict) else item
        return z[0]


class TotalOfTuple(Totals, tuple):
    pass


class TotalOfList(Totals, list):
    pass


class TotalOfDict(Totals, dict):
    pass


Pair = namedtuple("Pair", "a b")
SIDE = Side(2.0, 3.0)
TOTAL = TotalOfTuple((1.0, 2.0))
TOTAL.note = "kept"
STORE = TotalOfDict(a=2.0)


def test_named_tuples_have_adopted_methods():
    assert vg.grad(lambda x: Side(x, 2 * x).area())(3.0) == 12.0
    assert vg.grad(lambda x: DoubledSide(x, 2 * x).area())(3.0) == 24.0
    assert vg.grad(lambda x: Side._make([x, x])._replace(height=x * x).area())(2.0) == 12.0
    assert vg.grad(lambda x: SIDE.area() * x)(1.0) == 6.0
    assert vg.grad(lambda side: side.area())(SIDE) == Side(3.0, 2.0)
    assert vg.grad(lambda x: Pair(x, x * x)._replace(a=2 * x).a + sum(Pair(x, x)))(1.0) == 4.0

    def looked_at(x):
        side = Side(x, 2.0)
        width, height = side
        assert type(side) is Side and isinstance(side, tuple) and side == (width, height) and side._fields[0] == "width"
        return side[0] * side._asdict()["height"]

    assert vg.grad(looked_at)(3.0) == 2.0
    made, direction = vg.jvp(lambda x: Side(x, 2 * x), (3.0,), (1.0,))
    assert type(made) is type(direction) is Side and made == (3.0, 6.0) and direction == (1.0, 2.0)


def test_classes_derived_from_containers_have_adopted_methods():
    assert vg.grad(lambda x: TotalOfTuple((x, x * x)).total())(3.0) == 7.0
    assert vg.grad(lambda x: TotalOfList([x, x * x]).total())(3.0) == 7.0
    assert vg.grad(lambda x: TotalOfDict(a=x, b=x * x).total())(3.0) == 7.0
    assert vg.grad(lambda x: TOTAL.total() * x if TOTAL.note == "kept" else x)(1.0) == 3.0
    for kind, given in ((TotalOfTuple, (1.0,)), (TotalOfList, [1.0]), (TotalOfDict, {"a": 1.0})):
        made = vg.adopt(lambda kind=kind, given=given: kind(given))()
        assert type(made) is kind and made == given

    def stored(x):
        STORE["b"] = 3.0
        return x * STORE["a"]

    assert vg.grad(stored)(1.0) == 2.0
    assert STORE == {"a": 2.0, "b": 3.0}


class NumPyBackend:
    __array_type__ = np.ndarray
    __zeros__ = np.zeros


def test_attributes_of_classes_name_adopted_objects():
    def f(x):
        assert isinstance(x, NumPyBackend.__array_type__)
        z = NumPyBackend.__zeros__(1)
        z[0] = x.sum()
        return z[0]

    np.testing.assert_array_equal(vg.grad(f)(np.ones(2)), np.ones(2))
    assert NumPyBackend.__array_type__ is np.ndarray


def test_objects_of_classes_with_compiled_bases_are_unchanged():
    class Dice(random.Random):
        def throw(self, x):
            return x * self.randint(1, 6)

    class Half(functools.partial):
        pass

    dice, half = Dice(3), Half(lambda x: x / 2)
    assert vg.adopt(lambda d: d)(dice) is dice and vg.adopt(lambda: half)() is half
    assert vg.grad(lambda x: dice.throw(x))(1.0) == Dice(3).randint(1, 6)
    assert vg.grad(lambda d, x: d.throw(x), argnums=1)(Dice(3), 1.0) == Dice(3).randint(1, 6)
    assert vg.grad(lambda x: half(x))(1.0) == 0.5


class OfNumpy:
    """A class that a program adds to NumPy's namespace."""

    def __init__(self, rows):
        self.array = np.array(rows, dtype=float)

    def __mul__(self, other):
        return OfNumpy(self.array @ other.array)


def with_an_added_class(x):
    return (np.added([[x, 1.0], [2.0, x]]) * np.added([[1.0, x], [0.0, 1.0]])).array.sum()


def test_classes_that_programs_add_to_numpy_are_adopted(monkeypatch):
    monkeypatch.setattr(np, "added", OfNumpy, raising=False)
    assert np.isclose(vg.grad(with_an_added_class)(0.5), 5.0)


class Plain:
    """A class without methods."""

    squares = (np.poly1d([1.0, 0.0, 0.0]),)


class Slots:
    __slots__ = ("function",)


@pytest.mark.parametrize("of", [Plain, Slots])
def test_attributes_of_objects_without_methods_are_adopted(of):
    model = of()

    def stored(x):
        values = np.zeros(2)
        values[0] = x * x
        return values.sum()

    def program(x):
        return model.function(x) * x

    model.function = stored
    assert vg.grad(program)(2.0) == 12.0
    model.function = np.poly1d([1.0, 0.0, 0.0])
    assert vg.grad(program)(2.0) == 12.0


def test_class_attributes_of_classes_without_methods_are_adopted():
    assert vg.grad(lambda x: Plain.squares[0](x))(3.0) == 6.0


def test_objects_without_methods_refer_to_each_other():
    first, second = Plain(), Plain()
    first.next, second.next, second.value = second, first, np.array([3.0, 4.0])
    assert vg.grad(lambda x: (first.next.next.next.value * x).sum())(1.0) == 7.0
    assert vg.grad(lambda x: x if first.next.next is first else 2.0 * x)(1.0) == 1.0


class Shape:
    pass


class Round(Shape):
    pass


class Rectangle(Shape):
    pass


class Named(abc.ABC):
    @abc.abstractmethod
    def name(self): ...


class Label(Named):
    def name(self):
        return "label"


Named.register(Round)
ROUND, LABEL = Round(), Label()


def instances(x):
    class Ellipse(Round):
        pass

    class Tag(Label):
        pass

    made, values = Ellipse(), (ROUND, LABEL, Round(), Label(), Ellipse(), Tag(), x)
    classes = Shape, Round, Named, Label, Ellipse, Tag
    found = [isinstance(value, cls) for value in values for cls in classes]
    found += [isinstance(made, (int, Label, Shape)), isinstance(ROUND, Shape | Label)]
    return [*found, isinstance(made, type(ROUND)), issubclass(Tag, Named), issubclass(type(ROUND), Label)]


def test_instances_of_adopted_classes():
    """Objects created on either side are instances of the same classes as in the user's own code."""
    found = vg.adopt(instances)(1.0)
    assert found == instances(1.0) and True in found and False in found


def test_subclasses_of_classes():
    """Adopted code finds the classes that the user's code finds there, where no other class is added."""

    class Unit:
        def of(self, x):
            return x

    class Doubled(Unit):
        def of(self, x):
            y = np.zeros(2)
            y[:] = x
            return y.sum()

    class Squared(Unit):
        def of(self, x):
            return x * x

    def total(x):
        return sum(kind().of(x) for kind in Unit.__subclasses__())

    def kinds():
        class Local(Squared):
            pass

        return [kind.__name__ for kind in (*Unit.__subclasses__(), *Squared.__subclasses__(), *Local.__subclasses__())]

    assert vg.value_and_grad(total)(3.0) == (15.0, 8.0)
    assert vg.adopt(kinds)() == ["Doubled", "Squared", "Local"]
    assert Unit.__subclasses__() == [Doubled, Squared] and Doubled.__subclasses__() == []
    assert vg.adopt(lambda: Doubled.__bases__ == (Unit,) and Doubled.__base__ is Unit)()


class Unadopted:
    factor, __level__ = 2.0, 1.0


def test_method_resolution_order_of_adopted_classes():
    """It has the classes that the user's code finds there, also if adopted code defines a class."""

    class Unit:
        factor = 2.0

    class Mixin:
        factor = 3.0

        def of(self, x):
            return super().of(x) * 2

    class Doubled(Mixin, Unit):
        factor = 5.0

        def of(self, x):
            y = np.zeros(2)
            y[:] = x
            return y.sum()

    doubled = Doubled()

    def total(x):
        class Local(Doubled):
            factor = 7.0

        orders = type(doubled).__mro__, Doubled.mro(), inspect.getmro(Local), Local.mro(), Doubled.__mro__[1].__mro__
        factors = [vars(each).get("factor", 0.0) for order in orders for each in order]
        assert Doubled.__mro__ is Doubled.__mro__ and Local.__mro__[:2] == (Local, Doubled)
        return x * sum(factors) * len(factors) + Local.__mro__[1].of(doubled, x)

    assert vg.value_and_grad(total)(2.0) == (total(2.0), total(2.0) / 2.0)


def test_reassigned_attributes_of_classes_are_read_by_adopted_code():
    """Also those that are inherited, and where Python has stored what a class has for its version."""
    unadopted = type("Base", (fractions.Fraction,), {"factor": 2.0})

    class Model(Unadopted):
        __scale__ = 1.0

    class Special(Model):
        def read(self):
            return [self.factor, self.__level__, self.__scale__, Special.factor, Special.__scale__, unadopted.factor]

    special = Special()

    def reads():
        for _ in range(20):
            found = special.read(), Special().read()
        return found

    adopted = vg.adopt(reads)
    for number in range(1, 4):
        assert adopted() == reads()
        Unadopted.factor, Unadopted.__level__, unadopted.factor = 10.0 * number, 20.0 * number, 30.0 * number
        assert adopted() == reads()
        Model.__scale__ = 40.0 * number
        assert adopted() == reads()
        Special.factor = 50.0 * number
        assert adopted() == reads()
        del Special.factor


def test_operators_added_to_adopted_classes():
    """Python finds them in the class itself, without looking at those that it derives from."""

    class Model:
        def __getitem__(self, place):
            return range(3)[place]

    class Special(Model):
        pass

    special = Special()
    adopted = vg.adopt(lambda: (-special, -Special(), len(special), special() + Special()(), [*special, *Special()]))
    with pytest.raises(TypeError, match="bad operand type for unary -"):
        adopted()
    Model.__neg__ = Special.__call__ = float  # called without the object, since it is no function
    Model.__len__ = lambda self: 3
    assert adopted() == (0.0, 0.0, 3, 0.0, [0, 1, 2] * 2)
    Model.__iter__ = None
    with pytest.raises(TypeError, match="iterable"):
        adopted()


SIZES = """
class Sized:
    def __eq__(self, other): return type(other) is type(self)
    def __hash__(self): return hash(type(self))
class SizedTwice(Sized): pass
class Kind:
    def __hash__(self): return hash(type(self).__name__)
KIND = Kind()
SIZED = {Sized(), SizedTwice(), KIND}
def found():
    sizes = Sized(), SizedTwice(), KIND
    return [size in SIZED for size in sizes], len({*SIZED, *sizes}), hash(KIND) == hash(Kind()), SIZED == set(sizes)
"""


def test_hashes_of_objects_that_depend_on_their_class():
    space = {"__name__": "sizes_of_a_user"}
    exec(SIZES, space)
    assert vg.adopt(space["found"])() == space["found"]() == ([True] * 3, 3, True, True)


QUANTITIES = """
class Quantity:
    def __new__(cls, value):
        made = super().__new__(cls)
        made.value = value
        return made
    def doubled(self):
        return TwiceQuantity(self.value)
class TwiceQuantity(Quantity):
    def __new__(cls, value):
        return super().__new__(cls, 2 * value)
"""


def test_methods_of_a_base_that_mention_a_subclass(monkeypatch):
    """The subclass is adopted while its base is, and only once."""
    module = types.ModuleType("a_users_quantities")
    exec(QUANTITIES, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    kind = module.TwiceQuantity
    assert vg.grad(lambda x: kind(x).value + kind(x).doubled().value)(1.0) == 6.0


@dataclasses.dataclass
class Oscillator:
    frequency: float
    damping: float = 0.5
    kind: typing.ClassVar[int] = 1


def test_annotations_of_classes():
    def found():
        hints = typing.get_type_hints(Oscillator), Oscillator.__annotations__, inspect.get_annotations(Oscillator)
        return [list(each) for each in hints], [field.name for field in dataclasses.fields(Oscillator(1.0))]

    assert vg.adopt(found)() == found()


def test_names_and_docstrings_of_classes_may_be_reassigned():
    """Adopted classes have them, too, and the views of objects."""

    class Unit:
        """m"""

    unit = Unit()

    def titles():
        kind = type(unit)
        return kind.__name__, Unit.__qualname__, Unit.__module__, unit.__module__, Unit.__doc__, unit.__doc__, str(kind)

    adopted = vg.adopt(titles)
    assert adopted() == titles()
    Unit.__name__, Unit.__qualname__, Unit.__module__, Unit.__doc__ = "Length", "units.Length", "units", None
    assert adopted() == titles() == ("Length", "units.Length", "units", "units", None, None, str(Unit))


def test_instance_checks_run_no_python_function():
    """A check takes as long as one of the user's class, so that loops with checks do, too."""
    frames = []

    def f(x):
        sys.setprofile(lambda frame, event, function: frames.append(frame.f_code.co_name) if event == "call" else None)
        isinstance(ROUND, Shape), isinstance(ROUND, Rectangle), isinstance(x, Round)
        sys.setprofile(None)
        return x

    vg.adopt(f)(1.0)
    assert frames == []


def test_reassigned_bases_of_classes_are_those_of_adopted_code():
    class A:
        def f(self, x):
            return 2.0 * x

    class B:
        weights = np.array([3.0])

        def f(self, x):
            return self.weights[0] * x

    class G(A):
        pass

    class C(G):
        pass

    c = C()

    def program(x):
        return c.f(x), C().f(x), isinstance(c, B), issubclass(C, A), [each.__name__ for each in C.__mro__]

    def changing(x):
        G.__bases__ = (B,)
        inside = program(x)
        G.__bases__ = (A,)
        return inside, program(x)

    adopted = vg.adopt(program)
    for bases in ((A,), (B,), (A, B), (B, A), (B,)):
        G.__bases__ = bases
        assert adopted(1.0) == program(1.0)
        C.__bases__ = (bases[-1],)
        assert adopted(1.0) == program(1.0)
        C.__bases__ = (G,)
    assert vg.adopt(changing)(1.0) == changing(1.0)


class Named:
    """Has a property in place of the attribute that Python sets on classes."""

    def __init__(self, factor):
        self.factor = factor

    @property
    def __name__(self):
        return f"named {self.factor}"


NAMED = Named(2.0)


def test_classes_with_a_property_for_the_name():
    def f(x):
        made = Named(3.0)
        return NAMED.factor * x * len(NAMED.__name__) + made.factor * x * len(made.__name__)

    assert vg.value_and_grad(f)(0.5) == (f(0.5), pytest.approx(2 * f(0.5)))


def test_the_garbage_collector_may_run_while_an_object_is_adopted(monkeypatch):
    """The adopted class of the object is referred to weakly until then."""

    class Model:
        def value(self, x):
            return 2.0 * x

    original_of_view = registry.original_of_view
    monkeypatch.setattr(registry, "original_of_view", lambda value: (gc.collect(), original_of_view(value))[1])
    model = Model()
    assert vg.grad(lambda x, model=model: model.value(x))(0.5) == 2.0


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


class Abstract(abc.ABC):  # noqa: B024
    pass


class Slotted(Named):
    __slots__ = ("rate",)


def classes_of_classes(x):
    made = type("Made", (Named,), {})
    kinds = [Named, Slotted, made, int, float, complex, type, Meta, np.ndarray, np.float64, np.int64, type(x), dict]
    found = [type(kind) is type for kind in kinds] + [type(kind) in (type, Meta) for kind in kinds]
    found += [type(WithMeta) is Meta, type(Abstract) is abc.ABCMeta, type(type(NAMED)) is type, type(NAMED) is Named]
    found += [type(Slotted(1.0)) is Slotted, type(made(2.0)) is made, issubclass(Meta, type), isinstance(Named, type)]
    return [*found, repr(type), type.__name__, type.__module__, type(Named).__name__, pickle.loads(pickle.dumps(type))]


def test_the_classes_of_classes_are_pythons():
    assert vg.adopt(classes_of_classes)(1.0) == classes_of_classes(1.0)


class Recorded:
    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, instance, owner=None):
        return owner if instance is None else (owner, getattr(instance, self.name))

    def __set__(self, instance, value):
        setattr(instance, self.name, value)


class Counter:
    calls = 0
    rate = Recorded()

    def __init__(self, rate=1.0):
        self.rate = rate

    @classmethod
    def made(cls, rate):
        cls.calls += 1
        return cls(rate)

    @classmethod
    def is_mine(cls, other):
        return isinstance(other, cls), type(other) is cls

    @classmethod
    def its_class(cls):
        return cls

    of_part = functools.partialmethod(classmethod(lambda cls, n: (cls, n)), 3)

    def ask(self, x):
        return self.made(x).rate, self.is_mine(self), self.is_mine(type(self)(x)), self.its_class() is type(self)


class LaterCounter(Counter):
    __hash__ = None


COUNTER, LATER = Counter(), LaterCounter(2.0)


def classes_of_methods(x):
    found = [COUNTER.ask(x), LATER.ask(x), COUNTER.of_part(), LATER.of_part(), COUNTER.rate, LATER.rate]
    found += [COUNTER.made(x).rate, LATER.made(x).is_mine(COUNTER), COUNTER.is_mine(LATER)]
    found += [Counter.calls, LaterCounter.calls, COUNTER.calls, LATER.calls]
    found += [isinstance(each, Hashable) for each in (COUNTER, LATER, Counter(), LaterCounter())]
    LaterCounter.its_class = classmethod(lambda cls: (cls, "assigned"))
    found.append(LATER.its_class())
    LaterCounter.its_class = lambda self: "a method"
    found.append(LATER.its_class())
    del LaterCounter.its_class
    return [*found, LATER.its_class()]


@pytest.fixture
def counts():
    yield
    Counter.calls = 0
    LaterCounter.calls = 0
    del LaterCounter.calls


def test_class_methods_of_the_users_objects_receive_the_users_class(counts):
    expected = classes_of_methods(1.5)
    assert (Counter.calls, LaterCounter.calls) == (2, 3)
    Counter.calls = 0
    del LaterCounter.calls
    found = vg.adopt(classes_of_methods)(1.5)
    assert str(found) == str(expected) and (Counter.calls, LaterCounter.calls) == (2, 3)


def test_class_methods_may_be_reassigned_between_calls(monkeypatch):
    def f(x):
        return LATER.its_class()

    adopted = vg.adopt(f)
    assert adopted(1.0) is LaterCounter
    monkeypatch.setattr(Counter, "its_class", classmethod(lambda cls: (cls is LaterCounter, "base")))
    assert adopted(1.0) == (True, "base")
    monkeypatch.setattr(LaterCounter, "its_class", classmethod(lambda cls: (cls is LaterCounter, "own")), raising=False)
    assert adopted(1.0) == (True, "own")
    monkeypatch.setattr(LaterCounter, "its_class", lambda self: "a method")
    assert adopted(1.0) == "a method"
    monkeypatch.undo()
    assert adopted(1.0) is LaterCounter


class Disguised:
    """Like the classes of libraries that stand for other objects."""

    __class__ = property(lambda self: dict)
    __bases__ = property(lambda self: ())
    __qualname__ = "Disguised"

    def value(self, x):
        return 2.0 * x


DISGUISED = Disguised()


def teardown_module():
    """Delete the object, since compiled functions of other tests may capture all variables of all modules."""
    del globals()["DISGUISED"]


def test_classes_with_properties_named_like_the_attributes_of_classes():
    def f(x):
        return DISGUISED.value(x) * Disguised().value(x) * (isinstance(DISGUISED, dict) + len(DISGUISED.__bases__))

    assert vg.value_and_grad(f)(1.5) == (f(1.5), 12.0)


class AbstractShape(abc.ABC):
    @abc.abstractmethod
    def area(self, x):
        """Return the area."""


class Labelled(AbstractShape):
    label = property(lambda self: "label")


class Square(Labelled):
    def area(self, x):
        return x**2


def test_abstract_classes_cannot_be_instantiated():
    def f(x):
        class Disc(AbstractShape):
            def area(self, x):
                return 3.0 * x**2

        class Unfinished(Labelled):
            pass

        for kind in (AbstractShape, Labelled, Unfinished):
            assert inspect.isabstract(kind) and kind.__abstractmethods__ == {"area"}
            with pytest.raises(TypeError, match="abstract"):
                kind()
        assert not inspect.isabstract(Square) and not inspect.isabstract(Disc)
        return Square().area(x) + Disc().area(x)

    assert vg.value_and_grad(f)(1.5) == (f(1.5), 12.0)
