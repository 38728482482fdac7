"""Definitions of all metrics of the Prometheus endpoint: name, type and description."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from correlation.kinds import GAUGES, KINDS, RATIOS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MetricType = Literal["counter", "gauge", "histogram"]
PREFIX = "coincide_"


class Definition(NamedTuple):
    """A metric of the endpoint.

    Attributes
    ----------
    name : str
        Name without the prefix.
    type : str
        counter, gauge or histogram.
    description : str
        Help string.
    """

    name: str
    type: MetricType
    description: str

    @property
    def exposed(self) -> str:
        """Name with the prefix, as Prometheus stores it; a histogram adds `_bucket` and others."""
        return PREFIX + self.name


_COUNTERS = {
    "events_consumed_total": "Events read and accepted.",
    "events_rejected_total": "Records written to the dead-letter topic.",
    "events_filtered_total": "Records that do not match the where of the stream.",
    "events_late_total": "Late events.",
    "events_collected_total": "Events deleted from the buffer; counts each copy in a grid.",
    "alarms_total": "Results reported; a factored record counts each of its pairs.",
    "records_lost_total": "Min records lost by retention, deletion or truncation of a topic.",
    "metrics_records_unreadable_total": "Records of the metrics topic that could not be read.",
    "alarm_records_followed_total": "Records of results that this service has read.",
    "alarm_readers_dropped_total": "Live feeds of alarms whose clients were too slow.",
}
_GAUGES = {
    "interval_length_min_seconds": "Min interval length since the last change of the declaration.",
    "interval_length_max_seconds": "Max interval length since the last change of the declaration.",
    "transmission_delay_min_seconds": "Min delay since the last change of the declaration.",
    "transmission_delay_max_seconds": "Max delay since the last change of the declaration.",
    "near_limit_ratio": "Share of the events within a tenth of a declared limit.",
    "declared_seconds": "Declared limit of the stream: uncertainty, length or max_delay.",
    "watermark_timestamp_seconds": "Watermark: events older than this count as late.",
    "buffered_events": "Number of buffered events; counts each copy in a grid.",
    "buffer_keep_timestamp_seconds": "Events before this time are dropped from the buffer.",
    "condition_keep_timestamp_seconds": "Events before this time are not needed by the condition.",
    "condition_buffered_events": "Buffered events that the condition needs; counts each grid copy.",
    "state_bytes": "Size of the state.",
    "chance_seconds": "Chance alarms per second if streams have one key and one event per second.",
    "batch_duration_seconds": "Duration of the newest batch, by phase.",
    "batch_events": "Records in the newest batch.",
    "job_memory_bytes": "Memory of the job on the driver's machine: driver, java or workers.",
    "consumer_lag_records": "Records not yet read by the job.",
    "last_batch_timestamp_seconds": "Time of the last completed batch, since the job's start.",
    "missing_output_topics": "Output topics of conditions that do not exist.",
    "event_topic_recreated_timestamp_seconds": "Time at which the job detected a new topic.",
    "config_applied_offset": "Offset of the newest config record that the job has applied.",
    "config_head_offset": "Offset of the newest config record.",
    "config_records_unreadable": "Config keys whose newest record cannot be read.",
    "alarm_readers": "Open live feeds of alarms.",
    "job_up": "Whether the job runs and has reported recently.",
}
_HISTOGRAMS = {
    "transmission_delay_seconds": "Kafka timestamp minus the event's latest time.",
    "interval_length_seconds": "Length of the events' intervals; if they last, end minus begin.",
    "response_time_seconds": "Completion of an alarm minus the later of both latest times.",
    "pipeline_latency_seconds": "Completion of a result minus Kafka timestamp of its last record.",
    "http_request_duration_seconds": "Time until the responses of this service begin.",
}


def _define() -> Iterator[Definition]:
    for name, text in _COUNTERS.items():
        yield Definition(name, "counter", text)
    for name, text in _GAUGES.items():
        yield Definition(name, "gauge", text)
    for name, text in _HISTOGRAMS.items():
        yield Definition(name, "histogram", text)
    for kind in KINDS.values():
        for name, text in kind.metrics.items():
            yield Definition(name, "counter", text)
    for name, gauge in GAUGES.items():
        yield Definition(name, "gauge", gauge.description)
    for name, ratio in RATIOS.items():
        yield Definition(name, "gauge", ratio.description)


DEFINITIONS: Mapping[str, Definition] = MappingProxyType({it.name: it for it in _define()})
