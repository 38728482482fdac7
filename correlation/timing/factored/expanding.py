"""Expansion of factored records to alarms with one record per pair; without numpy and numba.

A table is held until all base records that refer to it have been read; the table contains their
number. In a transaction a table precedes its base records, in the same partition. Other records are
passed on unchanged, so that a topic may contain both forms.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from correlation.errors import CorrelationError, InvalidRecordError
from correlation.record_fields import Fields, check_version
from correlation.timing.alarm_format import (
    ALARM_VERSION,
    BASE,
    BY_PROBE,
    BY_REGION,
    FACTORED_VERSION,
    TARGETS,
    alarm_id,
)
from correlation.timing.intervals.integral import pair_probability
from correlation.timing.intervals.window import UNBOUNDED_US

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Alarm = dict[str, Any]


class MissingTableError(CorrelationError):
    """The table of a base record was not read completely: reading began after it."""


@dataclass(slots=True)
class _Table:
    """The targets of a table read so far, and the common fields of its records."""

    size: int
    stream: str
    key: str | None
    kind: str
    threshold: float
    # Ends of the window, in µs; None if alarms do not contain probabilities.
    window: tuple[int, int] | None
    uses: int = 0
    ids: list[str] = field(default_factory=list)
    earliest: list[int] = field(default_factory=list)
    latest: list[int] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    # Values of each attribute that the stream declares.
    attributes: dict[str, list[Any]] = field(default_factory=dict)

    def target(self, place: int) -> dict[str, Any]:
        """Return a target as an alarm contains it."""
        found: dict[str, Any] = {
            "id": self.ids[place],
            "stream": self.stream,
            "key": self.key,
            "earliest": self.earliest[place],
            "latest": self.latest[place],
        }
        if self.attributes:
            found["attributes"] = {name: it[place] for name, it in self.attributes.items()}
        return found


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
        InvalidRecordError
            A field is missing or not valid.
        """
        if not is_factored(record):
            yield dict(record)
            return
        fields = Fields(record)
        check_version(fields, FACTORED_VERSION)
        if record["record"] == TARGETS:
            self._hold(fields)
        else:
            yield from self._expand(fields)

    def _hold(self, fields: Fields) -> None:
        ident, first, ids = fields.text("table"), fields.integer("first"), fields.texts("ids")
        count = len(ids)
        earliest, latest = (fields.integers(name, count) for name in ("earliest", "latest"))
        late = fields.integers("late")
        if not set(late) <= set(range(count)):
            raise fields.refuse("late", f"must be positions less than {count}")
        uses, read = fields.integer("uses"), _read_table(fields)
        columns = _read_attributes(fields, count)
        table = self._tables.setdefault(ident, read)
        if first == 0:
            table.uses += uses
        # A repeated part is ignored: tables with equal ids are equal.
        if first == len(table.ids):
            if first and columns.keys() != table.attributes.keys():
                raise InvalidRecordError("attributes", "must be those of the table's first record")
            table.late.update(first + place for place in late)
            table.ids += ids
            table.earliest += earliest
            table.latest += latest
            for name, values in columns.items():
                table.attributes.setdefault(name, []).extend(values)

    def _expand(self, fields: Fields) -> Iterator[Alarm]:
        ident = fields.text("table")
        table = self._tables.get(ident)
        if table is None or len(table.ids) < table.size:
            raise MissingTableError(
                f"table {ident} is missing: it was written before the start of reading; begin "
                "reading at an earlier offset, or skip the record"
            )
        yield from _write_alarms(fields, table)
        table.uses -= 1
        if table.uses == 0:
            del self._tables[ident]


def _read_table(fields: Fields) -> _Table:
    """Read the common fields of the records of a table."""
    lower, upper = fields.integer_or_null("lower_us"), fields.integer_or_null("upper_us")
    window = (-UNBOUNDED_US if lower is None else lower, UNBOUNDED_US if upper is None else upper)
    return _Table(
        fields.integer("size"),
        fields.text("stream"),
        fields.text_or_null("key"),
        fields.text("kind"),
        fields.number("threshold"),
        window if fields.flag("report_probability") else None,
    )


def _read_attributes(fields: Fields, count: int) -> dict[str, list[Any]]:
    """Read the values of each attribute of `count` targets."""
    if not fields.has("attributes"):
        return {}
    columns = fields.inner("attributes")
    for name in columns.content:
        if len(columns.values(name)) != count:
            raise columns.refuse(name, f"must have one value for each of {count} targets")
    return dict(columns.content)


def _read_places(fields: Fields, size: int) -> Iterator[tuple[int, str]]:
    """Yield the places of a base event's targets, and how each was decided."""
    if fields.has("certain"):
        certain = fields.integers("certain", 2)
        if not 0 <= certain[0] <= certain[1] <= size:
            raise fields.refuse("certain", f"must be a range within the {size} targets")
        for place in range(*certain):
            yield place, BY_REGION
    for first, bits in _read_bitmaps(fields):
        for number, byte in enumerate(bits):
            for bit in range(8):
                if byte & (128 >> bit):
                    place = first + 8 * number + bit
                    if not 0 <= place < size:
                        raise fields.refuse("probed", f"must be within the {size} targets")
                    yield place, BY_PROBE


def _read_bitmaps(fields: Fields) -> Iterator[tuple[int, bytes]]:
    for item in fields.values("probed") if fields.has("probed") else ():
        try:
            first, bitmap = item
            yield int(first), a2b_base64(bitmap, strict_mode=True)
        except (TypeError, ValueError, Base64Error) as error:
            raise fields.refuse("probed", "must be a list of [first, base64]") from error


def _write_alarms(fields: Fields, table: _Table) -> Iterator[Alarm]:
    """Build the alarms of a base record."""
    role, other = ("a", "b") if fields.has("a") else ("b", "a")
    event = fields.inner(role)
    base = {"id": event.text("id"), "stream": event.text("stream"), **event.content}
    base |= {name: event.integer(name) for name in ("earliest", "latest")}
    condition, version = fields.text("condition"), fields.integer("version")
    is_late = fields.flag("late")
    common: dict[str, Any] = {
        "v": ALARM_VERSION,
        "condition": condition,
        "version": version,
        "detected_at": fields.integer("detected_at"),
        "kind": table.kind,
        "threshold": table.threshold,
    }
    # All places are read first: a damaged record has no alarms.
    for place, decided_by in list(_read_places(fields, table.size)):
        events = {role: base, other: table.target(place)}
        a, b = events["a"], events["b"]
        alarm = {
            **common,
            "alarm_id": alarm_id(condition, version, a["id"].encode(), b["id"].encode()),
            "decided_by": decided_by,
            "late": is_late or place in table.late,
            **events,
        }
        if table.window is not None:
            lower, upper = table.window
            alarm["probability"] = pair_probability(
                lower + a["latest"] - b["earliest"],
                b["latest"] - upper - a["earliest"],
                a["latest"] - a["earliest"],
                b["latest"] - b["earliest"],
            )
        yield alarm
