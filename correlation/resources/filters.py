"""Filters over the attributes of events.

Problem. Choose the events of a stream by the values of their declared attributes.

Definitions. A *constant* is a string, boolean or number. A *requirement* refers to one attribute.
It is a constant (equal), a list of constants (any of them), or an object with `min` and `max`
(inclusive) and `not` (a constant or a list: none of them). A filter matches an event if all of its
requirements do. A missing attribute does not match any requirement, including `not`.

Strings are ordered by code point. Integers are compared exactly. Numbers are compared as float64,
which is how attributes of type number are buffered; constants are rounded in the same way.

Cost. A mask decodes and compares each distinct value of a column once: O(d c + n) for d distinct
values, c constants and n events; O(d + c + n) for lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from correlation.errors import FieldErrors, InvalidFieldError
from correlation.limits import FILTER_CONSTANTS_LIMIT
from correlation.resources.attributes import Attribute, AttributeValue, column_name

# Attributes of type integer are 64-bit numbers.
_INT64 = range(-(2**63), 2**63)
# Decimal's minus would round it to fewer digits.
_MIN_FLOAT, _MAX_FLOAT = Decimal(-sys.float_info.max), Decimal(sys.float_info.max)
_SHOWN = 40
_WRITE = 'write a constant, a list of constants, or {"min": …, "max": …, "not": …}'
# Description of the constants of each type of attribute, and how to write them.
_CONSTANTS: Mapping[str, tuple[str, str]] = {
    "string": ("a string", 'write it in double quotes: "…"'),
    "integer": ("a 64-bit integer", "write a whole number, without quotes"),
    "number": ("a number", "write a number, without quotes"),
    "boolean": ("a boolean", "write true or false, without quotes"),
}


class _Values(Protocol):
    def to_list(self) -> list[bytes]: ...


class _Coded(Protocol):
    """A dictionary column: value i is values[codes[i]], or missing if the code is -1."""

    @property
    def codes(self) -> NDArray[np.int32]: ...

    @property
    def values(self) -> _Values: ...


@dataclass(frozen=True, slots=True)
class Requirement:
    """The requirement of a filter for one attribute.

    Parameters
    ----------
    attribute : str
        Name of the attribute.
    any_of : tuple of constants or None
        Accepted values; None: all values.
    min, max : constant or None
        Bounds of the accepted values, inclusive; None: unbounded.
    none_of : tuple of constants
        Values that are not accepted.
    """

    attribute: str
    any_of: tuple[AttributeValue, ...] | None = None
    min: AttributeValue | None = None
    max: AttributeValue | None = None
    none_of: tuple[AttributeValue, ...] = ()

    def constants(self) -> list[tuple[str, AttributeValue]]:
        """Return the constants, each with the end of its field's name."""
        found = [("", self.any_of)] if self.any_of is not None else []
        found += [(".not", self.none_of)] if self.none_of else []
        listed = [
            (f"{end}[{place}]" if len(values) > 1 else end, value)
            for end, values in found
            for place, value in enumerate(values)
        ]
        bounds = ((".min", self.min), (".max", self.max))
        return [*listed, *((end, value) for end, value in bounds if value is not None)]

    def to_document(self) -> object:
        """Return the requirement as a JSON value; a list of one constant becomes the constant."""
        if self.any_of is not None:
            return _shorten(self.any_of)
        bounds = {"min": self.min, "max": self.max}
        found: dict[str, object] = {name: it for name, it in bounds.items() if it is not None}
        return found | ({"not": _shorten(self.none_of)} if self.none_of else {})

    def predicate(self) -> Callable[[AttributeValue], bool]:
        """Return the function that decides whether a value is accepted.

        A value of another type than the constants is not accepted: the type of an attribute may
        change while events are buffered.
        """
        kinds = {_kind(value) for _, value in self.constants()}
        none_of = frozenset(map(_identity, self.none_of))
        if self.any_of is not None:
            any_of = frozenset(map(_identity, self.any_of))
            return lambda value: _identity(value) in any_of
        low, high = cast("Any", self.min), cast("Any", self.max)
        return lambda value: (
            _kind(value) in kinds
            and (low is None or value >= low)
            and (high is None or value <= high)
            and _identity(value) not in none_of
        )


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter over attributes: all requirements must match.

    Parameters
    ----------
    requirements : tuple of Requirement
        One requirement per attribute, sorted by name.
    """

    requirements: tuple[Requirement, ...]

    def to_document(self) -> dict[str, object]:
        """Return the filter as JSON values, which `read_filter` reads."""
        return {it.attribute: it.to_document() for it in self.requirements}

    def bind(self, attributes: Iterable[Attribute], field: str = "where") -> Filter:
        """Return the filter for attributes of these types.

        Parameters
        ----------
        attributes : iterable of Attribute
            Declared attributes of the stream.
        field : str
            Name of the filter's field, for errors.

        Raises
        ------
        InvalidFieldError
            An attribute is not declared, or a constant has another type; names every such field.
        """
        types = _types(attributes)
        errors = FieldErrors()
        bound = []
        for requirement in self.requirements:
            with errors:
                bound.append(_bind(requirement, types, field))
        errors.raise_all()
        return Filter(tuple(bound))

    def mask(self, columns: Mapping[str, object], n: int) -> NDArray[np.bool_]:
        """Return which events match.

        Parameters
        ----------
        columns : mapping of name to column
            Buffered columns of n events; an attribute without a column is missing in all events.
        n : int
            Number of events.

        Returns
        -------
        bool[n]
            True for the events that match.
        """
        found = np.ones(n, np.bool_)
        for requirement in self.requirements:
            column = cast("_Coded | None", columns.get(column_name(requirement.attribute)))
            if column is None:
                return np.zeros(n, np.bool_)
            values = json.loads(b"[" + b",".join(column.values.to_list()) + b"]")
            # The last element is for the code -1, a missing value.
            accepted = np.zeros(len(values) + 1, np.bool_)
            accepted[:-1] = [*map(requirement.predicate(), values)]
            found &= accepted[column.codes]
        return found

    def mismatch(self, attributes: Mapping[str, AttributeValue | None]) -> Requirement | None:
        """Return the first requirement that an event does not match, or None.

        Parameters
        ----------
        attributes : mapping of name to value
            Values of one event; missing ones are None or left out.
        """
        for requirement in self.requirements:
            value = attributes.get(requirement.attribute)
            if value is None or not requirement.predicate()(value):
                return requirement
        return None


def read_filter(
    document: object, attributes: Iterable[Attribute] | None, field: str = "where"
) -> Filter:
    """Read a filter from its document.

    Parameters
    ----------
    document : object
        JSON value, such as `{"rule": ["A-1", "A-2"], "severity": {"min": 3}}`. Numbers may be int,
        Decimal or float.
    attributes : iterable of Attribute or None
        Declared attributes of the stream; None if they are not known yet, see `Filter.bind`.
    field : str
        Name of the filter's field, for errors.

    Raises
    ------
    InvalidFieldError
        A part of the filter is not valid; names every such field.
    """
    if not isinstance(document, Mapping) or not all(isinstance(it, str) for it in document):
        raise InvalidFieldError(
            field, "must be an object", 'write {"attribute": value, …}, or leave it out'
        )
    if not document:
        raise InvalidFieldError(field, "must not be empty", "name an attribute, or leave it out")
    types = None if attributes is None else _types(attributes)
    errors = FieldErrors()
    found = []
    for name in sorted(document):
        with errors:
            requirement = _read_requirement(name, document[name], f"{field}.{name}")
            found.append(requirement if types is None else _bind(requirement, types, field))
    count = sum(len(it.constants()) for it in found)
    errors.refuse(
        field,
        f"has {count:,} constants",
        f"use at most {FILTER_CONSTANTS_LIMIT:,}",
        when=count > FILTER_CONSTANTS_LIMIT,
    )
    errors.raise_all()
    return Filter(tuple(found))


def _read_requirement(name: str, wanted: object, field: str) -> Requirement:
    if isinstance(wanted, Mapping):
        return _read_limits(name, wanted, field)
    return Requirement(name, any_of=_read_constants(wanted, field))


def _read_limits(name: str, wanted: Mapping[str, object], field: str) -> Requirement:
    """Read a requirement of the form {min, max, not}."""
    if not wanted:
        raise InvalidFieldError(field, "must not be empty", _WRITE)
    errors = FieldErrors()
    for other in sorted(map(str, wanted.keys() - {"min", "max", "not"})):
        with errors:
            raise InvalidFieldError(
                f"{field}.{other[:_SHOWN]}", "is unknown", "use min, max and not"
            )
    bounds: dict[str, AttributeValue] = {}
    for end in ("min", "max"):
        with errors:
            if end in wanted:
                bounds[end] = _read_bound(wanted[end], f"{field}.{end}")
    none_of: tuple[AttributeValue, ...] = ()
    with errors:
        if "not" in wanted:
            none_of = _read_constants(wanted["not"], f"{field}.not")
    low, high = cast("Any", bounds.get("min")), cast("Any", bounds.get("max"))
    is_ordered = None not in {low, high} and _kind(low) == _kind(high)
    errors.refuse(
        f"{field}.min",
        f"{_show(low)} exceeds max ({_show(high)})",
        "swap min and max",
        when=is_ordered and low > high,
    )
    errors.raise_all()
    return Requirement(name, min=low, max=high, none_of=none_of)


def _read_bound(value: object, field: str) -> AttributeValue:
    bound = _read_constant(value, field)
    if isinstance(bound, bool):
        raise InvalidFieldError(field, "booleans have no order", "write true or false instead")
    return bound


def _read_constants(value: object, field: str) -> tuple[AttributeValue, ...]:
    """Read a constant or a list of constants."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return (_read_constant(value, field),)
    if not value:
        raise InvalidFieldError(field, "must not be empty", "add a constant, or leave it out")
    errors = FieldErrors()
    found = []
    for place, it in enumerate(value):
        with errors:
            found.append(_read_constant(it, f"{field}[{place}]"))
    errors.raise_all()
    return tuple(found)


def _read_constant(value: object, field: str) -> AttributeValue:
    """Read a constant; whole numbers of 64 bits become int, other numbers float."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InvalidFieldError(
                field, "contains half of a surrogate pair", "write valid Unicode"
            )
        return value
    if value is None:
        problem = "null is not a constant: a missing attribute matches no filter"
        raise InvalidFieldError(field, problem, _WRITE)
    if not isinstance(value, int | float | Decimal):
        raise InvalidFieldError(field, "must be a string, number, true or false", _WRITE)
    number = Decimal(value)
    # Comparisons look at the exponents first; the absolute value of a huge number overflows.
    if number.is_nan() or not _MIN_FLOAT <= number <= _MAX_FLOAT:
        raise InvalidFieldError(field, "must be a finite number", "use a smaller number")
    is_whole = number == int(number) and int(number) in _INT64
    return int(number) if is_whole else float(number)


def _types(attributes: Iterable[Attribute]) -> dict[str, str]:
    return {it.name: it.type for it in attributes}


def _bind(requirement: Requirement, types: Mapping[str, str], field: str) -> Requirement:
    """Check a requirement against the declared types."""
    name = requirement.attribute
    here = f"{field}.{name}"
    if name not in types:
        known = f"use one of: {', '.join(types)}; or declare it" if types else "declare it"
        raise InvalidFieldError(here, "is not an attribute of the stream", f"{known} in attributes")
    declared = types[name]
    what, remedy = _CONSTANTS[declared]
    errors = FieldErrors()
    for end, value in requirement.constants():
        errors.refuse(
            here + end,
            f"must be {what}, because {name} is of type {declared}; got {_show(value)}",
            remedy,
            when=not _fits(value, declared),
        )
    errors.raise_all()
    return _rounded(requirement) if declared == "number" else requirement


def _fits(value: AttributeValue, declared: str) -> bool:
    if declared == "integer":
        return _kind(value) == "number" and isinstance(value, int)
    return _kind(value) == declared


def _rounded(requirement: Requirement) -> Requirement:
    """Round the constants to float64; whole numbers stay integers of the same value."""

    def convert(value: Any) -> Any:  # noqa: ANN401 - a constant or None
        return None if value is None else _read_constant(float(value), "")

    return replace(
        requirement,
        any_of=None if requirement.any_of is None else tuple(map(convert, requirement.any_of)),
        min=convert(requirement.min),
        max=convert(requirement.max),
        none_of=tuple(map(convert, requirement.none_of)),
    )


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def _identity(value: AttributeValue) -> tuple[str, AttributeValue]:
    """Return a value that is equal only for equal constants of the same type: 1 is not true."""
    return _kind(value), value


def _shorten(values: tuple[AttributeValue, ...]) -> object:
    return values[0] if len(values) == 1 else list(values)


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]
