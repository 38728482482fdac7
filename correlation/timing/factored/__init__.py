"""Many pairs as few records: what is certain as ranges, what was probed as bitmaps."""
