"""Errors and warnings of viewgrad, one class for each kind."""

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


SITE: Final = "https://viewgrad.readthedocs.io"  # the address of the documentation


class Documented:
    """An error or warning with a section in the documentation, whose address is appended to its text."""

    section: ClassVar[str]
    page: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:  # a derived class refers to the section of its base
            cls.section = cls.__name__
            cls.page = f"{SITE}/guides/errors/#{cls.__name__.lower()}"

    @property
    def message(self) -> str:
        """The message without the address of the documentation."""
        return super().__str__()

    def __str__(self) -> str:
        return f"{self.message}\nSee help(viewgrad.errors.{self.section}), or {self.page}"


class AutogradError(Documented, RuntimeError):
    """The base class of all errors of viewgrad.

    It derives from `RuntimeError`; some of its subclasses also derive from `TypeError` or `ValueError`.

    - `except vg.errors.AutogradError` catches every error that viewgrad raises.
    - To save a computed tensor, `detach()` it: see saving to disk.

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
        viewgrad.errors.AutogradError: only leaf tensors can be pickled, and this one was created by ...
        See help(viewgrad.errors.AutogradError), or ...
    """


class LeafInPlaceError(AutogradError):
    """A leaf that requires grad was modified in place.

    After the write, no tensor would represent the value you differentiate with respect to.

    - To use the leaf in a *computation*, write to a copy: `y = x.clone()`.
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
    """A write through a view cannot be added to the history of its base.

    For example, the view was created under `no_grad`, so it is unclear whether to record the write.

    - Take the view outside `no_grad`, or write inside it.
    - If a custom `Function` returned the view, `clone()` it, or return a copy from `forward`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> b = x.clone()
        >>> with vg.no_grad():
        ...     view = b[:1]
        >>> view *= 2.0
        Traceback (most recent call last):
            ...
        viewgrad.errors.ViewInPlaceError: this view was created under no_grad and is written to in grad mode, but ...
    """


class OverlappingWriteError(AutogradError):
    """A tensor whose elements share memory with each other was modified in place.

    The write would have to store several values in one place.

    - Write to a copy: `wide = wide.clone()`.
    - Write to a part that does not overlap itself, such as one row.

    A transform (`grad(f)(a, a)`) gives `f` separate copies of arguments that share memory. If `f` writes to one of
    them, NumPy would change both, so it is an error too: pass `a.copy()` if the arguments are meant to be independent.

    Example:
        >>> import viewgrad as vg
        >>> wide = vg.zeros(1).expand(3)
        >>> wide += vg.Tensor([1.0, 2.0, 3.0])
        Traceback (most recent call last):
            ...
        viewgrad.errors.OverlappingWriteError: elements of this tensor of shape (3,) share memory ...
    """


class NotCompiledError(AutogradError):
    """A program does something that the compiler does not support.

    The compiler catches this error itself, and the function runs eagerly with the same results.

    - `explain()` shows the message with the line. Move that line out of the function, or compile a smaller function.
    - Pass numbers that determine sizes as arguments.

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
    """A compiled program gave a different result than the original function.

    In this example, the function depends on state that the compiler cannot detect.

    - Pass values that change as arguments.
    - If the function depends on its arguments only, this is a bug in viewgrad; please report it.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import inspect
        >>> class Settings:
        ...     rate_of_it = 1.0
        >>> name = ["rate", "of", "it"]
        >>> scaled = vg.compile(lambda x: x * inspect.getattr_static(Settings, "_".join(name)), executor="python")
        >>> loss = scaled(x)                             # traced
        >>> Settings.rate_of_it = 2.0
        >>> scaled(x)                                    # compared
        Traceback (most recent call last):
            ...
        viewgrad.errors.CompiledMismatchError: the result of the compiled <lambda> differs from the function's ...
    """


class TraceTooLongError(NotCompiledError):
    """A trace is too long and too irregular to be compiled.

    The compiler catches this error itself, and the function runs eagerly.

    - Compile the inner function that is called repeatedly instead of the whole program.
    - Operate on rows and matrices instead of scalars, so that there are fewer operations.

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
          runs eagerly: ... operations belong to no loop; at most 3000 such operations are compiled. ...
    """


class FreedGraphError(AutogradError):
    """A backward pass used a graph whose saved values an earlier pass had released.

    - `loss.backward(retain_graph=True)` keeps them for another pass.
    - If you need several gradients, compute them in one call: `grad(loss, [x, y])`.
    - In a training loop, recompute the loss, and `detach()` values carried over from the previous step.
    - If a differentiated function caches its last result, the second call of `grad` or `jvp` with the same input gets a
      tensor from the graph of the first. Recompute the result in each call, or cache its `detach()`.

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
    """A checkpointed function could not be rerun, or gave a different result when rerun.

    A checkpointed function runs a second time in the backward pass.

    - Pass everything that changes between the two runs as an argument: arguments keep their values.
    - If the function writes to an argument or to a captured tensor, write to a `clone()` instead and return it.
    - Random number generators are reset if the function captures them or takes them as arguments.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> scale = vg.ones(2)
        >>> y = vg.checkpoint(lambda x: (x * scale).sum())(x)
        >>> scale *= 2
        >>> y.backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.CheckpointError: a checkpointed function computed different values in the backward pass: ...
    """


class DifferentiabilityError(AutogradError):
    """A gradient was requested for a tensor that cannot have one.

    Integer tensors and tensors without history have no gradient, and an output with several elements needs an initial
    gradient.

    - Use floating-point numbers: `vg.Tensor([1.0, 2.0])`, or `astype(float)`.
    - Reduce the output to a scalar, `loss.sum().backward()`, or pass `backward(gradient)`.
    - If an output has no history, see why is my grad None.

    Example:
        >>> import viewgrad as vg
        >>> vg.Tensor([1, 2], requires_grad=True)
        Traceback (most recent call last):
            ...
        viewgrad.errors.DifferentiabilityError: only tensors of floating-point or complex dtype can require ...
    """


class GradientMismatchError(AutogradError):
    """The supplied gradient does not have the shape or dtype of its tensor.

    - Use `reshape`, `broadcast_to` or `astype` to convert it.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).backward(vg.ones(3))
        Traceback (most recent call last):
            ...
        viewgrad.errors.GradientMismatchError: the gradient supplied has shape (3,), but the tensor it belongs ...
    """


class InteropError(AutogradError):
    """A function shared between viewgrad and another library would lose a gradient.

    This concerns functions used from PyTorch, JAX or PyTensor, and functions of PyTorch and JAX used in viewgrad.

    - Write to a copy of the argument: `x = x * 1.0`.
    - Pass captured tensors that require grad as arguments, or `detach()` them.
    - Move PyTorch tensors to the CPU. If viewgrad computes in double precision, enable it in JAX:
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
    """A gradient reached a value that a failed write left incomplete.

    The memory holds neither the old value nor the new one.

    - Recompute the tensor, or overwrite the affected elements with well-defined values.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> y = vg.Tensor(np.float32([0.0, 40.0]), requires_grad=True) * 1.0
        >>> try:
        ...     with np.errstate(all="raise"):
        ...         y.log_()                             # fails at the first element, during the write
        ... except FloatingPointError:
        ...     pass
        >>> y.sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.InterruptedWriteError: log_ failed during an in-place write, so the result has no ...
    """


class ConcurrentWriteError(AutogradError):
    """Two threads wrote to one tensor at the same time.

    This is rare and depends on the scheduling of the threads.

    - Protect the writes with a lock.
    - Alternatively, let each thread write to its own tensor and add the tensors afterwards.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import sys
        >>> y = x.clone()
        >>> def meanwhile(frame, event, argument):       # stands for another thread
        ...     if frame.f_code.co_name == "begin_write":
        ...         sys.settrace(None)
        ...         y.mul_(2.0)
        >>> sys.settrace(meanwhile)
        >>> y[[0]] = 1.0
        Traceback (most recent call last):
            ...
        viewgrad.errors.ConcurrentWriteError: another thread wrote to this tensor during a write ...
    """


class SavedValueError(AutogradError):
    """A value that a gradient needs was overwritten by code outside viewgrad.

    The write was reported with `increment_version`, but the old value is lost. Or a compiled function must run again
    for a gradient, as for a third derivative, and a variable or attribute that it reads has changed. Or code that
    viewgrad does not see, such as a `memoryview`, wrote to a NumPy array while an adopted function was using it.

    - `clone()` the tensor before using it in the computation, or write to it through viewgrad.
    - Pass what changes to a compiled function as an argument, a tensor.
    - Write to the array in the adopted function, or use a copy of it that is made after the write.

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
    """A scalar was modified in place.

    As in NumPy, reductions and indexing by integers return values, not views of memory.

    - Compute a new value: `s = s * 2`, or equivalently `s *= 2`.
    - Write to the element of the array, `a[i] *= 2`, or to a view of it, `a[i, ...]`.
    - `clone()` returns a 0-d array that can be written to.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> x.sum().mul_(2.0)
        Traceback (most recent call last):
            ...
        viewgrad.errors.ScalarWriteError: an in-place write: a scalar is a value, as in NumPy, and cannot be ...
    """


class StrictMutationError(AutogradError):
    """A write would overwrite a saved value inside `forbid_mutation_on_saved_tensors()`.

    In this strict mode, such a write raises an error instead of copying the saved value.

    - Write to a `clone()`, use the out-of-place operator, or leave the strict mode.

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
    """A gradient does not agree with finite differences.

    The message names the input, the output, the element and both values.

    - Fix the formula. Check in double precision, and away from kinks.
    - If the function is steep, adjust `eps` and the tolerances, or use `viewgrad.testing.check_operator`.

    Attributes, if single numbers were compared (None otherwise):
        input, output: the numbers of the argument and the output, counted from 0.
        element, output_element: the indices of the element in each.
        analytical, numerical: the derivatives by the backward pass and by finite differences.
        tolerance: the allowed difference.

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
    """A tensor created in inference mode was used in a recorded computation.

    Such tensors have no history and cannot be saved for backward.

    - `clone()` the tensor outside inference mode, or use `no_grad` instead.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.inference_mode():
        ...     y = vg.ones(2)
        >>> (x * y).sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.InferenceError: a tensor created in inference mode cannot be saved for backward; clone() ...
    """


class FunctionError(AutogradError):
    """A custom `Function` violated its contract.

    The message says how: for example, the number or shape of the gradients is wrong, or a tensor was marked but not
    returned.

    - See custom functions for each case.

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
    """A gradient was requested with respect to a tensor that the outputs do not depend on.

    - `allow_unused=True` returns None for it, and `materialize_grads=True` returns zeros.
    - Check whether the input was written to afterwards. `grad` differentiates with respect to the *current value*: see
      a value before and after a write.

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
    """A function without a derivative was called on a tensor that requires grad.

    viewgrad does not silently fall back to plain NumPy.

    - If no gradient is needed, `detach()` the tensor.
    - To add an operator, use `define_op`: see your own operator.

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
    """An object cannot be converted to a tensor without losing information.

    A masked array, for example, would lose its mask.

    - Convert it explicitly: `np.asarray(...)`, `filled()`, `to_numpy()`.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> vg.Tensor(np.ma.array([1.0], mask=[True]))
        Traceback (most recent call last):
            ...
        viewgrad.errors.UnsupportedTypeError: a tensor of a numpy.ma.MaskedArray would lose its mask; pass ...
    """


class UnsupportedDtypeError(AutogradError, TypeError):
    """The operator has no derivative for this dtype.

    - Take the real part of a complex tensor, or compose the function from operators that support its dtype.

    Example:
        >>> import viewgrad as vg
        >>> vg.relu(vg.Tensor([1.0 + 2.0j], requires_grad=True))
        Traceback (most recent call last):
            ...
        viewgrad.errors.UnsupportedDtypeError: operator 'relu' does not support complex128 for 'self': it is for ...
    """


class HookError(AutogradError, TypeError):
    """A hook cannot be registered here, or returned an invalid value.

    - Return a tensor of the same shape, or None to leave the gradient unchanged.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 2.0
        >>> handle = y.register_hook(lambda g: "no tensor")
        >>> y.sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.HookError: the hook <lambda> returned str instead of a Tensor or None ...
    """


class AnomalyError(AutogradError):
    """A gradient was NaN inside `detect_anomaly`.

    The message names the node and the line that created it.

    - See where the NaN came from.

    Example:
        >>> import numpy as np
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> with vg.autograd.detect_anomaly(), np.errstate(all="ignore"):
        ...     (vg.square(x - x) * np.inf).sum().backward()
        Traceback (most recent call last):
            ...
        viewgrad.errors.AnomalyError: SquareBackward computed a gradient of its input 0 that is NaN at 2 of 2 ...
    """


class DeclarationError(AutogradError, ValueError):
    """The declaration of an operator is invalid.

    For example, it uses an unknown name, lacks a formula, or computes a gradient that is never used. The message marks
    the place.

    - See your own operator for the names that a formula may use.

    Arguments:
        message: the problem, and the source line.
        operator: the name of the operator.
        formula: the text of the formula, if one is to blame.
        position: the position in it, counted from 1.

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
    """The operator declares this gradient, or its forward mode, as not implemented.

    - `detach()` the input if it needs no gradient.
    - If the operator is yours, add the formula. Otherwise compose the function from other operators.

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
    """Forward mode was used outside a level, or with a tangent that does not match its tensor.

    - Use `with forward_ad.dual_level():`, or `func.jvp`, which opens a level for you.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.autograd.forward_ad.make_dual(x, vg.ones(2))
        Traceback (most recent call last):
            ...
        viewgrad.errors.ForwardModeError: make_dual needs an open level; call it inside 'with ...
    """


class GraphError(AutogradError):
    """A graph cannot be parsed, verified, run or differentiated.

    The message names the node or the place in the text.

    - Run `vg.symbolic.verify(graph)` after each transformation of your own.

    Example:
        >>> import viewgrad as vg
        >>> vg.symbolic.parse("graph(%a : nonsense)")
        Traceback (most recent call last):
            ...
        viewgrad.errors.GraphError: line 1, 'graph(%a : nonsense)': a graph starts with 'graph(inputs):' ...
    """


class TraceError(AutogradError):
    """A traced program did something that a graph cannot represent.

    The message names the line.

    - Move everything that is not a computation on tensors out of the traced function.
    - The most common case has a class of its own, ConcretizationError.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.symbolic.trace(lambda x: (x * x).sum().backward(), x)
        Traceback (most recent call last):
            ...
        viewgrad.errors.TraceError: ...backward()...
    """


class ConcretizationError(TraceError):
    """A traced program converted a tensor to a plain value, which would become a constant of the graph.

    - Compute with tensors instead of numbers.
    - `trace(..., escapes="guard")` checks in each run that the value is unchanged.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> vg.symbolic.trace(lambda x: x * float(x.detach()[0] + 1), x)
        Traceback (most recent call last):
            ...
        viewgrad.errors.ConcretizationError: float() at ... converts a traced tensor to a plain value, ...
    """


class GuardError(AutogradError):
    """A value that control flow depends on differs from its value during tracing.

    - Trace again for these inputs, use `vg.where` instead of a branch, or use `vg.compile`, which retraces
      automatically.

    Arguments:
        message: the former and the current value, and the source line.
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
    """A nested structure of tensors does not match the structure it belongs to.

    - Use the same nesting of dictionaries, lists and tuples as the argument or the result.

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
    """A tensor with history would be converted to a plain array or number, which loses the gradient.

    NumPy and Python's modules convert implicitly: `plain[i] = x`, `plain.fill(x)`, `np.array([x], float)`,
    `math.sin(x)`. NumPy reports an assignment to one element as `ValueError: setting an array element with a sequence`;
    this error is its cause, printed above it.

    Inside `viewgrad.func` and `vg.compile`, `float(x)` is an error too, because the result could depend on the number.
    In `viewgrad.func`, and in a compiled function that one of its transforms or `value_and_grad` calls, `x.item()` and
    `x.tolist()` return differentiable scalars; in a compiled function that is called outside they raise this error,
    like `float(x)`.

    - Write to a tensor instead: create it with `zeros()`, `empty()` or `array()` of `viewgrad.numpy`. In an unmodified
      NumPy function, write to a `copy()` of an array that was created outside it.
    - Use the function of `viewgrad.numpy`, `viewgrad.math` or `viewgrad.scipy`, or compute with the tensor itself.
    - If no gradient is needed, detach explicitly: `float(x.detach())`.

    Comparisons, conditions, assertions, formatted text and log calls lose nothing and are allowed: `while float(error)
    > tolerance:`, `logger.info("%f", loss)`.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import math
        >>> math.sin(x[0])
        Traceback (most recent call last):
            ...
        viewgrad.errors.DetachedConversionError: float() of a tensor that requires grad returns a plain number, ...
    """


class DetachedConversionWarning(Documented, UserWarning):
    """A tensor with history was converted to a plain number outside a transform, which loses the gradient.

    A conversion in a statement of its own, such as `losses.append(float(loss))`, does not warn.

    - Compute with the tensor itself, or `detach()` it first to show that no gradient is needed.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import warnings
        >>> warnings.simplefilter("error")
        >>> half = float(x.sum()) / 2
        Traceback (most recent call last):
            ...
        viewgrad.errors.DetachedConversionWarning: float() of a tensor that requires grad returns a plain ...
    """


class NonLeafGradWarning(Documented, UserWarning):
    """The `grad` of a computed tensor was read, but backward passes fill in only the `grad` of leaves.

    - Call `retain_grad()` on the tensor before the backward pass.
    - If the tensor retains its gradient but was written to since, `clone()` it after the write and let the clone retain
      its gradient.
    - Alternatively, request the gradient: `grad(result, tensor)`. See why is my grad None.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import warnings
        >>> warnings.simplefilter("error")
        >>> (x * 2.0).grad
        Traceback (most recent call last):
            ...
        viewgrad.errors.NonLeafGradWarning: the grad of a non-leaf tensor stays None: backward passes ...
    """


class NotCompiledWarning(Documented, UserWarning):
    """A function passed to `vg.compile` runs eagerly, for a while or permanently.

    The message names the line.

    - Use `vg.where` for choices by value, and pass settings as arguments: see compiled programs.

    Example:
        >>> import viewgrad as vg
        >>> x = vg.Tensor([1.0, 2.0], requires_grad=True)
        >>> import warnings
        >>> warnings.simplefilter("error")
        >>> scaled = vg.compile(lambda x: x.sum() * x.detach()[0].item(), executor="python")
        >>> for i in range(30):
        ...     loss = scaled(vg.Tensor([float(i), 2.0], requires_grad=True))
        Traceback (most recent call last):
            ...
        viewgrad.errors.NotCompiledWarning: <lambda> runs eagerly for 32 calls: a value that control flow ...
    """


def __dir__() -> list[str]:
    return sorted(__all__)
