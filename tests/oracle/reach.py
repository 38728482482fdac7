"""How far apart satisfied pairs can be, by trying all lengths: imports nothing of ours."""

from __future__ import annotations

from functools import cache

from tests.oracle.intervals import Window, is_satisfied


@cache
def extremes(window: Window, longest: int, reach: int) -> tuple[int, int]:
    """Least and greatest max_B - max_A within ±reach of any satisfied pair of lengths to longest.

    (1, 0) if there is none.
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
