"""Code generated from declarations: written at the first call, and visible to debuggers."""

from __future__ import annotations

import inspect
import linecache
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from leaves import leaf

import viewgrad as vg
from viewgrad.errors import DifferentiabilityError
from viewgrad.operators.codegen.function_writer import FunctionWriter
from viewgrad.operators.define import OPERATORS, define_op
from viewgrad.views.basic_indexing import _write_array, _write_number
from viewgrad.views.inplace import PROTOCOL, write_in_place


class Doubled(vg.autograd.Function):
    """Twice its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def written(x):
    y = x * 1
    y[0] = 2.0
    return y


def written_by_index(x):
    y = x * 1
    y[np.array([0])] = 2.0
    return y


STEPS = {
    "operator": lambda x: vg.sin(x),
    "two operands": lambda x: x * x,
    "list": lambda x: vg.concatenate([x, x]),
    "in place": lambda x: (x * 1).mul_(2.0),
    "in place, perhaps real": lambda x: (x * 1).clip_(0.0, 1.0),
    "number": lambda x: x.sum(),
    "index": lambda x: x[0],
    "slice": lambda x: x[:2],
    "index array": lambda x: x[np.array([0, 1])],
    "view": lambda x: x.reshape(3, 1),
    "transpose": lambda x: x.reshape(3, 1).T,
    "write": written,
    "write by index array": written_by_index,
    "function": Doubled.apply,
}


@pytest.mark.parametrize("step", STEPS)
def test_every_kind_of_node_has_source(step):
    node = STEPS[step](leaf(0.1, 0.2, 0.3)).grad_fn
    source = inspect.getsource(type(node))
    assert source.startswith("class ") and "__slots__" in source
    assert type(node).__doc__
    for method in ("apply", "consume", "apply_recorded"):
        if hasattr(type(node), method):
            assert inspect.getsource(getattr(type(node), method))


@pytest.mark.parametrize("name", [name for name, operator in OPERATORS.items() if not operator.user_defined])
def test_every_node_class_states_its_formulas(name):
    operator = OPERATORS[name]
    node_class = operator.node_class
    assert (node_class is None) == (not operator.formulas)
    for formula in operator.formulas:
        assert f"{', '.join(formula.inputs)}: {formula.text.strip()}" in node_class.__doc__
    if node_class is not None:
        source = inspect.getsource(node_class)
        assert source.startswith(f"class {node_class.__name__}(Node):")
        assert source.count(f"# {operator.row}") >= 2 * len(operator.formulas)
    assert inspect.getsource(operator.function).startswith(f"def {name}(")
    if operator.has_inplace:
        assert inspect.getsource(operator.inplace_function).startswith(f"def {name}_(")


def test_generated_lines_name_their_row():
    op = define_op("halved(self)", forward=lambda x: x / 2, derivatives={"self": "grad / 2 + absent_slope(self)"})
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(ValueError, match="no slope") as caught:
        op(leaf(1.0)).backward()
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert f"g0 = grad / 2 + arrays.absent_slope(self)  # halved, test_codegen.py:{line}" in [
        text.removeprefix("grad = ") for text in lines
    ]


@pytest.mark.parametrize(
    ("name", "file"), [("square", "elementwise.py"), ("pow", "elementwise.py"), ("ndtr", "special_functions.py")]
)
def test_the_location_of_a_row_is_the_line_with_its_name(name, file):
    _, _, place = OPERATORS[name].row.partition(", ")
    found, _, number = place.partition(":")
    lines = (Path(vg.operators.derivatives.__file__).parent / file).read_text().splitlines()
    assert found == file and any(f'"{name}' in line for line in lines[int(number) - 1 : int(number) + 2])


@vg.autograd.formula_function
def absent_slope(x):
    raise ValueError("no slope")


def test_builtins_keep_their_meaning_in_generated_frames():
    seen = []

    def look(grad):
        frame = inspect.currentframe().f_back
        names = ["max", "min", "sum", "abs", "pow", "round", "all", "any", "divmod"]
        seen.append({name: eval(name, frame.f_globals, frame.f_locals) for name in names})
        seen.append(eval("max(1, 2)", frame.f_globals, frame.f_locals))
        return grad

    vg.autograd.formula_function(look)
    op = define_op("looked_at(self)", forward=np.exp, derivatives={"self": "look(grad)"})
    op(leaf(1.0)).backward()
    import builtins

    assert seen[0] == {name: getattr(builtins, name) for name in seen[0]}
    assert seen[1] == 2
    own = {"NotImplemented", *(name for name in vars(builtins) if name.startswith("__"))}
    for operator in OPERATORS.values():
        names = operator.function.__globals__
        assert not names.keys() & vars(builtins).keys() - own, operator


def test_an_operator_still_calls_itself_after_its_name_is_reused():
    first = define_op("turned(self)", forward=np.exp, derivatives={"self": "grad * turned(self)"})
    define_op("turned(self)", forward=np.sin, derivatives={"self": "grad * cos(self)"})
    x = leaf(0.5)
    (grad,) = vg.autograd.grad(first(x), x, create_graph=True)
    (second,) = vg.autograd.grad(grad, x)
    assert grad.item() == second.item() == np.exp(0.5)


@pytest.mark.parametrize("suffix", ["forward", "operator", "inplace_forward"])
def test_arguments_cannot_take_the_names_of_generated_code(suffix):
    with pytest.raises(vg.errors.DeclarationError, match="which generated code uses"):
        define_op(f"cost(self, *, cost_{suffix})", forward=np.exp, derivatives={"self": "grad"})


def test_arguments_may_have_any_other_name():
    names = ["write", "this_function", "cost_function", "module"]
    op = define_op(
        f"cost(self, *, {', '.join(names)})",
        forward=lambda x, **options: x * sum(options.values()),
        derivatives={
            "self": f"grad * ({' + '.join(names)}) + 0 * cost(self, write=write, this_function=this_function, "
            "cost_function=cost_function, module=module)"
        },
    )
    x = leaf(2.0)
    op(x, **dict.fromkeys(names, 1.5)).backward()
    assert x.grad.tolist() == [6.0]


def test_two_definitions_of_one_name_keep_their_sources():
    def define(factor):
        return define_op("twice_named(self)", forward=np.exp, derivatives={"self": f"grad * {factor}"})

    ops = [define(2), define(3)]
    for op, factor in zip(ops, (2, 3), strict=True):
        assert f"grad * {factor}" in inspect.getsource(op.node_class)
        assert f"grad * {factor}" in inspect.getsource(type(op(leaf(1.0)).grad_fn))


def run(program):
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_code_is_generated_at_the_first_call():
    out = run(
        "import inspect, viewgrad as vg\n"
        "from viewgrad.operators.define import OPERATORS\n"
        "written = lambda: sorted(name for name, op in OPERATORS.items() if op._code is not None)\n"
        "sin = vg.sin\n"
        "assert 'sin' not in written(), written()\n"
        "before = inspect.signature(vg.softmax)\n"
        "x = vg.Tensor([1.0], requires_grad=True)\n"
        "y = sin(x)\n"
        "assert vg.sin is sin and 'sin' in written()\n"
        "assert not any('_write' in name for name in sin.__code__.co_names)\n"
        "vg.softmax(x, dim=0)\n"
        "assert inspect.signature(vg.softmax) == before\n"
        "y.backward()\n"
        "print(len(written()))\n"
    )
    assert int(out) < len(OPERATORS) // 4


def test_a_first_call_with_wrong_arguments_raises():
    out = run(
        "import viewgrad as vg\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        vg.cosh(1.0, 2.0, 3.0)\n"
        "    except TypeError as error:\n"
        "        print(error)\n"
    )
    first, second = out.splitlines()
    assert first == second == "cosh() takes from 1 to 2 positional arguments but 3 were given"


def test_threads_may_make_the_first_call_at_once():
    out = run(
        "import sys, threading, viewgrad as vg\n"
        "sys.setswitchinterval(1e-5)\n"
        "results, start = [], threading.Barrier(8)\n"
        "x = vg.Tensor([0.5], requires_grad=True)\n"
        "def call():\n"
        "    start.wait()\n"
        "    results.append(type(vg.arctanh(x).grad_fn))\n"
        "threads = [threading.Thread(target=call) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(len(results), len(set(results)))\n"
    )
    assert out == "8 1\n"


def test_sources_stay_when_linecache_is_checked():
    vg.sin(1.0)
    linecache.checkcache()
    assert "def sin(" in "".join(linecache.getlines(vg.sin.__code__.co_filename))


squared_length = vg.autograd.define_op(
    "squared_length(self)",
    forward=lambda z: (z * z.conj()).real,
    derivatives={"self": "grad * 2 * self"},
    forward_derivative="2 * (conj(self_p) * self_t).real",
    inplace=True,
)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize("operator", [vg.operators.OPERATORS["abs"], squared_length])
def test_real_result_written_to_complex_target_gets_real_gradient(operator, as_view, recorded):
    z = vg.Tensor([0.3 + 0.4j, -1 + 2j], requires_grad=True)
    t = z.clone()
    operator.inplace(t[...] if as_view else t)
    (grad,) = vg.autograd.grad((t * t * (1 + 2j)).real.sum(), z, create_graph=recorded)
    (expected,) = vg.autograd.grad((operator(z) ** 2).sum(), z)
    np.testing.assert_allclose(grad.detach(), expected, rtol=1e-14)


@pytest.mark.parametrize("number", [vg.Tensor, np.array])
def test_tensors_used_as_bounds_may_be_written_to_later(number):
    x = vg.Tensor(np.arange(9.0).reshape(3, 3), requires_grad=True)
    start, stop, one = number(0), number(2), number(1)
    written = x.clone()
    written[start:stop] *= 10.0
    written[:, one:stop] = 0.0
    results = [
        written,
        x[start:stop],
        x[start:stop, one],
        x.unfold(0, stop, one),
        x.diagonal(one),
        x.as_strided((stop, stop), (one, one), one),
        np.roll(x, one, axis=one),
        np.sum(x, axis=one),
        np.concatenate([x, x], axis=one),
        np.repeat(x, stop, axis=one),
        np.tile(x, stop),
        np.triu(x, one),
        np.pad(x, ((one, one), (one, stop))),
        np.linalg.matrix_power(x, stop),
        np.quantile(x, 0.5, axis=one),
        np.split(x, number(3))[2],
    ]

    def gradients():
        terms = [(result * np.cos(np.arange(result.size).reshape(result.shape))).sum() for result in results]
        return [vg.autograd.grad(term, x, retain_graph=True)[0].tolist() for term in terms]

    before = gradients()
    for bound in start, stop, one:
        bound += 1
    assert gradients() == before


def test_tensor_that_requires_grad_is_rejected_as_option():
    x = vg.Tensor([1.0, 2.0, -4.0], requires_grad=True)
    slope = vg.Tensor(0.3, requires_grad=True)
    with pytest.raises(DifferentiabilityError, match=r"argument 'negative_slope' of operator 'leaky_relu'.*detach\(\)"):
        vg.leaky_relu(x.detach(), slope)
    assert vg.leaky_relu(x, slope.detach())[2].item() == pytest.approx(-1.2)


@pytest.mark.parametrize("name", ["kept0", "unconjugated"])
def test_names_reserved_for_generated_code_begin_with_an_underscore(name):
    gradient = f"grad * conj(result * 2.0) * 0.5 * {name} / {name}"
    op = vg.autograd.define_op(f"exp_of_{name}({name})", forward=np.exp, derivatives={name: gradient})
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert np.allclose(vg.autograd.grad(op(x).sum(), x)[0].numpy(), np.exp([1.0, 2.0]))


@pytest.mark.parametrize("name", ["mode", "axis", "size"])
def test_plain_argument_keeps_its_value(name):
    op = vg.autograd.define_op(
        f"scaled_by_{name}(self, {name}='twice')",
        forward=lambda a, factor="twice": a * (2.0 if factor == "twice" else 3.0),
        derivatives={"self": f"grad * (2.0 if {name} == 'twice' else 3.0)"},
        forward_derivative="auto_linear",
        inplace=True,
    )
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    assert op(x).tolist() == [2.0, 4.0]
    y = op(x, "thrice")
    assert y.tolist() == [3.0, 6.0]
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    z = x.clone()
    op.inplace(z, "thrice")
    assert z.tolist() == [3.0, 6.0]


@pytest.mark.parametrize("as_view", [False, True])
def test_inplace_abs_of_complex_uses_the_real_part_of_the_gradient(as_view):
    z = vg.Tensor([0.3 + 0.4j, -1 + 2j], requires_grad=True)
    t = z.clone()
    (t[...] if as_view else t).abs_()
    (t * t * (1 + 2j)).real.sum().backward()
    assert abs(z.grad - 2 * z.detach()).max().item() < 1e-15


def following_the_protocol(source):
    """Return whether the source of a write has all lines of the protocol, in order."""
    lines = iter(source.splitlines())
    fixed = [line for line in PROTOCOL.splitlines() if not line.strip().startswith("<")]
    return all(
        any(re.fullmatch(" {4}" + re.sub(r"<\w+>", ".+", re.escape(wanted)), line) for line in lines)
        for wanted in fixed
    )


def test_every_write_in_place_follows_the_protocol():
    for function in (_write_array, _write_number, write_in_place):
        assert following_the_protocol(inspect.getsource(function)), function
    several = [OPERATORS[name] for name in ("mul", "add", "exp", "clip", "maximum", "logit")]
    for operator in several:
        assert operator.has_inplace
        source = FunctionWriter(operator).inplace()
        assert following_the_protocol(source), operator.name
        assert not following_the_protocol(source.replace("abandon_write(", "print("))
