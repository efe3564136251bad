"""`viewgrad.testing.kit.sources` returns the source that defines a function or class, or raises an error."""

import linecache
import sys
import types

import pytest

from viewgrad.testing.kit.sources import source_text

DEFINITION = "class Scaled:\n    def scale(self, x):\n        return 2.0 * x\n"


def defined_in(module, file):
    """Execute DEFINITION in a module, as text of another file."""
    linecache.cache[file] = (len(DEFINITION), None, DEFINITION.splitlines(keepends=True), file)
    exec(compile(DEFINITION, file, "exec"), vars(module))
    return module.Scaled


def test_a_class_that_is_not_in_the_file_of_its_module_has_no_source(monkeypatch, tmp_path):
    path = tmp_path / "program.py"
    path.write_text('"""Another program."""\n')
    module = types.ModuleType("entered")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "entered", module)
    cls = defined_in(module, "<entered 1>")
    with pytest.raises(OSError):
        source_text(cls)
    assert source_text(cls.scale) == "    def scale(self, x):\n        return 2.0 * x\n"


def test_the_source_of_a_class_in_a_file(monkeypatch, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(DEFINITION)
    module = types.ModuleType("written")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "written", module)
    assert source_text(defined_in(module, str(path))) == DEFINITION
