"""Difference-bound matrix of a clause, closed by shortest paths.

Definition. dist(v, p) is the smallest upper bound of p - v over all times that satisfy the clause:
the length of the shortest path from v to p in the graph with an edge q -> p of length c for each
atom ``p - q <= c``. It is +inf without a path. A clause is contradictory iff the graph has a
negative cycle; then dist is -inf everywhere. All bounds are integers, and integer times attain them
(docs/proofs.md, P-QUERY-DIST). An open atom is taken as closed: dist is then an upper bound, and an
empty clause may not be contradictory.

Implicit relations. For each event: begin <= end, and the bounds of its length that its stream
declares. For an event whose instant is uncertain: end <= latest <= end + uncertainty.

Reference. Novoseltsev 2013 (TSA): dist in the definition of keep functions. Floyd and Warshall:
O(k³) for k points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from correlation.errors import InvalidFieldError
from correlation.event_query.query import Point
from correlation.event_query.relevance.normal_form import Atom, Clause, Latest, Node
from correlation.event_query.relevance.work import Work

# An integer, or +inf or -inf; never another float, so sums are exact.
Distance = float
# Steps of a point beside its paths: of its implicit relations, and of the analysis of its event.
_STEPS_OF_POINT = 200


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Stream of an event type, and the bounds of the lengths of its events.

    Parameters
    ----------
    stream : str
        Name of the stream; several event types may use one stream.
    min_length_us, max_length_us : int, int or None
        Bounds of end - begin, in µs; None: not bounded. Both are 0 for a stream of instants.
    uncertainty_us : int
        Maximum uncertainty of an instant, in µs: watermarks and keep values refer to its last
        possible time (`Latest`). 0: they refer to `rt.end`.
    """

    stream: str
    min_length_us: int = 0
    max_length_us: int | None = None
    uncertainty_us: int = 0

    def __post_init__(self) -> None:
        longest = self.min_length_us if self.max_length_us is None else self.max_length_us
        if not 0 <= self.min_length_us <= longest:
            raise InvalidFieldError(
                "max_length",
                f"must be at least min_length; got {longest} us",
                "declare 0 <= min_length <= max_length",
            )

    @property
    def uncertain(self) -> bool:
        """Whether the instants of the events are uncertain."""
        return self.uncertainty_us > 0

    @property
    def is_exact(self) -> bool:
        """Whether the events are exact instants."""
        return self.max_length_us == 0 and not self.uncertain

    def stamp(self, alias: str) -> Node:
        """Return the point of an event that progress and keep values refer to."""
        return Latest(alias) if self.uncertainty_us else Point(alias, "end")

    def relations(self, alias: str) -> list[Atom]:
        """Return the implicit relations of an event."""
        begin, end = Point(alias, "begin"), Point(alias, "end")
        atoms = [Atom(begin, end, -self.min_length_us)]
        if self.max_length_us is not None:
            atoms.append(Atom(end, begin, self.max_length_us))
        if self.uncertainty_us:
            latest = Latest(alias)
            atoms += [Atom(end, latest, 0), Atom(latest, end, self.uncertainty_us)]
        return atoms


@dataclass(frozen=True, slots=True)
class Closure:
    """Closed difference-bound matrix of a clause.

    Parameters
    ----------
    atoms : tuple of Atom
        Atoms of the clause and implicit relations.
    """

    atoms: tuple[Atom, ...]
    _rows: dict[Node, int] = field(init=False, repr=False, compare=False)
    _distances: list[list[Distance]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        points = dict.fromkeys(point for atom in self.atoms for point in (atom.p, atom.q))
        rows = {point: row for row, point in enumerate(points)}
        edges = [(rows[it.q], rows[it.p], it.bound_us) for it in self.atoms]
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_distances", _shortest_paths(len(rows), edges))

    @property
    def points(self) -> tuple[Node, ...]:
        """All points, in the order of their first mention."""
        return tuple(self._rows)

    @property
    def contradictory(self) -> bool:
        """Whether no times satisfy the clause."""
        return any(row[v] < 0 for v, row in enumerate(self._distances))

    def dist(self, v: Node, p: Node) -> Distance:
        """Return the smallest upper bound of p - v, in µs; +inf or -inf as defined above."""
        return self._distances[self._rows[v]][self._rows[p]]

    def rows(self) -> tuple[tuple[Distance, ...], ...]:
        """Return dist(v, p) of all points v, and of all points p in each row."""
        return tuple(map(tuple, self._distances))


def close_clauses(
    clauses: Sequence[Clause], events: Mapping[str, StreamTimes], work: Work
) -> tuple[Closure, ...]:
    """Return the closures of clauses over the points of some events.

    Parameters
    ----------
    clauses : sequence of Clause
        The clauses.
    events : mapping of alias to StreamTimes
        The events, with the bounds of their lengths.
    work : Work
        Counts the steps.

    Raises
    ------
    InvalidFieldError
        The closures take too much work.
    """
    implicit = _implicit(events)
    points = len({point for atom in implicit for point in (atom.p, atom.q)})
    work.spend(len(clauses) * (points**3 + _STEPS_OF_POINT * points))
    return tuple(Closure((*implicit, *clause)) for clause in clauses)


def _implicit(events: Mapping[str, StreamTimes]) -> list[Atom]:
    return [atom for alias, times in events.items() for atom in times.relations(alias)]


def _shortest_paths(k: int, edges: Iterable[tuple[int, int, int]]) -> list[list[Distance]]:
    """Return dist of points 0 to k - 1; edges are (from, to, length)."""
    dist: list[list[Distance]] = [[0 if p == v else math.inf for p in range(k)] for v in range(k)]
    for v, p, length in edges:
        dist[v][p] = min(dist[v][p], length)
    for middle in range(k):
        onwards = dist[middle]
        for v, row in enumerate(dist):
            first = row[middle]
            if first < math.inf and v != middle:
                # A comparison takes half the time of `min`.
                dist[v] = [
                    direct if direct <= (by := first + second) else by
                    for direct, second in zip(row, onwards, strict=True)
                ]
        if dist[middle][middle] < 0:
            break
    if any(dist[v][v] < 0 for v in range(k)):
        return [[-math.inf] * k for _ in range(k)]
    return dist
