"""The user's call itself, which must have something to check."""

from __future__ import annotations

from typing import Final

from ..arguments import Example, outputs_of
from ..operator_under_test import OperatorUnderTest, Refused
from ..script import Script
from ..special_values import in_double_precision

TITLE: Final = "something to check"


def usable_call(subject: OperatorUnderTest, example: Example) -> Example:
    """Check that a call has differentiable arguments and results; return it in double precision.

    The outputs of the call and the arguments that it writes to are stored in the subject. A call that is refused in
    double precision is returned unchanged.

    Raises:
        Failure: if there is nothing to check.
    """
    if not example.wanted:
        script = Script(subject, TITLE, example)
        script.leaves(())
        tensors = ", ".join(f"x{k}" for k in range(len(example.arrays)))
        script.lines.append(f"assert any(tensor.dtype.kind in 'fc' for tensor in [{tensors}])")
        script.fail(
            "nothing was checked: no tensor or array of floating-point or complex dtype is among the arguments; lists "
            "and numbers are options, so pass np.array(...)"
        )
    double = in_double_precision(example)
    subject.written = subject.written_by(double)
    try:
        subject.values(double)
        example = double
    except Refused:
        subject.written = subject.written_by(example)
    script = Script(subject, TITLE, example)
    script.leaves()
    try:
        script.call(f"y = {script.expression()}")
    except Refused as refused:
        advice = "; arrays of arguments cannot be written to, so write to a copy" if "read-only" in str(refused) else ""
        if subject.contract.whole:
            advice += f"; options= passes {', '.join(subject.contract.whole)} as it is: the values to try are a list"
        script.fail(f"the operator refuses the call to be checked: {refused}{advice}", refused.__cause__)
    outputs = outputs_of(script["y"])
    if not outputs:
        script.lines.append("assert isinstance(y, vg.Tensor), y")
        kind = type(script["y"]).__name__
        script.fail(f"nothing was checked: no tensor is among the results, which are {kind}; return vg.Tensor(...)")
    if not any(output.requires_grad for _, output in outputs):
        script.lines.append(f"assert {' or '.join(f'y{path}.requires_grad' for path, _ in outputs)}")
        script.fail("nothing was checked: no result requires grad, although arguments do")
    subject.outputs = len(outputs), tuple(i for i, (_, output) in enumerate(outputs) if output.requires_grad)
    return example
