"""Load the kernels, compiled where that is needed, by a small piece of the work of a slot.

Done before Spark's workers are forked, so that the first events find them loaded, and while the
image is built, so that a new container need not compile. The events go through bytes and the
program through a restore, as in the job: arrays that are views of received bytes are read-only,
which is another type to numba.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import orjson

from correlation.events import Events
from correlation.kinds import KINDS
from correlation.partitioning import Partitioner, Partitioning
from correlation.program import Block, Control, Program
from correlation.progress import Progress
from correlation.records import Resource
from correlation.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECOND_US = 1_000_000
_STREAMS = {name: Stream(name, name, _SECOND_US, _SECOND_US) for name in ("a", "b")}
_PARTITIONS = dict.fromkeys(_STREAMS, 1)
_EVENTS = 24
_BLOCKS = 3
# Every duration a kind may ask for; a horizon must reach past the others.
_DURATIONS_US = {"horizon_us": 10 * _SECOND_US, "lower_us": 0}


def main() -> None:
    """Say what was done: a condition of every kind, by every algorithm, reported in every way."""
    alarms = warm_up()
    if not alarms:
        sys.exit("the warm-up found no pair: not every kernel has run")
    sys.stdout.write(f"kernels compiled: {alarms} alarms found\n")


def warm_up(algorithm: str | None = None) -> int:
    """Advance, store and restore a program with every kind of condition.

    Parameters
    ----------
    algorithm : str or None
        By which it is evaluated; every one by default.

    Returns
    -------
    int
        Number of alarms found.
    """
    controls = list(_controls(algorithm))
    program = Program(_STREAMS, _PARTITIONS)
    blobs: dict[int, bytes] = {}
    alarms = 0
    for number in range(_BLOCKS):
        outcome = program.advance(_block(number, controls if number == 0 else []), lambda: 0)
        alarms += sum(len(list(result.records(0, orjson.dumps))) for result in outcome.results)
        snapshot = program.snapshot()
        blobs |= snapshot.added
        program = Program.restore(snapshot.manifest, blobs.__getitem__, _STREAMS, _PARTITIONS)
    return alarms


def _controls(algorithm: str | None) -> Iterator[Control]:
    """Give conditions of every kind, between two streams and within one."""
    offset = 0
    for kind in KINDS.values():
        choices = {field.name: field.choices for field in kind.fields}
        algorithms = choices["algorithm"] if algorithm is None else [algorithm]
        # What is reported first is so by default, and by every algorithm.
        ways = [("algorithm", it) for it in algorithms]
        ways += [("emit", it) for it in choices["emit"][1:]]
        for way, chosen in ways:
            for b in _STREAMS:
                document: dict[str, object] = {"kind": kind.name, "a": "a", "b": b}
                for field in kind.fields:
                    if field.type == "duration":
                        length_us = _DURATIONS_US.get(field.stored_name, 2 * _SECOND_US)
                        document[field.stored_name] = length_us
                document |= {"threshold": "0.6", way: chosen}
                name = f"{kind.name}-{chosen}-{b}".replace("_", "-")
                resource = Resource("condition", name, 1, 0, document)
                yield Control(offset, resource.key, resource.to_record())
                offset += 1


def _block(number: int, controls: list[Control]) -> Block:
    """Make a block of events of both streams, of many lengths and distances."""
    offset = number * _EVENTS
    parts, progress = [], []
    for stream in _STREAMS:
        rows = []
        for position in range(offset, offset + _EVENTS):
            latest = position * _SECOND_US // 10
            earliest = latest - position * 7_919 % _SECOND_US
            rows.append((b"k", b"%d" % position, earliest, latest, 0, position, latest))
        packed = Events.from_rows(stream, rows)
        Partitioner(Partitioning(), 2).assign(packed)
        events = Events.from_bytes(packed.to_bytes())
        parts.append(events)
        progress.append(Progress(stream, 0, offset + _EVENTS, int(events.latest.max())))
    return Block(controls, parts, progress)


if __name__ == "__main__":
    main()
