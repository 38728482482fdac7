"""One condition at several thresholds at once: how many pairs each would report.

Each threshold is a condition of its own over the same buffers, so that every count is one of exact
decisions, whatever else the condition asks for. Files are read once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cli.errors import UsageError
from correlation.errors import InvalidFieldError
from correlation.timing.conditions import read_threshold

if TYPE_CHECKING:
    from decimal import Decimal

    from cli.replay.setup import Setup

_FIELD = "threshold"
_MOST = 200
_FORM = "write them as 0.5,0.6,0.7 or 0.5..0.9:0.1"


def read_thresholds(text: str) -> tuple[Decimal, ...]:
    """Read thresholds, in ascending order, each once.

    Parameters
    ----------
    text
        Decimals with commas between; FIRST..LAST:STEP stands for several.

    Raises
    ------
    UsageError
        When one is no threshold, or they are too many.
    """
    found: set[Decimal] = set()
    for part in text.split(","):
        found.update(_range(part) if ".." in part else [_threshold(part)])
        if len(found) > _MOST:
            raise UsageError(f"--thresholds: more than {_MOST}")
    return tuple(sorted(found))


def _range(text: str) -> list[Decimal]:
    ends, colon, step_text = text.partition(":")
    first_text, _, last_text = ends.partition("..")
    first, last = _threshold(first_text), _threshold(last_text)
    if not colon or first > last:
        raise UsageError(f"--thresholds: {text!r} is no range; {_FORM}")
    # With as many places as a threshold at most, sums are exact.
    step = _threshold(step_text)
    count = int((last - first) // step) + 1
    if count > _MOST:
        raise UsageError(f"--thresholds: {text!r} makes more than {_MOST}")
    return [read_threshold(first + i * step) for i in range(count)]


def _threshold(text: str) -> Decimal:
    try:
        return read_threshold(text.strip())
    except InvalidFieldError as error:
        raise UsageError(f"--thresholds: {text.strip()[:40]!r} {error.problem}; {_FORM}") from error


def at_thresholds(setup: Setup, thresholds: tuple[Decimal, ...]) -> Setup:
    """Put each condition there once for each threshold.

    Parameters
    ----------
    setup
        With conditions as they are in the files.
    thresholds
        The thresholds.

    Raises
    ------
    UsageError
        A condition has no threshold.
    """
    resources = []
    for number, resource in enumerate(setup.conditions):
        if _FIELD not in resource.document:
            raise UsageError(
                f"condition {resource.name} has no threshold: choose others with --condition"
            )
        for threshold in thresholds:
            document = {**resource.document, _FIELD: format(threshold, "f")}
            name = name_at(number, threshold)
            resources.append(replace(resource, name=name, document=document))
    return replace(setup, conditions=tuple(resources))


def name_at(number: int, threshold: Decimal) -> str:
    """Name the condition that is the one of this number at a threshold."""
    return f"{number}-at-{threshold:f}"
