"""Numbers, tuples and lists as inputs of graphs and of traced functions."""

import attrs
import numpy as np
import pytest
from symbolic_checks import assert_close

import viewgrad as vg
from viewgrad.autograd import forward_ad, grad
from viewgrad.errors import GraphError, GuardError, TraceError
from viewgrad.symbolic import differentiate, function_of, parse, passes, program_of, run, trace, verify

PARAMETERS = {"rate": 1.5, "powers": (2.0, [3.0]), "order": 2}


def smoothed(x, parameters):
    first, (second,) = parameters["powers"]
    y = x * parameters["rate"] + first ** parameters["order"]
    y[1:] *= second * y[:-1]
    if parameters["rate"] > 0:
        second += y.sum()
    return {"y": y, "second": second, "name": "smoothed"}


def leaf():
    return vg.Tensor([1.0, 2.0, 0.5], requires_grad=True)


def scalar(value):
    """Return a scalar with a history, and its leaf."""
    given = vg.Tensor([value], requires_grad=True)
    return given, given[0]


def test_numbers_are_inputs_on_request():
    graph = trace(smoothed, leaf(), PARAMETERS, numbers="inputs")
    assert [str(value.type) for value in graph.inputs] == ["float64[3] grad", *["float64[] grad"] * 3]
    traced = function_of(smoothed, leaf(), PARAMETERS, numbers="inputs")
    other = {"rate": 0.25, "powers": (-1.5, [0.75]), "order": 2}
    ours, expected = traced(leaf(), other), smoothed(leaf(), other)
    assert_close(ours["y"].detach().numpy(), expected["y"].detach().numpy(), "y")
    assert_close(ours["second"].detach().numpy(), expected["second"].detach().numpy(), "second")
    assert ours["name"] == "smoothed"
    # Also of a dict in another order.
    assert traced(leaf(), dict(reversed(other.items())))["y"].tolist() == ours["y"].tolist()


def test_gradients_flow_to_a_tensor_passed_for_a_number():
    traced = function_of(smoothed, leaf(), PARAMETERS, numbers="inputs")
    found = []
    for function in (smoothed, traced):
        (rate, given), (power, other) = scalar(0.25), scalar(0.75)
        x = leaf()
        out = function(x, {"rate": given, "powers": (-1.5, [other]), "order": 2})
        first = grad((out["y"] * out["second"]).sum(), [x, rate, power], create_graph=True)
        second = grad(sum((g * g).sum() for g in first), [x, rate, power])
        found.append([g.detach().numpy() for g in (*first, *second)])
    for ours, expected in zip(found[1], found[0], strict=True):
        assert_close(ours, expected, "gradient")


def test_the_gradient_of_a_graph_includes_numbers():
    gradient = differentiate(trace(lambda x, a: (x * a).sum(), vg.ones(2), 3.0, numbers="inputs"))
    assert gradient.df_output_vjps == (1,)
    inputs = [np.array([1.0, 2.0]), np.array(5.0)]
    outputs = run(gradient.f, inputs)
    assert run(gradient.df, gradient.df_inputs(inputs, outputs, [np.array(1.0)])) == (3.0,)


def test_control_flow_on_a_number_is_guarded():
    traced = function_of(smoothed, leaf(), PARAMETERS, numbers="inputs")
    with pytest.raises(GuardError, match=r"bool\(\) at .*test_symbolic_scalar_inputs\.py:\d+ gave True"):
        traced(leaf(), PARAMETERS | {"rate": -1.0})


def test_a_scalar_passed_twice():
    traced = function_of(lambda x, a, b: x * a + b, leaf(), 0.5, 0.25, numbers="inputs")
    _, both = scalar(3.0)
    assert traced(leaf(), both, both).tolist() == [6.0, 9.0, 4.5]
    traced = function_of(lambda x, a, b: x * a + b, leaf(), both, both)
    with pytest.raises(GraphError, match="shares memory"):
        traced(leaf(), both, scalar(3.0)[1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_numbers_are_refused_if_they_are_constants():
    traced = function_of(lambda x, a, n: x * a * n, vg.ones(2), 0.5, 1)
    assert traced(vg.ones(2), 0.5, 1).tolist() == [0.5, 0.5]
    for arguments, message in (
        ((0.25, 1), r"traced with 0\.5, but is called with 0\.25.*numbers='inputs'"),
        ((0.5, 2), r"\[0\]\[2\] was 1, and is 2"),
        ((0.5, True), r"\[0\]\[2\] was 1, and is True"),
        ((1, 1), r"\[0\]\[1\] was a tensor, an array or a float, and is 1"),
    ):
        with pytest.raises(GraphError, match=message):
            traced(vg.ones(2), *arguments)
    traced = function_of(lambda x, a: x / a, vg.ones(2), 0.0)
    with pytest.raises(GraphError, match=r"called with -0\.0"):
        traced(vg.ones(2), -0.0)


def test_attrs_classes_of_tensors_are_arguments():
    @attrs.define
    class Layer:
        weight: object
        power: int = 2

    traced = function_of(lambda layer: layer.weight**layer.power, Layer(vg.ones(2)))
    assert traced(Layer(vg.ones(2) * 3)).tolist() == [9.0, 9.0]
    with pytest.raises(GraphError, match=r"\[0\]\[0\]\['power'\] was 2, and is 3"):
        traced(Layer(vg.ones(2), 3))


def test_a_number_is_not_an_input_if_it_would_change_dtype():
    single = vg.ones(2, dtype=np.float32)
    for function in (lambda x, a: x * a, lambda x, a: (a * 2.0 - 1.0) * x, lambda x, a: np.where(x > 0, x, a)):
        message = r"the number a would take the dtype of float32\[2\] at .*test_symbolic_scalar_inputs\.py:\d+"
        with pytest.raises(TraceError, match=message):
            trace(function, single, 0.5, numbers="inputs")
    traced = function_of(lambda x, a: x * a, single, np.float32(0.5), numbers="inputs")
    assert traced(single, np.float32(0.25)).dtype == np.float32

    def written(x, a):
        y = x * 2
        y[0] = a
        return y

    assert function_of(written, single, 0.5, numbers="inputs")(single, 0.25).tolist() == [0.25, 2.0]


def test_unknown_values_of_numbers_are_rejected():
    with pytest.raises(ValueError, match="'fixed' or 'inputs'"):
        trace(smoothed, leaf(), PARAMETERS, numbers="both")


# -- graphs with tuples, lists and numbers among their inputs and outputs ----------------------------------------------

NESTED = """
graph(%pair : tuple(float64[2] grad, list(float64[2] grad)), %a : float, %n : none):
  %x : float64[2] grad, %rest : list(float64[2] grad) = TupleUnpack(%pair)
  %y : float64[2] grad, %z : float64[2] grad = ListUnpack(%rest)
  %p : float64[2] grad = mul(%x, %y)
  %q : float64[2] grad = mul(%p, %a)
  %w : float64[2] grad = write(%q, %z; window([1], [1], 0))
  %l : list(float64[2] grad) = ListConstruct(%p, %w)
  %t : tuple(float64[2] grad, list(float64[2] grad)) = TupleConstruct(%z, %l)
  return (%t, %q)
""".replace("window([1], [1], 0)", "window([2], [1], 0)")


def test_tuples_lists_and_numbers_run_and_differentiate():
    graph = parse(NESTED)
    verify(graph)
    assert parse(graph.text()).text() == graph.text()
    x, y, z = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0])
    (third, (p, w)), q = run(graph, [(x, [y, z]), 2.0, None])
    assert [each.tolist() for each in (third, p, w, q)] == [[5, 6], [3, 8], [5, 6], [6, 16]]
    lowered = graph.clone()
    passes.lower_all_tuples(lowered)
    verify(lowered)
    assert len(lowered.inputs) == 5 and len(lowered.outputs) == 4
    assert not {"TupleConstruct", "TupleUnpack", "ListConstruct", "ListUnpack"} & {node.kind for node in lowered.block}
    inputs = [x, y, z, 2.0, None]
    for results in (run(lowered, inputs), program_of(graph)(inputs)):
        assert [each.tolist() for each in results] == [[5, 6], [3, 8], [5, 6], [6, 16]]
    gradient = differentiate(graph)
    outputs = run(gradient.f, inputs)
    found = run(gradient.df, gradient.df_inputs(inputs, outputs, [None, np.ones(2), np.ones(2), np.ones(2)]))
    assert [each.tolist() for each in found] == [[9, 12], [3, 6], [1, 1]]


def test_a_list_of_unknown_length_is_named():
    graph = parse("graph(%items : list(float64[2])):\n  return (%items)")
    with pytest.raises(GraphError, match="the number of items of the input %items"):
        passes.lower_all_tuples(graph)


def test_a_number_with_an_earlier_view_is_not_an_input():
    x = vg.Tensor([1.5 + 1j, 2.5])
    with forward_ad.dual_level():
        forward_ad.make_dual(x * 1.0, vg.ones(2, dtype=complex)) ** 7.25  # inspects the real part of the exponent
    graph = vg.symbolic.trace(lambda x: x**7.25 + x * 7.25, x)
    assert len(graph.inputs) == 1
