"""The conditions of the conformance suite through Kafka and Spark, against the exact oracle."""

from __future__ import annotations

import json
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from correlation.engine.heartbeats import CLOSED, Heartbeat, heartbeat_to_record
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.factored.expanding import Expander
from tests.support.histogram_slots import (
    TEMPLATES,
    expected_pairs,
    give_shapes,
    histogram_slot,
    histogram_verdicts,
)
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.slots import (
    CONDITIONS,
    DELAY,
    LONGEST,
    Arrival,
    Verdicts,
    control_record,
    draw_arrivals,
    judged_pairs,
    judged_verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

EVENTS = 240
Ways = dict[str, dict[str, object]]
# Each condition by every algorithm, and in blocks of a set size.
WAYS: Ways = {
    **{algorithm: {"algorithm": algorithm} for algorithm in ALGORITHM_CHOICES},
    "blocks": {"block_size": 25},
}
FACTORED: Ways = {"factored": {"output": "factored"}}
EMITS: Ways = {emit: {"emit": emit} for emit in ("best", "unmatched")}
KINDS = ("intervals", "grid", "histograms")
Alarms = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Case:
    """Streams of a kind, their events, and the ways in which conditions are evaluated on them."""

    kind: str
    streams: tuple[Stream, ...]
    arrivals: list[Arrival]
    ways: Ways

    def conditions(self) -> dict[str, dict[str, object]]:
        """Return the documents by name; the streams of each kind have names of their own."""
        return {
            f"{self.kind}-{name}-{way}": {
                **document,
                **changes,
                "a": f"{self.kind}-{document['a']}",
                "b": f"{self.kind}-{document['b']}",
            }
            for name, document in CONDITIONS.items()
            for way, changes in self.ways.items()
            if way not in FACTORED or document["a"] != document["b"]
        }


def _case(kind: str) -> Case:
    rng = random.Random(2010)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, EVENTS)
    plain = [Stream(name, name, LONGEST, DELAY, clock="replay") for name in "xy"]
    if kind == "intervals":
        return Case(kind, tuple(plain), arrivals, WAYS | FACTORED | EMITS)
    if kind == "grid":
        grid = (replace(it, partitioning=Partitioning("grid", 2)) for it in plain)
        # Keys mean nothing there.
        one_key = [replace(it, key="k") for it in arrivals]
        return Case(kind, tuple(grid), one_key, WAYS | FACTORED)
    streams = histogram_slot("mixed").streams
    return Case(kind, tuple(streams.values()), give_shapes(rng, arrivals, "mixed"), WAYS | EMITS)


CASES = {kind: _case(kind) for kind in KINDS}


def _value(arrival: Arrival) -> bytes:
    """Write an event as a producer does: with a template, a histogram, or an interval."""
    event: dict[str, object] = {"id": arrival.id}
    shape = arrival.shape
    if shape is None:
        event |= {"earliest": arrival.earliest, "latest": arrival.latest}
    elif shape in TEMPLATES[arrival.stream]:
        name = f"t{TEMPLATES[arrival.stream].index(shape)}"
        event |= {"detected": arrival.latest, "template": name}
    else:
        buckets = shape.moved(arrival.latest).to_buckets()
        event["histogram"] = [[it["lo"], it["hi"], float(it["p"])] for it in buckets]
    return json.dumps(event).encode()


@pytest.fixture(scope="module")
def alarms_of(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Alarms:
    """Run one job for all kinds; give the alarms of each condition."""
    prefix = f"conf{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_MAX_EVENTS_PER_BATCH": "250"}
    folder = tmp_path_factory.mktemp("conformance")
    job = JobUnderTest(kafka_bootstrap, prefix, folder, settings)
    documents: dict[str, dict[str, object]] = {}
    for case in CASES.values():
        documents |= case.conditions()
        for stream in case.streams:
            name = f"{case.kind}-{stream.name}"
            job.add_stream(replace(stream, name=name, topic=f"{prefix}-{name}"))
    controls = [control_record(n, *entry) for n, entry in enumerate(documents.items())]
    records = [Sent(json.dumps(it.record).encode(), it.key) for it in controls]
    produce(job.bootstrap, job.topics.config, records)
    for case in CASES.values():
        _send(job, case)
    try:
        job.start()
        job.wait_for_slots(lambda slots: bool(slots) and all(map(_is_closed, slots)))
    finally:
        job.process.stop(5)
    return _read_alarms(job)


def _send(job: JobUnderTest, case: Case) -> None:
    for name in "xy":
        stream = f"{case.kind}-{name}"
        sent = [Sent(_value(it), it.key.encode()) for it in case.arrivals if it.stream == name]
        placed = produce(job.bootstrap, job.streams[stream].topic, sent)
        # Closed from the last record of each partition on, whatever is read first.
        ends = dict.fromkeys((0, 1), 0)
        for partition, offset in placed:
            ends[partition] = max(ends[partition], offset + 1)
        closing = [Heartbeat(stream, number, CLOSED, end or None) for number, end in ends.items()]
        values = [Sent(json.dumps(heartbeat_to_record(it)).encode()) for it in closing]
        produce(job.bootstrap, job.topics.heartbeats, values)


def _is_closed(slot: dict[str, Any]) -> bool:
    names = [f"{kind}-{name}" for kind in KINDS for name in "xy"]
    return all(slot["watermarks"].get(name, {}).get("watermark") == CLOSED for name in names)


def _read_alarms(job: JobUnderTest) -> Alarms:
    """Return the alarms by condition, those of factored records among them."""
    found: Alarms = defaultdict(list)
    expanders: dict[int, Expander] = defaultdict(Expander)
    for record in job.read(job.topics.alarms):
        for alarm in expanders[record.partition].take(json.loads(record.value or b"")):
            found[alarm["condition"]].append(alarm)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONDITIONS)
def test_job_reports_the_judges_pairs_once(alarms_of: Alarms, kind: str, name: str) -> None:
    case = CASES[kind]
    judge = expected_pairs if kind == "histograms" else judged_pairs
    expected = sorted(judge(case.arrivals, CONDITIONS[name]))
    assert len(expected) > 10
    labels = {way: f"{kind}-{name}-{way}" for way in case.ways if way not in EMITS}
    for way, label in labels.items():
        if label not in case.conditions():
            continue
        found = alarms_of[label]
        assert sorted((it["a"]["id"], it["b"]["id"]) for it in found) == expected, way
        assert not any(alarm["late"] for alarm in found)


@pytest.mark.parametrize(
    ("kind", "judge"), [("intervals", judged_verdicts), ("histograms", histogram_verdicts)]
)
@pytest.mark.parametrize("name", CONDITIONS)
def test_job_judges_each_a_once(
    alarms_of: Alarms, kind: str, judge: Callable[..., Verdicts], name: str
) -> None:
    alarms = {emit: alarms_of[f"{kind}-{name}-{emit}"] for emit in EMITS}
    best = {alarm["a"]["id"]: alarm["b"]["id"] for alarm in alarms["best"]}
    alone = {alarm["a"]["id"]: alarm["b"] for alarm in alarms["unmatched"]}
    assert len(best) + len(alone) == sum(map(len, alarms.values()))
    assert best | alone == judge(CASES[kind].arrivals, CONDITIONS[name])
