"""Validation of names, topics and durations."""

from __future__ import annotations

import re

from correlation.errors import InvalidFieldError
from correlation.resources.durations import describe_limit, format_duration

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_SHOWN = 40
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)


def check_name(name: str, of: str = "name") -> str:
    """Return the name; raise InvalidFieldError if it is not valid."""
    if NAME.fullmatch(name) is None:
        raise InvalidFieldError(
            of,
            f"{name[:80]!r} is not a valid name",
            "use 1 to 63 of a-z, 0-9, '.', '_', '-', starting with a letter or digit",
        )
    return name


def check_topic(topic: str, of: str = "topic") -> str:
    """Return the topic; raise InvalidFieldError if Kafka does not allow the name."""
    if _TOPIC.fullmatch(topic) is None or topic in {".", ".."}:
        raise InvalidFieldError(
            of,
            f"{topic[:80]!r} is not a valid topic name",
            "use 1 to 249 of A-Z, a-z, 0-9, '.', '_', '-'",
        )
    return topic


def check_duration(duration_us: int, of: str, min_us: int, max_us: int) -> int:
    """Return the duration; raise InvalidFieldError if it is out of range."""
    if min_us <= duration_us <= max_us:
        return duration_us
    limit = describe_limit(max_us)
    if duration_us > max_us:
        problem, remedy = f"must be at most {limit}", f"use at most {limit}"
    elif min_us == 0:
        turned = f'"{format_duration(-duration_us)}" or ' if -duration_us <= max_us else ""
        problem, remedy = "must not be negative", f'write {turned}"0s"'
    else:
        problem, remedy = f"must be at least -{limit}", f"use -{limit} to {limit}"
    shown = format_duration(duration_us)[:_SHOWN]
    raise InvalidFieldError(of, f"{problem}; got {shown}", remedy)
