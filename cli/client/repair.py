"""Unreadable records of the config topic, and their removal (``repair-config``).

A record is removed by a tombstone with the same key. Only records that were shown are removed: the
topic is read again first, and a key that has a newer record by then is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from cli.client.committed import read_committed
from cli.client.lines import counted
from cli.client.topics import broker_error
from cli.errors import BrokerError
from correlation.config_records import Unreadable
from correlation.newest_records import NewestRecords, deletion_headers
from kafka_client.messages import as_bytes, message_headers
from kafka_client.rights import with_right

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

    from cli.settings import Settings

_SEND_SECONDS = 30.0


class Found(NamedTuple):
    """The newest record of a key, which this version of the software cannot read.

    Attributes
    ----------
    record
        Key and offset of the record, and the reason why it cannot be read.
    is_newer
        Whether a newer version of the software wrote the record and can read it.
    """

    record: Unreadable
    is_newer: bool

    def to_document(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return self.record.to_document() | {"newer_version": self.is_newer}


def find_unreadable(settings: Settings) -> list[Found]:
    """Return the unreadable records that are the newest of their keys, by offset.

    Parameters
    ----------
    settings
        Broker address and prefix of the installation.

    Raises
    ------
    BrokerError
        The broker does not answer, or the config topic does not exist.
    """
    return _found(_read_newest(settings))


def remove(settings: Settings, shown: Iterable[Found]) -> list[Found]:
    """Write a tombstone for each shown record that is still the newest of its key.

    Returns
    -------
    list of Found
        The removed records.

    Raises
    ------
    BrokerError
        The broker does not answer, or rejects a tombstone.
    """
    newest = _read_newest(settings)
    still = set(_found(newest))
    removed = [it for it in shown if it in still]
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    try:
        producer = Producer({**settings.client, "acks": "all", "enable.idempotence": True})
        for it in removed:
            producer.produce(
                settings.topics.config,
                None,
                it.record.key,
                partition=0,
                # The highest version that the name may have had, so that no version is reused.
                headers=list(deletion_headers(newest.version(it.record.key))),
                on_delivery=delivered,
            )
        left = producer.flush(_SEND_SECONDS)
    except KafkaException as error:
        raise broker_error(settings, error) from error
    if failures or left:
        reason = "the broker did not answer in time"
        if failures:
            reason = with_right(
                failures[0], "Write", settings.topics.config, settings.kafka_user
            ).str()
        raise BrokerError(
            f"{counted(len(failures) + left, 'record')} could not be removed: {reason}"
        )
    return removed


def _read_newest(settings: Settings) -> NewestRecords:
    newest = NewestRecords(orjson.loads)
    for message in read_committed(settings, settings.topics.config):
        key, value = as_bytes(message.key()) or b"", as_bytes(message.value())
        newest.take(message.offset() or 0, key, value, message_headers(message))
    return newest


def _found(newest: NewestRecords) -> list[Found]:
    found = [Found(it, is_newer=False) for it in newest.unreadable()]
    found += [Found(it, is_newer=True) for it in newest.newer()]
    return sorted(found, key=lambda it: it.record.offset)
