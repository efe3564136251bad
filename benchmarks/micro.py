"""The micro suite: the cost of a single operation, forward and backward, against PyTorch.

Operations are measured in chains, so that many share the fixed cost of starting a backward pass; the case
`sum().backward()` measures that cost alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import attrs
import numpy as np

from benchmarks.backends import Backend
from benchmarks.measuring import Effort, Timing, measure_in_turn

__all__ = ["CASES", "SIZES", "Case", "Row", "micro_steps"]

Array = np.ndarray[Any, Any]
SIZES = (4, 64, 4096, 1_000_000)
LARGEST_BY_ELEMENTS = 64
LONG = {4: 500, 64: 500, 4096: 100, 1_000_000: 4}


@attrs.frozen
class Case:
    """One operation.

    Arguments:
        name: the name to print.
        program: `program(backend, tensors, length)` runs the operation `length` times and returns the number to be
            differentiated; `tensors` are the leaf `x`, the constants `c` (like `x`) and `h` (like its middle half), and
            `m` and `w`, a leaf and a constant of about as many elements, but square.
        gradients: whether it is differentiated; forward and backward are then measured together.
        recorded: without `gradients`, whether history is recorded.
        single: whether it runs only once, whatever the length of the chain.
        elements: whether it accesses single elements; it is then not measured on large tensors.
    """

    name: str
    program: Callable[[Backend, dict[str, Any], int], Any]
    gradients: bool = True
    recorded: bool = True
    single: bool = False
    elements: bool = False


@attrs.frozen
class Row:
    """The measurements of one case at one size, in seconds per operation."""

    name: str
    size: int
    times: Mapping[str, Timing]
    per: int
    gradients: bool

    def seconds(self, engine: str) -> float | None:
        """Return the median time of an operation."""
        return self.times[engine].median / self.per if engine in self.times else None

    def ratio(self, engine: str, other: str) -> float | None:
        """Return the time of one engine, divided by that of another."""
        one, two = self.seconds(engine), self.seconds(other)
        return None if one is None or two is None else one / two


def _chain(step: Callable[[Backend, Any, dict[str, Any]], Any]) -> Callable[[Backend, dict[str, Any], int], Any]:
    """Return a program that repeats `y = step(y)`, from the leaf `x`."""

    def program(b: Backend, t: dict[str, Any], length: int) -> Any:
        y = t["x"]
        for _ in range(length):
            y = step(b, y, t)
        return y.sum()

    return program


def _total(step: Callable[[Backend, dict[str, Any]], Any]) -> Callable[[Backend, dict[str, Any], int], Any]:
    """Return a program that repeats `s = s + step(x)`."""

    def program(b: Backend, t: dict[str, Any], length: int) -> Any:
        s = step(b, t)
        for _ in range(length - 1):
            s = s + step(b, t)
        return s.sum()

    return program


def _mul_both(b: Backend, t: dict[str, Any], length: int) -> Any:
    y, x = t["x"], t["x"]
    for _ in range(length):
        y = y * x
    return y.sum()


def _matmul(b: Backend, t: dict[str, Any], length: int) -> Any:
    y = t["m"]
    for _ in range(length):
        y = y @ t["w"]
    return y.sum()


def _matmul_both(b: Backend, t: dict[str, Any], length: int) -> Any:
    y = t["w"]
    for _ in range(length):
        y = y @ t["m"]
    return y.sum()


def _views(b: Backend, t: dict[str, Any], length: int) -> Any:
    x = t["x"]
    low, high = t["half"]
    s = x[low:high]
    for _ in range(length - 1):
        s = s + x[low:high]
    return s.sum()


def _select(b: Backend, t: dict[str, Any], length: int) -> Any:
    m = t["m"]
    s = m[1]
    for _ in range(length - 1):
        s = s + m[1]
    return s.sum()


def _inplace(step: Callable[[Any, dict[str, Any], int, int], Any]) -> Callable[[Backend, dict[str, Any], int], Any]:
    """Return a program that repeats `step` on a tensor that may be written to."""

    def program(b: Backend, t: dict[str, Any], length: int) -> Any:
        y = t["x"] * t["c"]
        low, high = t["half"]
        for _ in range(length):
            step(y, t, low, high)
        return y.sum()

    return program


def _imul(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y *= t["c"]


def _iadd(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y += t["x"]


def _neg_(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y.neg_()


def _mul_view(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    v = y[low:high]
    v *= t["h"]


def _imul_slice(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y[low:high] *= t["h"]


def _iadd_slice(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y[low:high] += t["x"][low:high]


def _set_number(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y[low:high] = 0.5


def _set_slice(y: Any, t: dict[str, Any], low: int, high: int) -> None:
    y[low:high] = t["x"][low:high]


def _read(b: Backend, t: dict[str, Any], length: int) -> Any:
    x = t["x"]
    s = x[0]
    for k in range(length):
        s = s + x[k % len(x)]
    return s


def _multiply_add(b: Backend, t: dict[str, Any], length: int) -> Any:
    x = t["x"]
    s = x[0]
    for k in range(length):
        s = s * x[k % len(x)] + 0.5
    return s


def _set_element(b: Backend, t: dict[str, Any], length: int) -> Any:
    x = t["x"]
    y = x * t["c"]
    for k in range(length):
        y[k % len(x)] = x[k % len(x)]
    return y.sum()


def _set_computed(b: Backend, t: dict[str, Any], length: int) -> Any:
    x = t["x"]
    y = x * t["c"]
    s = x[0]
    for k in range(length):
        s = s * x[k % len(x)]
        y[k % len(x)] = s
    return y.sum()


def _backward_alone(b: Backend, t: dict[str, Any], length: int) -> Any:
    return t["x"].sum()


def _mul_sum_backward(b: Backend, t: dict[str, Any], length: int) -> Any:
    return (t["x"] * t["c"]).sum()


CASES: tuple[Case, ...] = (
    Case("y * c", _chain(lambda b, y, t: y * t["c"])),
    Case("y * x, both differentiated", _mul_both),
    Case("y * 1.0001", _chain(lambda b, y, t: y * 1.0001)),
    Case("y + c", _chain(lambda b, y, t: y + t["c"])),
    Case("y - c", _chain(lambda b, y, t: y - t["c"])),
    Case("y / c", _chain(lambda b, y, t: y / t["c"])),
    Case("-y", _chain(lambda b, y, t: -y)),
    Case("sin(y)", _chain(lambda b, y, t: b.sin(y))),
    Case("exp(y) * 0.3", _chain(lambda b, y, t: b.exp(y) * 0.3)),
    Case("tanh(y)", _chain(lambda b, y, t: b.tanh(y))),
    Case("s + x.sum()", _total(lambda b, t: t["x"].sum())),
    Case("s + x.mean()", _total(lambda b, t: t["x"].mean())),
    Case("s + m.sum(0)", _total(lambda b, t: t["m"].sum(0))),
    Case("y @ w", _matmul),
    Case("w @ m, both differentiated", _matmul_both),
    Case("s + x[i:j]", _views),
    Case("s + m[1]", _select),
    Case("s + x[i:j].sum()", _total(lambda b, t: t["x"][t["half"][0] : t["half"][1]].sum())),
    Case("s + m.T", _total(lambda b, t: t["m"].T)),
    Case("s + m.reshape(-1)", _total(lambda b, t: t["m"].reshape(-1))),
    Case("y *= c", _inplace(_imul)),
    Case("y += x", _inplace(_iadd)),
    Case("y.neg_()", _inplace(_neg_)),
    Case("v = y[i:j]; v *= c", _inplace(_mul_view)),
    Case("y[i:j] *= c", _inplace(_imul_slice)),
    Case("y[i:j] += x[i:j]", _inplace(_iadd_slice)),
    Case("y[i:j] = 0.5", _inplace(_set_number)),
    Case("y[i:j] = x[i:j]", _inplace(_set_slice)),
    Case("s = s + x[k]", _read, elements=True),
    Case("s = s * x[k] + 0.5", _multiply_add, elements=True),
    Case("y[k] = x[k]", _set_element, elements=True),
    Case("s = s * x[k]; y[k] = s", _set_computed, elements=True),
    Case("x.sum().backward()", _backward_alone, single=True),
    Case("(x * c).sum().backward()", _mul_sum_backward, single=True),
    Case("y * c, forward, recorded", _chain(lambda b, y, t: y * t["c"]), gradients=False),
    Case("y * c, forward, no_grad", _chain(lambda b, y, t: y * t["c"]), gradients=False, recorded=False),
    Case("s + x[i:j], forward, no_grad", _views, gradients=False, recorded=False),
    Case("y[i:j] = 0.5, forward, no_grad", _inplace(_set_number), gradients=False, recorded=False),
)


def micro_steps(
    backends: Sequence[Backend], effort: Effort, sizes: Sequence[int], notes: list[str]
) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yield, for every case at every size, its name and a function that measures it after checking its gradients.

    Cases that cannot be measured are appended to `notes`.
    """
    tensors = cache(lambda size: {b.name: _tensors(b, size) for b in backends})
    for size in sizes:
        for case in CASES:
            if not case.elements or size <= LARGEST_BY_ELEMENTS:
                yield f"{case.name} [{size}]", partial(_measure, case, size, backends, tensors, effort, notes)


def _tensors(b: Backend, size: int) -> dict[str, Any]:
    random = np.random.default_rng(size)
    side = int(size**0.5)
    low, high = size // 4, size // 4 + size // 2
    square = random.standard_normal((side, side))
    rotation = np.linalg.qr(square)[0] if side <= 64 else square / side**0.5
    return {
        "x": b.leaf(random.uniform(0.99, 1.01, size)),
        "c": b.constant(random.uniform(0.99, 1.01, size)),
        "h": b.constant(random.uniform(0.99, 1.01, high - low)),
        "m": b.leaf(rotation),
        "w": b.constant(rotation),
        "half": (low, high),
    }


def _measure(
    case: Case,
    size: int,
    backends: Sequence[Backend],
    tensors: Callable[[int], dict[str, Any]],
    effort: Effort,
    notes: list[str],
) -> Row:
    length = 1 if case.single else LONG[size]
    programs: dict[str, Callable[[], Any]] = {}
    expected: list[Array] | None = None
    for b in backends:
        t = tensors(size)[b.name]
        try:
            gradient = _gradient(case, b, t, min(length, 3))
        except Exception as error:  # a failing engine must not stop the measurement of the others
            notes.append(f"{case.name} [{size}]: {b.name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        if expected is None:
            expected = gradient
        for mine, theirs in zip(gradient, expected, strict=True):
            if not np.allclose(mine, theirs, rtol=1e-9, atol=1e-9):
                raise AssertionError(f"{case.name}: {b.name} and {backends[0].name} give different gradients")
        programs[b.name] = _program(case, b, t, length)
    return Row(case.name, size, measure_in_turn(programs, effort), length, case.gradients)


def _gradient(case: Case, b: Backend, t: dict[str, Any], length: int) -> list[Array]:
    t["x"].grad = t["m"].grad = None
    case.program(b, t, length).backward()
    found = [np.array(t[name].grad) for name in ("x", "m") if t[name].grad is not None]
    t["x"].grad = t["m"].grad = None
    return found


def _program(case: Case, b: Backend, t: dict[str, Any], length: int) -> Callable[[], Any]:
    program, x, m = case.program, t["x"], t["m"]
    if case.gradients:

        def run() -> None:
            x.grad = m.grad = None
            program(b, t, length).backward()

    elif case.recorded:

        def run() -> None:
            program(b, t, length)

    else:

        def run() -> None:
            with b.no_grad():
                program(b, t, length)

    return run
