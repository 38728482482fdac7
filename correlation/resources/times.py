"""Readers of times from JSON; each returns (rounded down, rounded up) in µs since 1970.

Numbers are exact: integers, or Decimals with the digits of the record's JSON. A float64, as in a
Parquet file, counts as the shortest decimal that rounds to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.reasons import Reason
from correlation.resources.decimals import EXACTLY

TimeFormat = Literal["iso8601", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns"]
Span = tuple[int, int]
TimeReader = Callable[[object], Span]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_SECONDS, _SECOND_US = 86_400, 1_000_000
# datetime keeps six decimal places of a second and drops the others.
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
# The shortest string with more than six places.
_FINER_LENGTH = len("2026W01T000000.1234567")
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
# Longer strings are not valid times, and Python parses long numbers slowly.
_LONGEST_TEXT = 64


def out_of_range() -> RejectedEventError:
    """Return the error of a time outside the range of all times."""
    return RejectedEventError(
        Reason.TIME_OUT_OF_RANGE,
        "times must be within 36,000 years of 1970; usually the unit in the mapping is wrong",
    )


def _not_a_time(value: object, wanted: str) -> RejectedEventError:
    reason = Reason.NOT_A_TIME if isinstance(value, str | float | Decimal) else Reason.WRONG_TYPE
    return RejectedEventError(reason, f"{str(value)[:_LONGEST_TEXT]!r} is not {wanted}")


def _epoch_reader(shift: int, unit: str) -> TimeReader:
    """Return the reader of a number in units of 10**shift µs."""
    wanted = f"a number of {unit} since 1970"
    multiplier, divisor = 10 ** max(shift, 0), 10 ** max(-shift, 0)

    def read(value: object) -> Span:
        if type(value) is int:
            scaled = value * multiplier
            low = scaled // divisor
            return low, low if low * divisor == scaled else low + 1
        number = Decimal(repr(value)) if type(value) is float else value
        if not isinstance(number, Decimal) or not number.is_finite():
            quoted = isinstance(value, str) and _NUMBER.fullmatch(value[:_LONGEST_TEXT])
            raise _not_a_time(value, f"{wanted}: write it without quotes" if quoted else wanted)
        exact = EXACTLY.scaleb(number, shift)
        low = int(exact.to_integral_value(ROUND_FLOOR))
        high = low if exact == low else low + 1
        if not -TIME_LIMIT_US <= low <= high <= TIME_LIMIT_US:
            raise out_of_range()
        return low, high

    return read


# A number of a format is in units of 10**shift µs.
SHIFTS: Mapping[str, int] = {"epoch_s": 6, "epoch_ms": 3, "epoch_us": 0, "epoch_ns": -3}
READERS: Mapping[str, TimeReader] = {
    "epoch_s": _epoch_reader(SHIFTS["epoch_s"], "seconds"),
    "epoch_ms": _epoch_reader(SHIFTS["epoch_ms"], "milliseconds"),
    "epoch_us": _epoch_reader(SHIFTS["epoch_us"], "microseconds"),
    "epoch_ns": _epoch_reader(SHIFTS["epoch_ns"], "nanoseconds"),
}


def iso8601_reader(timezone: str) -> TimeReader:
    """Return the reader of ISO 8601 strings.

    Parameters
    ----------
    timezone : str
        IANA name of the time zone of strings without an offset.
    """
    zone = ZoneInfo(timezone)

    def read(value: object) -> Span:
        if not isinstance(value, str):
            raise _not_a_time(value, "an ISO 8601 string")
        if len(value) > _LONGEST_TEXT:
            raise _not_a_time(value, "an ISO 8601 time")
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            since = moment - _EPOCH
        except (ValueError, OverflowError):
            raise _not_a_time(value, "an ISO 8601 time") from None
        low = (since.days * _DAY_SECONDS + since.seconds) * _SECOND_US + since.microseconds
        return low, low + 1 if len(value) >= _FINER_LENGTH and _FINER.search(value) else low

    return read


def describe_moment(time_us: int) -> str:
    """Return a time in µs as ISO 8601, or as a number of µs if outside the calendar's range."""
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} µs"
    text = moment.isoformat(timespec="microseconds" if time_us % 1_000_000 else "seconds")
    return text.replace("+00:00", "Z")
