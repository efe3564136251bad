"""The nodes of arithmetic on scalars: one class for all operators on one number, and one for all on two.

A backward pass over scalars costs what the interpreter costs. Where objects of one class come along, the interpreter
knows where in them a slot lies. With a class for each operator it looks the slot up, which takes five times as long. So
the nodes of `+`, `-`, `*`, `/`, `-x`, `exp` and `log` on scalars share two classes. What they have to do is said by the
*form* of their formulas, which the engine knows: see `autograd/scalar_run.py`. All else they have from the class of the
operator's other nodes. See Note [The gradients of scalars] in docs/notes/scalars.md.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import attrs
import numpy as np

from ..tensor.node import ONE, ONE_EDGE, PAIR, TWO_EDGES, Node
from .language.declaration import Operator

__all__ = [
    "DIFFERENCE",
    "NEGATIVE",
    "OVER_SELF",
    "PRODUCT",
    "QUOTIENT",
    "SUM",
    "TIMES_RESULT",
    "ScalarNode",
    "ScalarOfOne",
    "ScalarOfTwo",
    "ScalarRule",
    "form_of",
]

SUM: Final = 0
DIFFERENCE: Final = 1
PRODUCT: Final = 2
QUOTIENT: Final = 3
NEGATIVE: Final = 4
TIMES_RESULT: Final = 5
OVER_SELF: Final = 6

# The formulas of rows. Those that flow are 0 wherever the gradient is: Note [Where nothing flows].
FORMS: Final[dict[tuple[str, ...], int]] = {
    ("grad", "grad"): SUM,
    ("grad", "-grad"): DIFFERENCE,
    ("grad * conj(other)", "grad * conj(self)"): PRODUCT,
    ("flowing(grad / conj(other), grad)", "flowing(-grad * conj(result / other), grad)"): QUOTIENT,
    ("-grad",): NEGATIVE,
    ("flowing(grad * conj(result), grad)",): TIMES_RESULT,
    ("flowing(grad / conj(self), grad)",): OVER_SELF,
}


def form_of(operator: Operator) -> int | None:
    """The form of the formulas of an elementwise operator, where it is one that the engine knows."""
    formulas = operator.formulas
    names = tuple(argument.name for argument in operator.signature.tensors)
    if names != ("self", "other")[: len(names)] or tuple(formula.inputs for formula in formulas) != tuple(
        (name,) for name in names
    ):
        return None
    return FORMS.get(tuple(formula.text.strip() for formula in formulas))


@attrs.define(eq=False)
class ScalarRule:
    """What all nodes of one operator on scalars have in common.

    Arguments:
        form: the form of its formulas.
        node_class: the class of its nodes on arrays, which has the formulas.
    """

    form: int
    node_class: Any


class ScalarNode(Node):
    """The node of an operator on scalars of type float64."""

    __slots__ = ()

    rule: ScalarRule
    input_specs: ClassVar[None] = None  # nothing was broadcast or cast

    def name(self) -> str:
        """The name of the step, that of the operator."""
        name: str = self.rule.node_class.__name__
        return name

    @property
    def saved_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """What it may have saved."""
        names: tuple[str, ...] = self.rule.node_class.saved_names
        return names

    def apply(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """The gradients of the inputs, by the formulas."""
        self._convert()
        return self.rule.node_class.apply(self, grad, edges)

    def consume(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """`apply`, after which the saved values are released."""
        self._convert()
        return self.rule.node_class.consume(self, grad, edges)

    def apply_recorded(self, grad: Any, edges: tuple[Any, ...]) -> Any:
        """`apply` from tensors, recorded."""
        self._convert()
        return self.rule.node_class.apply_recorded(self, grad, edges)

    def kept(self) -> list[tuple[str, Any]]:
        """The saved values, each with a name."""
        self._convert()
        return super().kept()

    def _convert(self) -> None:
        """Make NumPy's numbers, which formulas are for, of Python's own."""
        for name in self.saved_names:
            if type(getattr(self, f"saved_{name}")) is float:
                setattr(self, f"saved_{name}", np.float64(getattr(self, f"saved_{name}")))

    def release(self) -> None:
        """Let go of the saved values."""
        self.rule.node_class.release(self)


class ScalarOfOne(ScalarNode):
    """The node of an operator on one scalar."""

    __slots__ = ("edge", "rule", "saved_result", "saved_self")

    kind: ClassVar[int] = ONE
    edges = ONE_EDGE


class ScalarOfTwo(ScalarNode):
    """The node of an operator on two scalars."""

    __slots__ = ("edge0", "edge1", "rule", "saved_other", "saved_result", "saved_self")

    kind: ClassVar[int] = PAIR
    edges = TWO_EDGES
