"""JSON schemas of the attributes of a stream, and of filters over them."""

from __future__ import annotations

from typing import Any

from correlation.resources.attributes import ATTRIBUTE_TYPES, ATTRIBUTES_LIMIT

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
WHERE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "null"},
        {
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
        },
    ]
}
