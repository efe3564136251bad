"""The array API standard (2024.12): its names, keywords and namespaces in addition to NumPy's, in `viewgrad` itself.

See https://data-apis.org/array-api/2024.12 for the meaning of each name. If the standard and NumPy have different names
for an operator, both names refer to the same function here.
"""

from .dtypes import DTYPES
from .functions import ALIASES, FUNCTIONS
from .inspection import API_VERSION, NamespaceInfo

__all__ = ["ALIASES", "API_VERSION", "DTYPES", "FUNCTIONS", "NamespaceInfo"]
