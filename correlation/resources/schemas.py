"""JSON Schemas (draft 7) of Kafka records: common types, and `RecordType`.

AsyncAPI describes values by draft 7. Objects refuse fields that the schema does not name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = Mapping[str, Any]

STRING: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
POSITIVE: Schema = {"type": "integer", "minimum": 1}
TIME_US: Schema = {"type": "integer", "description": "Time in µs since 1970, UTC."}
# The value of a tombstone, which removes a key from a compacted topic.
NULL: Schema = {"type": "null"}
ANY_OBJECT: Schema = {"type": "object"}
# A value of any content, also one that is not JSON.
ANY_BYTES: Schema = {"description": "Any bytes."}


def object_of(fields: Mapping[str, Schema], optional: Collection[str] = (), **more: Any) -> Schema:  # noqa: ANN401 - keywords of JSON Schema
    """Return the schema of an object that has no other fields.

    Parameters
    ----------
    fields : mapping of name to schema
        All fields.
    optional : collection of str
        Fields that may be missing.
    **more
        Further keywords of JSON Schema.
    """
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
        "additionalProperties": False,
        **more,
    }


def map_of(values: Schema, names: Schema | None = None) -> Schema:
    """Return the schema of an object with any names, whose values have one schema."""
    found = {"type": "object", "additionalProperties": values}
    return found if names is None else {**found, "propertyNames": names}


def list_of(items: Schema, **more: Any) -> Schema:  # noqa: ANN401 - keywords of JSON Schema
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


def tuple_of(*items: Schema) -> Schema:
    """Return the schema of a list of fixed length, with a schema for each place."""
    return {"type": "array", "items": list(items), "minItems": len(items), "maxItems": len(items)}


def constant(value: str | int) -> Schema:
    """Return the schema of one value; generators of code need its type."""
    return {"type": "string" if isinstance(value, str) else "integer", "const": value}


def choice(values: Collection[str]) -> Schema:
    """Return the schema of a string out of a list."""
    return {"type": "string", "enum": list(values)}


def nullable(schema: Schema) -> Schema:
    """Return the schema of values of another schema, or null."""
    return {"anyOf": [schema, NULL]}


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with a description."""
    return {**schema, "description": description}


def headers_of(
    headers: Mapping[str, Schema], optional: Collection[str] = (), *, others: bool = False
) -> Schema:
    """Return the schema of the headers of a record; all values are strings in UTF-8.

    Parameters
    ----------
    headers : mapping of name to schema
        The headers.
    optional : collection of str
        Headers that may be missing.
    others : bool
        Whether the record may have further headers.
    """
    return {**object_of(headers, optional), "additionalProperties": others}


NO_HEADERS = headers_of({})


@dataclass(frozen=True, slots=True)
class RecordType:
    """A type of Kafka record.

    Parameters
    ----------
    name : str
        Name, unique in the installation.
    summary : str
        One sentence about the record.
    value : Schema
        Schema of its value; NULL for a record without value.
    key : str
        Description of its Kafka key.
    headers : Schema
        Schema of its headers.
    topic : str
        Name of its topic without the prefix of the installation; of records of a kind of
        condition, "alarms" or the name of a channel of the kind.
    content_type : str
        Media type of the value.
    """

    name: str
    summary: str
    value: Schema
    key: str
    headers: Schema = field(default_factory=lambda: NO_HEADERS)
    topic: str = "alarms"
    content_type: str = "application/json"
