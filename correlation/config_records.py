"""Records of the config topic, read by the same rule in the service and in the job.

The newest record of a key decides. Where it cannot be read, the resource of that key is not in
force, whatever older records of the key hold. So service and job agree, and so do a process that
has read the older records and one that starts after Kafka has removed them. A newer record of the
key, or a tombstone, ends it.

A record whose key names a resource and whose `v` is newer than this software is another matter:
ignoring it would undo what somebody registered with the newer software, so that it stops whoever
reads it (`UnknownRecordVersionError`), until a newer record or a tombstone follows it.

Anything may be in the topic. No value is written into a message by `repr`, and every failure of
reading a value becomes an `UnreadableRecordError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard, cast, get_args

from correlation.errors import CorrelationError, UnknownRecordVersionError, UnreadableRecordError
from correlation.kinds import to_condition
from correlation.resources.checks import NAME
from correlation.resources.records import VERSION, Resource, ResourceKind

# Records that cannot be read are counted; more of them than this are not listed.
MAX_LISTED = 20
_MAX_TEXT = 200
# Parsers read 1,000 levels and more, which neither Python's `repr` nor orjson's writer can write.
_MAX_DEPTH = 64
_READ: Mapping[ResourceKind, Callable[[Resource], object]] = {
    "stream": Resource.to_stream,
    "condition": to_condition,
    "template": Resource.to_template,
}
# What parsing JSON and building values from a document of any form may raise.
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
        """The key as text, cut; bytes that are not UTF-8 are escaped."""
        return _cut(self.key.decode("utf-8", "backslashreplace"))

    def to_document(self) -> dict[str, Any]:
        """Return it as a JSON object of bounded size."""
        return {"key": self.shown_key, "offset": self.offset, "problem": _cut(self.problem)}


def list_unreadable(records: Iterable[Unreadable]) -> list[dict[str, Any]]:
    """Return the first `MAX_LISTED` records as JSON objects."""
    return [it.to_document() for it, _ in zip(records, range(MAX_LISTED), strict=False)]


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
    read_key(key)
    try:
        record = loads(value)
    except _FAILURES as error:
        raise UnreadableRecordError(_cut(f"its value is not JSON: {error}")) from error
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
    try:
        newer = _newer_version(record)
        if newer is None:
            return _read_resource(kind, name, cast("Mapping[str, Any]", record))
    except UnreadableRecordError:
        raise
    except _FAILURES as error:
        raise UnreadableRecordError(_cut(f"it does not hold a {kind}: {error}")) from error
    raise UnknownRecordVersionError(
        f"record version {newer}, this software reads {VERSION}: upgrade it"
    )


def _newer_version(record: object) -> str | None:
    """Return the version of a record that newer software wrote; None for one of this version."""
    if not isinstance(record, Mapping):
        raise UnreadableRecordError("its value is not a JSON object")
    if not _is_shallow(record):
        raise UnreadableRecordError(f"its value is nested deeper than {_MAX_DEPTH} levels")
    version = record.get("v")
    if not _is_whole(version) or version < VERSION:
        raise UnreadableRecordError(f"its v is not {VERSION}")
    return str(version) if version > VERSION else None


def _is_shallow(record: object) -> bool:
    """Check the depth level by level, without recursion."""
    level = [record]
    for _ in range(_MAX_DEPTH):
        level = [inner for it in level for inner in _inner(it)]
        if not level:
            return True
    return False


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _read_resource(kind: ResourceKind, name: str, record: Mapping[str, Any]) -> Resource:
    resource = Resource.from_record(record)
    if (resource.kind, resource.name) != (kind, name):
        raise UnreadableRecordError("its key names another resource than its value")
    if not _is_whole(resource.version) or resource.version < 1:
        raise UnreadableRecordError("its version is not a number from 1")
    if not _is_whole(resource.updated_at_us):
        raise UnreadableRecordError("its updated_at is not a whole number")
    if not isinstance(resource.document, dict):
        raise UnreadableRecordError("its document is not a JSON object")
    if not isinstance(resource.paused, bool):
        raise UnreadableRecordError("its paused is not true or false")
    _READ[kind](resource)
    return resource


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
