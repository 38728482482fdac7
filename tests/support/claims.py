"""Claims of an installation, and targets of the sink, for tests without a job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from correlation.resources.topics import Topics
from spark_jobs.sink.batches import mark_group
from spark_jobs.sink.options import Owner
from spark_jobs.sink.ownership import Claims, claims_of, sink_id
from spark_jobs.sink.transactions import Target
from spark_jobs.worker.envelope import Record
from tests.support.kafka import create_topics, read_committed
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from spark_jobs.settings import Properties


class BareInstallation:
    """Topics of an installation, without service and jobs."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap, self.topics = bootstrap, Topics(prefix)
        self.properties: Properties = {"bootstrap.servers": bootstrap}
        names = (self.topics.alarms, self.topics.config, self.topics.state)
        create_topics(bootstrap, dict.fromkeys(names, 1))
        self.claims = claims_of(self.topics, self.properties)

    def record(self, value: str) -> Record:
        """Return a record of the topic of alarms."""
        return Record(self.topics.alarms, b"key", value.encode())

    def written(self) -> list[str]:
        """Return the committed records of the topic of alarms."""
        found = read_committed(self.bootstrap, self.topics.alarms)
        return [(it.value or b"").decode() for it in found]

    def begin(self, transactional_id: str) -> Producer:
        """Begin a transaction of another producer, which the broker does not end meanwhile."""
        producer = Producer(
            {
                **self.properties,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 600_000,
            }
        )
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        return producer


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
