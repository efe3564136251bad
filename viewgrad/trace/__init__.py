"""Traces: the operators, reads and writes of one run of a program, as a graph.

`viewgrad.symbolic` differentiates such graphs, and `viewgrad.compile` generates programs from them.
"""
