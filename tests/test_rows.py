"""Every row of the table of operators, held against what it says.

Nothing here names an operator, except where an example teaches: the tests draw their arguments from the rows, so that a
new row is tested without a new test.
"""

import contextlib
import inspect

import numpy as np
import pytest

import viewgrad as vg
from viewgrad.autograd import grad
from viewgrad.autograd.modes import forward_ad
from viewgrad.errors import DifferentiabilityError, FreedGraphError, UnsupportedKindError
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.samples import samples_in_each_kind, samples_of
from viewgrad.tensor.node import node_of
from viewgrad.tensor.tensor import FUNCTIONS, UFUNCS, current_edge
from viewgrad.testing import Failure, check_operator

EPS = 1e-6
ROWS = list(OPERATORS.values())
DIFFERENTIABLE = [operator for operator in ROWS if operator.formulas]


COMPLEX = [o for o in DIFFERENTIABLE if any(o.accepts_complex(name) for name in o.differentiable)]
ELEMENTWISE = [operator for operator in ROWS if operator.elementwise]


def over(operators):
    return pytest.mark.parametrize("operator", operators, ids=lambda operator: operator.name)


def rng_of(operator):
    return np.random.default_rng(len(operator.name))


# -- one call of an operator -------------------------------------------------------------------------------------------


def call(sample, values=None):
    """The outputs of the operator, as a tuple, with other values for some of its arguments."""
    sample = sample.replace(**(values or {}))
    result = sample.operator.function(*sample.args, **sample.kwargs)
    return result if isinstance(result, tuple) else (result,)


def flat(values):
    """The tensors or arrays among the arguments, lists taken apart."""
    return [item for value in values.values() for item in (value if isinstance(value, list) else [value])]


def arrays_of(sample):
    """The arguments that can be differentiated, by name."""
    given = sample.bound()
    return {name: given[name] for name in sample.differentiable()}


def mapped(function, values):
    """A function of each tensor or array among the arguments."""
    return {
        name: [function(item) for item in value] if isinstance(value, list) else function(value)
        for name, value in values.items()
    }


def leaves_of(sample):
    return mapped(lambda array: vg.Tensor(array, requires_grad=True), arrays_of(sample))


def differentiable_outputs(outputs):
    return [output for output in outputs if output.requires_grad]


def drawn_like(rng, tensors):
    """A random array for each tensor, of its shape and dtype."""
    drawn = []
    for tensor in tensors:
        array = rng.standard_normal(tensor.shape)
        if tensor.dtype.kind == "c":
            array = array + 1j * rng.standard_normal(tensor.shape)
        drawn.append(np.asarray(array, tensor.dtype))
    return drawn


def gradients(sample, weights=None, create_graph=False):
    """The leaves, the weights of the outputs, and the gradients of the weighted outputs."""
    leaves = leaves_of(sample)
    outputs = differentiable_outputs(call(sample, leaves))
    if weights is None:
        weights = drawn_like(rng_of(sample.operator), outputs)
    grads = weighted_gradients(outputs, weights, flat(leaves), create_graph=create_graph)
    return leaves, weights, grads


def weighted_gradients(outputs, weights, inputs, **options):
    return grad(outputs, inputs, [vg.Tensor(weight) for weight in weights], materialize_grads=True, **options)


def inner(first, second):
    """The real inner product of lists of arrays."""
    return sum(float(np.sum(np.real(np.conj(a) * b))) for a, b in zip(first, second, strict=True))


def finite_differences(function, values):
    """The gradient of a real function of the arguments, by central differences; complex numbers count as pairs."""
    results = []
    values = mapped(np.array, values)
    for array in flat(values):
        result = np.zeros(array.shape, array.dtype)
        for index in np.ndindex(array.shape):
            kept = array[index]
            for step in (EPS,) if array.dtype.kind == "f" else (EPS, 1j * EPS):
                array[index] = kept + step
                above = function(values)
                array[index] = kept - step
                below = function(values)
                array[index] = kept
                result[index] += (above - below) / (2 * EPS) * (step / EPS)
        results.append(result)
    return results


def assert_close(actual, expected, what):
    for number, (a, b) in enumerate(zip(actual, expected, strict=True)):
        a = a.detach().numpy() if isinstance(a, vg.Tensor) else a
        assert a.shape == b.shape, f"{what}, number {number}"
        scale = max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6 * scale, err_msg=f"{what}, number {number}")


def check_first_order(sample):
    _, weights, grads = gradients(sample)

    def weighted(values):
        silent = sample.operator.nondifferentiable_outputs
        named = zip(sample.operator.signature.outputs, call(sample, values), strict=True)
        return inner(weights, [output.numpy() for name, output in named if name not in silent])

    assert_close(grads, finite_differences(weighted, arrays_of(sample)), f"gradient of {sample}")


def check_second_order(sample):
    rng = rng_of(sample.operator)
    leaves, weights, grads = gradients(sample, create_graph=True)
    directions = drawn_like(rng, grads)
    first = gradients(sample, weights)[2]
    assert_close(grads, [g.numpy() for g in first], f"recorded gradient of {sample}")

    def projected(values):
        return inner(directions, [g.numpy() for g in gradients(sample.replace(**values), weights)[2]])

    expected = finite_differences(projected, arrays_of(sample))
    assert_close(second_gradients(leaves, grads, directions), expected, f"second gradient of {sample}")


def second_gradients(leaves, grads, directions):
    """The gradients of the gradients' projections; zeros where the gradients are constant."""
    connected = [(g, direction) for g, direction in zip(grads, directions, strict=True) if g.requires_grad]
    if not connected:
        return [np.zeros(leaf.shape, leaf.dtype) for leaf in flat(leaves)]
    outputs, weights = zip(*connected, strict=True)
    return [g.numpy() for g in weighted_gradients(outputs, weights, flat(leaves))]


@over(DIFFERENTIABLE)
def test_samples_reach_every_argument(operator):
    reached = {name for sample in samples_of(operator) for name in sample.differentiable()}
    assert reached == set(operator.differentiable)


# -- values ------------------------------------------------------------------------------------------------------------


def calls_of(operator, function):
    """The samples that leave out only what a function of the installed NumPy has a default for."""
    for sample in samples_of(operator):
        try:
            inspect.signature(function).bind(*sample.args, **sample.kwargs)
        except TypeError:
            continue
        except ValueError:  # it tells no signature
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


# -- gradients ---------------------------------------------------------------------------------------------------------


@over(DIFFERENTIABLE)
def test_gradient(operator):
    for sample in samples_of(operator):
        check_first_order(sample)


@over(DIFFERENTIABLE)
def test_second_gradient(operator):
    for sample in samples_of(operator):
        check_second_order(sample)


def unless_phases_matter(operator):
    """The vectors of complex decompositions have arbitrary phases; a loss that depends on them is refused."""
    several = len(operator.signature.outputs) > 1
    return contextlib.suppress(DifferentiabilityError) if several else contextlib.nullcontext()


@over(COMPLEX)
def test_complex_gradients(operator):
    for sample in samples_of(operator):
        sample = sample.astype(np.complex128, rng_of(operator))
        with unless_phases_matter(operator):
            check_first_order(sample)
            check_second_order(sample)


@over([operator for operator in DIFFERENTIABLE if operator not in COMPLEX])
def test_complex_numbers_are_refused_where_there_is_no_derivative(operator):
    for sample in samples_of(operator):
        for name in sample.differentiable():
            value = sample.bound()[name]
            given = [item.astype(complex) for item in value] if isinstance(value, list) else value.astype(complex)
            for leaf in (vg.Tensor, lambda array: vg.Tensor(array, requires_grad=True)):
                wrong = sample.replace(**{name: mapped(leaf, {name: given})[name]})
                with pytest.raises(UnsupportedKindError, match=f"{operator.name!r} takes no complex128"):
                    operator(*wrong.args, **wrong.kwargs)
                if operator.has_inplace:
                    with pytest.raises(UnsupportedKindError), vg.no_grad():
                        operator.inplace(*wrong.args, **wrong.kwargs)


@over([operator for operator in COMPLEX if len(operator.differentiable) > 1])
def test_real_argument_beside_complex_ones(operator):
    for sample in samples_of(operator):
        for name in sample.differentiable():
            mixed = sample.astype(np.complex128, rng_of(operator)).replace(**{name: sample.bound()[name]})
            try:
                call(mixed)
            except TypeError:  # what is put in place must fit the dtype that is there
                continue
            check_first_order(mixed)


@over(DIFFERENTIABLE)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble], ids=lambda dtype: dtype.__name__)
def test_precision_of_reals(operator, dtype):
    check_precision(operator, dtype)


@over(COMPLEX)
def test_precision_of_complex_numbers(operator):
    with unless_phases_matter(operator):
        check_precision(operator, np.complex64)


def check_precision(operator, dtype):
    """Values and gradients are those of double precision, nearly, and have the dtype of what they belong to."""
    for exact in samples_of(operator):
        if np.dtype(dtype).kind == "c":
            exact = exact.astype(np.complex128, rng_of(operator))
        if any(isinstance(value, np.dtype) for value in exact.bound().values()):
            continue
        sample = exact.astype(dtype, rng_of(operator))
        precision = max(10 * np.finfo(dtype).eps, 1e-7) ** 0.75
        try:
            call(sample)
        except (TypeError, NotImplementedError):  # NumPy's functions of matrices and SciPy's take not every precision
            assert dtype in (np.float16, np.longdouble)
            continue
        leaves, weights, grads = gradients(sample)
        for output, wanted in zip(call(sample, leaves), call(exact), strict=True):
            if dtype in (np.float32, np.complex64) and output.dtype.kind in "fc":
                assert np.empty(0, output.dtype).real.dtype == np.float32, sample
            scale = np.abs(wanted.numpy()).max(initial=1)
            np.testing.assert_allclose(output.detach().numpy(), wanted.numpy(), rtol=0, atol=precision * scale)
        weights = [weight.astype(np.complex128 if weight.dtype.kind == "c" else float) for weight in weights]
        for g, leaf, wanted in zip(grads, flat(leaves), gradients(exact, weights)[2], strict=True):
            assert g.dtype == leaf.dtype, sample
            scale = np.abs(wanted.numpy()).max(initial=1)
            atol = 3 * precision * scale
            np.testing.assert_allclose(g.numpy(), wanted.numpy(), rtol=0, atol=atol, err_msg=str(sample))


@over([operator for operator in ELEMENTWISE if len(operator.differentiable) > 1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=lambda dtype: dtype.__name__)
def test_gradient_beside_integers_has_the_dtype_of_its_leaf(operator, dtype):
    """Whatever the others are, and whatever the formula computes in between."""
    for sample in samples_of(operator):
        for name in sample.differentiable():
            for other in (bool, np.int8, np.int64):
                others = {n: np.ones_like(a, dtype=other) for n, a in arrays_of(sample).items() if n != name}
                leaf = vg.Tensor(arrays_of(sample)[name].astype(dtype), requires_grad=True)
                try:
                    outputs = call(sample.replace(**others), {name: leaf})
                except TypeError:  # NumPy subtracts no bools
                    assert other is bool
                    continue
                for run in ({"create_graph": True}, {}):
                    (g,) = grad([output.sum() for output in outputs], leaf, materialize_grads=True, **run)
                    assert g.dtype == dtype, (sample, name, other)


@over([operator for operator in DIFFERENTIABLE if len(operator.differentiable) > 1])
def test_only_what_is_needed(operator):
    """Each gradient alone is the one among all."""
    for sample in samples_of(operator):
        leaves, weights, grads = gradients(sample)
        names = list(leaves)
        for name, wanted in zip(names, grads, strict=True):
            if isinstance(leaves[name], list):
                continue
            for given in ({name: leaves[name]}, leaves):
                outputs = differentiable_outputs(call(sample, given))
                (alone,) = weighted_gradients(outputs, weights, leaves[name])
                np.testing.assert_array_equal(alone.numpy(), wanted.numpy(), err_msg=f"{sample} for {name}")


@over([operator for operator in DIFFERENTIABLE if len(operator.signature.outputs) > 1])
def test_undefined_gradients(operator):
    """An output without a gradient counts as one whose gradient is zero."""
    for sample in samples_of(operator):
        count = len(differentiable_outputs(call(sample, leaves_of(sample))))
        for chosen in range(count):
            leaves = leaves_of(sample)
            outputs = differentiable_outputs(call(sample, leaves))
            weight = drawn_like(rng_of(operator), [outputs[chosen]])[0]
            alone = weighted_gradients([outputs[chosen]], [weight], flat(leaves))
            weights = [np.zeros(output.shape, output.dtype) for output in outputs]
            weights[chosen] = weight
            beside_zeros = gradients(sample, weights)[2]
            assert_close(alone, [g.numpy() for g in beside_zeros], f"{sample}, output {chosen} alone")


@over(DIFFERENTIABLE)
def test_graph_runs_twice_only_when_retained(operator):
    for sample in samples_of(operator):
        leaves = leaves_of(sample)
        outputs = differentiable_outputs(call(sample, leaves))
        weights = drawn_like(rng_of(operator), outputs)
        first = weighted_gradients(outputs, weights, flat(leaves), retain_graph=True)
        second = weighted_gradients(outputs, weights, flat(leaves))
        assert_close(first, [g.numpy() for g in second], f"second run of {sample}")
        node = node_of(current_edge(outputs[0]))
        if type(node) is operator.node_class and node.saved_names:
            with pytest.raises(FreedGraphError):
                weighted_gradients(outputs, weights, flat(leaves))


# -- forward mode ------------------------------------------------------------------------------------------------------


def directions_for(sample):
    """Tangents for all arguments together, and for each alone."""
    arrays = arrays_of(sample)
    rng = rng_of(sample.operator)
    drawn = mapped(lambda array: drawn_like(rng, [np.asarray(array)])[0], arrays)
    yield drawn
    if len(drawn) > 1:
        for name in drawn:
            yield {name: drawn[name]}


def dual_leaves(leaves, tangents):
    """The leaves that have tangents, with these."""
    directions = iter(flat(tangents))
    given = {name: leaves[name] for name in tangents}
    return mapped(lambda leaf: forward_ad.make_dual(leaf, vg.Tensor(next(directions))), given)


def tangent_or_zeros(tensor):
    tangent = forward_ad.unpack_dual(tensor).tangent
    return np.zeros(tensor.shape, tensor.dtype) if tangent is None else tangent.detach().numpy().copy()


@over(DIFFERENTIABLE)
def test_forward_mode_agrees_with_reverse_mode(operator):
    assert operator.forward_derivative is not None
    for sample in samples_in_each_kind(operator):
        with unless_phases_matter(operator):
            check_tangents(sample)


def check_tangents(sample):
    _, weights, grads = gradients(sample)
    names = [name for name, value in arrays_of(sample).items() for _ in flat({name: value})]
    for tangents in directions_for(sample):
        with forward_ad.dual_level():
            leaves = leaves_of(sample)
            outputs = differentiable_outputs(call(sample, leaves | dual_leaves(leaves, tangents)))
            along = inner(weights, [tangent_or_zeros(output) for output in outputs])
        chosen = [g.numpy() for name, g in zip(names, grads, strict=True) if name in tangents]
        expected = inner(chosen, flat(tangents))
        np.testing.assert_allclose(
            along, expected, rtol=1e-7, atol=1e-9, err_msg=f"{sample}, tangents of {list(tangents)}"
        )


@over(DIFFERENTIABLE)
def test_forward_over_reverse_agrees_with_reverse_over_reverse(operator):
    for sample in samples_in_each_kind(operator):
        with unless_phases_matter(operator):
            check_forward_over_reverse(sample)


def check_forward_over_reverse(sample):
    (tangents, *_) = directions_for(sample)
    leaves, weights, grads = gradients(sample, create_graph=True)
    expected = second_gradients(leaves, grads, flat(tangents))
    with forward_ad.dual_level():
        duals = dual_leaves(leaves_of(sample), tangents)
        outputs = differentiable_outputs(call(sample, duals))
        grads = weighted_gradients(outputs, weights, flat(duals))
        assert_close([tangent_or_zeros(g) for g in grads], expected, f"forward over reverse of {sample}")


# -- by the check that users have --------------------------------------------------------------------------------------

CHECKED = (
    "gradients", "a graph run twice", "linear in the incoming gradient", "undefined gradients",
    "overwritten afterwards", "layouts of arguments", "layouts of incoming gradients", "in-place form", "forward mode",
    "second derivatives",
)  # fmt: skip


@pytest.mark.parametrize(
    "operator",
    [o if i % 120 == 8 else pytest.param(o, marks=pytest.mark.slow) for i, o in enumerate(DIFFERENTIABLE)],
    ids=lambda operator: operator.name,
)
def test_check_operator_finds_nothing(operator):
    """What is offered to users for their operators says of each row that nothing is wrong, at the row's own samples."""
    for sample in samples_in_each_kind(operator):
        sample = sample.replace(**mapped(np.asarray, arrays_of(sample)))
        try:
            report = check_operator(operator, arguments=sample.args, options=sample.kwargs, only=CHECKED)
        except Failure as failure:
            assert isinstance(failure.__cause__, DifferentiabilityError) and len(operator.signature.outputs) > 1
        else:
            assert report.examples["gradients"] == 1 and not report.notices


# -- shapes ------------------------------------------------------------------------------------------------------------


@over([operator for operator in ELEMENTWISE if len(operator.signature.tensors) > 1])
def test_broadcasting(operator):
    narrow = {
        "row": lambda array: array[:1],
        "column": lambda array: array[:, :1],
        "vector": lambda array: array[0],
        "number": lambda array: array[0, 0],
    }
    sample = samples_of(operator)[0]
    given = sample.bound()
    tensors = [argument.name for argument in operator.signature.tensors if argument.name in given]
    for name in tensors:
        for form, shape in narrow.items():
            small = sample.replace(**{name: np.array(shape(given[name]))})
            wide = sample.replace(**{name: np.array(np.broadcast_to(small.bound()[name], (3, 4)))})
            for output, wanted in zip(call(small), call(wide), strict=True):
                np.testing.assert_array_equal(output.numpy(), wanted.numpy(), err_msg=f"{name} as a {form}")
            if operator.formulas:
                check_first_order(small)
                check_second_order(small)


@over(ELEMENTWISE)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1)], ids=str)
def test_small_shapes(operator, shape):
    for sample in samples_of(operator):
        given = sample.bound()
        tensors = {a.name: given[a.name] for a in operator.signature.tensors if a.name in given}
        if not all(np.shape(array) == (3, 4) for array in tensors.values()):
            continue
        small = sample.replace(**{name: np.resize(array, shape) for name, array in tensors.items()})
        for output in call(small):
            assert output.shape == shape
        if operator.formulas:
            check_second_order(small)


# -- layouts -----------------------------------------------------------------------------------------------------------


def in_columns(leaf):
    return leaf.T.clone(), lambda base: base.T


def backwards(leaf):
    reverse = (slice(None, None, -1),) * leaf.ndim or ...
    return vg.contiguous_copy(leaf[reverse]), lambda base: base[reverse]


def part_of_more(leaf):
    base = vg.zeros(tuple(2 * extent + 1 for extent in leaf.shape) or (3,), dtype=leaf.dtype).clone()
    index = tuple(slice(1, 2 * extent, 2) for extent in leaf.shape) or (1, ...)
    base[index] = leaf
    return base, lambda base: base[index]


def stretched(leaf):
    """A window on one row that stands for all: of other values than the leaf, which are those of its first row."""
    shape = leaf.shape
    return leaf[:1].clone() if leaf.ndim and shape[0] else leaf.clone(), lambda base: base.broadcast_to(shape)


ARRANGED = [in_columns, backwards, part_of_more, stretched]


@over([operator for operator in DIFFERENTIABLE if not operator.nondifferentiable_outputs or operator.samples])
@pytest.mark.parametrize("arranged", ARRANGED, ids=lambda arranged: arranged.__name__)
def test_layouts(operator, arranged):
    """Wherever the numbers lie, values and gradients, and gradients of these, are those of a copy in row order."""
    samples = samples_in_each_kind(operator)
    own = [sample for i, sample in enumerate(samples) if i % len(ARRANGED) == ARRANGED.index(arranged)]
    for sample in own or samples[:1]:
        with unless_phases_matter(operator), contextlib.suppress(*[np.linalg.LinAlgError] * (arranged is stretched)):
            check_layout(sample, arranged)  # rows that are all alike make a singular matrix


def check_layout(sample, arranged):
    found = []
    for compact in (False, True):
        leaves = leaves_of(sample)

        def laid_out(leaf, compact=compact):
            base, window = arranged(leaf)
            return vg.contiguous_copy(window(base)) if compact else window(base)

        outputs = differentiable_outputs(call(sample, mapped(laid_out, leaves)))
        rng = rng_of(sample.operator)
        weights = drawn_like(rng, outputs)
        first = weighted_gradients(outputs, weights, flat(leaves), create_graph=True)
        second = second_gradients(leaves, first, drawn_like(rng, first))
        found.append([*(t.detach().numpy() for t in (*outputs, *first)), *second])
    for number, (ours, expected) in enumerate(zip(*found, strict=True)):
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-8 * scale, err_msg=f"{sample}, number {number}")


# -- where nothing flows -----------------------------------------------------------------------------------------------

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.0, 6.0, np.pi / 2, -100.0, 1000.0])


@over([operator for operator in DIFFERENTIABLE if operator.elementwise])
@pytest.mark.parametrize("dtype", [float, complex], ids=["real", "complex"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_flows_from_nothing(operator, dtype):
    """Where the incoming gradient is 0, so is the gradient, at edges of domains, poles and kinks too; to any order."""
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
    connected = [g.sum() for g in first if g.requires_grad]
    second = grad(connected, flat(leaves), materialize_grads=True) if connected else []
    for found in (*first, *second, *grad(call(sample, leaves)[0], flat(leaves), nothing.detach())):
        np.testing.assert_array_equal(found.detach().numpy(), 0, err_msg=str(sample))
    with forward_ad.dual_level():
        duals = dual_leaves(leaves_of(sample), {name: np.zeros(count, dtype) for name in given})
        np.testing.assert_array_equal(tangent_or_zeros(call(sample, duals)[0]), 0, err_msg=str(sample))


# -- in place ----------------------------------------------------------------------------------------------------------


def row_of_a_larger_base(shape):
    return (3, *shape), lambda base: base[1, ...]


def strided_view(shape):
    if not shape:
        return (3,), lambda base: base[1, ...]
    every_other = tuple(slice(1, 2 * extent, 2) for extent in shape)
    return tuple(2 * extent + 1 for extent in shape), lambda base: base[every_other]


LAYOUTS = {
    "plain": lambda shape: (shape, lambda base: base),
    "transposed view": lambda shape: (shape[::-1], lambda base: base.T),
    "strided view of a larger base": strided_view,
    "row of a larger base": row_of_a_larger_base,
}


def written_over(operator):
    """The samples whose value can be written over their first tensor, with that tensor's name and both values."""
    target = operator.signature.tensors[0].name
    for sample in samples_of(operator):
        old = np.asarray(sample.bound()[target])
        (value,) = call(sample)
        if value.shape == old.shape and np.can_cast(value.dtype, old.dtype, "same_kind"):
            yield sample, target, old, value


@over([operator for operator in ROWS if operator.has_inplace])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place(operator, layout):
    """The in-place form writes what the operator gives, and the gradient is that of a program without aliasing."""
    for sample, target, old, value in written_over(operator):
        shape, window = LAYOUTS[layout](old.shape)
        rng = rng_of(operator)
        before = rng.uniform(*operator.domain, shape).astype(old.dtype)
        before = np.array(before)
        window(before)[...] = old
        after = before.copy()
        window(after)[...] = value.numpy()

        leaf = vg.Tensor(before, requires_grad=bool(operator.formulas))
        others = {name: other for name, other in leaves_of(sample).items() if name != target}
        base = leaf.clone()
        view = window(base)
        written = sample.replace(**{target: view}, **others)
        assert operator.inplace(*written.args, **written.kwargs) is view
        np.testing.assert_allclose(base.detach().numpy(), after, rtol=1e-12, atol=1e-15, err_msg=str(sample))
        assert base._version == 1
        if not operator.formulas:
            continue

        weight = np.array(rng.standard_normal(shape))
        apart, _, grads = gradients(sample, [np.array(window(weight))])
        wanted = dict(zip(apart, (g.numpy() for g in grads), strict=True))
        of_leaf = weight.copy()
        window(of_leaf)[...] = wanted.pop(target)
        for create_graph in (True, False):
            options = {"create_graph": create_graph, "retain_graph": create_graph}
            actual = weighted_gradients([base], [weight], [leaf, *others.values()], **options)
            assert_close(actual, [of_leaf, *(wanted[name] for name in others)], f"{sample} in place")


@over([operator for operator in DIFFERENTIABLE if operator.has_inplace])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tangents_in_place(operator, layout):
    """The in-place form changes the tangent of what it writes to, and of nothing else."""
    for sample, target, old, _ in written_over(operator):
        shape, window = LAYOUTS[layout](old.shape)
        rng = rng_of(operator)
        for tangents in directions_for(sample):
            before = np.array(rng.uniform(*operator.domain, shape))
            window(before)[...] = old
            direction = np.array(rng.standard_normal(shape))
            if target in tangents:
                window(direction)[...] = tangents[target]
            else:
                direction[...] = 0
            with forward_ad.dual_level():
                leaves = leaves_of(sample)
                (output,) = call(sample, leaves | dual_leaves(leaves, tangents))
                wanted = direction.copy()
                window(wanted)[...] = tangent_or_zeros(output)
            with forward_ad.dual_level():
                leaves = leaves_of(sample)
                duals = leaves | dual_leaves(leaves, tangents)
                base = forward_ad.make_dual(vg.Tensor(before), vg.Tensor(direction)).clone()
                written = sample.replace(**duals | {target: window(base)})
                operator.inplace(*written.args, **written.kwargs)
                assert_close([tangent_or_zeros(base)], [wanted], f"{sample} in place, tangents of {list(tangents)}")


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


def test_saved_values_are_those_that_the_formula_reads():
    node = (vg.Tensor([1.0, 2.0], requires_grad=True) * vg.Tensor([3.0, 4.0])).grad_fn
    assert not hasattr(node, "saved_self")
    np.testing.assert_array_equal(node.saved_other.array, [3.0, 4.0])
    y = vg.Tensor([0.0, 1.0], requires_grad=True).exp()
    assert y.grad_fn.saved_result.array is y._array
