"""Property-based testing of programs and operators (requires the extra `testing`)."""

from . import program_ops
from .backends import Comparison, compare_backends
from .checks import Mismatch, check_program
from .features import FEATURES, check_feature
from .functions import ProgramFunction, function_of
from .generator import ProgramGenerator
from .kit import PROPERTIES, Failure, Report, check_operator, profile, property_test, set_profile
from .program import Program
from .strategies import array_indices, basic_indices, programs, tensors, views_of

__all__ = [
    "Comparison",
    "FEATURES",
    "Failure",
    "Mismatch",
    "PROPERTIES",
    "Program",
    "ProgramFunction",
    "Report",
    "ProgramGenerator",
    "array_indices",
    "basic_indices",
    "check_feature",
    "check_operator",
    "check_program",
    "compare_backends",
    "function_of",
    "profile",
    "programs",
    "property_test",
    "set_profile",
    "program_ops",
    "tensors",
    "views_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
