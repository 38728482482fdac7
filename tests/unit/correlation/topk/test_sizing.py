"""Estimates of top-k conditions from samples, against numbers computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from correlation.buffers.segment import Segment
from correlation.condition_kind import Load
from correlation.resources.filters import read_filter
from correlation.resources.partitioning import Partitioning
from correlation.sampling import SampleRecord, StreamSample, read_sample
from correlation.topk.condition import TopKCondition
from correlation.topk.kind import TOPK_KIND
from correlation.topk.similarities import HAMMING, JACCARD
from correlation.topk.sizing import size_sample
from correlation.two_streams import Where
from tests.support.messages import assert_names
from tests.support.topk import DELAY, make_tag_streams

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

S = 1_000_000
STREAMS = make_tag_streams(keyed=False)
SELF = TopKCondition("c", 1, "left", "left", 2, 10 * S, JACCARD)
CROSSED = replace(SELF, b="right")
Row = tuple[int, str]


def sample_of(name: str, rows: Iterable[Row], **more: object) -> StreamSample:
    """Return a sample; each letter of a row is a token, and `-` an event without tokens."""
    records = [
        SampleRecord(
            {"id": f"{name}{at}", "time": second * S, "tags": [*tokens.strip("-")], **more},
            offset=at,
        )
        for at, (second, tokens) in enumerate(rows)
    ]
    return read_sample(STREAMS[name], records)


def size(
    condition: TopKCondition,
    samples: Iterable[StreamSample],
    rates: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the estimate with the rates of the samples, or others."""
    given = {it.stream.name: it for it in samples}
    found = {name: it.rate for name, it in given.items() if it.rate is not None}
    streams = {name: it.stream for name, it in given.items()}
    return size_sample(condition, {**STREAMS, **streams}, given, Load({**found, **(rates or {})}))


# Ten events within 9 s, 1 per second; eight are sets.
ROWS = [
    *((0, "ab"), (1, "ab"), (2, "-"), (3, "abc"), (4, "xyz")),
    *((5, "a"), (6, "abcdef"), (7, "-"), (8, "ab"), (9, "q")),
]


def test_facts_and_counts_of_one_stream() -> None:
    found = size(SELF, [sample_of("left", ROWS)])
    assert found["sets"] == {
        "left": {
            "sets": 8,
            "sets_per_second": 0.8,
            "mean_size": 2.5,
            "median_size": 2.0,
            "max_size": 6,
            "distinct_tokens": 10,
            "frequent_tokens": {},
        }
    }
    trial = found["trial"]
    assert (trial["sets"], trial["lists"], trial["valid_sets"]) == (8, 1, 8)
    # 0 + 1 + … + 7 others, and two pairs of the three equal sets.
    assert trial["other_sets"] == 28 / 8
    assert (trial["listed_pairs"], trial["identical_pairs"], trial["identical_sets"]) == (2, 2, 2)
    assert trial["last_similarity"] == 1.0
    (warning,) = found["warnings"]
    assert_names(warning, "all 2 pairs", "identical sets", "where", "tokens", "larger k")


def test_expected_work_is_in_proportion_to_the_sets_of_the_window() -> None:
    sample = sample_of("left", ROWS)
    found = size(replace(SELF, k=50), [sample])
    assert found["warnings"] == []
    # 0.8 sets per second, for 10 s.
    expected, trial = found["expected"], found["trial"]
    assert (expected["valid_sets"], expected["other_sets"]) == ({"left": 8}, 8)
    # Searches meet the sets that share a token: 1 + 2 + 3 + 4 + 5 of 28 others.
    assert trial["precandidates_per_set"] == trial["candidates_per_set"] == 1.875
    assert expected["precandidates_per_set"] == pytest.approx(15 / 28 * 8, rel=1e-3)
    assert expected["precandidates_per_second"] == pytest.approx(15 / 28 * 8 * 0.8, rel=1e-3)
    # Events are kept for the window and max_delay.
    segment, _ = Segment.from_events(sample.events, np.zeros(10, np.bool_))
    assert expected["buffered_bytes"] == round(10 * segment.nbytes / 10)
    assert expected["list_bytes"] == pytest.approx(trial["list_bytes"], rel=1e-3)
    assert expected["max_list_bytes"] > expected["list_bytes"]
    wide = size(replace(SELF, k=50, window_us=1000 * S), [sample])["expected"]
    assert (wide["valid_sets"], wide["other_sets"]) == ({"left": 800}, 800)
    assert wide["precandidates_per_set"] == pytest.approx(100 * 15 / 28 * 8, rel=1e-3)
    # At most 50 pairs of 128 bytes for each set.
    assert wide["max_list_bytes"] - expected["max_list_bytes"] > 792 * 50 * 128


def test_bytes_count_every_copy_in_a_grid() -> None:
    condition, sample = replace(SELF, k=50), sample_of("left", ROWS)
    cells = replace(sample.stream, partitioning=Partitioning("grid", 3))
    one, three = (
        size(condition, [replace(sample, stream=it)])["expected"] for it in (sample.stream, cells)
    )
    assert three["buffered_bytes"] == 3 * one["buffered_bytes"]
    # 6 cells, of which 3 hold a copy of a set.
    assert 3 * one["list_bytes"] < three["list_bytes"] < 6 * one["list_bytes"]
    assert three["valid_sets"] == one["valid_sets"]
    assert three["precandidates_per_set"] == one["precandidates_per_set"]


def test_growth_of_the_work_is_that_between_the_halves_of_the_sample() -> None:
    # Each second set shares a token with the set before, and with no other.
    rows = [(at, chr(97 + at // 2)) for at in range(40)]
    condition = replace(SELF, k=1000, window_us=1000 * S)
    expected = size(condition, [sample_of("left", rows)])["expected"]
    assert expected["other_sets"] == 1000
    # 20 of 40 · 39 / 2 others; a search meets half a set in both halves.
    assert expected["max_precandidates_per_set"] == pytest.approx(20 / 780 * 1000, rel=1e-3)
    assert expected["precandidates_per_set"] == 0.5
    assert expected["precandidates_per_second"] == 0.5
    # All sets share a token: the work is in proportion to the window.
    rows = [(at, f"a{chr(98 + at)}") for at in range(40)]
    expected = size(condition, [sample_of("left", rows)])["expected"]
    assert expected["precandidates_per_set"] == expected["max_precandidates_per_set"] == 1000


def test_rates_of_the_request_scale_the_window() -> None:
    found = size(replace(SELF, k=50), [sample_of("left", ROWS)], {"left": 1000.0})
    assert found["sets"]["left"]["sets_per_second"] == 800.0
    assert found["expected"]["valid_sets"] == {"left": 8000}
    assert found["expected"]["precandidates_per_second"] == pytest.approx(
        15 / 28 * 8000 * 800, rel=1e-3
    )


def test_other_sets_of_two_streams_are_those_of_the_other_one() -> None:
    left = sample_of("left", [(at, "ab") for at in range(11)])
    right = sample_of("right", [(0, "bc"), (5, "bd"), (10, "be")])
    found = size(replace(CROSSED, k=100), [left, right])
    # 1 and 0.2 sets per second, for 10 s: of 1.2 sets per second, 0.2 find 10 and 1 finds 2.
    assert found["expected"]["valid_sets"] == {"left": 10, "right": 2}
    assert found["expected"]["other_sets"] == round((0.2 * 10 + 1 * 2) / 1.2)
    # Sets of A come first: those of B find 1, 6 and 11, those of A 0, 1 (5 times) and 2 (5 times).
    trial = found["trial"]
    assert trial["other_sets"] == pytest.approx((1 + 6 + 11 + 5 + 10) / 14, rel=1e-3)
    # All sets share b.
    assert trial["precandidates_per_set"] == trial["other_sets"]
    assert trial["listed_pairs"] == 33
    assert trial["identical_sets"] == 0


def test_filters_choose_the_sets() -> None:
    samples = [sample_of("left", ROWS, color="red")]
    where = Where(a=read_filter({"color": "red"}, None))
    assert size(replace(SELF, where=where), samples)["sets"]["left"]["sets"] == 8
    found = size(replace(SELF, where=Where(a=read_filter({"color": "blue"}, None))), samples)
    assert (found["sets"], found["trial"], found["expected"]) == ({}, None, None)
    (warning,) = found["warnings"]
    assert warning.startswith("left: ")
    assert_names(warning, "no event", "tokens", "filter", "where")


def test_nothing_is_expected_of_streams_without_sample_or_rate() -> None:
    left, once = sample_of("left", ROWS), sample_of("right", [(3, "ab")])
    for samples in ([left], [left, once]):
        found = size(CROSSED, samples)
        assert found["expected"] is None
        assert found["trial"]["sets"] == 7 + len(samples)
    found = size(CROSSED, [left, once], {"right": 0.5})
    assert found["expected"]["valid_sets"] == {"left": 8, "right": 5}
    empty = read_sample(STREAMS["left"], [SampleRecord({})])
    assert size(SELF, [empty])["trial"] is None


def test_a_list_for_each_key() -> None:
    streams = make_tag_streams(keyed=True)
    records = [
        SampleRecord({"id": str(at), "key": "kl"[at % 2], "time": at * S, "tags": ["a", "b"]})
        for at in range(10)
    ]
    samples = {"left": read_sample(streams["left"], records)}
    condition = replace(SELF, per_key=True, similarity=HAMMING, k=100)
    found = size_sample(condition, streams, samples, Load({"left": 1.0}))
    trial = found["trial"]
    assert (trial["lists"], trial["listed_pairs"], trial["last_distance"]) == (2, 20, None)
    assert (trial["other_sets"], trial["precandidates_per_set"]) == (4.5, 2.0)
    assert found["expected"]["precandidates_per_set"] == pytest.approx(20 / 45 * 10, rel=1e-3)


def test_frequent_tokens_are_named() -> None:
    rows = [(at, "ab" if at % 2 else f"a{chr(99 + at)}") for at in range(10)]
    found = size(replace(SELF, k=1000), [sample_of("left", rows)])
    assert found["sets"]["left"]["frequent_tokens"] == {"a": 1.0, "b": 0.5}
    (warning,) = found["warnings"]
    assert warning.startswith("left: ")
    assert_names(warning, "'a' (100%), 'b' (50%)", "stop_words")


def test_a_window_that_rarely_holds_two_sets_is_named() -> None:
    rows = [(100 * at, f"a{at}") for at in range(5)]
    (warning,) = size(SELF, [sample_of("left", rows)])["warnings"]
    assert_names(warning, "rarely find another set")


def test_the_kind_measures_samples() -> None:
    assert TOPK_KIND.measure is size_sample
    assert STREAMS["left"].max_delay_us == DELAY
    assert STREAMS["left"].partitioning == Partitioning("grid")
