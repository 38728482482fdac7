"""What people see of records: one line each, in which no record can pretend to be anything else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN_CHARACTERS = 200


def printable(text: str, kept: str = "") -> str:
    r"""Return a text with what does not print escaped: ends of lines, terminals' commands.

    Parameters
    ----------
    text
        For a person to read.
    kept
        Characters that stay as they are.

    Examples
    --------
    >>> print(printable("a\n\x1b[2Jb"))
    a\n\x1b[2Jb
    """
    if text.isprintable():
        return text
    return "".join(
        found
        if found.isprintable() or found in kept
        else found.encode("unicode_escape").decode("ascii")
        for found in text
    )


def counted(number: int, what: str) -> str:
    """Return a number and what it counts, in the plural where it is not one.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def describe_alarm(alarm: Mapping[str, Any]) -> str:
    """Return an alarm as one line for a person.

    Parameters
    ----------
    alarm
        The record's value.
    """
    parts = [
        describe_moment(alarm["detected_at"]),
        str(alarm["condition"]),
        _describe_event(alarm["a"]),
        *_describe_match(alarm),
        f"({str(alarm['decided_by']).replace('_', ' ')})",
    ]
    if alarm.get("late"):
        parts.append("late")
    return printable("  ".join(parts))


def describe_set_aside(letter: Mapping[str, Any]) -> str:
    """Return a dead letter or a late event as one line for a person."""
    # An alarm that its own topic did not take was read from nowhere.
    place = str(letter.get("topic"))
    if letter.get("partition") is not None:
        place += f"-{letter['partition']}@{letter.get('offset')}"
    value = letter["value"]
    shown = "no value" if value is None else value[:_SHOWN_CHARACTERS]
    told = [letter.get("reason"), place, letter.get("stream"), letter.get("detail")]
    return printable("  ".join([*(str(part) for part in told if part), shown]))


def _describe_match(alarm: Mapping[str, Any]) -> list[str]:
    """Tell the event's B and the probability, or that there is none."""
    if alarm["b"] is None:
        return ["without", f"p≥{alarm['threshold']}"]
    probability = alarm.get("probability")
    known = f"p={probability:.3f}" if probability is not None else f"p≥{alarm['threshold']}"
    return ["↔", _describe_event(alarm["b"]), known]


def _describe_event(event: Mapping[str, Any]) -> str:
    key = f" @{event['key']}" if event.get("key") else ""
    return (
        f"{event['stream']}:{event['id']}{key} "
        f"[{describe_moment(event['earliest'])} … {describe_moment(event['latest'])}]"
    )


def describe_moment(time_us: int) -> str:
    """Return a time in µs as ISO 8601; the bare number where no calendar reaches."""
    try:
        moment = _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return f"{time_us} µs"
    text = moment.isoformat(timespec="microseconds" if time_us % 1_000_000 else "seconds")
    return text.replace("+00:00", "Z")
