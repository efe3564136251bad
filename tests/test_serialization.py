"""Serialization of trees of tensors, and named results."""

import collections
import enum
import io
import os
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewgrad as vg
from viewgrad.errors import TreeError


def test_trees_round_trip(tmp_path):
    tree = {
        "leaf": vg.Tensor([1.0, 2.0], requires_grad=True), "computed": vg.Tensor([1.0], requires_grad=True) * 2,
        "whole": [vg.Tensor(np.arange(3)), (vg.Tensor(3.5 + 1j), np.ones((2, 2), np.float32))],
        "rest": (1, 2.5, True, None, "text", 1j, []),
    }  # fmt: skip
    vg.save(tmp_path / "tree", tree)
    again = vg.load(tmp_path / "tree")
    assert again["leaf"].requires_grad and again["leaf"].is_leaf and again["leaf"].detach().tolist() == [1, 2]
    assert not again["computed"].requires_grad and again["computed"].tolist() == [2.0]
    assert again["whole"][0].dtype == int and type(again["whole"][1]) is tuple
    assert again["whole"][1][0].ndim == 0 and again["whole"][1][0].item() == 3.5 + 1j
    assert type(again["whole"][1][1]) is np.ndarray and again["whole"][1][1].dtype == np.float32
    assert again["rest"] == tree["rest"]
    with pytest.raises(TreeError, match=r"bad.* is of type builtins\.set"):
        vg.save(io.BytesIO(), {"bad": {1}})


def test_parts_have_names():
    x = vg.Tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    assert np.linalg.svd(x).S.requires_grad and x.svd().Vh.shape == (2, 2)
    values, vectors = np.linalg.eigh(x)
    assert np.linalg.eigh(x).eigenvalues.detach().tolist() == values.detach().tolist() and vectors.shape == (2, 2)
    assert np.linalg.slogdet(x).logabsdet.requires_grad and x.qr().R.shape == (2, 2)


def test_tensor_and_array_keep_history():
    x = vg.tensor([1.0, 2.0], requires_grad=True)
    assert x.requires_grad and x.is_leaf
    joined = vg.array([[x[0], 1.0], x])
    assert vg.autograd.grad(joined.sum(), x)[0].tolist() == [2, 1]
    assert vg.tensor([1, 2], dtype=np.float32).dtype == np.float32
    assert vg.array(x).requires_grad and not vg.array(x).is_leaf


# -- every kind of leaf and container ----------------------------------------------------------------------------------

SCALAR = vg.Tensor([1.5, 2.5])[0]
LEAVES = [
    None, True, 0, -(2**70), 1.5, float("inf"), -0.0, "text", "\ud800", "", 1j, complex(-0.0, float("nan")),
    vg.Tensor(2.0), SCALAR, vg.Tensor([1.0, 2.0], requires_grad=True), vg.Tensor(np.zeros((0, 3))), vg.Tensor([1, 2]),
    vg.Tensor([True]), vg.Tensor(np.ones((2, 2), np.complex64, order="F")), vg.Tensor(np.float16(3)),
    np.arange(3.0), np.ones((2, 0)), np.asfortranarray(np.ones((2, 3))), np.arange(6)[::2], np.array(3.0),
    np.array("ab"),
    np.array(["a", "bc"]), np.array([b"a"]), np.arange(3, dtype=">i4"), np.array(["2020-01-01"], "datetime64[D]"),
    np.array([(1, 2.0)], [("a", int), ("b", float)]), np.float64(1.5), np.float32(1.5), np.int8(3), np.bool_(True),
    np.complex64(1j), np.str_("abc"), np.datetime64("2020-01-01"), np.longdouble(1) / 3,
    np.ma.array([1.0, 2.0], mask=[True, False]), np.ma.array([1, 2]), np.ma.array([[1.0]], mask=True, fill_value=7.0),
]  # fmt: skip


def alike(one, other):
    """Return whether two trees are equal, including types and bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, vg.Tensor):
        return (
            type(one._array) is type(other._array) and one.requires_grad == other.requires_grad
            and alike(np.asarray(one.detach()), np.asarray(other.detach()))
        )  # fmt: skip
    if isinstance(one, np.ma.MaskedArray):
        return alike(one.data, other.data) and alike(np.ma.getmaskarray(one), np.ma.getmaskarray(other)) and (
            one.fill_value == other.fill_value
        )
    if isinstance(one, np.longdouble):  # some of its bytes are padding, which may be anything
        return np.array_equal(one, other, equal_nan=True) and np.signbit(one) == np.signbit(other)
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return repr(one) == repr(other)


TREES = st.recursive(
    st.sampled_from(LEAVES),
    lambda trees: st.one_of(
        st.lists(trees, max_size=3), st.lists(trees, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), trees, max_size=3),
        st.dictionaries(st.text(max_size=3), trees, max_size=3).map(collections.OrderedDict),
    ),
    max_leaves=8,
)  # fmt: skip


@given(TREES)
@settings(max_examples=60)
def test_drawn_trees_round_trip(tree):
    file = io.BytesIO()
    vg.save(file, tree)
    file.seek(0)
    assert alike(vg.load(file), tree)


@pytest.mark.parametrize("number", range(len(LEAVES)))
def test_each_kind_of_leaf_round_trips(number, tmp_path):
    vg.save(tmp_path / "leaf", LEAVES[number])
    assert alike(vg.load(tmp_path / "leaf"), LEAVES[number])


class Kind(enum.IntEnum):
    ONE = 1


def circle():
    tree = {"inner": []}
    tree["inner"].append(tree)
    return tree


def deep():
    tree = []
    for _ in range(3000):
        tree = [tree]
    return tree


REFUSED = {
    "a set": {1}, "an object": object(), "an array of objects": np.array([1, None]), "a circle": circle(),
    "deep": deep(),
    "an enumeration": Kind.ONE, "keys": {1: 2}, "a default dictionary": collections.defaultdict(list), "bytes": b"a",
    "a named tuple": collections.namedtuple("Pair", "a b")(1, 2), "a matrix": np.ones(2).view(np.recarray),
    "objects in records": np.array([(1, None)], [("a", int), ("b", object)]), "a masked object": np.ma.array([None]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unserializable_objects_are_refused_without_writing(name, tmp_path):
    path = tmp_path / "tree"
    vg.save(path, {"before": 1})
    with pytest.raises(TreeError, match="save"):
        vg.save(path, {"new": [REFUSED[name]]})
    assert vg.load(path) == {"before": 1} and os.listdir(tmp_path) == ["tree"]
    shared = [1.0]
    vg.save(path, [shared, shared])  # the same object twice is not a cycle
    assert vg.load(path) == [[1.0], [1.0]]


def test_the_old_file_survives_a_failed_save(tmp_path, monkeypatch):
    path, link = tmp_path / "tree", tmp_path / "link"
    vg.save(path, 1)
    path.chmod(0o640)
    link.symlink_to(path)
    written = np.lib.format.write_array
    for error in (OSError, KeyboardInterrupt, MemoryError):

        def failing(file, array, error=error, **options):
            written(file, array, **options)
            raise error

        monkeypatch.setattr(np.lib.format, "write_array", failing)
        with pytest.raises(error):
            vg.save(path, vg.ones(5))
        monkeypatch.undo()
        assert vg.load(path) == 1 and sorted(os.listdir(tmp_path)) == ["link", "tree"]
    vg.save(link, 2)
    assert link.is_symlink() and vg.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640


# -- files that are damaged --------------------------------------------------------------------------------------------


def contents():
    file = io.BytesIO()
    vg.save(file, {"a": [vg.Tensor([1.0, 2.0], requires_grad=True), np.ma.array([1, 2])], "b": np.float32(2)})
    return file.getvalue()


@given(st.integers(0, 10**6), st.integers(1, 255), st.booleans())
@settings(max_examples=150)
@pytest.mark.filterwarnings("ignore")
def test_damaged_files_raise_one_error(place, change, cut):
    whole = bytearray(contents())
    place %= len(whole)
    whole[place] ^= change
    try:
        vg.load(io.BytesIO(whole[:place] if cut else whole))
    except TreeError as error:
        assert "damaged" in str(error)


def archive(entries, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return io.BytesIO(file.getvalue())


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def described(text):
    return {"structure.npy": npy(np.frombuffer(text.encode(), np.uint8)), "0.npy": npy(np.arange(3))}


FORGED = {
    "empty": io.BytesIO(b""), "text": io.BytesIO(b"hello"), "another archive": archive({"a": b"b"}),
    "of numpy": io.BytesIO(npy(np.ones(2))), "not JSON": archive(described("[")),
    "a word": archive(described('"dict"')),
    "no such array": archive(described('["array", 5]')), "no such kind": archive(described('["shell", 0]')),
    "a path": archive(described('["array", "../0"]')), "an integer leaf": archive(described('["leaf", 0]')),
    "a long number": archive(described('["number", 0]')),
    "a bad masked array": archive(described('["masked", [0, 0]]')),
    "a nest": archive(described("[" * 100_000)), "a list of numbers": archive(described('["list", [1, 2]]')),
    "a bad complex number": archive(described('["complex", ["a", 1]]')),
    "a bad dict": archive(described('["dict", 3]')),
    "plain list": archive(described('["plain", [1]]')),
    "objects": archive({**described('["array", 0]'), "0.npy": npy(np.array([1, None]), allow_pickle=True)}),
    "compressed": archive({**described('["array", 0]'), "0.npy": npy(np.zeros(10**7))}, zipfile.ZIP_DEFLATED),
    "a long promise": archive({**described('["array", 0]'), "0.npy": npy(np.zeros(1)).replace(b"(1,), }       ",
                                                                                           b"(10000000,), }")}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_raise_one_error_and_are_not_unpacked(name):
    FORGED[name].seek(0)
    with pytest.raises(TreeError, match=r"damaged, or was not written by viewgrad\.save"):
        vg.load(FORGED[name])


def test_missing_files_raise_pythons_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        vg.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        vg.save(tmp_path / "none" / "tree", 1)
