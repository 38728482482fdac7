"""Judge of the best target, and of having none, over the rationals: imports nothing of ours.

A target is an event (earliest, latest) with its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.oracle.intervals import Event, Window, is_satisfied, probability

Target = tuple[Event, bytes]
Rank = tuple[Fraction, Fraction, int, int, bytes]


def rank_target(base: Event, target: Target, window: Window) -> Rank:
    """Rank a target: the most probable first, then the nearest in the mean, then the earlier."""
    (earliest, latest), name = target
    distance = abs(Fraction(earliest + latest, 2) - Fraction(base[0] + base[1], 2))
    return (-probability(base, (earliest, latest), window), distance, latest, earliest, name)


def best_target(base: Event, targets: Sequence[Target], window: Window) -> int | None:
    """Position of the best of the satisfied targets; None where none is satisfied."""
    found = [i for i, (event, _) in enumerate(targets) if is_satisfied(base, event, window)]
    return min(found, key=lambda i: rank_target(base, targets[i], window), default=None)
