"""Conditions of a slot: config records in force, their operators, and the withdrawal of lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.segment import Segment
from correlation.config_records import read_config_record
from correlation.engine.blocks import Control
from correlation.engine.progress import Watermarks
from correlation.engine.registered import Registered, SetAside
from correlation.engine.totals import Totals
from correlation.engine.widening import widen
from correlation.errors import UnknownRecordVersionError, UnreadableRecordError
from correlation.kinds import KINDS
from correlation.operators import Operator, Result, Share
from correlation.resources.records import Resource, resource_key
from correlation.resources.streams import Stream

# Maximum size of an operator's state that is stored in the manifest; larger states become blobs.
_SMALL_STATE_BYTES = 1024


class Conditions:
    """The conditions of a slot, by name.

    Parameters
    ----------
    streams : mapping of name to Stream
        The streams in force.
    buffers : mapping of stream to StreamBuffer
        Buffers of the slot, which the program changes.
    watermarks : Watermarks
        Watermarks of the slot.
    totals : Totals
        Totals of the slot; those of removed conditions are removed.
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        buffers: Mapping[str, StreamBuffer],
        watermarks: Watermarks,
        totals: Totals,
    ) -> None:
        self._streams = streams
        self._buffers = buffers
        self._watermarks = watermarks
        self._totals = totals
        self._entries: dict[str, Registered] = {}
        self._set_aside: dict[str, SetAside] = {}
        # Conditions of an earlier config topic that have no record in the current one yet.
        self._unconfirmed: set[str] = set()
        # Results that withdraw lists, for the outcome of the next block.
        self._withdrawn: list[Result | Share] = []
        self.config_offset = -1
        # Registered streams that are not in force yet.
        self.to_come: set[str] = set()
        # Streams in force, widened to the buffered events; computed when a condition is built.
        self._held: Mapping[str, Stream] | None = None

    def values(self) -> Collection[Registered]:
        """Return the conditions in the order in which they evaluate a block."""
        return self._entries.values()

    def by_name(self) -> Mapping[str, Registered]:
        """Return the conditions by name."""
        return self._entries

    def operators(self) -> list[tuple[Registered, Operator]]:
        """Return the conditions that are evaluated, with their operators."""
        return [(it, it.operator) for it in self.values() if it.operator is not None]

    def take_withdrawn(self) -> list[Result | Share]:
        """Return the results that withdraw lists, each once."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def describe(self) -> dict[str, Any]:
        """Return their part of the slot's record for the metrics topic."""
        return {name: it.describe() for name, it in (self._entries | self._set_aside).items()}

    def apply(self, controls: Iterable[Control]) -> None:
        """Apply the config records of a block, by config offset; known records are skipped."""
        # The buffers changed since the last block; they do not change while records are applied.
        self._held = None
        for control in sorted(controls, key=lambda control: control.offset):
            if control.offset > self.config_offset:
                self.config_offset = control.offset
                self._register(control)
        # The first block after the config topic was replaced has all its records.
        for name in sorted(self._unconfirmed):
            self._forget(name)
        self._unconfirmed = set()

    def restart_config(self) -> None:
        """Prepare for another config topic: conditions without a record in it are dropped."""
        self.config_offset = -1
        self.to_come = set()
        self._unconfirmed = {*self._entries, *self._set_aside}

    def _register(self, control: Control) -> None:
        """Register the newest record of a condition, or set it aside if it cannot be read."""
        kind, _, name = control.key.decode().partition("/")
        if kind == "stream":
            self.to_come.discard(name)
            if isinstance(control.record, Mapping) and name not in self._streams:
                self.to_come.add(name)
        if kind != "condition":
            return
        self._unconfirmed.discard(name)
        if control.record is None:
            self._forget(name)
            return
        self._set_aside.pop(name, None)
        previous = self._entries.get(name)
        before = b"" if previous is None else self._end(previous)
        try:
            entry = Registered(read_config_record(control.key, control.record), control.offset)
        except (UnreadableRecordError, UnknownRecordVersionError) as error:
            # A record of a newer version stops the driver. It is stored so that the newer software
            # can read it here.
            self._set_aside[name] = SetAside.of(control, error)
            self._entries.pop(name, None)
            return
        if previous is not None:
            entry.last_alarm_at_us = previous.last_alarm_at_us
        self._build(entry)
        if previous is None or not _continues(entry, previous):
            before = b""
        self._begin(entry, before)
        self._entries[name] = entry

    def _forget(self, name: str) -> None:
        """Remove the condition of this name, if it exists, and its totals."""
        unreadable = self._set_aside.pop(name, None)
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._end(entry)
        if entry is not None or unreadable is not None:
            self._totals.forget("condition", name)
            # Also an earlier version, of another kind, may have had merged results.
            self._withdrawn.append(Share("", name, 0, b""))

    def _end(self, entry: Registered) -> bytes:
        """Withdraw the lists of a condition; return the state for its next operator."""
        return self._withdraw(entry, entry.dump(), self._buffers)

    def _withdraw(
        self, entry: Registered, state: bytes, buffers: Mapping[str, StreamBuffer]
    ) -> bytes:
        """Withdraw what a condition with a state has published, if its kind withdraws results.

        Returns
        -------
        bytes
            Empty if results were withdrawn, otherwise the state.
        """
        condition = entry.condition
        withdraw = None if condition is None else KINDS[condition.kind].withdraw
        if condition is None or withdraw is None or not state:
            return state
        found = withdraw(condition, {name: buffers[name] for name in condition.streams}, state)
        self._totals.count_evaluation(condition.name, found, 0, is_live=False)
        self._withdrawn += [*found.results, *found.shares]
        return b""

    def _build(self, entry: Registered) -> None:
        """Build the operator of a condition, or set the reason why it cannot be built."""
        if self._held is None:
            # Widened to the events buffered before a declaration changed.
            self._held = {
                name: widen(it, self._buffers[name]) for name, it in self._streams.items()
            }
        entry.build(self._streams, self._held)

    def _begin(self, entry: Registered, before: bytes) -> None:
        """Begin a condition; `before` is the state of its previous operator."""
        if entry.operator is not None:
            held_from = {name: buffer.forgotten_below for name, buffer in self._buffers.items()}
            entry.operator.begin(self._watermarks.values(), held_from, before)

    def dump_states(self, number: int) -> tuple[dict[str, int | str], dict[int, bytes]]:
        """Return the states of the operators for the manifest, and blobs of large states.

        Parameters
        ----------
        number : int
            First free number for blobs.
        """
        states: dict[str, int | str] = {}
        blobs: dict[int, bytes] = {}
        for name, entry in self._entries.items():
            state = entry.dump()
            if 0 < len(state) <= _SMALL_STATE_BYTES:
                states[name] = state.hex()
            elif state:
                states[name] = number + len(blobs)
                blobs[number + len(blobs)] = state
        return states, blobs

    def dump(self) -> dict[str, Any]:
        """Return the conditions as fields of the manifest."""
        fields: dict[str, Any] = {
            "conditions": [
                [entry.config_offset, entry.last_alarm_at_us, entry.resource.to_record()]
                for entry in self.values()
            ],
        }
        if self._set_aside:
            fields["set_aside"] = [
                [name, it.config_offset, it.record] for name, it in self._set_aside.items()
            ]
        return fields

    def load(
        self,
        manifest: Mapping[str, Any],
        fetch: Callable[[int], bytes],
        dropped: Collection[str],
    ) -> set[int]:
        """Continue from a manifest; return the numbers of the blobs with operators' states.

        A condition that cannot be evaluated any more, or whose buffered events were dropped,
        withdraws its lists, as they follow from the stored events.

        Parameters
        ----------
        manifest : mapping
            Manifest of the snapshot.
        fetch : callable
            Returns the blob of a number.
        dropped : collection of str
            Streams of the manifest whose stored events are not in the buffers.
        """
        self.config_offset = manifest["config_offset"]
        self.to_come = set(manifest["to_come"]) - self._streams.keys()
        blobs = set()
        for config_offset, last_alarm_at_us, record in manifest["conditions"]:
            entry = Registered(Resource.from_record(record), config_offset, last_alarm_at_us)
            name = entry.resource.name
            kept = manifest["operators"].get(name, "")
            if isinstance(kept, int):
                blobs.add(kept)
                state = fetch(kept)
            else:
                state = bytes.fromhex(kept)
            self._build(entry)
            if state and (entry.operator is None or not {*entry.streams}.isdisjoint(dropped)):
                stored = {it: _stored_buffer(manifest, it, fetch) for it in entry.streams}
                state = self._withdraw(entry, state, stored)
            self._begin(entry, state)
            self._entries[name] = entry
        for name, config_offset, record in manifest.get("set_aside", ()):
            # This version of the software may be able to read it.
            self._register(Control(config_offset, resource_key("condition", name), record))
        return blobs


def _continues(entry: Registered, previous: Registered) -> bool:
    """Return whether a condition continues from the state of the one that it replaces."""
    if entry.condition is None or previous.condition is None:
        return False
    return KINDS[entry.condition.kind].continues(KINDS[previous.condition.kind])


def _stored_buffer(
    manifest: Mapping[str, Any], stream: str, fetch: Callable[[int], bytes]
) -> StreamBuffer:
    """Return the buffer of a stream as stored, whatever the stream declares now."""
    numbers = manifest["buffers"].get(stream, ())
    segments = [(number, Segment.from_bytes(fetch(number))) for number in numbers]
    return StreamBuffer(segments, *manifest["forgotten"].get(stream, ()))
