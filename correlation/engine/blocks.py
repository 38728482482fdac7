"""Input and output of a program: blocks, outcomes, snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from correlation.buffers.events import Events
from correlation.engine.heartbeats import Heartbeat
from correlation.engine.progress import Progress
from correlation.operators import Result, Share


class Control(NamedTuple):
    """A record of the config topic with its key and parsed value.

    The value is None for a tombstone, and a string with the reason if it cannot be read.
    """

    offset: int
    key: bytes
    record: object


@dataclass(frozen=True, slots=True)
class Block:
    """Records that a slot evaluates together.

    Parameters
    ----------
    controls : sequence of Control
        Config records in any order; they are applied by config offset.
    events : sequence of Events
        Events in any order; they are sorted by stream, partition and offset.
    progress : sequence of Progress
        Offsets read up to and maximum `latest` of each partition, in any order.
    heartbeats : sequence of Heartbeat
        Heartbeats in the order of their records.
    rejected : mapping of (stream, reason) to int
        Number of records that went to the dead-letter topic.
    filtered : mapping of stream to int
        Number of records that do not match the `where` of a stream.
    flush : bool
        As of `View`.
    """

    controls: Sequence[Control] = ()
    events: Sequence[Events] = ()
    progress: Sequence[Progress] = ()
    heartbeats: Sequence[Heartbeat] = ()
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)
    filtered: Mapping[str, int] = field(default_factory=dict)
    flush: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Output of a block.

    Parameters
    ----------
    results : tuple of Result
        Results to publish.
    late : tuple of Events
        Late events; they are correlated with the others.
    detected_at_us : int
        Time at which the correlation completed, in µs since 1970.
    shares : tuple of Share
        Shares of results that are merged with those of the other slots (`correlation.shares`).
    later : tuple of Result
        Results to publish after the merged ones: those of conditions whose previous version shared
        its results in this block.
    config_offset : int
        Offset of the last config record that the slot has applied.
    describe : callable
        Builds `metrics`.
    """

    results: tuple[Result, ...]
    late: tuple[Events, ...]
    detected_at_us: int
    shares: tuple[Share, ...]
    later: tuple[Result, ...]
    config_offset: int
    describe: Callable[[], dict[str, Any]]

    @property
    def metrics(self) -> dict[str, Any]:
        """The slot's record for the metrics topic, without its slot number.

        It is built when it is read, as not every batch writes it, and is that of the newest block.
        """
        return self.describe()


class Snapshot(NamedTuple):
    """Changes of the state since the last snapshot.

    `manifest` is the state; it refers to blobs by their numbers. `added` are new blobs by number;
    they must be stored before the manifest. `removed` are the numbers of blobs no longer used.
    """

    manifest: dict[str, Any]
    added: dict[int, bytes]
    removed: tuple[int, ...]
