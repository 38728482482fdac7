"""Roles and filters of conditions that join two streams."""

from __future__ import annotations

from typing import NamedTuple

from correlation.resources.filters import Filter

# Roles of the streams of a condition that joins two.
ROLES = ("a", "b")


class Where(NamedTuple):
    """The filters of the two roles; None: all events."""

    a: Filter | None = None
    b: Filter | None = None

    def to_document(self) -> dict[str, object]:
        """Return the filters as JSON values; empty without filters."""
        return {name: it.to_document() for name, it in self._asdict().items() if it is not None}


NO_FILTERS = Where()
