"""`check_operator` finds every faulty operator of the gallery by the intended property, and passes correct ones."""

from __future__ import annotations

import ast
import copy
import gc
import json
import os
import subprocess
import sys
import time
import weakref

import gallery.found_later
import gallery.right_at_work
import gallery.right_in_corners
import gallery.right_in_digits
import gallery.right_in_use
import gallery.right_ones
import gallery.wrong_at_work
import gallery.wrong_elsewhere
import gallery.wrong_functions
import gallery.wrong_in_corners
import gallery.wrong_in_digits
import gallery.wrong_in_use
import gallery.wrong_rows
import hypothesis
import numpy as np
import pytest
from custom_product import Product
from gallery import NOTED, RIGHT, WRONG
from hypothesis import given
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad.operators.define import OPERATORS, row
from viewgrad.operators.language.namespace import ARRAY_FUNCTIONS, TENSOR_FUNCTIONS
from viewgrad.testing import PROPERTIES, Failure, check_operator, property_test
from viewgrad.testing.__main__ import main
from viewgrad.testing.kit import hypothesis_calls
from viewgrad.testing.kit.arguments import Example, Slot
from viewgrad.testing.kit.operator_under_test import TookTooLong, patience
from viewgrad.testing.kit.properties.registry import SHORT
from viewgrad.testing.kit.shapes import resized

pytestmark = pytest.mark.usefixtures("frozen_objects")

A = np.sin(np.arange(1.0, 7.0)).reshape(2, 3)
B = np.cos(np.arange(3.0)) + 0.5
Z = A + 1j * A[::-1, ::-1]
GALLERY = (
    gallery.found_later,
    gallery.right_at_work,
    gallery.right_in_corners,
    gallery.right_in_digits,
    gallery.right_in_use,
    gallery.right_ones,
    gallery.wrong_at_work,
    gallery.wrong_elsewhere,
    gallery.wrong_functions,
    gallery.wrong_in_corners,
    gallery.wrong_in_digits,
    gallery.wrong_in_use,
    gallery.wrong_rows,
)


@pytest.fixture(autouse=True)
def operators_as_before():
    """Remove the operators that a test defines."""
    before = set(OPERATORS)
    yield
    for name in OPERATORS.keys() - before:
        del OPERATORS[name]
        for functions in (ARRAY_FUNCTIONS, TENSOR_FUNCTIONS):  # frees the name for the next test
            vars(functions).pop(name, None)


def check(entry):
    float32 = {"float32": True} if "dtypes" in entry.properties else {}
    return check_operator(entry.make(), *copy.deepcopy(entry.args), **{**float32, **entry.kwargs})


@pytest.fixture
def seeded(monkeypatch):
    """Return a function that makes Hypothesis draw from a given seed."""
    drawing = hypothesis_calls.settings

    def by_seed(number):
        monkeypatch.setattr(hypothesis.core, "global_force_seed", number)
        monkeypatch.setattr(
            hypothesis_calls,
            "settings",
            lambda **chosen: drawing(**chosen, derandomize=False, database=None),
        )

    return by_seed


def some(table, step):
    """Return the entries, most of them marked slow."""
    slow = pytest.mark.slow
    return [entry if i % step == 0 else pytest.param(entry, marks=slow) for i, entry in enumerate(table.values())]


@pytest.mark.parametrize("entry", some(WRONG, 25), ids=WRONG)
def test_a_faulty_operator_is_found_by_the_property_meant_for_it(entry):
    with pytest.raises(Failure) as found:
        check(entry)
    assert found.value.property.startswith(entry.properties), found.value
    assert any(found.value.property.startswith(name) for name in PROPERTIES)


@pytest.mark.parametrize("entry", NOTED.values(), ids=NOTED)
def test_wrong_gradients_outside_the_intended_use_are_noted(entry):
    assert any(entry.properties[0] in notice for notice in check(entry).notices)


@pytest.mark.parametrize("entry", some(RIGHT, 60), ids=RIGHT)
def test_a_correct_operator_passes(entry):
    report = check(entry)
    assert "gradients" in report.switched_off or report.examples["gradients"] == 1
    assert report.examples.get("special points", 0) + report.examples.get("shapes", 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 21))
def test_correct_operators_pass_for_all_draws(seeded, number):
    seeded(number)
    for entry in [*RIGHT.values()][:: len(RIGHT) // 64]:
        arguments, keywords = copy.deepcopy((entry.args, entry.kwargs))
        keywords.setdefault("only", SHORT)  # the inspection of each drawn call
        assert check_operator(entry.make(), arguments=arguments, **keywords, max_examples=5)


def test_kink_of_a_part_is_accepted_in_drawn_calls():
    entry = RIGHT["softplus_of_kinks"]
    report = check_operator(entry.make(), st.sampled_from([entry.args[0], entry.args[0] * 0.0]), max_examples=4)
    assert report.examples["second derivatives"] > 1


def test_derived_calls_may_be_refused_but_not_be_wrong():
    refused = []

    def in_order(x):
        if x.detach().numpy()[0] <= x.detach().numpy()[1]:
            refused.append(x)
            raise ValueError("in order, please")
        return x * x

    def wrong_elsewhere(x):
        return x * x if x.detach().numpy()[2] < 0.4 else x * x.detach()

    x = np.array([1.2, -0.8, 0.3])
    report = check_operator(in_order, x, only="gradients", max_examples=12)
    assert refused and report.examples["drawn calls"] == 12  # others are drawn in place of refused ones
    check_operator(wrong_elsewhere, x, only="gradients")
    with pytest.raises(Failure) as found:
        check_operator(wrong_elsewhere, x, only="gradients", max_examples=12)
    assert found.value.property == "gradients"


@given(hypothesis_calls.calls_like((np.array([-1.3, 0.1, 2.0, 0.5]),), {})[0][0])
def test_drawn_numbers_are_equal_or_well_separated(values):
    """Finite differences cannot detect a kink at a distance of 1e-35."""
    values = np.unique(values)
    assert -1.3 <= values[0] and values[-1] <= 2.0
    inside = values[(values > -1.3) & (values < 2.0)]
    assert (np.diff(inside) > 1e-5).all()


# Operators that fail at random, at a reused address, in a function that replaces another one, and in an in-place
# formula with a function of its own; and a sample of the others.
SOME = [
    "random_mask",
    "keywords_lose_their_gradient",
    "inplace_form_without_broadcast",
    *[*WRONG][::150],
]
RUN = """
import ast, json, os, sys, traceback
import viewgrad
for name, program in json.load(sys.stdin).items():
    last = ast.parse(program).body[-1]
    while isinstance(last, ast.For):
        last = last.body[-1]
    reader, writer = os.pipe()
    if not os.fork():
        try:
            exec(compile(program, "<pasted>", "exec"), {"__name__": "__main__"})
            os.write(writer, b"it passed")
        except Exception as error:
            place = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<pasted>"][0]
            early = "" if place.lineno >= last.lineno else f" early, in line {place.lineno}"
            os.write(writer, (type(error).__name__ + early).encode())
        os._exit(0)
    os.close(writer)
    print(name, os.read(reader, 100).decode())
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fresh interpreters in numbers")
@pytest.mark.parametrize("names", [SOME, pytest.param([*WRONG], marks=pytest.mark.slow)], ids=["some", "all"])
def test_failure_program_fails_in_a_fresh_interpreter(names):
    programs, expected, missed = {}, {}, []
    for name in names:
        try:
            check(WRONG[name])
        except Failure as found:
            programs[name] = found.program
            expected[name] = type(found.__cause__ or AssertionError()).__name__
        else:
            missed.append(name)
    assert missed == []
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN], input=json.dumps(programs), text=True, capture_output=True
    )
    outcomes = dict(line.split(" ", 1) for line in told.stdout.splitlines())
    assert outcomes.keys() == programs.keys(), told.stderr
    assert {name: outcome for name, outcome in outcomes.items() if outcome != expected[name]} == {}


def test_garbage_collector_is_enabled_after_a_failure():
    with pytest.raises(Failure) as found:
        check(WRONG["KnowsItself"])
    assert "gc.disable()" in found.value.program and gc.isenabled()


def test_program_of_a_random_result_is_repeated():
    """A single run passes occasionally: a random mask of six elements is drawn twice in one of 64 runs."""
    with pytest.raises(Failure) as found:
        check(WRONG["random_mask"])
    assert isinstance(ast.parse(found.value.program).body[-1], ast.For)


def test_arguments_are_named_beside_plain_arrays():
    example = Example((np.arange(3.0), Slot(0)), {"scale": Slot(1)}, (A, B), (0, 1), names=("x",))
    assert [example.named(0), example.named(1)] == ["argument 1", "scale"]


def test_the_gallery_is_large():
    assert len(WRONG) >= 350
    assert len(RIGHT) >= 250
    meant = {name for entry in WRONG.values() for name in entry.properties if name}
    assert meant == set(PROPERTIES) - {
        "not computed where not needed",  # noted, but not a fault
        "digits of gradients",
    }
    assert TENSOR_FUNCTIONS
    assert all(module.__doc__ for module in GALLERY)


def test_operators_of_the_library_pass():
    for operator, *args in ((vg.mul, Z, Z[0]), (vg.Tensor.mul_, A, B), (vg.transpose, A), (vg.exp, np.zeros((2, 0)))):
        assert check_operator(operator, *args).examples["gradients"] == 1


def test_the_call_of_a_failure_is_small_and_its_message_short():
    """The message lists only the elements that differ, and the program uses the smallest arrays that fail."""

    class ReadsArgumentsLate(Product):
        @staticmethod
        def forward(ctx, x, y):
            ctx.late = lambda: (x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.late()
            return grad * y, grad * x

    x, y = np.linspace(-1.0, 1.1, 300).reshape(20, 15), np.linspace(0.5, 1.0, 300).reshape(20, 15)
    with pytest.raises(Failure) as found:
        check_operator(ReadsArgumentsLate, x, y, order=1)
    failure = found.value
    assert failure.property == "overwritten afterwards: arguments"
    assert len(failure.entries) == 7 and failure.entries[-1] == "and 294 more"
    assert "float64[20, 15]" in str(failure) and "Shrunk to: ReadsArgumentsLate(float64[1, 1]" in str(failure)
    assert len(str(failure)) < 3000


def test_unneeded_gradients_are_noted():
    class OnlyWhatIsNeeded(Product):
        @staticmethod
        def backward(ctx, grad):
            wanted = zip(ctx.needs_input_grad, ctx.saved_tensors[::-1], strict=True)
            return tuple(grad * other if needed else None for needed, other in wanted)

    name = "not computed where not needed"
    (notice,) = check_operator(Product, A, A + 1.0, only=name).notices
    assert "with respect to x and y even if it is not needed" in notice
    report = check_operator(OnlyWhatIsNeeded, A, A + 1.0, only=name)
    assert report.examples[name] == 2 and not report.notices


def test_lengthened_matrices_have_no_rows_that_are_multiples_of_others():
    """A pseudo-inverse has no derivative if the rank of the matrix changes nearby."""
    longer = resized(np.array([[0.3, -0.7, 1.1], [0.9, 0.4, -0.2]]), (5, 3))
    assert np.linalg.svd(longer)[1].min() > 1e-3


def test_cancellation_in_second_derivatives_is_detected():
    """Differences of the first derivative vanish at tiny steps there, because they are not exact."""
    sinc = vg.autograd.define_op(
        "sinc_of_kit(self)",
        forward=lambda x: np.sinc(x / np.pi),
        derivatives={"self": "grad * where(self == 0.0, 0.0, (cos(self) - result) / where(self == 0.0, 1.0, self))"},
    )
    for arguments in ([0.0, 1.0, -2.5], [0.5, 1.0, -2.5], [0.0]):
        with pytest.raises(Failure) as found:
            check_operator(sinc, np.array(arguments))
        assert "sinc_of_kit(float64[1])" in str(found.value)
        assert found.value.property == "second derivatives"
        assert found.value.found == 0.0


def test_modes_are_as_before_after_a_check():
    def leaves_recording_off(x):
        y = x * x
        vg.set_grad_enabled(False)
        return y

    with pytest.raises(Failure, match="leaves grad mode off") as found:
        check_operator(leaves_recording_off, A)
    assert found.value.property == "state between calls"
    assert vg.is_grad_enabled()
    with vg.no_grad():  # gradients must be found nevertheless
        assert check_operator(vg.exp, A, only=("gradients",)).examples["gradients"] == 1


def test_a_check_of_a_simple_operator_is_short():
    """The number of examples is small; each takes two or three milliseconds."""
    for operator, most in ((vg.exp, 550), (lambda x: vg.tanh(x) * 2.0, 400)):
        assert sum(check_operator(operator, A).examples.values()) < most


def test_array_options_are_not_differentiated():
    report = check_operator(vg.nanquantile, np.array([1.0, 0.3, 2.2, 0.7]), np.array([0.2, 0.6]), only="gradients")
    assert report.examples["gradients"] == 1


@property_test(vg.exp, A, only=["gradients", "a graph run twice", "in-place form", "undefined gradients"])
def test_properties_are_separate_tests(report):
    assert report.operator == "exp" and len(report.examples) == 2


def parametrization(test):
    """Return the `parametrize` mark of a test; the plugin, if installed, adds another mark."""
    (mark,) = (mark for mark in test.pytestmark if mark.name == "parametrize")
    return mark


def test_a_test_of_each_property_is_named_after_it():
    @property_test(vg.exp, A)
    def test_exp(report): ...

    mark = parametrization(test_exp)
    assert mark.args == ("property", PROPERTIES)
    assert "in-place-form" in mark.kwargs["ids"]
    assert len(parametrization(test_properties_are_separate_tests).args[1]) == 4


def test_from_the_command_line(capsys):
    assert main(["viewgrad:exp", "--only", "gradients", "--only", "forward mode"]) == 0
    assert "gradients" in capsys.readouterr().out
    assert main(["gallery.wrong_functions:GradientIgnored", "--call", "np.array([1.0, 2.0])"]) == 1
    assert "This program fails in the same way" in capsys.readouterr().out
    assert main(["compare", "--programs", "3", "--backends", "viewgrad"]) == 0
    heading, line = capsys.readouterr().out.strip().splitlines()
    assert "refuses" in heading and line.split() == ["viewgrad", "3", "0", "0", "0"]


def test_a_declared_operator_is_checked_at_its_own_samples():
    calls = [((A, np.array(2.0)), {}), ((B, np.array([1.5, 0.5, -2.0])), {})]
    declaration = {
        "forward": np.multiply,
        "derivatives": {"self": "grad * conj(other)", "other": "grad * conj(self)"},
        "elementwise": True,
        "dtype_kinds": "fc",
    }
    scaled = vg.autograd.define_op("scaled_by_samples(self, other)", samples=calls, **declaration)
    assert check_operator(scaled).examples["gradients"] == 4  # real and complex numbers
    real = vg.autograd.define_op(
        "real_by_samples(self)", forward=lambda self: self**3, derivatives={"self": "3 * grad * self**2"}
    )
    assert check_operator(real, only=["gradients"]).refused["complex numbers"] > 0
    for wrong in ([A], 3, [((A, A))]):
        with pytest.raises(vg.errors.DeclarationError, match="samples is a list of calls, each a pair of arguments"):
            vg.autograd.define_op("scaled_by_no_samples(self, other)", samples=wrong, **declaration)


def test_a_gradient_of_another_shape_is_found():
    """It may have another shape for every call, or only for calls derived from the user's."""
    spread = row("spread_of_kit(self, shape)", lambda x, shape: np.zeros(shape) + x, {"self": "grad * 1"}, method=False)
    check_operator(spread, A, A.shape, only="gradients")
    with pytest.raises(Failure, match="has a different shape") as found:
        check_operator(spread, A[:1], A.shape, only="gradients")
    assert "g[0].shape == x0.shape" in found.value.program


def test_drawn_points_without_derivative_may_be_refused():
    def direction(x):
        return np.linalg.eigh(x * np.eye(2))[1]

    report = check_operator(direction, np.array([2.0, 1.0]), only=("gradients", "special points", "ties"))
    assert report.refused["ties"]
    with pytest.raises(Failure, match="DifferentiabilityError"):
        check_operator(direction, np.array([1.0, 1.0]), only="gradients")


def test_step_functions_are_not_taken_for_single_precision():
    """Functions that compute in single precision, with a gradient of zero, are still found."""
    cases = ([3e5, 1.0], 0.9), ([4e6], 0.9), ([1e8], 0.9), ([1e5, 2.0], 1e-4), ([-0.84, -1.852], 9.4e-4), ([1e9], 90.0)
    for x, y in (*cases, ([6.7811543257683e13], 1.0), ([-9700410733.472406], -2.586191209180964)):
        check_operator(vg.floor_divide, np.array(x), np.array(y), only="gradients")

    class Coarse(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return vg.Tensor(np.sin(x.numpy().astype(np.float32)).astype(float))

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.0

    with pytest.raises(Failure):
        check_operator(Coarse, A, only="gradients")


def test_precision_dependent_results_are_accepted_if_the_reference_agrees():
    assert check_operator(vg.spacing, A, only="dtypes").examples["dtypes"]


def test_hanging_calls_stop_a_property_early():
    entry = RIGHT["RootByBisection"]
    assert check_operator(entry.make(), *entry.args, **entry.kwargs, only="dtypes").refused["dtypes"] < 8


def test_keywords_shared_with_the_check_go_to_the_operator():
    """This includes an array, and a number that equals the default of the check."""

    def scaled(x, order=3.0, only=1.0):
        assert order is not None and np.ndim(only) == 1 and order == 2
        return x * order * only

    report = check_operator(scaled, A, order=2, only=np.ones(A.shape[-1:]))
    assert "second derivatives" in report.examples


def test_an_unknown_property_is_an_error():
    with pytest.raises(ValueError, match="there is no property 'gradient'"):
        check_operator(vg.exp, A, only="gradient")


def test_wrong_inplace_form_is_found():
    with pytest.raises(Failure, match="in-place form") as found:
        check_operator(vg.exp, A, inplace=lambda x: x.expm1_())
    assert found.value.property.startswith("in-place form")


def test_a_wrong_value_is_found():
    with pytest.raises(Failure, match="the reference"):
        check_operator(vg.exp, A, reference=np.expm1)


def test_order_1_skips_second_derivatives():
    class Half(vg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.detach().exp()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x.detach().exp()

    report = check_operator(Half, A, order=1)
    assert "second derivatives" in report.switched_off
    with pytest.raises(Failure) as found:
        check_operator(Half, A)
    assert found.value.property == "second derivatives"


# -- the limit of time -------------------------------------------------------------------------------------------------


def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class Finalized:
    def __del__(self):
        compute(0.02)


class Referred:
    pass


def finalize():
    Finalized()


def call_back():
    thing = Referred()
    reference = weakref.ref(thing, lambda _: compute(0.02))
    del thing
    return reference


@pytest.mark.parametrize("step", [gc.collect, finalize, call_back], ids=["collect", "finalize", "call_back"])
@pytest.mark.filterwarnings("error")
def test_time_limit_is_not_raised_in_gc_callbacks(step):
    """Most of the time is spent in them, so the timer expires in one."""
    ended = []

    def callback(phase, info):
        compute(0.01)
        ended.append(phase)

    if step is gc.collect:
        gc.callbacks.append(callback)
    try:
        with pytest.raises(TookTooLong, match=r"not returned after 0\.05 seconds"), patience(0.05):
            while True:
                step()
                compute(0.005)
    finally:
        if step is gc.collect:
            gc.callbacks.remove(callback)
    assert ended.count("start") == ended.count("stop")
