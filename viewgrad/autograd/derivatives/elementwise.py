"""The derivatives of the elementwise operators."""
from __future__ import annotations

import numpy as np

from .define import row

row("add(self, other)", np.add, {"self": "grad", "other": "grad"}, elementwise=True, inplace=True, numpy=[np.add])
row("mul(self, other)", np.multiply, {"self": "grad * conj(other)", "other": "grad * conj(self)"}, elementwise=True, inplace=True, numpy=[np.multiply])
row("exp(self)", np.exp, {"self": "grad * conj(result)"}, elementwise=True, inplace=True, numpy=[np.exp])
row("conj(self)", np.conj, {"self": "conj(grad)"}, elementwise=True, inplace=True, numpy=[np.conj])
row("sum(self, axis=None, keepdims=False)", lambda a, axis, keepdims: np.add.reduce(a, axis=axis, keepdims=keepdims), {"self": "expand_reduced(grad, self.shape, axis, keepdims)"})
row("clone(self)", lambda a: a.copy(order="K"), {"self": "grad"})
row("contiguous_copy(self)", lambda a: a.copy(order="C"), {"self": "grad"})
