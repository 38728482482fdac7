"""Checks of the demo: the plain judge of its query, and the comparison with what was reported."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import orjson
import pytest
from rich.console import Console

from cli.demo.check import verify
from cli.demo.data import load_events
from cli.demo.events import DemoEvent
from cli.demo.judge import Grounded, grounded_of, judge_grounded
from cli.demo.resources import GROUNDED, QUERIES, STREAMS
from cli.errors import VerificationError
from cli.replay.options import EventFile, ReplayOptions
from cli.replay.run import run_replay

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SCHEDULED = datetime(2013, 1, 2, 12, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
CANCELLED = Grounded("UA1 EWR 2013-01-02T12:00Z", "UA1", "N1", "BOS")


def _cancellation() -> DemoEvent:
    record = {**CANCELLED._asdict(), "record": CANCELLED.cancellation, "scheduled": SCHEDULED}
    return _event("cancellations", record, SCHEDULED)


def _departure(tail: str, departed: datetime) -> DemoEvent:
    record = {
        "record": f"{tail} {departed}",
        "tail": tail,
        "airport": "JFK",
        "departed": departed,
        "delay_minutes": 0,
    }
    return _event("departures", record, departed)


def _event(topic: str, record: dict[str, object], moment: datetime) -> DemoEvent:
    latest_us = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return DemoEvent(topic, str(record["record"]), b"JFK", orjson.dumps(record), latest_us)


def _replayed(folder: Path, events: Iterable[DemoEvent]) -> Counter[Grounded]:
    """Return the results of the query that a replay of the events reports."""
    sent = sorted(events, key=lambda event: event.latest_us)
    streams = {name: STREAMS[name] for name in QUERIES[GROUNDED]["types"].values()}
    documents = [{"kind": "stream", "name": name, **it} for name, it in streams.items()]
    documents.append({"name": GROUNDED, **QUERIES[GROUNDED]})
    resources = folder / "resources.yaml"
    resources.write_bytes(b"\n---\n".join(map(orjson.dumps, documents)))
    files = []
    for name, stream in streams.items():
        path = folder / f"{name}.jsonl"
        mine = [event.value for event in sent if event.topic == stream["topic"]]
        path.write_bytes(b"\n".join(mine))
        files.append(EventFile(name, 0, path, "jsonl"))
    alarms = folder / "alarms.jsonl"
    options = ReplayOptions((resources,), tuple(files), processes=1, alarms=alarms, force=True)
    run_replay(options, Console(stderr=True))
    return Counter(grounded_of(orjson.loads(it)) for it in alarms.read_bytes().splitlines())


@pytest.mark.parametrize(
    ("tail", "departed", "is_grounded"),
    [
        ("N1", SCHEDULED - MINUTE, True),
        ("N1", SCHEDULED, False),
        ("N1", SCHEDULED + DAY, False),
        ("N1", SCHEDULED + DAY + MINUTE, True),
        ("N2", SCHEDULED + MINUTE, True),
    ],
)
def test_judge_and_query_agree_at_the_bounds(
    tmp_path: Path, tail: str, departed: datetime, *, is_grounded: bool
) -> None:
    events = [_cancellation(), _departure(tail, departed)]
    expected = {CANCELLED} if is_grounded else set()
    assert judge_grounded(events) == expected
    assert _replayed(tmp_path, events) == dict.fromkeys(expected, 1)


def test_query_gives_the_results_of_the_judge_on_the_first_days(tmp_path: Path) -> None:
    events = load_events(4)
    expected = judge_grounded(events)
    cancelled = sum(event.topic == "cancellations" for event in events)
    assert 0 < len(expected) < cancelled
    assert _replayed(tmp_path, events) == dict.fromkeys(expected, 1)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([], "1 missing, for instance [Grounded(cancellation='UA1"),
        ([CANCELLED, CANCELLED], "1 twice"),
        ([CANCELLED, CANCELLED._replace(tail="N2")], "1 too many"),
    ],
)
def test_verify_names_the_differences(found: list[Grounded], problem: str) -> None:
    with pytest.raises(VerificationError) as raised:
        verify(Counter(found), {CANCELLED}, "the results differ")
    assert f"the results differ: {problem}" in str(raised.value)


def test_verify_accepts_equal_results() -> None:
    verify(Counter([CANCELLED]), {CANCELLED}, "the results differ")
