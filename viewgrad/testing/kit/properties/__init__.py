"""The properties of an operator, each with the variations under which it is checked."""
