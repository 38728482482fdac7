"""Recording rules: quantiles and shares that panels and alerts have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deploy.dashboards.expressions import UnknownMetricError, define, select

if TYPE_CHECKING:
    from collections.abc import Iterator

QUANTILES = ("0.5", "0.95", "0.99")
# Labels that distinguish installations and instances of the service.
_TARGET = ("job", "instance")
# Histograms by the label of their series; "" for a histogram of the service itself.
_HISTOGRAMS = {
    "response_time_seconds": "condition",
    "pipeline_latency_seconds": "condition",
    "transmission_delay_seconds": "stream",
    "interval_length_seconds": "stream",
    "http_request_duration_seconds": "",
}


class Rule(NamedTuple):
    """A recording rule.

    Attributes
    ----------
    record : str
        Name of the recorded series: level, metric, operation.
    expression : str
        PromQL over all instances.
    labels : dict of str to str
        Labels that are added.
    """

    record: str
    expression: str
    labels: dict[str, str]


def _quantiles() -> Iterator[Rule]:
    for name, label in _HISTOGRAMS.items():
        exposed = define(name, "histogram").exposed
        labels = ", ".join((*_TARGET, label, "le") if label else (*_TARGET, "le"))
        rate = f"sum by ({labels}) (rate({exposed}_bucket[5m]))"
        for quantile in QUANTILES:
            expression = f"histogram_quantile({quantile}, {rate})"
            record = f"{label or 'instance'}:{exposed}:quantile5m"
            yield Rule(record, expression, {"quantile": quantile})


def _share(part: str, whole: str, label: str, window: str) -> Rule:
    """Return the rule of the share of one counter in another."""
    labels = ", ".join((*_TARGET, label))
    named = define(part, "counter").exposed
    counts = [
        f"sum by ({labels}) (increase({define(name, 'counter').exposed}[{window}]))"
        for name in (part, whole)
    ]
    return Rule(f"{label}:{named}:ratio{window}", " / ".join(counts), {})


def rules() -> list[Rule]:
    """Return all recording rules."""
    return [
        *_quantiles(),
        _share("events_late_total", "events_consumed_total", "stream", "15m"),
        _share("lookup_hits_total", "probe_region_events_total", "condition", "5m"),
    ]


def quantiles(name: str, *labels: str, quantile: str | None = None) -> str:
    """Return the selector of the recorded quantiles of a histogram, or of one of them.

    Raises
    ------
    UnknownMetricError
        The quantiles are not recorded.
    """
    level = labels[0] if labels else "instance"
    record = f"{level}:{define(name, 'histogram').exposed}:quantile5m"
    values = {} if quantile is None else {"quantile": quantile}
    return _recorded(record, *labels, **values)


def share(name: str, label: str, window: str) -> str:
    """Return the selector of the recorded share of a counter.

    Raises
    ------
    UnknownMetricError
        The share is not recorded.
    """
    return _recorded(f"{label}:{define(name, 'counter').exposed}:ratio{window}", label)


def _recorded(record: str, *labels: str, **values: str) -> str:
    if all(rule.record != record for rule in rules()):
        raise UnknownMetricError(f"{record}: is not recorded; add it to deploy/dashboards/rules.py")
    return select(record, *labels, **values)
