"""Expansion of factored records to alarms with one record per pair.

A table is held until all base records that refer to it have been read; the table contains their
number. In a transaction a table precedes its base records, in the same partition. Other records are
passed on unchanged, so that a topic may contain both forms.
"""

from __future__ import annotations

import json
from binascii import Error as Base64Error
from binascii import a2b_base64
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from correlation.errors import CorrelationError, UnknownRecordVersionError
from correlation.limits import DURATION_LIMIT_US
from correlation.timing.alarms import ALARM_VERSION, alarm_id
from correlation.timing.factored.batch import BASE, TARGETS, VERSION
from correlation.timing.intervals.pairs import DECIDED_BY, PROBE, SATISFACTION_REGION
from correlation.timing.intervals.probability import probability
from correlation.timing.intervals.window import TimingWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Alarm = dict[str, Any]

# Fields of a table in addition to its targets.
_HEAD = (
    *("size", "stream", "key", "kind", "threshold", "report_probability"),
    *("lower_us", "upper_us"),
)


class MissingTableError(CorrelationError):
    """The table of a base record was not read completely: reading began after it."""


class FactoredFormatError(CorrelationError):
    """A factored record does not have the format of docs/factored.md."""


@dataclass(slots=True)
class _Table:
    """The targets of a table read so far, and the common fields of its records."""

    head: Mapping[str, Any]
    uses: int = 0
    ids: list[str] = field(default_factory=list)
    earliest: list[int] = field(default_factory=list)
    latest: list[int] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    # Values of each attribute; None if the stream declares no attributes.
    attributes: dict[str, list[Any]] | None = None

    def attributes_of(self, place: int) -> dict[str, Any]:
        """Return the attributes of a target as an alarm contains them."""
        if self.attributes is None:
            return {}
        return {"attributes": {name: it[place] for name, it in self.attributes.items()}}


def is_factored(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a part of factored alarms."""
    return record.get("record") in (TARGETS, BASE)


class Expander:
    """Reads the records of one or all partitions, in the order of each partition."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    @property
    def held(self) -> int:
        """Number of targets held."""
        return sum(len(table.ids) for table in self._tables.values())

    def take(self, record: Mapping[str, Any]) -> Iterator[Alarm]:
        """Read the value of a record and yield its alarms.

        Parameters
        ----------
        record : mapping
            A factored record, or any other record, which is yielded unchanged.

        Raises
        ------
        MissingTableError
            The table of the record was not read.
        UnknownRecordVersionError
            Another version of this software wrote the record.
        FactoredFormatError
            The record is damaged.
        """
        if not is_factored(record):
            yield dict(record)
            return
        if record.get("v") != VERSION:
            raise UnknownRecordVersionError(
                f"factored record: has version {record.get('v')!r}; this software reads {VERSION}"
            )
        try:
            if record["record"] == TARGETS:
                self._hold(record)
            else:
                yield from self._expand(record)
        except (KeyError, IndexError, TypeError, ValueError, Base64Error) as error:
            raise FactoredFormatError(f"the factored record is not valid: {error!r}") from error

    def _hold(self, record: Mapping[str, Any]) -> None:
        ident = record["table"]
        if ident not in self._tables:
            self._tables[ident] = _Table({name: record[name] for name in _HEAD})
        table = self._tables[ident]
        first = record["first"]
        if first == 0:
            table.uses += record["uses"]
        # A repeated part is ignored: tables with equal ids are equal.
        if first == len(table.ids):
            table.late.update(first + place for place in record["late"])
            table.ids += record["ids"]
            table.earliest += record["earliest"]
            table.latest += record["latest"]
            for name, values in dict(record.get("attributes", {})).items():
                if table.attributes is None:
                    table.attributes = {}
                table.attributes.setdefault(name, []).extend(values)

    def _expand(self, record: Mapping[str, Any]) -> Iterator[Alarm]:
        ident = record["table"]
        table = self._tables.get(ident)
        if table is None or len(table.ids) < table.head["size"]:
            raise MissingTableError(
                f"table {ident} is missing: it was written before the start of reading"
            )
        places, certain = _places(record)
        if min(places, default=0) < 0:
            raise ValueError("a place is negative")
        yield from _write_alarms(record, table, places, certain)
        table.uses -= 1
        if table.uses == 0:
            del self._tables[ident]


def expand(values: Iterable[bytes | str]) -> Iterator[Alarm]:
    """Yield the alarms of a partition's records.

    Parameters
    ----------
    values : iterable of bytes or str
        Values of the records, in order; tables before the base records that refer to them.

    Raises
    ------
    MissingTableError, UnknownRecordVersionError, FactoredFormatError
        See `Expander.take`.
    """
    expander = Expander()
    for value in values:
        yield from expander.take(json.loads(value))


def _places(record: Mapping[str, Any]) -> tuple[list[int], int]:
    """Return the places of a base event's targets, and the number of certain ones."""
    places = list(range(*record.get("certain", (0, 0))))
    certain = len(places)
    for first, bitmap in record.get("probed", ()):
        for number, byte in enumerate(a2b_base64(bitmap, strict_mode=True)):
            places += [first + 8 * number + bit for bit in range(8) if byte & (128 >> bit)]
    return places, certain


def _write_alarms(
    record: Mapping[str, Any], table: _Table, places: list[int], certain: int
) -> Iterator[Alarm]:
    """Build the alarms of a base record."""
    head = table.head
    role, other = ("a", "b") if "a" in record else ("b", "a")
    base = record[role]
    common: dict[str, Any] = {"v": ALARM_VERSION}
    common |= {name: record[name] for name in ("condition", "version", "detected_at")}
    common |= {name: head[name] for name in ("kind", "threshold")}
    chances = _probabilities(head, role, base, table, places)
    for number, place in enumerate(places):
        ids = {role: base["id"], other: table.ids[place]}
        alarm = {
            **common,
            "alarm_id": alarm_id(
                record["condition"], record["version"], ids["a"].encode(), ids["b"].encode()
            ),
            "decided_by": DECIDED_BY[SATISFACTION_REGION if number < certain else PROBE],
            "late": record["late"] or place in table.late,
            role: base,
            other: {
                "id": table.ids[place],
                "stream": head["stream"],
                "key": head["key"],
                "earliest": table.earliest[place],
                "latest": table.latest[place],
                **table.attributes_of(place),
            },
        }
        if chances is not None:
            alarm["probability"] = chances[number]
        yield alarm


def _probabilities(
    head: Mapping[str, Any], role: str, base: Mapping[str, Any], table: _Table, places: list[int]
) -> list[float] | None:
    if not head["report_probability"]:
        return None
    lower, upper = head["lower_us"], head["upper_us"]
    # Probabilities do not depend on the horizon and the threshold.
    window = TimingWindow(
        lower,
        upper,
        -DURATION_LIMIT_US if lower is None else None,
        DURATION_LIMIT_US if upper is None else None,
        Fraction(1),
    )
    mine = (base["earliest"], base["latest"])
    others = ([table.earliest[it] for it in places], [table.latest[it] for it in places])
    (a1, a2), (b1, b2) = (mine, others) if role == "a" else (others, mine)
    found: list[float] = probability(a1, a2, b1, b2, window).tolist()
    return found
