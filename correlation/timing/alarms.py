"""Alarms: the pairs of a timing condition as records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.buffer import Segment
from correlation.columns import Int64s
from correlation.operators import OutputRecord
from correlation.timing.conditions import TimingCondition
from correlation.timing.probability import probability

DECIDED_BY = ("satisfaction_region", "probe", "lookup")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def alarm_id(condition: str, version: int, a_id: bytes, b_id: bytes) -> str:
    """Derive an alarm's id, so that whoever sees an alarm twice can tell.

    Parameters
    ----------
    condition, version
        That found the pair.
    a_id, b_id : bytes
        Ids of the events.
    """
    digest = _alarm_digest(condition, version)
    digest.update(_framed(a_id) + _framed(b_id))
    return digest.hexdigest()


def _alarm_digest(condition: str, version: int) -> blake2b:
    """Start the digest that all alarms of a condition have in common."""
    return blake2b(_framed(condition.encode()) + _framed(str(version).encode()), digest_size=16)


def _framed(part: bytes) -> bytes:
    """Put the length before a part, so that no two lists of parts look alike."""
    return len(part).to_bytes(8, "little") + part


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Pairs of one condition: rows of a segment of A beside rows of a segment of B.

    Parameters
    ----------
    condition : TimingCondition
        That the pairs satisfy.
    keyed : bool
        Whether the join key is the users' own (partitioning by key).
    a, b : Segment
        Hold the events.
    a_rows, b_rows : int64[n]
        Pair i is the events a_rows[i] and b_rows[i].
    decided_by : uint8[n]
        Index into DECIDED_BY.
    """

    condition: TimingCondition
    keyed: bool
    a: Segment
    b: Segment
    a_rows: Int64s
    b_rows: Int64s
    decided_by: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.a_rows)

    def select(self, chosen: NDArray[np.bool_]) -> PairBatch:
        """Give the chosen pairs."""
        return PairBatch(
            self.condition,
            self.keyed,
            self.a,
            self.b,
            self.a_rows[chosen],
            self.b_rows[chosen],
            self.decided_by[chosen],
        )

    def records(self, detected_at_us: int) -> Iterator[OutputRecord]:
        """Give the alarms as records; see `Result.records`."""
        condition = self.condition
        keys = self.a.key_of_rows(self.a_rows).to_list() if self.keyed else None
        a_events = _describe_events(condition.a, self.a, self.a_rows, keys)
        b_events = _describe_events(condition.b, self.b, self.b_rows, keys)
        late = (self.a.late[self.a_rows] | self.b.late[self.b_rows]).tolist()
        decided_by = self.decided_by.tolist()
        probabilities = self._probabilities() if condition.report_probability else None
        a_ids = map(_framed, self.a.id.take(self.a_rows).to_list())
        b_ids = map(_framed, self.b.id.take(self.b_rows).to_list())
        start = _alarm_digest(condition.name, condition.version)
        common: dict[str, Any] = {
            "v": 1,
            "condition": condition.name,
            "version": condition.version,
            "kind": condition.kind,
            "threshold": float(condition.threshold),
            "detected_at": detected_at_us,
        }
        headers = _headers(condition.name, detected_at_us)
        for i, (a_id, b_id) in enumerate(zip(a_ids, b_ids, strict=True)):
            digest = start.copy()
            digest.update(a_id + b_id)
            ident = digest.hexdigest()
            value = {
                **common,
                "alarm_id": ident,
                "decided_by": DECIDED_BY[decided_by[i]],
                "late": late[i],
                "a": a_events[i],
                "b": b_events[i],
            }
            if probabilities is not None:
                value["probability"] = probabilities[i]
            key = keys[i] if keys is not None else condition.name.encode()
            yield OutputRecord(
                "alarms", condition.output_topic, key, value, {**headers, "ce_id": ident.encode()}
            )

    def _probabilities(self) -> list[float]:
        return probability(  # type: ignore[no-any-return]
            self.a.earliest[self.a_rows],
            self.a.latest[self.a_rows],
            self.b.earliest[self.b_rows],
            self.b.latest[self.b_rows],
            self.condition.window,
        ).tolist()


def _headers(condition: str, detected_at_us: int) -> dict[str, bytes]:
    """CloudEvents headers, binary mode."""
    moment = (_EPOCH + timedelta(microseconds=detected_at_us)).isoformat()
    return {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_type": b"coincide.alarm.v1",
        "ce_source": f"/coincide/conditions/{condition}".encode(),
        "ce_time": moment.encode(),
    }


def _describe_events(
    stream: str, segment: Segment, rows: Int64s, keys: list[bytes] | None
) -> list[dict[str, Any]]:
    """Write each event once, however many pairs it is in."""
    distinct, places = np.unique(rows, return_inverse=True)
    ids = segment.id.take(distinct).to_list()
    earliest = segment.earliest[distinct].tolist()
    latest = segment.latest[distinct].tolist()
    names = segment.key_of_rows(distinct).to_list() if keys is not None else None
    events = [
        {
            "id": ids[i].decode("utf-8", "backslashreplace"),
            "stream": stream,
            "key": names[i].decode("utf-8", "backslashreplace") if names is not None else None,
            "earliest": earliest[i],
            "latest": latest[i],
        }
        for i in range(len(distinct))
    ]
    return [events[place] for place in places.tolist()]
