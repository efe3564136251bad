"""Property-based testing of programs and of operators (needs the extra `testing`)."""

from . import steps
from .checks import Mismatch, check_program
from .features import FEATURES, check_feature
from .functions import Function, function_of
from .operators import check_operator
from .program import Program
from .strategies import programs
from .writer import Writer

__all__ = [
    "FEATURES",
    "Function",
    "Mismatch",
    "Program",
    "Writer",
    "check_feature",
    "check_operator",
    "check_program",
    "function_of",
    "programs",
    "steps",
]
