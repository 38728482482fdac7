"""Parts that the routers share: parameters, preconditions and response models."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Path, Query, Request, Response, status
from pydantic import BaseModel, Field

from correlation.resources.job_slots import JOB
from correlation.resources.records import ResourceKind
from service.api.callers import CallerOf
from service.api.problems import responses
from service.documents.fields import ResourceName
from service.errors import PreconditionError
from service.fold import Stored
from service.metrics import MetricsView
from service.plane import ControlPlane
from service.writes import Written

MAX_ON_A_PAGE = 1000


# Async, like every route that does not wait: reads need no thread and do not queue behind writes.
async def _plane(request: Request) -> ControlPlane:
    plane: ControlPlane = request.app.state.plane
    return plane


Plane = Annotated[ControlPlane, Depends(_plane)]
Name = Annotated[ResourceName, Path(description="Name of the resource.", examples=["acoustic"])]
DryRun = Annotated[
    Literal["true", "false"],
    Query(description="true: check the request and return the result without writing anything."),
]
Limit = Annotated[
    int, Query(ge=1, le=MAX_ON_A_PAGE, description="Max number of resources on the page.")
]
After = Annotated[
    str, Query(max_length=63, description="Start after this name: `next` of the previous page.")
]


class StoredResource(BaseModel):
    """A registered resource."""

    name: str = Field(description="Name of the resource.")
    version: int = Field(description="Version of the document, counted from 1.")
    updated_at: int = Field(description="Time of the last write, in µs since 1970.")
    document: dict[str, Any] = Field(description="The document with all defaults, durations in µs.")


class StoredCondition(StoredResource):
    """A registered condition."""

    paused: bool = Field(description="true: registered, but not evaluated.")


class WrongTopic(BaseModel):
    """A setting of an existing topic that differs from the required value."""

    topic: str = Field(description="Name of the topic.")
    setting: str = Field(description="Kafka name of the setting.")
    found: str = Field(description="Value found.")
    needed: str = Field(description="Value needed; Coincide does not change it.")


class StreamStatus(BaseModel):
    """State of a stream in the job."""

    watermark: int | None = Field(
        description="Watermark: events older than this count as late, in µs."
    )
    partitions: dict[str, int | None] = Field(description="Watermark per Kafka partition, in µs.")
    buffered_events: int | None = Field(
        description="Number of buffered events; counts each copy in a grid."
    )
    late_events: int = Field(description="Number of late events.")


def describe_stream(view: MetricsView, stream: str) -> dict[str, Any]:
    """Return the state of a stream in the job, as the fields of StreamStatus.

    Parameters
    ----------
    view : MetricsView
        Metrics of the job.
    stream : str
        Name of the stream.
    """
    return {
        "watermark": view.watermarks().get(stream),
        "partitions": view.partition_watermarks(stream),
        "buffered_events": view.gauge("buffered_events", stream=stream),
        "late_events": view.total("events_late_total", stream=stream),
    }


async def _preconditions(
    if_match: Annotated[
        str | None,
        Header(description="ETag that the resource must have; *: the resource must exist."),
    ] = None,
    if_none_match: Annotated[
        str | None,
        Header(description="ETag that the resource must not have; *: the resource must not exist."),
    ] = None,
) -> Callable[[Stored | None], None]:
    return make_precondition(if_match, if_none_match)


Preconditions = Annotated[Callable[[Stored | None], None], Depends(_preconditions)]


class Write:
    """A write of a resource, with the preconditions and dry_run of its request."""

    def __init__(
        self,
        plane: Plane,
        caller: CallerOf,
        check: Preconditions,
        response: Response,
        dry_run: DryRun = "false",
    ) -> None:
        self._plane = plane
        self._caller = caller
        self._check = check
        self._response = response
        self._dry_run = dry_run == "true"

    def put(self, kind: ResourceKind, name: str, document: dict[str, Any]) -> Stored:
        """Write a document.

        Parameters
        ----------
        kind, name
            Kind and name of the resource.
        document : dict
            The document with all defaults.

        Returns
        -------
        Stored
            The registered resource; for a dry run, the resource that would be registered.

        Raises
        ------
        ServiceError, InvalidFieldError
            When the write is rejected or Kafka does not answer.
        """
        written = self._plane.writes.put(
            kind, name, document, self._check, dry_run=self._dry_run, by=self._caller
        )
        describe(self._response, written, _path_of(kind, name))
        return Stored(written.resource, written.offset or 0)

    def delete(self, kind: ResourceKind, name: str) -> Response:
        """Delete a resource; parameters and errors as in `put`.

        Returns
        -------
        Response
            A response without a body.
        """
        written = self._plane.writes.delete(
            kind, name, self._check, dry_run=self._dry_run, by=self._caller
        )
        response = Response(status_code=status.HTTP_204_NO_CONTENT)
        describe(response, written, _path_of(kind, name))
        return response

    def pause(self, name: str, *, paused: bool) -> Stored:
        """Pause or resume a condition; returns and raises as `put`."""
        written = self._plane.writes.pause(
            name, self._check, paused=paused, dry_run=self._dry_run, by=self._caller
        )
        describe(self._response, written, _path_of("condition", name))
        return Stored(written.resource, written.offset or 0)


Writing = Annotated[Write, Depends()]


def _path_of(kind: ResourceKind, name: str) -> str:
    """Return the path of a resource."""
    return f"/v1/{kind}/{name}" if kind == JOB else f"/v1/{kind}s/{name}"


_NOT_READ_BACK = "Written, but not read back in time"


def put_responses(model: type[BaseModel], *errors: int) -> dict[int | str, dict[str, Any]]:
    """Describe the responses of a route that writes a document.

    Parameters
    ----------
    model : type of BaseModel
        Model of the resource in the response.
    *errors : int
        Status codes in addition to those of every such route.
    """
    return {
        201: {"model": model, "description": "Created"},
        202: {"model": model, "description": _NOT_READ_BACK},
        **responses(*errors, 412, 413, 415, 422, 503),
    }


def delete_responses(*errors: int) -> dict[int | str, dict[str, Any]]:
    """Describe the responses of a route that deletes a resource; as in `put_responses`."""
    return {202: {"description": _NOT_READ_BACK}, **responses(404, *errors, 412, 422, 503)}


def make_precondition(
    if_match: str | None, if_none_match: str | None
) -> Callable[[Stored | None], None]:
    """Build the check of If-Match and If-None-Match (RFC 9110, section 13.1).

    Parameters
    ----------
    if_match, if_none_match : str or None
        Values of the headers.

    Returns
    -------
    callable
        Takes the current state; raises PreconditionError when it does not match the headers.
    """

    def check(current: Stored | None) -> None:
        found = None if current is None else etag(current.offset)
        if if_match is not None:
            require_tag(if_match, found)
        if if_none_match is not None and _names(if_none_match, found):
            raise PreconditionError(f"If-None-Match: must not be the current ETag, {found}")

    return check


def require_tag(if_match: str, found: str | None) -> None:
    """Check that an If-Match header names the current entity tag; None: no resource has one.

    Raises
    ------
    PreconditionError
        When it does not.
    """
    if not _names(if_match, found):
        raise PreconditionError(
            f"If-Match: must be the current ETag, {found or 'not set'}; got {if_match}"
        )


def etag(offset: int) -> str:
    """Return the entity tag of the record at an offset of the config topic."""
    return f'"{offset}"'


def describe(response: Response, written: Written, location: str) -> None:
    """Set status and headers of the response to a write.

    Parameters
    ----------
    response : Response
        Response of the route.
    written : Written
        Result of the write.
    location : str
        Path of the resource.
    """
    if written.offset is not None:
        response.headers["X-Config-Offset"] = str(written.offset)
        response.headers["ETag"] = etag(written.offset)
    if written.created:
        response.status_code = status.HTTP_201_CREATED
        response.headers["Location"] = location
    if not written.applied:
        response.status_code = status.HTTP_202_ACCEPTED
        response.headers["Location"] = location


def prefers(media_type: str, accept: str, default: str) -> bool:
    """Return whether an Accept header prefers a media type to the default (RFC 9110, 12.5.1).

    Parameters
    ----------
    media_type, default : str
        The two media types; the default wins if both have the same quality.
    accept : str
        Value of the header.

    Examples
    --------
    >>> prefers("image/svg+xml", "image/svg+xml, */*;q=0.1", "application/json")
    True
    """
    return _quality(media_type, accept) > _quality(default, accept)


def accepts(media_type: str, accept: str) -> bool:
    """Return whether an Accept header accepts a media type (RFC 9110, 12.5.1).

    Parameters
    ----------
    media_type : str
        The media type.
    accept : str
        Value of the header.

    Examples
    --------
    >>> accepts("application/json", "image/svg+xml, application/json;q=0.5")
    True
    """
    return _quality(media_type, accept) > 0


def _quality(media_type: str, accept: str) -> float:
    """Return the quality of the most specific range that matches a media type; 0 without one."""
    ranges = [media_type, media_type.partition("/")[0] + "/*", "*/*"]
    found: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (it.strip().lower() for it in part.split(";"))
        weights = [it[2:] for it in parameters if it.startswith("q=")]
        try:
            found[name] = float(weights[0]) if weights else 1.0
        except ValueError:
            found[name] = 0.0
    return next((found[it] for it in ranges if it in found), 0.0)


def _names(header: str, found: str | None) -> bool:
    """Return whether an If-Match or If-None-Match header names the entity tag."""
    if header.strip() == "*":
        return found is not None
    return found in [tag.strip() for tag in header.split(",")]
