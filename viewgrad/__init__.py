"""viewgrad."""
from .tensor.tensor import Tensor
from .tensor.creation import *
from .tensor.modes import *
from .views.meta import *
from .autograd.derivatives import define, elementwise, formulas
from .autograd import indexing, api
from . import autograd, views
for n, o in define.OPERATORS.items(): globals()[n]=o.function
