"""P-SWINDOW-KERNEL and the table of s-windows: exact, bounded, equal after a restart."""

from __future__ import annotations

from collections import OrderedDict
from fractions import Fraction
from weakref import WeakSet

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from correlation.resources.histogram import Histogram
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.timing.histograms import stored_windows, table, windowing, windows
from correlation.timing.histograms.axis import FEW_OTHERS, OTHER_PLACES
from correlation.timing.histograms.integer_sets import Intervals
from correlation.timing.histograms.s_windows import s_windows
from correlation.timing.histograms.shapes import pack_shapes
from correlation.timing.histograms.table import WindowTable
from correlation.timing.histograms.template_ranges import GAPS, NEVER, UNKNOWN
from correlation.timing.histograms.windowing import find_windows
from correlation.timing.histograms.windows import WindowBook, share_book
from correlation.timing.intervals.window import TimingWindow
from tests.support.histograms import Kept, draw_histogram, side_of_events
from tests.unit.correlation.timing.histogram_strategies import (
    cut_pairs,
    described,
    histograms,
    large_histograms,
    wide_windows,
)
from tests.unit.correlation.timing.strategies import windows as any_windows

MODES = described((-100, -90, "0.5"), (-90, -10, "0"), (-10, 0, "0.5"))
# Work of the kernel on one cell before it gives up, and of an exact s-window.
ONE_CELL = windowing.MAX_EVALUATIONS + windowing.STEP_PRICE * windowing.MAX_STEPS


def draw_shapes(seed: int, count: int) -> list[Histogram]:
    rng = np.random.default_rng(seed)
    shapes: dict[Histogram, None] = {}
    while len(shapes) < count:
        shapes[draw_histogram(rng, range(5, 60))] = None
    return list(shapes)


def read_cells(
    known: WindowTable, us: list[Histogram], vs: list[Histogram]
) -> list[Intervals | None]:
    """Return the s-windows of a table, None where they are not known."""
    cells = known.declared_cells()
    assert cells.shape == (len(us), len(vs), 2)
    return [read_cell(known, cell) for cell in cells.reshape(-1, 2)]


def read_cell(known: WindowTable, cell: NDArray[np.int64]) -> Intervals | None:
    low, high = cell.tolist()
    if low in {UNKNOWN, NEVER}:
        return None
    if low >= GAPS:
        return tuple((a, b) for a, b in known.spans()[low - GAPS : low - GAPS + high].tolist())
    return ((low, high),) if low <= high else ()


def exact_cells(
    us: list[Histogram], vs: list[Histogram], window: TimingWindow
) -> list[Intervals | None]:
    return [s_windows(u, v, window) for u in us for v in vs]


def check_windows(u: Histogram, v: Histogram, window: TimingWindow) -> None:
    found, work = find_windows(pack_shapes([u]), 0, pack_shapes([v]), 0, window)
    assert found == s_windows(u, v, window)
    assert 0 <= work <= ONE_CELL


@given(u=histograms(), v=histograms(), window=any_windows(limit=25))
def test_p_swindow_kernel_finds_the_exact_s_windows(
    u: Histogram, v: Histogram, window: TimingWindow
) -> None:
    check_windows(u, v, window)


@given(drawn=cut_pairs())
def test_p_swindow_kernel_finds_the_exact_s_windows_in_all_of_time(
    drawn: tuple[Histogram, Histogram, int, TimingWindow],
) -> None:
    check_windows(drawn[0], drawn[1], drawn[3])


@given(u=large_histograms, v=large_histograms, data=st.data())
def test_p_swindow_kernel_finds_the_exact_s_windows_when_wide(
    u: Histogram, v: Histogram, data: st.DataObject
) -> None:
    check_windows(u, v, data.draw(wide_windows(u.length_us + v.length_us)))


@pytest.mark.parametrize("scale", [1, 10**6])
def test_p_swindow_kernel_leaves_a_long_tie_to_integers(scale: int) -> None:
    """P is exactly 1/2 as long as one mode lies in the window, at 10⁶ the whole of seconds."""
    modes = described(*((lo * scale, hi * scale, p) for lo, hi, p in _parts(MODES)))
    point = Histogram.from_interval(0, 0)
    check_windows(point, modes, TimingWindow(-12 * scale, 12 * scale, None, None, Fraction(1, 2)))


def _parts(shape: Histogram) -> list[tuple[int, int, str]]:
    return [
        (it.lo_us, it.hi_us, str(Fraction(it.mass, 10**10).limit_denominator() * 1.0))
        for it in shape.buckets
    ]


WINDOWS = (
    TimingWindow(-150, 150, None, None, Fraction(8, 10)),
    TimingWindow(-8, 8, None, None, Fraction(3, 10)),
    TimingWindow(None, 20, -90, None, Fraction(1, 2)),
)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("budget", [1, 700, 10**9])
def test_a_table_is_settled_in_slices_of_any_budget(window: TimingWindow, budget: int) -> None:
    us, vs = draw_shapes(1, 12), draw_shapes(2, 9)
    known = WindowTable(window, us, vs)
    slices = 0
    while not known.is_settled:
        # More than the budget by less than one cell costs.
        assert 0 < known.settle(budget) <= budget + ONE_CELL
        slices += 1
    assert read_cells(known, us, vs) == exact_cells(us, vs, window)
    assert slices > 1 or budget == 10**9
    assert known.settle(budget) == 0


def test_what_costs_too_much_is_not_known_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    us, vs = draw_shapes(1, 4), draw_shapes(2, 4)
    for module in (table, windowing):
        monkeypatch.setattr(module, "MAX_EVALUATIONS", 2)
    monkeypatch.setattr(windowing, "MAX_STEPS", 3)
    known = WindowTable(WINDOWS[0], us, vs)
    work = known.settle(10**9)
    assert known.is_settled
    assert read_cells(known, us, vs) == [None] * 16
    assert work <= 16 * 6
    # And it is not computed again and again.
    classes = side_of_events(us).classes, side_of_events(vs).classes
    assert known.fill(*classes, 10**9) == 0
    assert known.view(*classes, base_is_a=True) is None


def test_intervals_of_gaps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    window = TimingWindow(-12, 12, None, None, Fraction(4, 10))
    shapes = [MODES, described((-90, -80, "0.5"), (-80, -10, "0"), (-10, 0, "0.5"))]
    points = [Histogram.from_interval(0, 0)]
    full = WindowTable(window, points, shapes)
    full.settle(10**9)
    assert [len(it or ()) for it in read_cells(full, points, shapes)] == [2, 2]
    monkeypatch.setattr(table, "MAX_SPANS", 3)
    short = WindowTable(window, points, shapes)
    short.settle(10**9)
    assert read_cells(short, points, shapes) == [s_windows(points[0], MODES, window), None]
    # Nor are they read past the bound.
    assert stored_windows.load_table(short, stored_windows.dump_table(full))
    assert read_cells(short, points, shapes)[1] is None


@pytest.mark.parametrize("window", WINDOWS)
def test_a_stored_table_is_read_again(window: TimingWindow) -> None:
    us, vs = draw_shapes(1, 12), draw_shapes(2, 9)
    known = WindowTable(window, us, vs)
    for budget in (1, 2_000, 10**9):
        known.settle(budget)
        again = WindowTable(window, us, vs)
        assert stored_windows.name_table(again) == stored_windows.name_table(known)
        assert stored_windows.load_table(again, stored_windows.dump_table(known))
        assert read_cells(again, us, vs) == read_cells(known, us, vs)
        # Known s-windows stay, the others are computed.
        assert stored_windows.load_table(again, stored_windows.dump_table(known))
        again.settle(10**9)
        assert read_cells(again, us, vs) == exact_cells(us, vs, window)


def test_a_table_has_a_name_of_its_own() -> None:
    us, vs = draw_shapes(1, 3), draw_shapes(2, 3)
    window = WINDOWS[0]
    others = [
        WindowTable(window, us, vs),
        WindowTable(window, vs, us),
        WindowTable(window, us[::-1], vs),
        WindowTable(window, us[:2], [us[2], *vs]),
        WindowTable(TimingWindow(-150, 150, None, None, Fraction(9, 10)), us, vs),
        WindowTable(TimingWindow(-150, 150, -9, None, Fraction(8, 10)), us, vs),
    ]
    assert len({stored_windows.name_table(it) for it in others}) == len(others)


def test_a_stored_table_that_is_damaged_is_not_read() -> None:
    us, vs = draw_shapes(1, 5), draw_shapes(2, 5)
    known = WindowTable(WINDOWS[1], us, vs)
    known.settle(10**9)
    blob = stored_windows.dump_table(known)
    damaged = [
        blob[:-1],
        blob[:40],
        b"",
        *(
            blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :]
            for place in range(0, len(blob), 7)
        ),
    ]
    # As it would be of fewer shapes.
    other = WindowTable(WINDOWS[1], us[:1], vs)
    for bad in (*damaged, stored_windows.dump_table(other)):
        fresh = WindowTable(WINDOWS[1], us, vs)
        assert not stored_windows.load_table(fresh, bad)
        assert read_cells(fresh, us, vs) == [None] * 25


def test_a_book_computes_slice_by_slice_and_stores_what_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "SLICE", 500)
    us, vs = draw_shapes(1, 12), draw_shapes(2, 9)
    kept, book = Kept(), WindowBook(WINDOWS[0], us, vs)
    blocks = 0
    while not book.table.is_settled:
        book.advance(kept)
        blocks += 1
        assert book.work <= blocks * (500 + ONE_CELL)
        assert bool(kept.blobs) == book.table.is_settled
    assert blocks > 2
    again = WindowBook(WINDOWS[0], us, vs)
    again.advance(kept)
    assert (again.work, again.table.is_settled) == (0, True)
    assert read_cells(again.table, us, vs) == exact_cells(us, vs, WINDOWS[0])
    # A damaged table is computed again, and stored again.
    (name,) = kept.blobs
    kept.blobs[name] = kept.blobs[name][:-9]
    third = WindowBook(WINDOWS[0], us, vs)
    while not third.table.is_settled:
        third.advance(kept)
    assert third.work == book.work
    assert read_cells(third.table, us, vs) == exact_cells(us, vs, WINDOWS[0])
    assert stored_windows.load_table(again.table, kept.blobs[name])


def test_a_book_stores_part_of_much_and_takes_over_what_others_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "SLICE", 100)
    monkeypatch.setattr(windows, "_STORE_AFTER", 300)
    us, vs = draw_shapes(1, 12), draw_shapes(2, 9)
    kept, first = Kept(), WindowBook(WINDOWS[0], us, vs)
    while not kept.blobs:
        first.advance(kept)
    assert not first.table.is_settled
    second = WindowBook(WINDOWS[0], us, vs)
    second.advance(kept)
    ours, theirs = (read_cells(it.table, us, vs) for it in (second, first))
    assert all(ours[place] == it for place, it in enumerate(theirs) if it is not None)
    while not second.table.is_settled:
        second.advance(kept)
    while not first.table.is_settled:
        first.advance(kept)
    # It had the rest from the cache.
    assert first.work < first.table.rows.declared * first.table.columns.declared * 10
    assert read_cells(first.table, us, vs) == exact_cells(us, vs, WINDOWS[0])


def test_many_other_shapes_take_no_place_of_templates() -> None:
    us, vs = draw_shapes(1, 40), draw_shapes(2, 40)
    book = WindowBook(WINDOWS[0], us, vs)
    book.advance(None)
    lengths = [Histogram.from_interval(-k, 0) for k in range(100, 101 + FEW_OTHERS)]
    own = [it for it in draw_shapes(3, OTHER_PLACES) if it not in us]
    for others in (lengths, own, [*lengths, *own]):
        mixed = side_of_events([*us, *others]).classes
        grid = book.find_grid(mixed, side_of_events(vs).classes, base_is_a=True)
        assert grid is not None
        assert not grid.is_complete
        placed = {
            mixed.shapes.histogram(i) for i in np.flatnonzero(grid.columns.bases >= 0).tolist()
        }
        assert placed == set(us)
    # Templates alone still have all of theirs.
    alone = book.find_grid(side_of_events(vs).classes, side_of_events(us).classes, base_is_a=False)
    assert alone is not None
    assert alone.is_complete


@pytest.mark.parametrize("window", WINDOWS)
def test_few_others_have_places_until_others_need_them(window: TimingWindow) -> None:
    us, vs = draw_shapes(1, 3), draw_shapes(2, 3)
    book = WindowBook(window, us, vs)
    book.advance(None)
    intervals = len(book.table.spans())
    target = side_of_events(vs).classes
    for begin in range(1, 10 * FEW_OTHERS, FEW_OTHERS):
        others = [Histogram.from_interval(-k, 0) for k in range(begin, begin + FEW_OTHERS)]
        mixed = side_of_events([*us, *others]).classes
        book.credit = 10**6
        grid = book.find_grid(mixed, target, base_is_a=True)
        assert grid is not None
        assert grid.is_complete
        for i in range(len(mixed)):
            for j in range(len(target)):
                place = int(grid.columns.bases[i] + grid.columns.targets[j])
                exact = s_windows(mixed.shapes.histogram(i), target.shapes.histogram(j), window)
                assert read_cell(book.table, grid.columns.cells[place]) == exact
    # Those of the others before are gone.
    assert len(book.table.spans()) <= intervals + 2 * OTHER_PLACES * len(vs)
    assert read_cells(book.table, us, vs) == exact_cells(us, vs, window)


def _streams(shapes: list[Histogram]) -> tuple[Stream, Stream]:
    templates = tuple(Template(f"t{k}", it) for k, it in enumerate(shapes))
    a, b = (Stream(name, name, 100, 0, templates=templates) for name in "ab")
    return a, b


def test_operators_of_a_process_share_their_s_windows_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(windows, "_KEPT", OrderedDict())
    monkeypatch.setattr(windows, "_LIVE", WeakSet())
    streams = _streams(draw_shapes(1, 20))
    one = share_book(WINDOWS[0], *streams)
    assert share_book(WINDOWS[0], *streams) is one
    other = share_book(WINDOWS[1], *streams)
    assert other is not one
    assert other.table.has_declared
    # A third has no room while the two are in use.
    room = one.table.cells + other.table.cells
    monkeypatch.setattr(windows, "MAX_CELLS", room)
    assert not share_book(WINDOWS[2], *streams).table.has_declared
    del one, other
    monkeypatch.setattr(windows, "_KEPT", OrderedDict())
    assert share_book(WINDOWS[2], *streams).table.has_declared


def test_streams_of_intervals_have_no_s_windows_beforehand() -> None:
    a, b = (Stream(name, name, 100, 0, 100) for name in "ab")
    assert not share_book(WINDOWS[0], a, b).table.has_declared
    with_templates = _streams([MODES])[0]
    # All events of b are equally long: that is known beforehand too.
    assert share_book(WINDOWS[0], with_templates, b).table.has_declared
