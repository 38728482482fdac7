"""Timing correlation of events whose times are distributed as histograms, or some of whose are."""
