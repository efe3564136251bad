"""Calls that a program does not fit: whether the function is recorded anew, or runs eagerly for a while.

Recording a function and building its program takes as long as many eager runs. So it is done again where the program
before has been of use. Where values steer each call another way, the function runs eagerly for longer and longer.
"""

from __future__ import annotations

from typing import Final

import attrs

__all__ = ["Misses"]

EARLY: Final = 3  # so many records are made with little hesitation
PAID: Final = 16  # calls of a program that make up for a further one
PATIENCE: Final = 2  # misses in a row after which a program is taken to be of no more use
REST: Final = 16  # so many calls it is at first, twice as many for each record


@attrs.define(eq=False)
class Misses:
    """What is known of calls that a program did not fit.

    Arguments:
        in_a_row: how many there were since the program was last of use.
        calls: how often the program had been run at the last of them.
        begun: how often programs had been run when this one was recorded.
        rest: how many further calls run the function.
    """

    in_a_row: int = 0
    calls: int = 0
    begun: int = 0
    rest: int = 0

    def recorded(self, calls: int) -> None:
        """The function was recorded anew, after so many calls of programs."""
        self.in_a_row = self.rest = 0
        self.calls = self.begun = calls

    def is_worth_a_record(self, calls: int, records: int, is_by_value: bool) -> bool:
        """Whether to record the function anew after a miss; where not, `rest` says for how long it runs eagerly.

        Arguments:
            calls: how often programs were run.
            records: how often the function was recorded.
            is_by_value: whether a value that steers the program was another, rather than what the function sees.
        """
        if calls > self.calls:
            self.in_a_row = 0
        self.in_a_row += 1
        self.calls = calls
        used = calls - self.begun
        if self.in_a_row < PATIENCE and (is_by_value or records >= EARLY):
            return False
        if used >= PAID or (records < EARLY and (used or not is_by_value)):
            return True
        self.rest = REST << records
        return False
