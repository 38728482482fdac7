"""Writes of a whole configuration: one plan, one Kafka transaction, all or nothing."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import orjson

from correlation.newest_records import deletion_headers
from service.access.callers import EVERYONE, Caller, Role
from service.audit import Effect, audit_records, effect_of
from service.configuration import Planner
from service.documents.configuration import KIND_ORDER, tag_of, to_documents
from service.errors import BusyError, OvertakenError
from service.transactions import NewRecord, Others, Transactions
from service.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from correlation.resources.records import Resource
    from service.configuration import Wanted
    from service.configuration_changes import Change
    from service.log import TopicLog
    from service.registry import Registry
    from service.settings import Settings
    from service.topic_rules import TopicRules

_Result = TypeVar("_Result")
_LOGGER = logging.getLogger(__name__)
# Max number of attempts of a write while other instances write.
_ATTEMPTS = 10


class WrittenConfiguration(NamedTuple):
    """The result of a write.

    Parameters
    ----------
    changes : tuple of Change
        Its changes, sorted by kind and name.
    offset : int or None
        Offset of its last record; None when no record was written.
    tag : str or None
        Tag of the configuration that the write left; None if its records were not read back in
        time. For a dry run, that of the present configuration.
    """

    changes: tuple[Change, ...]
    offset: int | None = None
    tag: str | None = None


class ConfigurationWrites:
    """Writes configurations.

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
    turns : Turns
        Lock for all writes of the config topic.
    """

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        topic_rules: TopicRules,
        log: TopicLog,
        turns: Turns,
    ) -> None:
        self._settings = settings
        self._topic_rules = topic_rules
        self._registry = registry
        self._planner = Planner(registry, topic_rules.survey)
        self._log = log
        self._turns = turns
        # Dry runs must not delay writes: callers without the right to write may send them.
        self._dry_turns = Turns(settings.write_timeout_seconds)
        self._transactions = Transactions(settings, settings.topics.config)

    def settle(self) -> None:
        """End a transaction that an earlier process has left open; see `Transactions.settle`."""
        self._transactions.settle()

    def close(self) -> None:
        """Close the client of the writes."""
        self._transactions.close()

    def alone(self, write: Callable[[], _Result], *, dry_run: bool = False) -> _Result:
        """Run a write that is checked against every earlier write, of any instance.

        The write holds the turn, and every record has been read. It is repeated if another instance
        has begun to write meanwhile. Dry runs have a turn of their own: they read what is in force
        when they begin, while writes proceed.

        Parameters
        ----------
        write : callable
            Checks and writes, by `write` at most once.
        dry_run : bool
            Whether it only checks.

        Raises
        ------
        BusyError
            When other writes take too long, or other instances write all the time.
        ServiceError
            As raised by `write`, or when the broker does not answer.
        """
        if dry_run:
            with self._dry_turns.take():
                self._log.read_to_end(self._settings.broker_timeout_seconds)
                return write()
        with self._turns.take():
            for _ in range(_ATTEMPTS):
                try:
                    self._transactions.begin()
                    self._log.read_to_end(self._settings.broker_timeout_seconds)
                    return write()
                except OvertakenError:
                    _LOGGER.info("another instance writes the configuration; the write is repeated")
        raise BusyError("other instances of the service write all the time; nothing was written")

    def put(
        self,
        wanted: Iterable[Wanted],
        precondition: Callable[[Sequence[Resource]], None],
        now_us: int,
        *,
        prune: bool = False,
        dry_run: bool = False,
        by: Caller = EVERYONE,
    ) -> WrittenConfiguration:
        """Register all resources of a configuration, or none of them.

        Missing topics are created first, even for unchanged resources that the caller may write.

        Parameters
        ----------
        wanted : iterable of Wanted
            The resources.
        precondition : callable
            Called with the resources in force; raises PreconditionError if the caller did not
            expect them.
        now_us : int
            Time of the write, in µs since 1970.
        prune : bool
            Delete the resources that the configuration does not contain.
        dry_run : bool
            Run all checks, write nothing.
        by : Caller
            Who writes; needs the right to every resource that changes. A viewer may run a dry run.

        Raises
        ------
        ServiceError
            When the write is rejected or Kafka does not answer.
        """
        if not dry_run:
            by.require_role(Role.EDITOR)
        every = list(wanted)

        def write() -> WrittenConfiguration:
            present = self._registry.configuration()
            precondition(present)
            plan = self._planner.plan(every, now_us, prune=prune, present=present)
            for it in plan.changes:
                if it.change != "unchanged" and by.role >= Role.EDITOR:
                    by.require_name(it.resource.kind, it.resource.name)
            if dry_run:
                return WrittenConfiguration(plan.changes, tag=tag_of(to_documents(present)))
            self._topic_rules.create(
                {
                    topic: users[0].kind
                    for topic, users in plan.topics.items()
                    if any(by.may_write(it.name) for it in users)
                }
            )
            changes = in_order_of_writing(plan.changes)
            if not changes:
                return WrittenConfiguration(plan.changes, tag=self.tag())
            timeout = self._settings.write_timeout_seconds
            deadline = time.monotonic() + timeout
            effects = [self._effect_of(it) for it in changes]
            offset = self.write(records_of(plan.changes), effects, by, now_us)
            applied = self._log.wait_for(offset, max(0.0, deadline - time.monotonic()))
            # The tag is that of this write, because other writes wait for the turn.
            return WrittenConfiguration(plan.changes, offset, self.tag() if applied else None)

        return self.alone(write, dry_run=dry_run)

    def tag(self) -> str:
        """Return the tag of the configuration in force."""
        return tag_of(to_documents(self._registry.configuration()))

    def write(
        self,
        records: Sequence[NewRecord],
        effects: Sequence[Effect],
        by: Caller,
        now_us: int,
    ) -> int:
        """Write config records in one transaction, with access control also their audit records.

        Called within `alone`.

        Parameters
        ----------
        records : sequence of NewRecord
            Records of the config topic; empty: only audit records are written.
        effects : sequence of Effect
            Effects of the write, one for each record if there are records.
        by : Caller
            Who writes.
        now_us : int
            Time of the write, in µs since 1970.

        Returns
        -------
        int
            Offset of the last config record; -1: no records were given.

        Raises
        ------
        OvertakenError
            When another instance has begun to write.
        BrokerError
            When the transaction was aborted, or its commit was not confirmed in time.
        """

        def audited(offsets: Sequence[int]) -> Iterable[NewRecord]:
            return audit_records(effects, by, now_us, offsets or [None] * len(effects))

        others = Others(self._settings.topics.audit, audited)
        offset = self._transactions.write(
            records,
            self._settings.write_timeout_seconds,
            others if self._settings.is_protected else None,
        )
        if offset >= 0:
            self._log.expect_marker(offset + 1)
        return offset

    def _effect_of(self, change: Change) -> Effect:
        stored = self._registry.get(change.resource.kind, change.resource.name)
        before = None if stored is None else stored.resource
        return effect_of(before, None if change.change == "deleted" else change.resource)


def in_order_of_writing(changes: Iterable[Change]) -> list[Change]:
    """Return the changes that need a record, so that references hold after each record if possible.

    Deleted conditions are first. Templates, streams and conditions follow, then deleted streams
    and deleted templates.
    """

    def place(change: Change) -> tuple[int, int, str]:
        kind = KIND_ORDER.index(change.resource.kind)
        if change.change != "deleted":
            return 1, kind, change.resource.name
        return 0 if change.resource.kind == "condition" else 2, -kind, change.resource.name

    return sorted((it for it in changes if it.change != "unchanged"), key=place)


def records_of(changes: Iterable[Change]) -> list[NewRecord]:
    """Return the records of changes, in the order of writing."""
    return [_record_of(it) for it in in_order_of_writing(changes)]


def _record_of(change: Change) -> NewRecord:
    resource = change.resource
    if change.change == "deleted":
        return NewRecord(resource.key, None, deletion_headers(resource.version))
    return NewRecord(resource.key, orjson.dumps(resource.to_record()))
