"""The selection of the default suite and of shards: stable, small, complete."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from selection import cases_of, left_to_the_nightly_run, shard_of
from shards import fingerprint, shard

IDS = [f"tests/test_memory.py::test_{name}[{case}]" for name in "ab" for case in range(50)]
CASES = cases_of("tests/test_memory.py::test_a")


def test_parametrised_tests_keep_a_few_cases():
    kept = set(IDS) - left_to_the_nightly_run(IDS)
    assert Counter(test.partition("[")[0][-1] for test in kept) == {"a": CASES, "b": CASES}


def test_tests_with_few_cases_and_the_documentation_run_whole():
    assert left_to_the_nightly_run([*IDS[:CASES], "tests/test_memory.py::test_c"]) == set()
    assert left_to_the_nightly_run(f"tests/test_docs.py::test_page[{case}]" for case in range(50)) == set()


def test_a_new_case_displaces_at_most_one_other():
    for new in range(200):
        fewer = set(IDS) - left_to_the_nightly_run(IDS)
        more = set(IDS) - left_to_the_nightly_run([*IDS, f"tests/test_memory.py::test_a[new {new}]"])
        assert more <= fewer and len(fewer - more) <= 1


def test_the_selection_does_not_depend_on_the_order_of_collection():
    assert left_to_the_nightly_run(IDS) == left_to_the_nightly_run(IDS[::-1])


def test_each_test_is_in_one_shard():
    sizes = Counter(shard_of(test, 6) for test in IDS)
    assert sum(sizes.values()) == len(IDS)
    assert sizes.keys() == {1, 2, 3, 4, 5, 6}


def test_shards_have_the_same_tests_on_every_machine():
    assert [shard_of(test, 6) for test in IDS[:8]] == [3, 6, 6, 4, 2, 4, 1, 4]


def test_shards_are_numbered_from_one():
    assert shard("2/6") == (2, 6)
    for wrong in ("0/6", "7/6", "6", "1/0", "a/b"):
        with pytest.raises(ValueError, match="a shard is written like 2/6"):
            shard(wrong)


def test_other_code_or_another_seed_is_another_run():
    assert fingerprint(0) == fingerprint(0) != fingerprint(1)


@pytest.fixture
def suite(tmp_path):
    """Return a separate suite with the plugins of this one."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("selection.py", "shards.py", "cpu_times.py"):
        (folder / name).write_text(Path(__file__).with_name(name).read_text())
    (folder / "conftest.py").write_text(
        "pytest_plugins = ['cpu_times', 'shards']\n"
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--programs-seed', type=int, default=0)\n"
    )
    for name in ("pyproject.toml", "README.md", "_viewgrad_pytestplugin.py"):
        (tmp_path / name).touch()
    (folder / "test_small.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('number', range(40))\n"
        "def test_number(number):\n"
        "    assert number != 3\n"
    )

    def run(*options):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", *options]
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_a_run_resumes_with_tests_that_have_not_passed(suite, workers):
    first = suite("--resume", *workers)
    assert "1 failed, 39 passed" in first.stdout
    assert "shard 1/1: 40 of 40 tests, 1 failed" in first.stdout
    second = suite("--resume", *workers)
    assert "1 failed" in second.stdout and "passed" not in second.stdout.splitlines()[-1]


def test_shards_run_all_tests_together(suite):
    shards = [suite("--shard", f"{number}/3").stdout.splitlines()[-1] for number in (1, 2, 3)]
    assert sum(int(line.partition(" passed")[0].split()[-1]) for line in shards) == 39


def test_passed_tests_are_not_rerun(suite):
    suite("--resume", "--deselect", "tests/test_small.py::test_number[3]")
    again = suite("--resume", "--deselect", "tests/test_small.py::test_number[3]")
    assert again.returncode == 0 and "passed" not in again.stdout, again.stdout


def test_a_killed_run_resumes_with_the_tests_that_had_not_ended(suite, tmp_path):
    (tmp_path / "tests" / "test_small.py").write_text(
        "import os, signal\n"
        "from pathlib import Path\n"
        "import pytest\n"
        "@pytest.mark.parametrize('number', range(40))\n"
        "def test_number(number):\n"
        "    if number == 15 and not Path('killed').exists():\n"
        "        Path('killed').touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert suite("--resume").returncode == -signal.SIGKILL
    again = suite("--resume")
    assert again.returncode == 0 and "25 passed" in again.stdout, again.stdout
