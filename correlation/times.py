"""Reading a time from JSON: each reader gives (rounded down, rounded up) in µs since 1970."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal
from zoneinfo import ZoneInfo

from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.reasons import Reason

TimeFormat = Literal["iso8601", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns"]
Span = tuple[int, int]
TimeReader = Callable[[object], Span]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# datetime holds six digits of a second and drops the rest.
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
# Longer numbers are no times, and Python is slow to read them.
_LONGEST_TEXT = 64


def _not_a_time(value: object, wanted: str) -> RejectedEventError:
    reason = Reason.NOT_A_TIME if isinstance(value, str | float) else Reason.WRONG_TYPE
    return RejectedEventError(reason, f"{str(value)[:_LONGEST_TEXT]!r} is not {wanted}")


def _epoch_reader(multiplier: int, divisor: int, unit: str) -> TimeReader:
    """Read a number in units of multiplier/divisor µs."""
    wanted = f"a number of {unit} since 1970"
    scale = Decimal(multiplier) / Decimal(divisor)

    def read(value: object) -> Span:
        if type(value) is int:
            scaled = value * multiplier
            low = scaled // divisor
            span = (low, low if low * divisor == scaled else low + 1)
        elif type(value) is float and math.isfinite(value):
            exact = Decimal(repr(value)) * scale
            if abs(exact) > TIME_LIMIT_US:
                raise RejectedEventError(
                    Reason.TIME_OUT_OF_RANGE, f"{value!r} lies over 36,000 years from 1970"
                )
            span = (
                int(exact.to_integral_value(ROUND_FLOOR)),
                int(exact.to_integral_value(ROUND_CEILING)),
            )
        else:
            raise _not_a_time(value, wanted)
        return span

    return read


READERS: Mapping[str, TimeReader] = {
    "epoch_s": _epoch_reader(1_000_000, 1, "seconds"),
    "epoch_ms": _epoch_reader(1_000, 1, "milliseconds"),
    "epoch_us": _epoch_reader(1, 1, "microseconds"),
    "epoch_ns": _epoch_reader(1, 1_000, "nanoseconds"),
}


def iso8601_reader(timezone: str) -> TimeReader:
    """Make the reader of ISO 8601 texts.

    Parameters
    ----------
    timezone : str
        IANA name that holds for texts without an offset.
    """
    zone = ZoneInfo(timezone)

    def read(value: object) -> Span:
        if not isinstance(value, str):
            raise _not_a_time(value, "an ISO 8601 text")
        if len(value) > _LONGEST_TEXT:
            raise _not_a_time(value, "an ISO 8601 time")
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            low = (moment - _EPOCH) // _MICROSECOND
        except (ValueError, OverflowError):
            raise _not_a_time(value, "an ISO 8601 time") from None
        return low, low + 1 if _FINER.search(value) else low

    return read
