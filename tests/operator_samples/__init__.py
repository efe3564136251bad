"""The samples that the library's operators are tested on: a file for each of `viewgrad/operators/derivatives/`."""

from viewgrad.operators.samples import Sample, case, draws, samples_in_each_kind, samples_of

from .trials import attach

__all__ = ["Sample", "case", "draws", "samples_in_each_kind", "samples_of"]

attach()
