"""Read the JSON form of a query (`documents`); errors name the path of the field."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar, cast

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.event_query.language.checks import find_problems
from correlation.event_query.language.limits import (
    MAX_CHARACTERS,
    MAX_DIGITS,
    MAX_NESTING,
    MAX_PROBLEMS,
)
from correlation.event_query.language.normal import (
    conjunction,
    digits_of,
    disjunction,
    negation,
    normal_constant,
    shifted,
)
from correlation.event_query.language.places import Places
from correlation.event_query.language.result_times import with_result_times
from correlation.event_query.language.writer import write_query
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
from correlation.resources.decimals import read_decimal

# Maximum number of characters of a number, such as 0.00…1e-9.
_LONGEST = 100
# How to write the parts.
_QUERY = 'write {"detect": {…}, "events": […], "where": {…}}, or the query as text'
_FORMULA = "use and, or, not, or left, operator and right"
_TERM = "use alias and side, term and offset_us, min, or max"
_OPERATORS = ("<", "<=", ">", ">=", "=")
_Item = TypeVar("_Item")
_Part = TypeVar("_Part")


def query_from_document(document: object) -> Query:
    """Read and check the JSON form of a query.

    Parameters
    ----------
    document : object
        Parsed JSON. Numbers may be `int`, `float` or `Decimal`.

    Returns
    -------
    Query
        The query in the form of `normal`.

    Raises
    ------
    InvalidFieldError
        A field is not valid; an InvalidFieldsError of several.
    """
    reader = _Reader()
    query = reader.query(document)
    errors = FieldErrors()
    for it in islice(find_problems(query), MAX_PROBLEMS):
        path = ".".join(filter(None, (reader.places.of(it.part), it.field)))
        errors.refuse(path, it.problem, it.remedy, when=True)
    errors.raise_all()
    if len(write_query(query)) > MAX_CHARACTERS:
        raise InvalidFieldError(
            "query",
            f"must have at most {MAX_CHARACTERS:,} characters in its canonical form",
            "shorten or split the query",
        )
    return query


class _Reader:
    """Conversion of one document.

    Attributes
    ----------
    places : Places of str
        Paths of the parts of the query in the document.
    """

    def __init__(self) -> None:
        self.places: Places[str] = Places()

    def query(self, document: object) -> Query:
        fields = _read_object(document, "", {"detect", "events"}, {"where"}, _QUERY)
        detect = _read_object(fields["detect"], "detect", {"type"}, {"attributes"})
        written = Query(
            _read_string(detect["type"], "detect.type"),
            _read_list(detect.get("attributes", []), "detect.attributes", self._output),
            _read_list(fields["events"], "events", self._event),
            self._formula(fields["where"], "where", 0) if "where" in fields else TRUE,
        )
        query = with_result_times(written)
        self.places.put(query.where, "where")
        return self.places.put(query, "detect")

    def _output(self, document: object, path: str) -> OutputAttribute:
        fields = _read_object(document, path, {"name"}, {"variable", "constant"})
        value = self._value(fields, path)
        return self._put(OutputAttribute(_read_string(fields["name"], f"{path}.name"), value), path)

    def _event(self, document: object, path: str) -> EventPattern:
        fields = _read_object(document, path, {"alias", "type"}, {"negated", "attributes"})
        negated = fields.get("negated", False)
        if not isinstance(negated, bool):
            raise InvalidFieldError(f"{path}.negated", "must be true or false", "use one of both")
        event = EventPattern(
            _read_string(fields["alias"], f"{path}.alias"),
            _read_string(fields["type"], f"{path}.type"),
            _read_list(fields.get("attributes", []), f"{path}.attributes", self._attribute),
            negated=negated,
        )
        return self._put(event, path)

    def _attribute(self, document: object, path: str) -> AttributePattern:
        fields = _read_object(document, path, {"name"}, {"variable", "operator", "constant"})
        value = self._value(fields, path)
        pattern: Variable | Comparison
        if not isinstance(value, Variable):
            operator = fields.get("operator", "=")
            pattern = self._put(Comparison(_read_operator(operator, path), value), path)
        elif "operator" in fields:
            raise InvalidFieldError(
                f"{path}.operator", "cannot be combined with variable", "remove one of them"
            )
        else:
            pattern = value
        name = _read_string(fields["name"], f"{path}.name")
        return self._put(AttributePattern(name, pattern), path)

    def _value(self, fields: dict[str, Any], path: str) -> Variable | Constant:
        if ("variable" in fields) == ("constant" in fields):
            raise InvalidFieldError(
                path, "must have either variable or constant", "use one of both"
            )
        if "variable" in fields:
            name = _read_string(fields["variable"], f"{path}.variable")
            return self._put(Variable(name), path)
        return _read_constant(fields["constant"], f"{path}.constant")

    def _formula(self, document: object, path: str, depth: int) -> Formula:
        _check_depth(depth, path)
        known = {"and", "or", "not", "left", "operator", "right"}
        fields = _read_object(document, path, set(), known, _FORMULA)
        names = set(fields)
        if names == {"not"}:
            part = self._formula(fields["not"], f"{path}.not", depth + 1)
            return self._put(negation(part), path)
        if names in ({"and"}, {"or"}):
            (name,) = names
            parts = _read_list(
                fields[name],
                f"{path}.{name}",
                lambda it, at: self._formula(it, at, depth + 1),
                of="formula",
            )
            join = conjunction if name == "and" else disjunction
            return self._put(join(parts), path)
        if names == {"left", "operator", "right"}:
            relation = Relation(
                self._term(fields["left"], f"{path}.left", depth + 1),
                _read_operator(fields["operator"], path),
                self._term(fields["right"], f"{path}.right", depth + 1),
            )
            return self._put(relation, path)
        raise InvalidFieldError(path, "is not a formula", _FORMULA)

    def _term(self, document: object, path: str, depth: int) -> Term:
        _check_depth(depth, path)
        known = {"alias", "side", "term", "offset_us", "min", "max"}
        fields = _read_object(document, path, set(), known, _TERM)
        names = set(fields)
        if names == {"alias", "side"}:
            side = fields["side"]
            if side not in ("begin", "end"):
                raise InvalidFieldError(f"{path}.side", "is not valid", "use begin or end")
            alias = _read_string(fields["alias"], f"{path}.alias")
            return self._put(Point(alias, cast("Side", side)), path)
        if names == {"term", "offset_us"}:
            offset_us = fields["offset_us"]
            if not isinstance(offset_us, int) or isinstance(offset_us, bool):
                raise InvalidFieldError(
                    f"{path}.offset_us", "must be a whole number", "write the duration in µs"
                )
            term = self._term(fields["term"], f"{path}.term", depth + 1)
            return self._put(shifted(term, offset_us), path)
        if names in ({"min"}, {"max"}):
            (kind,) = names
            terms = _read_list(
                fields[kind],
                f"{path}.{kind}",
                lambda it, at: self._term(it, at, depth + 1),
                of="term",
            )
            return self._put(Extreme("min" if kind == "min" else "max", terms), path)
        raise InvalidFieldError(path, "is not a term", _TERM)

    def _put(self, part: _Part, path: str) -> _Part:
        return self.places.put(part, path)


def _check_depth(depth: int, path: str) -> None:
    if depth > MAX_NESTING:
        raise InvalidFieldError(
            path, f"must be nested at most {MAX_NESTING} levels deep", "remove levels"
        )


def _read_object(
    document: object,
    path: str,
    required: Collection[str],
    optional: Collection[str],
    remedy: str | None = None,
) -> dict[str, Any]:
    """Return the fields of an object; raise InvalidFieldError if fields are unknown or missing.

    `remedy` tells how to write the object; by default with the required fields.
    """
    if not isinstance(document, dict):
        write = ", ".join(f'"{name}": …' for name in sorted(required))
        raise InvalidFieldError(
            path or "query", "must be an object", remedy or f"write {{{write}}}"
        )
    errors = FieldErrors()
    known = sorted({*required, *optional})
    for name in list(document)[:MAX_PROBLEMS]:
        if name not in known:
            shown = str(name)[:MAX_DIGITS]
            near = difflib.get_close_matches(shown, known)
            remedy = f"did you mean {' or '.join(near)}?" if near else f"use {', '.join(known)}"
            errors.refuse(_below(path, shown), "unknown field", remedy, when=True)
    for name in sorted(required):
        errors.refuse(_below(path, name), "is missing", "add it", when=name not in document)
    errors.raise_all()
    return document


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _read_list(
    value: object, path: str, read: Callable[[object, str], _Item], of: str | None = None
) -> tuple[_Item, ...]:
    """Return the items of a list; with `of`, it must not be empty."""
    if not isinstance(value, list):
        raise InvalidFieldError(path, "must be a list", "write it in brackets")
    if of is not None and not value:
        raise InvalidFieldError(path, "must not be empty", f"add a {of}")
    return tuple(read(item, f"{path}[{place}]") for place, item in enumerate(value))


def _read_string(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidFieldError(path, "must be a string", "write it in double quotes")
    return value


def _read_operator(value: object, path: str) -> Operator:
    if value not in _OPERATORS:
        raise InvalidFieldError(
            f"{path}.operator", "is not a comparison", f"use {', '.join(_OPERATORS)}"
        )
    return cast("Operator", value)


def _read_constant(value: object, path: str) -> Constant:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        fields = _read_object(value, path, {"number"}, ())
        path = f"{path}.number"
        value = _read_string(fields["number"], path)
    return normal_constant(_read_number(value, path))


def _read_number(value: object, path: str) -> Decimal:
    # Long numbers are refused before they are converted.
    too_long = (isinstance(value, int) and abs(value) >= 10**MAX_DIGITS) or (
        isinstance(value, str) and len(value) > _LONGEST
    )
    number = None
    if not too_long and isinstance(value, str | int | float | Decimal):
        number = read_decimal(value)
    if number is None and not too_long:
        remedy = "use a string, a finite number, true or false"
        raise InvalidFieldError(path, "is not a constant", remedy)
    if number is None or digits_of(number) > MAX_DIGITS:
        raise InvalidFieldError(path, f"must have at most {MAX_DIGITS} digits", "round it")
    return number
