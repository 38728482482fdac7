"""Events and condition of the whole-path benchmarks (LL10 section 5)."""

from __future__ import annotations

import numpy as np
import orjson

from correlation.resources.records import Resource

MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US, DELAY_US = 20_000, 200_000, 100_000
WINDOW_US = 1_000_000
RATE = 1_600
KEYS = 400

Records = list[tuple[bytes | None, bytes, int | None]]


def make_records(
    stream: str, begin_s: int, end_s: int, rng: np.random.Generator, key_count: int = KEYS
) -> Records:
    """Draw canonical events of a stream as Kafka records, in order of arrival."""
    count = (end_s - begin_s) * RATE
    latest = np.sort(rng.integers(begin_s * 1_000_000, end_s * 1_000_000, count))
    arrival = np.argsort(latest + rng.integers(0, DELAY_US, count), kind="stable")
    latest = latest[arrival]
    earliest = latest - rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, count)
    keys = rng.integers(0, key_count, count)
    return [
        (
            b"k%d" % key,
            orjson.dumps(
                {
                    "id": f"{stream}-{begin_s}-{i}",
                    "key": f"k{key}",
                    "earliest": low,
                    "latest": high,
                }
            ),
            None,
        )
        for i, (key, low, high) in enumerate(
            zip(keys.tolist(), earliest.tolist(), latest.tolist(), strict=True)
        )
    ]


def resources(lower_us: int = -WINDOW_US, upper_us: int = WINDOW_US) -> list[Resource]:
    """Build two recorded streams, and a condition: B is lower to upper after A, ct 0.7."""
    streams = [
        Resource(
            "stream",
            name,
            1,
            0,
            {
                "topic": f"events-{name}",
                "min_uncertainty_us": MIN_UNCERTAINTY_US,
                "max_uncertainty_us": MAX_UNCERTAINTY_US,
                "max_delay_us": DELAY_US,
                "clock": "replay",
            },
        )
        for name in "ab"
    ]
    document = {
        "kind": "within",
        "a": "a",
        "b": "b",
        "lower_us": lower_us,
        "upper_us": upper_us,
        "threshold": "0.7",
    }
    return [*streams, Resource("condition", "near", 1, 0, document)]
