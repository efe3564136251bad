"""Passes over complete programs, which remove steps that are not needed."""
