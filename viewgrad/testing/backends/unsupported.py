"""What a backend raises that cannot run a program."""

__all__ = ["Unsupported"]


class Unsupported(Exception):
    """The backend does not support this."""
