"""The route that explains how a condition evaluates events."""

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
)

from correlation.explaining import Step
from correlation.kinds import KINDS, condition_from_document
from correlation.limits import TIME_LIMIT_US
from service.api.body import JsonRoute
from service.api.common import Name, Plane
from service.api.problems import responses
from service.documents.fields import Document
from service.documents.given_records import read_moment_us
from service.documents.models import ConditionDocument
from service.errors import InvalidDocumentError
from service.explaining import Asked
from service.lookup import Span

router = APIRouter(prefix="/v1", tags=["conditions"], route_class=JsonRoute)
_CONDITION: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
_EVENT = (
    "A record as in Kafka, or a canonical event: the time fields decide which. Or, explicitly, "
    '{"record": {…}} or {"event": {…}}, with optional "record_key" and "record_timestamp" (µs or '
    'RFC 3339). Or {"id": "…"}: the newest record with this id in the topic of the stream.'
)
Event = Annotated[
    dict[str, Any],
    Field(
        description=_EVENT,
        examples=[
            {"id": "mic-1"},
            {"id": "mic-1", "key": "north", "time": 1767225600000000, "before": "500ms"},
            {"record": {"event_id": "mic-1", "heard_at": 1767225600}, "record_key": "north"},
        ],
    ),
]


# Kinds whose events users name.
_NAMED = ", ".join(kind.name for kind in KINDS.values() if kind.names_events)


def _describe_steps() -> str:
    """Describe the steps of all kinds; kinds with the same steps are listed together."""
    kinds: dict[tuple[Step, ...], list[str]] = {}
    for kind in KINDS.values():
        if kind.steps:
            kinds.setdefault(kind.steps, []).append(kind.name)
    return " ".join(
        f"{', '.join(names)}: {'; '.join(f'{it.name}, {it.failure}' for it in steps)}."
        for steps, names in kinds.items()
    )


def _read_moment(value: object, info: ValidationInfo) -> int | None:
    return None if value is None else read_moment_us(info.field_name or "", value)


Moment = Annotated[
    int | None,
    PlainValidator(_read_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": TIME_LIMIT_US},
                {"type": "string", "format": "date-time"},
                {"type": "null"},
            ]
        }
    ),
]


def _add_examples(schema: dict[str, Any]) -> None:
    """Add an event for each role of the kinds' examples; called when the schema is needed."""
    found: list[dict[str, Any]] = []
    for kind in KINDS.values():
        document = _CONDITION.validate_python(kind.example).normalised()
        roles = kind.roles(condition_from_document("example", 1, document))
        events = {
            role: {"id": f"{stream}-{number}", "key": "k", "earliest": 0, "latest": 100_000}
            for number, (role, stream) in enumerate(roles.items(), 1)
        }
        example = {"events": events} if kind.names_events else events
        if example not in found:
            found.append(example)
    schema["examples"] = found


class ExplainRequest(BaseModel):
    """The events: a field for each role of the condition, or `events` if users name the roles."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_examples)
    __pydantic_extra__: dict[str, Event] = Field(init=False)
    events: dict[str, Event] | None = Field(
        default=None,
        description="The event of each role; the only place for those of kinds whose users name "
        f"the roles: {_NAMED}.",
    )
    since: Moment = Field(
        default=None,
        description="For ids: min Kafka timestamp of the records searched; µs or RFC 3339.",
    )
    until: Moment = Field(
        default=None, description="For ids: max Kafka timestamp of the records searched."
    )


class ExplainedStep(BaseModel):
    """A step of the decision on the events."""

    step: str = Field(
        description="Name of the step; the kind of the condition defines the steps, and their "
        f"meaning if they failed. {_describe_steps()}"
    )
    passed: bool | None = Field(description="Result; null: an earlier step failed.")
    detail: str | None = Field(description="Explanation of the result.")


class ExplainAnswer(BaseModel):
    """The evaluation of the events; each kind of condition adds its own numbers."""

    model_config = ConfigDict(extra="allow")
    condition: str = Field(description="Name of the condition.")
    version: int = Field(description="Version of the condition.")
    kind: str = Field(description="Kind of condition.")
    verdict: str = Field(
        description="satisfied or not_satisfied, decided exactly as the job decides."
    )
    complete: bool | None = Field(
        default=None,
        description="If further events may change the verdict: whether all records were searched "
        "for them; if false, satisfied refers to those that were.",
    )
    failed_step: str | None = Field(description="The first step that failed.")
    explanation: str = Field(description="The verdict in a sentence.")
    steps: list[ExplainedStep] = Field(description="Every step, in order.")
    roles: list[str] = Field(
        description="Names of the events: fields of the answer, or of `events` if users name them."
    )
    events: dict[str, dict[str, Any]] | None = Field(
        default=None, description=f"{_NAMED} only: the event of each alias."
    )
    notes: list[str] = Field(
        description="Further reasons why the job may not have reported the events."
    )


@router.post(
    "/conditions/{name}/explain",
    responses=responses(404, 413, 415, 422, 503),
    response_model_exclude_unset=True,
)
def explain_events(name: Name, body: ExplainRequest, plane: Plane) -> ExplainAnswer:
    """Explain why events are reported or not, and which step failed first."""
    since_ms, until_ms = (None if it is None else it // 1000 for it in (body.since, body.until))
    if since_ms is not None and until_ms is not None and since_ms > until_ms:
        raise InvalidDocumentError.of("until", "must not be before since", "swap since and until")
    asked = Asked(body.__pydantic_extra__, body.events)
    answer = plane.explain(name, asked, Span(since_ms, until_ms))
    return ExplainAnswer(**answer)
