"""Columns of events, and the buffer per stream that all conditions share."""
