"""The samples for the tables of derivatives/networks/."""
