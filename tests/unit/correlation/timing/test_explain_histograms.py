"""Explanations of histogram pairs: the oracle's numbers, and the program's behaviour."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.kinds import condition_from_document
from correlation.parsing.event_reader import MappedEvent
from correlation.resources.histogram import Histogram
from correlation.resources.template import Template
from correlation.timing.conditions import ALGORITHM_CHOICES, TimingCondition
from correlation.timing.explain import _Pair
from correlation.timing.histograms import windows as histogram_windows
from tests.oracle import histograms as oracle
from tests.support.histograms import told
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    judged_window,
    make_block,
    read_alarms,
)
from tests.unit.correlation.timing.histogram_strategies import histograms

SHAPES = histograms(longest=12, places=0).map(Histogram.shape)
EVENTS = st.tuples(SHAPES, st.integers(-30, 30)).map(lambda it: it[0].moved(it[1]))
NAMES = sorted(name for name, it in CONDITIONS.items() if it["a"] != it["b"])


def _mapped(event: Histogram) -> MappedEvent:
    return MappedEvent(b"k", b"e", event.earliest_us, event.latest_us, shape=event.shape_bytes)


def _arrival(stream: str, place: int, event: Histogram) -> Arrival:
    shape = event.shape()
    return Arrival(stream, 0, "k", str(place), event.earliest_us, event.latest_us, place, shape)


def _slot(*, own: bool) -> Slot:
    slot = Slot()
    point = Template("point", Histogram.from_interval(0, 0))
    slot.streams = {
        name: replace(it, histograms=own, templates=(point,)) for name, it in slot.streams.items()
    }
    return slot


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@given(
    name=st.sampled_from(NAMES),
    a=EVENTS,
    bs=st.lists(EVENTS, min_size=1, max_size=6),
    b_first=st.booleans(),
    cheap=st.booleans(),
)
def test_p_explain_of_histogram_events_says_what_the_program_does(
    algorithm: str, name: str, a: Histogram, bs: list[Histogram], *, b_first: bool, cheap: bool
) -> None:
    document = {**CONDITIONS[name], "algorithm": algorithm}
    roles = {"a": str(document["a"]), "b": str(document["b"])}
    slot = _slot(own=True)
    slot.restart()
    blocks = [
        [_arrival(roles["a"], 0, a)],
        [_arrival(roles["b"], i, b) for i, b in enumerate(bs)],
    ]
    alarms: dict[str, dict[str, Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histogram_windows, "_KEPT", OrderedDict())
        patch.setattr(histogram_windows, "SLICE", 10**9 if cheap else 0)
        slot.advance(make_block([], [control_record(0, "c", document)]))
        for arrivals in reversed(blocks) if b_first else blocks:
            # No progress: nothing is forgotten.
            block = replace(make_block(arrivals, []), progress=[])
            alarms |= {it["b"]["id"]: it for it in read_alarms(slot.advance(block))}
    condition = condition_from_document("c", 1, document)
    assert isinstance(condition, TimingCondition)
    for i, b in enumerate(bs):
        pair = _Pair(condition, slot.streams, _mapped(a), _mapped(b))
        answer = pair.describe(decided=pair.is_satisfied())
        exact = oracle.probability(told(a), told(b), judged_window(document))
        assert answer["probability_exact"] == str(exact)
        assert pair.is_satisfied() == (str(i) in alarms)
        regions = {it["region"] for it in answer["regions"].values()}
        if pair.is_satisfied():
            assert "violated" not in regions
            assert answer["expired_by_us"] == 0
            assert alarms[str(i)]["decided_by"] in answer["decided_by"]
        else:
            assert "satisfaction" not in regions


def test_regions_of_histogram_streams_are_those_of_supports() -> None:
    condition = condition_from_document("c", 1, {**CONDITIONS["near"], "algorithm": "auto"})
    assert isinstance(condition, TimingCondition)
    rng = random.Random(1)  # noqa: S311 - a reproducible draw, no secret
    for own in (True, False):
        pair = _Pair(
            condition,
            _slot(own=own).streams,
            MappedEvent(b"k", b"a", -8, 0),
            MappedEvent(b"k", b"b", 5, rng.randint(5, 9)),
        )
        found = pair.describe(decided=True)
        base = found["regions"]["base_a"]
        assert [base[it] for it in ("lh_us", "ll_us", "rl_us", "rh_us")] == [-33, -13, 17, 37]
        assert base["region"] == "satisfaction"
        assert found["decided_by"] == ["satisfaction_region"]
        assert found["algorithm"] == "auto"
