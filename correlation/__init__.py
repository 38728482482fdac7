"""Correlation of events whose times are uncertain: the mathematics, pure."""
