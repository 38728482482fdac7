"""Algorithms for events whose time is distributed by a histogram or a template."""
