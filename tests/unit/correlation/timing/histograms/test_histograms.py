"""P-SUPPORT, P-HISTOGRAM-KEEP, P-HISTOGRAM-INDEXED, P-HISTOGRAM-BEST, and shared searches."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import BytesColumn, DictionaryColumn
from correlation.buffers.segment import Segment
from correlation.resources.histogram import Histogram
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.timing.histograms import reach as histogram_reach
from correlation.timing.histograms import windows as histogram_windows
from correlation.timing.histograms.algorithms import correlate_histograms
from correlation.timing.histograms.best import choose_best
from correlation.timing.histograms.classes import make_side, side_of
from correlation.timing.histograms.final import find_histogram_targets
from correlation.timing.histograms.pieces import CERTAIN, LEFT, split_by_supports
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.histograms.windows import WindowBook
from correlation.timing.intervals.pairs import LOOKUP, SATISFACTION_REGION
from correlation.timing.intervals.satisfaction import bounds
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.support.histograms import one_group, side_of_events, told
from tests.unit.correlation.timing.histogram_strategies import described, histograms, wide_windows
from tests.unit.correlation.timing.strategies import judged, windows

MODES = described((-100, -90, "0.5"), (-90, -10, "0"), (-10, 0, "0.5"))
ANY_WINDOWS = st.one_of(wide_windows(24), windows(limit=30))


@given(
    base=histograms(places=0),
    targets=st.lists(histograms(places=0), min_size=1, max_size=3),
    window=ANY_WINDOWS,
)
def test_p_support_decides_by_position(
    base: Histogram, targets: list[Histogram], window: TimingWindow
) -> None:
    bases, others = side_of_events([base.shape()]), side_of_events([it.shape() for it in targets])
    pieces = split_by_supports(bases.classes, others.classes, window.scalars())
    found = list(zip(pieces.low.tolist(), pieces.high.tolist(), pieces.how.tolist(), strict=True))
    assert all(before[1] < after[0] for before, after in pairwise(found))
    near = [end + more for low, high, _ in found for end in (low, high) for more in (-1, 0, 1)]
    for s in [*near, *range(-30, 31)]:
        how = [kind for low, high, kind in found if low <= s <= high]
        for target in targets:
            moved = told(target.shape().moved(s))
            satisfied = oracle.is_satisfied(told(base.shape()), moved, judged(window))
            if how == [CERTAIN]:
                assert satisfied
                assert oracle.probability(told(base.shape()), moved, judged(window)) == 1
            if not how:
                assert not satisfied
        if how == [LEFT] and window.upper_us is not None:
            assert s + base.length_us <= window.upper_us


def _stream(shapes: list[Histogram], shortest: int, longest: int, *, own: bool) -> Stream:
    lengths = [shape.length_us for shape in shapes]
    templates = tuple(Template(f"t{k}", shape) for k, shape in enumerate(shapes))
    least, most = min([shortest, *lengths]), max([longest, *lengths])
    return Stream("x", "x", most, 0, least, templates=templates, histograms=own)


def _carried(stream: Stream, own: list[Histogram]) -> list[Histogram]:
    """List shapes that events of the stream may carry."""
    found = [template.histogram for template in stream.templates]
    found += [
        Histogram.from_interval(-length, 0)
        for length in range(stream.min_uncertainty_us, stream.max_uncertainty_us + 1)
    ]
    if stream.histograms:
        found += [
            it
            for it in own
            if stream.min_uncertainty_us <= it.length_us <= stream.max_uncertainty_us
        ]
    return found


@st.composite
def _streams(draw: st.DrawFn) -> tuple[Stream, list[Histogram]]:
    small = histograms(longest=6, most=3, places=0)
    shortest, longest = sorted(draw(st.integers(0, 5)) for _ in range(2))
    templates = draw(st.lists(small, max_size=2))
    stream = _stream(templates, shortest, longest, own=draw(st.booleans()))
    return stream, draw(st.lists(small, max_size=3))


@given(a=_streams(), b=_streams(), window=st.one_of(wide_windows(12), windows(limit=16)))
def test_p_histogram_keep_no_pair_is_satisfied_outside_the_reach(
    a: tuple[Stream, list[Histogram]], b: tuple[Stream, list[Histogram]], window: TimingWindow
) -> None:
    least, greatest = stream_reach(window, a[0], b[0])
    for u in _carried(*a):
        for v in _carried(*b):
            for s in (least - 1, least - 2, greatest + 1, greatest + 2, 1 - u.length_us + least):
                if least <= s <= greatest:
                    continue
                moved = told(v.shape().moved(s))
                assert not oracle.is_satisfied(told(u.shape()), moved, judged(window))


@given(a=_streams(), b=_streams(), window=ANY_WINDOWS)
def test_p_histogram_keep_is_reached_by_templates_when_wide(
    a: tuple[Stream, list[Histogram]], b: tuple[Stream, list[Histogram]], window: TimingWindow
) -> None:
    streams = [replace(it, histograms=False) for it in (a[0], b[0])]
    if not any(it.has_shapes for it in streams) or not window.is_wide(
        *(it.max_uncertainty_us for it in streams)
    ):
        return
    least, greatest = stream_reach(window, *streams)
    carried = [_carried(it, []) for it in streams]
    for s in (least, greatest):
        if least <= greatest:
            assert any(
                oracle.is_satisfied(told(u.shape()), told(v.shape().moved(s)), judged(window))
                for u in carried[0]
                for v in carried[1]
            )


@given(
    lengths=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    window=windows(limit=30),
)
def test_p_histogram_keep_of_interval_templates_is_that_of_lengths(
    lengths: list[int], window: TimingWindow
) -> None:
    (rho_a, pi_a), (rho_b, pi_b) = sorted(lengths[:2]), sorted(lengths[2:])
    a, b = _stream([], rho_a, pi_a, own=False), _stream([], rho_b, pi_b, own=False)
    named = Template("t", Histogram.from_interval(0, pi_a))
    expected = bounds(window, rho_a, pi_a, rho_b, pi_b)
    assert stream_reach(window, a, b) == expected
    assert stream_reach(window, replace(a, templates=(named,)), b) == expected


@pytest.mark.parametrize("limit", ["_MAX_STEPS", "_MAX_EXACT"])
def test_reach_of_own_histograms_is_that_of_supports(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    window = TimingWindow(-100, 300, None, None, Fraction(9, 10))
    a, b = (Stream(n, n, pi, 0, histograms=True) for n, pi in (("a", 20), ("b", 50)))
    assert stream_reach(window, a, b) == (-120, 350)
    many = tuple(
        Template(f"t{k}", described((-20, -k - 1, "0.5"), (-k - 1, 0, "0.5"))) for k in range(15)
    )
    templates = [Stream(n, n, 20, 0, templates=many) for n in "ab"]
    assert stream_reach(window, *templates)[0] > -120
    more = tuple(replace(it, name=f"{it.name}-{k}") for it in many for k in range(4))
    crowded = [replace(it, templates=more) for it in templates]
    assert stream_reach(window, *crowded) == stream_reach(window, *templates)
    # Too many buckets to look at each two templates, and too many ends to be computed exactly.
    monkeypatch.setattr(histogram_reach, limit, 1)
    fewer = [replace(it, templates=more[:-1]) for it in templates]
    assert stream_reach(window, *fewer) == (-120, 320)


def test_reach_of_a_window_without_an_end_stops_at_its_horizon() -> None:
    streams = [Stream(n, n, 100, 0, templates=(Template("t", MODES),)) for n in "ab"]
    least, greatest = stream_reach(TimingWindow(None, 10, -500, None, Fraction(1, 2)), *streams)
    assert least == -500
    # U_A - U_B ≤ upper - s: half of the mass of U_A lies up to 10, U_B is certainly up to 100.
    assert 10 < greatest <= 110


@given(events=st.lists(st.tuples(histograms(places=0), st.integers(-9, 9)), max_size=8))
def test_a_side_gives_each_event_its_shape(events: list[tuple[Histogram, int]]) -> None:
    timed = [shape.shape().moved(t) for shape, t in events]
    side = side_of_events(timed)
    assert [side.classes.shapes.histogram(k) for k in side.codes.tolist()] == [
        it.shape() for it in timed
    ]
    assert [side.classes.lengths[k] for k in side.codes] == [it.length_us for it in timed]
    keys = {side.classes.shapes.key(k) for k in range(len(side.classes))}
    assert len(keys) == len(side.classes) == len({it.shape() for it in timed})


def test_a_side_names_its_classes_alike_in_whatever_order_they_come() -> None:
    shapes = [MODES, described((-4, -1, "0.5"), (-1, 0, "0.5")), Histogram.from_interval(-7, 0)]
    one, other = side_of_events(shapes), side_of_events(shapes[::-1])
    assert [one.classes.shapes.key(k) for k in range(3)] == [
        other.classes.shapes.key(k) for k in range(3)
    ]
    assert one.codes.tolist() == other.codes.tolist()[::-1]


def test_a_side_refuses_an_event_that_is_not_as_long_as_its_shape() -> None:
    column = DictionaryColumn.from_list([MODES.shape_bytes])
    with pytest.raises(ValueError, match=r"differs from .* shape"):
        make_side(np.array([0]), np.array([99]), column)


def _segment(events: list[Histogram], ids: list[bytes], late: list[bool]) -> Segment:
    return Segment(
        BytesColumn.from_list([b"k"]),
        np.array([0, len(events)]),
        np.array([it.earliest_us for it in events]),
        np.array([it.latest_us for it in events]),
        BytesColumn.from_list(ids),
        np.array(late),
        DictionaryColumn.from_list([it.shape_bytes for it in events]),
    )


def test_a_segment_is_put_into_classes_once() -> None:
    segment = _segment([MODES], [b"a"], [False])
    assert side_of(segment) is side_of(segment)


@pytest.mark.parametrize(
    ("targets", "late", "best"),
    [
        # Equally probable: the nearer expected time, 3/8 µs apart, though its middle is farther.
        ([described((-8, -4, "0.5"), (-4, 0, "0.5")), described((-8, -1, "0.5"), (-1, 0, "0.5"))],
         [False, False], 1),
        # Mirrored modes are equally far: the id decides, then the event that is not late.
        ([MODES, MODES], [False, False], 0),
        ([MODES, MODES], [True, False], 1),
    ],
)  # fmt: skip
def test_p_histogram_best_breaks_ties_as_told(
    targets: list[Histogram], late: list[bool], best: int
) -> None:
    base = _segment([Histogram.from_interval(-2, 0)], [b"x"], [False])
    ids = [b"same"] * 2 if any(late) else [b"a", b"b"]
    target = _segment(targets, ids, late)
    window = TimingWindow(-500, 500, None, None, Fraction(1, 2))
    rows = choose_best(base, target, np.array([0, 0]), np.array([1, 0]), window)
    assert [it.tolist() for it in rows] == [[0], [best]]


def test_p_histogram_best_tells_apart_what_float_cannot() -> None:
    """Both lose some 10⁻²⁰: in float64 both probabilities are 1."""
    rare = described((-30, -20, "0.0000000001"), (-20, 0, "0.9999999999"))
    base = _segment([rare], [b"x"], [False])
    shapes = [
        described((-30, -4, "0.9999999999"), (-4, 0, "0.0000000001")),
        described((-30, -5, "0.9999999999"), (-5, 0, "0.0000000001")),
    ]
    window = TimingWindow(None, 26, -500, None, Fraction(1, 2))
    exact = [oracle.probability(told(rare), told(it), judged(window)) for it in shapes]
    assert exact[0] < exact[1] < 1
    assert float(exact[0]) == float(exact[1]) == 1.0
    for order, best in (([0, 1], 1), ([1, 0], 0)):
        target = _segment([shapes[k] for k in order], [b"a", b"b"], [False, False])
        rows = choose_best(base, target, np.array([0, 0]), np.array([0, 1]), window)
        assert rows[1].tolist() == [best]
    # One that is certain is better, however far away.
    target = _segment([shapes[1].moved(-100), *shapes], [b"c", b"a", b"b"], [False] * 3)
    rows = choose_best(base, target, np.array([0, 0, 0]), np.array([0, 1, 2]), window)
    assert rows[1].tolist() == [0]


def test_p_histogram_indexed_finds_every_side_of_a_gap() -> None:
    """Only what lies between the modes is violated."""
    window = TimingWindow(-12, 12, None, None, Fraction(1, 2))
    base = [Histogram.from_interval(0, 0)]
    target = [MODES.moved(t) for t in range(-20, 121)]
    pairs, ran = correlate_histograms(
        "indexed",
        side_of_events(base),
        side_of_events(target),
        one_group(base, target),
        WindowBook(window),
        base_is_a=True,
        exclude_same=False,
    )
    assert ran == "indexed"
    assert set(pairs.decided_by.tolist()) == {SATISFACTION_REGION}
    assert sorted(t - 20 for t in pairs.target_index.tolist()) == [*range(-2, 13), *range(88, 103)]


def test_p_stochastic_lookup_of_a_search_is_not_read_when_the_lower_end_cuts() -> None:
    """Right, in a narrow window: the later base event is not satisfied, though it dominates."""
    window = TimingWindow(-4, 4, None, None, Fraction(1, 2))
    shape = described((-10, -6, "0.5"), (-6, 0, "0.5"))
    base = [shape.moved(t) for t in range(-20, 21)]
    target = [MODES.moved(5), shape.moved(5)]
    book = WindowBook(window)
    book.credit = 10**9
    pairs, ran = correlate_histograms(
        "lazy_lookup",
        side_of_events(base),
        side_of_events(target),
        one_group(base, target),
        book,
        base_is_a=True,
        exclude_same=False,
    )
    expected = [
        (i, j)
        for i, a in enumerate(base)
        for j, b in enumerate(target)
        if oracle.is_satisfied(told(a), told(b), judged(window))
    ]
    found = zip(pairs.base_index.tolist(), pairs.target_index.tolist(), strict=True)
    assert ran == "lazy_lookup"
    assert sorted(found) == expected
    assert (pairs.decided_by != LOOKUP).any()


def test_s_windows_are_bought_when_probes_have_cost_as_much() -> None:
    window = TimingWindow(-90, 90, None, None, Fraction(1, 2))
    base, target = ([MODES.moved(t) for t in range(40)] for _ in range(2))
    base_side, target_side, book = side_of_events(base), side_of_events(target), WindowBook(window)

    def run() -> str:
        pairs, ran = correlate_histograms(
            "auto",
            base_side,
            target_side,
            one_group(base, target),
            book,
            base_is_a=True,
            exclude_same=False,
        )
        assert len(pairs.base_index) == sum(
            oracle.is_satisfied(told(a), told(b), judged(window)) for a in base for b in target
        )
        return ran

    # Each search decides 40 x 40 pairs for want of the one s-window, which costs less.
    assert [run() for _ in range(3)] == ["lazy", "lazy", "lazy"]
    assert book.missed == 40 * 40
    assert 0 < book.work < book.missed


def test_s_windows_cost_no_more_than_was_decided_for_want_of_them() -> None:
    window = TimingWindow(-12, 12, None, None, Fraction(1, 2))
    shapes = [described((-90, -k, "0.5"), (-k, 0, "0.5")) for k in range(1, 21)]
    base, target = shapes, [it.moved(5) for it in shapes]
    book = WindowBook(window)
    spent = []
    for _ in range(80):
        correlate_histograms(
            "auto",
            side_of_events(base),
            side_of_events(target),
            one_group(base, target),
            book,
            base_is_a=True,
            exclude_same=False,
        )
        # More by less than one s-window costs.
        assert book.work <= book.missed + 5_000
        spent.append(book.work)
    # Little by little, and then no more.
    assert len(set(spent)) > 3
    assert spent[-1] == spent[-2]


def test_indexed_computes_some_s_windows_on_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    window = TimingWindow(-90, 90, None, None, Fraction(1, 2))
    shapes = [described((-9, -k, "0.5"), (-k, 0, "0.5")) for k in (1, 2, 3)]

    def run(count: int) -> str:
        side = side_of_events(shapes[:count])
        return correlate_histograms(
            "indexed",
            side,
            side,
            np.array([[0, count, 0, count]]),
            WindowBook(window),
            base_is_a=True,
            exclude_same=False,
        )[1]

    assert [run(1), run(2)] == ["indexed", "indexed"]
    # As many as a budget allows: the first.
    monkeypatch.setattr(histogram_windows, "AT_ONCE", 1)
    assert [run(1), run(2)] == ["indexed", "lazy"]


@pytest.mark.parametrize(("own", "matched"), [(None, True), (0, False)])
def test_a_tie_that_float_cannot_tell_matches_unless_it_is_the_event_itself(
    own: int | None, *, matched: bool
) -> None:
    # Without s-windows: P = 1/2 is computed, and lies within the rounding bound of the threshold.
    book = WindowBook(TimingWindow(None, 0, -500, None, Fraction(1, 2)))
    segment = _segment([MODES], [b"a"], [False])
    places = None if own is None else (np.array([0]), np.array([own]))
    found = find_histogram_targets(segment, [segment], places, (-500, 100), book)
    assert found is not None
    marked = np.zeros(1, np.bool_)
    # Once in float64, once in integers.
    assert found.mark_matched(marked) == (0 if own == 0 else 2)
    assert marked.tolist() == [matched]
    rows, targets, looked_at = found.find_best()
    assert (rows.tolist(), targets.tolist()) == (([0], [0]) if matched else ([], []))
    assert looked_at == 1


def test_targets_out_of_reach_are_not_gathered() -> None:
    base = _segment([MODES.moved(1000)], [b"a"], [False])
    book = WindowBook(TimingWindow(-5, 5, None, None, Fraction(1, 2)))
    far = _segment([MODES], [b"b"], [False])
    near = _segment([MODES.moved(1), MODES.moved(1005)], [b"c", b"d"], [False, False])
    assert find_histogram_targets(base, [far], None, (-105, 105), book) is None
    found = find_histogram_targets(base, [far, near], None, (-105, 105), book)
    assert found is not None
    assert found.segment.id.to_list() == [b"d"]
