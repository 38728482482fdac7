"""Rebuild the program of a slot from its published state and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from correlation.buffers.events import Events
from correlation.engine.origin import Origin
from correlation.engine.program import MANIFEST_VERSION, Program
from correlation.engine.published import Published, build_segments
from correlation.engine.widening import Refitting
from correlation.operators import Cache
from correlation.resources.streams import Stream


def rebuild_program(
    published: Published,
    events: Mapping[str, Sequence[Events]],
    streams: Mapping[str, Stream],
    partitions: Mapping[str, int],
    origin: Origin,
    cache: Cache | None = None,
) -> Program:
    """Return a program that continues from a published state (docs/proofs.md, P-REBUILD).

    Nothing is evaluated: the results of these events were written before.

    Parameters
    ----------
    published : Published
        State of the slot.
    events : mapping of stream to sequence of Events
        Events of the slot, in any order: all from the first offsets of the buffers up to the
        position of the slot, and possibly earlier ones. Those that the buffers held are used.
    streams, partitions, origin, cache
        As of `Program`.
    """
    segments = build_segments(events, published.position)
    blobs = dict(entry for found in segments.values() for entry in found)
    manifest = {
        "v": MANIFEST_VERSION,
        "next_number": max(blobs, default=-1) + 1,
        "buffers": {
            name: [number for number, _ in segments.get(name, ())]
            for name in published.position["forgotten"]
        },
        # All events were read with the tokens that the streams declare now.
        "tokens": Refitting(streams, {}, 0).to_record(),
        **published.position,
        **published.totals,
    }

    def fetch(number: int) -> bytes:
        return blobs[number].to_bytes()

    return Program.restore(manifest, fetch, streams, partitions, origin, cache, is_stored=False)
