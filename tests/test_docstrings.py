"""Docstrings of operators: arguments, result, gradient, and an example that runs."""

import doctest
import inspect
import re
import warnings

import numpy as np

import viewgrad as vg
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.numpy_api.reductions import REDUCTIONS

NAMES = sorted(name for name, operator in OPERATORS.items() if not operator.user_defined)
# Parts of other operators, whose arguments are objects that programs do not record.
WITHOUT_EXAMPLE = set(
    "_accumulated _cast _cast_exactly _convolution _convolution_input _convolution_weight _native_dropout "
    "_overwritten _scatter_into_zeros _window_spread _window_sums".split()
)


def public(name):
    """Return the public function of a name; the operator's own if the array API has another one of that name."""
    return REDUCTIONS.get(name, OPERATORS[name].function)


def test_every_operator_documents_arguments_result_and_gradient():
    for name in NAMES:
        doc = inspect.getdoc(public(name))
        sections = [line.rstrip(":") for line in doc.splitlines() if line[:1] not in ("", " ") and line.endswith(":")]
        wanted = ["Arguments", "Returns", "Gradient"] + ["Example"] * (name not in WITHOUT_EXAMPLE)
        assert [each for each in sections if each in wanted] == wanted, name
        for argument in inspect.signature(public(name)).parameters:
            assert f"    {argument}: " in doc, (name, argument)
        for formula in OPERATORS[name].formulas:
            text = " ".join(formula.text.split())
            text = text.removeprefix("flowing(").removesuffix(", grad)") if text.startswith("flowing(") else text
            assert text in doc, name


def test_operators_with_a_kink_document_the_gradient_there():
    kinked = """abs angle arctan2 cbrt ceil clip copysign cummax cummin elu entr fabs floor floor_divide fmax fmin fmod
        hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0e i1e interp ive kthvalue l1_loss leaky_relu max
        max_pool1d max_pool2d maximum median min minimum nan_to_num nanmedian nanquantile pow prod cumprod ptp quantile
        relu relu6 remainder rint round selu sign softshrink softsign spacing sqrt std threshold topk trunc unique
        vector_norm xlog1py xlogy""".split()
    for name in kinked:
        if name in OPERATORS:  # some need SciPy
            described = inspect.getdoc(public(name)).partition("Arguments:")[0].partition("Gradient:")[0]
            assert re.search("[Gg]radients?|share", described), name


def test_functions_beside_operators_describe_their_own_arguments():
    others = [name for name in NAMES if name != "fft" and getattr(vg, name) is not public(name)]
    assert others
    for name in others:
        assert "Example:" in inspect.getdoc(getattr(vg, name)), name


def test_every_example_of_an_operator_runs():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed = []
    complex_only = np.linalg.eigvals(np.eye(2)).dtype.kind == "c"  # from NumPy 2.5 on
    for name in NAMES:
        if name in ("eig", "eigvals") and complex_only:
            continue
        test = doctest.DocTestParser().get_doctest(inspect.getdoc(public(name)), {}, name, None, 0)
        runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
        report = []
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            runner.run(test, out=report.append)
        if runner.failures:
            failed.append("".join(report))
    assert not failed, "\n".join(failed)


def test_signatures_have_types_and_defaults():
    for name in NAMES:
        signature = inspect.signature(public(name))
        assert signature.return_annotation is not inspect.Signature.empty, name
        for parameter in signature.parameters.values():
            assert parameter.annotation is not parameter.empty, (name, parameter)
    assert str(inspect.signature(vg.softplus)) == "(self: 'TensorLike', beta: 'float' = 1.0) -> 'Tensor'"


def test_dir_has_public_names_only():
    names = set(dir(vg))
    assert set(vg.__all__) <= names
    assert not {"OPERATORS", "COMPOSITES", "Any", "TYPE_CHECKING", "install", "naming", "sys", "_operators"} & names
    # `from viewgrad import *` leaves these alone.
    others = {"interop", "jit", "math", "numpy", "random", "scipy", "testing", "torch_names"}
    assert all(name.startswith("__") for name in names - set(vg.__all__) - others)
