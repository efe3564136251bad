"""Stateful tests of tensors against NumPy arrays: values, layouts, shared memory, versions, views and bases."""

from __future__ import annotations

import gc
import warnings

import numpy as np
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import viewgrad as vg
from viewgrad.tensor.tensor import is_scalar
from viewgrad.testing import ProgramGenerator


class TensorsBesideArrays(RuleBasedStateMachine):
    """Takes each step with tensors and with arrays, and compares all that can be seen of them after each."""

    def __init__(self) -> None:
        super().__init__()
        self.names = {"vg": vg, "np": np}
        self.writer: ProgramGenerator | None = None
        self.identities: dict[str, int] = {}  # also of tensors that only their views still hold
        self.compared: set[frozenset[str]] = set()

    # -- the steps -----------------------------------------------------------------------------------------------------

    @initialize(data=st.data())
    def begin(self, data):
        self.writer = ProgramGenerator(data.draw)
        for _ in range(data.draw(st.integers(1, 3))):
            self.writer.draw_leaf()
        for line in (*self.writer.leaves, *self.writer.steps):
            self.execute(line)

    def take(self, data, kind: str) -> None:
        """Take a step of a kind, if one is possible."""
        self.writer.draw = data.draw
        step = getattr(self.writer, f"draw_{kind}")()
        if step is not None:
            self.writer.add(step)
            self.execute(step)

    def execute(self, step) -> None:
        note(step.source())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(step.source(), self.names)
        self.identities.update((name, id(self.names[name])) for name in self.names)

    @rule(data=st.data(), kind=st.sampled_from(["view", "unpack", "detach"]))
    def alias(self, data, kind):
        self.take(data, kind)

    @rule(data=st.data(), kind=st.sampled_from(["write", "assign", "augment", "overwrite", "ufunc_out", "no_grad"]))
    def write(self, data, kind):
        self.take(data, kind)

    @rule(data=st.data(), kind=st.sampled_from(["compute", "call", "gather"]))
    def compute(self, data, kind):
        self.take(data, kind)

    @precondition(lambda self: self.writer is not None and len(self.writer.sketch.arrays) > 5)
    @rule(data=st.data())
    def forget(self, data):
        """Delete the name of a base; its views stay alive."""
        name = data.draw(st.sampled_from([name for name in self.writer.sketch.arrays if not name.startswith("x")]))
        note(f"del {name}")
        del self.names[name], self.writer.sketch.arrays[name]

    @rule(data=st.data(), create_graph=st.booleans())
    def differentiate(self, data, create_graph):
        """Check that a backward pass changes only the gradients of leaves."""
        sketch = self.writer.sketch
        required = [name for name in sketch.arrays if sketch.facts[name].history.requires_grad]
        if required:
            tensor = self.names[data.draw(st.sampled_from(required))]
            tensor.backward(vg.ones_like(tensor), retain_graph=True, create_graph=create_graph)

    # -- the comparisons -----------------------------------------------------------------------------------------------

    def tensors(self):
        if self.writer is not None:
            for name, array in self.writer.sketch.arrays.items():
                yield name, self.names[name], array, self.writer.sketch.facts[name]

    @invariant()
    def values_are_the_same(self):
        for name, tensor, array, _ in self.tensors():
            assert tensor.dtype == array.dtype, name
            np.testing.assert_allclose(tensor._array, array, rtol=1e-12, atol=1e-12, err_msg=name)

    @invariant()
    def layouts_are_the_same(self):
        for name, tensor, array, _ in self.tensors():
            assert tensor.shape == array.shape, name
            if array.size:  # the strides of dimensions of length 1, and of empty arrays, mean nothing
                ours, numpys = (
                    [step for step, extent in zip(strides, array.shape, strict=True) if extent > 1]
                    for strides in (tensor.strides, array.strides)
                )
                assert ours == numpys, name

    def arrays(self):
        """Return tensors that share memory; scalars are values, also when detached."""
        return [entry for entry in self.tensors() if not is_scalar(entry[1])]

    @invariant()
    def memory_is_shared_alike(self):
        known = list(self.arrays())
        for i, (name, tensor, array, _) in enumerate(known):
            for other, tensor2, array2, _ in known[:i]:
                if frozenset((name, other)) not in self.compared:
                    self.compared.add(frozenset((name, other)))
                    shared = np.shares_memory(array, array2)
                    assert np.shares_memory(tensor._array, tensor2._array) == shared, (name, other)

    @invariant()
    def versions_count_the_writes(self):
        for name, tensor, _, facts in self.tensors():
            assert tensor._version == facts.memory.version, name

    @invariant()
    def views_know_their_bases(self):
        for name, tensor, _, facts in self.tensors():
            assert tensor._is_view() == (facts.base is not None), name
            if facts.base is None:
                assert tensor._base is None, name
            else:
                assert id(tensor._base) == self.identities[facts.base], name

    @invariant()
    def history_is_where_it_should_be(self):
        for name, tensor, _, facts in self.tensors():
            assert tensor.requires_grad == (facts.history.requires_grad and tensor.dtype.kind in "fc"), name
            leaf = not tensor.requires_grad or (facts.history.leaf and facts.base is None)
            assert tensor.is_leaf == leaf, name
            assert (tensor.grad_fn is None) == leaf, name

    def teardown(self):
        """Check the memory as the user reads it."""
        known = self.arrays()
        seen = [(name, tensor.detach().numpy(), array) for name, tensor, array, _ in known]
        for i, (name, window, array) in enumerate(seen):
            assert not window.flags.writeable
            for other, window2, array2 in seen[:i]:
                assert np.shares_memory(window, window2) == np.shares_memory(array, array2), (name, other)
        self.names.clear()
        gc.collect(0)


TestTensorsBesideArrays = TensorsBesideArrays.TestCase
TestTensorsBesideArrays.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
