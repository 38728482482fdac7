"""How the results, counters and gauges of a kind of condition are shown to users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Gauge:
    """A gauge that the operators of a kind report.

    Parameters
    ----------
    description : str
        Help string.
    over_slots : str
        How the values of the slots are combined: sum, max or min.
    """

    description: str
    over_slots: Literal["sum", "max", "min"] = "sum"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A gauge that is the quotient of two counters with the same labels, if the second is not 0.

    Parameters
    ----------
    numerator, denominator : str
        Names of the counters, without prefix.
    description : str
        Help string.
    """

    numerator: str
    denominator: str
    description: str


class CounterOf(Protocol):
    """Returns the value of a counter of a condition's operators, without prefix."""

    def __call__(self, name: str, **labels: str) -> int:
        """Return the counter with these labels; 0 if it was never counted."""


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """How `coincide replay` reports the counters of a condition.

    Parameters
    ----------
    results : str
        Plural noun for the results, which is the name of their number in the report. Kinds with the
        same noun share a summary.
    summarise : callable
        `(count) -> dict`: JSON-able facts of the report, from the counters of the condition.
    columns : mapping of str to callable
        `(facts) -> cell` of each further column of the table, by its title.
    """

    results: str
    summarise: Callable[[CounterOf], dict[str, Any]]
    columns: Mapping[str, Callable[[Mapping[str, Any]], str]] = field(default_factory=dict)


class ShownRecord(NamedTuple):
    """How the console shows a record.

    Attributes
    ----------
    description : str
        The record in one line.
    events : mapping of str to mapping
        Its events by label, in the order in which they are drawn. Each has the fields `stream` and
        `id`, and its times in µs since 1970: `earliest` and `latest`, `begin` and `end`, or `time`.
    """

    description: str
    events: Mapping[str, Mapping[str, Any]]


class ResultReader(Protocol):
    """Reads the output records of a kind, in the order of their topic."""

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is of this kind."""

    def read(self, record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        """Return the results that a record holds: any number, including 0.

        Raises
        ------
        CorrelationError
            The record refers to a record that was not read, or another version wrote it.
        ValueError
            A field is missing or has another type.
        """

    def describe(self, result: Mapping[str, Any]) -> str:
        """Return a result as one readable line, without its condition and time."""

    def show(self, record: Mapping[str, Any]) -> ShownRecord:
        """Return how the console shows a record, even one that holds no results by itself.

        Raises
        ------
        CorrelationError, ValueError
            As `read`.
        """


class ResultObjects:
    """Reader of records that hold one result each and name their kind."""

    _COMMON = frozenset({"v", "kind", "condition", "version", "alarm_id", "detected_at"})

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def claims(self, record: Mapping[str, Any]) -> bool:
        """See `ResultReader.claims`."""
        return record.get("kind") == self._kind

    def read(self, record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        """See `ResultReader.read`."""
        return [dict(record)]

    def describe(self, result: Mapping[str, Any]) -> str:
        """See `ResultReader.describe`."""
        return "  ".join(f"{name}={it}" for name, it in result.items() if name not in self._COMMON)

    def show(self, record: Mapping[str, Any]) -> ShownRecord:
        """See `ResultReader.show`."""
        return ShownRecord(self.describe(record), {})
