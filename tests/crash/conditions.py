"""Conditions of the crash matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crash.load import GRID, SETS
from tests.support.every_kind import LIST, conditions_of, near

if TYPE_CHECKING:
    from correlation.resources.records import Document

_WINDOW_US = 3_000
_LIST = {**LIST, "report": "every"}
CONDITIONS: dict[str, Document] = {
    **conditions_of(_WINDOW_US, self_window_us=1_000),
    # A list of each key, and one list that the slots share, which is merged after their output.
    "list": {**_LIST, "a": SETS, "per_key": True},
    "merged": {**_LIST, "a": GRID, "per_key": False},
}


def self_condition(stream: str, window_us: int = 2_000) -> Document:
    """Return a condition between the events of one stream."""
    return {**near(window_us), "a": stream, "b": stream}
