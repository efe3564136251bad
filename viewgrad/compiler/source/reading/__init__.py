"""Reading a function: one file for statements, expressions, indices, calls, and each kind of library function."""
