"""Read the JSON form of a query (`documents`); errors name the path of the field."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from itertools import chain, islice
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
_Read = Callable[[object, str], Any]
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
        fields = _read_object(
            document,
            "",
            {"detect": self._detect, "events": _list_of(self._event)},
            {"where": lambda it, at: self._formula(it, at, 0)},
            remedy=_QUERY,
        )
        type_, attributes = fields["detect"]
        written = Query(type_, attributes, fields["events"], fields.get("where", TRUE))
        query = with_result_times(written)
        self.places.put(query.where, "where")
        self.places.put(query.events, "events")
        return self.places.put(query, "detect")

    def _detect(self, document: object, path: str) -> tuple[str, tuple[OutputAttribute, ...]]:
        fields = _read_object(
            document, path, {"type": _read_string}, {"attributes": _list_of(self._output)}
        )
        return fields["type"], fields.get("attributes", ())

    def _output(self, document: object, path: str) -> OutputAttribute:
        value_fields = {"variable": _read_string, "constant": _read_constant}
        fields = _read_object(document, path, {"name": _read_string}, value_fields, _check_value)
        return self._put(OutputAttribute(fields["name"], self._value(fields, path)), path)

    def _event(self, document: object, path: str) -> EventPattern:
        fields = _read_object(
            document,
            path,
            {"alias": _read_string, "type": _read_string},
            {"negated": _read_flag, "attributes": _list_of(self._attribute)},
        )
        event = EventPattern(
            fields["alias"],
            fields["type"],
            fields.get("attributes", ()),
            negated=fields.get("negated", False),
        )
        return self._put(event, path)

    def _attribute(self, document: object, path: str) -> AttributePattern:
        fields = _read_object(
            document,
            path,
            {"name": _read_string},
            {"variable": _read_string, "constant": _read_constant, "operator": _read_operator},
            _check_pattern,
        )
        value = self._value(fields, path)
        pattern: Variable | Comparison
        if isinstance(value, Variable):
            pattern = value
        else:
            pattern = self._put(Comparison(fields.get("operator", "="), value), path)
        return self._put(AttributePattern(fields["name"], pattern), path)

    def _value(self, fields: dict[str, Any], path: str) -> Variable | Constant:
        if "variable" in fields:
            return self._put(Variable(fields["variable"]), path)
        constant: Constant = fields["constant"]
        return constant

    def _formula(self, document: object, path: str, depth: int) -> Formula:
        _check_depth(depth, path)

        def formula(part: object, at: str) -> Formula:
            return self._formula(part, at, depth + 1)

        def term(part: object, at: str) -> Term:
            return self._term(part, at, depth + 1)

        fields = _read_one_of(
            document,
            path,
            (
                {"not": formula},
                {"and": _list_of(formula, "formula")},
                {"or": _list_of(formula, "formula")},
                {"left": term, "operator": _read_operator, "right": term},
            ),
            "is not a formula",
            _FORMULA,
        )
        found: Formula
        if "not" in fields:
            found = negation(fields["not"])
        elif "and" in fields:
            found = conjunction(fields["and"])
        elif "or" in fields:
            found = disjunction(fields["or"])
        else:
            found = Relation(fields["left"], fields["operator"], fields["right"])
        return self._put(found, path)

    def _term(self, document: object, path: str, depth: int) -> Term:
        _check_depth(depth, path)

        def term(part: object, at: str) -> Term:
            return self._term(part, at, depth + 1)

        fields = _read_one_of(
            document,
            path,
            (
                {"alias": _read_string, "side": _read_side},
                {"term": term, "offset_us": _read_offset},
                {"min": _list_of(term, "term")},
                {"max": _list_of(term, "term")},
            ),
            "is not a term",
            _TERM,
        )
        found: Term
        if "alias" in fields:
            found = Point(fields["alias"], fields["side"])
        elif "term" in fields:
            found = shifted(fields["term"], fields["offset_us"])
        elif "min" in fields:
            found = Extreme("min", fields["min"])
        else:
            found = Extreme("max", fields["max"])
        return self._put(found, path)

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
    required: Mapping[str, _Read],
    optional: Mapping[str, _Read],
    check: Callable[[Mapping[str, object], str], None] | None = None,
    remedy: str | None = None,
) -> dict[str, Any]:
    """Return the values of the fields of an object that it has, or raise all their problems.

    Parameters
    ----------
    document, path
        The object, and its path.
    required, optional
        Reader of each field: `(value, path) -> value`.
    check
        Check of fields that exclude each other: `(object, path)`.
    remedy
        How to write the object; by default with the required fields.
    """
    if not isinstance(document, dict):
        write = ", ".join(f'"{name}": …' for name in sorted(required))
        raise InvalidFieldError(
            path or "query", "must be an object", remedy or f"write {{{write}}}"
        )
    errors, readers = FieldErrors(), {**required, **optional}
    known = sorted(readers)
    for name in list(document)[:MAX_PROBLEMS]:
        if name not in readers:
            shown = str(name)[:MAX_DIGITS]
            near = difflib.get_close_matches(shown, known)
            remedy = f"did you mean {' or '.join(near)}?" if near else f"use {', '.join(known)}"
            errors.refuse(_below(path, shown), "unknown field", remedy, when=True)
    for name in sorted(required):
        errors.refuse(_below(path, name), "is missing", "add it", when=name not in document)
    if check is not None:
        with errors:
            check(document, path)
    fields = {}
    for name, read in readers.items():
        if name in document:
            with errors:
                fields[name] = read(document[name], _below(path, name))
    errors.raise_all()
    return fields


def _read_one_of(
    document: object, path: str, forms: Iterable[Mapping[str, _Read]], problem: str, remedy: str
) -> dict[str, Any]:
    """Return the values of the fields of an object in one of several forms."""
    for form in forms:
        if isinstance(document, dict) and document.keys() == form.keys():
            return _read_object(document, path, form, {})
    # Another combination of fields: only unknown names are problems of their own.
    names = dict.fromkeys(chain.from_iterable(forms), _skip)
    _read_object(document, path, {}, names, remedy=remedy)
    raise InvalidFieldError(path, problem, remedy)


def _skip(value: object, path: str) -> None:
    """Read nothing."""


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _list_of(
    read: Callable[[object, str], _Item], of: str | None = None
) -> Callable[[object, str], tuple[_Item, ...]]:
    """Return the reader of a list of items; with `of`, the list must not be empty."""

    def read_list(value: object, path: str) -> tuple[_Item, ...]:
        if not isinstance(value, list):
            raise InvalidFieldError(path, "must be a list", "write it in brackets")
        if of is not None and not value:
            raise InvalidFieldError(path, "must not be empty", f"add a {of}")
        errors = FieldErrors()
        items: list[_Item] = []
        for place, item in enumerate(value):
            with errors:
                items.append(read(item, f"{path}[{place}]"))
            # Limits the work for a long list.
            if place - len(items) >= MAX_PROBLEMS:
                break
        errors.raise_all()
        return tuple(items)

    return read_list


def _check_value(fields: Mapping[str, object], path: str) -> None:
    if ("variable" in fields) == ("constant" in fields):
        raise InvalidFieldError(path, "must have either variable or constant", "use one of both")


def _check_pattern(fields: Mapping[str, object], path: str) -> None:
    _check_value(fields, path)
    if "variable" in fields and "operator" in fields:
        raise InvalidFieldError(
            f"{path}.operator", "cannot be combined with variable", "remove one of them"
        )


def _read_string(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidFieldError(path, "must be a string", "write it in double quotes")
    return value


def _read_flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidFieldError(path, "must be true or false", "use one of both")
    return value


def _read_operator(value: object, path: str) -> Operator:
    if value not in _OPERATORS:
        raise InvalidFieldError(path, "is not a comparison", f"use {', '.join(_OPERATORS)}")
    return cast("Operator", value)


def _read_side(value: object, path: str) -> Side:
    if value not in ("begin", "end"):
        raise InvalidFieldError(path, "is not valid", "use begin or end")
    return value


def _read_offset(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidFieldError(path, "must be a whole number", "write the duration in µs")
    return value


def _read_constant(value: object, path: str) -> Constant:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        value = _read_object(value, path, {"number": _read_string}, {})["number"]
        path = f"{path}.number"
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
