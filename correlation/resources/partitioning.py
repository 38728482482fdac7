"""Partitioning of a stream's events over the slots.

By `key`: events with equal keys meet in one slot. By `grid`: all events meet and no key is needed.
Events are hashed into g groups, and each event goes to the cells of its row and column of the
symmetric g x g grid (correlation.buffers.grid). If g = 1, all events meet in a single cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from correlation.errors import InvalidFieldError
from correlation.limits import GROUPS_LIMIT


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Partitioning of a stream's events over the slots.

    Parameters
    ----------
    by : {"key", "grid"}
        Events with equal keys meet, or all events meet.
    groups : int
        Number of groups g of the grid: each event is stored g times.

    Raises
    ------
    InvalidFieldError
        `by` is unknown, or `groups` is out of range or not 1 with `by="key"`.
    """

    by: Literal["key", "grid"] = "key"
    groups: int = 1

    def __post_init__(self) -> None:
        if self.by not in {"key", "grid"}:
            raise InvalidFieldError("partitioning.by", f"{self.by!r} is unknown", "use key or grid")
        if not 1 <= self.groups <= GROUPS_LIMIT:
            raise InvalidFieldError(
                "partitioning.groups",
                f"must be from 1 to {GROUPS_LIMIT}; got {self.groups}",
                f"use at most {GROUPS_LIMIT}: more groups make more cells than a job has slots",
            )
        if self.by == "key" and self.groups != 1:
            raise InvalidFieldError(
                "partitioning.groups",
                "requires a grid",
                'leave it out, or write "by": "grid"',
            )

    def __str__(self) -> str:
        if self.by == "key":
            return "key"
        return f"grid with {self.groups} group{'' if self.groups == 1 else 's'}"

    @property
    def cells(self) -> int:
        """Number of cells of the grid; 1 for partitioning by key."""
        return self.groups * (self.groups + 1) // 2

    def describe(self) -> dict[str, object]:
        """Return a description of where events meet, and how many copies of each are held."""
        by, groups, cells = self.by, self.groups, self.cells
        if by == "key":
            why = "events with equal keys meet in the slot of the key"
            return {"by": by, "copies": 1, "why": why}
        why = "all events meet in one slot"
        if groups > 1:
            why = (
                f"each event is stored in the {groups} cells of its group; any two events meet in "
                f"one of the {cells} cells, which are distributed over the slots"
            )
        return {"by": by, "groups": groups, "cells": cells, "copies": groups, "why": why}


def check_meeting(a: Partitioning, b: Partitioning) -> None:
    """Check that the events of the two streams of a condition meet.

    Raises
    ------
    InvalidFieldError
        The streams are partitioned differently.
    """
    if a != b:
        raise InvalidFieldError(
            "b",
            f"is partitioned by {b}, but a by {a}: their events do not meet",
            "register both streams with the same partitioning",
        )
