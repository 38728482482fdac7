"""Correlation of events whose times are uncertain: pure computation, no I/O."""
