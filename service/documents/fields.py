"""Pydantic models of documents, built from their fields.

A duration `X` is written as exactly one of `X_us`, `X_ms`, `X_s` (numbers) and `X` ("250ms"), and
normalised to `X_us`. Decimals stay exact. The value types of correlation/ check ranges.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic import Field as PydanticField
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from correlation.condition_kind import Field
from correlation.errors import InvalidFieldError
from correlation.limits import DURATION_LIMIT_US
from correlation.resources.checks import check_name, check_topic
from correlation.resources.decimals import EXACTLY, read_decimal, without_zeros
from correlation.resources.durations import UNITS_US, describe_limit, parse_duration_us, whole_us
from service.documents.event_schemas import role_filters_schema
from service.documents.numbers import Probability, count_type, decimal_type, read_number
from service.documents.role_filters import filter_problems, normalise_filters
from service.documents.texts import text_or_object
from service.errors import FieldProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

# Unit suffixes of field names.
DURATION_UNITS = ("us", "ms", "s")
DURATION_PATTERN = r"^\s*[+-]?[0-9]{1,18}(\.[0-9]{1,12})?\s*(us|µs|ms|s|min|h|d)\s*$"
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
_TOPIC_PATTERN = r"^[A-Za-z0-9._-]{1,249}$"
_SHOWN = 40
Definitions = dict[str, Any]


def exact_us(value: object, unit: str, field: str) -> int:
    """Return a number of units as whole microseconds.

    Parameters
    ----------
    value : object
        The number.
    unit : {"us", "ms", "s"}
        Unit of the number.
    field : str
        Field that the error names.

    Raises
    ------
    InvalidFieldError
        When it is not a number, or not a whole number of microseconds.
    """
    number = read_number(value)
    if isinstance(number, float):
        raise InvalidFieldError(field, "must be a finite number", "use a smaller number")
    return whole_us(EXACTLY.multiply(Decimal(number), UNITS_US[unit]), field)


def _read_path(value: object) -> object:
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidFieldError(
            "", "is not a valid path", 'write a name, a dotted path ("a.b"), or a list of names'
        )
    return value


FieldPath = Annotated[
    object,
    PlainValidator(_read_path),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            ]
        }
    ),
]
ResourceName = Annotated[
    str, AfterValidator(check_name), PydanticField(json_schema_extra={"pattern": NAME_PATTERN})
]
TopicName = Annotated[
    str, AfterValidator(check_topic), PydanticField(json_schema_extra={"pattern": _TOPIC_PATTERN})
]


ShortText = Annotated[str, PydanticField(min_length=1, max_length=100)]
# Max number of entries of an object of names.
MAX_NAMES = 100


class Document(BaseModel):
    """Base of the documents; rejects unknown fields and a duration in two spellings."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    durations: ClassVar[tuple[Field, ...]] = ()
    filters: ClassVar[tuple[Field, ...]] = ()
    # The same model with all fields optional; None: no field of this model is required.
    part: ClassVar[type[Document] | None] = None

    @model_validator(mode="wrap")
    @classmethod
    def _all_problems(cls, given: Any, handler: ModelWrapValidatorHandler[Document]) -> Document:  # noqa: ANN401  any JSON value
        """Report problems between fields also when a single field is not valid."""
        problems = cls._problems_between(given) if isinstance(given, Mapping) else []
        errors: list[InitErrorDetails] = []
        try:
            document = handler(given)
        except ValidationError as error:
            if not problems:
                raise
            errors = [_details(it) for it in error.errors(include_url=False)]
        if problems:
            found = PydanticCustomError("fields", "fields are not valid", {"all": problems})
            errors.append({"type": found, "loc": (), "input": given})
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return document

    @classmethod
    def _problems_between(cls, given: Mapping[str, Any]) -> list[FieldProblem]:
        """Find problems between the given fields, under their names as written."""
        spelled = (_spelling_problems(field, set(given)) for field in cls.durations)
        filtered = (filter_problems(field, given.get(field.name)) for field in cls.filters)
        return [*chain.from_iterable(spelled), *chain.from_iterable(filtered)]

    def normalised(self) -> dict[str, Any]:
        """Return the document with all defaults, durations in µs and decimals as strings."""
        spelled = {spelling for field in self.durations for spelling in spellings(field.name)}
        values = {
            name: _plain(getattr(self, name))
            for name in type(self).model_fields
            if name not in spelled
        }
        values |= {field.stored_name: self._duration_us(field) for field in self.durations}
        return values | {
            field.name: normalise_filters(field, values[field.name]) for field in self.filters
        }

    def _duration_us(self, field: Field) -> object:
        given = [name for name in spellings(field.name) if name in self.model_fields_set]
        return getattr(self, given[0]) if given else field.default


def _details(error: ErrorDetails) -> InitErrorDetails:
    kind = PydanticCustomError(error["type"], error["msg"], error.get("ctx"))
    return {"type": kind, "loc": error["loc"], "input": error["input"]}


def spellings(duration: str) -> tuple[str, ...]:
    """Return the field names that a duration may have in a document."""
    return (*(f"{duration}_{unit}" for unit in DURATION_UNITS), duration)


def name_as_written(field: str, document: Mapping[str, Any]) -> str:
    """Return the name of a field as the document writes it, with its unit.

    Parameters
    ----------
    field : str
        Name of the field in correlation/; nested fields with dots.
    document : mapping
        The document as the user sent it.
    """
    *above, last = field.split(".")
    found: object = document
    for part in above:
        found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, Mapping):
        last = next((name for name in spellings(last) if name in found), last)
    return ".".join([*above, last])


def _spelling_problems(field: Field, given: set[str]) -> Iterable[FieldProblem]:
    found = [name for name in spellings(field.name) if name in given]
    choices = ", ".join(spellings(field.name)[:-1]) + f' or {field.name} ("250ms")'
    if len(found) > 1:
        problem = f"cannot be combined with {found[0]}"
        yield FieldProblem(found[1], problem, f"use one of {choices}")
    if not found and field.required:
        yield FieldProblem(field.name, "is missing", f"use one of {choices}")


def _plain(value: object) -> object:
    if isinstance(value, Document):
        return value.normalised()
    if isinstance(value, Decimal):
        return format(without_zeros(value), "f")
    return value


def _read_words(field: str, value: object) -> int:
    """Read a duration such as "250ms"; the error for a bare number shows the right form."""
    bare = read_decimal(value) if isinstance(value, str) else value
    if isinstance(bare, int | Decimal) and not isinstance(bare, bool):
        shown = str(value).strip()[:_SHOWN]
        remedy = f'write "{shown}ms" (or us, s, min, h, d), or {field}_ms: {shown}'
        raise InvalidFieldError(field, f"must have a unit; got {shown}", remedy)
    if not isinstance(value, str):
        remedy = f'write a number and a unit, for example "250ms", or {field}_ms: 250'
        raise InvalidFieldError(field, "must be a duration", remedy)
    return parse_duration_us(value, field)


def _read_amount(field: str, unit: str, value: object) -> int:
    """Read a number of units that is within the limit."""
    if isinstance(value, str):
        remedy = f'write a number, without quotes, or {field}: "250ms"'
        raise InvalidFieldError(field, f'must be a number; got "{value[:_SHOWN]}"', remedy)
    number, limit = read_number(value), DURATION_LIMIT_US // UNITS_US[unit]
    if not isinstance(number, float) and not -limit <= number <= limit:
        limit_text = describe_limit(DURATION_LIMIT_US)
        raise InvalidFieldError(field, f"must be at most {limit_text}", f"use at most {limit_text}")
    return exact_us(number, unit, field)


def _duration_definitions(field: Field) -> Definitions:
    described = f"{field.description} In {{}}; one of {', '.join(spellings(field.name))}."

    def define(reader: BeforeValidator, schema: Definitions, unit: str, **more: Any) -> Any:  # noqa: ANN401  a definition of create_model
        # A factory: with a `default`, the schema would show that null is accepted.
        info = PydanticField(default_factory=_none, description=described.format(unit), **more)
        return Annotated[int, reader, WithJsonSchema(schema)], info

    definitions: Definitions = {}
    for unit in DURATION_UNITS:
        limit = DURATION_LIMIT_US // UNITS_US[unit]
        kind = "integer" if unit == "us" else "number"
        definitions[f"{field.name}_{unit}"] = define(
            BeforeValidator(partial(_read_amount, field.name, unit)),
            {"type": kind, "minimum": -limit, "maximum": limit},
            unit.replace("us", "µs"),
        )
    definitions[field.name] = define(
        BeforeValidator(partial(_read_words, field.name)),
        {"type": "string", "pattern": DURATION_PATTERN},
        'the form "250ms"',
        examples=["250ms"],
    )
    return definitions


def _none() -> None:
    """Return None, the value of an unused spelling."""


def _definitions(field: Field) -> Definitions:
    """Convert a field of a kind to definitions for create_model."""
    if field.type == "duration":
        return _duration_definitions(field)
    types: dict[str, Any] = {
        "probability": Probability,
        "decimal": decimal_type(field),
        "stream": ResourceName,
        "topic": TopicName,
        "count": count_type(field),
        "flag": Annotated[bool, PydanticField(strict=True)],
        "names": Annotated[dict[ShortText, ResourceName], PydanticField(max_length=MAX_NAMES)],
        "text_or_object": text_or_object(field),
        "choice": Literal[field.choices] if field.choices else str,
        "filters": Annotated[Any, WithJsonSchema(role_filters_schema(field.choices))],
    }
    found = types[field.type]
    if not field.required and field.default is None:
        found = found | None
    default = ... if field.required else field.default
    return {field.name: (found, PydanticField(default, description=field.description))}


def _duration_schema(fields: Iterable[Field]) -> list[dict[str, Any]]:
    """Build the JSON Schema rule that a required duration is given exactly once."""
    return [
        {"oneOf": [{"required": [name]} for name in spellings(field.name)]}
        for field in fields
        # "At most once" can be expressed too, but test-data generators fail on it.
        if field.required
    ]


def document_model(
    name: str,
    summary: str,
    fields: tuple[Field, ...],
    example: Mapping[str, Any] | None,
    *,
    base: type[Document] = Document,
    more: Definitions | None = None,
) -> type[Document]:
    """Build the model of a document from its fields.

    Parameters
    ----------
    name, summary : str
        Name and summary of the model in the OpenAPI schema.
    fields : tuple of Field
        Fields of the document.
    example : mapping or None
        Example document in the OpenAPI schema.
    base : type
        Base class of the model.
    more : dict
        Definitions that a Field cannot express.
    """
    durations = tuple(field for field in fields if field.type == "duration")
    once = _duration_schema(durations)
    extra: dict[str, Any] = {"allOf": once} if once else {}
    if example is not None:
        extra["examples"] = [dict(example)]
    definitions = reduce(operator.or_, map(_definitions, fields), more or {})
    model: type[Document] = create_model(name, __base__=base, __doc__=summary, **definitions)
    model.durations = durations
    model.filters = tuple(field for field in fields if field.type == "filters")
    if any(field.required for field in fields):
        optional = tuple(replace(field, required=False) for field in fields)
        model.part = document_model(f"{name}Part", summary, optional, None, base=base, more=more)
    model.model_config["json_schema_extra"] = extra
    model.model_rebuild(force=True)
    return model
