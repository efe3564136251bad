"""The node of a custom function, and the state that its forward stores for its backward."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from ...errors import FunctionError
from ...tensor.forward_levels import LEVEL
from ...tensor.modes import FORWARD, GRAD, current_mode
from ...tensor.node import MANY, Node, OptionalEdge, numbered
from ...tensor.refcounts import ALONE_AS_STORAGE, ALONE_IN_LIST, getrefcount
from ...tensor.saved import RELEASED, SavedTensor
from ...tensor.storage import Storage, WriteLock, save
from ...tensor.tangents import DualSaved, with_tangents
from ...tensor.tensor import Tensor, current_edge, edge_to, from_array, tensor_like
from ...type_aliases import Array
from ...views.unbroadcast import match_spec
from ...views.write_checks import check_write


class FunctionCtx:
    """The base class of the contexts that forward and backward of a custom function share; accepts any attribute.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether its gradient may be needed.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._open = True  # while forward (and setup_context) runs
        self._recorded = False
        self._dual = False  # whether an input has a tangent
        self._save_requests: list[SaveRequest] = []
        self._wanted_forward: list[SaveRequest] | None = None
        self._saved_entries: list[SavedEntry] = []
        self._attributes: list[Any] = []  # see attributes.py
        self._withheld: dict[str, str] = {}  # the attributes that backward must not read, with the reasons
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True
        self._wrote: dict[int, int] = {}  # by output, the tensor argument that the output overwrites
        self._function: Any = None  # the subclass of Function
        self._node: weakref.ref[FunctionNode] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `backward`, where they are available as `saved_tensors`.

        Each keeps its current value, even if the tensor is written to later. Under `create_graph=True`, inputs and
        outputs are restored with their history. Other tensors are restored without history, and differentiating through
        them is an error.

        Arguments:
            tensors: inputs, outputs or other tensors; None is saved as None.

        Raises:
            FunctionError: outside forward and setup_context.
            TypeError: for anything but tensors and None.
        """
        self._require_open("save_for_backward")
        self._require_tensors(tensors, "save_for_backward", or_none=True)
        self._save_requests = [SaveRequest(tensor, self._saved(tensor), version_of(tensor)) for tensor in tensors]

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, where they are available as `saved_tensors`."""
        self._require_open("save_for_forward")
        self._require_tensors(tensors, "save_for_forward", or_none=True)
        self._wanted_forward = [SaveRequest(tensor, self._saved(tensor), version_of(tensor)) for tensor in tensors]

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`.

        Raises:
            FreedGraphError: if a backward pass has released them.
        """
        if self._open:  # in jvp
            wanted = self._save_requests if self._wanted_forward is None else self._wanted_forward
            return tuple([self._for_jvp(entry) for entry in wanted])
        return tuple([self._unpacked(kept) for kept in self._saved_entries])

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Mark inputs that forward modifies in place; each must be returned as an output.

        Raises:
            FunctionError: outside forward and setup_context.
            LeafInPlaceError, ViewInPlaceError, OverlappingWriteError: for an input that cannot be written to in place.
        """
        self._require_open("mark_dirty")
        self._require_tensors(tensors, "mark_dirty")
        if self._recorded:
            for tensor in tensors:
                current_edge(tensor)
                check_write(tensor, tensor.dtype.kind in "fc")
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark outputs through which no gradient flows; integer and bool outputs need not be marked.

        Raises:
            FunctionError: outside forward and setup_context.
        """
        self._require_open("mark_non_differentiable")
        self._require_tensors(tensors, "mark_non_differentiable")
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether undefined gradients (and tangents) reach backward (and jvp) as zeros, the default, or as None.

        Raises:
            FunctionError: outside forward and setup_context.
        """
        self._require_open("set_materialize_grads")
        self._materialize = value

    def _saved(self, tensor: Tensor | None) -> SavedTensor | None:
        if tensor is None or not (self._recorded or self._dual):
            return None
        return with_tangents(save(tensor), tensor) if self._dual else save(tensor)

    def _call_backward(self, grads: list[Any]) -> Any:
        """Call the user's backward with the attributes as forward, or a previous call of backward, left them."""
        backward = self._function._backward()
        for kept in self._attributes:
            kept.restore(self)
        unknown = [kept for kept in self._attributes if kept.is_new and kept.item._edge is None]
        node = None if self._node is None else self._node()
        withheld = {}
        if unknown and node is not None:
            message = self._unknown_history(unknown[0].item._array, "left on ctx")
            if current_mode() & FORWARD and self._dual:  # a tangent would be needed when the attribute is read
                withheld = {name: vars(self).pop(name) for name in {kept.name for kept in unknown}}
                self._withheld = dict.fromkeys(withheld, message)
            elif current_mode() & GRAD:
                edge = delayed_error(message, node.edges)
                for kept in unknown:
                    kept.item._edge = edge
        try:
            returned = backward(self, *grads)
        finally:
            for kept in unknown:
                kept.item._edge = None
            self._withheld = {}
            vars(self).update(withheld | vars(self))
        for kept in self._attributes:
            kept.note()
        return returned

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_withheld", ()):
            raise FunctionError(self._withheld[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def _require_open(self, what: str) -> None:
        if not self._open:
            raise FunctionError(
                f"{self._function.__name__}: {what}() has an effect only while forward or setup_context runs; "
                "call it there"
            )

    def _require_tensors(self, tensors: tuple[Any, ...], what: str, or_none: bool = False) -> None:
        for i, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor) and not (or_none and tensor is None):
                raise TypeError(
                    f"{self._function.__name__}: {what}() expects tensors, but argument {i} is of type "
                    f"{type(tensor).__name__}; store other values on ctx as attributes"
                )

    def _for_jvp(self, wanted: SaveRequest) -> Tensor | None:
        """Return a saved tensor for `jvp`: the tensor itself, or its old value if forward has written to it since."""
        if version_of(wanted.tensor) == wanted.version or wanted.saved is None:
            return wanted.tensor
        if LEVEL.get() is not None:
            raise FunctionError(
                f"{self._function.__name__}: forward wrote to a tensor after saving it, and nested levels of forward "
                "mode would need the tangent that it had then; save what forward has not written to"
            )
        saved = wanted.saved
        inner = saved.inner if type(saved) is DualSaved else saved
        kept = SavedEntry(inner, UNKNOWN, self._function._node_class.__name__)
        return self._unpacked(kept)

    def _unpacked(self, kept: SavedEntry) -> Tensor | None:
        """Return a saved tensor with its history."""
        saved = kept.saved
        if saved is None:
            return None
        tensor = tensor_like(saved, None)  # raises if the value was released
        if tensor._storage is not None:  # a scalar has none
            tensor._storage.windows = SAVED_LOCK
        node = None if self._node is None else self._node()
        if node is not None:
            if kept.origin is UNKNOWN:
                tensor._edge = self._without_history(node, tensor._array)
            elif kept.origin >= 0:
                tensor._edge = node.edges[kept.origin]
            else:
                tensor._edge = edge_to(node, -1 - kept.origin)
        return tensor

    def _without_history(self, node: FunctionNode, array: Array) -> Any:
        mode = current_mode()
        if not mode & (GRAD | FORWARD) or array.dtype.kind not in "fc":
            return None
        message = self._unknown_history(array, "saved")
        if mode & FORWARD and self._dual:  # the tangent of this tensor would be needed immediately
            raise FunctionError(message)
        return delayed_error(message, node.edges) if mode & GRAD else None

    def _unknown_history(self, array: Array, how: str) -> str:
        return (
            f"the second derivative of {self._function.__name__} leads through a tensor of shape {array.shape} that "
            f"was {how} in its forward, but is neither an input nor an output, so that its history is not known; save "
            "inputs and compute it from them in backward, or return it as a further output (if it is a constant, make "
            "it outside of forward, or pass it to apply())"
        )

    def __repr__(self) -> str:
        return f"<ctx of {self._function.__name__}>"


class FunctionNode(Node):
    """The node of a custom function, with an edge for each argument that is a tensor.

    Attributes:
        ctx: the context that forward has left for backward.
        outputs: the number of outputs of forward.
        input_specs: for each tensor argument, its shape and dtype.
        output_specs: for each output, its shape and dtype; None if it is not a tensor.
        positions: for each tensor argument, its position among all arguments.
        argument_count: the number of all arguments.
    """

    __slots__ = ("argument_count", "ctx", "edges", "input_specs", "output_specs", "outputs", "positions")

    kind: ClassVar[int] = MANY

    ctx: FunctionCtx
    outputs: int  # type: ignore[misc]
    input_specs: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    output_specs: tuple[tuple[tuple[int, ...], np.dtype[Any]] | None, ...]
    positions: tuple[int, ...]
    argument_count: int

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that forward has saved for backward."""
        return self.ctx.saved_tensors

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Return the gradients along `edges`, from arrays."""
        ctx = self.ctx
        shown: list[Any] = []
        for array, like in zip((grad,) if self.outputs == 1 else grad, self.output_specs, strict=True):
            if array is not None:
                tensor = from_array(np.asarray(array))
                storage = tensor._storage = Storage(tensor._array, foreign=True)
                storage.windows = GRADIENT_LOCK
                shown.append(tensor)
            elif ctx._materialize and like is not None:
                shown.append(from_array(np.zeros(*like)))
            else:
                shown.append(None)
        grads = self._checked(ctx._call_backward(shown))
        for i, edge in enumerate(edges):
            if edge is None or grads[i] is None:
                grads[i] = None
                continue
            array = grads[i]._array if _is_unshared(grads, i) else grads[i]._array.copy()
            like = self.input_specs[i]
            grads[i] = array if (array.shape, array.dtype) == like else match_spec(array, like)
        return tuple(grads)

    def apply_recorded(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> tuple[Any, ...]:
        """Compute `apply` on tensors and record it."""
        ctx = self.ctx
        given = (grad,) if self.outputs == 1 else grad
        shown = [
            from_array(np.zeros(*like)) if g is None and ctx._materialize and like is not None else g
            for g, like in zip(given, self.output_specs, strict=True)
        ]
        versions = [version_of(g) for g in shown]
        grads = self._checked(ctx._call_backward(shown))
        if versions != [version_of(g) for g in shown]:
            raise FunctionError(f"{self.name()}: {GRADIENT_IS_SHARED}")
        for i, edge in enumerate(edges):
            if edge is None or grads[i] is None:
                grads[i] = None
                continue
            is_unshared = _is_unshared(grads, i)
            result = grads[i]
            if not is_unshared and not is_in(result, shown):
                result = result.clone()
            like = self.input_specs[i]
            grads[i] = result if (result.shape, result.dtype) == like else match_spec(result, like)
        return tuple(grads)

    def _checked(self, returned: Any) -> list[Any]:
        """Return the gradients of the tensor arguments from the result of backward."""
        grads = list(returned) if isinstance(returned, tuple | list) else [returned]
        del returned
        count = self.argument_count
        if len(grads) != count and not (len(grads) > count and all(g is None for g in grads[count:])):
            raise FunctionError(
                f"{self.name()}: backward returned {len(grads)} gradient{'s' * (len(grads) != 1)}, but forward had "
                f"{count} argument{'s' * (count != 1)}; return one gradient for each, None for those that need none"
            )
        for position, g in enumerate(grads):
            if g is None:
                continue
            if not isinstance(g, Tensor):
                raise FunctionError(
                    f"{self.name()}: backward returned {type(g).__name__} as gradient {position}, instead of a Tensor "
                    "or None; wrap numbers and arrays in vg.Tensor"
                )
            if position not in self.positions:
                raise FunctionError(
                    f"{self.name()}: backward returned a gradient for argument {position}, which is not a tensor; "
                    "return None for it"
                )
            shape, _ = self.input_specs[self.positions.index(position)]
            if g.shape != shape and not _broadcasts(shape, g.shape):
                raise FunctionError(
                    f"{self.name()}: backward returned a gradient of shape {g.shape} for argument {position}, whose "
                    f"shape is {shape}"
                )
        del g
        return [grads[position] for position in self.positions]

    def release(self) -> None:
        """Release the saved values."""
        for kept in self.ctx._saved_entries:
            if kept.saved is not None:
                kept.saved = RELEASED

    def saved_values(self) -> list[tuple[str, Any]]:
        """Return the tensors given to `save_for_backward`, and the attributes of `ctx`."""
        attributes = [(kept.name, kept.kept.saved) for kept in self.ctx._attributes]
        return [(str(i), kept.saved) for i, kept in enumerate(self.ctx._saved_entries)] + attributes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)


@attrs.define(eq=False)
class SavedEntry:
    """A value that a custom function saves for its backward.

    Arguments:
        saved: the saved window, or None if None was saved.
        origin: `i` for tensor input i, `-1 - i` for output i, UNKNOWN for any other tensor.
        saved_by: the name of the node.
    """

    saved: Any  # SavedTensor | Released | None
    origin: int | None
    saved_by: str


@attrs.define(eq=False)
class SaveRequest:
    """A tensor passed to `save_for_backward`: its saved value, and its version at that time."""

    tensor: Tensor | None
    saved: SavedTensor | None
    version: int


class DelayedError(Node):
    """The node that replaces an unknown history; it raises when a gradient arrives."""

    __slots__ = ("edges", "message")

    kind: ClassVar[int] = MANY

    message: str

    def apply(self, grad: Any, edges: tuple[OptionalEdge, ...]) -> Any:
        """Raise."""
        raise FunctionError(self.message)

    apply_recorded = apply


def delayed_error(message: str, edges: tuple[OptionalEdge, ...]) -> DelayedError:
    """Return a node that raises; `edges` lead to every node that the unknown history might lead to."""
    node = numbered(DelayedError)
    node.edges = edges
    node.message = message
    return node


GRADIENT_IS_SHARED: Final = (
    "backward wrote in place to an incoming gradient, which may still be needed; write to a clone() of it"
)
# Shared by the storages of all gradients and saved values that a custom backward receives.
GRADIENT_LOCK: Final = WriteLock(np.empty(0), FunctionError, GRADIENT_IS_SHARED)
SAVED_LOCK: Final = WriteLock(
    np.empty(0), FunctionError, "in-place write to ctx.saved_tensors, which may still be needed; write to a clone()"
)
# The origin of a saved value that is neither an input nor an output.
UNKNOWN: Final = None


def version_of(tensor: Tensor | None) -> int:
    """Return the version counter of the memory of a tensor."""
    storage = None if tensor is None else tensor._storage
    return 0 if storage is None else storage.version + storage.writes


def is_in(tensor: Any, tensors: tuple[Any, ...] | list[Any]) -> bool:
    """Return whether `tensor` itself is among `tensors`."""
    return any(tensor is other for other in tensors)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Return whether a value of `shape` broadcasts `to` another, so that a gradient of that shape can be summed."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def _is_unshared(grads: list[Any], i: int) -> bool:
    """Return whether gradient `i` is referenced only by the list, or its memory is never written to."""
    grad = grads[i]
    storage = grad._storage
    if storage is not None and storage.windows is GRADIENT_LOCK:
        return True
    if storage is not None and storage.windows is SAVED_LOCK:  # but other references may be written to
        return False
    if getrefcount(grad) > ALONE_IN_LIST or grad._view is not None:
        return False
    return storage is None or getrefcount(storage) <= ALONE_AS_STORAGE
