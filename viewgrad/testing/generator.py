"""The generator of programs, which draws steps one by one along a model of the possible steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

from ..type_aliases import Array
from . import program_ops as s
from .alias_model import AliasModel
from .functions import ELEMENTWISE, LARGEST, OTHERS, ProgramFunction, ViewOp, view_of_array
from .indices import Index, Named, index_value
from .program import Program
from .shapes import are_operands, broadcastable, fits_into, is_index, same_window
from .view_strategies import LARGEST_SIZE, array_indices, basic_indices, leaves, unpack_ops, view_ops

Draw = Callable[..., Any]

NUMBERS = (2.0, 0.5, -1.0, 1.5, -0.25, 1, 3)


class ProgramGenerator:
    """Generates a program step by step, along a model of it.

    Arguments:
        draw: the `draw` function of Hypothesis.
        complex: whether complex tensors may occur.
        functions: functions to use besides viewgrad's own.
    """

    def __init__(self, draw: Draw, *, complex: bool = True, functions: tuple[ProgramFunction, ...] = ()) -> None:
        self.draw = draw
        self.complex = complex
        own = tuple(f for f in functions if f.elementwise and f.arity <= 2)
        self.elementwise = own * (1 + len(ELEMENTWISE) // 8) + ELEMENTWISE  # users' functions are drawn about as often
        self.sketch = AliasModel()
        self.leaves: list[s.Leaf] = []
        self.steps: list[Any] = []
        self._names = 0

    # -- queries -------------------------------------------------------------------------------------------------------

    def names(self, accept: Callable[[str], bool] = lambda name: True) -> list[str]:
        """Return the accepted tensors created so far, newest first."""
        return [name for name in reversed(self.sketch.arrays) if accept(name)]

    def array(self, name: str) -> Array:
        return self.sketch.arrays[name]

    def differentiable(self, name: str) -> bool:
        return self.array(name).dtype.kind in "fc"

    def choose(self, options: Sequence[Any]) -> Any:
        """Return one of several items, or None if there are none."""
        return self.draw(st.sampled_from(options)) if options else None

    def new_name(self, prefix: str = "t") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def add(self, step: Any) -> None:
        self.steps.append(step)
        step.run(self.sketch)

    # -- the parts of a program ----------------------------------------------------------------------------------------

    def draw_leaf(self) -> None:
        leaf = self.draw(leaves(f"x{len(self.leaves)}", complex=self.complex))
        if not self.leaves and not leaf.requires_grad:
            leaf = attrs.evolve(leaf, kind="f", requires_grad=True)
        self.leaves.append(leaf)
        self.sketch.leaf(leaf)
        if leaf.requires_grad:  # a copy of a leaf, which can be written to
            clone = next(f for f in OTHERS if f.name == "clone")
            self.add(s.Call(self.new_name(), clone, (leaf.name,)))

    def draw_step(self) -> None:
        """Draw a step of any kind."""
        kinds = [
            self.draw_view, self.draw_write, self.draw_assign, self.draw_compute, self.draw_augment, self.draw_view,
            self.draw_view, self.draw_write, self.draw_assign, self.draw_overwrite, self.draw_gather,
            self.draw_ufunc_out, self.draw_call, self.draw_unpack, self.draw_no_grad, self.draw_detach,
            self.draw_detach_in_place, self.draw_unrecorded_view, self.draw_unrecorded_view,
        ]  # fmt: skip
        for _ in range(3):
            step = self.choose(kinds)()
            if step is not None:
                self.add(step)
                return
        self.add(self.calm())

    def calm(self) -> Any:
        """Draw a step that is always possible."""
        return s.Compute(self.new_name(), ELEMENTWISE[0], (self.choose(self.names(self.differentiable)), 0.5))

    def use(self, function: ProgramFunction) -> tuple[str, ...]:
        """Apply a function to tensors with gradients, mapped into its domain; return the names of its results."""
        names = {known.name: known for known in ELEMENTWISE}
        flowing = self.names(lambda name: self.differentiable(name) and self.sketch.facts[name].history.requires_grad)
        real = [name for name in flowing if self.array(name).dtype.kind == "f"]
        if not real:
            self.add(s.View(self.new_name("v"), flowing[0], ViewOp("real")))
            real = [self.steps[-1].out]
        operands = []
        low, high = max(function.domain[0], -2.0), min(function.domain[1], 4.0)
        source = self.choose(real)
        for number in range(function.arity):
            # a smaller spread may be due to rounding alone
            size = max(float(np.abs(self.array(source)).max(initial=0.0)), 0.01)
            scaled, shifted = self.new_name(), self.new_name()
            self.add(s.Compute(scaled, names["mul"], (source, 0.2 * (high - low) / size / (1 + number))))
            self.add(s.Compute(shifted, names["add"], (scaled, low + 0.55 * (high - low))))
            operands.append(shifted)
        outs = tuple(self.new_name() for _ in range(function.outputs))
        step: Any = s.Compute(outs[0], function, tuple(operands), "call")
        if not function.elementwise:
            step = s.Call(outs[0], function, tuple(operands))
        elif len(outs) > 1:
            step = s.Several(outs, function, tuple(operands))
        self.add(step)
        return outs

    def finish(self, reached: Sequence[str] = ()) -> Program:
        """Combine some tensors, including those in `reached`, into a real number; choose what to differentiate."""
        candidates = self.names(self.differentiable)
        required = [name for name in candidates if self.sketch.facts[name].history.requires_grad]
        written = [name for name in required if self.sketch.facts[name].memory.version]
        unsure = [name for name in candidates if self.sketch.facts[name].unsure]
        named = written + required + 2 * unsure or candidates
        chosen = self.draw(st.lists(st.sampled_from(named), min_size=1, max_size=4, unique=True))
        if required and all(name in unsure for name in chosen):
            chosen.append(required[0])
        chosen += [name for name in reached if name not in chosen]
        # It is ambiguous whether the part of an earlier view in its base's history contributes to the base's gradient.
        both = self.sketch.to_itself.union(self.sketch.base_of(name) for name in unsure)
        wanted = [name for name in required if not name.startswith("x") and self.sketch.base_of(name) not in both]
        inputs = self.draw(st.lists(st.sampled_from(wanted), max_size=3, unique=True)) if wanted else []
        total = None
        for i, name in enumerate(chosen):
            table = s.Table(self.array(name).shape, i + 1, self.array(name).dtype.kind)
            total = self._add_term(name, table, total)
        assert total is not None
        return Program(tuple(self.leaves), tuple(self.steps), total, tuple(inputs))

    def _add_term(self, name: str, table: s.Table, total: str | None) -> str:
        mul, add = (next(f for f in ELEMENTWISE if f.name == wanted) for wanted in ("mul", "add"))
        product, reduced = self.new_name("p"), self.new_name("p")
        self.add(s.Compute(product, mul, (name, table)))
        if self.draw(st.booleans()):  # so that the tensors do not receive constants
            squared, product = product, self.new_name("p")
            self.add(s.Compute(product, mul, (squared, name)))
        self.add(s.Call(reduced, next(f for f in OTHERS if f.name == "sum"), (product,)))
        if self.array(reduced).dtype.kind == "c":
            whole, reduced = reduced, self.new_name("p")
            self.add(s.View(reduced, whole, ViewOp("real")))
        if total is None:
            return reduced
        result = self.new_name("p")
        self.add(s.Compute(result, add, (total, reduced)))
        return result

    # -- views ---------------------------------------------------------------------------------------------------------

    def source(self) -> str:
        """Choose a tensor to take a view of, preferably a writable one."""
        writable = self.targets()
        name: str = self.choose([*writable * 2, *self.names(lambda name: not self.sketch.facts[name].scalar)])
        return name

    def draw_view(self) -> Any:
        name = self.source()
        facts = self.sketch.facts[name]
        whole = facts.strided and not facts.unrecorded and not facts.old  # such a view is determined by the base alone
        base = self.sketch.arrays.get(self.sketch.base_of(name)) if whole else None
        return s.View(self.new_name("v"), name, self.draw(view_ops(self.array(name), base, complex=self.complex)))

    def draw_unpack(self) -> Any:
        name = self.source()
        array = self.array(name)
        if not array.ndim:
            return None
        op = self.draw(unpack_ops(array))
        return s.Unpack(tuple(self.new_name("v") for _ in view_of_array(op, array)), name, op)

    # -- computations --------------------------------------------------------------------------------------------------

    def draw_compute(self) -> Any:
        first = self.choose(self.names(self.differentiable))
        function = self.choose(self._functions(self.array(first), several=True))
        operands: tuple[Any, ...] = (first,)
        if function.arity == 2:
            second = self.draw_operand(lambda shape: broadcastable(shape, self.array(first).shape), function)
            operands = (first, second)
            if isinstance(second, str | s.Table) and self.draw(st.booleans()):
                operands = (second, first)
        if not self._tame(function, operands):
            return None
        if function.outputs > 1:
            return s.Several(tuple(self.new_name() for _ in range(function.outputs)), function, operands)
        spelling = self.choose(["operator", "call", "numpy"])
        if isinstance(operands[0], s.Table) and spelling == "operator" and not function.symbol:
            spelling = "call"
        return s.Compute(self.new_name(), function, operands, spelling)

    def _functions(self, array: Array, *, several: bool = False) -> list[ProgramFunction]:
        """Return the functions that can be applied to an array; those with several results only on request."""
        return [f for f in self.elementwise if (f.complex or array.dtype.kind != "c") and (several or f.outputs == 1)]

    def draw_operand(
        self, fits: Callable[[tuple[int, ...]], bool], function: ProgramFunction | None = None
    ) -> s.Operand:
        """Draw an operand of a matching shape: a tensor, a number, or an array of constants."""

        def accept(name: str) -> bool:
            array = self.array(name)
            return fits(array.shape) and (array.dtype.kind != "c" or function is None or function.complex)

        kind = self.choose(["tensor", "number", "tensor", "tensor", "table"])
        if kind == "tensor":
            name = self.choose(self.names(accept))
            if name is not None:
                return str(name)
        if kind == "table":
            shape = self.choose([shape for shape in [(2,), (3,), (2, 2), (2, 3), (3, 2), ()] if fits(shape)])
            if shape is not None:
                return s.Table(shape, self.draw(st.integers(1, 6)))
        return self.choose(NUMBERS)  # type: ignore[no-any-return]

    def _tame(self, function: ProgramFunction, operands: Sequence[s.Operand], like: Array | None = None) -> bool:
        """Return whether the function accepts the operands and its result can be written to an array like `like`."""
        values = [self.sketch.value(operand) for operand in operands]
        shape = np.broadcast_shapes(*(np.shape(value) for value in values))
        if int(np.prod(shape)) > LARGEST_SIZE or (like is not None and shape != like.shape):
            return False
        if not function.tame(values):
            return False
        result = np.asarray(function.numpy(*values)[0] if function.outputs > 1 else function.numpy(*values))
        if like is None:
            return result.dtype.kind in "fc" and (self.complex or result.dtype.kind == "f")
        return np.can_cast(result.dtype, like.dtype, "same_kind")

    def draw_call(self) -> Any:
        name = self.choose(self.names(self.differentiable))
        array = self.array(name)
        function = self.choose(OTHERS)
        operands: tuple[Any, ...] = (name,)
        keywords: dict[str, Any] = {}
        if function.name in ("sum", "mean", "prod", "cumsum"):
            axes: list[Any] = [None, *range(-array.ndim, array.ndim)]
            if function.name != "cumsum" and array.ndim > 1:
                axes.append((0, -1))
            axis = self.choose(axes)
            if axis is not None:
                keywords["axis"] = axis
            if function.name != "cumsum" and self.draw(st.booleans()):
                keywords["keepdims"] = True
            if function.name == "mean" and array.size == 0:
                return None
        elif function.arity == 2:
            shape, others = array.shape, self.names(self.differentiable)
            fits = [other for other in others if are_operands(function.name, shape, self.array(other).shape)]
            second = self.choose(fits)
            if second is None:
                return None
            operands = (name, second)
        step = s.Call(self.new_name(), function, operands, tuple(keywords.items()))
        result = step.numpy([self.array(operand) for operand in operands])
        if result.size > LARGEST_SIZE or not (np.abs(result) <= LARGEST).all():
            return None
        return step

    def draw_gather(self) -> Any:
        name = self.choose(self.names(lambda name: self.array(name).ndim > 0))
        if name is None:
            return None
        index = self.draw_place(self.array(name).shape) or self.draw_array_index(self.array(name).shape)
        if index is None or self.array(name)[self.sketch.index(index)].size > LARGEST_SIZE:
            return None
        return s.Gather(self.new_name(), name, index)

    def draw_place(self, shape: tuple[int, ...]) -> Index | None:
        """Draw the index of a single element in half of the cases, and None otherwise."""
        if 0 in shape or self.draw(st.booleans()):
            return None
        return tuple(self.draw(st.integers(-extent, extent - 1)) for extent in shape)

    def draw_array_index(self, shape: tuple[int, ...]) -> Index | None:
        """Draw an index that contains an array, or None if there is nothing to index."""
        if 0 in shape or not shape:
            return None
        numbers = [Named(name) for name in self.names(lambda name: is_index(self.array(name), shape[0]))]
        return self.draw(array_indices(shape, numbers))  # type: ignore[no-any-return]

    def draw_detach(self) -> Any:
        return s.Detach(self.new_name("d"), self.choose(self.names(self.differentiable)))

    def draw_detach_in_place(self) -> Any:
        """Draw a base with a history to detach in place."""

        def can_be(name: str) -> bool:
            facts = self.sketch.facts[name]
            return self.differentiable(name) and facts.base is None and facts.history.requires_grad

        name = self.choose(self.names(lambda name: can_be(name) and not self.sketch.facts[name].history.leaf))
        return None if name is None else s.DetachInPlace(name)

    def draw_unrecorded_view(self) -> Any:
        view = self.draw_view()
        return None if view.op.copies else s.UnrecordedView(view)

    # -- writes
    # ------------------------------------------------------------------------------------------------------------

    def targets(self) -> list[str]:
        """Return the tensors that can be written to."""
        if self.sketch.recording:
            return self.names(lambda name: self.sketch.facts[name].writable)
        return self.names(lambda name: self.sketch.facts[name].memory_is_writable)

    def target(self) -> Any:
        """Choose a tensor to write to, preferably a view."""
        targets = self.targets()
        return self.choose([*(name for name in targets if self.sketch.facts[name].base is not None), *targets])

    def draw_write(self) -> Any:
        target = self.target()
        if target is None:
            return None
        array = self.array(target)
        functions = [f for f in self._functions(array) if f.inplace]
        if array.dtype.kind == "i":
            functions = [f for f in functions if f.name in ("mul", "add")]
        function = self.choose(functions)
        operands: tuple[Any, ...] = ()
        if function.arity == 2:
            operands = (self.draw_operand(lambda shape: fits_into(shape, array.shape), function),)
        if not self._tame(function, (target, *operands), array):
            return None
        return s.Write(target, function, operands, self.choose(["method", "operator", "numpy"]))

    def draw_overwrite(self) -> Any:
        target = self.target()
        if target is None:
            return None
        value = self.draw_value(self.array(target))
        return s.Overwrite(target, 0.0 if isinstance(value, s.Table) else value)

    def draw_value(self, window: Array) -> s.Operand:
        """Draw a value to write to a window."""
        value = self.draw_operand(lambda shape: fits_into(shape, window.shape))
        array = np.asarray(self.sketch.value(value))
        if array.dtype.kind == "c" and window.dtype.kind != "c":
            return 0.5
        if isinstance(value, str) and same_window(array, window):
            return 0.5
        return value

    def draw_assign(self) -> Any:
        target = self.target()
        if target is None:
            return None
        array = self.array(target)
        index = self.draw_write_index(array.shape)
        given = index_value(index, self.sketch.arrays.__getitem__)
        basic = Ellipsis not in index and not any(isinstance(item, np.ndarray) for item in given)
        window = array[(*given, ...) if basic else given]  # `...` prevents NumPy from returning a number
        return s.Assign(target, index, self.draw_value(np.asarray(window)))

    def draw_write_index(self, shape: tuple[int, ...]) -> Index:
        index = None
        if shape and self.choose(["basic", "basic", "basic", "array"]) == "array":
            index = self.draw_array_index(shape)
        return self.draw(basic_indices(shape)) if index is None else index

    def draw_augment(self) -> Any:
        target = self.target()
        if target is None:
            return None
        array = self.array(target)
        index = self.draw_write_index(array.shape)
        window = np.asarray(array[self.sketch.index(index)])
        symbols = [f for f in self.elementwise if f.arity == 2 and f.symbol and f.inplace and f.name != "pow"]
        if array.dtype.kind == "i":
            symbols = [f for f in symbols if f.name in ("mul", "add")]
        function = self.choose(symbols)
        value = self.draw_operand(lambda shape: fits_into(shape, window.shape), function)
        values = [window, self.sketch.value(value)]
        if not function.tame(values):
            return None
        result = np.asarray(function.numpy(*values))
        if not np.can_cast(result.dtype, array.dtype, "same_kind") or result.shape != window.shape:
            return None
        return s.Augment(target, index, function, value)

    def draw_ufunc_out(self) -> Any:
        target = self.target()
        if target is None:
            return None
        array = self.array(target)
        functions = [f for f in self._functions(array) if f.ufunc]
        function = self.choose(functions)
        fits = [name for name in self.names(self.differentiable) if fits_into(self.array(name).shape, array.shape)]
        if not fits or function is None:
            return None
        operands: tuple[Any, ...] = (self.choose(fits),)
        if function.arity == 2:
            operands = (*operands, self.draw_operand(lambda shape: fits_into(shape, array.shape), function))
        values = [self.sketch.value(operand) for operand in operands]
        if any(np.asarray(value).dtype.kind == "c" for value in values) and not function.complex:
            return None
        if not function.tame(values) or not np.can_cast(
            np.asarray(function.numpy(*values)).dtype, array.dtype, "same_kind"
        ):
            return None
        where = None
        if array.size and array.ndim and self.draw(st.booleans()):
            length = array.shape[-1]
            where = tuple(self.draw(st.lists(st.booleans(), min_size=length, max_size=length)))
        return s.UfuncOut(target, function, operands, where)

    def draw_no_grad(self) -> Any:
        """Draw a write that is not recorded, possibly through a view taken for it."""
        self.sketch.recording = False
        try:
            if self.draw(st.booleans()):
                # The view is known only inside, so its name is removed from the model.
                taken = self.draw_view()
                if taken.op.copies or self.sketch.facts[taken.tensor].overlaps:
                    return None
                taken.run(self.sketch)
                try:
                    if self.sketch.facts[taken.out].overlaps:
                        return None
                    return s.NoGrad((taken, s.Overwrite(taken.out, self.choose(NUMBERS))))
                finally:
                    del self.sketch.arrays[taken.out], self.sketch.facts[taken.out]
            write = self.choose([self.draw_write, self.draw_assign])()
            return None if write is None else s.NoGrad((write,))
        finally:
            self.sketch.recording = True
