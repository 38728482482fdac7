"""What was seen of a stream since it was declared, beside what it promises: ρ, π and D.

A wrong declaration costs pairs, or memory. The facts of a slot are part of its totals, so that
they survive restarts and no replay doubles them. They are sums, least and greatest: the facts of
blocks and of slots are merged alike, in any order. They begin anew when the promises change, for
what was seen under others says nothing of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.resources.streams import Stream

# Upper ends of the histogram buckets, in seconds: 1 ms to 1 h in steps of 2 to 2.5.
BUCKETS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 1.5, 2.5, 5.0, 10.0, 25.0, 60.0, 300.0, 900.0, 3600.0),
)
_ENDS_US = np.array([round(end * 1e6) for end in BUCKETS_SECONDS], np.int64)
# Within a tenth of a limit is near it.
_TENTHS = 10
LIMITS = ("min_uncertainty", "max_uncertainty", "max_delay")


class Quantile(NamedTuple):
    """Where a share of the durations ends, as far as buckets tell.

    Attributes
    ----------
    share : float
        Of the durations.
    estimate_us : int
        Estimated: as if they were spread evenly inside a bucket, µs.
    at_most_us : int
        For certain no more than this, µs.
    """

    share: float
    estimate_us: int
    at_most_us: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Least, greatest, and a histogram of durations.

    Parameters
    ----------
    min_us, max_us : int
        In µs.
    counts : tuple of int
        Per bucket of BUCKETS_SECONDS; the last one is beyond all ends.
    """

    min_us: int
    max_us: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, durations_us: Int64s) -> Spread | None:
        """Measure durations; None if there are none."""
        if len(durations_us) == 0:
            return None
        counts = tuple(count_buckets(durations_us).tolist())
        return cls(int(durations_us.min()), int(durations_us.max()), counts)

    def merged(self, other: Spread | None) -> Spread:
        """Give the spread of both."""
        if other is None:
            return self
        return Spread(
            min(self.min_us, other.min_us),
            max(self.max_us, other.max_us),
            tuple(map(sum, zip(self.counts, other.counts, strict=True))),
        )

    def quantile(self, share: float) -> Quantile:
        """Estimate where a share of the durations, over 0 and up to 1, ends."""
        wanted = share * sum(self.counts)
        totals = list(accumulate(self.counts))
        place = next((i for i, total in enumerate(totals) if total >= wanted), len(totals) - 1)
        ends = [*_ENDS_US.tolist(), self.max_us]
        high = max(min(ends[place], self.max_us), self.min_us)
        low = min(max(ends[place - 1] if place else self.min_us, self.min_us), high)
        inside = wanted - (totals[place] - self.counts[place])
        part = inside / self.counts[place] if self.counts[place] else 1.0
        return Quantile(share, round(low + (high - low) * min(part, 1.0)), high)


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """What was seen of a stream under one declaration.

    Parameters
    ----------
    declared : mapping
        The promises that it was seen under.
    events, late : int
        Accepted events, and those of them that came later than promised.
    rejected : mapping of reason to int
        Records that went to the dead letter.
    near : mapping of limit to int
        Events within a tenth of `min_uncertainty`, `max_uncertainty`, `max_delay`.
    lengths : Spread or None
        Of the accepted events' intervals.
    delays : Spread or None
        From their latest times to their arrivals; None of recorded data.
    """

    declared: Mapping[str, Any]
    events: int = 0
    late: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    near: Mapping[str, int] = field(default_factory=dict)
    lengths: Spread | None = None
    delays: Spread | None = None

    @classmethod
    def of_events(
        cls, stream: Stream, lengths_us: Int64s, delays_us: Int64s | None, late: int
    ) -> ContractFacts:
        """Measure accepted events.

        Parameters
        ----------
        stream : Stream
            As it is declared.
        lengths_us : int64[n]
            Of their intervals.
        delays_us : int64[n] or None
            From latest time to arrival, where that says something.
        late : int
            How many of them were late.
        """
        near = {
            "min_uncertainty": _count(
                lengths_us <= stream.min_uncertainty_us * (_TENTHS + 1) // _TENTHS
            ),
            "max_uncertainty": _count(lengths_us >= _nine_tenths(stream.max_uncertainty_us)),
        }
        if delays_us is not None:
            near["max_delay"] = _count(delays_us >= _nine_tenths(stream.max_delay_us))
        return cls(
            declaration(stream),
            events=len(lengths_us),
            late=late,
            near=near,
            lengths=Spread.of(lengths_us),
            delays=None if delays_us is None else Spread.of(delays_us),
        )

    def merged(self, other: ContractFacts) -> ContractFacts:
        """Give the facts of both, which are of the same declaration."""
        return ContractFacts(
            self.declared,
            self.events + other.events,
            self.late + other.late,
            dict(Counter(self.rejected) + Counter(other.rejected)),
            dict(Counter(self.near) + Counter(other.near)),
            other.lengths if self.lengths is None else self.lengths.merged(other.lengths),
            other.delays if self.delays is None else self.delays.merged(other.delays),
        )

    def near_ratios(self) -> dict[str, float]:
        """Share of the events near each limit that they are held against; empty without events."""
        if not self.events:
            return {}
        limits = LIMITS if self.delays is not None else LIMITS[:2]
        return {limit: self.near.get(limit, 0) / self.events for limit in limits}

    def to_record(self) -> dict[str, Any]:
        """Write them as a JSON-able dict."""
        return {
            "declared": dict(self.declared),
            "events": self.events,
            "late": self.late,
            "rejected": dict(self.rejected),
            "near": dict(self.near),
            "lengths": _spread_to_record(self.lengths),
            "delays": _spread_to_record(self.delays),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ContractFacts:
        """Read what `to_record` wrote.

        Raises
        ------
        LookupError, TypeError, ValueError
            When it is something else.
        """
        return cls(
            dict(record["declared"]),
            int(record["events"]),
            int(record["late"]),
            {str(reason): int(count) for reason, count in record["rejected"].items()},
            {str(limit): int(count) for limit, count in record["near"].items()},
            _spread_from_record(record["lengths"]),
            _spread_from_record(record["delays"]),
        )


def declaration(stream: Stream) -> dict[str, Any]:
    """Give what of a stream the facts are held against."""
    return {
        "min_uncertainty_us": stream.min_uncertainty_us,
        "max_uncertainty_us": stream.max_uncertainty_us,
        "max_delay_us": stream.max_delay_us,
        "clock": stream.clock,
        "spread_us": stream.mapping.spread_us,
    }


def count_buckets(durations_us: Int64s) -> NDArray[np.int64]:
    """Count durations per bucket; negative ones count as zero."""
    places = np.searchsorted(_ENDS_US, np.maximum(durations_us, 0))
    return np.bincount(places, minlength=len(_ENDS_US) + 1)


def _nine_tenths(limit_us: int) -> int:
    return -(-limit_us * (_TENTHS - 1) // _TENTHS)


def _count(chosen: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(chosen))


def _spread_to_record(spread: Spread | None) -> list[int] | None:
    return None if spread is None else [spread.min_us, spread.max_us, *spread.counts]


def _spread_from_record(record: list[int] | None) -> Spread | None:
    if record is None:
        return None
    min_us, max_us, *counts = map(int, record)
    if len(counts) != len(_ENDS_US) + 1:
        raise ValueError(f"{len(counts)} buckets, not {len(_ENDS_US) + 1}")
    return Spread(min_us, max_us, tuple(counts))
