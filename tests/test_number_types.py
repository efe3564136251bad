"""Types of numbers and of 0-d arrays in adopted functions: the same eagerly, while a run is traced, and compiled."""

import numpy as np
import pytest

import viewgrad as vg


def of_argument(x):
    return x * 2.0 if type(x) is float else x * 3.0


def of_argument_among_others(x):
    return x * 2.0 if type(x) in (int, float) and issubclass(type(x), float) else x * 3.0


def by_dict(x):
    return {float: x * 2.0}.get(type(x), x * 3.0)


def of_result(x):
    root = np.sqrt(x)
    return root * 2.0 if type(root) == np.float64 else root * 3.0  # noqa: E721


def of_result_for_array(x):
    root = np.sqrt(np.asarray(x))
    return root * 2.0 if type(root) == np.ndarray else root * 3.0  # noqa: E721


def of_array(x):
    return x * 2.0 if type(np.array(x)) == np.ndarray else x * 3.0  # noqa: E721


def zeros_written(x):
    y = np.zeros_like(np.sqrt(x), dtype=float)
    y[()] = np.sqrt(x)
    return y * 1.0


def zeros_of_argument(x):
    y = np.zeros_like(x)
    return np.add(y, x, out=y, where=x > 0) * 1.0


def ones_multiplied(x):
    y = np.ones_like(x)
    y *= x
    return y * 1.0


def out_like_result(x):
    root = np.sqrt(x)
    return np.divide(root, 2.0, out=np.zeros_like(root), where=root != 0) * 1.0


def empty_written(x):
    y = np.empty_like(np.sqrt(x))
    y[...] = x
    y += 1.0
    return y * 1.0


def full_multiplied(x):
    y = np.full_like(np.sqrt(x), 2.0)
    np.multiply(x, y, out=y)
    return y * 1.0


FUNCTIONS = (
    of_argument, of_argument_among_others, by_dict, of_result, of_result_for_array, of_array, zeros_written,
    zeros_of_argument, ones_multiplied, out_like_result, empty_written, full_multiplied,
)  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_types_of_numbers(f):
    value, step = float(f(1.5)), 1e-6
    slope = (float(f(1.5 + step)) - float(f(1.5 - step))) / (2 * step)
    assert vg.value_and_grad(f)(1.5) == pytest.approx((value, slope))
    assert vg.jvp(f, (1.5,), (1.0,)) == pytest.approx((value, slope))
    for specialize in (False, True):
        compiled = vg.compile(f, executor="python", specialize=specialize)
        differentiated = vg.value_and_grad(vg.compile(f, executor="python", specialize=specialize))
        for _ in range(3):
            assert float(compiled(1.5)) == pytest.approx(value)
            assert differentiated(1.5) == pytest.approx((value, slope))
