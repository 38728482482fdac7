"""Records as the console shows them, and the requests that explain them, for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from correlation.errors import InvalidRecordError
from correlation.kinds import KINDS, condition_from_document, open_readers
from correlation.resources.records import stream_from_document

if TYPE_CHECKING:
    from correlation.reporting import ShownRecord

A = {"stream": "left", "id": "x", "key": "k", "earliest": 0, "latest": 5}
B = {"stream": "right", "id": "y", "key": None, "earliest": 3, "latest": 3}
ALARM = {
    "kind": "within",
    "condition": "c",
    "detected_at": 7,
    "decided_by": "probe",
    "threshold": 0.5,
    "a": A,
    "b": B,
}
RESULT = {
    "kind": "event_query",
    "condition": "c",
    "detected_at": 7,
    "type": "Alarm",
    "attributes": {},
    "begin": 0,
    "end": 5,
    "events": {"s": A, "r": {"stream": "right", "id": "y", "begin": 1, "end": 2}},
}
CHANGE = {
    "kind": "topk_similarity",
    "condition": "c",
    "detected_at": 7,
    "change": "entered",
    "rank": 2,
    "similarity": 0.5,
    "older": {"stream": "right", "id": "y", "time": 3},
    "newer": {"stream": "left", "id": "x", "time": 5},
}
TABLE = {"record": "targets", "stream": "right", "size": 30}
BASE = {"record": "base", "a": A, "pairs": 12}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "within": {
        "a": "left",
        "b": "right",
        "threshold": "0.5",
        "lower_us": 0,
        "upper_us": 10,
    },
    "event_query": {
        "query": "DETECT A ON event s: Left not event r: Right "
        "WHERE s.rt.end <= r.rt.end, r.rt.end <= s.rt.end + 1 s END",
        "threshold": "0.5",
    },
    "topk_similarity": {"a": "left", "b": "right", "k": 3, "window_us": 10},
}


def show(record: dict[str, Any]) -> ShownRecord:
    (reader,) = (it for it in open_readers() if it.claims(record))
    return reader.show(record)


@pytest.mark.parametrize(
    ("record", "description", "events"),
    [
        (ALARM, "left:x  ↔  right:y", {"A": A, "B": B}),
        (ALARM | {"probability": 0.25}, "left:x  ↔  right:y  p=0.250", {"A": A, "B": B}),
        (ALARM | {"b": None}, "left:x  without", {"A": A}),
        (TABLE, "table of 30 targets of right", {}),
        (BASE, "left:x  in 12 pairs", {"A": A}),
        ({"record": "base", "b": B, "pairs": 1}, "right:y  in 1 pairs", {"B": B}),
        (RESULT, "Alarm  s=left:x  r=right:y", RESULT["events"]),
        (
            CHANGE,
            "+ #2  similarity=0.5  right:y  ↔  left:x",
            {"older": CHANGE["older"], "newer": CHANGE["newer"]},
        ),
    ],
)
def test_record_is_shown_by_its_kind(
    record: dict[str, Any], description: str, events: dict[str, Any]
) -> None:
    shown = show(record)
    assert (shown.description, dict(shown.events)) == (description, events)
    assert list(shown.events) == list(events)


@pytest.mark.parametrize(
    "record",
    [
        ALARM | {"a": None},
        TABLE | {"size": "30"},
        BASE | {"a": A | {"latest": None}},
        BASE | {"pairs": None},
        RESULT | {"events": {"s": {"id": "x"}}},
        CHANGE | {"older": {}},
    ],
)
def test_invalid_record_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises((ValueError, InvalidRecordError)):
        show(record)


def explained(kind: str, record: dict[str, Any], **right: object) -> dict[str, Any]:
    """Return the events to explain; `right` declares more of the stream right."""
    condition = condition_from_document("c", 1, {"kind": kind, **DOCUMENTS[kind]})
    declared: dict[str, Any] = {"max_uncertainty_us": 5, "max_delay_us": 0}
    streams = {
        name: stream_from_document(name, {"topic": name, **declared, **more})
        for name, more in (("left", {}), ("right", right))
    }
    return dict(KINDS[kind].events_to_explain(condition, streams, record))


IDS = {"x": {"id": "x"}, "y": {"id": "y"}}


def test_events_of_alarms_are_given_completely() -> None:
    given = explained("within", ALARM | {"a": A | {"attributes": {"room": "r1"}}})
    event = {"id": "x", "key": "k", "earliest": 0, "latest": 5, "attributes": {"room": "r1"}}
    assert given == {"a": {"event": event}, "b": {"event": {"id": "y", "earliest": 3, "latest": 3}}}


def test_events_that_records_do_not_contain_completely_are_given_by_id() -> None:
    pair = {"a": IDS["x"], "b": IDS["y"]}
    assert explained("within", ALARM, histograms=True) == pair
    # The older set is that of stream B.
    assert explained("topk_similarity", CHANGE) == pair
    assert explained("event_query", RESULT) == {"s": IDS["x"], "r": IDS["y"]}


@pytest.mark.parametrize("record", [ALARM | {"b": None}, TABLE, BASE, CHANGE, {}])
def test_records_without_a_pair_are_not_explained(record: dict[str, Any]) -> None:
    assert explained("within", record) == {}
