"""The registered streams, conditions and templates: a fold of the config topic's records."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS, condition_from_document, to_condition
from correlation.resources.records import (
    Resource,
    ResourceKind,
    stream_from_document,
    template_entry,
)
from service.documents.capacity import check_capacity
from service.documents.cycles import refuse_loop
from service.errors import (
    DependedUponError,
    FieldProblem,
    InvalidDocumentError,
    TemplateInUseError,
)
from service.fold import ConfigFold, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.config_records import Unreadable
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.log import LogRecord


class Registry:
    """Streams, conditions and templates as the records read so far make them.

    `apply` is called by one thread; any thread may read.

    Parameters
    ----------
    max_buffered_events : int
        Most events of a stream that a condition may have the job keep.
    """

    def __init__(self, max_buffered_events: int) -> None:
        self._max_buffered_events = max_buffered_events
        self._fold = ConfigFold()

    def apply(self, record: LogRecord) -> None:
        """Take one record of the config topic; see `ConfigFold.apply`."""
        self._fold.apply(record)

    def follow(self) -> None:
        """Take the records so far as the newest of their keys; see `ConfigFold.follow`."""
        self._fold.follow()

    def unreadable(self) -> list[Unreadable]:
        """Return the records that cannot be read and are the newest of their keys, by offset."""
        return self._fold.unreadable()

    def get(self, kind: ResourceKind, name: str) -> Stored | None:
        """Give a resource, or None."""
        return self._fold.get(kind, name)

    def page(self, kind: ResourceKind, limit: int, after: str) -> tuple[list[Stored], str | None]:
        """Give up to `limit` resources with names over `after`, and the name to go on after."""
        stored = self._fold.all(kind)
        names = sorted(stored)
        first = bisect_right(names, after)
        found = [stored[name] for name in names[first : first + limit]]
        return found, found[-1].resource.name if first + limit < len(names) else None

    def next_version(self, kind: ResourceKind, name: str) -> int:
        """Give the version that a new document of this name gets."""
        return self._fold.version(kind, name) + 1

    def streams(self) -> dict[str, Stream]:
        """Give every stream."""
        return {name: it.resource.to_stream() for name, it in self._fold.all("stream").items()}

    def conditions_on(self, stream: str) -> list[str]:
        """List the conditions that read a stream, by name."""
        return sorted(it.name for it in self._conditions() if stream in it.streams)

    def check_stream(self, stream: Stream) -> None:
        """Refuse a change of a stream that its conditions would not survive.

        Raises
        ------
        DependedUponError
            When the partitioning changes while conditions read the stream.
        InvalidDocumentError
            When a condition that reads the stream writes its alarms to the topic, also through
            others, or would keep too many of its events, or cannot take their histograms.
        """
        writers = [
            it.name
            for it in self._conditions()
            if stream.name in it.streams and it.output_topic == stream.topic
        ]
        if writers:
            raise InvalidDocumentError.of(
                "topic",
                f"condition {writers[0]} reads the stream and writes its alarms to {stream.topic}",
                "name another topic, or give the condition another output_topic first",
            )
        conditions = self._conditions()
        streams = self.streams() | {stream.name: stream}
        readers = [it for it in conditions if stream.name in it.streams]
        refuse_loop(conditions, streams.values(), [it.name for it in readers], "topic")
        for reader in (it for it in readers if streams.keys() >= set(it.streams)):
            check_capacity(reader, streams, self._max_buffered_events, "max_rate")
        current = self.get("stream", stream.name)
        if current and current.resource.to_stream().partitioning != stream.partitioning:
            self.check_unused(stream.name, "the partitioning of a stream in use cannot change")
        for reader in (it for it in readers if streams.keys() >= set(it.streams)):
            _check_shapes(reader, streams, stream)

    def check_unused(self, stream: str, detail: str) -> None:
        """Refuse when conditions read the stream.

        Raises
        ------
        DependedUponError
            Listing the conditions.
        """
        conditions = self.conditions_on(stream)
        if conditions:
            raise DependedUponError(
                f"{detail}: {', '.join(conditions)} read it",
                tuple(
                    FieldProblem(
                        f"conditions.{name}", "reads the stream", f"DELETE /v1/conditions/{name}"
                    )
                    for name in conditions
                ),
            )

    def read_stream(self, name: str, document: dict[str, Any]) -> Stream:
        """Build a stream with the templates that its document names.

        Raises
        ------
        InvalidFieldError
            When a value is wrong in itself.
        InvalidDocumentError
            When it names a template that is not there.
        """
        found = self._fold.all("template")
        return checked_stream(name, document, {it: found[it].resource for it in found})

    def template_users(self, template: str) -> dict[str, int]:
        """Give the streams that use a template, and the version that each has of it."""
        return {
            name: entry["version"]
            for name, it in sorted(self._fold.all("stream").items())
            for entry in it.resource.document.get("templates", ())
            if entry["name"] == template
        }

    def check_template_unused(self, template: str) -> None:
        """Refuse when streams use the template.

        Raises
        ------
        TemplateInUseError
            Listing the streams.
        """
        streams = self.template_users(template)
        if streams:
            raise TemplateInUseError(
                f"the template cannot be deleted: {', '.join(streams)} use it",
                tuple(
                    FieldProblem(
                        f"streams.{name}",
                        "uses the template",
                        f"PUT /v1/streams/{name} without it, or DELETE the stream",
                    )
                    for name in streams
                ),
            )

    def check_condition(self, name: str, version: int, document: dict[str, Any]) -> Condition:
        """Build a condition and check it against the registered streams.

        Raises
        ------
        InvalidFieldError
            When a value is wrong in itself.
        InvalidDocumentError
            When it names a stream that is not there, or streams whose events cannot meet, or
            would write its alarms among the events that it reads, also through other conditions,
            or would keep too many events.
        """
        streams = self.streams()
        condition = checked_condition(name, version, document, streams)
        others = [it for it in self._conditions() if it.name != name]
        refuse_loop([*others, condition], streams.values(), [name], "output_topic")
        check_capacity(condition, streams, self._max_buffered_events)
        return condition

    def _conditions(self) -> list[Condition]:
        return [to_condition(it.resource) for it in self._fold.all("condition").values()]


def checked_stream(
    name: str, document: dict[str, Any], templates: Mapping[str, Resource]
) -> Stream:
    """Build a stream with the templates that its document names, as they are now.

    Parameters
    ----------
    name, document
        Of the stream; its `templates` are names.
    templates : mapping of name to Resource
        The templates there are.

    Raises
    ------
    InvalidFieldError
        When a value is wrong in itself.
    InvalidDocumentError
        When it names a template that is not there.
    """
    names = document.get("templates", [])
    problems = tuple(
        FieldProblem(
            f"templates[{place}]",
            f"no template is called {template!r}",
            f"register it first: PUT /v1/templates/{template}",
        )
        for place, template in enumerate(names)
        if template not in templates
    )
    if problems:
        raise InvalidDocumentError(f"{problems[0].field}: {problems[0].problem}", problems)
    entries = [template_entry(templates[template].to_template()) for template in names]
    return stream_from_document(name, document | {"templates": entries})


def checked_condition(
    name: str, version: int, document: dict[str, Any], streams: Mapping[str, Stream]
) -> Condition:
    """Build a condition and check it against streams.

    Raises
    ------
    InvalidFieldError
        When a value is wrong in itself.
    InvalidDocumentError
        When it names a stream that is not there, or streams whose events cannot meet, or
        would write its alarms among the events that it reads.
    """
    condition = condition_from_document(name, version, document)
    fields = [
        field.name
        for field in KINDS[condition.kind].fields
        if field.type == "stream" and document.get(field.name) is not None
    ]
    problems = [
        FieldProblem(
            field,
            f"no stream is called {document[field]!r}",
            f"register it first: PUT /v1/streams/{document[field]}",
        )
        for field in fields
        if document[field] not in streams
    ]
    if not problems:
        try:
            KINDS[condition.kind].check(condition, streams)
        except InvalidFieldError as error:
            problems = [FieldProblem(error.field, error.problem, error.remedy)]
    if not problems:
        problems = [
            FieldProblem(
                "output_topic",
                f"{condition.output_topic} is the topic of stream {document[field]}, "
                "which the condition reads",
                "name another topic: the alarms would come back as events",
            )
            for field in fields
            if streams[document[field]].topic == condition.output_topic
        ][:1]
    if problems:
        raise InvalidDocumentError(f"{problems[0].field}: {problems[0].problem}", tuple(problems))
    return condition


def _check_shapes(reader: Condition, streams: Mapping[str, Stream], stream: Stream) -> None:
    """Refuse shapes of a stream that a condition on it cannot take."""
    if not stream.has_shapes:
        return
    try:
        KINDS[reader.kind].check(reader, streams)
    except InvalidFieldError as error:
        raise InvalidDocumentError.of(
            "histograms" if stream.histograms else "templates",
            f"condition {reader.name} cannot take them: its {error.field}: {error.problem}",
            f"leave them out, or change the condition first: {error.remedy}",
        ) from error
