"""Chance alarms of the registered conditions, for the metrics page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.errors import InvalidFieldError
from correlation.kinds import KINDS, to_condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from correlation.condition_kind import Chance
    from correlation.resources.records import Resource

    Versions = tuple[int, ...]


class Chances:
    """Chance alarms by condition; computed again when the condition or a stream changes.

    Templates with many buckets take up to two seconds.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Versions, Chance | None]] = {}

    def of(
        self, conditions: Mapping[str, Resource], streams: Mapping[str, Resource]
    ) -> dict[str, Chance]:
        """Return the chance alarms of the conditions for which they can be computed.

        Parameters
        ----------
        conditions, streams : mapping of name to Resource
            The registered conditions and streams.
        """
        self._known = {
            name: self._one(name, resource, streams) for name, resource in conditions.items()
        }
        return {name: chance for name, (_, chance) in self._known.items() if chance is not None}

    def _one(
        self, name: str, resource: Resource, streams: Mapping[str, Resource]
    ) -> tuple[Versions, Chance | None]:
        try:
            condition = to_condition(resource)
        except InvalidFieldError:
            # The package of its kind was uninstalled, or another version wrote it.
            return (resource.version,), None
        read = {it: streams[it] for it in condition.streams if it in streams}
        versions = (resource.version, *(it.version for it in read.values()))
        known = self._known.get(name)
        if known is not None and known[0] == versions:
            return known
        if len(read) < len(set(condition.streams)):
            return versions, None
        kind = KINDS[resource.document["kind"]]
        return versions, kind.chance(condition, {it: read[it].to_stream() for it in read})
