"""The control plane: checks a write, writes its record and waits until the record is read back.

Writes run one at a time: read the log to its end, check, produce, read back. A write is therefore
checked against the state that it changes. A rejected write is never produced.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from correlation.errors import CorrelationError
from correlation.explaining import Items
from correlation.kinds import KINDS, to_condition
from correlation.newest_records import deletion_headers
from correlation.resources.records import (
    Resource,
    ResourceKind,
    resource_key,
    stream_to_document,
    template_to_document,
)
from service.alarms.feed import AlarmFeed
from service.configuration_writes import ConfigurationWrites
from service.documents.unchanged import is_unchanged
from service.errors import DocumentErrors, NotFoundError, ServiceError
from service.explaining import Explainer
from service.fold import Stored
from service.lists import PresentLists
from service.log import TopicLog
from service.metrics import MetricsView
from service.registry import Registry
from service.sampling import Sampler
from service.stream_topics import StreamTopics
from service.topic_rules import TOPIC_FIELDS, TopicRules
from service.topics import TopicKeeper, TopicProblem
from service.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from correlation.condition_kind import Load
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.explaining import Asked
    from service.lookup import Span
    from service.sampling import Derived, SampleRequest
    from service.settings import Settings

    Precondition = Callable[[Stored | None], None]
    Document = dict[str, Any]

_LOGGER = logging.getLogger(__name__)
# The job writes its record in every batch; heartbeats cause batches when no events arrive.
JOB_SILENCE_US = 60_000_000


class Written(NamedTuple):
    """The result of a write.

    Parameters
    ----------
    resource : Resource
        The resource after the write; for a delete, before it.
    offset : int or None
        Offset of its record; None for a dry run, or when the broker did not answer in time.
    created : bool
        Whether no resource had this name before.
    applied : bool
        Whether its record was read back in time; also true when no record was needed.
    """

    resource: Resource
    offset: int | None
    created: bool = False
    applied: bool = True


class ControlPlane:
    """The operations of the REST API; it is idle until `start`.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    now_us : callable
        Returns the time in µs since 1970.
    """

    def __init__(self, settings: Settings, now_us: Callable[[], int]) -> None:
        self.settings = settings
        self.now_us = now_us
        self.registry = Registry(settings.max_buffered_events)
        self.metrics = MetricsView()
        self.topic_problems: tuple[TopicProblem, ...] = ()
        self.on_failure: Callable[[], None] = _do_nothing
        self._topics = TopicKeeper(settings)
        self._topic_rules = TopicRules(settings, self._topics)
        self.stream_topics = StreamTopics(settings, self._topics)
        self._explainer = Explainer(settings)
        self._sampler = Sampler(settings)
        registry, config = self.registry, settings.topics.config
        self.log = TopicLog(settings, config, registry.apply, self._fail, registry.complete)
        self._metrics_log = TopicLog(
            settings, settings.topics.metrics, self.metrics.apply, self._fail
        )
        self.lists = PresentLists(settings, self._fail)
        self.alarms = AlarmFeed(settings, registry.output_topics)
        self._turns = Turns(settings.write_timeout_seconds)
        self.configuration = ConfigurationWrites(
            settings, registry, self._topic_rules, self.log, self._turns
        )
        self._started = False

    @property
    def failure(self) -> Exception | None:
        """Error that stopped the service, or None."""
        return self.log.failure or self._metrics_log.failure or self.lists.failure

    def start(self) -> None:
        """Create the topics and read the config topic; a second call does nothing.

        Raises
        ------
        ServiceError
            When the broker does not answer.
        UnknownRecordVersionError
            When a newer version of this software wrote a record of the config topic.
        """
        if self._started:
            return
        self.topic_problems = self._topics.ensure_own()
        try:
            self.log.start()
            self.registry.follow()
            self.configuration.settle()
            self._metrics_log.start()
            self.lists.start()
            self.alarms.start()
        except (ServiceError, CorrelationError):
            self.stop()
            raise
        self.stream_topics.warnings(self.registry.streams().values())
        self._started = True

    def stop(self) -> None:
        """Close the Kafka clients."""
        self.alarms.stop()
        self.log.stop()
        self._metrics_log.stop()
        self.lists.stop()
        self._started = False

    def find(self, kind: ResourceKind, name: str) -> Stored:
        """Return a resource.

        Raises
        ------
        NotFoundError
            When no resource has this name, or its newest record cannot be read.
        """
        stored = self.registry.get(kind, name)
        if stored is not None:
            return stored
        key = resource_key(kind, name)
        found = next((it for it in self.registry.unreadable() if it.key == key), None)
        if found is None:
            raise NotFoundError(f"{kind} {name!r} does not exist")
        raise NotFoundError(
            f"{kind} {name!r} is not in force: its newest record, at offset {found.offset}, cannot "
            f"be read: {found.problem}; PUT it again, or remove the record: coincide repair-config"
        )

    def put(
        self,
        kind: ResourceKind,
        name: str,
        document: Document,
        precondition: Precondition,
        *,
        dry_run: bool = False,
    ) -> Written:
        """Create or replace a resource; an unchanged document writes no record.

        A missing topic is created, also for an unchanged document: it may have been deleted.

        Parameters
        ----------
        kind, name
            Kind and name of the resource.
        document : dict
            The document, with durations in µs and all defaults.
        precondition : callable
            Raises PreconditionError for a current state that the caller did not expect.
        dry_run : bool
            Run all checks, write nothing.

        Raises
        ------
        ServiceError, InvalidFieldError
            When the write is rejected or Kafka does not answer.
        """
        with self._turns.take():
            self.configuration.catch_up()
            current = self.registry.get(kind, name)
            precondition(current)
            version = self.registry.next_version(kind, name)
            document, missing = self._check(kind, name, version, document)
            if missing and not dry_run:
                self._topic_rules.create(kind, missing)
            if current is not None and is_unchanged(current.resource, document):
                return Written(current.resource, current.offset)
            paused = current is not None and current.resource.paused
            resource = Resource(kind, name, version, self.now_us(), document, paused)
            if dry_run:
                return Written(resource, None, created=current is None)
            return self._write(
                resource, orjson.dumps(resource.to_record()), created=current is None
            )

    def delete(
        self,
        kind: ResourceKind,
        name: str,
        precondition: Precondition,
        *,
        dry_run: bool = False,
    ) -> Written:
        """Delete a resource.

        Raises
        ------
        ServiceError
            When it does not exist or is in use, or Kafka does not answer.
        """
        with self._turns.take():
            self.configuration.catch_up()
            precondition(self.registry.get(kind, name))
            resource = self.find(kind, name).resource
            if kind == "stream":
                self.registry.check_unused(name, "the stream cannot be deleted")
            elif kind == "template":
                self.registry.check_template_unused(name)
            if dry_run:
                return Written(resource, None)
            return self._write(resource, None)

    def pause(self, name: str, *, paused: bool) -> Written:
        """Pause or resume a condition; its document and version do not change.

        Raises
        ------
        ServiceError
            When it does not exist, or Kafka does not answer.
        """
        with self._turns.take():
            self.configuration.catch_up()
            stored = self.find("condition", name)
            found = stored.resource
            if found.paused == paused:
                return Written(found, stored.offset)
            resource = Resource(
                "condition", name, found.version, self.now_us(), found.document, paused
            )
            return self._write(resource, orjson.dumps(resource.to_record()))

    def derive(self, document: Document, load: Load, asked: SampleRequest | None = None) -> Derived:
        """Check a condition's document and compute its cost.

        Parameters
        ----------
        document : dict
            The document, with durations in µs and all defaults.
        load : Load
            Expected load of the streams.
        asked : SampleRequest or None
            Sample of the streams, whose rates are used where `load` has none.

        Raises
        ------
        ServiceError, InvalidFieldError
            When the document is not valid, or the sample cannot be read.
        """
        errors = DocumentErrors()
        with errors:
            condition = self.registry.check_condition("validated", 1, document)
        with errors:
            self._topic_rules.check("condition", document["output_topic"])
        errors.raise_all()
        streams, kind = self.registry.streams(), KINDS[condition.kind]
        own = {name: streams[name] for name in condition.streams}
        return self._sampler.derive(kind, condition, own, load, asked)

    def plan(self, name: str) -> Document:
        """Return the evaluation plan of a condition.

        Raises
        ------
        NotFoundError
            When the condition or one of its streams does not exist or cannot be read.
        """
        condition = to_condition(self.find("condition", name).resource)
        return KINDS[condition.kind].plan(condition, self._streams_of(condition))

    def picture(self, name: str) -> str | None:
        """Return the plan of a condition as SVG; None: its kind draws no picture.

        Raises
        ------
        NotFoundError
            As `plan`.
        """
        condition = to_condition(self.find("condition", name).resource)
        draw = KINDS[condition.kind].picture
        return None if draw is None else draw(condition, self._streams_of(condition))

    def explain(self, name: str, asked: Asked, span: Span) -> Document:
        """Explain how a condition evaluates events.

        Parameters
        ----------
        name : str
            Name of the condition.
        asked : Asked
            Events, records or ids, one for each role of the kind.
        span : Span
            Range of Kafka timestamps in which ids are looked up.

        Raises
        ------
        ServiceError
            When the condition or an event does not exist, or Kafka does not answer.
        """
        stored = self.find("condition", name)
        streams = self._streams_of(to_condition(stored.resource))
        view = self.lists.of_kind(stored.resource.document["kind"])

        def find_list(key: str | None) -> Items | None:
            found = None if view is None else view.find(name, key)
            items: Items | None = None if found is None else found.get("items")
            return items

        return self._explainer.explain(stored, streams, asked, span, find_list)

    def _streams_of(self, condition: Condition) -> Mapping[str, Stream]:
        """Return the streams that a condition reads."""
        return {name: self.find("stream", name).resource.to_stream() for name in condition.streams}

    def job_is_up(self) -> bool:
        """Return whether the job's newest record is recent and has the state running."""
        job = self.metrics.job()
        if job is None or job["state"] != "running":
            return False
        return bool(self.now_us() - job["at"] <= JOB_SILENCE_US)

    def _check(
        self, kind: ResourceKind, name: str, version: int, document: Document
    ) -> tuple[Document, str | None]:
        """Check a document; return its stored form and the topic to create for it."""
        missing = None
        errors = DocumentErrors()
        with errors:
            if kind == "template":
                found = Resource(kind, name, version, 0, document).to_template()
                document = template_to_document(found)
            elif kind == "condition":
                self.registry.check_condition(name, version, document)
            else:
                stream = self.registry.read_stream(name, document)
                self.registry.check_stream(stream)
                document = stream_to_document(stream)
        with errors:
            missing = self._topic_rules.check(kind, document.get(TOPIC_FIELDS[kind]))
        errors.raise_all()
        return document, missing

    def _write(self, resource: Resource, value: bytes | None, *, created: bool = False) -> Written:
        timeout = self.settings.write_timeout_seconds
        deadline = time.monotonic() + timeout
        headers = deletion_headers(resource.version) if value is None else ()
        offset = self.log.send(resource.key, value, timeout, headers)
        applied = offset is not None and self.log.wait_for(
            offset, max(0.0, deadline - time.monotonic())
        )
        return Written(resource, offset, created=created, applied=applied)

    def _fail(self, error: Exception) -> None:
        _LOGGER.critical("the service stops: %s", error)
        self.on_failure()


def _do_nothing() -> None:
    """No-op callback."""
