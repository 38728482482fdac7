"""Records of the config topic, read by the same rule in the service and in the job.

The newest record of a key decides. Where it cannot be read, the resource of that key is not in
force, whatever older records of the key hold. So service and job agree, and so do a process that
has read the older records and one that starts after Kafka has removed them. A newer record of the
key, or a tombstone, ends it.

A record whose key names a resource and whose `v` is newer than this software is another matter:
ignoring it would undo what somebody registered with the newer software, so that it stops whoever
reads it (`UnknownRecordVersionError`), until a newer record or a tombstone follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeGuard, cast, get_args

from correlation.checks import NAME
from correlation.errors import CorrelationError, UnknownRecordVersionError, UnreadableRecordError
from correlation.records import VERSION, Resource, ResourceKind

_READ: Mapping[ResourceKind, Callable[[Resource], object]] = {
    "stream": Resource.to_stream,
    "condition": Resource.to_condition,
    "template": Resource.to_template,
}
# What building values from a document of any form may raise.
_FAILURES = (
    CorrelationError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class Unreadable(NamedTuple):
    """The newest record of a key, which cannot be read.

    Parameters
    ----------
    key : bytes
        As it is in Kafka.
    offset : int
        Of the record.
    problem : str
        Why it cannot be read.
    """

    key: bytes
    offset: int
    problem: str

    @property
    def shown_key(self) -> str:
        """The key as text; bytes that are not UTF-8 are escaped."""
        return self.key.decode("utf-8", "backslashreplace")


def read_key(key: bytes) -> tuple[ResourceKind, str]:
    """Read the kind and the name of a resource from the key of its record.

    Raises
    ------
    UnreadableRecordError
        When the key does not name a resource.
    """
    kind, _, name = key.decode("utf-8", "replace").partition("/")
    if kind not in get_args(ResourceKind) or NAME.fullmatch(name) is None:
        raise UnreadableRecordError("its key is not kind/name of a stream, condition or template")
    return cast("ResourceKind", kind), name


def parse_config_record(key: bytes, value: bytes, loads: Callable[[bytes], object]) -> Resource:
    """Read a record from its key and value; errors as of `read_config_record`.

    Parameters
    ----------
    key, value : bytes
        As they are in Kafka; the value is not null.
    loads : callable
        The parser of JSON; raises ValueError.
    """
    try:
        record = loads(value)
    except ValueError as error:
        read_key(key)
        raise UnreadableRecordError(f"its value is not JSON: {error}") from error
    return read_config_record(key, record)


def read_config_record(key: bytes, record: object) -> Resource:
    """Read a resource from the key and the parsed value of its record.

    Raises
    ------
    UnreadableRecordError
        When it is not a resource under its own key.
    UnknownRecordVersionError
        When a newer version of this software wrote it.
    """
    kind, name = read_key(key)
    if not isinstance(record, Mapping):
        raise UnreadableRecordError("its value is not a JSON object")
    version = record.get("v")
    if _is_whole(version) and version > VERSION:
        raise UnknownRecordVersionError(
            f"record version {version}, this software reads {VERSION}: upgrade it"
        )
    if not _is_whole(version) or version != VERSION:
        raise UnreadableRecordError(f"its v is {version!r:.40}, not {VERSION}")
    try:
        resource = Resource.from_record(record)
        _check_fields(resource, kind, name)
        _READ[kind](resource)
    except UnreadableRecordError:
        raise
    except _FAILURES as error:
        raise UnreadableRecordError(f"it does not hold a {kind}: {error}") from error
    return resource


def _check_fields(resource: Resource, kind: ResourceKind, name: str) -> None:
    if (resource.kind, resource.name) != (kind, name):
        raise UnreadableRecordError("its key names another resource than its value")
    if not _is_whole(resource.version) or resource.version < 1:
        raise UnreadableRecordError(f"its version is {resource.version!r:.40}, not a number from 1")
    if not _is_whole(resource.updated_at_us):
        raise UnreadableRecordError("its updated_at is not a whole number")
    if not isinstance(resource.document, dict):
        raise UnreadableRecordError("its document is not a JSON object")
    if not isinstance(resource.paused, bool):
        raise UnreadableRecordError("its paused is not true or false")


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
