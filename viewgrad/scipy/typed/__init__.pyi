"""The names of the modules of `viewgrad.scipy`."""
