"""The properties of an operator, each with the variations for which it is checked."""
