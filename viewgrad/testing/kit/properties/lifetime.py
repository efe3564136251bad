"""The objects that survive a call after everything was released."""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable
from typing import Any, Final

from ..baseline import Baseline
from ..cpu_time import frozen_heap


def lifetime(baseline: Baseline) -> int:
    """Check that nothing of a call survives: no reference cycles, and no leaks over many calls."""
    script = baseline.script("nothing is left of a call", called=False)
    wanted = baseline.example.wanted
    names = [f"x{k}" for k in range(len(baseline.example.arrays))]
    body = [f"x{k} = vg.Tensor(a{k}{', requires_grad=True' if k in wanted else ''})" for k in range(len(names))]
    body += [f"y = {script.expression()}", baseline.gradient_line("g", options="") if baseline.outputs else "g = None"]
    body += [f"return [weakref.ref(tensor) for tensor in [{', '.join(names)}]]"]
    script.do("import gc, sys, weakref", _function("once", body), GROWTH)
    with frozen_heap():
        script.do("once(); once(); gc.collect(); gc.disable()", "alive = [ref() is not None for ref in once()]")
        library = _library_that_keeps_arguments(script["once"]) if any(script["alive"]) else ""
        if library:
            baseline.subject.note_once(
                "its arguments are kept until Python's garbage collector runs, by a reference cycle",
                f"in {library}",
            )
        else:
            script.require(
                "not any(alive)",
                "an argument of the call is still alive after the call, its results and its graph were released: "
                "something keeps it, or it is part of a reference cycle",
            )
            script.do(_function("forward_only", [line for line in body if not line.startswith("g = ")]), CYCLES)
            script.require(
                "not cycles()",
                "tensors or the graph of the call are part of a reference cycle: after their release, they stay "
                "alive until the cyclic garbage collector runs",
            )
        script.do("growth(8)", "grown = min(growth(8), growth(8))")
        if script["grown"] >= 8:  # caches may still be filling
            script.do("growth(50)", "grown = min(growth(20) for _ in range(8))")
            script.require(
                "grown < 20", f"each call leaves memory behind: {script['grown']} more blocks after 20 calls"
            )
    return 1


def _library_that_keeps_arguments(once: Callable[[], list[weakref.ref[Any]]]) -> str:
    """Return the name of the SciPy function that keeps the arguments alive since its closure contains itself, or "".

    SciPy's root finders wrap the given function in such a closure.
    """
    gc.collect()
    flags = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        kept = once()
        gc.collect()
        keepers = [
            (found, cell)
            for found in gc.garbage
            if isinstance(found, types.FunctionType) and (found.__module__ or "").partition(".")[0] == "scipy"
            for cell in found.__closure__ or ()
            if cell == types.CellType(found)
        ]
        name = f"{keepers[0][0].__module__} ({keepers[0][0].__qualname__})" if keepers else ""
        while keepers:
            keepers.pop()[1].cell_contents = None
        gc.garbage.clear()
        gc.collect()
        others = any(type(found).__module__.startswith("viewgrad.") for found in gc.garbage)
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
    return name if not others and all(one() is None for one in kept) else ""


def _function(name: str, body: list[str]) -> str:
    return "\n".join([f"def {name}():", *(f"    {line}" for line in body)])


CYCLES: Final = """
def cycles():
    gc.collect()
    flags = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        once()
        forward_only()
        gc.collect()
        return [found for found in map(type, gc.garbage) if found.__module__.startswith("viewgrad.")]
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
""".strip()
GROWTH: Final = """
def growth(calls):
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(calls):
        once()
    gc.collect()
    return sys.getallocatedblocks() - before
""".strip()
