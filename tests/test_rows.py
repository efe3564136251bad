"""Every row of the table of operators, checked against its declaration.

Few tests name an operator: the arguments are the samples of the rows, so a new row is tested without a new test.
`check_operator`, which users have for their own operators, checks what every operator must do. The other tests check
the NumPy function that a row stands for, refused arguments, arguments without gradients, and saved values.
"""

import contextlib
import inspect
import re

import numpy as np
import pytest
from operator_samples import samples_in_each_kind, samples_of

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import DifferentiabilityError, FreedGraphError, UnsupportedDtypeError
from viewgrad.operators.define import OPERATORS
from viewgrad.tensor.node import node_of
from viewgrad.tensor.tensor import FUNCTIONS, UFUNCS, current_edge
from viewgrad.testing import PROPERTIES, Failure, check_operator

pytestmark = pytest.mark.usefixtures("frozen_objects")

ROWS = [operator for operator in OPERATORS.values() if not operator.user_defined]  # some are of other tests
DIFFERENTIABLE = [operator for operator in ROWS if operator.formulas]
COMPLEX = [o for o in DIFFERENTIABLE if any(o.accepts_complex(name) for name in o.differentiable)]
ELEMENTWISE = [operator for operator in DIFFERENTIABLE if operator.elementwise]


def over(operators, every=1):
    """Return the rows, most of them marked slow."""
    slow = pytest.mark.slow
    chosen = [o if i % every == 0 else pytest.param(o, marks=slow) for i, o in enumerate(operators)]
    return pytest.mark.parametrize("operator", chosen, ids=[operator.name for operator in operators])


# -- by the check that users have --------------------------------------------------------------------------------------

DERIVATIVES = ("values", "gradients", "second derivatives", "forward mode")
FORMS = ("memory shared with arguments", "layouts of arguments", "dtypes", "in-place form")
FIRST, LAST = map(PROPERTIES.index, ("arguments are not modified", "nothing is left of a call"))
OTHER_PROPERTIES = PROPERTIES[FIRST:LAST]


def unexpected(report):
    """Return the notices of a report, except refusals of backward passes at singular matrices and equal values."""
    refusal = re.compile("backward raises errors.*(Differentiability|LinAlg)Error")
    return [notice for notice in report.notices if not refusal.search(notice)]


def check(sample, only):
    """Check a sample; the vectors of complex decompositions have arbitrary phases, so gradients may be refused."""
    operator = sample.operator
    sample = sample.replace(**mapped(np.asarray, arrays_of(sample)))
    try:
        report = check_operator(operator, arguments=sample.args, options=sample.kwargs, only=only)
    except Failure as failure:
        if len(operator.signature.outputs) == 1 or not isinstance(failure.__cause__, DifferentiabilityError):
            raise
    else:
        assert sum(report.examples.values()) > 0 and not unexpected(report)


@over(DIFFERENTIABLE)
def test_first_derivatives_at_one_sample(operator):
    check(samples_of(operator)[0], ("gradients", "forward mode"))


@over(DIFFERENTIABLE)
def test_values_and_derivatives(operator):
    """All samples are checked, with real and with complex numbers."""
    report = check_operator(operator, only=DERIVATIVES)
    assert report.examples["gradients"] and report.examples["forward mode"] and not unexpected(report)
    assert report.examples["gradients"] + report.refused.get("complex numbers", 0) == len(
        samples_in_each_kind(operator)
    )


@over(DIFFERENTIABLE)
def test_call_forms(operator):
    properties = [name for name in FORMS if name != "dtypes" or operator.name != "spacing"]
    check(samples_of(operator)[0], properties)  # but for spacing, which is a property of the dtype


@over(DIFFERENTIABLE, every=4)
def test_other_properties(operator):
    for sample in samples_in_each_kind(operator)[::2]:
        check(sample, OTHER_PROPERTIES)


@over(ELEMENTWISE, every=8)
def test_shapes(operator):
    check(samples_of(operator)[0], "shapes")


@over([operator for operator in COMPLEX if len(operator.differentiable) > 1], every=8)
def test_real_arguments_beside_complex_ones(operator):
    check(samples_of(operator)[0], "complex numbers")


@pytest.mark.slow
@over(DIFFERENTIABLE)
def test_all_properties(operator):
    """Check each operator as a user would: on its own samples, then on all derived calls."""
    check_operator(operator)


# -- one call of an operator -------------------------------------------------------------------------------------------


def call(sample, values=None):
    """Return the outputs of the operator as a tuple, with some arguments replaced."""
    sample = sample.replace(**(values or {}))
    result = sample.operator.function(*sample.args, **sample.kwargs)
    return result if isinstance(result, tuple) else (result,)


def flat(values):
    """Return the tensors or arrays among the arguments, also inside lists."""
    return [item for value in values.values() for item in (value if isinstance(value, list) else [value])]


def arrays_of(sample):
    """Return the arguments that can be differentiated, by name."""
    given = sample.bound()
    return {name: given[name] for name in sample.differentiable()}


def mapped(function, values):
    """Return the arguments with a function applied to each tensor or array."""
    return {
        name: [function(item) for item in value] if isinstance(value, list) else function(value)
        for name, value in values.items()
    }


def leaves_of(sample):
    return mapped(lambda array: vg.Tensor(array, requires_grad=True), arrays_of(sample))


@over(DIFFERENTIABLE)
def test_samples_reach_every_argument(operator):
    reached = {name for sample in samples_of(operator) for name in sample.differentiable()}
    assert reached == set(operator.differentiable)


# -- values ------------------------------------------------------------------------------------------------------------


def calls_of(operator, function):
    """Return the samples that omit only arguments for which the installed NumPy has defaults."""
    for sample in samples_of(operator):
        try:
            inspect.signature(function).bind(*sample.args, **sample.kwargs)
        except TypeError:
            continue
        except ValueError:  # the function has no signature
            pass
        yield sample


@over(ROWS)
def test_value(operator):
    reference = operator.reference or operator.forward
    for sample in calls_of(operator, reference):
        expected = reference(*sample.args, **sample.kwargs)
        outputs = call(sample)
        for output, wanted in zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert output.dtype == np.asarray(wanted).dtype, sample
            np.testing.assert_allclose(output.numpy(), wanted, rtol=1e-9, atol=1e-12, err_msg=str(sample))
            assert operator.formulas or not output.requires_grad
        for output in outputs:
            for argument in flat(sample.bound()):
                assert not isinstance(argument, np.ndarray) or not np.shares_memory(output.numpy(), argument), sample


@over([operator for operator in ROWS if operator.reference in FUNCTIONS or (operator.reference, "__call__") in UFUNCS])
def test_numpy_function_means_the_operator(operator):
    for sample in calls_of(operator, operator.reference):
        given = {name: value for name, value in sample.bound().items() if isinstance(value, (np.ndarray, list))}
        on_tensors = sample.replace(**mapped(vg.Tensor, given))
        result = operator.reference(*on_tensors.args, **on_tensors.kwargs)
        result = result if isinstance(result, tuple) else (result,)
        for output, wanted in zip(result, call(sample), strict=True):
            assert isinstance(output, vg.Tensor)
            np.testing.assert_array_equal(output.numpy(), wanted.numpy(), err_msg=str(sample))


@over([operator for operator in DIFFERENTIABLE if operator not in COMPLEX])
def test_complex_numbers_are_refused_if_there_is_no_derivative(operator):
    for sample in samples_of(operator):
        for name in sample.differentiable():
            value = sample.bound()[name]
            given = [item.astype(complex) for item in value] if isinstance(value, list) else value.astype(complex)
            for leaf in (vg.Tensor, lambda array: vg.Tensor(array, requires_grad=True)):
                wrong = sample.replace(**{name: mapped(leaf, {name: given})[name]})
                with pytest.raises(UnsupportedDtypeError, match=f"{operator.name!r} does not support complex128"):
                    operator(*wrong.args, **wrong.kwargs)
                if operator.has_inplace:
                    with pytest.raises(UnsupportedDtypeError), vg.no_grad():
                        operator.inplace(*wrong.args, **wrong.kwargs)


@over([operator for operator in ROWS if operator.has_inplace and not operator.formulas])
def test_in_place_variants_without_grad_write_once(operator):
    for sample in samples_of(operator):
        target = operator.signature.tensors[0].name
        (value,) = call(sample)
        written = vg.Tensor(sample.bound()[target])
        if value.shape == written.shape and np.can_cast(value.dtype, written.dtype, "same_kind"):
            given = sample.replace(**{target: written})
            assert operator.inplace(*given.args, **given.kwargs) is written and written._version == 1
            np.testing.assert_array_equal(written.numpy(), value.numpy().astype(written.dtype), err_msg=str(sample))


@over(DIFFERENTIABLE)
def test_a_graph_that_is_not_retained_is_freed(operator):
    for sample in samples_of(operator):
        leaves = leaves_of(sample)
        output = next(output for output in call(sample, leaves) if output.requires_grad)
        start = vg.ones(output.shape, dtype=output.dtype)
        grad(output, flat(leaves), start, allow_unused=True)
        node = node_of(current_edge(output))
        if type(node) is operator.node_class and node.saved_names:
            with pytest.raises(FreedGraphError):
                grad(output, flat(leaves), start, allow_unused=True)


@over(DIFFERENTIABLE)
def test_longdouble_inputs_have_longdouble_gradients(operator):
    """This covers the NumPy and SciPy functions that support more than double precision."""
    for sample in samples_of(operator):
        wide = sample.astype(np.longdouble, np.random.default_rng(0))
        found = []
        with contextlib.suppress(TypeError, NotImplementedError):
            for given in (wide, sample):
                leaves = leaves_of(given)
                outputs = [output for output in call(given, leaves) if output.requires_grad]
                starts = [vg.ones(output.shape, dtype=output.dtype) for output in outputs]
                found.append(grad(outputs, flat(leaves), starts, materialize_grads=True))
            for long, short in zip(*found, strict=True):
                assert long.dtype == np.longdouble, sample
                atol = 1e-7 * np.abs(short.numpy()).max(initial=1)
                np.testing.assert_allclose(long.numpy(), short.numpy(), rtol=0, atol=atol, err_msg=str(sample))


# -- where nothing flows -----------------------------------------------------------------------------------------------

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, 6.0, np.pi / 2, -100.0, 1000.0])


@over([operator for operator in DIFFERENTIABLE if operator.elementwise])
@pytest.mark.parametrize("dtype", [float, complex], ids=["real", "complex"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_zero_cotangents_give_zero_gradients_at_special_points(operator, dtype):
    """At edges of domains, poles and kinks, a zero gradient remains zero, to any order."""
    sample = samples_of(operator)[0]
    names = [name for name in sample.differentiable() if dtype is float or operator.accepts_complex(name)]
    if not names:
        return
    points = np.meshgrid(*[SPECIAL] * min(len(names), 2))
    given = {name: np.ravel(grid).astype(dtype) for name, grid in zip(names, points)}
    count = len(given[names[0]])
    arguments = {a.name: sample.bound().get(a.name) for a in operator.signature.tensors if a.name not in given}
    others = {name: np.resize(value, count) for name, value in arguments.items() if value is not None}
    sample = sample.replace(**given, **others)
    leaves = {name: vg.Tensor(array, requires_grad=True) for name, array in given.items()}
    (output,) = call(sample, leaves)
    nothing = vg.zeros(output.shape, dtype=output.dtype).requires_grad_()
    first = grad(output, flat(leaves), nothing, create_graph=True, materialize_grads=True)
    connected = [g.sum().real for g in first if g.requires_grad]
    second = grad(connected, flat(leaves), materialize_grads=True) if connected else []
    for found in (*first, *second, *grad(call(sample, leaves)[0], flat(leaves), nothing.detach())):
        np.testing.assert_array_equal(found.detach().numpy(), 0, err_msg=str(sample))
    with forward_ad.dual_level():
        still = vg.zeros(count, dtype=dtype)
        duals = {name: forward_ad.make_dual(leaf, still) for name, leaf in leaves_of(sample).items() if name in given}
        tangent = forward_ad.unpack_dual(call(sample, duals)[0]).tangent
        assert tangent is None or not tangent.detach().numpy().any(), sample


@over([operator for operator in DIFFERENTIABLE if not operator.elementwise and operator.name != "interp"], every=4)
@pytest.mark.parametrize("value", [0.0, 1.0, None], ids=["zeros", "ones", "both"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_zero_cotangents_give_zero_gradients_of_whole_arrays(operator, value):
    """This covers norms, sums, products and losses. Undefined values may raise; knots of interp must be distinct."""
    rng = np.random.default_rng(0)
    for sample in samples_of(operator):
        bound = sample.bound()
        arrays = {name: bound.get(name) for name in sample.differentiable()}
        arrays = {name: a for name, a in arrays.items() if isinstance(a, np.ndarray) and a.dtype.kind in "fc"}
        special = {
            name: (rng.integers(-1, 2, a.shape) if value is None else np.full(a.shape, value)).astype(a.dtype)
            for name, a in arrays.items()
        }
        with contextlib.suppress(np.linalg.LinAlgError, DifferentiabilityError, ValueError):
            expect_nothing(sample.replace(**special), special)


def expect_nothing(sample, names):
    leaves = leaves_of(sample)
    outputs = [output for output in call(sample, leaves) if output.requires_grad]
    if any(np.isnan(output.detach().numpy()).any() for output in outputs):
        return
    nothing = [vg.zeros(output.shape, dtype=output.dtype).requires_grad_() for output in outputs]
    first = grad(outputs, flat(leaves), nothing, create_graph=True, materialize_grads=True)
    connected = [g.sum().real for g in first if g.requires_grad]
    second = grad(connected, flat(leaves), materialize_grads=True) if connected else []
    for found in (*first, *second):
        assert not found.detach().numpy().any(), sample
    with forward_ad.dual_level():
        duals = {
            name: forward_ad.make_dual(leaf, vg.zeros(leaf.shape, dtype=leaf.dtype)) if name in names else leaf
            for name, leaf in leaves_of(sample).items()
        }
        for output in call(sample, duals):
            tangent = forward_ad.unpack_dual(output).tangent
            assert tangent is None or not tangent.detach().numpy().any(), sample


# -- what is saved -----------------------------------------------------------------------------------------------------


def saved_bytes(output):
    node = output.grad_fn
    kept = [getattr(node, f"saved_{name}", None) for name in node.saved_names]
    return sum(getattr(saved, "array", saved).nbytes for saved in kept if saved is not None)


def test_saved_bytes():
    x, y = (vg.Tensor(np.ones((5, 7)), requires_grad=True) for _ in range(2))
    constant = np.full((5, 7), 2.0)
    assert saved_bytes(x + y) == saved_bytes(x - y) == saved_bytes(-x) == saved_bytes(x.clone()) == 0
    assert saved_bytes(x * y) == 2 * x.nbytes
    assert saved_bytes(x * constant) == x.nbytes
    assert saved_bytes(x * 3.0) == 8
    assert saved_bytes(x.exp()) == x.nbytes
    assert saved_bytes(x.sum()) == saved_bytes(x.sum(axis=0)) == saved_bytes(x.mean()) == 0
    assert saved_bytes(vg.concatenate([x, y])) == saved_bytes(vg.stack([x, y])) == 0
    assert saved_bytes(x @ vg.ones(7)) == 56


def test_only_values_read_by_formulas_are_saved():
    node = (vg.Tensor([1.0, 2.0], requires_grad=True) * vg.Tensor([3.0, 4.0])).grad_fn
    assert not hasattr(node, "saved_self")
    np.testing.assert_array_equal(node.saved_other.array, [3.0, 4.0])
    y = vg.Tensor([0.0, 1.0], requires_grad=True).exp()
    assert y.grad_fn.saved_result.array is y._array
