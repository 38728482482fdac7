"""Programs with a top-k condition for tests: streams, blocks of sets, and the lists they write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from correlation.buffers.columns import Column, DictionaryColumn, SetsColumn
from correlation.buffers.events import Events
from correlation.buffers.partitioner import Partitioner
from correlation.engine.blocks import Block, Control, Outcome
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.merged import MergedTotals
from correlation.engine.progress import Progress
from correlation.operators import Share
from correlation.resources.attributes import Attribute, column_name, encode_value
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.tokens import TOKENS_COLUMN, Tokens
from correlation.shares import merge_shares
from correlation.topk.local import SlotShare
from tests.support.query_slots import QuerySlot
from tests.support.records import built_in_checker
from tests.support.slots import control_record

DELAY = 4
STREAMS = ("left", "right")


@dataclass(frozen=True)
class Tagged:
    """An event with tokens, and its position in Kafka."""

    id: int
    time: int
    tokens: frozenset[str]
    stream: str = "left"
    key: str = "0"
    color: str = "red"
    partition: int = 0
    offset: int = 0


def make_tag_streams(*, keyed: bool, groups: int = 1) -> dict[str, Stream]:
    """Return two streams of events with tokens and the attribute `color`."""
    return {
        name: Stream(
            name,
            name,
            0,
            DELAY,
            partitioning=Partitioning() if keyed else Partitioning("grid", groups),
            clock="replay",
            attributes=(Attribute("color", ("color",)),),
            tokens=Tokens(("tags",)),
        )
        for name in STREAMS
    }


def topk_control(
    offset: int, fields: Mapping[str, object], version: int = 1, *, paused: bool = False
) -> Control:
    """Return the record of the top-k condition `t` in the config topic."""
    document: dict[str, object] = {
        "kind": "topk_similarity",
        "a": "left",
        "k": 3,
        "window_us": 10,
        "similarity": "jaccard",
        "per_key": False,
        "report": "batch",
        "search": "shortest",
        **fields,
    }
    return control_record(offset, "t", document, version, paused=paused)


def make_tag_block(
    arrivals: Sequence[Tagged],
    controls: Sequence[Control] = (),
    heartbeats: Sequence[Heartbeat] = (),
) -> Block:
    """Return a block of events with their progress."""
    parts, progress = [], []
    for place in sorted({(it.stream, it.partition) for it in arrivals}):
        mine = [it for it in arrivals if (it.stream, it.partition) == place]
        parts.append(_make_events(mine))
        reached = max(it.time for it in mine)
        progress.append(Progress(*place, mine[-1].offset + 1, reached))
    return Block(controls, parts, progress, heartbeats=heartbeats)


def _make_events(arrivals: Sequence[Tagged]) -> Events:
    rows = [
        (
            it.key.encode(),
            str(it.id).encode(),
            it.time,
            it.time,
            it.partition,
            it.offset,
            it.time,
        )
        for it in arrivals
    ]
    colors = [encode_value(it.color) for it in arrivals]
    sets = [sorted(token.encode() for token in it.tokens) for it in arrivals]
    columns: dict[str, Column] = {
        column_name("color"): DictionaryColumn.from_list(colors),
        TOKENS_COLUMN: SetsColumn.from_list(sets),
    }
    return replace(Events.from_rows(arrivals[0].stream, rows), columns=columns)


class GridSlots:
    """The slots of a job with a grid: they share the events, and their shares are merged.

    Parameters
    ----------
    groups : int
        Number of groups of the grid.
    slots : int
        Number of slots.
    """

    def __init__(self, groups: int, slots: int) -> None:
        self.streams = make_tag_streams(keyed=False, groups=groups)
        self.slots = [QuerySlot(self.streams) for _ in range(slots)]
        self.totals = MergedTotals()

    def spread(self, block: Block) -> list[Block]:
        """Return the blocks of all slots."""
        events: list[list[Events]] = [[] for _ in self.slots]
        for part in block.events:
            partitioner = Partitioner.of_stream(self.streams[part.stream], len(self.slots))
            for number, mine in partitioner.spread(part):
                events[number].append(mine)
        return [replace(block, events=mine) for mine in events]

    def outcomes(self, block: Block) -> list[Outcome]:
        """Evaluate a block in all slots; return their outcomes."""
        return [slot.advance(it) for slot, it in zip(self.slots, self.spread(block), strict=True)]

    def advance(self, block: Block) -> Outcome:
        """Evaluate a block in all slots; return the outcome of slot 0 with all results.

        Merged results are counted in `totals`.
        """
        outcomes = self.outcomes(block)
        check_moments(outcomes)
        return self.merge(outcomes, [it.shares for it in outcomes])

    def merge(self, outcomes: Sequence[Outcome], shares: Sequence[Sequence[Share]]) -> Outcome:
        """Merge shares of all slots; return the outcome of slot 0 with all results."""
        merged = merge_shares(shares)
        self.totals.count(merged, outcomes[0].detected_at_us)
        results = [result for it in outcomes for result in it.results]
        results += (result for it in merged if it.evaluation for result in it.evaluation.results)
        results += (result for it in outcomes for result in it.later)
        return replace(outcomes[0], results=tuple(results))

    def restart(self, groups: int | None = None) -> None:
        """Restore all slots from their stored states, with another number of groups if given."""
        if groups is not None:
            self.streams = make_tag_streams(keyed=False, groups=groups)
        for slot in self.slots:
            slot.streams = self.streams
        self.restart_part(range(len(self.slots)))

    def restart_part(self, numbers: Iterable[int]) -> None:
        """Restore some slots from their stored states, as after the end of a worker."""
        for number in numbers:
            self.slots[number].restart()


def result_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metrics of a slot, or of merged results, say of the changes of lists."""
    names = "alarms_total", "topk_changes_total", "topk_last_value"
    found: dict[str, Any] = {
        f"{name} {labels}": value
        for name, labels, value in (*record["counters"], *record["gauges"])
        if name in names and value
    }
    times: Mapping[str, int | None] = record.get("last_alarm_at") or {
        name: it["last_alarm_at"] for name, it in record.get("conditions", {}).items()
    }
    return {**found, **{name: it for name, it in times.items() if it is not None}}


def check_moments(outcomes: Sequence[Outcome]) -> None:
    """Check that the shares of all slots have the same times and reasons."""
    for shares in zip(*(it.shares for it in outcomes), strict=True):
        moments = [SlotShare.from_bytes(it.blob).moment for it in shares if it.blob]
        assert len({it._replace(is_late=False) for it in moments}) <= 1, moments


Named = tuple[int, int]


@dataclass
class WrittenLists:
    """Content of the records of a condition: lists by key, as changed and as present."""

    changed: dict[str | None, list[Named]] = field(default_factory=dict)
    present: dict[str | None, list[Named]] = field(default_factory=dict)
    changes: list[dict[str, Any]] = field(default_factory=list)

    def apply(self, outcome: Outcome) -> None:
        """Read the records of a block; `changes` are those of this block."""
        self.changes = []
        for heading, record in built_in_checker().records_of(outcome):
            if heading.channel == "topk":
                assert record.value is not None
                self.changes.append(json.loads(record.value))
            else:
                self._read_list(record.key, record.value)
        self._follow()

    def _read_list(self, record_key: bytes, value: bytes | None) -> None:
        _, separator, name = record_key.partition(b"/")
        key = name.decode() if separator else None
        if value is None:
            self.present.pop(key, None)
            return
        items = json.loads(value)["items"]
        assert [it["rank"] for it in items] == [*range(1, len(items) + 1)]
        self.present[key] = [named(it) for it in items]

    def _follow(self) -> None:
        """Apply the changes, event by event: those of an event have equal time and neighbours."""
        for key, changes in _events(self.changes):
            before = self.changed.get(key, [])
            kept = list(before)
            # A set that is sent again with other tokens: its pair leaves, and enters with its ids.
            for it in changes:
                if it["change"] == "left":
                    assert before[it["rank"] - 1] == named(it)
                else:
                    assert (it["change"] == "moved") == (named(it) in kept)
                if it["change"] != "entered":
                    kept.remove(named(it))
            placed = sorted((it["rank"], named(it)) for it in changes if it["change"] != "left")
            for rank, pair in placed:
                kept.insert(rank - 1, pair)
            self.changed[key] = kept
            if not kept:
                del self.changed[key]


def _events(
    changes: Iterable[Mapping[str, Any]],
) -> list[tuple[str | None, list[Mapping[str, Any]]]]:
    """Divide changes into events: each begins with pairs that left."""
    found: list[tuple[str | None, list[Mapping[str, Any]]]] = []
    last: Mapping[str, Any] | None = None
    for it in changes:
        key = it.get("key")
        again = (
            last is None
            or found[-1][0] != key
            or (it["version"], it["time"]) != (last["version"], last["time"])
            or (it["change"] == "left" and last["change"] != "left")
            or (it["change"] != "left" and last["change"] != "left" and it["rank"] <= last["rank"])
        )
        if again:
            found.append((key, []))
        found[-1][1].append(it)
        last = it
    return found


def named(item: Mapping[str, Any]) -> Named:
    """Return the ids of the sets of a pair."""
    return int(item["older"]["id"]), int(item["newer"]["id"])
