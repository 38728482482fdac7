"""Comparison of a document with the registered document of a resource."""

from __future__ import annotations

from typing import Any

import orjson

from correlation.kinds import KINDS
from correlation.resources.records import Resource, stream_to_document

Document = dict[str, Any]


def is_unchanged(resource: Resource, document: Document) -> bool:
    """Return whether a document is that of a resource, by its JSON: in Python ``True == 1``."""
    old, new = (
        orjson.dumps(it, option=orjson.OPT_SORT_KEYS) for it in (as_written_now(resource), document)
    )
    return old == new


def as_written_now(resource: Resource) -> Document:
    """Return the document with defaults for the fields added since it was written."""
    if resource.kind == "stream":
        return stream_to_document(resource.to_stream())
    if resource.kind == "condition":
        fields = KINDS[resource.document["kind"]].fields
        defaults = {it.stored_name: it.default for it in fields if not it.required}
        return defaults | resource.document
    return resource.document
