"""Backup and restore of an installation's registrations and of the job's state.

A backup is a file of JSON lines: a head, a line for each record, and a last line with their number.
It has the newest record of each key of the two compacted topics. The state is read first: the
registrations are then at least as new as those that the state is based on.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from cli.client.committed import read_committed
from cli.client.lines import counted
from cli.client.topics import broker_error
from cli.errors import BrokerError, UsageError
from correlation.limits import CONFIG_RECORD_BYTES
from kafka_client.messages import as_bytes, message_headers
from kafka_client.rights import with_right

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from confluent_kafka import Message

    from cli.settings import Settings

CONFIG, STATE = "config", "state"
PARTS = (STATE, CONFIG)
_VERSION = 1
_ANSWER_SECONDS = 60.0
# The max that brokers accept by default is three times as long.
_TRANSACTION_MS = 300_000
_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001 - librdkafka's names
# For keys, headers and the batch around a record of the max size.
_MARGIN_BYTES = 1024 * 1024


class Record(NamedTuple):
    """A record of a compacted topic.

    Attributes
    ----------
    part : {"config", "state"}
        The topic.
    key : bytes
        Key.
    value : bytes or None
        Value; None: a tombstone, whose headers have the last version of a deleted resource.
    headers : sequence of (str, bytes or None)
        Headers.
    """

    part: str
    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    def to_line(self) -> dict[str, Any]:
        """Return the record as a line of the file."""
        return {
            "part": self.part,
            "key": _encode(self.key),
            "value": _encode(self.value),
            "headers": [[name, _encode(value)] for name, value in self.headers],
        }

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Record:
        """Read the output of `to_line`; raises KeyError, TypeError or ValueError."""
        if line["part"] not in PARTS:
            raise ValueError(line["part"])
        headers = [(str(name), _decode(value)) for name, value in line["headers"]]
        return cls(line["part"], _decode(line["key"]) or b"", _decode(line["value"]), headers)


class Backup(NamedTuple):
    """The content of a backup.

    Attributes
    ----------
    prefix : str
        Prefix of the installation: the state names its topics.
    made_at : int
        When the backup was begun, in µs since 1970.
    records : list of Record
        The records, in the order in which they are restored.
    """

    prefix: str
    made_at: int
    records: list[Record]

    def count(self, part: str) -> int:
        """Return the number of present records of a topic; tombstones do not count."""
        return sum(it.part == part and it.value is not None for it in self.records)


def read_backup(settings: Settings) -> Backup:
    """Read the records of an installation, which may be in operation.

    Raises
    ------
    BrokerError
        The broker does not answer, or a topic does not exist.
    """
    made_at = time.time_ns() // 1_000
    records = [it for part in PARTS for it in _newest(settings, part)]
    return Backup(settings.prefix, made_at, records)


def _newest(settings: Settings, part: str) -> Iterator[Record]:
    """Yield the newest record of each key, in the order of their offsets."""
    found: dict[bytes, Record] = {}
    for message in read_committed(settings, _topic(settings, part), follows=True):
        key = as_bytes(message.key()) or b""
        headers = [(name, as_bytes(value)) for name, value in message_headers(message)]
        found.pop(key, None)
        found[key] = Record(part, key, as_bytes(message.value()), headers)
    # The version of a deleted resource must not be used again.
    return (it for it in found.values() if it.value is not None or part == CONFIG)


def write_file(backup: Backup, file: Path) -> None:
    """Write a backup; an existing file is replaced when the new one is complete.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    head = {"v": _VERSION, "prefix": backup.prefix, "made_at": backup.made_at}
    lines = [head, *(it.to_line() for it in backup.records), {"records": len(backup.records)}]
    with NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.name}.", delete=False) as written:
        try:
            written.writelines(f"{json.dumps(line)}\n" for line in lines)
            written.flush()
            os.fsync(written.fileno())
            Path(written.name).replace(file)
        except BaseException:
            Path(written.name).unlink(missing_ok=True)
            raise


def read_file(file: Path) -> Backup:
    """Read a backup.

    Raises
    ------
    UsageError
        The file is not a backup, is not complete, or another version of this software wrote it.
    OSError
        The file cannot be read.
    """
    lines = file.read_bytes().splitlines()
    head = _parse(file, lines, 0)
    version = head.get("v")
    if version != _VERSION:
        raise UsageError(
            f"{file}: line 1 is that of a backup of version {version}; use a file of "
            f"`coincide backup` of this version, {_VERSION}"
        )
    if _parse(file, lines, -1).get("records") != len(lines) - 2:
        raise UsageError(f"{file}: the backup is not complete; use another one")
    records = []
    for place in range(1, len(lines) - 1):
        try:
            records.append(Record.from_line(_parse(file, lines, place)))
        except (ValueError, KeyError, TypeError) as error:
            raise _not_a_line(file, place) from error
    prefix, made_at = head.get("prefix"), head.get("made_at")
    if not isinstance(prefix, str) or not isinstance(made_at, int):
        raise _not_a_line(file, 0)
    return Backup(prefix, made_at, records)


def _parse(file: Path, lines: Sequence[bytes], place: int) -> dict[str, Any]:
    try:
        found = json.loads(lines[place])
    except (ValueError, IndexError) as error:
        raise _not_a_line(file, place % max(len(lines), 1)) from error
    if not isinstance(found, dict):
        raise _not_a_line(file, place % len(lines))
    return found


def _not_a_line(file: Path, place: int) -> UsageError:
    return UsageError(
        f"{file}: line {place + 1} is not that of a backup; use a file of `coincide backup`"
    )


def restore(settings: Settings, backup: Backup, parts: Collection[str]) -> None:
    """Write the records of a backup to their topics, in one transaction.

    Parameters
    ----------
    settings
        Broker address and prefix of the installation.
    backup
        The backup.
    parts
        Which of the topics: "config", "state".

    Raises
    ------
    UsageError
        The backup is that of another prefix, or a topic has records.
    BrokerError
        The broker does not answer, or rejects a record.
    """
    if backup.prefix != settings.prefix:
        raise UsageError(
            f"the backup is that of the prefix {backup.prefix}; set COINCIDE_PREFIX to it"
        )
    for part in parts:
        topic = _topic(settings, part)
        # A message without a value is false.
        if next(read_committed(settings, topic), None) is not None:
            other = STATE if part == CONFIG else CONFIG
            raise UsageError(
                f"{topic} has records, which a restore would mix with those of the backup; to "
                f"restore the other topic, add --only {other}; to replace this one, stop service "
                "and job, delete the topic, and start the service, which creates it"
            )
    _write(settings, [it for it in backup.records if it.part in parts])


def _write(settings: Settings, records: Sequence[Record]) -> None:
    """Write all records or none."""
    transactional_id = f"{settings.prefix}.cli.restore"
    properties = {
        **settings.client,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": _TRANSACTION_MS,
        "message.max.bytes": CONFIG_RECORD_BYTES + _MARGIN_BYTES,
    }
    try:
        producer = Producer(properties)
        producer.init_transactions(_ANSWER_SECONDS)
        producer.begin_transaction()
        try:
            _send(producer, settings, records)
            producer.commit_transaction(_ANSWER_SECONDS)
        except (KafkaException, BrokerError):
            with suppress(KafkaException):
                producer.abort_transaction(_ANSWER_SECONDS)
            raise
    except KafkaException as error:
        cause = error.args[0]
        name = transactional_id
        if cause.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            # The client does not name the topic of a transaction.
            name = " or ".join(sorted({_topic(settings, it.part) for it in records}))
        refused = with_right(cause, "Write", name, settings.kafka_user)
        raise broker_error(settings, KafkaException(refused)) from error


def _send(producer: Producer, settings: Settings, records: Sequence[Record]) -> None:
    failures: list[tuple[KafkaError, str]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        # Records of a failed transaction are purged; its commit raises the cause.
        if error is not None and error.code() not in _PURGED:
            failures.append((error, message.topic() or ""))

    for it in records:
        topic = _topic(settings, it.part)
        headers: list[tuple[str, str | bytes | None]] = [*it.headers]
        while True:
            try:
                producer.produce(topic, it.value, it.key, 0, delivered, headers=headers)
                break
            except BufferError:
                producer.poll(1)
    left = producer.flush(_ANSWER_SECONDS)
    if failures or left:
        raise BrokerError(_describe_failure(len(failures) + left, failures))


def _describe_failure(count: int, failures: Sequence[tuple[KafkaError, str]]) -> str:
    reason = "the broker did not answer in time"
    if failures:
        error, topic = failures[0]
        reason = f"{topic}: {error.str()}"
    return f"{counted(count, 'record')} could not be written, so none was restored: {reason}"


def _topic(settings: Settings, part: str) -> str:
    return settings.topics.config if part == CONFIG else settings.topics.state


def _encode(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _decode(value: str | None) -> bytes | None:
    return None if value is None else b64decode(value, validate=True)
