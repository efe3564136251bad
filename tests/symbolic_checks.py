"""Checks of graphs: a function is traced, differentiated and run, and compared with eager runs."""

import numpy as np

import viewgrad as vg
from viewgrad.errors import TraceError
from viewgrad.symbolic import differentiate, parse, program_of, run, trace, verify


def weights_of(values, seed=0):
    """Return numbers of the shape and dtype of each tensor."""
    rng = np.random.default_rng(seed)
    found = []
    for value in values:
        array = rng.standard_normal(value.shape)
        if value.dtype.kind == "c":
            array = array + 1j * rng.standard_normal(value.shape)
        found.append(np.asarray(array, value.dtype))
    return found


SINGLE = 2e-3  # the tolerance for results computed in single precision


def is_single(array):
    """Return whether an array has single or half precision."""
    return array.dtype.kind in "fc" and array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1) < 8


def assert_close(ours, other, what, tolerance=1e-8):
    """Assert that two arrays are close, relative to their largest element; None means zero."""
    if ours is None and other is None:
        return
    ours = np.zeros_like(other) if ours is None else np.asarray(ours)
    other = np.zeros_like(ours) if other is None else np.asarray(other)
    assert ours.shape == other.shape, what
    assert ours.dtype == other.dtype, what
    if is_single(other):
        tolerance = max(tolerance, SINGLE)
    scale = max(1.0, float(np.abs(other).max(initial=0, where=np.isfinite(other)))) if other.dtype.kind in "fc" else 1
    np.testing.assert_allclose(ours, other, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def round_trip(graph):
    """Return the graph parsed from a graph's text."""
    objects = []
    text = graph.text(objects=objects)
    again = parse(text, objects)
    assert again.text(objects=objects) == text
    return again


def tensors(leaves):
    """Return leaves of arrays; those of float and complex dtype require grad."""
    return [vg.Tensor(leaf, requires_grad=leaf.dtype.kind in "fc") for leaf in leaves]


def run_both(graph, inputs, what):
    """Return the interpreter's outputs; assert that the graph's source returns the same, and changes no input."""
    outputs = run(graph, inputs)
    copies = [None if each is None else each.copy() for each in inputs]
    for each in copies:
        if each is not None:
            each.flags.writeable = False
    for number, (ours, other) in enumerate(zip(program_of(graph)(copies), outputs, strict=True)):
        assert_close(ours, other, f"{what}, output {number} of the source")
    return outputs


def check(function, leaves, what="", order=2, again=True, make=None, single=False):
    """Check values, gradients and gradients of gradients of a function of tensors.

    Arguments:
        function: takes tensors, and returns one or a tuple of them.
        leaves: arrays.
        again: whether to print and parse the graphs first.
        make: makes tensors of the arrays, if they need a certain memory layout.
        single: whether the function computes in single precision although no leaf has it.

    Returns:
        The gradient; None if the function uses a view whose base was detached in place several times, which a trace
        does not support.
    """
    make = make or (lambda: tensors(leaves))
    single = single or any(map(is_single, leaves))
    try:
        graph = trace(function, *make())
    except TraceError as error:
        if "detached in place several times" not in str(error):
            raise
        return None
    verify(graph)
    if again:
        graph = round_trip(graph)
        verify(graph)
    result = function(*(given := make()))
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    values = run_both(graph, leaves, what)[: len(results)]
    for number, (value, each) in enumerate(zip(values, results, strict=True)):
        assert_close(value, each.detach().numpy(), f"{what}, value {number}")
    wanted = [tensor for tensor in given if tensor.requires_grad]
    weights = weights_of(results)
    outputs = [(each, weight) for each, weight in zip(results, weights, strict=True) if each.requires_grad]
    gradient = differentiate(graph)
    verify(gradient.f)
    verify(gradient.df)
    if not outputs:
        assert not gradient.df_output_vjps
        return gradient
    eager = vg.autograd.grad(
        [each for each, _ in outputs], wanted, [vg.Tensor(w, requires_grad=True) for _, w in outputs],
        create_graph=True, materialize_grads=True,
    )  # fmt: skip
    all_outputs = run_both(gradient.f, leaves, what)
    arriving = [w if each.requires_grad else None for each, w in zip(results, weights, strict=True)]
    inputs = gradient.df_inputs(leaves, all_outputs, arriving)
    found = dict(zip(gradient.df_output_vjps, run(gradient.df, inputs), strict=True))
    numbers = [number for number, tensor in enumerate(given) if tensor.requires_grad]
    for number, grad in zip(numbers, eager, strict=True):
        tolerance = SINGLE if single else 1e-8
        assert_close(found.get(number), grad.detach().numpy(), f"{what}, gradient {number}", tolerance)
    if order > 1:
        check_second(graph, gradient, leaves, given, outputs, wanted, weights, results, what, single)
    return gradient


def check_second(graph, gradient, leaves, given, outputs, wanted, weights, results, what, single):
    """Check the gradients of gradients: through the captured values of df, and then through its temporaries."""
    seeds = [vg.Tensor(weight, requires_grad=True) for _, weight in outputs]
    eager = vg.autograd.grad([each for each, _ in outputs], wanted, seeds, create_graph=True, materialize_grads=True)
    directions = weights_of(eager, 1)
    pairs = [(grad, vg.Tensor(d)) for grad, d in zip(eager, directions, strict=True) if grad.requires_grad]
    if not pairs:
        return
    expected = vg.autograd.grad(
        [grad for grad, _ in pairs], [*wanted, *seeds], [d for _, d in pairs], allow_unused=True, materialize_grads=True
    )
    second = differentiate(gradient.df)
    verify(second.f)
    verify(second.df)
    arriving = [w if each.requires_grad else None for each, w in zip(results, weights, strict=True)]
    all_outputs = run(gradient.f, leaves)
    inputs = gradient.df_inputs(leaves, all_outputs, arriving)
    # An undefined gradient stands for zeros, which can be differentiated.
    inputs = [
        np.zeros(value.type.shape, value.type.dtype) if each is None else each
        for value, each in zip(second.f.inputs, inputs, strict=True)
    ]
    numbers = [number for number, tensor in enumerate(given) if tensor.requires_grad]
    by_input = dict(zip(numbers, directions, strict=True))
    seconds = run_both(second.f, inputs, what)
    back = second.df_inputs(inputs, seconds, [by_input[number] for number in gradient.df_output_vjps])
    of_df = dict(zip(second.df_output_vjps, run(second.df, back), strict=True))
    # The gradients of the inputs of df: of gradients, captured inputs and captured outputs.
    vjps = len(gradient.df_input_vjps)
    captured = vjps + len(gradient.df_input_captured_inputs)
    of_outputs = [None] * len(gradient.f.outputs)
    for place, number in enumerate(gradient.df_input_captured_outputs, captured):
        of_outputs[number] = of_df.get(place)
    totals = dict.fromkeys(numbers)
    for place, number in enumerate(gradient.df_input_captured_inputs, vjps):
        if number in totals:
            totals[number] = added(totals[number], of_df.get(place))
    first = run(gradient.df, gradient.df_inputs(leaves, all_outputs, of_outputs))
    for number, grad in zip(gradient.df_output_vjps, first, strict=True):
        totals[number] = added(totals[number], grad)
    tolerance = SINGLE if single else 1e-7
    for number, grad in zip(numbers, expected, strict=False):
        assert_close(totals[number], grad.detach().numpy(), f"{what}, second gradient {number}", tolerance)
    seeded = [i for i, each in enumerate(results) if each.requires_grad]
    for number, grad in zip(seeded, expected[len(numbers) :], strict=True):
        if number in gradient.df_input_vjps:
            place = gradient.df_input_vjps.index(number)
            assert_close(of_df.get(place), grad.detach().numpy(), f"{what}, gradient of seed {number}", tolerance)


def added(first, second):
    """Return a sum in which None counts as zero."""
    return second if first is None else first if second is None else first + second
