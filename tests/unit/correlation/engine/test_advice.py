"""Advice on a declaration: one sentence for each error or waste."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.advice import ENOUGH, advise
from correlation.engine.contract import ContractFacts
from correlation.limits import DURATION_LIMIT_US
from correlation.reasons import Reason
from correlation.resources.mapping import EventMapping
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from tests.support.contract import facts_of
from tests.support.messages import assert_names

SECOND = 1_000_000
STREAM = Stream("s", "s", max_uncertainty_us=2 * SECOND, max_delay_us=10 * SECOND)
RHO = replace(STREAM, min_uncertainty_us=SECOND)
STAMPED = replace(STREAM, mapping=EventMapping("time", time_path=("t",), before_us=SECOND))
# Neither near the limits nor far from them.
LENGTHS = [400_000, 1_500_000] * (ENOUGH // 2)
QUICK, SLOW = ENOUGH * 99 // 100, ENOUGH // 100


def middle(delays: list[int], late: int = 0) -> ContractFacts:
    return facts_of(STREAM, LENGTHS, delays, late)


REJECTED: dict[str, int] = {
    Reason.LONGER_THAN_DECLARED: 1,
    Reason.SHORTER_THAN_DECLARED: 2,
    Reason.FUTURE_DATED: 3,
    Reason.BAD_ATTRIBUTE: 4,
    Reason.BAD_TOKENS: 5,
    Reason.MISSING_KEY: 4000,
    Reason.TIME_OUT_OF_RANGE: 6,
    Reason.MALFORMED_JSON: 7,
}


@pytest.mark.parametrize(
    ("stream", "facts", "names"),
    [
        (STREAM, None, [["no event", "last changed"]]),
        (STREAM, middle([6 * SECOND] * ENOUGH), []),
        # Far from the limits, but too few to tell.
        (STREAM, facts_of(STREAM, [1000] * 3, [1000] * 3), []),
        (
            STREAM,
            facts_of(STREAM, [100_000, 1_980_000] * ENOUGH, [6 * SECOND] * 2 * ENOUGH),
            [["longest", "1.98s", "max_uncertainty is 2s", "50 %"]],
        ),
        (
            STREAM,
            facts_of(STREAM, [SECOND] * ENOUGH, [400_000] * QUICK + [800_000] * SLOW),
            [
                ["max_delay is 10s", "up to 12 times", "lower max_delay"],
                ["longest", "1s", "max_uncertainty is 2s"],
                ["shortest", "1s", "min_uncertainty is 0s"],
            ],
        ),
        (
            STREAM,
            middle([400_000] * QUICK + [8 * SECOND] * SLOW),
            [["up to 20 times", "99 %", "lower max_delay", "slow events"]],
        ),
        (STREAM, middle([-5 * SECOND] * ENOUGH), [["slowest", "5s before"]]),
        (STREAM, middle([0] * ENOUGH), [["max_delay is 10s", "larger than needed"]]),
        (
            STREAM,
            middle([SECOND] * (ENOUGH - 1) + [9_500_000]),
            [["took 9.5s", "max_delay is 10s", "0.10 %", "90 %"]],
        ),
        (
            STREAM,
            facts_of(STREAM, [SECOND], [12 * SECOND]),
            [["slowest", "took 12s", "more than max_delay (10s)"]],
        ),
        (
            STREAM,
            middle([SECOND] * (ENOUGH - 2) + [12 * SECOND] * 2, late=2),
            [["2 of 1,000", "(0.20 %) were late", "slowest"]],
        ),
        # Some are in Kafka before their interval ends: what counts is the distance.
        (
            STREAM,
            facts_of(STREAM, [SECOND] * 2, [-4 * SECOND, 9 * SECOND], late=1),
            [["4s before", "max_delay is 10s", "13s or more"]],
        ),
        # Never a value that a stream may not declare.
        (
            STREAM,
            facts_of(STREAM, [SECOND] * 2, [SECOND, DURATION_LIMIT_US + 1], late=1),
            [["wrong unit", "mapping"]],
        ),
        (
            STREAM,
            facts_of(STREAM, [SECOND] * 2, [SECOND, DURATION_LIMIT_US], late=1),
            [["raise it to"]],
        ),
        (
            STREAM,
            facts_of(STREAM, [SECOND], [SECOND], late=1),
            [["(100 %) were late"]],
        ),
        (
            replace(STREAM, clock="replay"),
            facts_of(STREAM, [SECOND] * 4, None, late=1),
            [["1 of 4", "(25 %) were late", "raise max_delay"]],
        ),
        (
            RHO,
            facts_of(RHO, [1_050_000], [SECOND]),
            [["shortest", "1.05s", "min_uncertainty is 1s"]],
        ),
        (
            STAMPED,
            facts_of(STREAM, [SECOND], [SECOND]),
            [["mapping", "1s long", "0s to 2s"]],
        ),
        # The mapping, and the declaration, leave one length: that is well.
        (
            replace(STAMPED, min_uncertainty_us=SECOND, max_uncertainty_us=SECOND),
            facts_of(STREAM, [SECOND], [SECOND]),
            [],
        ),
        (
            STREAM,
            facts_of(STREAM, [], [], rejected=REJECTED),
            [
                ["1 record was rejected", "max_uncertainty (2s)"],
                ["2 records were rejected", "min_uncertainty (0s)"],
                ["3 records were rejected", "max_skew", "(1s)"],
                ["4 records were rejected", "attribute"],
                ["5 records were rejected", "tokens"],
                ["4,006 records were rejected", "missing_key 4,000, time_out_of_range 6"],
                ["malformed_json 7"],
            ],
        ),
    ],
    ids=range(20),
)
def test_advice_is_a_sentence_for_each_thing(
    stream: Stream, facts: ContractFacts | None, names: list[list[str]]
) -> None:
    sentences = advise(stream, facts)
    assert len(sentences) == len(names)
    for sentence, parts in zip(sentences, names, strict=True):
        assert_names(sentence, *parts)


def test_advice_has_the_measured_values_and_the_field() -> None:
    facts = middle([400_000] * QUICK + [800_000] * SLOW)
    (sentence,) = advise(STREAM, facts)
    assert_names(sentence, "99 %", "500ms", "slowest took 800ms", "max_delay is 10s")
    assert_names(sentence, "12 times larger", "lower max_delay")


@given(
    st.lists(st.integers(-5 * SECOND, 4000 * SECOND), min_size=1, max_size=60),
    st.integers(0, 5),
    st.sampled_from([1, ENOUGH]),
)
def test_advice_is_given_of_anything(delays: list[int], late: int, times: int) -> None:
    lengths = [min(abs(delay), 2 * SECOND) for delay in delays] * times
    facts = facts_of(STREAM, lengths, delays * times, min(late, len(delays)))
    assert all(advise(STREAM, facts))


def test_advice_speaks_of_groups_where_there_are_more_than_slots() -> None:
    grid = replace(STREAM, partitioning=Partitioning("grid", 3))
    facts = middle([6 * SECOND] * ENOUGH)
    assert advise(grid, facts, 3) == advise(grid, facts) == ()
    for seen_yet in (facts, None):
        sentence = advise(grid, seen_yet, 2)[-1]
        assert_names(sentence, "3 groups", "2 slots", "groups to at most 2")
