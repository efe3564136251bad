"""Storages: saved values of whole buffers, ownership of memory, and version counters."""

from __future__ import annotations

import numpy as np

import viewgrad as vg
from viewgrad.tensor.storage import Storage


def test_a_whole_saved_twice_is_one_saved_window():
    root = np.zeros(3)
    storage = Storage(root)
    first = storage.save(root, None)
    assert storage.save(root, None) is first


def test_windows_no_longer_saved_are_not_copied():
    root = np.zeros(3)
    storage = Storage(root)
    storage.save(root, None)
    storage.preserve(root, None)
    assert storage.preserved is None


def test_foreign_memory_is_copied_when_saved():
    root = np.zeros(3)
    saved = Storage(root, foreign=True).save(root, None)
    root[0] = 1.0
    assert saved.array[0] == 0.0


def test_all_tensors_over_one_storage_see_the_same_count_of_writes():
    x = vg.zeros((2, 3))
    row, apart = x[0], x.detach()
    row[1] = 1.0
    apart += 1.0
    assert x._version == row._version == apart._version == 2
    assert x.clone()._version == 0
