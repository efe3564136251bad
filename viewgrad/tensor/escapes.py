"""Escapes: every way in which a value leaves a tensor as a plain number, array or text.

No gradient flows through a value that escaped, and a traced graph does not contain it. The table `ESCAPES` states what
each escape returns, and therefore what must be done:

- in eager mode, if the tensor has a history: warn or raise (`Escape.history`; the messages are in conversions.py);
- inside a transform (`viewgrad.func`, `vg.compile`): the same, but more strictly, since no part of the result may be
  detached unnoticed;
- in a trace (`Escape.traced`): guard the elements that escaped (`Observer.escaped`), or report that the program reads
  something that may differ between runs (`Observer.queried`).

Code that returns such a value calls `record_escape(tensor, NAME, value)`. tests/test_escapes.py tries each escape in
each mode, and finds attributes of `Tensor` that are missing from the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..errors import DetachedConversionError
from .conversions import DETACHES, ENDS, KEEPS, NOTED, REFUSES, STEPS, check_conversion, raise_cause
from .modes import FORWARD, GRAD, TRACE, current_mode
from .temporary_leaves import leads_to_inputs
from .trace_hooks import OBSERVER, observed

if TYPE_CHECKING:
    from .tensor import Tensor

# What a trace does about an escape; shapes, dtypes and identities are fixed in a graph.
GUARDED: Final = "guarded"  # `Observer.escaped`: the elements must be the same in every run
REPORTED: Final = "reported"  # `Observer.queried`: the result may differ between runs
RECORDED: Final = "recorded"  # the result is a tensor that the trace records
FIXED: Final = "fixed"  # the result is the same in every run of a graph
UNSEEN: Final = "unseen"  # raises for every tensor created in a trace


@attrs.frozen
class Escape:
    """A way in which information about a tensor leaves the library.

    Attributes:
        name: its name in messages and guards.
        gives: what is returned: "number", "integer", "bool", "array", "memory", "bytes", "text", "file", "copy",
            "gradient", "shape", "identity", "version", "graph" or "exception".
        history: the effect on a history.
            ENDS: the value has none; whether that is an error depends on the line of the program.
            DETACHES: as ENDS; but in `viewgrad.func` the result is a differentiable scalar.
            STEPS: the derivative is zero, since the value is a step function of the elements; nothing is lost.
            REFUSES: an error.
            KEEPS: nothing is lost.
        traced: the action of a trace: GUARDED, REPORTED, RECORDED, FIXED or UNSEEN.
        controls_flow: whether programs use such values for control flow, so that a trace guards them by default.
    """

    name: str
    gives: str
    history: str
    traced: str
    controls_flow: bool = False


_TABLE: Final = (
    # Python's conversions.
    Escape("float()", "number", ENDS, GUARDED),
    Escape("complex()", "number", ENDS, GUARDED),
    Escape("int()", "integer", STEPS, GUARDED, controls_flow=True),  # with round(), floor(), ceil(), trunc(), __index__
    Escape("bool()", "bool", STEPS, GUARDED, controls_flow=True),
    Escape("in", "bool", STEPS, GUARDED, controls_flow=True),
    Escape("hash()", "integer", ENDS, GUARDED),  # the hash of a scalar; the hash of an array depends on its identity
    # NumPy's.
    Escape("item()", "number", DETACHES, GUARDED),
    Escape("tolist()", "number", DETACHES, GUARDED),
    Escape("as_integer_ratio()", "integer", REFUSES, GUARDED),
    Escape("hex()", "text", REFUSES, GUARDED),
    Escape("bit_count()", "integer", STEPS, GUARDED),
    Escape("is_integer()", "bool", STEPS, GUARDED),
    # Arrays and memory.
    Escape("numpy()", "array", REFUSES, GUARDED),
    Escape("np.asarray()", "array", REFUSES, GUARDED),  # __array__, which np.array(), np.put() and others call
    Escape("np.asarray(x, bool)", "bool", STEPS, GUARDED),  # with np.bool_(x)
    Escape("__dlpack__()", "memory", REFUSES, GUARDED),
    Escape("tobytes()", "bytes", ENDS, GUARDED),
    Escape("byteswap()", "array", REFUSES, GUARDED),
    Escape("getfield()", "array", REFUSES, GUARDED),
    # Files and copies.
    Escape("tofile()", "file", REFUSES, GUARDED),
    Escape("dump()", "file", REFUSES, GUARDED),
    Escape("dumps()", "bytes", REFUSES, GUARDED),
    Escape("np.save()", "file", REFUSES, GUARDED),  # with savez(), savez_compressed() and savetxt()
    Escape("viewgrad.save()", "file", KEEPS, GUARDED),  # documented to save only values
    Escape("pickle", "bytes", REFUSES, GUARDED),
    Escape("copy.deepcopy()", "copy", KEEPS, RECORDED),
    # Strings.
    Escape("repr()", "text", STEPS, REPORTED),
    Escape("format()", "text", STEPS, REPORTED),
    # Values on which the library itself branches, or that NumPy's functions return.
    Escape("a mask", "bool", STEPS, GUARDED, controls_flow=True),
    Escape("where=", "bool", STEPS, GUARDED, controls_flow=True),
    Escape("an index", "integer", STEPS, GUARDED, controls_flow=True),
    Escape("a choice by values", "number", STEPS, GUARDED),
    # Properties of the graph and its gradients.
    Escape("the gradient", "gradient", KEEPS, REPORTED),
    Escape("grad_fn", "graph", KEEPS, FIXED),
    Escape("_version", "version", KEEPS, FIXED),
    Escape("shape", "shape", KEEPS, FIXED),  # with dtype, ndim, size, strides, len(), flags
    Escape("identity", "identity", KEEPS, FIXED),  # id(), `is`, weak references, the hash of an array
    # An exception that depends on elements: LinAlgError, or FloatingPointError under np.errstate(all="raise"). Whether
    # it was raised decides the control flow of a program that catches it.
    Escape("an exception", "exception", STEPS, GUARDED, controls_flow=True),
    # Refused for every tensor.
    Escape("ctypes", "memory", REFUSES, UNSEEN),
    Escape("memoryview()", "memory", REFUSES, UNSEEN),
)
ESCAPES: Final[dict[str, Escape]] = {escape.name: escape for escape in _TABLE}
CONTROL_FLOW: Final = frozenset(escape.name for escape in _TABLE if escape.controls_flow)


def record_escape(tensor: Tensor, name: str, value: Any) -> None:
    """Allow a value to escape from a tensor, or raise an error.

    Methods of `Tensor` must call this directly: the line of the program is expected two frames further out.

    Arguments:
        tensor: the tensor.
        name: the name of the escape.
        value: the returned value.

    Raises:
        DetachedConversionError: if a history would be lost, unless the line of the program shows that this is intended.
    """
    mode = current_mode()
    if mode & (GRAD | FORWARD):
        escape = ESCAPES[name]
        if escape.history not in (KEEPS, REFUSES) and has_history(tensor):
            check_conversion(name, escape.history, _in_transform.get() != OUTSIDE)
    if mode & TRACE:
        observer = OBSERVER.get()
        escape = ESCAPES[name]
        if escape.traced is REPORTED:
            observer.queried(tensor, "the text" if escape.gives == "text" else name)
        elif escape.traced is GUARDED:
            observer.escaped(tensor, name, value)


def requires_gradient(tensor: Tensor) -> bool:
    """Return whether a tensor depends on a leaf with respect to which a gradient may be computed."""
    view = tensor._view
    edge = tensor._edge if view is None else view.edge_of(tensor)
    return edge is not None and leads_to_inputs(edge)


def has_history(tensor: Tensor) -> bool:
    """Return whether using the values of a tensor without its history would lose a gradient or a tangent."""
    mode = current_mode()
    return bool(mode & GRAD and requires_gradient(tensor)) or bool(mode & FORWARD and has_tangent(tensor))


def has_tangent(tensor: Tensor) -> bool:
    """Return whether `tensor` has a tangent at any open level of forward mode."""
    view = tensor._view
    tangents = getattr(tensor if view is None else view.tangent_root, "_tangent", None)
    return tangents is not None and any(level.open for level in tangents.records)


def would_lose_history(tensor: Tensor) -> bool:
    """Return whether a gradient, a tangent or an input of a trace would be lost if a tensor became a plain array."""
    if requires_gradient(tensor) or has_tangent(tensor):
        return True
    observer = observed()
    return observer is not None and observer.varies(tensor)


# -- transforms --------------------------------------------------------------------------------------------------------

OUTSIDE: Final = 0
DIFFERENTIATED: Final = 1  # by `viewgrad.func`: the scalars returned by `item()` live no longer than the transform
COMPILED: Final = 2  # a compiled function detaches, like the original function
COMPILED_WITHIN: Final = 3  # a compiled function called by `viewgrad.func`, with differentiable scalars

_in_transform: Final[ContextVar[int]] = ContextVar("viewgrad_in_transform", default=OUTSIDE)


def is_differentiated(tensor: Tensor) -> bool:
    """Return whether `item()` and `tolist()` of a tensor are differentiable: in `viewgrad.func`, with a history.

    A trace of a compiled function fails there, since its calls outside transforms detach.
    """
    kind = _in_transform.get()
    if kind not in (DIFFERENTIATED, COMPILED_WITHIN) or not has_history(tensor):
        return False
    if kind == COMPILED_WITHIN and current_mode() & TRACE:
        OBSERVER.get().refuse("item() or tolist(), which detaches outside of transforms only,")
    return True


def transform_kind() -> int:
    """Return the kind of transform that runs the program: OUTSIDE, DIFFERENTIATED, COMPILED or COMPILED_WITHIN."""
    return _in_transform.get()


def is_within_transform() -> bool:
    """Return whether a transform of `viewgrad.func` runs the program and will differentiate its results."""
    return _in_transform.get() in (DIFFERENTIATED, COMPILED_WITHIN)


def within_compiled() -> AbstractContextManager[None]:
    """A context for running the function that was compiled."""
    return within_transform(COMPILED_WITHIN if is_within_transform() else COMPILED)


@contextmanager
def within_transform(kind: int = DIFFERENTIATED) -> Iterator[None]:
    """A context for running the function that is transformed.

    NumPy reports an error in an assignment to an array element as a ValueError of its own; the error that caused it is
    raised instead. An error about a lost history that the function has caught is raised at the end.
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
        # An interruption may leave this generator suspended until it is closed elsewhere, when its own context no
        # longer exists.
        with suppress(ValueError):
            NOTED.reset(outer)
            _in_transform.reset(token)
