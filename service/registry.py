"""The registered streams, conditions and templates: a fold of the config topic's records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS, condition_from_document, to_condition
from correlation.limits import LENGTH_LIMIT_US
from correlation.resources.records import (
    Resource,
    ResourceKind,
    stream_from_document,
    template_entry,
)
from service.documents.capacity import check_capacity
from service.documents.changes import problems_of, refuse_broken
from service.documents.cycles import refuse_loop
from service.documents.models import valid_values
from service.errors import (
    MAX_PROBLEMS,
    DependedUponError,
    DocumentErrors,
    FieldProblem,
    InvalidDocumentError,
    TemplateInUseError,
)
from service.fold import ConfigFold, Stored

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from correlation.condition_kind import NamedStream
    from correlation.config_records import Unreadable
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.log import LogRecord

# Placeholders for fields of a stream that are not valid, so that the others can be checked.
_HARMLESS = {"topic": "unnamed", "max_uncertainty_us": LENGTH_LIMIT_US, "max_delay_us": 0}


class Registry:
    """The streams, conditions and templates that the records read so far define.

    `apply` is called by one thread; any thread may read.

    Parameters
    ----------
    max_buffered_events : int
        Max number of events of a stream that the job may keep for a condition.
    """

    def __init__(self, max_buffered_events: int) -> None:
        self._max_buffered_events = max_buffered_events
        self._fold = ConfigFold()

    def apply(self, record: LogRecord) -> None:
        """Apply one record of the config topic; see `ConfigFold.apply`."""
        self._fold.apply(record)

    def follow(self) -> None:
        """End the initial read of the config topic; see `ConfigFold.follow`."""
        self._fold.follow()

    def unreadable(self) -> list[Unreadable]:
        """Return the unreadable records that are the newest of their keys, by offset."""
        return self._fold.unreadable()

    def get(self, kind: ResourceKind, name: str) -> Stored | None:
        """Return a resource, or None."""
        return self._fold.get(kind, name)

    def page(self, kind: ResourceKind, limit: int, after: str) -> tuple[list[Stored], str | None]:
        """Return up to `limit` resources with names after `after`, and the next `after`."""
        stored = self._fold.all(kind)
        names = sorted(stored)
        first = bisect_right(names, after)
        found = [stored[name] for name in names[first : first + limit]]
        return found, found[-1].resource.name if first + limit < len(names) else None

    def next_version(self, kind: ResourceKind, name: str) -> int:
        """Return the version of the next document of this name."""
        return self._fold.version(kind, name) + 1

    def resources(self, kind: ResourceKind) -> dict[str, Resource]:
        """Return the resources of a kind that are in force, by name."""
        return {name: it.resource for name, it in self._fold.all(kind).items()}

    def output_topics(self) -> frozenset[str]:
        """Return the output topics of all conditions that have one."""
        documents = (it.document for it in self.resources("condition").values())
        return frozenset(filter(None, (it.get("output_topic") for it in documents)))

    def streams(self) -> dict[str, Stream]:
        """Return all streams by name."""
        return {name: it.to_stream() for name, it in self.resources("stream").items()}

    def conditions_on(self, stream: str) -> list[str]:
        """Return the names of the conditions that read a stream, sorted."""
        return sorted(it.name for it in self._conditions() if stream in it.streams)

    def check_stream(self, stream: Stream) -> None:
        """Check that a changed stream does not break the conditions that read it.

        Raises
        ------
        DependedUponError
            When conditions read the stream, and its partitioning changes, or its events change
            between instants and events that last, or a condition cannot be evaluated on it.
        InvalidDocumentError
            When a condition on the stream writes alarms to its topic, directly or through other
            conditions, would keep too many of its events, or does not support their histograms.
        """
        conditions = self._conditions()
        streams = self.streams() | {stream.name: stream}
        readers = [it for it in conditions if stream.name in it.streams]
        complete = [it for it in readers if streams.keys() >= set(it.streams)]
        current = self.get("stream", stream.name)
        before = None if current is None else current.resource.to_stream()
        errors = DocumentErrors()
        for writer in (it for it in readers if it.output_topic == stream.topic):
            with errors:
                raise InvalidDocumentError.of(
                    "topic",
                    f"condition {writer.name} reads the stream and writes its alarms to "
                    f"{stream.topic}",
                    "use another topic, or first change output_topic of the condition",
                )
        with errors:
            refuse_loop(conditions, streams.values(), [it.name for it in readers], "topic")
        for reader in complete:
            with errors:
                if not problems_of(reader, streams):
                    check_capacity(reader, streams, self._max_buffered_events, "max_rate")
            with errors:
                _check_times(reader, streams, stream, before)
        errors.raise_all()
        if before is None:
            return
        if before.partitioning != stream.partitioning:
            self.check_unused(stream.name, "the partitioning of a stream in use cannot be changed")
        if before.lasts != stream.lasts:
            self.check_unused(
                stream.name,
                "a stream in use cannot change between instants and events that last",
            )
        refuse_broken(complete, streams | {stream.name: before}, streams, stream.name)

    def check_unused(self, stream: str, detail: str) -> None:
        """Check that no condition reads the stream.

        Raises
        ------
        DependedUponError
            When conditions read it; they are listed.
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
            When a value is not valid.
        InvalidDocumentError
            When it names an unknown template.
        """
        return checked_stream(name, document, self._templates())

    def template_users(self, template: str) -> dict[str, int]:
        """Return the streams that use a template, each with the version that it uses."""
        return {
            name: entry["version"]
            for name, it in sorted(self._fold.all("stream").items())
            for entry in it.resource.document.get("templates", ())
            if entry["name"] == template
        }

    def check_template_unused(self, template: str) -> None:
        """Check that no stream uses the template.

        Raises
        ------
        TemplateInUseError
            When streams use it; they are listed.
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
            When a value is not valid.
        InvalidDocumentError
            When it names an unknown stream, or streams whose events cannot form pairs, or would
            write alarms to a topic that it reads, directly or through other conditions, or would
            keep too many events.
        """
        streams = self.streams()
        condition = checked_condition(name, version, document, streams)
        others = [it for it in self._conditions() if it.name != name]
        errors = DocumentErrors()
        with errors:
            refuse_loop([*others, condition], streams.values(), [name], "output_topic")
        with errors:
            check_capacity(condition, streams, self._max_buffered_events)
        errors.raise_all()
        return condition

    def further_problems(
        self, kind: ResourceKind, document: object, problems: tuple[FieldProblem, ...]
    ) -> tuple[FieldProblem, ...]:
        """Find further problems of a document that its model rejects.

        Parameters
        ----------
        kind : {"stream", "condition", "template"}
            Kind of the document.
        document : object
            The document as the user sent it.
        problems : tuple of FieldProblem
            All problems that the model finds.
        """
        if not isinstance(document, Mapping) or len(problems) > MAX_PROBLEMS:
            return ()
        values, faulty = valid_values(kind, document, problems)
        errors = DocumentErrors(faulty)
        if kind == "stream":
            with errors:
                checkable = _without_dependent(values, faulty)
                checked_stream("unnamed", _HARMLESS | checkable, self._templates())
        elif values:
            with errors:
                _refuse_unknown("stream", self._fold.all("stream"), _streams_named(values))
            with errors:
                KINDS[values["kind"]].build("unnamed", 1, values)
        return errors.problems

    def _templates(self) -> dict[str, Resource]:
        return self.resources("template")

    def _conditions(self) -> list[Condition]:
        return [to_condition(it) for it in self.resources("condition").values()]


def _without_dependent(values: dict[str, Any], faulty: Container[str]) -> dict[str, Any]:
    """Return the fields of a stream that can be checked without its faulty fields."""
    dropped = {"where"} if "attributes" in faulty else set()
    if "mapping" in faulty:
        limits = ("min_uncertainty_us", "max_uncertainty_us", "min_length_us", "max_length_us")
        dropped.update(limits)
    return {name: value for name, value in values.items() if name not in dropped}


def checked_stream(
    name: str, document: dict[str, Any], templates: Mapping[str, Resource]
) -> Stream:
    """Build a stream with the present versions of the templates that its document names.

    Parameters
    ----------
    name, document
        Name and document of the stream; its `templates` are names.
    templates : mapping of name to Resource
        The registered templates.

    Raises
    ------
    InvalidFieldError
        When a value is not valid.
    InvalidDocumentError
        When it names an unknown template.
    """
    names = document.get("templates", [])
    errors = DocumentErrors()
    with errors:
        _refuse_unknown(
            "template", templates, [(f"templates[{it}]", n) for it, n in enumerate(names)]
        )
    entries = [template_entry(templates[it].to_template()) for it in names if it in templates]
    with errors:
        stream = stream_from_document(name, document | {"templates": entries})
    errors.raise_all()
    return stream


def checked_condition(
    name: str, version: int, document: dict[str, Any], streams: Mapping[str, Stream]
) -> Condition:
    """Build a condition and check it against streams.

    Raises
    ------
    InvalidFieldError
        When a value is not valid.
    InvalidDocumentError
        When it names an unknown stream, or streams whose events cannot form pairs, or would
        write alarms to the topic of a stream that it reads.
    """
    errors = DocumentErrors()
    with errors:
        _refuse_unknown("stream", streams, _streams_named(document))
    with errors:
        condition = condition_from_document(name, version, document)
    errors.raise_all()
    with errors:
        KINDS[condition.kind].check(condition, streams)
    for stream in condition.streams:
        with errors:
            if streams[stream].topic == condition.output_topic:
                raise InvalidDocumentError.of(
                    "output_topic",
                    f"{condition.output_topic} is the topic of stream {stream}, "
                    "which the condition reads: the alarms would become events",
                    "use another topic",
                )
    if errors.problems:
        raise InvalidDocumentError.of_all(errors.problems)
    return condition


def _streams_named(document: Mapping[str, Any]) -> list[NamedStream]:
    """Return the streams that a condition names, with their fields."""
    kind = KINDS.get(document.get("kind", ""))
    return kind.streams_named(document) if kind else []


def _refuse_unknown(
    kind: ResourceKind, known: Container[str], named: Iterable[tuple[str, str]]
) -> None:
    """Check that each name, given with its field, is a registered resource."""
    problems = tuple(
        FieldProblem(
            field,
            f"{kind} {name!r} does not exist",
            f"register it first: PUT /v1/{kind}s/{name}",
        )
        for field, name in named
        if name not in known
    )
    if problems:
        raise InvalidDocumentError.of_all(problems)


def _check_times(
    reader: Condition, streams: Mapping[str, Stream], stream: Stream, before: Stream | None
) -> None:
    """Check that a condition supports histograms, templates or events that last, if they are new.

    Other changes are refused by `refuse_broken`.
    """
    had_shapes = before is not None and before.has_shapes
    lasted = before is not None and before.lasts
    if stream.has_shapes <= had_shapes and stream.lasts <= lasted:
        return
    try:
        KINDS[reader.kind].check(reader, streams)
    except InvalidFieldError as error:
        field = "histograms" if stream.histograms else "templates"
        raise InvalidDocumentError.of(
            "mapping.begin" if stream.lasts else field,
            f"condition {reader.name} does not support them: {error.field}: {error.problem}",
            f"remove them, or change the condition first: {error.remedy}",
        ) from error
