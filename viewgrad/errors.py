"""The errors that viewgrad raises: one named class for each thing that is refused."""

from __future__ import annotations

from typing import Any, ClassVar, Final

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


SITE: Final = "https://viewgrad.readthedocs.io"  # where the documentation is


class Documented:
    """An error or warning with a section in the documentation: how it arises, and the ways out. Its text ends with
    the address.
    """

    section: ClassVar[str]
    page: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:  # what others derive has the section of what it is derived from
            cls.section = cls.__name__
            cls.page = f"{SITE}/guides/errors/#{cls.__name__.lower()}"

    @property
    def message(self) -> str:
        """The message without the address of the documentation."""
        return super().__str__()

    def __str__(self) -> str:
        return f"{self.message}\nSee help(viewgrad.errors.{self.section}), or {self.page}"


class AutogradError(Documented, RuntimeError):
    """The base class of viewgrad's errors.

    The class that all errors above belong to; itself a `RuntimeError`. Some of them are a `TypeError` or a
    `ValueError` too.

    - `except vg.errors.AutogradError` catches whatever viewgrad refuses.
    - To save a tensor that was computed, `detach()` it: see saving to disk.

    Attributes:
        message: what happened, and what to do instead.
        section: the class whose docstring says more; of a class of viewgrad.errors, its own name.
        page: the address of the same text on the site.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import pickle
        >>> pickle.dumps(x * 2.0)
        Traceback (most recent call last):
            ...
        viewgrad.errors.AutogradError: only leaf tensors can be pickled, and this one was made by ...
        See help(viewgrad.errors.AutogradError), or ...
    """


class LeafInPlaceError(AutogradError):
    """A leaf that requires grad, or a view of one, was written to while grad mode was on.

    A leaf that requires grad was used in an in-place operation. After the write no tensor would stand for the value
    that you differentiate with respect to.

    - To *compute* with it, write to a copy: `y = x.clone()`.
    - To *update* it, as an optimiser does, write under `with vg.no_grad():`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> x *= 2.0
        Traceback (most recent call last):
            ...
        viewgrad.errors.LeafInPlaceError: in-place write to a leaf of shape (2,) that requires grad: its old ...
    """


class ViewInPlaceError(AutogradError):
    """A view stands in a write that hides from its base's history what it holds, or was meant to hold.

    The view was made where nothing is recorded, so nobody can say whether the write is meant to be.

    - Take the view outside of `no_grad`, or write inside of it.
    - Of a view that a custom `Function` returned: `clone()` it, or return a copy from `forward`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> b = x.clone()
        >>> with vg.no_grad():
        ...     view = b[:1]
        >>> view *= 2.0
        Traceback (most recent call last):
            ...
        viewgrad.errors.ViewInPlaceError: this view was made under no_grad and is written to in grad mode, but ...
    """


class OverlappingWriteError(AutogradError):
    """A window was written to in which several elements share one place in memory.

    Several elements lie in one place, and a write would have to store several values there.

    - Write to a copy: `wide = wide.clone()`.
    - Write to a part that does not overlap itself, such as one row.

    Example:
        >>> import viewgrad as vg
        >>> wide = vg.zeros(1).expand(3)
        >>> wide += vg.Tensor([1.0, 2.0, 3.0])
        Traceback (most recent call last):
            ...
        viewgrad.errors.OverlappingWriteError: elements of this tensor of shape (3,) share places in memory ...
    """


class NotCompiledError(AutogradError):
    """A program does something that is not compiled; the message says what, and where.

    The compiler raises it where a program does something that it has no code for, and catches it itself. The
    function then runs eagerly, with the same results.

    - `explain()` has the message, with the line. Move that line out of the function, or compile a smaller function.
    - Pass a number that sizes depend on as an argument.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> @vg.compile(executor="python", specialize=True)
        ... def counted(x):
        ...     counts = vg.zeros(2, dtype=np.int8)
        ...     counts[0] = 2
        ...     return (x * counts).sum()
        >>> for call in range(3):
        ...     loss = counted(x)
        >>> print(counted.explain())
        counted(float64[2] grad)
          runs eagerly: arrays of int8 are not compiled ...
    """


class CompiledMismatchError(AutogradError):
    """A compiled program gave another result than the function that it was compiled from.

    A compiled program gave another result than its function. Here the function depends on something that the
    compiler cannot see.

    - Pass what changes as an argument.
    - If the function is a function of its arguments alone, this is a defect of the library; please report it.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> class Settings:
        ...     rate_of_it = 1.0
        >>> scaled = vg.compile(lambda x: x * getattr(Settings, "_".join(["rate", "of", "it"])), executor="python")
        >>> loss = scaled(x)                             # recorded
        >>> Settings.rate_of_it = 2.0
        >>> scaled(x)                                    # compared
        Traceback (most recent call last):
            ...
        viewgrad.errors.CompiledMismatchError: the result of the compiled <lambda> differs from the function's ...
    """


class TraceTooLongError(NotCompiledError):
    """A program was too long, and too irregular, to be compiled.

    A program is too long and too irregular to be compiled. The compiler catches this error too, and the function
    runs eagerly.

    - Compile the inner function that is called again and again, instead of the whole.
    - Work on rows and matrices instead of single numbers: then there are fewer operations.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> heads = np.random.default_rng(0).integers(0, 2, 4000)
        >>> @vg.compile(executor="python", specialize=True)
        ... def tossed(x):
        ...     for head in heads:
        ...         x = vg.sin(x) if head else x * 0.5
        ...     return x
        >>> for call in range(2):
        ...     loss = tossed(x)
        >>> print(tossed.explain())
        tossed(float64[2] grad)
          runs eagerly: ... are left that belong to no loop; at most 3000 are compiled. ...
    """


class FreedGraphError(AutogradError):
    """A node was run whose saved values an earlier backward pass has released.

    A backward pass went through the graph a second time, and the first one has released the saved values.

    - `loss.backward(retain_graph=True)` keeps them for another pass.
    - For several gradients at once, ask once: `grad(loss, [x, y])`.
    - In a training loop, compute the loss anew, or `detach()` what you carry over from the last step.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> loss = (x * x).sum()
        >>> loss.backward()
        >>> loss.backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.FreedGraphError: this graph was already differentiated, and the values saved for it ...
    """


class CheckpointError(AutogradError):
    """A checkpointed function cannot be run again for its gradient, or computed something else when it was.

    A checkpointed function runs a second time in the backward pass. It cannot be run twice, or the second run
    differs from the first.

    - Pass whatever changes between the two runs as an argument: arguments keep the values that they had.
    - If the function writes to an argument or to a captured tensor, let it write to a `clone()` and return that.
    - Random number generators are set back if the function captures them or takes them as arguments.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> scale = vg.ones(2)
        >>> y = vg.checkpoint(lambda x: (x * scale).sum())(x)
        >>> scale *= 2
        >>> y.backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.CheckpointError: a checkpointed function did not compute in the backward pass what it ...
    """


class DifferentiabilityError(AutogradError):
    """A gradient was asked of something that has none: an integer tensor, or one without history.

    Integers have no derivative, and nor has a tensor that nothing leads to. The derivative of an output of several
    elements needs a gradient to start from.

    - Make the numbers floating-point: `vg.Tensor([1.0, 2.0])`, or `astype(float)`.
    - Make the output a number: `loss.sum().backward()`, or pass `backward(gradient)`.
    - Where an output has no history, see why is my grad None.

    Example:
        >>> import viewgrad as vg
        >>> vg.Tensor([1, 2], requires_grad=True)
        Traceback (most recent call last):
            ...
        viewgrad.errors.DifferentiabilityError: only tensors of floating-point or complex dtype can require ...
    """


class GradientMismatchError(AutogradError):
    """A gradient was supplied whose shape or dtype is not that of the tensor it belongs to.

    The gradient that you supply must be shaped like the tensor that it belongs to, and of its dtype.

    - `reshape` it, `broadcast_to` it, or `astype` it.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).backward(vg.ones(3))
        Traceback (most recent call last):
            ...
        viewgrad.errors.GradientMismatchError: the gradient supplied has shape (3,), but the tensor it belongs ...
    """


class InteropError(AutogradError):
    """A function cannot cross the border between viewgrad and another library without losing a gradient.

    A function that is used from PyTorch, JAX or PyTensor, or one of theirs that is used here, would lose a gradient
    at the border.

    - Write to a copy of the argument: `x = x * 1.0`.
    - Pass captured tensors that require grad as arguments, or `detach()` them.
    - Move PyTorch tensors to the CPU, and let JAX compute in double precision where viewgrad does:
      `jax.config.update("jax_enable_x64", True)`.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> from viewgrad.interop.operation import Operation  # what torch_function, jax_function and pytensor_op make
        >>> def overwrite(x):
        ...     x *= 2
        ...     return x
        >>> Operation(overwrite, "overwrite")([np.ones(2)], [False])
        Traceback (most recent call last):
            ...
        viewgrad.errors.InteropError: overwrite wrote to an argument in place, which its caller would see; ...
    """


class InterruptedWriteError(AutogradError):
    """A gradient came to a value that an error has left half written.

    An error has ended a write half way. What it left is neither the old value nor the new one.

    - Compute the tensor anew, or overwrite what was written by values that are well defined.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> y = vg.Tensor(np.float32([0.0, 40.0]), requires_grad=True) * 1.0
        >>> try:
        ...     with np.errstate(all="raise"):
        ...         y.log_()                             # fails at the first element, in the midst of the write
        ... except FloatingPointError:
        ...     pass
        >>> y.sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.InterruptedWriteError: log_ raised an error when it had begun to write, so that the ...
    """


class ConcurrentWriteError(AutogradError):
    """Two threads wrote to one tensor at the same time.

    Two threads wrote to one tensor at the same moment. In a program with threads this is rare, and depends on the
    schedule.

    - Put a lock around the writes.
    - Or let each thread write to a tensor of its own, and add the tensors afterwards.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import sys
        >>> y = x.clone()
        >>> def meanwhile(frame, event, argument):       # stands for another thread, which gets in between
        ...     if frame.f_code.co_name == "begin_write":
        ...         sys.settrace(None)
        ...         y.mul_(2.0)
        >>> sys.settrace(meanwhile)
        >>> y[[0]] = 1.0
        Traceback (most recent call last):
            ...
        viewgrad.errors.ConcurrentWriteError: another thread has written to this tensor while a write to it ...
    """


class SavedValueError(AutogradError):
    """A value saved for backward was overwritten behind the library's back.

    Somebody wrote to the memory unseen, said so afterwards, and the old value is lost.

    - `clone()` the tensor before it is used in the computation, or write to it through viewgrad.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x.clone()
        >>> z = y * y
        >>> y._array[0] = 100.0                          # as C code might
        >>> vg.autograd.graph.increment_version(y)
        >>> z.sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.SavedValueError: a value saved for backward was overwritten by code outside viewgrad ...
    """


class ScalarWriteError(AutogradError, TypeError):
    """A scalar was written to, which is a value and no memory.

    As in NumPy, a reduction or an index by integers alone gives a value, and no memory.

    - Bind a new one: `s = s * 2`, or `s *= 2`, which does that.
    - Write to the element of the array: `a[i] *= 2`; or take a window of it, `a[i, ...]`.
    - `clone()` gives an array without dimensions, which can be written to.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> x.sum().mul_(2.0)
        Traceback (most recent call last):
            ...
        viewgrad.errors.ScalarWriteError: an in-place write: a scalar is a value, as in NumPy, and cannot be ...
    """


class StrictMutationError(AutogradError):
    """A write touched a value saved for backward while that is forbidden.

    You asked for this error: in strict mode a write raises instead of copying what it would destroy.

    - Write to a `clone()`, use the operator that makes a new tensor, or leave the strict mode.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.autograd.graph.forbid_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = y * y
        ...     y *= 2.0
        Traceback (most recent call last):
            ...
        viewgrad.errors.StrictMutationError: mul_ would touch a value of shape (2,) that MulBackward saved for ...
    """


class GradcheckError(AutogradError):
    """A gradient did not stand up to `gradcheck`.

    A gradient and finite differences do not agree. The message names input, output, element and both numbers.

    - Mend the formula. Check away from kinks, and in double precision.
    - For a function that is steep, choose `eps` and the tolerances, or use `viewgrad.testing.check_operator`.

    Attributes, where the check is one of single numbers (None elsewhere):
        input, output: which argument and which output, counted from 0.
        element, output_element: the indices of the element in each.
        analytical, numerical: what the backward pass and what finite differences say.
        tolerance: how far apart the two might have been.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> op = vg.autograd.define_op("wrong_sqrt(self)", forward=np.sqrt, derivatives={"self": "grad / result"})
        >>> vg.autograd.gradcheck(op, x)
        Traceback (most recent call last):
            ...
        viewgrad.errors.GradcheckError: the gradient of output 0 (shape (2,)) with respect to input 0 (shape ...
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
    """A tensor made in inference mode was used where autograd would have to record it.

    A tensor from inference mode has no history and no saved windows, and takes no part in what is recorded.

    - `clone()` it outside of the mode, or use `no_grad` instead.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.inference_mode():
        ...     y = vg.ones(2)
        >>> (x * y).sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.InferenceError: a tensor made in inference mode cannot be saved for backward; clone() ...
    """


class FunctionError(AutogradError):
    """A custom `Function` broke the contract between its forward, its backward and the engine.

    A custom `Function` broke its contract. The message says how: numbers, shapes, what was marked and not returned.

    - Custom functions shows each case.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> class Forgetful(vg.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2.0
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad, grad                    # two gradients for one input
        >>> Forgetful.apply(x).sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.FunctionError: ForgetfulBackward: backward returned 2 gradients, but forward had 1 ...
    """


class UnusedInputError(AutogradError):
    """A gradient was asked with respect to a tensor that the outputs do not depend on.

    The output was not computed from this input.

    - `allow_unused=True` gives None for it, `materialize_grads=True` zeros.
    - Was the input written to since, or is it a view that was taken apart? `grad` means the *present value*: see a
      value before and after a write.

    Example:
        >>> import viewgrad as vg
        >>> from viewgrad.autograd import grad
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 2.0
        >>> grad(y.sum(), vg.ones(2, requires_grad=True))
        Traceback (most recent call last):
            ...
        viewgrad.errors.UnusedInputError: input 0, a tensor of shape (2,), was not used in computing the ...
    """


class UnsupportedFunctionError(AutogradError, TypeError):
    """A NumPy function was called on tensors for which viewgrad has no operator.

    There is no derivative for this function, and it is not run on plain arrays behind your back.

    - Where no gradient is to flow, `detach()` the tensor.
    - `define_op` adds an operator: see your own operator.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> half = np.frompyfunc(lambda number: number / 2, 1, 1)
        >>> half(x)
        Traceback (most recent call last):
            ...
        viewgrad.errors.UnsupportedFunctionError: viewgrad has no operator for numpy.<lambda> (vectorized), ...
    """


class UnsupportedTypeError(AutogradError, TypeError):
    """A value was given for a tensor that cannot be made one, or would lose what it means.

    Something was given for a tensor that cannot be made one, or would lose what it means, such as a masked array.

    - Convert it first, with what you know of it: `np.asarray(...)`, `filled()`, `to_numpy()`.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> vg.sin(np.ma.array([1.0], mask=[True]))
        Traceback (most recent call last):
            ...
        viewgrad.errors.UnsupportedTypeError: a tensor of a numpy.ma.MaskedArray would lose its mask; pass ...
    """


class UnsupportedDtypeError(AutogradError, TypeError):
    """An operator was called with numbers of a kind that it has no derivative for: complex ones, for example.

    The operator has no derivative for this kind of numbers.

    - Take the real part, or write the function for complex numbers of other operators.

    Example:
        >>> import viewgrad as vg
        >>> vg.relu(vg.Tensor([1.0 + 2.0j], requires_grad=True))
        Traceback (most recent call last):
            ...
        viewgrad.errors.UnsupportedDtypeError: operator 'relu' takes no complex128 for 'self': it is for real ...
    """


class HookError(AutogradError, TypeError):
    """A hook was registered where none can be, or gave back what cannot take the place of what it was given.

    A hook was registered where none can be, or returned something that cannot take the place of a gradient.

    - Return a tensor of the same shape, or None to leave the gradient as it is.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 2.0
        >>> handle = y.register_hook(lambda g: "no tensor")
        >>> y.sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.HookError: the hook <lambda> returned str where a Tensor or None is wanted ...
    """


class AnomalyError(AutogradError):
    """Anomaly detection found a gradient that is not a number.

    Under `detect_anomaly` a gradient was not a number. The message names the node, and the line that made it.

    - See where the NaN came from.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.autograd.detect_anomaly(), np.errstate(all="ignore"):
        ...     (vg.square(x - x) * np.inf).sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.AnomalyError: SquareBackward made a gradient of its input 0 that is not a number at 2 ...
    """


class DeclarationError(AutogradError, ValueError):
    """A declaration that cannot be right, found when the operator is defined.

    A declaration cannot be right: an unknown name, a missing formula, a gradient that nobody reads. The message
    marks the place.

    - Your own operator has the names that a formula may use.

    Arguments:
        message: what is wrong, and where.
        operator: the name of the operator.
        formula: the text of the formula, where one is to blame.
        position: where in it, counted from 1.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> vg.autograd.define_op("typo(self)", forward=np.sin, derivatives={"self": "grad * cos(slef)"})
        Traceback (most recent call last):
            ...
        viewgrad.errors.DeclarationError: operator 'typo', formula 'grad * cos(slef)' for self, position 12: ...
    """

    def __init__(
        self, message: str, operator: str | None = None, formula: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.operator = operator
        self.formula = formula
        self.position = position


class GradientNotImplementedError(AutogradError, NotImplementedError):
    """A gradient or a tangent was needed that the operator's declaration says is not implemented.

    The operator says that one of its gradients, or its forward mode, is not implemented.

    - `detach()` the input that needs none.
    - Write the formula, if the operator is yours, or compose the function of other operators.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> op = vg.autograd.define_op(
        ...     "half_done(self, other)", forward=np.add,
        ...     derivatives={"self": "grad", "other": "not_implemented('no need so far')"},
        ... )
        >>> op(x, vg.ones(2, requires_grad=True)).sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.GradientNotImplementedError: the gradient of other of operator 'half_done' is not ...
    """


class ForwardModeError(AutogradError):
    """Forward mode was used in a way that it is not made for.

    Tangents live in a level, and are shaped like their tensors.

    - Put the computation into `with forward_ad.dual_level():`, or use `func.jvp`, which does.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.autograd.forward_ad.make_dual(x, vg.ones(2))
        Traceback (most recent call last):
            ...
        viewgrad.errors.ForwardModeError: make_dual needs an open level; call it inside 'with ...
    """


class GraphError(AutogradError):
    """A graph is not what it should be: it cannot be parsed, verified, run or differentiated.

    A graph cannot be parsed, verified, run or differentiated. The message names the node or the place in the text.

    - Run `vg.symbolic.verify(graph)` after each change of your own.

    Example:
        >>> import viewgrad as vg
        >>> vg.symbolic.parse("graph(%a : nonsense)")
        Traceback (most recent call last):
            ...
        viewgrad.errors.GraphError: line 1, 'graph(%a : nonsense)': a graph starts with 'graph(inputs):' ...
    """


class TraceError(AutogradError):
    """A program did something, while it was traced, that a graph cannot hold.

    A program did something, while it was traced, that a graph cannot hold.

    - The most frequent kind is the ConcretizationError below.
    - The message names the line. Keep what is no computation on tensors outside of the traced function.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.symbolic.trace(lambda x: (x * x).sum().backward(), x)
        Traceback (most recent call last):
            ...
        viewgrad.errors.TraceError: ...backward()...
    """


class ConcretizationError(TraceError):
    """A value left the library while a program was traced, so that the graph would have held it fixed.

    A value left the library while a program was traced, and the graph would have held it fixed.

    - Compute with tensors instead of numbers.
    - `trace(..., escapes="guard")` checks in each run that the value is the same.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.symbolic.trace(lambda x: x * float(x.detach()[0] + 1), x)
        Traceback (most recent call last):
            ...
        viewgrad.errors.ConcretizationError: float() at ... takes a value out of the program that is traced, ...
    """


class GuardError(AutogradError):
    """A value that steered the program when it was traced is another in this run of its graph.

    A value that steered the program when it was traced is another one in this run.

    - Trace again for these inputs, write the choice as `vg.where`, or use `vg.compile`, which records anew by
      itself.

    Arguments:
        message: what it was, and is, and where.
        location: the file and line.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> graph = vg.symbolic.trace(lambda x: x * 2.0 if x[0] > 0 else x, x)
        >>> vg.symbolic.run(graph, [np.array([-1.0, 2.0])])
        Traceback (most recent call last):
            ...
        viewgrad.errors.GuardError: bool() at ... gave True when the program was traced, and gives False now: ...
    """

    def __init__(self, message: str, location: tuple[str, int] | None = None) -> None:
        super().__init__(message)
        self.location = location


class TreeError(AutogradError, TypeError):
    """A nested structure of tensors was given whose shape is not that of the one it belongs to.

    A nested structure of tensors is not shaped like the one that it belongs to.

    - Give the same nesting of dictionaries, lists and tuples as the argument or the result has.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> value, pull_back = vg.func.vjp(lambda x: {"doubled": x * 2.0}, x)
        >>> pull_back([vg.ones(2)])
        Traceback (most recent call last):
            ...
        viewgrad.errors.TreeError: the gradient is a list where a dict is expected ...
    """


class DetachedConversionError(AutogradError):
    """A tensor with a history becomes a plain array or number, from which the result goes on without a gradient.

    A tensor with a history would have become a plain array or number, and no gradient flows through that. NumPy and
    Python's own modules ask for numbers without the program saying so: `plain[i] = x`, `plain.fill(x)`,
    `np.array([x], float)`, `math.sin(x)`. NumPy reports an assignment to one element as `ValueError: setting an
    array element with a sequence`; this error is its cause, printed above it.

    Inside `viewgrad.func` and `vg.compile`, `float(x)` is an error too, since the number could be a part of the
    result. In `viewgrad.func`, `x.item()` and `x.tolist()` give differentiable scalars; in a compiled function they
    are refused as `float(x)` is.

    - Make the array that is written to a tensor: `zeros()`, `empty()` and `array()` of `viewgrad.numpy` instead of
      `numpy`.
    - Use the function of `viewgrad.numpy`, `viewgrad.math` or `viewgrad.scipy`, or compute with the tensor itself.
    - If no gradient is wanted, say so: `float(x.detach())`.

    Comparisons, conditions, assertions, formatted text and log calls lose nothing and are allowed: `while
    float(error) > tolerance:`, `logger.info("%f", loss)`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import math
        >>> math.sin(x[0])
        Traceback (most recent call last):
            ...
        viewgrad.errors.DetachedConversionError: float() of a tensor that requires grad gives a plain number, ...
    """


class DetachedConversionWarning(Documented, UserWarning):
    """A tensor that requires grad was made a plain number, through which no gradient flows.

    A tensor with a history was made a plain number, outside of any transform, and no gradient flows through that.
    Statements of their own are silent: `losses.append(float(loss))`.

    - Compute with the tensor itself; or `detach()` first, which says that no gradient is wanted.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import warnings
        >>> warnings.simplefilter("error")
        >>> half = float(x.sum()) / 2
        Traceback (most recent call last):
            ...
        viewgrad.errors.DetachedConversionWarning: float() of a tensor that requires grad gives a plain ...
    """


class NonLeafGradWarning(Documented, UserWarning):
    """The `grad` of a tensor was read that no backward pass will fill in.

    You have read the `grad` of a tensor that was computed. No backward pass fills it in.

    - Call `retain_grad()` on the tensor before the backward pass.
    - If it retains its gradient and was written to since, compute with a `clone()` that retains its own.
    - Or ask for the gradient: `grad(result, tensor)`. See why is my grad None.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import warnings
        >>> warnings.simplefilter("error")
        >>> (x * 2.0).grad
        Traceback (most recent call last):
            ...
        viewgrad.errors.NonLeafGradWarning: the grad of a tensor that is no leaf stays None: backward passes ...
    """


class NotCompiledWarning(Documented, UserWarning):
    """A function that was to be compiled runs eagerly.

    A function that was to be compiled runs eagerly from now on, or for a while. The message names the line.

    - Use `vg.where` for choices by value, and pass settings as arguments: see compiled programs.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import warnings
        >>> warnings.simplefilter("error")
        >>> steered = vg.compile(lambda x: x.sum() * x.detach()[0].item(), executor="python")
        >>> for i in range(30):
        ...     loss = steered(vg.Tensor([float(i), 2.0], requires_grad=True))
        Traceback (most recent call last):
            ...
        viewgrad.errors.NotCompiledWarning: <lambda> runs eagerly for 32 calls: a value that control flow ...
    """
