"""Constraint graph of a query: the points of its events, and the bounds between them.

Problem. Show the clauses of a query as graphs that a person can read. A graph has a node for the
begin and the end of each event, or one node for an event that is an instant. An edge from v to p
has the bounds ``lower <= p - v <= upper`` of the clause. Bounds that follow from others are left
out. Nodes have ranks: if p can never be before v, the rank of p is at least that of v.

Cost: O(k²) for k points, after the closures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice, pairwise

from correlation.event_query.language.writer import write_duration
from correlation.event_query.query import Point, Side
from correlation.event_query.relevance.analysis import Relevance
from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.inputs import Input

# Maximum number of graphs of a picture; the others are counted.
GRAPH_LIMIT = 12
# A bound within this distance of a whole millisecond is a strict one.
_STRICT_US = 1
_MS = 1_000


@dataclass(frozen=True, slots=True)
class Edge:
    """Bounds ``lower <= later - earlier <= upper`` between two points.

    Parameters
    ----------
    earlier, later : Point
        The points, in the order of their ranks.
    lower_us, upper_us : int, -inf or +inf
        The bounds, in µs.
    """

    earlier: Point
    later: Point
    lower_us: Distance
    upper_us: Distance

    @property
    def label(self) -> str:
        """The bounds in words of the query language, such as "0 … 5 min"."""
        lower, upper = _bound(self.lower_us, 1), _bound(self.upper_us, -1)
        if self.lower_us == self.upper_us:
            return f"= {lower[1]}"
        if not math.isfinite(self.upper_us):
            return f"{'>' if lower[0] else '≥'} {lower[1]}"
        if not math.isfinite(self.lower_us):
            return f"{'<' if upper[0] else '≤'} {upper[1]}"
        if lower[0] or upper[0]:
            return f"{'>' if lower[0] else '≥'} {lower[1]}, {'<' if upper[0] else '≤'} {upper[1]}"
        return f"{lower[1]} … {upper[1]}"


@dataclass(frozen=True, slots=True)
class ConstraintGraph:
    """Graph of one clause.

    Parameters
    ----------
    negated : str or None
        The negated alias whose relations are in the clause; None: positive events only.
    alternative, alternatives : int
        Number of the clause, from 1, and number of clauses of the same events.
    inputs : tuple of Input
        The events of the clause, in the order of the text.
    ranks : mapping of Point to int
        Rank of each node, from 0. An instant has only its end.
    edges : tuple of Edge
        Edges between points of different events, and lengths of events that last.
    """

    negated: str | None
    alternative: int
    alternatives: int
    inputs: tuple[Input, ...]
    ranks: Mapping[Point, int]
    edges: tuple[Edge, ...]


def draw_graphs(relevance: Relevance) -> tuple[list[ConstraintGraph], int]:
    """Return the graphs of a query: of its positive events, then with each negated event.

    The graphs of positive events are left out if no relation connects them and there are others.

    Returns
    -------
    list of ConstraintGraph
        The first `GRAPH_LIMIT` graphs.
    int
        Number of further clauses.
    """
    positive = tuple(it for it in relevance.inputs if not it.negated)
    negated = [it for it in relevance.inputs if it.negated]
    alone = list(islice(_graphs_of(positive, None), GRAPH_LIMIT))
    connected = [graph for graph in alone if graph.edges]
    others = chain.from_iterable(_graphs_of((*positive, it), it) for it in negated)
    graphs = list(islice(chain(connected, others), GRAPH_LIMIT)) or alone
    clauses = sum(
        not it.contradictory for group in (positive[0], *negated) for it in group.closures
    )
    left_out = len(alone) - len(connected) if graphs is not alone else 0
    return graphs, clauses - left_out - len(graphs)


def _graphs_of(inputs: tuple[Input, ...], negated: Input | None) -> Iterator[ConstraintGraph]:
    source = inputs[0] if negated is None else negated
    closures = [it for it in source.closures if not it.contradictory]
    for number, closure in enumerate(closures, start=1):
        ranks = _rank(closure, inputs)
        edges = tuple(_edges(closure, inputs, ranks))
        alias = None if negated is None else negated.alias
        yield ConstraintGraph(alias, number, len(closures), inputs, ranks, edges)


def _nodes(inputs: tuple[Input, ...]) -> list[Point]:
    both: tuple[Side, Side] = ("begin", "end")
    return [
        Point(it.alias, side) for it in inputs for side in (both[1:] if it.is_instant else both)
    ]


def _rank(closure: Closure, inputs: tuple[Input, ...]) -> dict[Point, int]:
    """Return the length of the longest chain of distinct earlier times that ends at each point."""
    nodes = _nodes(inputs)
    ranks = dict.fromkeys(nodes, 0)
    # A chain has at most len(nodes) points, so the ranks settle within that many rounds.
    for _ in nodes:
        for v in nodes:
            for p in nodes:
                never_before = closure.dist(p, v) <= 0
                together = never_before and closure.dist(v, p) <= 0
                if p != v and never_before:
                    ranks[p] = max(ranks[p], ranks[v] + (0 if together else 1))
    used = {rank: place for place, rank in enumerate(sorted(set(ranks.values())))}
    return {node: used[rank] for node, rank in ranks.items()}


def _edges(
    closure: Closure, inputs: tuple[Input, ...], ranks: Mapping[Point, int]
) -> Iterator[Edge]:
    instants = {it.alias for it in inputs if it.is_instant}
    # Bounds of p - v that do not follow from others, by (v, p).
    bounds: dict[tuple[Point, Point], Distance] = {}
    for p, v, bound_us, is_open in closure.atoms:
        if isinstance(p, Point) and isinstance(v, Point) and bound_us <= closure.dist(v, p):
            key = _node(v, instants), _node(p, instants)
            drawn_us = bound_us - is_open * _STRICT_US
            bounds[key] = min(drawn_us, bounds.get(key, math.inf))
    order = {node: place for place, node in enumerate(_nodes(inputs))}
    for first, second in dict.fromkeys(tuple(sorted(key, key=order.__getitem__)) for key in bounds):
        v, p = (first, second) if ranks[first] <= ranks[second] else (second, first)
        upper, lower = bounds.get((v, p), math.inf), -bounds.get((p, v), math.inf)
        if v != p and (v.alias != p.alias or lower > 0 or math.isfinite(upper)):
            yield Edge(v, p, lower, upper)


def _node(point: Point, instants: set[str]) -> Point:
    return Point(point.alias, "end") if point.alias in instants else point


def _bound(bound_us: Distance, inwards: int) -> tuple[bool, str]:
    """Return whether a bound is strict, and its text; a lower bound points inwards by +1."""
    if not math.isfinite(bound_us):
        return False, ""
    whole = int(bound_us)
    strict = (whole - inwards * _STRICT_US) % _MS == 0
    whole -= inwards * _STRICT_US if strict else 0
    sign = "−" if whole < 0 else ""
    return strict, sign + (write_duration(abs(whole)) if whole else "0")


def distinct_ranks(graph: ConstraintGraph) -> int:
    """Return the number of ranks of a graph."""
    return 1 + max(graph.ranks.values())


def spans(graph: ConstraintGraph) -> Iterator[tuple[Point, Point]]:
    """Yield begin and end of each event that lasts."""
    for v, p in pairwise(graph.ranks):
        if v.alias == p.alias:
            yield v, p
