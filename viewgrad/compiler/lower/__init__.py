"""Lowering of the nodes of a graph to a stream of instructions, if it takes more than a table row."""
