"""`Function`: differentiable steps that the user writes, forward and backward.

What `forward` does is not recorded. Its outputs become outputs of one node of the graph, whose `apply` calls the user's
`backward`: on tensors, without recording in a first-order run, and recorded in its turn under `create_graph=True`. See
Note [Custom functions] in docs/notes/custom_functions.md.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any, ClassVar, Final, TypeVar

import attrs
import numpy as np

from ..errors import FunctionError
from ..tensor.modes import ANOMALY, FORWARD, FUNCTIONAL, GRAD, PACK, ModeSwitch, current_mode
from ..tensor.node import MANY, Node, new, next_sequence_nr
from ..tensor.origins import note
from ..tensor.storage import RELEASED, SavedTensor, Storage, WritesRefused, save
from ..tensor.tangents import (
    DualLevel,
    DualSaved,
    TangentRoot,
    at_level,
    make_dual_root,
    open_levels,
    set_tangent,
    tangent_of,
    with_tangents,
)
from ..tensor.tensor import Tensor, current_edge, edge_to, from_array, has_tangent, tensor_like
from ..views.conform import conform
from ..views.copy_slices import CopyBackwards, rebase_history
from ..views.meta import CreationMeta, DualViewMeta, check_write, move_retained
from ..views.ops import index_view
from .out_of_place import rebase
from .saved_hooks import packed

__all__ = ["Function", "FunctionCtx", "once_differentiable"]

Array = np.ndarray[Any, Any]
ndarray: Final = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])

# The origin of a saved value that is neither an input nor an output.
UNKNOWN: Final = None


@attrs.define(eq=False)
class Kept:
    """A value that a custom function keeps for its backward.

    Arguments:
        saved: the window kept, or None for a None that was saved.
        origin: the number of the tensor input that it is; -1 - i where it is output i; UNKNOWN where it is neither.
        saved_by: the name of the node.
    """

    saved: Any  # SavedTensor | Released | None
    origin: int | None
    saved_by: str


@attrs.define(eq=False)
class Wanted:
    """What `save_for_backward` was given: the tensor, what was kept of it, and its version then."""

    tensor: Tensor | None
    saved: SavedTensor | None
    version: int


class FunctionCtx:
    """What a custom function's forward and backward share; any attribute may be put on it.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether a gradient of it may be asked for.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._open = True  # while forward (and setup_context) runs
        self._recorded = False
        self._dual = False  # whether an input has a tangent
        self._wanted: list[Wanted] = []
        self._wanted_forward: tuple[Tensor | None, ...] | None = None
        self._kept: list[Kept] = []
        self._dirty: tuple[Tensor, ...] = ()
        self._non_differentiable: tuple[Tensor, ...] = ()
        self._materialize = True
        self._wrote: dict[int, int] = {}  # which output is which tensor argument, written over
        self._function: type[Function] = Function
        self._node: weakref.ref[FunctionNode] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`.

        Each keeps the value that it has now, whatever is written to it later. Under `create_graph=True`, inputs and
        outputs come back with their history; other tensors come back without one, and asking for a derivative through
        them is an error.

        Arguments:
            tensors: inputs, outputs, or others; None is kept as None.

        Raises:
            FunctionError: outside forward and setup_context.
            TypeError: for anything but tensors and None.
        """
        self._require_open("save_for_backward")
        self._require_tensors(tensors, "save_for_backward", or_none=True)
        self._wanted = [Wanted(tensor, self._saved(tensor), _version(tensor)) for tensor in tensors]

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_tensors`."""
        self._require_open("save_for_forward")
        self._require_tensors(tensors, "save_for_forward", or_none=True)
        self._wanted_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was given to `save_for_backward`.

        Raises:
            FreedGraphError: when a backward pass has released it.
        """
        if self._open:  # in jvp
            wanted = self._wanted_forward
            return tuple([entry.tensor for entry in self._wanted]) if wanted is None else wanted
        return tuple([self._unpacked(kept) for kept in self._kept])

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward writes to these inputs in place; each must be returned as an output.

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
        """Say that no gradient flows through these outputs; integer and bool outputs need not be named.

        Raises:
            FunctionError: outside forward and setup_context.
        """
        self._require_open("mark_non_differentiable")
        self._require_tensors(tensors, "mark_non_differentiable")
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether undefined gradients (and tangents) reach backward (and jvp) as zeros, the default, or as None.

        Raises:
            FunctionError: outside forward and setup_context.
        """
        self._require_open("set_materialize_grads")
        self._materialize = value

    def _saved(self, tensor: Tensor | None) -> SavedTensor | None:
        if tensor is None or not self._recorded:
            return None
        return with_tangents(save(tensor), tensor) if self._dual else save(tensor)

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
                    f"{self._function.__name__}: {what}() takes tensors, but its argument {i} is of type "
                    f"{type(tensor).__name__}; put other values on ctx as attributes"
                )

    def _unpacked(self, kept: Kept) -> Tensor | None:
        """A saved tensor with its history."""
        saved = kept.saved
        if saved is None:
            return None
        tensor = tensor_like(saved, None)  # raises where it has been released
        assert tensor._storage is not None
        tensor._storage.windows = SAVED_REFUSES_WRITES
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
        message = (
            f"the second derivative of {self._function.__name__} leads through a tensor of shape {array.shape} that "
            "was saved in its forward, but is neither an input nor an output, so that its history is not known; save "
            "inputs and compute it from them in backward, or return it as a further output (if it is a constant, pass "
            "it to apply(), or put it on ctx as an attribute)"
        )
        if mode & FORWARD and self._dual:  # the tangent of this tensor would be needed at once
            raise FunctionError(message)
        return delayed_error(message, node.edges) if mode & GRAD else None

    def __repr__(self) -> str:
        return f"<ctx of {self._function.__name__}>"


class FunctionNode(Node):
    """The step of a custom function: one edge for each argument that is a tensor.

    Attributes:
        ctx: what forward has left for backward.
        outputs: how many outputs forward has returned.
        likes: for each tensor argument, its shape and dtype.
        output_likes: for each output, its shape and dtype; None where it is no tensor.
        positions: for each tensor argument, its place among all arguments.
        argument_count: how many arguments there were in all.
    """

    __slots__ = ("argument_count", "ctx", "likes", "output_likes", "outputs", "positions")

    kind: ClassVar[int] = MANY

    ctx: FunctionCtx
    outputs: int  # type: ignore[misc]
    likes: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    output_likes: tuple[tuple[tuple[int, ...], np.dtype[Any]] | None, ...]
    positions: tuple[int, ...]
    argument_count: int

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What forward has saved for backward."""
        return self.ctx.saved_tensors

    def apply(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients along `edges`, from arrays."""
        ctx = self.ctx
        shown: list[Any] = []
        for array, like in zip((grad,) if self.outputs == 1 else grad, self.output_likes, strict=True):
            if array is not None:
                tensor = from_array(np.asarray(array))
                storage = tensor._storage = Storage(tensor._array, foreign=True)
                storage.windows = GRADIENT_REFUSES_WRITES
                shown.append(tensor)
            elif ctx._materialize and like is not None:
                shown.append(from_array(np.zeros(*like)))
            else:
                shown.append(None)
        grads = self._checked(ctx._function._backward()(ctx, *shown))
        for i, edge in enumerate(edges):
            if edge is None or grads[i] is None:
                grads[i] = None
                continue
            array = grads[i]._array if _is_nobody_elses(grads, i) else grads[i]._array.copy()
            like = self.likes[i]
            grads[i] = array if (array.shape, array.dtype) == like else conform(array, like)
        return tuple(grads)

    def apply_recorded(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same from tensors, recorded."""
        ctx = self.ctx
        given = (grad,) if self.outputs == 1 else grad
        shown = [
            from_array(np.zeros(*like)) if g is None and ctx._materialize and like is not None else g
            for g, like in zip(given, self.output_likes, strict=True)
        ]
        versions = [_version(g) for g in shown]
        grads = self._checked(ctx._function._backward()(ctx, *shown))
        if versions != [_version(g) for g in shown]:
            raise FunctionError(f"{self.name()}: {GRADIENT_IS_SHARED}")
        for i, edge in enumerate(edges):
            if edge is None or grads[i] is None:
                grads[i] = None
                continue
            nobody_elses = _is_nobody_elses(grads, i)
            result = grads[i]
            if not nobody_elses and not _is_in(result, shown):
                result = result.clone()
            like = self.likes[i]
            grads[i] = result if (result.shape, result.dtype) == like else conform(result, like)
        return tuple(grads)

    def _checked(self, returned: Any) -> list[Any]:
        """Of what backward has returned, the gradients of the tensor arguments."""
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
                    f"{self.name()}: backward returned {type(g).__name__} as gradient {position}, where a Tensor or "
                    "None is wanted"
                )
            if position not in self.positions:
                raise FunctionError(
                    f"{self.name()}: backward returned a gradient for argument {position}, which is no tensor; return "
                    "None for it"
                )
            shape, _ = self.likes[self.positions.index(position)]
            if g.shape != shape and not _broadcasts(shape, g.shape):
                raise FunctionError(
                    f"{self.name()}: backward returned a gradient of shape {g.shape} for argument {position}, whose "
                    f"shape is {shape}"
                )
        del g
        return [grads[position] for position in self.positions]

    def release(self) -> None:
        """Let go of the saved values."""
        for kept in self.ctx._kept:
            if kept.saved is not None:
                kept.saved = RELEASED

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)


class Function:
    """A differentiable step written by hand: subclass it, and call the subclass's `apply`.

    A subclass defines static methods. Either `forward(ctx, *args)`, or `forward(*args)` and
    `setup_context(ctx, inputs, output)`. Then `backward(ctx, *grads)`, which takes a gradient for each output and
    returns one for each argument (None for those that are no tensors or need none); and, for forward mode,
    `jvp(ctx, *tangents)`, which takes a tangent for each argument and returns one for each output.

    Gradients are conjugated as everywhere in the library: for a holomorphic step of derivative `d`, `grad * conj(d)`.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd import Function
        >>> class Cube(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return grad * 3 * x * x
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> Cube.apply(x).sum().backward()
        >>> x.grad
        Tensor([ 3., 12.])
    """

    _node_class: ClassVar[type[FunctionNode]] = FunctionNode

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise FunctionError(f"{type(self).__name__} is not to be instantiated; call {type(self).__name__}.apply(...)")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._node_class = type(f"{cls.__name__}Backward", (FunctionNode,), {"__slots__": (), "__doc__": cls.__doc__})

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: a tensor or a tuple of them."""
        raise NotImplementedError("a custom Function must define forward as a static method")

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Put on `ctx` what backward needs, where forward does not take `ctx` itself."""
        raise NotImplementedError("this custom Function has no setup_context: its forward takes ctx")

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        """Compute the gradients of the arguments from those of the outputs."""
        raise NotImplementedError("a custom Function must define backward to be differentiated in reverse mode")

    vjp = backward

    @staticmethod
    def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
        """Compute the tangents of the outputs from those of the arguments."""
        raise NotImplementedError("a custom Function must define jvp to be differentiated in forward mode")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward on `args`, and record the step.

        Arguments:
            args: what forward takes, `ctx` aside; tensors inside of lists and other containers are not seen.

        Returns:
            What forward returns.

        Raises:
            FunctionError: where forward breaks the contract: a dirty tensor that is not returned, an input that was
                written to without having been marked dirty, and what `FunctionCtx` refuses.
        """
        separate = cls.setup_context is not Function.setup_context
        if kwargs or separate:
            args = _bound(cls, args, kwargs, separate)
        mode = current_mode()
        inputs = tuple([arg for arg in args if isinstance(arg, Tensor)])
        edges = tuple([current_edge(tensor) for tensor in inputs])
        versions = [_version(tensor) for tensor in inputs]
        tangents = _tangents(args) if mode & FORWARD else ()
        ctx = FunctionCtx()
        ctx._function = cls
        ctx._dual = bool(tangents)
        ctx._recorded = bool(mode & GRAD) and any(edge is not None for edge in edges)
        needing = iter(edges)
        ctx.needs_input_grad = tuple([isinstance(arg, Tensor) and next(needing) is not None for arg in args])
        with ModeSwitch(off=GRAD | FORWARD):
            if separate:
                returned = cls.forward(*args)
                cls.setup_context(ctx, args, returned)
            else:
                returned = cls.forward(ctx, *args)
            single = not isinstance(returned, tuple)
            outputs = [returned] if single else list(returned)
            del returned
            _check_outputs(ctx, inputs, edges, versions, outputs)
            node = None
            if ctx._recorded:
                node = new(cls._node_class)
                node.edges = edges
                node.hooks = None
                node.sequence_nr = next_sequence_nr()
                node.ctx = ctx
                node.outputs = len(outputs)
                node.likes = tuple([(tensor.shape, tensor.dtype) for tensor in inputs])
                node.output_likes = tuple([(o.shape, o.dtype) if isinstance(o, Tensor) else None for o in outputs])
                node.positions = tuple([i for i, arg in enumerate(args) if isinstance(arg, Tensor)])
                node.argument_count = len(args)
                ctx._node = weakref.ref(node)
            results = _wrapped(ctx, node, inputs, outputs)
        for level, tangents_there in tangents:
            _push_forward(ctx, level, tangents_there, args, results)
        if node is not None:
            ctx._kept = [
                _kept(ctx, wanted, inputs, versions, outputs, results, packing=bool(mode & PACK))
                for wanted in ctx._wanted
            ]
            if mode & ANOMALY:
                note(node)
        ctx._open = False
        ctx._wanted = []
        ctx._wanted_forward = None
        ctx._dirty = ctx._non_differentiable = ()
        return results[0] if single else tuple(results)

    @classmethod
    def _backward(cls) -> Callable[..., Any]:
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise FunctionError(f"{cls.__name__} defines both backward and vjp, two names for the same; keep one")
        return cls.vjp


def once_differentiable(function: F) -> F:
    """Let a custom function's `backward` run unrecorded, so that differentiating its result is an error.

    Put it below `@staticmethod`. It is for a backward that computes outside of what is recorded, with NumPy for
    instance: a second derivative, which could not be had, is then refused rather than wrong.

    Example:
        >>> from viewgrad.autograd import Function, once_differentiable
        >>> class Double(Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, grad):
        ...         return grad * 2
    """

    @functools.wraps(function)
    def backward(ctx: FunctionCtx, *grads: Any) -> Any:
        recorded = current_mode() & GRAD
        message = (
            f"the second derivative of {ctx._function.__name__} was asked for, whose backward is @once_differentiable; "
            "compute backward with differentiable operators and leave the decorator out"
        )
        if current_mode() & FORWARD and (ctx._dual or any(g is not None and has_tangent(g) for g in grads)):
            raise FunctionError(message)
        with ModeSwitch(off=GRAD):
            returned = function(ctx, *grads)
        node = None if ctx._node is None else ctx._node()
        if not recorded or node is None:
            return returned
        edges = (*[current_edge(g) for g in grads if g is not None], *node.edges)
        if all(edge is None for edge in edges):
            return returned
        return tuple(
            from_array(g._array.copy(), delayed_error(message, edges))
            if isinstance(g, Tensor) and g.dtype.kind in "fc"
            else g
            for g in (returned if isinstance(returned, tuple | list) else (returned,))
        )

    return backward  # type: ignore[return-value]


class DelayedError(Node):
    """In the place of a history that is not known: raises when a gradient comes to it."""

    __slots__ = ("message",)

    kind: ClassVar[int] = MANY

    message: str

    def apply(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """Raise."""
        raise FunctionError(self.message)

    apply_recorded = apply


def delayed_error(message: str, edges: tuple[Any, ...]) -> DelayedError:
    """A node that raises; `edges` lead to all that its history might lead to."""
    node: DelayedError = new(DelayedError)
    node.edges = edges
    node.hooks = None
    node.sequence_nr = next_sequence_nr()
    node.message = message
    return node


GRADIENT_IS_SHARED: Final = (
    "backward wrote in place to a gradient that it was given, which others may still need; write to a clone() of it"
)
# Shared by the storages of all gradients, and of all saved values, that are shown to a custom backward.
GRADIENT_REFUSES_WRITES: Final = WritesRefused(np.empty(0), FunctionError, GRADIENT_IS_SHARED)
SAVED_REFUSES_WRITES: Final = WritesRefused(
    np.empty(0), FunctionError, "in-place write to one of ctx.saved_tensors, which others may need; write to a clone()"
)


# -- around forward ----------------------------------------------------------------------------------------------------


def _bound(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], separate: bool) -> tuple[Any, ...]:
    """All arguments of forward in their order, with defaults for those left out."""
    signature = inspect.signature(cls.forward)
    bound = signature.bind(*args, **kwargs) if separate else signature.bind(None, *args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise FunctionError(f"{cls.__name__}: forward has keyword-only arguments, which apply() cannot differentiate")
    return bound.args if separate else bound.args[1:]


def _version(tensor: Tensor | None) -> int:
    storage = None if tensor is None else tensor._storage
    return 0 if storage is None else storage.version + storage.writes


def _is_in(tensor: Any, tensors: tuple[Any, ...] | list[Any]) -> bool:
    return any(tensor is other for other in tensors)


def _check_outputs(
    ctx: FunctionCtx, inputs: tuple[Tensor, ...], edges: tuple[Any, ...], versions: list[int], outputs: list[Any]
) -> None:
    """Refuse what would make gradients wrong."""
    name = ctx._function.__name__
    dirty = ctx._dirty
    for tensor in dirty:
        if not _is_in(tensor, outputs):
            raise FunctionError(
                f"{name}: a tensor of shape {tensor.shape} was marked dirty but not returned; what forward writes to "
                "must be among its outputs"
            )
        if not _is_in(tensor, inputs):
            warnings.warn(
                f"{name}: mark_dirty() of a tensor that is no input has no effect", UserWarning, stacklevel=4
            )
    for i, tensor in enumerate(dirty):
        for other in dirty[:i]:
            if ctx._recorded and other is not tensor and np.may_share_memory(tensor._array, other._array):
                raise FunctionError(f"{name}: two tensors marked dirty share memory; write to one of them only")
    if not ctx._recorded:
        return
    for tensor, edge, version in zip(inputs, edges, versions, strict=True):
        if edge is not None and _version(tensor) != version and not any(
            tensor is other or tensor._storage is other._storage for other in dirty
        ):
            raise FunctionError(
                f"{name}: forward wrote to an input of shape {tensor.shape} that requires grad; say so by "
                "ctx.mark_dirty() and return it, or write to a clone() of it"
            )
    for i, output in enumerate(outputs):
        inner = output if isinstance(output, list) else list(output.values()) if isinstance(output, dict) else ()
        if isinstance(output, ndarray | np.inexact) or any(isinstance(item, Tensor) for item in inner):
            raise FunctionError(
                f"{name}: output {i} is of type {type(output).__name__}, which no gradient can come back from; return "
                "a Tensor, or a tuple of them"
            )


def _wrapped(ctx: FunctionCtx, node: FunctionNode | None, inputs: tuple[Tensor, ...], outputs: list[Any]) -> list[Any]:
    """The outputs, with the step as their history."""
    results = list(outputs)
    edges: list[Any] = []
    for i, output in enumerate(outputs):
        differentiable = (
            node is not None
            and isinstance(output, Tensor)
            and output._array.dtype.kind in "fc"
            and not _is_in(output, ctx._non_differentiable)
        )
        edges.append(edge_to(node, i) if differentiable else None)  # type: ignore[arg-type]
    # First the writes, since they move on the histories of the bases of views among the other outputs.
    for i, output in enumerate(outputs):
        if _is_in(output, ctx._dirty) and _is_in(output, inputs) and not _is_in(output, outputs[:i]):
            if node is not None:
                _rebase(output, edges[i])
                ctx._wrote[i] = next(number for number, tensor in enumerate(inputs) if tensor is output)
        elif isinstance(output, Tensor):
            results[i] = None
    for i, output in enumerate(outputs):
        if results[i] is None and output is not None:
            results[i] = _as_output(ctx, output, edges[i], alias=_is_in(output, inputs) or _is_in(output, outputs[:i]))
    return results


def _rebase(tensor: Tensor, edge: Any) -> None:
    """Let `edge` lead to the history of what forward has written to `tensor`."""
    view = tensor._view
    old = current_edge(tensor)
    if view is not None and current_mode() & FUNCTIONAL:
        rebase(tensor, edge)
    elif view is not None:  # as if an output had been copied into the view
        step: CopyBackwards = new(CopyBackwards)
        step.edges = (None, edge)
        step.hooks = None
        step.sequence_nr = next_sequence_nr()
        step.like = None
        rebase_history(tensor, step)
    else:
        tensor._edge = edge
        if old is not None and edge is not None:
            move_retained(tensor, old, edge)


def _as_output(ctx: FunctionCtx, tensor: Tensor, edge: Any, alias: bool) -> Tensor:
    """An output that was not written to, with `edge` leading to its history; an `alias` is a new tensor."""
    if edge is None:
        if ctx._recorded and current_edge(tensor) is not None:
            return tensor.detach()
        return index_view(tensor, (...,)) if alias else tensor
    if alias:
        tensor = index_view(tensor, (...,))
    view = tensor._view
    if view is not None:
        view.made_from = view.base._edge
        view.creation = CreationMeta.IN_CUSTOM_FUNCTION
    elif tensor.is_leaf and tensor._edge is not None:
        raise FunctionError(
            f"{ctx._function.__name__}: forward returned a leaf that requires grad, and was not passed to apply(); "
            "pass it, or return a clone() of it"
        )
    tensor._edge = edge
    return tensor


def _kept(
    ctx: FunctionCtx,
    wanted: Wanted,
    inputs: tuple[Tensor, ...],
    versions: list[int],
    outputs: list[Any],
    results: list[Any],
    packing: bool,
) -> Kept:
    """What was given to save_for_backward, with where its history comes from."""
    tensor, saved = wanted.tensor, wanted.saved
    name = ctx._function._node_class.__name__
    if tensor is None or saved is None:
        return Kept(None, UNKNOWN, name)
    origin = UNKNOWN
    for number, (other, version) in enumerate(zip(inputs, versions, strict=True)):
        if other is tensor and version == wanted.version:
            origin = number
            break
    else:
        if wanted.version == _version(tensor):
            for number, other in enumerate(outputs):
                if other is tensor:
                    origin = -1 - number
                    if ctx._dual:
                        saved = with_tangents(saved.inner if type(saved) is DualSaved else saved, results[number])
                    break
    if packing:
        if type(saved) is DualSaved:
            saved.inner = packed(saved.inner)
        else:
            saved = packed(saved)
    return Kept(saved, origin, name)


# -- forward mode ------------------------------------------------------------------------------------------------------


def _tangents(args: tuple[Any, ...]) -> list[tuple[DualLevel, list[Tensor | None]]]:
    """The tangents of the arguments before forward may write to them, for each level at which there is any."""
    result = []
    for level in open_levels():
        tangents = [tangent_of(arg, level) if isinstance(arg, Tensor) else None for arg in args]
        if any(tangent is not None for tangent in tangents):
            with at_level(level.outer):
                result.append((level, [None if tangent is None else tangent.clone() for tangent in tangents]))
    return result


def _push_forward(
    ctx: FunctionCtx, level: DualLevel, tangents: list[Tensor | None], args: tuple[Any, ...], outputs: list[Any]
) -> None:
    """Give the outputs the tangents that `jvp` computes, at one level."""
    name = ctx._function.__name__
    if ctx._materialize:
        tangents = [
            from_array(np.zeros_like(arg._array)) if tangent is None and isinstance(arg, Tensor) else tangent
            for arg, tangent in zip(args, tangents, strict=True)
        ]
    with at_level(level.outer):
        returned = ctx._function.jvp(ctx, *tangents)
    results = returned if isinstance(returned, tuple) else (returned,)
    if len(results) != len(outputs):
        raise FunctionError(f"{name}: jvp returned {len(results)} tangents, but forward had {len(outputs)} outputs")
    for i, (output, tangent) in enumerate(zip(outputs, results, strict=True)):
        if not isinstance(output, Tensor):
            if tangent is not None:
                raise FunctionError(f"{name}: jvp returned a tangent for output {i}, which is no tensor")
            continue
        if tangent is not None and not isinstance(tangent, Tensor):
            raise FunctionError(
                f"{name}: jvp returned {type(tangent).__name__} for output {i}, where a Tensor or None is wanted"
            )
        if tangent is not None and tangent.shape != output.shape:
            raise FunctionError(
                f"{name}: jvp returned a tangent of shape {tangent.shape} for output {i}, whose shape is {output.shape}"
            )
        if output.dtype.kind not in "fc" or _is_in(output, ctx._non_differentiable):
            tangent = None
        if output._view is not None and not _is_in(output, ctx._dirty):
            _stand_apart(output)  # what the function says of its output is not said of the base
            make_dual_root(output, output, tangent, level)
        else:
            set_tangent(output, tangent, level)


def _stand_apart(output: Tensor) -> None:
    """Let a view have a tangent of its own."""
    plain = output._view
    assert plain is not None
    if type(plain) is not DualViewMeta or not plain.is_root:
        view = DualViewMeta.of_view(TangentRoot(output._array, plain, whole=False), ())
        for name in ("base", "index", "view_fn", "creation", "made_from", "strided", "overlaps_itself"):
            setattr(view, name, getattr(plain, name))
        output._view = view


# -- around backward ---------------------------------------------------------------------------------------------------


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a value of `shape` can be broadcast `to` another, so that a gradient of that can be summed."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def _is_nobody_elses(grads: list[Any], i: int) -> bool:
    """Whether only the list holds gradient `i`, or its memory is one to which nobody writes."""
    grad = grads[i]
    storage = grad._storage
    if storage is not None and (storage.windows is GRADIENT_REFUSES_WRITES or storage.windows is SAVED_REFUSES_WRITES):
        return True
    if getrefcount(grad) > GRAD_ALONE or grad._view is not None:
        return False
    return storage is None or getrefcount(storage) <= STORAGE_ALONE


def _reference_counts() -> tuple[int, int]:
    """The reference counts, in `_is_nobody_elses`, of a gradient and of its storage that nobody else holds."""

    class Probe:
        _storage: Any

    def look(grads: list[Any], i: int) -> tuple[int, int]:
        grad = grads[i]
        storage = grad._storage
        return getrefcount(grad), getrefcount(storage)

    probe = Probe()
    probe._storage = Probe()
    grads = [probe]
    del probe
    return look(grads, 0)


GRAD_ALONE, STORAGE_ALONE = _reference_counts()
