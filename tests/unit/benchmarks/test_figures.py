"""The papers' experiments in short form: complete, with equal pairs, and with identical plots."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks import ll10, ptj
from benchmarks.__main__ import Page, write_page
from benchmarks.kernel import mutual
from benchmarks.ll10 import lookups
from benchmarks.ll10.arrivals import (
    Arrivals,
    Workload,
    cut_by_interval,
    cut_by_size,
    draw_arrivals,
)
from benchmarks.ll10.blocks import ALGORITHMS as WAITING
from benchmarks.ll10.blocks import measure_blocks
from benchmarks.ll10.lookups import READINGS, REGIONS, measure_lookups
from benchmarks.ll10.measuring import SERIES, DifferentPairsError, Series, measure
from benchmarks.ll10.rates import ALL_SERIES, measure_rates
from benchmarks.ll10.simulator import Measured, play_arrivals, play_blocks
from benchmarks.ll10.sorted_buffer import ArrivalBuffer
from benchmarks.ll10.thresholds import THRESHOLDS, measure_thresholds
from benchmarks.plotting import add_legend, draw_lines, make_axes, save
from benchmarks.ptj.comparing import measure_joins
from benchmarks.ptj.joins import ONE_BY_ONE, WAYS
from benchmarks.ptj.own import measure_own
from benchmarks.ptj.sizes import measure_sizes
from benchmarks.report import Picture, Report
from tests.oracle.intervals import satisfied_pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = Workload(200, 100, mutual(500, "0.8"), keys=2)


def _one_number(runs: list[Measured]) -> int:
    (pairs,) = {run.pairs for run in runs}
    return pairs


@pytest.mark.slow
@pytest.mark.nightly
def test_rates_all_series_find_the_same_pairs() -> None:
    points = measure_rates(quick=True)
    assert [point.workload.rate for point in points] == [12, 400, 16_000]
    for point in points:
        assert len(point.runs) == len(ALL_SERIES)
        assert _one_number(list(point.runs)) > point.workload.events


@pytest.mark.slow
def test_blocks_all_sizes_and_algorithms_find_the_same_pairs() -> None:
    points = measure_blocks(quick=True)
    assert [(point.threshold, point.size) for point in points] == [
        ("0.8", 200),
        ("0.8", 2_000),
        ("0.5", 200),
        ("0.5", 2_000),
    ]
    assert {len(point.runs) for point in points} == {len(WAITING)}
    first, second = (
        _one_number([run for point in points if point.threshold == ct for run in point.runs])
        for ct in ("0.8", "0.5")
    )
    assert 0 < first < second  # a lower threshold satisfies more


def test_lookups_each_reading_decides_more_than_the_one_before() -> None:
    """All find the same pairs, or measuring raises an error."""
    for point in measure_lookups(quick=True):
        for regions in REGIONS:
            ratios = [point.runs[regions, reading].hit_ratio for reading in READINGS]
            assert ratios == sorted(ratios)
            assert len(set(ratios)) == len(READINGS)


@pytest.mark.slow
@pytest.mark.nightly
def test_thresholds_more_pairs_the_lower_they_are() -> None:
    points = measure_thresholds(quick=True)
    assert tuple(point.threshold for point in points) == THRESHOLDS
    pairs = [_one_number(list(point.runs)) for point in points]
    assert {len(point.runs) for point in points} == {len(SERIES)}
    assert pairs == sorted(pairs)
    assert 0 < pairs[0] < pairs[-1]


@pytest.mark.slow
def test_joins_prune_without_losing_pairs() -> None:
    points = measure_joins(quick=True)
    assert [(point.window_ms, point.threshold) for point in points] == [
        (window, threshold) for window in (1_500, 2_000) for threshold in ("0.05", "0.95")
    ]
    for point in points:
        computed = [point.missed[way] for way in WAYS]
        assert computed == sorted(computed, reverse=True)
        # With s-windows nothing is computed.
        assert computed[WAYS.index("lazy") :] == [0, 0, 0]
        assert 0 < point.pairs < point.missed["simple"]
        assert point.kept["lazy"] < point.kept[ONE_BY_ONE]


@pytest.mark.slow
def test_more_templates_are_decided_by_s_windows_too() -> None:
    for point in measure_sizes(quick=True):
        assert point.found["lazy"].missed == 0
        assert 0 < point.found[ONE_BY_ONE].missed
        assert len(point.found["at once"].pairs) == len(point.found[ONE_BY_ONE].pairs) > 0


@pytest.mark.slow
@pytest.mark.nightly
def test_quantiles_decide_most_of_what_supports_leave_open() -> None:
    points = measure_own(quick=True)
    assert len(points) == 6
    for point in points:
        assert 0 < point.pairs
        assert 0 < point.left_open
        assert 0.5 < point.decided < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", [pytest.param(ll10.run, marks=pytest.mark.nightly), lookups.run, ptj.run]
)
def test_run_gives_whole_tables_and_pictures(
    run: Callable[..., list[Report]], tmp_path: Path
) -> None:
    reports = run(quick=True)
    page = Page(tmp_path / "figures.md", (), "# Figures\n\n{machine}\n\n")
    write_page(page, reports)
    text = page.path.read_text()
    for report in reports:
        assert report.text.strip()
        assert {len(row) for row in report.rows} == {len(report.columns)}
        assert f"## {report.title}\n" in text
    pictures = re.findall(r"\(figures/(.+\.svg)\)", text)
    assert sorted(pictures) == sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert len(pictures) >= len({report.title for report in reports if report.pictures})
    before = (tmp_path / "figures" / pictures[0]).read_bytes()
    again = next(picture for report in reports for picture in report.pictures)
    assert save(again, tmp_path / "again").read_bytes() == before


def test_played_arrivals_find_the_pairs_of_the_oracle() -> None:
    arrivals = draw_arrivals(SMALL)
    first = arrivals.first_measured
    expected = 0
    for key in range(SMALL.keys):
        rows = [np.flatnonzero((arrivals.key == key) & (arrivals.side == side)) for side in (0, 1)]
        a, b = (
            list(zip(arrivals.earliest[its].tolist(), arrivals.latest[its].tolist(), strict=True))
            for its in rows
        )
        pairs = satisfied_pairs(
            a,
            b,
            [(0, len(a), 0, len(b))],
            (-500_000, 500_000, None, None, Fraction("0.8")),
            exclude_same=False,
        )
        # Those count that were completed by an event of the measured time.
        expected += sum(int(max(rows[0][i], rows[1][j]) >= first) for i, j in pairs)
    runs = [one.play(SMALL, arrivals) for one in SERIES]
    runs.append(Series("lazy_lookup", interval_us=50_000).play(SMALL, arrivals))
    assert [run.pairs for run in runs] == [expected] * len(runs)
    assert expected > 0


class Losing(Series):
    """An algorithm that loses a pair."""

    def play(self, workload: Workload, arrivals: Arrivals) -> Measured:
        run = super().play(workload, arrivals)
        run.pairs -= 1
        return run


def test_measure_refuses_times_when_pairs_differ() -> None:
    with pytest.raises(DifferentPairsError, match="pairs"):
        measure(SMALL, [Series("eager"), Losing("eager")], 1)


def test_response_time_grows_when_work_comes_faster_than_it_is_done() -> None:
    measured = Measured(1_000)
    assert measured.serve(0, 300.0) == 300.0
    assert measured.serve(100, 300.0) == 600.0  # waits for the work before
    assert measured.serve(5_000, 300.0) == 5_300.0
    assert measured.busy_us == 900.0


def test_blocks_hold_every_arrival_once() -> None:
    arrivals = draw_arrivals(SMALL)
    by_interval = cut_by_interval(arrivals, 100_000)
    by_size = cut_by_size(arrivals, 30)
    for blocks in (by_size, by_interval):
        assert blocks[0][0] == 0
        assert blocks[-1][1] == len(arrivals.at_us)
        assert [end for _, end, _ in blocks[:-1]] == [begin for begin, _, _ in blocks[1:]]
        for begin, end, at_us in blocks:
            assert arrivals.at_us[end - 1] <= at_us
            assert (arrivals.at_us[begin] >= 0) == (arrivals.at_us[end - 1] >= 0)
    for begin, end, _ in by_size:
        assert max(np.bincount(arrivals.side[begin:end], minlength=2)) <= 30


def test_buffers_hold_what_later_events_need() -> None:
    arrivals = draw_arrivals(SMALL)
    by_arrival = play_arrivals("ssort", SMALL, arrivals)
    unsorted = play_arrivals("simple", SMALL, arrivals)
    by_block = play_blocks("lazy", SMALL, arrivals, cut_by_size(arrivals, 50))
    assert by_arrival.arrived == unsorted.arrived == by_block.arrived
    assert by_arrival.buffer_events <= unsorted.buffer_events < by_block.buffer_events


def test_arrival_buffer_keeps_its_order_while_it_grows() -> None:
    rng = np.random.default_rng(1)
    times = rng.permutation(3_000)
    in_order, as_they_come = ArrivalBuffer(is_sorted=True), ArrivalBuffer(is_sorted=False)
    for time in times.tolist():
        in_order.insert(time - 5, time)
        as_they_come.insert(time - 5, time)
    in_order.drop(1_000)
    latest = in_order.columns.latest[in_order.begin : in_order.end]
    assert latest.tolist() == list(range(1_000, 3_000))
    assert (latest - in_order.columns.earliest[in_order.begin : in_order.end] == 5).all()
    assert as_they_come.columns.latest[: as_they_come.end].tolist() == times.tolist()


def test_pictures_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        figure, (axis,) = make_axes("x", "y")
        draw_lines(axis, [1, 2], {"a": [1, 2], "b": [2, 1]})
        add_legend(figure, axis)
        files.append(save(Picture("plot", "two lines", figure), tmp_path / name).read_bytes())
    assert files[0] == files[1]
    assert b"<text" in files[0]
