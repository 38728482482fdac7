"""What a slot knows of the conditions that are registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from correlation.operators import Condition, Operator
from correlation.records import Resource


@dataclass(slots=True)
class Registered:
    """A condition with its operator; without one, `detail` says why it is not evaluated."""

    resource: Resource
    config_offset: int
    condition: Condition | None = None
    operator: Operator | None = None
    state: str = "running"
    detail: str | None = None
    last_alarm_at_us: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return its part of the slot's record for the metrics topic."""
        return {
            "version": self.resource.version,
            "state": self.state,
            "detail": self.detail,
            "config_offset": self.config_offset,
            "last_alarm_at": self.last_alarm_at_us,
        }


@dataclass(frozen=True, slots=True)
class SetAside:
    """The newest record of a condition, which cannot be read: the condition is not in force."""

    config_offset: int
    record: object
    problem: str

    def describe(self) -> dict[str, Any]:
        """Return its part of the slot's record for the metrics topic."""
        return {
            "version": 0,
            "state": "unreadable",
            "detail": self.problem,
            "config_offset": self.config_offset,
            "last_alarm_at": None,
        }
