"""The properties of an operator, each with the circumstances in which it is inspected."""
