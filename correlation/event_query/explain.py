"""Explanation why an event query reports a combination of events, or not.

Problem. For a record of each positive alias, and of any negated aliases, find the verdict of the
job, and the first step that failed:

    contract      a positive event is not a valid event of its stream
    key           the positive events have different join keys and never meet
    attributes    an attribute does not match its constant
    variables     attributes with the same variable differ
    relations     a relation among the positive events does not hold
    absence       a given negated event stops the combination
    threshold     uncertain instants only: the probability is below the threshold

With uncertain instants, `relations` fails if the relations hold with probability 0, and `absence`
if a given negated event then stops the combination with probability 1.

A negated event that was not given may still stop the combination: `find_stopping` tests the records
of its topic, and the answer names the progress of the streams after which no further event can
(docs/proofs.md, P-QUERY-PROGRESS).

Cost. O(size of the query).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from correlation.event_query.checking import is_uncertain, relevance_of
from correlation.event_query.comparing import round_constants, satisfies
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.language.writer import write_attribute, write_formula
from correlation.event_query.meaning import Times, bindings, holds, value_of
from correlation.event_query.probability import describe_probability, known_event, show_chance
from correlation.event_query.query import (
    And,
    Comparison,
    EventPattern,
    Formula,
    Relation,
)
from correlation.event_query.relevance.describe import join_words
from correlation.event_query.relevance.split import split_formula
from correlation.explaining import GivenRecord, ReadEvent, Steps, describe_delay, read_given
from correlation.resources.durations import describe_duration
from correlation.resources.streams import Stream
from correlation.resources.times import describe_moment

_STEPS = ("contract", "key", "attributes", "variables", "relations", "absence")
_UNCERTAIN_STEPS = (*_STEPS, "threshold")


def explain_combination(
    condition: EventQueryCondition,
    streams: Mapping[str, Stream],
    given: Mapping[str, GivenRecord],
) -> dict[str, Any]:
    """Return the verdict on the records of a combination, with every step of the decision.

    Parameters
    ----------
    condition : EventQueryCondition
        The registered condition.
    streams : mapping of name to Stream
        Its streams.
    given : mapping of alias to GivenRecord
        A record for each positive alias, and for any negated ones.

    Returns
    -------
    dict
        JSON-able: verdict, failed_step, explanation, steps, notes; `events`: the record of each
        alias that was given; and, if the positive records are events, `time`, the time of the
        result, and `decided_when`: the progress of each stream, in µs, at which the verdict is
        final (missing: the stream does not matter). With uncertain instants also `absence`, the
        probability and the facts from which it follows: see `probability.describe_probability`.
    """
    return _Explanation(condition, streams, given).describe()


def find_stopping(
    condition: EventQueryCondition,
    streams: Mapping[str, Stream],
    given: Mapping[str, GivenRecord],
) -> dict[str, Callable[[GivenRecord], bool]]:
    """Return a test for each negated alias without an event: whether a record may stop the others.

    Parameters
    ----------
    condition, streams, given
        As for `explain_combination`.

    Returns
    -------
    dict
        Empty if the positive events are not a combination, or if a given event stops it.
    """
    explanation = _Explanation(condition, streams, given)
    if explanation.describe()["failed_step"] is not None:
        return {}
    missing = [it for it in condition.query.negated if it.alias not in given]
    return {it.alias: partial(explanation.is_stopped_by, it) for it in missing}


class _Explanation:
    """The steps for one combination."""

    def __init__(
        self,
        condition: EventQueryCondition,
        streams: Mapping[str, Stream],
        given: Mapping[str, GivenRecord],
    ) -> None:
        self._condition = condition
        self._query = condition.query
        self._streams = streams
        stream_of = condition.stream_of
        self._read: dict[str, ReadEvent] = {
            event.alias: read_given(streams[stream_of[event.alias]], given[event.alias])
            for event in self._query.events
            if event.alias in given
        }
        rounded = round_constants(
            self._query, {alias: streams[name] for alias, name in stream_of.items()}
        )
        self._compared = {event.alias: event.attributes for event in rounded.events}
        self._parts = split_formula(self._query)
        self._steps = Steps(_STEPS if condition.threshold is None else _UNCERTAIN_STEPS)
        self._weighed: dict[str, Any] | None = None

    def describe(self) -> dict[str, Any]:
        broken = [it.alias for it in self._query.positive if self._read[it.alias].event is None]
        self._steps.take(
            passed=not broken,
            detail="; ".join(self._describe_breach(alias) for alias in broken)
            or f"{join_words([it.alias for it in self._query.positive])} satisfy the contract",
        )
        found: dict[str, Any] = {"time": None, "decided_when": None}
        if not broken:
            exact = self._condition.threshold is None
            for check in (
                self._check_keys,
                self._check_attributes,
                self._check_variables,
                *((self._check_relations, self._check_absence) if exact else self._weigh()),
            ):
                failure, detail = check()
                self._steps.take(passed=not failure, detail=failure or detail)
            found = {"time": self._time(), "decided_when": self._decided_when()}
        return {
            **self._steps.describe(),
            "events": {alias: it.describe() for alias, it in self._read.items()},
            "type": self._query.type,
            **found,
            **({} if self._weighed is None else {"absence": self._weighed}),
            "notes": list(self._notes()),
        }

    def is_stopped_by(self, event: EventPattern, record: GivenRecord) -> bool:
        """Return whether a record of a negated event may stop the positive ones, a combination."""
        stream = self._streams[self._condition.stream_of[event.alias]]
        self._read[event.alias] = read_given(stream, record)
        if self._condition.threshold is None:
            stops = not self._why_not_stopped(event)
        else:
            self._weighed = None
            found = self._weighing()["candidates"] if self._may_stop(event) else []
            stops = any(it["alias"] == event.alias and it["in_window"] > 0 for it in found)
        del self._read[event.alias]
        return stops

    def _check_keys(self) -> tuple[str, str]:
        """Return the failure of the step, or "", and its detail otherwise; as all checks do."""
        if self._streams[self._condition.streams[0]].partitioning.by != "key":
            return "", "the streams are not partitioned by key: all events meet"
        keys = {it.alias: self._key(it.alias) for it in self._query.positive}
        if len(set(keys.values())) == 1:
            return "", f"the key is {next(iter(keys.values()))!r}"
        shown = ", ".join(f"{alias} has the key {key!r}" for alias, key in keys.items())
        return f"{shown}: only events with equal keys meet", ""

    def _check_attributes(self) -> tuple[str, str]:
        failures = [it for event in self._query.positive for it in self._misfits(event)]
        return "; ".join(failures), "all constants match"

    def _check_variables(self) -> tuple[str, str]:
        failure = next(self._clashes(self._query.positive), "")
        values = {name: it.value for name, it in bindings(self._query.positive, self._values())}
        shown = ", ".join(f"{name} = {_shown(value)}" for name, value in values.items())
        return failure, shown or "the positive events have no variables"

    def _check_relations(self) -> tuple[str, str]:
        failure = self._first_broken(self._parts.positive)
        return failure, "all relations among the positive events hold"

    def _check_absence(self) -> tuple[str, str]:
        reasons = []
        for event in self._query.negated:
            if event.alias not in self._read:
                continue
            reason = self._why_not_stopped(event)
            if not reason:
                named = self._read[event.alias].describe()["id"]
                return (
                    f"event {event.alias} ({named}) stops the combination: {self._stopping(event)}",
                    "",
                )
            reasons.append(f"{event.alias} does not stop it: {reason}")
        if not self._query.negated:
            return "", "the query has no negated event"
        return "", "; ".join(reasons) or "no negated event was given"

    def _weigh(self) -> Iterator[Callable[[], tuple[str, str]]]:
        """Yield the steps of a combination with uncertain instants, and compute its probability."""
        yield self._check_exact_relations
        yield self._check_certain_absence
        yield self._check_threshold

    def _weighing(self) -> dict[str, Any]:
        """Return the probability and the facts from which it follows."""
        if self._weighed is None:
            threshold = self._condition.threshold
            if threshold is None:
                raise TypeError("the query has no threshold")
            stopping = [it.alias for it in self._query.negated if self._may_stop(it)]
            events = {
                alias: known_event(self._read[alias])
                for alias in [*(it.alias for it in self._query.positive), *stopping]
            }
            self._weighed = describe_probability(
                self._query, self._uncertain(), events, self._own(stopping), threshold
            )
        return self._weighed

    def _uncertain(self) -> set[str]:
        stream_of = self._condition.stream_of
        return {it for it, name in stream_of.items() if is_uncertain(self._streams[name])}

    def _own(self, negated: list[str]) -> set[str]:
        """Return the negated aliases whose event is the uncertain positive event."""
        uncertain = self._uncertain()
        mine = [
            (self._read[it.alias].stream, self._read[it.alias].event)
            for it in self._query.positive
            if it.alias in uncertain
        ]
        return {it for it in negated if (self._read[it].stream, self._read[it].event) in mine}

    def _may_stop(self, event: EventPattern) -> bool:
        """Return whether a negated event was given whose key and attributes match."""
        return event.alias in self._read and not self._mismatch(event)

    def _check_exact_relations(self) -> tuple[str, str]:
        if not self._uncertain() & {it.alias for it in self._query.positive}:
            return self._check_relations()
        weighed = self._weighing()
        shown = show_chance(weighed, "relations")
        if not weighed["relations"]:
            return f"the relations among the positive events hold with probability {shown}", ""
        return "", f"the relations among the positive events hold with probability {shown}"

    def _check_certain_absence(self) -> tuple[str, str]:
        weighed = self._weighing()
        reasons = [
            f"{event.alias} does not stop it: {reason}"
            for event in self._query.negated
            if event.alias in self._read and (reason := self._mismatch(event))
        ]
        for it in weighed["candidates"]:
            if it["place"] == "inside":
                return f"event {it['alias']} ({it['id']}) stops the combination with certainty", ""
            chance = show_chance(it, "in_window")
            reasons.append(f"{it['alias']} ({it['id']}) stops it with probability {chance}")
        if not self._query.negated:
            return "", "the query has no negated event"
        return "", "; ".join(reasons) or "no negated event was given"

    def _check_threshold(self) -> tuple[str, str]:
        weighed = self._weighing()
        shown = f"the probability is {show_chance(weighed, 'probability')}"
        if weighed["reported"]:
            return "", f"{shown}, the threshold {weighed['threshold']}"
        return f"{shown}, below the threshold {weighed['threshold']}", ""

    def _stopping(self, event: EventPattern) -> str:
        parts = self._parts.negated[event.alias].parts
        return " and ".join(map(write_formula, parts)) or "any event of its stream does"

    def _why_not_stopped(self, event: EventPattern) -> str:
        """Return why a given negated event does not stop the combination; "" if it does."""
        return self._mismatch(event) or self._first_broken(self._parts.negated[event.alias])

    def _mismatch(self, event: EventPattern) -> str:
        """Return why a given negated event does not meet the combination; "" if it does."""
        if self._read[event.alias].event is None:
            return self._describe_breach(event.alias)
        first = self._query.positive[0].alias
        if self._key(event.alias) != self._key(first):
            return f"its key is {self._key(event.alias)!r}"
        return next(self._misfits(event), "") or next(
            self._clashes((*self._query.positive, event)), ""
        )

    def _misfits(self, event: EventPattern) -> Iterator[str]:
        """Yield the attributes of an event that do not match their constants."""
        values = self._read[event.alias].attributes
        for it, compared in zip(event.attributes, self._compared[event.alias], strict=True):
            value, pattern = values.get(it.name), compared.pattern
            if isinstance(pattern, Comparison) and not satisfies(value, pattern):
                yield f"{event.alias}.{it.name} is {_shown(value)}, not {write_attribute(it)}"

    def _clashes(self, events: tuple[EventPattern, ...]) -> Iterator[str]:
        """Yield the attributes that differ although they have the same variable."""
        first: dict[str, Any] = {}
        for name, it in bindings(events, self._values()):
            place = f"{it.alias}.{it.attribute}"
            if it.value is None:
                yield f"variable {name}: {place} is missing"
                continue
            other = first.setdefault(name, it)
            if other.value != it.value:
                yield (
                    f"variable {name}: {other.alias}.{other.attribute} is {_shown(other.value)}, "
                    f"{place} is {_shown(it.value)}"
                )

    def _first_broken(self, formula: And) -> str:
        """Return the first part that does not hold, and by how much; "" if all hold."""
        times = self._times()
        for part in formula.parts:
            if not holds(part, times):
                return f"{write_formula(part)} does not hold{_missed_by(part, times)}"
        return ""

    def _times(self) -> dict[str, Times]:
        found = {}
        for alias, read in self._read.items():
            if read.event is not None:
                begin = read.event.earliest if read.stream.lasts else read.event.latest
                found[alias] = Times(begin, read.event.latest)
        return found

    def _values(self) -> dict[str, Mapping[str, Any]]:
        return {alias: read.attributes for alias, read in self._read.items()}

    def _key(self, alias: str) -> object:
        return self._read[alias].describe()["key"]

    def _time(self) -> int:
        times = self._times()
        return max(times[it.alias].end for it in self._query.positive)

    def _decided_when(self) -> dict[str, int]:
        """Return the progress of each stream at which the result is final, in µs."""
        leads = relevance_of(self._condition, self._streams).progress.leads
        return {name: self._time() - int(by) for name, by in leads.items() if math.isfinite(by)}

    def _notes(self) -> Iterator[str]:
        if self._steps.failed is None:
            when = [
                f"{name} has reached {describe_moment(time_us)}"
                for name, time_us in self._decided_when().items()
            ]
            yield f"the result is reported when {join_words(when)}"
            missing = [it.alias for it in self._query.negated if it.alias not in self._read]
            if missing:
                yield f"an event {' or '.join(missing)} that was not given may stop it"
        for alias, read in self._read.items():
            yield from describe_delay(alias, read)

    def _describe_breach(self, alias: str) -> str:
        return f"{alias} {self._read[alias].breach}"


def _missed_by(part: Formula, times: Mapping[str, Times]) -> str:
    if not isinstance(part, Relation):
        return ""
    left, right = value_of(part.left, times), value_of(part.right, times)
    if left == right:
        return ": both are equal"
    place = "after" if left > right else "before"
    return f": the left side is {describe_duration(abs(left - right))} {place} the right side"


def _shown(value: object) -> str:
    return "missing" if value is None else json.dumps(value, ensure_ascii=False)
