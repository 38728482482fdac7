"""Exactly-once output to Kafka."""
