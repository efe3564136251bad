"""Docstrings as mkdocstrings reads them: it knows examples by their plural only."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Examples"]


class Examples(griffe.Extension):
    """Lets a section `Example:` count as one of examples."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Change the docstring of anything that was read."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
