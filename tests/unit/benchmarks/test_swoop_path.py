"""The benchmark of the whole path of top-k conditions: records, judge, steps and tables."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from benchmarks.stack import cpu_seconds, memory_by_program
from benchmarks.swoop.alone import Alone, Steps
from benchmarks.swoop.backlog import BacklogPoint, report_backlogs
from benchmarks.swoop.live import LivePoint, entered_us, report_live
from benchmarks.swoop.measuring import DifferentAnswersError
from benchmarks.swoop.recorded import (
    PARTITIONS,
    SPACING_US,
    generate_sets,
    make_resources,
    make_stream,
    read_texts,
    window_us_of,
)
from benchmarks.swoop.windows import K, WindowsPoint, check_list, report_windows
from benchmarks.swoop.workload import draw_sets
from correlation.resources.records import stream_from_document
from tests.oracle.topk import TokenSet, ranked_pairs
from tests.support.pages import check_page

if TYPE_CHECKING:
    from pathlib import Path

WINDOW = 100


def test_records_have_the_generated_sets() -> None:
    source, drawn = generate_sets(40), draw_sets(40)
    records = source.records(10, 30)
    assert [partition for _, _, partition in records] == [0, 1] * 10
    for number, (key, value, _) in enumerate(records, 10):
        begin, end = drawn.offsets[number : number + 2]
        assert key is None
        assert orjson.loads(value) == {
            "id": str(number),
            "time": number * SPACING_US,
            "tokens": [f"t{it}" for it in drawn.tokens[begin:end]],
        }


def test_texts_are_divided_by_the_stream() -> None:
    source = read_texts(4)
    assert set(orjson.loads(source.record(3, 5))) == {"id", "time", "text"}
    stream = make_stream("messages", source, 2)
    registered, condition = make_resources(stream, 7, window_us_of(WINDOW))
    assert stream_from_document(registered.name, registered.document) == stream
    assert (stream.tokens.tokenizer, stream.partitioning.groups) == ("words", 2)  # type: ignore[union-attr]
    assert (condition.document["k"], condition.document["window_us"]) == (7, 99_999)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 2])
def test_steps_alone_evaluate_all_sets(groups: int) -> None:
    alone = Alone(generate_sets(900), 5, window_us_of(WINDOW), groups)
    alone.take(300)
    steps = alone.measure(300, 2)
    assert 0 < steps.operator < steps.slots
    assert steps.reading > 0
    totals = {"events_consumed_total": 0, "topk_valid_sets": 0}
    for outcome in alone.outcomes:
        for name, _, value in (*outcome.metrics["counters"], *outcome.metrics["gauges"]):
            if name in totals:
                totals[name] += value
    # Each set is in a cell for each group.
    valid = groups * WINDOW
    assert totals["events_consumed_total"] == 900
    assert valid - groups <= totals["topk_valid_sets"] <= valid


def judged(count: int, valid_from: int) -> list[dict[str, Any]]:
    """Return the list of generated sets by brute force; the last sets have not taken effect."""
    drawn = draw_sets(count)
    ends = drawn.offsets.tolist()
    sets = [
        TokenSet(it, it, frozenset(drawn.tokens[ends[it] : ends[it + 1]].tolist()))
        for it in range(valid_from, count - PARTITIONS)
    ]
    return [
        {
            "older": {"id": str(it.older.number)},
            "newer": {"id": str(it.newer.number)},
            "overlap": len(it.older.tokens & it.newer.tokens),
        }
        for it in ranked_pairs("jaccard", sets, crossed=False)[:K]
    ]


def test_list_is_compared_with_brute_force() -> None:
    source, items = generate_sets(80), judged(80, 20)
    valid_from_us = 19 * SPACING_US + 1
    check_list(items, source, valid_from_us)
    for wrong in ([items[1], items[0], *items[2:]], items[:-1], []):
        with pytest.raises(DifferentAnswersError, match="last list"):
            check_list(wrong, source, valid_from_us)
    with pytest.raises(DifferentAnswersError, match="last list"):
        check_list(items, source, valid_from_us + 20 * SPACING_US)


@pytest.mark.parametrize(
    ("fields", "time_us"),
    [
        ({}, 7),
        ({"change": "moved"}, None),
        ({"change": "left"}, None),
        ({"reason": "expiry"}, None),
        ({"reason": "condition"}, None),
    ],
)
def test_times_are_those_of_sets_whose_pairs_enter(
    fields: dict[str, str], time_us: int | None
) -> None:
    change = {"change": "entered", "reason": "set", "newer": {"time": 7}}
    assert entered_us(change | fields) == time_us


def test_memory_is_that_of_a_process_and_its_children() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:  # noqa: S607 - any cat will do
        assert set(memory_by_program(child.pid)) == {"cat"}
        memory = memory_by_program(os.getpid())
        assert memory["cat"] > 0
        assert sum(memory.values()) > 50 * 2**20
        assert cpu_seconds(os.getpid()) > cpu_seconds(child.pid)


def test_tables_of_the_whole_path_are_whole(tmp_path: Path) -> None:
    steps = Steps(1e-5, 2e-5, 1.5e-5, 0.0)
    gauges = {"buffered_events": 3.0, "state_bytes": 2048.0}
    gauges |= {"topk_stock_pairs": 4.0, "topk_valid_sets": 3.0, "topk_last_value": 0.5}
    reports = [
        report_backlogs(
            [
                BacklogPoint("generated", 50, groups, 1_000, 0.5, 0.05 * groups, steps)
                for groups in (1, 2)
            ]
        ),
        report_live([LivePoint(200, 1, 9, 0.25, [0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5])]),
        report_windows(
            [WindowsPoint(it, it * 10, 5.0, 2**20, 2**21, 2**22, gauges) for it in (1, 2)]
        ),
    ]
    assert check_page(reports, tmp_path) == ["swoop-path.svg", "swoop-windows.svg"]
    backlogs, live, windows = reports
    assert [row[4] for row in backlogs.rows] == ["1.00", "2.00"]
    assert [row[-1] for row in backlogs.rows] == ["30%", "15%"]
    assert live.rows[0][:4] == ["200, 1", "9", "25%", "0.10 s"]
    assert windows.rows[1][:6] == ["2", "20", "5", "1 MiB", "2 MiB", "4.0 MiB"]
