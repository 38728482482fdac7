"""Factored output: many pairs in few records, certain pairs as ranges, probed ones as bitmaps."""
