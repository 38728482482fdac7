"""What people see of records: one line each, in which no record can pretend to be anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def describe_result(result: Mapping[str, Any], description: str) -> str:
    """Return a result as one line for a person.

    Parameters
    ----------
    result
        Has `condition` and `detected_at`.
    description
        What its kind of condition says of it.
    """
    head = f"{describe_moment(result['detected_at'])}  {result['condition']}"
    return printable(f"{head}  {description}")


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
