"""Programs written down as source, and what runs it: Python over floats and arrays, or Numba."""
