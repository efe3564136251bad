"""The documentation is true: its code runs, prints the output shown, and its references exist.

In a Markdown file, the blocks fenced as ```python are run in order, in one namespace. A block is either a console
session with `>>>`, or plain code; what plain code prints is shown right after it in a block fenced as ```output, or as
```mermaid where it is a drawing. A comment `<!-- picture: ... -->` is an expression that makes a picture for the site.
"""

import contextlib
import doctest
import functools
import gc
import importlib
import inspect
import io
import linecache
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import viewgrad
from viewgrad.drawing import graph_svg, memory_strip
from viewgrad.operators.define import OPERATORS
from viewgrad.operators.language.namespace import TENSOR_FUNCTIONS

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "docs" / "peers"
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(
    path for folder in ("viewgrad", "tests", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(viewgrad.__path__, "viewgrad.") if "__main__" not in module.name
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n*^```(?:output|mermaid)\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
# A picture that the site shows; see docs/building/blocks.py.
PICTURE = re.compile(r"^<!-- picture: (?P<expression>.*?)(?: # .*?)? -->$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def compiled_from_source(monkeypatch):
    """Compile functions as users do: from their source, if possible."""
    monkeypatch.setattr("viewgrad.compiler.api.SPECIALIZE", False)


@pytest.fixture(autouse=True)
def operators_as_before():
    """Remove the operators and functions for formulas that the documentation defines."""
    operators, functions = set(OPERATORS), set(vars(TENSOR_FUNCTIONS))
    yield
    for name in OPERATORS.keys() - operators:
        del OPERATORS[name]
    for name in vars(TENSOR_FUNCTIONS).keys() - functions:
        delattr(TENSOR_FUNCTIONS, name)


def page_id(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=page_id)
@pytest.mark.filterwarnings("ignore::viewgrad.errors.NonLeafGradWarning")  # shown in an answer of the FAQ
def test_page(path):
    text = path.read_text()
    if path.parent.name != "semantics" and path.name != "errors.md":
        run_blocks(text, {"__name__": "__main__"}, path)
        return
    # Each section runs by itself, after the lines at the top of the page.
    beginning, *sections = re.split(r"^(?=##+ )", text, flags=re.MULTILINE)
    for section in sections:
        before = text.count("\n", 0, text.index(section))
        names = {"__name__": "__main__"}
        run_blocks(beginning, names, path)
        run_blocks(section, names, path, before)


def run_blocks(text, names, path, before=0):
    """Run the code blocks of a text that starts `before` lines into its file."""
    names |= {"memory_strip": memory_strip, "graph_svg": graph_svg}
    for match in sorted([*BLOCK.finditer(text), *PICTURE.finditer(text)], key=lambda match: match.start()):
        if match.re is PICTURE:
            picture = eval(match["expression"], names)
            assert hasattr(picture, "_repr_svg_") or hasattr(picture, "savefig"), match[0]
            continue
        line = before + text.count("\n", 0, match.start("code"))
        if ">>>" in match["code"]:
            run_session(match["code"], names, path, line)
        else:
            run_block(match["code"], match["output"] or "", names, path, line)


@contextlib.contextmanager
def without_collections():
    """Disable the garbage collector, which would remove sources from `linecache` while doctest reads it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run_session(code, names, path, line):
    report = io.StringIO()
    test = doctest.DocTestParser().get_doctest(code, names, f"{page_id(path)}, line {line}", str(path), line)
    test.globs = names
    for number, example in enumerate(test.examples):  # later blocks may use names of earlier ones
        name = f"<doctest {test.name}[{number}]>"
        linecache.cache[name] = len(example.source), None, example.source.splitlines(keepends=True), name
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    with without_collections():
        runner.run(test, out=report.write, clear_globs=False)
    assert not runner.failures, report.getvalue()


def run_block(code, expected, names, path, line):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + code, str(path), "exec"), names)
    checker = doctest.OutputChecker()
    example = doctest.Example(code, expected)
    if not checker.check_output(example.want, printed.getvalue(), FLAGS):
        difference = checker.output_difference(example, printed.getvalue(), FLAGS)
        pytest.fail(f"{page_id(path)}, line {line + 1}:\n{code}\n{difference}", pytrace=False)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's warning, which modes detect
def test_docstring_examples(name):
    for needed in ("jax", "mygrad", "pytensor", "torch"):
        if re.search(rf"(backends|interop)\.{needed}", name.replace("pytorch", "torch")):
            pytest.importorskip(needed)
    module = importlib.import_module(name)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        with without_collections():
            runner.run(test, out=report.write)
    assert not runner.failures, report.getvalue()


def test_pages_have_code():
    counts = {page_id(path): len(BLOCK.findall(path.read_text())) for path in PAGES}
    assert counts["README.md"] >= 2
    assert sum(counts.values()) > 10


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            file, _, anchor = target.partition("#")
            aimed = (path.parent / file).resolve() if file else path
            assert aimed.exists(), f"{page_id(path)} links to {target}"
            if anchor:
                assert anchor in anchors(aimed), f"{page_id(path)} links to {target}"


def anchors(path):
    """Return the anchors of the headings of a Markdown file."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# -- what other libraries do -----------------------------------------------------------------------------------------


@pytest.fixture
def peers(monkeypatch):
    """Return the package of programs for other libraries, imported as by a script."""
    monkeypatch.syspath_prepend(str(PEERS))
    names = ("programs", "features", "libraries")
    page = runpy.run_path(str(PEERS / "__main__.py"), run_name="peers")
    yield page
    for name in names:
        sys.modules.pop(name, None)


def test_tables_show_the_printed_output(peers):
    text = (ROOT / "docs" / "comparison.md").read_text()
    assert text == peers["with_tables"](text, peers["load"]()), "run `python docs/peers`"
    shown = re.findall(r"<!-- peers: (\w+) -->", text)
    assert sorted(shown) == sorted([*peers["PROGRAMS"], *peers["FEATURES"]])
    assert "not tried" not in text


def test_every_program_returns_the_gradient_or_the_documented_error(peers):
    from libraries import NumPy, Viewgrad

    found = {key: peers["outcome"](Viewgrad(), NumPy(), key) for key in peers["PROGRAMS"]}
    refused = {key: text for key, text in found.items() if text != "the gradient"}
    assert refused.keys() == peers["REFUSED_HERE"] & peers["PROGRAMS"].keys(), refused
    assert refused["write_to_exported_array"] == "ValueError: assignment destination is read-only"
    assert refused["write_to_broadcast"].startswith("OverlappingWriteError")
    assert refused["write_to_input"].startswith("LeafInPlaceError")


@pytest.mark.parametrize("replay", [False, True])
def test_every_program_has_second_derivatives_and_tangents(peers, replay):
    from libraries import Viewgrad

    library = Viewgrad()
    for key, (program, inputs) in peers["PROGRAMS"].items():
        if key in ("long_chain", "write_to_exported_array", "write_to_broadcast"):  # too long, or refused
            continue
        single = any(x.dtype == np.float32 for x in inputs)
        coarse = {"eps": 1e-2, "atol": 2e-2, "rtol": 2e-2} if single else {}
        leaves = [viewgrad.Tensor(x, requires_grad=True) for x in inputs]
        with viewgrad.view_replay(replay):
            check = functools.partial(program, library)
            assert viewgrad.autograd.gradcheck(check, leaves, adopt=False, check_forward_ad=True, **coarse)
            assert viewgrad.autograd.gradgradcheck(check, leaves, adopt=False, check_forward_ad=True, **coarse)


# -- what the documentation and the code say of each other -----------------------------------------------------------


def test_every_note_that_the_code_names_exists():
    written = {}
    for path in (ROOT / "docs" / "notes").glob("*.md"):
        for title in re.findall(r"^#+ Note \[(.+)\]$", path.read_text(), re.MULTILINE):
            assert title not in written, f"Note [{title}] is in {written[title]} and in {path.name}"
            written[title] = path.name
    assert written
    named = {}
    for path in (*SOURCES, *PAGES):
        for title in re.findall(r"Note\s+\\?\[([^\\\]]+)\\?\]", path.read_text()):
            title = " ".join(title.replace("#", " ").split())
            if path != Path(__file__):
                named.setdefault(title, page_id(path))
    assert {title: where for title, where in named.items() if title not in written} == {}
    # A note without references explains something that was removed.
    in_code = {" ".join(t.split()) for p in SOURCES for t in re.findall(r"Note\s+\[([^\]]+)\]", p.read_text())}
    assert set(written) <= in_code


# Errors that the compiler catches itself, and whose programs print the message.
CAUGHT = {"NotCompiledError": "runs eagerly: arrays of int8", "TraceTooLongError": "operations belong to no loop"}


def test_each_error_has_a_section_with_a_program_that_raises_it():
    page = ROOT / "docs" / "guides" / "errors.md"
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page.read_text(), re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(viewgrad.errors.__all__)
    for name, text in sections.items():
        shown = f"\n  {CAUGHT[name]}" if name == "NotCompiledError" else CAUGHT.get(name, f"\nviewgrad.errors.{name}: ")
        (program,) = BLOCK.findall(text)
        assert shown in program[0], name
        assert re.search(r"^- ", text.rpartition("```")[2], re.MULTILINE), f"{name} has no way out"


def test_the_text_of_each_error_ends_with_the_place_of_its_section():
    page = ROOT / "docs" / "guides" / "errors.md"
    defined = {
        name for name, value in vars(viewgrad.errors).items() if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert defined == set(viewgrad.errors.__all__)
    for name in viewgrad.errors.__all__:
        error = getattr(viewgrad.errors, name)("what happened")
        assert error.page == f"{viewgrad.errors.SITE}/guides/errors/#{name.lower()}" and error.section == name
        assert error.page.partition("#")[2] in anchors(page)
        assert error.message == "what happened"
        assert str(error) == f"what happened\nSee help(viewgrad.errors.{name}), or {error.page}"


def words(text):
    """Return the words of a text, without links and line breaks."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).split()


def test_help_of_an_error_holds_its_section():
    """The page and the docstring contain the same explanation, fixes and program."""
    page = ROOT / "docs" / "guides" / "errors.md"
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page.read_text(), re.MULTILINE | re.DOTALL))
    for name, text in sections.items():
        told = inspect.getdoc(getattr(viewgrad.errors, name))
        explained = " ".join(words(text.rpartition("```")[2]))
        assert explained in " ".join(words(told)), name
        (program,) = BLOCK.findall(text)
        for line in program[0].splitlines():
            if line.startswith((">>> ", "... ")):
                assert line in told, (name, line)


def test_derived_errors_refer_to_the_section_of_their_base():
    for module in MODULES:
        if ".backends." not in module and ".interop." not in module:  # these import other libraries
            importlib.import_module(module)
    found = [viewgrad.errors.AutogradError]
    for error in found:
        found += error.__subclasses__()
    assert len(found) > len(viewgrad.errors.__all__) - 3
    assert {error.section for error in found} <= set(viewgrad.errors.__all__)


@pytest.mark.parametrize("package", ["viewgrad", "viewgrad.autograd"])
def test_public_names_are_documented(package):
    module = importlib.import_module(package)
    assert module.__all__
    without = [
        name
        for name in set(module.__all__) - {"newaxis"}
        if not (getattr(module, name).__doc__ or "").strip()
        or (inspect.isclass(getattr(module, name)) and "__doc__" not in vars(getattr(module, name)))
    ]
    assert without == []


def test_public_methods_of_tensor_are_documented():
    without = [
        name
        for name, value in vars(viewgrad.Tensor).items()
        if not name.startswith("_") and not (getattr(value, "__doc__", None) or "").strip()
    ]
    assert without == []
