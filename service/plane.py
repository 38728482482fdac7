"""The control plane: what a write means, from its checks to its record being read back.

One write at a time: read to the end of the log, check, produce, read back. So what a write was
checked against is what it changes. A rejected write is never produced.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from correlation.errors import CorrelationError
from correlation.kinds import KINDS, to_condition
from correlation.newest_records import deletion_headers
from correlation.resources.records import (
    Resource,
    ResourceKind,
    resource_key,
    stream_to_document,
    template_to_document,
)
from service.errors import DocumentErrors, NotFoundError, ServiceError
from service.explaining import Explainer
from service.fold import Stored
from service.log import TopicLog
from service.metrics import MetricsView
from service.registry import Registry
from service.stream_topics import StreamTopics
from service.topic_rules import TOPIC_FIELDS, TopicRules
from service.topics import TopicKeeper, TopicProblem
from service.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from correlation.condition_kind import Load
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.lookup import Span
    from service.settings import Settings

    Precondition = Callable[[Stored | None], None]
    Document = dict[str, Any]

_LOGGER = logging.getLogger(__name__)
# The job speaks in every batch, and heartbeats make batches when nothing else does.
JOB_SILENCE_US = 60_000_000


class Written(NamedTuple):
    """What became of a write.

    Parameters
    ----------
    resource : Resource
        As it stands afterwards (before, for a delete).
    offset : int or None
        Of its record; None for a dry run, or when the broker has not answered in time.
    created : bool
        Whether there was none of this name before.
    applied : bool
        Whether its record was read back in time; also true when nothing had to be written.
    """

    resource: Resource
    offset: int | None
    created: bool = False
    applied: bool = True


class ControlPlane:
    """Everything behind the REST interface; nothing happens before `start`.

    Parameters
    ----------
    settings : Settings
        Of the service.
    now_us : callable
        Gives the time in µs since 1970.
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
        self.log = TopicLog(settings, settings.topics.config, self.registry.apply, self._fail)
        self._metrics_log = TopicLog(
            settings, settings.topics.metrics, self.metrics.apply, self._fail
        )
        self._turns = Turns(settings.write_timeout_seconds)
        self._started = False

    @property
    def failure(self) -> Exception | None:
        """Why the service cannot go on, or None."""
        return self.log.failure or self._metrics_log.failure

    def start(self) -> None:
        """Create the topics and read the config topic; a second call does nothing.

        Raises
        ------
        ServiceError
            When the broker does not answer.
        UnknownRecordVersionError
            When a newer version of this software wrote what is registered.
        """
        if self._started:
            return
        self.topic_problems = self._topics.ensure_own()
        for problem in self.topic_problems:
            _LOGGER.warning(
                "topic %s: %s is %s, %s is needed (not changed)",
                problem.topic,
                problem.setting,
                problem.found,
                problem.needed,
            )
        try:
            self.log.start()
            self.registry.follow()
            self._metrics_log.start()
        except (ServiceError, CorrelationError):
            self.stop()
            raise
        self.stream_topics.warnings(self.registry.streams().values())
        self._started = True

    def stop(self) -> None:
        """Let go of Kafka."""
        self.log.stop()
        self._metrics_log.stop()
        self._started = False

    def find(self, kind: ResourceKind, name: str) -> Stored:
        """Give a resource.

        Raises
        ------
        NotFoundError
            When there is none of this name.
        """
        stored = self.registry.get(kind, name)
        if stored is not None:
            return stored
        key = resource_key(kind, name)
        found = next((it for it in self.registry.unreadable() if it.key == key), None)
        if found is None:
            raise NotFoundError(f"no {kind} is called {name!r}")
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

        Its topic is created where it is missing, also for an unchanged document: it may have been
        deleted meanwhile.

        Parameters
        ----------
        kind, name
            Of the resource.
        document : dict
            With durations in µs and all defaults.
        precondition : callable
            Raises PreconditionError for a current state that the caller did not expect.
        dry_run : bool
            Check everything, write nothing.

        Raises
        ------
        ServiceError, InvalidFieldError
            When the write is refused or Kafka does not answer.
        """
        with self._turns.take():
            self.log.read_to_end(self.settings.broker_timeout_seconds)
            current = self.registry.get(kind, name)
            precondition(current)
            version = self.registry.next_version(kind, name)
            document, missing = self._check(kind, name, version, document)
            if missing and not dry_run:
                self._topic_rules.create(kind, missing)
            if current is not None and _as_written_now(current.resource) == document:
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
            When there is none, it is in use, or Kafka does not answer.
        """
        with self._turns.take():
            self.log.read_to_end(self.settings.broker_timeout_seconds)
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
        """Pause or resume a condition; its version stays, for its document does.

        Raises
        ------
        ServiceError
            When there is none, or Kafka does not answer.
        """
        with self._turns.take():
            self.log.read_to_end(self.settings.broker_timeout_seconds)
            stored = self.find("condition", name)
            found = stored.resource
            if found.paused == paused:
                return Written(found, stored.offset)
            resource = Resource(
                "condition", name, found.version, self.now_us(), found.document, paused
            )
            return self._write(resource, orjson.dumps(resource.to_record()))

    def derive(self, document: Document, load: Load) -> Document:
        """Check a condition's document and compute what it would cost.

        Parameters
        ----------
        document : dict
            With durations in µs and all defaults.
        load : Load
            What is expected of the streams.

        Raises
        ------
        ServiceError, InvalidFieldError
            When the document is wrong.
        """
        errors = DocumentErrors()
        with errors:
            condition = self.registry.check_condition("validated", 1, document)
        with errors:
            self._topic_rules.check("condition", document["output_topic"])
        errors.raise_all()
        streams = self.registry.streams()
        return KINDS[condition.kind].derive(condition, streams, load)

    def plan(self, name: str) -> Document:
        """Say how a condition is evaluated.

        Raises
        ------
        NotFoundError
            When there is none of this name, or a stream of it cannot be read.
        """
        condition = to_condition(self.find("condition", name).resource)
        return KINDS[condition.kind].plan(condition, self._streams_of(condition))

    def explain(self, name: str, asked: Mapping[str, Document], span: Span) -> Document:
        """Explain what a condition makes of events.

        Parameters
        ----------
        name : str
            Of the condition.
        asked : mapping of role to document
            Events, records or ids, one for each role of the kind.
        span : Span
            Where in Kafka's time to look for ids.

        Raises
        ------
        ServiceError
            When there is no such condition or event, or Kafka does not answer.
        """
        stored = self.find("condition", name)
        streams = self._streams_of(to_condition(stored.resource))
        return self._explainer.explain(stored, streams, asked, span)

    def _streams_of(self, condition: Condition) -> Mapping[str, Stream]:
        """Return the streams that a condition reads."""
        return {name: self.find("stream", name).resource.to_stream() for name in condition.streams}

    def job_is_up(self) -> bool:
        """Say whether the job's newest record says that it runs, and is not old."""
        job = self.metrics.job()
        if job is None or job["state"] != "running":
            return False
        return bool(self.now_us() - job["at"] <= JOB_SILENCE_US)

    def _check(
        self, kind: ResourceKind, name: str, version: int, document: Document
    ) -> tuple[Document, str | None]:
        """Check a document; return it as it is stored, and the topic to create for it."""
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


def _as_written_now(resource: Resource) -> Document:
    """Give the document with the fields that its kind has got since it was written."""
    if resource.kind == "stream":
        return stream_to_document(resource.to_stream())
    if resource.kind == "condition":
        fields = KINDS[resource.document["kind"]].fields
        defaults = {it.stored_name: it.default for it in fields if not it.required}
        return defaults | resource.document
    return resource.document


def _do_nothing() -> None:
    """Stand where nobody wants to know."""
