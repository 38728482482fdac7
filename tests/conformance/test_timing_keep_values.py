"""Keep values of timing conditions on exact times are those of the equivalent event query.

The operators of timing conditions compute them by hand. A condition reports an A without a B, or
its best B, as ::

    DETECT R ON event a: A not event b: B WHERE <window>, R.rt.end = a.rt.end

does, except that it does not wait for the A before it: an A of which all B are known is released
although its own watermark is behind. A pair is reported with its second event. A is needed as long
as a B may still come: as for the pairs with the time of b, up to the progress of B.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from correlation.engine.progress import Progress, Watermarks
from correlation.event_query.query import And, EventPattern, Query, Relation
from correlation.event_query.relevance.analysis import Relevance, analyse_relevance
from correlation.event_query.relevance.closure import StreamTimes
from correlation.resources.streams import Stream
from correlation.timing.conditions import BEST, PAIRS, UNMATCHED, TimingCondition
from correlation.timing.final_operator import FinalOperator
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.intervals.window import TimingWindow
from correlation.timing.operator import TimingOperator
from tests.support.event_queries import end
from tests.unit.correlation.timing.strategies import windows

LIMIT = 50


@dataclass(frozen=True)
class Case:
    """A window of two streams or one, and their watermarks."""

    window: TimingWindow
    b: str
    watermarks: Mapping[str, int]

    def condition(self, emit: str) -> TimingCondition:
        """Return the timing condition."""
        threshold = Decimal(self.window.threshold.numerator) / self.window.threshold.denominator
        return TimingCondition("c", 1, "within", "a", self.b, self.window, threshold, emit=emit)

    def streams(self) -> dict[str, Stream]:
        """Return its streams, of exact times."""
        return {name: Stream(name, name, 0, 0) for name in ("a", self.b)}

    def relevance(self, time: str, *, negated: bool) -> Relevance:
        """Return the analysis of the event query whose result has the time of an alias."""
        window = self.window
        events = (EventPattern("a", "A"), EventPattern("b", "B", negated=negated))
        lows = [
            Relation(end("a", it), "<=", end("b"))
            for it in (window.lower_us, window.floor_us)
            if it is not None
        ]
        highs = [
            Relation(end("b"), "<=", end("a", it))
            for it in (window.upper_us, window.ceiling_us)
            if it is not None
        ]
        query = Query("R", (), events, And((*lows, *highs)), result_end=end(time))
        types = {"A": StreamTimes("a", 0, 0), "B": StreamTimes(self.b, 0, 0)}
        return analyse_relevance(query, types)

    @property
    def progress(self) -> dict[str, int]:
        """Time up to which all events of each stream are known."""
        return {name: it - 1 for name, it in self.watermarks.items()}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a window, and watermarks of streams with delays."""
    window = draw(windows(LIMIT))
    names = sorted({"a", draw(st.sampled_from(["a", "b"]))})
    watermarks = Watermarks(
        {it: draw(st.integers(0, LIMIT)) for it in names}, dict.fromkeys(names, 1)
    )
    reached = st.integers(-LIMIT, 3 * LIMIT)
    watermarks.advance([Progress(it, 0, 1, draw(reached)) for it in names], [])
    found = Case(window, names[-1], watermarks.values())
    streams = found.streams()
    low, high = stream_reach(window, streams["a"], streams[found.b])
    # The operators compute finite keep values of a window that no pair can satisfy.
    assume(low <= high)
    return found


def needed_from(relevance: Relevance, bound: int) -> dict[str, int]:
    """Return the first time that is needed of each stream, as the engine's keep values are."""
    return {name: int(it) + 1 for name, it in relevance.keep_values(bound).items()}


@pytest.mark.parametrize("emit", [BEST, UNMATCHED])
@given(cases())
def test_final_results_have_the_progress_and_keep_values_of_an_absence(
    emit: str, case: Case
) -> None:
    relevance = case.relevance("a", negated=True)
    bound = int(relevance.progress.value(case.progress))
    expected = needed_from(relevance, bound)
    keep = FinalOperator(case.condition(emit), case.streams()).keep_values(case.watermarks)
    if case.b == "a":
        assert keep == expected
        return
    assert keep["b"] == expected["b"]
    # An A is not needed after its release, even if an A before it may still come.
    assert min(keep["a"], case.watermarks["a"]) == expected["a"] == bound + 1


@given(cases())
def test_pairs_have_the_keep_values_of_the_pairs_that_each_stream_completes(case: Case) -> None:
    by_b, by_a = (case.relevance(it, negated=False) for it in ("b", "a"))
    needed = (
        needed_from(by_b, case.progress[case.b]),
        needed_from(by_a, case.progress["a"]),
    )
    keep = TimingOperator(case.condition(PAIRS), case.streams()).keep_values(case.watermarks)
    if case.b == "a":
        assert keep == {"a": min(it["a"] for it in needed)}
    else:
        assert keep == {"a": needed[0]["a"], "b": needed[1]["b"]}
