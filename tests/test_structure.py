"""Who may write the private slots of a tensor; the rule is stated at `Tensor.__slots__`."""

import ast
from pathlib import Path

import viewgrad

PACKAGE = Path(viewgrad.__file__).parent

# Where tensors are made.
MAKERS = {"tensor/tensor.py", "views/making.py", "views/gather.py"}
# Where a tensor that is there already gets another array, and why.
MOVERS = {
    "autograd/modes/functional_writes.py",  # what would be written to gets a new value
    "func/functionalize.py",  # and what it was is put back
    "numpy/index_tricks.py",
    "operators/numpy_methods.py",  # x.shape = ..., of a tensor whose memory nobody else sees
    "symbolic/memory.py",  # a scalar gets a number by which it is known again
    "tensor/tangents.py",  # the root of a dual tensor, which is no tensor
}


def writers_of(slot):
    """The modules that assign to an attribute of that name."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == slot and isinstance(node.ctx, ast.Store):
                found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_few_modules_write_the_array_of_a_tensor():
    assert writers_of("_array") == MAKERS | MOVERS
