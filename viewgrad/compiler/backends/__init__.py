"""Back ends: code generation for programs, and execution in Python (floats and NumPy arrays) or by Numba."""
