"""Routes of the number of slots of the job."""

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from correlation.limits import SLOTS_LIMIT
from correlation.resources.job_slots import JOB, SLOTS
from service.api.body import JsonRoute
from service.api.common import Plane, Writing, etag, put_responses
from service.api.problems import responses
from service.fold import Stored

router = APIRouter(prefix="/v1/job/slots", tags=["state"], route_class=JsonRoute)


class WantedSlots(BaseModel):
    """The requested number of slots of the job."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{SLOTS: 4}]})
    slots: Annotated[int, Field(strict=True, ge=1, le=SLOTS_LIMIT)] = Field(
        description="Number of slots: the max parallelism of the job."
    )


class RegisteredSlots(BaseModel):
    """The registered number of slots of the job."""

    slots: int = Field(description="Requested number of slots.")
    version: int = Field(description="Version of the number, counted from 1.")
    updated_at: int = Field(description="Time of the last write, in µs since 1970.")


@router.get("", responses=responses(404, 422))
async def get_slots(plane: Plane, response: Response) -> RegisteredSlots:
    """Return the registered number of slots; 404: the job uses its setting COINCIDE_SLOTS."""
    stored = plane.find(JOB, SLOTS)
    response.headers["ETag"] = etag(stored.offset)
    return _shown(stored)


@router.put("", responses=put_responses(RegisteredSlots))
def put_slots(body: WantedSlots, write: Writing) -> RegisteredSlots:
    """Set the number of slots of the running job; the same number is not written again.

    The job distributes its state to this number of slots as soon as it can. `GET /v1/job` shows the
    present number, the wanted number, and why the job still has another one.
    """
    return _shown(write.put(JOB, SLOTS, body.model_dump()))


def _shown(stored: Stored) -> RegisteredSlots:
    resource = stored.resource
    return RegisteredSlots(
        slots=resource.to_slots(), version=resource.version, updated_at=resource.updated_at_us
    )
