"""`viewgrad.math` is `math` extended to tensors."""

import math as python

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.math as math
from viewgrad.autograd import gradcheck


def test_every_name_exists():
    assert [name for name in dir(python) if not name.startswith("_") and not hasattr(math, name)] == []


@pytest.mark.parametrize("name", [name for name in math.NAMED if hasattr(python, name)])
def test_functions_of_numbers_and_of_tensors(name):
    function, plain = getattr(math, name), getattr(python, name)
    value = 1.3 if name == "acosh" else 0.4
    arguments = (value, 0.7) if name in ("atan2", "copysign", "fmod", "pow") else (value,)
    assert function(*arguments) == plain(*arguments)
    leaves = [vg.Tensor(argument, requires_grad=True) for argument in arguments]
    assert function(*leaves).detach().item() == pytest.approx(plain(*arguments), rel=1e-12)
    assert gradcheck(function, leaves)


def test_other_functions_of_math_have_gradients():
    x = vg.Tensor(0.7, requires_grad=True)
    for function in (
        lambda x: math.log(x),
        lambda x: math.log(x, 2),
        lambda x: math.hypot(x, 2.0, x),
        lambda x: math.dist([x, 1], [0, x * x]),
        lambda x: math.fsum([x, x * x, 1.0]),
        lambda x: math.prod([x, x, 3.0]),
        lambda x: math.modf(x * 3)[0],
    ):
        assert gradcheck(function, x)
    assert math.floor(x) == 0 and math.ceil(x) == 1 and math.isclose(x, 0.7)
    assert math.pi == python.pi


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_match_python():
    for function, value in ((math.sqrt, -1.0), (math.log, 0.0), (math.acos, 2.0)):
        with pytest.raises(ValueError):
            function(vg.Tensor(value))
    with pytest.raises(OverflowError):
        math.exp(vg.Tensor(1000.0))
    with pytest.raises(TypeError, match="one element"):
        math.sin(vg.Tensor(np.ones(2)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", [vg.Tensor, lambda value: vg.Tensor([value])[0], lambda value: vg.Tensor([value])])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("sqrt", (-1.0,)), ("log", (0.0,)), ("log1p", (-1.0,)), ("atanh", (1.0,)), ("acosh", (0.5,)), ("asin", (-2.0,)),
     ("log", (-1.0, 2.0)), ("log", (2.0, -1.0)), ("log", (2.0, 1.0)), ("log", (0.0, 2.0))],
)  # fmt: skip
def test_errors_of_domains_are_raised_without_a_warning(name, arguments, make):
    with pytest.raises((ValueError, ZeroDivisionError)) as expected:
        getattr(python, name)(*arguments)
    for at in range(len(arguments)):
        with pytest.raises(expected.type):
            getattr(math, name)(*(make(each) if i == at else each for i, each in enumerate(arguments)))


@pytest.mark.parametrize("number", [True, 2, np.float64(0.5), np.float32(0.5), np.int64(1), np.array(0.5), "0.5"])
@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "floor", "isnan"])
def test_other_types_of_numbers_have_the_result_and_error_of_python(name, number):
    try:
        expected = getattr(python, name)(number)
    except TypeError:
        with pytest.raises(TypeError):
            getattr(math, name)(number)
        return
    found = getattr(math, name)(number)
    assert type(found) is type(expected) and found == expected


def test_scalars_and_integers_and_infinities():
    x = vg.Tensor([4.0], requires_grad=True)
    assert vg.autograd.grad(math.sqrt(x[0]), [x])[0].tolist() == [0.25]
    assert math.sqrt(vg.Tensor(np.int64(4))).item() == 2.0
    assert math.exp(vg.Tensor(np.inf)).item() == np.inf
    assert math.hypot(vg.Tensor(np.inf), vg.Tensor(np.nan)).item() == np.inf


def test_names_are_those_of_this_version_of_python():
    assert all(hasattr(math, name) == hasattr(python, name) for name in ("sumprod", "fma", "cbrt", "exp2", "hypot"))
