"""Passes over whole programs that remove unnecessary steps."""
