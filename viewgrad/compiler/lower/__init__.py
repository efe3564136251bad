"""Lowering of graph nodes to a stream of instructions, where a table row does not suffice."""
