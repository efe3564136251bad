"""Captured state in another module: a number, a class, a function that uses the number."""

from __future__ import annotations

factor = 2.0


class Settings:
    factor = 2.0


def scaled(x):
    return x * factor
