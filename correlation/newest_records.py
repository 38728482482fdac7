"""State of the config topic by key: unreadable newest records, and versions of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from correlation.config_records import Unreadable, parse_config_record
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError
from correlation.resources.record_types import CONTINUED, TOPIC
from correlation.resources.records import Resource
from correlation.resources.schemas import NULL, STRING, RecordType, described, headers_of

_VERSION_HEADER = "coincide.version"
# This software writes no longer versions.
_MAX_VERSION_DIGITS = 18
Headers = Iterable[tuple[str, bytes | str | None]]


class NewestRecords:
    """Fold of the config topic over its keys; records are read in the order of their offsets.

    Before `follow` only the newest records count: a record of a newer version does not stop the
    reader if a readable record of the same key, or a tombstone, follows it.

    Parameters
    ----------
    loads : callable
        JSON parser; raises ValueError.
    """

    def __init__(self, loads: Callable[[bytes], object]) -> None:
        self._loads = loads
        self._unreadable: dict[bytes, Unreadable] = {}
        self._newer: dict[bytes, Unreadable] = {}
        # Includes deleted names: a condition that is registered again must not repeat alarm ids.
        self._versions: dict[bytes, int] = {}
        self._is_following = False

    def take(
        self, offset: int, key: bytes, value: bytes | None, headers: Headers = ()
    ) -> Resource | Unreadable | None:
        """Read a record.

        Returns
        -------
        Resource, Unreadable or None
            The resource, now in force; or the record that cannot be read, whose resource is not in
            force; or None for a tombstone.

        Raises
        ------
        UnknownRecordVersionError
            After `follow`, when a newer version of this software wrote the record.
        """
        self._unreadable.pop(key, None)
        self._newer.pop(key, None)
        if value is None:
            self._note_version(key, _deleted_version(headers))
            return None
        try:
            resource = parse_config_record(key, value, self._loads)
        except UnreadableRecordError as error:
            found = self._unreadable[key] = Unreadable(key, offset, str(error))
        except UnknownRecordVersionError as error:
            found = self._newer[key] = Unreadable(key, offset, str(error))
            if self._is_following:
                raise _stop_at(found) from error
        else:
            self._note_version(key, resource.version)
            return resource
        # The version is unknown. Each version of a name is a record of its own, so the version is
        # at most offset + 1.
        self._note_version(key, offset + 1)
        return found

    def _note_version(self, key: bytes, version: int) -> None:
        # In a topic restored from a backup, versions exceed the offsets. Versions never decrease.
        self._versions[key] = max(self._versions.get(key, 0), version)

    def follow(self) -> None:
        """Mark the records read so far as the newest of their keys.

        Raises
        ------
        UnknownRecordVersionError
            When a newer version of this software wrote one of them.
        """
        for newer in self._newer.values():
            raise _stop_at(newer)
        self._is_following = True

    def unreadable(self) -> list[Unreadable]:
        """Return the unreadable records that are the newest of their keys, sorted by offset."""
        return sorted(self._unreadable.values(), key=lambda it: it.offset)

    def newer(self) -> list[Unreadable]:
        """Return the newest records that newer software wrote, sorted by offset."""
        return sorted(self._newer.values(), key=lambda it: it.offset)

    def version(self, key: bytes) -> int:
        """Return an upper bound on the versions that the key has had; 0 for a new key."""
        return self._versions.get(key, 0)


def deletion_headers(version: int) -> tuple[tuple[str, bytes], ...]:
    """Build the headers of the tombstone of a resource with a version."""
    return ((_VERSION_HEADER, str(version).encode()),)


def _deleted_version(headers: Headers) -> int:
    """Return the version of a deleted resource from the headers of its tombstone, otherwise 0."""
    version = dict(headers).get(_VERSION_HEADER) or b""
    if not isinstance(version, bytes) or not version.isdigit():
        return 0
    return int(version) if len(version) <= _MAX_VERSION_DIGITS else 0


def _stop_at(newer: Unreadable) -> UnknownRecordVersionError:
    where = f"the record at offset {newer.offset} of the config topic, {newer.shown_key}"
    return UnknownRecordVersionError(f"{where}: {newer.problem}")


DELETED = RecordType(
    "deleted_resource",
    "Tombstone: the resource does not exist any more.",
    NULL,
    "KIND/NAME of a stream, condition or template",
    headers_of(
        {_VERSION_HEADER: described(STRING, "Version of the deleted document."), **CONTINUED},
        [_VERSION_HEADER, *CONTINUED],
    ),
    TOPIC,
)
