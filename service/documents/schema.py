"""JSON Schema of resource files, for editors and CI.

A file contains documents of resources, or one document with a list of them (`resources`). The
schema is built from the models of the REST documents, with `kind` and `name`. It also has rules
that the models check between fields: the spellings of durations and the limits of a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.kinds import KINDS
from service.documents.event_limits import LENGTH_FIELDS, UNCERTAINTY_FIELDS
from service.documents.fields import NAME_PATTERN, spellings
from service.documents.models import (
    MappingDocument,
    StreamDocument,
    TemplateDocument,
    condition_models,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from correlation.condition_kind import Field
    from service.documents.fields import Document

Schema = dict[str, Any]
_DEFINITIONS = "#/$defs/"
_NAME: Schema = {
    "type": "string",
    "pattern": NAME_PATTERN,
    "description": "Name, unique within streams, templates or conditions.",
}
_PAUSED: Schema = {
    "type": "boolean",
    "description": "Whether the condition is registered but not evaluated; missing: as it is, a "
    "new condition runs.",
}


def file_schema() -> Schema:
    """Return the JSON Schema (2020-12) of the documents in a file."""
    definitions: Schema = {}
    models: dict[str, type[Document]] = {
        "template": TemplateDocument,
        "stream": StreamDocument,
        **condition_models(),
    }
    for kind, model in models.items():
        schema = model.model_json_schema(ref_template=f"{_DEFINITIONS}{{model}}")
        definitions |= schema.pop("$defs", {})
        definitions[kind] = _document(kind, model, schema)
    mapping = definitions[MappingDocument.__name__]
    mapping["allOf"] = [
        *_at_most_one_spelling(MappingDocument.durations),
        {"dependentRequired": _spellings_require_time()},
    ]
    references = [{"$ref": f"{_DEFINITIONS}{kind}"} for kind in models]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Resources of Coincide",
        "description": "A stream, a template or a condition, or a list of them.",
        "type": "object",
        "oneOf": [*references, {"$ref": f"{_DEFINITIONS}resources"}],
        "$defs": {
            **definitions,
            "resources": {
                "type": "object",
                "description": "A configuration: streams, templates and conditions.",
                "properties": {
                    "resources": {"type": "array", "items": {"oneOf": references}},
                },
                "required": ["resources"],
                "additionalProperties": False,
            },
        },
    }


def _document(kind: str, model: type[Document], schema: Schema) -> Schema:
    """Return the schema of a document in a file: with kind and name, and rules between fields."""
    summary = KINDS[kind].summary if kind in KINDS else schema.get("description", "")
    head: Schema = {"kind": {"const": kind, "description": summary}, "name": _NAME}
    if kind in KINDS:
        head["paused"] = _PAUSED
    # The examples are documents of the REST API, without name.
    examples = [{"kind": kind, "name": "example", **it} for it in schema.pop("examples", [])]
    rules = schema.pop("allOf", [])
    rules += _at_most_one_spelling(field for field in model.durations if not field.required)
    if kind == "stream":
        rules.append(_stream_limits())
    return {
        **schema,
        "description": summary,
        "properties": head | {k: v for k, v in schema["properties"].items() if k not in head},
        "required": ["kind", "name", *(it for it in schema.get("required", []) if it not in head)],
        **({"allOf": rules} if rules else {}),
        **({"examples": examples} if examples else {}),
    }


def _at_most_one_spelling(durations: Iterable[Field]) -> list[Schema]:
    return [
        {"oneOf": [*_each(spellings(it.name)), {"not": {"anyOf": _each(spellings(it.name))}}]}
        for it in durations
    ]


def _each(names: Iterable[str]) -> list[Schema]:
    return [{"required": [name]} for name in names]


def _spellings_require_time() -> dict[str, list[str]]:
    found = (spellings(it.name) for it in MappingDocument.durations)
    return {name: ["time"] for names in found for name in names}


def _stream_limits() -> Schema:
    """Return the rule which limits a stream has: of lengths if its events last, else of times."""
    lasting = {
        "required": ["mapping"],
        "properties": {
            "mapping": {
                "type": "object",
                "anyOf": [
                    {"required": [end], "properties": {end: {"not": {"type": "null"}}}}
                    for end in ("begin", "end")
                ],
            }
        },
    }
    uncertainties = [name for it in UNCERTAINTY_FIELDS for name in spellings(it.name)]
    lengths = [name for it in LENGTH_FIELDS for name in spellings(it.name)]
    return {
        "if": lasting,
        "then": {"not": {"anyOf": _each(uncertainties)}},
        "else": {
            "not": {"anyOf": _each(lengths)},
            "oneOf": _each(spellings("max_uncertainty")),
        },
    }
