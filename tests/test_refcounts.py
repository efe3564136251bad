"""Reference counts: the probes, and results without the shortcuts that rely on them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import viewgrad
from viewgrad.operators.codegen.node_writer import NodeWriter
from viewgrad.operators.define import OPERATORS
from viewgrad.tensor import refcounts

SWITCHED_OFF = os.environ.get("VIEWGRAD_REFERENCE_COUNTS") == "0"
PACKAGE = Path(viewgrad.__file__).parent
TESTS = Path(__file__).parent


class Thing:
    __slots__ = ("held",)


@pytest.mark.parametrize("name", refcounts.PROBES)
def test_probes_count_every_holder(name):
    probe = refcounts.PROBES[name]
    alone = probe(Thing)
    assert alone > 0
    kept = []

    def by_container(number):
        def make():
            thing = Thing()
            kept.append([thing] * number)
            return thing

        return make

    for number in (1, 2, 5):
        assert probe(by_container(number)) == alone + number

    def by_attribute():
        holder = Thing()
        holder.held = Thing()
        kept.append(holder)
        return holder.held

    def by_closure():
        thing = Thing()
        kept.append(lambda: thing)
        return thing

    def by_default():
        thing = Thing()
        kept.append(lambda thing=thing: thing)
        return thing

    for make in (by_attribute, by_closure, by_default):
        assert probe(make) == alone + 1
    outer = Thing()  # a variable of a function that has not returned
    assert probe(lambda: outer) > alone


@pytest.mark.parametrize("name", refcounts.PROBES)
def test_probes_count_variables_of_other_threads(name):
    probe = refcounts.PROBES[name]
    handed = []
    have, done = threading.Event(), threading.Event()

    def hold():
        thing = Thing()
        handed.append(thing)
        have.set()
        done.wait()
        assert thing is not None

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        have.wait()
        assert probe(handed.pop) == probe(Thing) + 1
    finally:
        done.set()
        thread.join()


@pytest.mark.skipif(SWITCHED_OFF, reason="switched off on purpose")
def test_probes_match_reference_counts_of_this_interpreter():
    # If this fails, the library is correct but slow: it copies everything that might be shared.
    assert refcounts.TRUSTED
    for name, probe in refcounts.PROBES.items():
        assert getattr(refcounts, name) == probe(Thing) > 0


def test_probes_with_unexpected_counts_are_not_trusted():
    assert refcounts.checked_count(lambda make: 2) is None
    assert refcounts.checked_count(lambda make: refcounts.getrefcount(make()) * 2) is None
    assert refcounts.checked_count(lambda make: sys.maxsize) is None
    assert refcounts.checked_count(lambda make: refcounts.getrefcount(make())) is not None


def test_counts_are_compared_with_these_constants_only():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if path.name == "refcounts.py" or "getrefcount" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            calls = [n for n in ast.walk(node) if isinstance(n, ast.Call) and ast.unparse(n.func) == "getrefcount"]
            if isinstance(node, ast.Compare) and calls:
                assert ast.unparse(node.comparators[0]) in refcounts.PROBES, f"{path}: {ast.unparse(node)}"
                found.add(ast.unparse(node.comparators[0]))
            if isinstance(node, ast.ImportFrom) and node.module == "sys":
                assert "getrefcount" not in [alias.name for alias in node.names], path
            if isinstance(node, ast.Attribute) and node.attr == "getrefcount":
                raise AssertionError(f"{path}: {ast.unparse(node)}")
    assert found | {"ALONE_IN_NODE"} == set(refcounts.PROBES)  # ALONE_IN_NODE is compared in generated code


def test_parameters_whose_references_are_counted_have_no_second_name():
    """CPython 3.14 does not count a variable that is assigned from a borrowed parameter."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        for function in ast.walk(ast.parse(text)) if "getrefcount(" in text else ():
            if not isinstance(function, ast.FunctionDef):
                continue
            nodes = list(ast.walk(function))
            names = {node.arg for node in nodes if isinstance(node, ast.arg)}
            calls = [n for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "getrefcount"]
            counted = names & {getattr(call.args[0], "id", "") for call in calls}
            if function.name == "run_scalars":  # its argument is a number; it reads arrays from the buffers
                counted -= {"grad"}
            found |= {(function.name, name) for name in counted}
            assignments = [n for n in nodes if isinstance(n, (ast.Assign, ast.NamedExpr, ast.AnnAssign))]
            assert not counted & {getattr(n.value, "id", "") for n in assignments}, f"{path}: {function.name}"
    assert ("_accumulate", "grad") in found


def test_generated_nodes_compare_the_names_of_a_gradient_before_they_overwrite_it():
    tests = []
    for operator in OPERATORS.values():
        if not operator.formulas:
            continue
        for function in ast.walk(ast.parse(NodeWriter(operator, "Backward").source())):
            if not isinstance(function, ast.FunctionDef) or "consume" not in function.name:
                continue
            aliases = set()
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and ast.unparse(node.value) == "grad":
                    aliases.add(ast.unparse(node.targets[0]))
            for node in ast.walk(function):
                if isinstance(node, ast.If) and "getrefcount" in ast.unparse(node.test):
                    tests.append(operator.name)
                    assert all(f"{alias} is not grad" in ast.unparse(node.test) for alias in aliases), operator.name
    assert {"sub", "mul", "neg"} <= set(tests)


RUN = """
import sys
import numpy as np
import pytest
import viewgrad as vg
from viewgrad.tensor import refcounts

assert not refcounts.TRUSTED
assert {getattr(refcounts, name) for name in refcounts.PROBES} == {refcounts.NEVER_ALONE}
x = vg.ones(3, requires_grad=True)
(x * 1).sum().backward()
first = x.grad._array
(x * 1).sum().backward()
assert x.grad._array is not first and x.grad.tolist() == [2.0] * 3
sys.exit(pytest.main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(SWITCHED_OFF, reason="this is the process that is started")
def test_drawn_programs_have_the_same_gradients_without_any_of_the_shortcuts():
    selected = "finite_differences or third_order or leave_values or without_writing or restricted or hooks_see"
    arguments = ["-q", "-p", "no:cacheprovider", "--programs=64", "-k", selected]
    result = subprocess.run(
        [sys.executable, "-c", RUN, *arguments, TESTS / "test_programs.py", TESTS / "test_engine.py"],
        env={**os.environ, "VIEWGRAD_REFERENCE_COUNTS": "0", "PYTHONPATH": str(PACKAGE.parent)},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert " passed" in result.stdout


def test_a_build_without_the_global_lock_is_refused_at_import():
    code = "import sys; sys._is_gil_enabled = lambda: False; import viewgrad"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode != 0
    assert "ImportError: viewgrad needs Python's global interpreter lock" in run.stderr
    assert "PYTHON_GIL=1" in run.stderr


def test_counts_come_from_the_checked_run(monkeypatch):
    """A debugger that holds objects after the check must not change the constants."""
    assert refcounts.COUNTS.keys() == refcounts.PROBES.keys()
    before = {name: refcounts._count(name) for name in refcounts.PROBES}
    kept = []

    def holding(make):
        kept.append(make())
        return 99

    monkeypatch.setattr(refcounts, "PROBES", dict.fromkeys(refcounts.PROBES, holding))
    assert {name: refcounts._count(name) for name in refcounts.COUNTS} == before and not kept
    assert refcounts.checked_count(holding) is None
