"""What nodes of a graph become in a stream of instructions, where that takes more than a line of a table."""
