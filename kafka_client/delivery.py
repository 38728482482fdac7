"""Wait for the delivery of records in short calls of the client, between which Ctrl-C ends it.

Before version 2.13 of confluent-kafka a call returns before Python handles an interrupt.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Producer

_CALL_SECONDS = 0.1


def flush(producer: Producer, seconds: float) -> int:
    """Send all records and wait for their delivery.

    Parameters
    ----------
    producer : Producer
        Producer of the records.
    seconds : float
        Max wait.

    Returns
    -------
    int
        Number of records that were not delivered in time.
    """
    deadline = time.monotonic() + seconds
    while True:
        left = max(0.0, deadline - time.monotonic())
        waiting = int(producer.flush(min(left, _CALL_SECONDS)))
        if not waiting or not left:
            return waiting
