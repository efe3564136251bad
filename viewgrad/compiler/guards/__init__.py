"""Guards: conditions under which a compiled program may run in place of its function."""
