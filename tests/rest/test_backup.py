"""Restore to the topics of a real broker: all records or none, and only to topics without any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from cli.client.backup import CONFIG, PARTS, STATE, Backup, Record, read_backup, restore
from cli.errors import BrokerError, UsageError
from cli.settings import Settings
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.kafka
# Larger than librdkafka sends by default.
LARGE = b"x" * 2 * 2**20
TOMBSTONE = Record(CONFIG, b"stream/gone", None, [("coincide.version", b"7")])
RECORDS = [
    Record(STATE, b"0/0", LARGE, []),
    Record(CONFIG, b"stream/a", b"{}", [("h", b"\xff")]),
    TOMBSTONE,
]


def installation(bootstrap: str, prefix: str, settings: Mapping[str, str]) -> Settings:
    found = Settings.model_validate({"bootstrap": bootstrap, "prefix": prefix})
    topics = dict.fromkeys((found.topics.config, found.topics.state), 1)
    create_topics(bootstrap, topics, {"cleanup.policy": "compact", **settings})
    return found


def test_restored_records_are_those_of_the_backup(kafka_bootstrap: str, topic_prefix: str) -> None:
    settings = installation(kafka_bootstrap, topic_prefix, {"max.message.bytes": "4194304"})
    restore(settings, Backup(topic_prefix, 0, RECORDS), PARTS)
    assert read_backup(settings).records == RECORDS


def test_nothing_is_restored_if_a_record_is_refused(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    settings = installation(kafka_bootstrap, topic_prefix, {"max.message.bytes": "1048576"})
    backup = Backup(topic_prefix, 0, [*RECORDS[1:], RECORDS[0]])
    with pytest.raises(BrokerError):
        restore(settings, backup, PARTS)
    assert read_backup(settings).records == []
    # The transaction was ended: another attempt begins at once.
    change = ConfigResource(
        ResourceType.TOPIC, settings.topics.state, {"max.message.bytes": "4194304"}
    )
    client = AdminClient({"bootstrap.servers": kafka_bootstrap})
    client.alter_configs([change])[change].result(PATIENCE_SECONDS)
    restore(settings, backup, PARTS)
    assert sorted(read_backup(settings).records) == sorted(RECORDS)


def test_topic_that_has_only_tombstones_is_not_empty(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    settings = installation(kafka_bootstrap, topic_prefix, {})
    sent = Sent(None, TOMBSTONE.key, headers=(("coincide.version", b"7"),))
    produce(kafka_bootstrap, settings.topics.config, [sent])
    with pytest.raises(UsageError, match="--only state"):
        restore(settings, Backup(topic_prefix, 0, RECORDS[1:]), PARTS)
    restore(settings, Backup(topic_prefix, 0, []), [STATE])
    assert read_backup(settings).records == [TOMBSTONE]
