"""Time limits of tests: they end a hang and decide nothing else.

A machine that is ten times slower must give the same verdicts. So a wait ends when its condition
holds, its limit is minutes beyond what a busy machine takes, and live streams accept events that
are as old as a whole run of the tests.
"""

PATIENCE_SECONDS = 600
# How long the service waits for Kafka, where a test does not take Kafka away.
SERVICE_SECONDS = 300
# Of processes that have nothing more to do than to end.
END_SECONDS = 300
# max_delay of live streams, in µs: no restart and no command takes as long.
MAX_DELAY_US = 24 * 3600 * 1_000_000
