"""Event queries with negation: a kind of condition (TSA)."""
