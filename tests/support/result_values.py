"""Results of every kind, as the operators return them, with the values that a reader must find."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from coincide.alarms import (
    Event,
    EventQueryAlarm,
    LastingEvent,
    ListChange,
    ListItem,
    PresentList,
    Result,
    SimilarPair,
    TimingAlarm,
    TokenSet,
    WithdrawnList,
)
from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.evaluation.alarms import EventQueryAlarms, EventsOfAlias
from correlation.event_query.language.parser import parse_query
from correlation.kinds import condition_from_document
from correlation.result_format import as_text
from correlation.timing.alarm_format import alarm_id
from correlation.timing.alarms import AttributeNames, PairBatch, UnmatchedBatch
from correlation.timing.conditions import TimingCondition
from correlation.timing.factored.batch import FactoredBatch
from correlation.timing.factored.search import correlate_spans
from correlation.timing.intervals.pairs import Side
from correlation.timing.intervals.probability import probability
from correlation.timing.intervals.window import TimingWindow
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, Move, SetRef
from correlation.topk.results import KeyedMoves, TopKChanges, present_lists
from correlation.topk.similarities import COSINE, HAMMING
from tests.oracle.intervals import is_satisfied

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation import operators


DETECTED_AT = 1_767_225_603_120_000
WINDOW_US = 100


class Row(NamedTuple):
    """An event: id, times, lateness and values of attributes."""

    id: bytes
    earliest: int
    latest: int
    late: bool
    attributes: dict[str, Any]


class Written(NamedTuple):
    """A result, and the values that a reader must find in its records, in order."""

    result: operators.Result
    values: list[Result]


def timing_condition(kind: str = "mutual_deadline", *, reports: bool = True) -> TimingCondition:
    """Return a condition between x and y; window, deadline or delay is WINDOW_US."""
    ends = {
        "mutual_deadline": {"window_us": WINDOW_US},
        "within": {"lower_us": -WINDOW_US, "upper_us": WINDOW_US},
        "deadline": {"deadline_us": WINDOW_US, "horizon_us": 10 * WINDOW_US},
        "delay": {"delay_us": WINDOW_US, "horizon_us": 10 * WINDOW_US},
    }
    document = {"kind": kind, "a": "x", "b": "y", "threshold": "0.7", "report_probability": reports}
    found = condition_from_document("near", 3, {**document, **ends[kind]})
    assert isinstance(found, TimingCondition)
    return found


def make_segment(stream: str, key: bytes, rows: Sequence[Row]) -> tuple[Segment, list[Row]]:
    """Return the events in a segment, and in the order of its rows."""
    names = rows[0].attributes
    events = Events.from_rows(
        stream, [(key, it.id, it.earliest, it.latest, 0, i, 0) for i, it in enumerate(rows)]
    )
    columns = {
        f"attribute.{name}": DictionaryColumn.from_list(
            [
                None if it.attributes[name] is None else orjson.dumps(it.attributes[name])
                for it in rows
            ]
        )
        for name in names
    }
    late = np.array([it.late for it in rows])
    segment, order = Segment.from_events(replace(events, columns=columns), late)
    return segment, [rows[i] for i in order.tolist()]


def event(stream: str, key: bytes | None, row: Row) -> Event:
    """Return the value of an event."""
    shown = None if key is None else as_text(key)
    return Event(stream, as_text(row.id), shown, row.earliest, row.latest, row.attributes)


def _names(a: Sequence[Row], b: Sequence[Row]) -> AttributeNames:
    return AttributeNames(tuple(a[0].attributes), tuple(b[0].attributes))


def _alarm(
    condition: TimingCondition, key: bytes | None, a: Row, b: Row | None, decided_by: str
) -> TimingAlarm:
    found = None
    if b is not None and condition.report_probability:
        columns = ([a.earliest], [a.latest], [b.earliest], [b.latest])
        (found,) = probability(*columns, condition.window).tolist()
    return TimingAlarm(
        alarm_id=alarm_id(condition.name, condition.version, a.id, None if b is None else b.id),
        condition=condition.name,
        version=condition.version,
        kind=condition.kind,
        threshold=float(condition.threshold),
        decided_by=decided_by,
        late=a.late or (b is not None and b.late),
        a=event("x", key, a),
        b=None if b is None else event("y", key, b),
        probability=found,
        detected_at=DETECTED_AT,
    )


def pairs(condition: TimingCondition, key: bytes | None, a: list[Row], b: list[Row]) -> Written:
    """Return every event of A with every event of B."""
    (left, a), (right, b) = make_segment("x", key or b"", a), make_segment("y", key or b"", b)
    rows = np.array(list(product(range(len(a)), range(len(b)))))
    ways = np.zeros(len(rows), np.uint8)
    batch = PairBatch(
        condition, key is not None, left, right, rows[:, 0], rows[:, 1], ways, _names(a, b)
    )
    return Written(
        batch, [_alarm(condition, key, a[i], b[j], "satisfaction_region") for i, j in rows.tolist()]
    )


def unmatched(condition: TimingCondition, key: bytes | None, a: list[Row]) -> Written:
    """Return every event of A, without a B."""
    segment, a = make_segment("x", key or b"", a)
    batch = UnmatchedBatch(condition, key is not None, segment, np.arange(len(a)), _names(a, a))
    return Written(batch, [_alarm(condition, key, it, None, "watermark") for it in a])


def factored(
    condition: TimingCondition, key: bytes | None, a: list[Row], b: list[Row], *, base_is_a: bool
) -> Written:
    """Return the pairs that satisfy the condition, factored; without `decided_by`, in any order."""
    (left, a), (right, b) = make_segment("x", key or b"", a), make_segment("y", key or b"", b)
    window: TimingWindow = condition.window
    base, target = (left, right) if base_is_a else (right, left)
    spans = correlate_spans(
        Side(base.earliest, base.latest),
        Side(target.earliest, target.latest),
        np.array([[0, len(base), 0, len(target)]]),
        window if base_is_a else window.mirrored(),
    )
    judged = (window.lower_us, window.upper_us, window.floor_us, window.ceiling_us)
    satisfied: list[Result] = [
        _alarm(condition, key, one, other, "")
        for one, other in product(a, b)
        if is_satisfied(
            (one.earliest, one.latest),
            (other.earliest, other.latest),
            (*judged, Fraction(condition.threshold)),
        )
    ]
    batch = FactoredBatch(condition, key is not None, base, target, base_is_a, spans, _names(a, b))
    return Written(batch, satisfied)


# Alias t lasts; the results have a variable and two constants.
QUERY = """DETECT Alarm {n {var N}, level {0.1}, name {"ä"}}
ON event s: Smoke {n {var N}} event t: Leak WHERE s.rt.end <= t.rt.begin END"""


def query_results(
    key: bytes | None, s: list[Row], t: list[Row], chances: list[float] | None
) -> Written:
    """Return results of an event query: the i-th events of both streams, in their order."""
    threshold = None if chances is None else Decimal("0.25")
    condition = EventQueryCondition("q", 2, parse_query(QUERY), {}, threshold)
    (smoke, s), (leak, t) = (
        make_segment("smoke", key or b"", s),
        make_segment("leak", key or b"", t),
    )
    places = np.arange(min(len(s), len(t)))
    zeros = np.zeros_like(places)
    aliases = (
        EventsOfAlias("s", "smoke", False, tuple(s[0].attributes), [smoke], zeros, places),  # noqa: FBT003 - does not last
        EventsOfAlias("t", "leak", True, tuple(t[0].attributes), [leak], zeros, places),  # noqa: FBT003 - lasts
    )
    probabilities = None if chances is None else np.array(chances[: len(places)])
    result = EventQueryAlarms(condition, key is not None, aliases, probabilities)
    idents = [record.ident for record in result.records(DETECTED_AT)]
    values: list[Result] = []
    for ident, one, other, place in zip(idents, s, t, places.tolist(), strict=False):
        lasting = event("leak", key, other)
        values.append(
            EventQueryAlarm(
                alarm_id=ident,
                condition="q",
                version=2,
                type="Alarm",
                attributes={"n": one.attributes["n"], "level": 0.1, "name": "ä"},
                begin=min(one.earliest, other.earliest),
                end=max(one.latest, other.latest),
                events={
                    "s": event("smoke", key, one),
                    "t": LastingEvent(
                        "leak",
                        lasting.id,
                        lasting.key,
                        lasting.earliest,
                        lasting.latest,
                        lasting.attributes,
                    ),
                },
                late=one.late or other.late,
                probability=None if chances is None else chances[place],
                threshold=None if chances is None else 0.25,
                detected_at=DETECTED_AT,
            )
        )
    return Written(result, values)


def _similar(condition: TopKCondition, pair: ListedPair) -> SimilarPair:
    sets = [
        TokenSet("right" if it.side else "left", as_text(it.id), it.time_us)
        for it in (pair.older, pair.newer)
    ]
    sizes = (pair.older.size, pair.newer.size)
    value = condition.similarity.value(pair.overlap, *sizes)
    is_distance = condition.similarity is HAMMING
    return SimilarPair(
        None if is_distance else value, value if is_distance else None, pair.overlap, sizes, *sets
    )


def topk_condition(*, distance: bool) -> TopKCondition:
    """Return a top-k condition between left and right."""
    return TopKCondition("alike", 4, "left", "right", 2, 10, HAMMING if distance else COSINE)


def changes(condition: TopKCondition, key: bytes | None, moves: list[Move]) -> Written:
    """Return changes of a list."""
    shown = None if key is None else as_text(key)
    values: list[Result] = [
        ListChange(
            condition.name,
            condition.version,
            shown,
            move.change,
            move.rank,
            _similar(condition, move.pair),
            move.reason,
            move.time_us,
            DETECTED_AT,
        )
        for move in moves
    ]
    return Written(TopKChanges(condition, [KeyedMoves(key, moves)]), values)


def lists(condition: TopKCondition, key: bytes | None, found: list[ListedPair]) -> Written:
    """Return the present list; without pairs it is withdrawn."""
    shown = None if key is None else as_text(key)
    items = tuple(ListItem(i, _similar(condition, it)) for i, it in enumerate(found, start=1))
    value = PresentList(condition.name, condition.version, shown, 9, items, DETECTED_AT)
    return Written(
        present_lists(condition, 9, [(key, found)]),
        [value if found else WithdrawnList(condition.name, shown)],
    )


def row(ident: bytes, earliest: int, latest: int, **attributes: Any) -> Row:  # noqa: ANN401 - JSON
    """Return an event that was in time."""
    return Row(ident, earliest, latest, False, attributes)  # noqa: FBT003 - not late


def one_of_each_kind() -> list[Written]:
    """Return a result of every kind, with two pairs in the factored records."""
    moment = DETECTED_AT - 1_000_000
    a, b = row(b"mic-1", moment, moment + 50), row(b"geo-7", moment, moment + 40)
    late = Row(b"geo-8", moment, moment + 45, True, {})  # noqa: FBT003 - late
    near, key = timing_condition(), b"north"
    pair = ListedPair(1, 3, SetRef(3, 1, b"s1", 4), SetRef(7, 0, b"s2", 9))
    alike = topk_condition(distance=False)
    return [
        pairs(near, key, [a], [b]),
        unmatched(near, key, [a]),
        factored(near, key, [row(b"mic-2", moment, moment + 50)], [b, late], base_is_a=True),
        query_results(key, [row(b"s", 5, 6, n=1)], [row(b"t", 7, 9)], None),
        changes(alike, None, [Move("entered", 1, pair, "set", 14)]),
        lists(alike, key, [pair]),
        lists(alike, None, []),
    ]
