"""The kit that checks operators."""

from .budget import profile, set_profile
from .check import check_operator
from .failure import Failure
from .properties.registry import PROPERTIES
from .pytest_plugin import property_test
from .report import Report

__all__ = ["PROPERTIES", "Failure", "Report", "check_operator", "profile", "property_test", "set_profile"]
