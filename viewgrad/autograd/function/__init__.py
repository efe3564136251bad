"""Custom functions: a forward and a backward written by the user."""

from .api import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
