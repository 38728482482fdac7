"""Streams and conditions of the demo, as documents of the service."""

from __future__ import annotations

from typing import Any

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US

STREAMS: dict[str, dict[str, Any]] = {
    # Delayed departures only: the topic has all departures.
    "departures": {
        "topic": "departures",
        "mapping": {
            "id": "record",
            "key": "airport",
            "time": "departed",
            "format": "iso8601",
            "before_us": 0,
            "after_us": MINUTE_US - 1,
        },
        "max_uncertainty": "1min",
        "max_delay": "1min",
        "clock": "replay",
        "attributes": {"delay_minutes": {"path": "delay_minutes", "type": "integer"}},
        "where": {"delay_minutes": {"min": 1}},
    },
    # The same topic without the filter, by aircraft. The recorded minute is taken as the exact
    # time: an absence of a day does not depend on a minute.
    "all-departures": {
        "topic": "departures",
        "mapping": {
            "id": "record",
            "key": "tail",
            "time": "departed",
            "format": "iso8601",
            "before_us": 0,
            "after_us": 0,
        },
        "max_uncertainty": "0s",
        "max_delay": "1min",
        "clock": "replay",
        "attributes": {"tail": "tail"},
    },
    # Flights that did not depart, at their scheduled time.
    "cancellations": {
        "topic": "cancellations",
        "mapping": {
            "id": "record",
            "key": "tail",
            "time": "scheduled",
            "format": "iso8601",
            "before_us": 0,
            "after_us": 0,
        },
        "max_uncertainty": "0s",
        "max_delay": "1min",
        "clock": "replay",
        "attributes": {"flight": "flight", "tail": "tail", "to": "to"},
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
            "after_us": HOUR_US - 1,
        },
        "max_uncertainty": "1h",
        "max_delay": "1min",
        "clock": "replay",
    },
    # Chat messages of all conversations: any two of them can be similar.
    "messages": {
        "topic": "messages",
        "mapping": {
            "id": "message",
            "time": "sent",
            "format": "epoch_s",
            "before_us": 0,
            "after_us": 0,
        },
        "max_uncertainty": "0s",
        "max_delay": "1min",
        "clock": "replay",
        "partitioning": {"by": "grid"},
        "attributes": {
            "words": {"path": "words", "type": "integer"},
            "repeated": {"path": "repeated", "type": "boolean"},
        },
        "tokens": {"path": "text", "tokenizer": "words", "lower_case": True},
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

# Cancelled flights whose aircraft did not depart from New York within a day.
GROUNDED = "grounded-for-a-day"
QUERIES: dict[str, dict[str, Any]] = {
    GROUNDED: {
        "kind": "event_query",
        "query": """\
DETECT Grounded {flight {var F}, tail {var T}, to {var D}}
ON event c: Cancellation {flight {var F}, tail {var T}, to {var D}}
   not event d: Departure {tail {var T}}
WHERE c.rt.end <= d.rt.begin,
      d.rt.begin <= c.rt.end + 1 d
END""",
        "types": {"Cancellation": "cancellations", "Departure": "all-departures"},
    },
}

# The most similar messages of a day. Short messages and repeated ones are left out: otherwise the
# list would consist of greetings.
ALIKE = "said-in-similar-words"
LISTS: dict[str, dict[str, Any]] = {
    ALIKE: {
        "kind": "topk_similarity",
        "a": "messages",
        "k": 5,
        "window": "1d",
        "min_similarity": "0.5",
        "where": {"a": {"words": {"min": 8}, "repeated": False}},
    },
}
