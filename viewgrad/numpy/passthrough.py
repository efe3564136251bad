"""Names that refer to NumPy's own objects, and replacements for functions without a derivative."""

from __future__ import annotations

from typing import Final

# Constants, dtypes, settings, shapes, dates and strings: these cannot lose a gradient.
FROM_NUMPY: Final = frozenset(
    """
    False_ True_ ScalarType e euler_gamma inf nan newaxis pi little_endian index_exp s_ typecodes
    bool bool_ bytes_ str_ object_ void datetime64 timedelta64 character flexible generic dtype
    flatiter ndindex matrix memmap recarray record ufunc errstate busdaycalendar
    iinfo promote_types mintypecode typename issubdtype isdtype
    broadcast_shapes diag_indices mask_indices nested_iters tril_indices triu_indices
    busday_count busday_offset is_busday datetime_as_string datetime_data isnat
    get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions setbufsize seterr
    seterrcall show_config show_runtime test add_newdoc add_docstring
    char core ctypeslib dtypes exceptions f2py rec strings typing
    """.split()
)

# Functions that run on tensors without history, and raise for tensors that have one.
ALTERNATIVES: Final[dict[str, str]] = {
    "from_dlpack": "use the tensor itself, or its clone()",
    "fromregex": "a file holds no history",
    "packbits": "bits have no derivative; pass detach()",
    "unpackbits": "bits have no derivative; pass detach()",
}
