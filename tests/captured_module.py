"""What programs of the tests see in another module: a number, a class, a function that sees the number."""

from __future__ import annotations

factor = 2.0


class Settings:
    factor = 2.0


def scaled(x):
    return x * factor
