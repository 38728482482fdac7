"""Routes of conditions: documents, pause and resume, status, plan and validation."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from correlation.condition_kind import Load
from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS, to_condition
from service.api.body import JsonRoute
from service.api.common import (
    After,
    Limit,
    Name,
    Plane,
    StoredCondition,
    StreamStatus,
    Writing,
    delete_responses,
    describe,
    describe_stream,
    etag,
    prefers,
    put_responses,
)
from service.api.problems import document_problems, problem_of_field, responses
from service.api.wording import field_problems
from service.documents.fields import Document, ResourceName
from service.documents.models import ConditionDocument
from service.documents.numbers import read_number
from service.errors import (
    FieldProblem,
    InvalidDocumentError,
    NotAcceptableError,
    first_problems,
)
from service.fold import Stored
from service.plane import Written

router = APIRouter(prefix="/v1", tags=["conditions"], route_class=JsonRoute)
_JSON, _SVG = "application/json", "image/svg+xml"
# For browsers that open the picture as a page.
_NO_SCRIPTS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
_DOCUMENT: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
# Far above the throughput of any broker; keeps every derived number finite.
_MAX_PER_SECOND = 1e12
Rate = Annotated[
    float, BeforeValidator(read_number), Field(ge=0, le=_MAX_PER_SECOND, allow_inf_nan=False)
]

Keys = Annotated[
    float, BeforeValidator(read_number), Field(ge=1, le=_MAX_PER_SECOND, allow_inf_nan=False)
]


class ConditionPage(BaseModel):
    """A page of conditions, sorted by name."""

    items: list[StoredCondition] = Field(description="The conditions.")
    next: str | None = Field(description="Value of `after` for the next page; null: last page.")


class ConditionStatus(BaseModel):
    """State of a condition in the job."""

    name: str = Field(description="Name of the condition.")
    version: int = Field(description="Registered version.")
    config_offset: int = Field(description="Offset of its record in the config topic.")
    paused: bool = Field(description="Whether the condition is registered as paused.")
    state: str = Field(
        description="running, paused, waiting or failed, as reported by the slot that is furthest "
        "behind; pending: some slots have not applied it."
    )
    detail: str | None = Field(
        description="Reason for waiting or for the failure, or the problem of its output topic."
    )
    applied: bool = Field(description="Whether all slots have applied its newest record.")
    applied_version: int | None = Field(description="Version that the job evaluates.")
    applied_config_offset: int | None = Field(
        description="Offset of the newest record that the job has applied."
    )
    streams: dict[str, StreamStatus] = Field(description="Status of each stream, by name.")
    hit_ratio: float | None = Field(
        description="Share of the events in probe regions decided by the look-up tables."
    )
    alarms: int = Field(description="Number of alarms since the start of the job.")
    last_alarm_at: int | None = Field(description="Time of the last alarm, in µs.")
    job_up: bool = Field(description="Whether the job runs and has reported recently.")


class ValidationRequest(BaseModel):
    """A condition to validate."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "condition": {
                        "kind": "mutual_deadline",
                        "a": "acoustic",
                        "b": "seismic",
                        "window": "2s",
                        "threshold": 0.6,
                    },
                    "rates": {"acoustic": 500, "seismic": 20},
                    "keys": 10,
                }
            ]
        },
    )
    condition: dict[str, Any] = Field(description="Document as in PUT /v1/conditions/{name}.")
    rates: dict[ResourceName, Rate] = Field(
        default_factory=dict, description="Events per second, by stream."
    )
    keys: Keys = Field(
        default=1.0,
        description="Number of equally frequent keys of streams partitioned by key; used to "
        "estimate chance alarms.",
    )


class ValidationAnswer(BaseModel):
    """The problems of a condition, or its cost."""

    valid: bool = Field(description="Whether PUT would accept the document.")
    errors: list[FieldProblem] = Field(description="Problems, one for each field.")
    document: dict[str, Any] | None = Field(description="The document as it would be stored.")
    derived: dict[str, Any] | None = Field(
        description="Buffer horizon, worst-case alarm latency, expected buffered events and chance "
        "alarms; durations in µs."
    )


def _unknown_rates(
    document: Mapping[str, Any], rates: Mapping[str, float]
) -> tuple[FieldProblem, ...]:
    """Find rates of streams that the condition does not read, if its streams are known."""
    kind = KINDS.get(str(document.get("kind")))
    fields = [it.name for it in kind.fields if it.type == "stream"] if kind else []
    read = {it.stream for it in kind.streams_named(document)} if kind else set()
    if not read or not all(isinstance(document.get(it), str) for it in fields):
        return ()
    remedy = f"use {', '.join(sorted(read))}"
    return tuple(
        FieldProblem(f"rates.{name}", "is not a stream of the condition", remedy)
        for name in rates
        if name not in read
    )


@router.post("/conditions:validate", responses=responses(413, 415, 422, 503))
def validate_condition(body: ValidationRequest, plane: Plane) -> ValidationAnswer:
    """Check a condition and estimate its cost; nothing is written."""
    rates = {name: float(rate) for name, rate in body.rates.items()}
    strangers = _unknown_rates(body.condition, rates)
    try:
        document = _DOCUMENT.validate_python(body.condition).normalised()
        derived = plane.derive(document, Load(rates, float(body.keys)))
    except ValidationError as error:
        problems = field_problems(error.errors(), (), "condition")
        problems = document_problems(plane.registry, "condition", body.condition, problems)
    except (InvalidFieldError, InvalidDocumentError) as error:
        problems = tuple(problem_of_field(it, body.condition) for it in error.problems)
    else:
        if not strangers:
            return ValidationAnswer(valid=True, errors=[], document=document, derived=derived)
        problems = ()
    found = first_problems((*problems, *strangers))
    return ValidationAnswer(valid=False, errors=list(found), document=None, derived=None)


@router.get("/conditions", responses=responses(422))
async def list_conditions(plane: Plane, limit: Limit = 100, after: After = "") -> ConditionPage:
    """List the conditions by name."""
    found, following = plane.registry.page("condition", limit, after)
    return ConditionPage(items=[_shown(it) for it in found], next=following)


@router.get("/conditions/{name}", responses=responses(404, 422))
async def get_condition(name: Name, plane: Plane, response: Response) -> StoredCondition:
    """Return a condition."""
    stored = plane.find("condition", name)
    response.headers["ETag"] = etag(stored.offset)
    return _shown(stored)


@router.put("/conditions/{name}", responses=put_responses(StoredCondition))
def put_condition(name: Name, document: ConditionDocument, write: Writing) -> StoredCondition:
    """Register a condition or replace its document; an unchanged document is not written."""
    return _shown(write.put("condition", name, document.normalised()))


@router.delete(
    "/conditions/{name}",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=delete_responses(),
)
def delete_condition(name: Name, write: Writing) -> Response:
    """Delete a condition."""
    return write.delete("condition", name)


@router.put(
    "/conditions/{name}/pause",
    status_code=status.HTTP_202_ACCEPTED,
    responses=responses(404, 422, 503),
)
def pause_condition(name: Name, plane: Plane, response: Response) -> StoredCondition:
    """Pause a condition; a paused condition stays paused."""
    return _switched(name, plane.pause(name, paused=True), response)


@router.put(
    "/conditions/{name}/resume",
    status_code=status.HTTP_202_ACCEPTED,
    responses=responses(404, 422, 503),
)
def resume_condition(name: Name, plane: Plane, response: Response) -> StoredCondition:
    """Resume a paused condition; a running condition keeps running."""
    return _switched(name, plane.pause(name, paused=False), response)


@router.get(
    "/conditions/{name}/plan",
    response_model=dict[str, Any],
    responses={
        200: {"content": {_SVG: {"schema": {"type": "string"}}}},
        **responses(404, 406, 422),
    },
)
def plan_condition(
    name: Name,
    plane: Plane,
    accept: Annotated[
        str, Header(description=f"{_SVG}: a picture, for kinds of conditions that have one.")
    ] = _JSON,
) -> Response:
    """Return the plan of a condition: regions or relations, keep functions, algorithm, reason."""
    if prefers(_SVG, accept, _JSON):
        picture = plane.picture(name)
        if picture is None:
            raise NotAcceptableError(
                f"the plan of condition {name} has no picture; ask for {_JSON}"
            )
        return Response(picture, media_type=_SVG, headers={"Vary": "Accept", **_NO_SCRIPTS})
    return JSONResponse(plane.plan(name), headers={"Vary": "Accept"})


@router.get("/conditions/{name}/status", responses=responses(404, 422))
def get_status(name: Name, plane: Plane) -> ConditionStatus:
    """Return the state of a condition in the job."""
    stored = plane.find("condition", name)
    view, resource = plane.metrics, stored.resource
    facts, condition = view.condition(name), to_condition(resource)
    ratios = [it.value for it in view.hit_ratios() if ("condition", name) in it.labels]
    return ConditionStatus(
        name=name,
        version=resource.version,
        config_offset=stored.offset,
        paused=resource.paused,
        state=facts.state,
        detail=facts.detail or _missing_output(condition.output_topic, view.job() or {}),
        applied=facts.applied_offset is not None and facts.applied_offset >= stored.offset,
        applied_version=facts.applied_version,
        applied_config_offset=facts.applied_offset,
        streams={
            stream: StreamStatus(**describe_stream(view, stream)) for stream in condition.streams
        },
        hit_ratio=ratios[0] if ratios else None,
        alarms=view.total("alarms_total", condition=name),
        last_alarm_at=facts.last_alarm_at,
        job_up=plane.job_is_up(),
    )


def _missing_output(topic: str | None, job: Mapping[str, Any]) -> str | None:
    if topic not in job.get("missing_topics", ()):
        return None
    return f"topic {topic} does not exist: alarms go to the dead-letter topic; create it"


def _switched(name: str, written: Written, response: Response) -> StoredCondition:
    describe(response, written, f"/v1/conditions/{name}")
    response.headers["Location"] = f"/v1/conditions/{name}/status"
    return _shown(Stored(written.resource, written.offset or 0))


def _shown(stored: Stored) -> StoredCondition:
    resource = stored.resource
    return StoredCondition(
        name=resource.name,
        version=resource.version,
        updated_at=resource.updated_at_us,
        document=resource.document,
        paused=resource.paused,
    )
