"""The benchmarks of event queries in short form: complete, with equal alarms."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks import tsa
from benchmarks.tsa.against import JOINS, OURS, AgainstPoint, draw_load, report_against
from benchmarks.tsa.alone import KEYED, KEYLESS, known_until_us, measure_alone
from benchmarks.tsa.answers import (
    HOUR_US,
    Answers,
    Hours,
    draw_night,
    report_answers,
)
from benchmarks.tsa.growth import COLLECTING, HOARDING, NAIVE, measure_growth
from benchmarks.tsa.many import DEADLINES, EQUAL, KINDS, ONE_AREA, measure_many, query_texts
from benchmarks.tsa.naive import Naive
from benchmarks.tsa.running import (
    DifferentResultsError,
    check_results,
    result_ids,
    start_program,
)
from benchmarks.tsa.sharing import SharingPoint, report_sharing
from benchmarks.tsa.workload import (
    DEADLINE_US,
    DELAY_US,
    MINUTE_US,
    SECOND_US,
    STREAMS,
    Arrivals,
    Cut,
    Workload,
    arrivals_in_order,
    cut_by_size,
    cut_by_time,
    draw_arrivals,
    expected_ids,
    make_block,
    make_controls,
    query_text,
)
from tests.oracle.event_queries import Event, JudgedQuery, Pattern, results
from tests.support.pages import check_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


SPAN_US = 25 * MINUTE_US
EXAMPLE = JudgedQuery(
    [Pattern("s", "smoke", (("X", "area"),))],
    [Pattern("r", "report", (("X", "area"),))],
    (
        "and",
        (
            ("<=", ("end", "s"), ("begin", "r")),
            ("<=", ("begin", "r"), ("+", ("end", "s"), DEADLINE_US)),
        ),
    ),
)


def draw_crowd() -> tuple[Arrivals, Arrivals]:
    """Draw smokes and reports independently, in few areas: some reports follow several smokes."""
    rng = np.random.default_rng(5)
    smoke, report = (
        arrivals_in_order(
            name, rng.integers(0, SPAN_US, 200), rng.integers(0, 20, 200), SPAN_US, rng
        )
        for name in STREAMS
    )
    return smoke, report


def judged(drawn: Sequence[Arrivals]) -> dict[bytes, int]:
    """Return the results of the oracle over all events: ids and times of the smokes."""
    events = [
        Event(it.stream, at, at, (("area", area),), number)
        for it in drawn
        for number, (at, area) in enumerate(zip(it.time_us.tolist(), it.area.tolist(), strict=True))
    ]
    return {b"s%d" % smoke.id: smoke.end for (smoke,) in results(EXAMPLE, events)}


def run_program(drawn: Sequence[Arrivals], cuts: Sequence[Cut], *, keyed: bool) -> set[bytes]:
    program = start_program(keyed=keyed)
    controls = make_controls([query_text(keyed=keyed)])
    found: set[bytes] = set()
    for cut in cuts:
        outcome = program.advance(make_block(drawn, cut, controls, keyed=keyed), lambda: 0)
        found |= result_ids(outcome)
        controls = []
    return found


@pytest.mark.parametrize("keyed", [False, True])
def test_program_and_naive_evaluation_find_the_alarms_of_the_oracle(*, keyed: bool) -> None:
    drawn = draw_crowd()
    until_us = known_until_us(drawn, Cut((0, 0), tuple(map(len, drawn))))
    wanted = {name for name, at_us in judged(drawn).items() if at_us <= until_us}
    assert 10 < len(wanted) < len(drawn[0]) / 2
    cuts = list(cut_by_time(drawn, MINUTE_US, SPAN_US))
    naive = Naive()
    found: set[bytes] = set()
    for cut in cuts:
        block = make_block(drawn, cut, [], keyed=False)
        found |= naive.ids(naive.take(list(block.events)))
    assert found == run_program(drawn, cuts, keyed=keyed) == wanted
    assert naive.buffered == sum(map(len, drawn))


def test_alarms_are_the_smokes_of_silent_areas() -> None:
    drawn = draw_arrivals(Workload(0.25, SPAN_US // SECOND_US, areas=300))
    until_us = known_until_us(drawn, Cut((0, 0), tuple(map(len, drawn))))
    wanted = {name for name, at_us in judged(drawn).items() if at_us <= until_us}
    assert wanted == expected_ids(drawn[0], until_us)
    assert wanted
    check_results(wanted, drawn[0], until_us, "all")
    with pytest.raises(DifferentResultsError, match="1 alarms are missing, 1 are wrong"):
        check_results({*sorted(wanted)[1:], b"s-1"}, drawn[0], until_us, "one less")


def test_blocks_hold_every_arrival_once() -> None:
    drawn = draw_crowd()
    total = sum(map(len, drawn))
    by_time = list(cut_by_time(drawn, MINUTE_US, SPAN_US))
    by_size = [*cut_by_size(drawn, 100, 64), *cut_by_size(drawn, total - 100, 64, 100)]
    for cuts in (by_time, by_size):
        assert cuts[0].begins == (0, 0)
        assert cuts[-1].ends == tuple(map(len, drawn))
        assert [it.ends for it in cuts[:-1]] == [it.begins for it in cuts[1:]]
        for cut, later in pairwise(cuts):
            ends = [it.arrival_us[: cut.ends[k]].max() for k, it in enumerate(drawn)]
            begins = [
                it.arrival_us[later.begins[k] :].min(initial=SPAN_US) for k, it in enumerate(drawn)
            ]
            assert max(ends) <= min(begins)
    assert {it.size for it in by_size} <= {64, 36, (total - 100) % 64}


@pytest.mark.slow
def test_buffers_stay_flat_only_with_garbage_collection() -> None:
    """All ways find the same alarms, or measuring raises an error."""
    points = measure_growth(quick=True)
    last = points[-1]
    assert [NAIVE in it.sizes for it in points] == [True, True, False]
    assert [it.sizes[HOARDING].buffered for it in points] == [it.events for it in points]
    assert points[1].sizes[NAIVE].buffered == points[1].events
    # The window, the delays, and as many events that wait for their removal.
    bound = 2 * last.events * (DEADLINE_US + 2 * DELAY_US + MINUTE_US) // (last.minutes * MINUTE_US)
    assert 0 < last.sizes[COLLECTING].buffered < bound < last.events
    assert last.sizes[COLLECTING].nbytes < last.sizes[HOARDING].nbytes / 3


@pytest.mark.slow
def test_program_alone_finds_all_alarms_in_both_forms() -> None:
    """All alarms are found, or measuring raises an error."""
    points = measure_alone(quick=True)
    assert {it.form for it in points} == {KEYLESS, KEYED}
    for keyless, keyed in zip(points[::2], points[1::2], strict=True):
        assert keyless[1:6] == keyed[1:6]
        assert keyless.alarms > 0
        assert min(keyless.seconds.values()) >= 0


@pytest.mark.slow
def test_more_queries_look_at_more_combinations() -> None:
    points = measure_many(quick=True)
    assert [(it.kind, it.queries) for it in points] == [
        (kind, count) for kind in KINDS for count in (1, 10)
    ]
    looked_at = {(it.kind, it.queries): it.combinations for it in points}
    # Each deadline looks at every smoke; each area at its own.
    assert looked_at[DEADLINES, 10] > 9 * looked_at[DEADLINES, 1]
    assert looked_at[ONE_AREA, 10] < looked_at[DEADLINES, 1]


def test_query_texts_differ() -> None:
    assert {kind: len(set(query_texts(kind, 100))) for kind in KINDS} == {
        DEADLINES: 100,
        EQUAL: 1,
        ONE_AREA: 100,
    }
    assert query_texts(DEADLINES, 1)[0].count("300 s") == 1


def test_load_is_split_after_the_window_is_filled() -> None:
    load = draw_load(33, 5_000)
    assert sum(map(len, load.measured)) >= 5_000
    assert len(load.warm[0]) == pytest.approx(33 * 320, rel=0.05)
    assert len(load.warm[1]) < len(load.warm[0])
    wanted = expected_ids(load.smokes, load.until_us)
    found = [(name.decode(), 0) for name in wanted]
    point = load.check(OURS, [*found, ("s-1", load.until_us + 1)], (2.0, 4.0))
    assert (point.alarms, point.wall, point.cpu) == (len(wanted), 2.0, 4.0)
    with pytest.raises(DifferentResultsError, match="1 alarms are missing"):
        load.check(OURS, found[1:], (1.0, 1.0))


def test_smokes_of_the_night_have_no_reports() -> None:
    night = draw_night(Hours(1, 2, 3))
    by_night = [name for name, at in night.alarms.items() if HOUR_US <= at < 2 * HOUR_US]
    assert len(by_night) == 3
    assert len(by_night) < len(night.alarms) < len(night.streams[0]) / 2
    smokes, reports = night.streams
    areas = {smokes.area[int(name[1:])] for name in night.alarms}
    assert not areas & set(reports.area.tolist())
    assert set(night.alarms) == {name.decode() for name in judged(night.streams)} & set(
        night.alarms
    )


@pytest.mark.slow
def test_run_gives_whole_tables_and_pictures(tmp_path: Path) -> None:
    reports = tsa.run(quick=True)
    assert len(check_page(reports, tmp_path)) >= len(reports)


def test_tables_of_the_whole_path_are_whole(tmp_path: Path) -> None:
    titles = [OURS, *(it.title for it in JOINS)]
    night = draw_night(Hours(1, 2, 3))
    answers = [
        Answers(title, {name: at + 20 * MINUTE_US for name, at in night.alarms.items()})
        for title in titles[:2]
    ]
    answers[1].seen_us.pop(min(night.due()))
    reports = [
        report_sharing([SharingPoint(DEADLINES, 1, 9, 1, 1.0, 2.0)] * 2),
        report_against([AgainstPoint(it, 33, 100, 1, 1.0, 2.0) for it in titles]),
        report_answers(night, answers),
    ]
    assert len(check_page(reports, tmp_path)) >= len(reports)
    assert [row[-1] for row in reports[1].rows] == ["1.0"] * len(titles)
    assert [row[2] for row in reports[2].rows].count("1") == 1
