"""Number fields of documents: probabilities, decimals of any range, and counts."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic import Field as PydanticField
from pydantic_core import PydanticCustomError

from correlation.errors import InvalidFieldError
from correlation.limits import DECIMAL_LIMIT, THRESHOLD_PLACES
from correlation.resources.decimals import read_decimal, without_zeros

if TYPE_CHECKING:
    from correlation.condition_kind import Field

_DECIMAL = "write a decimal greater than 0 and at most 1, for example 0.7"
_SHOWN = 40
_DIGIT = 9
# Min value that is read as a percentage: 70 means 70 %, but 1.5 is ambiguous.
_MIN_PERCENT = 2
_PERCENT = 100


def read_number(value: object) -> int | Decimal | float:
    """Return a JSON number; raise InvalidFieldError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        raise InvalidFieldError("", "must be a number", "write a number, without quotes")
    return value


def _read_probability(value: object) -> object:
    """Read a decimal over 0 and at most 1; the error for a percentage names the decimal."""
    shown = str(value).strip()
    text, percent = shown.removesuffix("%").strip().replace(",", "."), shown.endswith("%")
    number = read_decimal(text) if isinstance(value, str) else value
    if isinstance(number, float):
        raise PydanticCustomError("finite_number", "out of range")
    if isinstance(number, bool) or not isinstance(number, int | Decimal):
        problem = "must be a decimal" + (f'; got "{shown[:_SHOWN]}"' if shown == value else "")
        raise InvalidFieldError("", problem, _DECIMAL)
    if percent or "," in shown:
        problem = f'must be a decimal; got "{shown[:_SHOWN]}"'
        raise InvalidFieldError("", problem, _meant(Decimal(number), percent=percent))
    if not 0 < number <= 1:
        problem = f"must be greater than 0 and at most 1; got {shown[:_SHOWN]}"
        raise InvalidFieldError(
            "", problem, _meant(Decimal(number), percent=number >= _MIN_PERCENT)
        )
    return number


def _meant(number: Decimal, *, percent: bool) -> str:
    """Return the remedy; it names the intended decimal if that is clear."""
    # Far smaller or larger numbers would overflow in the division.
    if not 0 < number <= (_PERCENT if percent else 1) or number.adjusted() < -THRESHOLD_PLACES:
        return _DECIMAL
    written = format(without_zeros(number / _PERCENT if percent else number), "f")
    return f"write {written}" if len(written) <= THRESHOLD_PLACES else _DECIMAL


def _read_bounded(low: int, high: int, value: object) -> object:
    """Read a decimal from `low` to `high`."""
    shown = str(value).strip()[:_SHOWN]
    remedy = f"write a decimal from {low} to {high}"
    number = read_decimal(value) if isinstance(value, str) else value
    if isinstance(number, float):
        raise PydanticCustomError("finite_number", "out of range")
    if isinstance(number, bool) or not isinstance(number, int | Decimal):
        problem = "must be a decimal" + (f'; got "{shown}"' if isinstance(value, str) else "")
        raise InvalidFieldError("", problem, remedy)
    if number < low:
        raise InvalidFieldError("", f"must be at least {low}; got {shown}", remedy)
    if number > high:
        raise InvalidFieldError("", f"must be at most {high}; got {shown}", remedy)
    return number


def decimal_type(field: Field) -> Any:  # noqa: ANN401  a type of create_model
    """Return the type of a decimal field, a number or a string within the field's bounds."""
    low = -DECIMAL_LIMIT if field.minimum is None else field.minimum
    high = DECIMAL_LIMIT if field.maximum is None else field.maximum
    schemas: list[dict[str, Any]] = [{"type": "number", "minimum": low, "maximum": high}]
    if low in {0, -high} and high > 0:
        # Strings whose integer part is smaller than the bound, so that each is within it.
        whole = rf"[0-9]{{1,{len(str(high)) - 1}}}" if high > _DIGIT else f"[0-{high - 1}]"
        sign = "" if low == 0 else "-?"
        schemas.append({"type": "string", "pattern": rf"^{sign}{whole}(\.[0-9]{{1,10}})?$"})
    return Annotated[
        Decimal,
        PydanticField(decimal_places=THRESHOLD_PLACES),
        BeforeValidator(partial(_read_bounded, low, high)),
        WithJsonSchema({"anyOf": schemas}),
    ]


def count_type(field: Field) -> Any:  # noqa: ANN401  a type of create_model
    """Return the type of a field of integers within the field's bounds, from 1 by default."""
    low = 1 if field.minimum is None else field.minimum
    return Annotated[int, PydanticField(strict=True, ge=low, le=field.maximum)]


Whole = Annotated[int, BeforeValidator(read_number)]
Probability = Annotated[
    Decimal,
    PydanticField(decimal_places=THRESHOLD_PLACES),
    BeforeValidator(_read_probability),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^(0?\.[0-9]{1,10}|1(\.0{1,10})?)$"},
            ]
        }
    ),
]
