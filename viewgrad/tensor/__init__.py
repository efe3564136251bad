"""The data: storages, tensors, how they are made and what they are to NumPy."""
