"""JSON schemas of the attributes and tokens of a stream, and of filters over attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from correlation.resources.attributes import ATTRIBUTE_TYPES, ATTRIBUTES_LIMIT
from correlation.resources.tokens import STOP_WORDS_LIMIT, TOKEN_BYTES

_PATH: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    ]
}
_CONSTANT = {"type": ["string", "number", "boolean"]}
_CONSTANTS = [_CONSTANT, {"type": "array", "items": _CONSTANT, "minItems": 1}]
ATTRIBUTES_SCHEMA: dict[str, Any] = {
    "type": "object",
    "maxProperties": ATTRIBUTES_LIMIT,
    "additionalProperties": {
        "anyOf": [
            *_PATH["anyOf"],
            {
                "type": "object",
                "properties": {
                    "path": _PATH,
                    "type": {"type": "string", "enum": list(ATTRIBUTE_TYPES)},
                },
                "required": ["path"],
                "additionalProperties": False,
            },
        ]
    },
}
TOKENS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "null"},
        *_PATH["anyOf"],
        {
            "type": "object",
            "properties": {
                "path": _PATH,
                "tokenizer": {
                    "type": "string",
                    "pattern": r"^(list|words|split:.+|ngrams:([1-9]|[12][0-9]|3[0-2]))$",
                    "default": "list",
                },
                "lower_case": {"type": "boolean", "default": False},
                "stop_words": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": TOKEN_BYTES},
                    "maxItems": STOP_WORDS_LIMIT,
                    "default": [],
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    ]
}
_FILTER: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [
            *_CONSTANTS,
            {
                "type": "object",
                "minProperties": 1,
                "properties": {
                    "min": {"type": ["string", "number"]},
                    "max": {"type": ["string", "number"]},
                    "not": {"anyOf": _CONSTANTS},
                },
                "additionalProperties": False,
            },
        ]
    },
}
WHERE_SCHEMA: dict[str, Any] = {"anyOf": [{"type": "null"}, _FILTER]}


def role_filters_schema(roles: Sequence[str]) -> dict[str, Any]:
    """Return the schema of the filters of some roles."""
    filters = {
        "type": "object",
        "minProperties": 1,
        "properties": dict.fromkeys(roles, _FILTER),
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "null"}, filters]}
