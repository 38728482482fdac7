"""The config topic folded by key: what is registered, and the records that cannot be read."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple, get_args

import orjson

from correlation.config_records import Unreadable, parse_config_record, read_key
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError
from correlation.records import Resource, ResourceKind, resource_key

if TYPE_CHECKING:
    from service.log import LogRecord

_LOGGER = logging.getLogger(__name__)
_VERSION_HEADER = "coincide.version"


class Stored(NamedTuple):
    """A resource and the offset of its record, which changes with every write."""

    resource: Resource
    offset: int


class ConfigFold:
    """The newest record of each key; `apply` is called by one thread, any thread may read.

    Until `follow` only the newest records count: one of a newer version that is followed by a
    readable one, or by a tombstone, is no reason to stop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stored: dict[ResourceKind, dict[str, Stored]] = {
            kind: {} for kind in get_args(ResourceKind)
        }
        # Also of names that are deleted, while their deletion is remembered (it names the version,
        # for compaction leaves nothing else): a condition made anew does not repeat old alarm ids.
        self._versions: dict[bytes, int] = {}
        self._unreadable: dict[bytes, Unreadable] = {}
        self._newer: dict[bytes, UnknownRecordVersionError] = {}
        self._is_following = False

    def apply(self, record: LogRecord) -> None:
        """Take one record; one that cannot be read takes its resource out of force.

        Raises
        ------
        UnknownRecordVersionError
            After `follow`, when a newer version of this software wrote it.
        """
        key = record.key or b""
        resource, unreadable = None, None
        try:
            if record.value is not None:
                resource = parse_config_record(key, record.value, orjson.loads)
        except UnreadableRecordError as error:
            unreadable = Unreadable(key, record.offset, str(error))
        except UnknownRecordVersionError as error:
            where = f"the record at offset {record.offset} of the config topic, {key.decode()}"
            newer = UnknownRecordVersionError(f"{where}: {error}")
            with self._lock:
                if self._is_following:
                    raise newer from error
                self._remove(key)
                self._newer[key] = newer
            return
        with self._lock:
            self._remove(key)
            if resource is not None:
                self._stored[resource.kind][resource.name] = Stored(resource, record.offset)
                self._versions[key] = resource.version
            elif unreadable is not None:
                self._unreadable[key] = unreadable
                # Which version it has is not known; each took an offset, so that none is higher.
                self._versions[key] = max(self._versions.get(key, 0), record.offset)
            else:
                version = dict(record.headers).get(_VERSION_HEADER) or b""
                if version.isdigit():
                    self._versions[key] = int(version)
        if unreadable is not None and self._is_following:
            _log_unreadable(unreadable)

    def follow(self) -> None:
        """Take the records so far as the newest of their keys.

        Raises
        ------
        UnknownRecordVersionError
            When a newer version of this software wrote one of them.
        """
        with self._lock:
            for newer in self._newer.values():
                raise newer
            self._is_following = True
            found = list(self._unreadable.values())
        for unreadable in found:
            _log_unreadable(unreadable)

    def _remove(self, key: bytes) -> None:
        """Forget what the key stood for; the lock is held."""
        self._unreadable.pop(key, None)
        self._newer.pop(key, None)
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

    def version(self, kind: ResourceKind, name: str) -> int:
        """Return the version that a name has, or had; 0 for one that is new."""
        with self._lock:
            return self._versions.get(resource_key(kind, name), 0)

    def unreadable(self) -> list[Unreadable]:
        """Return the records that cannot be read and are the newest of their keys, by offset."""
        with self._lock:
            return sorted(self._unreadable.values(), key=lambda it: it.offset)


def deletion_headers(version: int) -> tuple[tuple[str, bytes], ...]:
    """Build the headers of the record that deletes a resource of a version."""
    return ((_VERSION_HEADER, str(version).encode()),)


def _log_unreadable(found: Unreadable) -> None:
    _LOGGER.error(
        "the record at offset %d of the config topic, %s, cannot be read and is not in force: %s; "
        "PUT the resource again, or remove the record: coincide repair-config",
        found.offset,
        found.shown_key,
        found.problem,
    )
