"""Text drawing of a positive event and the negated events that may stop it."""

from __future__ import annotations

from correlation.event_query.absence.drawing import draw_explanation
from tests.support.messages import assert_names
from tests.unit.correlation.event_query.test_explain_uncertain import (
    DOOR,
    EARLY,
    LAST,
    LEAK,
    event,
    explain,
)


def test_bars_windows_and_probabilities_are_drawn() -> None:
    drawn = draw_explanation(explain(a=LEAK, d=DOOR, r=event("r1", 12), b=event("b1", 5, 10)))
    lines = [it.text for it in drawn if it.style == "drawing"]
    labels = [line[:10].strip() for line in lines]
    assert labels[:5] == ["a", "r stops", "r", "b stops", "b"]
    instant, stops, report, _, other = (line[11:] for line in lines[:5])
    assert set(instant) == {"█"}
    # Minute 0 to 15 is drawn; the report is a point.
    # The window is shorter than the uncertainty: no report stops every leak.
    assert set(stops.strip()) == {"─"}
    assert report.strip() == "█"
    assert len(other.strip()) in range(len(instant) // 2 - 1, len(instant) // 2 + 3)
    assert "r r1: stops it with probability 0.3 = 3/10" in lines
    assert lines[-2].endswith(": probability 1")
    assert_names(lines[-2], "relations", "positive events")
    assert lines[-1].startswith("probability of the result: 0.")
    assert all(len(line) <= 80 for line in lines)
    legend = [it.text for it in drawn if it.style == "legend"]
    assert_names(legend[-1], "axis", "positive event")
    assert [it.text for it in drawn] == [*lines, *legend]


def test_windows_end_at_fixed_ends() -> None:
    """Minute 0 to 14 is drawn: a leak from the last time of `a` to the door stops every leak."""
    drawn = draw_explanation(explain(LAST, a=LEAK, d=event("d1", 12), b=event("b1", 4, 14)))
    instant, stops, other = (it.text[11:] for it in drawn[:3])
    assert set(stops[: len(instant) - 1]) == {"─"}
    assert set(stops[len(instant) - 1 :]) == {"━"}
    assert len(stops) - 1 == round((len(other) - 1) * 12 / 14)


def test_no_window_is_certain_if_it_depends_on_the_time_of_the_positive_event() -> None:
    """Only a leak more than 7 minutes before the door may be stopped."""
    drawn = draw_explanation(explain(EARLY, a=LEAK, d=event("d1", 12), b=event("b1", 10, 12)))
    assert set(drawn[1].text[11:].strip()) == {"─"}


def test_an_explanation_without_a_probability_has_no_drawing() -> None:
    assert draw_explanation({"verdict": "satisfied", "events": {}}) == []
