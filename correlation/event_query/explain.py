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
if an event of a negated alias then stops the combination with probability 1.

Other negated events than the given ones may stop the combination. `find_stopping` tests the records
of their topics. Its answer is complete if all records that match are found: with uncertain instants
the probability follows from all of them together. The explanation names the progress of the streams
after which no further event can stop the combination (docs/proofs.md, P-QUERY-PROGRESS).

Cost. O(size of the query) for each record. With uncertain instants that of `absence.exact`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from correlation.event_query.checking import is_uncertain, relevance_of
from correlation.event_query.combination import Combination, Identities, key_of, show_value
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.meaning import bindings
from correlation.event_query.probability import (
    NegatedEvent,
    Probability,
    known_event,
    show_chance,
)
from correlation.event_query.query import EventPattern
from correlation.event_query.relevance.shifts import join_words
from correlation.explaining import CONTRACT, GivenRecord, ReadEvent, Step, Steps, describe_delay
from correlation.resources.streams import Stream
from correlation.resources.times import describe_moment

Found = Mapping[str, Sequence[GivenRecord]]
_NOTHING: Found = MappingProxyType({})
STEPS = (
    CONTRACT,
    Step("key", "the join keys of the positive events differ"),
    Step("attributes", "an attribute does not match its constant"),
    Step("variables", "attributes with the same variable differ"),
    Step("relations", "a relation among the positive events does not hold"),
    Step("absence", "a negated event stops the combination"),
    Step("threshold", "the probability is below the threshold"),
)
_UNCERTAIN_STEPS = tuple(it.name for it in STEPS)
_STEPS = _UNCERTAIN_STEPS[:-1]


def explain_combination(
    condition: EventQueryCondition,
    streams: Mapping[str, Stream],
    given: Mapping[str, GivenRecord],
    found: Found = _NOTHING,
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
    found : mapping of alias to sequence of GivenRecord
        Further records of negated aliases, newest first: those that `find_stopping` accepts.

    Returns
    -------
    dict
        JSON-able: verdict, failed_step, explanation, steps, notes; `events`: the record of each
        alias that was given, or the newest found; `found`: the records of each alias that were
        found; and, if the positive records are events, `time`, the time of the result, and
        `decided_when`: the progress of each stream, in µs, at which the verdict is final (missing:
        the stream does not matter). With uncertain instants also `absence`, the probability and the
        facts from which it follows: see `probability.Probability.describe`.
    """
    return _Explanation(condition, streams, given, found).describe()


def find_stopping(
    condition: EventQueryCondition,
    streams: Mapping[str, Stream],
    given: Mapping[str, GivenRecord],
) -> dict[str, Callable[[GivenRecord], bool]]:
    """Return a test for each negated alias: whether a record may stop the positive events.

    Parameters
    ----------
    condition, streams, given
        As for `explain_combination`.

    Returns
    -------
    dict
        Empty if the positive events are not a combination, or if a given event stops it.
    """
    explanation = _Explanation(condition, streams, given, _NOTHING)
    # A probability below the threshold is that of the given events only.
    if explanation.describe()["failed_step"] not in {None, "threshold"}:
        return {}
    return {it.alias: partial(explanation.is_stopped_by, it) for it in condition.query.negated}


class _Explanation:
    """The steps for one combination."""

    def __init__(
        self,
        condition: EventQueryCondition,
        streams: Mapping[str, Stream],
        given: Mapping[str, GivenRecord],
        found: Found,
    ) -> None:
        self._condition = condition
        self._query = condition.query
        self._streams = streams
        self._combination = Combination(condition, streams, given)
        self._positive = self._combination.reads
        self._identities = Identities()
        for read in self._positive.values():
            self._identities.number(read)
        # The given record of each negated alias, and the records found.
        self._given: dict[str, ReadEvent] = {}
        self._found: dict[str, list[ReadEvent]] = {}
        for it in self._query.negated:
            if it.alias in given:
                self._given[it.alias] = self._combination.read(it.alias, given[it.alias])
            if it.alias in found:
                self._found[it.alias] = [
                    self._combination.read(it.alias, record) for record in found[it.alias]
                ]
        self._steps = Steps(_STEPS if condition.threshold is None else _UNCERTAIN_STEPS)
        self._probability: Probability | None = None
        self._weighed: dict[str, Any] | None = None

    def describe(self) -> dict[str, Any]:
        breaches = list(self._combination.breaches())
        aliases = join_words([it.alias for it in self._query.positive])
        self._steps.take(
            passed=not breaches,
            detail="; ".join(breaches) or f"valid events of their streams: {aliases}",
        )
        found: dict[str, Any] = {"time": None, "decided_when": None}
        if not breaches:
            exact = self._condition.threshold is None
            for check in (
                self._check_keys,
                self._check_attributes,
                self._check_variables,
                *((self._check_relations, self._check_absence) if exact else self._weigh()),
            ):
                failure, detail = check()
                self._steps.take(passed=not failure, detail=failure or detail)
            found = {"time": self._combination.time(), "decided_when": self._decided_when()}
        return {
            **self._steps.describe(),
            "events": {alias: it.describe() for alias, it in self._shown().items()},
            "found": {
                alias: [it.describe() for it in reads] for alias, reads in self._found.items()
            },
            "type": self._query.type,
            **found,
            **({} if self._weighed is None else {"absence": self._weighed}),
            "notes": list(self._notes()),
        }

    def is_stopped_by(self, event: EventPattern, record: GivenRecord) -> bool:
        """Return whether a record of a negated event may stop the positive ones, a combination."""
        read = self._combination.read(event.alias, record)
        if self._condition.threshold is None:
            return not self._combination.why_not_stopped(event, read)
        if self._combination.mismatch(event, read):
            return False
        # An event without a number is another one than the positive events.
        known = known_event(read, self._identities.find(read))
        return self._chances().is_reduced_by(NegatedEvent(event.alias, known))

    def _shown(self) -> dict[str, ReadEvent]:
        """Return one record of each alias."""
        newest = {alias: reads[0] for alias, reads in self._found.items() if reads}
        return {**self._positive, **newest, **self._given}

    def _negated(self, event: EventPattern) -> list[ReadEvent]:
        """Return the records of a negated alias, each event once."""
        given = [self._given[event.alias]] if event.alias in self._given else []
        reads: dict[int, ReadEvent] = {}
        for it in [*given, *self._found.get(event.alias, ())]:
            reads.setdefault(self._identities.number(it), it)
        return list(reads.values())

    def _check_keys(self) -> tuple[str, str]:
        """Return the failure of the step, or "", and its detail otherwise; as all checks do."""
        if self._streams[self._condition.streams[0]].partitioning.by != "key":
            return "", "the streams are not partitioned by key: all events meet"
        keys = {alias: key_of(read) for alias, read in self._positive.items()}
        if len(set(keys.values())) == 1:
            return "", f"the key is {next(iter(keys.values()))!r}"
        shown = ", ".join(f"{alias} has the key {key!r}" for alias, key in keys.items())
        return f"{shown}: only events with equal keys meet", ""

    def _check_attributes(self) -> tuple[str, str]:
        return "; ".join(self._combination.misfits()), "all constants match"

    def _check_variables(self) -> tuple[str, str]:
        failure = next(self._combination.clashes(), "")
        attributes = {alias: read.attributes for alias, read in self._positive.items()}
        values = {name: it.value for name, it in bindings(self._query.positive, attributes)}
        shown = ", ".join(f"{name} = {show_value(value)}" for name, value in values.items())
        return failure, shown or "the positive events have no variables"

    def _check_relations(self) -> tuple[str, str]:
        return self._combination.broken(), "all relations among the positive events hold"

    def _check_absence(self) -> tuple[str, str]:
        stops: list[str] = []
        reasons = []
        for event in self._query.negated:
            for read in self._negated(event):
                reason = self._combination.why_not_stopped(event, read)
                if reason:
                    reasons.append(f"{event.alias} does not stop it: {reason}")
                elif not stops:
                    relations = self._combination.stopping_relations(event)
                    named = f"event {event.alias} ({read.describe()['id']})"
                    stops.append(f"{named} stops the combination: {relations}")
        if not self._query.negated:
            return "", "the query has no negated event"
        if stops:
            return "; ".join([*stops, *reasons]), ""
        return "", "; ".join(reasons) or "no negated event was given or found"

    def _weigh(self) -> Iterator[Callable[[], tuple[str, str]]]:
        """Yield the steps of a combination with uncertain instants, and compute its probability."""
        yield self._check_exact_relations
        yield self._check_certain_absence
        yield self._check_threshold

    def _chances(self) -> Probability:
        if self._probability is None:
            positive = {
                alias: known_event(read, self._identities.number(read))
                for alias, read in self._positive.items()
            }
            self._probability = Probability(self._query, self._uncertain(), positive)
        return self._probability

    def _weighing(self) -> dict[str, Any]:
        """Return the probability and the facts from which it follows."""
        if self._weighed is None:
            threshold = self._condition.threshold
            if threshold is None:
                raise TypeError("the query has no threshold")
            negated = [
                NegatedEvent(it.alias, known_event(read, self._identities.number(read)))
                for it in self._query.negated
                for read in self._negated(it)
                if not self._combination.mismatch(it, read)
            ]
            self._weighed = self._chances().describe(negated, threshold)
        return self._weighed

    def _uncertain(self) -> set[str]:
        stream_of = self._condition.stream_of
        return {it for it, name in stream_of.items() if is_uncertain(self._streams[name])}

    def _check_exact_relations(self) -> tuple[str, str]:
        if not self._uncertain() & self._positive.keys():
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
            for read in self._negated(event)
            if (reason := self._combination.mismatch(event, read))
        ]
        for it in weighed["candidates"]:
            if it["place"] == "inside":
                return f"event {it['alias']} ({it['id']}) stops the combination with certainty", ""
            chance = show_chance(it, "in_window")
            reasons.append(f"{it['alias']} ({it['id']}) stops it with probability {chance}")
        if not self._query.negated:
            return "", "the query has no negated event"
        return "", "; ".join(reasons) or "no negated event was given or found"

    def _check_threshold(self) -> tuple[str, str]:
        weighed = self._weighing()
        shown = f"the probability is {show_chance(weighed, 'probability')}"
        if weighed["reported"]:
            return "", f"{shown}, the threshold {weighed['threshold']}"
        return f"{shown}, below the threshold {weighed['threshold']}", ""

    def _decided_when(self) -> dict[str, int]:
        """Return the progress of each stream at which the result is final, in µs."""
        leads = relevance_of(self._condition, self._streams).progress.leads
        time = self._combination.time()
        return {name: time - int(by) for name, by in leads.items() if math.isfinite(by)}

    def _notes(self) -> Iterator[str]:
        if self._steps.failed is None:
            when = [
                f"{name} has reached {describe_moment(time_us)}"
                for name, time_us in self._decided_when().items()
            ]
            yield f"the result is reported when {join_words(when)}"
            known = {**self._given, **self._found}
            missing = [it.alias for it in self._query.negated if it.alias not in known]
            if missing:
                yield f"an event {' or '.join(missing)} that was not given may stop it"
        for alias, read in self._shown().items():
            yield from describe_delay(alias, read)
