"""Records in requests: in the form of their topic or canonical, with an optional key and time."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from correlation.errors import InvalidFieldError, RejectedEventError
from correlation.explaining import Form, GivenRecord
from correlation.limits import TIME_LIMIT_US
from correlation.resources.times import READERS, iso8601_reader
from service.errors import InvalidDocumentError

Document = Mapping[str, Any]
_FORMS: tuple[Form, ...] = ("record", "event")
_MORE = {"record_key", "record_timestamp"}
# Integers that the job's parser reads as integers.
_WHOLE = range(-(2**63), 2**64)
_read_iso = iso8601_reader("UTC")


def read_moment_us(field: str, value: object) -> int:
    """Read a Kafka timestamp: µs since 1970, or an RFC 3339 string.

    Raises
    ------
    InvalidFieldError
        When the value is not valid; names the field.
    """
    remedy = 'write µs since 1970, or a string such as "2026-01-01T12:00:00Z"'
    if isinstance(value, Decimal) and value != value.to_integral_value():
        raise InvalidFieldError(field, "must be a whole number of microseconds", remedy)
    try:
        read = _read_iso if isinstance(value, str) else READERS["epoch_us"]
        moment_us = read(value)[0]
    except RejectedEventError as error:
        raise InvalidFieldError(field, error.detail, remedy) from None
    if not 0 <= moment_us <= TIME_LIMIT_US:
        raise InvalidFieldError(field, "must be from 1970 to 36,000 years later", remedy)
    return moment_us


def read_given(field: str, document: Document) -> GivenRecord:
    """Read an event of a request: plain, or as the value of its form's name.

    Parameters
    ----------
    field : str
        Name of the event in errors.
    document : mapping
        The event.

    Raises
    ------
    InvalidDocumentError, InvalidFieldError
        When its form is not valid.
    """
    named = [form for form in _FORMS if form in document and set(document) <= {form, *_MORE}]
    if not named:
        return GivenRecord(as_parsed(field, document))
    form = named[0]
    value = document[form]
    if not isinstance(value, Mapping):
        remedy = "write a JSON object"
        raise InvalidDocumentError.of(f"{field}.{form}", "must be an object", remedy)
    key, record_timestamp_us = document.get("record_key"), None
    if key is not None and not isinstance(key, str):
        remedy = "write the key of the Kafka record, or leave it out"
        raise InvalidDocumentError.of(f"{field}.record_key", "must be a string", remedy)
    if document.get("record_timestamp") is not None:
        record_timestamp_us = read_moment_us(
            f"{field}.record_timestamp", document["record_timestamp"]
        )
    return GivenRecord(
        as_parsed(f"{field}.{form}", value),
        None if key is None else key.encode(),
        record_timestamp_us,
        form=form,
    )


def as_parsed(field: str, value: object) -> Any:  # noqa: ANN401  any JSON value
    """Return a value as the job parses it: a number beyond 64 bits cannot be an id or key.

    Raises
    ------
    InvalidDocumentError
        When a number is not finite; names it.
    """
    if isinstance(value, Mapping):
        return {name: as_parsed(f"{field}.{name}", found) for name, found in value.items()}
    if isinstance(value, list):
        return [as_parsed(f"{field}[{at}]", found) for at, found in enumerate(value)]
    if isinstance(value, float):
        remedy = "use a finite number of at most 40 characters"
        raise InvalidDocumentError.of(field, "must be a finite number", remedy)
    return Decimal(value) if type(value) is int and value not in _WHOLE else value
