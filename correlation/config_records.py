"""Records of the config topic, read by the same rule in the service and in the job.

Only the newest record of a key counts. If it cannot be read, the resource of that key is not in
force, and older records of the key do not replace it. The service and the job therefore agree, and
the result is the same before and after Kafka compacts the topic. The next record of the key, or a
tombstone, replaces the unreadable record.

If the key names a resource and `v` is newer than this software, the reader stops with
`UnknownRecordVersionError`: ignoring the record would undo a registration made with the newer
software. It can start again after another record of the key, or a tombstone, has been written.

Records of the topic may hold arbitrary bytes. Error messages do not contain the `repr` of a value,
and every failure to read a value becomes an `UnreadableRecordError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard, cast, get_args

from correlation.errors import CorrelationError, UnknownRecordVersionError, UnreadableRecordError
from correlation.kinds import to_condition
from correlation.printable import printable
from correlation.resources.checks import NAME
from correlation.resources.job_slots import JOB, SLOTS
from correlation.resources.records import VERSION, Resource, ResourceKind

# Maximum number of unreadable records that are listed; all of them are counted.
MAX_LISTED = 20
_MAX_TEXT = 200
# JSON parsers accept over 1,000 levels, which Python's `repr` and orjson's writer cannot write.
# Bodies of requests are nested at most 80 levels deep.
_MAX_DEPTH = 100
_READ: Mapping[ResourceKind, Callable[[Resource], object]] = {
    "stream": Resource.to_stream,
    "condition": to_condition,
    "template": Resource.to_template,
    "job": Resource.to_slots,
}
# Errors that parsing JSON, or building values from an arbitrary document, may raise.
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
    """An unreadable record that is the newest of its key.

    Parameters
    ----------
    key : bytes
        Kafka key.
    offset : int
        Kafka offset.
    problem : str
        Why it cannot be read.
    """

    key: bytes
    offset: int
    problem: str

    @property
    def shown_key(self) -> str:
        """The key as a string of limited length.

        Bytes that are not UTF-8 and control characters are escaped.
        """
        return _cut(printable(self.key.decode("utf-8", "backslashreplace")))

    def to_document(self) -> dict[str, Any]:
        """Return the record as a JSON object of bounded size."""
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
    is_known = kind in get_args(ResourceKind) and NAME.fullmatch(name) is not None
    if not is_known or (kind == JOB and name != SLOTS):
        raise UnreadableRecordError(
            "the key must be kind/name of a stream, condition or template, or job/slots"
        )
    return cast("ResourceKind", kind), name


def parse_config_record(key: bytes, value: bytes, loads: Callable[[bytes], object]) -> Resource:
    """Read a resource from the key and value of its record.

    Raises the errors of `read_config_record`.

    Parameters
    ----------
    key, value : bytes
        Kafka key and value; the value is not null.
    loads : callable
        JSON parser; raises ValueError.
    """
    read_key(key)
    try:
        record = loads(value)
    except _FAILURES as error:
        raise UnreadableRecordError(_cut(f"the value is not valid JSON: {error}")) from error
    return read_config_record(key, record)


def read_config_record(key: bytes, record: object) -> Resource:
    """Read a resource from the key and the parsed value of its record.

    Raises
    ------
    UnreadableRecordError
        When the value is not a resource of this key.
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
        raise UnreadableRecordError(_cut(f"the value is not a {kind}: {error}")) from error
    raise UnknownRecordVersionError(
        f"the record has version {newer}; this software reads version {VERSION}; upgrade it"
    )


def _newer_version(record: object) -> str | None:
    """Return the version of a record if newer software wrote it; otherwise None."""
    if not isinstance(record, Mapping):
        raise UnreadableRecordError("the value is not a JSON object")
    if not _is_shallow(record):
        raise UnreadableRecordError(f"the value is nested deeper than {_MAX_DEPTH} levels")
    version = record.get("v")
    if not _is_whole(version) or version < VERSION:
        raise UnreadableRecordError(f"v: must be {VERSION}")
    return str(version) if version > VERSION else None


def _is_shallow(record: object) -> bool:
    """Check the nesting depth level by level, without recursion."""
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
        raise UnreadableRecordError("the key and the value name different resources")
    if not _is_whole(resource.version) or resource.version < 1:
        raise UnreadableRecordError("version: must be a whole number of at least 1")
    if not _is_whole(resource.updated_at_us):
        raise UnreadableRecordError("updated_at: must be a whole number")
    if not isinstance(resource.document, dict):
        raise UnreadableRecordError("document: must be a JSON object")
    if not isinstance(resource.paused, bool):
        raise UnreadableRecordError("paused: must be true or false")
    _READ[kind](resource)
    return resource


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
