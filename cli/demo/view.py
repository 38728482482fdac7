"""State of a run of the demo, its live view, and its report."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cli.demo.check import Pair, pair_of
from cli.demo.judge import Grounded, grounded_of
from cli.demo.resources import ALIKE, CONDITIONS, GROUNDED, LISTS, QUERIES, STREAMS
from correlation.printable import printable
from correlation.resources.times import describe_moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, RenderableType

    from cli.demo.events import DemoEvent

# With them the view fits a terminal of 24 lines.
_SHOWN_ALARMS = 2


@dataclass(slots=True)
class Run:
    """State of a run.

    Parameters
    ----------
    events
        The events to send.
    texts
        Texts of the messages by id.
    """

    events: list[DemoEvent]
    texts: Mapping[str, str]
    begin: float = 0.0
    sent_at: dict[tuple[str, str], float] = field(default_factory=dict)
    sending_ended: float | None = None
    failure: Exception | None = None
    pairs: Counter[Pair] = field(default_factory=Counter)
    grounded: Counter[Grounded] = field(default_factory=Counter)
    changes: list[dict[str, Any]] = field(default_factory=list)
    present: Mapping[str, Any] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    last_result: float = 0.0
    _last_condition: str = ""
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=_SHOWN_ALARMS))

    @property
    def results(self) -> int:
        """Number of alarms and changes read."""
        return self.pairs.total() + self.grounded.total() + len(self.changes)

    def take(self, result: dict[str, Any], now: float) -> None:
        """Record an alarm, or a change of the list."""
        self.last_result = now
        name = result["condition"]
        if name in LISTS:
            self.changes.append(result)
            return
        shown = self._take_grounded(result) if name in QUERIES else self._take_pair(result, now)
        if name != self._last_condition or len(self._recent) < _SHOWN_ALARMS:
            self._last_condition = name
            self._recent.append(f"{name}: {shown}")

    def _take_pair(self, alarm: Mapping[str, Any], now: float) -> str:
        """Record a pair of a timing condition; return its description."""
        self.pairs[pair_of(alarm)] += 1
        sides = [alarm["a"], alarm["b"]]
        later = max(self.sent_at[STREAMS[it["stream"]]["topic"], it["id"]] for it in sides)
        self.latencies.append(now - later)
        return f"{sides[0]['id']} ↔ {sides[1]['id']}, probability {alarm['probability']:.3f}"

    def _take_grounded(self, alarm: Mapping[str, Any]) -> str:
        """Record a result of the event query; return its description."""
        grounded = grounded_of(alarm)
        self.grounded[grounded] += 1
        return f"{grounded.cancellation} to {grounded.to}, aircraft {grounded.tail}"

    def view(self) -> RenderableType:
        """Return the live view of the replay."""
        table = Table(box=None, pad_edge=False)
        table.add_column("condition")
        table.add_column("results", justify="right")
        found = Counter(pair.condition for pair in list(self.pairs))
        found[GROUNDED] = len(self.grounded)
        found[ALIKE] = len(self.changes)
        for name in (*CONDITIONS, *QUERIES, *LISTS):
            table.add_row(name, str(found[name]))
        lines = [Text(it, no_wrap=True, overflow="ellipsis", style="dim") for it in self._recent]
        head = Text(f"\n{len(self.sent_at)} of {len(self.events)} events sent")
        return Group(head, table, *lines, self.list_view())

    def list_view(self) -> RenderableType:
        """Return the present list with the texts of its messages, two lines for each pair."""
        items: Sequence[Mapping[str, Any]] = self.present.get("items", ())
        as_of = self.present.get("as_of")
        moment = "" if as_of is None else f" as of {describe_moment(as_of)}"
        table = Table(box=None, pad_edge=False)
        # The width of the title: long messages are cut instead.
        table.add_column("similarity", justify="right", min_width=10)
        table.add_column("messages", no_wrap=True, overflow="ellipsis")
        for item in items:
            for side, value in (("older", f"{item['similarity']:.3f}"), ("newer", "")):
                text = self.texts[item[side]["id"]]
                table.add_row(value, Text(printable(text), style="" if value else "dim"))
        return Group(Text(f"{ALIKE}{moment}"), table)

    def report(self, hit_ratio: Mapping[str, float | None]) -> dict[str, Any]:
        """Return the statistics of the run.

        Parameters
        ----------
        hit_ratio
            Hit ratio of each timing condition.
        """
        seconds = max(self.last_result - self.begin, 1e-9)
        latencies = np.array(self.latencies or [0.0])
        return {
            "events": len(self.events),
            "pairs": {
                name: sum(1 for pair in self.pairs if pair.condition == name) for name in CONDITIONS
            },
            "results": {GROUNDED: len(self.grounded)},
            "changes": {ALIKE: len(self.changes)},
            "hit_ratio": dict(hit_ratio),
            "seconds": round(seconds, 1),
            "events_per_second": round(len(self.events) / seconds),
            "latency_p50_seconds": round(float(np.quantile(latencies, 0.5)), 3),
            "latency_p99_seconds": round(float(np.quantile(latencies, 0.99)), 3),
        }


def show_report(report: Mapping[str, Any], console: Console) -> None:
    """Print the statistics as a table."""
    table = Table(box=None, pad_edge=False)
    table.add_column("condition")
    table.add_column("results", justify="right")
    table.add_column("hit ratio", justify="right")
    for name in CONDITIONS:
        ratio = report["hit_ratio"][name]
        table.add_row(
            name, str(report["pairs"][name]), "no probes" if ratio is None else f"{ratio:.3f}"
        )
    for name, count in {**report["results"], **report["changes"]}.items():
        table.add_row(name, str(count), "")
    console.print(table)
    console.print(
        f"{report['events']} events in {report['seconds']} s ({report['events_per_second']} "
        f"events/s); time from sending the later event of a pair to reading its alarm: median "
        f"{report['latency_p50_seconds']} s, 99 % within {report['latency_p99_seconds']} s",
        soft_wrap=True,
    )
