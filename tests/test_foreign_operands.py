"""Operands that cannot become tensors without loss: Python's operators defer to the other class, functions raise."""

import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from leaves import leaf_of

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.errors import AutogradError, UnsupportedTypeError


class Unit:
    """A class that handles every other operand."""

    __array_ufunc__ = None


class Weighted(np.ndarray):
    """An array class that redefines products."""

    __array_priority__ = 10.0


def _answer(name):
    return lambda self, other: (name, type(other).__name__)


BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "divmod",
)
for _name in BINARY:
    setattr(Unit, f"__r{_name}__", _answer(f"r{_name}"))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Unit, f"__{_name}__", _answer(_name))


@pytest.mark.parametrize("name", BINARY)
def test_reflected_operators_of_the_other_class_run(name):
    function = divmod if name == "divmod" else getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
    tensor = vg.Tensor([1, 2])
    assert function(tensor, Unit()) == (f"r{name}", "Tensor")
    if name != "divmod":  # an augmented assignment falls back on the plain operator
        inplace = getattr(operator, f"i{name}")
        assert inplace(tensor, Unit()) == (f"r{name}", "Tensor")


@pytest.mark.parametrize("name, mirrored", [("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le")])
def test_comparisons_of_the_other_class_run(name, mirrored):
    assert getattr(operator, name)(vg.Tensor([1.0]), Unit()) == (mirrored, "Tensor")


def test_unsupported_operands_raise_pythons_type_error():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match="unsupported operand"):
        x * Decimal("0.5")
    with pytest.raises(TypeError, match="unsupported operand"):
        "a" - x
    with pytest.raises(UnsupportedTypeError, match="cannot make a tensor operand of Decimal"):
        vg.mul(x, Decimal("0.5"))


COMPARISONS = "lt le gt ge eq ne".split()


@pytest.mark.parametrize("name", [*"add sub mul truediv floordiv mod pow".split(), *COMPARISONS])
def test_integers_and_decimals_are_computed_by_numpy(name):
    apply, number = getattr(operator, name), Decimal("0.5")
    for array in (np.int64(2), np.array([1, 2]), np.array([True, True])):
        found, expected = apply(vg.Tensor(array), number), apply(array, number)
        assert np.array_equal(found, expected) and (name in COMPARISONS or isinstance(found, type(expected)))
        if name not in COMPARISONS:
            assert np.array_equal(apply(number, vg.Tensor(array)), apply(number, array))
    x = vg.Tensor([0.25, 0.75], requires_grad=True)
    if name in COMPARISONS:
        assert np.array_equal(apply(x, number), apply(x.detach().numpy(), number))
    else:
        with pytest.raises(TypeError):
            apply(x, number)


def test_fractions_are_numbers():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    y = x * Fraction(1, 2) + Fraction(3, 4) / x[1] + vg.mul(x, Fraction(1, 4))
    assert y.tolist() == [1.125, 1.875]
    assert vg.autograd.grad(y.sum(), x)[0].tolist() == [0.75, 0.75 - 2 * 0.75 / 4]


def test_the_mask_of_a_masked_array_is_never_lost():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    plain = vg.Tensor([1.0, 2.0])
    for make in (
        lambda: vg.Tensor(masked),
        lambda: vg.from_numpy(masked),
        lambda: np.add(plain, masked, out=vg.zeros(2)),
        lambda: np.concatenate([masked, plain]),
        lambda: plain.copy_(masked),
        lambda: plain.dot(masked),
        lambda: plain.__setitem__(slice(None), masked),
    ):
        with pytest.raises(TypeError, match="would lose its mask"):
            make()
    for made in (plain * masked, vg.add(plain, masked), np.multiply(masked, plain), np.multiply(plain, masked)):
        assert isinstance(made, np.ma.MaskedArray) and made.mask.tolist() == [False, True]
    unmasked = np.ma.array([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(plain.dot(unmasked), np.ma.MaskedArray) and plain.dot(unmasked).tolist() == [7.0, 10.0]
    assert leaf_of([1.0, 2.0]).dot(unmasked).tolist() == [7.0, 10.0]


@pytest.mark.parametrize("name", [f"i{name}" for name in BINARY if name != "divmod"])
@pytest.mark.parametrize("other", [np.ma.array([1, 2], mask=[False, True]), np.array([1, 2]).view(Weighted)])
def test_augmented_assignments_do_not_replace_a_tensor_by_an_array(name, other):
    tensor = vg.Tensor([5, 7] if name != "imatmul" else [[5, 7], [1, 2]])
    with pytest.raises(TypeError, match="would lose"):
        getattr(operator, name)(tensor, other)


def test_memmap_subclasses_are_accepted(tmp_path):
    mapped = np.memmap(tmp_path / "numbers", dtype=float, mode="w+", shape=(3,))
    mapped[...] = 2.0
    x = vg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * mapped).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(TypeError, match="would lose the rules of that class"):
        vg.Tensor(np.ones(2).view(Weighted))  # defines another product


def test_subclasses_with_rules_of_their_own_compute_with_values_only():
    class Lengths(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            return getattr(ufunc, method)(*map(np.asarray, inputs), **options).view(Lengths)

    lengths = np.array([1.0, 2.0]).view(Lengths)
    product = vg.Tensor([3.0, 4.0]) * lengths
    assert type(product) is Lengths and product.tolist() == [3.0, 8.0]
    with pytest.raises(TypeError, match="would lose the rules of that class"):
        leaf_of([3.0, 4.0]) * lengths


def test_a_tensor_made_of_a_tensor_never_loses_its_history():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for tensor in (x, x * 2, (x * 2)[:1]):
        with pytest.raises(AutogradError, match=r"use clone\(\).*detach\(\)"):
            vg.Tensor(tensor)
    assert vg.Tensor(x.detach()).tolist() == [1.0, 2.0]
    with vg.autograd.forward_ad.dual_level():
        dual = vg.autograd.forward_ad.make_dual(vg.Tensor([1.0]), vg.Tensor([1.0]))
        with pytest.raises(AutogradError, match="has a tangent"):
            vg.Tensor(dual)


def test_masked_arrays_beside_a_history():
    """Operators and ufuncs return masked tensors; anything else that would lose the mask or the history is refused."""
    x = leaf_of([1.0, 2.0])
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for made in (x * masked, np.multiply(x, masked), np.multiply(masked, x)):
        assert isinstance(made, vg.numpy.masked.MaskedTensor) and made.mask.tolist() == [False, True]
        assert vg.autograd.grad(made.sum(), x)[0].tolist() == [1.0, 0.0]
    refused = (lambda: masked * x, lambda: x.dot(masked), lambda: vg.Tensor(masked), lambda: vg.zeros(2).add_(masked))
    for act in refused:
        with pytest.raises(Exception, match="mask"):
            act()


# -- arrays of objects, and objects that give tensors ------------------------------------------------------------------


class Measured:
    """An object that converts itself to a tensor."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


COMBINED = {
    "times a scalar": lambda x, o: (o * x[2]).sum(),
    "scalar times": lambda x, o: (x[2] * o).sum(),
    "times a vector": lambda x, o: (x[:2] * o + o / x[1:]).sum(),
    "in a product": lambda x, o: x[:2] @ o,
    "joined": lambda x, o: (np.concatenate([x, o]) ** 2).sum(),
    "chosen": lambda x, o: np.where([True, False], o, x[1:]).prod(),
    "of two dimensions": lambda x, o: (x - np.array([[o[0]], [2.0]], object)).prod(),
    "made a tensor": lambda x, o: vg.array(o).prod(),
    "in place": lambda x, o: x.clone().__imul__(np.array([o[0], 1.0, o[1]], object)).sum(),
}


@pytest.mark.parametrize("name", COMBINED)
def test_object_arrays_of_tensors_are_operands(name):
    program = COMBINED[name]
    at = np.array([0.5, 2.0, 3.0])

    def objects(x):
        return program(x, np.array([x[0] * 2, x[1]], object))

    def plain(x):
        return program(vg.Tensor(x), vg.Tensor([x[0] * 2, x[1]])).item()

    if name not in ("of two dimensions", "in place"):
        assert objects(vg.Tensor(at)).item() == pytest.approx(plain(at))
    steps = np.eye(3) * 1e-6
    difference = [
        (objects(vg.Tensor(at + step)).item() - objects(vg.Tensor(at - step)).item()) / 2e-6 for step in steps
    ]
    np.testing.assert_allclose(vg.func.grad(objects)(at), difference, rtol=1e-7)


def test_objects_with_tensor_array_method_are_operands():
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    measured = Measured(x * 2)
    for found in (
        x * measured, measured.values * x, np.multiply(x, measured), vnp.multiply(measured, x),
        vnp.asarray(measured) * x, vg.array(measured) * x, vnp.sum([measured.values, measured.values], 0) * x / 2,
    ):  # fmt: skip
        assert vg.autograd.grad(found.sum(), x, retain_graph=True)[0].tolist() == [4.0, 8.0]

    class Unit(Measured):
        __array_ufunc__ = None

    with pytest.raises(TypeError):
        x * Unit(np.ones(2))
    with pytest.raises(TypeError, match="object"):
        x * np.array([1.0, None])


class Wrapped:
    """A class that computes ufuncs itself."""

    def __init__(self, values):
        self.values = values

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        values = [each.values if isinstance(each, Wrapped) else each for each in inputs]
        return Wrapped(getattr(ufunc, method)(*values, **options))


@pytest.mark.parametrize("name", ["multiply", "add", "power", "arctan2", "maximum", "matmul", "logaddexp"])
def test_ufuncs_of_a_tensor_and_an_object_of_such_a_class_defer_to_it(name):
    x = leaf_of([1.0, 2.0, 3.0])
    other, plain = np.array([0.5, 1.5, 2.5]), x.detach().numpy()
    for operands in ((x, Wrapped(other)), (Wrapped(other), x)):
        found = getattr(vnp, name)(*operands).values
        expected = getattr(np, name)(*(plain if each is x else each.values for each in operands))
        assert found.requires_grad and found.detach().numpy() == pytest.approx(expected)
    with pytest.raises(UnsupportedTypeError):
        getattr(vnp, name)(x, object())


class Polynomial:
    """A sequence of coefficients with operators that are not elementwise."""

    def __init__(self, coefficients):
        self.coefficients = list(coefficients)

    def __radd__(self, other):
        return Polynomial([self.coefficients[0] + other, *self.coefficients[1:]])

    def __rtruediv__(self, other):
        return Polynomial([other / self.coefficients[0]])

    def __gt__(self, other):
        return Polynomial([self.coefficients[0] - other])

    def __len__(self):
        return len(self.coefficients)

    def __getitem__(self, index):
        return self.coefficients[index]


class Pair(tuple):
    """A tuple with a sum of its own."""

    __slots__ = ()

    def __radd__(self, other):
        return Pair((self[0] + other, self[1]))


class Before(Polynomial):
    """A class that takes precedence over arrays."""

    __array_priority__ = 1.0


OF_SEQUENCES = {
    "sum": lambda x: sum(x + Polynomial([x * x, 2.0])),
    "quotient": lambda x: sum(x / Polynomial([x * x, 2.0])),
    "comparison": lambda x: sum(x < Polynomial([x * x, 2.0])),
    "subclass of tuple": lambda x: sum(x + Pair((x * x, 2.0))),
    "augmented": lambda x: sum(augmented(x, Polynomial([x * x, 2.0]))),
}


def augmented(total, term):
    total += term
    return total


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_sequences_with_operators_of_their_own_beside_numbers(name):
    program = OF_SEQUENCES[name]
    value, slope = vg.value_and_grad(program)(1.5)
    assert value == program(1.5)
    assert slope == pytest.approx((program(1.5 + 1e-6) - program(1.5 - 1e-6)) / 2e-6)
    leaf = leaf_of(1.5)
    assert program(leaf).item() == program(1.5)


def test_sequences_with_a_priority_beside_arrays():
    def program(x):
        return (x + Before([x[0], 2.0]))[0].sum() + augmented(x * 2, Before([1.0]))[0].sum()

    x = np.array([1.5, 0.5])
    value, slopes = vg.value_and_grad(program)(x)
    assert value == program(x) and slopes.tolist() == [5.0, 3.0]
    assert vg.grad(lambda x: (x * [1.0, x[0]] + Pair((x[0], 1.0))).sum())(x).tolist() == [2.5, 1.5]


class Counted:
    """An array with `__array_ufunc__` and without operators."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0, 3.0])

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if out is not None:
            out[0][...] = 7.0
        return ufunc.__name__


BINARY_UFUNCS = [name for name, value in vars(np).items() if isinstance(value, np.ufunc) and value.nin == 2]


@pytest.mark.parametrize("name", BINARY_UFUNCS)
def test_ufuncs_call_the_class_of_an_operand(name):
    for x in (leaf_of([0.1, 0.2, 0.3]), vg.Tensor([0.1, 0.2, 0.3])):
        for operands in ((x, Counted()), (Counted(), x)):
            assert getattr(np, name)(*operands) == getattr(np, name).__name__


@pytest.mark.parametrize("name", ["add", "matmul", "pow", "lt", "eq", "ne"])
def test_operators_call_the_class_of_an_operand(name):
    apply = getattr(operator, name)
    array = np.array([0.1, 0.2, 0.3])
    for x in (vg.Tensor(array.copy(), requires_grad=True), vg.Tensor(array.copy())):
        assert apply(x, Counted()) == apply(array, Counted())
        assert apply(Counted(), x) == apply(Counted(), array)


def test_augmented_assignments_call_the_class_of_an_operand():
    x = y = vg.zeros(3)
    x += Counted()
    assert x == "add" and y.tolist() == [7.0, 7.0, 7.0]


def test_functions_convert_arrays_of_a_class_with_ufuncs():
    x = leaf_of([0.1, 0.2, 0.3])
    assert vg.autograd.grad(np.dot(x, Counted()), x)[0].tolist() == [1.0, 2.0, 3.0]
    y = vg.zeros(3)
    y[...] = Counted()
    assert y.tolist() == [1.0, 2.0, 3.0]
