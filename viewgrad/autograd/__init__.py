"""The differentiation: nodes, the engine, derivative declarations, custom functions, checks."""

from ..tensor.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from . import derivatives, forward_ad, functional, graph, hooks, indexing, numpy_functions, python_operators
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .api import backward, grad
from .derivatives.declaration import InPlace
from .derivatives.define import define_op
from .derivatives.language import formula_function
from .function import Function, once_differentiable
from .gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "InPlace",
    "backward",
    "define_op",
    "derivatives",
    "detect_anomaly",
    "enable_grad",
    "formula_function",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "hooks",
    "indexing",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "no_grad",
    "numpy_functions",
    "once_differentiable",
    "python_operators",
    "set_detect_anomaly",
    "set_grad_enabled",
]
