"""Back ends: source generated for programs, and its execution by Python (floats and NumPy arrays) or Numba."""
