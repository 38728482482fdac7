"""Positions in the log: the next offset to read of each partition of each topic."""

from __future__ import annotations

from collections.abc import Mapping

# Topic to partition to the last offset read plus 1.
Positions = Mapping[str, Mapping[int, int]]


def newest(*found: Positions) -> dict[str, dict[int, int]]:
    """Return the maximum position of each partition."""
    merged: dict[str, dict[int, int]] = {}
    for positions in found:
        for topic, partitions in positions.items():
            mine = merged.setdefault(topic, {})
            for partition, offset in partitions.items():
                mine[partition] = max(offset, mine.get(partition, offset))
    return merged


def replaced(former: Positions, now: Positions) -> dict[str, dict[int, int]]:
    """Return positions in which partitions of `now` replace those of `former`.

    A position moves back when a topic was recreated or truncated.
    """
    topics = {*former, *now}
    return {topic: {**former.get(topic, {}), **now.get(topic, {})} for topic in topics}


def position_of(positions: Positions, topic: str, partition: int) -> int:
    """Return the position of a partition; 0 if nothing was read."""
    return positions.get(topic, {}).get(partition, 0)


def from_json(document: Mapping[str, Mapping[str, int]]) -> dict[str, dict[int, int]]:
    """Read positions from JSON, whose keys are strings."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in document.items()
    }


def to_json(positions: Positions) -> dict[str, dict[str, int]]:
    """Write positions as a JSON-able dict."""
    return {
        topic: {str(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in positions.items()
    }


def as_places(positions: Positions) -> dict[tuple[str, int], int]:
    """Return positions by (topic, partition)."""
    return {
        (topic, partition): offset
        for topic, partitions in positions.items()
        for partition, offset in partitions.items()
    }


def as_positions(offsets: Mapping[tuple[str, int], int]) -> Positions:
    """Return offsets by (topic, partition) as positions."""
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in offsets.items():
        found.setdefault(topic, {})[partition] = offset
    return found
