"""What the job says of itself: the newest record of each slot and of the job, by metrics topic.

A slot's record holds totals since the slot began, so the newest one is all there is to know and a
restart of either side loses nothing. Totals and histogram buckets are summed over the slots.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from correlation.config_records import Unreadable, list_unreadable
from correlation.engine.contract import ContractFacts, declaration

if TYPE_CHECKING:
    from correlation.resources.streams import Stream
    from service.log import LogRecord

_LOGGER = logging.getLogger(__name__)
_JOB = b"job"
_SLOT = b"slot/"
# A slot that fell this far behind the others belongs to an earlier checkpoint: its totals stay in
# the sums, its present state does not.
_FORGOTTEN_US = 600_000_000
Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """A number under a name and labels."""

    name: str
    labels: Labels
    value: float


class Histogram(NamedTuple):
    """Cumulative counts by upper bound, and the sum of what was counted."""

    name: str
    labels: Labels
    buckets: dict[str, int]
    total: float


class ConditionFacts(NamedTuple):
    """What the slots say of one condition; None where no slot has said anything."""

    state: str
    applied_version: int | None
    applied_offset: int | None
    last_alarm_at: int | None
    detail: str | None


class MetricsView:
    """Fold of the metrics topic; `apply` is called by one thread, any thread may read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[bytes, Mapping[str, Any]] = {}
        self._job: Mapping[str, Any] | None = None
        self.unreadable = 0

    def apply(self, record: LogRecord) -> None:
        """Take one record; one that cannot be read is counted and logged, and changes nothing."""
        key = record.key or b""
        try:
            value = None if record.value is None else _checked(key, orjson.loads(record.value))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            self.unreadable += 1
            _LOGGER.error(  # noqa: TRY400  the trace says no more than the sentence
                "record at offset %s of the metrics topic cannot be read: %s", record.offset, error
            )
            return
        with self._lock:
            if key == _JOB:
                self._job = self._with_known_losses(value)
            elif value is None:
                self._slots.pop(key, None)
            else:
                self._slots[key] = value

    def _with_known_losses(self, job: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a record of the job with the losses of the last one where it has none yet.

        A job that starts does not know them before it has read its checkpoint; a counter that
        vanished meanwhile, or went back to 0, would look like new losses when it is there again.
        """
        if job is None or job["lost"] is not None or self._job is None:
            return job
        return {**job, "lost": self._job["lost"]}

    def job(self) -> Mapping[str, Any] | None:
        """Give the newest record of the job, or None."""
        with self._lock:
            return self._job

    def counters(self) -> list[Sample]:
        """Totals, summed over the slots."""
        return _summed(entry for slot in self._all() for entry in slot["counters"])

    def gauges(self) -> list[Sample]:
        """Sizes as of the newest batch, summed over the slots; of times the least."""
        return _summed(entry for slot in self._living() for entry in slot["gauges"])

    def histograms(self) -> list[Histogram]:
        """Histograms, summed over the slots bucket by bucket."""
        buckets: dict[tuple[str, Labels], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        totals: dict[tuple[str, Labels], float] = defaultdict(float)
        for slot in self._all():
            for name, labels, found in slot["histograms"]:
                key = (name, _labels(labels))
                totals[key] += found["sum"]
                for bound, count in found["buckets"]:
                    buckets[key][bound] += count
        return [
            Histogram(*key, dict(sorted(counts.items(), key=_bound)), totals[key])
            for key, counts in sorted(buckets.items())
        ]

    def contract(self, stream: Stream) -> ContractFacts | None:
        """Merge what all slots saw of a stream as it is declared now; None: nothing yet."""
        declared, merged = declaration(stream), None
        for slot in self._all():
            facts = slot["contracts"].get(stream.name)
            if facts is not None and facts.declared == declared:
                merged = facts if merged is None else merged.merged(facts)
        return merged

    def by_label(self, name: str, label: str, **labels: str) -> dict[str, int]:
        """Sum a counter over everything with these labels, by another label."""
        wanted = set(labels.items())
        return {
            dict(it.labels)[label]: int(it.value)
            for it in self.counters()
            if it.name == name and wanted <= set(it.labels)
        }

    def slots(self) -> int | None:
        """Give the job's number of slots; None where it has not said anything."""
        newest = max(self._living(), key=lambda slot: slot["at"], default=None)
        return None if newest is None else int(newest["slots"])

    def watermarks(self) -> dict[str, int | None]:
        """Watermark of each stream, in µs: the least over the slots, None while one knows none."""
        marks: dict[str, list[int | None]] = defaultdict(list)
        for slot in self._living():
            for stream, found in slot["watermarks"].items():
                marks[stream].append(found["watermark"])
        return {stream: _least(found) for stream, found in sorted(marks.items())}

    def partition_marks(self, stream: str) -> dict[str, int | None]:
        """Watermark of each Kafka partition of a stream, in µs, the least over the slots."""
        marks: dict[str, list[int | None]] = defaultdict(list)
        for slot in self._living():
            for partition, mark in slot["watermarks"].get(stream, {}).get("partitions", {}).items():
                marks[partition].append(mark)
        return {partition: _least(found) for partition, found in sorted(marks.items())}

    def refused_heartbeats(self, stream: str) -> int:
        """Heartbeats of a stream that were refused; every slot gets all of them."""
        slots = self._living()
        return max(
            (slot["watermarks"].get(stream, {}).get("refused", 0) for slot in slots), default=0
        )

    def condition(self, name: str) -> ConditionFacts:
        """Sum up what the slots say of a condition; the slot that is furthest behind counts."""
        slots = self._living()
        found = [slot["conditions"][name] for slot in slots if name in slot["conditions"]]
        if not found or len(found) < len(slots):
            return ConditionFacts("pending", None, None, None, None)
        behind = min(found, key=lambda facts: (facts["config_offset"], facts["version"]))
        alarms = [facts["last_alarm_at"] for facts in found if facts["last_alarm_at"] is not None]
        return ConditionFacts(
            behind["state"],
            behind["version"],
            behind["config_offset"],
            max(alarms, default=None),
            behind["detail"],
        )

    def total(self, name: str, **labels: str) -> int:
        """Sum of a counter over everything with these labels."""
        wanted = set(labels.items())
        return int(
            sum(it.value for it in self.counters() if it.name == name and wanted <= set(it.labels))
        )

    def gauge(self, name: str, **labels: str) -> int | None:
        """Sum of a gauge over everything with these labels; None when there is none."""
        wanted = set(labels.items())
        found = [it.value for it in self.gauges() if it.name == name and wanted <= set(it.labels)]
        return int(sum(found)) if found else None

    def hit_ratios(self) -> list[Sample]:
        """Share of the events in probe regions decided by the look-up tables."""
        probed = {it.labels: it.value for it in self.counters() if it.name == PROBED}
        hits = {it.labels: it.value for it in self.counters() if it.name == HITS}
        return [
            Sample("lookup_hit_ratio", labels, hits.get(labels, 0) / count)
            for labels, count in sorted(probed.items())
            if count > 0
        ]

    def _all(self) -> list[Mapping[str, Any]]:
        with self._lock:
            found = list(self._slots.values())
        # A new checkpoint may have fewer slots than the one whose records still stand here.
        slots = max(found, key=lambda slot: slot["at"])["slots"] if found else 0
        return [slot for slot in found if slot["slot"] < slots]

    def _living(self) -> list[Mapping[str, Any]]:
        slots = self._all()
        newest = max((slot["at"] for slot in slots), default=0)
        return [slot for slot in slots if slot["at"] >= newest - _FORGOTTEN_US]


PROBED = "probe_region_events_total"
HITS = "lookup_hits_total"


def _checked(key: bytes, value: Any) -> Mapping[str, Any]:  # noqa: ANN401  any JSON value
    """Give a record back when everything that is read of it later is there."""
    if value["v"] != 1:
        raise ValueError(f"version {value['v']!r}")
    if key == _JOB:
        return _checked_job(value)
    checked: dict[str, Any] = {
        "at": int(value["at"]),
        "slot": int(key.removeprefix(_SLOT)),
        # Of the checkpoint: what does not say so is not forgotten.
        "slots": int(value.get("slots", sys.maxsize)),
        "conditions": {
            name: {
                "version": int(facts["version"]),
                "state": str(facts["state"]),
                "detail": _text(facts.get("detail")),
                "config_offset": int(facts["config_offset"]),
                "last_alarm_at": _whole(facts["last_alarm_at"]),
            }
            for name, facts in value.get("conditions", {}).items()
        },
        "watermarks": {
            stream: {
                "watermark": _whole(found["watermark"]),
                "refused": int(found.get("refused_heartbeats", 0)),
                "partitions": {
                    str(partition): _whole(mark)
                    for partition, mark in found.get("partitions", {}).items()
                },
            }
            for stream, found in value.get("watermarks", {}).items()
        },
        "contracts": {
            stream: ContractFacts.from_record(facts)
            for stream, facts in value.get("contracts", {}).items()
        },
        "histograms": [
            (
                str(name),
                dict(labels),
                {
                    "buckets": [(_bound_text(bound), int(n)) for bound, n in found["buckets"]],
                    "sum": float(found["sum"]),
                },
            )
            for name, labels, found in value.get("histograms", [])
        ],
    }
    for part in ("counters", "gauges"):
        checked[part] = [
            (str(name), dict(labels), float(number)) for name, labels, number in value.get(part, [])
        ]
    return checked


def _checked_job(value: Mapping[str, Any]) -> Mapping[str, Any]:
    rate = value.get("input_rate")
    unreadable = [
        Unreadable(str(found["key"]).encode(), int(found["offset"]), str(found["problem"]))
        for found in value.get("unreadable_records") or ()
    ]
    return {
        "at": int(value["at"]),
        "state": str(value["state"]),
        "query_id": _text(value.get("query_id")),
        "batch": _whole(value.get("batch")),
        "batch_events": _whole(value.get("batch_events")),
        "input_rate": None if rate is None else float(rate),
        "lag": _by_partition(value.get("lag")),
        # Null: not known yet.
        "lost": None if value.get("lost") is None else _by_partition(value["lost"]),
        "missing_topics": [str(topic) for topic in value.get("missing_topics") or ()],
        "unreadable_records": list_unreadable(unreadable),
        "unreadable_records_total": int(value.get("unreadable_records_total", len(unreadable))),
        "recreated_topics": {
            str(topic): {
                "former_id": str(found["former_id"]),
                "id": str(found["id"]),
                "at": int(found["at"]),
            }
            for topic, found in (value.get("recreated_topics") or {}).items()
        },
        "durations": {
            str(phase): float(seconds) for phase, seconds in (value.get("durations") or {}).items()
        },
        "exception": _text(value.get("exception")),
        "applied_config_offset": _whole(value.get("applied_config_offset")),
    }


def _by_partition(value: Any) -> dict[str, dict[str, int]]:  # noqa: ANN401  any JSON value
    return {
        str(topic): {str(partition): int(count) for partition, count in found.items()}
        for topic, found in (value or {}).items()
    }


def _whole(value: Any) -> int | None:  # noqa: ANN401  any JSON value
    return None if value is None else int(value)


def _text(value: Any) -> str | None:  # noqa: ANN401  any JSON value
    return None if value is None else str(value)


def _bound_text(bound: Any) -> str:  # noqa: ANN401  any JSON value
    """Write an upper bound as Prometheus does; raises ValueError for what is no number."""
    return "+Inf" if float(bound) == float("inf") else str(float(bound))


def _labels(labels: Mapping[str, Any]) -> Labels:
    return tuple(sorted((name, str(value)) for name, value in labels.items()))


def _summed(entries: Iterable[tuple[str, Mapping[str, Any], float]]) -> list[Sample]:
    sums: dict[tuple[str, Labels], float] = defaultdict(float)
    times: dict[tuple[str, Labels], float] = {}
    for name, labels, value in entries:
        key = (name, _labels(labels))
        if name.endswith("_timestamp_seconds"):
            times[key] = min(value, times.get(key, value))
        else:
            sums[key] += value
    return [Sample(*key, value) for key, value in sorted((sums | times).items())]


def _bound(bucket: tuple[str, int]) -> float:
    return float(bucket[0])


def _least(marks: list[int | None]) -> int | None:
    known = [mark for mark in marks if mark is not None]
    return min(known) if len(known) == len(marks) and known else None
