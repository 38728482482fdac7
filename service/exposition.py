"""The Prometheus endpoint: metrics of the job and of the service as metric families."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as OwnHistogram
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from correlation.engine.contract import MAX_DELAY, declaration, length_limits
from service.chances import Chances
from service.definitions import DEFINITIONS, PREFIX
from service.metrics import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from correlation.engine.contract import ContractFacts
    from correlation.resources.streams import Stream
    from service.metrics import Labels
    from service.plane import ControlPlane

Family = type[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]


class JobCollector(Collector):
    """Collects the metrics at each Prometheus scrape.

    Parameters
    ----------
    plane : ControlPlane
        Control plane whose metrics are exposed.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._chances = Chances()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family once."""
        view = self._plane.metrics
        unreadable = _sample("metrics_records_unreadable_total", view.unreadable)
        alarms = self._plane.alarms
        counters = [
            *view.counters(),
            unreadable,
            _sample("alarm_records_followed_total", alarms.followed_total),
            _sample("alarm_readers_dropped_total", alarms.readers.dropped_total),
        ]
        job = view.job()
        if job is not None and job["lost"] is not None:
            lost = sum(sum(partitions.values()) for partitions in job["lost"].values())
            counters.append(_sample("records_lost_total", lost))
        gauges = [*view.gauges(), *view.ratios(), *self._own_gauges()]
        yield from _families(CounterMetricFamily, counters)
        yield from _families(GaugeMetricFamily, gauges)
        histograms = [(*it[:2], [*it.buckets.items()], it.total) for it in view.histograms()]
        yield from _families(HistogramMetricFamily, histograms)

    def describe(self) -> Iterator[Metric]:
        """Return no families: they are known only from the job's records."""
        return iter(())

    def _own_gauges(self) -> Iterator[Sample]:
        plane = self._plane
        yield _sample("config_head_offset", plane.log.newest)
        yield _sample("config_records_unreadable", len(plane.registry.unreadable()))
        yield _sample("alarm_readers", len(plane.alarms.readers))
        yield _sample("job_up", int(plane.job_is_up()))
        for stream, watermark in plane.metrics.watermarks().items():
            if watermark is not None:
                yield _sample("watermark_timestamp_seconds", watermark / 1e6, stream=stream)
        for declared in plane.registry.streams().values():
            yield from _contract_gauges(declared, plane.metrics.contract(declared))
        registered = plane.registry.resources("condition"), plane.registry.resources("stream")
        for name, chance in self._chances.of(*registered).items():
            yield _sample("chance_seconds", chance.seconds, condition=name, **chance.streams)
        applied = plane.applied_config_offset()
        if applied is not None:
            yield _sample("config_applied_offset", applied)
        job = plane.metrics.job()
        if job is not None:
            yield from _job_gauges(job)


def _job_gauges(job: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the gauges of the job's newest record."""
    yield _sample("missing_output_topics", len(job["missing_topics"]))
    for topic, found in job["recreated_topics"].items():
        seconds = found["at"] / 1e6
        yield _sample("event_topic_recreated_timestamp_seconds", seconds, topic=topic)
    if job["batch_events"] is not None:
        yield _sample("batch_events", job["batch_events"])
    for phase, seconds in job["durations"].items():
        yield _sample("batch_duration_seconds", seconds, phase=phase)
    for process, nbytes in job["memory"].items():
        yield _sample("job_memory_bytes", nbytes, process=process)
    if job["last_batch_at"] is not None:
        yield _sample("last_batch_timestamp_seconds", job["last_batch_at"] / 1e6)
    lags = [count for partitions in job["lag"].values() for count in partitions.values()]
    if lags:
        yield _sample("consumer_lag_records", sum(lags))


def make_registry(plane: ControlPlane) -> tuple[CollectorRegistry, OwnHistogram]:
    """Build the metrics registry of a service, and the histogram of its requests.

    Parameters
    ----------
    plane : ControlPlane
        Control plane of the service.
    """
    registry = CollectorRegistry()
    registry.register(JobCollector(plane))
    requested = DEFINITIONS["http_request_duration_seconds"]
    requests = OwnHistogram(
        requested.exposed,
        requested.description,
        registry=registry,
    )
    return registry, requests


def _contract_gauges(stream: Stream, facts: ContractFacts | None) -> Iterator[Sample]:
    """Yield the declared limits of a stream and its observed values."""
    limits = declaration(stream)
    for limit in (*length_limits(limits), MAX_DELAY):
        declared_us = limits[f"{limit}_us"]
        yield _sample("declared_seconds", declared_us / 1e6, stream=stream.name, limit=limit)
    if facts is None:
        return
    for name, spread in (
        ("interval_length", facts.lengths),
        ("transmission_delay", facts.delays),
    ):
        if spread is not None:
            min_seconds, max_seconds = spread.min_us / 1e6, spread.max_us / 1e6
            yield _sample(f"{name}_min_seconds", min_seconds, stream=stream.name)
            yield _sample(f"{name}_max_seconds", max_seconds, stream=stream.name)
    for limit, ratio in facts.near_ratios().items():
        yield _sample("near_limit_ratio", ratio, stream=stream.name, limit=limit)


def _sample(name: str, value: float, **labels: str) -> Sample:
    return Sample(name, tuple(sorted(labels.items())), value)


def _families(
    kind: Family, samples: Iterable[tuple[str, Labels, *tuple[Any, ...]]]
) -> Iterator[Metric]:
    """Build the metric families of samples: name, labels, and the values of the family's kind.

    Each family has the labels of all its samples. A label that a sample does not have is empty,
    which Prometheus treats as missing.
    """
    found: dict[str, list[tuple[dict[str, str], tuple[Any, ...]]]] = {}
    for name, labels, *numbers in samples:
        found.setdefault(name, []).append((dict(labels), tuple(numbers)))
    for name, rows in found.items():
        names = sorted({label for labels, _ in rows for label in labels})
        known = DEFINITIONS.get(name)
        # A job of another version may count under another name.
        family: Any = kind(PREFIX + name, known.description if known else name, labels=names)
        for by_name, values in rows:
            family.add_metric([by_name.get(label, "") for label in names], *values)
        yield family
