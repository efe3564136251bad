"""Readers of statements, expressions, indices, calls, and each kind of library function."""
