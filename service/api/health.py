"""Routes of the service's own state and of the job: health, metrics, job.

They use separate threads, or none, so they answer while other requests wait.
"""

import asyncio

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field

from correlation.config_records import list_unreadable
from service.access.authentication import Authenticator
from service.access.callers import STRANGER, Role
from service.api.body import JsonRoute
from service.api.callers import CallerOf
from service.api.common import Plane, WrongTopic
from service.api.problems import responses
from service.errors import BrokerError, FieldProblem, LogStoppedError, NotReadyError
from service.plane import ControlPlane

BROKER_SECONDS = 3.0
_HIDDEN_EXCEPTION = "the query was stopped by an exception, which the role admin can read"
_HIDDEN_PROBLEM = (
    "the job cannot have the wanted number of slots now, for a reason that the role admin can read"
)
# One thread asks the broker, the others serve the scrapes of several Prometheus servers.
_THREADS = 4
router = APIRouter(tags=["state"], route_class=JsonRoute)


class Live(BaseModel):
    """The process answers."""

    live: bool = Field(description="Always true.")


class UnreadableRecord(BaseModel):
    """The newest record of a key of the config topic, which cannot be read."""

    key: str = Field(
        description="Key of the record, up to 200 characters; invalid UTF-8 is escaped."
    )
    offset: int = Field(description="Offset in the config topic.")
    problem: str = Field(description="Reason why it cannot be read, up to 200 characters.")


class Ready(BaseModel):
    """The service has read the whole config topic and the broker answers."""

    ready: bool = Field(description="Always true; otherwise the status is 503.")
    config_position: int = Field(
        default=0, description="Offset of the next record of the config topic."
    )
    topic_problems: list[WrongTopic] = Field(
        default_factory=list,
        description="Existing topics whose settings differ from those that Coincide needs.",
    )
    unreadable_records: list[UnreadableRecord] = Field(
        default_factory=list,
        description="First 20 config records that cannot be read; they are not in force.",
    )
    unreadable_records_total: int = Field(
        default=0, description="Number of config records that cannot be read."
    )
    access_problem: str | None = Field(
        default=None, description="Problem of the file of API keys; null: it is valid, or not used."
    )


class RecreatedTopic(BaseModel):
    """An event topic that was deleted and created again while the job was reading it."""

    former_id: str = Field(description="Kafka id of the previous topic.")
    id: str = Field(description="Kafka id of the new topic, which is read from its beginning.")
    at: int = Field(description="Time of detection, in µs since 1970.")


class JobState(BaseModel):
    """The last reported state of the streaming job."""

    up: bool = Field(description="Whether the job runs and has reported recently.")
    state: str = Field(
        description="State reported by the job; unknown: the job has never reported."
    )
    query_id: str | None = Field(description="Id of the Spark query.")
    batch: int | None = Field(description="Number of the newest batch.")
    at: int | None = Field(description="Time of the last report, in µs since 1970.")
    input_rate: float | None = Field(description="Records read per second.")
    lag: dict[str, dict[str, int]] = Field(description="Records not yet read, topic → partition.")
    last_batch_at: int | None = Field(
        description="Time of the last completed batch, in µs since 1970; null: the job has not "
        "completed a batch since its start."
    )
    lost: dict[str, dict[str, int]] = Field(
        description="Min number of records lost by retention, deletion or truncation of a topic, "
        "topic → partition."
    )
    missing_topics: list[str] = Field(
        description="Output topics that do not exist; their alarms go to the dead-letter topic."
    )
    unreadable_records: list[UnreadableRecord] = Field(
        description="First 20 config records that the job cannot read."
    )
    unreadable_records_total: int = Field(
        description="Number of config records that cannot be read."
    )
    recreated_topics: dict[str, RecreatedTopic] = Field(
        description="Event topics that were deleted and created again since the start of the job."
    )
    durations: dict[str, float] = Field(
        description="Duration of the newest batch in seconds, by phase."
    )
    exception: str | None = Field(description="Last exception that stopped the query.")
    slots: int | None = Field(description="Number of slots of the job; null: not known yet.")
    wanted_slots: int | None = Field(description="Requested number of slots; null: not known yet.")
    slots_problem: str | None = Field(
        description="Reason why the job cannot have the wanted number of slots now; it tries again."
    )
    applied_config_offset: int | None = Field(
        description="Offset of the newest config record that the job has applied."
    )
    config_head_offset: int = Field(description="Offset of the newest config record.")


class Monitoring:
    """The threads of these routes, and the readiness check in progress.

    Parameters
    ----------
    plane : ControlPlane
        Control plane of the service.
    authenticator : Authenticator
        Access control of the service.
    """

    def __init__(self, plane: ControlPlane, authenticator: Authenticator) -> None:
        self._plane = plane
        self._authenticator = authenticator
        self._looking: asyncio.Task[Ready] | None = None
        self.threads = CapacityLimiter(_THREADS)

    async def readiness(self) -> Ready:
        """Check whether the service is ready; concurrent requests share one check.

        Raises
        ------
        NotReadyError
            When the service is not ready.
        """
        if self._looking is None or self._looking.done():
            problem = self._authenticator.problem
            look = to_thread.run_sync(_readiness, self._plane, problem, limiter=self.threads)
            self._looking = asyncio.create_task(look)
        # A client may disconnect while others still wait for the same check.
        return await asyncio.shield(self._looking)


@router.get("/livez")
async def get_liveness() -> Live:
    """Return that the process is alive."""
    return Live(live=True)


@router.get("/readyz", responses=responses(503), response_model_exclude_unset=True)
async def get_readiness(request: Request, caller: CallerOf) -> Ready:
    """Check that the registry has caught up with the config topic and the broker answers.

    Without valid credentials, and for names of hosts that are not allowed, the answer has no
    details.
    """
    monitoring: Monitoring = request.app.state.monitoring
    if caller is not STRANGER:
        return await monitoring.readiness()
    try:
        await monitoring.readiness()
    except NotReadyError:
        reason = "the service is not ready; callers with valid credentials get the reason"
        raise NotReadyError(reason) from None
    return Ready(ready=True)


def _readiness(plane: ControlPlane, access_problem: str | None) -> Ready:
    position = plane.log.position
    try:
        plane.log.wait_for(-1, 0)
        end = plane.log.end_offset(BROKER_SECONDS)
    except (BrokerError, LogStoppedError) as error:
        problem = FieldProblem("broker", error.detail, "check the broker and COINCIDE_BOOTSTRAP")
        raise NotReadyError(error.detail, (problem,)) from error
    # The position is read before the end; wait for a record written in between.
    if position < end and not plane.log.wait_for(end - 1, BROKER_SECONDS):
        detail = f"the config topic has been read up to offset {plane.log.position} of {end}"
        raise NotReadyError(detail, (FieldProblem("registry", detail, "wait"),))
    unreadable = plane.registry.unreadable()
    return Ready(
        ready=True,
        config_position=plane.log.position,
        topic_problems=[WrongTopic(**it._asdict()) for it in plane.topic_problems],
        unreadable_records=[UnreadableRecord(**it) for it in list_unreadable(unreadable)],
        unreadable_records_total=len(unreadable),
        access_problem=access_problem,
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def get_metrics(request: Request) -> Response:
    """Return the metrics in the Prometheus text format."""
    state = request.app.state
    threads = state.monitoring.threads
    page = await to_thread.run_sync(generate_latest, state.metrics_registry, limiter=threads)
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get("/v1/job", responses=responses(422))
async def get_job(plane: Plane, caller: CallerOf) -> JobState:
    """Return the last reported state of the streaming job.

    The texts of exceptions, with their paths, are shown to the role admin only.
    """
    found = plane.metrics.job() or {}
    exception, slots = found.get("exception"), plane.slots()
    if caller.role < Role.ADMIN:
        exception = None if exception is None else _HIDDEN_EXCEPTION
        slots |= {"slots_problem": None if slots["slots_problem"] is None else _HIDDEN_PROBLEM}
    return JobState(
        up=plane.job_is_up(),
        state=found.get("state", "unknown"),
        query_id=found.get("query_id"),
        batch=found.get("batch"),
        at=found.get("at"),
        input_rate=found.get("input_rate"),
        lag=found.get("lag", {}),
        last_batch_at=found.get("last_batch_at"),
        lost=found.get("lost") or {},
        missing_topics=found.get("missing_topics", []),
        unreadable_records=[UnreadableRecord(**it) for it in found.get("unreadable_records", [])],
        unreadable_records_total=found.get("unreadable_records_total", 0),
        recreated_topics=found.get("recreated_topics", {}),
        durations=found.get("durations", {}),
        exception=exception,
        **slots,
        applied_config_offset=plane.applied_config_offset(),
        config_head_offset=plane.log.newest,
    )
