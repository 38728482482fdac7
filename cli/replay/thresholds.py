"""Number of results of each condition at several thresholds, in one replay.

Each threshold is a separate condition over the same buffers, so every count is exact for every
kind of condition. The threshold of a kind is its first field of type probability. Files are read
once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cli.errors import UsageError
from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS
from correlation.resources.thresholds import read_threshold

if TYPE_CHECKING:
    from decimal import Decimal

    from cli.replay.setup import Setup
    from correlation.resources.records import Resource

_MAX = 200
_FORM = "write them as 0.5,0.6,0.7 or 0.5..0.9:0.1"


def read_thresholds(text: str) -> tuple[Decimal, ...]:
    """Parse thresholds; return them in ascending order without duplicates.

    Parameters
    ----------
    text
        Decimals separated by commas; FIRST..LAST:STEP is a range.

    Raises
    ------
    UsageError
        A threshold is not valid, or there are too many.
    """
    found: set[Decimal] = set()
    for part in text.split(","):
        found.update(_range(part) if ".." in part else [_threshold(part)])
        if len(found) > _MAX:
            raise UsageError(f"--thresholds: has too many values; at most {_MAX} are counted")
    return tuple(sorted(found))


def _range(text: str) -> list[Decimal]:
    ends, colon, step_text = text.partition(":")
    first_text, _, last_text = ends.partition("..")
    first, last = _threshold(first_text), _threshold(last_text)
    if not colon or first > last:
        raise UsageError(f"--thresholds: {text!r} is not a valid range; {_FORM}")
    # The step has at most the decimal places of a threshold, so sums are exact.
    step = _threshold(step_text)
    count = int((last - first) // step) + 1
    if count > _MAX:
        raise UsageError(f"--thresholds: {text!r} has too many values; at most {_MAX} are counted")
    return [read_threshold(first + i * step) for i in range(count)]


def _threshold(text: str) -> Decimal:
    try:
        return read_threshold(text.strip())
    except InvalidFieldError as error:
        raise UsageError(
            f"--thresholds: {text.strip()[:40]!r} is not valid; {error.remedy}; {_FORM}"
        ) from error


def at_thresholds(setup: Setup, thresholds: tuple[Decimal, ...]) -> Setup:
    """Replace each condition by one condition per threshold.

    Parameters
    ----------
    setup
        Setup with the conditions of the files.
    thresholds
        The thresholds.

    Raises
    ------
    UsageError
        A condition has no threshold.
    """
    resources = []
    for number, resource in enumerate(setup.conditions):
        field = _threshold_field(resource)
        for threshold in thresholds:
            document = {**resource.document, field: format(threshold, "f")}
            name = name_at(number, threshold)
            resources.append(replace(resource, name=name, document=document))
    return replace(setup, conditions=tuple(resources))


def _threshold_field(resource: Resource) -> str:
    """Return the name of the field with the threshold of a condition."""
    kind = resource.document["kind"]
    found = [it.stored_name for it in KINDS[kind].fields if it.type == "probability"]
    problem = ""
    if not found:
        problem = f"{kind} has no threshold"
    # A condition without a threshold may have the field, with null: a query of exact instants.
    elif resource.document.get(found[0]) is None:
        problem = f"{found[0]} is missing"
    if problem:
        raise UsageError(
            f"condition {resource.name}: {problem}; choose other conditions with --condition"
        )
    return found[0]


def name_at(number: int, threshold: Decimal) -> str:
    """Return the name of the condition with this number at a threshold."""
    return f"{number}-at-{threshold:f}"
