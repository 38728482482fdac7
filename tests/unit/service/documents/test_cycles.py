"""Conditions on results of conditions: the registry refuses cycles and oversized buffers."""

from __future__ import annotations

import pytest

from correlation.resources.records import stream_from_document
from service.errors import InvalidDocumentError
from service.registry import Registry
from tests.support.messages import assert_names, naming
from tests.unit.service.test_registry import PAIR, STREAM, condition, fold, stream

# Exact times: horizons are windows and delays, and nothing else.
POINTS = {"max_uncertainty_us": 0}


def _chain(*conditions: tuple[str, str, str]) -> Registry:
    """Register streams named as their topics, and conditions: name, what each reads and writes."""
    streams = [stream(name, topic=name) for name in "pqrs"]
    return fold(
        *streams,
        *(
            condition(name, a=reads, b="s", output_topic=writes)
            for name, reads, writes in conditions
        ),
    )


@pytest.mark.parametrize(
    ("others", "reads", "writes", "way"),
    [
        ([("c1", "q", "r")], "p", "q", None),
        ([("c1", "q", "r"), ("c2", "r", "elsewhere")], "p", "q", None),
        ([("c1", "q", "p")], "p", "q", "c0 -> c1 -> c0"),
        ([("c1", "q", "r"), ("c2", "r", "p"), ("c3", "q", "x")], "p", "q", "c0 -> c1 -> c2 -> c0"),
        # An existing loop of other conditions does not concern this condition.
        ([("c1", "q", "r"), ("c2", "r", "q")], "p", "q", None),
    ],
)
def test_condition_that_closes_a_loop_is_refused(
    others: list[tuple[str, str, str]], reads: str, writes: str, way: str | None
) -> None:
    registry = _chain(*others)
    document = PAIR | {"a": reads, "b": "s", "output_topic": writes}
    if way is None:
        registry.check_condition("c0", 1, document)
        return
    with pytest.raises(InvalidDocumentError, match=way) as caught:
        registry.check_condition("c0", 1, document)
    assert caught.value.problems[0].field == "output_topic"


def test_condition_takes_the_place_of_its_last_version() -> None:
    registry = _chain(("c0", "p", "q"), ("c1", "q", "r"))
    # Turned round it would close the loop with what it was, but that is gone then.
    registry.check_condition("c0", 2, PAIR | {"a": "p", "b": "s", "output_topic": "x"})


def test_stream_that_closes_a_loop_is_refused() -> None:
    registry = _chain(("c0", "p", "q"), ("c1", "q", "x"))
    moved = stream_from_document("p", STREAM | {"topic": "x"})
    with pytest.raises(InvalidDocumentError, match="c0 -> c1 -> c0") as caught:
        registry.checks().check_stream(moved)
    assert caught.value.problems[0].field == "topic"
    registry.checks().check_stream(stream_from_document("p", STREAM | {"topic": "y"}))


def test_condition_that_keeps_more_than_is_allowed_is_refused() -> None:
    # x is kept for the window and the delay of y: 10 s + 1 s.
    registry = fold(stream("x", **POINTS, max_rate=1_000), stream("y", **POINTS), limit=11_000)
    registry.check_condition("c", 1, PAIR | {"window_us": 10_000_000})
    with pytest.raises(InvalidDocumentError) as caught:
        registry.check_condition("c", 1, PAIR | {"window_us": 11_000_000})
    (problem,) = caught.value.problems
    assert problem.field == "window"
    assert_names(problem.problem, "12,000 events of stream x (12s at 1,000 events/s)", "11,000")
    assert_names(problem.remedy, "at most 11s", "window, horizon or max_delay")


def test_remedy_is_that_of_the_kind() -> None:
    # x is kept for the window, and the delay and the skew of y: 9 s + 2 s.
    grid = {"by": "grid", "groups": 1}
    registry = fold(
        stream("x", **POINTS, partitioning=grid, max_rate=1_000),
        stream("y", **POINTS, partitioning=grid),
        limit=11_000,
    )
    where = "WHERE s.rt.end <= r.rt.end, r.rt.end <= s.rt.end"
    query = f"DETECT A ON event s: X not event r: Y {where}"
    registry.check_condition("c", 1, {"kind": "event_query", "query": f"{query} + 9 s END"})
    with pytest.raises(InvalidDocumentError) as caught:
        registry.check_condition("c", 1, {"kind": "event_query", "query": f"{query} + 10 s END"})
    (problem,) = caught.value.problems
    assert problem.field == "query"
    assert_names(problem.remedy, "at most 11s", "relations of the query", "max_delay", "max_length")


@pytest.mark.parametrize(
    ("ends", "field"),
    [((0, 20_000_000), "upper"), ((-20_000_000, 0), "lower")],
)
def test_field_is_the_one_that_costs(ends: tuple[int, int], field: str) -> None:
    streams = [stream(name, **POINTS, max_rate=1_000) for name in "xy"]
    registry = fold(*streams, limit=11_000)
    document = {"kind": "within", "a": "x", "b": "y", "threshold": "0.5"}
    with pytest.raises(InvalidDocumentError) as caught:
        registry.check_condition("c", 1, document | {"lower_us": ends[0], "upper_us": ends[1]})
    assert caught.value.problems[0].field == field


def test_copies_on_a_grid_count() -> None:
    grid = {"by": "grid", "groups": 3}
    streams = [stream(it, **POINTS, partitioning=grid, max_rate=1_000) for it in "xy"]
    registry = fold(*streams, limit=11_000)
    registry.check_condition("c", 1, PAIR | {"window_us": 2_000_000})
    with pytest.raises(InvalidDocumentError, match=r"would buffer 12,000 events"):
        registry.check_condition("c", 1, PAIR | {"window_us": 3_000_000})


def test_stream_whose_conditions_would_keep_more_than_is_allowed_is_refused() -> None:
    registry = fold(
        stream("x"), stream("y", **POINTS), condition("c", window_us=10_000_000), limit=11_000
    )
    registry.checks().check_stream(stream_from_document("x", STREAM | POINTS | {"max_rate": 1_000}))
    with pytest.raises(InvalidDocumentError, match="condition c would buffer") as caught:
        registry.checks().check_stream(
            stream_from_document("x", STREAM | POINTS | {"max_rate": 1_001})
        )
    assert caught.value.problems[0].field == "max_rate"


def test_stream_whose_conditions_cannot_take_histograms_is_refused() -> None:
    registry = fold(stream("x"), stream("y"), condition("c", output="factored"))
    with pytest.raises(InvalidDocumentError, match=naming("condition c", "not support")) as caught:
        registry.checks().check_stream(stream_from_document("x", STREAM | {"histograms": True}))
    (problem,) = caught.value.problems
    assert problem.field == "histograms"
    assert problem.remedy.endswith("use output pairs")
    plain = fold(stream("x"), stream("y"), condition("c"))
    plain.checks().check_stream(stream_from_document("x", STREAM | {"histograms": True}))
