"""Oracle for event queries with negation: the declarative meaning over all events.

A combination has an event for each positive alias. It is a result if its events satisfy the
relations among positive aliases and, for each negated alias, no event satisfies all relations that
mention the alias. The relations are the parts of the top-level conjunction. Equal variables mean
equal attributes. The begin and the end of a result are terms over its events; by default the
minimum begin and the maximum end. Buffers, progress and times of arrival are not considered. This
module imports no package under test; queries are nested tuples:

- term: ``("begin", alias)``, ``("end", alias)``, ``("+", term, us)``, ``("min" | "max", terms)``;
- formula: ``("<" | "<=" | ">" | ">=" | "=", term, term)``, ``("and" | "or", formulas)``,
  ``("not", formula)``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Item = tuple[Any, ...]
Combination = Mapping[str, "Event"]

_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Event:
    """An event of a stream; a missing attribute matches no pattern."""

    stream: str
    begin: int
    end: int
    attributes: tuple[tuple[str, object], ...] = ()
    id: int = 0


@dataclass(frozen=True)
class Pattern:
    """An event of a query: its stream, attribute names by variable, and (name, op, constant)."""

    alias: str
    stream: str
    variables: tuple[tuple[str, str], ...] = ()
    comparisons: tuple[tuple[str, str, Any], ...] = ()


@dataclass(frozen=True)
class JudgedQuery:
    """A query: its positive and negated events, the temporal formula, and the result's times."""

    positive: Sequence[Pattern]
    negated: Sequence[Pattern] = ()
    where: Item = field(default=("and", ()))
    begin: Item | None = None
    end: Item | None = None


def results(query: JudgedQuery, events: Iterable[Event]) -> set[tuple[Event, ...]]:
    """Return all results, each with its events in the order of the positive aliases."""
    pool = list(events)
    relations = list(parts_of(query.where))
    names = {pattern.alias for pattern in query.negated}
    among_positive = [part for part in relations if not names & aliases_of(part)]
    found: list[Combination] = [{}]
    for place, pattern in enumerate(query.positive, 1):
        # A relation is checked as soon as all its aliases have events.
        bound = query.positive[:place]
        known = {it.alias for it in bound}
        due = [part for part in among_positive if aliases_of(part) <= known]
        among_positive = [part for part in among_positive if part not in due]
        found = list(extended(found, bound, due, candidates(pattern, pool)))
    for pattern in query.negated:
        mentioned = [part for part in relations if pattern.alias in aliases_of(part)]
        matching = candidates(pattern, pool)
        bound = [*query.positive, pattern]
        found = [it for it in found if not any(extended([it], bound, mentioned, matching))]
    return {tuple(it[pattern.alias] for pattern in query.positive) for it in found}


def extended(
    combinations: Iterable[Combination],
    bound: Sequence[Pattern],
    relations: Sequence[Item],
    matching: Sequence[Event],
) -> Iterator[Combination]:
    """Yield the combinations with an event for the last pattern that satisfy some relations."""
    for combination in combinations:
        for event in matching:
            longer = {**combination, bound[-1].alias: event}
            if bind(bound, longer) is not None and all(holds(part, longer) for part in relations):
                yield longer


def time_of(query: JudgedQuery, result: Sequence[Event]) -> int:
    """Return the time of a result: its end."""
    return times_of(query, result)[1]


def times_of(query: JudgedQuery, result: Sequence[Event]) -> tuple[int, int]:
    """Return begin and end of a result."""
    named = {it.alias: event for it, event in zip(query.positive, result, strict=True)}
    begin = min(event.begin for event in result)
    end = max(event.end for event in result)
    return (
        begin if query.begin is None else value(query.begin, named),
        end if query.end is None else value(query.end, named),
    )


def candidates(pattern: Pattern, pool: Iterable[Event]) -> list[Event]:
    """Return the events of the pattern's stream that satisfy its comparisons."""
    found = []
    for event in pool:
        attributes: dict[str, Any] = dict(event.attributes)
        if event.stream == pattern.stream and all(
            name in attributes and _COMPARE[op](attributes[name], constant)
            for name, op, constant in pattern.comparisons
        ):
            found.append(event)
    return found


def bind(patterns: Iterable[Pattern], combination: Combination) -> dict[str, object] | None:
    """Return the values of the variables, or None if attributes differ or are missing."""
    values: dict[str, object] = {}
    for pattern in patterns:
        attributes = dict(combination[pattern.alias].attributes)
        for variable, name in pattern.variables:
            if (
                name not in attributes
                or values.setdefault(variable, attributes[name]) != (attributes[name])
            ):
                return None
    return values


def parts_of(formula: Item, *, negate: bool = False) -> Iterator[Item]:
    """Yield the parts of the top-level conjunction, with negations pushed into it."""
    if formula[0] == "not":
        yield from parts_of(formula[1], negate=not negate)
    elif formula[0] == ("or" if negate else "and"):
        for part in formula[1]:
            yield from parts_of(part, negate=negate)
    else:
        yield ("not", formula) if negate else formula


def aliases_of(item: Item) -> set[str]:
    """Return the aliases that a formula or a term mentions."""
    kind = item[0]
    if kind in {"begin", "end"}:
        return {item[1]}
    if kind in {"and", "or", "min", "max"}:
        return set().union(*map(aliases_of, item[1]))
    inner = item[1:2] if kind in {"not", "+"} else item[1:]
    return set().union(*map(aliases_of, inner))


def holds(formula: Item, combination: Combination) -> bool:
    """Return whether the events of a combination satisfy a formula."""
    kind = formula[0]
    if kind == "not":
        return not holds(formula[1], combination)
    if kind == "and":
        return all(holds(part, combination) for part in formula[1])
    if kind == "or":
        return any(holds(part, combination) for part in formula[1])
    return bool(_COMPARE[kind](value(formula[1], combination), value(formula[2], combination)))


def value(term: Item, combination: Combination) -> int:
    """Return the value of a temporal term."""
    match term:
        case ("begin", alias):
            return combination[alias].begin
        case ("end", alias):
            return combination[alias].end
        case ("+", inner, by):
            return value(inner, combination) + int(by)
        case ("min", terms):
            return min(value(it, combination) for it in terms)
        case ("max", terms):
            return max(value(it, combination) for it in terms)
    raise ValueError(term)
