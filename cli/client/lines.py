"""One-line display of records, with control characters escaped."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import orjson

from correlation.printable import printable
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN_CHARACTERS = 200


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def describe_result(result: Mapping[str, Any], description: str) -> str:
    """Return a result as one readable line.

    Parameters
    ----------
    result
        Result with `condition` and `detected_at`.
    description
        Description of the result by its kind of condition.
    """
    head = f"{describe_moment(result['detected_at'])}  {result['condition']}"
    return printable(f"{head}  {description}")


def describe_set_aside(letter: Mapping[str, Any]) -> str:
    """Return a dead letter or a late event as one readable line."""
    # An alarm that its output topic rejected has no source partition.
    place = str(letter.get("topic"))
    if letter.get("partition") is not None:
        place += f"-{letter['partition']}@{letter.get('offset')}"
    value = letter["value"]
    shown = "no value" if value is None else value[:_SHOWN_CHARACTERS]
    parts = [letter.get("reason"), place, letter.get("stream"), letter.get("detail")]
    return printable("  ".join([*(str(part) for part in parts if part), shown]))


def write_json_line(value: object) -> None:
    r"""Write a value as one line of JSON on standard output.

    In a terminal, unprintable characters are written as \uXXXX: control characters and those that
    reverse the direction of writing. A file or a pipe gets them as they are.
    """
    line = orjson.dumps(value)
    if sys.stdout.isatty():
        line = _escape_unprintable(line.decode()).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _escape_unprintable(text: str) -> str:
    """Return JSON with the unprintable characters of its strings as escape sequences.

    JSON without spaces has such characters in its strings only.
    """
    if text.isprintable():
        return text
    return "".join(it if it.isprintable() else json.dumps(it)[1:-1] for it in text)
