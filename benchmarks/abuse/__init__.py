"""Abuse of a running service while an honest client reads and writes."""
