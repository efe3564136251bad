"""PyTorch's functions with their names and semantics.

`viewgrad.split(x, 2)` follows NumPy: two sections. `viewgrad.torch_names.split(x, 2)` follows PyTorch: sections of
length 2. Functions that mean the same in both libraries are the same objects here and in `viewgrad`.

Example:
    >>> import viewgrad as vg
    >>> from viewgrad import torch_names as torch
    >>> [len(part) for part in torch.split(vg.arange(6.0), 2)], [len(part) for part in vg.split(vg.arange(6.0), 2)]
    ([2, 2, 2], [3, 3])
    >>> torch.cat([vg.ones(1), vg.zeros(1)]), torch.clamp(vg.Tensor([-1.0, 3.0]), 0.0, 1.0)
    (Tensor([1., 0.]), Tensor([0., 1.]))
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .operators import OPERATORS
from .operators.composites import COMPOSITES
from .standard.public import common_function
from .tensor.tensor import Tensor
from .views.view_ops import (
    as_strided,
    chunk,
    expand,
    flatten,
    narrow,
    permute,
    select,
    split,
    unbind,
    unfold,
    unsqueeze,
    view_as_complex,
    view_as_real,
)

# The name of a function or method in PyTorch, and its NumPy name, which is used here.
NUMPY_NAMES: Final = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "bmm": "matmul", "cat": "concatenate", "clamp": "clip", "concat": "concatenate",
    "lgamma": "gammaln", "mm": "matmul", "mv": "matmul",
}  # fmt: skip

_NAMES: Final = (
    "addcdiv addcmul addmm addmv avg_pool1d avg_pool2d baddbmm batch_norm binary_cross_entropy "
    "binary_cross_entropy_with_logits celu clone contiguous conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "cross_entropy cummax cummin diag_embed digamma div dropout elu embedding erf erfc erfinv gelu group_norm "
    "hardshrink hardsigmoid hardswish hardtanh huber_loss index_add instance_norm kl_div kthvalue l1_loss "
    "layer_norm leaky_relu lerp linear log_softmax logit logsigmoid logsumexp masked_fill matrix_exp max_pool1d "
    "max_pool2d mish mse_loss mul neg nll_loss one_hot polygamma relu relu6 rms_norm scatter scatter_add selu "
    "sigmoid silu smooth_l1_loss softmax softplus softshrink softsign sub tanhshrink threshold topk xlogy"
).split()


def _functions() -> dict[str, Any]:
    public = {name: operator.function for name, operator in OPERATORS.items()} | COMPOSITES
    renamed = {
        theirs: common_function(getattr(np, ours, None)) or public.get(ours) or getattr(Tensor, ours)
        for theirs, ours in NUMPY_NAMES.items()
    }
    return {name: public[name] for name in _NAMES} | renamed


globals().update(_functions())

__all__ = [
    "as_strided",
    "chunk",
    "expand",
    "flatten",
    "narrow",
    "permute",
    "select",
    "split",
    "unbind",
    "unfold",
    "unsqueeze",
    "view_as_complex",
    "view_as_real",
    *_NAMES,
    *NUMPY_NAMES,
]


def __dir__() -> list[str]:
    return sorted(__all__)
