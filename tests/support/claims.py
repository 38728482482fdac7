"""Claims of an installation, and targets of the sink, for tests without a job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_jobs.sink.batches import mark_group
from spark_jobs.sink.options import Owner
from spark_jobs.sink.ownership import Claims, claims_of, sink_id
from spark_jobs.sink.transactions import Target

if TYPE_CHECKING:
    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties


def claim(
    topics: Topics, properties: Properties, checkpoint: str = "checkpoint", partitions: int = 1
) -> Owner:
    """Claim an installation, as a job does at its start."""
    claims: Claims = claims_of(topics, properties)
    return claims.claim(checkpoint, partitions, time.time_ns() // 1_000)


def target(topics: Topics, owner: Owner, part: int | str = 0, query: str = "query") -> Target:
    """Return a part of the sink of a query."""
    group = mark_group(topics.prefix, query, part)
    return Target(sink_id(topics.prefix, part), group, topics, owner)
