"""Observations of a stream since its declaration, to compare with its limits ρ, π and D.

A wrong declaration loses pairs or wastes memory. The facts of a slot are part of its totals, so
they survive restarts and a replay does not count twice. They are sums, minima and maxima: facts of
blocks and of slots are merged in any order. They are cleared when the declaration changes.
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
from correlation.resources.attributes import attributes_to_document
from correlation.resources.streams import Stream
from correlation.resources.tokens import fingerprint

# Upper bounds of the histogram buckets, in seconds: 1 ms to 1 h, most in factors of 2 to 2.5.
BUCKETS_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 1.5, 2.5, 5.0, 10.0, 25.0, 60.0, 300.0, 900.0, 3600.0),
)
_ENDS_US = np.array([round(end * 1e6) for end in BUCKETS_SECONDS], np.int64)
# A value within one tenth of a limit is near it.
_TENTHS = 10
# Limits of the lengths of uncertain instants, and of events that last.
UNCERTAINTIES, LENGTHS = ("min_uncertainty", "max_uncertainty"), ("min_length", "max_length")
MAX_DELAY = "max_delay"


class Quantile(NamedTuple):
    """A quantile of durations, computed from bucket counts.

    Attributes
    ----------
    share : float
        Share of the durations below the quantile.
    estimate_us : int
        Estimate that assumes a uniform distribution inside each bucket, in µs.
    at_most_us : int
        Upper bound of the quantile, in µs.
    """

    share: float
    estimate_us: int
    at_most_us: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, maximum and histogram of durations.

    Parameters
    ----------
    min_us, max_us : int
        Minimum and maximum, in µs.
    counts : tuple of int
        Count per bucket of BUCKETS_SECONDS; the last count is above all bounds.
    """

    min_us: int
    max_us: int
    counts: tuple[int, ...]

    @classmethod
    def of(cls, durations_us: Int64s) -> Spread | None:
        """Compute the spread of durations; None if the array is empty."""
        if len(durations_us) == 0:
            return None
        counts = tuple(count_buckets(durations_us).tolist())
        return cls(int(durations_us.min()), int(durations_us.max()), counts)

    def merged(self, other: Spread | None) -> Spread:
        """Return the spread of the durations of both."""
        if other is None:
            return self
        return Spread(
            min(self.min_us, other.min_us),
            max(self.max_us, other.max_us),
            tuple(map(sum, zip(self.counts, other.counts, strict=True))),
        )

    def quantile(self, share: float) -> Quantile:
        """Estimate the quantile of a share in (0, 1]."""
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
    """Observations of a stream under one declaration.

    Parameters
    ----------
    declared : mapping
        The declaration during the observations.
    events, late : int
        Number of accepted events, and number of late events among them.
    rejected : mapping of reason to int
        Number of records that went to the dead-letter topic.
    near : mapping of limit to int
        Number of events within a tenth of each limit: `min_uncertainty` and `max_uncertainty`, or
        `min_length` and `max_length` as far as they are declared, and `max_delay`.
    lengths : Spread or None
        Lengths of the accepted events' intervals; of events that last, end minus begin.
    delays : Spread or None
        Kafka's timestamps minus `latest`; None for recorded data.
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
        """Compute the facts of accepted events.

        Parameters
        ----------
        stream : Stream
            The declared stream.
        lengths_us : int64[n]
            Lengths of the intervals.
        delays_us : int64[n] or None
            Kafka's timestamps minus `latest`; None for recorded data.
        late : int
            Number of late events.
        """
        declared = declaration(stream)
        near = {}
        for limit in length_limits(declared):
            bound_us = declared[f"{limit}_us"]
            chosen = (
                lengths_us <= bound_us * (_TENTHS + 1) // _TENTHS
                if limit.startswith("min")
                else lengths_us >= _nine_tenths(bound_us)
            )
            near[limit] = _count(chosen)
        if delays_us is not None:
            near[MAX_DELAY] = _count(delays_us >= _nine_tenths(stream.max_delay_us))
        return cls(
            declared,
            events=len(lengths_us),
            late=late,
            near=near,
            lengths=Spread.of(lengths_us),
            delays=None if delays_us is None else Spread.of(delays_us),
        )

    def merged(self, other: ContractFacts) -> ContractFacts:
        """Return the sum of two facts of the same declaration."""
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
        """Return the share of the events near each checked limit; empty without events."""
        if not self.events:
            return {}
        limits = length_limits(self.declared)
        if self.delays is not None:
            limits = (*limits, MAX_DELAY)
        return {limit: self.near.get(limit, 0) / self.events for limit in limits}

    def to_record(self) -> dict[str, Any]:
        """Write the facts as a JSON-able dict."""
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
        """Read the output of `to_record`.

        Raises
        ------
        LookupError, TypeError, ValueError
            When `to_record` did not write the record.
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
    """Return the part of a stream's declaration that the facts depend on."""
    limits = LENGTHS if stream.lasts else UNCERTAINTIES
    declared = {f"{limit}_us": getattr(stream, f"{limit}_us") for limit in limits}
    declared |= {
        "max_delay_us": stream.max_delay_us,
        "clock": stream.clock,
        "spread_us": stream.mapping.spread_us,
    }
    # Streams without these fields keep the facts that earlier versions of this software stored.
    if stream.attributes:
        declared["attributes"] = attributes_to_document(stream.attributes)
    if stream.where is not None:
        declared["where"] = stream.where.to_document()
    if stream.tokens is not None:
        # The declaration may have many stop words, and the facts are written with every batch.
        declared["tokens"] = fingerprint(stream.tokens)
    return declared


def length_limits(declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the limits of lengths that a declaration has."""
    names = (*UNCERTAINTIES, *LENGTHS)
    return tuple(name for name in names if declared.get(f"{name}_us") is not None)


def count_buckets(durations_us: Int64s, counts: Int64s | None = None) -> NDArray[np.int64]:
    """Count durations per bucket; negative durations count as zero.

    `counts` is how often each duration occurs; None: once.
    """
    places = np.searchsorted(_ENDS_US, np.maximum(durations_us, 0))
    found = np.bincount(places, counts, minlength=len(_ENDS_US) + 1)
    # Weights are summed as float64, which is exact below 2^53.
    return found.astype(np.int64)


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
        raise ValueError(f"counts: must have {len(_ENDS_US) + 1} buckets; got {len(counts)}")
    return Spread(min_us, max_us, tuple(counts))
