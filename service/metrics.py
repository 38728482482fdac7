"""Metrics of the job: the newest records of each slot, of merged results and of the job.

A slot's record holds totals since the slot began, and that of merged results those of conditions
whose slots share their results. The newest record is therefore sufficient, and a restart of the job
or the service loses no counts. Totals and buckets are summed over these records.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from prometheus_client.utils import floatToGoString
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, model_validator

from correlation.config_records import Unreadable, list_unreadable
from correlation.engine.contract import ContractFacts, declaration
from correlation.kinds import GAUGES, RATIOS

if TYPE_CHECKING:
    from correlation.resources.streams import Stream
    from service.log import LogRecord

_LOGGER = logging.getLogger(__name__)
_JOB = b"job"
_SLOT = b"slot/"
_MERGED = b"merged"
# A slot whose record is this much older than the newest belongs to an earlier checkpoint: its
# totals are summed, its gauges, watermarks and condition states are ignored.
_FORGOTTEN_US = 600_000_000
_COMBINED: Mapping[str, Callable[[float, float], float]] = {"sum": add, "max": max, "min": min}
Labels = tuple[tuple[str, str], ...]
_Number = tuple[str, dict[str, str], float]
_ByPartition = dict[str, dict[str, int]]


class _Part(BaseModel):
    """A part of a record; unknown fields are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True, hide_input_in_errors=True)


class _ConditionInSlot(_Part):
    version: int
    state: str
    detail: str | None = None
    config_offset: int
    last_alarm_at: int | None


class _StreamInSlot(_Part):
    watermark: int | None
    refused_heartbeats: int = 0
    partitions: dict[str, int | None] = {}


class _Buckets(_Part):
    buckets: list[tuple[Annotated[str, BeforeValidator(floatToGoString)], int]]
    sum: float


class _Slot(_Part):
    v: Literal[1]
    at: int
    # Number of slots of the checkpoint; a slot whose record lacks it is always counted.
    slots: int = sys.maxsize
    conditions: dict[str, _ConditionInSlot] = {}
    watermarks: dict[str, _StreamInSlot] = {}
    contracts: dict[str, Annotated[ContractFacts, PlainValidator(ContractFacts.from_record)]] = {}
    counters: list[_Number] = []
    gauges: list[_Number] = []
    histograms: list[tuple[str, dict[str, str], _Buckets]] = []
    number: int = 0


class _Merged(_Part):
    v: Literal[1]
    counters: list[_Number] = []
    gauges: list[_Number] = []
    histograms: list[tuple[str, dict[str, str], _Buckets]] = []
    last_alarm_at: dict[str, int] = {}


class _RecreatedTopic(_Part):
    former_id: str
    id: str
    at: int


class _UnreadableRecord(_Part):
    key: str
    offset: int
    problem: str


_NOTHING_MERGED = _Merged(v=1)


class _Job(_Part):
    v: Literal[1]
    at: int
    state: str
    # None: the job has not claimed the installation yet, or is of an earlier version.
    claim: int | None = None
    query_id: str | None = None
    batch: int | None = None
    batch_events: int | None = None
    input_rate: float | None = None
    lag: _ByPartition = {}
    last_batch_at: int | None = None
    # None: not known yet.
    lost: _ByPartition | None = None
    missing_topics: list[str] = []
    unreadable_records: list[_UnreadableRecord] = []
    unreadable_records_total: int | None = None
    recreated_topics: dict[str, _RecreatedTopic] = {}
    durations: dict[str, float] = {}
    memory: dict[str, int] = {}
    exception: str | None = None
    slots: int | None = None
    wanted_slots: int | None = None
    slots_problem: str | None = None
    applied_config_offset: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        """Treat null as a missing field."""
        if not isinstance(value, dict):
            return value
        return {name: it for name, it in value.items() if it is not None}


class Sample(NamedTuple):
    """A metric value with its name and labels."""

    name: str
    labels: Labels
    value: float


class Histogram(NamedTuple):
    """Cumulative counts by upper bound, and the sum of the observed values."""

    name: str
    labels: Labels
    buckets: dict[str, int]
    total: float


class ConditionFacts(NamedTuple):
    """State of one condition over all slots; None while a slot has not reported it."""

    state: str
    applied_version: int | None
    applied_offset: int | None
    last_alarm_at: int | None
    detail: str | None


class MetricsView:
    """Fold of the metrics topic; `apply` is called by one thread, any thread may read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[bytes, _Slot] = {}
        self._merged = _NOTHING_MERGED
        self._job: Mapping[str, Any] | None = None
        # Newest claim of the installation: an earlier job may still write records.
        self._claim = 0
        self.unreadable = 0

    def apply(self, record: LogRecord) -> None:
        """Apply one record; an unreadable record is counted and logged, and changes nothing."""
        key = record.key or b""
        try:
            value = None if record.value is None else _read(key, record.value)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            self.unreadable += 1
            _LOGGER.error(  # noqa: TRY400  the trace says no more than the sentence
                "record at offset %s of the metrics topic cannot be read: %s", record.offset, error
            )
            return
        with self._lock:
            if isinstance(value, _Slot):
                self._slots[key] = value
            elif key == _MERGED:
                self._merged = value if isinstance(value, _Merged) else _NOTHING_MERGED
            elif key == _JOB:
                self._apply_job(None if isinstance(value, _Merged) else value)
            else:
                self._slots.pop(key, None)

    def _apply_job(self, job: Mapping[str, Any] | None) -> None:
        claim = None if job is None else job["claim"]
        if claim is not None:
            if claim < self._claim:
                return
            self._claim = claim
        self._job = self._with_known_losses(job)

    def _with_known_losses(self, job: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the job's record; while its losses are unknown, with those of the last record.

        A starting job does not know its losses before it has read its checkpoint. A counter that
        vanished meanwhile, or fell to 0, would look like new losses when it returns.
        """
        if job is None or job["lost"] is not None or self._job is None:
            return job
        return {**job, "lost": self._job["lost"]}

    def job(self) -> Mapping[str, Any] | None:
        """Return the newest record of the job, or None."""
        with self._lock:
            return self._job

    def counters(self) -> list[Sample]:
        """Return the totals, summed over the slots and merged results."""
        return _summed(entry for part in self._counted() for entry in part.counters)

    def gauges(self) -> list[Sample]:
        """Return the gauges of the newest batch: as their kind declares, or sums over the slots.

        Of times, the minimum is returned.
        """
        parts: list[_Slot | _Merged] = [*self._living(), self._merged]
        entries = (entry for part in parts for entry in part.gauges)
        return _summed(entries, _over_slots)

    def histograms(self) -> list[Histogram]:
        """Return the histograms, summed over the slots and merged results bucket by bucket."""
        buckets: dict[tuple[str, Labels], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        totals: dict[tuple[str, Labels], float] = defaultdict(float)
        for part in self._counted():
            for name, labels, found in part.histograms:
                key = (name, _labels(labels))
                totals[key] += found.sum
                for bound, count in found.buckets:
                    buckets[key][bound] += count
        return [
            Histogram(*key, dict(sorted(counts.items(), key=_bound)), totals[key])
            for key, counts in sorted(buckets.items())
        ]

    def contract(self, stream: Stream) -> ContractFacts | None:
        """Merge the slots' statistics of a stream under its present declaration, or None."""
        declared, merged = declaration(stream), None
        for slot in self._all():
            facts = slot.contracts.get(stream.name)
            if facts is not None and facts.declared == declared:
                merged = facts if merged is None else merged.merged(facts)
        return merged

    def by_label(self, name: str, label: str, **labels: str) -> dict[str, int]:
        """Return the samples of a counter with these labels, keyed by another label."""
        wanted = set(labels.items())
        return {
            dict(it.labels)[label]: int(it.value)
            for it in self.counters()
            if it.name == name and wanted <= set(it.labels)
        }

    def slots(self) -> int | None:
        """Return the job's number of slots; None before its first record."""
        newest = max(self._living(), key=lambda slot: slot.at, default=None)
        return None if newest is None else newest.slots

    def watermarks(self) -> dict[str, int | None]:
        """Return the watermark of each stream in µs: min over slots; None if one is unknown."""
        watermarks: dict[str, list[int | None]] = defaultdict(list)
        for slot in self._living():
            for stream, found in slot.watermarks.items():
                watermarks[stream].append(found.watermark)
        return {stream: _earliest(found) for stream, found in sorted(watermarks.items())}

    def partition_watermarks(self, stream: str) -> dict[str, int | None]:
        """Return the watermark of each Kafka partition of a stream in µs: min over slots."""
        watermarks: dict[str, list[int | None]] = defaultdict(list)
        for slot in self._living():
            if stream in slot.watermarks:
                for partition, watermark in slot.watermarks[stream].partitions.items():
                    watermarks[partition].append(watermark)
        return {partition: _earliest(found) for partition, found in sorted(watermarks.items())}

    def refused_heartbeats(self, stream: str) -> int:
        """Return the number of a stream's refused heartbeats; every slot reads all of them."""
        found = [slot.watermarks[stream] for slot in self._living() if stream in slot.watermarks]
        return max((it.refused_heartbeats for it in found), default=0)

    def condition(self, name: str) -> ConditionFacts:
        """Return the state of a condition, as reported by the slot that is furthest behind."""
        slots = self._living()
        found = [slot.conditions[name] for slot in slots if name in slot.conditions]
        if not found or len(found) < len(slots):
            return ConditionFacts("pending", None, None, None, None)
        behind = min(found, key=lambda facts: (facts.config_offset, facts.version))
        times = [self._merged.last_alarm_at.get(name), *(it.last_alarm_at for it in found)]
        alarms = [it for it in times if it is not None]
        return ConditionFacts(
            behind.state,
            behind.version,
            behind.config_offset,
            max(alarms, default=None),
            behind.detail,
        )

    def total(self, name: str, **labels: str) -> int:
        """Return the sum of a counter over all samples with these labels."""
        wanted = set(labels.items())
        return int(
            sum(it.value for it in self.counters() if it.name == name and wanted <= set(it.labels))
        )

    def gauge(self, name: str, **labels: str) -> int | None:
        """Return the sum of a gauge over all samples with these labels; None without samples."""
        wanted = set(labels.items())
        found = [it.value for it in self.gauges() if it.name == name and wanted <= set(it.labels)]
        return int(sum(found)) if found else None

    def ratios(self) -> list[Sample]:
        """Compute the ratios of counters that the kinds declare."""
        counted: dict[str, dict[Labels, float]] = defaultdict(dict)
        for it in self.counters():
            counted[it.name][it.labels] = it.value
        return [
            Sample(name, labels, counted[ratio.numerator].get(labels, 0) / count)
            for name, ratio in RATIOS.items()
            for labels, count in sorted(counted[ratio.denominator].items())
            if count > 0
        ]

    def _all(self) -> list[_Slot]:
        with self._lock:
            found = list(self._slots.values())
        # A new checkpoint may have fewer slots than the previous one, whose records remain.
        slots = max(found, key=lambda slot: slot.at).slots if found else 0
        return [slot for slot in found if slot.number < slots]

    def _counted(self) -> list[_Slot | _Merged]:
        return [*self._all(), self._merged]

    def _living(self) -> list[_Slot]:
        slots = self._all()
        newest = max((slot.at for slot in slots), default=0)
        return [slot for slot in slots if slot.at >= newest - _FORGOTTEN_US]


def _read(key: bytes, value: bytes) -> _Slot | _Merged | dict[str, Any]:
    """Parse a record; raise ValueError, TypeError or LookupError if it is not valid."""
    if key == _MERGED:
        return _Merged.model_validate_json(value)
    if key != _JOB:
        number = int(key.removeprefix(_SLOT))
        return _Slot.model_validate_json(value).model_copy(update={"number": number})
    job = _Job.model_validate_json(value)
    found = [Unreadable(it.key.encode(), it.offset, it.problem) for it in job.unreadable_records]
    total = job.unreadable_records_total
    return job.model_dump() | {
        "unreadable_records": list_unreadable(found),
        "unreadable_records_total": len(found) if total is None else total,
    }


def _labels(labels: Mapping[str, Any]) -> Labels:
    return tuple(sorted((name, str(value)) for name, value in labels.items()))


def _over_slots(name: str) -> Callable[[float, float], float]:
    """Return the function that combines the values of a gauge in two slots."""
    if name in GAUGES:
        return _COMBINED[GAUGES[name].over_slots]
    return min if name.endswith("_timestamp_seconds") else add


def _summed(
    entries: Iterable[tuple[str, Mapping[str, Any], float]],
    combined: Callable[[str], Callable[[float, float], float]] = lambda _: add,
) -> list[Sample]:
    found: dict[tuple[str, Labels], float] = {}
    for name, labels, value in entries:
        key = (name, _labels(labels))
        found[key] = combined(name)(found[key], value) if key in found else value
    return [Sample(*key, value) for key, value in sorted(found.items())]


def _bound(bucket: tuple[str, int]) -> float:
    return float(bucket[0])


def _earliest(watermarks: list[int | None]) -> int | None:
    known = [it for it in watermarks if it is not None]
    return min(known) if len(known) == len(watermarks) and known else None
