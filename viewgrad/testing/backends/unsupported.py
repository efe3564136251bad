"""The error of a backend that cannot run a program."""

__all__ = ["Unsupported"]


class Unsupported(Exception):
    """The backend does not support this."""
