"""Language of event queries: text, canonical text and JSON form of a `Query`."""
