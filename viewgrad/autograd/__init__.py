"""Automatic differentiation: gradients, custom operators and functions, and checks."""

from ..operators import python_operators
from ..operators.numpy_api import (
    aliases,
    array_manipulation,
    functions,
    histograms,
    methods,
    named_results,
    numerical_ranges,
    padding,
    polynomials,
    reductions,
    scalar_methods,
    statistics,
    ufuncs,
)

from ..operators.numpy_api import options  # isort: skip  # after python_operators, which supports fewer options
from ..operators.define import define_op
from ..operators.language.namespace import formula_function
from ..operators.language.spec import InPlace
from ..tensor.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from . import forward_ad, functional, graph, hooks
from .api import backward, grad
from .function import Function, once_differentiable
from .gradcheck import gradcheck, gradgradcheck
from .modes import functionalize, inference, jvp_indexing, jvp_operators
from .modes.anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .modes.profile import profile

__all__ = [
    "Function",
    "InPlace",
    "backward",
    "define_op",
    "detect_anomaly",
    "enable_grad",
    "formula_function",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "profile",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __dir__() -> list[str]:
    return sorted(__all__)
