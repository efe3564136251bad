"""A call of a compiled function: what it looks like, how it is recorded, compared, chosen and run."""
