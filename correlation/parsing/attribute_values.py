"""Readers of the attributes of a record, and their columns.

A value that does not fit the type of its attribute is not converted: the record is rejected. A
missing field, and null, is a missing value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, DictionaryColumn, Int64s, number_present
from correlation.errors import RejectedEventError
from correlation.parsing.records import Objects, column_at, types_of
from correlation.parsing.written_numbers import find_as_written
from correlation.reasons import Reason
from correlation.resources.attributes import (
    ATTRIBUTE_CHARACTERS,
    Attribute,
    AttributeType,
    AttributeValue,
    encode_value,
    fit_value,
)

# Reader of one attribute: the parsed record and its JSON, to the value or None.
ValueReader = Callable[[object, bytes | None], AttributeValue | None]
# Values of an attribute in many records.
Values = list[AttributeValue | None]
# Reader of one attribute: the records, to the values and which records are regular.
ValuesReader = Callable[[Objects], tuple[Values, NDArray[np.bool_]]]
_WANTED: Mapping[AttributeType, str] = {
    "string": f"a string of at most {ATTRIBUTE_CHARACTERS} characters",
    "integer": "an integer of 64 bits",
    "number": "a finite number",
    "boolean": "true or false",
}
# Types of the values that need not be converted, and of those that may be.
_TYPES: Mapping[AttributeType, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (float, int),
    "boolean": (bool,),
}
_INT64 = range(-(2**63), 2**63)
_MISSING_CODE = -1


def value_reader(attribute: Attribute) -> ValueReader:
    """Return the reader of an attribute's value in a parsed record.

    Parameters
    ----------
    attribute : Attribute
        Attribute that reads a field of the JSON.

    Returns
    -------
    callable
        `(value, text) -> value`, None if it is missing or null; raises RejectedEventError if it
        does not fit its type. `text` is as in `compile_mapping`.
    """
    first, *rest = attribute.path
    kind, path = attribute.type, attribute.path

    def read(value: object, text: bytes | None) -> AttributeValue | None:
        found = value.get(first) if isinstance(value, dict) else None
        for part in rest:
            found = found.get(part) if isinstance(found, dict) else None
        if found is None:
            return None
        try:
            if kind == "integer" and type(found) is float:
                found = find_as_written(value, path, text)
            return _fitting(found, kind)
        except UnicodeEncodeError:
            raise _bad_attribute(attribute, "a string that is not valid Unicode") from None
        except RejectedEventError as error:  # the number cannot be read exactly
            raise _bad_attribute(attribute, error.detail) from None
        except ValueError as error:
            raise _bad_attribute(attribute, str(error)) from None

    return read


def column_reader(attribute: Attribute) -> ValuesReader:
    """Return the reader of an attribute's values in many records.

    Parameters
    ----------
    attribute : Attribute
        Attribute that reads a field of the JSON.

    Returns
    -------
    callable
        `objects -> (values, is_regular)`. `value_reader` returns the same values for the regular
        records; the values of other records are undefined.
    """
    kind, path = attribute.type, attribute.path

    def read(objects: Objects) -> tuple[Values, NDArray[np.bool_]]:
        found = column_at(objects, path)
        is_regular = np.ones(len(found), np.bool_)
        if not _all_fit(found, kind):
            for place, it in enumerate(found):
                try:
                    found[place] = _regular(it, kind)
                except ValueError:
                    found[place], is_regular[place] = None, False
        return cast("Values", found), is_regular

    return read


def _all_fit(found: Sequence[Any], kind: AttributeType) -> bool:
    """Return whether all values of a column fit their type as they are, or are missing."""
    if not types_of(found) <= {_TYPES[kind][0], NoneType}:
        return False
    distinct = set(found)
    distinct.discard(None)
    if not distinct or kind == "boolean":
        return True
    if kind == "string":
        try:
            "".join(distinct).encode()
        except UnicodeEncodeError:
            return False
        return max(map(len, distinct)) <= ATTRIBUTE_CHARACTERS
    if kind == "integer":
        return min(distinct) in _INT64 and max(distinct) in _INT64
    return all(map(math.isfinite, distinct))


def _regular(found: object, kind: AttributeType) -> AttributeValue | None:
    """Return a value of a regular type, or None; a number whose digits matter is not regular."""
    if found is None:
        return None
    if type(found) not in _TYPES[kind]:
        raise ValueError
    return _fitting(found, kind)


def _fitting(found: object, kind: AttributeType) -> AttributeValue:
    """Return a value as a value of its type; raises ValueError if it does not fit."""
    fitting = fit_value(found, kind)
    if kind == "string":
        str(fitting).encode()
    return fitting


def _bad_attribute(attribute: Attribute, found: str) -> RejectedEventError:
    return RejectedEventError(
        Reason.BAD_ATTRIBUTE,
        f"attribute {attribute.name} must be {_WANTED[attribute.type]}; got {found}",
    )


def values_column(values: Sequence[AttributeValue | None]) -> DictionaryColumn:
    """Return the column of the values of one attribute; each distinct value is encoded once."""
    codes, distinct = number_present(values)
    return DictionaryColumn(codes, BytesColumn.from_list([*map(encode_value, distinct)]))


def integers_column(values: Int64s, missing: int | None = None) -> DictionaryColumn:
    """Return the column of an integer attribute.

    Parameters
    ----------
    values : int64[n]
        The values.
    missing : int or None
        Value that denotes a missing value.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    encoded = BytesColumn.from_list([encode_value(value) for value in distinct.tolist()])
    column = DictionaryColumn(codes.astype(np.int32), encoded)
    if missing is None or missing not in distinct:
        return column
    kept = np.where(values == missing, _MISSING_CODE, column.codes).astype(np.int32)
    rows = np.arange(len(values), dtype=np.int64)
    return DictionaryColumn(kept, encoded).take(rows)
