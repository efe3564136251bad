"""Errors, dtypes and results at the edges of NumPy's functions, of tensors with a history as of arrays."""

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import grad, gradcheck

ERRORS = (ValueError, TypeError, IndexError, ZeroDivisionError)
MATRIX, VECTOR = np.arange(6.0).reshape(2, 3), np.array([3.0, 1.0, 2.0])
SINGLE = VECTOR.astype(np.float32)


def changed(array, write):
    write(array)
    return array


# Functions of NumPy or viewgrad.numpy, and of a function that creates an array or a tensor with a history.
CASES = {
    "swapaxes beyond": lambda xp, of: xp.swapaxes(of(MATRIX), 0, 5),
    "squeeze beyond": lambda xp, of: xp.squeeze(of(MATRIX), 5),
    "squeeze twice": lambda xp, of: xp.squeeze(of(MATRIX[None, None]), (0, 0)),
    "rollaxis beyond": lambda xp, of: xp.rollaxis(of(MATRIX), 5),
    "rollaxis start": lambda xp, of: xp.rollaxis(of(MATRIX[None]), 2, -1),
    "matrix_transpose of a vector": lambda xp, of: xp.matrix_transpose(of(VECTOR)),
    "flip beyond": lambda xp, of: xp.flip(of(MATRIX), 2),
    "fliplr of a vector": lambda xp, of: xp.fliplr(of(VECTOR)),
    "flipud of a number": lambda xp, of: xp.flipud(of(np.array(1.0))),
    "diff beyond": lambda xp, of: xp.diff(of(VECTOR), axis=3),
    "diff of negative order": lambda xp, of: xp.diff(of(VECTOR), -1),
    "gradient beyond": lambda xp, of: xp.gradient(of(VECTOR), axis=3),
    "gradient edge_order": lambda xp, of: xp.gradient(of(VECTOR), edge_order=3),
    "concatenate dtype": lambda xp, of: xp.concatenate([of(VECTOR), of(VECTOR)], dtype=np.int32),
    "concatenate casting": lambda xp, of: xp.concatenate([of(VECTOR)], dtype=np.float32, casting="safe"),
    "concatenate unsafe": lambda xp, of: xp.concatenate([of(VECTOR)], dtype=np.int32, casting="unsafe"),
    "stack dtype": lambda xp, of: xp.stack([of(VECTOR), of(VECTOR)], dtype=np.float32),
    "hstack dtype": lambda xp, of: xp.hstack([of(VECTOR), of(VECTOR)], dtype=np.int32),
    "split beyond": lambda xp, of: xp.split(of(MATRIX), [1], axis=4),
    "split unordered": lambda xp, of: xp.split(of(np.arange(5.0)), [4, 2])[2],
    "split from the end": lambda xp, of: xp.array_split(of(np.arange(5.0)), [-2])[0],
    "delete nothing": lambda xp, of: xp.delete(of(VECTOR), []),
    "corrcoef dtype": lambda xp, of: xp.corrcoef(of(MATRIX), dtype=np.int8),
    "searchsorted sorter": lambda xp, of: xp.searchsorted(of(VECTOR), 2.0, sorter=np.arange(2)),
    "reshape order": lambda xp, of: xp.reshape(of(VECTOR[:2]), (1, 2), order="f"),
    "copy order": lambda xp, of: of(MATRIX).copy(order="f"),
    "interp dtype": lambda xp, of: xp.interp(of(np.float32([0.5])), SINGLE[:1], SINGLE[:1]),
    "r_ of numbers": lambda xp, of: xp.r_[of(SINGLE), 1, 2.5],
    "r_ of a float64": lambda xp, of: xp.r_[of(SINGLE), np.float64(1)],
    "r_ of complex": lambda xp, of: xp.r_[of(SINGLE), 1j],
    "cond of singular": lambda xp, of: xp.linalg.cond(of(np.ones((3, 3))), 1),
    "cond of nothing": lambda xp, of: xp.linalg.cond(of(np.ones((0, 0)))),
    "place": lambda xp, of: xp.place(of(VECTOR), np.array([True, False]), [1.0]),
    "put beyond": lambda xp, of: xp.put(of(VECTOR), [1, 3], [1.0, 2.0]),
    "put before": lambda xp, of: xp.put(of(MATRIX), [-7], [1.0]),
    "put mode": lambda xp, of: xp.put(of(VECTOR), [1], [1.0], mode="turn"),
    "put wrapped": lambda xp, of: changed(of(MATRIX), lambda a: xp.put(a, [-8, 7, 20], [7.0, 8.0], mode="wrap")),
    "put clipped": lambda xp, of: changed(of(MATRIX), lambda a: xp.put(a, [-8, 7, 2], [7.0, 8.0, 9.0], mode="clip")),
    "put from the end": lambda xp, of: changed(of(MATRIX), lambda a: xp.put(a, [-6, -1], [7.0])),
    "put_along_axis beyond": lambda xp, of: xp.put_along_axis(of(MATRIX), np.array([6]), 1.0, None),
    "choose mode": lambda xp, of: xp.choose(np.array([0, 1, 0]), [of(VECTOR), of(VECTOR)], mode="turn"),
    "average of weights that cancel": lambda xp, of: xp.average(of(VECTOR), weights=of(np.array([1.0, -2.0, 1.0]))),
    "average of rows without weight": lambda xp, of: xp.average(of(MATRIX), axis=1, weights=of(MATRIX * [[0], [1]])),
    "block of mixed depth": lambda xp, of: xp.block([[of(VECTOR)], of(VECTOR)]),
    "block of nothing": lambda xp, of: xp.block([[], [of(VECTOR)]]),
    "copyto where": lambda xp, of: xp.copyto(of(VECTOR), VECTOR, where=np.array([1, 0, 1])),
    "einsum without elements": lambda xp, of: xp.einsum("ij,i", of(np.ones((0, 1))), of(np.ones(1))),
}
if hasattr(np, "cumulative_sum"):  # since NumPy 2.1
    CASES["cumulative_sum of a number"] = lambda xp, of: xp.cumulative_sum(of(np.array(2.0)), include_initial=True)


def outcome(case, *arguments):
    """Return the class of the error of a case, or the kind, shape and values of its result."""
    try:
        result = case(*arguments)
    except ERRORS as error:
        return tuple(each for each in ERRORS if isinstance(error, each))
    array = np.asarray(result.detach() if isinstance(result, vg.Tensor) else result)
    return array.dtype, array.shape, array.tolist()


@pytest.mark.parametrize("name", CASES)
def test_functions_with_a_history_match_numpy(name):
    expected = outcome(CASES[name], np, np.array)
    for of in (lambda a: vg.Tensor(a, requires_grad=True) * 1, vg.Tensor):
        found = outcome(CASES[name], vnp, of)
        is_error = expected and isinstance(expected[0], type)
        assert set(found) >= set(expected) if is_error else found == expected


@pytest.mark.parametrize(
    "subscripts, shapes",
    [("ij,i", [(0, 1), (1,)]), ("i...,...k->ki...", [(1, 2, 1), (2, 0, 1)]), ("ij,ji", [(0, 1), (1, 1)])],
)
def test_einsum_broadcasts_length_one_to_length_zero(subscripts, shapes):
    operands = [vg.ones(shape, requires_grad=True) for shape in shapes]
    gradients = grad(vnp.einsum(subscripts, *operands).sum(), operands)
    assert [each.shape for each in gradients] == shapes
    assert all(not each.any() for each in gradients)


def test_finite_parts_of_complex_numbers_keep_their_gradient():
    x = vg.Tensor(np.array([complex(np.nan, 1), complex(2, np.inf), complex(1, 1)]), requires_grad=True)
    (gradient,) = grad(vnp.nan_to_num(x), x, np.full(3, 1 + 2j))
    assert gradient.tolist() == [2j, 1, 1 + 2j]
    _, tangent = vg.func.jvp(vnp.nan_to_num, (x.detach(),), (np.full(3, 1 + 2j),))
    assert tangent.tolist() == [2j, 1, 1 + 2j]


def test_condition_numbers_in_a_stack_with_singular_matrices():
    matrices = vg.Tensor(np.array([np.ones((2, 2)), [[2.0, 1.0], [1.0, 3.0]]]), requires_grad=True)
    assert gradcheck(lambda a: vnp.linalg.cond(a, 1)[1], [matrices])


def test_interpolation_of_single_precision():
    x = vg.Tensor(np.float32([0.25, 1.5]), requires_grad=True)
    knots, values = np.float32([0.0, 1.0, 2.0]), vg.Tensor(np.float32([0.0, 2.0, 3.0]), requires_grad=True)
    of_x, of_values = grad(vnp.interp(x, knots, values).sum(), [x, values])
    assert of_x.dtype == of_values.dtype == np.float32
    assert of_x.tolist() == [2.0, 1.0] and of_values.tolist() == [0.75, 0.75, 0.5]


@pytest.mark.parametrize("name", ["pinv", "lstsq"])
def test_second_derivatives_at_matrices_of_deficient_rank(name):
    """The step of the difference quotients raises the rank, but the added singular value is truncated."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((4, 2)) @ rng.standard_normal((2, 3))
    along, of, rhs = (rng.standard_normal((4, 3)) for _ in range(3))
    function = {
        "pinv": lambda a: (vnp.linalg.pinv(a, rcond=1e-3) * of.T).sum(),
        "lstsq": lambda a: (vnp.linalg.lstsq(a, rhs, rcond=1e-3)[0] * of[:3]).sum(),
    }[name]

    def slope(values):
        a = vg.Tensor(values, requires_grad=True)
        return (grad(function(a), a, create_graph=True)[0] * along).sum(), a

    first, a = slope(matrix)
    second = (grad(first, a)[0] * along).sum().item()
    step = 1e-5
    quotients = [
        (f(matrix + step * along) - f(matrix - step * along)) / (2 * step)
        for f in (lambda values: function(vg.Tensor(values)).item(), lambda values: slope(values)[0].item())
    ]
    assert np.allclose([first.item(), second], quotients, rtol=1e-5)
    tangents = vg.func.jvp(lambda a: vg.func.jvp(function, (a,), (along,))[1], (matrix,), (along,))
    assert np.allclose([float(each) for each in tangents], [first.item(), second])
