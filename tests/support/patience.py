"""Time limits of tests: they only end a hang.

A machine that is ten times slower must produce the same verdicts. A wait therefore ends when its
condition holds, and its limit is minutes longer than a busy machine needs. Live streams accept
events that are as old as a whole run of the tests.
"""

PATIENCE_SECONDS = 600
# Time for which the service waits for Kafka, in tests that do not stop Kafka.
SERVICE_SECONDS = 300
# Limit for processes that have been asked to end.
END_SECONDS = 300
# max_delay of live streams, in µs: longer than any restart or command.
MAX_DELAY_US = 24 * 3600 * 1_000_000
