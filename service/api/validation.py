"""The route that checks a condition before it is registered, and estimates its cost."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from correlation.condition_kind import Load
from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from service.api.body import SampleRoute
from service.api.common import Plane
from service.api.documents import condition_problems, document_problems, problem_of_field
from service.api.problems import responses
from service.api.wording import field_problems
from service.documents.fields import Document, ResourceName
from service.documents.models import ConditionDocument
from service.documents.numbers import read_number
from service.errors import FieldProblem, InvalidDocumentError, first_problems
from service.sampling import SampleRequest

router = APIRouter(prefix="/v1", tags=["conditions"], route_class=SampleRoute)
_DOCUMENT: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
# Far above the throughput of any broker; keeps every derived number finite.
_MAX_PER_SECOND = 1e12
Rate = Annotated[
    float, BeforeValidator(read_number), Field(ge=0, le=_MAX_PER_SECOND, allow_inf_nan=False)
]

Keys = Annotated[
    float, BeforeValidator(read_number), Field(ge=1, le=_MAX_PER_SECOND, allow_inf_nan=False)
]

# Numbers of records that are read from each topic: the default, and the max.
_RECORDS, _MAX_RECORDS = 1_000, 10_000


def _read_sample(value: object) -> Mapping[str, Sequence[object]] | None:
    """Read lists of records by stream, of which `service.sampling` reads the records."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidFieldError("", "must be an object", 'write {"STREAM": [records]}')
    if not value:
        raise InvalidFieldError("", "has no stream", "add the records of a stream, or leave it out")
    for name, records in value.items():
        if not isinstance(records, list):
            raise InvalidFieldError("", f"{name} must be a list of records", "write a list: […]")
        if not records:
            raise InvalidFieldError(
                "", f"{name} has no records", "add records, or leave the stream out"
            )
    return value


Sample = Annotated[
    Mapping[str, Sequence[object]] | None,
    PlainValidator(_read_sample),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"type": "array", "minItems": 1, "items": {}},
                },
                {"type": "null"},
            ]
        }
    ),
]


def _add_examples(schema: dict[str, Any]) -> None:
    """Add the kinds' examples; called when the schema is needed, since kinds may parse strings."""
    schema["examples"] = [
        {
            "condition": dict(kind.example),
            "rates": dict.fromkeys(
                sorted({it.stream for it in kind.streams_named(kind.example)}), 500
            ),
            "keys": 10,
        }
        for kind in KINDS.values()
    ]


class ValidationRequest(BaseModel):
    """A condition to validate."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_add_examples)
    condition: dict[str, Any] = Field(description="Document as in PUT /v1/conditions/{name}.")
    rates: dict[ResourceName, Rate] = Field(
        default_factory=dict, description="Events per second, by stream."
    )
    keys: Keys = Field(
        default=1.0,
        description="Number of equally frequent keys of streams partitioned by key; used to "
        "estimate chance alarms.",
    )
    sample: Sample = Field(
        default=None,
        description="Records of the streams, by stream: each as in its topic, or explicitly "
        '{"record": {…}} with optional "record_key" and "record_timestamp" (µs or RFC 3339). Their '
        "rates are used for streams that rates does not contain.",
        examples=[
            {
                "acoustic": [
                    {"id": "a1", "at": 1767261600000000, "tags": ["disk", "full"]},
                    {"id": "a2", "at": 1767261720000000, "tags": ["disk", "tmp"]},
                ]
            }
        ],
    )


class ValidationAnswer(BaseModel):
    """The problems of a condition, or its cost."""

    valid: bool = Field(
        description="Whether PUT would accept the document, and rates and sample fit it."
    )
    errors: list[FieldProblem] = Field(description="Problems, one for each field.")
    document: dict[str, Any] | None = Field(description="The document as it would be stored.")
    derived: dict[str, Any] | None = Field(
        description="Buffer horizon, worst-case alarm latency, expected buffered events and chance "
        "alarms; durations in µs."
    )
    sample: dict[str, Any] | None = Field(
        description="Facts on the sample: records, rates and rejected records of each stream in "
        "`streams`, sentences in `warnings`, and estimates of the kind of condition. null: the "
        "request has no sample."
    )


def _unknown_rates(
    document: Mapping[str, Any], rates: Mapping[str, float]
) -> tuple[FieldProblem, ...]:
    """Find rates of streams that the condition does not read, if its streams are known."""
    kind = KINDS.get(str(document.get("kind")))
    fields = [it for it in kind.fields if it.type == "stream"] if kind else []
    named = [
        document.get(it.name) for it in fields if it.required or document.get(it.name) is not None
    ]
    read = {it.stream for it in kind.streams_named(document)} if kind else set()
    if not read or not all(isinstance(it, str) for it in named):
        return ()
    remedy = f"use {', '.join(sorted(read))}"
    return tuple(
        FieldProblem(f"rates.{name}", "is not a stream of the condition", remedy)
        for name in rates
        if name not in read
    )


@router.post("/conditions:validate", responses=responses(404, 413, 415, 422, 503))
def validate_condition(
    body: ValidationRequest,
    plane: Plane,
    sample_from_topic: Annotated[
        Literal["true", "false"],
        Query(description="true: use the newest records of the topics of its streams as sample."),
    ] = "false",
    sample_records: Annotated[
        int,
        Query(
            ge=1,
            le=_MAX_RECORDS,
            description="Max number of records that are read from each topic.",
        ),
    ] = _RECORDS,
) -> ValidationAnswer:
    """Check a condition and estimate its cost, if asked from a sample; nothing is written."""
    asked = None
    if sample_from_topic == "true" or body.sample is not None:
        asked = SampleRequest(body.sample, sample_records)
    if sample_from_topic == "true" and body.sample is not None:
        twice = "cannot be combined with sample_from_topic"
        combined = FieldProblem("sample", twice, "leave one of them out")
        further = condition_problems(plane.registry, body.condition)
        raise InvalidDocumentError.of_all(first_problems((combined, *further)))
    rates = {name: float(rate) for name, rate in body.rates.items()}
    strangers = _unknown_rates(body.condition, rates)
    try:
        document = _DOCUMENT.validate_python(body.condition).normalised()
        found = plane.derive(document, Load(rates, float(body.keys)), asked)
    except ValidationError as error:
        problems = field_problems(error.errors(), (), "condition")
        problems = document_problems(plane.registry, "condition", body.condition, problems)
    except (InvalidFieldError, InvalidDocumentError) as error:
        problems = tuple(problem_of_field(it, body.condition) for it in error.problems)
    else:
        if not strangers:
            return ValidationAnswer(
                valid=True,
                errors=[],
                document=document,
                derived=found.derived,
                sample=found.sample,
            )
        problems = ()
    listed = first_problems((*problems, *strangers))
    return ValidationAnswer(
        valid=False, errors=list(listed), document=None, derived=None, sample=None
    )
