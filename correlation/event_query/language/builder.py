"""Convert the tree of a query's text to a `Query` in normal form.

The parts of the query keep their offsets in the text, so that errors of `checks` name a place. The
depth of the recursion is limited by `MAX_NESTING`.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Literal, TypeVar, cast

from lark import Token, Tree

from correlation.errors import InvalidFieldError
from correlation.event_query.language.errors import QueryError
from correlation.event_query.language.limits import MAX_DIGITS, MAX_NESTING
from correlation.event_query.language.normal import (
    conjunction,
    digits_of,
    disjunction,
    negation,
    normal_constant,
    shifted,
)
from correlation.event_query.language.places import Places
from correlation.event_query.query import (
    TRUE,
    AttributePattern,
    Comparison,
    Constant,
    EventPattern,
    Extreme,
    Formula,
    Operator,
    OutputAttribute,
    Point,
    Query,
    Relation,
    Side,
    Term,
    Variable,
)
from correlation.resources.decimals import EXACTLY
from correlation.resources.durations import UNITS_US, whole_us

_Node = Tree[Token]
_Part = TypeVar("_Part")


class QueryBuilder:
    """Conversion of the tree of one text.

    Parameters
    ----------
    text : str
        The text, for errors.

    Attributes
    ----------
    places : Places of int
        Offsets of the parts of the query in the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.places: Places[int] = Places()

    def build(self, tree: _Node) -> Query:
        """Return the query of a tree.

        Raises
        ------
        QueryError
            A number or a duration is not valid, or the formula is nested too deeply.
        """
        type_, output, *events, where = tree.children
        query = Query(
            str(type_),
            tuple(self._output_attribute(it) for it in _branches(output)),
            tuple(self._event(_node(it)) for it in events),
            TRUE if where is None else self._formula(_node(where), 0),
        )
        return self._put(query, _token(type_))

    def _output_attribute(self, tree: _Node) -> OutputAttribute:
        name, value = _token(tree.children[0]), _node(tree.children[1])
        variable = value.data == "variable"
        found = self._variable(value) if variable else self._constant(value)
        return self._put(OutputAttribute(str(name), found), name)

    def _event(self, tree: _Node) -> EventPattern:
        negated, alias, type_, attributes = tree.children
        patterns = tuple(self._attribute(it) for it in _branches(attributes))
        event = EventPattern(str(alias), str(type_), patterns, negated=negated is not None)
        return self._put(event, _token(alias))

    def _attribute(self, tree: _Node) -> AttributePattern:
        name, value = _token(tree.children[0]), _node(tree.children[1])
        pattern: Variable | Comparison
        if value.data == "variable":
            pattern = self._variable(value)
        elif value.data == "constant":
            pattern = Comparison("=", self._constant(value))
        else:
            operator, constant = value.children
            pattern = Comparison(cast("Operator", str(operator)), self._constant(_node(constant)))
        self._put(pattern, _first(value))
        return self._put(AttributePattern(str(name), pattern), name)

    def _variable(self, tree: _Node) -> Variable:
        name = _first(tree)
        return self._put(Variable(str(name)), name)

    def _constant(self, tree: _Node) -> Constant:
        token = _first(tree)
        if token.type == "STRING":
            return cast("str", json.loads(token))
        if token.type == "BOOLEAN":
            return token.lower() == "true"
        return normal_constant(self._number(token))

    def _number(self, token: Token) -> Decimal:
        number = Decimal(token)
        if digits_of(number) > MAX_DIGITS:
            problem = f"a number must have at most {MAX_DIGITS} digits"
            raise self._error(token, problem, "round it")
        return number

    def _formula(self, tree: _Node, depth: int) -> Formula:
        first = _first(tree)
        if tree.data == "relation":
            left, operator, right = tree.children
            relation = Relation(
                self._term(_node(left), depth),
                cast("Operator", str(operator)),
                self._term(_node(right), depth),
            )
            return self._put(relation, first)
        if tree.data in {"negation", "group"}:
            inner = self._formula(_node(tree.children[1]), self._deeper(first, depth))
            return self._put(negation(inner), first) if tree.data == "negation" else inner
        join = conjunction if tree.data == "conjunction" else disjunction
        parts = [self._formula(_node(it), depth) for it in tree.children]
        return self._put(join(parts), first)

    def _term(self, tree: _Node, depth: int) -> Term:
        first = _first(tree)
        if tree.data == "point":
            side = _token(tree.children[1]).lower()
            return self._put(Point(str(first), cast("Side", side)), first)
        if tree.data == "group":
            return self._term(_node(tree.children[1]), self._deeper(first, depth))
        if tree.data == "extreme":
            deeper = self._deeper(first, depth)
            terms = tuple(self._term(_node(it), deeper) for it in tree.children[2:])
            kind = cast('Literal["min", "max"]', first.lower())
            return self._put(Extreme(kind, terms), first)
        term, *offsets = map(_node, tree.children)
        moved = self._term(term, depth)
        return self._put(shifted(moved, sum(map(self._offset_us, offsets))), first)

    def _offset_us(self, tree: _Node) -> int:
        sign, number, unit = map(_token, tree.children)
        size = UNITS_US["s" if unit.lower() == "sec" else unit.lower()]
        product = EXACTLY.multiply(self._number(number), size)
        try:
            duration_us = whole_us(product, "a duration")
        except InvalidFieldError as error:
            problem = f"{error.field} {error.problem}"
            raise self._error(number, problem, "round it to 0.001 ms or coarser") from None
        return -duration_us if sign == "-" else duration_us

    def _deeper(self, token: Token, depth: int) -> int:
        if depth == MAX_NESTING:
            problem = f"must be nested at most {MAX_NESTING} levels deep"
            raise self._error(token, problem, "remove parentheses, or split the query")
        return depth + 1

    def _put(self, part: _Part, token: Token) -> _Part:
        return self.places.put(part, token.start_pos or 0)

    def _error(self, token: Token, problem: str, remedy: str) -> QueryError:
        return QueryError(self._text, token.start_pos or 0, problem, remedy)


def _node(branch: object) -> _Node:
    assert isinstance(branch, Tree)  # noqa: S101 - the grammar defines the shape of the tree
    return branch


def _token(branch: object) -> Token:
    assert isinstance(branch, Token)  # noqa: S101 - as above
    return branch


def _branches(tree: object) -> list[_Node]:
    """Return the subtrees of a tree that may be missing or empty."""
    return [_node(it) for it in tree.children if it is not None] if isinstance(tree, Tree) else []


def _first(tree: _Node) -> Token:
    """Return the first token of a tree; trees are not nested in their first branches."""
    found: _Node | Token = tree
    while isinstance(found, Tree):
        found = found.children[0]
    return found
