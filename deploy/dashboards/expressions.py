"""PromQL expressions; every metric of Coincide in them is looked up in its definition.

The expressions of dashboards select one instance of the service, because each instance exposes the
metrics of the job, and the streams and conditions of the dashboard's variables.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from service.definitions import DEFINITIONS, PREFIX

if TYPE_CHECKING:
    from service.definitions import Definition, MetricType

# Labels by which a viewer can filter; a dashboard has a variable for each that it uses.
FILTERS = ("stream", "condition")
# Number of equally frequent keys of a stream, which the viewer enters.
KEYS = "keys"
INSTANCE = 'instance="$instance"'
# Grafana's window: at least four scrapes.
_WINDOW = "$__rate_interval"
_EXPOSED = re.compile(rf"(?<!\w){PREFIX}(\w+)")
_PARTS = ("_bucket", "_sum", "_count")


class UnknownMetricError(Exception):
    """A dashboard or rule uses a metric that the code does not define, or as another type."""


def define(name: str, metric_type: MetricType) -> Definition:
    """Return the definition of a metric.

    Parameters
    ----------
    name : str
        Name without the prefix.
    metric_type : str
        The type for which the expression is written.

    Raises
    ------
    UnknownMetricError
        The metric is not defined, or has another type.
    """
    found = DEFINITIONS.get(name)
    if found is None:
        near = get_close_matches(name, DEFINITIONS, 1)
        remedy = f"use {near[0]}" if near else "see service/definitions.py"
        raise UnknownMetricError(f"{name}: is not a metric of this software; {remedy}")
    if found.type != metric_type:
        raise UnknownMetricError(f"{name}: is a {found.type}, not a {metric_type}; change its use")
    return found


def metrics_of(expression: str) -> list[Definition]:
    """Return the definitions of the metrics in an expression, each once, in their order."""
    found: dict[str, Definition] = {}
    for match in _EXPOSED.finditer(expression):
        name = match.group(1)
        for part in _PARTS:
            if name not in DEFINITIONS:
                name = name.removesuffix(part)
        found[name] = DEFINITIONS[name]
    return list(found.values())


def select(series: str, *labels: str, **values: str) -> str:
    """Return the selector of a series, in the instance that the viewer selected.

    Parameters
    ----------
    series : str
        Name of the series, as Prometheus stores it.
    *labels : str
        Labels of the result; those among FILTERS are filtered by their variables.
    **values : str
        Required values of further labels.
    """
    matchers = [INSTANCE]
    matchers += [f'{label}=~"${label}"' for label in labels if label in FILTERS]
    matchers += [f'{label}="{value}"' for label, value in values.items()]
    return f"{series}{{{','.join(matchers)}}}"


def gauge(name: str, *labels: str, **values: str) -> str:
    """Return the selector of a gauge; parameters as of `select`."""
    return select(define(name, "gauge").exposed, *labels, **values)


def age(name: str, *labels: str) -> str:
    """Return the time since the time that a gauge contains, in seconds."""
    return f"time() - {gauge(name, *labels)}"


def total(name: str, *labels: str, **values: str) -> str:
    """Return the value of a counter, summed to the given labels."""
    return _summed(select(define(name, "counter").exposed, *labels, **values), labels)


def rate(name: str, *labels: str, **values: str) -> str:
    """Return the increase of a counter per second, summed to the given labels."""
    counted = select(define(name, "counter").exposed, *labels, **values)
    return _summed(f"rate({counted}[{_WINDOW}])", labels)


def chance_rate() -> str:
    """Return the chance alarms per second at the present rates of the streams, by condition."""
    rates = select(define("events_consumed_total", "counter").exposed)
    factors = [
        f"on ({role}) group_left () label_replace(sum by (stream) (rate({rates}[{_WINDOW}])), "
        f'"{role}", "$1", "stream", "(.+)")'
        for role in ("a", "b")
    ]
    product = " * ".join([gauge("chance_seconds", "condition"), *factors])
    return f"sum by (condition) ({product}) / ${KEYS}"


def observations(name: str, *labels: str) -> str:
    """Return the number of observations of a histogram per second."""
    counted = select(f"{define(name, 'histogram').exposed}_count", *labels)
    return _summed(f"rate({counted}[{_WINDOW}])", labels)


def mean(name: str, *labels: str) -> str:
    """Return the mean of the observations of a histogram."""
    exposed = define(name, "histogram").exposed
    observed = _summed(f"rate({select(f'{exposed}_sum', *labels)}[{_WINDOW}])", labels)
    return f"{observed} / {observations(name, *labels)}"


def buckets(name: str) -> str:
    """Return the increase of the buckets of a histogram, for a heat map."""
    counted = select(f"{define(name, 'histogram').exposed}_bucket")
    return f"sum by (le) (increase({counted}[{_WINDOW}]))"


def _summed(expression: str, labels: tuple[str, ...]) -> str:
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"sum{by} ({expression})"
