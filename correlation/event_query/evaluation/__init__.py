"""Incremental evaluation of event queries over the shared buffers."""
