"""Strings, dates, objects and records beside tensors: without a history, NumPy computes."""

import numpy as np
import pytest

import viewgrad as vg

NAMES = np.array(["a", "b", "c"])
DATES = np.array(["2020-01-01", "2020-01-03", "2021-05-01"], "M8[D]")
DAY = np.timedelta64(1, "D")


def changed(array, change):
    array = array.copy()
    change(array)
    return array


def add_days(dates, mask):
    dates[mask] += DAY
    dates += mask.astype(int)
    dates += mask.astype(int).astype("m8[D]")


def fill_records(mask):
    records = np.zeros(3, dtype=[("a", float), ("b", "U3")])
    records["a"] = mask * 1.5
    records["a"] += mask
    records["a"] *= np.arange(3.0)
    records["b"][mask] = "x"
    return records["a"].sum() + (records["b"] == "x").sum()


# By name: a function of a mask that returns a number.
CASES = {
    "dates and integers": lambda mask: (DATES + np.arange(3) + mask.astype(int)).astype(int).sum(),
    "integers and dates": lambda mask: (mask.astype(int) + DATES).astype(int).sum(),
    "durations": lambda mask: ((DATES - DATES[0]) * mask.astype(int) / DAY).sum(),
    "durations from integers": lambda mask: (DATES + np.array([1, 2, 3]).astype("m8[D]")[mask].sum()).astype(int).sum(),
    "a duration times integers": lambda mask: ((np.arange(3) * DAY)[mask] / DAY).sum(),
    "a choice of dates": lambda mask: np.where(mask, DATES, DATES[0]).astype(int).sum(),
    "dates in place": lambda mask: changed(DATES, lambda dates: add_days(dates, mask)).astype(int).sum(),
    "comparison by a mask": lambda mask: np.less(DATES, DATES[1], where=mask, out=np.zeros(3, bool)).sum(),
    "isnat": lambda mask: np.isnat(DATES, out=mask.copy()).sum() + mask.sum(),
    "putmask": lambda mask: (changed(NAMES, lambda names: np.putmask(names, mask, "q")) == "q").sum(),
    "place": lambda mask: (changed(NAMES, lambda names: np.place(names, mask, ["q"])) == "q").sum(),
    "copyto": lambda mask: (changed(NAMES, lambda names: np.copyto(names, "q", where=mask)) == "q").sum(),
    "strings of bools": lambda mask: sum(len(each) for each in mask.astype(str)),
    "an array of strings": lambda mask: sum(len(each) for each in np.array(mask, dtype=str)),
    "strings of numbers": lambda mask: np.char.str_len(np.char.mod("%d", mask.astype(int) * 10)).sum(),
    "concatenated strings": lambda mask: np.concatenate([NAMES[mask], mask.astype(str)]).size,
    "a comparison with strings": lambda mask: (mask.astype(int) == NAMES).sum() + (NAMES[mask] != "b").sum(),
    "order by strings": lambda mask: np.lexsort((NAMES, mask))[0],
    "objects": lambda mask: (np.array([1, 2, 3], object) * mask)[0] + sum(np.array([1, 2, 3], object)[mask]),
    "records": fill_records,
}


@pytest.mark.parametrize("compiled", [lambda f: f, vg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_numpy_computes_without_a_history(name, compiled):
    case = CASES[name]
    derivative = vg.value_and_grad(compiled(lambda x, mask: x * float(case(mask))))
    for mask in (np.array([True, False, True]), np.array([True, False, True]), np.array([False, True, True])):
        assert derivative(1.0, mask) == (float(case(mask)), float(case(mask)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (DATES - DATES[0]) * x,
        lambda x: np.array([1.0, 2.0, "a"], object) * x,
        lambda x: x.astype("m8[D]"),
        lambda x: np.zeros(3, dtype=[("a", float)])["a"].__iadd__(x),
    ],
)
def test_conversions_that_would_lose_a_history_raise(f):
    with pytest.raises(TypeError):
        f(vg.Tensor([1.0, 2.0, 3.0], requires_grad=True))


def test_values_with_a_history_become_strings():
    x = vg.Tensor([1.0, 2.5], requires_grad=True)
    for strings in (x.astype(str), np.array(["1.0", "2.5"])):
        assert type(strings) is np.ndarray
        assert strings.tolist() == ["1.0", "2.5"]


def test_writes_to_a_plain_array_keep_its_identity():
    plain = np.ones(3)
    same = plain
    same += vg.Tensor([1.0, 2.0, 3.0])
    assert same is plain
    assert plain.tolist() == [2.0, 3.0, 4.0]
