"""The table of mutations matches the code: each text occurs once, and each mutated file is valid Python."""

import ast
from collections import Counter
from pathlib import Path

import mutations
import pytest

import viewgrad

PACKAGE = Path(viewgrad.__file__).parent


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_applies(mutation):
    source = (PACKAGE / mutation.file).read_text()
    assert source.count(mutation.old) == 1
    ast.parse(source.replace(mutation.old, mutation.new))
    assert mutation.old != mutation.new
    assert all((mutations.ROOT / test).exists() for test in mutations.test_files(mutation))


def test_mutations_have_distinct_names():
    names = Counter(mutation.name for mutation in mutations.MUTATIONS)
    assert max(names.values()) == 1 and len(names) >= 60
