"""The kit that finds what is wrong with an operator."""

from .check import check_operator
from .failure import Failure
from .pytest_tests import property_test
from .report import Report
from .run import PROPERTIES

__all__ = ["PROPERTIES", "Failure", "Report", "check_operator", "property_test"]
