"""Hypothesis strategies for event queries: valid ones, in the normal form of the language."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from hypothesis import strategies as st

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.grammar import KEYWORDS
from correlation.event_query.language.normal import normal_query
from correlation.event_query.language.writer import write_query
from correlation.event_query.query import (
    TRUE,
    And,
    AttributePattern,
    Comparison,
    EventPattern,
    Extreme,
    Formula,
    Not,
    Or,
    OutputAttribute,
    Point,
    Query,
    Relation,
    Shifted,
    Term,
    Variable,
)
from correlation.limits import DURATION_LIMIT_US

ALIASES = ["s", "min_", "END_2", "rt", "begin", "d", "r", "x"]
VARIABLES = ["X", "var", "area", "_1"]
OPERATORS = ["<", "<=", ">", ">=", "="]
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,9}", fullmatch=True) | st.sampled_from(
    ["where", "end", "not", "var", "a-b", "0", "true"]
)
texts = st.text(max_size=8) | st.sampled_from(['"', "\\", "-- no", "\u2028", "\x00", "END", "𝄞"])
constants = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(10**40) + 1, 10**40 - 1),
    st.decimals(-(10**6), 10**6, places=5),
    st.sampled_from([Decimal("0.1"), Decimal("-1e-9"), 2**63, -(2**63), 2**63 - 1]),
)
offsets_us = st.one_of(
    st.integers(-(10**4), 10**4),
    st.sampled_from([1, 1_500_000, 300_000_000, 86_400_000_000, 90_000_000]),
    st.integers(-DURATION_LIMIT_US // 4, DURATION_LIMIT_US // 4),
)
# Parts of texts and of documents, most of them at a wrong place.
WORDS = st.sampled_from(
    [
        *(word.upper() for word in KEYWORDS),
        *(
            "Alarm",
            "s",
            "r",
            "x.rt.end",
            "s.rt.begin",
            "{",
            "}",
            "(",
            ")",
            ",",
            ":",
            "<=",
            "==",
            "=",
        ),
        *("+ 5 min", "-3", "0.1 ms", '"', '"a"', "{var X}", "true", "--", "\n", "\t", "é", "\x00"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["detect", "events", "where", "and", "min", "alias", "number"]), inner
        )
    ),
    max_leaves=8,
)


def terms(aliases: list[str]) -> st.SearchStrategy[Term]:
    """Return a strategy for temporal terms over some aliases."""
    points = st.builds(Point, st.sampled_from(aliases), st.sampled_from(["begin", "end"]))
    return st.recursive(
        points,
        lambda inner: st.one_of(
            st.builds(Shifted, inner, offsets_us),
            st.builds(
                Extreme,
                st.sampled_from(["min", "max"]),
                st.lists(inner, min_size=1, max_size=3).map(tuple),
            ),
        ),
        max_leaves=3,
    )


def formulas(aliases: list[str]) -> st.SearchStrategy[Formula]:
    """Return a strategy for formulas over some aliases."""
    term = terms(aliases)

    def extend(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
        return st.one_of(st.builds(And, parts), st.builds(Or, parts), st.builds(Not, inner))

    relations: st.SearchStrategy[Formula] = st.builds(
        Relation, term, st.sampled_from(OPERATORS), term
    )
    return st.recursive(relations, extend, max_leaves=4)


def comparisons() -> st.SearchStrategy[Comparison]:
    """Return a strategy for comparisons; Booleans are compared for equality only."""

    def order(comparison: Comparison) -> Comparison:
        boolean = isinstance(comparison.constant, bool)
        return replace(comparison, operator="=") if boolean else comparison

    return st.builds(Comparison, st.sampled_from(OPERATORS), constants).map(order)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Draw a valid query in normal form."""
    aliases = draw(st.lists(st.sampled_from(ALIASES), min_size=1, max_size=6, unique=True))
    positive = aliases[: draw(st.integers(1, len(aliases)))]
    variables = draw(st.lists(st.sampled_from(VARIABLES), unique=True))
    bound = st.builds(Variable, st.sampled_from(variables)) if variables else st.nothing()
    patterns = st.lists(st.builds(AttributePattern, names, bound | comparisons()), max_size=3)
    events = [
        EventPattern(alias, draw(names), tuple(draw(patterns)), negated=alias not in positive)
        for alias in aliases
    ]
    binding = tuple(AttributePattern(draw(names), Variable(name)) for name in variables)
    events[0] = replace(events[0], attributes=events[0].attributes + binding)
    outputs = st.builds(OutputAttribute, names, bound | constants)
    attributes = draw(st.lists(outputs, max_size=3, unique_by=lambda it: it.name))
    clauses = [
        draw(formulas([*positive, draw(st.sampled_from(aliases))]))
        for _ in range(draw(st.integers(0, 3)))
    ]
    where = And(tuple(clauses)) if clauses else TRUE
    return normal_query(
        Query(draw(names), tuple(attributes), tuple(draw(st.permutations(events))), where)
    )


@st.composite
def changed_texts(draw: st.DrawFn) -> str:
    """Draw the text of a query in which a part is replaced."""
    text = write_query(draw(queries()))
    begin = draw(st.integers(0, len(text)))
    end = draw(st.integers(begin, min(len(text), begin + 5)))
    return text[:begin] + draw(WORDS | st.text(max_size=2)) + text[end:]


@st.composite
def changed_documents(draw: st.DrawFn) -> object:
    """Draw the JSON form of a query in which a value may be replaced."""
    document = query_to_document(draw(queries()))
    node: object = document
    while isinstance(node, dict | list) and node:
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if draw(st.booleans()):
            node[key] = draw(JSON)
            break
        node = node[key]
    return document
