"""Every public function, method and ufunc of NumPy on numbers gives the results of arrays, with gradients."""

import importlib.util
import re
from pathlib import Path

import numpy
import numpy_calls
import pytest
from numpy_calls import CLEAR, RIGHT, WARNED

# Access to memory or bytes, which raises for tensors with a history.
REFUSED = {"ndarray.byteswap", "ndarray.dumps", "ndarray.getfield", "ndarray.setfield"}  # fmt: skip
# Functions with one option that raises for tensors with a history.
OPTION_REFUSED = {"linalg.qr"}
# Functions that return Python numbers, with a warning.
PLAIN = {"ndarray.item", "ndarray.tolist", "ndarray.tobytes", "ndarray.__float__", "ndarray.__complex__"}
GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "coming-from-numpy.md"
ALL = numpy_calls.all_calls()
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_are_correct_or_refused_with_advice(part):
    for name in list(ALL)[part::PARTS]:
        if name == "i0" and not importlib.util.find_spec("scipy"):
            continue
        if name == "trim_zeros" and numpy.lib.NumpyVersion(numpy.__version__) < "2.2.0":
            continue  # accepts only vectors
        found = numpy_calls.judged(ALL[name])
        assert sum(map(len, found.values())) >= 2, f"fewer than two calls of {name}"
        if name in REFUSED | OPTION_REFUSED:
            assert found.keys() <= {RIGHT, CLEAR} and CLEAR in found, (name, dict(found))
        elif name in PLAIN:
            assert found.keys() <= {RIGHT, WARNED} and WARNED in found, (name, dict(found))
        else:
            assert found.keys() == {RIGHT}, (name, {kind: told for kind, told in found.items() if kind != RIGHT})


def test_every_public_name_is_called():
    # NumPy up to 2.3 lists methods that it has removed.
    public = {name for name in dir(numpy.ndarray) if not name.startswith("_") and hasattr(numpy.ones((1, 1)), name)}
    called = {re.sub(r"^ndarray\.(flags)\..*", r"ndarray.\1", name) for name in ALL}
    not_numbers = {"ctypes", "data", "dump", "tofile", "tostring"}  # pointers and files; bytes, up to NumPy 2.2
    assert {name for name in public if f"ndarray.{name}" not in called} <= not_numbers
    assert numpy_calls.names().keys() <= ALL.keys()


def test_the_guide_has_current_figures():
    """The guide states the share of names all of whose calls are correct, and the version of NumPy."""
    told = re.search(r"Of (\d+) names .*?, (\d+) are correct .*?NumPy ([\d.]+)\.", GUIDE.read_text(), re.DOTALL)
    assert told is not None
    counted, right, version = told.groups()
    assert int(right) > 0.95 * int(counted)
    if version == numpy.__version__:
        assert int(counted) == len(ALL)
        assert int(right) == len(ALL) - len(REFUSED | PLAIN | OPTION_REFUSED)


@pytest.mark.parametrize(
    "lie, verdict",
    [
        (lambda x: (x * x).sum() + 1.0, numpy_calls.WRONG),  # another value
        (lambda x: (x * x.detach()).sum(), numpy_calls.WRONG),  # half the gradient
        (lambda x: (x * x).sum().detach(), numpy_calls.SILENT),
        (lambda x: (x * x).sum(), RIGHT),
    ],
)
def test_verdicts_describe_differences(monkeypatch, lie, verdict):
    monkeypatch.setattr(numpy, "sum", lambda x: (x * x).sum())
    monkeypatch.setattr(numpy_calls.viewgrad.numpy, "sum", lie)
    assert numpy_calls.verdict("np.sum(a)")[0] == verdict
