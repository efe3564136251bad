"""The samples that operators are tested on: a file for each of `derivatives/`, loaded on first use."""

from .cases import Sample, case, draws, samples_in_each_kind, samples_of

__all__ = ["Sample", "case", "draws", "samples_in_each_kind", "samples_of"]
