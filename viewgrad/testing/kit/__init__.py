"""The kit that finds what is wrong with an operator.

It has many files because each kind of circumstances in which an operator is tried has one.
"""

from .check import check_operator
from .failure import Failure
from .pytest_tests import property_test
from .report import Report
from .run import PROPERTIES

__all__ = ["PROPERTIES", "Failure", "Report", "check_operator", "property_test"]
