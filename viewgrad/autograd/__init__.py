"""The differentiation: nodes, the engine, derivative declarations, custom functions, checks."""

from ..operators import (
    named_results,
    number_methods,
    numpy_assembling,
    numpy_functions,
    numpy_histograms,
    numpy_methods,
    numpy_padding,
    numpy_polynomials,
    numpy_reductions,
    numpy_spaced,
    numpy_spellings,
    numpy_statistics,
    numpy_ufuncs,
    python_operators,
)

from ..operators import numpy_options  # isort: skip  # after python_operators, which knows fewer options
from ..operators.define import define_op
from ..operators.language.declaration import InPlace
from ..operators.language.names import formula_function
from ..tensor.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from . import derivatives, forward_ad, functional, graph, hooks
from .api import backward, grad
from .function import Function, once_differentiable
from .gradcheck import gradcheck, gradgradcheck
from .modes import functional_writes, index_tangents, inference, operator_tangents
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
