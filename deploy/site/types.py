"""Types of JSON Schema in words, for cells of Markdown tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deploy.markdown import code

if TYPE_CHECKING:
    from collections.abc import Mapping

# The page that has a section for each named schema.
DOCUMENTS_PAGE = "rest-documents"
_ALTERNATIVES = ("anyOf", "oneOf")


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in words, as Markdown.

    Parameters
    ----------
    schema : mapping
        A schema of an OpenAPI document; a reference becomes a link.
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name.lstrip('_')}]({DOCUMENTS_PAGE}.md#{anchor_of(name)})"
    for alternatives in _ALTERNATIVES:
        if alternatives in schema:
            return " or ".join(dict.fromkeys(type_of(it) for it in schema[alternatives]))
    if "const" in schema:
        return code(json.dumps(schema["const"], ensure_ascii=False))
    if "enum" in schema:
        return " or ".join(code(json.dumps(it, ensure_ascii=False)) for it in schema["enum"])
    return _plain_type(schema)


def _plain_type(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema that has at most the keyword `type`."""
    match schema.get("type"):
        case "array":
            return f"list of {_items_type(schema.get('items', {}))}"
        case "object":
            return _object_type(schema)
        case list() as names:
            return " or ".join(names)
        case str() as name:
            return name
        case _:
            return "any value"


def _items_type(items: Mapping[str, Any] | list[Mapping[str, Any]]) -> str:
    """Return the type of the items of a list, or the types by place of a list of fixed length."""
    return f"({', '.join(map(type_of, items))})" if isinstance(items, list) else type_of(items)


def _object_type(schema: Mapping[str, Any]) -> str:
    if "properties" in schema:
        return f"object with {', '.join(code(name) for name in schema['properties'])}"
    values = schema.get("additionalProperties")
    return f"object of {type_of(values)}" if isinstance(values, dict) else "object"


def anchor_of(name: str) -> str:
    """Return the anchor of a named schema."""
    return name.lstrip("_").lower()
