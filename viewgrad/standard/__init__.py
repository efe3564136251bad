"""The array API standard (2024.12): its names, keywords and namespaces, beside NumPy's, in `viewgrad` itself.

See https://data-apis.org/array-api/2024.12 for what each name means. If the standard and NumPy name one operator
differently, both names are the same function here.
"""

from .dtypes import DTYPES
from .functions import ALIASES, FUNCTIONS
from .inspection import API_VERSION, NamespaceInfo

__all__ = ["ALIASES", "API_VERSION", "DTYPES", "FUNCTIONS", "NamespaceInfo"]
