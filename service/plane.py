"""The control plane: the operations of the REST API over the logs, the registry and the metrics."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from correlation.errors import CorrelationError
from correlation.explaining import FoundList
from correlation.kinds import KINDS, to_condition
from correlation.resources.records import ResourceKind
from service.alarms.feed import AlarmFeed
from service.alarms.records import as_item
from service.alarms.showing import is_writable, request_explanation, show_record
from service.configuration_writes import ConfigurationWrites
from service.errors import DocumentErrors, NotFoundError, ServiceError
from service.explaining import Explainer
from service.fold import Stored
from service.lists import PresentLists
from service.log import TopicLog
from service.metrics import MetricsView
from service.registry import Registry
from service.sampling import Sampler
from service.stream_topics import StreamTopics
from service.topic_rules import TopicRules
from service.topics import TopicKeeper, TopicProblem
from service.turns import Turns
from service.writes import ResourceWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from correlation.condition_kind import Load
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.explaining import Asked
    from service.lookup import Span
    from service.sampling import Derived, SampleRequest
    from service.settings import Settings

    Document = dict[str, Any]

_LOGGER = logging.getLogger(__name__)
# The job writes its record in every batch; heartbeats cause batches when no events arrive.
JOB_SILENCE_US = 60_000_000


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
        self.stream_topics = StreamTopics(settings, self._topics, self.registry.horizons_us)
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
        self.writes = ResourceWrites(
            settings,
            registry,
            self._topic_rules,
            self.log,
            self.configuration,
            self.stream_topics,
            now_us,
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
        self.configuration.close()
        self.log.stop()
        self._metrics_log.stop()
        self.lists.stop()
        self._started = False

    def find(self, kind: ResourceKind, name: str) -> Stored:
        """Return a resource; errors as in `Registry.find`."""
        return self.registry.find(kind, name)

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

    def warnings(self, condition: Condition) -> list[str]:
        """Return likely mistakes of an accepted condition, as sentences with remedies.

        Empty if a stream was deleted since.
        """
        streams = self.registry.streams()
        if not streams.keys() >= set(condition.streams):
            return []
        return list(KINDS[condition.kind].warn(condition, streams))

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

        def find_list(key: str | None) -> FoundList | None:
            found = None if view is None else view.find(name, key)
            return None if found is None else FoundList(found.get("as_of") or 0, found.get("items"))

        return self._explainer.explain(stored, streams, asked, span, find_list)

    def show_alarm(self, topic: str, partition: int, offset: int) -> Document:
        """Return a recent alarm with its events, and the request that explains it.

        Raises
        ------
        ServiceError
            When the alarm is not in memory, or the service does not read alarms.
        """
        record = self.alarms.find(topic, partition, offset)
        value = record.parse()
        shown = show_record(value)
        found = () if shown is None else shown.events.items()
        events = [{"label": label, "event": it} for label, it in found]
        return {
            **as_item(record, value, shown),
            "events": events if is_writable(events) else [],
            "explain": self._request_explanation(record.condition, value),
        }

    def _request_explanation(self, name: str, value: Document) -> Document | None:
        try:
            condition = to_condition(self.find("condition", name).resource)
            streams = self._streams_of(condition)
        except NotFoundError:
            return None
        body = request_explanation(condition, streams, value)
        return None if body is None else {"condition": name, "body": body}

    def _streams_of(self, condition: Condition) -> Mapping[str, Stream]:
        """Return the streams that a condition reads."""
        return {name: self.find("stream", name).resource.to_stream() for name in condition.streams}

    def applied_config_offset(self) -> int | None:
        """Return the offset of the newest config record that the job has applied, or None.

        The job reports how far it has read: after a transaction, the offset of its marker.
        """
        job = self.metrics.job()
        applied = None if job is None else job["applied_config_offset"]
        return None if applied is None else min(applied, self.log.newest)

    def slots(self) -> Document:
        """Return the present and the wanted number of slots of the job, as fields of its state."""
        job = self.metrics.job() or {}
        stored = self.registry.slots()
        reported = job.get("wanted_slots")
        wanted = reported if stored is None else stored.resource.to_slots()
        # The job may not have seen the newest number yet.
        problem = job.get("slots_problem") if wanted == reported else None
        return {"slots": job.get("slots"), "wanted_slots": wanted, "slots_problem": problem}

    def job_is_up(self) -> bool:
        """Return whether the job's newest record is recent and has the state running."""
        job = self.metrics.job()
        if job is None or job["state"] != "running":
            return False
        return bool(self.now_us() - job["at"] <= JOB_SILENCE_US)

    def _fail(self, error: Exception) -> None:
        _LOGGER.critical("the service stops: %s", error)
        self.on_failure()


def _do_nothing() -> None:
    """No-op callback."""
