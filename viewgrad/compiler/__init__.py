"""Programs that were run once, compiled: their loops found again, and written down with their gradients.

A call goes through these files:

    api                    what is compiled, and when
    calling/recording      a run recorded as a graph
    calling/surroundings   what a function sees besides its arguments; found by sight
    calling/misses         calls that it does not fit
    lowering, stream       the graph as a stream of instructions; calls help it
    nodes                  what further kinds of nodes become
    kinds                  the kinds of elements that there are
    loops                  its loops found again
    building, program      the program
    executions             what it touches, and when
    adjoint                its gradient
    passes                 what is left out of both
    writing                its source, and what runs it
    calls/verify           compared with the function in its first run
    calling/call, direct   its place in the graph; by likeness, calls like an earlier one go a short way
    calling/batch          a program run for each of many examples
"""

from .api import Compiled, compile

__all__ = ["Compiled", "compile"]
