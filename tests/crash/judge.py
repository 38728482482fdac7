"""The judge of the crash matrix: what was written is compared with what must be written.

The expected results are those of one program that reads all events in one block, without Spark and
without Kafka. Pairs of the plain conditions are also computed by the oracle, with rational numbers.
Records are read as a read_committed consumer receives them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from correlation.buffers.columns import SetsColumn
from correlation.buffers.events import Events
from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource
from correlation.resources.tokens import TOKENS_COLUMN
from correlation.timing.factored.expanding import Expander, is_factored
from correlation.topk.results import CHANGES, PRESENT
from tests.support.kafka import read_committed
from tests.support.topk_lists import folded, newest_lists
from tests.support.workload import NearCondition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from correlation.resources.records import Document
    from correlation.resources.streams import Stream
    from tests.crash.sending import SentEvent
    from tests.support.job import JobUnderTest
    from tests.support.kafka import Received

# The name under which copies of late events are counted.
LATE_EVENTS = "late events"
_OF_BATCHES = {"detected_at", "decided_by", "late"}


class Verdict(NamedTuple):
    """Comparison of the results with the expected ones.

    Attributes
    ----------
    expected
        Number of results of each condition that are expected.
    missing, extra
        Results that were not written, and results that are not expected.
    twice
        Results that were written more often than expected.
    problems
        Other differences.
    """

    expected: Counter[str]
    missing: list[str]
    extra: list[str]
    twice: list[str]
    problems: list[str]

    @property
    def is_right(self) -> bool:
        """Whether everything was written, once."""
        return not (self.missing or self.extra or self.twice or self.problems)


def judge(
    job: JobUnderTest,
    streams: Mapping[str, Stream],
    sent: Mapping[str, Sequence[SentEvent]],
    conditions: Mapping[str, Document],
    consumed: Mapping[str, int],
    late: Collection[str] = (),
) -> Verdict:
    """Compare the results of a job that has read all events, and whose streams are closed.

    Parameters
    ----------
    job
        The job.
    streams
        All streams that were registered.
    sent
        Events by stream.
    conditions
        Documents of all conditions that were registered.
    consumed
        Number of events that the slots have counted, by stream.
    late
        Ids of late events. No other event is near enough to them for a result.
    """
    mine = {name: streams[name] for name in sent}
    on_time = {
        name: [it for it in found if it.event.id not in late] for name, found in sent.items()
    }
    wanted, wanted_changes = expected_results(mine, on_time, conditions)
    found = Counter(facts(it) for it in expand(_values(job, job.topics.alarms)))
    changes = _values(job, job.topics.of(CHANGES))
    wanted.update(change(it) for it in wanted_changes)
    found.update(change(it) for it in changes)
    problems = _compare_with_oracle(wanted, on_time, conditions)
    wanted.update(
        _late_copy(it) for events in sent.values() for it in events if it.event.id in late
    )
    found.update(_copy_found(it) for it in read_committed(job.bootstrap, job.topics.late))
    lists = newest_lists(read_committed(job.bootstrap, job.topics.of(PRESENT)))
    lists = {name: it for name, it in lists.items() if it}
    if lists != folded(wanted_changes):
        problems.append(f"present lists: {lists} instead of {folded(wanted_changes)}")
    letters = read_committed(job.bootstrap, job.topics.dead_letter)
    problems += [f"{job.topics.dead_letter}: {it}" for it in letters[:3]]
    for name, events in sent.items():
        if name in consumed and consumed[name] != len(events):
            problems.append(f"{name}: {len(events)} events sent, {consumed[name]} counted")
    return compare(wanted, found, problems)


def compare(wanted: Counter[str], found: Counter[str], problems: list[str]) -> Verdict:
    """Compare results, whose conditions are in front of a bar."""
    return Verdict(
        Counter(it.partition("|")[0] for it in wanted.elements()),
        sorted((wanted - found).elements()),
        sorted((found - wanted).keys() - wanted.keys()),
        sorted((found - wanted).keys() & wanted.keys()),
        problems,
    )


def expected_results(
    streams: Mapping[str, Stream],
    sent: Mapping[str, Sequence[SentEvent]],
    conditions: Mapping[str, Document],
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Return the expected alarms, and the changes of lists in their order."""
    resources = [Resource("condition", name, 1, 0, it) for name, it in conditions.items()]
    controls = [Control(place, it.key, it.to_record()) for place, it in enumerate(resources)]
    return results_of_blocks(streams, [(controls, sent)])


def results_of_blocks(
    streams: Mapping[str, Stream],
    blocks: Iterable[tuple[Sequence[Control], Mapping[str, Sequence[SentEvent]]]],
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Return the alarms, and the changes of lists in their order, of streams that are closed.

    Parameters
    ----------
    streams
        The streams.
    blocks
        Config records, and the events that were sent after them.
    """
    # One program has all keys: no event is copied to several cells of a grid.
    alone = {
        name: replace(it, partitioning=Partitioning("grid", 1))
        if it.partitioning.by == "grid"
        else it
        for name, it in streams.items()
    }
    program = Program(alone, dict.fromkeys(streams, 2))
    alarms: Counter[str] = Counter()
    changes: list[dict[str, Any]] = []
    expander = Expander()
    for block in [*_blocks(blocks), Block([], [], [], _closed(streams))]:
        for result in program.advance(block, lambda: 0).results:
            channel = result.heading(0).channel
            if channel == PRESENT.name:
                continue
            values = [json.loads(it.value or b"") for it in result.records(0)]
            if channel == CHANGES.name:
                changes.extend(values)
            else:
                alarms.update(map(facts, expand(values, expander)))
    return alarms, changes


def _blocks(
    blocks: Iterable[tuple[Sequence[Control], Mapping[str, Sequence[SentEvent]]]],
) -> Iterable[Block]:
    for controls, sent in blocks:
        yield Block(
            controls,
            [_events(name, it) for name, it in sent.items() if it],
            [it for name, events in sent.items() for it in _progress(name, events)],
            [],
        )


def _closed(streams: Iterable[str]) -> list[Heartbeat]:
    return [Heartbeat(name, None, CLOSED, None) for name in streams]


def _events(name: str, sent: Sequence[SentEvent]) -> Events:
    rows = [
        (
            it.event.key.encode(),
            it.event.id.encode(),
            it.event.earliest,
            it.event.latest,
            it.partition,
            it.offset,
            0,
        )
        for it in sent
    ]
    events = Events.from_rows(name, rows)
    if sent[0].words is None:
        return events
    tokens = [sorted(word.encode() for word in it.words or ()) for it in sent]
    return replace(events, columns={TOKENS_COLUMN: SetsColumn.from_list(tokens)})


def _progress(name: str, sent: Sequence[SentEvent]) -> list[Progress]:
    found = []
    for number in range(2):
        mine = [it for it in sent if it.partition == number]
        ends = [it.offset + 1 for it in mine]
        latest = max((it.event.latest for it in mine), default=None)
        found.append(Progress(name, number, max(ends, default=0), latest))
    return found


def _values(job: JobUnderTest, topic: str) -> list[dict[str, Any]]:
    return [json.loads(it.value or b"") for it in job.read(topic)]


def expand(
    alarms: Iterable[dict[str, Any]], expander: Expander | None = None
) -> Iterable[Mapping[str, Any]]:
    """Write out the pairs of factored records, whose tables depend on batches.

    Parameters
    ----------
    alarms
        Records in the order of their topic.
    expander
        Has read the records before these; None: these are the first.
    """
    expander = expander or Expander()
    for it in alarms:
        yield from expander.take(it) if is_factored(it) else [it]


def facts(alarm: Mapping[str, Any]) -> str:
    """Return an alarm without the facts that depend on batches; its condition is in front."""
    found = {name: it for name, it in alarm.items() if name not in _OF_BATCHES}
    # Its last digit depends on which of the two events was searched for.
    if found.get("probability") is not None:
        found["probability"] = round(found["probability"], 9)
    return f"{alarm['condition']}|{json.dumps(found, sort_keys=True)}"


def change(value: Mapping[str, Any]) -> str:
    """Return a change of a list without its detection."""
    found = {name: it for name, it in value.items() if name != "detected_at"}
    return f"{value['condition']}|{json.dumps(found, sort_keys=True)}"


def _late_copy(sent: SentEvent) -> str:
    """Return the record that a late event must have in the topic of late events."""
    event = sent.event
    place = event.stream, sent.partition, sent.offset
    return f"{LATE_EVENTS}|{place} {event.key.encode()!r} {event.value!r}"


def _copy_found(record: Received) -> str:
    """Return a record in the topic of late events, as `_late_copy` does."""
    stream, partition, offset = (
        record.headers[f"coincide.error.{it}"].decode() for it in ("stream", "partition", "offset")
    )
    place = stream, int(partition), int(offset)
    return f"{LATE_EVENTS}|{place} {record.key!r} {record.value!r}"


def _compare_with_oracle(
    wanted: Counter[str],
    sent: Mapping[str, Sequence[SentEvent]],
    conditions: Mapping[str, Document],
) -> list[str]:
    """Compare the pairs of plain conditions with those of the oracle."""
    problems = []
    pairs: dict[str, set[tuple[str, str, str]]] = {name: set() for name in conditions}
    for it in wanted:
        name, _, value = it.partition("|")
        alarm = json.loads(value)
        if alarm.get("b"):
            pairs[name].add((name, alarm["a"]["id"], alarm["b"]["id"]))
    for name, document in conditions.items():
        # A pair of two events of one stream has no order that the oracle knows.
        is_plain = document["kind"] == "mutual_deadline" and not document.get("emit")
        if not is_plain or document["a"] == document["b"]:
            continue
        a, b = document["a"], document["b"]
        near = NearCondition(name, a, b, document["window_us"], document["threshold"])
        events = [one.event for stream in (a, b) for one in sent[stream]]
        if near.pairs(events) != pairs[name]:
            problems.append(f"{name}: the oracle finds other pairs")
    return problems
