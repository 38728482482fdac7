"""Timing correlation of uncertain timestamps."""
