"""Routes of the service's own state and of the job: health, metrics, job."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from service.api.common import Plane
from service.api.problems import responses
from service.errors import BrokerError, FieldProblem, LogStoppedError, NotReadyError

_BROKER_SECONDS = 3.0
router = APIRouter(tags=["state"])


class Live(BaseModel):
    """The process answers."""

    live: bool = Field(description="Always true.")


class WrongTopic(BaseModel):
    """A setting of an existing topic that is not as it must be."""

    topic: str = Field(description="Name of the topic.")
    setting: str = Field(description="Kafka's name of the setting.")
    found: str = Field(description="What it is.")
    needed: str = Field(description="What it should be; it is not changed.")


class Ready(BaseModel):
    """The service has read the whole config topic and the broker answers."""

    ready: bool = Field(description="Always true; otherwise the answer is 503.")
    config_position: int = Field(description="Offset of the next record of the config topic.")
    topic_problems: list[WrongTopic] = Field(
        description="Topics that were there with other settings than Coincide needs."
    )


class RecreatedTopic(BaseModel):
    """An event topic that was deleted and created again while the job was to read it."""

    former_id: str = Field(description="Kafka's id of the topic that was read before.")
    id: str = Field(description="Kafka's id of the topic that is read now, from its beginning.")
    at: int = Field(description="When the job noticed it, in µs since 1970.")


class JobState(BaseModel):
    """What the streaming job last said of itself."""

    up: bool = Field(description="Whether it runs and has said so lately.")
    state: str = Field(description="As the job says; unknown: it has never said anything.")
    query_id: str | None = Field(description="Of the Spark query.")
    batch: int | None = Field(description="Number of its newest batch.")
    at: int | None = Field(description="When it last spoke, in µs since 1970.")
    input_rate: float | None = Field(description="Records read per second.")
    lag: dict[str, dict[str, int]] = Field(description="Records not yet read, topic → partition.")
    lost: dict[str, dict[str, int]] = Field(
        description="Records that Kafka had dropped before they were read, topic → partition."
    )
    missing_topics: list[str] = Field(
        description="Output topics of conditions that do not exist; their alarms are dead letters."
    )
    recreated_topics: dict[str, RecreatedTopic] = Field(
        description="Event topics that were deleted and created again since the job was started."
    )
    durations: dict[str, float] = Field(description="Seconds of the newest batch, by phase.")
    exception: str | None = Field(description="What stopped it last.")
    applied_config_offset: int | None = Field(description="Newest config record it has applied.")
    config_head_offset: int = Field(description="Newest config record.")


@router.get("/livez")
async def get_liveness() -> Live:
    """Say that the process answers."""
    return Live(live=True)


@router.get("/readyz", responses=responses(503))
def get_readiness(plane: Plane) -> Ready:
    """Say whether the registry has caught up with the config topic and the broker answers."""
    position = plane.log.position
    try:
        plane.log.wait_for(-1, 0)
        end = plane.log.end_offset(_BROKER_SECONDS)
    except (BrokerError, LogStoppedError) as error:
        problem = FieldProblem("broker", error.detail, "check the broker and COINCIDE_BOOTSTRAP")
        raise NotReadyError(error.detail, (problem,)) from error
    # The position was taken before the end: a record written meanwhile is no reason.
    if position < end and not plane.log.wait_for(end - 1, _BROKER_SECONDS):
        detail = f"the config topic is read up to offset {plane.log.position} of {end}"
        raise NotReadyError(detail, (FieldProblem("registry", detail, "wait"),))
    return Ready(
        ready=True,
        config_position=plane.log.position,
        topic_problems=[WrongTopic(**it._asdict()) for it in plane.topic_problems],
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def get_metrics(request: Request) -> Response:
    """Give the Prometheus page."""
    page = generate_latest(request.app.state.metrics_registry)
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get("/v1/job", responses=responses(422))
def get_job(plane: Plane) -> JobState:
    """Say what the streaming job last said of itself."""
    found = plane.metrics.job() or {}
    return JobState(
        up=plane.job_is_up(),
        state=found.get("state", "unknown"),
        query_id=found.get("query_id"),
        batch=found.get("batch"),
        at=found.get("at"),
        input_rate=found.get("input_rate"),
        lag=found.get("lag", {}),
        lost=found.get("lost", {}),
        missing_topics=found.get("missing_topics", []),
        recreated_topics=found.get("recreated_topics", {}),
        durations=found.get("durations", {}),
        exception=found.get("exception"),
        applied_config_offset=found.get("applied_config_offset"),
        config_head_offset=plane.log.position - 1,
    )
