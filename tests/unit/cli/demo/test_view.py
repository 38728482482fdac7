"""Live view and report of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

from cli.demo.events import DemoEvent
from cli.demo.resources import ALIKE, CONDITIONS, GROUNDED
from cli.demo.view import Run, show_report

if TYPE_CHECKING:
    from rich.console import RenderableType

SECOND_US = 1_000_000
GROUNDED_FLIGHT = {"flight": "UA1", "tail": "N1", "to": "BOS"}


def _printed(what: RenderableType) -> list[str]:
    console = Console(width=72, highlight=False)
    with console.capture() as captured:
        console.print(what)
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def _run() -> Run:
    """Return a run whose events were sent a second before their results are read."""
    events = [DemoEvent("bad-weather", name, b"", b"", 0) for name in ("w1", "w2", "w3")]
    run = Run(events, {"m1": "How are [you] today?", "m2": "how are you\x1b today"})
    run.begin = 10.0
    run.sent_at = {("bad-weather", "w1"): 10.0, ("departures", "d1"): 11.0}
    return run


def _alarm(condition: str) -> dict[str, Any]:
    sides = {"a": ("bad-weather", "w1"), "b": ("departures", "d1")}
    named = {side: {"stream": stream, "id": name} for side, (stream, name) in sides.items()}
    return {"condition": condition, "probability": 0.95, **named}


def _grounded() -> dict[str, Any]:
    return {
        "condition": GROUNDED,
        "events": {"c": {"id": "c1"}},
        "attributes": GROUNDED_FLIGHT,
    }


def test_view_shows_results_and_the_present_list() -> None:
    run = _run()
    run.take(_alarm("left-after-bad-weather"), 12.0)
    run.take(_grounded(), 12.0)
    run.take({"condition": ALIKE, "change": "entered"}, 14.0)
    item = {"similarity": 2 / 3, "older": {"id": "m1"}, "newer": {"id": "m2"}}
    run.present = {"as_of": 60 * SECOND_US, "items": [item]}
    assert run.results == 3
    assert _printed(run.view()) == [
        "2 of 3 events sent",
        "condition                        results",
        "left-after-bad-weather                 1",
        "left-right-at-bad-weather              0",
        "took-off-around-bad-weather            0",
        "took-off-well-after-bad-weather        0",
        "left-in-the-same-minute                0",
        "grounded-for-a-day                     1",
        "said-in-similar-words                  1",
        "left-after-bad-weather: w1 ↔ d1, probability 0.950",
        "grounded-for-a-day: c1 to BOS, aircraft N1",
        "said-in-similar-words as of 1970-01-01T00:01:00Z",
        "similarity  messages",
        "     0.667  How are [you] today?",
        r"            how are you\x1b today",
    ]


def test_list_is_empty_until_the_job_has_written_it() -> None:
    run = _run()
    assert _printed(run.list_view()) == ["said-in-similar-words", "similarity  messages"]
    # The answer of the service.
    run.present = {"as_of": None, "items": []}
    assert _printed(run.list_view()) == ["said-in-similar-words", "similarity  messages"]


def test_report_counts_results_and_measures_pairs() -> None:
    run = _run()
    run.take(_alarm("left-after-bad-weather"), 12.0)
    run.take({"condition": ALIKE, "change": "entered"}, 13.0)
    report = run.report(dict.fromkeys(CONDITIONS, 0.5))
    assert report["pairs"] == {**dict.fromkeys(CONDITIONS, 0), "left-after-bad-weather": 1}
    assert (report["results"], report["changes"]) == ({GROUNDED: 0}, {ALIKE: 1})
    assert (report["seconds"], report["events_per_second"]) == (3.0, 1)
    assert report["latency_p50_seconds"] == report["latency_p99_seconds"] == 1.0
    console = Console(width=200, highlight=False)
    with console.capture() as captured:
        show_report(
            {**report, "hit_ratio": {**report["hit_ratio"], "left-after-bad-weather": None}},
            console,
        )
    lines = captured.get().splitlines()
    assert lines[1].split() == ["left-after-bad-weather", "1", "no", "probes"]
    assert lines[7].split() == [ALIKE, "1"]
