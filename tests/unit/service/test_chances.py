"""Chance alarms of registered conditions, which follow the newest versions."""

from __future__ import annotations

import pytest

from correlation.resources.records import Resource
from service.chances import Chances

EXACT = {"topic": "t", "max_uncertainty_us": 0, "max_delay_us": 1_000_000}
WITHIN = {"kind": "within", "a": "x", "b": "y", "threshold": "1", "lower_us": 0}
COUNT = {"kind": "topk_similarity", "a": "x", "k": 3, "window_us": 1_000_000}


def stream(name: str, version: int = 1, max_uncertainty_us: int = 0) -> Resource:
    document = EXACT | {"max_uncertainty_us": max_uncertainty_us}
    return Resource("stream", name, version, 0, document)


def within(upper_us: int, version: int = 1) -> Resource:
    return Resource("condition", "c", version, 0, WITHIN | {"upper_us": upper_us})


STREAMS = {"x": stream("x"), "y": stream("y")}


def seconds(chances: Chances, condition: Resource, streams: dict[str, Resource]) -> float:
    """Return the seconds of the only condition."""
    (chance,) = chances.of({"c": condition}, streams).values()
    assert chance.streams == {"a": "x", "b": "y"}
    return chance.seconds


def test_chance_follows_the_condition_and_its_streams() -> None:
    chances = Chances()
    assert seconds(chances, within(4_000_000), STREAMS) == pytest.approx(4)
    assert seconds(chances, within(4_000_000), STREAMS) == pytest.approx(4)
    assert seconds(chances, within(6_000_000, version=2), STREAMS) == pytest.approx(6)
    # With a threshold of 1, longer events leave less room.
    longer = {**STREAMS, "y": stream("y", version=2, max_uncertainty_us=2_000_000)}
    assert seconds(chances, within(6_000_000, version=2), longer) == pytest.approx(5)


def test_condition_whose_stream_is_not_in_force_has_no_chance_until_it_is() -> None:
    chances = Chances()
    assert chances.of({"c": within(4_000_000)}, {"x": stream("x")}) == {}
    assert seconds(chances, within(4_000_000), STREAMS) == pytest.approx(4)


def test_condition_of_an_uninstalled_kind_leaves_the_others_alone() -> None:
    unknown = Resource("condition", "u", 1, 0, {"kind": "uninstalled", "a": "x"})
    found = Chances().of({"u": unknown, "c": within(4_000_000)}, STREAMS)
    assert list(found) == ["c"]


def test_kinds_without_chance_alarms_have_no_value() -> None:
    listed = Resource("condition", "l", 1, 0, COUNT | {"similarity": "jaccard"})
    assert Chances().of({"l": listed}, STREAMS) == {}
