"""Oracle for the probabilities of the results of an event query with uncertain instants.

The instant of an event is exact, or a list of buckets (lo, hi, p): uniform on each bucket. Given
the instant t of the one uncertain positive event, a combination is a result with the probability ::

    [its relations among positive events hold at t] * product over all other events r of
        (1 - P(r satisfies the relations that mention a negated alias which it matches, at t))

Its probability is the mean over t. All times and constants are integers, so between two integers
the truth of each relation is that at any inner point, and the probability of a relation between two
uncertain instants is linear in t. The product is a polynomial there, which is integrated. If all
positive events are exact, there is only one t. Formulas are evaluated as in `event_queries`,
without windows, buffers, progress or times of arrival. This module imports no package under test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

from tests.oracle.absence import times
from tests.oracle.event_queries import (
    Event,
    Item,
    JudgedQuery,
    Pattern,
    aliases_of,
    bind,
    candidates,
    holds,
    parts_of,
)

Bucket = tuple[int, int, Fraction]
# Buckets of the events with uncertain instants, by id.
Instants = Mapping[int, Sequence[Bucket]]
THIRD = Fraction(1, 3)


def probabilities(
    query: JudgedQuery, events: Iterable[Event], instants: Instants
) -> dict[tuple[Event, ...], Fraction]:
    """Return the combinations whose attributes match, and the probability that each is a result.

    `begin` and `end` of an event with an uncertain instant are its first and last possible time.
    """
    pool = list(events)
    found = {}
    for chosen in product(*(candidates(pattern, pool) for pattern in query.positive)):
        combination = dict(zip((it.alias for it in query.positive), chosen, strict=True))
        if bind(query.positive, combination) is not None:
            found[chosen] = _Case(query, pool, instants, combination).probability()
    return found


class _Case:
    """One combination."""

    def __init__(
        self,
        query: JudgedQuery,
        pool: Sequence[Event],
        instants: Instants,
        combination: dict[str, Event],
    ) -> None:
        names = {pattern.alias for pattern in query.negated}
        relations = list(parts_of(query.where))
        self.among = [part for part in relations if not names & aliases_of(part)]
        self.instants = instants
        self.combination = combination
        self.uncertain = [it for it, event in combination.items() if event.id in instants]
        # An event may match several negated aliases; it has one instant.
        self.negated: dict[Event, list[tuple[str, list[Item]]]] = {}
        for pattern in query.negated:
            mentioned = [part for part in relations if pattern.alias in aliases_of(part)]
            for event in candidates(pattern, pool):
                if self.matches(query, pattern, event):
                    self.negated.setdefault(event, []).append((pattern.alias, mentioned))

    def matches(self, query: JudgedQuery, pattern: Pattern, event: Event) -> bool:
        extended = {**self.combination, pattern.alias: event}
        return bind([*query.positive, pattern], extended) is not None

    def probability(self) -> Fraction:
        if not self.uncertain:
            return self.value_at(self.combination)
        (alias,) = self.uncertain
        total = Fraction(0)
        for lo, hi, mass in self.instants[self.combination[alias].id]:
            for left in range(lo, hi):
                total += mass * self.mean(alias, left) / (hi - lo)
        return total

    def mean(self, alias: str, left: int) -> Fraction:
        """Return the mean of the integrand for t from `left` to `left` + 1."""
        at_u, at_v = (self.moved(alias, left + part) for part in (THIRD, 2 * THIRD))
        if not all(holds(part, at_u) for part in self.among):
            return Fraction(0)
        polynomial = [Fraction(1)]
        for negated in self.negated.items():
            u, v = (self.factor(at, *negated) for at in (at_u, at_v))
            slope = 3 * (v - u)
            if u != 1 or v != 1:
                polynomial = times(polynomial, (u - slope / 3, slope))
        return sum((c / (k + 1) for k, c in enumerate(polynomial)), Fraction(0))

    def value_at(self, at: Mapping[str, Event]) -> Fraction:
        """Return the integrand if all positive events have exact times."""
        value = Fraction(all(holds(part, at) for part in self.among))
        for negated in self.negated.items():
            value *= self.factor(at, *negated)
        return value

    def moved(self, alias: str, time: Fraction) -> dict[str, Event]:
        return {**self.combination, alias: _at(self.combination[alias], time)}

    def factor(
        self,
        at: Mapping[str, Event],
        event: Event,
        uses: Sequence[tuple[str, Sequence[Item]]],
    ) -> Fraction:
        """Return the probability that an event does not stop the combination."""
        same = [it for it, mine in self.combination.items() if mine.id == event.id]
        if same:
            # The event is part of the combination: it has the time that it has there.
            times_of_event: list[tuple[Fraction, Event]] = [(Fraction(1), at[same[0]])]
        elif event.id in self.instants:
            times_of_event = list(self.pieces(event, at))
        else:
            times_of_event = [(Fraction(1), event)]
        stopped = sum(
            mass
            for mass, moved in times_of_event
            if any(
                all(holds(part, {**at, alias: moved}) for part in relations)
                for alias, relations in uses
            )
        )
        return 1 - Fraction(stopped)

    def pieces(self, event: Event, at: Mapping[str, Event]) -> Iterator[tuple[Fraction, Event]]:
        """Yield the pieces of an instant in which no relation changes: mass, and an inner point."""
        shifts = {Fraction(it.end) % 1 for it in at.values()} | {Fraction(0)}
        for lo, hi, mass in self.instants[event.id]:
            cuts = sorted({it + shift for it in range(lo, hi) for shift in shifts} | {Fraction(hi)})
            for left, right in pairwise(cuts):
                yield mass * (right - left) / (hi - lo), _at(event, (left + right) / 2)


def _at(event: Event, time: Fraction) -> Event:
    return replace(event, begin=time, end=time)  # type: ignore[arg-type]
