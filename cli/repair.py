"""Records of the config topic that cannot be read, and their removal (``repair-config``).

A record is removed by a tombstone under its very key. What is removed is only what was shown: the
topic is read again first, and a key that has got a newer record meanwhile is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from confluent_kafka import KafkaError, KafkaException, Producer

from cli.committed import read_committed
from cli.errors import BrokerError
from correlation.config_records import Unreadable, parse_config_record
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError
from service.fold import deletion_headers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

    from cli.settings import Settings

_SEND_SECONDS = 30.0


class Found(NamedTuple):
    """The newest record of a key, which this software cannot read.

    Attributes
    ----------
    record
        Its key, its offset, and why it cannot be read.
    is_newer
        Whether a newer version of the software wrote it, which can read it.
    """

    record: Unreadable
    is_newer: bool

    def to_document(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "offset": self.record.offset,
            "key": self.record.shown_key,
            "problem": self.record.problem,
            "newer_version": self.is_newer,
        }


def find_unreadable(settings: Settings) -> list[Found]:
    """Return the newest records of their keys that cannot be read, by offset.

    Parameters
    ----------
    settings
        Where the broker is, and the prefix of the installation.

    Raises
    ------
    BrokerError
        The broker does not answer, or has no config topic.
    """
    newest: dict[bytes, Message] = {}
    for message in read_committed(settings, settings.topics.config):
        newest[_as_bytes(message.key())] = message
    found = (_problem(key, message) for key, message in newest.items())
    return sorted((it for it in found if it is not None), key=lambda it: it.record.offset)


def remove(settings: Settings, shown: Iterable[Found]) -> list[Found]:
    """Write a tombstone for each of the records that is still the newest of its key.

    Returns
    -------
    list of Found
        Those that were removed.

    Raises
    ------
    BrokerError
        The broker does not answer, or does not take a tombstone.
    """
    still = set(find_unreadable(settings))
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
                # Its version is not known. Each took an offset, so that none was higher.
                headers=list(deletion_headers(it.record.offset)),
                on_delivery=delivered,
            )
        left = producer.flush(_SEND_SECONDS)
    except KafkaException as error:
        raise BrokerError(f"no broker answers at {settings.bootstrap}: {error}") from error
    if failures or left:
        reason = failures[0].str() if failures else "no answer in time"
        raise BrokerError(f"{len(failures) + left} records were not removed: {reason}")
    return removed


def _problem(key: bytes, message: Message) -> Found | None:
    value, offset = message.value(), message.offset() or 0
    if value is None:
        return None
    try:
        parse_config_record(key, _as_bytes(value), orjson.loads)
    except UnreadableRecordError as error:
        return Found(Unreadable(key, offset, str(error)), is_newer=False)
    except UnknownRecordVersionError as error:
        return Found(Unreadable(key, offset, str(error)), is_newer=True)
    return None


def _as_bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
