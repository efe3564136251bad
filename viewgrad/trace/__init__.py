"""Traces: one run of a program as a graph of operators, reads and writes.

`viewgrad.symbolic` differentiates such graphs, and `viewgrad.compile` generates programs from them.
"""
