"""The names of `viewgrad` that are the array API's, for type checkers: `x as x` says that x is public."""

from math import e as e, inf as inf, nan as nan, pi as pi

from numpy import (
    bool as bool,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    newaxis as newaxis,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)

from ..tensor.creation import array as _array
from ..tensor.dlpack import from_dlpack as from_dlpack
from .dtypes import can_cast as can_cast, finfo as finfo, iinfo as iinfo, isdtype as isdtype, result_type as result_type
from .functions import (
    __array_namespace_info__ as __array_namespace_info__,
    argsort as argsort,
    astype as astype,
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    concat as concat,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    diff as diff,
    expand_dims as expand_dims,
    matrix_transpose as matrix_transpose,
    permute_dims as permute_dims,
    searchsorted as searchsorted,
    sort as sort,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
    unstack as unstack,
)

tensor = _array  # the module of this name can be called
