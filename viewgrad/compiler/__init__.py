"""The compiler, which generates programs from the source or a trace of a function, with their gradients.

A call goes through these modules:

    api                    dispatch: the program, or the function
    gradient               gradients that run the program of their function
    cache                  specializations, their states, and the transitions between these
    policy                 when to retrace after a guard failure
    guards                 conditions under which a program may run in place of its function
    calls/capture          a call traced as a graph
    calls/pickling         traces in pickles
    pipeline               the passes, in order, from the trace to a program that runs
    lowering, lower        the graph as a stream of instructions (trace_stream)
    reroll                 the loops of the stream
    build_ir, loop_ir      the program
    access_analysis        which elements each step accesses, and when
    adjoint                its gradient
    passes                 optimizations of both
    verify_ir              the invariants checked between passes
    memory_plan, arena     which buffers share memory
    backends               code generation and execution
    runtime                runs of the program, and of its gradient
    calls/verify           the first run of the program, compared with the function
    calls/node             its node in the graph
    calls/fast_call        the fast path of calls with a cached signature
    calls/batched          a program that runs for each of many examples
"""

from .api import Compiled, compile

__all__ = ["Compiled", "compile"]
