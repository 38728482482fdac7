"""Checks of streams and conditions against the resources that they refer to.

The resources are those in force, or those that a write of a whole configuration would leave.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from correlation.condition_kind import NamedStream
from correlation.kinds import KINDS, condition_from_document
from correlation.limits import LENGTH_LIMIT_US
from correlation.resources.records import (
    Resource,
    ResourceKind,
    stream_from_document,
    template_entry,
)
from service.documents.capacity import check_capacity
from service.documents.changes import problems_of, refuse_broken, refuse_unsupported
from service.documents.cycles import Flow
from service.documents.models import valid_values
from service.errors import (
    MAX_PROBLEMS,
    DependedUponError,
    DocumentErrors,
    FieldProblem,
    InvalidDocumentError,
    Place,
    first_problems,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from correlation.operators import Condition
    from correlation.resources.streams import Stream

# Max number of names with which an unknown name is compared: the search for similar names is slow.
_COMPARED = 200
# Placeholders for fields of a stream that are not valid, so that the others can be checked.
_HARMLESS = {"topic": "unnamed", "max_uncertainty_us": LENGTH_LIMIT_US, "max_delay_us": 0}


@dataclass(frozen=True)
class ResourceChecks:
    """Templates, streams and conditions, against which documents are checked.

    Parameters
    ----------
    templates : mapping of name to Resource
        The templates.
    streams : mapping of name to Stream
        The streams.
    conditions : tuple of Condition
        The conditions.
    max_buffered_events : int
        Max number of events of a stream that the job may keep for a condition.
    unread : frozenset of (kind, name)
        Further resources, whose documents could not be read. References to them are accepted.
    remedy : str or None
        How to mend a reference to a resource that does not exist; None: register it first.
    """

    templates: Mapping[str, Resource]
    streams: Mapping[str, Stream]
    conditions: tuple[Condition, ...]
    max_buffered_events: int
    unread: frozenset[tuple[str, str]] = frozenset()
    remedy: str | None = None

    def conditions_on(self, stream: str) -> list[str]:
        """Return the names of the conditions that read a stream, sorted."""
        return sorted(self._readers.get(stream, ()))

    @cached_property
    def _readers(self) -> Mapping[str, dict[str, Condition]]:
        """The conditions that read a stream by their names, by the name of the stream."""
        found: dict[str, dict[str, Condition]] = {}
        for condition in self.conditions:
            for stream in condition.streams:
                found.setdefault(stream, {})[condition.name] = condition
        return found

    @cached_property
    def _flow(self) -> Flow:
        return Flow(self.conditions, self.streams.values())

    def check_stream(
        self,
        stream: Stream,
        present: ResourceChecks | None = None,
        checked: Collection[str] = (),
    ) -> None:
        """Check that a changed stream does not break the conditions that read it.

        Parameters
        ----------
        stream : Stream
            The stream after the change.
        present : ResourceChecks or None
            The resources before the change, if these are the resources after it.
        checked : collection of str
            Names of conditions that `check_condition` checks on the changed stream.

        Raises
        ------
        DependedUponError
            When conditions read the stream, and its partitioning changes, or its events change
            between instants and events that last, or a condition cannot be evaluated on it.
        InvalidDocumentError
            When a condition on the stream writes alarms to its topic, directly or through other
            conditions, would keep too many of its events, or does not support their histograms.
        """
        streams, flow = self.streams, self._flow
        if streams.get(stream.name) != stream:
            streams = {**streams, stream.name: stream}
            flow = Flow(self.conditions, streams.values())
        mine = self._readers.get(stream.name, {}).values()
        readers = [it for it in mine if it.name not in checked]
        complete = [it for it in readers if streams.keys() >= set(it.streams)]
        before = (present or self).streams.get(stream.name)
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
            flow.refuse_loop([it.name for it in readers], "topic")
        for reader in complete:
            with errors:
                if not problems_of(reader, streams):
                    check_capacity(reader, streams, self.max_buffered_events, "max_rate")
            with errors:
                refuse_unsupported(reader, streams, stream, before)
        errors.raise_all()
        if before is None:
            return
        reading = (present or self).conditions_on(stream.name)
        if before.partitioning != stream.partitioning:
            self.check_unused(
                stream.name, "the partitioning of a stream in use cannot be changed", reading
            )
        if before.lasts != stream.lasts:
            self.check_unused(
                stream.name,
                "a stream in use cannot change between instants and events that last",
                reading,
            )
        # Not a copy of all streams: a write of a configuration checks many of them.
        read = {name: streams[name] for reader in complete for name in reader.streams}
        refuse_broken(complete, read | {stream.name: before}, streams, stream.name)

    def check_unused(
        self, stream: str, detail: str, reading: Collection[str] | None = None
    ) -> None:
        """Check that no condition reads the stream.

        Parameters
        ----------
        stream : str
            Name of the stream.
        detail : str
            Why it must not be in use.
        reading : collection of str or None
            Names of conditions; only these are considered.

        Raises
        ------
        DependedUponError
            When conditions read it; they are listed.
        """
        conditions = self.conditions_on(stream)
        if reading is not None:
            conditions = [name for name in conditions if name in reading]
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
        return checked_stream(name, document, self.templates, self.remedy)

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
        condition = checked_condition(name, version, document, self.streams, self.remedy)
        flow = self._flow
        if self._readers.get(condition.streams[0], {}).get(name) != condition:
            others = [it for it in self.conditions if it.name != name]
            flow = Flow([*others, condition], self.streams.values())
        errors = DocumentErrors()
        with errors:
            flow.refuse_loop([name], "output_topic")
        with errors:
            check_capacity(condition, self.streams, self.max_buffered_events)
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
                names = checkable.get("templates", [])
                checkable["templates"] = [it for it in names if ("template", it) not in self.unread]
                checked_stream("unnamed", _HARMLESS | checkable, self.templates, self.remedy)
        elif values:
            with errors:
                named = [
                    it for it in _streams_named(values) if ("stream", it.stream) not in self.unread
                ]
                _refuse_unknown("stream", self.streams, named, self.remedy)
            with errors:
                KINDS[values["kind"]].build("unnamed", 1, values)
        return errors.problems


def _without_dependent(values: dict[str, Any], faulty: Container[str]) -> dict[str, Any]:
    """Return the fields of a stream that can be checked without its faulty fields."""
    dropped = {"where"} if "attributes" in faulty else set()
    if "mapping" in faulty:
        limits = ("min_uncertainty_us", "max_uncertainty_us", "min_length_us", "max_length_us")
        dropped.update(limits)
    return {name: value for name, value in values.items() if name not in dropped}


def checked_stream(
    name: str,
    document: dict[str, Any],
    templates: Mapping[str, Resource],
    remedy: str | None = None,
) -> Stream:
    """Build a stream with the present versions of the templates that its document names.

    Parameters
    ----------
    name, document
        Name and document of the stream; its `templates` are names.
    templates : mapping of name to Resource
        The registered templates.
    remedy : str or None
        As of `ResourceChecks`.

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
        named = [NamedStream(f"templates[{it}]", found) for it, found in enumerate(names)]
        _refuse_unknown("template", templates, named, remedy)
    entries = [template_entry(templates[it].to_template()) for it in names if it in templates]
    with errors:
        stream = stream_from_document(name, document | {"templates": entries})
    errors.raise_all()
    return stream


def checked_condition(
    name: str,
    version: int,
    document: dict[str, Any],
    streams: Mapping[str, Stream],
    remedy: str | None = None,
) -> Condition:
    """Build a condition and check it against streams.

    Parameters
    ----------
    name, version, document
        Name, version and document of the condition.
    streams : mapping of name to Stream
        The registered streams.
    remedy : str or None
        As of `ResourceChecks`.

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
        _refuse_unknown("stream", streams, _streams_named(document), remedy)
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
    kind: ResourceKind,
    known: Collection[str],
    named: Iterable[NamedStream],
    remedy: str | None,
) -> None:
    """Check that each name is a registered resource."""
    problems = first_problems(
        FieldProblem(
            it.field,
            f"{it.owner}{': ' if it.owner else ''}{kind} {it.stream!r} does not exist",
            _meant(it.stream, known)
            + (remedy or f"register it first: PUT /v1/{kind}s/{it.stream}"),
            None if it.place is None else Place(*it.place),
        )
        for it in named
        if it.stream not in known
    )
    if problems:
        raise InvalidDocumentError.of_all(problems)


def _meant(name: str, known: Collection[str]) -> str:
    """Return a question that names a similar resource, followed by a space, or an empty string."""
    if len(known) > _COMPARED:
        ordered = sorted(known)
        place = bisect(ordered, name)
        known = ordered[max(0, place - _COMPARED // 2) : place + _COMPARED // 2]
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}? " if near else ""
