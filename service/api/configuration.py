"""Routes of the whole configuration and of the JSON Schema of its documents."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Header, Query, Response, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.config import JsonDict

from correlation.errors import InvalidFieldError
from correlation.resources.checks import check_name
from correlation.resources.records import Resource, ResourceKind
from service.api.body import Allowance, JsonRoute
from service.api.callers import CallerOf
from service.api.common import DryRun, Plane, prefers, require_tag
from service.api.problems import responses
from service.api.wording import field_problems
from service.configuration import Change, Wanted
from service.documents.configuration import ConfiguredKind, tag_of, to_documents
from service.documents.fields import NAME_PATTERN, Document
from service.documents.models import ConditionDocument, StreamDocument, TemplateDocument
from service.documents.schema import file_schema
from service.documents.yaml_form import write_yaml
from service.errors import FieldProblem, InvalidConfigurationError, first_problems

_JSON, _YAML, _SCHEMA = "application/json", "application/yaml", "application/schema+json"
# Max number of values in a configuration: a thousand resources with all their fields.
_VALUES = 100_000
_MODELS: Mapping[str, TypeAdapter[Document]] = {
    "stream": TypeAdapter(StreamDocument),
    "template": TypeAdapter(TemplateDocument),
    "condition": TypeAdapter(ConditionDocument),
}
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


def read_resources(items: Sequence[object]) -> list[Wanted]:
    """Read the documents of a configuration.

    Raises
    ------
    InvalidConfigurationError
        When an item does not name its resource, or two items name the same one.
    """
    wanted, problems = [], []
    for place, item in enumerate(items):
        problem = _naming_problem(item)
        if problem is None and isinstance(item, Mapping):
            wanted.append(_read_resource(item))
        elif problem is not None:
            problems.append((f"resources[{place}]", problem))
    for key, times in Counter(it.key for it in wanted).items():
        if times > 1:
            repeated = InvalidFieldError("name", f"occurs {times} times", "keep one of them")
            problems.append(("/".join(key), repeated))
    if problems:
        found = tuple(
            FieldProblem(it.field, it.problem, it.remedy, resource=name) for name, it in problems
        )
        raise InvalidConfigurationError(
            f"{found[0].resource}: {found[0].field}: {found[0].problem}", first_problems(found)
        )
    return wanted


def _naming_problem(item: object) -> InvalidFieldError | None:
    """Return the problem of kind and name of an item, or None."""
    if not isinstance(item, Mapping):
        return InvalidFieldError("", "must be an object", "write a JSON object: {…}")
    for field in ("kind", "name"):
        if field not in item:
            return InvalidFieldError(field, "is missing", "add it")
        if not isinstance(item[field], str):
            return InvalidFieldError(field, "must be a string", "write a string, in double quotes")
    try:
        check_name(item["name"])
    except InvalidFieldError as error:
        return InvalidFieldError("name", error.problem, error.remedy)
    return None


def _read_resource(item: Mapping[str, Any]) -> Wanted:
    document = {name: value for name, value in item.items() if name != "name"}
    kind: ResourceKind = "condition"
    problems: list[FieldProblem] = []
    paused = None
    if document["kind"] in {"stream", "template"}:
        kind = document.pop("kind")
    else:
        paused = document.pop("paused", None)
        if not isinstance(paused, bool | None):
            remedy = "write true or false, without quotes"
            problems.append(FieldProblem("paused", "must be true or false", remedy))
            paused = None
    normalised = document
    try:
        normalised = _MODELS[kind].validate_python(document).normalised()
    except ValidationError as error:
        problems += field_problems(error.errors(), (), kind if kind != "condition" else "")
    except InvalidFieldError as error:
        problems += [FieldProblem.of(it) for it in error.problems]
    return Wanted(kind, item["name"], normalised, paused, document, tuple(problems))
