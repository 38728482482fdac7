"""Compiled form of a query: in which order its events are joined, and which relations decide.

Problem. Find the combinations in which a given positive alias, the *pivot*, has a new event. Their
other events are joined one by one to the new events.

Algorithm. The next alias is one that shares a variable with the aliases before it, and of these the
one with the narrowest range of times. The range of a bounded query is finite: all times of a result
are within finite distances of each other (relevance.unbounded). After each join the relations that
the closures imply among the joined aliases are checked, after the last join the query's own.

Uncertain instants. The search finds the combinations whose relations may hold. At most one positive
alias u has uncertain instants. The relations that decide are compiled as intervals of T_u (those
among the positive events, and those of a negated event with exact times). If the instant of a
negated event is uncertain, its relations are compiled as boxes of T_u and this instant, or without
u as intervals of this instant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from correlation.event_query.evaluation.boxes import Boxes, pack_boxes
from correlation.event_query.evaluation.candidates import Candidates, read_candidates
from correlation.event_query.evaluation.clauses import (
    Clauses,
    Columns,
    Ranges,
    pack_clauses,
    pack_ranges,
    project_closures,
)
from correlation.event_query.evaluation.result_time import ResultTime, compile_time
from correlation.event_query.evaluation.spans import Spans, pack_spans
from correlation.event_query.evaluation.views import ViewKey
from correlation.event_query.query import Query
from correlation.event_query.relevance.analysis import Relevance
from correlation.event_query.relevance.closure import Closure
from correlation.event_query.relevance.inputs import Input


@dataclass(frozen=True, slots=True)
class Side:
    """An alias of the query.

    Parameters
    ----------
    input : Input
        The alias and the closures of the clauses under which its events matter.
    candidates : Candidates
        Conditions on its events.
    variables : mapping of str to str
        An attribute of each of its variables.
    """

    input: Input
    candidates: Candidates
    variables: Mapping[str, str]

    @property
    def stream(self) -> str:
        """Its stream."""
        return self.input.times.stream

    @property
    def closures(self) -> list[Closure]:
        """Closures that are not contradictory."""
        return [it for it in self.input.closures if not it.contradictory]

    def key(self, variables: Sequence[str], *, keyed: bool) -> ViewKey:
        """Return the key of its view grouped by some variables."""
        attributes = tuple(self.variables[it] for it in variables)
        return ViewKey(self.candidates, keyed, attributes, self.input.times.is_exact)


@dataclass(frozen=True, slots=True)
class Target:
    """An alias whose events are searched for combinations.

    Parameters
    ----------
    place : int
        Number of the alias: its begin is in column 2 · place of the times.
    stream : str
        Its stream.
    key : ViewKey
        View of its candidates, grouped by the values shared with the combination.
    shared : tuple of int
        Columns of the numbers of the shared values in the table.
    new : tuple of (int, str)
        Columns of numbers that the alias adds to the table, and their attributes.
    ranges : Ranges
        Range of the times of its events.
    clauses : Clauses
        Relations that the combination and the event satisfy.
    spans : Spans or None
        Negated aliases only: the times at which an event stops a combination with a probability,
        as intervals of its own instant if that is uncertain, otherwise of T_u.
    boxes : Boxes or None
        The same if both instants are uncertain. An event without spans and boxes stops the
        combination or not.
    uncertain : bool
        Whether the instants of its events are uncertain.
    """

    place: int
    stream: str
    key: ViewKey
    shared: tuple[int, ...]
    new: tuple[tuple[int, str], ...]
    ranges: Ranges
    clauses: Clauses
    spans: Spans | None = None
    boxes: Boxes | None = None
    uncertain: bool = False

    @property
    def has_chance(self) -> bool:
        """Whether an event stops a combination with a probability."""
        return self.spans is not None or self.boxes is not None


@dataclass(frozen=True, slots=True)
class Route:
    """Joins that find the combinations with a new event of a pivot.

    Parameters
    ----------
    pivot : Target
        The pivot; its ranges are not used.
    joined : tuple of Target
        The other aliases, in the order in which they are joined.
    """

    pivot: Target
    joined: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query in the form in which it is evaluated.

    Parameters
    ----------
    keyed : bool
        Whether events meet by join key.
    positive : tuple of Side
        Positive aliases, in the order of the query.
    variables : tuple of str
        Variables of the positive aliases, in the order of their columns.
    routes : tuple of Route
        One per positive alias.
    negated : tuple of (str, Target)
        Aliases that may stop a combination, and how they are searched.
    time : ResultTime
        Time of the results.
    instant : int or None
        Number of the positive alias u whose instants are uncertain.
    domain : Spans or None
        The times of T_u at which the relations among the positive events hold; None without u.
    """

    keyed: bool
    positive: tuple[Side, ...]
    variables: tuple[str, ...]
    routes: tuple[Route, ...]
    negated: tuple[tuple[str, Target], ...]
    time: ResultTime
    instant: int | None = None
    domain: Spans | None = None


def compile_query(query: Query, relevance: Relevance, *, keyed: bool) -> CompiledQuery:
    """Compile a query.

    Parameters
    ----------
    query : Query
        The parsed query.
    relevance : Relevance
        Its analysis.
    keyed : bool
        Whether its streams are partitioned by key.
    """
    sides = [
        Side(it, *read_candidates(event))
        for it, event in zip(relevance.inputs, query.events, strict=True)
    ]
    positive = tuple(side for side in sides if not side.input.negated)
    variables = tuple(dict.fromkeys(chain.from_iterable(side.variables for side in positive)))
    uncertain = {it.alias for it in relevance.inputs if it.times.uncertain}
    compiler = _Compiler(positive, variables, uncertain, keyed=keyed)
    satisfiable = bool(positive[0].closures)
    routes = tuple(compiler.route(place) for place in range(len(positive)) if satisfiable)
    # An event whose clauses all contradict those of the combination stops nothing.
    negated = tuple(
        (side.input.alias, compiler.negation(side))
        for side in sides
        if side.input.negated and side.closures
    )
    return CompiledQuery(
        keyed,
        positive,
        variables,
        routes,
        negated,
        compile_time(query.end, relevance, compiler.columns, uncertain),
        compiler.instant,
        compiler.domain(),
    )


class _Compiler:
    def __init__(
        self,
        positive: Sequence[Side],
        variables: Sequence[str],
        uncertain: Collection[str],
        *,
        keyed: bool,
    ) -> None:
        self._positive = positive
        self._variables = variables
        self._keyed = keyed
        self.columns = {side.input.alias: 2 * place for place, side in enumerate(positive)}
        self._uncertain = uncertain
        self._among = positive[0].input.clauses
        self._all = pack_clauses(self._among, self.columns, uncertain)
        aliases = [side.input.alias for side in positive]
        found = [place for place, alias in enumerate(aliases) if alias in uncertain]
        if len(found) > 1:
            raise ValueError("at most one positive event may have an uncertain instant")
        self.instant = found[0] if found else None

    def domain(self) -> Spans | None:
        """Return the times of T_u at which the relations among the positive events hold."""
        if self.instant is None:
            return None
        alias = self._positive[self.instant].input.alias
        return pack_spans(self._among, alias, self.columns)

    def route(self, pivot: int) -> Route:
        """Return the joins that begin with a pivot."""
        joined = [pivot]
        found = [self._target(pivot, [])]
        while len(joined) < len(self._positive):
            rest = [it for it in range(len(self._positive)) if it not in joined]
            place = min(rest, key=lambda it: self._preference(it, joined))
            found.append(self._target(place, joined))
            joined.append(place)
        return Route(found[0], tuple(found[1:]))

    def negation(self, side: Side) -> Target:
        """Return how the events that stop a combination are searched."""
        alias = side.input.alias
        columns = {**self.columns, alias: 2 * len(self._positive)}
        clauses = side.input.clauses
        uncertain = alias in self._uncertain
        spans = boxes = None
        if self.instant is not None:
            instant = self._positive[self.instant].input.alias
            if uncertain:
                boxes = pack_boxes(clauses, (alias, instant), columns)
            else:
                spans = pack_spans(clauses, instant, columns)
        elif uncertain:
            spans = pack_spans(clauses, alias, columns)
        shared = [name for name in self._variables if name in side.variables]
        return Target(
            len(self._positive),
            side.stream,
            side.key(shared, keyed=self._keyed),
            self._shared_columns(shared),
            (),
            pack_ranges(side.closures, side.input.stamp, self.columns, self._uncertain),
            pack_clauses(clauses, columns, self._uncertain),
            spans,
            boxes,
            uncertain,
        )

    def _target(self, place: int, joined: Sequence[int]) -> Target:
        """Return how an alias is searched for combinations of the aliases joined before."""
        side = self._positive[place]
        bound = set(chain.from_iterable(self._positive[it].variables for it in joined))
        # The pivot's view is grouped by all its variables: equal values are searched in a row.
        shared = [name for name in self._variables if name in side.variables and name in bound]
        grouped = shared if joined else list(side.variables)
        new = [name for name in side.variables if name not in bound]
        whole = len(joined) + 1 == len(self._positive)
        return Target(
            place,
            side.stream,
            side.key(grouped, keyed=self._keyed),
            self._shared_columns(shared),
            tuple((self._variables.index(it) + self._keyed, side.variables[it]) for it in new),
            pack_ranges(side.closures, side.input.stamp, self._columns_of(joined), self._uncertain),
            self._all
            if whole
            else project_closures(
                side.closures, self._columns_of([*joined, place]), self._uncertain
            ),
        )

    def _preference(self, place: int, joined: Sequence[int]) -> tuple[bool, float]:
        """Return a sort key: aliases that share variables first, then the narrowest range."""
        side = self._positive[place]
        shares = any(side.variables.keys() & self._positive[it].variables.keys() for it in joined)
        stamps = [self._positive[it].input.stamp for it in joined]
        own = side.input.stamp
        width = max(
            (min(it.dist(own, p) + it.dist(p, own) for p in stamps) for it in side.closures),
            default=0,
        )
        return not shares, width

    def _shared_columns(self, shared: Sequence[str]) -> tuple[int, ...]:
        columns = [self._variables.index(name) + self._keyed for name in shared]
        return (0, *columns) if self._keyed else tuple(columns)

    def _columns_of(self, places: Sequence[int]) -> Columns:
        names = [self._positive[it].input.alias for it in places]
        return {name: self.columns[name] for name in names}
