"""Kafka code shared by the service, the job and the command line."""
