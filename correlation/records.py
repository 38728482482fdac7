"""Value types and the versioned plain dicts in which they stand on Kafka: the only codec.

The dicts hold nothing but texts, whole numbers, booleans, lists and dicts; the packages above turn
them into JSON and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from correlation.checks import check_name
from correlation.errors import InvalidFieldError, UnknownRecordVersionError
from correlation.histogram import Histogram
from correlation.kinds import KINDS
from correlation.limits import TIME_LIMIT_US
from correlation.mapping import EventMapping, Form
from correlation.partitioning import Partitioning
from correlation.paths import Path
from correlation.progress import CLOSED, RESET, Heartbeat
from correlation.streams import Stream
from correlation.template import Template

if TYPE_CHECKING:
    from correlation.operators import Condition

VERSION = 1
# Which form a mapping has, by the fields that it names.
_FORM_OF_FIELD: Mapping[str, Form] = {
    "time": "time",
    "earliest": "range",
    "latest": "range",
    "detected": "template",
    "template": "template",
    "histogram": "histogram",
}
# Words for `read_up_to` of a heartbeat.
_READ_UP_TO: Mapping[str, int] = {"end": CLOSED, "reset": RESET}
Document = dict[str, Any]
ResourceKind = Literal["stream", "condition", "template"]


@dataclass(frozen=True, slots=True)
class Resource:
    """A record of the config topic: a stream, condition or template as registered.

    Parameters
    ----------
    kind : {"stream", "condition", "template"}
        What it is.
    name : str
        Its name, unique within its kind.
    version : int
        Counts the documents of this name, from 1.
    updated_at_us : int
        When it was written, in µs since 1970.
    document : dict
        The normalised document.
    paused : bool
        Of a condition: registered, but not evaluated.
    """

    kind: ResourceKind
    name: str
    version: int
    updated_at_us: int
    document: Document
    paused: bool = False

    @property
    def key(self) -> bytes:
        """Key of its record."""
        return resource_key(self.kind, self.name)

    def to_record(self) -> Document:
        """Give the record's value."""
        record: Document = {
            "v": VERSION,
            "kind": self.kind,
            "name": self.name,
            "version": self.version,
            "updated_at": self.updated_at_us,
            "document": self.document,
        }
        if self.kind == "condition":
            record["paused"] = self.paused
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Resource:
        """Read a record's value.

        Raises
        ------
        UnknownRecordVersionError
            When another version wrote it, or it is no resource.
        """
        check_version(record)
        try:
            kind: ResourceKind = record["kind"]
            if kind not in get_args(ResourceKind):
                raise UnknownRecordVersionError(f"config record of unknown kind {kind!r}")
            return cls(
                kind=kind,
                name=record["name"],
                version=record["version"],
                updated_at_us=record["updated_at"],
                document=record["document"],
                paused=record.get("paused", False),
            )
        except KeyError as error:
            raise UnknownRecordVersionError(f"config record without {error}") from None

    def to_stream(self) -> Stream:
        """Give the stream that the document describes."""
        return stream_from_document(self.name, self.document)

    def to_template(self) -> Template:
        """Give the template that the document describes."""
        buckets = _need(self.document, "buckets")
        return Template(self.name, Histogram.from_buckets(buckets), self.version)

    def to_condition(self) -> Condition:
        """Give the condition that the document describes."""
        return condition_from_document(self.name, self.version, self.document)


def resource_key(kind: ResourceKind, name: str) -> bytes:
    """Key under which a resource stands in the config topic."""
    return f"{kind}/{name}".encode()


def check_version(record: Mapping[str, Any]) -> None:
    """Stop at a record that this software cannot read."""
    if not isinstance(record, Mapping) or record.get("v") != VERSION:
        found = record.get("v") if isinstance(record, Mapping) else type(record).__name__
        raise UnknownRecordVersionError(f"record version {found!r}, this software reads {VERSION}")


def _need(document: Mapping[str, Any], field: str) -> Any:  # noqa: ANN401 - any JSON value
    if field not in document:
        raise InvalidFieldError(field, "is missing", "add it")
    return document[field]


def stream_to_document(stream: Stream) -> Document:
    """Write a stream as its normalised document."""
    return {
        "topic": stream.topic,
        "partitioning": {"by": stream.partitioning.by}
        | ({"groups": stream.partitioning.groups} if stream.partitioning.by == "grid" else {}),
        "mapping": _mapping_to_document(stream.mapping),
        "shortest_us": stream.shortest_us,
        "longest_us": stream.longest_us,
        "max_delay_us": stream.max_delay_us,
        "clock": stream.clock,
        "max_skew_us": stream.max_skew_us,
        "templates": [template_entry(template) for template in stream.templates],
        "histograms": stream.histograms,
        "max_rate": stream.max_rate,
    }


def template_to_document(template: Template) -> Document:
    """Write a template as its normalised document; its bounds are offsets from the detection."""
    return {"buckets": template.histogram.to_buckets()}


def template_entry(template: Template) -> Document:
    """Write a template as the document of a stream that uses it holds it."""
    return {
        "name": template.name,
        "version": template.version,
        **template_to_document(template),
    }


def stream_from_document(name: str, document: Mapping[str, Any]) -> Stream:
    """Read a stream from its stored document, which holds the templates that it declares.

    Raises
    ------
    InvalidFieldError
        Naming the field and what to write instead.
    """
    partitioning = document.get("partitioning") or {"by": "key"}
    return Stream(
        name=name,
        topic=_need(document, "topic"),
        longest_us=_need(document, "longest_us"),
        max_delay_us=_need(document, "max_delay_us"),
        shortest_us=document.get("shortest_us", 0),
        mapping=_mapping_from_document(document.get("mapping")),
        partitioning=Partitioning(partitioning["by"], partitioning.get("groups", 1)),
        clock=document.get("clock", "live"),
        max_skew_us=document.get("max_skew_us", 1_000_000),
        templates=tuple(
            Template(
                _need(it, "name"),
                Histogram.from_buckets(_need(it, "buckets")),
                _need(it, "version"),
            )
            for it in document.get("templates", ())
        ),
        histograms=document.get("histograms", False),
        max_rate=document.get("max_rate"),
    )


def _path_to_document(path: Path | None) -> str | list[str] | None:
    if path is None:
        return None
    return list(path) if any("." in part for part in path) else ".".join(path)


def _path_from_document(path: str | list[str] | None) -> Path | None:
    if path is None:
        return None
    return tuple(path.split(".")) if isinstance(path, str) else tuple(path)


def _mapping_to_document(mapping: EventMapping) -> Document | None:
    if mapping.form == "canonical" and mapping.id_path is None and mapping.key_path is None:
        return None
    document: Document = {
        "id": _path_to_document(mapping.id_path),
        "key": _path_to_document(mapping.key_path),
    }
    if mapping.form == "time":
        document["time"] = _path_to_document(mapping.time_path)
        document["before_us"] = mapping.before_us
        document["after_us"] = mapping.after_us
    elif mapping.form == "range":
        document["earliest"] = _path_to_document(mapping.earliest_path)
        document["latest"] = _path_to_document(mapping.latest_path)
    elif mapping.form == "template":
        document["detected"] = _path_to_document(mapping.detected_path)
        document["template"] = _path_to_document(mapping.template_path)
    elif mapping.form == "histogram":
        document["histogram"] = _path_to_document(mapping.histogram_path)
    if mapping.form != "canonical":
        document["format"] = mapping.format
        document["timezone"] = mapping.timezone
    return document


def _mapping_from_document(document: Mapping[str, Any] | None) -> EventMapping:
    if document is None:
        return EventMapping()
    paths = {
        f"{name}_path": _path_from_document(document.get(name))
        for name in ("id", "key", *_FORM_OF_FIELD)
    }
    given = (form for name, form in _FORM_OF_FIELD.items() if document.get(name) is not None)
    form: Form = next(given, "canonical")
    return EventMapping(
        form=form,
        **paths,
        before_us=document.get("before_us", 0),
        after_us=document.get("after_us", 0),
        format=document.get("format", "iso8601"),
        timezone=document.get("timezone", "UTC"),
    )


def condition_from_document(name: str, version: int, document: Mapping[str, Any]) -> Condition:
    """Read a condition of any kind from its normalised document.

    Raises
    ------
    InvalidFieldError
        Naming the field and what to write instead.
    """
    kind = KINDS.get(document.get("kind", ""))
    if kind is None:
        raise InvalidFieldError(
            "kind", f"unknown: {document.get('kind')!r}", f"use one of: {', '.join(KINDS)}"
        )
    values = {}
    for field in kind.fields:
        if field.required:
            values[field.stored_name] = _need(document, field.stored_name)
        else:
            values[field.stored_name] = document.get(field.stored_name, field.default)
    return kind.build(name, version, values)


def heartbeat_from_record(record: Mapping[str, Any]) -> Heartbeat:
    """Read a heartbeat: `{"v"?, "stream", "partition"?, "read_up_to", "offset"?}`.

    `read_up_to` is a time in µs since 1970, or "end": nothing will follow, or "reset": what was
    known before does not count any more. `partition` missing or null means every partition of the
    stream. With `offset` the heartbeat holds only once the partition has been read up to that
    offset.

    Raises
    ------
    InvalidFieldError
        Naming the field and what to write instead.
    """
    if not isinstance(record, Mapping):
        raise InvalidFieldError("heartbeat", "is not an object", 'use {"stream", "read_up_to"}')
    if record.get("v", VERSION) != VERSION:
        # Without the value: `repr` of one that is nested deep raises RecursionError.
        raise InvalidFieldError("v", f"is not {VERSION}", f"use {VERSION}, or leave it out")
    stream = _need(record, "stream")
    if not isinstance(stream, str):
        raise InvalidFieldError("stream", "is not a text", "write the stream's name")
    read_up_to = _need(record, "read_up_to")
    if isinstance(read_up_to, str) and read_up_to in _READ_UP_TO:
        read_up_to = _READ_UP_TO[read_up_to]
    elif not _is_whole(read_up_to) or abs(read_up_to) > TIME_LIMIT_US:
        remedy = 'use µs since 1970, "end", or "reset"'
        raise InvalidFieldError("read_up_to", "is not a time", remedy)
    for field in ("partition", "offset"):
        value = record.get(field)
        if value is not None and not (_is_whole(value) and 0 <= value < 2**63):
            raise InvalidFieldError(
                field, "is not a whole number from 0", "leave it out, or fix it"
            )
    if record.get("offset") is not None and record.get("partition") is None:
        raise InvalidFieldError("partition", "is missing", "name the partition of the offset")
    return Heartbeat(
        check_name(stream, "stream"), record.get("partition"), read_up_to, record.get("offset")
    )


def heartbeat_to_record(heartbeat: Heartbeat) -> Document:
    """Write a heartbeat as its record's value."""
    words = {value: word for word, value in _READ_UP_TO.items()}
    return {
        "v": VERSION,
        "stream": heartbeat.stream,
        "partition": heartbeat.partition,
        "read_up_to": words.get(heartbeat.read_up_to_us, heartbeat.read_up_to_us),
        "offset": heartbeat.at_offset,
    }


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
