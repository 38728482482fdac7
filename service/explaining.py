"""Explanation of events: given in the request or looked up in Kafka, explained by the kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from correlation.explaining import FindList, GivenRecord, SearchEffect
from correlation.kinds import KINDS, to_condition
from service.documents.given_records import read_given
from service.errors import EventNotFoundError, FieldProblem, InvalidDocumentError
from service.lookup import Finding, RecordFinder, Span, Wanted, wanted_by_id

if TYPE_CHECKING:
    from correlation.condition_kind import ConditionKind
    from correlation.operators import Condition
    from correlation.resources.streams import Stream
    from service.fold import Stored
    from service.settings import Settings

    Document = Mapping[str, Any]

# Max number of found records per role. With uncertain instants, the probability is computed from
# all of them together; its cost grows faster than their square.
_FOUND = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """The events of a request.

    Parameters
    ----------
    fields : mapping of str to document
        Events that are fields of the request, by role.
    events : mapping of str to document, or None
        The field `events`: those of kinds whose events are named by users; None: it is missing.
    """

    fields: Mapping[str, Document]
    events: Mapping[str, Document] | None = None


class Explainer:
    """Explains how registered conditions evaluate events.

    Parameters
    ----------
    settings : Settings
        Broker address, and the bounds of a lookup.
    """

    def __init__(self, settings: Settings) -> None:
        self._finder = RecordFinder(settings)

    def explain(
        self,
        stored: Stored,
        streams: Mapping[str, Stream],
        asked: Asked,
        span: Span,
        find_list: FindList | None = None,
    ) -> dict[str, Any]:
        """Explain how a condition evaluates events.

        Parameters
        ----------
        stored : Stored
            The condition.
        streams : mapping of name to Stream
            The registered streams.
        asked : Asked
            An event for each role of the kind.
        span : Span
            Range of Kafka timestamps in which ids are looked up.
        find_list : callable or None
            Finds the present list of a join key, of kinds with lists.

        Raises
        ------
        InvalidDocumentError, InvalidFieldError
            When the form of an event is not valid.
        EventNotFoundError
            When an id was not found.
        BrokerError, NotReadyError
            When Kafka does not answer, or too many lookups are running.
        """
        condition = to_condition(stored.resource)
        kind = KINDS[condition.kind]
        all_roles = kind.roles(condition)
        documents = _check_roles(kind, condition, asked)
        roles = {role: stream for role, stream in all_roles.items() if role in documents}
        # Name of the field of each event.
        field = "events.{}" if kind.names_events else "{}"
        given: dict[str, GivenRecord] = {}
        wanted: dict[str, Wanted] = {}
        for role, name in roles.items():
            document = documents[role]
            if set(document) == {"id"}:
                stream = streams[name]
                event_id = _read_id(field.format(role), document["id"])
                wanted[role] = wanted_by_id(stream.topic, stream.mapping, event_id)
            else:
                given[role] = read_given(field.format(role), document)
        notes = []
        if wanted:
            findings = self._finder.find(wanted, span)
            _check_found(wanted, findings, span, field)
            for role, finding in findings.items():
                if finding.record is not None:
                    given[role] = finding.record
                notes += _describe_matches(role, finding)
        searched = {
            role: Wanted(streams[all_roles[role]].topic, decides, most=_FOUND)
            for role, decides in kind.search(condition, streams, given).items()
        }
        more: dict[str, Any] = {}
        if kind.lists is not None and find_list is not None:
            more["find_list"] = find_list
        if not searched:
            answer = kind.explain(condition, streams, given, **more)
        else:
            findings = self._finder.find(searched, span)
            found = {role: finding.records for role, finding in findings.items()}
            answer = kind.explain(condition, streams, given, found=found, **more)
            for role, records in found.items():
                if records and role not in given:
                    given[role] = records[0]
                    roles[role] = all_roles[role]
            notes += [
                _describe_search(role, kind.search_effect, searched[role].topic, span, finding)
                for role, finding in findings.items()
            ]
            answer |= _limit_verdict(answer, kind.search_effect, findings.values(), span)
        notes += _describe_condition(stored, given)
        return {
            "condition": condition.name,
            "version": condition.version,
            "kind": condition.kind,
            "roles": list(roles),
            **answer,
            "notes": [*answer["notes"], *notes],
        }


def _check_roles(kind: ConditionKind, condition: Condition, asked: Asked) -> Mapping[str, Document]:
    """Return the event of each role; there is one for each, except optional ones, and no others."""
    roles, optional = kind.roles(condition), kind.optional_roles(condition)
    given: Mapping[str, Document] = {**asked.fields, **(asked.events or {})}
    others: list[str] = []
    prefix, remedy = "", f"use {', '.join(roles)}"
    if kind.names_events:
        given, others = asked.events or {}, [*asked.fields]
        prefix, remedy = "events.", f"write the events {', '.join(roles)} into the field events"
    problems = [
        FieldProblem(f"{prefix}{role}", "is missing", f"add an event of stream {stream}")
        for role, stream in roles.items()
        if role not in given and role not in optional
    ]
    problems += [
        FieldProblem(
            f"{prefix}{role}", "is not an event of this condition", f"use {', '.join(roles)}"
        )
        for role in given
        if role not in roles
    ]
    problems += [FieldProblem(it, "is not an event of this condition", remedy) for it in others]
    if problems:
        detail = f"{problems[0].field}: {problems[0].problem}"
        raise InvalidDocumentError(detail, tuple(problems))
    return given


def _read_id(field: str, value: object) -> bytes:
    if isinstance(value, bool) or not isinstance(value, str | int):
        remedy = "write the id, or the event itself"
        raise InvalidDocumentError.of(f"{field}.id", "must be a string or an integer", remedy)
    return str(value).encode()


def _check_found(
    wanted: Mapping[str, Wanted], findings: Mapping[str, Finding], span: Span, field: str
) -> None:
    """Raise EventNotFoundError for ids that were not found, with the range searched."""
    problems = []
    for role, finding in findings.items():
        if finding.record is not None:
            continue
        where = _describe_place(finding, wanted[role].topic, span)
        remedy = "send the event itself"
        if not (finding.exhaustive and finding.in_time):
            remedy += ", or a narrower time range: since, until"
        event_id = (wanted[role].event_id or b"").decode("utf-8", "backslashreplace")[:80]
        problems.append(
            FieldProblem(
                f"{field.format(role)}.id", f"the id {event_id!r} was not found {where}", remedy
            )
        )
    if problems:
        raise EventNotFoundError(f"{problems[0].field}: {problems[0].problem}", tuple(problems))


def _describe_place(finding: Finding, topic: str, span: Span) -> str:
    """Return which records were searched."""
    asked_range = span != Span()
    where = f"among {finding.searched} records of topic {topic}"
    if not finding.in_time:
        return f"{where}, before the time limit was reached"
    if not finding.exhaustive:
        return f"{where}, the newest" + (" of the range" if asked_range else "")
    return f"{where}, all of the range" if asked_range else f"{where}, all its records"


def _describe_search(
    role: str, effect: SearchEffect, topic: str, span: Span, finding: Finding
) -> str:
    where = _describe_place(finding, topic, span)
    if not finding.matches:
        return f"no event {role} can {effect.verb} {effect.object} {where}"
    used = "" if _has_all(finding) else f"; the newest {len(finding.records)} are used"
    return f"{finding.matches} events {role} can {effect.verb} it {where}{used}"


def _has_all(finding: Finding) -> bool:
    """Return whether all records that match are used."""
    return finding.matches == len(finding.records)


def _limit_verdict(
    answer: Mapping[str, Any], effect: SearchEffect, findings: Iterable[Finding], span: Span
) -> dict[str, Any]:
    """Return whether all records were searched, and an explanation that says so if it matters.

    Further records cannot change a verdict that is not satisfied.
    """
    complete = span == Span() and all(
        it.exhaustive and it.in_time and _has_all(it) for it in findings
    )
    if complete or answer["verdict"] != "satisfied":
        return {"complete": complete}
    others = f"others may {effect.verb} {effect.object}"
    limit = f"only a part of the records was searched, and {others}"
    return {"complete": False, "explanation": f"{answer['explanation']}; {limit}"}


def _describe_matches(role: str, finding: Finding) -> list[str]:
    if finding.matches <= 1:
        return []
    return [f"{finding.matches} records have the id of {role}; the newest is used"]


def _describe_condition(stored: Stored, given: Mapping[str, GivenRecord]) -> list[str]:
    """List reasons why the job may not have evaluated the pair with the present condition."""
    resource, notes = stored.resource, []
    if resource.paused:
        notes.append("the condition is paused: it is not evaluated")
    arrivals = [record.record_timestamp_us for record in given.values() if record.place is not None]
    known = [it for it in arrivals if it is not None]
    if len(known) == len(given) and max(known) < resource.updated_at_us:
        notes.append(
            "the events arrived before the last change of the condition; the job used the "
            "condition of that time"
        )
    return notes
