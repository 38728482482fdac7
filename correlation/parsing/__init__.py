"""From a record's JSON to an event."""
