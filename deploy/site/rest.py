"""Reference of the REST API in Markdown, from an OpenAPI document.

One page describes the operations by tag, another one the documents of requests and answers. Fields
for one duration in several units (`window_us`, `window_ms`, `window_s`, `window`) are one row.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from deploy.markdown import code, plain, table
from deploy.site.types import DOCUMENTS_PAGE, anchor_of, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["DOCUMENTS_PAGE", "describe_documents", "describe_operations"]

_FIRST_ERROR = 400
_UNITS = ("_us", "_ms", "_s")
# The end of the description of a field that exists in several units.
_ONE_OF = re.compile(r"\.? In [^.]+; one of [\w, ]+\.$")


def describe_operations(schema: Mapping[str, Any]) -> str:
    """Build the part of a page that describes all operations.

    Parameters
    ----------
    schema : mapping
        The OpenAPI document.

    Returns
    -------
    str
        Markdown: a section for each tag, in it one for each operation.
    """
    operations = [
        (operation["tags"][0], f"{method.upper()} {path}", operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    lines: list[str] = []
    for tag, found in groupby(operations, lambda it: it[0]):
        lines += [f"## {tag.capitalize()}", ""]
        for _, name, operation in found:
            lines += [f"### `{name}`", "", operation["description"], ""]
            lines += _parameters(operation.get("parameters", []))
            lines += _request(operation.get("requestBody"))
            lines += _responses(operation["responses"])
    return "\n".join(lines)


def describe_documents(schema: Mapping[str, Any]) -> str:
    """Build the part of a page that describes the documents of requests and answers.

    Parameters
    ----------
    schema : mapping
        The OpenAPI document.

    Returns
    -------
    str
        Markdown: a section for each schema of the document, sorted by name.
    """
    lines: list[str] = []
    schemas = schema["components"]["schemas"]
    for name in sorted(schemas, key=anchor_of):
        found = schemas[name]
        lines += [f"## {name.lstrip('_')}", ""]
        if "description" in found:
            lines += [found["description"], ""]
        lines += table(("field", "type", "default", "meaning"), _fields(found))
        for example in found.get("examples", [])[:1]:
            lines += ["```json", json.dumps(example, indent=2, ensure_ascii=False), "```", ""]
    return "\n".join(lines)


def _parameters(parameters: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = [
        (code(it["name"]), it["in"], type_of(it["schema"]), plain(it.get("description", "")))
        for it in parameters
    ]
    return table(("parameter", "in", "type", "meaning"), rows)


def _request(body: Mapping[str, Any] | None) -> list[str]:
    if body is None:
        return []
    return [f"Body: {_content(body)}.", ""]


def _responses(responses: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the table of the answers; the errors, all of which are problems, are one row."""
    rows = []
    errors = []
    for status, response in responses.items():
        if status.isdecimal() and int(status) >= _FIRST_ERROR and _is_problem(response):
            errors.append(code(status))
        else:
            rows.append((code(status), plain(response["description"]), _content(response)))
    if errors:
        problem = {"$ref": "#/components/schemas/Problem"}
        rows.append((", ".join(errors), "Error", type_of(problem)))
    return table(("status", "meaning", "body"), rows)


def _is_problem(response: Mapping[str, Any]) -> bool:
    return set(response.get("content", {})) == {"application/problem+json"}


def _content(body: Mapping[str, Any]) -> str:
    """Return the types of a body, each with its media type unless it is JSON."""
    found = []
    for media_type, content in body.get("content", {}).items():
        shown = type_of(content.get("schema", {}))
        found.append(shown if media_type == "application/json" else f"{shown} ({media_type})")
    return "; ".join(found)


def _fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of fields."""
    properties = schema.get("properties", {})
    required = {*schema.get("required", []), *_required_in_one_unit(schema)}
    in_units = {name for name in properties if all(name + unit in properties for unit in _UNITS)}
    variants = {name + unit for name in in_units for unit in _UNITS}
    for name, found in properties.items():
        if name in variants:
            continue
        meaning = found.get("description", "")
        shown = type_of(found)
        if name in in_units:
            meaning = _ONE_OF.sub(".", meaning)
            shown = "duration"
        default = "required" if name in required else ""
        if "default" in found:
            default = code(json.dumps(found["default"], ensure_ascii=False))
        yield code(name), shown, default, plain(meaning)


def _required_in_one_unit(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of which one variant must be present: the names of all variants."""
    for rule in schema.get("allOf", []):
        for variant in rule.get("oneOf", []):
            yield from variant.get("required", [])
