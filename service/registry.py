"""The registered streams, conditions and templates: a fold of the config topic's records."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from correlation.kinds import to_condition
from correlation.resources.job_slots import JOB, SLOTS
from correlation.resources.records import (
    Resource,
    ResourceKind,
    resource_key,
    stream_to_document,
    template_to_document,
)
from service.checks import ResourceChecks
from service.documents.capacity import buffer_horizons_us
from service.documents.configuration import KIND_ORDER
from service.errors import FieldProblem, NotFoundError, TemplateInUseError
from service.fold import ConfigFold, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from correlation.config_records import Unreadable
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.log import LogRecord


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

    def complete(self) -> None:
        """Apply the records of an incomplete transaction; see `ConfigFold.complete`."""
        self._fold.complete()

    def follow(self) -> None:
        """End the initial read of the config topic; see `ConfigFold.follow`."""
        self._fold.follow()

    def unreadable(self) -> list[Unreadable]:
        """Return the unreadable records that are the newest of their keys, by offset."""
        return self._fold.unreadable()

    def get(self, kind: ResourceKind, name: str) -> Stored | None:
        """Return a resource, or None."""
        return self._fold.get(kind, name)

    def find(self, kind: ResourceKind, name: str) -> Stored:
        """Return a resource.

        Raises
        ------
        NotFoundError
            When no resource has this name, or its newest record cannot be read.
        """
        stored = self.get(kind, name)
        if stored is not None:
            return stored
        key = resource_key(kind, name)
        found = next((it for it in self.unreadable() if it.key == key), None)
        if found is None:
            raise NotFoundError(f"{kind} {name!r} does not exist")
        raise NotFoundError(
            f"{kind} {name!r} is not in force: its newest record, at offset {found.offset}, cannot "
            f"be read: {found.problem}; PUT it again, or remove the record: coincide repair-config"
        )

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

    def configuration(self) -> tuple[Resource, ...]:
        """Return all streams, templates and conditions in force at one moment, in no order."""
        found = self._fold.snapshot()
        return tuple(it.resource for kind in KIND_ORDER for it in found[kind].values())

    def slots(self) -> Stored | None:
        """Return the registered number of slots of the job, or None."""
        return self.get(JOB, SLOTS)

    def checks(self, present: Sequence[Resource] | None = None) -> ResourceChecks:
        """Return the resources in force, to check documents against them.

        Parameters
        ----------
        present : sequence of Resource or None
            The resources; None: those in force now.
        """
        present = self.configuration() if present is None else present
        return ResourceChecks(
            {it.name: it for it in present if it.kind == "template"},
            {it.name: it.to_stream() for it in present if it.kind == "stream"},
            tuple(to_condition(it) for it in present if it.kind == "condition"),
            self._max_buffered_events,
        )

    def streams(self) -> dict[str, Stream]:
        """Return all streams by name."""
        return {name: it.to_stream() for name, it in self.resources("stream").items()}

    def conditions_on(self, stream: str) -> list[str]:
        """Return the names of the conditions that read a stream, sorted."""
        return sorted(it.name for it in self._conditions() if stream in it.streams)

    def horizons_us(self, names: Iterable[str]) -> dict[str, int]:
        """Return for how long conditions need an event of each stream after its time, in µs.

        Parameters
        ----------
        names : iterable of str
            Names of the streams; 0 for a stream that no condition in force reads.
        """
        streams, found = self.streams(), dict.fromkeys(names, 0)
        for resource in self.resources("condition").values():
            condition = to_condition(resource)
            read = {*condition.streams}
            # A condition with a stream that cannot be read is not in force.
            if resource.paused or found.keys().isdisjoint(read) or not read <= streams.keys():
                continue
            horizons = buffer_horizons_us(condition, streams)
            for name in found.keys() & read:
                found[name] = max(found[name], horizons[name])
        return found

    def check_document(
        self, kind: ResourceKind, name: str, version: int, document: dict[str, Any]
    ) -> dict[str, Any]:
        """Check a stream, condition or template and return its stored form.

        Parameters
        ----------
        kind, name, version
            Kind, name and version of the resource.
        document : dict
            The document, with durations in µs and all defaults.

        Raises
        ------
        InvalidFieldError, InvalidDocumentError, DependedUponError
            When it is not valid, or conditions in force cannot be evaluated with it.
        """
        if kind == "template":
            return template_to_document(Resource(kind, name, version, 0, document).to_template())
        checks = self.checks()
        if kind == "condition":
            checks.check_condition(name, version, document)
            return document
        stream = checks.read_stream(name, document)
        checks.check_stream(stream)
        return stream_to_document(stream)

    def check_unused(self, stream: str, detail: str) -> None:
        """Check that no condition reads the stream; see `ResourceChecks.check_unused`."""
        self.checks().check_unused(stream, detail)

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
        """Build and check a condition; see `ResourceChecks.check_condition`."""
        return self.checks().check_condition(name, version, document)

    def further_problems(
        self, kind: ResourceKind, document: object, problems: tuple[FieldProblem, ...]
    ) -> tuple[FieldProblem, ...]:
        """Find further problems of a document; see `ResourceChecks.further_problems`."""
        return self.checks().further_problems(kind, document, problems)

    def _conditions(self) -> list[Condition]:
        return [to_condition(it) for it in self.resources("condition").values()]
