"""Route of recent alarms, as a list or as a live feed of server-sent events."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

import orjson
from anyio import CancelScope, CapacityLimiter, to_thread
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse
from pydantic import BaseModel, Field, PlainValidator, ValidationInfo, WithJsonSchema
from starlette.types import Receive, Scope, Send

from correlation.limits import TIME_LIMIT_US
from service.alarms.positions import FIELD, MAX_ID_LENGTH
from service.alarms.readers import Reader, Readers
from service.alarms.records import Age, Selection
from service.api.body import JsonRoute
from service.api.callers import CallerOf
from service.api.common import MAX_ON_A_PAGE, Plane, prefers
from service.api.problems import responses
from service.documents.fields import ResourceName
from service.documents.given_records import read_moment_us
from service.errors import FieldProblem, InvalidQueryError

router = APIRouter(prefix="/v1", tags=["alarms"], route_class=JsonRoute)
_JSON, _EVENTS = "application/json", "text/event-stream"
# Age as `next` writes it: timestamp in ms, offset, partition, topic.
_AGE = re.compile(r"([0-9]{1,16})-([0-9]{1,19})-([0-9]{1,10})-([A-Za-z0-9._-]{1,249})")
# Digits of µs since 1970; longer numbers are not valid times.
_DIGITS = 20
# A proxy must neither store the stream nor delay its events.
_STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept"}


class Threads:
    """Limits of the threads of this route, for one application.

    All routes share the threads of the service: without limits, this one could occupy all of them.
    """

    def __init__(self) -> None:
        # Searching the memory holds the GIL, so more threads are not faster.
        self.pages = CapacityLimiter(2)
        # Opening a stream may wait for Kafka.
        self.streams = CapacityLimiter(8)


def _read_moment(value: object, info: ValidationInfo) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    return None if value is None else read_moment_us(info.field_name or "", value)


Moment = Annotated[
    int | None,
    PlainValidator(_read_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": TIME_LIMIT_US},
                {"type": "string", "format": "date-time"},
            ]
        }
    ),
]


class Alarm(BaseModel):
    """A record of a result: an alarm, a record of factored output, or a change of a list."""

    topic: str = Field(description="Topic of the record.")
    partition: int = Field(description="Partition of the record.")
    offset: int = Field(description="Offset of the record.")
    timestamp: int = Field(description="Kafka's timestamp, in µs since 1970.")
    type: str | None = Field(description="CloudEvents type: the header `ce_type`.")
    error: str | None = Field(description="unreadable: the value is not a JSON object; or null.")
    description: str | None = Field(
        description="The record in one line; null: its kind is unknown or it is not valid."
    )
    record: dict[str, Any] | None = Field(description="The value as written; null: `error`.")


class AlarmEvent(BaseModel):
    """An event of an alarm."""

    label: str = Field(description="Role, alias, or place in the pair.")
    event: dict[str, Any] = Field(
        description="As in the record: `stream`, `id` and its times in µs since 1970, which are "
        "`earliest` and `latest`, `begin` and `end`, or `time`."
    )


class AlarmExplanation(BaseModel):
    """The request that explains an alarm: POST /v1/conditions/{condition}/explain."""

    condition: str = Field(description="Name of the condition.")
    body: dict[str, Any] = Field(
        description="Body of the request. Events that an alarm does not contain completely are "
        "given by their ids, which the service searches for in Kafka."
    )


class ShownAlarm(Alarm):
    """An alarm with its events, as the kind of its condition shows them."""

    events: list[AlarmEvent] = Field(description="The events, in the order to be shown.")
    explain: AlarmExplanation | None = Field(
        description="The request that explains the alarm; null: the alarm cannot be explained, or "
        "the condition or a stream does not exist any more."
    )


class AlarmPage(BaseModel):
    """Recent alarms, the newest first by Kafka's timestamp."""

    items: list[Alarm] = Field(description="The alarms.")
    next: str | None = Field(description="Value of `after` for the next page; null: last page.")
    position: str | None = Field(
        description="Last-Event-ID of a live feed that continues after the newest alarm in "
        "memory; null: the topics are not known yet."
    )
    reading: dict[str, str | None] = Field(
        description="Topics from which alarms are read, with their problem; null: no problem."
    )


class AlarmStream(EventSourceResponse):
    """The events of a reader, until the client disconnects, or the reader or its rights end."""

    def __init__(self, reader: Reader, readers: Readers, is_allowed: Callable[[], bool]) -> None:
        super().__init__(_while(is_allowed, reader.events()), headers=_STREAM_HEADERS)
        self._reader = reader
        self._readers = readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._readers.remove(self._reader)

    async def stream_response(self, send: Send) -> None:
        """Send the events; the reader can end it while the connection takes no bytes."""
        with CancelScope() as sending:
            self._reader.cancel = sending.cancel
            await super().stream_response(send)


@router.get(
    "/alarms",
    response_model=AlarmPage,
    responses={
        200: {"content": {_EVENTS: {"schema": {"type": "string"}}}},
        **responses(404, 422, 503),
    },
)
async def get_alarms(
    request: Request,
    plane: Plane,
    caller: CallerOf,
    condition: Annotated[
        ResourceName | None, Query(description="Only alarms of this condition.")
    ] = None,
    key: Annotated[
        str | None, Query(description="Only alarms with this join key: that of their events.")
    ] = None,
    since: Annotated[
        Moment,
        Query(description="First `detected_at`: µs since 1970 or RFC 3339. A stream begins there."),
    ] = None,
    until: Annotated[
        Moment, Query(description="Last `detected_at`: µs since 1970 or RFC 3339.")
    ] = None,
    limit: Annotated[
        int, Query(ge=1, le=MAX_ON_A_PAGE, description="Max number of alarms; not of a stream.")
    ] = 100,
    after: Annotated[
        str, Query(description="Start after this alarm: `next` of the previous page.")
    ] = "",
    accept: Annotated[
        str, Header(description=f"{_EVENTS}: a live feed of server-sent events.")
    ] = _JSON,
    last_event_id: Annotated[
        str | None,
        Header(
            alias=FIELD,
            max_length=MAX_ID_LENGTH,
            description="Of a stream: continue after the event with this id.",
        ),
    ] = None,
) -> Response:
    """Return recent alarms of all conditions, or follow them as server-sent events.

    The service keeps the newest alarms of each partition in memory. In a stream, `event` is the
    CloudEvents type and `data` is an item of the list. The event `gap` reports that alarms after
    Last-Event-ID are not in memory any more; `dropped`, that the client reads too slowly.
    """
    if since is not None and until is not None and since > until:
        raise _wrong("until", "must not be before since", "swap since and until")
    selection = Selection(condition, key, since, until)
    threads: Threads = request.app.state.alarm_threads
    if not prefers(_EVENTS, accept, _JSON):
        before = _read_age(after) if after else None
        page = await to_thread.run_sync(
            plane.alarms.page, selection, limit, before, limiter=threads.pages
        )
        body = {
            "items": [orjson.Fragment(it) for it in page.lines],
            "next": None if page.last is None else _write_age(page.last),
            "position": page.position,
            "reading": page.reading,
        }
        return Response(orjson.dumps(body), media_type=_JSON, headers={"Vary": "Accept"})
    for name in ("limit", "after"):
        if name in request.query_params:
            raise _wrong(name, "is not a parameter of a stream", "leave it out")
    readers, authenticator = plane.alarms.readers, request.app.state.authenticator
    owner = authenticator.owner_of(caller)
    readers.check_room(owner)
    reader = await to_thread.run_sync(
        plane.alarms.open, selection, last_event_id, limiter=threads.streams
    )
    # Nothing may wait between this line and the response, which removes the reader.
    readers.add(reader, asyncio.get_running_loop(), owner)
    valid = partial(authenticator.is_valid, caller)
    return AlarmStream(reader, readers, valid)


@router.get(
    "/alarms/{topic}/{partition}/{offset}",
    response_model=ShownAlarm,
    responses=responses(404, 422, 503),
)
async def get_alarm(
    plane: Plane,
    topic: Annotated[str, Path(max_length=249, description="Topic of the record.")],
    partition: Annotated[int, Path(ge=0, description="Partition of the record.")],
    offset: Annotated[int, Path(ge=0, description="Offset of the record.")],
) -> Response:
    """Return a recent alarm with its events, and the request that explains it."""
    shown = plane.show_alarm(topic, partition, offset)
    return Response(orjson.dumps(shown), media_type=_JSON)


async def _while(
    is_allowed: Callable[[], bool], events: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Yield events until they are not allowed any more; events come every few seconds."""
    async for event in events:
        if not is_allowed():
            return
        yield event


def _write_age(age: Age) -> str:
    return f"{age.timestamp_ms}-{age.offset}-{age.partition}-{age.topic}"


def _read_age(text: str) -> Age:
    found = _AGE.fullmatch(text)
    if found is None:
        raise _wrong("after", "is not the place of an alarm", "use `next` of the previous page")
    timestamp_ms, offset, partition, topic = found.groups()
    return Age(int(timestamp_ms), int(offset), int(partition), topic)


def _wrong(parameter: str, problem: str, remedy: str) -> InvalidQueryError:
    found = FieldProblem(parameter, problem, remedy)
    return InvalidQueryError(f"{parameter}: {problem}", (found,))
