"""Programs that were run once, compiled: their loops found again, and written down with their gradients.

It has many files because each step from a call to a program is one, and kinds of calls have steps of their own.

A call goes through these files:

    api                    what is compiled, and when
    recording              a run recorded as a graph
    surroundings           what a function sees besides its arguments
    lowering, stream       the graph as a stream of instructions; composites, rearranging, calls, windows help it
    loops                  its loops found again
    building, program      the program
    executions             what it touches, and when
    adjoint                its gradient
    passes                 what is left out of both
    writing                its source, and what runs it
    checking, choosing     compared with the function, and what takes less time
    call, direct           its place in the graph; by likeness, calls like an earlier one go a short way
    batch                  a program run for each of many examples
"""

from .api import Compiled, compile

__all__ = ["Compiled", "compile"]
