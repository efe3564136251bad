"""The implementations of NumPy's functions, ufuncs and array methods for tensors."""
