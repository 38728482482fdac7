"""The configuration as documents: all resources in one form, in a fixed order.

A document is that of the REST API with its `kind` and `name`; that of a condition has `paused`.
Files for ``coincide apply`` have the same form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import orjson

from service.documents.unchanged import as_written_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from correlation.resources.records import Resource

ConfiguredKind = Literal["template", "stream", "condition"]
# Resources refer only to resources of earlier kinds.
KIND_ORDER: tuple[ConfiguredKind, ...] = get_args(ConfiguredKind)
_TAG_CHARACTERS = 32


def to_documents(resources: Iterable[Resource]) -> list[dict[str, Any]]:
    """Return the documents of resources, sorted by kind and name, without versions and times.

    The fields of a document are sorted too, except for kind, name and paused.
    """
    ordered = sorted(resources, key=lambda it: (KIND_ORDER.index(it.kind), it.name))
    return [_to_document(it) for it in ordered]


def tag_of(documents: list[dict[str, Any]]) -> str:
    """Return a hash of the documents: equal configurations have equal tags."""
    return hashlib.sha256(orjson.dumps(documents)).hexdigest()[:_TAG_CHARACTERS]


def _to_document(resource: Resource) -> dict[str, Any]:
    fields = dict(as_written_now(resource))
    head: dict[str, Any] = {"kind": fields.pop("kind", resource.kind), "name": resource.name}
    if resource.kind == "condition":
        head["paused"] = resource.paused
    if resource.kind == "stream":
        fields["templates"] = [entry["name"] for entry in fields["templates"]]
        if fields["mapping"] is not None:
            fields["mapping"] = _without_null(fields["mapping"])
    rest = _without_null(fields)
    return head | {name: _sorted(rest[name]) for name in sorted(rest)}


def _without_null(fields: Mapping[str, Any]) -> dict[str, Any]:
    # null is the default of every field that may be null.
    return {name: value for name, value in fields.items() if value is not None}


def _sorted(value: Any) -> Any:  # noqa: ANN401  any JSON value
    if isinstance(value, Mapping):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(it) for it in value] if isinstance(value, list) else value
