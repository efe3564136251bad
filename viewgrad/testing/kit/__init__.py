"""The kit that finds what is wrong with an operator."""

from .check import check_operator
from .circumstances import PROPERTIES
from .failure import Failure
from .pytest_tests import property_test
from .report import Report

__all__ = ["PROPERTIES", "Failure", "Report", "check_operator", "property_test"]
