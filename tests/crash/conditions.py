"""Conditions of the crash matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crash.load import CELLS, GRID, LATE, OTHER_CELLS, SETS
from tests.support.every_kind import LIST, conditions_of, near

if TYPE_CHECKING:
    from correlation.resources.records import Document

_WINDOW_US = 3_000
_LIST = {**LIST, "report": "every"}
# Events usually wait for a block over several batches.
_BLOCKS = {"block_size": 60, "block_interval_us": 3_000_000}
_CELLS = {**near(_WINDOW_US), "a": CELLS, "b": OTHER_CELLS}
CONDITIONS: dict[str, Document] = {
    **conditions_of(_WINDOW_US, self_window_us=1_000),
    "blocks": {**near(1_000), **_BLOCKS},
    "blocks-self": {**near(500), "b": "a", **_BLOCKS},
    "blocks-factored": {**near(1_000), "output": "factored", **_BLOCKS},
    # Streams without keys, whose events are stored in several cells of a grid.
    "cells": _CELLS,
    "cells-self": {**_CELLS, "b": CELLS},
    "cells-blocks": {**_CELLS, **_BLOCKS},
    "cells-factored": {**_CELLS, "output": "factored"},
    # A list of each key, and one list that the slots share, which is merged after their output.
    "list": {**_LIST, "a": SETS, "per_key": True},
    "merged": {**_LIST, "a": GRID, "per_key": False},
    "of-late": {**near(2_000), "a": LATE, "b": LATE},
}


def self_condition(stream: str, window_us: int = 2_000) -> Document:
    """Return a condition between the events of one stream."""
    return {**near(window_us), "a": stream, "b": stream}
