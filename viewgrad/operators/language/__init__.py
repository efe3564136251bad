"""The language of derivative declarations: what a row says, how it is read and checked."""
