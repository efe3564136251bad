"""From declarations to code: the functions and node classes of the operators, written as Python source."""
