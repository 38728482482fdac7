"""Columns of events, and the buffer of each stream that all conditions share."""
