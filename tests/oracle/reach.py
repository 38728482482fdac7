"""Oracle for the max distance of satisfied pairs, by trying all lengths."""

from __future__ import annotations

from functools import cache

from tests.oracle.intervals import Window, is_satisfied


@cache
def extremes(window: Window, longest: int, reach: int) -> tuple[int, int]:
    """Find the min and max of max_B - max_A within ±reach over satisfied pairs up to `longest`.

    Return (1, 0) without a satisfied pair.
    """
    satisfied = [
        s
        for s in range(-reach, reach + 1)
        if any(
            is_satisfied((-a, 0), (s - b, s), window)
            for a in range(longest + 1)
            for b in range(longest + 1)
        )
    ]
    return (satisfied[0], satisfied[-1]) if satisfied else (1, 0)
