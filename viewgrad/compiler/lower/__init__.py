"""Lowering of the nodes of a graph to a stream of instructions, where it takes more than a table row."""
