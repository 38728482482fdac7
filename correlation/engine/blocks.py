"""What goes into a program and what comes out: blocks, outcomes, snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from correlation.buffers.events import Events
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.progress import Progress
from correlation.operators import Result


@dataclass(frozen=True, slots=True)
class Origin:
    """Which topics the records of a program come from: a name may come to another topic.

    Parameters
    ----------
    topic_ids : mapping of stream to str
        Kafka's id of the stream's topic; a stream without one keeps the id that it had.
    config_epoch : int
        How many config topics were accepted in place of an earlier one.
    """

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    config_epoch: int = 0


class Control(NamedTuple):
    """A record of the config topic: its key and parsed value.

    None deletes; a string is the reason why the value cannot be read.
    """

    offset: int
    key: bytes
    record: object


@dataclass(frozen=True, slots=True)
class Block:
    """What a slot evaluates at once.

    Parameters
    ----------
    controls : sequence of Control
        In any order; the config offset decides.
    events : sequence of Events
        In any order; stream, partition and offset decide.
    progress : sequence of Progress
        How far the streams have come with this block, in any order.
    heartbeats : sequence of Heartbeat
        In the order of their records.
    rejected : mapping of (stream, reason) to int
        Records that went to the dead letter, to be counted.
    """

    controls: Sequence[Control] = ()
    events: Sequence[Events] = ()
    progress: Sequence[Progress] = ()
    heartbeats: Sequence[Heartbeat] = ()
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a block brought.

    Parameters
    ----------
    results : tuple of Result
        To be published.
    late : tuple of Events
        Events that came later than their stream declares; they were correlated all the same.
    detected_at_us : int
        When the correlation completed, in µs since 1970.
    metrics : dict
        The slot's record for the metrics topic, without its slot number.
    """

    results: tuple[Result, ...]
    late: tuple[Events, ...]
    detected_at_us: int
    metrics: dict[str, Any]


class Snapshot(NamedTuple):
    """What changed since the last snapshot.

    `manifest` names all that is live; `added` are blobs by number, to be stored before the
    manifest; `removed` are numbers whose blobs nothing names any more.
    """

    manifest: dict[str, Any]
    added: dict[int, bytes]
    removed: tuple[int, ...]
