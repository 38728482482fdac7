"""Sides and blocks for the tests of the algorithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from correlation.timing.intervals.algorithms import ALGORITHMS, Pairs, Side
from correlation.timing.intervals.window import TimingWindow

# Wide and narrow, cut and one-sided, for lengths of 20 to 200.
WINDOWS = [
    (-1000, 1000, None, None),
    (-400, 400, None, None),
    (-399, 399, None, None),
    (-250, 250, None, None),
    (-100, 100, None, None),
    (-10, 10, None, None),
    (50, 300, None, None),
    (-1000, 1000, -990, 300),
    (None, 100, -800, None),
    (100, None, None, 800),
]


def side(*events: tuple[int, int]) -> Side:
    """Make a side of (earliest, latest)."""
    earliest, latest = np.array(events, np.int64).reshape(-1, 2).T
    return Side(earliest, latest)


def random_side(
    rng: np.random.Generator, size: int, span: int, lengths: list[int] | None = None
) -> Side:
    """Draw a sorted side: latest times within ±span, lengths given or 20 to 200."""
    latest = np.sort(rng.integers(-span, span, size))
    drawn = rng.integers(20, 201, size) if lengths is None else rng.choice(lengths, size)
    return Side(latest - drawn, latest)


def one_group(base: Side, target: Side) -> NDArray[np.int64]:
    """Make the group of all events of either side."""
    return np.array([[0, len(base.latest), 0, len(target.latest)]], np.int64)


def correlate(
    name: str,
    base: Side,
    target: Side,
    window: TimingWindow,
    lengths: tuple[int, int] | None = None,
    *,
    exclude_same: bool = False,
) -> Pairs:
    """Run an algorithm over all events of either side."""
    return ALGORITHMS[name](
        base,
        target,
        one_group(base, target),
        window,
        exclude_same=exclude_same,
        target_lengths=lengths,
    )


def decisions(pairs: Pairs) -> dict[tuple[int, int], int]:
    """Return how each pair was decided, by its positions."""
    keys = zip(pairs.base_index.tolist(), pairs.target_index.tolist(), strict=True)
    return dict(zip(keys, pairs.decided_by.tolist(), strict=True))
