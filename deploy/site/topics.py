"""Reference of the topics and their records in Markdown, from an AsyncAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deploy.markdown import code, plain, table
from deploy.site.types import type_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The page that has a section for each topic and each record.
TOPICS_PAGE = "topics"
# The resource in a record of the config topic has the form of REST's documents.
_RESOURCE = "document"
_ALTERNATIVES = ("anyOf", "oneOf")
_HEADING = ("field", "type", "", "meaning")


def describe_topics(document: Mapping[str, Any]) -> str:
    """Build the part of a page that describes the topics and their records.

    Parameters
    ----------
    document : mapping
        The AsyncAPI document.

    Returns
    -------
    str
        Markdown: a section for each topic, then one for each type of record.
    """
    lines = ["## Topics", ""]
    for name, channel in document["channels"].items():
        lines += [f"### `{topic_heading(channel)}`", "", channel["description"], ""]
        lines += table(("", ""), _facts(name, channel, document["operations"]))
    lines += ["## Records", ""]
    for name, message in document["components"]["messages"].items():
        lines += [f"### `{name}`", "", message["summary"], ""]
        lines += [f"Key: {plain(message['bindings']['kafka']['key']['description'])}", ""]
        headers = list(_fields(message["headers"]))
        lines += table(("header", *_HEADING[1:]), headers)
        lines += _value(message)
    return "\n".join(lines)


def topic_heading(channel: Mapping[str, Any]) -> str:
    """Return the heading of a topic: its name, or that of its parameter's topics."""
    heading: str = channel["title"] if "parameters" in channel else channel["address"]
    return heading


def _facts(
    name: str, channel: Mapping[str, Any], operations: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield who writes and reads a topic, its settings and its records."""
    for parameter in channel.get("parameters", {}).values():
        yield "name", plain(parameter["description"])
    for action, label in (("send", "written by"), ("receive", "read by")):
        found = [
            it["tags"][0]["name"]
            for it in operations.values()
            if it["action"] == action and it["channel"]["$ref"] == f"#/channels/{name}"
        ]
        if found:
            yield label, ", ".join(found)
    if (bindings := channel.get("bindings", {}).get("kafka")) is not None:
        yield "partitions", str(bindings["partitions"])
        for setting, value in bindings["topicConfiguration"].items():
            shown = ",".join(value) if isinstance(value, list) else str(value)
            yield code(setting), code(shown)
    yield "records", ", ".join(f"[`{it}`](#{it})" for it in channel["messages"])


def _value(message: Mapping[str, Any]) -> list[str]:
    payload = message["payload"]
    if payload.get("type") == "null":
        return ["Value: none.", ""]
    if rows := list(_fields(payload)):
        return table(_HEADING, rows)
    if "description" in payload:
        return [f"Value: {plain(payload['description'])}", ""]
    return [f"Value: {type_of(payload)}.", ""]


def _fields(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, ...]]:
    """Yield the rows of the fields of an object, then those of the objects in it.

    Fields of the objects of a list are `list[].field`, those of a mapping `mapping.*.field`.
    """
    required = schema.get("required", [])
    for name, found in schema.get("properties", {}).items():
        needed = "required" if name in required else ""
        shown = type_of(_without_fields(found))
        meaning = next((it["description"] for it in _variants(found) if "description" in it), "")
        yield code(path + name), shown, needed, plain(meaning)
        if name != _RESOURCE:
            yield from _inner_fields(found, path + name)


def _inner_fields(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the objects in a value, those of alternatives once."""
    yield from _fields(schema, f"{path}.")
    if isinstance(items := schema.get("items"), dict):
        yield from _inner_fields(items, f"{path}[]")
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from _inner_fields(values, f"{path}.*")
    named: dict[str, tuple[str, ...]] = {}
    for it in _variants(schema)[1:]:
        for row in _inner_fields(it, path):
            named.setdefault(row[0], row)
    yield from named.values()


def _variants(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a schema and its alternatives."""
    return [schema, *(it for keyword in _ALTERNATIVES for it in schema.get(keyword, []))]


def _without_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose objects do not name their fields, which have rows of their own."""
    found = {name: value for name, value in schema.items() if name != "properties"}
    for keyword in ("items", "additionalProperties"):
        if isinstance(found.get(keyword), dict):
            found[keyword] = _without_fields(found[keyword])
    for keyword in _ALTERNATIVES:
        if keyword in found:
            found[keyword] = [_without_fields(it) for it in found[keyword]]
    return found
