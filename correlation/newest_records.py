"""The config topic folded by key: newest records that cannot be read, and versions of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from correlation.config_records import Unreadable, parse_config_record
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError
from correlation.resources.records import Resource

_VERSION_HEADER = "coincide.version"
# Longer ones are not versions that this software wrote.
_MAX_VERSION_DIGITS = 18
Headers = Iterable[tuple[str, bytes | str | None]]


class NewestRecords:
    """The newest record of each key; the records are taken in their order.

    Until `follow` only the newest records count: one of a newer version that is followed by a
    readable one, or by a tombstone, does not stop the reader.

    Parameters
    ----------
    loads : callable
        The parser of JSON; raises ValueError.
    """

    def __init__(self, loads: Callable[[bytes], object]) -> None:
        self._loads = loads
        self._unreadable: dict[bytes, Unreadable] = {}
        self._newer: dict[bytes, Unreadable] = {}
        # Also of deleted names: a condition that is registered again must not repeat alarm ids.
        self._versions: dict[bytes, int] = {}
        self._is_following = False

    def take(
        self, offset: int, key: bytes, value: bytes | None, headers: Headers = ()
    ) -> Resource | Unreadable | None:
        """Read a record.

        Returns
        -------
        Resource, Unreadable or None
            The resource that is in force from here on; for one that is out of force, why its record
            cannot be read, or None after a tombstone.

        Raises
        ------
        UnknownRecordVersionError
            After `follow`, when a newer version of this software wrote it.
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
        # Its version is not known. Each version of a name took a record, so that none is above
        # the offset + 1.
        self._note_version(key, offset + 1)
        return found

    def _note_version(self, key: bytes, version: int) -> None:
        # In a backup that was written back, versions are above the offsets: none goes down.
        self._versions[key] = max(self._versions.get(key, 0), version)

    def follow(self) -> None:
        """Take the records so far as the newest of their keys.

        Raises
        ------
        UnknownRecordVersionError
            When a newer version of this software wrote one of them.
        """
        for newer in self._newer.values():
            raise _stop_at(newer)
        self._is_following = True

    def unreadable(self) -> list[Unreadable]:
        """Return the records that cannot be read and are the newest of their keys, by offset."""
        return sorted(self._unreadable.values(), key=lambda it: it.offset)

    def newer(self) -> list[Unreadable]:
        """Return those that a newer version of this software wrote, by offset."""
        return sorted(self._newer.values(), key=lambda it: it.offset)

    def version(self, key: bytes) -> int:
        """Return the highest version that a name may have had; 0 for one that is new."""
        return self._versions.get(key, 0)


def deletion_headers(version: int) -> tuple[tuple[str, bytes], ...]:
    """Build the headers of the record that deletes a resource of a version."""
    return ((_VERSION_HEADER, str(version).encode()),)


def _deleted_version(headers: Headers) -> int:
    """Return the version of a deleted resource: compaction leaves nothing else of it."""
    version = dict(headers).get(_VERSION_HEADER) or b""
    if not isinstance(version, bytes) or not version.isdigit():
        return 0
    return int(version) if len(version) <= _MAX_VERSION_DIGITS else 0


def _stop_at(newer: Unreadable) -> UnknownRecordVersionError:
    where = f"the record at offset {newer.offset} of the config topic, {newer.shown_key}"
    return UnknownRecordVersionError(f"{where}: {newer.problem}")
