"""Checks of a query that need no streams.

Each negated event is looked for on its own, given a combination of positive events. Therefore no
relation, disjunction or variable may connect two negated events.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from correlation.event_query.language.errors import quoted
from correlation.event_query.language.grammar import KEYWORDS, NAME
from correlation.event_query.language.limits import (
    MAX_ATTRIBUTES,
    MAX_EVENTS,
    MAX_NAME,
    MAX_NESTING,
    MAX_SEARCHED,
)
from correlation.event_query.language.result_times import check_result_times
from correlation.event_query.query import (
    And,
    AttributePattern,
    Comparison,
    EventPattern,
    Extreme,
    Formula,
    Not,
    OutputAttribute,
    Point,
    Query,
    Relation,
    Shifted,
    Term,
    Variable,
    points_of,
    relations_of,
)
from correlation.limits import DURATION_LIMIT_US
from correlation.resources.durations import describe_limit

DOTTED_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.]|-(?!-))*")


class Problem(NamedTuple):
    """A problem of a query.

    Parameters
    ----------
    part : object
        Part of the query, by identity.
    field : str
        Field of the part; empty for the part itself.
    problem, remedy : str
        What is wrong, and how to correct it.
    """

    part: object
    field: str
    problem: str
    remedy: str


def find_problems(query: Query) -> Iterator[Problem]:
    """Yield the problems of a query."""
    if too_large := list(_check_sizes(query)):
        yield from too_large
        return
    yield from _check_names(query)
    yield from _check_attributes(query)
    yield from _check_variables(query)
    times = [it for it in (query.result_begin, query.result_end) if it is not None]
    if max(map(_depth, (query.where, *times))) > MAX_NESTING:
        yield Problem(
            query.where,
            "",
            f"must be nested at most {MAX_NESTING} levels deep",
            "remove levels, or split the query",
        )
        return
    points = tuple(_points_of(query.where))
    yield from _check_aliases(query, points)
    for it in check_result_times(query):
        field = "alias" if isinstance(it.part, Point) else "type"
        yield Problem(it.part, field, it.problem, it.remedy)
    yield from _check_offsets(query.where, times)
    negated = {event.alias for event in query.negated}
    yield from _Disjunctions(negated).check(query.where)


def _check_names(query: Query) -> Iterator[Problem]:
    names: list[tuple[object, str, str, re.Pattern[str]]] = [
        (query, "type", query.type, DOTTED_NAME)
    ]
    for event in query.events:
        names.append((event, "alias", event.alias, NAME))
        names.append((event, "type", event.type, DOTTED_NAME))
    for attribute in _attributes_of(query):
        names.append((attribute, "name", attribute.name, DOTTED_NAME))
        if (variable := _variable_of(attribute)) is not None:
            names.append((variable, "variable", variable.name, NAME))
    for part, field, name, pattern in names:
        if pattern.fullmatch(name) is None or len(name) > MAX_NAME:
            signs = "and '_'" if pattern is NAME else "'_', '.' and '-'"
            yield Problem(
                part,
                field,
                f"{quoted(name)} is not a valid name",
                f"use 1 to {MAX_NAME} of A-Z, a-z, 0-9 {signs}",
            )
    for event in query.events:
        if event.alias.lower() in KEYWORDS:
            yield Problem(event, "alias", f"{quoted(event.alias)} is a keyword", "use another name")


def _check_sizes(query: Query) -> Iterator[Problem]:
    if not query.positive:
        yield Problem(
            query.events[0] if query.events else query.events,
            "",
            "a query needs at least one positive event",
            "add an event without not",
        )
    if len(query.events) > MAX_EVENTS:
        yield Problem(
            query.events[MAX_EVENTS],
            "",
            f"a query must have at most {MAX_EVENTS} events",
            "split the query",
        )
    for attributes in (query.attributes, *(event.attributes for event in query.events)):
        if len(attributes) > MAX_ATTRIBUTES:
            yield Problem(
                attributes[MAX_ATTRIBUTES],
                "",
                f"an event must have at most {MAX_ATTRIBUTES} attributes",
                "remove attributes",
            )


def _check_attributes(query: Query) -> Iterator[Problem]:
    counted: Counter[str] = Counter()
    for attribute in query.attributes:
        counted[attribute.name] += 1
        if counted[attribute.name] == 2:  # noqa: PLR2004 - the first repetition
            yield Problem(
                attribute,
                "name",
                f"DETECT has several attributes {quoted(attribute.name)}",
                "keep one of them",
            )
    for part in _attributes_of(query):
        value = part.value if isinstance(part, OutputAttribute) else part.pattern
        constant = value.constant if isinstance(value, Comparison) else value
        if isinstance(constant, str) and any("\ud800" <= it <= "\udfff" for it in constant):
            yield Problem(
                part,
                "constant",
                "the string contains half of a surrogate pair",
                "write the character itself",
            )
        if isinstance(value, Comparison) and value.operator != "=" and isinstance(constant, bool):
            yield Problem(
                value,
                "operator",
                "true and false cannot be compared by order",
                "use {true} or {false}",
            )


def _check_variables(query: Query) -> Iterator[Problem]:
    positive = set(_variables_of(query.positive))
    bound = {variable.name for variable in positive}
    negated = {variable.name for variable in _variables_of(query.negated)}
    for attribute in query.attributes:
        if isinstance(attribute.value, Variable) and attribute.value.name not in bound:
            name = attribute.value.name
            where = "occurs only in negated events" if name in negated else "is not in any event"
            yield Problem(
                attribute.value,
                "variable",
                f"variable {quoted(name)} {where}, and has no value in the result",
                _suggest(name, bound) or f"add {{var {name}}} to a positive event",
            )
    reported = set(bound)
    for variable in _variables_of(query.negated):
        if variable.name not in reported:
            reported.add(variable.name)
            yield Problem(
                variable,
                "variable",
                f"variable {quoted(variable.name)} occurs only in negated events: it has no value "
                "that they could be compared with",
                _suggest(variable.name, bound)
                or f"add {{var {variable.name}}} to a positive event, or remove it",
            )


def _check_aliases(query: Query, points: Iterable[Point]) -> Iterator[Problem]:
    known: set[str] = set()
    for event in query.events:
        if event.alias in known:
            yield Problem(
                event, "alias", f"several events have the alias {quoted(event.alias)}", "rename one"
            )
        known.add(event.alias)
    for point in points:
        # The result has the name of its type.
        if point.alias not in known and point.alias != query.type:
            yield Problem(
                point,
                "alias",
                f"no event has the alias {quoted(point.alias)}",
                _suggest(point.alias, known) or f"use {' or '.join(sorted(known)) or 'an alias'}",
            )


def _check_offsets(formula: Formula, times: Iterable[Term]) -> Iterator[Problem]:
    relations = list(relations_of(formula))
    terms = [*times, *chain.from_iterable((it.left, it.right) for it in relations)]
    for term in chain.from_iterable(map(_terms_of, terms)):
        if isinstance(term, Shifted) and abs(term.offset_us) > DURATION_LIMIT_US:
            yield Problem(
                term,
                "offset_us",
                f"a term must be shifted by at most {describe_limit(DURATION_LIMIT_US)}",
                "use a shorter duration",
            )


class _Disjunctions:
    """Check that relations and disjunctions mention one negated event at most.

    `not` of a conjunction is a disjunction, and `not` of a disjunction is a conjunction.
    """

    def __init__(self, negated: set[str]) -> None:
        self._negated = negated
        self._found: list[Problem] = []

    def check(self, formula: Formula) -> list[Problem]:
        self._mentioned(formula, affirmed=True)
        return self._found

    def _mentioned(self, formula: Formula, *, affirmed: bool) -> dict[str, Point]:
        """Return the first mention of each negated alias; note the innermost violations."""
        if isinstance(formula, Not):
            return self._mentioned(formula.part, affirmed=not affirmed)
        before = len(self._found)
        mentioned: dict[str, Point] = {}
        if isinstance(formula, Relation):
            for point in _points_of(formula):
                if point.alias in self._negated:
                    mentioned.setdefault(point.alias, point)
            kind, remedy = "relation", "relate each of them to positive events"
            restricted = True
        else:
            for part in formula.parts:
                for alias, point in self._mentioned(part, affirmed=affirmed).items():
                    mentioned.setdefault(alias, point)
            kind, remedy = "disjunction", "mention only one negated event in it"
            if not affirmed:
                remedy += "; not of a conjunction is a disjunction"
            restricted = isinstance(formula, And) != affirmed
        if restricted and len(mentioned) > 1 and len(self._found) == before:
            first, second = list(mentioned)[:2]
            self._found.append(
                Problem(
                    mentioned[second],
                    "",
                    f"a {kind} must not mention two negated events, {quoted(first)} and "
                    f"{quoted(second)}: each is looked for on its own",
                    remedy,
                )
            )
        return mentioned


def _depth(formula: Formula | Term) -> int:
    inner: tuple[Formula | Term, ...]
    if isinstance(formula, Point):
        return 0
    if isinstance(formula, Relation):
        inner = (formula.left, formula.right)
    elif isinstance(formula, Not):
        inner = (formula.part,)
    elif isinstance(formula, Shifted):
        inner = (formula.term,)
    else:
        inner = formula.terms if isinstance(formula, Extreme) else formula.parts
    return 1 + max(map(_depth, inner), default=0)


def _terms_of(term: Term) -> Iterator[Term]:
    """Yield a term and the terms inside it."""
    yield term
    if not isinstance(term, Point):
        for inner in term.terms if isinstance(term, Extreme) else (term.term,):
            yield from _terms_of(inner)


def _points_of(formula: Formula) -> Iterator[Point]:
    for relation in relations_of(formula):
        yield from chain(points_of(relation.left), points_of(relation.right))


def _attributes_of(query: Query) -> Iterator[OutputAttribute | AttributePattern]:
    yield from query.attributes
    for event in query.events:
        yield from event.attributes


def _variable_of(attribute: OutputAttribute | AttributePattern) -> Variable | None:
    value = attribute.value if isinstance(attribute, OutputAttribute) else attribute.pattern
    return value if isinstance(value, Variable) else None


def _variables_of(events: Iterable[EventPattern]) -> list[Variable]:
    attributes = chain.from_iterable(event.attributes for event in events)
    return [it.pattern for it in attributes if isinstance(it.pattern, Variable)]


def _suggest(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests similar names; empty without similar names."""
    near = difflib.get_close_matches(name, sorted(known)[:MAX_SEARCHED], cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else ""
