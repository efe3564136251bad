"""Code generation from declarations: the functions and node classes of the operators, as Python source."""
