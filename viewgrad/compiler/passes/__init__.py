"""Passes over complete programs that remove unnecessary steps."""
