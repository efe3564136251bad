"""The samples for the tables of derivatives/matrices/."""
