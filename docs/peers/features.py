"""Behaviours that are no program of arrays alone: for each library its own way of saying it, or why there is none.

An entry takes the library and returns what came back, in a few words; it says "yes" first where that is what viewgrad does.
"""

from __future__ import annotations

from typing import Any

FEATURES: dict[str, dict[str, Any]] = {}
