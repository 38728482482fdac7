"""Writes of single resources: check, write one record, and wait until it is read back.

Writes run one at a time, including those of several instances of the service: read the log to its
end, check, write, read back. A write is therefore checked against the state that it changes. A
rejected write is never produced.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from correlation.newest_records import deletion_headers
from correlation.resources.job_slots import JOB, SLOTS, read_slots
from correlation.resources.records import Resource, ResourceKind
from service.access.callers import EVERYONE, Caller
from service.audit import Effect, effect_of
from service.documents.unchanged import is_unchanged
from service.errors import DocumentErrors
from service.topic_rules import TOPIC_FIELDS
from service.transactions import NewRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.configuration_writes import ConfigurationWrites
    from service.fold import Stored
    from service.log import TopicLog
    from service.registry import Registry
    from service.settings import Settings
    from service.stream_topics import StreamTopics
    from service.topic_rules import TopicRules

    Precondition = Callable[[Stored | None], None]
    Document = dict[str, Any]


class Written(NamedTuple):
    """The result of a write.

    Parameters
    ----------
    resource : Resource
        The resource after the write; for a delete, before it.
    offset : int or None
        Offset of its record; None for a dry run.
    created : bool
        Whether no resource had this name before.
    applied : bool
        Whether its record was read back in time; also true when no record was needed.
    """

    resource: Resource
    offset: int | None
    created: bool = False
    applied: bool = True


class ResourceWrites:
    """Writes single resources.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    registry : Registry
        The resources in force.
    topic_rules : TopicRules
        Checks and creates the topics that documents name.
    log : TopicLog
        Log of the config topic.
    configuration : ConfigurationWrites
        Writes in transactions.
    stream_topics : StreamTopics
        Writes resets of watermarks.
    now_us : callable
        Returns the time in µs since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        topic_rules: TopicRules,
        log: TopicLog,
        configuration: ConfigurationWrites,
        stream_topics: StreamTopics,
        now_us: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._topic_rules = topic_rules
        self._log = log
        self._configuration = configuration
        self._stream_topics = stream_topics
        self._now_us = now_us

    def put(
        self,
        kind: ResourceKind,
        name: str,
        document: Document,
        precondition: Precondition,
        *,
        dry_run: bool = False,
        by: Caller = EVERYONE,
    ) -> Written:
        """Create or replace a resource; an unchanged document writes no record.

        A missing topic is created, even for an unchanged document: it may have been deleted.

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
        by : Caller
            Who writes.

        Raises
        ------
        ServiceError, InvalidFieldError
            When the write is rejected or Kafka does not answer.
        """
        by.require_name(kind, name)

        def write() -> Written:
            current = self._registry.get(kind, name)
            precondition(current)
            version = self._registry.next_version(kind, name)
            checked, missing = self._check(kind, name, version, document)
            if missing and not dry_run:
                self._topic_rules.create({missing: kind})
            if current is not None and is_unchanged(current.resource, checked):
                return Written(current.resource, current.offset)
            paused = current is not None and current.resource.paused
            resource = Resource(kind, name, version, self._now_us(), checked, paused)
            if dry_run:
                return Written(resource, None, created=current is None)
            before = None if current is None else current.resource
            return self._write(effect_of(before, resource), by)

        return self._configuration.alone(write, dry_run=dry_run)

    def delete(
        self,
        kind: ResourceKind,
        name: str,
        precondition: Precondition,
        *,
        dry_run: bool = False,
        by: Caller = EVERYONE,
    ) -> Written:
        """Delete a resource; parameters as in `put`.

        Raises
        ------
        ServiceError
            When it does not exist or is in use, or Kafka does not answer.
        """
        by.require_name(kind, name)

        def write() -> Written:
            precondition(self._registry.get(kind, name))
            resource = self._registry.find(kind, name).resource
            if kind == "stream":
                self._registry.check_unused(name, "the stream cannot be deleted")
            elif kind == "template":
                self._registry.check_template_unused(name)
            if dry_run:
                return Written(resource, None)
            return self._write(effect_of(resource, None), by)

        return self._configuration.alone(write, dry_run=dry_run)

    def pause(
        self,
        name: str,
        precondition: Precondition,
        *,
        paused: bool,
        dry_run: bool = False,
        by: Caller = EVERYONE,
    ) -> Written:
        """Pause or resume a condition; its document and version do not change.

        Parameters are as in `put`.

        Raises
        ------
        ServiceError
            When it does not exist, or Kafka does not answer.
        """
        by.require_name("condition", name)

        def write() -> Written:
            precondition(self._registry.get("condition", name))
            stored = self._registry.find("condition", name)
            found = stored.resource
            if found.paused == paused:
                return Written(found, stored.offset)
            resource = Resource(
                "condition", name, found.version, self._now_us(), found.document, paused
            )
            if dry_run:
                return Written(resource, None)
            return self._write(effect_of(found, resource), by)

        return self._configuration.alone(write, dry_run=dry_run)

    def reset_watermark(self, name: str, *, by: Caller = EVERYONE) -> dict[int, int]:
        """Reset the watermark of a stream; returns as `StreamTopics.reset_watermark`.

        The audit record is written first: without it, nothing is reset.

        Raises
        ------
        ServiceError
            When the stream does not exist, or Kafka does not answer.
        """
        by.require_name("stream", name)
        found = self._registry.find("stream", name).resource
        if self._settings.is_protected:
            effect = Effect("watermark_reset", found, found)
            self._configuration.alone(
                lambda: self._configuration.write((), [effect], by, self._now_us())
            )
        return self._stream_topics.reset_watermark(found.to_stream())

    def _check(
        self, kind: ResourceKind, name: str, version: int, document: Document
    ) -> tuple[Document, str | None]:
        """Check a document; return its stored form and the topic to create for it."""
        if kind == JOB:
            return {SLOTS: read_slots(document)}, None
        missing = None
        errors = DocumentErrors()
        with errors:
            document = self._registry.check_document(kind, name, version, document)
        with errors:
            missing = self._topic_rules.check(kind, document.get(TOPIC_FIELDS[kind]))
        errors.raise_all()
        return document, missing

    def _write(self, effect: Effect, by: Caller) -> Written:
        """Write the record of an effect in a transaction, with its audit record if there is one."""
        resource = effect.after or effect.before
        if resource is None:
            raise ValueError("an effect has a resource")
        value = None if effect.after is None else orjson.dumps(resource.to_record())
        headers = deletion_headers(resource.version) if value is None else ()
        timeout = self._settings.write_timeout_seconds
        deadline = time.monotonic() + timeout
        record = NewRecord(resource.key, value, tuple(headers))
        offset = self._configuration.write([record], [effect], by, self._now_us())
        applied = self._log.wait_for(offset, max(0.0, deadline - time.monotonic()))
        return Written(resource, offset, created=effect.before is None, applied=applied)
