"""Expected work and memory of a top-k condition, from samples of its streams.

Problem. Estimate, before a condition is registered, how many sets its window will contain, how much
memory its lists will take, and how many sets each search will meet.

Algorithm. A trial of the real join (`trial`) counts the work of a window with the sample's number
of sets. r is the number of sets per second of a stream: its rate, times the share of its events
that are sets. w is the window in seconds.

    valid sets           r · w for each stream
    other sets           mean number of valid sets with which a new set may form a pair:
                         r · w for one stream, 2 · r(A) · r(B) · w / (r(A) + r(B)) for two
    precandidates        of a search: m · (other sets / v) ** g, where m sets were met by a search
                         for a set of the newer half of the trial, among v other sets, on average
    g                    growth between the halves: log(m / m') / log(v / v') with the means m', v'
                         of the older half, at least 0 and at most 1; 1 if it is not known
    max precandidates    precandidates in the trial / other sets in the trial · other sets
    buffered bytes       buffered events · bytes of an event in the columns of the sample
    list bytes           empty joins + bytes of sets in the trial / max valid sets in the trial
                         · valid sets + bytes of the stock in the trial / its valid sets
                         · valid sets
    max list bytes       the same with the largest possible stock: k pairs for each valid set

In a grid of g groups each set is in g of the lists (see `cells`): buffered events and list bytes
count g copies. The trial has one list, so precandidates are those of one group; cells, which have
lists of their own, meet more.

The number of sets that a search meets grows with the window, from a constant (if the list is full
of pairs so similar that searches end early) up to in proportion (if it is not). Distinct tokens and
pairs of the stock grow more slowly than the number of sets, so the bytes of a window with more sets
than the sample are estimated rather too high. Arrays have room for up to twice their content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from correlation.buffers.columns import Int64s, SetsColumn
from correlation.buffers.segment import Segment
from correlation.condition_kind import Load
from correlation.limits import TIME_LIMIT_US
from correlation.resources.streams import Stream
from correlation.result_format import as_text
from correlation.sampling import StreamSample, shorten
from correlation.topk.cells import Division
from correlation.topk.condition import TopKCondition, bind_where
from correlation.topk.gathering import Part, Range, gather_sets
from correlation.topk.plan import derive_costs
from correlation.topk.trial import Trial, join_newest

# Bytes of a pair in the arrays of a stock, which have room for at most twice their pairs.
_PAIR_BYTES = 160
# Tokens of this share of the sets of a stream are listed, up to a number.
_FREQUENT = 0.5
_LISTED = 5
# Fewer sets do not show which tokens are frequent.
_FEW_SETS = 10
_ALWAYS = Range(-TIME_LIMIT_US, TIME_LIMIT_US)
_US = 1e6
# The records of a sample are not copied to the cells of a grid.
_ONE_LIST = Division(per_key=False, groups=1, crossed=True)


def size_sample(
    condition: TopKCondition,
    streams: Mapping[str, Stream],
    samples: Mapping[str, StreamSample],
    load: Load,
) -> dict[str, Any]:
    """Estimate work and memory of a condition.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.
    samples : mapping of name to StreamSample
        Samples of its streams.
    load : Load
        Events per second of the streams, as far as known.

    Returns
    -------
    dict
        JSON-able. sets: facts on the sets of each stream. trial: counts of the join of the samples,
        or None if they contain no set. expected: work and memory at the rates, or None if the
        rate or the sets of a stream are not known. warnings: sentences.
    """
    where = bind_where(condition, streams)
    parts = {
        name: Part(side, _segment_of(samples[name]))
        for side, name in enumerate(condition.streams)
        if name in samples and len(samples[name].events)
    }
    sets = {
        name: _SetFacts.of(found.tokens, len(part.segment))
        for name, part in parts.items()
        for _, found in gather_sets([part], _ALWAYS, where, _ONE_LIST)
    }
    keyed = gather_sets(
        [*parts.values()], _ALWAYS, where, _ONE_LIST._replace(per_key=condition.per_key)
    )
    trial = join_newest(condition, [it for _, it in keyed]) if sets else None
    rates = {name: load.rates[name] * it.share for name, it in sets.items() if name in load.rates}
    expected = None
    if trial is not None and all(name in rates for name in condition.streams):
        buffered = derive_costs(condition, streams, load)["expected_buffered_events"]
        event_bytes = {name: it.segment.nbytes / len(it.segment) for name, it in parts.items()}
        groups = streams[condition.a].partitioning.groups
        expected = _expect(condition, trial, rates, groups)
        expected["buffered_bytes"] = round(
            sum(count * event_bytes[name] for name, count in buffered.items())
        )
    return {
        "sets": {name: it.describe(rates.get(name)) for name, it in sets.items()},
        "trial": None if trial is None else _describe(condition, trial),
        "expected": expected,
        "warnings": [
            *_warn_of_sets(samples, sets),
            *(() if trial is None else _warn_of_identical(condition, trial)),
            *(() if expected is None else _warn_of_window(expected)),
        ],
    }


def _segment_of(sample: StreamSample) -> Segment:
    segment, _ = Segment.from_events(sample.events, np.zeros(len(sample.events), np.bool_))
    return segment


@dataclass(frozen=True, slots=True)
class _SetFacts:
    """Facts on the sets of a sample.

    Parameters
    ----------
    share : float
        Share of the events that are sets: they have tokens, and match the condition's filter.
    sizes : int64[n]
        Numbers of tokens.
    distinct_tokens : int
        Number of distinct tokens.
    frequent : mapping of str to float
        Share of the sets that contain each of the most frequent tokens.
    """

    share: float
    sizes: Int64s
    distinct_tokens: int
    frequent: Mapping[str, float]

    @classmethod
    def of(cls, tokens: SetsColumn, events: int) -> _SetFacts:
        """Return the facts of the sets among a number of events."""
        count = len(tokens)
        times = np.bincount(tokens.codes, minlength=len(tokens.values))
        most = np.argsort(-times, kind="stable")[:_LISTED].tolist()
        often = [it for it in most if count >= _FEW_SETS and times[it] >= _FREQUENT * count]
        frequent = {as_text(tokens.values[it]): shorten(times[it] / count) for it in often}
        return cls(count / events, np.diff(tokens.offsets), len(tokens.values), frequent)

    def describe(self, rate: float | None) -> dict[str, Any]:
        """Return the facts as a JSON-able dict; `rate` is the number of sets per second."""
        return {
            "sets": len(self.sizes),
            "sets_per_second": None if rate is None else shorten(rate),
            "mean_size": shorten(float(self.sizes.mean())),
            "median_size": float(np.median(self.sizes)),
            "max_size": int(self.sizes.max()),
            "distinct_tokens": self.distinct_tokens,
            "frequent_tokens": dict(self.frequent),
        }


def _describe(condition: TopKCondition, trial: Trial) -> dict[str, Any]:
    """Return the counts of a trial as a JSON-able dict."""
    return {
        "sets": trial.sets,
        "lists": trial.lists,
        "valid_sets": trial.last_valid,
        "other_sets": shorten(trial.others / trial.sets),
        "precandidates_per_set": shorten(trial.met / trial.sets),
        "candidates_per_set": shorten(trial.candidates / trial.sets),
        "stock_pairs": trial.stock_pairs,
        "listed_pairs": trial.listed_pairs,
        "identical_pairs": trial.identical_pairs,
        "identical_sets": trial.identical_sets,
        f"last_{condition.measure}": trial.last_value,
        "list_bytes": trial.list_bytes,
    }


def _expect(
    condition: TopKCondition, trial: Trial, rates: Mapping[str, float], groups: int
) -> dict[str, Any]:
    """Return expected work and memory at the sets per second of each stream.

    Parameters
    ----------
    condition, trial
        The condition, and the trial of its join.
    rates : mapping of stream to float
        Sets per second.
    groups : int
        Number of groups of the grid; 1 without a grid.
    """
    window = condition.window_us / _US
    valid = {name: rate * window for name, rate in rates.items()}
    count, total = sum(valid.values()), sum(rates.values())
    others = count
    if condition.crossed:
        a, b = rates[condition.a], rates[condition.b]
        others = 2 * a * b * window / total if total else 0.0
    max_met = trial.met / trial.others * others if trial.others else 0.0
    met = min(_extrapolate(trial, others), max_met)
    held = groups * count
    lists = groups * groups if condition.crossed else groups * (groups + 1) // 2
    base = lists * trial.empty_bytes + trial.set_bytes / trial.max_valid * held
    max_stock = condition.k * held * _PAIR_BYTES
    stock = min(trial.stock_bytes / trial.last_valid * held, max_stock)
    return {
        "valid_sets": {name: round(it) for name, it in valid.items()},
        "other_sets": round(others),
        "precandidates_per_set": shorten(met),
        "max_precandidates_per_set": shorten(max_met),
        "precandidates_per_second": shorten(met * total),
        "list_bytes": round(base + stock),
        "max_list_bytes": round(base + max_stock),
    }


def _extrapolate(trial: Trial, others: float) -> float:
    """Return the expected number of sets that a search meets among a number of other sets."""
    older_sets = trial.sets - trial.newer_sets
    older = (trial.met - trial.newer_met, trial.others - trial.newer_others)
    if not (trial.newer_others and others):
        return 0.0
    met, found = trial.newer_met / trial.newer_sets, trial.newer_others / trial.newer_sets
    growth = 1.0
    if met and all(older) and found * older_sets > older[1]:
        growth = log(met * older_sets / older[0]) / log(found * older_sets / older[1])
    return float(met * (others / found) ** min(max(growth, 0.0), 1.0))


def _warn_of_sets(
    samples: Mapping[str, StreamSample], sets: Mapping[str, _SetFacts]
) -> Iterator[str]:
    for name in samples:
        found = sets.get(name)
        if found is None:
            yield (
                f"{name}: no event of the sample has tokens and matches the filter; check tokens "
                "of the stream, and where"
            )
        elif found.frequent:
            listed = ", ".join(f"{it!r} ({share:.0%})" for it, share in found.frequent.items())
            yield (
                f"{name}: most sets contain {listed}: searches meet all of them; if such tokens do "
                "not matter, add them to stop_words of the stream"
            )


def _warn_of_identical(condition: TopKCondition, trial: Trial) -> Iterator[str]:
    if trial.full_lists and trial.identical_pairs == trial.listed_pairs:
        yield (
            f"all {condition.k} pairs of a list are pairs of identical sets, so it shows repeated "
            "events; exclude them with where, add tokens that distinguish them, or choose a "
            "larger k"
        )


def _warn_of_window(expected: Mapping[str, Any]) -> Iterator[str]:
    if expected["other_sets"] < 1:
        yield (
            "a new set will rarely find another set in the window, so lists will mostly be empty; "
            "choose a longer window"
        )
