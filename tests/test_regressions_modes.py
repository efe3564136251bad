"""Modes that once had no effect, each with what must come of them."""

import pytest

import viewgrad as vg
from viewgrad.errors import InferenceError


def test_what_an_operator_makes_in_inference_mode_can_never_be_recorded():
    # The file that makes it so was imported by nobody.
    x = vg.ones(2, requires_grad=True)
    with vg.inference_mode():
        made = vg.ones(2) * 3.0
    assert made.is_inference()
    with pytest.raises(InferenceError, match="saved for backward"):
        x * made
