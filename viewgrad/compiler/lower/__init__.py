"""Lowering of graph nodes to a stream of instructions, for operators without a table-driven lowering."""
