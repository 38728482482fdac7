"""Text drawing of a positive event and the negated events that may stop it."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from cli.client.absence_picture import draw_absence
from cli.client.explain import show_explanation
from tests.unit.cli.client.test_explain_table import ANSWER
from tests.unit.correlation.event_query.test_explain_uncertain import DOOR, LEAK, event, explain


def test_bars_windows_and_probabilities_are_drawn() -> None:
    lines = draw_absence(explain(a=LEAK, d=DOOR, r=event("r1", 12), b=event("b1", 5, 10)))
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
    assert lines[-2] == "relations among the positive events: probability 1"
    assert lines[-1].startswith("probability of the result: 0.")
    assert all(len(line) <= 80 for line in lines)


def test_an_answer_without_a_probability_has_no_drawing() -> None:
    assert draw_absence(ANSWER) == []


def test_the_drawing_is_part_of_the_explanation() -> None:
    answer = explain(a=LEAK, d=DOOR, r=event("r1", 12))
    shown = {**ANSWER, **answer, "condition": "q", "version": 1, "kind": "event_query"}
    console = Console(file=StringIO(), width=100)
    show_explanation({**shown, "roles": ["a", "d", "r"]}, console)
    assert isinstance(console.file, StringIO)
    assert "probability of the result: 0.7 = 7/10, threshold 0.5" in console.file.getvalue()
