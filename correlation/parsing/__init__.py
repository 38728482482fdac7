"""Parsing of a record's JSON into an event."""
