"""Algorithms for events whose time is uniform on an interval."""
