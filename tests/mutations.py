"""Faults inserted into the library one at a time. The default suite must detect each fault.

A mutation replaces one text of one file. `python tests/mutations.py` applies each to a copy of the package, runs the
tests that may find it, and prints what has survived:

    python tests/mutations.py                  # all of them
    python tests/mutations.py engine           # those whose name or file contains a word
    python tests/mutations.py --list

That each text occurs exactly once in its file is tested by `test_mutation_table.py`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = ["-q", "-x", "-m", "not nightly", "-p", "no:cacheprovider", "--tb=no"]
DEFAULT = ["--programs", "40", "--interpreted-kernels"]
TIMEOUT = 300.0  # seconds; a fault that makes a test run for ever has been found


class Mutation(NamedTuple):
    """A fault: `old` becomes `new` in a file of the package; the files of tests that may find it, the likeliest first."""

    name: str
    file: str
    old: str
    new: str
    tests: str


def faults(file: str, tests: str, *changes: tuple[str, str, str]) -> list[Mutation]:
    """Return mutations of one file."""
    return [Mutation(name, file, old, new, tests) for name, old, new in changes]


MUTATIONS = [
    # -- versions, and saved values ------------------------------------------------------------------------------------
    *faults(
        "tensor/storage.py", "copy_slices tensor graph programs",
        ("a write to a whole tensor is not counted",
         "        storage.preserve(tensor._array, root_index(tensor, storage), writer)\n    storage.version += 1\n",
         "        storage.preserve(tensor._array, root_index(tensor, storage), writer)\n"),
        ("the whole of a tensor is not copied before a write",
         "                    self._copy(whole, writer)\n", ""),
        ("a preserved window is kept as it is", 'saved.array = window.copy("K")', "saved.array = window"),
        ("memory from outside is not copied when saved", "saved.array = array.copy()", "saved.array = array"),
        ("a window that is saved twice is preserved once", "                saved.array = copied\n", ""),
        ("an external write is not detected", "            saved.__class__ = LostTensor\n", "            pass\n"),
    ),
    *faults(
        "tensor/saved.py", "captured_arrays adoption",
        ("a captured array that has changed is not copied again", "array.tobytes() == self.elements and ", ""),
        ("a captured array of another shape is not copied again", " and array.shape == self.shape", ""),
    ),
    *faults(
        "adoption/compiled_functions.py", "adopted_compiled_functions",
        ("values saved before a compiled function writes change", "                array[...] = before\n", ""),
        ("a compiled function loses a history", "        if any(map(would_lose_history, tensors)):\n", "        if False:\n"),
    ),
    *faults(
        "tensor/saved_windows.py", "saved_windows copy_slices programs",
        ("a saved row never meets a window", "if window is not None and not share_memory(saved.array, window):",
         "if window is not None:"),
        ("windows that share memory are left out", "if _overlap(box, other) and share_memory(saved.array, window):",
         "if _overlap(box, other) and not share_memory(saved.array, window):"),
        ("a long strided window is filed as a short one", "level = (last - first).bit_length()\n        self._count",
         "level = 0\n        self._count"),
        ("live rows are pruned", "if getrefcount(saved) > ALONE_FROM_ROW and rows.setdefault(row, saved) is not saved:",
         "if getrefcount(saved) > ALONE_FROM_ROW + 5 and rows.setdefault(row, saved) is not saved:"),
        ("windows that wait to be arranged are dropped", "                    self._arrange_one(*entry)\n",
         "                    pass\n"),
        ("a negative row is another row", "row = index if index >= 0 else index + self._root.shape[0]", "row = index"),
    ),
    # -- writes --------------------------------------------------------------------------------------------------------
    *faults(
        "views/basic_indexing.py", "copy_slices tensor indexing programs",
        ("an assignment of an array is not counted",
         'array is storage.root else None, "__setitem__")\nstorage.version += 1\n""",\n    write="window[...] = value"',
         'array is storage.root else None, "__setitem__")\n""",\n    write="window[...] = value"'),
        ("an assignment of a number is not counted",
         'array is storage.root else None, "__setitem__")\nstorage.version += 1\n""",\n    write="array[index] = value"',
         'array is storage.root else None, "__setitem__")\n""",\n    write="array[index] = value"'),
        ("an assignment of an array preserves nothing",
         'storage.preserve(window, index if array is storage.root else None, "__setitem__")', "pass"),
        ("an assignment of a number preserves nothing",
         'storage.preserve(window_at(array, index), index if array is storage.root else None, "__setitem__")', "pass"),
        ("an overlapping source is read while it is written",
         "return source.copy() if np.may_share_memory(source, window) else source", "return source"),
    ),
    *faults(
        "views/inplace.py", "copy_slices interruption",
        ("inputs are saved after they were overwritten", "    <save_inputs>\n    <prepare>\n    <write>\n",
         "    <prepare>\n    <write>\n    <save_inputs>\n"),
        ("saved windows are preserved after the write", "    <save_inputs>\n    <prepare>\n    <write>\n",
         "    <save_inputs>\n    <write>\n    <prepare>\n"),
        ("a failed write is not rolled back", "    abandon_write(<target>, head, old, error, <writer>)\n", ""),
        ("the history begins after the write", "<begin>\ntry:\n    <save_inputs>\n    <prepare>\n    <write>\n",
         "<prepare>\n<write>\n<begin>\ntry:\n    <save_inputs>\n"),
    ),
    *faults(
        "views/rebase_history.py", "copy_slices tensor hooks interruption programs",
        ("a write to a part forgets the history of the base", "slices.edges = (old, *others)",
         "slices.edges = (None, *others)"),
        ("the base does not learn of a write to a part", "            base._edge = slices\n", ""),
        ("a written tensor keeps its old history", "        tensor._edge = node\n        return node, own",
         "        return node, own"),
        ("a write that failed leaves the old history", "    root._edge = end\n", "    root._edge = old\n"),
        ("views do not follow what they retain", "    if hooks is not None:\n        let_follow(hooks)\n", ""),
    ),
    *faults(
        "views/write_checks.py", "views copy_slices tensor overlapping_windows",
        ("a leaf that requires grad can be written to", "if type(base_edge) is AccumulateGrad or (",
         "if type(base_edge) is int or ("),
        ("a window that overlaps itself can be written to",
         "if view.overlaps_itself and overlaps_itself(tensor._array):", "if False:"),
        ("a view that no_grad made can be written to in grad mode",
         "if view.creation is not CreationMeta.DEFAULT and (", "if False and ("),
    ),
    *faults(
        "views/copy_slices.py", "copy_slices programs fast_engine engine",
        ("a write to a part passes nothing to the old value",
         "window[...] = 0 if grads is None else grads\n            return (grad,)",
         "window[...] = 0\n            return (grad,)"),
        ("an assigned part keeps its gradient", "            window.fill(0)\n", "            pass\n"),
        ("an assigned element keeps its gradient", "                grad[index] = 0\n            return grad, value",
         "                pass\n            return grad, value"),
        ("the gradient of an assigned value is a window", "value = window.copy() if self.like is None else",
         "value = window if self.like is None else"),
        ("a gradient of a wrapped step shares the window", "        return grad.copy()\n    return grad", "        pass\n    return grad"),
        ("a recorded write passes nothing to the old value", "                window.copy_(old)\n",
         "                window.zero_()\n"),
    ),
    *faults(
        "views/view_nodes.py", "views fast_engine engine programs",
        ("a second read of a window replaces the first",
         "if type(window) is ndarray:\n                np_add(window, grad, window)",
         "if type(window) is ndarray:\n                window[...] = grad"),
        ("a second read of an element replaces the first", "accumulator[self.index] += grad",
         "accumulator[self.index] = grad"),
        ("places that a view names twice count once",
         "np.add.at(accumulator, places_of(view_fn, self.layout[0]), grad)",
         "accumulator[places_of(view_fn, self.layout[0])] += grad"),
    ),
    *faults(
        "views/geometry.py", "overlapping_windows views",
        ("no window overlaps itself", "        if stride < reach:\n            break", "        if stride < 0:\n            break"),
    ),
    *faults(
        "views/unbroadcast.py", "composites rows programs copy_slices",
        ("the gradient of a real value beside complex ones is the imaginary part", "grad = grad.real", "grad = grad.imag"),
        ("a gradient is not summed over an axis of length 1", "if n == 1 and grad.shape[leading + i] != 1",
         "if n == 1 and grad.shape[leading + i] == 1"),
    ),
    # -- the engines ---------------------------------------------------------------------------------------------------
    *faults(
        "autograd/fast_engine.py", "fast_engine engine programs",
        ("a node runs before newer ones that lead to it", "if not number or type(node) is Edge or (ready and -ready[0][0] >= number):",
         "if not number or type(node) is Edge:"),
        ("a gradient that others hold is summed in place",
         "elif type(held) is ndarray and held.base is None and getrefcount(held) <= ALONE_IN_BUFFER:\n            np_add",
         "elif type(held) is ndarray:\n            np_add"),
        ("a write rewrites a gradient that others hold",
         "elif grad.base is not None or getrefcount(grad) > ALONE_IN_LOCAL or type(grad) is not ndarray:\n"
         "                            grad",
         "elif type(grad) is not ndarray:\n                            grad"),
        ("a recorded write rewrites a gradient that others hold",
         "                            if node not in owned:\n                                grad = grad.clone()",
         "                            if False:\n                                grad = grad.clone()"),
        ("a view adds to an accumulator that others hold",
         "elif type(held) is not ndarray or held.base is not None or getrefcount(held) > ALONE_IN_BUFFER:\n            held",
         "elif type(held) is not ndarray:\n            held"),
        ("a captured gradient shares memory",
         "if type(grad) is not ndarray or grad.base is not None or getrefcount(grad) > ALONE_IN_BUFFER:\n            grad",
         "if type(grad) is not ndarray:\n            grad"),
        ("the gradient of a leaf shares memory",
         "alone = type(grad) is ndarray and grad.base is None and getrefcount(grad) <= ALONE_AS_ARGUMENT",
         "alone = type(grad) is ndarray"),
        ("a grad that somebody has kept is added to in place", "getrefcount(held) <= ALONE_AS_GRAD\n            and ", ""),
        ("hooks that come after a view do not run",
         "                    if node.hooks is not None and node.hooks.after:\n                        self._scatter_alone(node, grad, edge)\n"
         "                    elif plain:",
         "                    if plain:"),
    ),
    *faults(
        "autograd/engine.py", "engine fast_engine",
        ("the plain engine runs old nodes first", "heappush(self.ready, (-node.sequence_nr, node))",
         "heappush(self.ready, (node.sequence_nr, node))"),
        ("the plain engine adds nothing", "grad if held is None else held + grad\n\n    def zeros", "grad\n\n    def zeros"),
        ("the plain engine rewrites a gradient in place",
         "grad = grad.clone() if self.recorded else np.array(grad, order=node.layout[2])", "pass"),
    ),
    *faults(
        "autograd/exec_info.py", "engine fast_engine",
        ("a node with one needed input of two does not run", "        if needed:\n", "        if needed == len(edges):\n"),
    ),
    *faults(
        "autograd/hook_runner.py", "hooks engine",
        ("what a hook returns is kept without a copy", "results.append(new.clone() if self.recorded else np.array(new._array))",
         "results.append(new if self.recorded else new._array)"),
        ("a hook sees the gradient itself", "return grad.clone() if self.recorded else from_array(np.array(grad))",
         "return grad if self.recorded else from_array(np.asarray(grad))"),
    ),
    # -- formulas ------------------------------------------------------------------------------------------------------
    *faults(
        "operators/derivatives/elementwise.py", "rows singular_points subgradients special_points composites",
        ("the derivative of cos has the wrong sign", '"-grad * conj(sin(self))"', '"grad * conj(sin(self))"'),
        ("the derivative of tanh is that of tan", '"grad * conj(1 - square(result))",      "The hyperbolic tangent."',
         '"grad * conj(1 + square(result))",      "The hyperbolic tangent."'),
        ("the second derivative of arctan2 has the wrong sign", '"-grad * over_square(self, other)"',
         '"grad * over_square(self, other)"'),
        ("a tangent of a quotient has the wrong sign", '"flowing(self_t / other_p, self_t) - flowing(',
         '"flowing(self_t / other_p, self_t) + flowing('),
        ("the first of two equal maxima gets all", '("masked_fill(where(self == other, grad / 2, grad), self < other, 0)"',
         '("masked_fill(grad, self < other, 0)"'),
        ("the other value of where gets the gradient of the first", '"other": "where(condition, 0, grad)"',
         '"other": "where(condition, grad, 0)"'),
        ("a lower bound that is met gets the gradient", "return value >= low if high is None else (value >= low)",
         "return value > low if high is None else (value > low)"),
        ("the logarithm of a zero base is infinite", "(base == 0) & (exponent.real >= 0)", "(base != base)"),
        ("a conjugate is forgotten in a product", '("grad * conj(other)", "grad * conj(self)")',
         '("grad * conj(other)", "grad * self")'),
        ("the gradient of a zero norm is no number",
         "binary(\"hypot\", np.hypot, (\"grad * (self / nonzero_or_one(result))\"", "binary(\"hypot\", np.hypot, (\"grad * (self / result)\""),
    ),
    *faults(
        "operators/derivatives/reductions.py", "rows singular_points subgradients composites",
        ("the gradient of a mean is that of a sum", '"expand_reduced(grad / reduced_count(self.shape, axis), self',
         '"expand_reduced(grad, self'),
        ("the variance ignores ddof", "keepdims=True)) / (reduced_count(value.shape, axis) - ddof)",
         "keepdims=True)) / reduced_count(value.shape, axis)"),
        ("running sums run the wrong way", "return np.flip(np.cumsum(np.flip(grad, axis), axis), axis)",
         "return np.cumsum(grad, axis)"),
        ("the tangent of a running product begins with zero", "inputs = shifted(result, along, 1) * tangent",
         "inputs = shifted(result, along, 0) * tangent"),
        ("equal maxima each get the whole gradient", "return (hit / counts).astype(value.dtype)",
         "return hit.astype(value.dtype)"),
    ),
    # -- forward mode --------------------------------------------------------------------------------------------------
    *faults(
        "tensor/tangents.py", "forward_ad programs",
        ("a tangent survives a write of a constant", "            window.zero_()\n", "            pass\n"),
        ("a tangent that was handed out is written to", "        record.owned = False\n", "        pass\n"),
        ("a tangent that others hold is written to", "    elif not record.owned:\n        record.value = record.value.clone()\n        record.owned = True\n",
         "    elif not record.owned:\n        record.owned = True\n"),
    ),
    # -- graphs --------------------------------------------------------------------------------------------------------
    *faults(
        "symbolic/backward.py", "symbolic_aliasing symbolic_nested_grad symbolic_programs symbolic_function",
        ("a written window keeps its gradient", "self.emit(\"write\", (grad, self.zero(dtype)), window, kind).output",
         "grad"),
        ("the total so far of a read is lost", "            return [self.add(total, added)]", "            return [added]"),
        ("values that are overwritten get a gradient",
         '                values = self.emit("where", (mask, values, self.zero(kind.dtype)), (), kind).output\n',
         "                pass\n"),
    ),
    # -- the compiler --------------------------------------------------------------------------------------------------
    *faults(
        "compiler/adjoint.py", "compiler loop_programs compiler_programs compiler_guards",
        ("an overwritten element keeps its gradient", "        items.append(zero)\n\n", "\n"),
        ("the second use of a value adds nothing", '"{0} + {1}", (total, more)', '"{0}", (total, more)'),
        ("a loop is differentiated forwards", "ForLoop(item.variable, item.count, body, down=True)",
         "ForLoop(item.variable, item.count, body)"),
        ("what was overwritten is read again", "return step.base.kind != \"register\" and self.analysis.is_kept(step)",
         "return step.base.kind != \"register\""),
    ),
    *faults(
        "compiler/passes/dead_code.py", "compiler_windowed compiler_programs compiler loop_programs",
        ("windows of one size are the same window",
         "return step.sizes == read.sizes and step.strides == read.strides and step.offset == read.offset",
         "return step.sizes == read.sizes and step.strides == read.strides"),
        ("a copy that sums is taken for a copy", 'step.expression != "{0}" or step.summed or -1 in step.out',
         'step.expression != "{0}" or -1 in step.out'),
    ),
    *faults(
        "compiler/passes/load_reuse.py", "compiler compiler_programs loop_programs",
        ("a value is known after it was overwritten", "            _invalidate(block, item, known, analysis)\n", ""),
        ("a value is known after a loop has overwritten it", "                        known.pop(step.base, None)\n",
         "                        pass\n"),
    ),
    *faults(
        "compiler/passes/zero_propagation.py", "compiler compiler_programs loop_programs compiler_minmax",
        ("what was added to is zero", "| (self.kinds[before] == ZERO)", "| (self.kinds[before] != WRITE)"),
    ),
    *faults(
        "compiler/passes/loop_carried.py", "compiler compiler_programs loop_programs",
        ("any earlier element is the last one", "if not read.sizes and not read.is_picked and read.offset == before:",
         "if not read.sizes and not read.is_picked:"),
    ),
    *faults(
        "compiler/guards/call_signature.py", "compiler_dispatch compiler_guards compiler",
        ("another layout is the same call", "array.shape == shape and array.dtype == dtype and array.strides == strides",
         "array.shape == shape and array.dtype == dtype"),
        ("requires_grad is no part of a call", "return is_alike and given.requires_grad is grad", "return is_alike"),
        ("another number is the same call", "return type(given) is kind and (given is value or repr(given) == text)",
         "return type(given) is kind"),
        ("arguments that share memory are apart", "if is_part and np.may_share_memory(array, other):", "if False:"),
    ),
    *faults(
        "compiler/guards/closure_guard.py", "compiler_closure_guard compiler_guards",
        ("a changed variable of a closure is not noticed",
         "                    if cell.cell_contents is not value:\n                        return self._equal()",
         "                    cell.cell_contents  # noqa: B018"),
    ),
    *faults(
        "tensor/equality.py", "compiler_closure_guard compiler_guards",
        ("a changed array is not noticed", "one is other or one.tobytes() == other.tobytes()", "True"),
        ("0.0 is -0.0", "return repr(one) == repr(other)", "return one == other"),
    ),
]  # fmt: skip


def selected(words: list[str]) -> list[Mutation]:
    """Return the mutations whose name or file contains one of some words."""
    return [each for each in MUTATIONS if not words or any(word in f"{each.name} {each.file}" for word in words)]


def test_files(mutation: Mutation) -> list[str]:
    """Return the paths of the tests that may find a mutation."""
    return [f"tests/test_{name}.py" for name in mutation.tests.split()]


def killer(mutation: Mutation, package: Path) -> str | None:
    """Return the first test that fails with the mutation, or another outcome; None if it has survived.

    Arguments:
        mutation: the fault.
        package: the copy of the package that it is put into, and taken out of again.
    """
    path = package / mutation.file
    source = path.read_text()
    path.write_text(source.replace(mutation.old, mutation.new))
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(package.parent / "bytecode")}
    environment = os.environ | bytecode | {"PYTHONPATH": str(package.parent)}
    try:
        for test in test_files(mutation):  # -P: do not import the package beside the tests
            command = [sys.executable, "-P", "-m", "pytest", *OPTIONS, *DEFAULT, test]
            try:
                run = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT
                )
            except subprocess.TimeoutExpired:
                return f"{test} did not end"
            if run.returncode != 0:
                failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
                return failed[0].partition(" - ")[0] if failed else f"{test} ended with {run.returncode}"
    finally:
        path.write_text(source)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run the mutations whose name or file contains one of them")
    parser.add_argument("--list", action="store_true", help="print the mutations, and run none")
    arguments = parser.parse_args()
    chosen = selected(arguments.words)
    if arguments.list:
        print(*(f"{each.file}: {each.name}" for each in chosen), sep="\n")
        return
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "viewgrad"
        shutil.copytree(ROOT / "viewgrad", package, ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutation in enumerate(chosen, 1):
            found = killer(mutation, package)
            print(f"{number}/{len(chosen)} {mutation.file}: {mutation.name}: {found or 'SURVIVED'}", flush=True)
            if found is None:
                survivors.append(mutation)
    print(f"{len(chosen) - len(survivors)} killed, {len(survivors)} survived")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
