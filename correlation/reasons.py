"""Reason codes of records that could not be processed as their stream declares."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The `coincide.error.reason` header of late and dead-letter records."""

    MALFORMED_JSON = "malformed_json"
    MALFORMED_ROW = "malformed_row"
    WRONG_ENCODING = "wrong_encoding"
    NOT_AN_OBJECT = "not_an_object"
    NULL_VALUE = "null_value"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    NOT_A_TIME = "not_a_time"
    TIME_OUT_OF_RANGE = "time_out_of_range"
    EARLIEST_AFTER_LATEST = "earliest_after_latest"
    BEGIN_AFTER_END = "begin_after_end"
    SHORTER_THAN_DECLARED = "shorter_than_declared"
    LONGER_THAN_DECLARED = "longer_than_declared"
    UNKNOWN_TEMPLATE = "unknown_template"
    UNDECLARED_HISTOGRAM = "undeclared_histogram"
    BAD_HISTOGRAM = "bad_histogram"
    FUTURE_DATED = "future_dated"
    MISSING_KEY = "missing_key"
    BAD_ATTRIBUTE = "bad_attribute"
    BAD_TOKENS = "bad_tokens"
    TOO_LARGE = "too_large"
    BAD_HEARTBEAT = "bad_heartbeat"
    FUTURE_HEARTBEAT = "future_heartbeat"
    BAD_CONTROL = "bad_control"
    OUTPUT_REFUSED = "output_refused"
    LATE = "late"
