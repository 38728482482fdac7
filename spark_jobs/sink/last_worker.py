"""Which worker process has opened the producer of each partition of the sink last.

Spark gives each task to the worker that has been idle longest, so partitions move between workers
in nearly every batch, and a producer is of no use after another worker has opened one for the same
partition. The workers of a machine share a table of the processes: a worker need not find this out
from Kafka. The table is a hint: producers of other machines are not in it.
"""

from __future__ import annotations

import mmap
import os

import numpy as np

from correlation.limits import SLOTS_LIMIT

# Memory of the daemon, which forks the workers after it has imported this module.
_processes = np.frombuffer(mmap.mmap(-1, SLOTS_LIMIT * np.dtype(np.int64).itemsize), np.int64)


def is_this_worker(partition: int) -> bool:
    """Return whether no other worker has opened a producer for a partition since this one did."""
    return bool(_processes[partition] == os.getpid())


def note_this_worker(partition: int) -> None:
    """Note that this worker opens a producer for a partition."""
    _processes[partition] = os.getpid()
