"""Impure reads of compiled functions: opaque objects, files, clocks, texts of tensors."""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import datetime
import enum
import io
import logging
import os
import pathlib
import sqlite3
import subprocess
import threading
import time
import types
import weakref
from time import perf_counter

import numpy as np
import pytest
from threads import in_threads

import viewgrad as vg
from viewgrad.trace.tracing.preexisting import Existing


class Attributed:
    rate = 1.0


class Listed(list):
    pass


class Mapped(dict):
    pass


class Whole(int):
    pass


class Framed(np.ndarray):
    pass


class Meta(type):
    rate = 1.0


class WithMeta(metaclass=Meta):
    pass


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


thing, listed, mapped, whole = Attributed(), Listed([1.0]), Mapped(a=1.0), Whole(3)
framed = np.ones(3).view(Framed)
elements, keys, frozen = {thing}, {thing: 1}, frozenset([thing])
ordered = {"a": 1.0, "b": 2.0}
variable = contextvars.ContextVar("variable", default=1.0)
local = threading.local()
event = threading.Event()
window = memoryview(bytearray(b"\x01\x02"))
signed = types.SimpleNamespace(zero=0.0)
kinds = [Kind.ONE, 1]
logger = logging.getLogger("viewgrad.tests")
rate = 1.0


def reordered(number):
    ordered.clear()
    ordered.update({"a": 1.0, "b": 2.0} if number == 1 else {"b": 2.0, "a": 1.0})


# Expressions that a function reads, and changes of them.
CHANGES = {
    "an attribute of a list": (lambda x: x * listed.rate, lambda n: setattr(listed, "rate", n)),
    "an attribute of a dict": (lambda x: x * mapped.rate, lambda n: setattr(mapped, "rate", n)),
    "an attribute of an integer": (lambda x: x * whole.rate, lambda n: setattr(whole, "rate", n)),
    "an attribute of an array": (lambda x: x * framed.rate, lambda n: setattr(framed, "rate", n)),
    "an object in a set": (lambda x: x * sum(each.rate for each in elements), lambda n: setattr(thing, "rate", n)),
    "an object in a frozen set": (lambda x: x * sum(each.rate for each in frozen), lambda n: setattr(thing, "rate", n)),
    "a key of a dict": (lambda x: x * sum(each.rate for each in keys), lambda n: setattr(thing, "rate", n)),
    "the order of keys": (lambda x: sum(x * (i * v) for i, v in enumerate(ordered.values())), reordered),
    "a context variable": (lambda x: x * variable.get(), lambda n: variable.set(n)),
    "a variable of the thread": (lambda x: x * local.rate, lambda n: setattr(local, "rate", n)),
    "an event": (lambda x: x * (1 + event.is_set()), lambda n: event.set() if n > 1 else event.clear()),
    "a view of bytes": (lambda x: x * window[1], lambda n: window.__setitem__(1, int(n))),
    "the sign of zero": (
        lambda x: x * np.copysign(1.0, signed.zero), lambda n: setattr(signed, "zero", 0.0 * (1.5 - n)),
    ),
    "a metaclass": (lambda x: x * WithMeta.rate, lambda n: setattr(Meta, "rate", n)),
    "the level of a logger": (lambda x: x * logger.level, lambda n: logger.setLevel(int(n))),
    "a member of an enumeration": (lambda x: x * kinds[0].value, lambda n: kinds.__setitem__(0, Kind(int(n)))),
    "a variable named in a text": (lambda x: x * eval("rate + 1"), lambda n: globals().update(rate=n)),
    "the environment by getenv": (
        lambda x: x * float(os.getenv("VIEWGRAD_RATE")), lambda n: os.environ.update(VIEWGRAD_RATE=str(n)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_changed_state_is_detected(what):
    reads, change = CHANGES[what]
    change(1.0)
    compiled = vg.compile(reads, executor="python")
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        before = compiled(x)
    assert compiled.specializations[0].program is not None, compiled.explain()
    change(2.0)
    assert compiled(x).tolist() == reads(x).tolist() != before.tolist()


place = pathlib.Path("/nowhere")
file_of_numbers = io.StringIO("1")
database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("create table t (v)")
database.execute("insert into t values (1)")
number_of_c = ctypes.c_double(1.0)
weak = weakref.ref(thing)

HIDDEN = {
    "a file": (lambda x: x * float(place.read_text()), "opening a file"),
    "a file by open": (lambda x: x * float(open(place).read()), "opening a file"),
    "a file of arrays": (lambda x: x * np.loadtxt(place), "file"),
    "a file of numbers": (lambda x: x * np.fromfile(place, sep=" ")[0], "file"),
    "whether a file is there": (lambda x: x * place.exists(), "the system or its files"),
    "a folder": (lambda x: x * len(os.listdir(place.parent)), "the system or its files"),
    "where it is": (lambda x: x * len(os.getcwd()), "the system or its files"),
    "a file that is open": (lambda x: x * float(file_of_numbers.getvalue()), "iterator"),
    "a process": (lambda x: x * float(subprocess.check_output(["echo", "1"])), "a process"),
    "a clock": (lambda x: x * time.time(), "a clock"),
    "a clock by its name": (lambda x: x * perf_counter(), "a clock"),
    "the date": (lambda x: x * datetime.datetime.now().microsecond, "the clock"),
    "the thread": (lambda x: x * len(threading.current_thread().name), "current thread"),
    "settings of NumPy": (lambda x: x * len(np.geterr()["divide"]), "settings"),
    "a database": (lambda x: x * database.execute("select v from t").fetchone()[0], "Connection"),
    "a number of C": (lambda x: x * number_of_c.value, "c_double"),
    "a weak reference": (lambda x: x * weak().rate, "weak reference"),
    "a gradient": (lambda x: x * (1 + (x.grad is None)), "the gradient"),
    "whether it is a leaf": (lambda x: x * (1 + x.is_leaf), "is_leaf"),
    "a version": (lambda x: x * (1 + x._version), "_version"),
    "a text of a number": (lambda x: x * float(f"{x[0]:.1f}"), "the text"),
    "a text of an array": (lambda x: x * len(str(x)), "the text"),
}


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("what", HIDDEN)
def test_reads_of_outside_state_are_not_compiled(what, tmp_path):
    global place
    place = tmp_path / "numbers"
    place.write_text("2")
    reads, reason = HIDDEN[what]
    compiled = vg.compile(reads, executor="python")
    x = vg.Tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        compiled(x)
    assert compiled.specializations[0].program is None and reason in compiled.explain(), compiled.explain()


def test_reads_by_loggers_are_ignored():
    def told(x):
        logger.error("once more")
        return x * 2.0

    logger.setLevel(logging.ERROR)
    compiled = vg.compile(told, executor="python")
    for _ in range(4):
        compiled(vg.ones(2))
    assert compiled.specializations[0].program is not None, compiled.explain()


def test_a_tensor_stored_in_an_object_is_from_the_last_call():
    def keeping(x):
        kept.last = x * 2.0
        return (x * 2.0).sum()

    kept = types.SimpleNamespace(last=None)
    compiled = vg.compile(keeping, executor="python")
    for number in range(6):
        compiled(vg.Tensor([number, 1.0], requires_grad=True))
        assert kept.last.tolist() == [2.0 * number, 2.0]


def test_threads_have_programs_for_their_own_variables():
    def scaled(x):
        return (x * own.rate).sum()

    def work(number):
        own.rate = float(number)
        for _ in range(20):
            found[number].append(compiled(vg.ones(3)).item())

    own, found = threading.local(), collections.defaultdict(list)
    compiled = vg.compile(scaled, executor="python")
    in_threads(4, work)
    assert dict(found) == {number: [3.0 * number] * 20 for number in (0.0, 1.0, 2.0, 3.0)}


def test_arrays_of_the_standard_library_and_of_files_are_compared(tmp_path):
    numbers = array.array("d", [1.0])
    mapping = np.memmap(tmp_path / "numbers", float, "w+", shape=2)
    compiled = vg.compile(lambda x: (x * mapping * numbers[0]).sum(), executor="python")
    for call in range(9):
        numbers[0], mapping[1] = 1.0 + call // 3, call // 4
        assert compiled(vg.ones(2)).item() == (1.0 + call // 3) * (call // 4)
    assert compiled.specializations[0].program is not None, compiled.explain()


def test_transposed_arguments_are_copied_before_loops():
    def products(w, v):
        found = vg.zeros(5)
        for i in range(1, 6):
            found[i - 1] = (w[:i] @ v[:i]).sum()
        return (found * found).sum()

    compiled = vg.compile(products, executor="python")
    rng = np.random.default_rng(0)
    for _ in range(4):
        w, v = vg.Tensor(rng.normal(size=6)), vg.Tensor(rng.normal(size=(2, 6))).T.requires_grad_()
        value = compiled(w, v)
        np.testing.assert_allclose(value.item(), products(w, v).item(), rtol=1e-13)
    assert "5 times" in compiled.explain(), compiled.explain()


@pytest.mark.parametrize("name", ["voigt_profile", "expit"])
def test_cython_functions(name):
    function = getattr(pytest.importorskip("scipy.special.cython_special"), name)
    given = (1.0, 2.0, 3.0) if name == "voigt_profile" else (0.5,)
    compiled = vg.compile(lambda x: x * function(*given), executor="python")
    for _ in range(4):
        assert compiled(vg.ones(2))[0].item() == function(*given)
    assert compiled.specializations[0].program is not None, compiled.explain()


@pytest.mark.parametrize("scans", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_heap_scans_do_not_disturb_other_threads(scans, frequent_switches):
    def unpack():
        while not ended:
            try:
                (lambda *numbers: numbers)(*(number for number in range(30)))
            except SystemError as error:  # there was another reference to the tuple while it was made
                errors.append(error)

    ended, errors = [], []
    thread = threading.Thread(target=unpack)
    thread.start()
    for _ in range(scans):
        Existing()
    ended.append(True)
    thread.join()
    assert not errors


@pytest.mark.parametrize("rounds", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_threads_trace_and_verify_concurrently(rounds, frequent_switches):
    def scaled(x):
        y = x * own.rate
        return (y * y).sum()

    def work(number):
        own.rate = float(number)
        for call in range(12):
            x = vg.Tensor([1.0, 2.0 + 0.1 * (call % 3)], requires_grad=True)
            value = compiled(x)
            found[number].append((value.item(), vg.autograd.grad(value, x)[0].tolist()))
            expected = scaled(x)
            wanted[number].append((expected.item(), vg.autograd.grad(expected, x)[0].tolist()))

    for _ in range(rounds):
        own, found, wanted = threading.local(), collections.defaultdict(list), collections.defaultdict(list)
        compiled = vg.compile(scaled, executor="python")
        in_threads(4, work)
        assert {len(each) for each in found.values()} == {12} and found == wanted
