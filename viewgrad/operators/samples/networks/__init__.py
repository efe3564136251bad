"""What the tables of derivatives/networks/ are tested on."""
