"""Codec between resources and the versioned dicts that are stored in Kafka.

The dicts contain only strings, integers, booleans, None, lists and dicts. The packages above
convert them to and from JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from correlation.errors import FieldErrors, InvalidFieldError, UnknownRecordVersionError
from correlation.resources.attributes import (
    Attribute,
    attributes_from_document,
    attributes_to_document,
)
from correlation.resources.filters import Filter, read_filter
from correlation.resources.histogram import Histogram
from correlation.resources.job_slots import read_slots
from correlation.resources.mapping import EventMapping, Form
from correlation.resources.partitioning import Partitioning
from correlation.resources.paths import path_from_document, path_to_document
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.resources.tokens import Tokens, tokens_from_document, tokens_to_document

VERSION = 1
# Form of a mapping by the fields that it contains.
_FORM_OF_FIELD: Mapping[str, Form] = {
    "time": "time",
    "earliest": "range",
    "latest": "range",
    "detected": "template",
    "template": "template",
    "histogram": "histogram",
    "begin": "lasting",
    "end": "lasting",
}
Document = dict[str, Any]
# Resources of a configuration, and the number of slots of the job.
ResourceKind = Literal["stream", "condition", "template", "job"]


@dataclass(frozen=True, slots=True)
class Resource:
    """A record of the config topic: a registered stream, condition or template, or job/slots.

    Parameters
    ----------
    kind : {"stream", "condition", "template", "job"}
        Kind of the resource.
    name : str
        Name, unique within the kind.
    version : int
        Version of the document, from 1.
    updated_at_us : int
        Time of the last change, in µs since 1970.
    document : dict
        The normalised document.
    paused : bool
        Whether a condition is registered but not evaluated.
    """

    kind: ResourceKind
    name: str
    version: int
    updated_at_us: int
    document: Document
    paused: bool = False

    @property
    def key(self) -> bytes:
        """Kafka key of its record."""
        return resource_key(self.kind, self.name)

    def to_record(self) -> Document:
        """Return the value of its record."""
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
        """Read the value of a record.

        Raises
        ------
        UnknownRecordVersionError
            Another version wrote the record, or it is not a resource.
        """
        check_version(record)
        try:
            kind: ResourceKind = record["kind"]
            if kind not in get_args(ResourceKind):
                raise UnknownRecordVersionError(f"the config record has the unknown kind {kind!r}")
            return cls(
                kind=kind,
                name=record["name"],
                version=record["version"],
                updated_at_us=record["updated_at"],
                document=record["document"],
                paused=record.get("paused", False),
            )
        except KeyError as error:
            raise UnknownRecordVersionError(f"the config record has no field {error}") from None

    def to_stream(self) -> Stream:
        """Return the stream that the document describes."""
        return stream_from_document(self.name, self.document)

    def to_template(self) -> Template:
        """Return the template that the document describes."""
        buckets = require(self.document, "buckets")
        return Template(self.name, Histogram.from_buckets(buckets), self.version)

    def to_slots(self) -> int:
        """Return the number of slots of the job that the document sets."""
        return read_slots(self.document)


def resource_key(kind: ResourceKind, name: str) -> bytes:
    """Return the key of a resource in the config topic."""
    return f"{kind}/{name}".encode()


def check_version(record: Mapping[str, Any]) -> None:
    """Raise UnknownRecordVersionError if this software cannot read the record."""
    if not isinstance(record, Mapping) or record.get("v") != VERSION:
        found = record.get("v") if isinstance(record, Mapping) else type(record).__name__
        raise UnknownRecordVersionError(
            f"the record has version {found!r}; this software reads version {VERSION}"
        )


def require(document: Mapping[str, Any], field: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a field of a document.

    Raises
    ------
    InvalidFieldError
        The field is missing.
    """
    if field not in document:
        raise InvalidFieldError(field, "is missing", "add it")
    return document[field]


def stream_to_document(stream: Stream) -> Document:
    """Write a stream as its normalised document.

    A stream of events that last has the limits of their lengths instead of their uncertainties.
    """
    limits = ("min_length_us", "max_length_us")
    if not stream.lasts:
        limits = ("min_uncertainty_us", "max_uncertainty_us")
    found = {name: getattr(stream, name) for name in limits}
    return {
        "topic": stream.topic,
        "partitioning": {"by": stream.partitioning.by}
        | ({"groups": stream.partitioning.groups} if stream.partitioning.by == "grid" else {}),
        "mapping": _mapping_to_document(stream.mapping),
        **{name: limit for name, limit in found.items() if limit is not None},
        "max_delay_us": stream.max_delay_us,
        "clock": stream.clock,
        "max_skew_us": stream.max_skew_us,
        "templates": [template_entry(template) for template in stream.templates],
        "histograms": stream.histograms,
        "max_rate": stream.max_rate,
        "attributes": attributes_to_document(stream.attributes),
        "where": None if stream.where is None else stream.where.to_document(),
        "tokens": tokens_to_document(stream.tokens),
    }


def template_to_document(template: Template) -> Document:
    """Write a template as its normalised document; bounds are offsets from the detection time."""
    return {"buckets": template.histogram.to_buckets()}


def template_entry(template: Template) -> Document:
    """Write a template as an entry of the document of a stream that uses it."""
    return {
        "name": template.name,
        "version": template.version,
        **template_to_document(template),
    }


def stream_from_document(name: str, document: Mapping[str, Any]) -> Stream:
    """Read a stream from its stored document, which contains the declared templates.

    Raises
    ------
    InvalidFieldError
        A field is missing or not valid.
    """
    by = document.get("partitioning") or {"by": "key"}
    # Defaults replace parts that are not valid, so that the other fields are checked as well.
    partitioning, mapping = Partitioning(), _default_mapping(document.get("mapping"))
    templates: tuple[Template, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    where: Filter | None = None
    tokens: Tokens | None = None
    errors = FieldErrors()
    with errors:
        partitioning = Partitioning(by["by"], by.get("groups", 1))
    with errors:
        mapping = _mapping_from_document(document.get("mapping"))
    with errors:
        templates = tuple(
            Template(
                require(it, "name"),
                Histogram.from_buckets(require(it, "buckets")),
                require(it, "version"),
            )
            for it in document.get("templates", ())
        )
    known = False
    with errors:
        attributes = attributes_from_document(document.get("attributes") or {})
        known = True
    with errors:
        if document.get("where") is not None:
            found = read_filter(document["where"], attributes if known else None)
            where = found if known else None
    with errors:
        tokens = tokens_from_document(document.get("tokens"))
    with errors:
        stream = Stream(
            name=name,
            topic=require(document, "topic"),
            max_uncertainty_us=_max_uncertainty_us(document, mapping),
            max_delay_us=require(document, "max_delay_us"),
            min_uncertainty_us=document.get("min_uncertainty_us") or 0,
            mapping=mapping,
            partitioning=partitioning,
            clock=document.get("clock", "live"),
            max_skew_us=document.get("max_skew_us", 1_000_000),
            templates=templates,
            histograms=document.get("histograms", False),
            max_rate=document.get("max_rate"),
            attributes=attributes,
            where=where,
            min_length_us=document.get("min_length_us"),
            max_length_us=document.get("max_length_us"),
            tokens=tokens,
        )
    errors.raise_all()
    return stream


def _max_uncertainty_us(document: Mapping[str, Any], mapping: EventMapping) -> int:
    found = document.get("max_uncertainty_us")
    if found is None and mapping.form != "lasting":
        raise InvalidFieldError("max_uncertainty_us", "is missing", "add it")
    return found or 0


def _default_mapping(document: Mapping[str, Any] | None) -> EventMapping:
    """Return a valid mapping to uncertain instants, or to events that last, as the document."""
    fields = document or {}
    if all(fields.get(name) is None for name in ("begin", "end")):
        return EventMapping()
    return EventMapping("lasting", begin_path=("begin",), end_path=("end",))


def _mapping_to_document(mapping: EventMapping) -> Document | None:
    if mapping.form == "canonical" and mapping.id_path is None and mapping.key_path is None:
        return None
    document: Document = {
        "id": path_to_document(mapping.id_path),
        "key": path_to_document(mapping.key_path),
    }
    if mapping.form == "time":
        document["time"] = path_to_document(mapping.time_path)
        document["before_us"] = mapping.before_us
        document["after_us"] = mapping.after_us
    elif mapping.form == "range":
        document["earliest"] = path_to_document(mapping.earliest_path)
        document["latest"] = path_to_document(mapping.latest_path)
    elif mapping.form == "template":
        document["detected"] = path_to_document(mapping.detected_path)
        document["template"] = path_to_document(mapping.template_path)
    elif mapping.form == "histogram":
        document["histogram"] = path_to_document(mapping.histogram_path)
    elif mapping.form == "lasting":
        document["begin"] = path_to_document(mapping.begin_path)
        document["end"] = path_to_document(mapping.end_path)
    if mapping.form != "canonical":
        document["format"] = mapping.format
        document["timezone"] = mapping.timezone
    return document


def _mapping_from_document(document: Mapping[str, Any] | None) -> EventMapping:
    if document is None:
        return EventMapping()
    paths = {
        f"{name}_path": path_from_document(document.get(name))
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
