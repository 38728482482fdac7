"""Explanation of why a timing condition reports a pair or not.

Problem. For two records, find the job's verdict on them as a pair of the condition, and the first
step that failed:

    contract      a record is not a valid event of its stream
    filter        an event does not match a filter of the condition
    same_event    self-join: both records are the same record
    key           the events have different join keys and are never compared
    expired       the events are too far apart: the job drops one before it reads the other
    threshold     the condition was evaluated and does not hold

Definitions. s = max_B - max_A. *Reach*: the min and max s of any satisfied pair of the two streams,
from which the keep values follow (docs/proofs.md, P-KEEP, P-HISTOGRAM-KEEP). Beyond the reach, one
event is dropped before the other one can arrive. The regions are computed from the declared
lengths, and from supports alone if a stream declares templates or histograms. The job uses the
lengths of the buffered events, whose range is the same or narrower, so its satisfaction regions
contain these (docs/proofs.md, P-EXPLAIN).

Algorithm. The verdict is the job's own decision: `satisfaction.satisfied`, or
`histograms.exact.is_satisfied` for events that are not intervals. The probability is an exact
fraction, for display; its float is never compared.

Cost. O(1).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from correlation.explaining import CONTRACT, ReadEvent, Step, Steps, describe_delay, read_given
from correlation.resources.durations import describe_duration
from correlation.resources.histogram import Histogram
from correlation.timing.conditions import BEST, PAIRS, UNMATCHED
from correlation.timing.histograms.exact import exact_probability, is_satisfied
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.histograms.regions import locate_supports
from correlation.timing.intervals.choosing import choose_algorithm
from correlation.timing.intervals.pairs import DECIDED_BY, LOOKUP, PROBE, SATISFACTION_REGION
from correlation.timing.intervals.regions import locate_regions
from correlation.timing.intervals.satisfaction import satisfied
from correlation.two_streams import NO_FILTERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from correlation.explaining import GivenRecord
    from correlation.parsing.event_reader import MappedEvent
    from correlation.resources.attributes import AttributeValue
    from correlation.resources.streams import Stream
    from correlation.timing.conditions import TimingCondition
    from correlation.timing.intervals.regions import Regions
    from correlation.timing.intervals.window import TimingWindow
    from correlation.two_streams import Where

STEPS = (
    CONTRACT,
    Step("filter", "an event does not match a filter of the condition", "filters"),
    Step("same_event", "both records of a stream are the same event", "two events"),
    Step("key", "the join keys differ"),
    Step("expired", "the events are too far apart", "distance"),
    Step("threshold", "the probability is below the threshold"),
)
# Consequence of a delay.
_LATE = "the pair was missed if the job had dropped the other event"
_SIGNIFICANT_DIGITS = 6
# An event and its attributes.
_Given = tuple["MappedEvent", "Mapping[str, AttributeValue | None]"]
# Fractions with a larger denominator are not shown: they are hard to read.
_READABLE_DENOMINATOR = 10_000


def explain_pair(
    condition: TimingCondition, streams: Mapping[str, Stream], given: Mapping[str, GivenRecord]
) -> dict[str, Any]:
    """Return the verdict on two records as a pair, with every step of the decision.

    Parameters
    ----------
    condition : TimingCondition
        The registered condition.
    streams : mapping of name to Stream
        Its streams.
    given : mapping of role to GivenRecord
        Records "a" and "b". In a self-correlation the answer may swap them: it has them in the
        order in which the job would report them.

    Returns
    -------
    dict
        JSON-able: verdict, failed_step, explanation, steps; a, b; and, if both records are events,
        probability, s_us, window, reach, regions and, if satisfied, decided_by. Durations in µs.
    """
    a = read_given(streams[condition.a], given["a"])
    b = read_given(streams[condition.b], given["b"])
    swapped = _is_swapped(condition, streams, a, b)
    if swapped:
        a, b = b, a
    steps = Steps(_list_steps(condition))
    wrong = _describe_breach("A", a) or _describe_breach("B", b)
    steps.take(passed=not wrong, detail=wrong or "A and B are valid events of their streams")
    found: dict[str, Any] = dict.fromkeys(_NUMBERS)
    if a.event is not None and b.event is not None:
        pair = _Pair(condition, streams, a.event, b.event)
        if condition.where != NO_FILTERS:
            _check_filters(steps, condition.bind_where(streams), a, b)
        if condition.a == condition.b:
            _check_identity(steps, a, b)
        _check_keys(steps, a, b)
        pair.check_reach(steps)
        pair.check_threshold(steps)
        found = pair.describe(decided=steps.failed is None)
    return {
        **steps.describe(),
        "a": a.describe(),
        "b": b.describe(),
        "swapped": swapped,
        "threshold": f"{condition.threshold:f}",
        **found,
        "notes": [
            *describe_delay("A", a, _LATE),
            *describe_delay("B", b, _LATE),
            *_describe_report(condition, satisfied=steps.failed is None),
        ],
    }


def _list_steps(condition: TimingCondition) -> tuple[str, ...]:
    filtered = ("filter",) if condition.where != NO_FILTERS else ()
    identity = ("same_event",) if condition.a == condition.b else ()
    return ("contract", *filtered, *identity, "key", "expired", "threshold")


_NUMBERS = (
    *("probability", "probability_exact", "missing", "missing_exact", "s_us", "expired_by_us"),
    *("window", "reach", "regions", "decided_by", "algorithm"),
)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two events in the roles A and B of a condition."""

    condition: TimingCondition
    streams: Mapping[str, Stream]
    a: MappedEvent
    b: MappedEvent

    @property
    def window(self) -> TimingWindow:
        return self.condition.window

    @property
    def s_us(self) -> int:
        return self.b.latest - self.a.latest

    @property
    def declared(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shortest and longest declared length of either stream."""
        a, b = self.streams[self.condition.a], self.streams[self.condition.b]
        return (a.min_uncertainty_us, a.max_uncertainty_us), (
            b.min_uncertainty_us,
            b.max_uncertainty_us,
        )

    @property
    def has_histograms(self) -> bool:
        """Whether the streams may have events that are not intervals."""
        return any(self.streams[name].has_shapes for name in self.condition.streams)

    @property
    def probability(self) -> Fraction:
        return exact_probability(_read_time(self.a), _read_time(self.b), self.window)

    def is_satisfied(self) -> bool:
        if self.a.shape is not None or self.b.shape is not None:
            return is_satisfied(_read_time(self.a), _read_time(self.b), self.window)
        lengths = (self.a.latest - self.a.earliest, self.b.latest - self.b.earliest)
        return bool(satisfied(*lengths, self.s_us, self.window)[0])

    def reach(self) -> tuple[int, int]:
        streams = self.streams
        return stream_reach(self.window, streams[self.condition.a], streams[self.condition.b])

    def expired_by_us(self) -> int:
        """Return the distance of s from the reach; 0 inside the reach."""
        min_s, max_s = self.reach()
        if min_s > max_s:
            # The reach is empty: only the horizon, if any, limits the distance.
            floor, ceiling = self.window.floor_us, self.window.ceiling_us
            min_s = self.s_us if floor is None else floor
            max_s = self.s_us if ceiling is None else ceiling
        return max(min_s - self.s_us, self.s_us - max_s, 0)

    def check_reach(self, steps: Steps) -> None:
        min_s, max_s = self.reach()
        apart = f"B ends {_describe_place(self.s_us)} A"
        expired_us = self.expired_by_us()
        if not expired_us:
            steps.take(passed=True, detail=f"{apart}: within reach of these streams")
            return
        limits = "the horizon excludes such pairs"
        if min_s <= max_s:
            limits = (
                f"pairs of these streams can match from {describe_duration(min_s)} "
                f"to {describe_duration(max_s)}"
            )
        too_far = f"{apart}; {limits}: {describe_duration(expired_us)} too far"
        forgotten = "the job drops one event before the other can arrive"
        steps.take(passed=False, detail=f"{too_far}; {forgotten}")

    def check_threshold(self, steps: Steps) -> None:
        exact, threshold = self.probability, self.condition.threshold
        shown = f"the probability is {_describe_fraction(exact)}"
        if self.is_satisfied():
            steps.take(passed=True, detail=f"{shown}, the threshold is {threshold:f}")
            return
        missing = _describe_fraction(self.window.threshold - exact)
        detail = f"{shown}: {missing} below the threshold {threshold:f}"
        if self.reach()[0] > self.reach()[1]:
            detail += "; the window is too narrow for any pair of these streams"
        steps.take(passed=False, detail=detail)

    def describe(self, *, decided: bool) -> dict[str, Any]:
        exact, window, min_max = self.probability, self.window, self.reach()
        missing = max(window.threshold - exact, exact * 0)
        regions = self._regions()
        (_, longest_a), (_, longest_b) = self.declared
        emit = self.condition.emit
        algorithm = emit
        if emit == PAIRS and self.has_histograms:
            algorithm = self.condition.algorithm
        elif emit == PAIRS:
            algorithm = choose_algorithm(self.condition.algorithm, window, *self.declared).algorithm
        return {
            "probability": float(exact),
            "probability_exact": str(exact),
            "missing": float(missing),
            "missing_exact": str(missing),
            "s_us": self.s_us,
            "expired_by_us": self.expired_by_us(),
            "window": {
                "lower_us": window.lower_us,
                "upper_us": window.upper_us,
                "floor_us": window.floor_us,
                "ceiling_us": window.ceiling_us,
                "width": "wide" if window.is_wide(longest_a, longest_b) else "narrow",
            },
            "reach": dict(zip(("min_us", "max_us"), min_max, strict=True)),
            "regions": regions,
            "decided_by": _decided_by(algorithm, regions, has_histograms=self.has_histograms)
            if decided
            else None,
            "algorithm": algorithm,
        }

    def _regions(self) -> dict[str, dict[str, Any]]:
        """Return the regions of either event as base event, and the place of the other one."""
        length_a, length_b = self.a.latest - self.a.earliest, self.b.latest - self.b.earliest
        declared_a, declared_b = self.declared
        locate = locate_supports if self.has_histograms else locate_regions
        return {
            "base_a": _describe_regions(locate(self.window, length_a, *declared_b), self.s_us),
            "base_b": _describe_regions(
                locate(self.window.mirrored(), length_b, *declared_a), -self.s_us
            ),
        }


def _read_time(event: MappedEvent) -> Histogram:
    if event.shape is None:
        return Histogram.from_interval(event.earliest, event.latest)
    return Histogram.from_shape_bytes(event.shape).moved(event.latest)


def _describe_regions(found: Regions, offset_us: int) -> dict[str, Any]:
    lh, ll, rl, rh = found
    if not lh <= offset_us <= rh:
        region = "violated"
    elif offset_us < ll:
        region = "left_probe"
    else:
        region = "satisfaction" if offset_us <= rl else "right_probe"
    # An inner end is never shown beyond its horizon.
    ends = {"lh_us": lh, "ll_us": max(lh, ll), "rl_us": min(rl, rh), "rh_us": rh}
    return {**ends, "offset_us": offset_us, "region": region}


def _decided_by(
    algorithm: str, regions: Mapping[str, Mapping[str, Any]], *, has_histograms: bool
) -> list[str] | None:
    """Return the ways in which the job may decide the satisfied pair, or None for UNMATCHED.

    The other events in the buffers determine the actual way.
    """
    if algorithm == UNMATCHED:
        return None
    by_position = all(found["region"] == "satisfaction" for found in regions.values())
    ways: tuple[int, ...] = (PROBE, LOOKUP, SATISFACTION_REGION)
    if algorithm in {"simple", "ssort", BEST}:
        ways = (PROBE,)
    elif by_position or (algorithm == "indexed" and not has_histograms):
        ways = (SATISFACTION_REGION,)
    elif algorithm in {"eager", "lazy", "indexed"}:
        # indexed works as lazy does if the streams have many shapes.
        ways = (PROBE, SATISFACTION_REGION)
    return [DECIDED_BY[way] for way in ways]


def _is_swapped(
    condition: TimingCondition, streams: Mapping[str, Stream], a: ReadEvent, b: ReadEvent
) -> bool:
    """Return whether the job reports a pair of a self-correlation in the other order."""
    if condition.a != condition.b or a.event is None or b.event is None:
        return False
    where = condition.bind_where(streams)
    earlier, later = sorted(
        ((a.event, a.attributes), (b.event, b.attributes)),
        key=lambda it: (it[0].latest, it[0].earliest, it[0].id or b""),
    )

    def rank(first: _Given, second: _Given) -> tuple[bool, bool]:
        """Return whether an order is a pair, and whether it matches the filters."""
        matches = all(
            wanted is None or wanted.mismatch(attributes) is None
            for wanted, (_, attributes) in zip(where, (first, second), strict=True)
        )
        satisfied = _Pair(condition, streams, first[0], second[0]).is_satisfied()
        return matches and satisfied, matches

    reported = later if rank(later, earlier) > rank(earlier, later) else earlier
    return reported[0] is b.event and a.event is not b.event


def _check_filters(steps: Steps, where: Where, a: ReadEvent, b: ReadEvent) -> None:
    for role, wanted, read in (("a", where.a, a), ("b", where.b, b)):
        mismatch = None if wanted is None else wanted.mismatch(read.attributes)
        if mismatch is not None:
            name = mismatch.attribute
            value = json.dumps(read.attributes.get(name), ensure_ascii=False)
            shown = "is missing" if value == "null" else f"is {value}"
            rule = json.dumps(mismatch.to_document(), ensure_ascii=False)
            detail = f"{name} of {role.upper()} {shown}, but where.{role}.{name} is {rule}"
            steps.take(passed=False, detail=detail)
            return
    steps.take(passed=True, detail="A and B match the filters of the condition")


def _check_identity(steps: Steps, a: ReadEvent, b: ReadEvent) -> None:
    same = a.given.place is not None and a.given.place == b.given.place
    detail = "A and B are the same record" if same else "A and B are different records"
    steps.take(passed=not same, detail=detail)


def _check_keys(steps: Steps, a: ReadEvent, b: ReadEvent) -> None:
    if a.stream.partitioning.by != "key":
        steps.take(passed=True, detail="the streams are not partitioned by key: all events meet")
        return
    key_a, key_b = a.describe()["key"], b.describe()["key"]
    if a.event is not None and b.event is not None and a.event.key == b.event.key:
        steps.take(passed=True, detail=f"A and B have the key {key_a!r}")
    else:
        detail = f"A has the key {key_a!r}, B has {key_b!r}: only events with equal keys meet"
        steps.take(passed=False, detail=detail)


def _describe_breach(role: str, read: ReadEvent) -> str:
    return f"{role} {read.breach}" if read.breach else ""


def _describe_report(condition: TimingCondition, *, satisfied: bool) -> list[str]:
    """Return the further requirements for a report."""
    if condition.max_pairs is not None and satisfied:
        return ["max_pairs: the pair is missing if its block reached the limit before it was found"]
    if condition.emit == BEST and satisfied:
        return [
            "emit is best: the pair is reported if no other B of this A has a higher probability"
        ]
    if condition.emit == UNMATCHED:
        effect = "prevents" if satisfied else "does not prevent"
        note = "emit is unmatched: A is reported if it has no satisfied pair"
        return [f"{note}; this B {effect} the report"]
    return []


def _describe_place(s_us: int) -> str:
    if not s_us:
        return "at the same time as"
    return f"{describe_duration(abs(s_us))} {'after' if s_us > 0 else 'before'}"


def _describe_fraction(value: Fraction) -> str:
    """Format a fraction for display: a decimal, and the fraction itself if it is short."""
    number = f"{float(value):.{_SIGNIFICANT_DIGITS}g}"
    short = 1 < value.denominator <= _READABLE_DENOMINATOR
    return f"{number} ({value})" if short else number
