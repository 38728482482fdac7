"""Routes of conditions: documents, pause and resume, status, plan and validation."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response, status
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, TypeAdapter

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
    accepts,
    delete_responses,
    describe_stream,
    etag,
    prefers,
    put_responses,
)
from service.api.problems import responses
from service.documents.fields import Document
from service.documents.models import ConditionDocument
from service.errors import NotAcceptableError
from service.fold import Stored

router = APIRouter(prefix="/v1", tags=["conditions"], route_class=JsonRoute)
_JSON, _SVG = "application/json", "image/svg+xml"
# For browsers that open the picture as a page.
_NO_SCRIPTS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'"
}
_DOCUMENT: TypeAdapter[Document] = TypeAdapter(ConditionDocument)


class WrittenCondition(StoredCondition):
    """A condition after a write."""

    warnings: list[str] = Field(
        description="Likely mistakes of the accepted document; empty: none found."
    )


class ConditionPage(BaseModel):
    """A page of conditions, sorted by name."""

    items: list[StoredCondition] = Field(description="The conditions.")
    next: str | None = Field(description="Value of `after` for the next page; null: last page.")


def _describe_ratios() -> str:
    """Describe the first ratio of each kind; kinds with the same ratio are listed together."""
    kinds: dict[str, list[str]] = {}
    for kind in KINDS.values():
        for ratio in [*kind.ratios.values()][:1]:
            kinds.setdefault(ratio.description, []).append(kind.name)
    return " ".join(f"{', '.join(names)}: {it}" for it, names in kinds.items())


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
        description="Reason for waiting or for the failure, the problem of its output topic, or "
        "the reason why results are missing."
    )
    applied: bool = Field(description="Whether all slots have applied its newest record.")
    applied_version: int | None = Field(description="Version that the job evaluates.")
    applied_config_offset: int | None = Field(
        description="Offset of the newest record that the job has applied."
    )
    streams: dict[str, StreamStatus] = Field(description="Status of each stream, by name.")
    hit_ratio: float | None = Field(
        description="First ratio of the counters of its kind; null: the kind has no ratio, or has "
        f"counted nothing. {_describe_ratios()}"
    )
    gauges: dict[str, float] = Field(
        description="Present values of the gauges of its kind, by the name of the metric without "
        "`coincide_`; a gauge without a value is missing."
    )
    alarms: int = Field(description="Number of alarms since the condition was registered.")
    last_alarm_at: int | None = Field(description="Time of the last alarm, in µs.")
    job_up: bool = Field(description="Whether the job runs and has reported recently.")


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


@router.put("/conditions/{name}", responses=put_responses(WrittenCondition))
def put_condition(
    name: Name, document: ConditionDocument, write: Writing, plane: Plane
) -> WrittenCondition:
    """Register a condition or replace its document; an unchanged document is not written."""
    stored = write.put("condition", name, document.normalised())
    warnings = plane.warnings(to_condition(stored.resource))
    return WrittenCondition(**dict(_shown(stored)), warnings=warnings)


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
    responses=responses(404, 412, 422, 503),
)
def pause_condition(name: Name, write: Writing, response: Response) -> StoredCondition:
    """Pause a condition; a paused condition stays paused."""
    return _switched(write.pause(name, paused=True), response)


@router.put(
    "/conditions/{name}/resume",
    status_code=status.HTTP_202_ACCEPTED,
    responses=responses(404, 412, 422, 503),
)
def resume_condition(name: Name, write: Writing, response: Response) -> StoredCondition:
    """Resume a paused condition; a running condition keeps running."""
    return _switched(write.pause(name, paused=False), response)


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
        if picture is not None:
            return Response(picture, media_type=_SVG, headers={"Vary": "Accept", **_NO_SCRIPTS})
        if not accepts(_JSON, accept):
            raise NotAcceptableError(
                f"the plan of condition {name} has no picture; ask for {_JSON}"
            )
    return JSONResponse(plane.plan(name), headers={"Vary": "Accept"})


@router.get("/conditions/{name}/status", responses=responses(404, 422))
def get_status(name: Name, plane: Plane) -> ConditionStatus:
    """Return the state of a condition in the job."""
    stored = plane.find("condition", name)
    view, resource = plane.metrics, stored.resource
    facts, condition = view.condition(name), to_condition(resource)
    kind = KINDS[condition.kind]
    shown = next(iter(kind.ratios), None)
    ratios, gauges = (
        {it.name: it.value for it in samples if ("condition", name) in it.labels}
        for samples in (view.ratios(), view.gauges())
    )
    return ConditionStatus(
        name=name,
        version=resource.version,
        config_offset=stored.offset,
        paused=resource.paused,
        state=facts.state,
        detail=facts.detail
        or _missing_output(condition.output_topic, view.job() or {})
        or kind.find_missing(condition, partial(view.total, condition=name)),
        applied=facts.applied_offset is not None and facts.applied_offset >= stored.offset,
        applied_version=facts.applied_version,
        applied_config_offset=facts.applied_offset,
        streams={
            stream: StreamStatus(**describe_stream(view, stream)) for stream in condition.streams
        },
        hit_ratio=None if shown is None else ratios.get(shown),
        gauges={gauge: gauges[gauge] for gauge in kind.gauges if gauge in gauges},
        alarms=view.total("alarms_total", condition=name),
        last_alarm_at=facts.last_alarm_at,
        job_up=plane.job_is_up(),
    )


def _missing_output(topic: str | None, job: Mapping[str, Any]) -> str | None:
    if topic not in job.get("missing_topics", ()):
        return None
    return f"topic {topic} does not exist: alarms go to the dead-letter topic; create it"


def _switched(stored: Stored, response: Response) -> StoredCondition:
    response.headers["Location"] = f"/v1/conditions/{stored.resource.name}/status"
    return _shown(stored)


def _shown(stored: Stored) -> StoredCondition:
    resource = stored.resource
    return StoredCondition(
        name=resource.name,
        version=resource.version,
        updated_at=resource.updated_at_us,
        document=resource.document,
        paused=resource.paused,
    )
