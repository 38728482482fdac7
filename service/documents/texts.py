"""Fields that are a string or a JSON object, such as event queries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from correlation.errors import InvalidFieldError
from service.errors import FieldProblem

if TYPE_CHECKING:
    from correlation.condition_kind import Field


def text_or_object(field: Field) -> Any:  # noqa: ANN401  a type of create_model
    """Return the type of a field that is a string or a JSON object, read by the field's reader."""
    schema = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}]}
    reader = PlainValidator(partial(_read_text_or_object, field))
    return Annotated[object, reader, WithJsonSchema(schema)]


def _read_text_or_object(field: Field, value: object) -> object:
    """Return the stored form of a string or object, or raise the problems that its reader finds."""
    if not isinstance(value, str | Mapping):
        remedy = "write a string, in double quotes, or a JSON object: {…}"
        raise InvalidFieldError("", "must be a string or an object", remedy)
    if field.read is None:
        return value
    try:
        return field.read(value)
    except InvalidFieldError as error:
        # Paths are relative to this field.
        problems = [
            FieldProblem.of(it, "" if it.field == field.name else it.field) for it in error.problems
        ]
        raise PydanticCustomError("fields", "is not valid", {"all": problems}) from error
