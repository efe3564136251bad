"""Local variables that may be unassigned when they are read, in functions compiled from their source."""

import numpy as np
import pytest

import viewgrad as vg


def name_of_an_argument(x):
    if x > 0:
        q = x
    return q * 2


def constant(x):
    if x > 0:
        k = 3
    return x * k


def other_variable(x):
    y = x * 2
    if x > 0:
        q = y
    return q * q


def unpacked(x):
    if x > 0:
        a, b = x, 2.0
    return a * b


def items_of_a_tuple(x):
    if x > 0:
        p = (x, x * 2)
    return p[0] * p[1]


def nested_function(x):
    if x > 0:

        def f(z):
            return z * 3

    return f(x)


def function_of_a_loop(x):
    while x > 1:

        def f(z):
            return z * 3

        x = x * 0.5
    return f(x)


def string(x):
    if x > 0:
        s = "sum"
    return x * len(s)


def other_name_of_an_array(x):
    v = np.ones(3) * x
    if x > 0:
        w = v
    return w.sum()


def constant_of_a_loop(x):
    while x > 1:
        k = 3
        x = x * 0.5
    return x * k


def loop_variable(x):
    for i in range(int(x)):  # noqa: B007
        pass
    return x * i


def item_of_a_loop(x):
    v = np.ones(3) * x
    for i, r in enumerate(v[: int(x)]):  # noqa: B007
        pass
    return r * i


def condition(x):
    _ = x > 0 and (q := x)
    return q


def constant_of_a_condition(x):
    if x > 0 and (k := 3):
        pass
    return x * k


def conditional_expression(x):
    y = (q := x) if x > 0 else 0.0
    return y + q


def conditional_expression_of_another_kind(x):
    q = 0
    y = (q := x * 2) if x > 0 else 1.0
    return y + q * x


def condition_that_is_known(x):
    k = 1
    if x > 0 and (k := 3):
        pass
    return x * k


def item_of_a_dict(x):
    if x > 0:
        d = {"a": x}
    return d["a"] * 2


def after_a_handler(x):
    try:
        if x < 0:
            raise KeyError
        q = x
    except KeyError:
        pass
    return q * 2


def inlined(x):
    return name_of_an_argument(x) + x


def bound_of_a_loop(x):
    if x > 0:
        n = 3
    s = 0.0 * x
    for _ in range(n):
        s += x
    return s


def assigned_in_two_branches(x):
    if x > 2:
        q = x
    if x < 0:
        q = 3.0
    return q * x


PROGRAMS = [
    name_of_an_argument, constant, other_variable, unpacked, items_of_a_tuple, nested_function, function_of_a_loop,
    string, other_name_of_an_array, constant_of_a_loop, loop_variable, item_of_a_loop, condition,
    constant_of_a_condition, conditional_expression, conditional_expression_of_another_kind, condition_that_is_known,
    item_of_a_dict, after_a_handler, inlined, bound_of_a_loop, assigned_in_two_branches,
]  # fmt: skip


def outcome(f, x):
    try:
        value, slope = vg.value_and_grad(f)(x)
    except UnboundLocalError as error:
        return type(error)
    return float(value), float(slope)


@pytest.mark.parametrize("executor", ["python", "numba"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_unassigned_variables_raise_as_in_eager_runs(program, executor):
    for points in ([2.5, -1.5], [-1.5, 2.5]):
        compiled = vg.compile(program, executor=executor, specialize=False)
        for x in points * 2:
            assert outcome(compiled, x) == outcome(program, x)
