"""The doors: every way in which something about a tensor leaves the library.

A value that has left is a plain number, array or text: no gradient flows through it, and a graph that was traced does
not know of it. The table `DOORS` says for each door what passes, and so what must be done about it:

- in eager mode, if the tensor has a history: warn or raise (`Door.history`; the messages are in conversions.py);
- inside a transform (`viewgrad.func`, `vg.compile`), the same more strictly, as nothing of its result may be lost;
- in a trace (`Door.traced`): the elements that left are guarded (`Observer.left`), or the trace is told that the
  program asked for something that differs in each run (`Observer.asked`).

Whatever opens a door calls `leave(tensor, DOOR, value)`; whoever wants to know which doors there are reads `DOORS`.
tests/test_escapes.py tries each of them in each mode, and finds attributes of `Tensor` that are no door and should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..errors import DetachedConversionError
from .conversions import DETACHES, ENDS, KEEPS, NOTED, REFUSES, STEPS, judge_conversion, raise_cause
from .modes import FORWARD, GRAD, TRACE, current_mode
from .trace_hooks import OBSERVER

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = [
    "COMPILED", "COMPILED_WITHIN", "DETACHES", "DIFFERENTIATED", "DOORS",
    "ENDS", "EXCEPTION", "KEEPS", "REFUSES", "STEERING", "STEPS", "Door",
    "has_history", "has_tangent", "is_differentiated", "is_within_transform", "leave",
    "transform_kind", "within_compiled", "within_transform",
]  # fmt: skip

# What a trace does about a door, beside nothing: the shapes, dtypes and identities of a graph are fixed.
GUARDED: Final = "guarded"  # `Observer.left`: the elements must be the same in each run
TOLD: Final = "told"  # `Observer.asked`: the answer differs in each run
RECORDED: Final = "recorded"  # the result is a tensor, which the trace knows
FIXED: Final = "fixed"  # it is the same in each run of a graph
UNSEEN: Final = "unseen"  # nothing passes for a tensor that a trace has made


@attrs.frozen
class Door:
    """A way in which information about a tensor leaves the library.

    Attributes:
        name: what messages and guards call it.
        gives: what passes: "number", "integer", "bool", "array", "memory", "bytes", "text", "file", "copy",
            "gradient", "shape", "identity", "version", "graph" or "exception".
        history: what becomes of a history at this door.
            ENDS: the value goes on without it; the line that asks decides whether that is an error.
            DETACHES: as ENDS; but in `viewgrad.func` the result is a differentiable scalar.
            STEPS: the derivative is zero, since the value is a step function of the elements; nothing is lost.
            REFUSES: an error.
            KEEPS: nothing is lost.
        traced: what a trace does about it: GUARDED, TOLD, RECORDED, FIXED or UNSEEN.
        steers: whether a program asks for such a value to choose what it does next, so that a trace may hold it fixed
            under a guard without being asked to.
    """

    name: str
    gives: str
    history: str
    traced: str
    steers: bool = False


_TABLE: Final = (
    # Python's conversions.
    Door("float()", "number", ENDS, GUARDED),
    Door("complex()", "number", ENDS, GUARDED),
    Door("int()", "integer", STEPS, GUARDED, steers=True),  # with round(), floor(), ceil(), trunc() and __index__
    Door("bool()", "bool", STEPS, GUARDED, steers=True),
    Door("in", "bool", STEPS, GUARDED, steers=True),
    Door("hash()", "integer", ENDS, GUARDED),  # of a scalar; that of an array is of its identity
    # NumPy's.
    Door("item()", "number", DETACHES, GUARDED),
    Door("tolist()", "number", DETACHES, GUARDED),
    Door("as_integer_ratio()", "integer", REFUSES, GUARDED),
    Door("hex()", "text", REFUSES, GUARDED),
    Door("bit_count()", "integer", STEPS, GUARDED),
    Door("is_integer()", "bool", STEPS, GUARDED),
    # Arrays and memory.
    Door("numpy()", "array", REFUSES, GUARDED),
    Door("np.asarray()", "array", REFUSES, GUARDED),  # __array__, which np.array(), np.put() and others ask for
    Door("np.asarray(x, bool)", "bool", STEPS, GUARDED),  # with np.bool_(x)
    Door("__dlpack__()", "memory", REFUSES, GUARDED),
    Door("tobytes()", "bytes", ENDS, GUARDED),
    Door("byteswap()", "array", REFUSES, GUARDED),
    Door("getfield()", "array", REFUSES, GUARDED),
    # Files and copies.
    Door("tofile()", "file", REFUSES, GUARDED),
    Door("dump()", "file", REFUSES, GUARDED),
    Door("dumps()", "bytes", REFUSES, GUARDED),
    Door("np.save()", "file", REFUSES, GUARDED),  # with savez(), savez_compressed() and savetxt()
    Door("viewgrad.save()", "file", KEEPS, GUARDED),  # its documentation says that values are saved
    Door("pickle", "bytes", REFUSES, GUARDED),
    Door("copy.deepcopy()", "copy", KEEPS, RECORDED),
    # Texts.
    Door("repr()", "text", STEPS, TOLD),
    Door("format()", "text", STEPS, TOLD),
    # Values by which the library itself chooses, or that NumPy's own functions answer with.
    Door("a mask", "bool", STEPS, GUARDED, steers=True),
    Door("where=", "bool", STEPS, GUARDED, steers=True),
    Door("an index", "integer", STEPS, GUARDED, steers=True),
    Door("a choice by values", "number", STEPS, GUARDED),
    # About the graph, and the gradients in it.
    Door("the gradient", "gradient", KEEPS, TOLD),
    Door("grad_fn", "graph", KEEPS, FIXED),
    Door("_version", "version", KEEPS, FIXED),
    Door("shape", "shape", KEEPS, FIXED),  # with dtype, ndim, size, strides, len(), flags
    Door("identity", "identity", KEEPS, FIXED),  # id(), `is`, weak references, the hash of an array
    # An exception by the elements: LinAlgError, FloatingPointError under np.errstate(all="raise"). That it was raised,
    # and that it was not, steers a program that catches it.
    Door("an exception", "exception", STEPS, GUARDED, steers=True),
    # Refused for every tensor.
    Door("ctypes", "memory", REFUSES, UNSEEN),
    Door("memoryview()", "memory", REFUSES, UNSEEN),
)
DOORS: Final[dict[str, Door]] = {door.name: door for door in _TABLE}
EXCEPTION: Final = DOORS["an exception"]
STEERING: Final = frozenset(door.name for door in _TABLE if door.steers)


def leave(tensor: Tensor, name: str, value: Any) -> None:
    """Allow information about a tensor to leave by a door, or raise an error.

    A method of `Tensor` that a program calls must call this itself, and not through others: the line of the program
    is two frames further out.

    Arguments:
        tensor: whose value leaves.
        name: the door's name.
        value: what leaves.

    Raises:
        DetachedConversionError: if a history would be lost and the line of the program does not say that this is meant.
    """
    mode = current_mode()
    if mode & (GRAD | FORWARD):
        door = DOORS[name]
        if door.history not in (KEEPS, REFUSES) and has_history(tensor):
            judge_conversion(name, door.history, _in_transform.get() != OUTSIDE)
    if mode & TRACE:
        observer = OBSERVER.get()
        door = DOORS[name]
        if door.traced is TOLD:
            observer.asked(tensor, "the text" if door.gives == "text" else name)
        elif door.traced is GUARDED:
            observer.left(tensor, name, value)


def has_history(tensor: Tensor) -> bool:
    """Return whether a gradient or a tangent would be lost if the values of a tensor went on without it."""
    mode = current_mode()
    return bool(mode & GRAD and tensor.requires_grad) or bool(mode & FORWARD and has_tangent(tensor))


def has_tangent(tensor: Tensor) -> bool:
    """Return whether `tensor` has a tangent at any level of forward mode that is open."""
    view = tensor._view
    tangents = getattr(tensor if view is None else view.tangent_root, "_tangent", None)
    return tangents is not None and any(level.open for level in tangents.records)


# -- transforms --------------------------------------------------------------------------------------------------------

OUTSIDE: Final = 0
DIFFERENTIATED: Final = 1  # by `viewgrad.func`: the scalars that `item()` gives live no longer than the transform
COMPILED: Final = 2  # a compiled function does what the function does, which detaches
COMPILED_WITHIN: Final = 3  # a compiled function, called while `viewgrad.func` differentiates, does what it does there

_in_transform: Final[ContextVar[int]] = ContextVar("viewgrad_in_transform", default=OUTSIDE)


def is_differentiated(tensor: Tensor) -> bool:
    """Return whether `item()` and `tolist()` of a tensor are differentiable: in `viewgrad.func`, with a history.

    A trace of a compiled function fails there, since its calls outside of transforms detach.
    """
    kind = _in_transform.get()
    if kind not in (DIFFERENTIATED, COMPILED_WITHIN) or not has_history(tensor):
        return False
    if kind == COMPILED_WITHIN and current_mode() & TRACE:
        OBSERVER.get().refuse("item() or tolist(), which detaches outside of transforms only,")
    return True


def transform_kind() -> int:
    """Return which kind of transform runs the program: OUTSIDE, DIFFERENTIATED, COMPILED or COMPILED_WITHIN."""
    return _in_transform.get()


def is_within_transform() -> bool:
    """Return whether a function of `viewgrad.func` runs the program, and will differentiate what it computes."""
    return _in_transform.get() in (DIFFERENTIATED, COMPILED_WITHIN)


def within_compiled() -> AbstractContextManager[None]:
    """Run the function that was compiled."""
    return within_transform(COMPILED_WITHIN if is_within_transform() else COMPILED)


@contextmanager
def within_transform(kind: int = DIFFERENTIATED) -> Iterator[None]:
    """Run the function that a transform is given.

    NumPy reports an error in an assignment to an element of an array as a ValueError of its own; the error that caused
    it is raised instead. An error for a lost history that the function has caught is raised in the end.
    """
    token = _in_transform.set(kind)
    errors: list[DetachedConversionError] = []
    outer = NOTED.set(errors)
    try:
        yield
        if errors:
            errors[0].add_note("The program caught this error, and went on with another value.")
            raise errors[0]
    except ValueError as error:
        raise_cause(error)
        raise
    finally:
        NOTED.reset(outer)
        _in_transform.reset(token)
