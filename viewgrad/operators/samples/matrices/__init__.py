"""What the tables of derivatives/matrices/ are tested on."""
