"""Fold of the config topic by key: registered resources and unreadable records."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple, get_args

import orjson

from correlation.config_records import Unreadable, read_key
from correlation.errors import UnreadableRecordError
from correlation.newest_records import NewestRecords
from correlation.resources.record_types import CONTINUED_HEADER
from correlation.resources.records import Resource, ResourceKind, resource_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.log import LogRecord

_LOGGER = logging.getLogger(__name__)


class Stored(NamedTuple):
    """A resource and the offset of its record, which changes with every write."""

    resource: Resource
    offset: int


def is_continued(headers: Iterable[tuple[str, bytes | None]]) -> bool:
    """Return whether further records of the same transaction follow a record."""
    return any(name == CONTINUED_HEADER for name, _ in headers)


class ConfigFold:
    """Registered resources; `apply` is called by one thread, any thread may read.

    The records of a transaction are applied together: no reader sees a part of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: dict[ResourceKind, dict[str, Stored]] = {
            kind: {} for kind in get_args(ResourceKind)
        }
        self._newest = NewestRecords(orjson.loads)
        self._is_following = False
        # Records of a transaction whose last record has not been read.
        self._waiting: list[LogRecord] = []

    def apply(self, record: LogRecord) -> None:
        """Apply one record; an unreadable record removes its resource.

        A record that is not the last of its transaction is applied with the last one.

        Raises
        ------
        UnknownRecordVersionError
            After `follow`, when a newer version of this software wrote it.
        """
        self._waiting.append(record)
        if not is_continued(record.headers):
            self.complete()

    def complete(self) -> None:
        """Apply the waiting records; errors as in `apply`.

        Called at the end of the topic, which is never inside a transaction: Kafka removes the last
        record of an old transaction if it is an expired tombstone.
        """
        records, self._waiting = self._waiting, []
        with self._lock:
            unreadable = [it for record in records if (it := self._take(record)) is not None]
        if self._is_following:
            for found in unreadable:
                _log_unreadable(found)

    def _take(self, record: LogRecord) -> Unreadable | None:
        """Apply a record; return it if it is unreadable. The caller holds the lock."""
        key = record.key or b""
        found = self._newest.take(record.offset, key, record.value, record.headers)
        self._remove(key)
        if isinstance(found, Resource):
            self._stored[found.kind][found.name] = Stored(found, record.offset)
        return found if isinstance(found, Unreadable) else None

    def follow(self) -> None:
        """End the initial read: from now on, a record of a newer version is an error at once.

        Raises
        ------
        UnknownRecordVersionError
            When a newer version of this software wrote the newest record of a key.
        """
        with self._lock:
            self._newest.follow()
            self._is_following = True
            found = self._newest.unreadable()
        for unreadable in found:
            _log_unreadable(unreadable)

    def _remove(self, key: bytes) -> None:
        """Remove the resource of the key; the caller holds the lock."""
        try:
            kind, name = read_key(key)
        except UnreadableRecordError:
            return
        self._stored[kind].pop(name, None)

    def get(self, kind: ResourceKind, name: str) -> Stored | None:
        """Return a resource, or None."""
        with self._lock:
            return self._stored[kind].get(name)

    def all(self, kind: ResourceKind) -> dict[str, Stored]:
        """Return the resources of a kind, by name."""
        with self._lock:
            return dict(self._stored[kind])

    def snapshot(self) -> dict[ResourceKind, dict[str, Stored]]:
        """Return the resources of all kinds at one moment."""
        with self._lock:
            return {kind: dict(stored) for kind, stored in self._stored.items()}

    def version(self, kind: ResourceKind, name: str) -> int:
        """Return the highest version that a name may have had; 0 for a new name."""
        with self._lock:
            return self._newest.version(resource_key(kind, name))

    def unreadable(self) -> list[Unreadable]:
        """Return the unreadable records that are the newest of their keys, by offset."""
        with self._lock:
            return self._newest.unreadable()


def _log_unreadable(found: Unreadable) -> None:
    _LOGGER.error(
        "the record at offset %d of the config topic, %s, cannot be read and is not in force: %s; "
        "PUT the resource again, or remove the record: coincide repair-config",
        found.offset,
        found.shown_key,
        found.problem,
    )
