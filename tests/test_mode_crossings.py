"""Modes of the library inside other modes: drawn programs are compared with complex steps."""

import mode_crossings
import pytest
from mode_crossings import check

import viewgrad as vg


@pytest.mark.parametrize("batch", range(3))
def test_modes_inside_other_modes(batch):
    assert sum(check(seed) for seed in range(10 * batch, 10 * batch + 10)) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(30))
def test_more_modes_inside_other_modes(batch):
    assert sum(check(seed, number=5) for seed in range(1000 + 25 * batch, 1025 + 25 * batch)) > 20


def test_a_wrong_gradient_of_a_mode_is_found(monkeypatch):
    def forgotten(f):
        return lambda v: f(v).detach() + 0.0 * v

    monkeypatch.setattr(vg, "checkpoint", forgotten)
    with pytest.raises(AssertionError, match="inside"):
        for seed in range(60):
            mode_crossings.check(seed, number=1)
