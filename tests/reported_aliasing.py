"""Programs after public reports about aliases: buffers, loops that carry state, duplicates, compiled helpers, modes.

Each was written for this suite on the theme of a report about a library for automatic differentiation, or about a
compiler of array programs. They run on arrays and on tensors; if differences do not determine the derivative, it is
stated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import viewgrad as vg

PROGRAMS = {}
_rng = np.random.default_rng(11)


class Program(NamedTuple):
    """A function of an array, and where it is differentiated.

    Attributes:
        function, at: the function, and the point.
        slope: the gradient, for points at which differences do not give it.
        compiled: whether it is compiled, too; not if it compiles a part of itself.
        forward: whether it is differentiated in forward mode, which records what is done in `no_grad`, too.
        rows: whether it is mapped over rows, too.
        holds_values: whether values that are kept constant are part of it; differences would vary them.
    """

    function: Callable[[Any], Any]
    at: Any
    slope: Any
    compiled: bool
    forward: bool
    rows: bool
    holds_values: bool


def program(at, slope=None, *, compiled=True, forward=True, rows=True, holds_values=False):
    """Register a function of an array; see `Program`."""

    def register(function):
        PROGRAMS[function.__name__] = Program(function, np.asarray(at), slope, compiled, forward, rows, holds_values)
        return function

    return register


def drawn(*shape):
    return _rng.uniform(0.3, 1.7, shape)


def is_tensor(value):
    return isinstance(value, vg.Tensor)


def constant(value):
    return value.detach() if is_tensor(value) else value.real if np.iscomplexobj(value) else value


# -- duplicate indices -------------------------------------------------------------------------------------------------


@program(drawn(5))
def fill_the_same_row_twice(x):
    a = np.outer(x, x)
    a[[2, 2]] = x[0] * x[1]
    return (a * a).sum()


@program(drawn(5, 3))
def copy_rows_to_one_place(x):
    z = np.zeros_like(x)
    z[[0, 0, 0, 1, 1]] = x * x
    return (z * np.arange(1.0, 16.0).reshape(5, 3)).sum()


@program(drawn(3))
def second_copy_of_a_repeated_element(x):
    twice = x[np.array([0, 0])]
    return twice[1] * x[2]


@program(drawn(4))
def columns_stacked_and_selected(x):
    stacked = np.stack([x[..., k] for k in range(4)], axis=-1)
    return (stacked[..., np.array([0, 2])] * np.array([1.0, -1.0])).sum() ** 2


@program(drawn(3, 2))
def augmented_by_itself_at_duplicates(x):
    a = x * 1.0
    a[[0, 0]] += a[[0, 0]]
    return (a**2).sum()


@program(drawn(2, 5))
def augmented_at_a_computed_duplicate(x):
    a = x * 1.0
    places = np.array([[-10, -10]]) + 10
    a[places] += a[places] * x[1]
    return (a * a).sum()


# -- values that are overwritten, and points at which slopes are infinite ----------------------------------------------


@program(np.zeros(1), [1.0])
def overwritten_root(x):
    y = np.zeros_like(x)
    y[0] = np.sqrt(x[0])
    y[0] = x[0] - 1
    return y.sum()


@program([np.nan, 1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 1.0, 1.5, 2.0])
def mean_of_squares_without_nan(x):
    return np.nanmean(x**2)


@program([0.0, 2.0], [0.0, 0.0])
def zeroth_power(x):
    return (x**0).sum()


@program([190.0, -195.0, 200.0], [0.0, 0.0, 0.0])
def saturated_tanh(x):
    return np.tanh(x).sum()


@program([0.0, 1.0], [0.5, 1 / (1 + np.exp(-1.0))])
def softplus(x):
    return np.logaddexp(0.0, x).sum()


@program(drawn(3))
def logistic_with_an_element_replaced(x):
    b = 1 / (1 + np.exp(-x))
    b[1] = 2.0
    return (b * b).sum()


@program(drawn(4))
def saved_result_that_is_written(x):
    e = np.exp(x)
    y = e * e
    e *= y
    y[1:] += e[:-1]
    return e.sum() + (y * x).sum()


@program(drawn(6))
def empty_slices(x):
    a = x * 1.0
    a[:0] = 2.0
    a[3:3] *= x[0]
    a[6:] += 1.0
    return (a * a).sum()


@program(drawn(6))
def length_of_a_slice(x):
    tail = x[1:]
    total = x[0] * len(tail)
    for i in range(len(tail)):
        total = total + tail[i] * (i - len(x))
    return total * total


# -- views -------------------------------------------------------------------------------------------------------------


@program(drawn(4, 6))
def gaps_between_windows(x):
    a = x * 1.0
    v = a[:, ::5]
    v += v
    return (a * x).sum()


@program(drawn(4, 4))
def upper_diagonal_by_stride(x):
    a = x * 1.0
    d = a.reshape(-1)[1:12:5]
    d[...] = x[3, :3] ** 2
    return (a * np.arange(16.0).reshape(4, 4)).sum()


@program(drawn(2, 4))
def views_of_views_and_a_scaled_base(x):
    a = x * 1.0
    e = a[:][:, :2]
    e += 1.0
    a *= 2.0
    e[1:2] = 3.0
    return (e * x[:, 2:]).sum() + a[0, 3]


@program(drawn(2, 2))
def transposed_view_times_an_argument(x):
    base = np.ones_like(x)
    view = base.T
    view *= x
    view *= 2.0
    return (base * np.array([[1.0, 2.0], [3.0, 4.0]])).sum() + (view * x).sum()


@program(drawn(1, 4))
def second_half_scaled(x):
    flow = x * 1.0
    u, v = flow[:, :2], flow[:, 2:]
    u *= 2.0
    v *= x[:, :2]
    return (flow * x).sum() + (u * v).sum()


@program(drawn(3, 5))
def step_that_does_not_divide(x):
    t = x * x
    t[:, ::2] = x[:, :3] * x[:, 1:4]
    return (t * np.arange(15.0).reshape(3, 5)).sum()


@program(drawn(2, 3))
def written_with_and_without_gradient(x):
    y = np.zeros((3, 2), x.dtype) if not is_tensor(x) else vg.zeros((3, 2))
    for i in range(3):
        y[i] = x[:, i] ** 2
    y[1:, 0] = 0.5
    y[2, :1] += x[0, 0]
    return (y * y).sum()


@program(drawn(5))
def halves_as_one_buffer(x):
    a = np.zeros_like(x)
    lower, upper = a[:3], a[2:]
    lower += x[:3]
    upper *= x[2:]
    upper += lower
    return (a * x).sum()


@program(drawn(4))
def mask_on_both_sides(x):
    a, b = x * 1.0, np.sin(x)
    m = np.array([True, False, True, True])
    a[m] = b[m] + a[m] * x[m]
    a[1:-1] = b[:-2] + b[2:]
    return (a * a).sum()


@program(drawn(3))
def copied_into_a_buffer(x):
    a = np.zeros_like(x)
    np.copyto(a, x * 2)
    np.copyto(a[1:], x[:2], where=np.array([True, False]))
    return (a * x).sum()


@program(drawn(2, 3))
def columns_in_a_list(x):
    columns = []
    for i in range(3):
        columns.append(x[:, i] + x[:, 2])
    return (np.stack(columns, axis=1) ** 2).sum()


@program(drawn(3))
def broadcast_rows(x):
    return (np.broadcast_to(x, (4, 3)) * np.arange(12.0).reshape(4, 3)).sum() * x[0]


@program(drawn(3))
def broadcast_choice(x):
    c = np.array([[True], [False]])
    return (np.where(c, x, x[:1] * 2.0) * np.arange(6.0).reshape(2, 3)).sum()


# -- loops that carry state --------------------------------------------------------------------------------------------


@program(drawn(1))
def read_before_it_is_replaced(x):
    state = np.ones_like(x)
    total = 0.0
    for _ in range(3):
        multiplier = state[0] * 1.0
        state[0] = np.cos(x[0]) * multiplier
        total = total + state[0]
    return total


@program(drawn(7))
def inner_sums_into_an_element(x):
    a = x[:4] * 0.0
    for i in range(4):
        for j in range(4, 7):
            a[i] += x[j] * x[i]
    return (a * a).sum()


@program(drawn(4))
def number_added_five_times(x):
    f = np.zeros_like(x)
    for i in range(4):
        p = x[i]
        q = 0.0
        for _ in range(5):
            q += p
        f[i] = q
    return (f * f).sum()


@program(drawn(5))
def sums_that_are_overwritten(x):
    counts = [2, 0, 3, 1, 2]
    p = np.zeros_like(x)
    for i in range(5):
        value = x[i] * x[i]
        for _ in range(counts[i]):
            p[i] += i * x[0]
        p[i] = value * i
    return (p * x).sum()


@program([4.5])
def return_map_of_plasticity(x):
    steps = 30
    strain = np.zeros_like(x, shape=(steps + 1,))
    total = 0.0
    for i in range(steps):
        trial = 1000.0 * (1e-3 * x[0] * np.sin(2.0 * np.pi * i / steps) - strain[i])
        increment = 0.0
        if np.abs(trial) > 2.0:
            increment = (np.abs(trial) - 2.0) / 1000.0
            total += increment
        strain[i + 1] = strain[i] + (increment if trial > 0 else -increment)
    return total


@program(drawn(2))
def exponential_average(x):
    mean = x[0] * 1.0
    for i in range(6):
        new = np.sin(mean + i)
        mean = x[1] * new + (1 - x[1]) * mean
    return mean * mean


@program(drawn(4))
def steps_read_under_a_condition(x):
    grid = np.ones_like(x)
    total = 0.0
    for t in range(3):
        for i in range(4):
            if grid[i] > 0.5:
                weight = np.exp(-x[(i + t) % 4])
                grid[i] = grid[i] * weight
                total += weight * grid[i - 1]
    return total


@program(drawn(4, 6))
def accumulator_cleared_in_a_loop(x):
    acc = np.zeros_like(x, shape=(3,))
    total = 0.0
    for i in range(4):
        acc[...] = 0.0
        for k in range(6):
            acc[k % 3] += x[i, k] * x[i - 1, k]
        total = total + (acc * acc).sum()
    return total


@program(drawn(4, 4))
def offsets_in_two_dimensions(x):
    a = x * 1.0
    for i in range(1, 4):
        for j in range(1, 4):
            a[i, j] = a[i - 1, j] * a[i, j - 1] + a[i, j] * 0.5
    return a[3, 3] + a[2, 1] ** 2


@program(drawn(3))
def two_names_for_the_state(x):
    p = q = x * 1.0
    i = 0
    while i < 3:
        p += x * 0.5
        q *= 1.1
        i += 1
    return (p * q).sum()


@program(drawn(3))
def previous_and_current(x):
    previous, current = x * 0.5, x * 1.0
    for _ in range(3):
        previous = current
        current = current * previous * 0.5 + x
    other, state = x * 1.0, x * 2.0
    for _ in range(2):
        other[...] = state
        state += x * other
    return (previous * current).sum() + (other * state).sum()


@program(drawn(6))
def several_writes_to_one_target_in_a_step(x):
    out = np.zeros_like(x, shape=(9,))
    for k in range(3):
        out[3 * k] = x[k]
        out[3 * k + 1] = x[k] * x[k + 3]
        out[3 * k] += out[3 * k + 1]
        out[3 * k + 2] = out[3 * k] * 0.5
        out[3 * k + 1] *= 2.0
    return (out * out).sum()


@program(drawn(3, 3))
def quotients_and_differences(x):
    a, b = np.ones_like(x), np.zeros_like(x)
    for i in range(3):
        a /= x[i]
        b -= x[:, i]
    return (a * b).sum()


@program(drawn(3, 3))
def one_element_of_many_sums(x):
    y = np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            if i == j:
                continue
            y[0, 1] += x[i, j] * x[j, i]
    return y.sum() ** 2


@program(drawn(2, 3))
def rows_at_computed_places(x):
    table = np.zeros_like(x, shape=(2, 6, 2))
    for t in range(2):
        for i in range(3):
            for k in range(2):
                table[k, t * 3 + i, :] = np.stack([x[t, i] * k, x[k, i]])
    return (table**2).sum()


@program(drawn(6))
def blocks_of_residuals(x):
    count, size = 3, 2
    error = np.zeros_like(x, shape=(1, size * count * (count - 1)))
    for i in range(count):
        for j in range(count):
            if j != i:
                n = i * (count - 1) + j - (0 if j < i else 1)
                one, other = x[i * size : (i + 1) * size], x[j * size : (j + 1) * size]
                error[:, size * n : size * (n + 1)] = one * (j + 1) - other
    return (error**2).sum()


@program(drawn(3, 4))
def first_column_of_a_layer(x):
    h = x @ x.T
    h[:, 0] += 3.0
    return np.mean((h - x[:, :3]) ** 2)


@program(drawn(2, 2))
def element_of_zeros_and_argument(x):
    m = np.zeros(x.shape, x.dtype) if not is_tensor(x) else vg.zeros(x.shape)
    m[0, 0] = m[0, 1] + x[0, 0]
    m[1] = m[0] * x[1]
    return (m * x).sum()


# -- buffers, objects and captured state -------------------------------------------------------------------------------


class Holder:
    def __init__(self, buffer):
        self.buffer = buffer


@program(drawn(3))
def buffer_of_two_objects(x):
    first = Holder(np.zeros_like(x))
    second = Holder(first.buffer)
    second.buffer[...] = x * x
    second.buffer[0] += first.buffer[1]
    return first.buffer.sum()


@program(drawn(3))
def workspace(x):
    product, residual = np.zeros_like(x), np.zeros_like(x)
    matrix = np.zeros_like(x, shape=(3, 3))
    for i in range(3):
        matrix[i, i] = x[i] ** 2 + 1e-3
    np.subtract(x, np.array([0.1, 0.2, 0.3]), out=residual)
    copy = np.zeros_like(matrix)
    copy[...] = matrix
    np.matmul(copy, residual, out=product)
    return product @ product + residual @ (matrix @ residual)


DATA = np.array([1.0, 2.0, 3.0])


@program(drawn(3))
def captured_data_in_a_solve(x):
    lower = np.zeros_like(x, shape=(3, 3))
    for i in range(3):
        lower[i, i] = x[0] + i
        lower[i, : i + 1] += x[: i + 1]
    return (np.linalg.solve(lower, DATA) ** 2).sum()


class Cube(vg.autograd.Function):
    """The cube, by a custom Function with a derivative in both modes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 3 * x * x * tangent


def cube(v):
    return Cube.apply(v) if is_tensor(v) else v**3


@program(drawn(6))
def custom_rule_between_views(x):
    out = np.zeros_like(x)
    out[::2] = cube(x[::2])
    v = out[1::2]
    v[...] = cube(out[::2] * x[1::2])
    out[:2] *= cube(v[:2])
    return out.sum()


class Product(vg.autograd.Function):
    """The product of all elements, whose gradient is computed from the result."""

    @staticmethod
    def forward(ctx, x):
        y = x.prod()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        x, y = ctx.saved_tensors
        return gradient * y / x


@program(drawn(3), forward=False)
def product_by_its_result(x):
    a = x * 1.0
    y = Product.apply(a) if is_tensor(a) else a.prod()
    a *= y
    return (Product.apply(a) if is_tensor(a) else a.prod()) + y


@program(drawn(4))
def written_before_it_is_run_again(x):
    def part(v):
        b = v + 1.0
        b *= b
        b[1:] *= v[:-1]
        return b

    return (vg.checkpoint(part)(x) if is_tensor(x) else part(x)).sum()


@program(drawn(4))
def random_slopes_are_drawn_again(x):
    def part(v):
        noise = np.random.default_rng(3).uniform(0.1, 0.9, 4)
        return np.where(v < 1.0, v * noise, v)

    return ((vg.checkpoint(part)(x) if is_tensor(x) else part(x)) ** 2).sum()


# -- compiled helpers --------------------------------------------------------------------------------------------------


def add_one(a):
    a += 1.0
    a[1:] *= a[:-1]


def scaled_and_added(a, b):
    a *= 2.0
    return a + b


def parts_and_a_constant(x):
    h = x * x
    return h[:2], h[2:], constant(h)


HELPERS = {
    helper.__name__: vg.compile(helper, executor="python", specialize=False)
    for helper in (add_one, scaled_and_added, parts_and_a_constant)
}


def helped(helper, *args):
    return HELPERS[helper.__name__](*args) if is_tensor(args[0]) else helper(*args)


@program(drawn(6), compiled=False)
def strided_view_written_by_a_compiled_function(x):
    a = x * 1.0
    for start in (0, 1, 0):
        helped(add_one, a[start::2])
    return (a * x).sum()


@program(drawn(8), compiled=False)
def views_that_overlap_in_a_later_call(x):
    a = x * 1.0
    total = helped(scaled_and_added, x[:4] * 1.0, x[4:] * 1.0).sum()
    for shift in (4, 2, 0):
        total = total + (helped(scaled_and_added, a[:4], a[shift : shift + 4]) * x[:4]).sum()
    return total + (a * a).sum()


@program(drawn(4), compiled=False, holds_values=True)
def views_and_a_constant_from_a_compiled_function(x):
    total = 0.0
    for k in range(3):
        first, second, fixed = helped(parts_and_a_constant, x * (1 + 0.1 * k))
        total = total + (first * second).sum() + (fixed * x).sum()
    return total


# -- modes -------------------------------------------------------------------------------------------------------------


@program(drawn(3), forward=False, holds_values=True)
def recorded_inside_of_no_grad(x):
    if not is_tensor(x):
        return ((x + 1) * constant(x + 1)).sum()
    with vg.no_grad():
        with vg.enable_grad():
            recorded = x + 1
        fixed = x + 1
    return (recorded * fixed).sum()


@program(drawn(4), forward=False, holds_values=True)
def view_taken_without_gradient(x):
    y = x * x
    if is_tensor(x):
        with vg.no_grad():
            fixed = y[:2] * 1.0
    else:
        fixed = constant(y[:2])
    return (fixed * y[2:]).sum()


# -- complex numbers ---------------------------------------------------------------------------------------------------


@program(drawn(2))
def conjugate_of_a_rotation(x):
    z = np.conj(x * 1j)
    z[0] *= 1 + 2j
    return z.real.sum() * z.imag.sum()


@program(np.array([1.0 + 0.5j, 0.3 - 1.2j]), rows=False)
def two_ways_to_the_absolute_value(x):
    return np.abs(x).sum() * np.sqrt(np.real(x) ** 2 + np.imag(x) ** 2).sum()
