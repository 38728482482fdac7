"""Factored records: tables of targets, and base events that refer to them (docs/factored.md)."""

from __future__ import annotations

import json
from binascii import b2a_base64
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from correlation.buffers.attribute_json import attribute_bytes, encode_attributes, encode_values
from correlation.buffers.columns import BytesColumn
from correlation.operators import Heading, OutputRecord, encode_json, make_heading
from correlation.result_format import as_text, framed
from correlation.timing.alarm_format import BASE, FACTORED_TYPE, FACTORED_VERSION, TARGETS
from correlation.timing.alarm_writing import event_record
from correlation.timing.alarms import NO_ATTRIBUTES, AttributeNames
from correlation.timing.factored.layout import BITMAP_BYTES, Table, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.operators import Encode
    from correlation.timing.conditions import TimingCondition
    from correlation.timing.factored.search import Spans

# Attributes of a table under construction, as JSON that is added to the encoded record.
_ENCODED = "attributes"


class _BaseEvent(NamedTuple):
    """A base event with its row of `Spans`."""

    id: bytes
    earliest: int
    latest: int
    late: bool
    certain: list[int]
    # First targets of the left and of the right region.
    firsts: tuple[int, int]
    bits_at: list[int]
    pairs: int


@dataclass(frozen=True, slots=True)
class FactoredBatch:
    """The pairs of a block's events with the events of a segment, for one condition.

    Parameters
    ----------
    condition : TimingCondition
        The condition that the pairs satisfy.
    keyed : bool
        Whether the join key is the users' own (partitioning by key).
    base, target : Segment
        The segments that hold the events.
    base_is_a : bool
        Whether the base events are of A.
    spans : Spans
        One or more pairs.
    attributes : AttributeNames
        Attributes of the events of A and of B.
    """

    condition: TimingCondition
    keyed: bool
    base: Segment
    target: Segment
    base_is_a: bool
    spans: Spans
    attributes: AttributeNames = NO_ATTRIBUTES
    tables: tuple[Table, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = self._names_of_targets()
        more = attribute_bytes(self.target.columns, len(self.target), names) if names else None
        object.__setattr__(self, "tables", tuple(lay_out(self.spans, self.target.id, more)))

    def _names_of_targets(self) -> tuple[str, ...]:
        return self.attributes.b if self.base_is_a else self.attributes.a

    def __len__(self) -> int:
        return sum(self.count_records().values())

    def count_records(self) -> dict[str, int]:
        """Count the records of either kind."""
        return {
            TARGETS: sum(len(table.cuts) - 1 for table in self.tables),
            BASE: sum(int(table.pieces.sum()) for table in self.tables),
        }

    def heading(self, detected_at_us: int) -> Heading:
        """Return channel, topic and CloudEvents headers; see `Result.heading`."""
        return make_heading(self.condition, detected_at_us, FACTORED_TYPE)

    def base_ready_us(self) -> Int64s:
        """Return, for each base event, the time from which all of its pairs could be known."""
        last = self.spans.reach()[:, 1] - 1
        return np.maximum(self.base.latest[self.spans.base], self.target.latest[last])

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`; for a table, the latest time of its last target."""
        base_ready = self.base_ready_us()
        parts = [np.zeros(0, np.int64)]
        for table in self.tables:
            parts.append(self.target.latest[table.cuts[1:] - 1])
            parts.append(np.repeat(base_ready[table.rows], table.pieces))
        return np.concatenate(parts)

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Yield the records; see `Result.records`. A table precedes its base events."""
        moments = iter(np.broadcast_to(np.asarray(detected_at_us, np.int64), len(self)).tolist())
        common = {
            "v": FACTORED_VERSION,
            "condition": self.condition.name,
            "version": self.condition.version,
        }
        events = self._base_events()
        for table in self.tables:
            key = self.target.key_of_rows(table.cuts[:1])[0] if self.keyed else None
            base = [events[row] for row in table.rows.tolist()]
            ident = self._identify(table, key, base)
            record_key = self.condition.name.encode() if key is None else key
            for sort, written in (
                (TARGETS, self._write_targets(table, key)),
                (BASE, self._write_base(table, key, base)),
            ):
                for number, content in enumerate(written):
                    moment = next(moments)
                    attributes = content.pop(_ENCODED, b"")
                    if sort == BASE:
                        content["detected_at"] = moment
                    value = encode({**common, "record": sort, "table": ident, **content})
                    if attributes:
                        value = b'%b,"attributes":%b}' % (value[:-1], attributes)
                    yield OutputRecord(record_key, value, f"{ident}-{sort}-{number}")

    def _base_events(self) -> list[_BaseEvent]:
        spans, rows = self.spans, self.spans.base
        columns = zip(
            self.base.id.take(rows).to_list(),
            self.base.earliest[rows].tolist(),
            self.base.latest[rows].tolist(),
            self.base.late[rows].tolist(),
            spans.certain.tolist(),
            zip(spans.left[:, 0].tolist(), spans.right[:, 0].tolist(), strict=True),
            spans.bits_at.tolist(),
            spans.pairs.tolist(),
            strict=True,
        )
        return [_BaseEvent(*column) for column in columns]

    def _facts(self) -> dict[str, Any]:
        """Return the alarm fields of the condition, and the window for probabilities."""
        condition = self.condition
        return {
            "kind": condition.kind,
            "threshold": float(condition.threshold),
            "report_probability": condition.report_probability,
            "lower_us": condition.window.lower_us,
            "upper_us": condition.window.upper_us,
        }

    def _identify(self, table: Table, key: bytes | None, base: list[_BaseEvent]) -> str:
        """Compute the table id from the table's content and the ids of its base events.

        Every pair is searched once. Two tables, of any time, have the same id only if they have
        the same content and their base events have the same ids.
        """
        condition, target = self.condition, self.target
        begin, end = int(table.cuts[0]), int(table.cuts[-1])
        digest = blake2b(digest_size=16)
        words = [
            *(condition.name, condition.version, condition.a, condition.b, self.base_is_a),
            *(self._facts(), self.keyed, int(table.pieces.sum())),
        ]
        for part in (
            encode_json(words),
            key or b"",
            *(
                column[begin:end].astype("<i8").tobytes()
                for column in (target.earliest, target.latest, target.late)
            ),
            (target.id.offsets[begin : end + 1] - target.id.offsets[begin]).astype("<i8").tobytes(),
            target.id.data[target.id.offsets[begin] : target.id.offsets[end]].tobytes(),
            *(event.id for event in base),
            *(self._encode_target_values(name, begin, end) for name in self._names_of_targets()),
        ):
            digest.update(framed(part))
        return digest.hexdigest()

    def _write_targets(self, table: Table, key: bytes | None) -> Iterator[dict[str, Any]]:
        condition, target = self.condition, self.target
        cuts = table.cuts.tolist()
        facts = {
            **self._facts(),
            "stream": condition.b if self.base_is_a else condition.a,
            "key": None if key is None else as_text(key),
            "size": cuts[-1] - cuts[0],
            "uses": int(table.pieces.sum()),
        }
        names = self._names_of_targets()
        for begin, end in pairwise(cuts):
            attributes = b",".join(
                b"%b:%b" % (encode_json(name), self._encode_target_values(name, begin, end))
                for name in names
            )
            yield {
                **({_ENCODED: b"{%b}" % attributes} if names else {}),
                **facts,
                "first": begin - cuts[0],
                "ids": [as_text(event_id) for event_id in _slice(target.id, begin, end)],
                "earliest": target.earliest[begin:end].tolist(),
                "latest": target.latest[begin:end].tolist(),
                "late": np.flatnonzero(target.late[begin:end]).tolist(),
            }

    def _encode_target_values(self, name: str, begin: int, end: int) -> bytes:
        """Return the values of an attribute of consecutive targets as a JSON list."""
        rows = np.arange(begin, end, dtype=np.int64)
        return b"[%b]" % b",".join(encode_values(self.target.columns, rows, name))

    def _write_base(
        self, table: Table, key: bytes | None, base: list[_BaseEvent]
    ) -> Iterator[dict[str, Any]]:
        role, stream = ("a", self.condition.a) if self.base_is_a else ("b", self.condition.b)
        origin = int(table.cuts[0])
        names = self.attributes.a if self.base_is_a else self.attributes.b
        more: Iterable[dict[str, Any]] = repeat({}, len(base))
        if names:
            values = encode_attributes(self.base.columns, self.spans.base[table.rows], names)
            more = [{"attributes": it} for it in json.loads(b"[%b]" % b",".join(values))]
        for event, attributes, pieces in zip(base, more, table.pieces.tolist(), strict=True):
            found = event_record(stream, event.id, key, event.earliest, event.latest)
            head = {role: {**found, **attributes}, "late": event.late}
            for piece in range(pieces):
                yield head | self._write_spans(event, piece, pieces, origin)

    def _write_spans(
        self, event: _BaseEvent, piece: int, pieces: int, origin: int
    ) -> dict[str, Any]:
        """Return the pairs for one record: certain pairs in the first, bitmaps cut by size."""
        begin, end = event.certain
        content: dict[str, Any] = {}
        if begin < end and piece == 0:
            content["certain"] = [begin - origin, end - origin]
        pairs = end - begin if piece == 0 else 0
        probed = []
        skipped = piece * BITMAP_BYTES
        for side, first in enumerate(event.firsts):
            at = event.bits_at[side] + skipped
            bits = self.spans.bits[at : min(at + BITMAP_BYTES, event.bits_at[side + 1])].tobytes()
            if bits:
                probed.append(
                    [first + 8 * skipped - origin, b2a_base64(bits, newline=False).decode()]
                )
                pairs += int.from_bytes(bits, "big").bit_count()
        if probed:
            content["probed"] = probed
        return {"pairs": event.pairs if pieces == 1 else pairs, **content}


def _slice(column: BytesColumn, begin: int, end: int) -> list[bytes]:
    """Return consecutive values without reading the others."""
    offsets = column.offsets[begin : end + 1]
    data = column.data[offsets[0] : offsets[-1]]
    return BytesColumn(data, offsets - offsets[0]).to_list()
