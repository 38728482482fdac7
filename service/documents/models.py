"""Pydantic models of the documents of the REST API.

The models of conditions are built from `correlation.kinds.KINDS`: a kind that is registered there
needs no change here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema
from pydantic import Field as PydanticField

from correlation.condition_kind import Field
from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from correlation.limits import GROUPS_LIMIT, TEMPLATE_LIMIT
from correlation.resources.attributes import attributes_from_document, attributes_to_document
from correlation.resources.filters import read_filter
from correlation.resources.times import TimeFormat
from correlation.resources.tokens import tokens_from_document, tokens_to_document
from service.documents.buckets import SCHEMA, read_histogram
from service.documents.event_limits import LENGTH_FIELDS, UNCERTAINTY_FIELDS, limit_problems
from service.documents.event_schemas import ATTRIBUTES_SCHEMA, TOKENS_SCHEMA, WHERE_SCHEMA
from service.documents.fields import (
    Document,
    FieldPath,
    ResourceName,
    document_model,
    spellings,
)
from service.documents.numbers import Whole
from service.errors import DocumentErrors, FieldProblem, top_field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

    from correlation.resources.records import ResourceKind

_SHOWN = 40


def condition_models() -> dict[str, type[Document]]:
    """Build the model of every kind of condition, keyed by kind."""
    return {
        kind.name: document_model(
            "".join(part.title() for part in kind.name.split("_")) + "Condition",
            kind.summary,
            kind.fields,
            kind.example,
            more={"kind": (Literal[kind.name], PydanticField(description="Kind of condition."))},
        )
        for kind in KINDS.values()
    }


class _Mapping(Document):
    id: FieldPath | None = PydanticField(
        default=None, description="Path of the id; default: topic-partition-offset."
    )
    key: FieldPath | None = PydanticField(
        default=None, description="Path of the join key; default: the key of the record."
    )
    time: FieldPath | None = PydanticField(default=None, description="Path of the time.")
    earliest: FieldPath | None = PydanticField(
        default=None, description="Path of the earliest possible time."
    )
    latest: FieldPath | None = PydanticField(
        default=None, description="Path of the latest possible time."
    )
    detected: FieldPath | None = PydanticField(
        default=None, description="Path of the time of detection; requires `template`."
    )
    template: FieldPath | None = PydanticField(
        default=None, description="Path of the template name of the event."
    )
    histogram: FieldPath | None = PydanticField(
        default=None, description="Path of the list of buckets, [lo, hi, p] or {lo, hi, p}."
    )
    begin: FieldPath | None = PydanticField(
        default=None, description="Path of the begin of an event that lasts; requires `end`."
    )
    end: FieldPath | None = PydanticField(
        default=None, description="Path of the end of an event that lasts."
    )
    timezone: Annotated[str, PydanticField(max_length=64)] = PydanticField(
        default="UTC", description="IANA name of the time zone of ISO 8601 times without an offset."
    )

    @classmethod
    def _problems_between(cls, given: Mapping[str, Any]) -> list[FieldProblem]:
        problems = super()._problems_between(given)
        if given.get("time") is None:
            problems += [
                FieldProblem(name, "requires `time`", "remove it, or set `time`")
                for duration in cls.durations
                for name in spellings(duration.name)
                if name in given
            ]
        return problems


class _Partitioning(Document):
    by: Literal["key", "grid"] = PydanticField(
        default="key", description="key: events with equal keys meet; grid: all events meet."
    )
    groups: Whole = PydanticField(
        default=1,
        ge=1,
        le=GROUPS_LIMIT,
        description="Number of groups of a grid: each event is stored once per group.",
    )

    @classmethod
    def _problems_between(cls, given: Mapping[str, Any]) -> list[FieldProblem]:
        if given.get("by", "key") == "key" and given.get("groups", 1) != 1:
            remedy = 'leave it out, or write "by": "grid"'
            return [FieldProblem("groups", "requires a grid", remedy)]
        return []


_BY = get_args(_Partitioning.model_fields["by"].annotation)


def _read_partitioning(value: object) -> object:
    """Convert the short form, a string for `by`, to an object."""
    if isinstance(value, str) and value in _BY:
        return {"by": value}
    if not isinstance(value, Mapping | _Partitioning):
        raise InvalidFieldError(
            "",
            f"{json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]} is not valid",
            'write "key", "grid", or {"by": "grid", "groups": 3}',
        )
    return value


class _ShortForm:
    """Adds the short form, a string, to the JSON schema."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(core), {"type": "string", "enum": list(_BY)}]}


class _Stream(Document):
    partitioning: Annotated[_Partitioning, BeforeValidator(_read_partitioning), _ShortForm()] = (
        PydanticField(
            default=_Partitioning(),
            description="Partitioning: which events can meet; a string is short for `by`.",
        )
    )
    templates: list[ResourceName] = PydanticField(
        default=[],
        max_length=TEMPLATE_LIMIT,
        description="Templates of the events; the current versions are used.",
        json_schema_extra={"uniqueItems": True},
    )
    histograms: Annotated[bool, PydanticField(strict=True)] = PydanticField(
        default=False, description="Whether events may have their own histogram."
    )
    attributes: Annotated[Any, WithJsonSchema(ATTRIBUTES_SCHEMA)] = PydanticField(
        default={},
        description="Attributes of the events: the path of each, or its path and type. Integers "
        "have 64 bits, numbers are float64, strings have at most 1,000 characters. $topic, "
        "$partition, $offset and $timestamp (in µs) are fields of the Kafka record.",
    )
    where: Annotated[Any, WithJsonSchema(WHERE_SCHEMA)] = PydanticField(
        default=None,
        description="Filter over the attributes: records that do not match are not events of the "
        "stream.",
    )
    tokens: Annotated[Any, WithJsonSchema(TOKENS_SCHEMA)] = PydanticField(
        default=None,
        description="Set of tokens of each event: the path of a list, or path, `tokenizer` (list, "
        "words, split:REGEX, ngrams:N), `lower_case` and `stop_words`. A set has at most 10,000 "
        "tokens of at most 1,024 bytes, a divided string at most 65,536 characters.",
    )

    @classmethod
    def _problems_between(cls, given: Mapping[str, Any]) -> list[FieldProblem]:
        problems = super()._problems_between(given)
        if cls.part is None:
            return problems  # a part of a document, whose fields refer to missing ones
        errors = DocumentErrors()
        attributes = None
        with errors:
            attributes = attributes_from_document(given.get("attributes", {}))
        with errors:
            # Without all attributes, names and types cannot be checked.
            if given.get("where") is not None:
                read_filter(given["where"], attributes)
        with errors:
            tokens_from_document(given.get("tokens"))
        return [*problems, *errors.problems, *limit_problems(given)]

    def normalised(self) -> dict[str, Any]:
        """Return the document with all defaults, including those of attributes and tokens."""
        attributes = attributes_to_document(attributes_from_document(self.attributes))
        tokens = tokens_to_document(tokens_from_document(self.tokens))
        return {**super().normalised(), "attributes": attributes, "tokens": tokens}


class TemplateDocument(Document):
    """A template: a histogram that events refer to by name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"buckets": [["0s", "20ms", "0.1"], ["20ms", "30ms", "0.9"]]}]
        }
    )
    buckets: Annotated[Any, WithJsonSchema(SCHEMA)]

    @classmethod
    def _problems_between(cls, given: Mapping[str, Any]) -> list[FieldProblem]:
        errors = DocumentErrors()
        with errors:
            if "buckets" in given:
                read_histogram(given["buckets"])
        return list(errors.problems)

    def normalised(self) -> dict[str, Any]:
        """Return the document with bounds in µs, as offsets from the latest time."""
        return {"buckets": read_histogram(self.buckets).shape().to_buckets()}


_FORMATS = get_args(TimeFormat)
_CONDITIONS = condition_models()

if TYPE_CHECKING:
    # Built at run time; the type checker knows only that they are documents.
    MappingDocument = Document
    StreamDocument = Document
    ConditionDocument = Document
else:
    MappingDocument = document_model(
        "Mapping",
        "Mapping of JSON records to events; default: canonical events.",
        (
            Field("before", "duration", "Max time before `time`.", required=False, default=0),
            Field("after", "duration", "Max time after `time`.", required=False, default=0),
            Field(
                "format",
                "choice",
                "Format of the times.",
                required=False,
                default=_FORMATS[0],
                choices=_FORMATS,
            ),
        ),
        {"time": "detected.at", "after": "1min", "key": "station"},
        base=_Mapping,
    )
    StreamDocument = document_model(
        "StreamDocument",
        "A stream: its topic, the mapping of its events, and their declared limits.",
        (
            Field("topic", "topic", "Kafka topic of the events."),
            *UNCERTAINTY_FIELDS,
            *LENGTH_FIELDS,
            Field(
                "max_delay",
                "duration",
                "Max time from `latest` of an event to its arrival in Kafka.",
            ),
            Field(
                "max_skew",
                "duration",
                "Max time by which a clock may be ahead.",
                required=False,
                default=1_000_000,
            ),
            Field(
                "max_rate",
                "count",
                "Max events per second in the long run; limits the buffers of conditions.",
                required=False,
            ),
            Field(
                "clock",
                "choice",
                "replay: recorded data.",
                required=False,
                default="live",
                choices=("live", "replay"),
            ),
        ),
        {"topic": "acoustic", "max_uncertainty": "200ms", "max_delay": "1s"},
        base=_Stream,
        more={
            "mapping": (
                MappingDocument | None,
                PydanticField(None, description="Mapping of JSON records to events."),
            )
        },
    )
    ConditionDocument = Annotated[
        Union[tuple(_CONDITIONS.values())],  # noqa: UP007  made from a tuple
        PydanticField(discriminator="kind"),
    ]
_ROOTS: dict[str, type[Document]] = {
    "stream": StreamDocument,
    "template": TemplateDocument,
    **_CONDITIONS,
}


def known_fields(kind: str, above: tuple[str, ...]) -> tuple[str, ...]:
    """Return the field names of a document, or of an object inside it.

    Parameters
    ----------
    kind : str
        Kind of the condition, "stream" or "template".
    above : tuple of str
        Path of the object inside the document.
    """
    model: Any = _ROOTS[kind]
    for part in above:
        field = model.model_fields.get(part)
        inner = [] if field is None else (field.annotation, *get_args(field.annotation))
        found = (it for it in inner if isinstance(it, type) and issubclass(it, Document))
        model = next(found, None)
        if model is None:
            return ()
    return tuple(model.model_fields)


def valid_values(
    kind: ResourceKind, document: Mapping[str, Any], problems: Iterable[FieldProblem]
) -> tuple[dict[str, Any], set[str]]:
    """Read the valid fields of a document that has other, faulty fields.

    Parameters
    ----------
    kind : {"stream", "condition", "template"}
        Kind of the document.
    document : mapping
        The document as the user sent it.
    problems : iterable of FieldProblem
        All problems that its model finds.

    Returns
    -------
    values : dict
        The valid fields and defaults, normalised; empty if no model can read them.
    faulty : set of str
        Names of the faulty fields, in every spelling.
    """
    model = StreamDocument if kind == "stream" else _CONDITIONS.get(str(document.get("kind")))
    faulty = {top_field(problem.field) for problem in problems}
    if kind == "template" or model is None or model.part is None:
        return {}, faulty
    for duration in model.durations:
        names = spellings(duration.name)
        if faulty.intersection(names):
            faulty.update(names)
    valid = (document.keys() & model.model_fields.keys()) - faulty
    values = model.part.model_validate({name: document[name] for name in valid}).normalised()
    return {name: value for name, value in values.items() if name not in faulty}, faulty
