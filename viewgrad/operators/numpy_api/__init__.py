"""The meaning of NumPy's functions, ufuncs and array methods for tensors."""
