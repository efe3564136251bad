"""What a check that passes returns: the properties that were looked at."""

from __future__ import annotations

import attrs

__all__ = ["Report"]


@attrs.define
class Report:
    """The properties of an operator that hold, with the number of examples of each.

    Attributes:
        operator: its name.
        examples: by property, how many examples were checked; 0 where it has nothing that this could be seen of.
        refused: by property, how many calls the operator refused, which is its right.
        switched_off: by property, the reason given.
        absent: what the operator says that it does not have, forward mode for instance.
        notices: what is no fault, but worth knowing.
    """

    operator: str
    examples: dict[str, int] = attrs.Factory(dict)
    refused: dict[str, int] = attrs.Factory(dict)
    switched_off: dict[str, str] = attrs.Factory(dict)
    absent: dict[str, str] = attrs.Factory(dict)
    notices: list[str] = attrs.Factory(list)

    def add(self, property: str, examples: int) -> None:
        """Count examples."""
        self.examples[property] = self.examples.get(property, 0) + examples

    def refuse(self, property: str) -> None:
        """Count a call that the operator refused."""
        self.refused[property] = self.refused.get(property, 0) + 1

    def __str__(self) -> str:
        looked_at = {name: number for name, number in self.examples.items() if number or name in self.refused}
        lines = [f"{self.operator}: {sum(looked_at.values())} examples of {len(looked_at)} properties"]
        width = max(map(len, [*looked_at, *self.switched_off, *self.absent]), default=0)
        for name, number in looked_at.items():
            refused = self.refused.get(name)
            lines.append(f"  {name:<{width}}  {number:>4}{f'  ({refused} refused)' if refused else ''}")
        lines += [f"  {name:<{width}}   off: {reason}" for name, reason in self.switched_off.items()]
        lines += [f"  {name:<{width}}  none: {reason}" for name, reason in self.absent.items()]
        lines += [f"  note: {notice}" for notice in self.notices]
        return "\n".join(lines)
