"""Each escape of a value from a tensor, in each mode."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import viewgrad as vg
import viewgrad.numpy as vnp
from viewgrad.autograd import grad, graph
from viewgrad.autograd.modes import forward_ad
from viewgrad.autograd.modes.profile import profile
from viewgrad.errors import (
    AutogradError,
    DetachedConversionError,
    DetachedConversionWarning,
    GuardError,
    TraceError,
    UnsupportedFunctionError,
)  # fmt: skip
from viewgrad.func import transforms as func  # transforms that do not adopt
from viewgrad.tensor import escapes
from viewgrad.tensor.escapes import DETACHES, ENDS, ESCAPES, KEEPS, REFUSES, STEPS


def from_file(save):
    file = io.BytesIO()
    save(file)
    return number_of(file.getvalue())


def number_of(content):
    """Return a number that depends on bytes or a text."""
    content = content.encode() if isinstance(content, str) else content
    return float(sum(content) % 251)


def number(value):
    """Return a number that depends on the escaped value."""
    if isinstance(value, bytes | str):
        return number_of(value)
    if isinstance(value, list):
        return sum(map(number, value))
    if isinstance(value, vg.Tensor):
        return value.sum()
    return float(np.sum(np.asarray(value, float)))


def raises(x):
    """Return 1 if the elements make an operator raise, otherwise 0."""
    try:
        with np.errstate(all="raise"):
            np.log(x - 2.0)
    except FloatingPointError:
        return 1.0
    return 0.0


# Functions by which a value escapes from a tensor of shape (2,), with results that `number` accepts.
TRIES = {
    "float()": [lambda x: float(x[0])],
    "complex()": [lambda x: complex(x[0]).real],
    "int()": [lambda x: int(x[0]), lambda x: round(float(round(x[0]))), lambda x: range(9)[x.astype(int)[0]]],
    "bool()": [lambda x: bool(x[0] > 2.0), lambda x: 1.0 if x[0] > 2.0 else 0.0],
    "in": [lambda x: 3.0 in x],
    "hash()": [lambda x: float(hash(x[0]) % 1000)],
    "item()": [lambda x: x.item(0)],
    "tolist()": [lambda x: x.tolist()],
    "as_integer_ratio()": [lambda x: x[0].as_integer_ratio()[0]],
    "hex()": [lambda x: x[0].hex()],
    "bit_count()": [lambda x: x.astype(int)[0].bit_count()],
    "is_integer()": [lambda x: x[0].is_integer()],
    "numpy()": [lambda x: x.numpy()],
    "np.asarray()": [lambda x: np.asarray(x), lambda x: np.array(x), lambda x: np.put(np.zeros(2), [0, 1], x) or 0.0],
    "np.asarray(x, bool)": [lambda x: np.asarray(x - 2.0, bool), lambda x: np.bool_(x[0]), lambda x: np.array(x, "?")],
    "__dlpack__()": [lambda x: np.from_dlpack(x)],
    "tobytes()": [lambda x: x.tobytes(), lambda x: bytes(x)],
    "byteswap()": [lambda x: number_of(bytes(x.byteswap()))],
    "getfield()": [lambda x: x.getfield(np.int32)],
    "tofile()": [],  # needs a file of the system
    "dump()": [lambda x: from_file(x.dump)],
    "dumps()": [lambda x: x.dumps()],
    "np.save()": [lambda x: from_file(lambda file: np.save(file, x))],
    "viewgrad.save()": [lambda x: from_file(lambda file: vg.save(file, x))],
    "pickle": [lambda x: pickle.dumps(x)],
    "copy.deepcopy()": [lambda x: copy.deepcopy(x), lambda x: copy.copy(x)],
    "repr()": [lambda x: number_of(repr(x)), lambda x: number_of(str(x))],
    "format()": [lambda x: number_of(f"{x[0]:.3f}"), lambda x: number_of(f"{x[0]!s}")],
    "a mask": [lambda x: x[x > 2.0]],
    "where=": [lambda x: np.add(x, 1.0, where=x > 2.0)],
    "an index": [lambda x: vg.arange(9.0)[x.astype(int)], lambda x: np.arange(9.0)[x.astype(int)[0]]],
    "a choice by values": [lambda x: np.unique(x)],
    "the gradient": [lambda x: 0.0 if x.grad is None else 1.0],
    "grad_fn": [lambda x: float((x * 1.0).grad_fn is x)],
    "_version": [lambda x: (x * 1.0)._version],
    "shape": [lambda x: (x.shape, x.dtype, x.ndim, x.strides, len(x)) and x.size],
    "identity": [lambda x: float(x is x) + 0.0 * (id(x) + hash(x))],
    "an exception": [raises],
    "ctypes": [lambda x: x.ctypes],
    "memoryview()": [lambda x: memoryview(x)],
}
CASES = [(name, n) for name, tries in TRIES.items() for n in range(len(tries))]
UNSEEN_FOR_ALL = [name for name, escape in ESCAPES.items() if escape.traced == escapes.UNSEEN]
LOW, HIGH = np.array([1.5, 2.25]), np.array([3.0, 5.5])


@pytest.mark.parametrize("name", ["save", "savetxt", "savez", "savez_compressed"])
def test_files_of_viewgrad_numpy_keep_no_history(name):
    save = getattr(vnp, name)
    save(io.BytesIO(), vg.Tensor(LOW))
    with pytest.raises(UnsupportedFunctionError, match="would lose the history"):
        func.grad(lambda x: save(io.BytesIO(), x * 2.0) or (x * x).sum())(vg.Tensor(LOW))
    with pytest.raises(UnsupportedFunctionError, match="would lose the history"):
        save(io.BytesIO(), [vg.Tensor(LOW, requires_grad=True)])
    with pytest.raises(UnsupportedFunctionError, match="would lose the history"):
        func.jvp(lambda x: save(io.BytesIO(), x) or x, (vg.Tensor(LOW),), (vg.ones(2),))


def test_each_escape_is_tried():
    assert TRIES.keys() == ESCAPES.keys()


# -- attributes of tensors ---------------------------------------------------------------------------------------------

# Attributes that are not escapes although they are not tensors: they describe the graph, the shape or the layout, or
# Python refuses them for all arrays.
HARMLESS = {
    *("T mT real imag data flat grad_fn is_leaf requires_grad output_nr retains_grad base device flags").split(),
    *("shape dtype ndim size itemsize nbytes strides stride is_contiguous").split(),
    *("is_complex is_floating_point is_inference").split(),
}


@pytest.mark.parametrize("name", [n for n in dir(vg.Tensor) if not n.startswith("_")])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_methods_without_arguments_escape_in_known_ways_only(name):
    """Methods that return neither tensors nor layouts are escapes, which a trace detects."""
    if name in HARMLESS or f"{name}()" in ESCAPES or name in ESCAPES:
        return
    x = vg.Tensor(LOW)
    try:
        attribute = getattr(x, name)
        found = attribute() if callable(attribute) else attribute
    except (TypeError, ValueError, AttributeError, AutogradError, IndexError):
        return
    for part in found if isinstance(found, tuple | list) else (found,):
        assert part is None or isinstance(part, vg.Tensor | type(x.device)) or hasattr(part, "remove"), (name, part)


# -- in eager modes ----------------------------------------------------------------------------------------------------


def plain(program):
    leaf = vg.Tensor(LOW, requires_grad=True)
    return grad(as_tensor(program(leaf * 1.0)), leaf)[0]


def under(make):
    def run(program):
        with make():
            return plain(program)

    return run


def hooked():
    return graph.saved_tensors_hooks(lambda value: value, lambda value: value)


def with_tangent(program):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(vg.Tensor(LOW), vg.ones(2))
        return forward_ad.unpack_dual(as_tensor(program(dual * 1.0))).tangent


def as_tensor(value):
    return value if isinstance(value, vg.Tensor) else vg.Tensor(value)


MODES = {
    "plain": plain,
    "detect_anomaly": under(vg.autograd.detect_anomaly),
    "view_replay": under(lambda: vg.view_replay(True)),
    "saved_tensors_hooks": under(hooked),
    "forbid_mutation": under(graph.forbid_mutation_on_saved_tensors),
    "profile": under(profile),
    "dual_level": with_tangent,
    "func.grad": lambda program: func.grad(program)(LOW),
    "func.jacrev": lambda program: func.jacrev(program)(LOW),
    "func.jvp": lambda program: func.jvp(program, (LOW,), (np.ones(2),))[1],
    "func.jacfwd": lambda program: func.jacfwd(program)(LOW),
    "compile": lambda program: vg.compile(program, executor="python", adopt=False).value_and_grad(LOW)[1],
}
TRANSFORMS = ("func.grad", "func.jacrev", "func.jvp", "func.jacfwd", "compile")


def through(name, n):
    """Return a program whose result depends on a value that escapes."""
    opened = TRIES[name][n]
    return lambda x: (x * number(opened(x * 1.0))).sum()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "n"), CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_histories_at_each_escape(mode, name, n):
    escape = ESCAPES[name]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            MODES[mode](through(name, n))
        except (AutogradError, TypeError) as error:
            failed = error
        else:
            failed = None
    warned = any(issubclass(each.category, DetachedConversionWarning) for each in told)
    if escape.history in (STEPS, KEEPS):
        assert failed is None and not warned, failed
    elif escape.history == REFUSES:
        assert failed is not None
    elif mode not in TRANSFORMS:
        assert failed is None and warned
    elif escape.history == ENDS:
        assert isinstance(failed, DetachedConversionError)
    else:
        assert escape.history == DETACHES and not warned
        assert failed is None


def test_scalars_that_leave_a_transform_are_differentiable():
    for name in ("item()", "tolist()"):
        program = through(name, 0)
        expected = [2 * LOW[0] + LOW[1], LOW[0]] if name == "item()" else [2 * LOW.sum()] * 2
        for mode in ("func.grad", "func.jacrev", "func.jacfwd", "compile"):
            np.testing.assert_allclose(np.asarray(MODES[mode](program)), expected)


@pytest.mark.parametrize("leave", [lambda x: x.sum().item(), lambda x: sum(x.tolist())])
@pytest.mark.parametrize("specialize", [False, True])
def test_compiled_functions_in_transforms_equal_functions(leave, specialize):
    def function(x):
        return leave(x * x) * x[0]

    compiled = vg.compile(function, executor="python", specialize=specialize, adopt=False)
    leaf = vg.Tensor(LOW, requires_grad=True)
    for _ in range(3):
        for transform in (func.grad, func.hessian, lambda f: func.grad(lambda x: f(x) * x[1])):
            expected = np.asarray(transform(function)(LOW))
            np.testing.assert_allclose(np.asarray(transform(compiled)(LOW)), expected)
        np.testing.assert_allclose(compiled.value_and_grad(LOW)[1], func.grad(function)(LOW).numpy())
        with pytest.raises(DetachedConversionError):  # outside, where the function itself would detach
            compiled(leaf)


# -- in traces and compiled functions ----------------------------------------------------------------------------------


def detached(name, n):
    """Return a program in which a value without a history escapes."""
    opened = TRIES[name][n]
    return lambda x: x * number(opened(x.detach() * 1.0))


# An exception returns no value, so values computed before it must be compared.
TRACED = [(name, n) for name, n in CASES if name not in (*UNSEEN_FOR_ALL, "an exception")]


COMPARED = [case for case in TRACED if ESCAPES[case[0]].traced == escapes.GUARDED or ESCAPES[case[0]].gives == "text"]


@pytest.mark.parametrize("escapes", ["error", "guard"])
@pytest.mark.parametrize(("name", "n"), COMPARED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_traces_notice_escaping_values(name, n, escapes):
    program = detached(name, n)
    try:
        function = vg.symbolic.function_of(program, vg.Tensor(LOW), escapes=escapes)
        found = function(vg.Tensor(HIGH))
    except (TraceError, GuardError):
        return
    np.testing.assert_array_equal(np.asarray(found), np.asarray(program(vg.Tensor(HIGH))))


@pytest.mark.parametrize(("name", "n"), TRACED)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::viewgrad.errors.NotCompiledWarning")
def test_compiled_functions_notice_escaping_values(name, n):
    program = detached(name, n)
    compiled = vg.compile(program, executor="python", adopt=False)
    for point in (LOW, LOW, LOW, HIGH, HIGH, LOW):
        found, expected = compiled(vg.Tensor(point)), program(vg.Tensor(point))
        if name not in ("pickle", "dumps()", "dump()"):  # their bytes may differ
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_printed_and_raised_text_can_be_traced(capsys):
    def f(x):
        print(x, f"{x.sum():.2f}", str(x.sum()))
        if x.ndim != 1:
            raise ValueError(f"{x} has a different shape")
        return x * 2.0

    function = vg.symbolic.function_of(f, vg.Tensor(LOW))
    assert capsys.readouterr().out.count("3.75") == 2
    np.testing.assert_array_equal(np.asarray(function(vg.Tensor(HIGH))), 2.0 * HIGH)
    with pytest.raises(TraceError, match="a text at"):
        vg.symbolic.trace(lambda x: x * len(f"{x.sum()}"), vg.Tensor(LOW))
