"""Algorithms for events whose time is distributed as a histogram or a template."""
