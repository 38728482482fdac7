"""Rebuild the state of the job from Kafka, without a checkpoint or for another number of slots.

Each slot has published its position, and all that its program holds beside the buffered events, in
the transaction of its last output (`spark_jobs.worker.slot_records`). The events are in the topics.
A plan has the published state of each new slot. It is stored in the checkpoint before the query
begins, and remains valid until the first batch is completed: a job that is killed meanwhile follows
the same plan. The query reads the topics from the positions of the slots. Its first batch has the
buffered events as initial state; they are not evaluated again (docs/proofs.md, P-REBUILD).

Slots of a killed job may be one batch apart. Each slot then leaves out what it has written, and the
number of slots changes only after that batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from correlation.engine.published import Published, read_sources, redistribute
from spark_jobs.driver.layout import Layout
from spark_jobs.errors import RebuildError
from spark_jobs.worker.positions import Positions, newest, position_of
from spark_jobs.worker.slot_records import Generation, SlotRecord

if TYPE_CHECKING:
    from correlation.buffers.sources import Sources
    from kafka_client.partition_offsets import Place
    from spark_jobs.driver.checkpoint import Checkpoint
    from spark_jobs.driver.streams_in_force import StreamsInForce

_FILE = "rebuild.json"
_VERSION = 1
# First offset and end offset of each partition of each topic.
Ranges = dict[str, dict[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Plan:
    """State with which the slots of a layout begin.

    Parameters
    ----------
    layout : Layout
        Layout of the new query.
    slots : tuple of SlotRecord or None
        State of each slot; None: the slot has not written anything.
    from_now : bool
        Whether events and the state of conditions are left out.
    """

    layout: Layout
    slots: tuple[SlotRecord | None, ...]
    from_now: bool = False

    @property
    def starts(self) -> Positions:
        """Positions at which the query begins; partitions without one are read completely."""
        found = [self.positions(slot) for slot in self.slots]
        return {
            topic: {
                number: min(position_of(it, topic, number) for it in found) for number in partitions
            }
            for topic, partitions in newest(*found).items()
        }

    @property
    def written(self) -> tuple[Positions, ...]:
        """By slot, positions up to which its output was written; empty if all are the starts."""
        found = tuple(self.positions(slot) for slot in self.slots)
        return () if all(it == found[0] for it in found) else found

    def ends(self, places: Collection[Place], config: str) -> Positions:
        """Return where the first batch ends if the slots do not begin together.

        It ends where the last slot begins, so that all slots have read the same records after it.

        Parameters
        ----------
        places : collection of (str, int)
            Partitions of events and heartbeats. Those that no slot has read are not read.
        config : str
            Name of the config topic. It has no end if it was created again: all slots then take
            their conditions from all its records.
        """
        found = newest(*(self.positions(slot) for slot in self.slots))
        ends: dict[str, dict[int, int]] = {}
        for topic, number in places:
            ends.setdefault(topic, {})[number] = position_of(found, topic, number)
        if config in found:
            ends[config] = {**found[config]}
        return ends

    def is_reached(self, completed: Mapping[Place, int]) -> bool:
        """Return whether completed batches have reached the positions of all slots."""
        ends = newest(*(self.positions(slot) for slot in self.slots))
        return all(
            completed.get((topic, number), 0) >= end
            for topic, partitions in ends.items()
            for number, end in partitions.items()
        )

    @staticmethod
    def positions(slot: SlotRecord | None) -> Positions:
        """Return the positions of a slot."""
        return {} if slot is None else slot.positions

    def changed_topics(self, in_force: StreamsInForce) -> list[str]:
        """Return the topics in force that were recreated since the slots read them."""
        changed = set()
        for slot in self.slots:
            ids = {} if slot is None else slot.published.position["topic_ids"]
            for name, stream in in_force.streams.items():
                now = in_force.topic_ids.get(name)
                if now is not None and ids.get(name) not in {now, None}:
                    changed.add(stream.topic)
        return sorted(changed)

    def for_topics(
        self, kept: Collection[str], config: str, config_id: str | None, epoch: int
    ) -> Plan:
        """Return the plan with the topics as they are now.

        Parameters
        ----------
        kept : collection of str
            Topics that are read from the positions of the slots; others were recreated or removed.
        config : str
            Name of the config topic.
        config_id : str or None
            Kafka's id of the config topic.
        epoch : int
            Number of config topics that this checkpoint has accepted.
        """
        slots: list[SlotRecord | None] = []
        for slot in self.slots:
            if slot is None:
                slots.append(None)
                continue
            is_same = config_id is None or slot.config_topic_id in {None, config_id}
            continued = {*kept} - (set() if is_same else {config})
            # Slots with another epoch take the conditions of the config topic instead of theirs.
            position = {**slot.published.position, "config_epoch": epoch if is_same else -1}
            slots.append(
                slot._replace(
                    positions={
                        name: it for name, it in slot.positions.items() if name in continued
                    },
                    published=Published(position, slot.published.totals),
                )
            )
        return replace(self, slots=tuple(slots))

    def to_bytes(self) -> bytes:
        """Write the stored form."""
        return orjson.dumps(
            {
                "v": _VERSION,
                "layout": self.layout.to_document(),
                "slots": [None if slot is None else slot.to_json() for slot in self.slots],
                "from_now": self.from_now,
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> Plan:
        """Read the output of `to_bytes`.

        Raises
        ------
        RebuildError
            When another version of this software wrote it.
        """
        document = orjson.loads(stored)
        if document["v"] != _VERSION:
            raise RebuildError(
                f"{_FILE} has the unknown version {document['v']}; remove the folder of the "
                "checkpoint: the job plans the rebuild again"
            )
        slots = tuple(SlotRecord.from_json(it) for it in document["slots"])
        layout = Layout.from_document(document["layout"])
        return cls(layout, slots, document.get("from_now", False))


def make_states(
    generations: Sequence[Generation], slots: int
) -> tuple[int, list[SlotRecord | None]]:
    """Return the generation of a rebuilt query, and the state of each of its slots.

    Parameters
    ----------
    generations : sequence of Generation
        The generations in Kafka, newest first, at least one.
    slots : int
        Wanted number of slots. The states of the present number are returned if the slots are not
        at the same batch, or if the state of a condition cannot be distributed again now.
    """
    found, *before = generations
    if not found.is_complete and before and before[0].is_level:
        # The job was killed when some slots of a new number of slots had written.
        former = _redistributed(before[0], found.slots)
        states: list[SlotRecord | None] = [
            found.records.get(slot, former[slot]) for slot in range(found.slots)
        ]
        return found.number, states
    if found.is_level and found.slots != slots and not holding(found):
        return found.number + 1, [*_redistributed(found, slots)]
    return found.number, [found.records.get(slot) for slot in range(found.slots)]


def holding(generation: Generation) -> list[str]:
    """Return the conditions whose state is that of one slot, and cannot be distributed to others.

    It refers to segments of the slot's buffers, or differs because of events that a slot buffered
    under a former declaration of their stream.
    """
    positions = [record.published.position for record in generation.records.values()]
    names = {name for it in positions for name in it["held_by"]}
    for name in {name for it in positions for name in it["operators"]}:
        if len({it["operators"].get(name) for it in positions}) > 1:
            names.add(name)
    return sorted(names)


def _redistributed(generation: Generation, slots: int) -> list[SlotRecord]:
    records = [generation.records[slot] for slot in range(generation.slots)]
    first = records[0]
    states = redistribute([it.published for it in records], slots)
    return [
        SlotRecord(first.checkpoint, slots, first.config_topic_id, first.positions, it)
        for it in states
    ]


def without_events(state: SlotRecord) -> SlotRecord:
    """Return the state of a slot whose buffered events are given up."""
    position = dict(state.published.position)
    position["forgotten"] = {
        name: [reached, max(kept_from, reached + 1)]
        for name, (reached, kept_from) in position["forgotten"].items()
    }
    position["sources"] = {name: [] for name in position["sources"]}
    # The conditions begin without state: their states refer to events that are given up.
    position |= {"operators": {}, "held": {}, "held_by": []}
    return state._replace(published=Published(position, state.published.totals))


def find_ranges(
    plan: Plan, in_force: StreamsInForce, begins: Mapping[Place, int]
) -> tuple[Ranges, list[str]]:
    """Return the ranges of the buffered events in the topics, and what is missing there.

    Parameters
    ----------
    plan : Plan
        The plan.
    in_force : StreamsInForce
        The streams that the query will read.
    begins : mapping of (topic, partition) to int
        Offsets of the oldest records.
    """
    ranges: Ranges = {}
    problems: dict[str, None] = {}
    for slot in plan.slots:
        for topic, sources in _buffered(slot, in_force, problems):
            for number, first, _, _ in sources:
                # Up to the position: the end of a source may follow it, without events.
                end = position_of(Plan.positions(slot), topic, number)
                begin = begins.get((topic, number), 0)
                if first < min(begin, end):
                    problems[_describe_gap(topic, number, first, begin)] = None
                elif first < end:
                    low, high = ranges.get(topic, {}).get(number, (first, end))
                    ranges.setdefault(topic, {})[number] = (min(low, first), max(high, end))
    return ranges, list(problems)


def _buffered(
    slot: SlotRecord | None, in_force: StreamsInForce, problems: dict[str, None]
) -> Iterator[tuple[str, Sources]]:
    """Yield topic and sources of the buffers of a slot that are read again."""
    if slot is None:
        return
    position = slot.published.position
    for name, sources in read_sources(position).items():
        stream = in_force.streams.get(name)
        # Program drops the events of streams that were removed or are joined otherwise now.
        if stream is None or stream.joined_by != position["joined_by"][name] or sources == ():
            continue
        before, now = position["topic_ids"].get(name), in_force.topic_ids.get(name)
        if stream.topic != position["topics"][name] or (before and now and before != now):
            problems[f"{stream.topic}: is not the topic from which stream {name} was read"] = None
        elif sources is None:
            problems[
                f"{stream.topic}: the offsets of events that the buffer of stream {name} holds are "
                "not known: an earlier version of this software read them, or the topic was "
                "created again since"
            ] = None
        else:
            yield stream.topic, sources


def _describe_gap(topic: str, partition: int, first: int, begin: int) -> str:
    return (
        f"{topic}-{partition}: the buffers hold events from offset {first} on, but the oldest "
        f"record has offset {begin}"
    )


def describe_problems(problems: Sequence[str], *, is_ordered: bool = False) -> str:
    """Return the message of a rebuild that is not possible.

    Parameters
    ----------
    problems : sequence of str
        Problems that `find_ranges` has found.
    is_ordered : bool
        Whether the query of the checkpoint was to be replaced.
    """
    begin, remedy = "COINCIDE_CHECKPOINT: is empty, and", "Restore the checkpoint"
    if is_ordered:
        begin = "the checkpoint was not changed:"
        remedy = "Start without --rebuild if this version wrote the checkpoint"
    return (
        f"{begin} the state cannot be rebuilt: {'; '.join(problems)}. {remedy}; or start once with "
        "--from-now (pairs with these events are lost), or with --from-beginning (the topics are "
        "read again from their oldest records, and alarms are written again with the same alarm_id)"
    )


def store_plan(checkpoint: Checkpoint, plan: Plan) -> None:
    """Store a plan in the checkpoint; the query of the checkpoint, if any, is replaced by it."""
    checkpoint.write(_FILE, plan.to_bytes())


def read_plan(checkpoint: Checkpoint) -> Plan | None:
    """Read the plan of the checkpoint, or None."""
    stored = checkpoint.read(_FILE)
    return None if stored is None else Plan.from_bytes(stored)


def remove_plan(checkpoint: Checkpoint) -> None:
    """Remove the plan: the query has reached the positions of all slots."""
    checkpoint.remove(_FILE)


def describe_plan(plan: Plan) -> dict[str, Any]:
    """Return facts of a plan for the log."""
    return {
        "generation": plan.layout.generation,
        "slots": len(plan.slots),
        "begin at": {topic: dict(it) for topic, it in plan.starts.items()},
    }
