"""Places of the parts of a query in its text or in its JSON form."""

from __future__ import annotations

from typing import Generic, TypeVar

Place = TypeVar("Place")
Part = TypeVar("Part")


class Places(Generic[Place]):
    """Map from objects, by identity, to their places: equal parts have different places."""

    def __init__(self) -> None:
        # The object is kept too: an id is unique only while its object exists.
        self._places: dict[int, tuple[object, Place]] = {}

    def put(self, part: Part, place: Place) -> Part:
        """Record the place of a part that has none, and return the part."""
        self._places.setdefault(id(part), (part, place))
        return part

    def of(self, part: object) -> Place:
        """Return the place of a part."""
        return self._places[id(part)][1]
