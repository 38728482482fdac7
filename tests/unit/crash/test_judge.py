"""The judge of the crash matrix finds every difference."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from correlation.resources.partitioning import Partitioning
from tests.crash.judge import Verdict, compare, expected_results
from tests.crash.load import CELLS, OTHER_CELLS, make_stream
from tests.crash.sending import SentEvent
from tests.support.workload import Occurrence

if TYPE_CHECKING:
    from correlation.resources.records import Document

WANTED = Counter(["near|1", "near|2", "list|3", "list|3"])
EXPECTED = Counter({"near": 2, "list": 2})


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (WANTED, Verdict(EXPECTED, [], [], [], [])),
        (WANTED - Counter(["near|1"]), Verdict(EXPECTED, ["near|1"], [], [], [])),
        (WANTED - Counter(["list|3"]), Verdict(EXPECTED, ["list|3"], [], [], [])),
        (WANTED + Counter(["near|4"] * 2), Verdict(EXPECTED, [], ["near|4"], [], [])),
        (WANTED + Counter(["list|3"]), Verdict(EXPECTED, [], [], ["list|3"], [])),
    ],
)
def test_difference_is_missing_or_too_many_or_twice(found: Counter[str], verdict: Verdict) -> None:
    assert compare(WANTED, found, []) == verdict
    assert verdict.is_right == (found == WANTED)


def test_expected_pairs_are_those_of_all_events() -> None:
    near = {"kind": "mutual_deadline", "a": "a", "b": "b", "window_us": 10, "threshold": "0.5"}
    times = {"a": (100, 200), "b": (105, 300)}
    sent = {
        name: [
            SentEvent(Occurrence(name, f"{name}{it}", "k", it, it), None, 0, offset)
            for offset, it in enumerate(found)
        ]
        for name, found in times.items()
    }
    streams = {name: make_stream(name, "crash") for name in sent}
    results, changes = expected_results(streams, sent, {"near": near})
    assert [it.partition("|")[0] for it in results.elements()] == ["near"]
    assert '"id": "a100"' in next(iter(results))
    assert '"id": "b105"' in next(iter(results))
    assert changes == []


def test_expected_pairs_of_a_grid_and_of_blocks_are_those_of_all_events() -> None:
    near = {"kind": "mutual_deadline", "a": CELLS, "b": OTHER_CELLS, "window_us": 10}
    conditions: dict[str, Document] = {
        "pairs": {**near, "threshold": "0.5"},
        "blocks": {**near, "threshold": "0.5", "block_size": 2, "block_interval_us": 1_000},
        "factored": {**near, "threshold": "0.5", "output": "factored"},
        "self": {**near, "b": CELLS, "threshold": "0.5"},
    }
    times = {CELLS: (100, 104, 200), OTHER_CELLS: (105, 110, 300)}
    sent = {
        name: [
            SentEvent(Occurrence(name, f"{name}{it}", "", it, it), None, 0, offset)
            for offset, it in enumerate(found)
        ]
        for name, found in times.items()
    }
    streams = {name: make_stream(name, "crash") for name in sent}
    assert {it.partitioning for it in streams.values()} == {Partitioning("grid", 3)}
    results, _ = expected_results(streams, sent, conditions)
    counts = Counter(it.partition("|")[0] for it in results.elements())
    assert counts == {"pairs": 4, "blocks": 4, "factored": 4, "self": 1}
