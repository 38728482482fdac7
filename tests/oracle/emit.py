"""Oracle for the best target, or none, over the rationals; it imports no package under test.

A target is an event (earliest, latest) with its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.oracle.intervals import Event, Window, is_satisfied, probability

Target = tuple[Event, bytes]
Rank = tuple[Fraction, Fraction, int, int, bytes]


def rank_target(base: Event, target: Target, window: Window) -> Rank:
    """Return the rank of a target: by probability, then by distance of means, then by time."""
    (earliest, latest), name = target
    distance = abs(Fraction(earliest + latest, 2) - Fraction(base[0] + base[1], 2))
    return (-probability(base, (earliest, latest), window), distance, latest, earliest, name)


def best_target(base: Event, targets: Sequence[Target], window: Window) -> int | None:
    """Return the position of the best satisfied target, or None without a satisfied target."""
    found = [i for i, (event, _) in enumerate(targets) if is_satisfied(base, event, window)]
    return min(found, key=lambda i: rank_target(base, targets[i], window), default=None)
