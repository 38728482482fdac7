"""JSON form of a query.

The running example of `grammar` (types of JSON only; numbers that int64 cannot hold are
``{"number": "0.5"}``)::

    {"detect": {"type": "Alarm", "attributes": [{"name": "area", "variable": "X"}]},
     "events": [{"alias": "s", "type": "Smoke", "negated": false,
                 "attributes": [{"name": "area", "variable": "X"}]}, …],
     "where": {"and": [{"left": {"alias": "s", "side": "end"}, "operator": "<=",
                        "right": {"alias": "r", "side": "begin"}},
                       {"left": …, "operator": "<=",
                        "right": {"term": {"alias": "s", "side": "end"},
                                  "offset_us": 300000000}}]}}

Comparisons of attributes are ``{"name": "n", "operator": ">=", "constant": 3}``; formulas are
``and``, ``or``, ``not`` and relations; terms are ``min``, ``max``, shifted terms and points.
"""

from __future__ import annotations

from typing import Any

from correlation.event_query.language.normal import normal_query
from correlation.event_query.language.result_times import formula_with_times
from correlation.event_query.query import (
    TRUE,
    And,
    AttributePattern,
    Constant,
    EventPattern,
    Extreme,
    Formula,
    Not,
    Or,
    OutputAttribute,
    Point,
    Query,
    Term,
    Variable,
)

Document = dict[str, Any]
_INT64 = range(-(2**63), 2**63)


def query_to_document(query: Query) -> Document:
    """Return the JSON form of a query, in the form of `normal`."""
    query = normal_query(query)
    document: Document = {
        "detect": {
            "type": query.type,
            "attributes": [_output_document(it) for it in query.attributes],
        },
        "events": [_event_document(it) for it in query.events],
    }
    where = formula_with_times(query)
    if where != TRUE:
        document["where"] = _formula_document(where)
    return document


def _output_document(attribute: OutputAttribute) -> Document:
    return {"name": attribute.name, **_value_document(attribute.value)}


def _event_document(event: EventPattern) -> Document:
    return {
        "alias": event.alias,
        "type": event.type,
        "negated": event.negated,
        "attributes": [_attribute_document(it) for it in event.attributes],
    }


def _attribute_document(attribute: AttributePattern) -> Document:
    pattern = attribute.pattern
    if isinstance(pattern, Variable):
        return {"name": attribute.name, **_value_document(pattern)}
    return {
        "name": attribute.name,
        "operator": pattern.operator,
        **_value_document(pattern.constant),
    }


def _value_document(value: Variable | Constant) -> Document:
    if isinstance(value, Variable):
        return {"variable": value.name}
    plain = isinstance(value, str) or (isinstance(value, int) and value in _INT64)
    return {"constant": value if plain else {"number": str(value)}}


def _formula_document(formula: Formula) -> Document:
    if isinstance(formula, And):
        return {"and": [_formula_document(it) for it in formula.parts]}
    if isinstance(formula, Or):
        return {"or": [_formula_document(it) for it in formula.parts]}
    if isinstance(formula, Not):
        return {"not": _formula_document(formula.part)}
    return {
        "left": _term_document(formula.left),
        "operator": formula.operator,
        "right": _term_document(formula.right),
    }


def _term_document(term: Term) -> Document:
    if isinstance(term, Point):
        return {"alias": term.alias, "side": term.side}
    if isinstance(term, Extreme):
        return {term.kind: [_term_document(it) for it in term.terms]}
    return {"term": _term_document(term.term), "offset_us": term.offset_us}
