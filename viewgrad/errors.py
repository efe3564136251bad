"""The errors that viewgrad raises: one named class for each thing that is refused."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "AnomalyError",
    "AutogradError",
    "CheckpointError",
    "CompiledMismatchError",
    "ConcurrentWriteError",
    "DeclarationError",
    "DetachedConversionError",
    "DifferentiabilityError",
    "ConcretizationError",
    "UnsupportedTypeError",
    "ForwardModeError",
    "FreedGraphError",
    "FunctionError",
    "GradcheckError",
    "GradientMismatchError",
    "GradientNotImplementedError",
    "GraphError",
    "GuardError",
    "HookError",
    "InferenceError",
    "InteropError",
    "InterruptedWriteError",
    "LeafInPlaceError",
    "DetachedConversionWarning",
    "NonLeafGradWarning",
    "NotCompiledError",
    "NotCompiledWarning",
    "OverlappingWriteError",
    "TraceTooLongError",
    "SavedValueError",
    "ScalarWriteError",
    "StrictMutationError",
    "TraceError",
    "TreeError",
    "UnsupportedFunctionError",
    "UnusedInputError",
    "UnsupportedDtypeError",
    "ViewInPlaceError",
]


class Documented:
    """An error or warning with a section in the documentation: how it arises, and the ways out. Its text ends with
    the address.
    """

    page: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:  # what others derive has the section of what it is derived from
            cls.page = f"docs/guides/errors.md#{cls.__name__.lower()}"

    @property
    def message(self) -> str:
        """The message without the address of the documentation."""
        return super().__str__()

    def __str__(self) -> str:
        return f"{self.message}\nSee {self.page}"


class AutogradError(Documented, RuntimeError):
    """The base class of viewgrad's errors.

    Attributes:
        message: what happened, and what to do instead.
        page: where the documentation has the smallest program that raises the error, and the ways out. The text of the
            error ends with it.
    """


class LeafInPlaceError(AutogradError):
    """A leaf that requires grad, or a view of one, was written to while grad mode was on."""


class ViewInPlaceError(AutogradError):
    """A view stands in a write that hides from its base's history what it holds, or was meant to hold."""


class OverlappingWriteError(AutogradError):
    """A window was written to in which several elements share one place in memory."""


class NotCompiledError(AutogradError):
    """A program does something that is not compiled; the message says what, and where."""


class CompiledMismatchError(AutogradError):
    """A compiled program gave another result than the function that it was compiled from."""


class TraceTooLongError(NotCompiledError):
    """A program was too long, and too irregular, to be compiled."""


class FreedGraphError(AutogradError):
    """A node was run whose saved values an earlier backward pass has released."""


class CheckpointError(AutogradError):
    """A checkpointed function cannot be run again for its gradient, or computed something else when it was."""


class DifferentiabilityError(AutogradError):
    """A gradient was asked of something that has none: an integer tensor, or one without history."""


class GradientMismatchError(AutogradError):
    """A gradient was supplied whose shape or dtype is not that of the tensor it belongs to."""


class InteropError(AutogradError):
    """A function cannot cross the border between viewgrad and another library without losing a gradient."""


class InterruptedWriteError(AutogradError):
    """A gradient came to a value that an error has left half written."""


class ConcurrentWriteError(AutogradError):
    """Two threads wrote to one tensor at the same time."""


class SavedValueError(AutogradError):
    """A value saved for backward was overwritten behind the library's back."""


class ScalarWriteError(AutogradError, TypeError):
    """A scalar was written to, which is a value and no memory."""


class StrictMutationError(AutogradError):
    """A write touched a value saved for backward while that is forbidden."""


class GradcheckError(AutogradError):
    """A gradient did not stand up to `gradcheck`.

    Attributes, where the check is one of single numbers (None elsewhere):
        input, output: which argument and which output, counted from 0.
        element, output_element: the indices of the element in each.
        analytical, numerical: what the backward pass and what finite differences say.
        tolerance: how far apart the two might have been.
    """

    def __init__(
        self,
        message: str,
        *,
        input: int | None = None,
        output: int | None = None,
        element: tuple[int, ...] | None = None,
        output_element: tuple[int, ...] | None = None,
        analytical: float | None = None,
        numerical: float | None = None,
        tolerance: float | None = None,
    ) -> None:
        super().__init__(message)
        self.input = input
        self.output = output
        self.element = element
        self.output_element = output_element
        self.analytical = analytical
        self.numerical = numerical
        self.tolerance = tolerance


class InferenceError(AutogradError):
    """A tensor made in inference mode was used where autograd would have to record it."""


class FunctionError(AutogradError):
    """A custom `Function` broke the contract between its forward, its backward and the engine."""


class UnusedInputError(AutogradError):
    """A gradient was asked with respect to a tensor that the outputs do not depend on."""


class UnsupportedFunctionError(AutogradError, TypeError):
    """A NumPy function was called on tensors for which viewgrad has no operator."""


class UnsupportedTypeError(AutogradError, TypeError):
    """A value was given for a tensor that cannot be made one, or would lose what it means."""


class UnsupportedDtypeError(AutogradError, TypeError):
    """An operator was called with numbers of a kind that it has no derivative for: complex ones, for example."""


class HookError(AutogradError, TypeError):
    """A hook was registered where none can be, or gave back what cannot take the place of what it was given."""


class AnomalyError(AutogradError):
    """Anomaly detection found a gradient that is not a number."""


class DeclarationError(AutogradError, ValueError):
    """A declaration that cannot be right, found when the operator is defined.

    Arguments:
        message: what is wrong, and where.
        operator: the name of the operator.
        formula: the text of the formula, where one is to blame.
        position: where in it, counted from 1.
    """

    def __init__(
        self, message: str, operator: str | None = None, formula: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.operator = operator
        self.formula = formula
        self.position = position


class GradientNotImplementedError(AutogradError, NotImplementedError):
    """A gradient or a tangent was needed that the operator's declaration says is not implemented."""


class ForwardModeError(AutogradError):
    """Forward mode was used in a way that it is not made for."""


class GraphError(AutogradError):
    """A graph is not what it should be: it cannot be parsed, verified, run or differentiated."""


class TraceError(AutogradError):
    """A program did something, while it was traced, that a graph cannot hold."""


class ConcretizationError(TraceError):
    """A value left the library while a program was traced, so that the graph would have held it fixed."""


class GuardError(AutogradError):
    """A value that steered the program when it was traced is another in this run of its graph.

    Arguments:
        message: what it was, and is, and where.
        location: the file and line.
    """

    def __init__(self, message: str, location: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.location = location


class TreeError(AutogradError, TypeError):
    """A nested structure of tensors was given whose shape is not that of the one it belongs to."""


class DetachedConversionError(AutogradError):
    """A tensor with a history becomes a plain array or number, from which the result goes on without a gradient."""


class DetachedConversionWarning(Documented, UserWarning):
    """A tensor that requires grad was made a plain number, through which no gradient flows."""


class NonLeafGradWarning(Documented, UserWarning):
    """The `grad` of a tensor was read that no backward pass will fill in."""


class NotCompiledWarning(Documented, UserWarning):
    """A function that was to be compiled runs eagerly."""
