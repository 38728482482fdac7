"""Plan of a configuration write: checks of all resources together, and the changes.

The resources are checked in the state that the write would leave. A condition may therefore name a
stream of the same configuration, and both may change at once. The rules are those of the routes of
single resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS, condition_from_document, to_condition
from correlation.resources.records import (
    Resource,
    ResourceKind,
    stream_to_document,
    template_to_document,
)
from service.checks import ResourceChecks
from service.configuration_changes import Change, change_of
from service.documents.configuration import KIND_ORDER
from service.documents.fields import name_as_written
from service.documents.unchanged import is_unchanged
from service.errors import (
    MAX_PROBLEMS,
    DocumentErrors,
    FieldProblem,
    InvalidConfigurationError,
    ServiceError,
    first_problems,
)
from service.topic_rules import TOPIC_FIELDS

if TYPE_CHECKING:
    from service.registry import Registry
    from service.topic_rules import TopicSurvey

Key = tuple[ResourceKind, str]
Document = dict[str, Any]
_ADD = "add it to the configuration, or register it first"
_PRUNED = "add it to the configuration: prune deletes all resources that it does not contain"


class Wanted(NamedTuple):
    """A resource of a configuration.

    Parameters
    ----------
    kind, name
        Kind and name of the resource.
    document : dict
        The document, with durations in µs and all defaults; `written` if problems were found.
    paused : bool or None
        Whether the condition is paused; None: as it is, a new condition runs.
    written : mapping
        The document as the user sent it.
    problems : tuple of FieldProblem
        Problems of the document, found without other resources.
    """

    kind: ResourceKind
    name: str
    document: Document
    paused: bool | None
    written: Mapping[str, Any]
    problems: tuple[FieldProblem, ...] = ()

    @property
    def key(self) -> Key:
        """Kind and name."""
        return self.kind, self.name


class Plan(NamedTuple):
    """Changes, sorted by kind and name, and topics that must be created, each with its users."""

    changes: tuple[Change, ...]
    topics: Mapping[str, Sequence[Resource]]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the write of a configuration.

    Parameters
    ----------
    registry : Registry
        The resources in force.
    survey : callable
        Asks the broker about the topics that documents name, as `TopicRules.survey`.
    """

    registry: Registry
    survey: Callable[[Iterable[tuple[ResourceKind, str | None]]], TopicSurvey]

    def plan(
        self,
        wanted: Iterable[Wanted],
        now_us: int,
        *,
        prune: bool,
        present: Sequence[Resource] | None = None,
    ) -> Plan:
        """Check a configuration and compute its changes.

        Parameters
        ----------
        wanted : iterable of Wanted
            Resources with different keys, including those whose documents have problems.
        now_us : int
            Time of the write, in µs since 1970.
        prune : bool
            Whether resources that the configuration does not contain are deleted.
        present : sequence of Resource or None
            The resources in force; None: those of the registry now.

        Raises
        ------
        InvalidConfigurationError
            When resources are not valid; names each resource and field, up to `MAX_PROBLEMS`.
        BrokerError, TopicRefusedError
            When the broker does not answer or refuses to describe a topic.
        """
        if present is None:
            present = self.registry.configuration()
        draft = _Draft(self.registry, list(wanted), now_us, present, prune=prune)
        draft.check()
        if draft.is_full:
            draft.raise_problems()
        changes = draft.changes
        remaining = [it.resource for it in changes if it.change != "deleted"]
        survey = self.survey([(it.kind, _topic_of(it)) for it in remaining])
        topics: dict[str, list[Resource]] = {}
        for it in remaining:
            topic = draft.check_topic(it, survey)
            if topic is not None:
                topics.setdefault(topic, []).append(it)
        draft.raise_problems()
        return Plan(changes, topics)


def find_problems(
    registry: Registry, wanted: Iterable[Wanted], now_us: int, *, prune: bool
) -> tuple[FieldProblem, ...]:
    """Find the problems of a configuration that is not written; topics are not checked.

    Parameters
    ----------
    registry : Registry
        The resources in force.
    wanted, now_us, prune
        As of `Planner.plan`.
    """
    draft = _Draft(registry, list(wanted), now_us, registry.configuration(), prune=prune)
    draft.check()
    return draft.problems


class _Draft:
    """The state that a configuration would leave, and the problems found so far."""

    def __init__(
        self,
        registry: Registry,
        wanted: list[Wanted],
        now_us: int,
        present: Sequence[Resource],
        *,
        prune: bool,
    ) -> None:
        self._registry = registry
        self._wanted = {it.key: it for it in wanted}
        self._now_us = now_us
        self._present = {(it.kind, it.name): it for it in present}
        self._before = registry.checks(present)
        # Problems by resource; a resource with problems is missing in `_after` if it is not usable.
        self._problems: dict[Key, tuple[FieldProblem, ...]] = {
            it.key: it.problems for it in wanted if it.problems
        }
        self._after = {
            key: it for key, it in self._present.items() if key in self._wanted or not prune
        }
        self._deleted = [it for key, it in self._present.items() if key not in self._after]
        for key in self._problems:
            self._after.pop(key, None)
        # Resources with problems, or that refer to others with problems: their references to those
        # are not checked.
        self._partly = [it for it in wanted if it.problems]
        self._remedy = _PRUNED if prune else _ADD

    @property
    def is_full(self) -> bool:
        """Whether more resources have problems than an answer lists."""
        return len(self._problems) > MAX_PROBLEMS

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes, sorted by kind and name."""
        found = [
            change_of(self._present.get(key), it)
            for key, it in self._after.items()
            if key in self._wanted
        ]
        found += [Change("deleted", it) for it in self._deleted]
        return tuple(
            sorted(found, key=lambda it: (KIND_ORDER.index(it.resource.kind), it.resource.name))
        )

    @property
    def problems(self) -> tuple[FieldProblem, ...]:
        """The problems found, in the order of the configuration."""
        return tuple(
            replace(problem, resource="/".join(key))
            for key in self._wanted
            for problem in self._problems.get(key, ())
        )

    def check(self) -> None:
        """Build all resources, and check them against each other."""
        for kind in KIND_ORDER:
            self._read(kind)
        self._check_together()

    def _read(self, kind: ResourceKind) -> None:
        """Build the resources of a kind from their documents; those of earlier kinds are known."""
        checks, unread = self._checks(), self._unread()
        for it in self._of(kind):
            if self.is_full:
                return
            if _named_by(it) & unread:
                self._after.pop(it.key, None)
                self._partly.append(it)
                continue
            document, errors = it.document, DocumentErrors()
            with errors:
                version = self._registry.next_version(kind, it.name)
                if kind == "template":
                    found = Resource(kind, it.name, version, 0, document).to_template()
                    document = template_to_document(found)
                elif kind == "stream":
                    document = stream_to_document(checks.read_stream(it.name, document))
                else:
                    condition_from_document(it.name, version, document)
            if errors.problems:
                self._add(it, errors.problems)
                self._after.pop(it.key, None)
                self._partly.append(it._replace(problems=errors.problems))
            else:
                self._after[it.key] = self._next(it, document)

    def _check_together(self) -> None:
        """Check streams and conditions against each other, and documents with problems."""
        if self.is_full:
            return
        checks = self._checks()
        conditions = {it.name for it in self._of("condition")}
        for it in self._of("stream"):
            if it.key in self._after and not self.is_full:
                self._run(
                    it, checks.check_stream, checks.streams[it.name], self._before, conditions
                )
        for it in self._of("condition"):
            if it.key in self._after and not self.is_full:
                version = self._after[it.key].version
                self._run(it, checks.check_condition, it.name, version, it.document)
        for it in self._partly:
            self._add(it, checks.further_problems(it.kind, it.written, it.problems))

    def check_topic(self, resource: Resource, survey: TopicSurvey) -> str | None:
        """Check the topic of a resource that remains; return it if it must be created."""
        errors = DocumentErrors()
        with errors:
            return survey.check(resource.kind, _topic_of(resource))
        self._add(self._wanted[resource.kind, resource.name], errors.problems)
        return None

    def raise_problems(self) -> None:
        """Raise the problems.

        Raises
        ------
        InvalidConfigurationError
            When problems were found.
        """
        found = self.problems
        if found:
            first = found[0]
            raise InvalidConfigurationError(
                f"{first.resource}: {first.field or 'document'}: {first.problem}",
                first_problems(found),
            )

    def _of(self, kind: ResourceKind) -> list[Wanted]:
        """Return the wanted resources of a kind without known problems."""
        return [
            it for it in self._wanted.values() if it.kind == kind and it.key not in self._problems
        ]

    def _run(self, it: Wanted, check: Callable[..., object], *arguments: object) -> None:
        """Run a check and collect its problems."""
        try:
            check(*arguments)
        except (InvalidFieldError, ServiceError) as error:
            if not error.problems:
                raise
            self._add(
                it,
                [
                    FieldProblem.of(found) if isinstance(found, InvalidFieldError) else found
                    for found in error.problems
                ],
            )

    def _add(self, it: Wanted, problems: Iterable[FieldProblem]) -> None:
        named = tuple(
            replace(found, field=name_as_written(found.field, it.written)) for found in problems
        )
        if named:
            self._problems[it.key] = (*self._problems.get(it.key, ()), *named)

    def _next(self, it: Wanted, document: Document) -> Resource:
        """Return the resource after the write; the present one if nothing changes."""
        current = self._present.get(it.key)
        if current is None:
            version = self._registry.next_version(it.kind, it.name)
            return Resource(it.kind, it.name, version, self._now_us, document, bool(it.paused))
        paused = current.paused if it.paused is None else it.paused
        if not is_unchanged(current, document):
            version = self._registry.next_version(it.kind, it.name)
            return Resource(it.kind, it.name, version, self._now_us, document, paused)
        if paused == current.paused:
            return current
        return replace(current, updated_at_us=self._now_us, paused=paused)

    def _unread(self) -> frozenset[Key]:
        return frozenset(self._wanted.keys() - self._after.keys())

    def _checks(self) -> ResourceChecks:
        """Return the state after the write, as far as it is known."""
        after = self._after
        return ResourceChecks(
            {it.name: it for it in after.values() if it.kind == "template"},
            {it.name: it.to_stream() for it in after.values() if it.kind == "stream"},
            tuple(to_condition(it) for it in after.values() if it.kind == "condition"),
            self._before.max_buffered_events,
            self._unread(),
            self._remedy,
        )


def _topic_of(resource: Resource) -> str | None:
    """Return the topic that a document names, or None."""
    topic: str | None = resource.document.get(TOPIC_FIELDS[resource.kind])
    return topic


def _named_by(it: Wanted) -> set[Key]:
    """Return the resources to which a document refers."""
    if it.kind == "stream":
        return {("template", name) for name in it.document["templates"]}
    if it.kind == "condition":
        kind = KINDS[it.document["kind"]]
        return {("stream", found.stream) for found in kind.streams_named(it.document)}
    return set()
