"""The language of derivative declarations: its data types, parsing and validation."""
