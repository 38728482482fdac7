"""Readers of the attributes of a record, and their columns.

A value that does not fit the type of its attribute is not converted: the record is rejected. A
missing field, and null, is a missing value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from correlation.buffers.columns import BytesColumn, DictionaryColumn, Int64s
from correlation.errors import RejectedEventError
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
_WANTED: Mapping[AttributeType, str] = {
    "string": f"a string of at most {ATTRIBUTE_CHARACTERS} characters",
    "integer": "an integer of 64 bits",
    "number": "a finite number",
    "boolean": "true or false",
}
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
            fitting = fit_value(found, kind)
            if kind == "string":
                str(fitting).encode()
        except UnicodeEncodeError:
            raise _bad_attribute(attribute, "a string that is not valid Unicode") from None
        except RejectedEventError as error:  # the number cannot be read exactly
            raise _bad_attribute(attribute, error.detail) from None
        except ValueError as error:
            raise _bad_attribute(attribute, str(error)) from None
        return fitting

    return read


def _bad_attribute(attribute: Attribute, found: str) -> RejectedEventError:
    return RejectedEventError(
        Reason.BAD_ATTRIBUTE,
        f"attribute {attribute.name} must be {_WANTED[attribute.type]}; got {found}",
    )


def values_column(values: Sequence[AttributeValue | None]) -> DictionaryColumn:
    """Return the column of the values of one attribute; each distinct value is encoded once."""
    numbers: dict[AttributeValue, int] = {}
    codes = [_MISSING_CODE if it is None else numbers.setdefault(it, len(numbers)) for it in values]
    encoded = BytesColumn.from_list([encode_value(value) for value in numbers])
    return DictionaryColumn(np.array(codes, np.int32), encoded)


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
