"""The shape of the code: imports, layers, complexity, and the names that the documentation mentions."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest
from operator_samples.trials import TRIALS

import viewgrad
from viewgrad.operators import OPERATORS

PACKAGE = Path(viewgrad.__file__).parent
DOCS = PACKAGE.parent / "docs"
# Each layer imports only from earlier layers. Modules without a layer are namespaces above all layers.
FLOORS = [
    *("errors", "progress", "type_aliases", "tensor", "adoption", "views", "operators", "autograd"),
    *("func", "trace", "symbolic", "compiler", "testing"),
]
CORE = FLOORS[:8]  # packages that do not print programs
# Functions of a complexity above 15, each with a reason beside its name.
INTRICATE = {
    ("autograd/fast_engine.py", "run"),
    ("autograd/scalar_engine.py", "run_scalars"),
}


FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@functools.cache
def trees():
    """Return the syntax trees of all modules."""
    return {name: ast.parse(path.read_text()) for name, path in FILES.items()}


@pytest.fixture(scope="module", autouse=True)
def trees_of_this_file_alone():
    yield
    trees.cache_clear()


def is_for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_when_imported(tree):
    """Return the import statements that run when the module is imported."""
    nodes = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_for_types_only(node):
            nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.ExceptHandler)]


def imported(name):
    """Yield the modules of the package that a module imports."""
    is_package = FILES[name].name == "__init__.py"
    for node in imports_when_imported(trees()[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
            continue
        parts = name.split(".")
        parts = parts[: len(parts) - node.level + is_package] if node.level else []
        source = ".".join([*parts, *([node.module] if node.module else [])])
        for alias in node.names:
            if f"{source}.{alias.name}" in FILES:
                yield f"{source}.{alias.name}"
            elif source in FILES:
                yield source


def imports():
    """Return, for each module, the modules of the package that it imports."""
    return {name: set(imported(name)) - {name} for name in FILES}


def floor_of(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_no_import_cycle():
    left = {name: set(found) for name, found in imports().items()}
    while left:
        free = [name for name, found in left.items() if not found & left.keys()]
        assert free, f"a cycle among {sorted(left)}"
        for name in free:
            del left[name]


def test_layers_import_only_from_layers_below():
    for name, found in imports().items():
        if floor_of(name) in FLOORS:
            for other in found - {"viewgrad"}:  # the package itself, which drawn programs import as `vg`
                assert floor_of(other) in FLOORS[: FLOORS.index(floor_of(name)) + 1], f"{name} imports {other}"
        assert "viewgrad" not in found or floor_of(name) not in CORE, name


def test_no_import_for_types_alone_points_upward():
    for name, tree in trees().items():
        for block in ast.walk(tree):
            if not is_for_types_only(block) or floor_of(name) not in FLOORS:
                continue
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    parts = name.split(".") if node.level else []
                    parts = parts[: len(parts) - node.level + (FILES[name].name == "__init__.py")]
                    source = ".".join([*parts, *([node.module] if node.module else [])])
                    if source.startswith("viewgrad.") and floor_of(source) in FLOORS:
                        below = FLOORS[: FLOORS.index(floor_of(name)) + 1]
                        assert floor_of(source) in below, f"{name} imports {source} for its types"


def test_no_import_hides_in_a_function_to_break_a_cycle():
    for name, tree in trees().items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                for node in ast.walk(function):
                    where = f"{name}:{getattr(node, 'lineno', '')}"
                    if isinstance(node, ast.ImportFrom):
                        assert not node.level and not (node.module or "").startswith("viewgrad"), where
                    if isinstance(node, ast.Import):
                        assert not any(a.name.startswith("viewgrad") for a in node.names), where


# Modules other than packages and namespaces whose names users import.
LISTED = {
    "viewgrad.autograd.forward_ad", "viewgrad.autograd.functional", "viewgrad.standard.linear_algebra",
    "viewgrad.views.view_ops",
}  # fmt: skip


def test_only_public_modules_list_their_names():
    """In private modules an underscore marks the helpers; imports say which other names are used where."""
    for name, tree in trees().items():
        lists = any(isinstance(node, ast.Assign) and ast.unparse(node.targets) == "__all__" for node in tree.body)
        if lists and FILES[name].name != "__init__.py" and name.count(".") > 1:
            assert name in LISTED or floor_of(name) in ("numpy", "scipy", "interop"), f"{name}: remove __all__"


def test_intricate_functions_are_few_and_say_why():
    excused = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in FILES.values()
        for name in re.findall(r"def (\w+)\(.*# noqa: C901 - \w", path.read_text())
    }
    assert excused == INTRICATE
    rules = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert "C901" in rules["select"] and rules["mccabe"]["max-complexity"] == 15
    for pattern, ignored in rules["per-file-ignores"].items():
        assert "C901" not in ignored or not pattern.startswith("viewgrad"), pattern


def defined(tree):
    """Return the names of functions, classes and methods, and of global variables of a module."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
            names |= {f"{node.name}.{child.name}" for child in node.body if isinstance(child, ast.FunctionDef)}
        if isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
    return names


def test_names_on_the_architecture_page_exist():
    text = (DOCS / "architecture.md").read_text()
    found = re.findall(r"`([\w/]+\.py): ([\w.]+)`", text)
    assert len(found) > 30
    for path, name in found:
        module = "viewgrad." + path.removesuffix(".py").replace("/", ".")
        assert module in FILES, path
        inherited = [other for tree in trees().values() for other in defined(tree)]
        assert name in defined(trees()[module]), (path, [other for other in inherited if other.endswith(name)])
    for path in re.findall(r"`([\w/]+\.py)[`:]", text):
        assert (PACKAGE / path).exists() or (PACKAGE.parent / path).exists(), path


def test_begin_part_rebases_the_history_of_a_base_in_one_line():
    text = (DOCS / "architecture.md").read_text()
    assert "`views/rebase_history.py: begin_part`" in text and "`base._edge = slices`" in text
    source = FILES["viewgrad.views.rebase_history"].read_text()
    (function,) = re.findall(r"\ndef begin_part\(.*?(?=\n\n\n)", source, re.DOTALL)
    assert function.count("    base._edge = slices\n") == 1


def test_the_write_protocol_has_one_home():
    """Nothing else begins a write and rolls it back; a Function's `mark_dirty` records one that is already made."""
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                called = node.func.id
                assert called != "abandon_write", f"{name}:{node.lineno}"
                if called in ("begin_write", "begin_copy", "finish_write"):
                    assert name == "viewgrad.views.rebase_history", f"{name}:{node.lineno}"


def test_no_helper_of_the_compiler_receives_a_compiled_function_or_changes_a_specialization():
    owners = {"viewgrad.compiler.api", "viewgrad.compiler.cache"}
    slots = {"state", "cooldown", "fallback_reason", "near_singular_lines", "usage", "failures"}
    for name, tree in trees().items():
        if not name.startswith("viewgrad.compiler.") or name in owners:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                for argument in arguments:
                    text = ast.unparse(argument.annotation) if argument.annotation else ""
                    assert not re.search(r"\bCompiled\b", text), f"{name}: {node.name}({argument.arg})"
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                assert node.attr not in slots, f"{name}:{node.lineno}"


def test_lowering_handlers_use_the_public_context():
    for name, tree in trees().items():
        if not name.startswith("viewgrad.compiler.lower.") or name.endswith(".context"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "of":
                assert not node.attr.startswith("_"), f"{name}:{node.lineno}"


def test_one_function_changes_the_state_of_specializations():
    trace = {"state", "trace", "program", "cooldown", "fallback_reason", "near_singular_lines", "usage"}
    source = {"reason", "programs", "wraps", "lowers", "verified", "leaf_types", "failures_in_row"}
    slots_of = {
        "viewgrad.compiler.api": trace, "viewgrad.compiler.cache": trace,
        "viewgrad.compiler.source.tier": source | {"source"}, "viewgrad.compiler.source.specialization": source,
    }  # fmt: skip
    for name, slots in slots_of.items():
        for function in ast.walk(trees()[name]):
            if isinstance(function, ast.FunctionDef) and function.name != "transition":
                for node in ast.walk(function):
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                        assert node.attr not in slots, f"{name}:{node.lineno}"


# -- the tables of derivatives -----------------------------------------------------------------------------------------

TABLES, SAMPLES = PACKAGE / "operators" / "derivatives", Path(__file__).parent / "operator_samples"


def test_tables_hold_derivatives_and_nothing_for_tests():
    for path in TABLES.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            where = f"{path.name}:{getattr(node, 'lineno', '')}"
            if isinstance(node, ast.Call):
                assert not {keyword.arg for keyword in node.keywords} & {"domain", "samples", "reference"}, where
            if isinstance(node, ast.ImportFrom):
                assert "samples" not in (node.module or ""), where


def test_each_file_of_samples_has_a_table():
    own = {"__init__.py", "functionalize.py", "trials.py"}
    for path in SAMPLES.rglob("*.py"):
        if path.name not in own:
            assert (TABLES / path.relative_to(SAMPLES)).exists(), path


def test_every_trial_belongs_to_an_operator():
    if viewgrad.operators.derivatives.special_functions.special is None:
        pytest.skip("some operators need SciPy")
    assert TRIALS.keys() <= OPERATORS.keys()


# -- assertions --------------------------------------------------------------------------------------------------------

# The calls allowed in assertions: they have no effects, since `python -O` removes assertions.
PURE_CALLS = {
    "all", "any", "bool", "difference", "endswith", "isinstance", "issubclass", "len", "startswith", "type", "values",
}


def stores(function):
    """Return whether a function stores something in an object."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(function)
    )


@functools.cache
def lazy_properties():
    """Return the names of properties that store their result, or call a method that does."""
    functions = [f for tree in trees().values() for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    storing = {function.name for function in functions if stores(function)}
    return {
        function.name
        for function in functions
        if any(ast.unparse(decorator).endswith("property") for decorator in function.decorator_list)
        and (stores(function) or storing & set(re.findall(r"self\.(\w+)\(", ast.unparse(function))))
    }


def effects_in(assertion):
    """Return the parts of an assertion that may have side effects."""
    for node in ast.walk(assertion):
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            yield ast.unparse(node)
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called not in PURE_CALLS:
                yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr in lazy_properties():
            yield ast.unparse(node)


def test_assertions_have_no_effects():
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                assert not list(effects_in(node)), f"{name}:{node.lineno}"


def test_effects_in_assertions_are_found():
    assert {"code", "reading"} <= lazy_properties()
    for text in ("operator.code is not None", "(x := f) > 2", "stack.pop() is node", "operator.reading"):
        assert list(effects_in(ast.parse(f"assert {text}").body[0])), text
    assert not list(effects_in(ast.parse("assert isinstance(x, A) and x.node is not None").body[0]))


# -- the private slots of a tensor; the rule is stated at `Tensor.__slots__` -------------------------------------------

# The functions that make tensors.
MAKERS = {"tensor/tensor.py", "views/construct.py", "views/basic_indexing.py"}
# The functions that replace the array of an existing tensor, and why.
MOVERS = {
    "autograd/modes/functionalize.py",  # a write replaces the value
    "func/functionalize.py",  # and the earlier value is restored
    "numpy/grids.py",
    "operators/numpy_api/methods.py",  # x.shape = ..., of a tensor whose memory is not shared
    "trace/tracing/memory.py",  # a scalar gets a number that identifies it
    "tensor/tangents.py",  # the root of a dual tensor, which is not a tensor
}


def writers_of(slot):
    """Return the modules that assign to an attribute of that name."""
    found = set()
    for name, path in FILES.items():
        for node in ast.walk(trees()[name]) if slot in path.read_text() else ():
            if isinstance(node, ast.Attribute) and node.attr == slot and isinstance(node.ctx, ast.Store):
                found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_few_modules_write_the_array_of_a_tensor():
    assert writers_of("_array") == MAKERS | MOVERS


# -- the tests ---------------------------------------------------------------------------------------------------------


def test_modules_of_tests_have_a_docstring_and_a_subject():
    for path in sorted((PACKAGE.parent / "tests").glob("test_*.py")):
        head, _, _ = path.read_text().partition("\nimport ")  # the module is parsed below
        assert ast.get_docstring(ast.parse(head)), path.name
        assert not re.search("regression|misc|other|structure", path.name), path.name
