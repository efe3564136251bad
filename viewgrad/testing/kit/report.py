"""The report of a successful check: the properties that were checked."""

from __future__ import annotations

import attrs


@attrs.define
class Report:
    """The result of a check: the properties that hold, with the number of examples of each.

    Attributes:
        operator: the name of the operator.
        examples: by property, the number of examples checked; 0 if the property does not apply.
        refused: by property, the number of calls that the operator rejected with an error, which is allowed.
        switched_off: by property, the reason given for skipping it.
        absent: features that the operator does not have, such as forward mode.
        notices: observations that are not failures.
        left_out: by property, the number of calls skipped for lack of time.
        seconds: the CPU time of the check.
    """

    operator: str
    examples: dict[str, int] = attrs.Factory(dict)
    refused: dict[str, int] = attrs.Factory(dict)
    switched_off: dict[str, str] = attrs.Factory(dict)
    absent: dict[str, str] = attrs.Factory(dict)
    notices: list[str] = attrs.Factory(list)
    left_out: dict[str, int] = attrs.Factory(dict)
    seconds: float = 0.0

    def leave_out(self, property: str) -> None:
        """Count a call that was skipped for lack of time."""
        self.left_out[property] = self.left_out.get(property, 0) + 1

    def add(self, property: str, examples: int) -> None:
        """Count examples."""
        self.examples[property] = self.examples.get(property, 0) + examples

    def refuse(self, property: str) -> None:
        """Count a call that the operator rejected."""
        self.refused[property] = self.refused.get(property, 0) + 1

    def __str__(self) -> str:
        looked_at = {name: number for name, number in self.examples.items() if number or name in self.refused}
        lines = [
            f"{self.operator}: {sum(looked_at.values())} examples of {len(looked_at)} properties in "
            f"{self.seconds:.1f} seconds"
        ]
        width = max(map(len, [*looked_at, *self.switched_off, *self.absent]), default=0)
        for name, number in looked_at.items():
            refused = self.refused.get(name)
            lines.append(f"  {name:<{width}}  {number:>4}{f'  ({refused} refused)' if refused else ''}")
        lines += [f"  {name:<{width}}   off: {reason}" for name, reason in self.switched_off.items()]
        lines += [f"  {name:<{width}}  none: {reason}" for name, reason in self.absent.items()]
        lines += [f"  note: {notice}" for notice in self.notices]
        if self.left_out:
            told = ", ".join(f"{number} of {name}" for name, number in self.left_out.items())
            lines.append(f"  left out for lack of time: {told}; pass a larger seconds= to check them")
        return "\n".join(lines)
