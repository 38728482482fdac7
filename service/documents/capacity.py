"""Limit on the events that the job keeps in memory for a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.condition_kind import Load
from correlation.kinds import KINDS
from correlation.resources.durations import describe_duration
from service.errors import InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.operators import Condition
    from correlation.resources.streams import Stream

_US = 1_000_000


def buffer_horizons_us(condition: Condition, streams: Mapping[str, Stream]) -> Mapping[str, int]:
    """Return for how long a condition needs an event of each stream after its time, in µs.

    Parameters
    ----------
    condition : Condition
        The condition.
    streams : mapping of name to Stream
        Streams of the condition.
    """
    found: Mapping[str, int] = KINDS[condition.kind].derive(condition, streams, Load({}))[
        "buffer_horizon_us"
    ]
    return found


def check_capacity(
    condition: Condition, streams: Mapping[str, Stream], limit: int, field: str | None = None
) -> None:
    """Check that a condition does not keep more events in memory than the limit.

    Only streams that declare `max_rate` are checked.

    Parameters
    ----------
    condition : Condition
        A condition to register, or one that reads a stream to register.
    streams : mapping of name to Stream
        Streams of the condition.
    limit : int
        Max number of events of a stream, over all slots.
    field : str or None
        Field that the error names; None: the condition's field that sets its horizon.

    Raises
    ------
    InvalidDocumentError
        When the limit is exceeded; names the field and the remedy.
    """
    kind = KINDS[condition.kind]
    horizons = buffer_horizons_us(condition, streams)
    for name in condition.streams:
        rate = streams[name].max_rate
        if rate is None:
            continue
        # Each group of a grid holds a copy.
        rate *= streams[name].partitioning.groups
        if rate * horizons[name] <= limit * _US:
            continue
        horizon = describe_duration(horizons[name])
        longest = describe_duration(limit * _US // rate)
        raise InvalidDocumentError.of(
            field or kind.horizon_field(condition, name),
            f"condition {condition.name} would buffer {rate * horizons[name] // _US:,} events of "
            f"stream {name} ({horizon} at {rate:,} events/s), but the limit is {limit:,}",
            f"buffer them for at most {longest}: {kind.horizon_remedy}; or declare a smaller "
            "max_rate; or raise COINCIDE_MAX_BUFFERED_EVENTS",
        )
