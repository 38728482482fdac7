"""Registered conditions of a slot: their records, operators and states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from correlation.buffers.buffer import StreamBuffer, describe_buffers, keep_gauge
from correlation.engine.blocks import Control
from correlation.errors import CorrelationError, UnknownRecordVersionError
from correlation.kinds import KINDS, to_condition
from correlation.limits import KEEP_NOTHING, UNKNOWN_WATERMARK
from correlation.operators import Condition, Operator
from correlation.resources.records import Resource
from correlation.resources.streams import Stream


@dataclass(slots=True)
class Registered:
    """A condition and its operator; `detail` explains why a condition has no operator."""

    resource: Resource
    config_offset: int
    last_alarm_at_us: int | None = None
    condition: Condition | None = None
    operator: Operator | None = None
    state: str = "running"
    detail: str | None = None

    def build(self, streams: Mapping[str, Stream], held: Mapping[str, Stream]) -> None:
        """Build the operator, or set `state` and `detail` if it cannot be built.

        Parameters
        ----------
        streams : mapping of name to Stream
            The streams in force.
        held : mapping of name to Stream
            The same streams, widened to the buffered events.
        """
        try:
            self.condition = to_condition(self.resource)
            missing = [name for name in self.condition.streams if name not in streams]
            if self.resource.paused:
                self.state = "paused"
            elif missing:
                self.state, self.detail = "waiting", f"for stream {', '.join(missing)}"
            else:
                kind = KINDS[self.condition.kind]
                kind.check(self.condition, streams)
                chosen = kind.operator_streams(self.condition, streams, held)
                self.operator = kind.operator(self.condition, chosen)
        except CorrelationError as error:
            self.state, self.detail = "failed", str(error)

    def is_live(self, streams: Mapping[str, Stream]) -> bool:
        """Return whether all streams of the condition follow the wall clock."""
        return all(streams[name].clock == "live" for name in self.streams)

    @property
    def streams(self) -> tuple[str, ...]:
        """Streams that the condition reads."""
        return self.condition.streams if self.condition is not None else ()

    def keep_values(
        self, watermarks: Mapping[str, int], to_come: Collection[str]
    ) -> Mapping[str, int]:
        """Return the keep values of the condition's streams, as far as it needs their events.

        Parameters
        ----------
        watermarks : mapping of stream to int
            Watermarks of the streams in force.
        to_come : collection of str
            Streams that the next run reads. A condition that waits for them keeps all events of its
            other streams (docs/proofs.md, P-WAITING).
        """
        if self.operator is not None:
            return self.operator.keep_values(watermarks)
        if self.state != "waiting" or not {*self.streams} <= {*watermarks, *to_come}:
            return {}
        return {name: UNKNOWN_WATERMARK for name in self.streams if name in watermarks}

    def dump(self) -> bytes:
        """Return the operator's own state outside the buffers."""
        return self.operator.dump() if self.operator is not None else b""

    def describe(self) -> dict[str, Any]:
        """Return its part of the slot's record for the metrics topic."""
        return {
            "version": self.resource.version,
            "state": self.state,
            "detail": self.detail,
            "config_offset": self.config_offset,
            "last_alarm_at": self.last_alarm_at_us,
        }


def keep_values(
    conditions: Iterable[Registered], watermarks: Mapping[str, int], to_come: Collection[str]
) -> dict[str, int]:
    """Return the keep value of each stream: the minimum over all conditions.

    Parameters
    ----------
    conditions : iterable of Registered
        The conditions of a slot.
    watermarks, to_come
        As in `Registered.keep_values`.
    """
    return _merged((it.keep_values(watermarks, to_come) for it in conditions), watermarks)


def describe_gauges(
    buffers: Mapping[str, StreamBuffer],
    conditions: Mapping[str, Registered],
    watermarks: Mapping[str, int],
    to_come: Collection[str],
) -> list[list[object]]:
    """Return the gauges of a slot for its record: name, labels, value.

    Parameters
    ----------
    buffers : mapping of stream to StreamBuffer
        Buffers of the slot.
    conditions : mapping of name to Registered
        Its conditions.
    watermarks, to_come
        As in `Registered.keep_values`.
    """
    found = {
        name: {stream: KEEP_NOTHING for stream in it.streams if stream in buffers}
        | dict(it.keep_values(watermarks, to_come))
        for name, it in conditions.items()
    }
    needed = _count_needed(buffers, found.values())
    gauges = describe_buffers(buffers, _merged(found.values(), watermarks))
    for name, kept in found.items():
        for stream, keep in sorted(kept.items()):
            labels = {"condition": name, "stream": stream}
            gauges += keep_gauge("condition_keep_timestamp_seconds", labels, keep)
            gauges.append(["condition_buffered_events", labels, needed[stream][keep]])
    return gauges


def _count_needed(
    buffers: Mapping[str, StreamBuffer], found: Iterable[Mapping[str, int]]
) -> dict[str, dict[int, int]]:
    """Return the number of needed events by stream and keep value; equal values are one count."""
    values: dict[str, set[int]] = {}
    for kept in found:
        for stream, keep in kept.items():
            values.setdefault(stream, set()).add(keep)
    return {stream: buffers[stream].count_needed(it) for stream, it in values.items()}


def _merged(found: Iterable[Mapping[str, int]], streams: Iterable[str]) -> dict[str, int]:
    """Return the minimum keep value of each stream."""
    keep = dict.fromkeys(streams, KEEP_NOTHING)
    for kept in found:
        for stream, value in kept.items():
            keep[stream] = min(keep[stream], value)
    return keep


@dataclass(frozen=True, slots=True)
class SetAside:
    """An unreadable newest record of a condition; the condition is not in force."""

    config_offset: int
    record: object
    problem: str

    @classmethod
    def of(cls, control: Control, error: CorrelationError) -> SetAside:
        """Build it from a record and an error; only a record of a newer version is stored."""
        problem = str(error)
        if isinstance(error, UnknownRecordVersionError):
            return cls(control.offset, control.record, problem)
        if isinstance(control.record, str):
            problem = control.record or problem
        return cls(control.offset, problem, problem)

    def describe(self) -> dict[str, Any]:
        """Return its part of the slot's record for the metrics topic."""
        return {
            "version": 0,
            "state": "unreadable",
            "detail": self.problem,
            "config_offset": self.config_offset,
            "last_alarm_at": None,
        }
