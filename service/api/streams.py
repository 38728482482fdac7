"""Routes of streams."""

from typing import Any

from fastapi import APIRouter, Response, status
from pydantic import BaseModel, Field

from service.api.body import JsonRoute
from service.api.callers import CallerOf
from service.api.common import (
    After,
    Limit,
    Name,
    Plane,
    StoredResource,
    Writing,
    delete_responses,
    etag,
    put_responses,
)
from service.api.problems import responses
from service.documents.models import StreamDocument
from service.fold import Stored

router = APIRouter(prefix="/v1/streams", tags=["streams"], route_class=JsonRoute)


class TemplateInForce(BaseModel):
    """A template in the version that a stream uses."""

    name: str = Field(description="Name of the template.")
    version: int = Field(
        description="Version in force when the document of the stream was last written."
    )
    buckets: list[dict[str, Any]] = Field(
        description="lo and hi in µs, as offsets from the time of detection, and p."
    )


class StoredStream(StoredResource):
    """A registered stream."""

    templates: list[TemplateInForce] = Field(
        description="Templates of the document, in the versions in force."
    )


class WrittenStream(StoredStream):
    """A stream after a write."""

    warnings: list[str] = Field(
        description="Likely problems of the accepted document; empty: none found."
    )


class WatermarkReset(BaseModel):
    """A watermark reset that was written to the heartbeat topic."""

    name: str = Field(description="Name of the stream.")
    partitions: dict[str, int] = Field(
        description="First offset that advances the watermark again, by Kafka partition; empty: "
        "the topic does not exist."
    )


class StreamPage(BaseModel):
    """A page of streams, sorted by name."""

    items: list[StoredStream] = Field(description="The streams.")
    next: str | None = Field(description="Value of `after` for the next page; null: last page.")


@router.get("", responses=responses(422))
async def list_streams(plane: Plane, limit: Limit = 100, after: After = "") -> StreamPage:
    """List the streams by name."""
    found, following = plane.registry.page("stream", limit, after)
    return StreamPage(items=[_shown(it) for it in found], next=following)


@router.get("/{name}", responses=responses(404, 422))
async def get_stream(name: Name, plane: Plane, response: Response) -> StoredStream:
    """Return a stream."""
    stored = plane.find("stream", name)
    response.headers["ETag"] = etag(stored.offset)
    return _shown(stored)


@router.put("/{name}", responses=put_responses(WrittenStream, 409))
def put_stream(name: Name, document: StreamDocument, write: Writing, plane: Plane) -> WrittenStream:
    """Register a stream or replace its document; an unchanged document is not written.

    The stream uses the present versions of the templates that it names.
    """
    stored = write.put("stream", name, document.normalised())
    warnings = plane.stream_topics.warnings([stored.resource.to_stream()])
    return WrittenStream(**dict(_shown(stored)), warnings=warnings)


@router.delete(
    "/{name}",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=delete_responses(409),
)
def delete_stream(name: Name, write: Writing) -> Response:
    """Delete a stream that no condition reads."""
    return write.delete("stream", name)


@router.post(
    "/{name}/reset-watermark",
    status_code=status.HTTP_202_ACCEPTED,
    responses=responses(404, 422, 503),
)
def reset_watermark(
    name: Name, plane: Plane, caller: CallerOf, response: Response
) -> WatermarkReset:
    """Reset the watermark of a stream that a wrong clock or heartbeat moved ahead.

    The job applies the reset in order with the heartbeats. The watermark is then unknown until
    each partition has an event or heartbeat after the offsets in the response.
    """
    ends = plane.writes.reset_watermark(name, by=caller)
    response.headers["Location"] = f"/v1/streams/{name}/status"
    return WatermarkReset(name=name, partitions={str(it): end for it, end in ends.items()})


def _shown(stored: Stored) -> StoredStream:
    resource = stored.resource
    entries = resource.document.get("templates", [])
    return StoredStream(
        name=resource.name,
        version=resource.version,
        updated_at=resource.updated_at_us,
        # In the form that PUT accepts: `templates` is a list of names.
        document=resource.document | {"templates": [entry["name"] for entry in entries]},
        templates=[TemplateInForce(**entry) for entry in entries],
    )
