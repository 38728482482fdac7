"""Routes of the whole configuration and of the JSON Schema of its documents."""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Header, Query, Response, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from correlation.resources.records import Resource
from service.api.body import Allowance, JsonRoute
from service.api.callers import CallerOf
from service.api.common import DryRun, Plane, prefers, require_tag
from service.api.documents import read_resources
from service.api.problems import responses
from service.configuration_changes import Change
from service.documents.configuration import ConfiguredKind, tag_of, to_documents
from service.documents.fields import NAME_PATTERN
from service.documents.schema import file_schema
from service.documents.yaml_form import write_yaml

_JSON, _YAML, _SCHEMA = "application/json", "application/yaml", "application/schema+json"
# Max number of values in a configuration: a thousand resources with all their fields.
_VALUES = 100_000
_RESOURCE_SCHEMA: JsonDict = {
    "type": "object",
    "description": "As in a file: /v1/schema describes each kind.",
    "properties": {
        "kind": {"type": "string"},
        "name": {"type": "string", "pattern": NAME_PATTERN},
    },
    "required": ["kind", "name"],
}


class ConfigurationRoute(JsonRoute):
    """A route whose body contains a configuration."""

    own = MappingProxyType({"resources": Allowance(_VALUES, "send fewer resources")})


router = APIRouter(prefix="/v1", tags=["configuration"], route_class=ConfigurationRoute)


class Configuration(BaseModel):
    """All streams, templates and conditions, or those that a request contains."""

    model_config = ConfigDict(extra="forbid")
    resources: list[Any] = Field(
        description="Documents as for PUT of a single resource, each with `kind` (stream, "
        "template, or the kind of a condition) and `name`. A condition may have `paused`.",
        json_schema_extra={"items": _RESOURCE_SCHEMA},
    )


class Named(BaseModel):
    """A resource."""

    kind: ConfiguredKind = Field(description="Kind of the resource.")
    name: str = Field(description="Name of the resource.")


class ChangedField(BaseModel):
    """A field of a document with another value; nested fields have dots."""

    field: str = Field(description="Name of the field.")
    old: Any = Field(description="Value before the write; null: none.")
    new: Any = Field(description="Value after the write; null: none.")


class Changed(Named):
    """A resource whose document, or state, changes."""

    fields: list[ChangedField] = Field(description="Fields that change.")


class Difference(BaseModel):
    """The changes that a configuration makes."""

    dry_run: bool = Field(description="Whether nothing was written.")
    created: list[Named] = Field(description="Resources that did not exist.")
    changed: list[Changed] = Field(description="Resources with another document or state.")
    unchanged: list[Named] = Field(description="Resources that are not written.")
    deleted: list[Named] = Field(description="Resources that are deleted (prune).")
    warnings: dict[str, list[str]] = Field(
        description="Likely problems of the streams of the request, by stream."
    )


@router.get(
    "/config",
    response_model=Configuration,
    responses={
        200: {"content": {_YAML: {"schema": {"type": "string"}}}},
        **responses(422),
    },
)
def get_configuration(
    plane: Plane,
    accept: Annotated[
        str, Header(description=f"{_YAML}: the documents as a file for `coincide apply`.")
    ] = _JSON,
) -> Response:
    """Return the whole configuration in a fixed order: templates, streams, conditions, by name.

    A PUT of the response changes nothing, except that streams take the present versions of their
    templates. The ETag is a hash of the configuration.
    """
    documents = to_documents(plane.registry.configuration())
    headers = {"ETag": _etag(documents), "Vary": "Accept"}
    if prefers(_YAML, accept, _JSON):
        return Response(write_yaml(documents), media_type=_YAML, headers=headers)
    return JSONResponse({"resources": documents}, headers=headers)


@router.put(
    "/config",
    responses={
        202: {"model": Difference, "description": "Written, but not read back in time"},
        **responses(412, 413, 415, 422, 503),
    },
)
def put_configuration(
    body: Configuration,
    plane: Plane,
    caller: CallerOf,
    response: Response,
    prune: Annotated[
        Literal["true", "false"],
        Query(description="true: delete all resources that the request does not contain."),
    ] = "false",
    dry_run: DryRun = "false",
    if_match: Annotated[
        str | None, Header(description="ETag that the present configuration must have.")
    ] = None,
) -> Difference:
    """Register all resources of the request, or none of them; unchanged ones are not written.

    The resources are checked together, in the state that the write leaves. The response lists the
    changes. A template with other buckets becomes a new version, which the streams of the request
    that name it take.
    """
    wanted = read_resources(body.resources)
    written = plane.configuration.put(
        wanted,
        _precondition(if_match),
        plane.now_us(),
        prune=prune == "true",
        dry_run=dry_run == "true",
        by=caller,
    )
    if written.offset is not None:
        response.headers["X-Config-Offset"] = str(written.offset)
    if written.tag is not None:
        response.headers["ETag"] = f'"{written.tag}"'
    else:
        response.status_code = status.HTTP_202_ACCEPTED
        response.headers["Location"] = "/v1/config"
    streams = [
        it.resource.to_stream()
        for it in written.changes
        if it.resource.kind == "stream" and it.change != "deleted"
    ]
    return _difference(
        written.changes, plane.stream_topics.warnings_by_stream(streams), dry_run=dry_run == "true"
    )


@router.get("/schema", responses={200: {"content": {_SCHEMA: {"schema": {"type": "object"}}}}})
def get_schema() -> Response:
    """Return the JSON Schema of the documents in files, for editors and CI."""
    return JSONResponse(file_schema(), media_type=_SCHEMA)


def _etag(documents: list[dict[str, Any]]) -> str:
    return f'"{tag_of(documents)}"'


def _precondition(if_match: str | None) -> Callable[[Sequence[Resource]], None]:
    def check(present: Sequence[Resource]) -> None:
        if if_match is not None:
            require_tag(if_match, _etag(to_documents(present)))

    return check


def _difference(
    changes: Sequence[Change], warnings: dict[str, list[str]], *, dry_run: bool
) -> Difference:
    def named(change: str) -> list[Named]:
        return [
            Named(kind=_kind_of(it), name=it.resource.name) for it in changes if it.change == change
        ]

    changed = [
        Changed(
            kind=_kind_of(it),
            name=it.resource.name,
            fields=[ChangedField(**field._asdict()) for field in it.fields],
        )
        for it in changes
        if it.change == "changed"
    ]
    return Difference(
        dry_run=dry_run,
        created=named("created"),
        changed=changed,
        unchanged=named("unchanged"),
        deleted=named("deleted"),
        warnings=warnings,
    )


def _kind_of(change: Change) -> ConfiguredKind:
    return cast("ConfiguredKind", change.resource.kind)
