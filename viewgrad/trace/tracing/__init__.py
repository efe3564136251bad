"""Tracing: recording the operations of a running program as a graph."""
