"""`viewgrad.autograd.graph` and anomaly detection: saved values, drawings, explanations."""

import gc
import os
import re

import numpy as np
import pytest
from custom_product import Product
from leaves import leaf, numbers

import viewgrad as vg
from viewgrad.autograd import (
    Function,
    detect_anomaly,
    grad,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from viewgrad.autograd.graph import (
    disable_saved_tensors_hooks,
    explain,
    forbid_mutation_on_saved_tensors,
    increment_version,
    preserved,
    save_on_disk,
    saved_tensors_hooks,
    to_dot,
    to_mermaid,
)
from viewgrad.errors import AnomalyError, FreedGraphError, HookError, SavedValueError, StrictMutationError


def program(x):
    """Run a program that saves inputs, outputs, parts and lists, and writes to saved values."""
    base = vg.exp(x)
    row = base[0] * base[1]
    base[1] = row * 2
    base[0].mul_(row)
    picked = base[vg.Tensor([1, 0, 1])] * base.sum()
    joined = vg.concatenate([picked, base.T.reshape(-1, 3) * 3])
    return (Product.apply(joined, joined * joined)).sum() + base.max()


def expected(x, order=1):
    x = vg.Tensor(x.detach(), requires_grad=True)
    (g,) = grad(program(x), x, create_graph=order > 1)
    return g if order == 1 else grad((g * g).sum(), x)[0]


@pytest.fixture
def x():
    return vg.Tensor(np.random.default_rng(0).normal(size=(2, 3)) * 0.3, requires_grad=True)


# -- hooks on saved values ---------------------------------------------------------------------------------------------


PAIRS = {
    "identity": (lambda t: t, lambda t: t),
    "number lists": (lambda t: (t.tolist(), t.shape), lambda c: vg.Tensor(c[0], dtype=float).reshape(c[1])),
    "bytes": (lambda t: (t.numpy().tobytes(), t.shape), lambda c: vg.Tensor(np.frombuffer(c[0]).reshape(c[1]))),
    "windows": (lambda t: t[...].detach(), lambda t: t[...]),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_saved_tensors_hooks_change_nothing(x, pair):
    with saved_tensors_hooks(*pair):
        out = program(x)
    np.testing.assert_allclose(numbers(grad(out, x, retain_graph=True)[0]), numbers(expected(x)))
    np.testing.assert_allclose(numbers(grad(out, x)[0]), numbers(expected(x)))
    with saved_tensors_hooks(*pair):
        (g,) = grad(program(x), x, create_graph=True)
        np.testing.assert_allclose(numbers(grad((g * g).sum(), x)[0]), numbers(expected(x, order=2)))
    with saved_tensors_hooks(*pair):
        out = program(x)
    (g,) = grad(out, x, create_graph=True)
    np.testing.assert_allclose(numbers(grad((g * g).sum(), x)[0]), numbers(expected(x, order=2)))


def test_packed_values():
    packed, unpacked = [], []

    def pack(t):
        assert not t.requires_grad and not vg.is_grad_enabled()
        packed.append(numbers(t))
        return len(packed) - 1

    def unpack(number):
        unpacked.append(number)
        return vg.Tensor(packed[number])

    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with saved_tensors_hooks(pack, unpack):
        y = x * w
        assert packed == [[3.0, 4.0], [1.0, 2.0]]
        _ = x + w
        _ = x[0]
        assert len(packed) == 2
        z = y.exp()
        z = Product.apply(z, w)
    _ = x * w
    assert len(packed) == 5
    z.sum().backward(retain_graph=True)
    assert sorted(unpacked) == [0, 1, 2, 3, 4]
    z.sum().backward()
    assert len(unpacked) == 10
    with pytest.raises(FreedGraphError):
        z.sum().backward()


def test_packed_values_are_preserved():
    kept = []

    def pack(t):
        kept.append(t)
        return t

    x = leaf(1.0, 2.0)
    y = x * 1
    with saved_tensors_hooks(pack, lambda t: t):
        z = y * y
    y.mul_(100)
    z.sum().backward()
    assert numbers(x.grad) == [2.0, 4.0]
    assert numbers(kept[0]) == [1.0, 2.0]


def test_innermost_saved_tensors_hooks_apply():
    calls = []

    def pair(name):
        return saved_tensors_hooks(lambda t: calls.append(name) or t, lambda t: t)

    x = leaf(1.0)
    with pair("outer"):
        with pair("inner"):
            x.exp()
        x.exp()
    x.exp()
    assert calls == ["inner", "outer"]


def test_saved_tensors_hooks_may_use_operators():
    x = leaf(0.5, 1.0)
    with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = x.exp()
    y.sum().backward()
    np.testing.assert_allclose(numbers(x.grad), np.exp([0.5, 1.0]))


def test_wrong_hooks():
    x = leaf(1.0, 2.0)
    with pytest.raises(HookError, match=r"clone\(\)"), saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        x.exp()
    for unpack, message in (
        (lambda t: 3, "returned int"),
        (lambda t: t[:1], r"shape \(1,\)"),
        (lambda t: t.astype(np.float32), "float32"),
    ):
        with saved_tensors_hooks(lambda t: t, unpack):
            y = x.exp()
        with pytest.raises(HookError, match=message):
            y.sum().backward()


def test_disable_saved_tensors_hooks():
    x = leaf(1.0)
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(HookError, match="not here"), saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
        x.exp().sum().backward()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        with pytest.raises(HookError, match="nor here"), disable_saved_tensors_hooks("nor here"):
            pass
        x.exp()
    with save_on_disk():
        x.exp()


def test_save_on_disk(x, tmp_path):
    directory = tmp_path / "saved"
    with save_on_disk(directory):
        out = program(x)
    files = os.listdir(directory)
    assert len(files) > 5
    np.testing.assert_allclose(numbers(grad(out, x, retain_graph=True)[0]), numbers(expected(x)))
    assert os.listdir(directory) == files
    grad(out, x)
    assert os.listdir(directory) == []
    with save_on_disk(directory):
        out = program(x)
    del out
    gc.collect()
    assert os.listdir(directory) == []


def test_save_on_disk_keeps_dtypes_and_shapes(tmp_path):
    for value in (2.0, [[1.0, 2.0]], [1 + 2j], np.ones((2, 0)), np.float32([1.5])):
        t = vg.Tensor(value, requires_grad=True)
        with save_on_disk(tmp_path):
            y = t * t
        (g,) = grad(y, t, vg.ones_like(t))
        np.testing.assert_allclose(g.numpy(), 2 * np.conj(value))
        assert g.dtype == t.dtype


# -- increment_version -------------------------------------------------------------------------------------------------


def poke(tensor, index, value):
    """Write to a tensor's memory behind the library's back."""
    tensor._array[index] = value


def test_increment_version_makes_lost_values_errors():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    z = y * y
    part = y[:2] * 5 * y[:2]
    poke(y, 0, 100.0)
    increment_version(y)
    assert y._version == 1
    for lost in (z, part):
        with pytest.raises(SavedValueError, match="increment_version"):
            lost.sum().backward()
    assert x.grad is None
    (y * y).sum().backward()
    assert numbers(x.grad) == [200.0, 4.0, 6.0]


@pytest.mark.parametrize("how", ["window", "view", "several"])
def test_increment_version_of_a_window(how):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    head, tail = y[:2] * y[:2], y[2:] * y[2:]
    poke(y, 0, 100.0)
    if how == "window":
        increment_version(y, np.s_[:1])
    elif how == "view":
        increment_version(y[0, ...])
    else:
        increment_version([y[:1], y[1, ...]])
    tail.sum().backward()
    assert numbers(x.grad) == [0.0, 0.0, 6.0, 8.0]
    with pytest.raises(SavedValueError):
        head.sum().backward()


def test_increment_version_of_an_empty_window_loses_nothing():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y[:1] * y[:1]
    increment_version(y, np.s_[2:])
    assert y._version == 1
    z.sum().backward()
    assert numbers(x.grad) == [2.0, 0.0]


def test_memory_from_outside_was_copied_when_saved():
    array = np.array([1.0, 2.0])
    y = vg.from_numpy(array)
    x = leaf(3.0, 4.0)
    z = x * y
    array[:] = 100.0
    increment_version(y)
    z.sum().backward()
    assert numbers(x.grad) == [1.0, 2.0]


# -- preserved, forbid_mutation ----------------------------------------------------------------------------------------


def test_preserved_windows():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    assert preserved(y) == []
    head, last = y[0:2], y[3:]
    z = head * head
    w = last * last + y[2] * y[2]  # saves numbers, which no write can change
    y[0] = 5.0
    y[2] = 6.0
    y.exp_()
    records = [(r.geometry.storage_offset, r.geometry.sizes, r.nbytes, r.writer) for r in preserved(y[1:])]
    assert records == [(0, (2,), 16, "__setitem__"), (3, (1,), 8, "exp_")]
    (z.sum() + w.sum()).backward()
    assert numbers(x.grad) == [2.0, 4.0, 6.0, 8.0]


def test_preserved_copies_are_bounded():
    y = vg.zeros(3)
    x = leaf(1.0, 2.0, 3.0)
    for _ in range(1500):
        _kept = x * y
        y += 1
    assert len(preserved(y)) == 1000


def test_forbid_mutation_detects_writes_to_saved_elements():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    before = y[1, ...] * y[1, ...]
    with forbid_mutation_on_saved_tensors():
        product = y[0, ...] * x[2]
        end = product.clone().exp_()
        with pytest.raises(StrictMutationError, match=r"__setitem__ would touch .* MulBackward"):
            y[0] = 5.0
        with pytest.raises(StrictMutationError, match=r"mul_ would touch .* ExpBackward"):
            end.mul_(2)
        y[1] = 5.0  # saved as a number
    y[0] = 5.0
    (before + end).backward()
    assert np.allclose(numbers(x.grad), [3 * np.exp(3), 4.0, np.exp(3)])


def test_forbid_mutation_names_the_saving_operator():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    z = y.exp()
    s = Product.apply(y[1:], x[1:].detach())
    writes = [
        (lambda: z.mul_(2), "mul_ would touch .* ExpBackward"),
        (lambda: z.__setitem__(0, 1.0), "__setitem__ would touch .* ExpBackward"),
        (lambda: z[::-1].copy_(vg.ones(3)), "copy_ would touch .* ExpBackward"),
        (lambda: z.__setitem__(vg.Tensor([0, 1]), 1.0), "__setitem__ would touch .* ExpBackward"),
        (lambda: y[2:].add_(1), "add_ would touch .* ProductBackward"),
    ]
    with forbid_mutation_on_saved_tensors():
        for write, message in writes:
            before, version = (numbers(y), numbers(z)), (y._version, z._version)
            with pytest.raises(StrictMutationError, match=message) as caught:
                write()
            assert "clone()" in str(caught.value)
            assert ((numbers(y), numbers(z)), (y._version, z._version)) == (before, version)
        y[0] = 7.0  # not saved
        with pytest.raises(StrictMutationError):
            z.mul_(2)
    z.mul_(2)  # the value is preserved now
    y.mul_(3)
    (z.sum() + s.sum()).backward()
    np.testing.assert_allclose(numbers(x.grad), 2 * np.exp([1.0, 2.0, 3.0]) + [0.0, 2.0, 3.0])


def test_operators_may_overwrite_their_own_saved_values():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with forbid_mutation_on_saved_tensors():
        y = x * 1
        y.mul_(y)
        y.exp_()
        z = x * 1
        z.mul_(w)
        with pytest.raises(StrictMutationError, match="ExpBackward"):
            y.mul_(2)
    (y.sum() + z.sum()).backward()
    np.testing.assert_allclose(numbers(x.grad), np.exp([1.0, 4.0]) * [2.0, 4.0] + [3.0, 4.0])


# -- anomaly detection -------------------------------------------------------------------------------------------------


def lines_of(error):
    """Return the lines of this file's source that an error shows."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


class Fails(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise KeyError("mine")


def test_anomaly_shows_where_a_failing_node_was_created():
    with detect_anomaly():
        out = Fails.apply(leaf(1.0))  # the line that made it
        with pytest.raises(KeyError, match="mine") as caught:
            out.sum().backward()
    text = lines_of(caught.value)
    assert "FailsBackward failed" in text
    assert "# the line that made it" in text and __file__ in text
    assert "viewgrad/autograd" not in text.replace(os.sep, "/")


MAKERS = {
    "SquareBackward": lambda t: vg.square(t),  # made here
    "SquareBackward in place": lambda t: (t * 1).square_(),  # made here
    "CopySlices": lambda t: in_place_through_a_view(t),
}


def in_place_through_a_view(t):
    base = t * 1
    base[0:1].square_()  # made here
    return base


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_anomaly_finds_nan(name):
    x = leaf(0.0, 1.0)
    with detect_anomaly():
        out = MAKERS[name](x) * np.inf
        with pytest.raises(AnomalyError, match=f"{name.split()[0]} computed .* NaN at 1 of 2") as caught:
            out.sum().backward()
    assert "# made here" in str(caught.value)
    assert x.grad is None


def test_anomaly_records_where_every_kind_of_node_was_created():
    x = vg.Tensor(np.ones((3, 3)), requires_grad=True)
    value = x[0] * 1
    written = {
        "view": lambda t: t[1:],
        "view of a view": lambda t: t.T[1:],
        "gather": lambda t: t[vg.Tensor([0, 0])],
        "operator": lambda t: t * 2,
        "list": lambda t: vg.stack([t, t]),
        "in place": lambda t: t.mul_(2),
        "in place through a view": lambda t: t[0].mul_(2),
        "assignment": lambda t: t.__setitem__(1, value),
        "assignment of a number": lambda t: t.__setitem__(1, 2.0),
        "assignment through a view": lambda t: t[1:].__setitem__(0, value),
        "copy_": lambda t: t.copy_(value),
        "index_put": lambda t: t.__setitem__(vg.Tensor([0, 2]), value),
        "index_accumulate_": lambda t: t.index_accumulate_(vg.Tensor([0, 2]), value),
        "custom": lambda t: Product.apply(t, t),
    }
    with detect_anomaly():
        for name, step in written.items():
            base = x * 1
            result = step(base)
            for tensor in (base, result):
                if isinstance(tensor, vg.Tensor):
                    assert __file__ in "".join(tensor.grad_fn.metadata["traceback"]), name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_anomaly_reports_gradients_that_were_bad_on_arrival():
    with detect_anomaly():
        y = leaf(1.0) * 2
        with pytest.raises(AnomalyError, match="its incoming gradient was NaN already"):
            y.backward(vg.Tensor([np.nan]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_anomaly_reports_the_pass_that_created_a_node():
    x = leaf(0.0)
    with detect_anomaly(check_nan=False):
        y = vg.square(vg.square(x)) + Product.apply(x, x)  # the forward line
        (g,) = grad(y.sum(), x, create_graph=True)
    with detect_anomaly(), pytest.raises(AnomalyError) as caught:
        (g * np.inf).sum().backward()
    assert "was during the backward pass of SquareBackward" in str(caught.value)
    assert "# the forward line" in str(caught.value)


def test_anomaly_of_a_node_made_outside():
    out = Fails.apply(leaf(1.0))
    with pytest.raises(KeyError) as caught, detect_anomaly():
        out.sum().backward()
    assert "outside anomaly detection" in lines_of(caught.value)


def test_anomaly_modes_nest():
    states = lambda: (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
    assert states() == (False, False)
    with detect_anomaly():
        assert states() == (True, True)
        with detect_anomaly(check_nan=False):
            assert states() == (True, False)
            with set_detect_anomaly(False):
                assert states() == (False, False)
            assert states() == (True, False)
        assert states() == (True, True)
    set_detect_anomaly(True, check_nan=False)
    try:
        assert states() == (True, False)
    finally:
        set_detect_anomaly(False)
    assert states() == (False, False)


@pytest.mark.parametrize("order", [1, 2])
def test_anomaly_engine_computes_the_same(x, order):
    with detect_anomaly():
        np.testing.assert_allclose(numbers(expected(x, order)), numbers(expected(x, order)))
        found = numbers(expected(x, order))
    np.testing.assert_allclose(found, numbers(expected(x, order)))
    with detect_anomaly():
        out = program(x)
        out.backward(retain_graph=True)
        out.backward()
        with pytest.raises(FreedGraphError):
            out.backward()
    np.testing.assert_allclose(numbers(x.grad), 2 * np.array(numbers(expected(x))))


def test_anomaly_runs_hooks():
    x = leaf(1.0, 2.0)
    with detect_anomaly():
        base = x * 1
        view = base[1:]
        view.register_hook(lambda g: g * 10)
        view.grad_fn.register_hook(lambda i, o: (i[0] * 2,))
        base.retain_grad()
        (view.sum() + base.sum()).backward()
    assert numbers(x.grad) == [1.0, 21.0] and numbers(base.grad) == [1.0, 21.0]


# -- drawings ----------------------------------------------------------------------------------------------------------


def written():
    x = vg.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = x * 2
    view = base.T[1]
    view *= base[0, 0]
    out = view.exp()
    return x, base, view, out


def test_dot():
    _, base, view, out = written()
    text = to_dot([out, view])
    assert text.startswith("digraph {") and text.endswith("}")
    assert text.count("{") == text.count("}") and "cluster" in text
    assert 'label="ExpBackward\\nresult: float64 (2,), 16 bytes"' in text
    assert 'label="view, float64 (2,)\\nversion 1"' in text
    assert 'label="tensor, float64 (2, 2)\\nversion 1"' in text
    assert 'label="base.transpose(1, 0)[1]", style=dashed' in text
    assert 'label="CopySlices\\nbase.transpose(1, 0)[1]"' in text
    assert text.count("MulBackward") == 2
    assert 'label="AccumulateGrad\\nleaf, float64 (2, 2), version 0"' in text
    names = set(re.findall(r"^ *(\w+) \[", text, re.MULTILINE))
    for start, end in re.findall(r"(\w+) -> (\w+)", text):
        assert start in names and end in names
    out.sum().backward()
    assert "result: released" in to_dot(out)
    with save_on_disk():
        assert "packed by a hook" in to_dot(base.exp())


def test_mermaid():
    _, _, view, out = written()
    text = to_mermaid([out, view])
    assert text.startswith("flowchart TD")
    assert text.count("subgraph") == text.count("\n  end") == 1
    assert 'n1["ExpBackward<br/>result: float64 (2,), 16 bytes"]' in text
    assert '-.->|"base.transpose(1, 0)[1]"|' in text
    arrows = re.findall(r"-> .*", to_dot([out, view]))
    assert len(re.findall(r"^  \w+ -->", text, re.MULTILINE)) == len([a for a in arrows if "style" not in a])


def test_drawing_tensors_without_history():
    assert "t1" in to_dot(vg.ones(2)) and "->" not in to_dot(vg.ones(2))
    assert "version 0" in to_mermaid(vg.ones(2))


def test_drawing_of_several_outputs():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2, x * 3

    a, b = Two.apply(leaf(1.0))
    text = to_dot(a + b)
    assert 'label="output 0"' in text and 'label="output 1"' in text
    assert "TwoBackward\\n0: float64 (1,), 8 bytes" in text


def test_drawings_keep_nothing_alive():
    gc.disable()
    try:
        _, _, view, out = written()
        node = out.grad_fn
        references = [to_dot(out), explain(view)]
        import weakref

        reference = weakref.ref(node)
        del view, out, node, _
        assert reference() is None and references
    finally:
        gc.enable()


# -- explanations ------------------------------------------------------------------------------------------------------


def test_explain_writes_in_order():
    x = vg.Tensor(np.ones((2, 3)), requires_grad=True)
    base = x + 1
    view = base[0]
    view *= 2
    base[1, 1:] = x[0, 1:]
    base[base.detach() > 2] = 0.5
    base.T[0].exp_()
    base.mul_(x)
    with vg.no_grad():
        base += 1
    text = explain(view).split("\n")
    assert text[0] == "This is a view of float64 (3,), base[0], of a base of float64 (2, 3)."
    assert text[1] == "The base was created by AddBackward. Then it was written to, in this order:"
    assert text[2].startswith("  1. MulBackward wrote to base[0]; it saved other")
    assert text[3] == "  2. CopyBackwards wrote to base[1, 1:]; values came from SliceBackward."
    assert text[4] == "  3. IndexPutBackward wrote to base[<mask of shape (2, 3)>]."
    assert text[5].startswith("  4. ExpBackward wrote to base.transpose(1, 0)[0]; it saved result")
    assert text[6].startswith("  5. MulBackward wrote to all of the base; values came from AccumulateGrad; it saved")
    assert text[7] == "Its memory was written to 6 times in all, 1 of them outside of what is recorded."
    assert text[8].startswith("Before writes, ")
    assert text[9].endswith("was rebuilt after write 5: AsStridedBackward takes it from the base.")
    assert len(text) == 10
    own = explain(base).split("\n")
    assert own[0] == "This is a tensor of float64 (2, 3)."
    assert [line.replace("base", "tensor") for line in text[2:9]] == own[2:]


def test_explain_views_taken_between_writes():
    base = vg.ones(3) * vg.ones(3, requires_grad=True)
    base[0] = 1.0
    view = base[1:][1:]
    assert "was created after write 1, by SliceBackward" in explain(view)
    base[1] = 2.0
    assert "was rebuilt after write 2: AsStridedBackward" in explain(view)
    assert "from the current base history" in explain((vg.ones(3, requires_grad=True) * 2)[1:])


def test_explain_leaves_and_unrecorded_writes():
    assert explain(vg.ones(2)) == "This is a tensor of float64 (2,).\nIt has no history."
    assert explain(leaf(1.0)).endswith("It is a leaf that requires grad.")
    t = vg.zeros(2)
    t += 1
    assert explain(t).endswith("It has no history.\nIts memory was written to 1 time in all, none of them recorded.")
    t[0] = leaf(3.0)[0]
    assert "It had no history at first. Then it was written to" in explain(t)
    assert explain(vg.ones(2)[:1]).endswith("No gradient flows through this view.")


def test_explain_custom_functions():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

    base = leaf(1.0, 2.0) * 1
    Double.apply(base)
    Double.apply(base[0, ...])
    lines = explain(base).split("\n")
    assert lines[2] == "  1. DoubleBackward wrote to all of the tensor."
    assert lines[3] == "  2. CopyBackwards wrote to tensor[0]; values came from DoubleBackward."


# -- reprs -------------------------------------------------------------------------------------------------------------


def test_reprs():
    _, base, _, out = written()
    assert repr(out.grad_fn) == "<ExpBackward>"
    assert repr(base.grad_fn) == "<CopySlices>"
    assert repr(out).endswith("grad_fn=<ExpBackward>)")
    assert "Tensor" in repr(out.grad_fn.saved_result) and "array" in repr(out.grad_fn.saved_result)
    assert repr(vg.no_grad()) == "ModeSwitch(on=0, off=GRAD)"
    assert "ctx of Product" in repr(Product.apply(leaf(1.0), leaf(1.0)).grad_fn.ctx)


def test_constants_bypass_saved_tensors_hooks():
    shapes = []

    def pack(tensor):
        shapes.append(tensor.shape)
        return tensor

    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    with vg.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        total = (x * 2.0 + x / 4 + x * 0.0 + 3.0 * x).sum()
    assert shapes == []
    assert grad(total, x)[0].tolist() == [5.25, 5.25]
    with vg.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        x * vg.Tensor(2.0)
    assert shapes == [()]
